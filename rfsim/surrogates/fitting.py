"""Fit a law to runs: many starts, one optimum, and what the data say about it."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from rfsim.checks import InputError, RunError, finite_number, one_of, positive_number
from rfsim.logs import Run
from rfsim.schedules import intrinsic_time
from rfsim.surrogates.fit_file import WINDOWS
from rfsim.surrogates.laws import Law, Rated, parameter_names
from rfsim.surrogates.objective import Coordinates, Data, Minimum, descend, residuals
from rfsim.surrogates.objective import huber as rho
from rfsim.surrogates.projection import project
from rfsim.surrogates.result import FitResult
from rfsim.surrogates.run_record import RunRecord
from rfsim.surrogates.uncertainty import FitWarning, Spread, spread, student_width

HUBER = 1e-3  # width of Huber's loss on log residuals
_WIDER = 10.0  # the descent passes through this multiple of the width
_SAME = 1e-6  # objectives closer than this, relative, are one optimum
_EXACT = 1e-6  # so are those of residuals below this multiple of the width: the law goes through the rows
_CLOSE = 1.01  # ends within this factor of the best are followed until they settle
_PATIENCE = 5000  # evaluations until then, at most: a valley along which the data say little is long
_LEAST = 1e-16  # smaller widths of Huber's loss, and losses, leave the range of the arithmetic


def fit(
    law: Law[Any],
    runs: Sequence[Run] | Run,
    *,
    window: str = "all",
    huber: float = HUBER,
    fixed: dict[str, float] | None = None,
    starts: object = None,
    progress: Callable[[int, int], None] | None = None,
) -> FitResult:
    """Fit a law to runs by Huber's loss on log residuals, log L_model - log L_observed, summed over all rows.

    From every start the amplitudes are eliminated and the other parameters brought near the optimum by least squares
    (`project`); from there all parameters descend with analytic gradients (`descend`). The result says what share of
    the starts reach the best optimum.

    Parameters
    ----------
    law : for example `law("forcing-memory")`; its units are taken from the runs and stored.
    runs : one or more runs.
    window : "all" rows, or "last-decade": from the last row whose time on the clock of the
        law (the sum of its rate) is at most a tenth of the run's.
    huber : width of Huber's loss, in log loss.
    fixed : parameters to hold, name -> value. If these are all, the law is evaluated there and the covariance is 0.
    starts : (s, k) values of all parameters, instead of those of the law.
    progress : called with starts done and starts in all.

    Raises
    ------
    InputError : without runs or for something else in their place, with no more rows than free parameters, for
        unknown parameters or windows, or starts that are not finite.
    RunError : if no start leads anywhere finite, or the law is not finite at parameters that are all given.

    Source: theory, section 7.6.
    """
    chosen = list(runs) if isinstance(runs, Iterable) else [runs]
    for one in chosen:
        if not isinstance(one, Run):
            raise InputError(
                f"runs must be a run or several, as rfsim.logs reads them, got {type(one).__name__}; final losses at "
                f"(N, D) go to fit_points"
            )
    if not chosen:
        raise InputError("runs is empty; give at least one run to fit")
    if not hasattr(law, "evaluate"):
        raise InputError(f"law must be a law, got {law!r}; make one by its name, such as law('forcing-memory')")
    one_of("window", window, WINDOWS)
    if positive_number("huber", huber) < _LEAST:
        raise InputError(f"huber must be at least {_LEAST:g}, below the rounding of a log loss, got {huber:g}")
    for run in chosen:
        if not _LEAST < run.loss.min() <= run.loss.max() < 1.0 / _LEAST:
            raise InputError(
                f"loss of {run.name} must lie between {_LEAST:g} and {1.0 / _LEAST:g}, got {run.loss.min():g} to "
                f"{run.loss.max():g}; give the loss in nats"
            )
    held = _checked_fixed(law, fixed or {})
    law = law.calibrated(chosen)
    rows = [windowed(run, window, law) for run in chosen]
    data = Data(
        tuple(law.prepare(run, steps) for run, (steps, _) in zip(chosen, rows, strict=True)),
        tuple(losses for _, losses in rows),
    )
    coordinates = Coordinates(law, law.centres(data.prepared), held)
    total = sum(len(one) for one in data.losses)
    free = int(coordinates.free.sum())
    if not free and starts is not None:
        raise InputError(f"starts are for a descent, and fixed names all parameters of {law.name}; leave them out")
    if total <= free:
        raise InputError(f"runs hold {total} rows but the law has {free} free parameters; give more rows")
    if free:
        begin = (
            law.starts(data.prepared, data.losses) if starts is None else _checked_starts(starts, len(law.parameters))
        )
        best, share, others = _multistart(law, begin, data, coordinates, huber, progress)
    else:
        begin = coordinates.fixed[None]
        best, share, others = _evaluated(law, coordinates.fixed, data, huber), 1.0, []
    found = spread(law, best.values, data, coordinates, huber)
    records = tuple(
        _record(name, run, steps, losses, law.evaluate(best.values, one, gradient=False)[0])
        for name, run, (steps, losses), one in zip(_names(chosen), chosen, rows, data.prepared, strict=True)
    )
    result = FitResult(
        law=law,
        values=best.values,
        spread=found,
        objective=best.objective,
        huber=huber,
        window=window,
        fixed=held,
        starts=len(begin),
        share=share,
        converged=best.converged,
        runs=records,
        rival=_rival(best, others, found),
        data=data,
        sources=tuple(chosen),
    )
    for note in result.notes():
        warnings.warn(note, FitWarning, stacklevel=2)
    return result


def _evaluated(law: Law[Any], values: np.ndarray, data: Data, delta: float) -> Minimum:
    """The law at parameters that are all given, as the end of a descent that went nowhere."""
    with np.errstate(all="ignore"):
        losses = np.concatenate([law.evaluate(values, one, gradient=False)[0] for one in data.prepared])
    if not (np.isfinite(losses) & (losses > 0.0)).all():
        raise RunError(f"{law.name} has losses that are not above 0 at the given parameters; check them and the lr")
    return Minimum(values, float(rho(residuals(law, values, data), delta).sum()), 1, True)


def _multistart(
    law: Law[Any],
    begin: np.ndarray,
    data: Data,
    coordinates: Coordinates,
    delta: float,
    progress: Callable[[int, int], None] | None,
) -> tuple[Minimum, float, list[Minimum]]:
    """The best of all descents, the share of starts that end there, and the other ends, the lowest first.

    Starts that meet on the way descend once; ends near the best that have not settled go on.
    """
    basins: list[tuple[float, np.ndarray, int]] = []
    for number, start in enumerate(begin):
        values, level = project(law, start, data, coordinates)
        if np.isfinite(level):
            for place, (known, at, count) in enumerate(basins):
                if abs(level - known) <= _SAME * known:
                    basins[place] = (known, at, count + 1)
                    break
            else:
                basins.append((level, values, 1))
        if progress is not None:
            progress(number + 1, len(begin))
    ends = []
    for _, values, count in sorted(basins, key=lambda one: one[0]):
        end = descend(law, values, data, coordinates, deltas=(_WIDER * delta, delta))
        if np.isfinite(end.objective):
            ends.append((end, count))
    ends = [(end, count) for end, count in ends if _near(law, end, data)]
    if not ends:
        raise RunError("no start leads to a finite loss; check that the losses and learning rates are as meant")
    bound = _CLOSE * min(end.objective for end, _ in ends)
    for place, (end, count) in enumerate(ends):
        if not end.converged and end.objective <= bound:
            settled = descend(law, end.values, data, coordinates, deltas=(delta,), evaluations=_PATIENCE)
            ends[place] = (settled if settled.objective <= end.objective else end, count)
    best = min((end for end, _ in ends), key=lambda end: end.objective)
    exact = sum(len(one) for one in data.losses) * (_EXACT * delta) ** 2
    level = best.objective * (1.0 + _SAME) + exact
    reached = sum(count for end, count in ends if end.objective <= level)
    others = sorted((end for end, _ in ends if end.objective > level), key=lambda end: end.objective)
    return best, reached / len(begin), others


def _near(law: Law[Any], end: Minimum, data: Data) -> bool:
    """False for an end whose losses are beyond all rows by e^50, as with units far off the lr."""
    with np.errstate(all="ignore"):
        return bool(np.abs(residuals(law, end.values, data)).max() < 50.0)


def _rival(best: Minimum, others: Sequence[Minimum], found: Spread) -> np.ndarray | None:
    """The lowest other optimum, if the data do not reject it at 95 %: its deviance is below the quantile."""
    if not others:
        return None
    deviance = found.scale * (others[0].objective - best.objective)
    return others[0].values if deviance < student_width(0.95, found.rows) ** 2 else None


def _names(runs: Sequence[Run]) -> list[str]:
    """Names of the runs, the second of a name numbered 2 and so on: results are kept by name."""
    found: list[str] = []
    for run in runs:
        name, number = run.name, 1
        while name in found:
            number += 1
            name = f"{run.name} ({number})"
        found.append(name)
    return found


def _record(name: str, run: Run, steps: np.ndarray, losses: np.ndarray, fitted: np.ndarray) -> RunRecord:
    """What the result keeps of a run."""
    lr, batch = np.asarray(run.schedule.lr), np.asarray(run.schedule.batch)
    clock = float(lr[: int(run.step[-1])].sum())
    first = float(batch[0]) if batch.size else float("nan")
    seen = lr[max(int(steps[0]), run.warmup) : int(steps[-1])]
    highest, lowest = float(lr.max(initial=0.0)), float(seen.min()) if seen.size else float("nan")
    norm = np.full(1, np.nan) if run.norm is None else np.asarray(run.norm)
    return RunRecord(
        name=name,
        step=steps,
        loss=losses,
        fitted=fitted,
        noise=run.noise,
        warmup=run.warmup,
        lr=highest,
        batch=first,
        intrinsic_time=clock,
        lowest_lr=lowest,
        effective_lr=float((lr / norm).max(initial=0.0)),
        norm_model=run.norm_model,
    )


def windowed(run: Run, window: str, law: Law[Any] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Steps and losses of the rows of a run that a window keeps.

    "last-decade" is counted on the clock of the law: the sum of its rate (the lr, or lr over norm), else of the lr.
    """
    if window == "all":
        return run.step, run.loss
    rate = law.rate(run) if isinstance(law, Rated) else np.asarray(run.schedule.lr)
    clock = intrinsic_time(rate)[run.step.astype(np.int64)]
    early = np.flatnonzero(clock <= 0.1 * clock[-1])
    first = int(early[-1]) if early.size else 0
    return run.step[first:], run.loss[first:]


def _checked_fixed(law: Law[Any], fixed: dict[str, float]) -> dict[str, float]:
    names = parameter_names(law)
    for name, given in fixed.items():
        if name not in names:
            raise InputError(f"fixed names {name!r}, which {law.name} does not have; allowed: {', '.join(names)}")
        value = finite_number(f"fixed {name}", given)
        bounds = law.parameters[names.index(name)]
        if not bounds.low <= value <= bounds.high:
            raise InputError(f"fixed {name} must lie in [{bounds.low:g}, {bounds.high:g}], got {value:g}")
    return {name: float(value) for name, value in fixed.items()}


def _checked_starts(starts: object, columns: int) -> np.ndarray:
    """Starts (s, k), at least one, all finite."""
    try:
        begin = np.atleast_2d(np.asarray(starts, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise InputError(f"starts must be an array of numbers, got {type(starts).__name__}") from error
    if begin.ndim != 2 or begin.shape[1] != columns or not len(begin):
        raise InputError(f"starts must be rows of {columns} parameters, got shape {begin.shape}; leave it out")
    if not np.isfinite(begin).all():
        raise InputError("starts must be finite everywhere; correct these entries")
    return begin
