"""The Schedule record: learning rate and batch size of every step, from arrays that the user has."""

from dataclasses import dataclass, replace

import jax
import numpy as np

from rfsim.checks import (
    InputError,
    positive_number,
    require_entries,
    require_memory,
    same_length,
    whole_number,
)
from rfsim.precision import float64_array, is_traced, jnp

Array = np.ndarray | jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Schedule:
    """Learning rate and batch size of every step.

    Attributes
    ----------
    lr : (N,) learning rates eta_t >= 0.
    batch : (N,) batch sizes B_t > 0; `inf` is gradient descent. The exact routes also take fractions.
    """

    lr: Array
    batch: Array

    @property
    def steps(self) -> int:
        """Number of steps N."""
        return int(self.lr.shape[0])

    def replace(self, *, lr: object = None, batch: object = None) -> "Schedule":
        """Return a copy with another lr or batch: an array of N entries, or one number for all steps."""
        changed = {name: value for name, value in (("lr", lr), ("batch", batch)) if value is not None}
        for name, value in changed.items():
            array = float64_array(name, value)
            changed[name] = jnp.broadcast_to(jnp.asarray(array), (self.steps,)) if array.ndim == 0 else array
        return from_arrays(**{"lr": self.lr, "batch": self.batch, **changed})

    def part(self, start: int, stop: int) -> "Schedule":
        """Return steps start..stop-1 as a schedule of their own."""
        return replace(self, lr=self.lr[start:stop], batch=self.batch[start:stop])

    def scaled(self, *, lr: float = 1.0, batch: float = 1.0) -> "Schedule":
        """Return the schedule with every lr times `lr` and every batch times `batch`, two positive numbers."""
        factors = positive_number("lr", lr), positive_number("batch", batch)
        return replace(self, lr=self.lr * factors[0], batch=self.batch * factors[1])

    def extended(self, steps: int) -> "Schedule":
        """Return the schedule for a longer horizon of `steps` steps: flat after its end, at its last lr and batch.

        Raises
        ------
        InputError : if `steps` is below the present number of steps (use `part`), or there is no last step.
        """
        steps = whole_number("steps", steps, least=0)
        if steps < self.steps:
            raise InputError(f"steps must be at least the present {self.steps}, got {steps}; use part to shorten")
        if steps == self.steps:
            return self
        if self.steps == 0:
            raise InputError("an empty schedule has no last lr and batch to go on with; give it at least one step")
        require_steps(steps)
        last = jax.tree.map(lambda values: values[-1:].repeat(steps - self.steps), self)
        return join(self, last)


def from_arrays(lr: object, batch: object) -> Schedule:
    """Schedule from arrays lr (N,) >= 0 and batch (N,) > 0; a single number stands for all steps.

    Raises
    ------
    InputError : for entries that are negative, zero (batch), NaN, or arrays of different length.
    """
    eta, size = float64_array("lr", lr), float64_array("batch", batch)
    if eta.ndim == 0 and size.ndim == 1:
        eta = jnp.broadcast_to(jnp.asarray(eta), size.shape) if is_traced(eta) else np.full(size.shape, eta)
    if size.ndim == 0 and eta.ndim == 1:
        size = jnp.broadcast_to(jnp.asarray(size), eta.shape) if is_traced(size) else np.full(eta.shape, size)
    for name, array in (("lr", eta), ("batch", size)):
        if array.ndim != 1:
            raise InputError(
                f"{name} must be a one-dimensional array, got shape {array.shape}; give one value per step"
            )
    same_length(lr=eta, batch=size)  # type: ignore[arg-type]
    if not is_traced(eta):
        require_entries("lr", np.asarray(eta), np.isfinite(eta) & (np.asarray(eta) >= 0.0), "finite and not negative")
    if not is_traced(size):
        require_entries("batch", np.asarray(size), np.asarray(size) > 0.0, "positive")
    return Schedule(eta, size)


def join(*parts: Schedule) -> Schedule:
    """One schedule after the other: the steps of the first, then those of the second, and so on.

    Raises
    ------
    InputError : without any part.
    """
    if not parts:
        raise InputError("join needs at least one schedule, got none; pass the parts in their order")
    return jax.tree.map(
        lambda *arrays: jnp.concatenate(arrays) if is_traced(*arrays) else np.concatenate(arrays), *parts
    )


def is_constant(schedule: Schedule) -> bool:
    """True if all steps share one lr and one batch (an empty schedule is constant too)."""
    lr, batch = np.asarray(schedule.lr), np.asarray(schedule.batch)
    return lr.size == 0 or bool((lr == lr[0]).all() and (batch == batch[0]).all())


def require_steps(steps: int) -> None:
    """Raise RunError if the arrays of a schedule of this many steps exceed this machine's memory."""
    require_memory(f"a schedule of {steps} steps", 64.0 * steps, "lower steps")
