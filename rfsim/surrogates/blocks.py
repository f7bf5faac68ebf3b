"""Blocks of weighted points as few Chebyshev nodes: the sum of a smooth function over the block is that over its nodes.

A function f(s, e) of the place s and a second coordinate e is interpolated over a block in both. In e only the distance
from its trend over the block counts, so that e may run through any smooth curve with one or two nodes; where e jumps
from point to point, the nodes fill its range.
"""

from typing import NamedTuple

import numpy as np

_RANGE = 0.7  # largest half-range of the trend of e in a block: a factor e^1.4 of the lr
# half-range of e about its trend -> 1, 2, 3... nodes, for f analytic in a strip of half-width pi
_BENDS = (1e-8, 4e-4, 8e-3, 5e-2, 0.15, 0.4, 0.7, 1.0, 1.35, 1.7, 2.05, 2.4, 2.7, 3.0)
WIDEST = _BENDS[-1]  # blocks of a larger half-range are not interpolated


class Level(NamedTuple):
    """Blocks of one size: first, last point; whether interpolated at all; first node and number of nodes of each.

    clear : least lag of the last point at which a block may stand for its points.
    """

    size: int
    first: np.ndarray
    last: np.ndarray
    usable: np.ndarray
    begin: np.ndarray
    nodes: np.ndarray
    clear: np.ndarray


def blocks(
    points: np.ndarray,
    heavy: np.ndarray,
    second: np.ndarray,
    clear: np.ndarray,
    *,
    size: int,
    nodes: int,
    used: int,
    from_zero: bool,
) -> tuple[Level, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Blocks of `size` points, and the places, second coordinates and weights of their nodes, numbered from `used` on.

    Parameters
    ----------
    points, heavy, second, clear : (n,) places, weights, second coordinates, least lags of the points.
    nodes : in the place. from_zero : only blocks not longer than their distance from place 0.
    """
    n = len(points)
    first = np.arange(0, n, size)
    last = np.minimum(first + size, n) - 1
    index = np.minimum(first[:, None] + np.arange(size), n - 1)
    present = last - first + 1
    low, high = points[first], points[last]
    middle, half = 0.5 * (low + high), np.maximum(0.5 * (high - low), 1e-300)
    x = np.clip((points[index] - middle[:, None]) / half[:, None], -1.0, 1.0)
    basis = _chebyshev(x, nodes)  # (nodes, blocks, size)
    angle, at_nodes, spread = _nodes(nodes)
    weight = heavy[index]
    weight[-1, present[-1] :] = 0.0
    e = second[index]
    trend, node_e = _trend(basis, e, at_nodes)
    bend = e - trend
    shift = 0.5 * (bend.max(1) + bend.min(1))
    bend, node_e = bend - shift[:, None], node_e + shift[:, None]
    radius = np.abs(bend).max(1)
    order = np.searchsorted(_BENDS, radius) + 1
    usable = (radius <= WIDEST) & (nodes * order < present)
    if from_zero:
        usable &= high - low <= low
    many = np.where(usable, nodes * order, 0)
    begin = used + np.concatenate([[0], np.cumsum(many)[:-1]])
    place_at = middle[:, None] + half[:, None] * np.cos(angle)
    parts = tuple(np.empty(int(many.sum())) for _ in range(3))
    for k in np.unique(order[usable]):
        which = np.flatnonzero(usable & (order == k))
        angle_k, _, spread_k = _nodes(int(k))
        y = np.clip(bend[which] / np.maximum(radius[which], 1e-300)[:, None], -1.0, 1.0)
        weighted = (basis[:, which] * weight[which]).transpose(1, 0, 2)
        moment = weighted @ _chebyshev(y, int(k)).transpose(1, 2, 0)  # (blocks, nodes, k)
        target = ((begin[which] - used)[:, None] + np.arange(nodes * k)).ravel()
        parts[0][target] = np.repeat(place_at[which], k, axis=1).ravel()
        parts[1][target] = (node_e[which][:, :, None] + radius[which][:, None, None] * np.cos(angle_k)).ravel()
        parts[2][target] = (spread @ moment @ spread_k.T).ravel()
    return Level(size, first, last, usable, begin, many, np.maximum.reduceat(clear, first)), parts


def _nodes(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Angles of the Chebyshev nodes (n,), T_j there (n, j), and the weight of moment j at each (n, j)."""
    angle = (np.arange(count) + 0.5) * np.pi / count
    value = np.cos(np.outer(angle, np.arange(count)))
    return angle, value, 2.0 / count * value * np.where(np.arange(count) == 0, 0.5, 1.0)


def _trend(basis: np.ndarray, e: np.ndarray, at_nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least-squares trend of e in each block, at its points and nodes: a polynomial where e is smooth, else a line.

    A polynomial that swings between kinks would cost the sum more accuracy than the kinks do; a trend over a wide range
    of e would ask for more nodes in the place, and is left out.
    """
    spread = e.max(1) - e.min(1)
    flat = 0.5 * (e.max(1) + e.min(1))
    if not spread.any():
        return np.broadcast_to(flat[:, None], e.shape), np.broadcast_to(flat[:, None], (len(e), len(at_nodes)))
    columns = basis.transpose(1, 2, 0)
    square = columns.transpose(0, 2, 1) @ columns
    square += 1e-13 * np.trace(square, axis1=1, axis2=2)[:, None, None] * np.eye(square.shape[1])
    right = columns.transpose(0, 2, 1) @ (e - flat[:, None])[:, :, None]
    solved = np.linalg.solve(square, right)
    fitted = columns @ solved
    miss = np.abs(fitted[:, :, 0] + flat[:, None] - e).max(1)
    rough = (miss > 1e-5 * spread) | (np.abs(at_nodes @ solved).max((1, 2)) > 0.6 * spread)
    if rough.any():
        solved[rough] = 0.0
        solved[rough, :2] = np.linalg.solve(square[rough, :2, :2], right[rough, :2])
    wide = np.ptp(at_nodes @ solved, axis=(1, 2)) > 2.0 * _RANGE
    solved[wide] = 0.0
    if rough.any() or wide.any():
        fitted = columns @ solved
    return fitted[:, :, 0] + flat[:, None], (at_nodes @ solved)[:, :, 0] + flat[:, None]


def _chebyshev(x: np.ndarray, count: int) -> np.ndarray:
    """T_0..T_{count-1} at x, along a new first axis."""
    result = np.empty((count, *x.shape))
    result[0] = 1.0
    if count > 1:
        result[1] = x
    for j in range(2, count):
        result[j] = 2.0 * x * result[j - 1] - result[j - 2]
    return result
