"""Compression of a Spectrum, and the errors it makes."""

import math
from typing import NamedTuple

import numpy as np

from rfsim.checks import InputError, RunError, positive_number, require_entries
from rfsim.compress.fine import fine_rule, frozen
from rfsim.compress.integrands import EARLY, LATE, NEGLIGIBLE, Modes, Rows, comparison, early, integrals, relative_until
from rfsim.compress.windows import few_nodes
from rfsim.precision import float64_array, is_traced
from rfsim.spectra import Spectrum

_SMALL = 24  # modes of a spectrum that is returned as it is
_WIDEST = (
    1e-25  # min l / max l of a spectrum that is resolved to its end; a wider one is resolved for T max l <= _REACH
)
_REACH = 2e16  # largest lr 2 / max l times the largest step count that float64 holds
_SHARE, _TRIES = 0.8, 6  # of the tolerance that one window may use at first; how often it may be lowered
_BETWEEN = 1.15  # errors between the times at which they were looked at, over the largest one seen


class Compression(NamedTuple):
    """A compressed spectrum and how far to trust it.

    spectrum : the few nodes; nodes : how many.
    forcing_error, memory_error : estimates of the largest relative error of F above the floor and of the kernel K, in
        the continuum and in discrete steps up to the pointwise limit, while 2 T min l <= 10 (min over the modes that
        have energy, or multiplicity). Below 1e-50 of the value at T = 0, errors are relative to that.
    forcing_late, memory_late : estimates of the largest absolute error later, in units of F(0) above the floor, K(0).
    kappa_error : estimate of the largest relative error of kappa up to 99 % of the pointwise limit.
    valid_until : intrinsic time T with 2 T min l = 10. Later the late errors hold; but for a spectrum of more than 25
        decades, which is resolved for T <= 2e16 / max l, beyond the reach of float64 step counts, nothing is claimed.
    """

    spectrum: Spectrum
    nodes: int
    forcing_error: float
    memory_error: float
    forcing_late: float
    memory_late: float
    kappa_error: float
    valid_until: float


def compress(spectrum: Spectrum, *, tolerance: float = 1e-9) -> Spectrum:
    """Few-node spectrum with the same forcing F_t and memory kernel K_{t,s}, under every schedule.

    Parameters
    ----------
    spectrum : n modes with real eigenvalues, non-negative energies and multiplicities, in any order.
    tolerance : relative error allowed on F above the floor and on K while 2 T min l <= 10; later 1e-3 of it, absolute,
        in units of F(0) and K(0). kappa is ten times better. Between 1e-11 and 1e-3.

    Returns
    -------
    Spectrum with ascending eigenvalues, the same largest one, no negative energy or multiplicity; floor and noise_var
    are those of `spectrum`. About four nodes per factor e between the eigenvalues, up to twice as many where energies
    scatter from mode to mode. A spectrum that has no more modes than that comes back as it is.

    Raises
    ------
    InputError : for complex, negative, non-finite or traced modes, or a tolerance out of range.
    RunError : if the tolerance cannot be met.

    Notes
    -----
    Gauss rules of discrete measures (Golub and Welsch) on geometric windows; see `rfsim.compress`.
    """
    return compress_with_error(spectrum, tolerance=tolerance).spectrum


def compress_with_error(spectrum: Spectrum, *, tolerance: float = 1e-9) -> Compression:
    """Like `compress`, with an estimate of every error that is made: see `Compression`."""
    tolerance = positive_number("tolerance", tolerance)
    if not 1e-11 <= tolerance <= 1e-3:
        raise InputError(f"tolerance must lie between 1e-11 and 1e-3, got {tolerance:g}; 1e-9 is a good choice")
    modes, scale = _modes(spectrum)
    wide = bool(modes.lam[0] < _WIDEST)
    until = relative_until(modes, _REACH if wide else math.inf)
    same = Compression(spectrum, spectrum.modes, 0.0, 0.0, 0.0, 0.0, 0.0, float(until.max()) / scale)
    if spectrum.modes <= _SMALL:
        return same
    fine = fine_rule(frozen(modes) if wide else modes)
    share = _SHARE
    for _ in range(_TRIES):
        few = few_nodes(fine, until, share * tolerance, late=not wide)
        found = _errors(modes, fine, few, until, late=not wide)
        worst = max(*found[:2], found[2] / LATE, found[3] / LATE, 10.0 * found[4])
        if worst <= tolerance:
            break
        share *= 0.8 * tolerance / worst
    else:
        raise RunError(
            f"compression of this spectrum is accurate to {worst:.1e} only, not to {tolerance:g}; raise tolerance"
        )
    if few.lam.size >= spectrum.modes:
        return same
    multiplicity = few.kernel / few.lam / few.lam
    nodes = Spectrum(few.lam * scale, few.forcing, multiplicity, spectrum.floor, spectrum.noise_var)
    return Compression(nodes, nodes.modes, *found, same.valid_until)


