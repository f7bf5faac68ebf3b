"""Stability of a constant schedule, judged by the spectral radius of the literal mean-square map."""

import math
from collections.abc import Iterator

import jax
import numpy as np
from scipy.optimize import brentq

from rfsim import stationary
from rfsim.problems import power_law
from rfsim.routes import recursion
from rfsim.schedules import constant
from rfsim.sources import features as sources
from rfsim.spectra import spectrum
from rfsim.verify import dense
from rfsim.verify.check import Check, near
from rfsim.verify.registry import SEED

_BATCHES = (1.0, 2.0, 8.0, 64.0, 1000.0)
_WIDTH = {"quick": 6, "standard": 10, "full": 16}
_EPS = float(np.finfo(float).eps)


def checks(scale: str) -> Iterator[Check]:
    """Checks of the family."""
    width = _WIDTH[scale]
    problem = power_law(0.5, 0.3, ambient=2 * width)
    drawn = sources.random_features(jax.random.key(SEED + 20), problem, width)
    system = sources.feature_spectrum(drawn)
    active = dense.active_part(dense.dense_model(drawn).feature_matrix, width)
    top = float(np.max(np.linalg.eigvalsh(active)))
    worst, allowed, worst_mass, mass_allowed = 0.0, 0.0, 0.0, 0.0
    for batch in _BATCHES:
        edge = 2.0 / ((1.0 + 1.0 / batch) * top)

        def excess(lr: float, batch: float = batch) -> float:
            return dense.spectral_radius(dense.mean_square_map(active, lr, batch))[0] - 1.0

        found = float(brentq(excess, 0.05 * edge, edge, xtol=1e-300, rtol=4 * _EPS))
        rounding = dense.spectral_radius(dense.mean_square_map(active, found, batch))[1]
        # the map is known to `rounding`, so the crossing is known to rounding over the slope of the radius
        slope = (excess(found * (1 + 1e-6)) - excess(found * (1 - 1e-6))) / 2e-6
        worst = max(worst, abs(stationary.lr_limit(system, batch) / found - 1.0))
        allowed = max(allowed, 2.0 * rounding / slope)
        mass = stationary.kappa(system, found, batch)
        mass_slope = (stationary.kappa(system, found * (1 + 1e-6), batch) - mass) / 1e-6
        worst_mass = max(worst_mass, abs(mass - 1.0))
        mass_allowed = max(mass_allowed, 2.0 * mass_slope * rounding / slope)
    told = f"width {width}, batches {', '.join(f'{batch:g}' for batch in _BATCHES)}"
    yield near(
        "stability/limit",
        f"the radius of the {width**2} x {width**2} mean-square map crosses 1 at lr_limit ({told}; largest "
        "relative error)",
        0.0,
        worst,
        allowed,
    )
    yield near(
        "stability/kappa",
        f"kappa = (eta/B) sum l/(2 - (1+1/B) eta l) is 1 where the radius crosses 1 ({told}; largest |kappa - 1|)",
        0.0,
        worst_mass,
        mass_allowed,
    )
    yield near(
        "stability/gradient-descent",
        "without sampling noise (batch inf) lr_limit is 2/max l",
        2.0 / top,
        stationary.lr_limit(system, math.inf),
        2.0 / top * 16 * width * _EPS,
    )
    yield from _late_rates(active, system)
    yield _pointwise_not_enough()


def _late_rates(active: np.ndarray, system: object) -> Iterator[Check]:
    """Just below the limit a run without floor and noise decays, just above it grows, both by the radius per step."""
    batch = 4.0
    bare = system.replace(floor=0.0, noise_var=0.0)  # type: ignore[attr-defined]
    limit = stationary.lr_limit(bare, batch)
    for name, factor, word in (("below", 0.99, "decays"), ("above", 1.01, "grows")):
        lr = factor * limit
        radius, rounding = dense.spectral_radius(dense.mean_square_map(active, lr, batch))
        lam = np.asarray(bare.eigenvalues)
        x = lr * lam
        modes = np.diag((1.0 - x) ** 2 + x**2 / batch) + np.outer(x**2 / batch, np.ones(lam.size))
        second = float(np.sort(np.abs(np.linalg.eigvals(modes)))[-2])
        steps = math.ceil(math.log(1e-13) / math.log(second / radius))
        curve = recursion.risk(bare, constant(steps + 1, lr, batch), at=[steps, steps + 1])
        rate = float(curve.risk[1] / curve.risk[0])
        # what is left of other modes: below 1e-13 times the ratio of their first weights, bounded by the condition of
        # the map
        yield near(
            f"stability/{name}",
            f"at {factor:g} of lr_limit (B = 4) the risk {word}, after {steps} steps by the radius of the map per step",
            radius,
            rate if (rate < 1.0) == (word == "decays") else math.nan,
            1e-10 + 2.0 * rounding + 32 * lam.size * _EPS,
        )


def _pointwise_not_enough() -> Check:
    """One mode l = 1, B = 1, eta = 7/10: q = 29/50 < 1, yet R <- 1.07 R."""
    curve = recursion.risk(spectrum([1.0], [1.0]), constant(20, 0.7, 1.0), at=[19, 20])
    return near(
        "stability/pointwise-not-enough",
        "one mode l = 1, B = 1, eta = .7 contracts pointwise (q = .58) but the risk grows by q + eta^2/B = "
        "1.07 per step",
        1.07,
        float(curve.risk[1] / curve.risk[0]),
        200 * _EPS,
    )
