"""Memory integrals over many cells from few terms per observation: the cells nearby exactly, the others in blocks.

The injection of a schedule without structure needs as many cells as there are steps. Those whose lag is several times
their length enter through Gauss's two points, which is exact to the fourth power of length over lag, and those far
behind share the Chebyshev nodes of `rfsim.surrogates.sums`. The few cells nearby are integrated in closed form.
"""

from typing import NamedTuple

import numpy as np

from rfsim.surrogates.kernel import _SHORT, Integrals, antiderivatives
from rfsim.surrogates.sums import Terms, terms

_CLEAR = 16.0  # lengths of a cell from which its two points stand for it
_STRETCH = 2.5  # exponents of the source are larger than those for which `terms` divides the range of its log


class Near(NamedTuple):
    """Pairs (observation, cell) that are integrated exactly, those of one observation together.

    rows : observations that have pairs. first : the first pair of each of these.
    cell : per pair, index into `width` and the columns of `rate` and `log_source`.
    begin, end : per pair, index into `lag`, of the two ends of the cell; the end of a cell that is not over has lag 0.
    lag : (l,). width : (n,) of the cells. rate, log_source : (2, n), at Gauss's points.
    """

    rows: np.ndarray
    first: np.ndarray
    cell: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    lag: np.ndarray
    width: np.ndarray
    rate: np.ndarray
    log_source: np.ndarray


class ManyCells(NamedTuple):
    """The injection of a run, seen from its observations: far terms, log (tau + T) (k,) at their nodes, near cells."""

    far: Terms
    log_source: np.ndarray
    near: Near


