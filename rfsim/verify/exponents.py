"""Forcing and memory exponents at one point of each of the eight regimes: finite-window prediction first, limit second.

LM and IM: infinite population, where both profiles are powers up to terms beyond every power of T, so a window with
T >= 20 shows the limit. FB: the memory of an infinite population diverges; its forcing is taken without memory, and
its memory from sampled features of finite width, flat while T << width^(2 alpha) and growing with the width.
"""

import math
from collections.abc import Iterator

import jax
import numpy as np

from rfsim.exponents import forcing_exponent, memory_exponent
from rfsim.measure import family_threshold, fit_exponent
from rfsim.problems import power_law
from rfsim.propagation import propagation
from rfsim.regimes import EXAMPLES
from rfsim.routes import recursion
from rfsim.schedules import constant
from rfsim.sources import features as sources
from rfsim.spectra import Spectrum
from rfsim.verify.check import Check, near
from rfsim.verify.filters import lattice_remainder, long_power_law, mesh_shift, power_population
from rfsim.verify.registry import SEED

POINTS = EXAMPLES
_LR, _BATCH = 0.02, 4.0
_LAST = {"quick": 200.0, "standard": 2000.0, "full": 20000.0}  # end of the window, which starts at T = 20
_FIRST = 20.0
_MODES = 2048  # spectra are padded to one size, so that one compiled kernel serves all
_FIT = 1e-5  # of an exponent fitted on 400 recorded steps: cubic interpolation in log T between them
_WIDTH = {"quick": 256, "standard": 1024, "full": 2048}
_DRAWS = {"quick": 24, "standard": 64, "full": 64}


def checks(scale: str) -> Iterator[Check]:
    """Checks of the family."""
    window = (_FIRST, _LAST[scale])
    worst = {"forcing": 0.0, "memory": 0.0}
    allowed = {"forcing": 0.0, "memory": 0.0}
    for label, (alpha, beta) in POINTS.items():
        if label.startswith("FB"):
            yield _bulk_forcing(label, window)
            continue
        system = _padded(power_population(alpha, beta))
        for quantity, limit in (("forcing", forcing_exponent(alpha, beta)), ("memory", memory_exponent(alpha))):
            found = propagation(
                system, lr=_LR, batch=_BATCH, vartheta=0.0, window=window, quantity=quantity, allow_unstable=True
            )
            predicted = math.nan if found.finite_window is None else found.finite_window
            # a relative shift of d(T) ~ 1/T moves a local exponent by at most d(T1)
            mesh = mesh_shift(limit, _LR, _BATCH, _FIRST) + _FIT
            difference = abs(found.measured - predicted)
            worst[quantity] = max(worst[quantity], difference if difference >= 0.0 else math.inf)
            allowed[quantity] = max(allowed[quantity], mesh)
            symbol = "q_F = (2 alpha + 2 beta - 1)/(2 alpha)" if quantity == "forcing" else "q_K = 2 - 1/(2 alpha)"
            yield near(
                f"exponents/{quantity}-{label}",
                f"{label}, alpha = {alpha:g}, beta = {beta:g}, infinite population: {quantity} exponent {symbol} on "
                f"[{window[0]:g}, {window[1]:g}]",
                _by_hand(quantity, alpha, beta),
                found.measured,
                mesh + lattice_remainder(alpha, _FIRST),
            )
    for quantity in ("forcing", "memory"):
        yield near(
            f"exponents/{quantity}-window",
            f"{quantity} exponents of the exact recursion equal the finite-window prediction of the continuum "
            "in all six LM and "
            f"IM regimes (largest difference)",
            0.0,
            worst[quantity],
            allowed[quantity],
        )
    for label in ("FB1", "FB2"):
        yield _bulk_memory(label, _WIDTH[scale])
        yield _bulk_width(label, _DRAWS[scale])


def _by_hand(quantity: str, alpha: float, beta: float) -> float:
    """The exponents once more, from their definitions."""
    return (2.0 * alpha + 2.0 * beta - 1.0) / (2.0 * alpha) if quantity == "forcing" else 2.0 - 1.0 / (2.0 * alpha)


def _padded(system: Spectrum) -> Spectrum:
    """The same spectrum with modes that carry nothing, up to a common number of modes."""
    missing = (0, _MODES - system.modes)
    return system.replace(
        eigenvalues=np.pad(np.asarray(system.eigenvalues), missing, constant_values=1e-30),
        forcing_energy=np.pad(np.asarray(system.forcing_energy), missing),
        multiplicity=np.pad(np.asarray(system.multiplicity), missing),
    )


