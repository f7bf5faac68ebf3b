"""A schedule cut into stretches: what one call of a compiled kernel runs, always of the same shape.

Every stretch has room for `STEPS` steps and `RECORDS` records, whatever the horizon, so no horizon compiles anew.
Kernels run only `length` steps of it (rounded up as they like: the steps beyond have lr 0 and change nothing).
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np

from rfsim.checks import InputError
from rfsim.precision import jnp
from rfsim.schedules import Array, Schedule

STEPS = 256
RECORDS = 32


class Stretch(NamedTuple):
    """Steps first..first+length-1 of a schedule, and which states among them are recorded.

    lr, batch : (STEPS,) padded with 0; record : (STEPS + 1,) whether the state after that many steps is wanted;
    place : (RECORDS,) the same as positions, padded with 0.
    """

    first: Array
    length: Array
    lr: Array
    batch: Array
    record: Array
    place: Array


def check_batches(schedule: Schedule) -> None:
    """Raise InputError unless every batch is a whole number of samples or infinite."""
    batch = np.asarray(schedule.batch)
    wrong = np.isfinite(batch) & (batch != np.floor(batch))
    if wrong.any():
        step = int(np.argmax(wrong))
        raise InputError(
            f"batch must be a whole number of samples or inf in a simulation, got {batch[step]:g} at step {step}; "
            f"round it (np.ceil), or use the exact risk, which takes fractions"
        )


def stretches(schedule: Schedule, steps: np.ndarray) -> Iterator[tuple[Stretch, slice]]:
    """Yield the stretches up to the last recorded step, each with the slice of `steps` that it records.

    A state on a boundary is recorded by the stretch that ends there; step 0 by the first stretch.
    """
    lr, batch = np.asarray(schedule.lr), np.asarray(schedule.batch)
    start, done, last = 0, 0, int(steps[-1])
    while done < len(steps):
        stop = min(start + STEPS, last)
        after = min(done + RECORDS, len(steps))
        if after < len(steps) and steps[after] <= stop:
            stop = int(steps[after - 1])  # the records are full: continue from the last one
        after = int(np.searchsorted(steps, stop, side="right"))
        here = steps[done:after] - start
        record = np.zeros(STEPS + 1, dtype=bool)
        record[here] = True
        pad = (0, STEPS - (stop - start))
        stretch = Stretch(
            np.array(start, dtype=np.uint32),
            np.array(stop - start, dtype=np.int32),
            np.pad(lr[start:stop], pad),
            np.pad(batch[start:stop], pad),
            record,
            np.pad(here, (0, RECORDS - len(here))).astype(np.int32),
        )
        yield stretch, slice(done, after)
        start, done = stop, after


def risk_or_inf(risk: jax.Array) -> jax.Array:
    """The risk, or inf where it has left the float64 range."""
    return jnp.where(jnp.isfinite(risk), risk, jnp.inf)
