"""Constant schedules in closed form: total kernel mass, stability, lr limit, limiting risk, sandwich bounds.

Everything here is exact for the given spectrum. x = eta l, and 1 - q(l) = x (2 - (1 + 1/B) x) is never formed as a
difference.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from rfsim.checks import InputError, finite_vector, positive_number, same_length
from rfsim.spectra import Spectrum

_DIVERGED = 1e60  # a trace this large stands for an infinite one (rfsim.sources.population)


class Sandwich(NamedTuple):
    """Bounds lower <= R_t <= upper at the given steps, and what they are made of; all (k,)."""

    lower: np.ndarray
    upper: np.ndarray
    kernel_mass: np.ndarray


def pointwise_limit(spectrum: Spectrum, batch: float) -> float:
    """Largest lr for which no mode grows by itself: 2 / ((1 + 1/B) max l)."""
    batch = positive_number("batch", batch, allow_inf=True)
    return 2.0 / ((1.0 + 1.0 / batch) * float(np.max(spectrum.eigenvalues)))


def kappa(spectrum: Spectrum, lr: float, batch: float) -> float:
    """Total mass of the constant-schedule kernel, kappa = (eta/B) sum_j m_j l_j / (2 - (1+1/B) eta l_j).

    Returns inf where the sum diverges: at or beyond the pointwise limit, and for a spectrum of infinite trace.
    """
    lr, batch = positive_number("lr", lr), positive_number("batch", batch, allow_inf=True)
    lam, count = np.asarray(spectrum.eigenvalues), np.asarray(spectrum.multiplicity)
    room = 2.0 - (1.0 + 1.0 / batch) * lr * lam
    if room.min() <= 0.0:
        return math.inf
    mass = float(lr / batch * np.sum(np.sort(count * lam / room)))
    return mass if mass < _DIVERGED else math.inf


def is_stable(spectrum: Spectrum, lr: float, batch: float) -> bool:
    """True iff the mean-square iteration converges: eta (1+1/B) max l < 2 and kappa < 1."""
    return kappa(spectrum, lr, batch) < 1.0  # infinite beyond the pointwise limit


def lr_limit(spectrum: Spectrum, batch: float) -> float:
    """Supremum of the stable constant learning rates at this batch size: where kappa reaches 1.

    kappa grows from 0 to infinity below the pointwise limit, so the limit is the root of kappa = 1; for infinite batch
    it is the pointwise limit itself. It is 0 for a spectrum of infinite trace, which no constant schedule keeps stable.
    """
    edge = pointwise_limit(spectrum, batch)
    below = math.nextafter(1.0, 0.0)
    if kappa(spectrum, edge * 1e-30, batch) == math.inf:
        return 0.0
    if kappa(spectrum, edge * below, batch) <= 1.0:
        return edge

    def excess(share: float) -> float:
        mass = kappa(spectrum, edge * share, batch)
        return mass - 1.0 if mass < math.inf else math.inf

    high = below
    while not math.isfinite(excess(high)):
        high = math.nextafter(high, 0.0)
    # log kappa instead of kappa - 1 would also do; brentq brackets the sign change to rounding
    return edge * float(brentq(excess, 1e-300, high, xtol=1e-300, rtol=4 * np.finfo(float).eps, maxiter=2000))


def limiting_risk(spectrum: Spectrum, lr: float, batch: float) -> float:
    """Risk after infinitely many steps, (floor + sigma^2 kappa) / (1 - kappa); inf when unstable."""
    if not is_stable(spectrum, lr, batch):
        return math.inf
    mass = kappa(spectrum, lr, batch)
    return (float(spectrum.floor) + float(spectrum.noise_var) * mass) / (1.0 - mass)


def kernel_mass(spectrum: Spectrum, lr: float, batch: float, steps: object) -> np.ndarray:
    """Kernel mass within the first t lags.

    S_t = sum_{s<t} K_s = (eta/B) sum_j m_j l_j (1 - q_j^t) / (2 - (1+1/B) eta l_j).
    `steps` (k,) may be any non-negative numbers; below the pointwise limit.
    """
    lr, batch = positive_number("lr", lr), positive_number("batch", batch, allow_inf=True)
    lam, count = np.asarray(spectrum.eigenvalues), np.asarray(spectrum.multiplicity)
    x = lr * lam
    room = 2.0 - (1.0 + 1.0 / batch) * x
    if room.min() <= 0.0:
        raise InputError(f"lr {lr:g} is beyond the pointwise limit {pointwise_limit(spectrum, batch):.6g}; lower lr")
    lags = finite_vector("steps", np.atleast_1d(np.asarray(steps)), least=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        decay = np.log1p(-x * room)  # -inf where q = 0
        filled = -np.expm1(np.where(lags[:, None] == 0.0, 0.0, lags[:, None] * decay[None, :]))
    return lr / batch * np.sum(count * lam / room * filled, axis=1)


def sandwich(spectrum: Spectrum, lr: float, batch: float, steps: object, clean: object) -> Sandwich:
    """Bounds clean + sigma^2 S_t <= R_t <= clean + sigma^2 S_t / (1 - kappa) for a stable constant schedule.

    Parameters
    ----------
    steps, clean : (k,) steps and the clean risk at these steps.
    """
    if not is_stable(spectrum, lr, batch):
        raise InputError(f"lr {lr:g} is not below the stability limit {lr_limit(spectrum, batch):.6g}; lower lr")
    mass = kernel_mass(spectrum, lr, batch, steps)
    noise = float(spectrum.noise_var) * mass
    base = finite_vector("clean", np.atleast_1d(np.asarray(clean)), least=0.0)
    same_length(steps=mass, clean=base)
    return Sandwich(base + noise, base + noise / (1.0 - kappa(spectrum, lr, batch)), mass)
