"""Smooth schedules of any length: lr and batch as functions of a real step, never an array of all steps.

The shapes are those of rfsim.schedules: at whole steps they give the same numbers. A block of steps is replaced by
one lr and one batch such that its sums of eta and of eta^2 / B stay what they are; the sums are over steps (discrete
Gauss rule), they are not integrals.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rfsim import schedules
from rfsim.checks import InputError, finite_number, one_of, positive_number, whole_number
from rfsim.sources.population import _uniform_gauss as uniform_gauss
from rfsim.stretches import Stretches, stretches

Function = Callable[[np.ndarray], np.ndarray]

_LITERAL = 64  # blocks of at most this many steps are summed step by step
_SUM_RTOL = 1e-12
_PLATEAUS = 512  # plateaus of a rounded-up batch that are summed one by one in a block
_SERIES = 12  # terms of the series that continues power-law rates
_SERIES_FROM = 100.0  # where it starts: the neglected term is below 1e-17


@dataclass(frozen=True)
class Smooth:
    """Schedule of `steps` steps given by functions.

    Attributes
    ----------
    lr, batch : functions of an array of real steps in [0, steps - 1] that return lr >= 0 and batch > 0.
    steps : number of steps N, up to 2^53.
    breaks : whole steps at which lr or batch jumps or has a kink: a new piece begins there.
    head : the first steps that must be taken one by one (the functions are right at whole steps only).
    ceil : use the batch rounded up, as integer batches are. It matters by about 1 / (2 B) in everything that noise
        does. The batch must then rise or fall without turning between breaks.
    """

    lr: Function
    batch: Function
    steps: int
    breaks: tuple[int, ...] = field(default=())
    head: int = 0
    ceil: bool = False

    def at(self, step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Learning rates and batches (rounded up with `ceil`) at whole steps (k,)."""
        sizes = self.batch(step)
        return self.lr(step), np.ceil(sizes) if self.ceil else sizes

    def sampled(self) -> schedules.Schedule:
        """All steps as arrays; only for horizons that fit into memory."""
        schedules.require_steps(self.steps)
        return schedules.from_arrays(*self.at(np.arange(float(self.steps))))


class Block(NamedTuple):
    """One lr and one batch in place of the steps of a block."""

    lr: float
    batch: float


def _level(value: float) -> Function:
    def function(step: np.ndarray) -> np.ndarray:
        return np.full(np.shape(step), value)

    return function


def smooth(
    steps: int,
    lr: Function | float,
    batch: Function | float = 1.0,
    *,
    breaks: tuple[int, ...] = (),
    head: int = 0,
    ceil: bool = False,
) -> Smooth:
    """Smooth schedule from functions of real steps or numbers; see `Smooth`.

    Raises
    ------
    InputError : for breaks outside of 1..steps-1 or not increasing, and numbers out of range.
    """
    steps = whole_number("steps", steps)
    if steps > 2**53:
        raise InputError(f"steps must be at most 2^53, got {steps}; shorten the schedule")
    places = tuple(whole_number("breaks", place) for place in breaks)
    if any(a >= b for a, b in pairwise(places)) or (places and places[-1] >= steps):
        raise InputError(f"breaks must increase within 1..{steps - 1}, got {places}; sort them and drop repeats")
    rate = lr if callable(lr) else _level(positive_number("lr", lr))
    size = batch if callable(batch) else _level(positive_number("batch", batch, allow_inf=True))
    return Smooth(rate, size, steps, places, whole_number("head", head, least=0), ceil)


# --- shapes ----------------------------------------------------------------------------------------------------------


