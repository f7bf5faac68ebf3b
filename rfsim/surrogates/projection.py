"""Least squares with the linear amplitudes eliminated: the way from a poor start to the basin of the optimum."""

from typing import Any

import numpy as np
from scipy.optimize import least_squares, nnls

from rfsim.surrogates.laws import Law
from rfsim.surrogates.objective import Coordinates, Data


def project(
    law: Law[Any], start: np.ndarray, data: Data, coordinates: Coordinates, *, evaluations: int = 200
) -> tuple[np.ndarray, float]:
    """Minimise the squared relative residuals over the non-linear parameters, the amplitudes being solved for.

    The loss is a sum of amplitudes (the parameters named in `law.linear`) times functions of the other parameters, so
    for given others the best amplitudes within their signs follow from one non-negative least-squares problem. The
    derivative of what is left is the part of the gradient that the amplitudes in use cannot make up (Kaufman 1975).

    Parameters
    ----------
    start : (k,) values; those of the amplitudes are not used.
    evaluations : limit on the evaluations of the law.

    Returns
    -------
    Values (k,) and half the sum of squared relative residuals there.
    """
    names = coordinates.names
    linear = np.array([name in law.linear for name in names]) & coordinates.free
    moving = coordinates.free & ~linear
    signed = linear & (coordinates.low < 0.0)
    observed = np.concatenate(data.losses)
    share = 1.0 / observed
    if data.weights is not None:
        share = share * np.sqrt(np.concatenate(data.weights))
    target = observed * share
    base = coordinates.inside(start)
    low, high = coordinates.low[moving], coordinates.high[moving]
    log = coordinates.log[moving]
    bounds = np.where(log, np.log(np.where(log, low, 1.0)), low), np.where(log, np.log(np.where(log, high, 1.0)), high)
    last: dict[bytes, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def solve(place: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Residuals, their derivative by the coordinates, and all values, at non-linear coordinates."""
        key = place.tobytes()
        if key in last:
            return last[key]
        values = base.copy()
        values[moving] = np.where(log, np.exp(np.where(log, place, 0.0)), place)
        values[linear] = 0.0
        with np.errstate(all="ignore"):
            zero, columns = _stacked(law, values, data)
            design = columns[:, linear] * share[:, None]
            if signed.any():
                both = np.concatenate([design, -design[:, signed[linear]]], axis=1)
            else:
                both = design
            scale = np.linalg.norm(both, axis=0)
            scale = np.where((scale > 0.0) & np.isfinite(scale), scale, 1.0)
            if not np.isfinite(both).all():
                bad = np.full(len(target), 1e3), np.zeros((len(target), len(place))), values
                return bad
            wanted = target - zero * share
            found = nnls(both / scale, wanted)[0] / scale if both.shape[1] else np.zeros(0)
            amplitudes = found[: linear.sum()].copy()
            amplitudes[signed[linear]] -= found[linear.sum() :]
            values[linear] = np.clip(amplitudes, coordinates.bottom[linear], coordinates.top[linear])
            loss, gradient = _stacked(law, values, data)
            used = design[:, amplitudes != 0.0]
            slope = gradient[:, moving] * np.where(log, values[moving], 1.0) * share[:, None]
            basis, _ = np.linalg.qr(used)
            slope = slope - basis @ (basis.T @ slope)
        last.clear()
        last[key] = loss * share - target, np.nan_to_num(slope, posinf=0.0, neginf=0.0), values
        return last[key]

    begin = base[moving]
    begin = np.where(log, np.log(np.where(log, begin, 1.0)), begin)
    if not moving.any():
        rest, _, values = solve(begin)
        return values, 0.5 * float(rest @ rest)
    with np.errstate(all="ignore"):
        try:
            found = least_squares(
                lambda x: solve(x)[0],
                np.clip(begin, bounds[0] + 1e-9, bounds[1] - 1e-9),
                jac=lambda x: solve(x)[1],
                bounds=bounds,
                x_scale="jac",
                ftol=1e-7,
                xtol=1e-8,
                gtol=1e-12,
                max_nfev=evaluations,
            )
        except (ValueError, np.linalg.LinAlgError):  # slopes beyond the range of the arithmetic
            return base, np.inf
    rest, _, values = solve(found.x)
    return values, 0.5 * float(rest @ rest)


def _stacked(law: Law[Any], values: np.ndarray, data: Data) -> tuple[np.ndarray, np.ndarray]:
    parts = [law.evaluate(values, one) for one in data.prepared]
    return np.concatenate([loss for loss, _ in parts]), np.concatenate([g for _, g in parts if g is not None])
