"""Sums over all earlier steps of a smooth function of each step and the observation, from few terms per observation.

Every law of a loss curve has a memory sum_{j < n} w_j f(S - s_j, e_j): weights w_j and places s_j fixed by the
schedule, a second coordinate e_j (the log of the lr, in laws that need it), and a function f with a few parameters.
Over a block of steps that lies far behind the observation, f is smooth, and its sum is that of its interpolant: a few
Chebyshev nodes with weights that depend on the schedule only; where e jumps from step to step, these fill its range.
Blocks halve towards the observation; the nearest steps and all blocks of few steps are summed as they are. Nothing is
assumed about the w_j: a jump is one term.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rfsim.checks import whole_number
from rfsim.surrogates.blocks import WIDEST, Level, Nodes, levels_of

_TOGETHER = 2**14  # terms handled together
_LEAF = 8  # steps that are summed as they are
_DISTANT = 1.25  # lengths of a block from which its nodes stand for it
_SWINGS = 5  # stretches of one length with a wide range of e from which points are grouped by e


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

    def totals(self, function: Callable[[np.ndarray, np.ndarray, np.ndarray], Sequence[np.ndarray]]) -> np.ndarray:
        """Sums (k, m) of each of the k arrays that `function` makes of lags, weights and nodes, all per term.

        It is called for the terms of a few observations at a time, so that its arrays stay in the cache.
        """
        result = np.zeros((len(function(self.lag[:0], self.weight[:0], self.node[:0])), self.observations))
        ends = np.append(self.first[1:], len(self.lag))
        start = 0
        while start < len(self.rows):
            begin = self.first[start]
            stop = max(start + 1, int(np.searchsorted(ends, begin + _TOGETHER, side="right")))
            some = slice(begin, ends[stop - 1])
            for one, value in zip(result, function(self.lag[some], self.weight[some], self.node[some]), strict=True):
                one[self.rows[start:stop]] = np.add.reduceat(value, self.first[start:stop] - begin)
            start = stop
        return result

    def total(self, values: np.ndarray) -> np.ndarray:
        """Sum of weight times values, both per term, for each observation (m,)."""
        result = np.zeros(self.observations)
        if len(self.rows):
            result[self.rows] = np.add.reduceat(self.weight * values, self.first)
        return result


def terms(
    at: np.ndarray,
    until: np.ndarray,
    place: np.ndarray,
    weight: np.ndarray,
    extra: np.ndarray | None = None,
    *,
    nodes: int = 8,
    from_zero: bool = False,
    clear: np.ndarray | None = None,
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
    clear : (n,) lag below which a point is a term of its own, default 0.

    Raises
    ------
    InputError : for a number of nodes that is not a whole number from 0 on.
    """
    nodes = whole_number("nodes", nodes, least=0)
    kept = np.flatnonzero(weight != 0.0)
    at, count = np.asarray(at, dtype=np.float64), np.searchsorted(kept, until, side="left")
    points = Nodes(place[kept], np.zeros(len(kept)) if extra is None else extra[kept], weight[kept])
    lags = np.zeros(len(kept)) if clear is None else clear[kept]
    pool, rows, found, used = [points], [], [], len(kept)
    for group in _groups(points.extra):
        some = Nodes(*(part[group] for part in points))
        levels: list[Level] = []
        if nodes and len(group) > _LEAF:
            levels, new = levels_of(some, lags[group], smallest=2 * _LEAF, nodes=nodes, used=used, from_zero=from_zero)
            pool.append(new)
            used += len(new.place)
        row, node = _chosen(levels, at, np.searchsorted(group, count, side="left"), some.place, group)
        rows.append(row)
        found.append(node)
    places, extras, weights = (np.concatenate(part) for part in zip(*pool, strict=True))
    every = np.concatenate(rows)
    order = np.argsort(every, kind="stable")
    row, node = every[order], np.concatenate(found)[order]
    of_rows, first = np.unique(row, return_index=True)
    lag = np.maximum(at[row] - places[node], 0.0)
    return Terms(len(at), of_rows, first, lag, weights[node], node, places, extras)


def _groups(second: np.ndarray) -> list[np.ndarray]:
    """Points that share blocks: all of them, unless e swings further than a block may hold in many places.

    Then those whose e lies in the same interval share blocks.
    """
    high = low = second
    while len(high) > _SWINGS:
        pairs = np.arange(0, len(high), 2)
        high, low = np.maximum.reduceat(high, pairs), np.minimum.reduceat(low, pairs)
        if np.count_nonzero(high - low > 2.0 * WIDEST) >= _SWINGS:
            which = np.floor((second.max() - second) / (1.5 * WIDEST))
            return [np.flatnonzero(which == each) for each in np.unique(which)]
    return [np.arange(len(second))]


def _chosen(
    levels: list[Level], at: np.ndarray, count: np.ndarray, points: np.ndarray, index: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (observation, node), from the largest blocks down; `index` numbers the points."""
    if not levels:
        return np.repeat(np.arange(len(at)), count), index[_ranges(np.zeros(len(at), dtype=np.int64), count)]
    found_row, found_node = [], []
    row, block = (part.ravel() for part in np.indices((len(at), len(levels[-1].first))))
    for depth in range(len(levels) - 1, -1, -1):
        level = levels[depth]
        inside = level.first[block] < count[row]
        row, block = row[inside], block[inside]
        end = points[level.last[block]]
        least = np.maximum(_DISTANT * (end - points[level.first[block]]), level.clear[block])
        far = (level.last[block] < count[row]) & (level.nodes[block] > 0) & (least <= at[row] - end)
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
    found_node.append(index[_ranges(begin, many)])
    return np.concatenate(found_row), np.concatenate(found_node)


def _ranges(begin: np.ndarray, many: np.ndarray) -> np.ndarray:
    """begin_i, begin_i + 1, ... (many_i of them) for each i, one after the other."""
    before = np.cumsum(many) - many
    return np.repeat(begin - before, many) + np.arange(int(many.sum()))
