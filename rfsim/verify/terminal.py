"""The limit of a stable constant schedule: (floor + sigma^2 kappa)/(1 - kappa), clean and noisy part apart."""

import math
from collections.abc import Iterator

import jax
import numpy as np

from rfsim import stationary
from rfsim.problems import power_law
from rfsim.routes import recursion
from rfsim.schedules import constant
from rfsim.sources import features as sources
from rfsim.spectra import Spectrum, spectrum
from rfsim.verify.check import Check, near
from rfsim.verify.registry import SEED

_EPS = float(np.finfo(float).eps)
_WIDTH = {"quick": 128, "standard": 512, "full": 1500}


def checks(scale: str) -> Iterator[Check]:
    """Checks of the family."""
    yield from _long_run()
    yield _fixed_point(scale)


def _long_run() -> Iterator[Check]:
    system = spectrum(np.geomspace(0.05, 1.0, 12), np.linspace(1.0, 2.0, 12), floor=0.4, noise_var=0.6)
    batch = 3.0
    lr = 0.5 * stationary.lr_limit(system, batch)
    modes = _mode_map(system, lr, batch)
    rate = float(np.max(np.abs(np.linalg.eigvals(modes))))
    steps = math.ceil(math.log(1e-15) / math.log(rate))
    curve = recursion.risk(system, constant(steps, lr, batch), at=[0, steps])
    mass = stationary.kappa(system, lr, batch)
    # truncation: 1e-15 of the first risk, times the condition of the map (12 modes, below 100); rounding: one step
    # makes a few eps, and a stable map sums what it makes to 1/(1 - rate)
    allowed = 1e-13 * float(curve.risk[0]) + 32 * _EPS / (1.0 - rate)
    told = f"after {steps} steps"
    for name, what, predicted, value in (
        ("run", "(floor + sigma^2 kappa)/(1 - kappa)", stationary.limiting_risk(system, lr, batch), curve.risk[1]),
        ("clean", "floor/(1 - kappa), of the clean part,", 0.4 / (1.0 - mass), curve.clean[1]),
        ("gap", "sigma^2 kappa/(1 - kappa), of the gap,", 0.6 * mass / (1.0 - mass), curve.gap[1]),
    ):
        yield near(f"terminal/{name}", f"the limit {what} is reached {told}", predicted, float(value), allowed)


def _fixed_point(scale: str) -> Check:
    """The limit as the solution of linear equations, for lr, batch and noise of every kind."""
    width = _WIDTH[scale]
    system = sources.sample_features(jax.random.key(SEED + 30), power_law(0.6, 0.2, ambient=2 * width), width)
    worst, allowed = 0.0, 0.0
    for batch, share, noise in ((1.0, 0.3, 0.0), (1.0, 0.9, 0.1), (7.0, 0.5, 25.0), (1000.0, 0.99, 1.0)):
        noisy = system.replace(noise_var=noise)
        lr = share * stationary.lr_limit(noisy, batch)
        lam = np.asarray(noisy.eigenvalues)
        x = lr * lam
        # rows of (1 - A) rho = source, divided by x: no entry is a difference of nearly equal numbers
        matrix = np.diag(2.0 - (1.0 + 1.0 / batch) * x) - np.outer(x / batch, np.ones(width))
        rho = np.linalg.solve(matrix, x / batch * (float(noisy.floor) + noise))
        solved = float(noisy.floor) + rho.sum()
        worst = max(worst, abs(stationary.limiting_risk(noisy, lr, batch) / solved - 1.0))
        allowed = max(allowed, width * _EPS * float(np.linalg.cond(matrix)))
    return near(
        "terminal/fixed-point",
        f"limiting_risk solves rho = A rho + c l^2 (floor + sigma^2), width {width}, four schedules (largest "
        "relative error)",
        0.0,
        worst,
        allowed,
    )


def _mode_map(system: Spectrum, lr: float, batch: float) -> np.ndarray:
    """Matrix of one step of the mode energies: diag(q) plus c l^2 times the sum."""
    x = lr * np.asarray(system.eigenvalues)
    return np.diag((1.0 - x) ** 2 + x**2 / batch) + np.outer(x**2 / batch, np.ones(x.size))
