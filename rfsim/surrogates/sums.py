"""Sums over all earlier steps of a smooth function of each step and the observation, from few terms per observation.

Every law of a loss curve has a memory sum_{j < n} w_j f(S - s_j, e_j): weights w_j and places s_j fixed by the
schedule, a second coordinate e_j (the log of the lr, in laws that need it), and a function f with a few parameters.
Over a block of steps that lies far behind the observation, f is smooth, and its sum is that of its interpolant: a few
Chebyshev nodes with weights that depend on the schedule only. Blocks halve towards the observation; the nearest steps
and all blocks of few steps are summed as they are. Nothing is assumed about the w_j: a jump is one term.
"""

from typing import NamedTuple

import numpy as np

from rfsim.checks import whole_number

_LEAF = 8  # steps that are summed as they are
_RANGE = 0.7  # largest half-range of e in a block: a factor e^1.4 of the lr
_BENDS = (1e-8, 4e-4, 8e-3, 5e-2, 0.15, 0.4, _RANGE)  # half-range of e about its trend -> 1, 2, 3... nodes


class Terms(NamedTuple):
    """The terms of all m observations, those of one observation together.

    observations : m. rows : observations that have terms. first : the first term of each of these.
    lag : S of the observation less the place of the term, per term.
    weight : per term.
    node : per term, index into `place` and `extra`. place, extra : (k,) s and e of the nodes.
    """

    observations: int
    rows: np.ndarray
    first: np.ndarray
    lag: np.ndarray
    weight: np.ndarray
    node: np.ndarray
    place: np.ndarray
    extra: np.ndarray

    def total(self, values: np.ndarray) -> np.ndarray:
        """Sum of weight times values, both per term, for each observation (m,)."""
        result = np.zeros(self.observations)
        if len(self.rows):
            result[self.rows] = np.add.reduceat(self.weight * values, self.first)
        return result


class _Level(NamedTuple):
    """Blocks of one size: first, last point; whether interpolated at all; first node and number of nodes of each."""

    size: int
    first: np.ndarray
    last: np.ndarray
    usable: np.ndarray
    begin: np.ndarray
    nodes: np.ndarray


def terms(
    at: np.ndarray,
    until: np.ndarray,
    place: np.ndarray,
    weight: np.ndarray,
    extra: np.ndarray | None = None,
    *,
    nodes: int = 8,
    from_zero: bool = False,
) -> Terms:
    """Terms of sum_{j < until} weight_j f(at - place_j, extra_j) for each observation.

    Parameters
    ----------
    at : (m,) clock of the observations.
    until : (m,) whole numbers: observation i sums over the points j < until_i, whose place is at most at_i.
    place : (n,) places of the points, increasing (equal ones are allowed).
    weight : (n,) any sign; points of weight 0 are left out.
    extra : (n,) second coordinate, or None.
    nodes : Chebyshev nodes of a block in its place; 8 leaves about 1e-7 of the sum of |weight_j f|. 0 sums all points.
    from_zero : f is smooth in the place itself only on the scale of the place, as a power of it is.

    Raises
    ------
    InputError : for a number of nodes that is not a whole number from 0 on.
    """
    nodes = whole_number("nodes", nodes, least=0)
    kept = np.flatnonzero(weight != 0.0)
    at, count = np.asarray(at, dtype=np.float64), np.searchsorted(kept, until, side="left")
    points, heavy = place[kept], weight[kept]
    second = np.zeros(len(kept)) if extra is None else extra[kept]
    pool_place, pool_extra, pool_weight = [points], [second], [heavy]
    levels: list[_Level] = []
    size, used = 2 * _LEAF, len(kept)
    while nodes and size < 2 * len(kept):
        level, new = _blocks(points, heavy, second, size, nodes, used, from_zero)
        levels.append(level)
        for pool, part in zip((pool_place, pool_extra, pool_weight), new, strict=True):
            pool.append(part)
        used += len(new[0])
        size *= 2
    row, node = _chosen(levels, at, count, points)
    all_place, all_extra = np.concatenate(pool_place), np.concatenate(pool_extra)
    rows, first = np.unique(row, return_index=True)
    return Terms(
        len(at),
        rows,
        first,
        np.maximum(at[row] - all_place[node], 0.0),
        np.concatenate(pool_weight)[node],
        node,
        all_place,
        all_extra,
    )


