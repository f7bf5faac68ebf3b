"""The Tauberian criterion and its constants on power laws and on spectra that are none.

Constants come from the classical Laplace transforms written here, never from `rfsim.amplitudes`; the dynamics are
exact filters q^t of constant schedules. Where a law converges like a power of 1/log T, its next terms belong to the
prediction.
"""

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import gamma, polygamma, psi, zeta

from rfsim import stationary
from rfsim.routes import recursion
from rfsim.schedules import constant
from rfsim.verify.check import Check, near
from rfsim.verify.filters import (
    lattice_remainder,
    memory_weight,
    mesh_shift,
    power_population,
    survival,
    zeta_continued,
)
from rfsim.verify.registry import SEED
from rfsim.verify.spectral_laws import geometric, rapid

_ALPHA, _BETA = 0.4, 0.3  # the canonical problem: q_F = 1/2, q_K = 3/4
_P = 2.0 * (_ALPHA + _BETA) - 1.0
_QF, _QK = _P / (2.0 * _ALPHA), 2.0 - 1.0 / (2.0 * _ALPHA)
_LR, _BATCH = 0.05, 16.0
_TIMES = (1e2, 1e4, 1e6, 1e8)
_NODES = 1e-10  # relative accuracy of population nodes


def checks(scale: str) -> Iterator[Check]:
    """Checks of the family."""
    yield from _canonical(scale)
    yield from _kernel_mass()
    yield from _compensated(scale)
    yield from _stretched()
    yield from geometric()
    yield from rapid(scale)
    yield _finite()


def forcing_law(p: float, alpha: float, time: float) -> float:
    """sum_j j^(-p-1) exp(-2 T j^(-2 alpha)) as its integral, Gamma(1 + q)/p (2 T)^-q with q = p/(2 alpha)."""
    q = p / (2.0 * alpha)
    return float(gamma(1.0 + q)) / p * (2.0 * time) ** -q


def _canonical(scale: str) -> Iterator[Check]:
    system = power_population(_ALPHA, _BETA)
    lam, energy, weight = np.asarray(system.eigenvalues), np.asarray(system.forcing_energy), memory_weight(system)
    told = f"lambda_j = j^-.8, |theta_j|^2 = j^-.6, T = {', '.join(f'{time:.0e}' for time in _TIMES)}"
    # mass below 1/T is the sum over j > T^(1/.8), so it is a staircase whose steps are 1/j of it; T is put in the
    # middle of a step
    worst, allowed = 0.0, 0.0
    for time in _TIMES:
        first = math.floor(time ** (1.0 / (2.0 * _ALPHA)))
        middle = (first + 0.5) ** (2.0 * _ALPHA)
        mass = float(zeta(_P + 1.0, first + 1.0))
        ratio = survival(lam, energy, _LR, _BATCH, middle)[0] / mass / (gamma(_QF + 1.0) * 2.0**-_QF)
        worst = max(worst, abs(ratio - 1.0))
        # midpoint rule for the sum over j > first: relative error (p + 1) p/(24 first^2), doubled
        allowed = max(allowed, mesh_shift(_QF, _LR, _BATCH, time) + _P * (_P + 1.0) / (12.0 * first**2) + _NODES)
    yield near(
        "tauberian/criterion",
        f"F(T) = Gamma(q_F + 1) 2^-q_F nu_F((0, 1/T]), {told} (largest relative error)",
        0.0,
        worst,
        allowed + lattice_remainder(_ALPHA, _TIMES[0]),
    )
    for name, values, p, q in (
        ("canonical-forcing", energy, _P, _QF),
        ("canonical-memory", weight, 4.0 * _ALPHA - 1.0, _QK),
    ):
        error = max(
            abs(float(survival(lam, values, _LR, _BATCH, time)[0]) / forcing_law(p, _ALPHA, time) - 1.0)
            for time in _TIMES
        )
        what = "F(T) = Gamma(1 + q_F)/p (2T)^-q_F" if p == _P else "B/eta^2 K = Gamma(1 + q_K)/(4 alpha - 1) (2T)^-q_K"
        allowed = mesh_shift(q, _LR, _BATCH, _TIMES[0]) + lattice_remainder(_ALPHA, _TIMES[0]) + _NODES
        yield near(
            f"tauberian/{name}", f"{what} under exact SGD filters, {told} (largest relative error)", 0.0, error, allowed
        )
    steps = {"quick": 2000, "standard": 20000, "full": 200000}[scale]
    quiet = system.replace(multiplicity=np.zeros(system.modes))  # forcing alone: no memory at infinite width
    curve = recursion.risk(quiet, constant(steps, _LR, _BATCH), at=[steps])
    time = steps * _LR
    yield near(
        "tauberian/canonical-run",
        f"the forcing of the mode recursion after {steps} steps over Gamma(1 + q_F)/p (2T)^-q_F",
        1.0,
        float(curve.forcing[0]) / forcing_law(_P, _ALPHA, time),
        mesh_shift(_QF, _LR, _BATCH, time)
        + lattice_remainder(_ALPHA, time)
        + _NODES
        + 32 * steps * np.finfo(float).eps,
    )


