"""From stretch to stretch: the exact curve of a piecewise-constant schedule at whole or interpolated steps."""

import math

import numpy as np

from rfsim.checks import InputError
from rfsim.curves import Curve, State
from rfsim.precision import float64_array, is_traced, require_float64
from rfsim.routes.jump.constant import Constant, step_terms
from rfsim.schedules import Schedule, log_spaced_steps
from rfsim.spectra import Spectrum
from rfsim.stretches import Stretches, from_schedule

STEPPED = 48  # stretches of at most this many steps are stepped one by one: cheaper than an eigen-decomposition


class Modes:
    """The real arrays of a Spectrum that this route can run."""

    def __init__(self, spectrum: Spectrum) -> None:
        require_float64()
        if is_traced(spectrum):
            raise InputError(
                "route jump works on NumPy numbers and cannot be traced by jit, vmap or grad; use recursion"
            )
        arrays = {
            name: np.asarray(float64_array(name, getattr(spectrum, name), allow_complex=True))
            for name in ("eigenvalues", "forcing_energy", "multiplicity")
        }
        if any(array.dtype.kind == "c" for array in arrays.values()):
            raise InputError("route jump needs real modes, this spectrum has complex nodes; use route recursion")
        self.eigenvalues, self.forcing, self.multiplicity = arrays.values()
        if (self.eigenvalues <= 0.0).any() or (self.multiplicity < 0.0).any():
            raise InputError("route jump needs eigenvalues > 0 and multiplicities >= 0; use route recursion")
        self.floor, self.noise = float(spectrum.floor), float(spectrum.noise_var)

    def start(self, state: State | None) -> State:
        """The given state as NumPy arrays, or the one before the first step."""
        if state is None:
            zero = np.zeros(self.eigenvalues.size)
            return State(self.forcing, zero, zero)
        return State(*(np.asarray(part, dtype=np.float64) for part in state))

    def constant(self, lr: float, batch: float) -> Constant:
        """Decomposition of one stretch."""
        return Constant(self.eigenvalues, self.multiplicity, lr, batch)


def recorded_times(at: object, last: float) -> np.ndarray:
    """Recorded times (k,), real, strictly increasing, in 0..last; default about 200 log-spaced whole steps."""
    if at is None:
        return log_spaced_steps(int(last)).astype(np.float64)
    given = np.atleast_1d(np.asarray(at))
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iuf" or not np.isfinite(given).all():
        raise InputError(f"at must list finite steps, got {at!r}; give for example at=[0, 10, 2.5e9]")
    times = given.astype(np.float64)
    if times.min() < 0.0 or times.max() > last:
        wrong = times.min() if times.min() < 0.0 else times.max()
        raise InputError(
            f"at asks for step {wrong:.17g} but the schedule allows 0..{last:.17g}; lengthen it or ask within"
        )
    if (np.diff(times) <= 0.0).any():
        raise InputError("at must be strictly increasing; sort the steps and drop repeats")
    return times


def as_steps(times: np.ndarray) -> np.ndarray:
    """The times as integers if all of them are whole."""
    return times.astype(np.int64) if (times == np.floor(times)).all() else times


def risk(spectrum: Spectrum, schedule: Schedule | Stretches, *, at: object = None, state: State | None = None) -> Curve:
    """Exact risk and its two groupings at recorded steps, whole or not.

    Parameters
    ----------
    spectrum : n real modes; a multiplicity of 0 is a mode that carries forcing only.
    schedule : Stretches, or a Schedule, whose runs of equal steps are found first.
    at : recorded steps in 0..N, strictly increasing, real; default about 200 log-spaced whole ones with 0 and N.
    state : start from this state instead of the initial one; steps and clock then count from there.

    Returns
    -------
    Curve. A step t that is not whole gives the analytic continuation in t from the last change of lr or batch before
    it.

    Raises
    ------
    InputError : for traced or complex spectra and bad `at`.

    Notes
    -----
    On a stretch R_t = floor + sum_j c_j(t), c -> (1 - D + q 1^T) c + q (floor + sigma^2), is a sum of powers
    (1 - delta_k)^t. Stability is not asked for; see `rfsim.exact.check_stability`.
    """
    return _walk(spectrum, schedule, at, state, last_state=False)[1]


def evolve(
    spectrum: Spectrum, schedule: Schedule | Stretches, *, at: object = None, state: State | None = None
) -> tuple[State, Curve]:
    """Like `risk`, and return the state after the last step too, so that a run can be continued."""
    return _walk(spectrum, schedule, at, state, last_state=True)


