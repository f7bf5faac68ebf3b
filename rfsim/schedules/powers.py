"""Power laws: of the ratio in intrinsic time, or of lr and batch in iteration time."""

import jax
import numpy as np

from rfsim.checks import InputError, finite_number, one_of
from rfsim.precision import is_traced, jnp
from rfsim.schedules.clock import intrinsic_time
from rfsim.schedules.record import Schedule, from_arrays
from rfsim.schedules.shapes import _checked, whole_batches


def power(
    steps: int, lr: float, batch: float, *, vartheta: float, via: str = "batch", exact_batch: bool = False
) -> Schedule:
    """Ratio r(T) = (batch/lr) (1 + T)^vartheta along the intrinsic time T.

    Parameters
    ----------
    via : "batch" keeps lr and uses B_t = ceil(batch (1+T_t)^vartheta) (fractions kept with `exact_batch`);
        "lr" keeps the batch and uses lr_t = lr (1+T_t)^(-vartheta).
    """
    if is_traced(lr, batch):
        raise InputError(
            "a power schedule works out its clock in NumPy, so lr and batch cannot be traced; pass numbers"
        )
    steps, lr, batch = _checked(steps, lr, batch)
    vartheta = finite_number("vartheta", vartheta)
    one_of("via", via, ("lr", "batch"))
    if via == "batch":
        with np.errstate(over="ignore"):
            sizes = batch * (1.0 + intrinsic_time(lr * np.ones(steps))[:-1]) ** vartheta
        if batch < np.inf and not np.isfinite(sizes).all():
            first = int(np.argmin(np.isfinite(sizes)))
            raise InputError(f"vartheta {vartheta:g} takes the batch beyond float64 at step {first}; lower vartheta")
        return from_arrays(lr * np.ones(steps), sizes if exact_batch else np.ceil(sizes))

    def step(time: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        eta = lr * (1.0 + time) ** (-vartheta)
        return time + eta, eta

    rates = jax.lax.scan(step, jnp.zeros(()), None, length=steps)[1]
    return from_arrays(np.asarray(rates), batch * np.ones(steps))


def polynomial(
    steps: int,
    lr: float,
    batch: float,
    *,
    lr_decay: float = 0.0,
    batch_growth: float = 0.0,
    exact_batch: bool = False,
) -> Schedule:
    """Powers of the iteration n = 1..N: lr_n = lr n^-l and B_n = ceil(batch n^b); step t is iteration n = t + 1.

    For l < 1 intrinsic time grows like n^(1 - l), so the ratio follows T^vartheta with vartheta = (l + b)/(1 - l), see
    `rfsim.gap_laws.iteration_schedule` (theory: Wang, Liu, Chen 2026, schedules in iteration time).

    Parameters
    ----------
    lr_decay, batch_growth : the exponents l and b.
    exact_batch : keep fractions; else batches are rounded up.
    """
    steps, lr, batch = _checked(steps, lr, batch)
    fall, growth = finite_number("lr_decay", lr_decay), finite_number("batch_growth", batch_growth)
    iteration = np.arange(1.0, steps + 1.0)
    sizes = batch * iteration**growth
    return from_arrays(lr * iteration**-fall, sizes if exact_batch else whole_batches(sizes))
