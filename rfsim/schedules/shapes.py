"""Named shapes of a schedule."""

import jax
import numpy as np

from rfsim.checks import InputError, finite_number, one_of, positive_number, whole_number
from rfsim.precision import jnp
from rfsim.schedules.clock import intrinsic_time
from rfsim.schedules.record import Schedule, from_arrays, require_steps


def _checked(steps: int, lr: float, batch: float) -> tuple[int, float, float]:
    require_steps(whole_number("steps", steps, least=0))
    return (
        int(steps),
        positive_number("lr", lr),
        positive_number("batch", batch, allow_inf=True),
    )


def _length(name: str, value: float, steps: int) -> int:
    """Steps meant by `value`: a fraction of all steps below 1, else a whole number of steps."""
    number = finite_number(name, value)
    if number < 0.0:
        raise InputError(f"{name} must not be negative, got {number:g}; give a fraction below 1 or a number of steps")
    if number < 1.0:
        return round(number * steps)
    if number != int(number):
        raise InputError(f"{name} must be a fraction below 1 or a whole number of steps, got {number:g}")
    return int(number)


def _with_warmup(factor: np.ndarray, warmup: int) -> np.ndarray:
    """Put a linear warm-up (s+1)/warmup on the first `warmup` steps of the factors (N,)."""
    shaped = factor.copy()
    shaped[:warmup] *= np.arange(1, warmup + 1) / max(warmup, 1)
    return shaped


def constant(steps: int, lr: float, batch: float) -> Schedule:
    """Constant learning rate and batch size."""
    steps, lr, batch = _checked(steps, lr, batch)
    return Schedule(np.full(steps, lr), np.full(steps, batch))


def wsd(
    steps: int, lr: float, batch: float, *, decay: float = 0.2, shape: str = "exp", to: float = 0.1, warmup: float = 0.0
) -> Schedule:
    """Warm-up, stable, decay: lr constant, then falling to `to` times the peak, which the last step uses.

    Parameters
    ----------
    decay, warmup : length of the decay and of the linear warm-up, as a fraction of the steps or in whole steps.
    shape : of the decay in the fraction u of it that is done: "exp" to^u, "linear" 1-(1-to)u, "sqrt" 1-(1-to)sqrt(u).
    to : final value over peak, in (0, 1] for "exp", in [0, 1] otherwise.

    Raises
    ------
    InputError : also when decay and warm-up together are longer than the schedule.
    """
    steps, lr, batch = _checked(steps, lr, batch)
    one_of("shape", shape, ("exp", "linear", "sqrt"))
    to = finite_number("to", to)
    if not 0.0 <= to <= 1.0 or (shape == "exp" and to == 0.0):
        raise InputError(f"to must lie in [0, 1] (above 0 for shape exp), got {to:g}; it is the final lr over the peak")
    down, up = _length("decay", decay, steps), _length("warmup", warmup, steps)
    fractions = decay < 1.0 and warmup < 1.0 and decay + warmup > 1.0 + 1e-12
    if down + up > steps or fractions:
        raise InputError(
            f"decay and warmup ({decay:g} and {warmup:g}) are together longer than the schedule of {steps} steps; "
            f"shorten one of them"
        )
    done = np.arange(1, down + 1) / max(down, 1)
    falling = {"exp": to**done if to > 0 else done, "linear": 1 - (1 - to) * done, "sqrt": 1 - (1 - to) * np.sqrt(done)}
    factor = np.ones(steps)
    factor[steps - down :] = falling[shape]
    if down:
        factor[-1] = to
    return Schedule(lr * _with_warmup(factor, up), np.full(steps, batch))


def eight_one_one(steps: int, lr: float, batch: float) -> Schedule:
    """Learning rate 1 for the first 80 % of the steps, 10^(-1/2) for the next 10 %, 1/10 for the last 10 %."""
    steps, lr, batch = _checked(steps, lr, batch)
    factor = np.ones(steps)
    factor[round(0.8 * steps) :] = 10.0**-0.5
    factor[round(0.9 * steps) :] = 0.1
    return Schedule(lr * factor, np.full(steps, batch))


def cosine(steps: int, lr: float, batch: float, *, to: float = 0.1, warmup: float = 0.0) -> Schedule:
    """Half a cosine from the peak after the warm-up to `to` times the peak, which the last step uses."""
    steps, lr, batch = _checked(steps, lr, batch)
    to = finite_number("to", to)
    if not 0.0 <= to <= 1.0:
        raise InputError(f"to must lie in [0, 1], got {to:g}; it is the final lr over the peak")
    up = _length("warmup", warmup, steps)
    if up > steps:
        raise InputError(f"warmup takes {up} steps but the schedule has {steps}; shorten it")
    done = np.clip((np.arange(steps) - up) / max(steps - 1 - up, 1), 0.0, 1.0)
    if steps > up:
        done[-1] = 1.0
    factor = to + (1.0 - to) * 0.5 * (1.0 + np.cos(np.pi * done))
    return Schedule(lr * _with_warmup(factor, up), np.full(steps, batch))


def power(
    steps: int, lr: float, batch: float, *, vartheta: float, via: str = "batch", exact_batch: bool = False
) -> Schedule:
    """Ratio r(T) = (batch/lr) (1 + T)^vartheta along the intrinsic time T.

    Parameters
    ----------
    via : "batch" keeps lr and uses B_t = ceil(batch (1+T_t)^vartheta) (fractions kept with `exact_batch`);
        "lr" keeps the batch and uses lr_t = lr (1+T_t)^(-vartheta).
    """
    steps, lr, batch = _checked(steps, lr, batch)
    vartheta = finite_number("vartheta", vartheta)
    one_of("via", via, ("lr", "batch"))
    if via == "batch":
        sizes = batch * (1.0 + intrinsic_time(np.full(steps, lr))[:-1]) ** vartheta
        return from_arrays(np.full(steps, lr), sizes if exact_batch else np.ceil(sizes))

    def step(time: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        eta = lr * (1.0 + time) ** (-vartheta)
        return time + eta, eta

    rates = jax.lax.scan(step, jnp.zeros(()), None, length=steps)[1]
    return from_arrays(np.asarray(rates), np.full(steps, batch))
