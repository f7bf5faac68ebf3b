"""What an anneal does: signal learnt, old noise fading, new noise withheld, against going on at constant lr.

From the step where the anneal begins the risk is a sum of three parts, each with a mode recursion of its own:

* signal, the forcing with the floor: what is left of the initial error; it only falls with the clock;
* old noise, the memory of all steps before the anneal: it fades with the clock and gets no new source;
* new noise, the memory of the steps of the anneal, each of which injects (eta^2 / B) m l^2 (R + sigma^2).

An anneal and a run that goes on at constant lr to the same intrinsic time learn the same signal and forget the same
old noise, up to terms of first order in lr times eigenvalue: what the anneal wins is new noise that it withholds. At
the same data its clock is slower, so it learns less signal and keeps more old noise, which is the price (theory: Wang,
Liu, Chen 2026, joint schedules).
"""

import math
from typing import NamedTuple

import numpy as np

from rfsim.checks import InputError, one_of, whole_number
from rfsim.curves import State
from rfsim.exact import check_stability
from rfsim.precision import is_traced
from rfsim.routes import recursion
from rfsim.schedules import Schedule, constant, intrinsic_time, join, path
from rfsim.spectra import Spectrum

_RECORDS = 200  # steps recorded of each run
_PARTIAL = 1e-9  # a last partial step shorter than this share of a step comes from rounding


class Parts(NamedTuple):
    """The risk of one run since the anneal began, risk = signal + old_noise + new_noise; arrays (k,).

    step, intrinsic_time, data : counted from the beginning of the whole run.
    """

    step: np.ndarray
    intrinsic_time: np.ndarray
    data: np.ndarray
    risk: np.ndarray
    signal: np.ndarray
    old_noise: np.ndarray
    new_noise: np.ndarray


class Anneal(NamedTuple):
    """An anneal and what it is compared with.

    start : step at which the anneal begins.
    annealed : the schedule itself.
    same_time, same_data : the lr and batch of step start - 1 kept to the final intrinsic time, or the final data, of
        the schedule. A last step that would go too far has lr and batch reduced alike, which keeps their ratio.
    """

    start: int
    annealed: Parts
    same_time: Parts
    same_data: Parts


class Change(NamedTuple):
    """A lower risk and where it comes from, total = signal + old_noise + new_noise; negative parts are losses."""

    total: float
    signal: float
    old_noise: float
    new_noise: float


class ClockCost(NamedTuple):
    """An anneal against constant lr at the same data: net = noise_withheld - signal_lost - old_noise_kept.

    time_lost : intrinsic time by which the slower clock falls behind.
    signal_lost : risk of the signal that is not learnt for want of this time; old_noise_kept : old noise not yet gone.
    noise_withheld : new noise that is not injected.
    net : by how much the risk of the anneal is lower at its end.
    """

    time_lost: float
    signal_lost: float
    old_noise_kept: float
    noise_withheld: float
    net: float


class Ceiling(NamedTuple):
    """The gap of a run and the least gap that any batches after `start` could have left, at recorded steps (k,)."""

    step: np.ndarray
    intrinsic_time: np.ndarray
    gap: np.ndarray
    least_gap: np.ndarray


def anneal_start(schedule: Schedule) -> int:
    """Step at which the last rise of the ratio batch / lr begins: one after the last step with the smallest ratio.

    Raises
    ------
    InputError : if the last step still has the smallest ratio, so that there is no anneal.
    """
    ratio = path(schedule).ratio[:-1]
    start = ratio.size - int(np.argmin(ratio[::-1]))
    if start == ratio.size:
        raise InputError("the schedule ends at its smallest batch / lr, so it has no anneal; give `start` or a decay")
    return start


def decompose(spectrum: Spectrum, schedule: Schedule, *, start: int | None = None) -> Anneal:
    """Split the risk of an anneal, and of constant lr at the same intrinsic time and at the same data.

    Parameters
    ----------
    spectrum : modes, floor and label noise; schedule : N steps with finite batches, such as WSD. A growing batch is an
        anneal too.
    start : step in 1..N-1 at which the anneal begins; default `anneal_start(schedule)`.

    Returns
    -------
    Anneal with about 200 evenly spaced records of each run, its first and last step among them.

    Raises
    ------
    InputError : for a schedule that is traced, unstable, has no anneal, infinite batches, or an lr of 0 before `start`.
    """
    if is_traced(spectrum, schedule):
        raise InputError("an anneal is split in numbers; call this outside of jit, vmap and grad")
    begin = _begin(schedule, start)
    lr, batch = float(schedule.lr[begin - 1]), float(schedule.batch[begin - 1])
    if lr == 0.0 or not np.isfinite(np.asarray(schedule.batch)).all():
        raise InputError(
            f"lr {lr:g} before the anneal must be above 0 and all batches finite; choose another start or batch"
        )
    check_stability(spectrum, schedule)
    whole = path(schedule, at=[begin, schedule.steps])
    state, _ = recursion.evolve(spectrum, schedule.part(0, begin), at=[begin])
    duration, samples = float(np.diff(whole.intrinsic_time)[0]), float(np.diff(whole.data)[0])

    def parts(run: Schedule) -> Parts:
        return _parts(spectrum, run, state, begin, float(whole.intrinsic_time[0]), float(whole.data[0]))

    return Anneal(
        begin,
        parts(schedule.part(begin, schedule.steps)),
        parts(_steady(lr, batch, duration / lr)),
        parts(_steady(lr, batch, samples / batch)),
    )


