"""Sums sum_j weight_j q(l_j)^t in plain NumPy: witnesses of constant schedules at any horizon.

q = 1 - x (2 - (1 + 1/B) x), x = eta l, is never formed: q^t = exp(t log1p(-x (2 - (1 + 1/B) x))). The relative error
of a sum of positive terms is a few eps times |log q^t| of the modes that carry it, below 1e-12 everywhere it is
used.
"""

import math

import numpy as np

from rfsim.problems import power_law
from rfsim.sources.population import population
from rfsim.spectra import Spectrum


def log_filter(eigenvalues: np.ndarray, lr: float, batch: float, time: float) -> np.ndarray:
    """log q^t at intrinsic time `time` = eta t, (n,)."""
    x = lr * eigenvalues
    return np.asarray(time / lr * np.log1p(-x * (2.0 - (1.0 + 1.0 / batch) * x)))


def survival(
    eigenvalues: np.ndarray, weight: np.ndarray, lr: float, batch: float, times: object, *, tail: float = 0.0
) -> np.ndarray:
    """sum_j weight_j q(l_j)^(T/eta) at the times (k,); `tail` is weight of modes too slow to have moved."""
    return np.array(
        [
            math.fsum(weight * np.exp(log_filter(eigenvalues, lr, batch, float(time)))) + tail
            for time in np.atleast_1d(np.asarray(times, dtype=float))
        ]
    )


def log_survival(eigenvalues: np.ndarray, log_weight: np.ndarray, lr: float, batch: float, time: float) -> float:
    """Logarithm of the same sum from logarithms of the weights, for sums far below the float64 range."""
    exponents = log_weight + log_filter(eigenvalues, lr, batch, time)
    top = float(exponents.max())
    return top + math.log(float(np.exp(exponents - top).sum()))


def mesh_shift(q: float, lr: float, batch: float, time: float) -> float:
    """Bound on the relative difference between sum w q^t and sum w exp(-2 T l) for a law of order T^-q.

    log q = -2 x - (1 - 1/B) x^2 + O(x^3), and l^2 has mean q (q + 1)/(2 T)^2 under the weights that survive until T:
    the shift is eta (1 - 1/B) q (q + 1)/(4 T) to first order. Doubled for the higher orders, which are smaller by
    eta/T.
    """
    return 2.0 * lr * q * (q + 1.0) / (4.0 * time)


def lattice_remainder(alpha: float, time: float) -> float:
    """Bound on the relative difference between sum and integral of a power of j times exp(-2 T j^(-2 alpha)).

    All derivatives of the summand vanish at j = 0, so by Poisson's formula only the frequencies 2 pi k are left out;
    their saddle point gives exp(-2 pi (1 + 1/a) |x| sin(pi/(2 (1 + a)))) with a = 2 alpha, |x| = (a T/pi)^(1/(1+a)).
    Prefactors are powers of T of order one; a factor 100 T allows for them.
    """
    a = 2.0 * alpha
    size = (a * time / math.pi) ** (1.0 / (1.0 + a))
    exponent = -2.0 * math.pi * (1.0 + 1.0 / a) * size * math.sin(math.pi / (2.0 * (1.0 + a)))
    return 100.0 * max(time, 1.0) * math.exp(exponent)


def zeta_continued(s: float) -> float:
    """Riemann zeta for s > 0, s != 1: the alternating series, averaged until it converges (Euler transform)."""
    terms = np.cumsum([(-1.0) ** k * (k + 1.0) ** -s for k in range(60)])
    while terms.size > 1:
        terms = 0.5 * (terms[1:] + terms[:-1])
    return float(terms[0]) / (1.0 - 2.0 ** (1.0 - s))


def power_population(alpha: float, beta: float, ambient: float = math.inf) -> Spectrum:
    """Population spectrum of the power law (a few hundred nodes, relative accuracy 1e-11)."""
    return population(power_law(alpha, beta, ambient=ambient))


def long_power_law(alpha: float, beta: float) -> Spectrum:
    """Forcing of j = 1..infinity for any alpha > 0, without memory, which diverges at alpha <= 1/4.

    The node coordinates j of the infinite population at alpha = .4 (up to 1e30) serve every power of j; the energy
    beyond the last one sits in one mode that is frozen while 2 T j^(-2 alpha) << 1.
    """
    reference = power_population(0.4, 0.3)
    kept = np.asarray(reference.eigenvalues) > 1e-100  # without the marker of an infinite trace
    index = np.asarray(reference.eigenvalues)[kept] ** (-1.0 / 0.8)
    count = np.asarray(reference.multiplicity)[kept]
    p = 2.0 * alpha + 2.0 * beta - 1.0
    energy = count * index ** (-p - 1.0)
    beyond = int(np.argmax(index))
    energy[beyond] = index[beyond] ** -p / p
    nothing = np.zeros(index.size)
    return reference.replace(
        eigenvalues=index ** (-2.0 * alpha), forcing_energy=energy, multiplicity=nothing, floor=0.0
    )


def memory_weight(system: Spectrum) -> np.ndarray:
    """Weights of the memory, multiplicity times l^2, (n,)."""
    return np.asarray(system.multiplicity) * np.square(np.asarray(system.eigenvalues))
