"""Records of measured exponents, and the reading of a curve: validated, float64, without time 0, in logarithms."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfsim.checks import FloatArray, InputError, finite_number, finite_vector

ROUNDING = 4.0 * float(np.finfo(np.float64).eps)  # relative error that every value is taken to carry
TOLERANCE = 0.05  # how far local exponents of one power may lie from their common value
LEAST_POINTS = 5  # records that a fit needs


class LocalExponents(NamedTuple):
    """Local exponents at the positive recorded times; all arrays (n,)."""

    time: FloatArray
    exponent: FloatArray
    stderr: FloatArray


class ExponentFit(NamedTuple):
    """A fitted exponent; `fit_exponent` says what each field means. `points` counts recorded points in the window."""

    exponent: float
    uncertainty: float
    statistical: float
    systematic: float
    window: tuple[float, float]
    floor: float
    floor_uncertainty: float
    amplitude: float
    points: int
    reason: str


def read_curve(
    time: ArrayLike, value: ArrayLike, stderr: ArrayLike | None, *, least: int
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Validated float64 copies with time 0 dropped."""
    t = finite_vector("time", time, least=0.0)
    y = finite_vector("value", value)
    noise = None if stderr is None else finite_vector("stderr", stderr, least=0.0)
    for name, array in (("value", y), ("stderr", noise)):
        if array is not None and len(array) != len(t):
            raise InputError(f"{name} has {len(array)} entries and time {len(t)}; make them equally long")
    falls = np.flatnonzero(np.diff(t) <= 0)
    if falls.size:
        at = int(falls[0])
        raise InputError(f"time must increase strictly, got {t[at]:g} before {t[at + 1]:g} at position {at}; sort it")
    keep = t > 0
    if keep.sum() < least:
        raise InputError(f"time has {keep.sum()} positive entries, at least {least} are needed; record more steps")
    return t[keep], y[keep], None if noise is None else noise[keep]


def read_window(window: tuple[float, float] | None, t: FloatArray) -> tuple[float, float]:
    if window is None:
        return float(t[0]), float(t[-1])
    try:
        t1, t2 = (finite_number("window", end) for end in window)
    except (TypeError, ValueError) as error:
        raise InputError(f"window must be two finite times (T1, T2), got {window!r}; pass such a pair") from error
    if not 0 < t1 < t2:
        raise InputError(f"window must have 0 < T1 < T2, got [{t1:g}, {t2:g}]; swap or correct the ends")
    if t1 < t[0] * (1 - 1e-9) or t2 > t[-1] * (1 + 1e-9):
        raise InputError(
            f"window [{t1:g}, {t2:g}] reaches beyond the recorded times [{t[0]:g}, {t[-1]:g}]; shrink it or record more"
        )
    return max(t1, float(t[0])), min(t2, float(t[-1]))


def read_floor(floor: object) -> float:
    return finite_number("floor", np.asarray(floor))


def log_excess(
    t: FloatArray, y: FloatArray, noise: FloatArray | None, floor: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """log T, log(value - floor) and the standard error of the latter."""
    excess = y - floor
    bad = np.flatnonzero(excess <= 0)
    if bad.size:
        at = int(bad[0])
        raise InputError(
            f"value {y[at]:.17g} at T = {t[at]:.6g} does not exceed floor {floor:.17g} "
            f"({bad.size} of {len(t)} points); lower floor, end the window before that time, "
            f"or use floor='fit' in fit_exponent"
        )
    rounding = ROUNDING * np.maximum(np.abs(y), abs(floor))
    return np.log(t), np.log(excess), (rounding if noise is None else np.hypot(noise, rounding)) / excess
