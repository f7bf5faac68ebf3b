"""How well a fit knows its parameters: covariance, bounds, profile intervals, block bootstrap."""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from rfsim.checks import InputError, RunError, finite_number, whole_number
from rfsim.surrogates.laws import Law
from rfsim.surrogates.objective import Coordinates, Data, descend, huber, residuals_and_slopes

_SINGULAR = 1e-10  # singular values of the scaled sensitivities below this share of the largest are directions unseen
_SILENT = 1e-9  # a factor of e in a parameter that changes the log losses by less than this in all changes nothing
_FEWEST = 5.0  # degrees of freedom left by correlated residuals, at least
_EDGE = 1e-6  # a coordinate this close to its bound, relative, lies on it
_LEVEL_TOLERANCE = 1e-3  # of sqrt(deviance) at the end of a profile interval
_REFITS = 20  # of one end of a profile interval, at most
_AUTOCORRELATED = 3.0  # standard errors of a lag-one correlation above which residuals count as correlated


class FitWarning(UserWarning):
    """A fit that is not to be trusted as it stands, such as few starts that agree or an end that is not settled."""


class Spread(NamedTuple):
    """Local uncertainty of a fit with k parameters.

    covariance : (k, k) in the parameters; rows of parameters that are fixed or on a bound are 0.
    scale : deviance per unit of the objective, 2 mean(psi') / (mean(psi^2) inflation); psi is the slope of Huber's rho.
    inflation : how much correlated residuals widen variances, 1 for independent ones.
    rows : degrees of freedom: independent rows beyond the number of free parameters, at least 5 if there are 5 rows
        beyond them at all, since how many are independent is itself a rough estimate.
    at_bound : names of parameters on a bound. unidentified : names of those that the data do not determine.
    """

    covariance: np.ndarray
    scale: float
    inflation: float
    rows: float
    at_bound: tuple[str, ...]
    unidentified: tuple[str, ...]


def spread(law: Law[Any], values: np.ndarray, data: Data, coordinates: Coordinates, delta: float) -> Spread:
    """Covariance of an M-estimate, mean(psi^2)/mean(psi')^2 (J^T J)^-1 m/(m-k), of free parameters off their bounds.

    The factor m/(m-k) is at least n/(n-k) where m - k is held at its least value.

    m is the number of rows n if residuals are independent. If neighbouring residuals of a run are correlated, as where
    the law misses something, variances are multiplied by the integrated correlation of psi, 1 + 2 sum of correlations
    up to the first that is not positive, and m is n over that: few independent rows leave few degrees of freedom.
    """
    rest, slopes = residuals_and_slopes(law, values, data)
    lengths = [len(loss) for loss in data.losses]
    psi, inner = np.clip(rest, -delta, delta), np.abs(rest) <= delta
    inflation = _inflation(psi, lengths)
    on_bound = _on_bound(values, coordinates, slopes)
    free = coordinates.free & ~on_bound
    independent = len(rest) / inflation
    count = max(independent - int(free.sum()), min(_FEWEST, max(len(rest) - int(free.sum()), 1.0)))
    share = max(float(np.mean(inner)), 1.0 / len(rest))
    beyond = len(rest) / max(len(rest) - int(free.sum()), 1)
    power = float(np.mean(psi**2)) * max(independent / count, beyond)
    scaled = np.where(coordinates.log, values, 1.0)
    design = (slopes * scaled)[:, free]
    size = np.linalg.norm(design, axis=0)
    silent = coordinates.log[free] & (size < _SILENT)
    size = np.where(size > 1e-150, size, 1.0)  # smaller ones have no square
    _, strength, right = np.linalg.svd(design / size, full_matrices=False)
    seen = strength > _SINGULAR * strength.max(initial=0.0)
    inverse = right.T @ (np.where(seen, 1.0 / np.where(seen, strength, 1.0) ** 2, 0.0)[:, None] * right)
    inner_covariance = inverse / np.outer(size, size) * power / share**2 * inflation
    names = np.array(coordinates.names)
    error = np.sqrt(np.maximum(np.diag(inner_covariance), 0.0))
    lost = (np.abs(right[~seen]) > 1e-3).any(axis=0) if (~seen).any() else np.zeros(len(size), dtype=bool)
    relative = np.where(coordinates.log[free], error, error / np.maximum(np.abs(values[free]), 1e-300))
    unknown = names[free][lost | silent | (coordinates.log[free] & (relative > 1.0))]
    covariance = np.zeros((len(values), len(values)))
    covariance[np.ix_(free, free)] = inner_covariance * np.outer(scaled[free], scaled[free])
    return Spread(
        covariance,
        2.0 * share / max(power * inflation, 1e-300),
        inflation,
        count,
        tuple(names[on_bound].tolist()),
        tuple(unknown.tolist()),
    )


