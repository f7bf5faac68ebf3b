"""Constant schedules in closed form: total kernel mass, stability, lr limit, limiting risk, sandwich bounds.

Everything here is exact for the given spectrum. x = eta l, and 1 - q(l) = x (2 - (1 + 1/B) x) is never formed as a
difference.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from rfsim.checks import InputError, finite_vector, positive_number, same_length, told_apart
from rfsim.precision import is_traced, jnp
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

    Returns inf where the sum diverges: at or beyond the pointwise limit, and for a spectrum of infinite trace. Works
    under jit, vmap and grad too, then as a traced scalar.

    Raises
    ------
    InputError : for an lr or batch that is not positive.
    """
    if is_traced(spectrum, lr, batch):
        return _traced_kappa(spectrum, lr, batch)
    lr, batch = positive_number("lr", lr), positive_number("batch", batch, allow_inf=True)
    lam, count = np.asarray(spectrum.eigenvalues), np.asarray(spectrum.multiplicity)
    room = 2.0 - (1.0 + 1.0 / batch) * lr * lam
    if room.min() <= 0.0:
        return math.inf
    mass = float(lr / batch * np.sum(np.sort(count * lam / room)))
    return mass if mass < _DIVERGED else math.inf


def _traced_kappa(spectrum: Spectrum, lr: float, batch: float) -> Any:
    lam, count = jnp.asarray(spectrum.eigenvalues), jnp.asarray(spectrum.multiplicity)
    room = 2.0 - (1.0 + 1.0 / batch) * lr * lam
    inside = jnp.all(room > 0.0)
    mass = lr / batch * jnp.sum(count * lam / jnp.where(inside, room, 1.0))
    return jnp.where(inside, mass, jnp.inf)


def is_stable(spectrum: Spectrum, lr: float, batch: float) -> bool:
    """True iff the mean-square iteration converges: eta (1+1/B) max l < 2 and kappa < 1."""
    return kappa(spectrum, lr, batch) < 1.0  # infinite beyond the pointwise limit


def lr_limit(spectrum: Spectrum, batch: float) -> float:
    """Supremum of the stable constant learning rates at this batch size: where kappa reaches 1.

    kappa grows from 0 to infinity below the pointwise limit, so the limit is the root of kappa = 1; for infinite batch
    it is the pointwise limit itself. It is 0 for a spectrum of infinite trace, which no constant schedule keeps stable.

    Raises
    ------
    InputError : for a batch that is not positive, or under tracing (the root is found in NumPy).
    """
    if is_traced(spectrum, batch):
        raise InputError("lr_limit finds a root in NumPy and cannot be traced by jit, vmap or grad; call it outside")
    edge = pointwise_limit(spectrum, batch)
    lam, count = np.asarray(spectrum.eigenvalues), np.asarray(spectrum.multiplicity)
    order = np.argsort(count * lam)
    relative, count = (lam / lam.max())[order], count[order]

    def excess(share: float) -> float:
        """kappa - 1 at lr = share * edge, in which neither lr nor the scale of the eigenvalues appears."""
        return float(np.sum(count * (share * relative / (1.0 - share * relative)))) / (1.0 + batch) - 1.0

    below = math.nextafter(1.0, 0.0)
    if batch == math.inf or excess(below) <= 0.0:
        return edge
    if excess(1.0 / _DIVERGED) >= 0.0:
        return 0.0
    return edge * float(brentq(excess, 1.0 / _DIVERGED, below, xtol=1e-300, rtol=4 * np.finfo(float).eps, maxiter=2000))


def limiting_risk(spectrum: Spectrum, lr: float, batch: float) -> float:
    """Risk after infinitely many steps, (floor + sigma^2 kappa) / (1 - kappa); inf when unstable.

    Works under jit, vmap and grad too, then as a traced scalar.

    Raises
    ------
    InputError : for an lr or batch that is not positive.
    """
    mass = kappa(spectrum, lr, batch)
    if is_traced(spectrum, lr, batch):
        stable = mass < 1.0
        safe = jnp.where(stable, mass, 0.0)
        return jnp.where(stable, (spectrum.floor + spectrum.noise_var * safe) / (1.0 - safe), jnp.inf)  # type: ignore[return-value]
    if not mass < 1.0:
        return math.inf
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
        given, allowed = told_apart(float(lr), float(lr_limit(spectrum, batch)))
        raise InputError(f"lr {given} is not below the stability limit {allowed}; lower lr")
    mass = kernel_mass(spectrum, lr, batch, steps)
    noise = float(spectrum.noise_var) * mass
    base = finite_vector("clean", np.atleast_1d(np.asarray(clean)), least=0.0)
    same_length(steps=mass, clean=base)
    return Sandwich(base + noise, base + noise / (1.0 - kappa(spectrum, lr, batch)), mass)
