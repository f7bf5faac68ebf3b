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
_LOW = 2
WIDEST = _BENDS[-1]  # blocks of a larger half-range are not interpolated


class Nodes(NamedTuple):
    """Place, second coordinate and weight (k,) of k nodes or points."""

    place: np.ndarray
    extra: np.ndarray
    weight: np.ndarray


class Level(NamedTuple):
    """Blocks of `size` points: their first and last point, first node, and number of nodes, 0 if not interpolated.

    clear : least lag of the last point at which a block may stand for its points.
    """

    size: int
    first: np.ndarray
    last: np.ndarray
    begin: np.ndarray
    nodes: np.ndarray
    clear: np.ndarray


def levels_of(
    points: Nodes, clear: np.ndarray, *, smallest: int, nodes: int, used: int, from_zero: bool
) -> tuple[list[Level], Nodes]:
    """Blocks of `smallest` points, of twice as many, and so on up to all; their nodes, numbered from `used` on.

    Parameters
    ----------
    points : n of them, their places increasing. clear : (n,) least lag at which each may be part of a block.
    nodes : in the place. from_zero : only blocks not longer than their distance from place 0.
    """
    n, flat = len(points.place), bool((points.extra == points.extra[:1]).all())
    levels, found, inner, parts, size = [], [], points, smallest, smallest
    while size < 2 * n:
        first = np.arange(0, n, size)
        last = np.minimum(first + size, n) - 1
        low, high = points.place[first], points.place[last]
        middle, half = 0.5 * (low + high), np.maximum(0.5 * (high - low), 1e-300)
        least = last - first + 1
        if from_zero:
            least = np.where(high - low <= low, least, 0)
        if flat:  # the nodes of two blocks are the points of the next
            inner = _flat(inner, parts, middle, half, nodes)
            parts = 2 * nodes
            many = np.where(nodes < least, nodes, 0)
            made = Nodes(*(part[np.repeat(many > 0, nodes)] for part in inner))
        else:
            many, made = _bent(points, size, middle, half, nodes, least)
        begin = used + np.cumsum(many) - many
        used += len(made.place)
        levels.append(Level(size, first, last, begin, many, np.maximum.reduceat(clear, first)))
        found.append(made)
        size *= 2
    return levels, Nodes(*(np.concatenate(each) for each in zip(*found, strict=True)))


def _flat(points: Nodes, parts: int, middle: np.ndarray, half: np.ndarray, nodes: int) -> Nodes:
    """Nodes of blocks of `parts` points each, all of one e."""
    angle, _, spread = _chebyshev_nodes(nodes)
    place, weight = _rows(points.place, parts), _rows(points.weight, parts, fill=0.0)
    basis = _chebyshev(np.clip((place - middle[:, None]) / half[:, None], -1.0, 1.0), nodes)
    moment = np.einsum("jbs,bs->bj", basis, weight)
    places = (middle[:, None] + half[:, None] * np.cos(angle)).ravel()
    return Nodes(places, np.full_like(places, points.extra[0]), (moment @ spread.T).ravel())


def _bent(
    points: Nodes, size: int, middle: np.ndarray, half: np.ndarray, nodes: int, least: np.ndarray
) -> tuple[np.ndarray, Nodes]:
    """Number of nodes of each block, 0 unless it is below `least`, and all nodes, for an e that varies."""
    angle, at_nodes, spread = _chebyshev_nodes(nodes)
    place, weight = _rows(points.place, size), _rows(points.weight, size, fill=0.0)
    basis = _chebyshev(np.clip((place - middle[:, None]) / half[:, None], -1.0, 1.0), nodes)  # (nodes, blocks, size)
    e = _rows(points.extra, size)
    trend, node_e = _trend(basis, e, at_nodes)
    bend = e - trend
    shift = 0.5 * (bend.max(1) + bend.min(1))
    bend, node_e = bend - shift[:, None], node_e + shift[:, None]
    radius = np.abs(bend).max(1)
    order = np.searchsorted(_BENDS, radius) + 1
    many = np.where((radius <= WIDEST) & (nodes * order < least), nodes * order, 0)
    begin = np.cumsum(many) - many
    places = middle[:, None] + half[:, None] * np.cos(angle)
    found = Nodes(*(np.empty(int(many.sum())) for _ in range(3)))
    for k in np.unique(order[many > 0]):
        which = np.flatnonzero((many > 0) & (order == k))
        angle_k, _, spread_k = _chebyshev_nodes(int(k))
        y = np.clip(bend[which] / np.maximum(radius[which], 1e-300)[:, None], -1.0, 1.0)
        weighted = (basis[:, which] * weight[which]).transpose(1, 0, 2)
        moment = weighted @ _chebyshev(y, int(k)).transpose(1, 2, 0)  # (blocks, nodes, k)
        target = (begin[which][:, None] + np.arange(nodes * k)).ravel()
        found.place[target] = np.repeat(places[which], k, axis=1).ravel()
        found.extra[target] = (node_e[which][:, :, None] + radius[which][:, None, None] * np.cos(angle_k)).ravel()
        found.weight[target] = (spread @ moment @ spread_k.T).ravel()
    return many, found


def _rows(values: np.ndarray, length: int, fill: float | None = None) -> np.ndarray:
    """Values in rows of `length`, the last row filled up with its last value or `fill`."""
    missing = -len(values) % length
    if missing:
        values = np.concatenate([values, np.full(missing, values[-1] if fill is None else fill)])
    return values.reshape(-1, length)


def _chebyshev_nodes(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
        solved[rough, :_LOW] = np.linalg.solve(square[rough, :_LOW, :_LOW], right[rough, :_LOW])
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