def _on_bound(values: np.ndarray, coordinates: Coordinates, slopes: np.ndarray) -> np.ndarray:
    """Which free parameters lie on a bound: a log scale by its ratio, an amplitude by what it adds to the log loss."""
    low, high = coordinates.bottom, coordinates.top
    reach = np.max(np.abs(slopes), axis=0)
    near_low = np.where(coordinates.log, values <= low * (1.0 + _EDGE), (values - low) * reach < _EDGE)
    near_high = values >= high - _EDGE * np.where(np.isfinite(high), np.abs(high), 0.0)
    return coordinates.free & (near_low | near_high)


def _inflation(psi: np.ndarray, lengths: Sequence[int]) -> float:
    """Integrated correlation of psi within runs, 1 unless the lag-one correlation is significant.

    Runs that a lag does not fit into say nothing about it; the others do.
    """
    parts = np.split(psi, np.cumsum(lengths)[:-1])
    power = float(np.mean(psi**2))
    if power == 0.0:
        return 1.0
    total, lag = 1.0, 1
    while lag < max(lengths):
        products = np.concatenate([one[lag:] * one[:-lag] for one in parts if len(one) > lag])
        correlation = float(np.mean(products)) / power
        if correlation < (_AUTOCORRELATED / np.sqrt(len(products)) if lag == 1 else 0.0):
            break
        total += 2.0 * correlation
        lag += 1
    return total


class Interval(NamedTuple):
    """A confidence interval; an end on a bound of the parameter is open: the data do not exclude it."""

    low: float
    high: float


def profile_interval(
    law: Law[Any],
    name: str,
    values: np.ndarray,
    data: Data,
    coordinates: Coordinates,
    delta: float,
    found: Spread,
    level: float,
    rival: np.ndarray | None = None,
) -> Interval:
    """Values of one parameter that the data do not reject: deviance of the refit of all others below its quantile.

    The deviance is `found.scale` times the rise of the objective; its quantile is the square of Student's. Each end is
    found by following sqrt(deviance) outwards and interpolating, in at most 20 refits. An end that these do not settle,
    or whose last refit ran into the limit of its evaluations, comes with a `FitWarning`.

    If another optimum, `rival` (k,), is not rejected at this level, the ends are followed from there as well, and the
    interval is the hull: what lies between two valleys may be rejected.
    """
    place = coordinates.names.index(name)
    target = student_width(level, found.rows)
    best = float(np.sum(huber(residuals_and_slopes(law, values, data)[0], delta)))
    begins = [(values, 0.0)]
    if rival is not None:
        rise = float(np.sum(huber(residuals_and_slopes(law, rival, data)[0], delta))) - best
        begins += [(rival, height)] if (height := float(np.sqrt(max(found.scale * rise, 0.0)))) < target else []
    log = bool(coordinates.log[place])
    low, high = _reach(place, values, coordinates)
    width = float(np.sqrt(found.covariance[place, place])) / (values[place] if log else 1.0)
    if not width > 0.0:
        declared = float(coordinates.high[place] - coordinates.low[place])
        width = 0.5 if log else max(abs(float(values[place])), 1e-8 * declared) * 0.1
    fixed = {one: float(coordinates.fixed[i]) for i, one in enumerate(coordinates.names) if not coordinates.free[i]}
    ends = (np.log(low) if log and low > 0.0 else low, np.log(high) if log else high)

    def refit(at: float, start: np.ndarray) -> tuple[float, np.ndarray, bool]:
        held = float(np.exp(at)) if log else at
        inner = Coordinates(law, coordinates.centres, {**fixed, name: held})
        moved = start.copy()
        moved[place] = held
        end = descend(law, moved, data, inner, deltas=(10.0 * delta, delta))  # to the valley's end, or it is too short
        return float(np.sqrt(max(found.scale * (end.objective - best), 0.0))), end.values, end.converged

    def told(end: float, sign: float, settled: bool) -> float:
        if not settled:
            warnings.warn(
                f"{law.name}: the {'upper' if sign > 0 else 'lower'} end of the profile interval of {name} is not "
                f"settled, its refits ran into their limit; take it as rough, or bootstrap",
                FitWarning,
                stacklevel=4,
            )
        return end

    def side(sign: float, bound: float, start: np.ndarray, begin: float) -> float:
        centre = float(np.log(start[place])) if log else float(start[place])
        inside, outside, step = (centre, begin), None, width * target
        at = centre + sign * step
        for _ in range(_REFITS):
            clipped = min(at, bound) if sign > 0 else max(at, bound)
            height, start_next, settled = refit(clipped, start)
            if height < target:
                if clipped == bound:
                    return bound
                inside, start = (clipped, height), start_next
            else:
                outside = (clipped, height)
            if abs(height - target) < _LEVEL_TOLERANCE * target:
                return told(clipped, sign, settled)
            if outside is None:
                step *= 3.0 if height < 0.5 * target else max(1.15 * (target - height) / max(height, 1e-3), 0.1) + 0.1
                at = clipped + sign * step
            else:
                share = (target - inside[1]) / max(outside[1] - inside[1], 1e-12)
                at = inside[0] + min(max(share, 0.02), 0.98) * (outside[0] - inside[0])
        return told(at, sign, False)

    bottom, top = side(-1.0, ends[0], *begins[0]), side(1.0, ends[1], *begins[0])
    for begin in begins[1:]:
        bottom, top = min(bottom, side(-1.0, ends[0], *begin)), max(top, side(1.0, ends[1], *begin))
    return Interval(float(np.exp(bottom)), float(np.exp(top))) if log else Interval(bottom, top)


