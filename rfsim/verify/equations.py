"""Recursion = Volterra equation = matrix iteration: three ways to the same numbers, none of which uses another."""

from collections.abc import Iterator
from fractions import Fraction

import jax
import numpy as np

from rfsim.problems import power_law
from rfsim.routes import recursion, volterra
from rfsim.schedules import Schedule, constant, from_arrays
from rfsim.sources import features as sources
from rfsim.spectra import spectrum
from rfsim.verify import dense
from rfsim.verify.check import Check, near
from rfsim.verify.registry import SEED

_EPS = float(np.finfo(float).eps)
_DENSE = {"quick": (24, 12, 200), "standard": (48, 24, 600), "full": (96, 48, 2000)}  # ambient, width, steps
_LARGE = {"quick": (300, 400), "standard": (600, 1000), "full": (1500, 3000)}  # modes, steps


def changing_schedule(steps: int, lr: float, seed: int) -> Schedule:
    """lr and batch both different at every step: lr within [lr/4, lr], batches 1..40."""
    draws = np.random.default_rng(seed)
    return from_arrays(lr * draws.uniform(0.25, 1.0, steps), draws.integers(1, 41, steps).astype(float))


def checks(scale: str) -> Iterator[Check]:
    """Checks of the family; tolerances are rounding bounds, explained where they are used."""
    yield _rational()
    yield _isotropic()
    yield from _dense(scale)
    yield from _volterra(scale)


def _rational() -> Check:
    """Eigenvalues 1, 1/4, unit energies, floor 1/10, lr 1/2, batch 2, sigma^2 1, in exact fractions."""
    lam, rho, floor = [Fraction(1), Fraction(1, 4)], [Fraction(1), Fraction(1)], Fraction(1, 10)
    lr, batch, noise = Fraction(1, 2), Fraction(2), Fraction(1)
    steps = 12
    risk = [floor + sum(rho)]
    for _ in range(steps):
        rho = [
            (1 - 2 * lr * one + (1 + 1 / batch) * (lr * one) ** 2) * energy
            + lr**2 / batch * one**2 * (risk[-1] + noise)
            for one, energy in zip(lam, rho, strict=True)
        ]
        risk.append(floor + sum(rho))
    system = spectrum([1.0, 0.25], [1.0, 1.0], floor=0.1, noise_var=1.0)
    curve = recursion.risk(system, constant(steps, 0.5, 2.0), at=np.arange(steps + 1))
    exact = np.array([float(value) for value in risk])
    # every step multiplies and adds positive numbers, some 8 roundings each; all quantities stay positive
    return near(
        "recursion/rational",
        f"mode recursion equals exact fraction arithmetic over {steps} steps (largest relative difference)",
        0.0,
        float(np.max(np.abs(curve.risk / exact - 1.0))),
        8 * steps * _EPS,
    )


def _isotropic() -> Check:
    """d = 10 equal modes, B = 4, eta = .3: E|e|^2 shrinks by 1 - 2 eta + eta^2 (1 + (d + 1)/B) at every step."""
    system = spectrum(np.ones(10), np.linspace(0.0, 2.0, 10))
    curve = recursion.risk(system, constant(1, 0.3, 4.0), at=[0, 1])
    return near(
        "recursion/isotropic",
        "isotropic inputs, d = 10, B = 4, eta = .3: the risk shrinks by 1 - 2 eta + eta^2 (1 + (d+1)/B) in one step",
        1.0 - 0.6 + 0.09 * (1.0 + 11.0 / 4.0),
        float(curve.risk[1] / curve.risk[0]),
        50 * _EPS,
    )


def _dense(scale: str) -> Iterator[Check]:
    ambient, width, steps = _DENSE[scale]
    problem = power_law(0.6, 0.3, ambient=ambient, noise_var=0.3)
    drawn = sources.random_features(jax.random.key(SEED), problem, width)
    model, system = dense.dense_model(drawn), sources.feature_spectrum(drawn)
    top = float(np.max(np.asarray(system.eigenvalues)))
    schedule = changing_schedule(steps, 0.5 / top, SEED)
    lr, batch = np.asarray(schedule.lr), np.asarray(schedule.batch)
    curve = recursion.risk(system, schedule, at=np.arange(steps + 1))
    total = dense.covariance_risk(model, lr, batch, 0.3)
    clean = dense.covariance_risk(model, lr, batch, 0.0)
    gap = dense.covariance_risk(model, lr, batch, 0.3, target=False)
    # one matrix step makes an error of about 8 v eps |C| (three products of length v); a stable map does not amplify
    # it, and |C| <= tr C <= the largest risk of the run; the eigenvalues of H, known to v eps |H|, move q by as
    # little
    tolerance = 16 * ambient * steps * _EPS
    largest = float(total.max())
    told = f"iteration of the {ambient} x {ambient} error covariance over {steps} steps with lr and batch both changing"
    for name, what, exact, found in (
        ("dense", "risk of the mode recursion equals the", total, curve.risk),
        ("dense-clean", "clean risk equals the noise-free", clean, curve.clean),
        ("dense-gap", "gap equals the target-free", gap, curve.gap),
    ):
        difference = float(np.max(np.abs(found - exact))) / largest
        statement = f"{what} {told} (largest difference over largest risk)"
        yield near(f"recursion/{name}", statement, 0.0, difference, tolerance)


def _volterra(scale: str) -> Iterator[Check]:
    modes, steps = _LARGE[scale]
    draws = np.random.default_rng(SEED + 1)
    lam = 10.0 ** draws.uniform(-6.0, 0.0, modes)
    lam *= 4.0 / lam.sum()  # row mass at most lr/B * trace: below one, so that errors are not amplified
    system = spectrum(lam, draws.exponential(size=modes), floor=0.2, noise_var=0.7)
    schedule = changing_schedule(steps, min(0.4, 0.5 / lam.max()), SEED + 2)
    at = np.arange(steps + 1)
    one, other = recursion.risk(system, schedule, at=at), volterra.risk(system, schedule, at=at)
    worst = 0.0
    for name in ("risk", "forcing", "memory", "clean", "gap"):
        a, b = getattr(one, name)[1:], getattr(other, name)[1:]
        worst = max(worst, float(np.max(np.abs(a / b - 1.0))))
    # only positive terms are added on both sides: some 8 roundings per step and mode, and a sum over the modes; the
    # feedback through K passes relative errors on without enlarging them
    yield near(
        "recursion/volterra",
        "R = F + K (R + sigma^2) solved with the whole kernel equals the recursion: risk, forcing, memory, "
        "clean, gap, "
        f"{modes} modes, {steps} steps (largest relative difference)",
        0.0,
        worst,
        (16 * steps + modes) * _EPS,
    )
    sums = volterra.kernel(system, schedule).sum(axis=1)[1:]
    mass = np.asarray(recursion.row_mass(system, schedule, at=at))[1:]
    yield near(
        "recursion/row-mass",
        "row sums of the kernel array equal the recursion that is driven by a unit source (largest relative "
        "difference)",
        0.0,
        float(np.max(np.abs(mass / sums - 1.0))),
        (16 * steps + modes) * _EPS,
    )
