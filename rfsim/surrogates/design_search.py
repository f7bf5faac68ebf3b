"""Search for the non-increasing schedule with the lowest final loss: lr at knots, updates in blocks, descents."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

RESOLUTION = 200  # a block holds at most this fraction of the updates between it and the nearer end of the schedule
_SCALE = 1e3  # of the loss in a descent, whose tolerances are for numbers of order 1
_LEAST = 1e-3  # share of the range of the lr above which a descent begins: at the lowest lr its coordinates stand still
_DEEPEST = 40.0  # largest log of the ratio of neighbouring knots
_ROUNDS = 5
_GAINED = 1e-8  # a round that lowers the loss by less, relative, is the last
_SHARES = 2.0 ** -np.arange(14)

Evaluate = Callable[[np.ndarray], tuple[float, np.ndarray]]


class Layout(NamedTuple):
    """Blocks of updates, and their mean lr as a linear function of the lr at k knots.

    first, updates, batch : (n,) first update, number of updates, and harmonic mean of the batch of each block.
    weights, back : (n, k) and its transpose, sparse.
    """

    first: np.ndarray
    updates: np.ndarray
    batch: np.ndarray
    weights: Any
    back: Any


def knots(steps: int, warmup: int, number: int) -> np.ndarray:
    """About `number` updates from the end of the warm-up to the last one: even, and denser towards both ends."""
    last, part = steps - 1, max(-(-number // 3), 2)
    span = max(last - warmup, 1)
    towards = np.geomspace(1.0, span, part)
    places = np.concatenate([np.linspace(warmup, last, part), warmup + towards, last - towards])
    return np.unique(np.clip(np.rint(places).astype(np.int64), warmup, last))


def denser(places: np.ndarray) -> np.ndarray:
    """The knots with one more in the middle of every stretch."""
    return np.union1d(places, (places[1:] + places[:-1]) // 2)


def layout(
    steps: int, warmup: int, batch: np.ndarray, places: np.ndarray, *, linear: bool, resolution: float = RESOLUTION
) -> Layout:
    """Lay out a schedule with knots at updates `places` (k,), from `warmup` on.

    Between knots the lr is a straight line if `linear`, else that of the knot before; before the first knot it is
    that of the knot times (s + 1)/warmup. Knots begin blocks, so the mean lr of every block is exact.
    """
    first = _block_starts(steps, resolution)
    first = np.union1d(first, places)
    count = np.diff(np.append(first, steps))
    if (batch == batch[0]).all():
        mean_batch = np.full(len(first), batch[0])
    else:
        mean_batch = count / np.add.reduceat(1.0 / batch, first)
    middle = first + 0.5 * (count - 1.0)
    index = np.clip(np.searchsorted(places, first, side="right") - 1, 0, len(places) - 1)
    lift = np.where(first < places[0], (middle + 1.0) / max(warmup, 1), 1.0)
    after = np.minimum(index + 1, len(places) - 1)
    share = np.zeros(len(first))
    if linear:
        length = np.maximum(places[after] - places[index], 1)
        share = np.where(first < places[0], 0.0, (middle - places[index]) / length)
        share[after == index] = 0.0
    rows = np.arange(len(first))
    weights = csr_matrix(
        (
            np.concatenate([lift * (1.0 - share), lift * share]),
            (np.concatenate([rows, rows]), np.concatenate([index, after])),
        ),
        shape=(len(first), len(places)),
    )
    return Layout(first, count, mean_batch, weights, weights.T.tocsr())


def block_means(lr: np.ndarray, laid: Layout) -> np.ndarray:
    """Mean lr of every block (n,) of a schedule (N,)."""
    return np.add.reduceat(lr, laid.first) / laid.updates


def evaluator(slope_of: Evaluate, laid: Layout, end: float | None) -> Evaluate:
    """Final loss and its slope in the lr at the knots, all but the last if `end` fixes that one.

    Parameters
    ----------
    slope_of : lr of the blocks (n,) -> final loss, and its slope in them (n,).
    """

    def evaluate(levels: np.ndarray) -> tuple[float, np.ndarray]:
        whole = levels if end is None else np.append(levels, end)
        loss, slope = slope_of(laid.weights @ whole)
        by_level = laid.back @ slope
        return loss, by_level if end is None else by_level[:-1]

    return evaluate


def settle(
    evaluate: Evaluate, start: np.ndarray, low: float, high: float, *, rounds: int = _ROUNDS
) -> tuple[np.ndarray, float]:
    """Minimise over levels high >= v_0 >= v_1 >= ... >= low, from `start` (k,): levels and loss, never worse than it.

    Descents in z >= 0, v_k = low + (high - low) exp(-z_0 - ... - z_k), in which the set is a box, alternate with
    steps towards the step function (high up to some knot, low after it) that lowers the loss most to first order.
    These leave points where the descent stands still because levels are at `low`.
    """
    span = high - low
    best = _ordered(start, low, high)
    loss, slope = evaluate(best)
    if not span > 0.0:
        return best, loss
    for _ in range(rounds):
        before = loss
        for tried in (_descended(evaluate, best, low, high), *_towards(best, slope, low, high)):
            found, _ = evaluate(tried)
            if found < loss:
                best, loss = tried, found
        slope = evaluate(best)[1]
        if before - loss <= _GAINED * abs(loss):
            break
    return best, loss


def slack(levels: np.ndarray, slope: np.ndarray, low: float, high: float) -> float:
    """How much lower the loss can get, to first order, within the allowed levels; >= 0, and 0 at a stationary point."""
    reach = np.concatenate([[0.0], np.cumsum(slope)])
    return max(float(slope @ (levels - low) - (high - low) * reach.min()), 0.0)


def _block_starts(steps: int, resolution: float) -> np.ndarray:
    """First updates of blocks whose length is the distance to the nearer end over `resolution`, at least 1."""
    if steps <= 2 * resolution:
        return np.arange(steps)
    starts, place = [], 0
    while place < steps // 2:
        starts.append(place)
        place += max(int(place / resolution), 1)
    early = np.array(starts)
    return np.unique(np.concatenate([early, steps - early[1:], [steps // 2]]))


def _ordered(levels: np.ndarray, low: float, high: float) -> np.ndarray:
    return np.minimum.accumulate(np.clip(levels, low, high))


def _descended(evaluate: Evaluate, start: np.ndarray, low: float, high: float) -> np.ndarray:
    """End of a descent in the ratios of neighbouring knots."""
    span = high - low

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        above = span * np.exp(-np.cumsum(z))
        loss, slope = evaluate(low + above)
        return _SCALE * loss, -_SCALE * np.cumsum((slope * above)[::-1])[::-1]

    share = np.maximum((start - low) / span, _LEAST * np.linspace(1.0, 0.5, len(start)))
    begin = np.maximum(-np.diff(np.log(share), prepend=0.0), 0.0)
    found = minimize(
        objective,
        begin,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, _DEEPEST)] * len(begin),
        options={"maxiter": 200, "maxfun": 300, "ftol": 1e-11, "gtol": 1e-8, "maxcor": 30},
    )
    return _ordered(low + span * np.exp(-np.cumsum(found.x)), low, high)


def _towards(levels: np.ndarray, slope: np.ndarray, low: float, high: float) -> list[np.ndarray]:
    """Points on the way to the best step function, and the levels with those next to `low` put there."""
    reach = np.concatenate([[0.0], np.cumsum(slope)])
    target = np.where(np.arange(len(levels)) < np.argmin(reach), high, low)
    snapped = np.where(levels - low < 1e-6 * (high - low), low, levels)
    return [snapped, *(levels + share * (target - levels) for share in _SHARES)]
