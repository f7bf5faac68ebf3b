"""Label noise adds at least N_t = sigma^2 sum_s K_{t,s}, and at most N_t/(1 - largest row mass)."""

from collections.abc import Iterator

import jax
import numpy as np

from rfsim import stationary
from rfsim.problems import power_law
from rfsim.routes import recursion, volterra
from rfsim.schedules import constant, power
from rfsim.sources import features as sources
from rfsim.spectra import Spectrum
from rfsim.verify.check import Check, near
from rfsim.verify.registry import SEED

_EPS = float(np.finfo(float).eps)
_SIZES = {"quick": (64, 2000, 400), "standard": (256, 10000, 1500), "full": (512, 40000, 4000)}
_NOISES = (0.0, 1e-6, 0.3, 25.0)


def checks(scale: str) -> Iterator[Check]:
    """Checks of the family; violations are counted relative to the bound, rounding is some 16 eps per step."""
    width, steps, short = _SIZES[scale]
    system = sources.sample_features(jax.random.key(SEED + 40), power_law(0.6, 0.2, ambient=2 * width), width)
    yield from _constant(system, steps)
    yield from _changing(system, short)


def _constant(system: Spectrum, steps: int) -> Iterator[Check]:
    batch = 2.0
    lr = 0.4 * stationary.lr_limit(system, batch)
    at, schedule = np.arange(steps + 1), constant(steps, lr, batch)
    mass = _kernel_mass(system, lr, batch, steps)
    allowed = (16 * steps + system.modes) * _EPS
    yield near(
        "sandwich/kernel-mass",
        "S_t in closed form equals the running sum of the kernel K_0 + ... + K_{t-1} (largest relative difference)",
        0.0,
        float(np.max(np.abs(stationary.kernel_mass(system, lr, batch, at)[1:] / mass[1:] - 1.0))),
        allowed,
    )
    low, high = -np.inf, -np.inf
    for noise in _NOISES:
        curve = recursion.risk(system.replace(noise_var=noise), schedule, at=at)
        clean = recursion.risk(system.replace(noise_var=0.0), schedule, at=at).risk
        bounds = stationary.sandwich(system.replace(noise_var=noise), lr, batch, at, clean)
        low = max(low, float(np.max((bounds.lower - curve.risk) / bounds.lower)))
        high = max(high, float(np.max((curve.risk - bounds.upper) / bounds.upper)))
    told = (
        f"at all {steps} steps and sigma^2 = {', '.join(f'{noise:g}' for noise in _NOISES)} (worst relative violation)"
    )
    yield near("sandwich/lower", f"R_0,t + sigma^2 S_t <= R_t {told}", 0.0, max(low, 0.0), allowed)
    yield near("sandwich/upper", f"R_t <= R_0,t + sigma^2 S_t/(1 - kappa) {told}", 0.0, max(high, 0.0), allowed)
    gap = recursion.risk(system.replace(noise_var=1.0), schedule, at=at).gap
    yield near(
        "sandwich/first-step",
        "the lower bound is attained after one step: gap_1 = sigma^2 S_1",
        1.0,
        float(gap[1] / mass[1]),
        (64 + system.modes) * _EPS,
    )
    kappa = float(lr / batch * np.sum(_rates(system, lr, batch)))
    # gap/S_t is at most 1/(1 - kappa). From below: of all chains of i feedbacks those with every lag at most t/m fit
    # into t for i <= m, so that the gap is at least S + S^2 + ... + S^m with S = S_{t/m}; the best m gives the
    # tolerance
    least = max(float(np.sum(mass[steps // pieces] ** np.arange(1, pieces + 1))) for pieces in range(1, 200))
    missing = 1.0 / (1.0 - kappa) - least / float(mass[-1])
    yield near(
        "sandwich/last-step",
        f"the upper bound is attained in the limit: gap_t/(sigma^2 S_t) after {steps} steps against 1/(1 - kappa); the "
        f"tolerance is what longer feedback chains can still add",
        1.0 / (1.0 - kappa),
        float(gap[-1] / mass[-1]),
        missing + allowed,
    )


def _changing(system: Spectrum, steps: int) -> Iterator[Check]:
    """The row-mass version for a schedule with growing batches, rows from the kernel array."""
    noise = 25.0
    top = float(np.max(np.asarray(system.eigenvalues)))
    schedule = power(steps, 0.4 / top, 4.0, vartheta=0.5)
    mass = volterra.kernel(system, schedule).sum(axis=1)[1:]
    gap = recursion.risk(system.replace(noise_var=noise), schedule, at=np.arange(1, steps + 1)).gap
    allowed = (16 * steps + system.modes) * _EPS
    told = f"batches growing like T^.5 over {steps} steps, largest row mass {mass.max():.4g} (worst relative violation)"
    below = float(np.max(noise * mass / gap - 1.0))
    over = float(np.max(gap * (1.0 - mass.max()) / (noise * mass) - 1.0)) if mass.max() < 1.0 else np.inf
    yield near("sandwich/schedule-lower", f"N_t <= gap, {told}", 0.0, max(below, 0.0), allowed)
    yield near("sandwich/schedule-upper", f"gap <= N_t/(1 - largest row mass), {told}", 0.0, max(over, 0.0), allowed)


def _rates(system: Spectrum, lr: float, batch: float) -> np.ndarray:
    lam = np.asarray(system.eigenvalues)
    return lam / (2.0 - (1.0 + 1.0 / batch) * lr * lam)


def _kernel_mass(system: Spectrum, lr: float, batch: float, steps: int) -> np.ndarray:
    """S_0..S_N by adding the kernel lag by lag."""
    x = lr * np.asarray(system.eigenvalues)
    alive = x**2 / batch
    factor = (1.0 - x) ** 2 + x**2 / batch
    total = [0.0]
    for _ in range(steps):
        total.append(total[-1] + float(alive.sum()))
        alive = alive * factor
    return np.array(total)
