"""Two laws that are no power laws of regular variation: log-periodic forcing and faster-than-power forcing."""

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import gamma

from rfsim.propagation import propagation
from rfsim.routes import recursion
from rfsim.schedules import constant
from rfsim.verify.check import Check, near
from rfsim.verify.filters import (
    lattice_remainder,
    log_survival,
    memory_weight,
    mesh_shift,
    power_population,
    survival,
)


def geometric() -> Iterator[Check]:
    """lambda = e^(-a(j-1)), weights lambda^tau: T^tau F is periodic in log T with period a."""
    a, lr, batch, start = 1.4, 0.05, 16.0, 1e6
    lam = np.exp(-a * np.arange(60.0))
    times = start * np.exp(a * np.arange(64) / 64.0)  # one period; the trapezoid rule is spectrally accurate
    for tau, names in ((1.75, ("geometric-mean", "geometric-harmonic")), (2.0, ("", "geometric-memory-harmonic"))):
        periodic = times**tau * survival(lam, lam**tau, lr, batch, times)
        mean = float(periodic.mean())
        phase = np.exp(-2j * math.pi * np.log(times) / a)
        amplitude = 2.0 * abs(complex(np.mean(periodic * phase))) / mean
        expected_mean = float(gamma(tau)) * 2.0**-tau / a
        expected = 2.0 * abs(complex(gamma(tau + 2j * math.pi / a))) / float(gamma(tau))
        # modes are missing above l = 1 (gone long ago) and below e^-82 (tau e^-82 T of the mass); harmonic 64 is
        # aliased: nothing
        shift = mesh_shift(tau, lr, batch, start) + 1e-11
        if names[0]:
            yield near(
                f"tauberian/{names[0]}",
                "lambda = e^(-1.4 (j-1)), w = lambda^1.75: the mean of T^1.75 F over a period of log T is "
                "Gamma(tau) 2^-tau/a (ratio)",
                1.0,
                mean / expected_mean,
                shift,
            )
        yield near(
            f"tauberian/{names[1]}",
            f"T^{tau:g} sum lambda^{tau:g} q^t oscillates for ever: relative amplitude 2 |Gamma(tau + 2 pi "
            "i/a)|/Gamma(tau)",
            expected,
            amplitude,
            2.0 * shift,
        )


def rapid(scale: str) -> Iterator[Check]:
    """lambda = j^-.8, |theta|^2 = e^-j.

    -log F grows like T^(5/9); memory keeps its power law, and the loss follows it.
    """
    lr, batch, times = 1e-4, 16.0, (1e2, 1e3, 1e4, 1e5)
    j = np.arange(1.0, 20_001.0)
    lam = j**-0.8
    errors = []
    for time in times:
        peak = (1.6 * time) ** (1.0 / 1.8)
        curvature = 2.0 * time * 0.8 * 1.8 * peak**-2.8
        # Laplace's method for sum exp(-j - 2 T j^-.8) j^-.8, with its prefactor
        predicted = 1.8 / 0.8 * peak - 0.5 * math.log(2.0 * math.pi / curvature) + 0.8 * math.log(peak)
        found = -log_survival(lam, -j - 0.8 * np.log(j), lr, batch, time)
        # next order of Laplace's method: at most 1/peak here (its coefficient is below 1/2); the steps add eta T l^2
        # at the peak
        errors.append(abs(found - predicted) / (1.0 / peak + lr * time * peak**-1.6))
    constant_term = 1.8 / 0.8 * 1.6 ** (1.0 / 1.8)
    yield near(
        "tauberian/rapid",
        f"lambda = j^-.8, |theta|^2 = e^-j: -log F = {constant_term:.4f} T^(5/9) with Laplace's prefactor, T = "
        "1e2 ... 1e5 "
        f"(largest error in units of the next order)",
        0.0,
        max(errors),
        1.0,
    )
    lr, q_k = 0.05, 0.75
    ambient = {"quick": 16384, "standard": 524288, "full": 524288}[scale]
    infinite = power_population(0.4, 0.3)
    ratio = survival(np.asarray(infinite.eigenvalues), memory_weight(infinite), lr, batch, 1e4)[0]
    law = 2.0**-q_k * float(gamma(1.0 + q_k)) / 0.6 * 1e4**-q_k
    yield near(
        "tauberian/rapid-memory",
        "the memory of the same eigenvalues is a power law, B/eta^2 K = Gamma(7/4)/.6 (2T)^-3/4 at T = 1e4 (ratio)",
        1.0,
        float(ratio) / law,
        mesh_shift(q_k, lr, batch, 1e4) + lattice_remainder(0.4, 1e4) + 1e-10,
    )
    finite = power_population(0.4, 0.3, ambient)
    index = np.asarray(finite.eigenvalues) ** (-1.0 / 0.8)
    single = index < 64.5  # nodes up to 64 are the modes themselves
    energy = np.where(single, np.exp(-index) * np.asarray(finite.eigenvalues), 0.0)
    target = finite.replace(forcing_energy=energy / energy.sum())
    window = (20.0, 77.6)
    measured = propagation(target, lr=lr, batch=batch, vartheta=0.0, window=window, quantity="clean")
    curve = recursion.risk(target, constant(1552, lr, batch), at=[1552])
    share = float(curve.forcing[0] / curve.risk[0])
    predicted = math.nan if measured.finite_window is None else measured.finite_window
    # the continuum leaves out relative terms eta l: of the injection (eta l <= eta) and of every filter (mesh_shift);
    # a slope over log(77.6/20) moves by at most twice their variation over that length
    yield near(
        "tauberian/rapid-loss",
        f"noise-free SGD on it, v = {ambient}, B = 16, eta = .05: the loss is memory (forcing is {share:.1e} of "
        "it at T = 77.6) "
        f"and falls like the continuum solution on [20, 77.6] (limit 3/4)",
        predicted if share < 1e-9 else math.nan,
        measured.measured,
        4.0 * mesh_shift(q_k, lr, batch, window[0]) / math.log(window[1] / window[0]) + 1e-4,
    )