def _kernel_mass() -> Iterator[Check]:
    """Cumulative memory: S_t at q_K < 1, the rest kappa - S_t at q_K > 1."""
    lr, batch, time = 0.01, 16.0, 1e8
    system = power_population(_ALPHA, _BETA)
    c_k = 2.0**-_QK * float(gamma(1.0 + _QK)) / (4.0 * _ALPHA - 1.0)
    found = float(stationary.kernel_mass(system, lr, batch, [time / lr])[0]) * batch / lr
    # the integral of k is c_K T^(1-q_K)/(1-q_K) + zeta(2 alpha)/2 (continued below 1) + terms beyond every power; the
    # steps add 1/(2 - (1+1/B) x) - 1/2 <= x/2 per mode, at most (eta/2) sum lambda^2
    main = c_k * time ** (1.0 - _QK) / (1.0 - _QK)
    constant_term = 0.5 * zeta_continued(2.0 * _ALPHA)
    yield near(
        "tauberian/kernel-mass-long",
        f"S_t = (eta/B)[c_K T^(1-q_K)/(1-q_K) + zeta(2 alpha)/2] at q_K = 3/4, T = {time:.0e} (ratio)",
        1.0,
        found / (main + constant_term),
        0.5 * lr * float(zeta(4.0 * _ALPHA)) / main + _NODES,
    )
    alpha, time = 0.6, 1e6
    q_k = 2.0 - 1.0 / (2.0 * alpha)
    system = power_population(alpha, 0.2)
    c_k = 2.0**-q_k * float(gamma(1.0 + q_k)) / (4.0 * alpha - 1.0)
    mass = stationary.kappa(system, lr, batch)
    rest = (mass - float(stationary.kernel_mass(system, lr, batch, [time / lr])[0])) * batch / lr
    law = c_k * time ** (1.0 - q_k) / (q_k - 1.0)
    # modes left at T have l of order 1/T, so the steps change them by eta/T; the difference of two masses loses eps
    # kappa/rest
    yield near(
        "tauberian/kernel-mass-integrable",
        f"kappa - S_t = (eta/B) c_K T^(1-q_K)/(q_K-1) at q_K = 7/6, T = {time:.0e} (ratio)",
        1.0,
        rest / law,
        mesh_shift(q_k, lr, batch, time) + lattice_remainder(alpha, time) + _NODES * mass * batch / lr / law,
    )


