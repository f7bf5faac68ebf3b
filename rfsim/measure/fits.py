"""Local exponents, and the exponent of a curve over a window."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rfsim.checks import InputError, non_negative_number, whole_number
from rfsim.measure.floor_fit import fit_with_floor
from rfsim.measure.records import (
    LEAST_POINTS,
    ROUNDING,
    TOLERANCE,
    ExponentFit,
    LocalExponents,
    log_excess,
    read_curve,
    read_floor,
    read_window,
)
from rfsim.measure.slopes import (
    end_slopes,
    least_squares_slope,
    local_slopes,
    norm,
    on_records,
    roughness,
    sharp_end_slopes,
    unexplained,
)


def local_exponents(
    time: ArrayLike,
    value: ArrayLike,
    *,
    floor: float = 0.0,
    stderr: ArrayLike | None = None,
    smoothing: float = 0.0,
) -> LocalExponents:
    """Local exponents -d log(value - floor) / d log T on the recorded, possibly uneven, times.

    Each is the slope at T of a parabola in log T through the point and its two neighbours (one-sided at the ends),
    which is second-order accurate on any grid. With `smoothing` > 0 the parabola is fitted to all points within that
    many decades on either side.

    Parameters
    ----------
    time, value: (n,) times >= 0, strictly increasing, and the curve; at least 3 positive times.
    floor: what to subtract from the values.
    stderr: (n,) standard errors of the values, propagated to first order; None: rounding errors only.
    smoothing: half-width in decades.

    Raises
    ------
    InputError: bad arrays, or a value at or below the floor (with the time at which it happens).
    """
    t, y, noise = read_curve(time, value, stderr, least=3)
    level = read_floor(floor)
    half_width = non_negative_number("smoothing", smoothing) * np.log(10.0)
    x, h, s = log_excess(t, y, noise, level)
    exponent, error = local_slopes(x, h, s, half_width, np.arange(len(x)))
    return LocalExponents(t, exponent, error)


def fit_exponent(
    time: ArrayLike,
    value: ArrayLike,
    *,
    window: tuple[float, float] | None = None,
    floor: float | Literal["fit"] = 0.0,
    stderr: ArrayLike | None = None,
    points: int = 200,
) -> ExponentFit:
    """Exponent of a curve over a window, with a floor that is known or fitted.

    **Known floor**: minus the least-squares slope of log(value - floor) on `points` log-uniform times in the window.
    Between records log(value - floor) is a cubic in log T (exact values, second-order slopes), so recording some
    times more densely does not change the weight of any decade.

    **floor="fit"**: least squares of floor + A T^-q with floor >= 0, A >= 0 and .01 <= q <= 20. For each q the other
    two are a linear problem (variable projection). Weights are 1/stderr^2, or, without `stderr`, those of one common
    relative error and a log-uniform density of points.

    Uncertainties are one standard error (68 %); double them for 95 %.

    * `statistical`: known floor: propagated `stderr`, else the roughness of the curve from one record to the next.
      Fitted floor: the longer side of the interval in which the profiled chi-square stays within 1 of its minimum
      (scaled by the residuals without `stderr` or where they exceed it).
    * `systematic`: how far the exponent moves inside the window. Known floor: the larger of the difference between
      the two log-halves and, where it stands out of the noise (by 3 standard errors for a quartic, 5 for three
      points), the deviation of the local exponent at either end. Fitted floor: the deviation of either log-half,
      fitted with its own floor. Only the part that noise does not explain is kept, d^2 -> max(0, d^2 - noise^2).
    * `uncertainty`: both in quadrature. On a pure power it covers the exponent at least as often as stated; on a
      slowly varying law it covers the local exponents inside the window as far as noise lets them be seen. No window
      tells how far off the limit T -> infinity is.

    Parameters
    ----------
    time, value, stderr: (n,) as in `local_exponents`; at least 5 records in the window, with a fitted floor 5 in
        each log-half.
    window: (T1, T2) within the recorded times; None: all positive ones. `power_window` finds one by rule.
    floor: a number, or "fit".
    points: log-uniform times of the known-floor fit, at least 10.

    Returns
    -------
    ExponentFit: `amplitude` is A; `reason` is empty, or says why the number needs care (an exponent that drifts, a
    floor that the data do not determine, values lost in noise).

    Raises
    ------
    InputError: bad arrays, a window outside the records or with too few of them, a value at or below a known floor
    in the window (with its time), no decay to fit a floor to.
    """
    t, y, noise = read_curve(time, value, stderr, least=LEAST_POINTS)
    count = whole_number("points", points, least=10)
    t1, t2 = read_window(window, t)
    inside = (t >= t1 * (1 - 1e-12)) & (t <= t2 * (1 + 1e-12))
    if inside.sum() < LEAST_POINTS:
        raise InputError(
            f"window [{t1:g}, {t2:g}] holds {inside.sum()} recorded times, at least {LEAST_POINTS} are needed; "
            f"widen it or record more steps"
        )
    if isinstance(floor, str):
        if floor != "fit":
            raise InputError(f'floor must be a number or "fit", got {floor!r}; pass one of these')
        return fit_with_floor(t[inside], y[inside], None if noise is None else noise[inside], (t1, t2))
    level = read_floor(floor)
    first, last = np.flatnonzero(inside)[[0, -1]]
    first -= int(t[first] > t1 * (1 + 1e-12))  # the records around a window that ends between two of them
    last += int(t[last] < t2 * (1 - 1e-12))
    part = slice(first, last + 1)
    x, h, s = log_excess(t[part], y[part], None if noise is None else noise[part], level)
    if noise is None:
        s = np.hypot(s, roughness(x, h))

    grid = np.linspace(np.log(t1), np.log(t2), count)
    everywhere = np.arange(count)
    slope, early, late = (
        on_records(x, grid, least_squares_slope(grid, chosen))
        for chosen in (everywhere, *np.array_split(everywhere, 2))
    )
    drift = late - early
    statistical = float(np.hypot(norm(slope * s), ROUNDING * np.abs(slope) @ np.abs(h)))
    parts = [unexplained(float(drift @ h), norm(drift * s))]
    for weights, errors in ((end_slopes(grid), 3.0), (sharp_end_slopes(grid), 5.0)):
        ends = [on_records(x, grid, end) - slope for end in weights]
        parts += [unexplained(float(end @ h), errors * norm(end * s)) for end in ends]
    systematic = max(parts)
    reasons = []
    if systematic > TOLERANCE:
        reasons.append(
            f"not one power: the log-halves of the window give {-early @ h:.3g} and {-late @ h:.3g}, its ends may "
            f"differ more; use power_window, another floor or floor='fit'"
        )
    if s.max() > 1 / 3:
        where = np.exp(x[np.argmax(s)])
        reasons.append(f"value - floor is within 3 standard errors of 0 at T = {where:.6g}: its logarithm is biased")
    mean_h = float(on_records(x, grid, np.full(count, 1.0 / count)) @ h)
    q = float(-slope @ h)
    return ExponentFit(
        exponent=q,
        uncertainty=float(np.hypot(statistical, systematic)),
        statistical=statistical,
        systematic=systematic,
        window=(t1, t2),
        floor=level,
        floor_uncertainty=0.0,
        amplitude=float(np.exp(mean_h + q * grid.mean())),
        points=int(inside.sum()),
        reason="; ".join(reasons),
    )
