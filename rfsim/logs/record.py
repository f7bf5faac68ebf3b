"""The Run record: one training run as rows of (step, loss) and the schedule of all its steps."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from rfsim.checks import FloatArray, InputError, finite_vector, require_entries, same_length, whole_number
from rfsim.logs.norms import NormModel
from rfsim.schedules.record import Schedule


@dataclass(frozen=True, eq=False)
class Run:
    """One training run: losses at steps, and the schedule of every step.

    Attributes
    ----------
    name : what the run is called in tables and figures.
    step : (n,) whole numbers in float64, strictly increasing; the row of step k holds the loss after k updates.
    loss : (n,) losses > 0, in nats if the log has nats.
    schedule : lr and batch of all steps 0..N-1 with N >= step[-1], the warm-up and a parent's part included. The
        update from step k to k + 1 uses lr[k]. An lr of 0 is allowed.
    findings : one line for each thing that was found in the log and what was done.
    noise : noise floor of the log, the standard deviation of log loss about a local smooth curve; NaN if unknown.
    norm : (N,) parameter or update norm of every step, for the effective learning rate lr / norm, or None.
    norm_model : what `norm` follows from if it was modelled, and would follow from for another schedule; None for norms
        that were measured, and without norms.
    warmup : steps of a linear warm-up that were put in front or are known.
    known_as : other names of the run, such as the tracker's; `name` is the name of the file unless one was given.
    """

    name: str
    step: FloatArray
    loss: FloatArray
    schedule: Schedule
    findings: tuple[str, ...] = ()
    noise: float = math.nan
    norm: FloatArray | None = None
    warmup: int = 0
    known_as: tuple[str, ...] = ()
    norm_model: NormModel | None = None

    def part(self, first: float, last: float) -> "Run":
        """Return the run restricted to the rows with first <= step <= last; the schedule stays whole.

        Raises
        ------
        InputError : if no row lies there.
        """
        keep = (self.step >= first) & (self.step <= last)
        if not keep.any():
            raise InputError(
                f"first and last must enclose rows of {self.name}, got {first:g} and {last:g}; "
                f"its rows lie at steps {self.step[0]:g} to {self.step[-1]:g}"
            )
        return replace(self, step=self.step[keep], loss=self.loss[keep])

    def told(self, *findings: str) -> "Run":
        """Return the run with further findings, each one line."""
        return replace(self, findings=(*self.findings, *findings))

    def with_norm(self, norm: object) -> "Run":
        """Return the run with this norm of every step: (N,) positive, or a `NormModel` that makes it from the lr.

        Raises
        ------
        InputError : for another length, or values out of range.
        """
        lr = np.asarray(self.schedule.lr, dtype=np.float64)
        if isinstance(norm, NormModel):
            return replace(self, norm=norm.norm(lr), norm_model=norm)
        values = finite_vector("norm", norm, least=0.0, strict=True)
        same_length(norm=values, lr=lr)
        return replace(self, norm=values, norm_model=None)


def run(
    step: object,
    loss: object,
    schedule: Schedule,
    *,
    name: str = "run",
    norm: object = None,
    findings: Iterable[str] = (),
    warmup: int = 0,
    known_as: Iterable[str] = (),
) -> Run:
    """Run from arrays, checked; the noise floor is computed here.

    Parameters
    ----------
    step : (n,) whole numbers >= 0, strictly increasing; step k is after k updates.
    loss : (n,) losses > 0.
    schedule : lr and batch of all steps; at least step[-1] of them.
    norm : (N,) positive norms of all steps of the schedule, a `NormModel` by which they follow from the lr, or None.
    findings, warmup, known_as : see `Run`.

    Raises
    ------
    InputError : for arrays of other lengths or values, or a schedule that ends before the last row.
    """
    steps, losses = finite_vector("step", step, least=0.0), finite_vector("loss", loss, least=0.0, strict=True)
    same_length(step=steps, loss=losses)
    require_entries("step", steps, steps == np.round(steps), "whole numbers")
    require_entries("step", steps[1:], np.diff(steps) > 0.0, "strictly increasing")
    if not isinstance(schedule, Schedule):
        raise InputError(f"schedule must be a Schedule, got {type(schedule).__name__}; use rfsim.schedules")
    if schedule.steps < steps[-1]:
        raise InputError(
            f"schedule must cover all steps up to the last row at step {steps[-1]:g}, got {schedule.steps} steps; "
            f"extend it (Schedule.extended) or drop the rows after its end"
        )
    bare = Run(
        name=str(name),
        step=steps,
        loss=losses,
        schedule=Schedule(np.asarray(schedule.lr, dtype=float), np.asarray(schedule.batch, dtype=float)),
        findings=tuple(findings),
        noise=noise_floor(steps, losses),
        warmup=whole_number("warmup", warmup, least=0),
        known_as=tuple(known_as),
    )
    return bare if norm is None else bare.with_norm(norm)


def noise_floor(step: object, loss: object) -> float:
    """Standard deviation of log loss about a local smooth curve, from third differences of neighbouring rows.

    For four neighbouring rows at x_0..x_3 the divided difference sum_j c_j y_j, c_j = prod_{k != j} 1/(x_j - x_k), of
    y = log loss vanishes on parabolas; divided by |c| it has the standard deviation of the rows. The median of its
    absolute value over all rows, times 1.4826, ignores the few places where the loss turns quickly.

    It assumes noise that is independent from row to row and normal in the middle. A loss that was averaged over
    overlapping windows, or a curve that bends within four rows nearly everywhere, makes it too small or too large.

    Parameters
    ----------
    step : (n,) strictly increasing, not necessarily evenly spaced.
    loss : (n,) positive.

    Returns
    -------
    The standard deviation, in units of log loss; NaN with fewer than 8 rows.

    Raises
    ------
    InputError : for arrays of different length, steps that do not increase, or losses that are not positive.
    """
    x, values = finite_vector("step", step), finite_vector("loss", loss, least=0.0, strict=True)
    same_length(step=x, loss=values)
    require_entries("step", x[1:], np.diff(x) > 0.0, "strictly increasing")
    if x.size < 8:
        return math.nan
    y = np.log(values)
    rows = np.lib.stride_tricks.sliding_window_view(x, 4)
    width = rows[:, 3:] - rows[:, :1]
    place = (rows - rows[:, :1]) / width
    apart = place[:, :, None] - place[:, None, :] + np.eye(4)
    weight = 1.0 / apart.prod(axis=2)
    weight /= np.sqrt((weight**2).sum(axis=1, keepdims=True))
    difference = (weight * np.lib.stride_tricks.sliding_window_view(y, 4)).sum(axis=1)
    return float(1.4826 * np.median(np.abs(difference)))
