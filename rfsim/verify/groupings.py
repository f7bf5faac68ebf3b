"""Two groupings of one risk.

Forcing + memory, and clean + gap (bias + variance); and a third split around gradient descent.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from rfsim.routes import recursion, volterra
from rfsim.schedules import Schedule
from rfsim.spectra import Spectrum, spectrum
from rfsim.verify.check import Check, near
from rfsim.verify.equations import changing_schedule
from rfsim.verify.registry import SEED

_EPS = float(np.finfo(float).eps)
_SIZES = {"quick": (40, 300), "standard": (100, 1000), "full": (300, 3000)}  # modes, steps


def checks(scale: str) -> Iterator[Check]:
    """Checks of the family. Sums of positive terms.

    Some 16 roundings per step and a sum over modes bound all tolerances.
    """
    modes, steps = _SIZES[scale]
    draws = np.random.default_rng(SEED + 10)
    lam = np.sort(draws.uniform(0.01, 1.0, modes))
    lam *= 3.0 / lam.sum()
    system = spectrum(lam, draws.exponential(size=modes), floor=0.3, noise_var=0.5)
    schedule = changing_schedule(steps, 0.5, SEED + 11)
    at = np.arange(steps + 1)
    curve = recursion.risk(system, schedule, at=at)
    tolerance = (16 * steps + modes) * _EPS
    kernel = volterra.kernel(system, schedule)
    memory = kernel @ (curve.risk[:-1] + 0.5)
    yield near(
        "groupings/memory",
        "R_t - F_t = sum_s K_{t,s} (R_s + sigma^2) with the kernel as an array (largest relative difference)",
        0.0,
        _worst(curve.risk - curve.forcing, memory, curve.risk),
        tolerance,
    )
    alone = recursion.risk(system.replace(noise_var=0.0), schedule, at=at)
    yield near(
        "groupings/clean",
        "the clean curve is the risk of a run without label noise, and its memory is not zero",
        0.0,
        _worst(curve.clean, alone.risk, alone.risk) if (alone.memory[1:] > 0.0).all() else np.inf,
        tolerance,
    )
    nothing = system.replace(forcing_energy=np.zeros(modes), floor=0.0)
    only_noise = recursion.risk(nothing, schedule, at=at)
    yield near(
        "groupings/gap",
        "R - clean = gap, and the gap is the risk of a run without a target (largest difference over the gap)",
        0.0,
        _worst(curve.gap[1:], only_noise.risk[1:], only_noise.risk[1:])
        + _worst(curve.risk - curve.clean, only_noise.risk, curve.risk),
        2 * tolerance,
    )
    louder = recursion.risk(system.replace(noise_var=8.0), schedule, at=at)
    yield near(
        "groupings/affine",
        "the risk is affine in sigma^2: R(8) = clean + (8/sigma^2) gap for a run at sigma^2 = 8 (largest "
        "relative difference)",
        0.0,
        _worst(curve.clean + 16.0 * curve.gap, louder.risk, louder.risk),
        2 * tolerance,
    )
    short = schedule.part(0, min(steps, 400))
    split = _around_gradient_descent(system, short)
    # (1 - eta l)^2 and its products: 4 roundings per step; the double sum over s and t has steps terms of either sign
    # of error
    yield near(
        "groupings/small-noise",
        "gradient descent plus sum_s (eta^2/B) sum_j l^2 prod (1 - eta l)^2 (R_s + sigma^2 + rho_j(s)) is the "
        "same risk "
        "(largest relative difference)",
        0.0,
        _worst(split, curve.risk[: short.steps + 1], curve.risk[: short.steps + 1]),
        2 * tolerance,
    )


def _worst(one: ArrayLike, other: ArrayLike, scale: ArrayLike) -> float:
    return float(np.max(np.abs(np.asarray(one) - np.asarray(other)) / np.asarray(scale)))


def _around_gradient_descent(system: Spectrum, schedule: Schedule) -> np.ndarray:
    """Risk from the expansion around noise-free gradient descent, exact for the linear model; (N+1,).

    At each step every mode gets back (eta^2/B) l^2 (R + sigma^2 + rho_j), which then decays as gradient descent
    does. All injections are kept apart, (steps, modes), and decayed one by one.
    """
    lam, floor, noise = np.asarray(system.eigenvalues), float(system.floor), float(system.noise_var)
    descent = np.array(system.forcing_energy)
    injected = np.zeros((schedule.steps, lam.size))
    risk = [floor + descent.sum()]
    for step, (lr, batch) in enumerate(zip(np.asarray(schedule.lr), np.asarray(schedule.batch), strict=True)):
        energy = descent + injected[:step].sum(axis=0)
        decay = (1.0 - lr * lam) ** 2
        descent = descent * decay
        injected[:step] *= decay
        injected[step] = lr**2 / batch * lam**2 * (risk[-1] + noise + energy)
        risk.append(floor + descent.sum() + injected[: step + 1].sum())
    return np.array(risk)
