"""The schedule of a run that the caller gives: a Schedule, a SPEC text, or a CSV file."""

from pathlib import Path

import numpy as np

from rfsim.checks import FloatArray, InputError
from rfsim.logs.reconstruct import Rows
from rfsim.schedules.files import read_schedule
from rfsim.schedules.record import Schedule
from rfsim.schedules.shapes import warmed
from rfsim.schedules.spec import SHAPES, from_spec, spec_warmup


def is_spec(given: Schedule | str | Path) -> bool:
    """True for a SPEC text: it says nothing of lr and batch; a Schedule and a file have both for every step."""
    return not isinstance(given, Schedule) and str(given).partition(":")[0] in SHAPES


def from_given(
    given: Schedule | str | Path, horizon: int, *, peak: float | None, warmup: int, rows: Rows
) -> tuple[Schedule, list[str], int]:
    """The schedule that the caller gave, what was found, and the steps of its warm-up.

    A SPEC takes the peak of the log, ends at the last row of the loss and has the warm-up that it says, or else
    `warmup` steps of one. A Schedule and a file have every step: there `warmup` says how many of them are the warm-up,
    and changes none. Without it they are those that rise, each above the one before, up to the largest lr.

    Raises
    ------
    InputError : for a text that is neither, a SPEC without a known peak, a schedule that ends before the last row, or a
        warm-up that is longer than the schedule or is said twice.
    """
    if isinstance(given, Schedule):
        schedule, source = given, "the schedule that was given"
    elif is_spec(given):
        text = str(given)
        if peak is None:
            raise InputError(f"schedule {text!r} needs a peak lr and the log has none; give lr=NUMBER, or a CSV file")
        schedule, source = from_spec(text, steps=horizon, lr=peak, batch=1.0), f"{text} with peak {peak:g}"
        own = spec_warmup(text, horizon)
        if own is not None and warmup:
            raise InputError(f"warmup is in the schedule {text} and is given as {warmup} too; give one of them")
        if own is None and warmup:
            schedule = warmed(schedule, float(warmup))
        warmup = own or warmup
    elif Path(given).suffix or Path(given).exists():
        schedule, source = read_schedule(given), str(given)
    else:
        raise InputError(f"schedule {str(given)!r} is neither a file nor one of {', '.join(SHAPES)}")
    if schedule.steps < horizon:
        raise InputError(
            f"schedule must reach the last row of the loss at step {horizon}, {source} has {schedule.steps} steps; "
            f"extend it or cut the log"
        )
    lr = np.asarray(schedule.lr)
    inside = rows.step < lr.size
    line = f"lr of every step from {source}"
    if inside.any():
        apart = np.abs(lr[rows.step[inside].astype(int)] - rows.lr[inside])
        worst = rows.step[inside][apart.argmax()]
        line += f"; largest deviation from {inside.sum()} logged rows {apart.max():.2g} at step {worst:g}"
    if is_spec(given):
        return schedule, [line], warmup
    if warmup > schedule.steps:
        raise InputError(f"warmup says that {warmup} steps of {source} rise, and it has {schedule.steps}; give fewer")
    if warmup:
        told = f"the first {warmup} steps of {source} are its warm-up, as was said: no lr is changed"
        return schedule, [line, told], warmup
    up = rising_steps(lr)
    if up == 0:
        return schedule, [line], 0
    return schedule, [line, f"the lr rises over the first {up} steps of {source}: taken for its warm-up"], up


def rising_steps(lr: FloatArray) -> int:
    """Steps of lr (N,) up to its largest, if each is above the one before and others follow; else 0."""
    top = int(lr.argmax())
    return top + 1 if 0 < top < lr.size - 1 and (np.diff(lr[: top + 1]) > 0.0).all() else 0