def _compensated(scale: str) -> Iterator[Check]:
    """Factors c_j of Cesaro mean 1 on |theta_j|^2 keep exponent and constant; their first corrections are known."""
    time = 1e4
    law = forcing_law(_P, _ALPHA, time)
    allowed = mesh_shift(_QF, _LR, _BATCH, time) + 10.0 * lattice_remainder(_ALPHA, time / 4.0) + 10.0 * _NODES
    # even modes: 2 (2k)^-s f(2k) is a power law on its own; odd ones: c = j^-1, all modes of beta + 1/2 without their
    # even part
    even = _even_part(_BETA, time)
    odd = float(_full(_BETA + 0.5, time) - _even_part(_BETA + 0.5, time))
    correction = 0.5 * forcing_law(_P + 1.0, _ALPHA, time) / law
    yield near(
        "tauberian/alternating",
        "c_j = 2 on even and 1/j on odd modes: F over the canonical law is 1 + (half the law of beta + 1/2), T = 1e4",
        1.0 + correction,
        (2.0 * even + odd) / law,
        allowed,
    )
    count = {"quick": 2**18, "standard": 2**20, "full": 2**22}[scale]
    k = np.arange(1.0, count + 1.0)
    weight = (2.0 * k - 1.0) * k ** (-2.0 * (_P + 1.0))
    tail = 2.0 * float(zeta(2.0 * _P + 1.0, count + 1.0)) - float(zeta(2.0 * _P + 2.0, count + 1.0))
    found = float(survival(k ** (-4.0 * _ALPHA), weight, _LR, _BATCH, time, tail=tail)[0]) / law
    # sum_k (2k - 1) f(k^2) = int f - (1/2) int u^(-1/2) f(u) du; modes beyond `count` are frozen up to 2 T count^-1.6
    correction = 0.5 * forcing_law(_P + 0.5, _ALPHA, time) / law
    frozen = tail * 2.0 * time * count ** (-4.0 * _ALPHA) / law
    yield near(
        "tauberian/sparse",
        "c_j = 2k - 1 at j = k^2, else 0: F over the canonical law is 1 - (half the law of p + 1/2), T = 1e4",
        1.0 - correction,
        found,
        allowed + frozen + lattice_remainder(2.0 * _ALPHA, time),
    )
    j = np.arange(1.0, count + 1.0)
    lam, plain = j ** (-2.0 * _ALPHA), j ** (-_P - 1.0)
    random = np.random.default_rng(SEED + 50).standard_normal(count) ** 2
    alive = plain * survival_weights(lam, time)
    spread = math.sqrt(2.0 * float(np.sum(alive**2))) / float(alive.sum())
    # Z^2 has mean 1 and variance 2: the sum over many modes is normal, five deviations have a false-alarm rate of 6e-7
    yield near(
        "tauberian/random",
        f"c_j = Z_j^2, iid: F over that of c_j = 1 at T = 1e4, v = {count}, within five standard deviations",
        1.0,
        float(np.sum(alive * random) / alive.sum()),
        5.0 * spread,
    )


def survival_weights(lam: np.ndarray, time: float) -> np.ndarray:
    """q^t of every mode."""
    x = _LR * lam
    return np.asarray(np.exp(time / _LR * np.log1p(-x * (2.0 - (1.0 + 1.0 / _BATCH) * x))))


def _full(beta: float, time: float) -> float:
    system = power_population(_ALPHA, beta)
    return float(survival(np.asarray(system.eigenvalues), np.asarray(system.forcing_energy), _LR, _BATCH, time)[0])


def _even_part(beta: float, time: float) -> float:
    """Sum over even j: the same power law with eigenvalues and energies scaled by powers of 2."""
    system = power_population(_ALPHA, beta)
    lam = np.asarray(system.eigenvalues) * 2.0 ** (-2.0 * _ALPHA)
    energy = np.asarray(system.forcing_energy) * 2.0 ** (-2.0 * (_ALPHA + beta))
    return float(survival(lam, energy, _LR, _BATCH, time)[0])


