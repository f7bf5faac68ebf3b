"""Huber's loss on log residuals, minimised from one start: transformed parameters, analytic gradients."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import least_squares

from rfsim.surrogates.laws import Law

_TINY = 1e-8  # losses below this share of the smallest observation are held there, where a log would fail


class Data(NamedTuple):
    """What one fit sees: prepared runs, their observed losses, and weights (resampled data count more than once)."""

    prepared: tuple[Any, ...]
    losses: tuple[np.ndarray, ...]
    weights: tuple[np.ndarray, ...] | None = None


class Coordinates:
    """The map between parameter values (k,) and the coordinates in which a fit moves.

    A parameter marked `log` moves through its logarithm; an amplitude A with exponent q and centre log x0 moves as
    a = A x0^(-q), so that a and q are nearly uncorrelated; a fixed one does not move.

    low, high : (k,) declared bounds of the values. bottom, top : (k,) those that a fit keeps: the same, but a centred
        amplitude keeps its sign only, since a bound of A is none of a.
    """

    def __init__(self, law: Law[Any], centres: dict[str, tuple[str, float]], fixed: dict[str, float]) -> None:
        self.law = law
        self.centres = centres
        self.parameters = law.parameters
        self.names = [one.name for one in self.parameters]
        self.log = np.array([one.log for one in self.parameters])
        self.low = np.array([one.low for one in self.parameters])
        self.high = np.array([one.high for one in self.parameters])
        self.free = np.array([name not in fixed for name in self.names])
        self.fixed = np.array([fixed.get(name, 0.0) for name in self.names])
        self.centred = [
            (self.names.index(name), self.names.index(exponent), centre) for name, (exponent, centre) in centres.items()
        ]
        self.bottom, self.top = self.low.copy(), self.high.copy()
        for amplitude, _, _ in self.centred:
            self.bottom[amplitude] = 0.0 if self.log[amplitude] or self.low[amplitude] >= 0.0 else -np.inf
            self.top[amplitude] = np.inf

    def inside(self, values: np.ndarray) -> np.ndarray:
        """Values moved strictly inside the bounds that a fit keeps."""
        edge = np.where(self.log, self.low * 1e-9, 1e-12 * np.maximum(np.abs(self.low), 1e-6))
        return np.clip(np.where(self.free, values, self.fixed), self.bottom + edge, self.top - edge)

    def to(self, values: np.ndarray) -> np.ndarray:
        """Coordinates of the free parameters."""
        moved = np.where(self.log, np.log(np.maximum(values, 1e-300)), values)
        for amplitude, exponent, centre in self.centred:
            shift = -values[exponent] * centre
            moved[amplitude] = moved[amplitude] + shift if self.log[amplitude] else moved[amplitude] * np.exp(shift)
        return moved[self.free]

    def values(self, place: np.ndarray) -> np.ndarray:
        """Parameter values at coordinates."""
        values, _ = self._values(place)
        return values

    def _values(self, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (k,) and the derivative (k, free) of the values by the coordinates."""
        moved = np.where(self.log, np.log(np.maximum(self.fixed, 1e-300)), self.fixed)
        moved[self.free] = place
        values = np.where(self.log, np.exp(np.where(self.log, moved, 0.0)), moved)
        values = np.where(self.free, values, self.fixed)
        slope = np.diag(np.where(self.log, values, 1.0))
        for amplitude, exponent, centre in self.centred:
            if not self.free[amplitude]:
                continue
            values[amplitude] *= np.exp(values[exponent] * centre)
            slope[amplitude, amplitude] *= np.exp(values[exponent] * centre)
            slope[amplitude, exponent] = values[amplitude] * centre * slope[exponent, exponent]
        return values, slope[:, self.free]

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the coordinates."""
        low, high = self.bottom.copy(), self.top.copy()
        with np.errstate(divide="ignore"):  # the log of a scale that only keeps its sign has no lower end
            low[self.log], high[self.log] = np.log(low[self.log]), np.log(high[self.log])
        return low[self.free], high[self.free]


class Minimum(NamedTuple):
    """One end of one descent.

    values : (k,) parameters. objective : sum of Huber's rho over the rows, in its natural scale (1/2 r^2 within delta).
    evaluations : number of evaluations of the law. converged : False if it ran into the limit of evaluations.
    """

    values: np.ndarray
    objective: float
    evaluations: int
    converged: bool


def residuals(law: Law[Any], values: np.ndarray, data: Data) -> np.ndarray:
    """Log L_model - log L_observed of all rows (n,)."""
    parts = [
        np.log(np.maximum(law.evaluate(values, one, gradient=False)[0], _TINY * loss.min())) - np.log(loss)
        for one, loss in zip(data.prepared, data.losses, strict=True)
    ]
    return np.concatenate(parts)


def residuals_and_slopes(law: Law[Any], values: np.ndarray, data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Residuals (n,) and their derivatives (n, k) in the parameters."""
    rest, slopes = [], []
    for one, loss in zip(data.prepared, data.losses, strict=True):
        model, gradient = law.evaluate(values, one)
        assert gradient is not None
        held = np.maximum(model, _TINY * loss.min())
        rest.append(np.log(held) - np.log(loss))
        slopes.append(gradient / held[:, None])
    return np.concatenate(rest), np.concatenate(slopes)


