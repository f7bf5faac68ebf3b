"""Exact mode recursion for any joint schedule: O(steps x modes) time, memory independent of the number of steps.

Every curve is the sum over modes of a linear system driven by its own source,

    s_j <- q_t(l_j) s_j + (eta_t^2 / B_t) m_j l_j^2 (source),   q_t(l) = (1 - eta_t l)^2 + eta_t^2 l^2 / B_t,

with q written as 1 - eta l (2 - eta l) + ... for small eta l so that slow modes keep their digits. Forcing has source
0, the memory of the clean run has source (clean risk), the gap has source (gap + sigma^2); risk and memory are sums of
these positive parts, so nothing is a difference of nearly equal numbers.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rfsim.curves import Curve, State
from rfsim.precision import float64_array, is_traced
from rfsim.schedules import Array, Schedule, intrinsic_time, recorded_steps
from rfsim.spectra import Spectrum

_CHUNKS = (1024, 16384)  # steps compiled into one call: short horizons, long horizons


class Systems(NamedTuple):
    """k linear systems over the same modes, and how they drive each other: source = feedback @ totals + constant.

    energy : (k, n) mode energies; totals : (k,) their sums; feedback : (k, k); constant : (k,).
    """

    energy: jax.Array
    totals: jax.Array
    feedback: jax.Array
    constant: jax.Array


def initial_state(spectrum: Spectrum) -> State:
    """State before the first step: all forcing, no memory, no gap."""
    zero = np.zeros(spectrum.modes)
    return State(spectrum.forcing_energy, zero, zero)


def risk(
    spectrum: Spectrum,
    schedule: Schedule,
    *,
    at: object = None,
    state: State | None = None,
    progress: Callable[[int], None] | None = None,
) -> Curve:
    """Exact risk and its two groupings at recorded steps.

    Parameters
    ----------
    spectrum : n modes; schedule : N steps.
    at : recorded steps in 0..N, strictly increasing; default about 200 log-spaced ones with 0 and N.
    state : start from this state instead of `initial_state(spectrum)`; steps and clock then count from there.
    progress : called with the number of finished steps, outside of compiled code.

    Returns
    -------
    Curve with k recorded steps. Under jit, vmap or grad it stays traced and `overflow_step` is None.

    Notes
    -----
    rho_j(t+1) = q_t(l_j) rho_j(t) + (eta_t^2/B_t) m_j l_j^2 (R_t + sigma^2), R_t = floor + sum_j rho_j(t): exact for
    Gaussian inputs and any zero-mean label noise of variance sigma^2 (Wang, Liu, Chen 2026, mode recursion).
    """
    return evolve(spectrum, schedule, at=at, state=state, progress=progress)[1]


def evolve(
    spectrum: Spectrum,
    schedule: Schedule,
    *,
    at: object = None,
    state: State | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[State, Curve]:
    """Like `risk`, and return the state after the last step too, so that a run can be continued."""
    steps = recorded_steps(at, schedule.steps)
    start = initial_state(spectrum) if state is None else state
    floor, noise = _array("floor", spectrum), _array("noise_var", spectrum)
    zero = jnp.zeros(())
    systems = _systems(
        (start.forcing, start.clean_memory, start.gap),
        jnp.array([[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        jnp.stack([zero, floor, noise]),
    )
    systems, totals, overflow = _run(spectrum, schedule, systems, steps, progress)
    energy = systems.energy if overflow is None else jnp.where(jnp.isnan(systems.energy), jnp.inf, systems.energy)
    time = _clock(schedule, steps)
    with np.errstate(over="ignore"):
        forcing, clean_memory, gap = spectrum.floor + totals[:, 0], totals[:, 1], totals[:, 2]
        clean = forcing + clean_memory
        curve = Curve(steps, time, clean + gap, forcing, clean_memory + gap, clean, gap, spectrum.floor, overflow)
    return State(energy[0], energy[1], energy[2]), curve


def terminal_risk(spectrum: Spectrum, schedule: Schedule) -> jax.Array:
    """Risk R_N after the last step of the schedule, a scalar; differentiable in every lr, batch and mode.

    The same recursion as `risk`, without its groupings (Wang, Liu, Chen 2026, mode recursion).

    Raises
    ------
    InputError : for modes or schedules that came in float32. Stability is not checked.
    """
    start = spectrum.forcing_energy
    source = _array("floor", spectrum) + _array("noise_var", spectrum)
    systems = _systems((start,), jnp.ones((1, 1)), source[None])
    totals = _run(spectrum, schedule, systems, np.array([schedule.steps]), None)[1]
    return jnp.asarray(spectrum.floor + totals[0, 0])


def row_mass(spectrum: Spectrum, schedule: Schedule, *, at: object = None) -> Array:
    """Row sums of the memory kernel, sum_{s<t} K_{t,s}, at recorded steps (k,); times sigma^2 the first-order noise.

    Below one for all t it certifies that the schedule is stable.

    Raises
    ------
    InputError : for steps that are not whole, not increasing, or beyond the schedule.
    """
    steps = recorded_steps(at, schedule.steps)
    return _run(spectrum, schedule, _row_systems(spectrum), steps, None)[1][:, 0]


def largest_row_mass(spectrum: Spectrum, schedule: Schedule) -> tuple[int, float]:
    """Step with the largest row sum of the memory kernel, and that sum; memory does not grow with the steps."""
    found = [(0, 0.0)]

    def watch(start: int, totals: np.ndarray) -> None:
        place = int(np.argmax(totals[:, 0]))
        if totals[place, 0] > found[0][1]:
            found[0] = (start + 1 + place, float(totals[place, 0]))

    _run(spectrum, schedule, _row_systems(spectrum), np.array([schedule.steps]), None, watch)
    return found[0]


# --- the engine ------------------------------------------------------------------------------------------------------


def _array(name: str, spectrum: Spectrum) -> jax.Array:
    """One field of the spectrum in double precision; a field that came rounded to float32 is refused by name."""
    return jnp.asarray(float64_array(name, getattr(spectrum, name), allow_complex=True))


def _row_systems(spectrum: Spectrum) -> Systems:
    """One system without feedback whose source is 1: its totals are the row sums of the kernel."""
    return _systems((np.zeros(spectrum.modes),), jnp.zeros((1, 1)), jnp.ones(1))


def _systems(energies: tuple[Array, ...], feedback: jax.Array, constant: jax.Array) -> Systems:
    energy = jnp.stack([jnp.asarray(float64_array("mode energies", e, allow_complex=True)) for e in energies])
    return Systems(energy, jnp.real(energy.sum(axis=1)), feedback, constant)


def _advance(
    eigenvalues: jax.Array, multiplicity: jax.Array | None, systems: Systems, lr: jax.Array, inverse_batch: jax.Array
) -> tuple[Systems, jax.Array]:
    """Advance all systems by len(lr) steps; return them and the totals after every step, (steps, k)."""

    def step(carry: tuple[jax.Array, jax.Array], now: tuple[jax.Array, jax.Array]) -> tuple:
        energy, totals = carry
        eta, inverse = now
        x = eta * eigenvalues
        spread = x * x * inverse
        # systems that drive nothing here are left out, not multiplied by 0: one of them may have overflowed
        driven = jnp.where(systems.feedback != 0.0, systems.feedback * totals[None, :], 0.0)
        source = driven.sum(axis=1) + systems.constant
        source = jnp.where((eta * inverse > 0.0) | jnp.isfinite(source), source, 0.0)
        slow = energy - (x * (2.0 - x))[None, :] * energy
        fast = jnp.square(1.0 - x)[None, :] * energy
        kept = jnp.where((jnp.real(x) < 0.5)[None, :], slow, fast)
        if multiplicity is None:  # every mode counts once; quicker, but overflows a little before the energy does
            energy = kept + spread[None, :] * (energy + source[:, None])
        else:
            energy = kept + spread[None, :] * energy + (spread * multiplicity)[None, :] * source[:, None]
        totals = jnp.real(energy.sum(axis=1))
        return (energy, totals), totals

    history: jax.Array
    (energy, totals), history = lax.scan(step, (systems.energy, systems.totals), (lr, inverse_batch))
    return Systems(energy, totals, systems.feedback, systems.constant), history


_advance_compiled = jax.jit(_advance)


@partial(jax.checkpoint)
def _advance_again(*arguments: object) -> tuple[Systems, jax.Array]:
    """Advance, recomputing the steps in the backward pass instead of storing every mode of every step."""
    return _advance(*arguments)  # type: ignore[arg-type]


def _run(
    spectrum: Spectrum,
    schedule: Schedule,
    systems: Systems,
    steps: np.ndarray,
    progress: Callable[[int], None] | None,
    watch: Callable[[int, np.ndarray], None] | None = None,
) -> tuple[Systems, Array, int | None]:
    """Run the whole schedule; return final systems, totals (k, systems) at `steps`, first overflowing step.

    `watch` sees the totals after every step, chunk by chunk: the step before the chunk, and (steps, systems).
    """
    if is_traced(spectrum, schedule, systems):
        return *_run_traced(spectrum, schedule, systems, steps), None
    eigenvalues, multiplicity = _array("eigenvalues", spectrum), _array("multiplicity", spectrum)
    count = None if np.all(np.asarray(multiplicity) == 1.0) else multiplicity
    lr, batch = (
        np.asarray(value if value.dtype == np.float64 else float64_array(name, value))  # no copy of what is right
        for name, value in (("lr", schedule.lr), ("batch", schedule.batch))
    )
    chunk = _CHUNKS[0] if schedule.steps <= 8 * _CHUNKS[0] else _CHUNKS[1]
    recorded = np.empty((len(steps), len(systems.constant)))
    recorded[steps == 0] = np.asarray(systems.totals)
    with np.errstate(over="ignore"):
        overflow: int | None = None if np.isfinite(np.sum(np.asarray(systems.totals))) else 0
    broken = np.zeros(len(systems.constant), dtype=bool)
    for start in range(0, schedule.steps, chunk):
        stop = min(start + chunk, schedule.steps)
        # steps with lr 0 and 1/batch 0 change nothing, so the last chunk is filled up with them
        padding = (0, chunk - (stop - start))
        now = np.pad(lr[start:stop], padding), np.pad(1.0 / batch[start:stop], padding)
        before = systems
        systems, history = _advance_compiled(eigenvalues, count, before, *now)
        if count is None and not np.isfinite(np.asarray(systems.totals).sum()):
            count = multiplicity
            systems, history = _advance_compiled(eigenvalues, count, before, *now)
        totals = np.asarray(history)[: stop - start]
        with np.errstate(over="ignore", invalid="ignore"):
            whole = np.isfinite(totals.sum(axis=1))  # the risk may overflow where each of its parts still fits
        if overflow is None and not whole.all():
            overflow = start + 1 + int(np.argmin(whole))
        if overflow is not None:
            gone = np.logical_or.accumulate(np.vstack([broken, ~np.isfinite(totals)]), axis=0)[1:]
            totals = np.where(gone, np.inf, totals)
            broken = gone[-1]
        if watch is not None:
            watch(start, totals)
        inside = (steps > start) & (steps <= stop)
        recorded[inside] = totals[steps[inside] - start - 1]
        if progress is not None:
            progress(stop)
    return systems, recorded, overflow


def _run_traced(
    spectrum: Spectrum, schedule: Schedule, systems: Systems, steps: np.ndarray
) -> tuple[Systems, jax.Array]:
    eigenvalues, multiplicity = _array("eigenvalues", spectrum), _array("multiplicity", spectrum)
    count = schedule.steps
    block = max(1, int(np.sqrt(count)))
    blocks = -(-count // block)
    padding = (0, blocks * block - count)
    lr = jnp.pad(jnp.asarray(schedule.lr), padding).reshape(blocks, block)
    inverse_batch = jnp.pad(1.0 / jnp.asarray(schedule.batch), padding).reshape(blocks, block)
    systems, totals = _advance_blocks(eigenvalues, multiplicity, systems, lr, inverse_batch)
    return systems, totals[steps]


@jax.jit
def _advance_blocks(
    eigenvalues: jax.Array, multiplicity: jax.Array, systems: Systems, lr: jax.Array, inverse_batch: jax.Array
) -> tuple[Systems, jax.Array]:
    """Advance by all blocks of steps (blocks, steps); return the systems and all totals from the start on."""

    def advance(carry: Systems, now: tuple[jax.Array, jax.Array]) -> tuple[Systems, jax.Array]:
        return _advance_again(eigenvalues, multiplicity, carry, *now)

    first = systems.totals[None, :]
    systems, history = lax.scan(advance, systems, (lr, inverse_batch))
    return systems, jnp.concatenate([first, history.reshape(lr.size, first.shape[1])])


def _clock(schedule: Schedule, steps: np.ndarray) -> Array:
    if is_traced(schedule.lr):
        return jnp.concatenate([jnp.zeros(1), jnp.cumsum(jnp.asarray(schedule.lr))])[steps]
    return intrinsic_time(schedule.lr, steps)
