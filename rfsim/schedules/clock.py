"""The clock of a schedule, and the steps at which a curve is recorded."""

import math

import numpy as np

from rfsim.checks import InputError, whole_number
from rfsim.precision import require_float64
from rfsim.schedules.record import Array

_CLOCK_BLOCK = 16384  # steps summed at a time


def intrinsic_time(lr: Array, at: np.ndarray | None = None) -> np.ndarray:
    """Intrinsic times T_t = sum of lr over the steps before t, from lr (N,), at increasing steps `at` (default 0..N).

    The rounding error of every partial sum is recovered exactly and added back, so that 10^6 steps keep 15 digits.
    Memory beyond the result does not grow with N.
    """
    rates = np.asarray(lr, dtype=np.float64)
    steps = np.arange(len(rates) + 1) if at is None else at
    times = np.zeros(len(steps))
    whole = rest = 0.0
    for start in range(0, len(rates), _CLOCK_BLOCK):
        part = rates[start : start + _CLOCK_BLOCK]
        total = np.cumsum(np.concatenate([[whole], part]))
        before, after = total[:-1], total[1:]
        added = after - before
        lost = rest + np.cumsum((before - (after - added)) + (part - added))
        first, last = np.searchsorted(steps, [start + 1, start + len(part) + 1])
        inside = steps[first:last] - start - 1
        times[first:last] = after[inside] + lost[inside]
        whole, rest = after[-1], lost[-1]
    return times


def log_spaced_steps(last: int, count: int = 200) -> np.ndarray:
    """About `count` recorded steps, log-spaced from 1 to `last`, always with 0 and `last`; strictly increasing ints."""
    last = whole_number("last", last, least=0)
    count = whole_number("count", count, least=2)
    if last <= count:
        return np.arange(last + 1)

    def spaced(points: int) -> np.ndarray:
        exact = np.exp(np.linspace(0.0, math.log(last), points))
        return np.unique(np.concatenate([[0], np.rint(exact).astype(np.int64), [last]]))

    # early points share a step, so more points than steps are needed; spaced(p) grows with p up to its rounding
    low, high = count - 1, 64 * count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if spaced(middle).size <= count else (low, middle)
    return spaced(low)


def recorded_steps(at: object, last: int) -> np.ndarray:
    """Return the recorded steps (k,) as strictly increasing ints in 0..last, or raise InputError."""
    require_float64()
    if at is None:
        return log_spaced_steps(last)
    given = np.atleast_1d(np.asarray(at))
    whole = given.ndim == 1 and given.size > 0 and given.dtype.kind in "iuf"
    if not whole or not (np.isfinite(given) & (given == np.floor(given))).all():
        raise InputError(f"at must list whole steps, got {at!r}; give for example at=[0, 10, 100]")
    if given.min() < 0 or given.max() > last:
        wrong = given.min() if given.min() < 0 else given.max()
        raise InputError(f"at asks for step {wrong:.17g} but the schedule allows 0..{last}; lengthen it or ask within")
    steps = given.astype(np.int64)
    if (np.diff(steps) <= 0).any():
        raise InputError("at must be strictly increasing; sort the steps and drop repeats")
    return steps