def huber(rest: np.ndarray, delta: float) -> np.ndarray:
    """Huber's rho: r^2/2 up to |r| = delta, then delta (|r| - delta/2)."""
    size = np.abs(rest)
    return np.where(size <= delta, 0.5 * rest**2, delta * (size - 0.5 * delta))


def _weighted_huber(weights: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Huber's loss of z = (r/delta)^2 with its two derivatives, (3, n), each row counted `weights` (n,) times."""

    def loss(z: np.ndarray) -> np.ndarray:
        inside, root = z <= 1.0, np.sqrt(np.maximum(z, 1.0))
        value, slope = np.where(inside, z, 2.0 * root - 1.0), 1.0 / root
        return weights * np.stack([value, slope, np.where(inside, 0.0, -0.5 * slope**3)])

    return loss


def descend(
    law: Law[Any],
    start: np.ndarray,
    data: Data,
    coordinates: Coordinates,
    *,
    deltas: Sequence[float],
    evaluations: int = 300,
    tolerance: float = 1e-12,
) -> Minimum:
    """Minimise the sum of Huber's rho from `start`, through decreasing widths `deltas` (the last one counts).

    The last descent stops when the objective falls by less than `tolerance`, relative, or after `evaluations`.

    A wide Huber loss is least squares, which converges from afar; each narrower one starts where the last ended.
    """
    loss: Any = "huber" if data.weights is None else _weighted_huber(np.concatenate(data.weights))
    bounds = coordinates.bounds()
    place = np.clip(coordinates.to(coordinates.inside(start)), bounds[0] + 1e-12, bounds[1] - 1e-12)
    last: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}

    def both(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        key = x.tobytes()
        if key not in last:
            values, slope = coordinates._values(x)
            rest, gradient = residuals_and_slopes(law, values, data)
            jacobian = gradient @ slope
            if not (np.isfinite(rest).all() and np.isfinite(jacobian).all()):
                rest, jacobian = np.full(len(rest), 1e6), np.zeros((len(rest), len(x)))
            last.clear()
            last[key] = (rest, jacobian)
        return last[key]

    used, converged = 0, True
    for delta in deltas:
        with np.errstate(all="ignore"):  # a step may go where the law overflows; it is not taken
            try:
                found = least_squares(
                    lambda x: both(x)[0],
                    place,
                    jac=lambda x: both(x)[1],
                    bounds=bounds,
                    loss=loss,
                    f_scale=delta,
                    x_scale="jac",
                    ftol=tolerance if delta == deltas[-1] else 1e-6,
                    xtol=min(tolerance, 1e-10),
                    gtol=1e-13,
                    max_nfev=evaluations,
                )
            except (ValueError, np.linalg.LinAlgError):  # slopes beyond the range of the arithmetic
                return Minimum(coordinates.values(place), np.inf, used, False)
        place, used, converged = found.x, used + found.nfev, found.status > 0
    with np.errstate(all="ignore"):
        values = coordinates.values(place)
        rest = residuals(law, values, data)
    count = np.ones_like(rest) if data.weights is None else np.concatenate(data.weights)
    return Minimum(values, float(count @ huber(rest, deltas[-1])), used, converged)
