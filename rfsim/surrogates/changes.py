"""What the laws in the learning rate take from a run: its observed steps, its clock, and the changes of its lr."""

from collections.abc import Sequence

import numpy as np

from rfsim.checks import InputError
from rfsim.logs import Run


def learning_rate(run: Run) -> np.ndarray:
    """Learning rate of every step (N,)."""
    return np.asarray(run.schedule.lr, dtype=np.float64)


def effective_rate(run: Run, law: str) -> np.ndarray:
    """Effective learning rate, lr over the norm that the run holds, of every step (N,).

    Raises
    ------
    InputError : if the run has no norm.
    """
    if run.norm is None:
        raise InputError(
            f"{law} needs the parameter or update norm of every step, and {run.name} has none; give the run a norm (a "
            f'column, or norm="weight-decay" for a log whose configuration says it), or use the law in the lr'
        )
    return learning_rate(run) / np.asarray(run.norm, dtype=np.float64)


def largest_lr(runs: Sequence[Run]) -> float:
    """The largest learning rate of the runs, the natural unit.

    Raises
    ------
    InputError : if no run has a positive lr.
    """
    largest = max((float(learning_rate(run).max(initial=0.0)) for run in runs), default=0.0)
    if largest <= 0.0:
        raise InputError("runs must have a step with a positive lr, got 0 everywhere; give the schedule that was run")
    return largest


def observed_steps(run: Run, at: np.ndarray | None, *, first: int = 0) -> np.ndarray:
    """Whole numbers of updates (m,) before each observation: the rows of the run, or the steps `at`.

    Raises
    ------
    InputError : for steps before `first` or after the end of the schedule.
    """
    steps = np.asarray(run.step if at is None else at, dtype=np.float64)
    index = steps.astype(np.int64)
    wrong = (index != steps) | (index < first) | (index > run.schedule.steps)
    if wrong.any():
        raise InputError(
            f"observed steps of {run.name} must be whole numbers from {first} to {run.schedule.steps}, got "
            f"{steps[wrong][0]:g}; a power of the clock is infinite where the clock is 0: leave such rows out"
        )
    return index


def moving_clock(clock: np.ndarray, run: Run) -> np.ndarray:
    """The clock at the observations (m,), checked to be above 0.

    Raises
    ------
    InputError : if the lr is 0 at all steps before an observation.
    """
    if (clock <= 0.0).any():
        raise InputError(f"lr of {run.name} must be positive at some step before the first row; leave earlier rows out")
    return clock


def lr_drops(lr: np.ndarray, *, warmup: bool, first: bool = True) -> np.ndarray:
    """Fall of the learning rate at the start of each step, eta_{j-1} - eta_j (N,); a rise is negative.

    Parameters
    ----------
    lr : (N,) learning rates.
    warmup : whether the rises of the warm-up count: those up to the step at which the lr first stops rising.
    first : whether the rise from 0 to the lr of step 0 counts.
    """
    drop = -np.diff(lr, prepend=0.0)
    if not warmup:
        stops = np.flatnonzero((drop >= 0.0) & (np.cumsum(np.abs(lr)) > 0.0))
        drop[: int(stops[0]) if stops.size else len(drop)] = 0.0
    if not first:
        drop[:1] = 0.0
    return drop