def wsd(
    steps: int, lr: float, batch: float, *, decay: float = 0.2, shape: str = "exp", to: float = 0.1, warmup: float = 0.0
) -> Smooth:
    """Warm-up, stable, decay as `rfsim.schedules.wsd`; `decay=steps, shape="linear"` is a linear schedule."""
    schedules.wsd(0, lr, batch, shape=shape, to=to)  # checks the arguments that do not depend on the length
    down, up = schedules._length("decay", decay, steps), schedules._length("warmup", warmup, steps)
    if down + up > steps:
        raise InputError(f"decay and warmup ({decay:g} and {warmup:g}) are longer than the {steps} steps; shorten one")
    start = steps - down

    def rate(step: np.ndarray) -> np.ndarray:
        done = np.maximum((step - start + 1.0) / max(down, 1), 0.0)
        falling = {
            "exp": lambda: to**done if to > 0 else done,
            "linear": lambda: 1.0 - (1.0 - to) * done,
            "sqrt": lambda: 1.0 - (1.0 - to) * np.sqrt(done),
        }[shape]()
        factor = np.where(step >= start, falling, 1.0)
        return lr * factor * np.where(step < up, (step + 1.0) / max(up, 1), 1.0)

    return smooth(steps, rate, batch, breaks=_inside(steps, up, start))


def cosine(steps: int, lr: float, batch: float, *, to: float = 0.1, warmup: float = 0.0) -> Smooth:
    """Half a cosine as `rfsim.schedules.cosine`."""
    schedules.cosine(0, lr, batch, to=to)
    up = schedules._length("warmup", warmup, steps)
    if up > steps:
        raise InputError(f"warmup takes {up} steps but the schedule has {steps}; shorten it")

    def rate(step: np.ndarray) -> np.ndarray:
        done = np.clip((step - up) / max(steps - 1 - up, 1), 0.0, 1.0)
        factor = to + (1.0 - to) * np.square(np.cos(0.5 * np.pi * done))
        return lr * factor * np.where(step < up, (step + 1.0) / max(up, 1), 1.0)

    return smooth(steps, rate, batch, breaks=_inside(steps, up))


def _inside(steps: int, *places: int) -> tuple[int, ...]:
    return tuple(sorted({place for place in places if 0 < place < steps}))


def power(
    steps: int, lr: float, batch: float, *, vartheta: float, via: str = "batch", exact_batch: bool = False
) -> Smooth:
    """Ratio r(T) = (batch/lr) (1 + T)^vartheta as `rfsim.schedules.power`, T the discrete clock itself.

    Through lr the clock T_{t+1} = T_t + lr (1 + T_t)^(-vartheta) has no closed form; it is continued from its first
    steps by the series of its Abel function, which is exact to rounding. `vartheta` must then exceed -1.
    """
    lr, batch = positive_number("lr", lr), positive_number("batch", batch)
    vartheta = finite_number("vartheta", vartheta)
    one_of("via", via, ("lr", "batch"))
    if via == "batch":

        def size(step: np.ndarray) -> np.ndarray:
            return batch * (1.0 + lr * step) ** vartheta

        return smooth(steps, lr, size, ceil=not exact_batch)
    clock = _PowerClock(lr, vartheta)
    return smooth(steps, clock.rate, batch, head=min(clock.head.size, steps))


def long_from_spec(spec: str, *, steps: int, lr: float, batch: float) -> "Smooth | Stretches | None":
    """The schedule of `rfsim.schedules.from_spec` without an array of its steps; None if its shape has no such form.

    `constant` and `8-1-1` are stretches, `wsd`, `cosine` and `power` smooth.
    """
    name, options = schedules.read_spec(spec)
    if name == "constant" and not options:
        return stretches([lr], [batch], [steps])
    if name == "8-1-1" and not options:
        first, second = round(0.8 * steps), round(0.9 * steps)
        return stretches([lr, lr * 10.0**-0.5, 0.1 * lr], batch, [first, second - first, steps - second])
    shapes: dict[str, Callable[..., Smooth]] = {"wsd": wsd, "cosine": cosine, "power": power}
    if name not in shapes or steps == 0 or (name == "power" and "warmup" in options):
        return None
    return shapes[name](steps, lr, batch, **options)


