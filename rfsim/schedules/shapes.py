"""Named shapes of a schedule."""

from collections.abc import Callable

import numpy as np

from rfsim.checks import InputError, finite_number, finite_vector, one_of, positive_number, whole_number
from rfsim.precision import is_traced
from rfsim.schedules.record import Schedule, require_steps


def _checked(steps: int, lr: float, batch: float) -> tuple[int, float, float]:
    """Checked arguments; a traced lr or batch is taken as it comes."""
    require_steps(whole_number("steps", steps, least=0))
    return (
        int(steps),
        lr if is_traced(lr) else positive_number("lr", lr),
        batch if is_traced(batch) else positive_number("batch", batch, allow_inf=True),
    )


def _length(name: str, value: float, steps: int) -> int:
    """Steps meant by `value`: a fraction of all steps below 1, else a whole number of steps."""
    number = finite_number(name, value)
    if number < 0.0:
        raise InputError(f"{name} must not be negative, got {number:g}; give a fraction below 1 or a number of steps")
    if number < 1.0:
        return max(round(number * steps), 1 if number > 0.0 and steps > 0 else 0)
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
    return Schedule(lr * np.ones(steps), batch * np.ones(steps))


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
    fractions = decay < 1.0 and warmup < 1.0
    if fractions and decay + warmup <= 1.0 + 1e-12:
        up = min(up, steps - down)  # both lengths may have been rounded up
    if down + up > steps or (fractions and decay + warmup > 1.0 + 1e-12):
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
    return Schedule(lr * _with_warmup(factor, up), batch * np.ones(steps))


def eight_one_one(steps: int, lr: float, batch: float) -> Schedule:
    """Learning rate 1 for the first 80 % of the steps, 10^(-1/2) for the next 10 %, 1/10 for the last 10 %."""
    steps, lr, batch = _checked(steps, lr, batch)
    factor = np.ones(steps)
    factor[min(round(0.8 * steps), max(steps - 2, 0)) :] = 10.0**-0.5
    factor[min(round(0.9 * steps), max(steps - 1, 0)) :] = 0.1
    return Schedule(lr * factor, batch * np.ones(steps))


def stages(steps: int, lr: float, batch: float, *, at: object, lr_to: object = 1.0, batch_to: object = 1.0) -> Schedule:
    """Step decay of the lr, step growth of the batch, or both: new values from each of the steps `at` on.

    Parameters
    ----------
    at : where each stage begins, as fractions of the steps or in whole steps, in increasing order.
    lr_to, batch_to : positive values of each stage over the first lr and batch; one number stands for all stages.
        Batches are rounded up.

    Raises
    ------
    InputError : also for stages that do not increase, begin after the end, or lack a value.
    """
    steps, lr, batch = _checked(steps, lr, batch)
    starts = [_length("at", float(place), steps) for place in finite_vector("at", np.atleast_1d(np.asarray(at)))]
    if starts != sorted(starts) or starts[-1] > steps:
        raise InputError(f"at must increase and lie within the {steps} steps, got steps {starts}; sort it")
    factors = []
    for name, given in (("lr_to", lr_to), ("batch_to", batch_to)):
        values = finite_vector(name, np.atleast_1d(np.asarray(given)), least=0.0, strict=True)
        if values.size not in (1, len(starts)):
            raise InputError(f"{name} must hold one value per stage ({len(starts)}), got {values.size}; or one number")
        factor = np.ones(steps)
        for start, value in zip(starts, np.broadcast_to(values, len(starts)), strict=True):
            factor[start:] = value
        factors.append(factor)
    return Schedule(
        lr * factors[0], whole_batches(batch * factors[1]) if (factors[1] != 1).any() else batch * factors[1]
    )


def cosine(steps: int, lr: float, batch: float, *, to: float = 0.1, warmup: float = 0.0) -> Schedule:
    """Half a cosine from the peak after the warm-up to `to` times the peak, which the last step uses."""
    return _falling(steps, lr, batch, to, warmup, lambda to, done: to + (1.0 - to) * 0.5 * (1.0 + np.cos(np.pi * done)))