def many_cells(
    at: np.ndarray, edges: np.ndarray, rate: np.ndarray, log_source: np.ndarray, *, start: float | None
) -> ManyCells:
    """Prepare int_0^S (tau + T(u))^(-b) g(u) (1 + c (S - u))^(-q) du for all b, c and q at once (theory, section 7.1).

    Parameters
    ----------
    at : (m,) memory clock S of the observations.
    edges : (n+1,) memory clock of the edges of n cells, increasing from 0, the last one not before any observation.
    rate, log_source : (2, n) injection rate g and log (tau + forcing clock T) at Gauss's two points of each cell.
    start : tau, if T is the memory clock itself, else None.
    """
    width = np.diff(edges)
    kept = np.flatnonzero((rate * width > 0.0).all(axis=0))
    begin, stop, width, rate, log_source = edges[kept], edges[kept + 1], width[kept], rate[:, kept], log_source[:, kept]
    middle, half = 0.5 * (begin + stop), 0.5 * 3.0**-0.5 * width
    points = np.stack([middle - half, middle + half], axis=1).ravel()
    over = np.searchsorted(stop, at, side="right")
    shift = start or 0.0
    every = terms(
        at + shift,
        2 * over,
        points + shift,
        (0.5 * rate * width).T.ravel(),
        None if start else _STRETCH * log_source.T.ravel(),
        from_zero=start is not None,
        clear=np.repeat(_CLEAR * width, 2),
    )
    row = np.repeat(every.rows, np.diff(np.append(every.first, len(every.node))))
    # a cell nearby has both its points among the terms
    cell = np.minimum(every.node // 2, len(kept) - 1)
    close = (every.node < len(points)) & (at[row] - stop[cell] < _CLEAR * width[cell])
    far_row, far_first = np.unique(row[~close], return_index=True)
    far = every._replace(
        rows=far_row,
        first=far_first,
        lag=every.lag[~close],
        weight=every.weight[~close],
        node=every.node[~close],
    )
    whole = close & (every.node % 2 == 0)
    inside = np.flatnonzero(begin[np.minimum(over, len(kept) - 1)] < at) if len(kept) else np.zeros(0, dtype=np.int64)
    inside = inside[over[inside] < len(kept)]  # observations within a cell
    near = _near(
        np.concatenate([row[whole], inside]),
        np.concatenate([cell[whole], over[inside]]),
        at,
        begin,
        stop,
        rate,
        log_source,
    )
    return ManyCells(far, np.log(far.place) if start else far.extra / _STRETCH, near)


def _near(
    row: np.ndarray,
    cell: np.ndarray,
    at: np.ndarray,
    start: np.ndarray,
    stop: np.ndarray,
    rate: np.ndarray,
    log_source: np.ndarray,
) -> Near:
    """Pairs (observation, cell) in order, with each lag and each cell once."""
    order = np.argsort(row, kind="stable")
    row, cell = row[order], cell[order]
    rows, first = np.unique(row, return_index=True)
    used, which = np.unique(cell, return_inverse=True)
    lags = np.stack([at[row] - start[cell], np.maximum(at[row] - stop[cell], 0.0)], axis=1)
    shared = np.ones(lags.shape, dtype=bool)  # the begin of a cell is often the end of the one before
    shared[1:, 0] = (row[1:] != row[:-1]) | (start[cell[1:]] != stop[cell[:-1]])
    place = np.cumsum(shared.ravel()).reshape(lags.shape) - 1
    place[1:, 0] = np.where(shared[1:, 0], place[1:, 0], place[:-1, 1])
    width = (stop - start)[used]
    return Near(rows, first, which, place[:, 0], place[:, 1], lags[shared], width, rate[:, used], log_source[:, used])


def integrals(cells: ManyCells, b: float, c: float, q: float, *, gradient: bool = True) -> Integrals:
    """Memory integrals with the sources 1, (tau + T)^(-b) and (if asked for) the derivative of the latter in b.

    They equal those of `rfsim.surrogates.kernel.memory_integrals` over the lines through Gauss's points of all cells,
    to about 1e-7 of their sizes for b up to 2 and 1e-3 at b = 8. The derivatives in q and log c are (m, 2), those of
    the first two sources.
    """
    far, near = cells.far, cells.near
    follows = np.exp(-b * cells.log_source)
    slope = -cells.log_source * follows

    def kernels(lag: np.ndarray, weight: np.ndarray, node: np.ndarray) -> list[np.ndarray]:
        scaled = c * lag
        log = np.log1p(scaled)
        kernel = weight * np.exp(-q * log)
        source = follows[node]
        found = [kernel, kernel * source]
        if gradient:
            by_q, by_c = kernel * log, kernel * (scaled / (1.0 + scaled))
            found += [kernel * slope[node], by_q, by_q * source, by_c, by_c * source]
        return found

    sums = far.totals(kernels).T
    value, by_q, by_c = (sums[:, :3], -sums[:, 3:5], -q * sums[:, 5:]) if gradient else (sums, None, None)
    if not len(near.rows):
        return Integrals(value, by_q, by_c)
    parts = _antiderivatives(near.lag, c, q, gradient)
    source = np.exp(-b * near.log_source)
    lines = [_line(near, one) for one in (1.0, source, -near.log_source * source)[: value.shape[1]]]
    _add(value, near, parts[0], parts[1], lines)
    if by_q is not None and by_c is not None:
        _add(by_q, near, parts[2], parts[3], lines)
        _add(by_c, near, parts[4], parts[5], lines)
    return Integrals(value, by_q, by_c)


def _antiderivatives(lag: np.ndarray, c: float, q: float, gradient: bool) -> np.ndarray:
    """K1, K2 and their derivatives at lags (l,), the short ones from their series."""
    found = np.empty((6 if gradient else 2, len(lag)))
    short = c * (1.0 + q) * lag < _SHORT
    for some in (short, ~short):
        if some.any():
            found[:, some] = antiderivatives(lag[some], c, q, gradient=gradient)
    return found


def _line(near: Near, source: np.ndarray | float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values at the begin and end, and slope, per pair, of the line through Gauss's points of rate times source."""
    product = near.rate * source
    middle = 0.5 * (product[0] + product[1])
    half = 0.5 * 3.0**0.5 * (product[1] - product[0])
    return (middle - half)[near.cell], (middle + half)[near.cell], (2.0 * half / near.width)[near.cell]


def _add(
    total: np.ndarray,
    near: Near,
    once: np.ndarray,
    twice: np.ndarray,
    lines: list[tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> None:
    """Add to (m, k) the integrals of the first k lines over the cells nearby: by parts, from K1 and K2 at both ends."""
    at_begin, at_end = once[near.begin], once[near.end]
    bent = twice[near.begin] - twice[near.end]
    for column, (left, right, slope) in zip(total.T, lines, strict=False):
        column[near.rows] += np.add.reduceat(left * at_begin - right * at_end + slope * bent, near.first)
