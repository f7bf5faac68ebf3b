"""Design of a schedule from a fitted law: the non-increasing lr with the lowest predicted final loss."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rfsim.checks import InputError, whole_number
from rfsim.logs import NormModel
from rfsim.schedules import Schedule, from_arrays, write_schedule
from rfsim.surrogates.design_search import block_means, denser, evaluator, knots, settle, slack
from rfsim.surrogates.design_stages import staged
from rfsim.surrogates.design_task import Task, checked_places, named_schedules, read_task
from rfsim.surrogates.laws import Law
from rfsim.surrogates.result import FitResult
from rfsim.surrogates.uncertainty import root, student_width

_KNOTS, _MOST_KNOTS = 24, 250
_STARTS = 4  # named schedules from which the search begins
_STAGES, _MOST_STAGES = 3, 12  # of the start that falls within single steps
_ENOUGH = 1e-6  # knots are added until the loss falls by less than this share of it
_SUDDENLY = 1e-5  # share of the loss by which a fall within one step has to be better than a smooth one
_LEVEL = 0.95
_BEYOND = 1.02  # times the fitted horizon or lr, above which a design is an extrapolation
_SUDDEN = 0.2  # a fall within one step by this share of the peak is told


@dataclass(frozen=True, eq=False)
class Design:
    """A schedule and what a law expects of it.

    Attributes
    ----------
    schedule : lr and batch of every step.
    loss, loss_stderr : predicted loss after its last step, and its standard error from that of the parameters.
    baselines : predicted loss of named schedules with the same steps, batch, warm-up and bounds, by SPEC; a shape
        whose loss falls with its peak is there a second time, "at lr" its best peak.
    best : the baseline with the lowest loss.
    gain, gain_stderr : loss of that one less `loss`, >= 0 unless stages or places were given, and the standard error
        of this difference from the joint uncertainty of the parameters; NaN without a fit.
    slack : how much lower the law's loss can be, to first order, for another non-increasing lr chosen step by step.
    places : (k,) steps of the knots; between them the lr is a straight line, or constant in stages.
    notes : what a reader has to know before using the schedule, one line each.
    norm_model : by which the norms of all these schedules were computed; None for a law in the lr.
    """

    schedule: Schedule
    loss: float
    loss_stderr: float
    baselines: dict[str, float]
    best: str
    gain: float
    gain_stderr: float
    slack: float
    places: np.ndarray
    notes: tuple[str, ...]
    norm_model: NormModel | None = None

    def to_csv(self, path: str | Path) -> None:
        """Write the schedule as columns step,lr,batch, from which `rfsim.schedules.read_schedule` gets it back."""
        write_schedule(path, self.schedule)


def design(
    fit: FitResult | tuple[Law[Any], object],
    steps: int,
    *,
    lr_max: float | None = None,
    lr_min: float = 0.0,
    batch: object = None,
    warmup: int | None = None,
    end: float | None = None,
    stages: int | None = None,
    places: object = None,
    norm: object = None,
) -> Design:
    """Find the schedule with the lowest predicted final loss among all whose lr never rises after the warm-up.

    The warm-up is linear, (s + 1)/warmup of the first lr after it at step s; from there on lr_max >= lr >= lr_min.
    Steps and batch, and so the data, are fixed. The lr is a straight line between knots, which are added until the
    loss changes by less than a millionth of it. Descents with exact derivatives start from several named schedules,
    and from one of few constant stages, since some laws are lowest for a sudden fall. Unless stages or knots are
    given, the result is never worse than the best named schedule. The search sees a long schedule as blocks of steps,
    short near both ends; every reported loss is that of the law with all steps.

    Parameters
    ----------
    fit : a fit, or a law with units and its parameter values (array or mapping); then no errors are known.
    steps : N, with the warm-up.
    lr_max, lr_min : bounds of the lr; by default the largest lr of the fitted runs, and 0.
    batch : one number or (N,); default the first batch of the first fitted run, 1 without a fit.
    warmup : steps of the linear warm-up, fewer than N; default that of the fitted runs, 0 without a fit.
    end : the lr of the last step, from lr_min to lr_max, which no earlier one is below; default free.
    stages : if given, the lr is constant on this many stages, whose first steps are sought too.
    places : first steps of the stages, or steps of the knots if `stages` is not given: increasing, from `warmup` on,
        knots to N - 1. Default: sought.
    norm : for laws in the effective lr, the `NormModel` by which the norm follows the lr; default the one on which all
        fitted runs agree. Designs and named schedules have the norms of their own lr, and derivatives go through them.

    Raises
    ------
    InputError : for bounds, steps or knots that cannot be, for laws without a derivative in the lr, and for those in
        the effective lr without a model of the norm.

    Source: theory, section 7 (the laws); the search is rfsim's own.
    """
    task = read_task(fit, steps, lr_max=lr_max, lr_min=lr_min, batch=batch, warmup=warmup, end=end, norm=norm)
    count = None if stages is None else whole_number("stages", stages)
    if count is not None and count > task.steps - task.warmup:
        raise InputError(f"stages must be at most the {task.steps - task.warmup} steps after the warm-up, got {count}")
    given = None if places is None else checked_places(places, task, count)
    named = named_schedules(task)
    losses = {name: task.loss(lr) for name, lr in named.items()}
    ranked = sorted(losses, key=lambda name: losses[name])
    starts = [named[name] for name in ranked[:_STARTS]]
    best = ranked[0]
    if given is not None:
        lr, used = _solved(task, given, starts, linear=count is None)[0], given
    elif count is not None:
        smooth = _solved(task, knots(task.steps, task.warmup, _KNOTS), starts)[0]
        lr, used = _in_stages(task, [smooth, *starts[:2]], count)
    else:
        found, used = _refined(task, starts)
        lr = min([named[best], *found], key=task.loss)
    loss = task.loss(lr)
    if not np.isfinite(loss):
        raise InputError(f"lr_min must be positive: under these values of {task.law.name} no training at all is best")
    result = fit if isinstance(fit, FitResult) else None
    error, gain_error = _errors(task, lr, named[best], result)
    told = [f"no schedule was found that is better than {best}, which is returned"] if lr is named[best] else []
    if losses[best] < loss:
        told.append(f"{best} is better by {loss - losses[best]:.2g}: stages or places given leave too little freedom")
    told += _notes(task, lr, loss, losses[best] - loss, gain_error, result)
    return Design(
        schedule=from_arrays(lr, task.batch),
        loss=loss,
        loss_stderr=error,
        baselines=losses,
        best=best,
        gain=losses[best] - loss,
        gain_stderr=gain_error,
        slack=_slack(task, lr),
        places=used,
        notes=tuple(told),
        norm_model=task.norm_model,
    )


def _solved(
    task: Task, places: np.ndarray, starts: list[np.ndarray], *, linear: bool = True, every: bool = False
) -> tuple[np.ndarray, float]:
    """The lr (N,) with the best levels at knots, from the levels of several schedules there, and its loss by blocks."""
    laid = task.layout(places, linear=linear, every=every)
    evaluate = evaluator(lambda mean: task.slope(mean, laid), laid, task.end)
    free = len(places) if task.end is None else len(places) - 1
    if free == 0:
        levels, loss = np.zeros(0), evaluate(np.zeros(0))[0]
    else:
        ends = [settle(evaluate, start[places[:free]], task.low, task.high) for start in starts]
        levels, loss = min(ends, key=lambda one: one[1])
    levels = levels if task.end is None else np.append(levels, task.end)
    return task.between(places, levels, linear=linear), loss


def _refined(task: Task, starts: list[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    """Solutions with more and more knots, the last one over every step, and their knots.

    Some laws are lowest for an lr that falls within one step, to which no smooth descent leads: a solution of few
    stages is tried too, and goes on in place of the smooth one where it is better by more than the tolerance; then
    twice as many stages are.
    """
    places = knots(task.steps, task.warmup, _KNOTS)
    start = _solved(task, places, starts)[0]
    found, coarse = [start], places
    places = denser(places)
    smooth, level = _solved(task, places, [start])
    guide, start, count = start, smooth, _STAGES
    while count <= min(_MOST_STAGES, task.steps - task.warmup):
        sudden, falls = _in_stages(task, [guide, start, *starts[:1]], count)
        beside = np.unique(np.concatenate([coarse, falls, np.maximum(falls - 1, task.warmup)]))
        jumping, other = _solved(task, beside, [sudden, guide])
        if not other < level - _SUDDENLY * abs(level):
            break
        start, places, level, count = jumping, beside, other, 2 * count
    last = np.inf
    while True:
        found.append(_solved(task, places, [start])[0])
        loss = task.loss(found[-1])
        if last - loss <= _ENOUGH * abs(loss) or len(places) >= min(_MOST_KNOTS, task.steps - task.warmup):
            break
        last, start, places = loss, found[-1], denser(places)
    found.append(_solved(task, places, [min(found, key=task.loss)], every=True)[0])
    return found, places


def _in_stages(task: Task, starts: list[np.ndarray], stages: int) -> tuple[np.ndarray, np.ndarray]:
    """The lr (N,) of constant stages, and their first steps; the first of `starts` says where the lr may fall."""

    def solve(first: np.ndarray, begin: list[np.ndarray]) -> tuple[np.ndarray, float]:
        return _solved(task, first, begin, linear=False)

    return staged(solve, starts[0], task.warmup, stages, starts[1:])


def _slack(task: Task, lr: np.ndarray) -> float:
    """First-order slack of a schedule whose every step is free."""
    every = np.arange(task.warmup, task.steps)
    laid = task.layout(every[:1], linear=False, every=True)
    mean = block_means(lr, laid)
    slope = task.slope(mean, laid)[1]
    late = laid.first >= task.warmup
    levels, by_level = mean[late], slope[late]
    if task.warmup:  # the first level moves the warm-up too
        by_level[0] += float(slope[~late] @ mean[~late]) / max(levels[0], 1e-300)
    if task.end is not None:
        levels, by_level = levels[:-1], by_level[:-1]
    return slack(levels, by_level, task.low, task.high) if len(levels) else 0.0


def _errors(task: Task, lr: np.ndarray, other: np.ndarray, fit: FitResult | None) -> tuple[float, float]:
    """Standard errors of the loss and of the gain over the other schedule, from samples or the covariance."""
    if fit is None:
        return float("nan"), float("nan")
    ready = [task.law.prepare(task.run(one)) for one in (lr, other)]
    if fit.samples is not None:
        drawn = np.array(
            [[task.law.evaluate(one, each, gradient=False)[0][0] for each in ready] for one in fit.samples]
        )
        return float(np.std(drawn[:, 0], ddof=1)), float(np.std(drawn[:, 1] - drawn[:, 0], ddof=1))
    slopes = []
    for each in ready:
        slope = task.law.evaluate(task.values, each)[1]
        assert slope is not None
        slopes.append(slope[0])
    error, gain_error = np.linalg.norm(
        np.stack([slopes[0], slopes[1] - slopes[0]]) @ root(fit.spread.covariance), axis=1
    )
    return float(error), float(gain_error)


def _notes(task: Task, lr: np.ndarray, loss: float, gain: float, gain_error: float, fit: FitResult | None) -> list[str]:
    told = []
    limit = task.law.parameters[0]
    if limit.name in ("L_0", "L_inf") and loss < task.values[0]:
        told.append(
            f"the loss {loss:.5g} is below {limit.name} = {task.values[0]:.5g}, the limit of the law, which does not "
            f"hold for such a schedule; raise lr_min or take another law"
        )
    fall = -np.diff(lr[task.warmup :], append=lr[-1])
    place = int(np.argmax(fall))
    if fall[place] > _SUDDEN * lr.max():
        told.append(
            f"the lr falls by {fall[place] / lr.max():.0%} of its peak within one step, after step "
            f"{task.warmup + place}: make sure that the fitted runs hold such falls"
        )
    if fit is None:
        return told
    half = student_width(_LEVEL, fit.spread.rows) * gain_error
    if 0.0 < gain < half:
        told.append(f"the gain {gain:.2g} is below its uncertainty {half:.2g} ({_LEVEL:.0%}): it may be none")
    noises = [run.noise * loss for run in fit.runs if np.isfinite(run.noise)]
    if noises and 0.0 < gain < max(noises):
        told.append(f"the gain {gain:.2g} is below the noise floor {max(noises):.2g} of the fitted logs")
    if 0.0 < gain < fit.scatter * loss:
        told.append(f"the gain {gain:.2g} is below the scatter {fit.scatter * loss:.2g} of the rows around the fit")
    longest, clock = max((run.intrinsic_time for run in fit.runs), default=np.nan), float(lr.sum())
    if clock > _BEYOND * longest:
        told.append(f"the schedule is {clock / longest:.3g} times as long as the fitted runs, in intrinsic time")
    last = max((float(run.step[-1]) for run in fit.runs), default=np.inf)
    if task.steps > _BEYOND * last:
        told.append(f"the {task.steps} steps are more than the {last:.0f} that were fitted: an extrapolation")
    peaks = [run.lr for run in fit.runs if np.isfinite(run.lr)]
    if peaks and not min(peaks) / _BEYOND <= lr.max() <= _BEYOND * max(peaks):
        told.append(
            f"the peak {lr.max():.4g} of the lr lies outside those of the fitted runs, {min(peaks):.4g} to "
            f"{max(peaks):.4g}: an extrapolation"
        )
    rates = [run.effective_lr for run in fit.runs if np.isfinite(run.effective_lr)]
    fastest = 0.0 if task.norm_model is None else float((lr / task.norm_model.norm(lr)).max())
    if rates and fastest > _BEYOND * max(rates):
        told.append(
            f"the effective lr rises to {fastest:.4g}, above the largest one fitted, {max(rates):.4g}: an extrapolation"
        )
    lows = [run.lowest_lr for run in fit.runs if np.isfinite(run.lowest_lr)]
    lowest = float(lr[task.warmup :].min())
    if lows and lowest < min(lows) / _BEYOND:
        told.append(f"the lr falls to {lowest:.4g}, below the lowest one fitted, {min(lows):.4g}: an extrapolation")
    return told + fit.notes()
