"""Volterra route: the forcing F_t, the two-time memory kernel K_{t,s} and the equation R = F + K (R + sigma^2).

Kept apart from the recursion in code and in arithmetic: products of q over steps, then a triangular solve. It holds the
whole kernel and is meant for thousands of steps, not millions.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from scipy.linalg import solve_triangular

from rfsim.checks import RunError
from rfsim.curves import Curve
from rfsim.precision import float64_array, is_traced, require_float64
from rfsim.schedules import Array, Schedule, intrinsic_time, recorded_steps
from rfsim.spectra import Spectrum

_MEMORY_LIMIT = 4 * 2**30  # bytes the kernel and its products may take


def forcing(spectrum: Spectrum, schedule: Schedule) -> np.ndarray:
    """Forcing F_t = floor + sum_j w_j prod_{u<t} q_u(l_j) at all steps, (N+1,)."""
    _require_room(spectrum, schedule)
    factors, _ = _factors_and_injections(spectrum, schedule)
    energy = jnp.asarray(float64_array("forcing_energy", spectrum.forcing_energy, allow_complex=True))
    products = np.asarray(_running_products(energy, factors))
    return np.concatenate([[np.real(np.sum(spectrum.forcing_energy))], products]) + spectrum.floor


def kernel(spectrum: Spectrum, schedule: Schedule) -> Array:
    """Two-time memory kernel as an array (N+1, N), zero for s >= t.

    K_{t,s} = (eta_s^2/B_s) sum_j m_j l_j^2 prod_{u=s+1}^{t-1} q_u(l_j): what one unit of noise injected at step s
    contributes to the risk at step t (Wang, Liu, Chen 2026, Volterra form). Works under jit, vmap and grad.

    Raises
    ------
    RunError : if the array would not fit into memory; the message says how many GiB it needs.
    """
    _require_room(spectrum, schedule)
    if schedule.steps == 0:
        return np.zeros((1, 0))
    rows = _kernel_rows(*_factors_and_injections(spectrum, schedule))
    if is_traced(rows):
        return jnp.concatenate([jnp.zeros((1, schedule.steps)), rows])
    return np.vstack([np.zeros((1, schedule.steps)), np.asarray(rows)])


def row_sums(spectrum: Spectrum, schedule: Schedule) -> np.ndarray:
    """Row sums sum_{s<t} K_{t,s} at all steps, (N+1,)."""
    return np.asarray(kernel(spectrum, schedule)).sum(axis=1)


def risk(spectrum: Spectrum, schedule: Schedule, *, at: object = None) -> Curve:
    """Risk and its two groupings from R = F + K (R + sigma^2), P = F + K P and Z = K (Z + sigma^2).

    Parameters and result are those of the recursion route, whose independent witness this is.
    """
    last = schedule.steps
    steps = recorded_steps(at, last)
    drive = forcing(spectrum, schedule)
    square = np.hstack([kernel(spectrum, schedule), np.zeros((last + 1, 1))])
    variance = float(spectrum.noise_var)
    with np.errstate(over="ignore", invalid="ignore"):
        noise = square.sum(axis=1) * variance
        right = np.stack([drive + noise, drive, noise], axis=1)
        system = np.eye(last + 1) - square
        solved = solve_triangular(system, right, lower=True, unit_diagonal=True, check_finite=False)
    # rows after an overflow are inf, rows before it are untouched by forward substitution
    total, clean, gap = np.where(np.logical_or.accumulate(~np.isfinite(solved), axis=0), np.inf, solved).T
    first = int(np.isfinite(total).sum())
    memory = np.full(last + 1, np.inf)
    memory[:first] = square[:first, :first] @ (total[:first] + variance)
    gap = gap if variance > 0.0 else np.zeros(last + 1)
    return Curve(
        step=steps,
        intrinsic_time=intrinsic_time(schedule.lr, steps),
        risk=total[steps],
        forcing=drive[steps],
        memory=memory[steps],
        clean=clean[steps],
        gap=gap[steps],
        floor=spectrum.floor,
        overflow_step=first if first <= last else None,
    )


def _require_room(spectrum: Spectrum, schedule: Schedule) -> None:
    require_float64()
    needed = 8 * (schedule.steps + 1) * (3 * schedule.steps + 3 * spectrum.modes)
    if needed > _MEMORY_LIMIT:
        raise RunError(
            f"route volterra needs {needed / 2**30:.1f} GiB for {schedule.steps} steps and {spectrum.modes} modes, "
            f"allowed are {_MEMORY_LIMIT / 2**30:.0f} GiB; use route recursion or fewer steps"
        )


@jax.jit
def _factors(eigenvalues: jax.Array, multiplicity: jax.Array, lr: jax.Array, inverse_batch: jax.Array) -> tuple:
    x = lr[:, None] * eigenvalues[None, :]
    spread = x * x * inverse_batch[:, None]
    return jnp.square(1.0 - x) + spread, spread * multiplicity[None, :]


def _factors_and_injections(spectrum: Spectrum, schedule: Schedule) -> tuple[jax.Array, jax.Array]:
    """Factors q_s(l_j) and injections (eta_s^2/B_s) m_j l_j^2, both (N, n)."""
    return _factors(
        jnp.asarray(float64_array("eigenvalues", spectrum.eigenvalues, allow_complex=True)),
        jnp.asarray(float64_array("multiplicity", spectrum.multiplicity, allow_complex=True)),
        jnp.asarray(schedule.lr),
        1.0 / jnp.asarray(schedule.batch),
    )


@jax.jit
def _running_products(start: jax.Array, factors: jax.Array) -> jax.Array:
    """Sum over modes of start_j prod_{u<=t} factors[u, j], (N,)."""

    def step(energy: jax.Array, factor: jax.Array) -> tuple[jax.Array, jax.Array]:
        energy = energy * factor
        return energy, jnp.real(energy.sum())

    return lax.scan(step, start, factors)[1]


@jax.jit
def _kernel_rows(factors: jax.Array, injections: jax.Array) -> jax.Array:
    """Rows t = 1..N of the kernel, (N, N): every injection decays by the factors of the steps after its own."""
    steps = factors.shape[0]

    def row(alive: jax.Array, now: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        index, factor, injection = now
        alive = lax.dynamic_update_index_in_dim(alive * factor[None, :], injection, index, axis=0)
        return alive, jnp.real(alive.sum(axis=1))

    return lax.scan(row, jnp.zeros_like(injections), (jnp.arange(steps), factors, injections))[1]
