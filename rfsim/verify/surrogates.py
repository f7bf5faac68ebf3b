"""Laws for measured curves: published values, identities, and fits of the exact dynamics."""

import warnings
from collections.abc import Iterator

import numpy as np
from scipy.optimize import minimize_scalar

from rfsim import schedules
from rfsim.exact import risk
from rfsim.logs import Run, run
from rfsim.problems import power_law
from rfsim.schedules import Schedule
from rfsim.sources.population import population
from rfsim.spectra import Spectrum
from rfsim.surrogates import FitWarning, ForcingMemory, fit, law
from rfsim.surrogates.allocation import compute_optimal
from rfsim.surrogates.forcing_memory import path_of_pieces
from rfsim.surrogates.kernel import kinks, memory_integrals
from rfsim.surrogates.pieces import Pieces
from rfsim.verify.check import Check, near

_ROWS = {"quick": 200, "standard": 500, "full": 1000}  # rows of a made log
_STEPS, _LR, _BATCH, _NOISE, _IRREDUCIBLE = 50_000, 0.1, 128.0, 25.0, 1.0
_POINTS = {"LM": (0.4, 0.3), "IM": (0.6, 0.2)}
_PUBLISHED = (2.85619, 27.8556, 0.37415, 121.298, 5.03e-12, 18.1955, 1.01707)
_PREFIX, _RATIO, _TAIL = 9765.6, 800.0, 488_280.0
_FINAL = (1.8172, 482.01, 2085.43, 0.3478, 0.3658)  # E, A, B, alpha, beta


def checks(scale: str) -> Iterator[Check]:
    """Checks of the family."""
    yield near(
        "surrogates/anchors",
        "the forcing-memory law at published parameters on 8-1-1 and WSD tails (largest difference from seven values)",
        0.0,
        _anchors(),
        1e-8,
    )
    yield near(
        "surrogates/telescoped",
        "int (eta/B) k(T-u) du = [eta_0 G(T) - sum_i (eta_(i-1) - eta_i) G(T - T_i)]/B, for q = .7, 1, 1.3 (relative)",
        0.0,
        _telescoped(),
        1e-13,
    )
    for name, (alpha, beta) in _POINTS.items():
        yield from _fitted(name, alpha, beta, _ROWS[scale])
    yield near(
        "surrogates/allocation",
        "N* = (alpha A/(beta B))^(1/(alpha+beta)) (C/6)^(beta/(alpha+beta)) against numeric minimisation (log N)",
        *_allocation(),
        1e-6,
    )


def _anchors() -> float:
    """Largest difference from the seven values, at their times on the flat part and on both tails."""
    form = ForcingMemory(lr_unit=1.0, batch_unit=1.0)
    values = np.array(_PUBLISHED)
    flat = 1.0 / _RATIO
    lr, batch = 0.005, 4.0
    part = lr * 0.5 * _TAIL  # each stage of 8-1-1 takes half of the updates of the tail
    stages = Pieces(
        np.array([0.0, _PREFIX, _PREFIX + part * 10**-0.5, _PREFIX + part * (10**-0.5 + 0.1)]),
        flat * np.array([1.0, 10**-0.5, 0.1]),
        flat * np.array([1.0, 10**-0.5, 0.1]),
    )
    # WSD: the lr falls exponentially in updates, so 1/r falls linearly in the clock
    length = lr * _TAIL * 0.9 / np.log(10.0)
    ramp = Pieces(np.array([0.0, _PREFIX, _PREFIX + length]), np.array([flat, lr / batch]), np.array([flat, flat / 10]))
    first, last = stages.edges[2:], ramp.edges[1:]
    cases = (
        (stages, [1000.0, 5000.0, _PREFIX, *first], [5.031842136, 4.093203336, 3.842878752, 3.783407865, 3.765196772]),
        (ramp, [0.5 * last.sum(), last[1]], [3.799117814, 3.751825061]),
    )
    worst = 0.0
    for shape, times, losses in cases:
        found, _ = form.evaluate(values, path_of_pieces(shape, np.array(times)), gradient=False)
        worst = max(worst, float(np.max(np.abs(found - losses))))
    return worst


def _telescoped() -> float:
    """Largest relative difference of the two sides for a staircase of lr."""
    lr = np.array([0.3, 0.3, 0.2, 0.05, 0.05, 0.01])
    clock = np.concatenate([[0.0], np.cumsum(lr)])
    worst = 0.0
    for q in (0.7, 1.0, 1.3):
        c = 2.0
        changes = kinks(clock, lr, lr)
        left = memory_integrals(clock[-1:], changes.place, changes.jump[:, None], changes.bend[:, None], c, q).value
        lag = clock[-1] - clock[:-1]
        growth = np.log1p(c * lag) / c if q == 1.0 else (1.0 - (1.0 + c * lag) ** (1.0 - q)) / (c * (q - 1.0))
        right = lr[0] * growth[0] - np.sum((lr[:-1] - lr[1:]) * growth[1:])
        worst = max(worst, abs(float(left[0, 0]) / right - 1.0))
    return worst


def _fitted(name: str, alpha: float, beta: float, rows: int) -> Iterator[Check]:
    """A fit of an exact 8-1-1 curve: its memory exponent, and what it predicts for two other schedules."""
    spectrum = population(power_law(alpha=alpha, beta=beta, ambient=np.inf, noise_var=_NOISE))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        fitted = fit(law("forcing-memory"), _log(spectrum, schedules.eight_one_one(_STEPS, _LR, _BATCH), rows))
    lag = np.geomspace(_LR * _STEPS / rows, 0.85 * _LR * _STEPS, 60)
    eigenvalues, weight = np.asarray(spectrum.eigenvalues), np.asarray(spectrum.multiplicity)
    kernel = np.exp(-2.0 * np.outer(lag, eigenvalues)) @ (weight * eigenvalues**2)
    yield near(
        f"surrogates/memory-exponent-{name}",
        f"q_K of the forcing-memory law fitted to an exact {name} curve under 8-1-1, against the slope of its kernel",
        -float(np.polyfit(np.log(lag), np.log(kernel), 1)[0]),
        fitted.params["q_K"],
        0.05,
    )
    for schedule, made in (("wsd", schedules.wsd), ("cosine", schedules.cosine)):
        unseen = _log(spectrum, made(_STEPS, _LR, _BATCH), rows)
        error = (fitted.predict(unseen).loss - unseen.loss) / (unseen.loss - _IRREDUCIBLE)
        yield near(
            f"surrogates/{schedule}-{name}",
            f"the same fit predicts {schedule} (largest error over the excess loss)",
            0.0,
            float(np.max(np.abs(error))),
            0.02,
        )


def _log(spectrum: Spectrum, schedule: Schedule, rows: int) -> Run:
    steps = np.linspace(_STEPS / rows, _STEPS, rows).astype(np.int64)
    curve = risk(spectrum, schedule, at=np.concatenate([[0], steps]))
    return run(steps, np.asarray(curve.risk)[1:] + _IRREDUCIBLE, schedule)


def _allocation() -> tuple[float, float]:
    """Closed and numeric log of the compute-optimal model size at C = 10^21."""
    e, a, b, alpha, beta = _FINAL
    compute = 1e21

    def loss(log_size: float) -> float:
        size = np.exp(log_size)
        return e + a * size**-alpha + b * (compute / (6.0 * size)) ** -beta

    numeric = minimize_scalar(loss, bounds=(np.log(1e7), np.log(1e12)), method="bounded", options={"xatol": 1e-12}).x
    closed = compute_optimal(np.array(_FINAL), compute)
    return float(np.log(closed.model_size)), float(numeric)
