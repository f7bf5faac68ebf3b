"""What the design of a schedule is asked for, and the named schedules that it has to beat."""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from rfsim.checks import (
    InputError,
    finite_number,
    finite_vector,
    positive_number,
    require_entries,
    require_memory,
    whole_number,
)
from rfsim.logs import NormModel, Run
from rfsim.schedules import from_arrays, from_spec
from rfsim.surrogates.design_search import Layout, block_means, layout
from rfsim.surrogates.laws import Law, values_of
from rfsim.surrogates.result import FitResult
from rfsim.surrogates.run_record import as_run, norm_for
from rfsim.surrogates.sensitivity import final_loss_and_slope

_SINGLE = 100_000  # up to so many updates a layout can hold each of them
_DECAYS = (0.1, 0.2, 0.4)
_LOWEST_PEAK = 1e-3  # over the largest lr, of the named schedules


class Task(NamedTuple):
    """N steps with batch (N,) under a law, warm-up steps, bounds of the lr, and the last lr if it is fixed.

    norm_model : of the norm of every step, for a law in the effective lr.
    """

    law: Law[Any]
    values: np.ndarray
    steps: int
    batch: np.ndarray
    warmup: int
    low: float
    high: float
    end: float | None
    norm_model: NormModel | None = None

    def run(self, lr: np.ndarray) -> Run:
        """A run of this lr with a row after the last step, with norms for a law in the effective lr."""
        return as_run(from_arrays(lr, self.batch), [self.steps], norm=self.norm_model)

    def loss(self, lr: np.ndarray) -> float:
        """Loss of the law after the last step, from the lr of every step; infinite if that is 0, where laws are not."""
        if not lr.any():
            return float("inf")
        return float(self.law.evaluate(self.values, self.law.prepare(self.run(lr)), gradient=False)[0][0])

    def slope(self, mean: np.ndarray, laid: Layout) -> tuple[float, np.ndarray]:
        """Loss by blocks, from their mean lr (n,), and its derivative in these."""
        return final_loss_and_slope(self.law, self.values, mean, laid.updates, laid.batch, self.norm_model)

    def clean(self, lr: np.ndarray) -> np.ndarray:
        """The lr with rounding taken out: within the bounds and never rising from the end of the warm-up on."""
        exact = np.array(lr, dtype=np.float64)
        exact[self.warmup :] = np.minimum.accumulate(np.clip(exact[self.warmup :], self.low, self.high))
        if self.end is not None:
            exact[-1] = self.end
        return exact

    def between(self, places: np.ndarray, levels: np.ndarray, *, linear: bool) -> np.ndarray:
        """The lr of every step from its levels at knots, with the warm-up before."""
        step = np.arange(self.steps)
        if linear:
            lr = np.interp(step, places, levels)
        else:
            lr = levels[np.maximum(np.searchsorted(places, step, side="right") - 1, 0)]
        lr[: self.warmup] *= np.arange(1, self.warmup + 1) / max(self.warmup, 1)
        return self.clean(lr)

    def layout(self, places: np.ndarray, *, linear: bool = True, every: bool = False) -> Layout:
        """Blocks for the search; every update is one if `every` and there are not too many."""
        fine = {"resolution": float(self.steps)} if every and self.steps <= _SINGLE else {}
        return layout(self.steps, self.warmup, self.batch, places, linear=linear, **fine)


class _Shape(NamedTuple):
    """A named schedule with its options, and the lr that it ends at (None: its own)."""

    name: str
    options: tuple[str, ...] = ()
    end: float | None = None

    def spec(self, peak: float, warmup: int) -> str:
        options = list(self.options)
        options += [f"to={self.end / peak:.6g}"] if self.end is not None else []
        options += [f"warmup={warmup}"] if warmup else []
        return self.name + (":" if options else "") + ",".join(options)


def named_schedules(task: Task) -> dict[str, np.ndarray]:
    """The lr (N,) of named schedules within the bounds, by SPEC, with peak `high`.

    Constant, cosine, linear, exponential, 8-1-1, and WSD with decays over a tenth, a fifth and two fifths, down to the
    lowest lr allowed, and to a tenth of the peak where that is higher; or to the end that is fixed. A shape whose loss
    falls with its peak is there a second time, "at lr" its best peak.

    Raises
    ------
    InputError : if the lr is 0 in all of them.
    """
    found = {}
    whole = task.layout(np.array([task.warmup]), linear=False)
    for shape in _shapes(task):
        try:
            lr = _lr(shape, task.high, task)
        except InputError:  # a decay that does not fit behind the warm-up
            continue
        if not lr.any():  # a single step that is the end of a decay to 0
            continue
        found[shape.spec(task.high, task.warmup)] = lr
        peak = _best_peak(shape, task, whole)
        if peak is not None:
            found[f"{shape.spec(peak, task.warmup)} at lr {peak:.4g}"] = _lr(shape, peak, task)
    if not found:
        raise InputError(f"end is {task.end}, and the schedule has no other step after its warm-up; raise steps or end")
    return found


def _shapes(task: Task) -> list[_Shape]:
    tenth = 0.1 * task.high
    if task.end is not None:
        ends, shapes = [task.end], []
    else:
        ends = [task.low, tenth] if task.low < tenth else [task.low]
        shapes = [_Shape("constant"), *([_Shape("8-1-1")] if task.low <= tenth else [])]
    for end in ends:
        shapes += [_Shape("cosine", (), end), _Shape("linear", (), end)]
        shapes += [
            _Shape("wsd", (f"decay={part}", f"shape={shape}"), end)
            for part in _DECAYS
            for shape in ("linear", "sqrt", "exp")
            if end > 0.0 or shape != "exp"
        ]
        shapes += [_Shape("exponential", (), end)] if end > 0.0 else []
    return shapes


