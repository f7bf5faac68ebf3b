"""Piecewise-constant schedules: stretches of steps that share one lr and one batch size."""

from dataclasses import dataclass

import jax
import numpy as np

from rfsim.checks import InputError, require_entries, same_length
from rfsim.precision import float64_array, is_traced
from rfsim.schedules import Schedule

_EXACT = 2.0**53  # whole numbers of steps beyond this are not exact in float64


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Stretches:
    """S stretches, one after the other.

    Attributes
    ----------
    lr : (S,) learning rates >= 0.
    batch : (S,) batch sizes > 0; `inf` is gradient descent, fractions are allowed.
    steps : (S,) whole numbers of steps >= 0, kept as float64 (up to 2^53 in all).
    """

    lr: np.ndarray
    batch: np.ndarray
    steps: np.ndarray

    @property
    def count(self) -> int:
        """Number of stretches S."""
        return int(self.lr.shape[0])

    @property
    def edges(self) -> np.ndarray:
        """Steps at which the stretches begin, and the last step: (S + 1,), starting with 0."""
        return np.concatenate([[0.0], np.cumsum(self.steps)])


def stretches(lr: object, batch: object, steps: object) -> Stretches:
    """Stretches from lr (S,), batch (S,) and steps (S,); a single number stands for all.

    Raises
    ------
    InputError : for entries out of range, steps that are not whole, unequal lengths, or more than 2^53 steps in all.
    """
    arrays = {
        "lr": float64_array("lr", lr),
        "batch": float64_array("batch", batch),
        "steps": float64_array("steps", steps),
    }
    if is_traced(*arrays.values()):
        raise InputError("stretches take NumPy numbers and cannot be traced by jit, vmap or grad; use a Schedule")
    length = max((array.shape[0] for array in arrays.values() if array.ndim == 1), default=1)
    for name, array in arrays.items():
        if array.ndim > 1:
            raise InputError(f"{name} must be a number or a one-dimensional array, got shape {array.shape}")
        arrays[name] = np.full(length, array) if array.ndim == 0 else np.asarray(array)
    same_length(**arrays)  # type: ignore[arg-type]
    rates, sizes, counts = (np.asarray(array) for array in arrays.values())
    require_entries("lr", rates, np.isfinite(rates) & (rates >= 0.0), "finite and not negative")
    require_entries("batch", sizes, sizes > 0.0, "positive")
    whole = np.isfinite(counts) & (counts >= 0.0) & (counts == np.floor(counts))
    require_entries("steps", counts, whole, "a whole number >= 0")
    if counts.sum() > _EXACT:
        raise InputError(f"steps add up to {counts.sum():.3g}, more than 2^53; shorten the stretches")
    return Stretches(rates, sizes, counts)


def from_schedule(schedule: Schedule) -> Stretches:
    """Run-length encoding of a schedule: neighbouring steps with the same lr and batch become one stretch."""
    if is_traced(schedule):
        raise InputError("a traced schedule has no run lengths; call this outside of jit, vmap and grad")
    lr, batch = np.asarray(schedule.lr, dtype=np.float64), np.asarray(schedule.batch, dtype=np.float64)
    if lr.size == 0:
        return Stretches(np.zeros(0), np.zeros(0), np.zeros(0))
    starts = np.flatnonzero(np.concatenate([[True], (np.diff(lr) != 0.0) | (batch[1:] != batch[:-1])]))
    return Stretches(lr[starts], batch[starts], np.diff(np.append(starts, lr.size)).astype(np.float64))
