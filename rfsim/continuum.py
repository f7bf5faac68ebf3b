"""The continuum picture: profiles F(T) and k(x) of a Spectrum, and the integral that accumulates injected noise.

It is what a finite-window exponent is compared with first: no fit, no limit, only the spectrum and the ratio path. It
differs from the exact dynamics by terms of first order in lr times the largest eigenvalue.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rfsim.checks import InputError, finite_vector, positive_number
from rfsim.precision import require_float64
from rfsim.spectra import Spectrum

_CELLS = 4000  # cells of the time grid, uniform in log(1 + T)


def forcing_profile(spectrum: Spectrum, time: object) -> np.ndarray:
    """Forcing above the floor in the continuum, F(T) = sum_j w_j exp(-2 T l_j), (k,) at times (k,)."""
    return _laplace(spectrum.eigenvalues, spectrum.forcing_energy, time)


def memory_profile(spectrum: Spectrum, lag: object) -> np.ndarray:
    """Survival of one noise injection, k(x) = sum_j m_j l_j^2 exp(-2 x l_j), (k,) at lags (k,) in intrinsic time."""
    return _laplace(spectrum.eigenvalues, spectrum.multiplicity * np.square(spectrum.eigenvalues), lag)


def time_grid(last: float, cells: int = _CELLS) -> np.ndarray:
    """Times from 0 to `last`, uniform in log(1 + T), (cells + 1,)."""
    grid = np.expm1(np.linspace(0.0, np.log1p(positive_number("last", last)), cells + 1))
    grid[-1] = last
    return grid


def accumulate(
    spectrum: Spectrum, time: object, source: object, ratio: object, *, feedback: bool = False
) -> np.ndarray:
    """Accumulated noise N(T) = int_0^T k(T - u) source(u) / r(u) du on a time grid starting at 0.

    Parameters
    ----------
    time : (k,) increasing from 0; source, ratio : (k,) values there; source/ratio is taken as linear between the points
        and integrated exactly against every mode's exponential, so stiff modes cost nothing.
    feedback : solve N = int k (source + N) / r instead: accumulated noise makes noise itself.

    Returns
    -------
    (k,) values, second order in the cell width.

    Raises
    ------
    InputError : if the grid does not start at 0 or does not increase, or a ratio is not positive.
    """
    require_float64()
    grid = finite_vector("time", time, least=0.0)
    if grid.size < 2 or grid[0] != 0.0 or (np.diff(grid) <= 0.0).any():
        raise InputError("time must increase strictly from 0 over at least two points; use rfsim.continuum.time_grid")
    drive = np.broadcast_to(np.asarray(source, dtype=np.float64), grid.shape)
    ratios = finite_vector("ratio", np.atleast_1d(np.asarray(ratio)), least=0.0, strict=True)
    inverse = 1.0 / np.broadcast_to(ratios, grid.shape)
    weight = jnp.asarray(spectrum.multiplicity * np.square(spectrum.eigenvalues))
    totals = _accumulate(
        jnp.asarray(spectrum.eigenvalues), weight, jnp.diff(grid), drive, inverse, jnp.asarray(float(feedback))
    )
    return np.concatenate([np.zeros(1), np.asarray(totals)])


@jax.jit
def _accumulate(
    eigenvalues: jax.Array,
    weight: jax.Array,
    width: jax.Array,
    drive: jax.Array,
    inverse_ratio: jax.Array,
    feedback: jax.Array,
) -> jax.Array:
    def cell(carry: tuple[jax.Array, jax.Array], now: tuple[jax.Array, ...]) -> tuple:
        energy, total = carry
        h, drive_a, drive_b, inverse_a, inverse_b = now
        z = 2.0 * eigenvalues * h
        small = z < 1e-3
        safe = jnp.where(small, 1.0, z)
        mean = jnp.where(small, 1.0 - z / 2.0 + z * z / 6.0, -jnp.expm1(-safe) / safe)
        late = jnp.where(small, 0.5 - z / 6.0 + z * z / 24.0, (1.0 - mean) / safe)
        start = (drive_a + feedback * total) * inverse_a
        known = energy * jnp.exp(-z) + h * weight * (start * (mean - late) + drive_b * inverse_b * late)
        response = (h * weight * late).sum() * inverse_b * feedback
        total = known.sum() / (1.0 - response)
        energy = known + h * weight * late * (feedback * total * inverse_b)
        return (energy, total), total

    cells = (width, drive[:-1], drive[1:], inverse_ratio[:-1], inverse_ratio[1:])
    return lax.scan(cell, (jnp.zeros_like(eigenvalues), jnp.zeros(())), cells)[1]


def _laplace(eigenvalues: object, weight: object, time: object) -> np.ndarray:
    """Sum over modes of weight_j exp(-2 time l_j), in pieces that keep memory small."""
    times = np.atleast_1d(finite_vector("time", np.atleast_1d(np.asarray(time)), least=0.0))
    lam, mass = np.asarray(eigenvalues), np.asarray(weight)
    values = np.zeros(times.size)
    piece = max(1, 2**22 // times.size)
    for start in range(0, lam.size, piece):
        part = slice(start, start + piece)
        values += np.exp(-2.0 * times[:, None] * lam[None, part]) @ mass[part]
    return values
