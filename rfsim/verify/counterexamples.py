"""Spectra whose masses are not regular: what the criterion excludes does fail, and by the predicted amount."""

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import gamma

from rfsim.verify.check import Check, near
from rfsim.verify.filters import log_survival, mesh_shift, survival


def checks(scale: str) -> Iterator[Check]:
    """Checks of the family."""
    yield _spectral_gap()
    yield from _no_limit()
    yield from _packet({"quick": 400, "standard": 2000, "full": 5000}[scale])


def _spectral_gap() -> Check:
    """A power law cut off at l = 1/100: whatever it looked like, its local exponent ends up proportional to T."""
    lr, batch, cut = 0.05, 16.0, 0.01
    j = np.arange(1.0, math.floor(cut**-1.25) + 1.0)
    lam, weight = j**-0.8, j**-1.4

    def exponent(time: float) -> float:
        up, down = (log_survival(lam, np.log(weight), lr, batch, one) for one in (time * 1.001, time / 1.001))
        return (down - up) / (2.0 * math.log(1.001))

    late = 2e6
    slowest, second = float(lam[-1]), float(lam[-2])
    left = float(weight.sum() / weight[-1]) * math.exp(-1.9 * (second - slowest) * late)
    return near(
        "counterexamples/spectral-gap",
        "a gap at zero: F turns exponential, the local exponent doubles when T doubles (ratio at T = 2e6 and 4e6)",
        2.0,
        exponent(2.0 * late) / exponent(late),
        4.0 * left + 1e-9,
    )


def _no_limit() -> Iterator[Check]:
    """lambda_j = e^-j, w_j = (1 - e^-tau) e^(-tau j): order T^-tau, but no limit."""
    tau, lr, batch, n = 0.7, 0.05, 16.0, 14
    j = np.arange(0.0, 120.0)
    lam, weight = np.exp(-j), -math.expm1(-tau) * np.exp(-tau * j)
    worst = 0.0
    for phase in (0.1, 0.35, 0.6, 0.9):
        time = math.exp(n + phase)
        mass = float(weight[lam <= 1.0 / time].sum())
        worst = max(worst, abs(mass * time**tau / math.exp(-tau * (1.0 - phase)) - 1.0))
    yield near(
        "counterexamples/no-limit-mass",
        "lambda_j = e^-j, w_j ~ e^(-tau j): along T = e^(n + phi) the product mass(1/T) T^tau is e^(-tau (1 - "
        "phi)), no limit "
        "(largest relative error over four phases)",
        0.0,
        worst,
        1e-12,
    )
    times = math.exp(n) * np.exp(np.arange(64) / 64.0)
    values = times**tau * survival(lam, weight, lr, batch, times)
    harmonic = abs(complex(np.mean(values * np.exp(-2j * math.pi * np.log(times))))) / float(values.mean())
    yield near(
        "counterexamples/no-limit-forcing",
        "so T^tau F has no limit either: it oscillates with relative amplitude 2 |Gamma(tau + 2 pi i)|/Gamma(tau)",
        2.0 * abs(complex(gamma(tau + 2j * math.pi))) / float(gamma(tau)),
        2.0 * harmonic,
        2.0 * mesh_shift(tau, lr, batch, float(times[0])) + 1e-12,
    )


def _packet(n: int) -> Iterator[Check]:
    """Width n: bulk l = k/n^2 and one atom at (tau/4) log n / n of weight n^(-tau/2); B = 1, eta = 1/2, t = 2n."""
    tau, lr, batch = 0.8, 0.5, 1.0
    place = tau / 4.0 * math.log(n) / n
    atom = float(survival(np.array([place]), np.array([n ** (-tau / 2.0)]), lr, batch, float(n))[0]) * n**tau
    # log q = -2x + (4/3) x^3 + ... at B = 1, with x = eta l: 2n steps leave at most 2n * 2 x^3
    yield near(
        "counterexamples/packet",
        f"one atom that moves with the width n = {n}: its share of n^tau F(T = n) stays 1 although its mass "
        "below x/n vanishes",
        1.0,
        atom,
        4.0 * n * (lr * place) ** 3 + 1e-12,
    )
    k = np.arange(0.0, n**2 + 1.0)
    lam = k[1:] / n**2
    weight = np.diff((k / n**2) ** tau)
    bulk = float(survival(lam, weight, lr, batch, float(n))[0]) * n**tau
    # each cell is evaluated at its right end, where e^(-2 n l) is smaller by at most e^(-2/n); beyond l = 1 e^(-2n)
    # is missing
    yield near(
        "counterexamples/packet-bulk",
        f"the bulk of width n = {n} gives Gamma(tau + 1) 2^-tau, so that the total has one more than its masses "
        "predict",
        float(gamma(tau + 1.0)) * 2.0**-tau,
        bulk,
        (2.0 / n + mesh_shift(tau, lr, batch, float(n))) * float(gamma(tau + 1.0)),
    )
    fixed = 0.9 * (tau / 4.0) * math.log(n)  # any x below the packet: its mass is the bulk's alone
    mass = n**tau * (float(weight[lam <= fixed / n].sum()) + (n ** (-tau / 2.0) if place <= fixed / n else 0.0))
    yield near(
        "counterexamples/packet-mass",
        f"while n^tau nu_F((0, x/n]) = x^tau for every fixed x below the packet (x = {fixed:.3g}; ratio)",
        1.0,
        mass / fixed**tau,
        1.0 / (fixed * n),
    )
