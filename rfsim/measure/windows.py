"""Windows by rule: the longest stretch over which a curve is one power."""

import numpy as np
from numpy.typing import ArrayLike

from rfsim.checks import FloatArray, InputError, finite_number, non_negative_number, positive_number
from rfsim.measure.agreement import family_threshold
from rfsim.measure.records import LEAST_POINTS, TOLERANCE, log_excess, read_curve, read_floor
from rfsim.measure.slopes import IndexArray, local_slopes, roughness

_HALF_DECADE = 0.5  # the shortest stretch, in decades


def power_window(
    time: ArrayLike,
    value: ArrayLike,
    *,
    floor: float = 0.0,
    stderr: ArrayLike | None = None,
    start: float | None = None,
    stop: float | None = None,
    tolerance: float = TOLERANCE,
    smoothing: float = 0.25,
) -> tuple[float, float]:
    """The longest window, in log T, over which the curve is one power within `tolerance`.

    Rule. A stretch of records qualifies if (i) some exponent is within `tolerance` of every local exponent in it
    (parabolas over `smoothing` decades either side, see `local_exponents`) and (ii) the fits on its two log-halves
    differ by at most `tolerance`. Both allow for noise: (i) by the family-wise 5 % threshold, (ii) by two standard
    errors; (ii) sees slow drifts that hide in the noise of (i). The noise is `stderr` or, without it, the roughness
    of the curve. Values at or below the floor end a stretch. Among equally long stretches the latest wins. At most
    400 log-uniform records are considered as ends.

    For a log-periodic curve (a geometric spectrum) local exponents oscillate: set `smoothing` to a period or more to
    find the power under the oscillation, or expect none to be found.

    Parameters
    ----------
    time, value, floor, stderr: as in `local_exponents`.
    start, stop: search only within these times.
    tolerance: largest deviation of a local exponent, > 0.
    smoothing: half-width in decades.

    Returns
    -------
    (T1, T2): recorded times.

    Raises
    ------
    InputError: bad arrays, or no qualifying stretch of half a decade with 5 records.
    """
    t, y, noise = read_curve(time, value, stderr, least=LEAST_POINTS)
    level = read_floor(floor)
    band = positive_number("tolerance", tolerance)
    half_width = non_negative_number("smoothing", smoothing) * np.log(10.0)
    lower = t[0] if start is None else finite_number("start", start)
    upper = t[-1] if stop is None else finite_number("stop", stop)
    if not lower < upper:
        raise InputError(f"start {lower:g} must lie before stop {upper:g}; widen the range")
    usable = (t >= lower) & (t <= upper) & (y > level)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], usable.astype(np.int8), [0]])))
    best: tuple[float, float, float] | None = None
    for first, end in edges.reshape(-1, 2):
        if end - first < LEAST_POINTS:
            continue
        run = slice(first, end)
        x, h, s = log_excess(t[run], y[run], None if noise is None else noise[run], level)
        if noise is None:
            s = np.hypot(s, roughness(x, h))
        found = _longest_power(x, h, s, band, half_width)
        if found is not None and (best is None or found[0] >= best[0]):
            best = (found[0], float(t[run][found[1]]), float(t[run][found[2]]))
    if best is None:
        raise InputError(
            f"value has no stretch of half a decade in [{lower:g}, {upper:g}] in which its exponent is constant within "
            f"tolerance {band:g}; raise tolerance or smoothing, check the floor, or record a longer curve"
        )
    return best[1], best[2]


def _longest_power(
    x: FloatArray, h: FloatArray, s: FloatArray, tolerance: float, half_width: float
) -> tuple[float, int, int] | None:
    """(length, first, last) of the longest stretch that satisfies the rule of `power_window`, or None."""
    at = np.unique(np.clip(np.searchsorted(x, np.linspace(x[0], x[-1], 400)), 0, len(x) - 1))
    if len(x) <= 400:
        at = np.arange(len(x))
    exponent, error = local_slopes(x, h, s, half_width, at)
    allowed = tolerance + family_threshold(len(at), 0.05) * error
    firsts, lasts = [], []
    for i in range(len(at)):
        common = np.maximum.accumulate((exponent - allowed)[i:]) <= np.minimum.accumulate((exponent + allowed)[i:])
        stop = i + (len(common) if common.all() else int(np.argmin(common)))
        long = np.arange(i, stop)[x[at[i:stop]] - x[at[i]] >= _HALF_DECADE * np.log(10.0) * (1 - 1e-12)]
        firsts.append(np.full(len(long), i))
        lasts.append(long)
    first, last = at[np.concatenate(firsts)], at[np.concatenate(lasts)]
    enough = last - first >= LEAST_POINTS - 1
    first, last = first[enough], last[enough]
    middle = np.searchsorted(x, (x[first] + x[last]) / 2)
    left, left_error = _stretch_slopes(x, h, s, first, middle)
    right, right_error = _stretch_slopes(x, h, s, middle, last + 1)
    steady = np.abs(right - left) <= tolerance + 2 * np.hypot(left_error, right_error)
    if not steady.any():
        return None
    first, last = first[steady], last[steady]
    length = x[last] - x[first]
    winner = int(np.flatnonzero(length >= length.max() * (1 - 1e-12))[-1])
    return float(length[winner]), int(first[winner]), int(last[winner])


def _stretch_slopes(
    x: FloatArray, h: FloatArray, s: FloatArray, first: IndexArray, end: IndexArray
) -> tuple[FloatArray, FloatArray]:
    """Least-squares slopes of records first..end-1, weighted by their spacing, and their standard errors."""
    x = x - x.mean()
    w = np.gradient(x)
    terms = np.stack([w, w * x, w * x * x, w * h, w * x * h, (w * s) ** 2, (w * s) ** 2 * x, (w * s * x) ** 2])
    sums = np.concatenate([np.zeros((8, 1)), np.cumsum(terms, axis=1)], axis=1)
    n, nx, nxx, nh, nxh, v, vx, vxx = sums[:, end] - sums[:, first]
    centre = nx / n
    spread = nxx - centre * nx
    slope_noise = np.maximum(vxx - 2 * centre * vx + centre * centre * v, 0.0)
    lonely = end - first < 2  # one record has no slope: it neither agrees nor disagrees
    spread = np.where(lonely, 1.0, spread)
    slope = np.where(lonely, 0.0, (nxh - centre * nh) / spread)
    return slope, np.where(lonely, np.inf, np.sqrt(slope_noise) / spread)
