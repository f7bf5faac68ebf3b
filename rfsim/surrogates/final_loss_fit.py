"""Fits of the final-loss law to points: Huber or free-scale likelihood, and a bootstrap of all resamples at once."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import erf

from rfsim.checks import (
    FloatArray,
    InputError,
    RunError,
    finite_vector,
    one_of,
    positive_number,
    same_length,
    whole_number,
)
from rfsim.surrogates.final_loss import FinalLoss, Points
from rfsim.surrogates.laws import values_of
from rfsim.surrogates.objective import Coordinates, Data, descend, huber
from rfsim.surrogates.projection import project

_GAIN, _ROUGH = 1e-13, 1e-6  # a descent ends where a step promises less of the objective; the same on the way there
_NARROWING = 0.25  # of the width of the loss from one descent to the next


@dataclass(frozen=True)
class PointsFit:
    """Parameters fitted to points.

    points, method, delta : what was fitted and how. values : (5,) E, A, B, alpha, beta.
    scale : of the residuals: 1 with "huber", fitted with "free-scale".
    objective : sum of Huber's rho of the log residuals, or the negative log likelihood with "free-scale".
    share : share of the starts that ended at the optimum of Huber's loss; "free-scale" goes on from there, and finds
        the nearest optimum of its own.
    """

    points: Points
    method: str
    delta: float
    values: FloatArray
    scale: float
    objective: float
    share: float

    def predict(self, model_size: object, tokens: object) -> FloatArray:
        """Loss (m,) at sizes (m,) and tokens (m,)."""
        size, data = (finite_vector(k, v) for k, v in (("model_size", model_size), ("tokens", tokens)))
        same_length(model_size=size, tokens=data)
        seen = FinalLoss().prepare(self.points, np.stack([size, data], axis=1))
        return FinalLoss().evaluate(self.values, seen, gradient=False)[0]

    def residuals(self) -> FloatArray:
        """Log L_model - log L_observed (n,)."""
        return np.log(self.predict(self.points.model_size, self.points.tokens) / self.points.loss)


def fit_points(
    data: Points, *, method: str = "huber", delta: float = 1e-3, starts: np.ndarray | None = None
) -> PointsFit:
    """Fit L(N, D) to points by Huber's loss on log residuals r.

    "huber" minimises sum rho(r), rho = r^2/2 within delta and delta (|r| - delta/2) outside.
    "free-scale" maximises the likelihood in which r/s has the density exp(-rho(z))/Z, with the scale s free: the
    method of the published standard errors (Besiroglu et al. 2024). With a small delta s is close to delta mean |r|,
    the kink at delta s closer to 0 still, and the fit one of least absolute deviations.

    Parameters
    ----------
    starts : (m, 5) values from which descents begin; by default those of the law, the amplitudes being solved for.

    Raises
    ------
    InputError : for an unknown method, delta <= 0, or points that cannot fix five parameters.
    RunError : if no descent converged.
    """
    one_of("method", method, ("huber", "free-scale"))
    delta = positive_number("delta", delta)
    rows, sizes, lengths = len(data), len(np.unique(data.model_size)), len(np.unique(data.tokens))
    if rows < 6 or min(sizes, lengths) < 3:
        told = f"got {rows} with {sizes} sizes and {lengths} numbers of tokens"
        raise InputError(f"points must be at least 6, with 3 different sizes and 3 numbers of tokens, {told}; add some")
    law, seen = FinalLoss(), FinalLoss().prepare(data)
    fitted = Data((seen,), (data.loss,))
    coordinates = Coordinates(law, law.centres((seen,)), {})
    if starts is None:
        starts = np.stack([project(law, one, fitted, coordinates)[0] for one in law.starts((seen,), (data.loss,))])
    ends = [descend(law, values_of(law, one), fitted, coordinates, deltas=(1.0, 0.03, delta)) for one in starts]
    best = min(ends, key=lambda end: end.objective)
    if not best.converged:
        raise RunError("no descent of the final-loss law converged; the points do not determine its five parameters")
    share = float(np.mean([end.objective <= best.objective * (1.0 + 1e-6) + 1e-18 for end in ends]))
    (values,), (scale,), (settled,) = _solve(data, best.values, np.ones((1, len(data))), method, delta)
    if not settled:
        told = f"got E, A, B, alpha, beta = {values.round(4).tolist()}; a term may be absent or the points too few"
        raise RunError(f"the fit must settle within the bounds of the law, {told}")
    rho = huber(np.log(law.evaluate(values, seen, gradient=False)[0] / data.loss) / scale, delta)
    constant = np.log(np.sqrt(2.0 * np.pi) * erf(delta / np.sqrt(2.0)) + 2.0 * np.exp(-0.5 * delta**2) / delta)
    free = len(data) * (np.log(scale) + constant) if method == "free-scale" else 0.0
    return PointsFit(data, method, delta, values, float(scale), float(rho.sum() + free), share)


def bootstrap(fit: PointsFit, *, resamples: int = 1000, seed: int = 0) -> FloatArray:
    """Parameters (resamples, 5) refitted, from the fit, to points drawn with replacement; all resamples at once.

    Their standard deviations are standard errors. Resamples without an optimum or six different points are left out.

    Raises
    ------
    RunError : if more than one in twenty is left out.
    """
    resamples, count = whole_number("resamples", resamples, least=2), len(fit.points)
    weights = np.random.default_rng(seed).multinomial(count, np.full(count, 1.0 / count), size=resamples)
    chunks = np.array_split(weights.astype(np.float64), -(-resamples // 500))
    parts = [_solve(fit.points, fit.values, chunk, fit.method, fit.delta) for chunk in chunks]
    values, _, settled = (np.concatenate(column) for column in zip(*parts, strict=True))
    settled &= (weights > 0).sum(axis=1) > 5
    if settled.mean() < 0.95:
        raise RunError(f"{int((~settled).sum())} of {resamples} resamples fix no parameters; the points are too few")
    return values[settled]


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def _solve(
    data: Points, start: FloatArray, weights: FloatArray, method: str, delta: float
) -> tuple[FloatArray, FloatArray, np.ndarray]:
    """Values (R, 5), scales (R,) and whether settled within bounds (R,), for weights (R, n) of the points."""
    size, tokens = np.log(data.model_size), np.log(data.tokens)
    centre = np.array([0.0, size.mean(), tokens.mean()])
    logs = np.log(np.maximum(start[:3], 1e-12)) - np.array([0.0, *start[3:]]) * centre
    places = np.tile(np.concatenate([logs, start[3:]]), (len(weights), 1))
    view = _View(size - centre[1], tokens - centre[2], np.log(data.loss), weights)
    total = weights.sum(axis=1)
    width, scale, last = np.full(len(weights), delta), np.ones(len(weights)), method == "huber"
    for _ in range(60):  # the kink narrows to its place
        places, settled = _newton(view, places, width, _GAIN if last else _ROUGH)
        if method == "huber":
            break
        scale = _scale(np.abs(view.residuals(places)), weights, total, delta)
        target = np.maximum(delta * scale, 1e-13)
        if last and (np.abs(width / target - 1.0) < 1e-7).all():
            break
        last = bool((width * _NARROWING <= target).all())
        width = np.where(width * _NARROWING > target, width * _NARROWING, target)
    places[:, 1:3] += places[:, 3:] * centre[1:]
    values = np.concatenate([np.exp(places[:, :3]), places[:, 3:]], axis=1)
    low, high = (np.array([getattr(one, end) for one in FinalLoss().parameters]) for end in ("low", "high"))
    return values, scale, settled & ((values >= low) & (values <= high)).all(axis=1)


def _scale(size: FloatArray, weights: FloatArray, total: FloatArray, delta: float) -> FloatArray:
    """The scale s at which sum w psi(r/s) r/s = sum w: the likelihood is stationary in s."""
    scale = np.sqrt((weights * size**2).sum(axis=1) / total)
    for _ in range(200):
        inside = size <= delta * scale[:, None]
        square = (weights * inside * size**2).sum(axis=1) / total
        linear = delta * (weights * ~inside * size).sum(axis=1) / total
        new = 0.5 * (linear + np.sqrt(linear**2 + 4.0 * square))
        if np.allclose(new, scale, rtol=1e-12, atol=0.0):
            break
        scale = new
    return new


class _View(NamedTuple):
    """Centred log sizes and log tokens (n,), log losses (n,), weights (R, n)."""

    size: FloatArray
    tokens: FloatArray
    log_loss: FloatArray
    weights: FloatArray

    def terms(self, places: FloatArray) -> FloatArray:
        """The three terms (R, 3, n) at places (R, 5): log E, log a, log b, alpha, beta."""
        exponents = np.empty((len(places), 3, len(self.size)))
        exponents[:, 0] = places[:, 0, None]
        exponents[:, 1] = places[:, 1, None] - places[:, 3, None] * self.size
        exponents[:, 2] = places[:, 2, None] - places[:, 4, None] * self.tokens
        return np.exp(np.minimum(exponents, 300.0))

    def residuals(self, places: FloatArray) -> FloatArray:
        """Log L_model - log L_observed (R, n)."""
        return np.log(self.terms(places).sum(axis=1)) - self.log_loss

    def objective(self, places: FloatArray, width: FloatArray) -> FloatArray:
        """Sum of w rho(r) / width (R,)."""
        return (self.weights * huber(self.residuals(places) / width[:, None], 1.0)).sum(axis=1) * width

    def slopes(self, places: FloatArray, width: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Gradient (R, 5) and second derivative (R, 5, 5), both over the width, and sum of w J J^T (R, 5, 5).

        J holds the shares p of the terms times the derivatives of their exponents; the second derivative of log L is
        the sum over the terms of p times the outer square of those derivatives, less J J^T.
        """
        terms = self.terms(places)
        rest, share = np.log(terms.sum(axis=1)) - self.log_loss, terms / terms.sum(axis=1, keepdims=True)
        jacobian = np.concatenate([share, -share[:, 1:2] * self.size, -share[:, 2:3] * self.tokens], axis=1)
        held = np.clip(rest / width[:, None], -1.0, 1.0) * self.weights
        inside = (np.abs(rest) <= width[:, None]) * self.weights / width[:, None]
        flat = np.swapaxes(jacobian, 1, 2)
        second = (jacobian * (inside - held)[:, None]) @ flat
        bent = share * held[:, None]
        for at, variable, power in ((1, self.size, 3), (2, self.tokens, 4)):
            second[:, at, power] -= bent[:, at] @ variable
            second[:, power, at] = second[:, at, power]
            second[:, power, power] += bent[:, at] @ variable**2
        second[:, [0, 1, 2], [0, 1, 2]] += bent.sum(axis=2)
        return (jacobian @ held[:, :, None])[:, :, 0], second, (jacobian * self.weights[:, None]) @ flat


