"""Power plus a fitted floor: floor + A T^-q by variable projection, with profiled intervals."""

from typing import NamedTuple

import numpy as np
from scipy import optimize

from rfsim.checks import FloatArray, InputError
from rfsim.measure.records import LEAST_POINTS, ROUNDING, TOLERANCE, ExponentFit
from rfsim.measure.slopes import norm, unexplained

_SLOWEST, _STEEPEST = 0.01, 20.0
_SEARCHED = np.geomspace(_SLOWEST, _STEEPEST, 100)  # exponents that are searched


class _FloorFit(NamedTuple):
    q: float
    q_error: float
    floor: float
    floor_error: float
    scaled_amplitude: float  # A in units of the geometric mean time
    bounded: bool  # the interval for q ends inside the searched range
    decays: bool  # a constant is worse by more than 9 units of chi-square (3 standard errors)


def fit_with_floor(t: FloatArray, y: FloatArray, noise: FloatArray | None, window: tuple[float, float]) -> ExponentFit:
    if noise is None and np.any(y <= 0):
        at = int(np.argmax(y <= 0))
        raise InputError(
            f"value {y[at]:g} at T = {t[at]:.6g} must be positive for floor='fit' without stderr; end the window before"
        )
    x = np.log(t)
    late = x >= np.log(window).mean()
    if min(late.sum(), (~late).sum()) < LEAST_POINTS:
        raise InputError(
            f"window [{window[0]:g}, {window[1]:g}] holds {(~late).sum()} and {late.sum()} recorded times in its two "
            f"log-halves, floor='fit' needs {LEAST_POINTS} in each; widen it or record more steps"
        )
    whole = _project(x, y, noise)
    if not whole.decays or whole.q <= _SLOWEST * 1.001:
        raise InputError(
            f"value does not decay beyond its noise in the window [{window[0]:g}, {window[1]:g}], no floor can be "
            f"fitted there; move the window or pass a number as floor"
        )
    systematic = 0.0
    reasons = []
    halves = [_project(x[part], y[part], None if noise is None else noise[part]) for part in (~late, late)]
    resolved = [half for half in halves if half.bounded]
    for half in resolved:
        systematic = max(systematic, unexplained(half.q - whole.q, half.q_error))
    if len(resolved) < 2:
        reasons.append("a log-half of the window does not determine the exponent: systematic is incomplete")
    if whole.floor <= 2 * whole.floor_error:
        reasons.append("the floor is not identified: 0 is compatible with the curve; a longer curve is needed")
    if not whole.bounded:
        reasons.append("the exponent is not identified: its interval reaches the end of the searched range")
    if systematic > TOLERANCE:
        reasons.append(
            "not one power and a floor: the two log-halves give "
            + " and ".join(f"{half.q:.3g} +- {half.q_error:.2g}" for half in halves)
        )
    return ExponentFit(
        exponent=whole.q,
        uncertainty=float(np.hypot(whole.q_error, systematic)),
        statistical=whole.q_error,
        systematic=systematic,
        window=window,
        floor=whole.floor,
        floor_uncertainty=whole.floor_error,
        amplitude=float(whole.scaled_amplitude * np.exp(whole.q * x.mean())),
        points=len(t),
        reason="; ".join(reasons),
    )