class _PowerClock:
    """u = 1 + T under u <- u + lr u^(-vartheta). With a = 1 + vartheta and s = u^a / lr this is s <- s (1 + 1/s)^a."""

    def __init__(self, lr: float, vartheta: float) -> None:
        if vartheta <= -1.0:
            raise InputError(
                f"vartheta must exceed -1 for a smooth schedule through lr, got {vartheta:g}; use via=batch"
            )
        self.lr, self.vartheta, self.a = lr, vartheta, 1.0 + vartheta
        values, u = [1.0], 1.0
        while u**self.a / lr < _SERIES_FROM:
            u += lr * u ** (-vartheta)
            values.append(u)
        self.head = np.array(values)
        self.log_weight, tail = self._series()
        self.powers = np.append(tail[::-1], 0.0)
        self.start = self._abel(np.array(u**self.a / lr)) - (self.head.size - 1)

    def _series(self) -> tuple[float, np.ndarray]:
        """Abel function s/a + A log s + sum_j c_j s^-j, which grows by 1 with every step."""
        a = self.a
        weight = -(a - 1.0) / (2.0 * a)
        tail: list[float] = []
        for m in range(2, _SERIES):
            known = _binomial(a, m + 1) / a + weight * a * (-1.0) ** (m + 1) / m
            known += sum(c * _binomial(-a * j, m - j) for j, c in enumerate(tail, 1))
            tail.append(known / (a * (m - 1)))
        return weight, np.array(tail)

    def _abel(self, s: np.ndarray) -> np.ndarray:
        return s / self.a + self.log_weight * np.log(s) + np.polyval(self.powers, 1.0 / s)

    def time(self, step: np.ndarray) -> np.ndarray:
        """u = 1 + T at steps (k,): whole ones in the head, any later."""
        step = np.asarray(step, dtype=np.float64)
        early = self.head[np.minimum(np.floor(step), self.head.size - 1).astype(np.int64)]
        goal = np.maximum(step, self.head.size - 1) + self.start
        s = np.maximum(self.a * goal, _SERIES_FROM / 2.0)
        s = np.maximum(self.a * (goal - self.log_weight * np.log(s)), _SERIES_FROM / 2.0)
        for _ in range(60):
            change = (self._abel(s) - goal) / (1.0 / self.a + self.log_weight / s)
            s = np.maximum(s - change, 0.5 * s)
            if (np.abs(change) <= 1e-15 * s).all():
                break
        return np.where(step < self.head.size, early, (self.lr * s) ** (1.0 / self.a))

    def rate(self, step: np.ndarray) -> np.ndarray:
        """Learning rates at steps (k,)."""
        return self.lr * self.time(step) ** (-self.vartheta)


def _binomial(top: float, count: int) -> float:
    """Coefficient of x^count in (1 + x)^top, any real `top`."""
    return math.prod((top - k) / (k + 1.0) for k in range(count))


# --- blocks of steps -------------------------------------------------------------------------------------------------


def block(schedule: Smooth, start: float, stop: float) -> Block:
    """One lr and batch for the steps start..stop-1, between breaks, that keep sum eta and sum eta^2 / B."""
    total, noise = _sums(schedule, start, stop)
    if total <= 0.0:
        return Block(0.0, 1.0)
    mean = total / (stop - start)
    return Block(mean, mean * total / noise if noise > 0.0 else math.inf)


def variation(schedule: Smooth, start: float, stop: float) -> float:
    """Change of log lr and log batch over the steps start..stop-1, by three of them; 0 means that they do not
    change."""
    rates, sizes = schedule.at(np.array([start, np.floor(0.5 * (start + stop - 1.0)), stop - 1.0]))
    if (rates == rates[0]).all() and (sizes == sizes[0]).all():
        return 0.0
    if rates.min() <= 0.0:
        return math.inf
    return float(np.abs(np.diff(np.log(rates))).sum() + np.abs(np.diff(np.log(sizes))).sum())