def _blocks(
    points: np.ndarray, heavy: np.ndarray, second: np.ndarray, size: int, nodes: int, used: int, from_zero: bool
) -> tuple[_Level, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Blocks of `size` points, and the places, second coordinates and weights of their nodes."""
    n = len(points)
    first = np.arange(0, n, size)
    last = np.minimum(first + size, n) - 1
    index = np.minimum(first[:, None] + np.arange(size), n - 1)
    present = (first[:, None] + np.arange(size)) < n
    low, high = points[first], points[last]
    middle, half = 0.5 * (low + high), np.maximum(0.5 * (high - low), 1e-300)
    x = np.clip((points[index] - middle[:, None]) / half[:, None], -1.0, 1.0)
    basis = _chebyshev(x, nodes)  # (nodes, blocks, size)
    angle = (np.arange(nodes) + 0.5) * np.pi / nodes
    at_nodes = np.cos(np.outer(angle, np.arange(nodes)))  # T_j at node n: (n, j)
    spread = 2.0 / nodes * at_nodes * np.where(np.arange(nodes) == 0, 0.5, 1.0)
    weight = np.where(present, heavy[index], 0.0)
    e = second[index]
    trend, node_e = _trend(basis, e, at_nodes)
    bend = e - trend
    shift = 0.5 * (bend.max(1) + bend.min(1))
    bend, node_e = bend - shift[:, None], node_e + shift[:, None]
    radius = np.abs(bend).max(1)
    order = np.searchsorted(_BENDS, radius) + 1
    usable = (e.max(1) - e.min(1) <= 2.0 * _RANGE) & (nodes * order < present.sum(1))
    if from_zero:
        usable &= high - low <= low
    many = np.where(usable, nodes * order, 0)
    begin = used + np.concatenate([[0], np.cumsum(many)[:-1]])
    place_at = middle[:, None] + half[:, None] * np.cos(angle)
    parts = [np.empty(int(many.sum())) for _ in range(3)]
    for k in np.unique(order[usable]):
        which = np.flatnonzero(usable & (order == k))
        angle_k = (np.arange(k) + 0.5) * np.pi / k
        at_k = np.cos(np.outer(angle_k, np.arange(k)))
        spread_k = 2.0 / k * at_k * np.where(np.arange(k) == 0, 0.5, 1.0)
        y = np.clip(bend[which] / np.maximum(radius[which], 1e-300)[:, None], -1.0, 1.0)
        moment = np.einsum("jbs,ibs->bji", basis[:, which] * weight[which], _chebyshev(y, int(k)))
        place_weight = np.einsum("nj,bji,ki->bnk", spread, moment, spread_k)
        target = ((begin[which] - used)[:, None] + np.arange(nodes * k)).ravel()
        parts[0][target] = np.repeat(place_at[which], k, axis=1).ravel()
        parts[1][target] = (node_e[which][:, :, None] + radius[which][:, None, None] * np.cos(angle_k)).ravel()
        parts[2][target] = place_weight.ravel()
    return _Level(size, first, last, usable, begin, many), (parts[0], parts[1], parts[2])


def _trend(basis: np.ndarray, e: np.ndarray, at_nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least-squares trend of e in each block, at its points and nodes: a polynomial where e is smooth, else a line.

    A polynomial that swings between kinks would cost the sum more accuracy than the kinks do.
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


def _chosen(
    levels: list[_Level], at: np.ndarray, count: np.ndarray, points: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (observation, node), sorted by observation, from the largest blocks down."""
    found_row, found_node = [], []
    if levels:
        row, block = (part.ravel() for part in np.indices((len(at), len(levels[-1].first))))
    else:
        row = np.repeat(np.arange(len(at)), count)
        return row, _ranges(np.zeros(len(at), dtype=np.int64), count)
    for depth in range(len(levels) - 1, -1, -1):
        level = levels[depth]
        inside = level.first[block] < count[row]
        row, block = row[inside], block[inside]
        extent = points[level.last[block]] - points[level.first[block]]
        far = (level.last[block] < count[row]) & level.usable[block] & (extent <= at[row] - points[level.last[block]])
        many = level.nodes[block[far]]
        found_row.append(np.repeat(row[far], many))
        found_node.append(_ranges(level.begin[block[far]], many))
        row, block = row[~far], block[~far]
        if depth:
            halves = len(levels[depth - 1].first)
            row, block = np.repeat(row, 2), (2 * block[:, None] + np.arange(2)).ravel()
            row, block = row[block < halves], block[block < halves]
    smallest = levels[0]
    begin = smallest.first[block]
    many = np.minimum(begin + smallest.size, count[row]) - begin
    found_row.append(np.repeat(row, many))
    found_node.append(_ranges(begin, many))
    every = np.concatenate(found_row)
    order = np.argsort(every, kind="stable")
    return every[order], np.concatenate(found_node)[order]


def _ranges(begin: np.ndarray, many: np.ndarray) -> np.ndarray:
    """begin_i, begin_i + 1, ... (many_i of them) for each i, one after the other."""
    before = np.cumsum(many) - many
    return np.repeat(begin - before, many) + np.arange(int(many.sum()))