def _newton(view: _View, places: FloatArray, width: FloatArray, gain: float) -> tuple[FloatArray, np.ndarray]:
    """Damped Newton steps for all rows of places (R, 5) at once; negative curvature counts as positive."""
    places, todo = places.copy(), np.arange(len(places))
    damping, value = np.full(len(places), 1e-3), view.objective(places, width)
    for _ in range(300):
        part = view._replace(weights=view.weights[todo])
        gradient, second, metric = part.slopes(places[todo], width[todo])
        metric = metric + 1e-14 * np.trace(metric, axis1=1, axis2=2)[:, None, None] * np.eye(5)
        inverse = np.linalg.inv(np.linalg.cholesky(metric))
        curve, axes = np.linalg.eigh(inverse @ second @ np.swapaxes(inverse, 1, 2))
        along = (np.swapaxes(axes, 1, 2) @ inverse @ gradient[:, :, None])[:, :, 0]
        stiff = np.abs(curve) + damping[todo][:, None]
        moved = places[todo] - (np.swapaxes(inverse, 1, 2) @ axes @ (along / stiff)[:, :, None])[:, :, 0]
        new = part.objective(moved, width[todo])
        better = new < value[todo]
        places[todo[better]], value[todo[better]] = moved[better], new[better]
        damping[todo] *= np.where(better, 0.2, 5.0)
        promised = (along**2 / (np.abs(curve) + np.minimum(damping[todo], 1.0)[:, None])).sum(axis=1)
        todo = todo[promised > gain * (value[todo] + 1e-6 * part.weights.sum(axis=1))]
        if not len(todo):
            break
    return places, ~np.isin(np.arange(len(places)), todo)