class _Profile:
    """Misfit of level + A e^{-q u}, u = x - mean x, with level >= 0 and A >= 0 solved for at each q."""

    def __init__(self, x: FloatArray, y: FloatArray, s: FloatArray) -> None:
        self.u = x - x.mean()
        self.s = s
        self.ones, self.data = 1 / s, y / s

    def power(self, q: float) -> FloatArray:
        return np.exp(-q * self.u) / self.s

    def solve(self, q: float) -> tuple[FloatArray, float, float]:
        """Residual in standard errors, level, A."""
        power = self.power(q)
        length = norm(self.ones)
        unit = self.ones / length
        rest = power - (unit @ power) * unit
        amplitude = float(rest @ self.data) / max(float(rest @ rest), np.finfo(np.float64).tiny)
        level = float(unit @ (self.data - amplitude * power)) / length
        if level < 0:
            level, amplitude = 0.0, float(power @ self.data) / float(power @ power)
        if amplitude < 0:
            level, amplitude = max(0.0, float(unit @ self.data) / length), 0.0
        return self.data - level * self.ones - amplitude * power, level, amplitude

    def misfit(self, q: float) -> float:
        residual = self.solve(q)[0]
        return float(residual @ residual)

    def constant_misfit(self) -> float:
        unit = self.ones / norm(self.ones)
        return norm(self.data - (unit @ self.data) * unit) ** 2

    def minimise(self) -> float:
        """The best q: scan, bounded minimisation, then Gauss-Newton steps beyond the square root of rounding."""
        values = np.array([self.misfit(float(q)) for q in _SEARCHED])
        k = int(np.argmin(values))
        low, high = float(_SEARCHED[max(k - 1, 0)]), float(_SEARCHED[min(k + 1, len(_SEARCHED) - 1)])
        found = optimize.minimize_scalar(self.misfit, bounds=(low, high), method="bounded", options={"xatol": 1e-10})
        q = float(found.x)
        for _ in range(6):
            residual, level, amplitude = self.solve(q)
            power = self.power(q)
            columns = np.stack([power, -amplitude * self.u * power] + ([self.ones] if level > 0 else []), axis=1)
            step = q + float(np.linalg.lstsq(columns, residual)[0][1])
            if not low <= step <= high or not self.misfit(step) < self.misfit(q):
                break
            q = step
        return q

    def sides(self, q: float, rise: float) -> list[float]:
        """Distances from q, down and up, at which the misfit has risen by `rise`; a side without one is left out."""
        limit = self.misfit(q) + rise
        distances = []
        above = int(np.searchsorted(_SEARCHED, q, side="right"))
        for trials in (_SEARCHED[:above][::-1], _SEARCHED[above:]):
            inner = q
            for trial in map(float, trials):
                if self.misfit(trial) > limit:
                    edge = optimize.brentq(lambda trial: self.misfit(trial) - limit, inner, trial, xtol=1e-15)
                    distances.append(abs(float(edge) - q))
                    break
                inner = trial
        return distances


def _project(x: FloatArray, y: FloatArray, noise: FloatArray | None) -> _FloorFit:
    """Least squares of floor + A e^{-q (x - mean x)} with its errors."""
    if noise is None:
        density = np.gradient(x)
        s = y / np.sqrt(density / density.mean())
    else:
        s = np.hypot(noise, ROUNDING * np.maximum(np.abs(y), 1e-3 * np.abs(y).max()))
        if not np.all(s > 0):
            raise InputError("value is 0 everywhere in the window: no exponent can be measured; pass a curve")
    profile = _Profile(x, y, s)
    q = profile.minimise()
    residual, level, amplitude = profile.solve(q)
    chi_square, freedom = float(residual @ residual), len(x) - 3
    if noise is None:
        scale = max(chi_square / freedom, ROUNDING**2)
    else:
        too_large = chi_square > freedom + 3 * np.sqrt(2 * freedom)
        scale = chi_square / freedom if too_large else 1.0
    sides = profile.sides(q, scale)
    bounded = len(sides) == 2
    if not bounded:
        sides += [q - _SLOWEST, _STEEPEST - q]
    columns = np.stack([profile.ones, profile.power(q), profile.u * profile.power(q)], axis=1)
    lengths = np.sqrt(np.sum(columns**2, axis=0))
    spread = np.sqrt(scale * np.sum(np.linalg.pinv(columns / lengths) ** 2, axis=1)) / lengths
    q_error = max(*sides, ROUNDING * q)
    if bounded and level > 0 and amplitude > 0:
        q_error = max(q_error, float(spread[2]) / amplitude)  # the same to leading order, and safe at rounding level
    level_error = float(max(spread[0], ROUNDING * level))
    decays = amplitude > 0 and profile.constant_misfit() > chi_square + 9 * scale + norm(ROUNDING * profile.data) ** 2
    return _FloorFit(q, q_error, level, level_error, amplitude, bounded, decays)
