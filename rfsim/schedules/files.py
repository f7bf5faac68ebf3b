"""Schedules from elsewhere: functions of the step, and CSV files."""

from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

from rfsim.checks import InputError, positive_number, whole_number
from rfsim.precision import is_traced, jnp
from rfsim.provenance import write_text
from rfsim.schedules.record import Schedule, from_arrays
from rfsim.spectra import read_columns


def from_callable(steps: int, lr: Callable[[jax.Array], object] | float, batch: object = 1.0) -> Schedule:
    """Schedule from functions `step -> value` (optax schedules work as they are) or numbers, for steps 0..steps-1."""
    steps = whole_number("steps", steps, least=0)
    index = jnp.arange(steps)

    def values(name: str, source: object) -> object:
        if not callable(source):
            return np.full(steps, positive_number(name, source, allow_inf=name == "batch"))
        try:
            array = np.asarray(jax.vmap(source)(index), dtype=np.float64) if steps else np.zeros(0)
        except (TypeError, ValueError, IndexError, jax.errors.JAXTypeError):
            array = np.array([float(source(step)) for step in range(steps)])  # a plain Python function
        return array

    return from_arrays(values("lr", lr), values("batch", batch))


def read_schedule(path: str | Path) -> Schedule:
    """Read a schedule from a CSV file with columns `step,lr,batch`: steps 0..N-1, each once, in any order."""
    columns = read_columns(path, ("step", "lr", "batch"))
    step = columns["step"]
    order = np.argsort(step, kind="stable")
    expected = np.arange(len(step), dtype=np.float64)
    good = step[order] == expected
    if not good.all():
        row = int(np.argmin(good))
        raise InputError(
            f"column step of {path} must hold 0..{len(step) - 1}, each once; "
            f"got {step[order][row]:g} where {row} was expected"
        )
    return from_arrays(columns["lr"][order], columns["batch"][order])


def write_schedule(path: str | Path, schedule: Schedule) -> None:
    """Write a schedule to a CSV file with columns `step,lr,batch` from which `read_schedule` gets the same numbers.

    Raises
    ------
    InputError : for a schedule that is traced or has no steps.
    RunError : if the file cannot be written.
    """
    if is_traced(schedule):
        raise InputError("a traced schedule has no numbers to write; call this outside of jit, vmap and grad")
    if schedule.steps == 0:
        raise InputError("the schedule has no steps, and a file needs at least one row; give it steps")
    columns = np.asarray(schedule.lr).tolist(), np.asarray(schedule.batch).tolist()
    rows = (f"{step},{lr!r},{batch!r}" for step, (lr, batch) in enumerate(zip(*columns, strict=True)))
    write_text(path, "\n".join(["step,lr,batch", *rows]) + "\n")
