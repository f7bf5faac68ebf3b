"""A learning-rate schedule with few parameters: warm-up, plateau, decay, floor, or stages; its values at every step."""

from dataclasses import dataclass, replace

import numpy as np

from rfsim.checks import FloatArray


@dataclass(frozen=True)
class Warmup:
    """Rise to the peak up to step `steps`: value `first` at step `begin`, straight or as half a cosine."""

    steps: float
    first: float
    kind: str = "linear"
    begin: float = 0.0

    def at(self, step: FloatArray, peak: float) -> FloatArray:
        """Values at steps below `steps`."""
        done = np.clip((step - self.begin) / max(self.steps - self.begin, 1.0), 0.0, 1.0)
        rise = done if self.kind == "linear" else 0.5 * (1.0 - np.cos(np.pi * done))
        return self.first + (peak - self.first) * rise


@dataclass(frozen=True)
class Shape:
    """lr(s) = peak up to `start`, then falling to `to` at `end`, flat after it; in front of it a warm-up.

    Attributes
    ----------
    kind : "constant", "linear", "exponential", "sqrt" (1 - c sqrt(u)), "inverse-sqrt" (1/lr^2 straight), "cosine",
        or "stages" (lr of `stages` from each of their steps on).
    peak, to : lr before the decay and at its end.
    start, end : steps, 0-based: the update from step s uses lr(s).
    warmup : the rise in front, or None.
    stages : (step, lr) in order; the lr before the first is the peak.
    """

    kind: str
    peak: float
    start: float = 0.0
    end: float = 0.0
    to: float = 0.0
    warmup: Warmup | None = None
    stages: tuple[tuple[float, float], ...] = ()

    def at(self, step: FloatArray) -> FloatArray:
        """Learning rates (n,) at steps (n,)."""
        values = self._body(step)
        if self.warmup is not None:
            rising = step < self.warmup.steps
            top = float(self._body(np.array([self.warmup.steps]))[0])
            values = np.where(rising, self.warmup.at(step, top), values)
        return values

    def _body(self, step: FloatArray) -> FloatArray:
        if self.kind == "constant":
            return np.full(step.shape, self.peak)
        if self.kind == "stages":
            starts = np.array([place for place, _ in self.stages])
            levels = np.array([self.peak, *(lr for _, lr in self.stages)])
            return levels[np.searchsorted(starts, step, side="right")]
        done = np.clip((step - self.start) / (self.end - self.start), 0.0, 1.0)
        return fall(self.kind, done, self.peak, self.to)

    def words(self) -> str:
        """The shape in words, with its steps."""
        if self.kind == "constant":
            text = f"constant {self.peak:g}"
        elif self.kind == "stages":
            text = f"{self.peak:g}" + "".join(f", then {lr:g} from step {place:g}" for place, lr in self.stages)
        else:
            text = f"{self.kind} decay from {self.peak:g} at step {self.start:g} to {self.to:.4g} at step {self.end:g}"
        if self.warmup is not None:
            rise, top = self.warmup, float(self._body(np.array([self.warmup.steps]))[0])
            if rise.kind == "linear" and abs(rise.first * (rise.steps + 1.0) / top - 1.0) < 1e-9:
                text += f", linear warm-up (s + 1)/{rise.steps + 1:g}"
            elif rise.kind == "linear" and rise.first == 0.0:
                text += f", linear warm-up from 0, s/{rise.steps:g}"
            else:
                text += f", {rise.kind} warm-up from {rise.first:g} over {rise.steps:g} steps"
        return text

    def shifted(self, steps: float, *, warmup: bool = False) -> "Shape":
        """The shape with its decay or stages this many steps later; the warm-up stays, or with `warmup` moves too."""
        places = tuple((place + steps, lr) for place, lr in self.stages)
        rise = self.warmup
        if warmup and rise is not None:
            rise = replace(rise, steps=rise.steps + steps, begin=rise.begin + steps)
        return replace(self, start=self.start + steps, end=self.end + steps, stages=places, warmup=rise)


def fall(kind: str, done: FloatArray, peak: float, to: float) -> FloatArray:
    """Decay from `peak` to `to` in the fraction `done` of it, in [0, 1]."""
    if kind == "linear":
        return peak - (peak - to) * done
    if kind == "exponential":
        return peak * (to / peak) ** done
    if kind == "sqrt":
        return peak - (peak - to) * np.sqrt(done)
    if kind == "inverse-sqrt":
        return 1.0 / np.sqrt(peak**-2.0 + (to**-2.0 - peak**-2.0) * done)
    return to + (peak - to) * 0.5 * (1.0 + np.cos(np.pi * done))


def warmed(shape: Shape, steps: int, *, from_zero: bool = False) -> Shape:
    """The shape with a straight warm-up to its own lr at step `steps`, reached at step `steps` - 1.

    lr(s) is (s + 1)/steps of that level for s < steps, or s/(steps - 1) with `from_zero`.
    """
    if steps == 0:
        return replace(shape, warmup=None)
    level = float(replace(shape, warmup=None).at(np.array([float(steps)]))[0])
    return replace(shape, warmup=Warmup(steps - 1.0, 0.0 if from_zero and steps > 1 else level / steps))


def roundest(lower: float, upper: float) -> int:
    """The roundest whole step in (lower, upper]: multiple of the largest power of ten; of several the last."""
    first, last = int(np.floor(lower)) + 1, int(np.floor(upper))
    power = 1
    while last // (10 * power) * 10 * power >= first:
        power *= 10
        if last // power == 0:
            return last
    return last // power * power


def by_roundness(lower: float, upper: float, most: int = 4000) -> list[int]:
    """Whole steps in [lower, upper], the roundest first (at most `most` of them)."""
    steps = np.arange(int(np.ceil(lower)), int(np.floor(upper)) + 1)[:most]
    zeros = np.zeros(steps.size)
    for power in (10, 100, 1000, 10_000, 100_000, 1_000_000):
        zeros += (steps % power == 0) & (steps > 0)
    return [int(step) for step in steps[np.argsort(-zeros, kind="stable")]]
