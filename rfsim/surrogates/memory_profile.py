"""How sharply runs determine the memory exponent: q_K held on a grid, the rest refitted, held-out runs predicted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfsim.checks import FloatArray, InputError, finite_number, finite_vector, require_entries
from rfsim.logs import Run
from rfsim.surrogates.fitting import HUBER, fit, windowed
from rfsim.surrogates.laws import Law, law_record, parameter_names
from rfsim.surrogates.objective import Coordinates, Data, descend, residuals
from rfsim.surrogates.objective import huber as huber_loss
from rfsim.surrogates.projection import project
from rfsim.surrogates.result import FitResult
from rfsim.surrogates.uncertainty import Interval, checked_level, student_width
from rfsim.surrogates.valley import Valley, crossing, valley

GRID = tuple(np.geomspace(0.4, 2.5, 17).tolist())
"""Default values of q_K, symmetric about 1, in steps of 12 %."""

_MEMORY = ("q_K", "a_2")  # what laws call the exponent of their kernel
_WIDER = 10.0  # descents pass through this multiple of Huber's width
_SAME = 1e-4  # least squares closer than this, relative, lie in one basin
_BEATEN = 1e-4  # a grid point below the free fit by this share means that the free fit missed the optimum


@dataclass(frozen=True)
class MemoryProfile:
    """Errors of fits with q_K held.

    Attributes
    ----------
    q_memory : (g,) values held.
    values : (g, k) parameters refitted at each, in the order of `free.law`.
    objective : (g,) sum of Huber's rho over the fitted rows.
    deviance : (g,) rise of the objective above the free fit, in units in which it is the square of a Student variable.
    fit_error, held_out_error : (g,) mean over runs of their root mean square error, in loss.
    fit_error_by_run, held_out_error_by_run : (g, runs). fit_names, held_out_names : of the runs.
    fit, held_out : the minima of the two error curves.
    interval : hull of the values of q_K that the deviance does not reject at `level`, the free fit among them, and its
        rival optimum if it has one; on a side on which it rejects none, up to the end of the grid (or the free fit, if
        that lies beyond). The deviance at the values held tells what inside is rejected.
    open_low, open_high : whether the interval is open on that side.
    free : the fit with q_K free. factor, level : as given. name : of the exponent in the law.
    """

    q_memory: FloatArray
    values: FloatArray
    objective: FloatArray
    deviance: FloatArray
    fit_error_by_run: FloatArray
    held_out_error_by_run: FloatArray
    fit_names: tuple[str, ...]
    held_out_names: tuple[str, ...]
    fit: Valley
    held_out: Valley
    interval: Interval
    open_low: bool
    open_high: bool
    free: FitResult
    factor: float
    level: float
    name: str

    @property
    def fit_error(self) -> FloatArray:
        """Mean over the fitted runs (g,)."""
        return self.fit_error_by_run.mean(axis=1)

    @property
    def held_out_error(self) -> FloatArray:
        """Mean over the held-out runs (g,)."""
        return self.held_out_error_by_run.mean(axis=1)

    @property
    def relative(self) -> tuple[FloatArray, FloatArray]:
        """The two error curves, each divided by its own minimum (g,): fitted, held out."""
        return self.fit_error / self.fit_error.min(), self.held_out_error / self.held_out_error.min()

    def notes(self) -> list[str]:
        """What a reader has to know before trusting the numbers, one line each."""
        told = []
        for curve, one in (("fitted", self.fit), ("held-out", self.held_out)):
            ends = f"{self.q_memory[0]:g} to {self.q_memory[-1]:g}"
            if one.at_end:
                told.append(f"the {curve} error is lowest at an end of the grid {ends}; extend the grid")
            elif one.coarse:
                told.append(f"the valley of the {curve} error is narrower than the grid; give more values around it")
            elif one.open_low or one.open_high:
                side = "both sides" if one.open_low and one.open_high else "below" if one.open_low else "above"
                told.append(
                    f"the {curve} error stays within a factor {self.factor:g} of its minimum up to the end of the grid "
                    f"({side}): {self.name} is weakly determined"
                )
        if self.objective.min() < self.free.objective * (1.0 - _BEATEN):
            better = self.q_memory[int(np.argmin(self.objective))]
            told.append(f"the fit with {self.name} held at {better:.4g} is better than the free one; try more starts")
        return told

    def summary(self) -> str:
        """The profile as text."""
        fitted, held_out = self.relative
        lines = [f"{self.name:>8}  fit/min  held-out/min  deviance"]
        lines += [
            f"{q:8.4g}  {a:7.4f}  {b:12.4f}  {d:8.3g}"
            for q, a, b, d in zip(self.q_memory, fitted, held_out, self.deviance, strict=True)
        ]
        for curve, one in (("fitted", self.fit), ("held-out", self.held_out)):
            low, high = "<" * one.open_low, ">" * one.open_high
            lines.append(
                f"{curve} runs: lowest error {one.error:.4g} at {self.name} {one.q_memory:.4g}, within a factor "
                f"{self.factor:g} from {low}{one.low:.4g} to {high}{one.high:.4g}"
            )
        low, high = "<" * self.open_low, ">" * self.open_high
        lines.append(
            f"free fit {self.free.params[self.name]:.4g}; deviance at level {self.level:g} allows "
            f"{low}{self.interval.low:.4g} to {high}{self.interval.high:.4g}"
        )
        return "\n".join([*lines, *self.notes()])


def memory_profile(
    law: Law[Any],
    fit_runs: Sequence[Run] | Run,
    held_out: Sequence[Run] | Run,
    q_memory: object = GRID,
    *,
    window: str = "all",
    huber: float = HUBER,
    fixed: dict[str, float] | None = None,
    factor: float = 1.1,
    level: float = 0.95,
    free: FitResult | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> MemoryProfile:
    """Hold the memory exponent on a grid, refit the other parameters on the fitted runs, predict the held-out runs.

    Each refit starts from its neighbour, outwards from the free fit and back again, and once more so from its rival
    optimum if it has one; where the ways lead to different optima the best one is kept. The held-out runs are never
    fitted.

    Parameters
    ----------
    law : one with a power-law kernel: forcing-memory or fsl (q_K), lr-fsl or elr-fsl (a_2).
    fit_runs, held_out : one or more runs each.
    q_memory : (g,) increasing values to hold, at least 3.
    window, huber, fixed : as in `fit`, or those of `free` if it is given; the window applies to the held-out runs too.
    factor : > 1, by how much an error may exceed its minimum within the stated width.
    level : of the interval from the deviance.
    free : the result of `fit` on the same runs with the exponent free, if it is there already.
    progress : called with refits done and refits in all.

    Raises
    ------
    InputError : for a law without such an exponent, one that holds it, a bad grid or factor, or no runs.

    Source: theory, section 7.6 (profile scan).
    """
    grid, level = _checked(law, q_memory, fixed or {}), checked_level(level)
    if not (top := finite_number("factor", factor)) > 1.0:
        raise InputError(f"factor must be above 1, got {top:g}; 1.1 asks where the error is 10 % above its minimum")
    fitted = [fit_runs] if isinstance(fit_runs, Run) else list(fit_runs)
    others = [held_out] if isinstance(held_out, Run) else list(held_out)
    if not others:
        raise InputError("held_out is empty; give at least one run to predict")
    best = fit(law, fitted, window=window, huber=huber, fixed=fixed) if free is None else free
    _require_law(best, law)
    _checked(best.law, grid, best.fixed)
    data = _same_data(best, fitted)
    law, name = best.law, _exponent(best.law)
    losses = [windowed(run, best.window, law) for run in others]
    unseen = Data(
        tuple(law.prepare(run, steps) for run, (steps, _) in zip(others, losses, strict=True)),
        tuple(loss for _, loss in losses),
    )
    values, objective = _refits(best, data, name, grid, progress)
    errors = [np.array([_errors(law, one, rows) for one in values]) for rows in (data, unseen)]
    lowest = min(float(objective.min()), best.objective)
    deviance = best.spread.scale * np.maximum(objective - lowest, 0.0)
    optima = [(best.params[name], best.objective)]
    if best.rival is not None:
        height = float(np.sum(huber_loss(residuals(law, best.rival, data), best.huber)))
        optima.append((float(best.rival[parameter_names(law).index(name)]), height))
    points = [(here, best.spread.scale * max(height - lowest, 0.0)) for here, height in optima]
    interval, opened = _not_rejected(grid, deviance, points, student_width(level, best.spread.rows))
    return MemoryProfile(
        q_memory=grid,
        values=values,
        objective=objective,
        deviance=deviance,
        fit_error_by_run=errors[0],
        held_out_error_by_run=errors[1],
        fit_names=tuple(run.name for run in fitted),
        held_out_names=tuple(run.name for run in others),
        fit=valley(grid, errors[0].mean(axis=1), top),
        held_out=valley(grid, errors[1].mean(axis=1), top),
        interval=interval,
        open_low=opened[0],
        open_high=opened[1],
        free=best,
        factor=top,
        level=level,
        name=name,
    )


def _not_rejected(
    grid: FloatArray, deviance: FloatArray, ends: Sequence[tuple[float, float]], target: float
) -> tuple[Interval, tuple[bool, bool]]:
    """Outermost crossings of sqrt(deviance) and its quantile; `ends` are (q_K, deviance) of the optima, points, too."""
    curve = dict(zip(np.log(grid).tolist(), deviance.tolist(), strict=True))
    curve.update({float(np.log(here)): height for here, height in ends})
    x = np.array(sorted(curve))
    root = np.sqrt([curve[one] for one in x.tolist()])
    inside = np.flatnonzero(root <= target)
    below, open_low = crossing(x[inside[0] :: -1], root[inside[0] :: -1], target)
    above, open_high = crossing(x[inside[-1] :], root[inside[-1] :], target)
    return Interval(float(np.exp(below)), float(np.exp(above))), (open_low, open_high)


def _refits(
    best: FitResult, data: Data, name: str, grid: FloatArray, progress: Callable[[int, int], None] | None
) -> tuple[FloatArray, FloatArray]:
    """Parameters (g, k) and objective (g,) with the exponent held at every value of the grid, of the better sweep."""
    begins = [best.values] if best.rival is None else [best.values, best.rival]
    done, total = 0, len(begins) * (2 * len(grid) - 1)

    def told() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    swept = [_sweep(begin, best, data, name, grid, told) for begin in begins]
    objective = np.stack([one for _, one in swept])
    lowest, every = np.argmin(objective, axis=0), np.arange(len(grid))
    return np.stack([values for values, _ in swept])[lowest, every], objective[lowest, every]


def _sweep(
    begin: FloatArray, best: FitResult, data: Data, name: str, grid: FloatArray, told: Callable[[], None]
) -> tuple[FloatArray, FloatArray]:
    """Parameters (g, k) and objective (g,) of refits outwards from the parameters `begin` (k,) and back."""
    law, centres = best.law, best.law.centres(data.prepared)
    place = parameter_names(law).index(name)
    middle = int(np.argmin(np.abs(np.log(grid / begin[place]))))
    values, objective = np.tile(begin, (len(grid), 1)), np.full(len(grid), np.inf)
    level = np.full(len(grid), np.nan)
    outwards = [(i, max(i - 1, middle)) for i in range(middle, len(grid))]
    outwards += [(i, i + 1) for i in range(middle - 1, -1, -1)]
    back = [(i, i + 1) for i in range(len(grid) - 2, middle - 1, -1)] + [(i, i - 1) for i in range(1, middle + 1)]
    for here, neighbour in [*outwards, *back]:
        held = Coordinates(law, centres, {**best.fixed, name: float(grid[here])})
        start = values[neighbour].copy()
        start[place] = grid[here]
        start, found = project(law, start, data, held)
        if not abs(found - level[here]) <= _SAME * level[here]:
            end = descend(law, start, data, held, deltas=(_WIDER * best.huber, best.huber), tolerance=1e-9)
            if end.objective < objective[here]:
                values[here], objective[here], level[here] = end.values, end.objective, found
        told()
    return values, objective


def _errors(law: Law[Any], values: FloatArray, rows: Data) -> list[float]:
    """Root mean square error of each run, in loss."""
    return [
        float(np.sqrt(np.mean((law.evaluate(values, one, gradient=False)[0] - loss) ** 2)))
        for one, loss in zip(rows.prepared, rows.losses, strict=True)
    ]


def _exponent(law: Law[Any]) -> str:
    names = parameter_names(law)
    for name in _MEMORY:
        if name in names:
            return name
    raise InputError(
        f"{law.name} has no free memory exponent {' or '.join(_MEMORY)}; profile forcing-memory, fsl, lr-fsl or "
        f"elr-fsl without q_memory"
    )


def _checked(law: Law[Any], q_memory: object, fixed: dict[str, float]) -> FloatArray:
    name = _exponent(law)
    if name in fixed:
        raise InputError(f"fixed must leave {name} free: it is what the profile holds")
    grid = finite_vector("q_memory", q_memory, least=0.0, strict=True)
    if len(grid) < 3:
        raise InputError(f"q_memory must hold at least 3 values, got {len(grid)}; a minimum needs two neighbours")
    require_entries("q_memory", grid[1:], np.diff(grid) > 0.0, "increasing")
    bounds = law.parameters[parameter_names(law).index(name)]
    inside = (grid >= bounds.low) & (grid <= bounds.high)
    require_entries("q_memory", grid, inside, f"in the bounds {bounds.low:g} to {bounds.high:g} of {name}")
    return grid


def _require_law(best: FitResult, law: Law[Any]) -> None:
    """Refuse a free fit of another law; units that the law leaves open are those of the fit."""
    own = law_record(best.law)
    other = {name: value for name, value in law_record(law).items() if value is not None and own.get(name) != value}
    if other:
        name, value = next(iter(other.items()))
        raise InputError(f"free must be a fit of the law, which has {name} {value}, got {own.get(name)}; leave it out")


def _same_data(best: FitResult, runs: Sequence[Run]) -> Data:
    """The prepared rows of the free fit, checked to be those of these runs."""
    rows = [windowed(run, best.window, best.law)[1] for run in runs]
    if best.data is None:
        raise InputError("free was read from a file and holds no rows to refit; leave it out")
    same = len(rows) == len(best.data.losses) and all(map(np.array_equal, rows, best.data.losses))
    if not same:
        raise InputError("free must be a fit of fit_runs, got one of other runs; leave it out")
    return best.data