def drop(parts: Parts) -> Change:
    """How far the risk of one run falls from the beginning of the anneal to the end: signal learnt, old noise faded,
    and (negative) new noise injected."""
    return _change(parts, 0, parts, -1)


def gain(found: Anneal, *, against: str = "time") -> Change:
    """By how much the anneal ends below constant lr at the same "time" or the same "data", part by part."""
    one_of("against", against, ("time", "data"))
    return _change(found.same_time if against == "time" else found.same_data, -1, found.annealed, -1)


def clock_cost(found: Anneal) -> ClockCost:
    """What the slower clock of the anneal costs at fixed data, beside the noise that it withholds."""
    won = gain(found, against="data")
    lost = float(found.same_data.intrinsic_time[-1] - found.annealed.intrinsic_time[-1])
    return ClockCost(lost, -won.signal, -won.old_noise, won.new_noise, won.total)


def memory_ceiling(spectrum: Spectrum, schedule: Schedule, start: int, *, at: object = None) -> Ceiling:
    """The gap, and what is left of the gap of step `start` if nothing is injected any more.

    The second is a lower bound for every choice of the batches after `start` at these lr, up to infinite ones: noise
    that is in the modes leaves them as the memory does. So the gap decays no faster than the memory, q_N <= q_K,
    however fast the ratio grows.

    Parameters
    ----------
    start : step in 1..N from which on nothing is injected.
    at : recorded steps in start..N, increasing; default about 200 evenly spaced ones.

    Raises
    ------
    InputError : also without label noise, when there is no gap.
    """
    begin = whole_number("start", start)
    if begin > schedule.steps:
        raise InputError(f"start must lie in 1..{schedule.steps}, got {begin}; choose a step of the schedule")
    if float(spectrum.noise_var) == 0.0:
        raise InputError("noise_var is 0, so there is no gap; give label noise")
    given = begin + _evenly(schedule.steps - begin) if at is None else np.asarray(at)
    if given.size and given.min() < begin:
        raise InputError(f"at asks for step {given.min():g} before start {begin}; ask within {begin}..{schedule.steps}")
    curve = recursion.risk(spectrum, schedule, at=given)
    state, _ = recursion.evolve(spectrum, schedule.part(0, begin), at=[begin])
    silent = schedule.part(begin, schedule.steps).replace(batch=math.inf)
    least = _fading(spectrum, silent, np.asarray(state.gap), 0.0, np.asarray(curve.step) - begin)
    return Ceiling(np.asarray(curve.step), np.asarray(curve.intrinsic_time), np.asarray(curve.gap), least)


def _begin(schedule: Schedule, start: int | None) -> int:
    if start is None:
        return anneal_start(schedule)
    begin = whole_number("start", start)
    if begin >= schedule.steps:
        raise InputError(f"start must lie in 1..{schedule.steps - 1}, got {begin}; the anneal needs a step before it")
    return begin


def _steady(lr: float, batch: float, steps: float) -> Schedule:
    """Constant schedule over a real number of steps: the last one has the fraction that is left of lr and batch."""
    full = math.floor(steps * (1.0 + 1e-13))
    rest = steps - full
    run = constant(full, lr, batch)
    return join(run, constant(1, lr * rest, batch * rest)) if rest > _PARTIAL else run


def _parts(spectrum: Spectrum, run: Schedule, state: State, begin: int, time: float, used: float) -> Parts:
    """The three parts of one run from their own recursions, and its risk from the full one."""
    at = _evenly(run.steps)
    zero = np.zeros(spectrum.modes)
    memory = np.asarray(state.clean_memory) + np.asarray(state.gap)
    everything = State(np.asarray(state.forcing) + memory, zero, zero)
    total = recursion.risk(spectrum, run, at=at, state=state)
    return Parts(
        begin + at,
        time + intrinsic_time(run.lr, at),
        used + intrinsic_time(run.batch, at),
        np.asarray(total.risk),
        _fading(spectrum, run, np.asarray(state.forcing), float(spectrum.floor), at),
        _fading(spectrum, run, memory, 0.0, at),
        # noise since the beginning is the memory of a run that takes all that was there for its forcing
        np.asarray(recursion.risk(spectrum, run, at=at, state=everything).memory),
    )


def _fading(spectrum: Spectrum, run: Schedule, energy: np.ndarray, floor: float, at: np.ndarray) -> np.ndarray:
    """Mode energies that get no source, plus a floor, at recorded steps of a run."""
    alone = spectrum.replace(forcing_energy=energy, floor=floor, noise_var=0.0)
    return np.asarray(recursion.risk(alone, run, at=at).forcing)


def _evenly(steps: int) -> np.ndarray:
    return np.unique(np.rint(np.linspace(0.0, steps, min(steps, _RECORDS) + 1)).astype(np.int64))


def _change(before: Parts, place: int, after: Parts, other: int) -> Change:
    return Change(
        *(
            float(getattr(before, name)[place] - getattr(after, name)[other])
            for name in ("risk", "signal", "old_noise", "new_noise")
        )
    )
