"""Joint schedules: learning rate and batch size of every step, and the clock they define.

Step t (0-based) uses lr[t] and the mean over batch[t] fresh samples; a schedule of N entries allows steps 0..N.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import numpy as np

from rfsim.checks import (
    InputError,
    finite_number,
    one_of,
    positive_number,
    require_entries,
    require_memory,
    same_length,
    whole_number,
)
from rfsim.precision import float64_array, is_traced, jnp, require_float64
from rfsim.spectra import read_columns

Array = np.ndarray | jax.Array

_CLOCK_BLOCK = 16384  # steps summed at a time


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


# --- from numbers the user has -------------------------------------------------------------------------------------


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


# --- named shapes ----------------------------------------------------------------------------------------------------


def _checked(steps: int, lr: float, batch: float) -> tuple[int, float, float]:
    require_steps(whole_number("steps", steps, least=0))
    return (
        int(steps),
        positive_number("lr", lr),
        positive_number("batch", batch, allow_inf=True),
    )


def require_steps(steps: int) -> None:
    """Raise RunError if the arrays of a schedule of this many steps exceed this machine's memory."""
    require_memory(f"a schedule of {steps} steps", 64.0 * steps, "lower steps")


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


def from_spec(spec: str, *, steps: int, lr: float, batch: float) -> Schedule:
    """Schedule from a text such as `wsd:decay=0.2,shape=linear,to=0.1`.

    Names and keys: `constant`; `wsd:decay,shape,to,warmup`; `8-1-1`; `cosine:to,warmup`;
    `power:vartheta,via,exact_batch`.

    Raises
    ------
    InputError : for an unknown name or key, or a value that the shape does not allow.
    """
    name, _, rest = spec.partition(":")
    shapes: dict[str, tuple[Callable[..., Schedule], dict[str, Callable[[str], object]]]] = {
        "constant": (constant, {}),
        "wsd": (wsd, {"decay": float, "shape": str, "to": float, "warmup": float}),
        "8-1-1": (eight_one_one, {}),
        "cosine": (cosine, {"to": float, "warmup": float}),
        "power": (power, {"vartheta": float, "via": str, "exact_batch": _switch}),
    }
    if name not in shapes:
        raise InputError(f"schedule {name!r} is not known; allowed: {', '.join(shapes)}, or a CSV file step,lr,batch")
    make, keys = shapes[name]
    options: dict[str, object] = {}
    for item in filter(None, rest.split(",")):
        key, equals, text = item.partition("=")
        if key not in keys or not equals:
            allowed = ", ".join(f"{one}=..." for one in keys) or "none"
            raise InputError(f"schedule {name} does not take {item!r}; allowed: {allowed}")
        if key in options:
            raise InputError(f"schedule {name} has {key} twice; give it once")
        try:
            options[key] = keys[key](text)
        except ValueError as error:
            raise InputError(f"schedule {name}: {key} must be a number, got {text!r}") from error
    if name == "power" and "vartheta" not in options:
        raise InputError("schedule power needs vartheta; write power:vartheta=0.5,via=lr or via=batch")
    return make(steps, lr, batch, **options)


def _switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError(text)
    return text == "1"


# --- the clock -------------------------------------------------------------------------------------------------------


def intrinsic_time(lr: Array, at: np.ndarray | None = None) -> np.ndarray:
    """Intrinsic times T_t = sum of lr over the steps before t, from lr (N,), at increasing steps `at` (default 0..N).

    The rounding error of every partial sum is recovered exactly and added back, so that 10^6 steps keep 15 digits.
    Memory beyond the result does not grow with N.
    """
    rates = np.asarray(lr, dtype=np.float64)
    steps = np.arange(len(rates) + 1) if at is None else at
    times = np.zeros(len(steps))
    whole = rest = 0.0
    for start in range(0, len(rates), _CLOCK_BLOCK):
        part = rates[start : start + _CLOCK_BLOCK]
        total = np.cumsum(np.concatenate([[whole], part]))
        before, after = total[:-1], total[1:]
        added = after - before
        lost = rest + np.cumsum((before - (after - added)) + (part - added))
        first, last = np.searchsorted(steps, [start + 1, start + len(part) + 1])
        inside = steps[first:last] - start - 1
        times[first:last] = after[inside] + lost[inside]
        whole, rest = after[-1], lost[-1]
    return times


def is_constant(schedule: Schedule) -> bool:
    """True if all steps share one lr and one batch (an empty schedule is constant too)."""
    lr, batch = np.asarray(schedule.lr), np.asarray(schedule.batch)
    return lr.size == 0 or bool((lr == lr[0]).all() and (batch == batch[0]).all())


def log_spaced_steps(last: int, count: int = 200) -> np.ndarray:
    """About `count` recorded steps, log-spaced from 1 to `last`, always with 0 and `last`; strictly increasing ints."""
    last = whole_number("last", last, least=0)
    count = whole_number("count", count, least=2)
    if last <= count:
        return np.arange(last + 1)

    def spaced(points: int) -> np.ndarray:
        exact = np.exp(np.linspace(0.0, math.log(last), points))
        return np.unique(np.concatenate([[0], np.rint(exact).astype(np.int64), [last]]))

    # early points share a step, so more points than steps are needed; spaced(p) grows with p up to its rounding
    low, high = count - 1, 64 * count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if spaced(middle).size <= count else (low, middle)
    return spaced(low)


def recorded_steps(at: object, last: int) -> np.ndarray:
    """Return the recorded steps (k,) as strictly increasing ints in 0..last, or raise InputError."""
    require_float64()
    if at is None:
        return log_spaced_steps(last)
    given = np.atleast_1d(np.asarray(at))
    whole = given.ndim == 1 and given.size > 0 and given.dtype.kind in "iuf"
    if not whole or not (np.isfinite(given) & (given == np.floor(given))).all():
        raise InputError(f"at must list whole steps, got {at!r}; give for example at=[0, 10, 100]")
    if given.min() < 0 or given.max() > last:
        wrong = given.min() if given.min() < 0 else given.max()
        raise InputError(f"at asks for step {wrong:.17g} but the schedule allows 0..{last}; lengthen it or ask within")
    steps = given.astype(np.int64)
    if (np.diff(steps) <= 0).any():
        raise InputError("at must be strictly increasing; sort the steps and drop repeats")
    return steps