def _bulk_forcing(label: str, window: tuple[float, float]) -> Check:
    alpha, beta = POINTS[label]
    quiet = _padded(long_power_law(alpha, beta))
    last = math.ceil(window[1] / _LR) + 1
    at = np.unique(np.rint(np.geomspace(window[0] / _LR - 1.0, last, 400)).astype(int))
    curve = recursion.risk(quiet, constant(last, _LR, _BATCH), at=at)
    found = fit_exponent(curve.intrinsic_time, curve.forcing, window=window).exponent
    q, p = _by_hand("forcing", alpha, beta), 2.0 * alpha + 2.0 * beta - 1.0
    # the energy beyond coordinate 1e30 is in one mode there: wrong by a factor 1 + 2 T 1e30^(-2 alpha) at most
    frozen = 1e30**-p / p * 2.0 * window[1] * 1e30 ** (-2.0 * alpha) / float(curve.forcing[-1])
    return near(
        f"exponents/forcing-{label}",
        f"{label}, alpha = {alpha:g}, beta = {beta:g}, infinite population without memory: forcing exponent "
        f"q_F = (2 alpha + 2 beta - 1)/(2 alpha) on [{window[0]:g}, {window[1]:g}]",
        q,
        found,
        mesh_shift(q, _LR, _BATCH, _FIRST) + _FIT + lattice_remainder(alpha, _FIRST) + 2.0 * q * frozen,
    )


def _bulk_memory(label: str, width: int) -> Check:
    """Sampled features: the memory is flat, its small local exponent is that of the Gram eigenvalues."""
    alpha, beta = POINTS[label]
    drawn = sources.random_features(jax.random.key(SEED + 70), power_law(alpha, beta, ambient=2 * width), width)
    half = np.sqrt(np.asarray(drawn.problem.eigenvalues))[:, None] * np.asarray(drawn.weights)
    lam = np.linalg.eigvalsh(half.T @ half)
    end = 0.02 * width ** (2.0 * alpha)
    window, lr = (0.1 * end, end), end / 4000.0
    found = propagation(
        sources.feature_spectrum(drawn), lr=lr, batch=_BATCH, vartheta=0.0, window=window, quantity="memory"
    )
    times = np.geomspace(*window, 400)
    profile = np.array([float(np.sum(lam**2 * np.exp(-2.0 * time * lam))) for time in times])
    predicted = fit_exponent(times, profile).exponent
    # log q = -2 x - (1 - 1/B) x^2: a local exponent moves by at most 2 T eta l_max^2
    return near(
        f"exponents/memory-{label}",
        f"{label}, alpha = {alpha:g}, sampled features of width {width}: the memory is flat for T << M^(2 "
        "alpha), its local "
        f"exponent on [.002, .02] M^(2 alpha) is that of sum l^2 exp(-2 T l) over the Gram matrix (limit 0)",
        predicted,
        found.measured,
        2.0 * end * lr * float(lam[-1]) ** 2 + _FIT,
    )


def _bulk_width(label: str, draws: int) -> Check:
    """Mean of sum l^2 over draws of W against E tr H^2 = (1 + 1/M) tr Lambda^2 + (tr Lambda)^2/M at two widths."""
    alpha, beta = POINTS[label]
    logs, errors, exact = [], [], []
    for width in (32, 128):
        problem = power_law(alpha, beta, ambient=2 * width)
        lam = np.asarray(problem.eigenvalues)
        keys = jax.random.split(jax.random.key(SEED + 71), draws)
        values = np.array(
            [float(np.sum(np.square(sources.sample_features(key, problem, width).eigenvalues))) for key in keys]
        )
        logs.append(math.log(values.mean()))
        errors.append(values.std(ddof=1) / math.sqrt(draws) / values.mean())
        exact.append(math.log((1.0 + 1.0 / width) * float(np.sum(lam**2)) + float(np.sum(lam)) ** 2 / width))
    distance = math.log(4.0)
    # two independent means: Student's t of the smaller sample, false-alarm rate 1e-4
    return near(
        f"exponents/memory-{label}-width",
        f"{label}: the kernel at lag 0 grows with the width like tr Lambda^2 + (tr Lambda)^2/M; exponent "
        "between widths 32 and "
        f"128 over {draws} draws of W (limit 1 - 4 alpha = {1.0 - 4.0 * alpha:g}; false-alarm rate 1e-4)",
        (exact[1] - exact[0]) / distance,
        (logs[1] - logs[0]) / distance,
        family_threshold(1, 1e-4, draws - 1) * math.hypot(*errors) / distance,
    )