def _lr(shape: _Shape, peak: float, task: Task) -> np.ndarray:
    made = from_spec(shape.spec(peak, task.warmup), steps=task.steps, lr=peak, batch=1.0)
    return task.clean(np.asarray(made.lr))


def _best_peak(shape: _Shape, task: Task, whole: Layout) -> float | None:
    """The peak below the largest lr with the lowest loss, or None if a lower peak does not lower the loss."""
    own_end = 10.0 * task.low if shape.name == "8-1-1" else 0.0  # it ends at a tenth of its peak
    lowest = max(_LOWEST_PEAK * task.high, task.low, task.end or 0.0, shape.end or 0.0, own_end)

    def at(log_peak: float) -> tuple[float, float]:
        mean = block_means(_lr(shape, float(np.exp(log_peak)), task), whole)
        loss, slope = task.slope(mean, whole)
        return loss, float(slope @ mean)

    top = float(np.log(task.high))
    bottom = float(np.log(lowest)) if lowest > 0.0 else top
    if not bottom < top or at(top)[1] <= 0.0:
        return None
    best = minimize_scalar(lambda x: at(x)[0], bounds=(bottom, top), method="bounded", options={"xatol": 1e-3})
    return float(f"{np.exp(best.x):.4g}")


def read_task(
    fit: FitResult | tuple[Law[Any], object],
    steps: int,
    *,
    lr_max: float | None,
    lr_min: float,
    batch: object,
    warmup: int | None,
    end: float | None,
    norm: object,
) -> Task:
    """The task of the arguments of `design`, checked; what is None is that of the fitted runs.

    Raises
    ------
    InputError : as `design`.
    """
    if isinstance(fit, FitResult):
        law, values = fit.law, fit.values
    elif isinstance(fit, tuple) and len(fit) == 2:
        law, values = fit[0], values_of(fit[0], fit[1])
    else:
        raise InputError(f"fit must be a FitResult or (law, values), got {type(fit).__name__}; use fit or law")
    runs = fit.runs if isinstance(fit, FitResult) else ()
    number = whole_number("steps", steps)
    require_memory(f"the design of a schedule of {number} steps", 64.0 * number, "lower steps")
    if warmup is None:
        known = {run.warmup for run in runs} or {0}
        if len(known) > 1:
            raise InputError("warmup is missing: the fitted runs have different ones; give the steps, possibly 0")
        warmup = known.pop()
    up = whole_number("warmup", warmup, least=0)
    if up >= number:
        raise InputError(f"warmup must be shorter than the {number} steps, got {up}; lower it or raise steps")
    if lr_max is None:
        lr_max = max((run.lr for run in runs if np.isfinite(run.lr)), default=None)
        if lr_max is None:
            raise InputError("lr_max is missing and the fit does not say which lr was run; give the largest lr allowed")
    high, low = positive_number("lr_max", lr_max), finite_number("lr_min", lr_min)
    last = None if end is None else finite_number("end", end)
    if not 0.0 <= low <= high:
        raise InputError(f"lr_min must lie between 0 and lr_max = {high:g}, got {low:g}")
    if last is not None and not low <= last <= high:
        raise InputError(f"end must lie between lr_min = {low:g} and lr_max = {high:g}, got {last:g}")
    if last == 0.0 and number == up + 1:
        raise InputError("end is 0.0, and the schedule has no other step after its warm-up; raise steps or end")
    if batch is None:
        batch = next((run.batch for run in runs if np.isfinite(run.batch)), 1.0)
    vector = finite_vector("batch", np.atleast_1d(np.asarray(batch)), least=0.0, strict=True)
    if len(vector) not in (1, number):
        raise InputError(f"batch must be one number or one for each of the {number} steps, got {len(vector)}")
    sizes = np.broadcast_to(vector, (number,))
    model = norm_for(law, norm, runs)
    if model is not None and not isinstance(model, NormModel):
        raise InputError(f"norm of a design must be a NormModel, got {type(model).__name__}: it has to follow the lr")
    if model is not None and high * model.weight_decay >= 1.0:
        raise InputError(f"lr_max times weight_decay must be below 1, got {high * model.weight_decay:g}; lower lr_max")
    return Task(law, values, number, sizes, up, low if last is None else last, high, last, model)


def checked_places(places: object, task: Task, stages: int | None) -> np.ndarray:
    """Steps of knots or first steps of stages as given, or InputError."""
    vector = finite_vector("places", places, least=0.0)
    require_entries("places", vector, vector == np.round(vector), "whole numbers")
    require_entries("places", vector[1:], np.diff(vector) > 0.0, "strictly increasing")
    if vector[0] != task.warmup or vector[-1] >= task.steps:
        raise InputError(
            f"places must begin at the end of the warm-up, {task.warmup}, and lie before {task.steps}, got "
            f"{vector[0]:g} to {vector[-1]:g}"
        )
    if stages is None and vector[-1] != task.steps - 1:
        raise InputError(f"places of knots must end at the last step, {task.steps - 1}, got {vector[-1]:g}")
    if stages is not None and stages != len(vector):
        raise InputError(f"places must hold one first step for each of the {stages} stages, got {len(vector)}")
    return vector.astype(np.int64)