def _stretched() -> Iterator[Check]:
    """lambda = e^(-sqrt j): with s = sqrt j and u = 2 T e^-s sums become moments of L - log u, L = log 2T."""
    times, lr, batch = (1e4, 1e8, 1e16, 1e40), 1e-3, 1.0
    j = np.arange(1.0, 50_001.0)
    lam = np.exp(-np.sqrt(j))
    mean, square = -np.euler_gamma, np.euler_gamma**2 + np.pi**2 / 6.0
    third = -(np.euler_gamma**3 + np.euler_gamma * np.pi**2 / 2.0 + 2.0 * float(zeta(3.0)))
    fourth = float(polygamma(3, 1.0)) + 4.0 * mean * float(polygamma(2, 1.0)) + 3.0 * (np.pi**2 / 6.0) ** 2
    fourth += 6.0 * mean**2 * np.pi**2 / 6.0 + mean**4
    ratios, worst = [], 0.0
    for time in times:
        log = math.log(2.0 * time)
        found = float(survival(lam, lam * j**-1.5, lr, batch, time)[0]) * time * log**2
        predicted = 1.0 + 2.0 * mean / log + 3.0 * square / log**2 + 4.0 * third / log**3
        # the next term of the asymptotic series, doubled, is the tolerance: errors are given in units of it
        worst = max(worst, abs(found - predicted) / (2.0 * 5.0 * fourth / log**4))
        ratios.append(found)
    told = ", ".join(f"{ratio:.4g}" for ratio in ratios)
    yield near(
        "tauberian/stretched-forcing",
        f"lambda = e^(-sqrt j), |theta|^2 = j^-1.5: F T (log 2T)^2 -> 1, at T = 1e4, 1e8, 1e16, 1e40 {told}; "
        "the distance to "
        f"the series 1 + sum (n+1) E[(log u)^n]/L^n up to n = 3, in units of twice its next term",
        0.0,
        worst,
        1.0,
    )
    for name, weight, law, power, batch in (
        ("stretched-memory", lam**2, lambda log: 0.5 * (log - float(psi(2.0))), 2.0, 16.0),
        ("exponential-forcing", lam, lambda log: log - float(psi(1.0)), 1.0, 1.0),
        ("exponential-memory", lam**2, lambda log: 0.5 * (log - float(psi(2.0))), 2.0, 1.0),
    ):
        lr = 1.0e-3 if name == "stretched-memory" else 0.25
        # exact up to terms beyond every power in the continuum; the steps shift by mesh_shift
        error = max(
            abs(float(survival(lam, weight, lr, batch, time)[0]) * time**power / law(math.log(2.0 * time)) - 1.0)
            for time in times
        )
        what = (
            "w = e^(-sqrt j), B = 1, eta = 1/4: F = (log 2T + gamma)/T"
            if power == 1.0
            else (f"B/eta^2 K = (log 2T - psi(2))/(2 T^2), B = {batch:g}, eta = {lr:g}")
        )
        yield near(
            f"tauberian/{name}",
            f"lambda = e^(-sqrt j), {what} at T = 1e4 ... 1e40 (largest relative error)",
            0.0,
            error,
            mesh_shift(power, lr, batch, times[0]) + 1e-9,
        )


def _finite() -> Check:
    """64 eigenvalues from 1 to 1/10: no power law, exponential decay with the slowest mode."""
    j = np.arange(64)
    lam, lr, batch = 10.0 ** (-j / 63.0), 0.05, 16.0
    weight = lam / (j + 1.0)
    early, late = 3200.0, 3210.0
    values = survival(lam, weight, lr, batch, [early, late])
    rate = -math.log(values[1] / values[0]) / (late - early)
    slowest, next_one = lam[-1], lam[-2]
    predicted = -math.log1p(-lr * slowest * (2.0 - (1.0 + 1.0 / batch) * lr * slowest)) / lr
    # other modes: relative weight w/w_min e^(-2 (l_63 - l_64) T), each changes the rate by at most its distance 2 l
    others = float(np.sum(weight[:-1])) / weight[-1] * math.exp(-2.0 * 0.9 * (next_one - slowest) * early)
    return near(
        "tauberian/finite",
        "64 modes in [.1, 1]: F decays exponentially with rate -log q(l_min)/eta, no power law (rate at T = 3200)",
        predicted,
        rate,
        2.0 * others + 1e-10,
    )