def _sums(schedule: Smooth, start: float, stop: float) -> tuple[float, float]:
    """Sums of eta and of eta^2 / B over the steps start..stop-1, halved until both halves confirm the whole."""
    whole = _quick_sums(schedule, start, stop)
    if stop - start <= _LITERAL:
        return whole
    middle = start + math.floor(0.5 * (stop - start))
    halves = _quick_sums(schedule, start, middle), _quick_sums(schedule, middle, stop)
    total, noise = (a + b for a, b in zip(*halves, strict=True))
    if abs(total - whole[0]) <= _SUM_RTOL * total and abs(noise - whole[1]) <= _SUM_RTOL * noise:
        return total, noise
    (a, b), (c, d) = _sums(schedule, start, middle), _sums(schedule, middle, stop)
    return a + c, b + d


def _quick_sums(schedule: Smooth, start: float, stop: float) -> tuple[float, float]:
    """The same by one rule."""
    count = stop - start
    if count <= _LITERAL:
        rates, sizes = schedule.at(start + np.arange(count))
        return math.fsum(rates), math.fsum(rates * (rates / sizes))
    nodes, weights = uniform_gauss(count)
    rates = schedule.lr(start + nodes)
    if schedule.ceil:
        return float(weights @ rates), _rounded_noise(schedule, start, stop)
    return float(weights @ rates), float(weights @ (rates * (rates / schedule.batch(start + nodes))))


def _rounded_noise(schedule: Smooth, start: float, stop: float) -> float:
    """Sum of eta^2 / ceil(batch) over the steps start..stop-1, the batch rising or falling throughout."""
    first, last = schedule.batch(np.array([start, stop - 1.0]))
    low, high = math.ceil(min(first, last)), math.ceil(max(first, last))
    if high - low <= _PLATEAUS:
        steps = plateau_edges(schedule, start, stop)
        edges = np.concatenate([[start], steps, [stop]])
        return math.fsum(_plateau(schedule, a, b) for a, b in pairwise(edges) if b > a)
    # 1 / ceil(b) has the mean of 1/(b + 1/2) - 1/(12 (b + 1/2)^3) over every full plateau, up to order b^-5
    nodes, weights = uniform_gauss(stop - start)
    rates, shifted = schedule.lr(start + nodes), schedule.batch(start + nodes) + 0.5
    return float(weights @ (rates * (rates * (1.0 / shifted - 1.0 / (12.0 * shifted**3)))))


def _plateau(schedule: Smooth, start: float, stop: float) -> float:
    """Sum of eta^2 / ceil(batch) over steps that share ceil(batch)."""
    nodes, weights = uniform_gauss(stop - start)
    size = float(np.ceil(schedule.batch(np.array([start])))[0])
    return float(weights @ np.square(schedule.lr(start + nodes))) / size


def plateau_edges(schedule: Smooth, start: float, stop: float) -> np.ndarray:
    """Steps in start+1..stop-1 at which ceil(batch) changes, the batch rising or falling throughout."""
    first, last = schedule.batch(np.array([start, stop - 1.0]))
    low, high = math.ceil(min(first, last)), math.ceil(max(first, last))
    if low == high:
        return np.zeros(0)
    rising = last > first
    levels = np.arange(low, high, dtype=np.float64)  # ceil passes from `level` to above (rising)
    before, after = np.full(levels.size, start), np.full(levels.size, stop - 1.0)
    while (after - before > 1.0).any():
        middle = np.floor(0.5 * (before + after))
        above = schedule.batch(middle) > levels
        past = above if rising else ~above
        before, after = np.where(past, before, middle), np.where(past, middle, after)
    return np.unique(after)


__all__ = ["Block", "Smooth", "block", "cosine", "plateau_edges", "power", "smooth", "variation", "wsd"]