def linear(steps: int, lr: float, batch: float, *, to: float = 0.1, warmup: float = 0.0) -> Schedule:
    """Straight line from the peak after the warm-up to `to` times the peak, which the last step uses."""
    return _falling(steps, lr, batch, to, warmup, lambda to, done: 1.0 - (1.0 - to) * done)


def exponential(steps: int, lr: float, batch: float, *, to: float = 0.1, warmup: float = 0.0) -> Schedule:
    """Exponential from the peak after the warm-up to `to` > 0 times the peak, which the last step uses."""
    if finite_number("to", to) == 0.0:
        raise InputError("to must be above 0 for an exponential decay, got 0; it is the final lr over the peak")
    return _falling(steps, lr, batch, to, warmup, lambda to, done: to**done)


def _falling(
    steps: int,
    lr: float,
    batch: float,
    to: float,
    warmup: float,
    curve: Callable[[float, np.ndarray], np.ndarray],
) -> Schedule:
    """Schedule whose lr over the peak is curve(to, u), with u from 0 after the warm-up to 1 at the last step."""
    steps, lr, batch = _checked(steps, lr, batch)
    to = finite_number("to", to)
    if not 0.0 <= to <= 1.0:
        raise InputError(f"to must lie in [0, 1], got {to:g}; it is the final lr over the peak")
    up = _length("warmup", warmup, steps)
    if up > steps:
        raise InputError(f"warmup takes {up} steps but the schedule has {steps}; shorten it")
    done = np.clip((np.arange(steps) - up) / max(steps - 1 - up, 1), 0.0, 1.0)
    factor = curve(to, done)
    if steps > up:
        factor[-1] = to
    return Schedule(lr * _with_warmup(factor, up), batch * np.ones(steps))


def batch_ramp(
    steps: int,
    lr: float,
    batch: float,
    *,
    to: float = 10.0,
    start: float = 0.0,
    shape: str = "exp",
    exact_batch: bool = False,
) -> Schedule:
    """Constant lr; the batch is constant and then grows to `to` times its first value, which the last step uses.

    Parameters
    ----------
    to : last batch over the first, positive.
    start : where the ramp begins, as a fraction of the steps or in whole steps.
    shape : of the ramp in the fraction u of it that is done: "exp" to^u, "linear" 1+(to-1)u.
    exact_batch : keep fractions; else batches are rounded up.
    """
    steps, lr, batch = _checked(steps, lr, batch)
    to = positive_number("to", to)
    one_of("shape", shape, ("exp", "linear"))
    begin = _length("start", start, steps)
    if begin > steps:
        raise InputError(f"start is step {begin} but the schedule has {steps}; begin the ramp earlier")
    done = np.arange(1, steps - begin + 1) / max(steps - begin, 1)
    factor = np.ones(steps)
    factor[begin:] = to**done if shape == "exp" else 1.0 + (to - 1.0) * done
    if steps > begin:
        factor[-1] = to
    sizes = batch * factor
    return Schedule(lr * np.ones(steps), sizes if exact_batch else whole_batches(sizes))


def warmed(schedule: Schedule, warmup: float) -> Schedule:
    """The schedule with a linear warm-up: its first `warmup` steps (or fraction) use lr times (step + 1) / warmup.

    The length stays, the batches too. To put a warm-up in front of the first step, `join` it.
    """
    up = _length("warmup", warmup, schedule.steps)
    if up > schedule.steps:
        raise InputError(f"warmup takes {up} steps but the schedule has {schedule.steps}; shorten it")
    return Schedule(_with_warmup(np.asarray(schedule.lr), up), schedule.batch)


def whole_batches(sizes: np.ndarray) -> np.ndarray:
    """Batches (N,) rounded up to whole numbers; what lies above one by rounding errors only stays that number."""
    return np.ceil(sizes * (1.0 - 4.0 * np.finfo(np.float64).eps))