def compression_error(full: Spectrum, few: Spectrum, time: object) -> tuple[np.ndarray, np.ndarray]:
    """Relative errors of F(T) above the floor and of K(T) at times (k,), by sums over all modes: (k,), (k,)."""
    times = np.atleast_1d(np.asarray(float64_array("time", time)))
    before, after = _continuum(full, times), _continuum(few, times)
    difference = np.abs(after - before)
    errors = np.where(difference == 0.0, 0.0, difference / np.where(before == 0.0, 1e-300, np.abs(before)))
    return errors[0], errors[1]


def _continuum(spectrum: Spectrum, times: np.ndarray) -> np.ndarray:
    lam = np.asarray(spectrum.eigenvalues)
    kernel = np.asarray(spectrum.multiplicity) * lam * lam
    every = Modes(lam, np.asarray(spectrum.forcing_energy), kernel)
    return integrals(Rows(times, np.zeros((3, 0)), np.zeros(0)), every)


def _modes(spectrum: Spectrum) -> tuple[Modes, float]:
    """Modes that carry weight, ascending, equal eigenvalues merged, scaled to maximum 1; and the scale."""
    if is_traced(spectrum):
        raise InputError("spectrum is traced by jax; compress it outside of jit, vmap and grad")
    names = ("eigenvalues", "forcing_energy", "multiplicity")
    lam, forcing, count = (np.asarray(float64_array(name, getattr(spectrum, name))) for name in names)
    require_entries("eigenvalues", lam, np.isfinite(lam) & (lam > 0.0), "finite and positive")
    for name, array in zip(names[1:], (forcing, count), strict=True):
        require_entries(name, array, np.isfinite(array) & (array >= 0.0), "finite and not negative")
    carries = (forcing > 0.0) | (count > 0.0)
    if not carries.any():
        raise InputError("spectrum has neither energy nor multiplicity in any mode; there is nothing to compress")
    scale = float(lam[carries].max())
    lam = lam / scale
    kernel = count * lam * lam
    order = np.flatnonzero((forcing > 0.0) | (kernel > 0.0))
    order = order[np.argsort(lam[order], kind="stable")]
    lam = lam[order]
    first = np.flatnonzero(np.diff(lam, prepend=-1.0))
    return Modes(lam[first], np.add.reduceat(forcing[order], first), np.add.reduceat(kernel[order], first)), scale


def _errors(
    modes: Modes, fine: Modes, few: Modes, until: np.ndarray, *, late: bool
) -> tuple[float, float, float, float, float]:
    """Errors of the few nodes against the fine rule on a denser grid, plus those of the fine rule on some rows."""
    dense = comparison(until, 0.05, late=late)
    some = comparison(until, math.log(float(until.max()) / EARLY) / 8.0, late=late)
    some = some._replace(power=some.power[:, ::31])
    worst = np.full(5, 1e-15)  # rounding of the sums themselves
    for rows, one, two in ((dense, fine, few), (some, modes, fine)):
        exact = integrals(rows, one)
        error, start = np.abs(integrals(rows, two) - exact), np.maximum(exact[:, :1], 1e-300)
        relative = error / np.maximum(exact, NEGLIGIBLE * start)
        moving = early(rows, until)
        split = moving.shape[1]
        worst[:2] += np.where(moving, relative[:, :split], 0.0).max(axis=1)
        worst[2:4] += np.where(moving, 0.0, error[:, :split] / start).max(axis=1)
        worst[4] += relative[1, split:].max()
    worst *= _BETWEEN
    return float(worst[0]), float(worst[1]), float(worst[2]), float(worst[3]), float(worst[4])
