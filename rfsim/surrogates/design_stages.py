"""Schedules of a few constant stages: lr of each by descent, first steps by trying both sides of each."""

from collections.abc import Callable

import numpy as np

Solve = Callable[[np.ndarray, list[np.ndarray]], tuple[np.ndarray, float]]


def staged(
    solve: Solve, smooth: np.ndarray, warmup: int, stages: int, starts: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Find the first steps of constant stages: the lr of every step (N,) and the first steps (stages,).

    Parameters
    ----------
    solve : (first steps, schedules to start from) -> lr (N,) with the best levels for these, and its loss.
    smooth : (N,) the best lr without stages, which says where the lr falls.
    warmup, stages : the first stage begins at `warmup`.
    starts : schedules (N,) to start from besides `smooth`.

    The search tries to move each first step by a quarter of the schedule, then by halves of that down to one step, and
    goes on as long as something is gained.
    """
    steps = len(smooth)
    best, lr, places = np.inf, smooth, np.zeros(0, dtype=np.int64)
    for first in _begins(smooth[warmup:], stages):
        tried = _apart(warmup + first, warmup, steps)
        one, loss = solve(tried, [smooth, *starts])
        if loss < best:
            best, lr, places = loss, one, tried
    stride = max((steps - warmup) // 4, 1)
    while stages > 1 and stride >= 1:
        moved = False
        for index in range(1, stages):
            for sign in (-1, 1):
                tried = places.copy()
                tried[index] += sign * stride
                if (np.diff(tried) < 1).any() or tried[-1] >= steps:
                    continue
                one, loss = solve(tried, [lr])
                if loss < best:
                    best, lr, places, moved = loss, one, tried, True
        if not moved:
            stride //= 2
    return lr, places


def _begins(smooth: np.ndarray, stages: int) -> list[np.ndarray]:
    """First steps after the warm-up: even, where the lr falls through even levels of its log, and crowded late."""
    span = len(smooth)
    share = np.arange(stages) / stages
    fallen = np.log(smooth[0] / np.maximum(smooth, 1e-3 * smooth[0])) if smooth[0] > 0.0 else np.zeros(span)
    return [
        np.rint(share * span).astype(np.int64),
        np.searchsorted(fallen, share * fallen[-1], side="left").astype(np.int64),
        span - np.rint(span * (1.0 - share) ** 3).astype(np.int64),
    ]


def _apart(places: np.ndarray, warmup: int, steps: int) -> np.ndarray:
    """First steps moved so that every stage has at least one step."""
    order = np.arange(len(places))
    up = np.maximum.accumulate(places - order) + order
    up[0] = warmup
    return np.minimum(up, steps - len(places) + order)