def _walk(
    spectrum: Spectrum, schedule: Schedule | Stretches, at: object, state: State | None, *, last_state: bool
) -> tuple[State, Curve]:
    pieces = from_schedule(schedule) if isinstance(schedule, Schedule) else schedule
    modes = Modes(spectrum)
    edges = pieces.edges
    times = recorded_times(at, edges[-1])
    totals, clock = np.empty((times.size, 3)), np.empty(times.size)
    now = modes.start(state)
    overflow: int | None = None
    passed = 0.0
    first = 0
    with np.errstate(over="ignore", invalid="ignore"):
        for number in range(pieces.count):
            lr, batch, begin = float(pieces.lr[number]), float(pieces.batch[number]), edges[number]
            last = number == pieces.count - 1
            stop = times.size if last else int(np.searchsorted(times, edges[number + 1]))
            local = times[first:stop] - begin
            clock[first:stop] = passed + lr * local
            steps = float(pieces.steps[number])
            leave = last_state or not last
            now, totals[first:stop], gone = cross(modes, lr, batch, steps, local, now, leave=leave)
            if gone is not None and overflow is None:
                overflow = int(begin) + gone
            passed = math.fsum([passed, lr * steps])
            first = stop
        if not pieces.count:
            totals[:], clock[:] = [part.sum() for part in now], 0.0
        totals = np.where(np.logical_or.accumulate(~np.isfinite(totals), axis=0), np.inf, totals)
        forcing, clean_memory, gap = modes.floor + totals[:, 0], totals[:, 1], totals[:, 2]
        clean = forcing + clean_memory
        curve = Curve(
            as_steps(times), clock, clean + gap, forcing, clean_memory + gap, clean, gap, spectrum.floor, overflow
        )
    return now, curve


def cross(
    modes: Modes, lr: float, batch: float, steps: float, local: np.ndarray, now: State, *, leave: bool = True
) -> tuple[State, np.ndarray, int | None]:
    """Cross one stretch: state after it (if `leave`), totals (k, 3) at times `local` in it, step that overflowed."""
    if lr == 0.0 or steps == 0.0:
        return now, np.tile([part.sum() for part in now], (local.size, 1)), None
    if steps <= STEPPED and (local == np.floor(local)).all():
        after, recorded, gone = step_by_step(modes, np.full(int(steps), lr), np.full(int(steps), batch), now)
        return after, recorded[local.astype(np.int64)], gone
    fixed = modes.constant(lr, batch)
    totals = fixed.totals(local, now, modes.floor, modes.noise) if local.size else np.empty((0, 3))
    after = fixed.advance(steps, now, modes.floor, modes.noise) if leave else now
    gone = None

    def finite(step: int) -> bool:
        return bool(np.isfinite(fixed.totals(np.array([float(step)]), now, modes.floor, modes.noise).sum()))

    if leave:
        whole = math.isfinite(sum(float(part.sum()) for part in after))
    else:
        whole = local.size > 0 and local[-1] == steps and bool(np.isfinite(totals[-1].sum()))
    if not whole and not finite(int(steps)):
        low, high = 0, int(steps)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if finite(middle) else (low, middle)
        gone = high
    return after, totals, gone


def step_by_step(modes: Modes, lr: np.ndarray, batch: np.ndarray, now: State) -> tuple[State, np.ndarray, int | None]:
    """Take the steps of lr, batch (N,) one by one: state after them, totals (N + 1, 3), first step that overflowed."""
    energy = np.stack(now)
    recorded = np.empty((lr.size + 1, 3))
    recorded[0] = energy.sum(axis=1)
    gone = None
    for step, (rate, size) in enumerate(zip(lr.tolist(), batch.tolist(), strict=True), 1):
        decay, kept, injection = step_terms(rate * modes.eigenvalues, modes.multiplicity, size)
        forcing, clean_memory, gap = recorded[step - 1]
        energy = np.where(decay < 0.5, energy - decay * energy, kept * energy)
        energy[1] += injection * (forcing + clean_memory + modes.floor)
        energy[2] += injection * (gap + modes.noise)
        recorded[step] = energy.sum(axis=1)
        if gone is None and not np.isfinite(recorded[step].sum()):
            gone = step
    return State(*np.where(np.isnan(energy), np.inf, energy)), recorded, gone
