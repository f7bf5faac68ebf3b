"""The fine rule to few nodes: wide windows, each with the rule of least order that is accurate enough.

Polynomials are taken in y = tanh((z - c)/4), z = log(l / (1.01 - l)), c the middle of the window. All integrands are
bounded in the strip |Im z| < pi/2 and nothing more is common to them; tanh(z/2) would make it a disc, z itself leaves
it a strip, and on windows of e^7 the map between the two needs fewest nodes: about half of what polynomials in l need.
"""

from typing import NamedTuple

import numpy as np

from rfsim.compress.gauss import lanczos, rule
from rfsim.compress.integrands import Modes, Rows, allowed, comparison, from_place, join, place

_WIDTHS = (7.5, 8.5)  # most width of a window in z; both are tried
_ORDER, _PATIENCE = 56, 6  # most nodes of a window, and nodes more that are tried where a weight is negative
_BEND = 4.0  # y = tanh(z / 4)
_SPACING = 0.2  # of the times at which errors are compared, in log T; errors oscillate about three times as slowly
_GOOD = (4.0, 5.0)  # a rule of at most 4 nodes per unit of z and 5 more is not worth halving


class _Job(NamedTuple):
    """What a window is judged by: fine rule, integrands and their values there (rows, n), errors allowed (2, rows)."""

    fine: Modes
    rows: Rows
    values: np.ndarray
    allowed: np.ndarray


class _Window(NamedTuple):
    """One window: its nodes, the integrands that are felt there, their integrals and errors allowed (2, rows)."""

    modes: Modes
    rows: Rows
    exact: np.ndarray
    allowed: np.ndarray

    def alone(self, measure: int) -> "_Window":
        """The window with one of its two measures only."""
        parts = [part if k == measure else np.zeros(part.size) for k, part in enumerate(self.modes[1:])]
        return self._replace(modes=Modes(self.modes.lam, *parts), exact=self.exact * (np.arange(2) == measure)[:, None])


def few_nodes(fine: Modes, until: np.ndarray, tolerance: float, *, late: bool) -> Modes:
    """Rules of all windows together; the error of each window is at most `tolerance` of the whole integral."""
    rows = comparison(until, _SPACING, late=late)
    values = rows.of(fine.lam)
    exact = np.stack([fine.forcing, fine.kernel]) @ values.T
    job = _Job(fine, rows, values, tolerance * allowed(rows, exact, until))
    found = [_cut(job, width) for width in _WIDTHS]
    return min(found, key=lambda few: few.lam.size)


def _cut(job: _Job, widest: float) -> Modes:
    """Rules of windows of equal width, at most `widest`; the largest mode, which decides about stability, stays."""
    z = place(job.fine.lam)
    last = z.size - 1
    width = z[-1] - z[0]
    width = width / max(1.0, np.ceil(width / widest)) * (1.0 + 1e-9)
    parts, start = [job.fine.take(slice(last, None))], 0
    while start < last:
        stop = min(int(np.searchsorted(z, z[start] + width, side="right")), last)
        parts.append(_best(job, start, stop))
        start = stop
    return join(parts)


def _best(job: _Job, start: int, stop: int, *, content: bool = False) -> Modes:
    """Fewest nodes found for one window: one rule, one rule per measure, those of its two halves, or its own nodes.

    A window without a rule is halved; one whose rule is long is halved once to see, its halves are content.
    """
    window = job.fine.take(slice(start, stop))
    z = place(window.lam)
    found = _one_or_two_rules(job, start, stop)
    middle = start + int(np.searchsorted(z, (z[0] + z[-1]) / 2.0))
    long = found is None or (not content and found.lam.size > _GOOD[0] * (z[-1] - z[0]) + _GOOD[1])
    if long and start < middle < stop:
        content = found is not None
        halves = join([_best(job, start, middle, content=content), _best(job, middle, stop, content=content)])
        found = halves if found is None or halves.lam.size < found.lam.size else found
    return window if found is None or found.lam.size >= window.lam.size else found


def _one_or_two_rules(job: _Job, start: int, stop: int) -> Modes | None:
    modes = job.fine.take(slice(start, stop))
    keep = job.rows.felt(modes.lam[0], modes.lam[-1])
    exact = np.stack([modes.forcing, modes.kernel]) @ job.values[keep, start:stop].T
    window = _Window(modes, job.rows.take(keep), exact, job.allowed[:, keep])
    found = _least_order(window)
    if found is not None or not (modes.forcing.any() and modes.kernel.any()):
        return found
    forcing = _least_order(window.alone(0))
    kernel = None if forcing is None else _least_order(window.alone(1))
    return None if forcing is None or kernel is None else join([forcing, kernel])


def _least_order(window: _Window) -> Modes | None:
    """Rule of least order that meets the tolerance with no negative weight, or None."""
    modes = window.modes
    most = min(_ORDER, modes.lam.size - 1)
    if most < 1:
        return None
    z = place(modes.lam)
    middle = (z[0] + z[-1]) / 2.0
    jacobi = lanczos(np.tanh((z - middle) / _BEND), modes, np.array([modes.lam.size]), most)

    def accurate(count: int) -> Modes | None:
        nodes, forcing, kernel = (array[0] for array in rule(jacobi, count))
        found = Modes(from_place(middle + _BEND * np.arctanh(nodes.clip(-0.999, 0.999))), forcing, kernel)
        error = np.abs(np.stack([forcing, kernel]) @ window.rows.of(found.lam).T - window.exact)
        return found if (error <= window.allowed).all() else None

    low, high = 0, most  # errors fall with the order: halve the interval to the first that is small enough
    if accurate(high) is None:
        return None
    while high - low > 1:
        middle_order = (low + high) // 2
        low, high = (low, middle_order) if accurate(middle_order) is not None else (middle_order, high)
    for count in range(high, min(high + _PATIENCE, most) + 1):
        found = accurate(count)
        if found is not None and found.forcing.min() >= 0.0 and found.kernel.min() >= 0.0:
            return found
    return None
