"""Late risk of a constant schedule on an integrable memory: what remains of F, K and the noise after many renewals.

Past noise feeds on itself: R_t = F_t + sum over s < t of K_(t-1-s) (R_s + sigma^2). When kernel and forcing are
summable with regularly decaying tails, one late event dominates the sum and every other factor is a geometric series
in kappa (classical renewal theory for subexponential sequences).
"""

from typing import NamedTuple

import numpy as np

from rfsim.checks import InputError, finite_vector, told_apart
from rfsim.spectra import Spectrum
from rfsim.stationary import kappa, lr_limit


class Renewal(NamedTuple):
    """Asymptotic risk of a constant schedule at steps t (k,), risk = clean + gap; see `renewal_risk`.

    kernel_mass : kappa; forcing_sum : the sum of F_s - floor over all steps s.
    """

    risk: np.ndarray
    clean: np.ndarray
    gap: np.ndarray
    kernel_mass: float
    forcing_sum: float


def renewal_risk(spectrum: Spectrum, lr: float, batch: float, steps: object) -> Renewal:
    """Leading late risk of a stable constant schedule, constants included.

    With f_t = F_t - floor, K_t the kernel at lag t, S_t its sum over lags below t:

        gap / sigma^2 = U_t ~ kappa/(1 - kappa) - (kappa - S_t)/(1 - kappa)^2,
        clean ~ floor (1 + U_t) + f_t/(1 - kappa) + (sum of f) K_t/(1 - kappa)^2.

    Both terms in f are kept: the larger exponent loses, q_F against q_K, and finite windows see both.

    Parameters
    ----------
    spectrum : an infinite or wide power law with q_K > 1 (alpha > 1/2); the term in the sum of f needs q_F > 1 as well.
        A finite spectrum is described as long as its slowest mode has not died out.
    steps : (k,) numbers t >= 0, need not be whole.

    Raises
    ------
    InputError : for an unstable schedule.

    Source: theory of Wang, Liu, Chen 2026, clean exponent and renewal amplitude.
    """
    mass = kappa(spectrum, lr, batch)
    if not mass < 1.0:
        given, allowed = told_apart(float(lr), float(lr_limit(spectrum, batch)))
        raise InputError(f"lr {given} is not below the stability limit {allowed}; lower lr")
    lags = finite_vector("steps", np.atleast_1d(np.asarray(steps)), least=0.0)
    lam, count = np.asarray(spectrum.eigenvalues), np.asarray(spectrum.multiplicity)
    energy = np.asarray(spectrum.forcing_energy)
    drop = lr * lam * (2.0 - (1.0 + 1.0 / batch) * lr * lam)  # 1 - q
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.exp(np.where(lags[:, None] == 0.0, 0.0, lags[:, None] * np.log1p(-drop)))
    forcing, total = powers @ energy, float(np.sum(np.sort(energy / drop)))
    injected = lr**2 / batch * count * lam**2
    kernel = powers @ injected
    left = 1.0 - mass
    unit = mass / left - powers @ (injected / drop) / left**2  # injected/drop at t: kappa - S_t
    gap = float(spectrum.noise_var) * unit
    clean = float(spectrum.floor) * (1.0 + unit) + forcing / left + total * kernel / left**2
    return Renewal(clean + gap, clean, gap, mass, total)