def wald_interval(place: int, values: np.ndarray, coordinates: Coordinates, found: Spread, level: float) -> Interval:
    """Estimate plus or minus Student's quantile times the standard error, on the log scale of log parameters."""
    target = student_width(level, found.rows)
    error = target * float(np.sqrt(found.covariance[place, place]))
    low, high = _reach(place, values, coordinates)
    value = float(values[place])
    if coordinates.log[place]:
        factor = math.exp(min(error / value, 700.0))
        return Interval(max(value / factor, low), min(value * factor, high))
    return Interval(max(value - error, low), min(value + error, high))


def _reach(place: int, values: np.ndarray, coordinates: Coordinates) -> tuple[float, float]:
    """The range of a parameter; only its sign where the estimate lies outside, as that of a centred amplitude may."""
    low, high = float(coordinates.low[place]), float(coordinates.high[place])
    if low <= values[place] <= high:
        return low, high
    return 0.0 if low >= 0.0 else -math.inf, math.inf


def block_bootstrap(
    law: Law[Any],
    values: np.ndarray,
    data: Data,
    coordinates: Coordinates,
    delta: float,
    *,
    resamples: int,
    blocks: int,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Refit on runs whose blocks of rows are drawn anew: parameter values (resamples, k).

    Every run is cut into `blocks` stretches of rows of equal length; a resample draws as many stretches as there are,
    from all runs together, with replacement. Whole stretches keep the correlation of neighbouring residuals. The
    draws depend on `seed` and the number of the resample only. Resamples whose descent runs into the limit of its
    evaluations are left out, and counted in a `FitWarning`.

    Raises
    ------
    InputError : for fewer than 2 resamples or blocks.
    RunError : if more than half of the resamples are left out.
    """
    whole_number("resamples", resamples, least=2)
    whole_number("blocks", blocks, least=2)
    lengths = [len(loss) for loss in data.losses]
    labels, first = [], 0
    for length in lengths:
        own = min(blocks, length)
        labels.append(first + np.arange(length) * own // length)
        first += own
    results = []
    for number in range(resamples):
        draw = np.random.default_rng([seed, number]).integers(0, first, first)
        counts = np.bincount(draw, minlength=first).astype(np.float64)
        weighted = Data(data.prepared, data.losses, tuple(counts[one] for one in labels))
        end = descend(law, values, weighted, coordinates, deltas=(3.0 * delta, delta))
        if end.converged:
            results.append(end.values)
        if progress is not None:
            progress(number + 1, resamples)
    lost = resamples - len(results)
    if 2 * lost > resamples:
        raise RunError(
            f"{lost} of {resamples} resamples ran into their limit of evaluations; fix what is not determined"
        )
    if lost:
        warnings.warn(
            f"{law.name}: {lost} of {resamples} resamples ran into their limit of evaluations and are left out",
            FitWarning,
            stacklevel=3,
        )
    return np.stack(results)


def root(covariance: np.ndarray) -> np.ndarray:
    """A matrix R (k, k) with covariance = R R^T, so that |g R| is the standard error of g . parameters, never negative.

    Units are taken out first, so that parameters of very different size keep their digits.
    """
    size = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    unit = np.where(size > 0.0, size, 1.0)
    strength, directions = np.linalg.eigh(covariance / np.outer(unit, unit))
    return size[:, None] * directions * np.sqrt(np.maximum(strength, 0.0))


def quantiles(samples: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """The central `level` of samples (b, ...): low and high."""
    edge = 0.5 * (1.0 - level)
    return np.quantile(samples, edge, axis=0), np.quantile(samples, 1.0 - edge, axis=0)


def checked_level(level: object) -> float:
    """A confidence level in (0, 1), or InputError."""
    number = finite_number("level", level)
    if not 0.0 < number < 1.0:
        raise InputError(f"level must lie between 0 and 1, got {number:g}; for example 0.95")
    return number


def student_width(level: float, rows: float) -> float:
    """Half width of the central `level` of Student's distribution with `rows` degrees of freedom."""
    return float(student.ppf(0.5 + 0.5 * level, rows))
