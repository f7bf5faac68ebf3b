"""Regime labels against what is measured.

Signs of differences of exponents decide the label, no formula of the label does.
"""

import math
from collections.abc import Iterator

import numpy as np

from rfsim import regimes
from rfsim.spectra import Spectrum
from rfsim.verify.check import Check, near, same
from rfsim.verify.filters import (
    lattice_remainder,
    long_power_law,
    memory_weight,
    mesh_shift,
    power_population,
    survival,
)
from rfsim.verify.registry import SEED

_COUNT = {"quick": 60, "standard": 300, "full": 2000}
_LR, _BATCH, _TIMES = 1e-3, 4.0, (1e3, 1e4)
_MARGIN = 0.01  # points closer than this to a boundary are not drawn


def checks(scale: str) -> Iterator[Check]:
    """Checks of the family."""
    points = _points(_COUNT[scale])
    wrong, worst, allowed = [], 0.0, 0.0
    for alpha, beta in points:
        label, slopes = measured_label(alpha, beta)
        told = regimes.regime(alpha, beta)
        if label != told.label:
            wrong.append(f"({alpha:.4g}, {beta:.4g}) {told.label}, measured {label}")
        for q, measured in zip((told.q_forcing, told.q_memory), slopes, strict=True):
            if q is not None and measured is not None:
                worst = max(worst, abs(q - measured))
                allowed = max(allowed, mesh_shift(q, _LR, _BATCH, _TIMES[0]) + lattice_remainder(alpha, _TIMES[0]))
    yield same(
        "regimes/labels",
        f"labels of {len(points)} random points, at least {_MARGIN:g} away from boundaries, agree with the "
        "signs of measured "
        f"q_F - q_K, q_F - 1, q_K - 1 and of the growth of tr Lambda^2 with the width",
        "all agree",
        "all agree" if not wrong else "; ".join(wrong[:5]),
    )
    yield near(
        "regimes/coordinates",
        f"(q_F, q_K) of these points are the exponents measured on T = {_TIMES[0]:g} ... {_TIMES[1]:g} (largest "
        "difference)",
        0.0,
        worst,
        allowed + 1e-9,
    )


def measured_label(alpha: float, beta: float) -> tuple[str, tuple[float | None, float | None]]:
    """Label from measured slopes, and the slopes (forcing, memory)."""
    if _bulk_exponent(alpha) > 0.0:
        forcing = _slope(long_power_law(alpha, beta), memory=False)
        return ("FB1" if forcing < 1.0 else "FB2"), (None, None)
    system = power_population(alpha, beta)
    forcing, memory = _slope(system, memory=False), _slope(system, memory=True)
    family, threshold = ("LM", memory) if memory < 1.0 else ("IM", 1.0)
    if forcing < threshold:
        number = 1
    elif forcing < max(memory, 1.0):
        number = 2
    else:
        number = 3
    return f"{family}{number}", (forcing, memory)


def _slope(system: Spectrum, *, memory: bool) -> float:
    weight = memory_weight(system) if memory else np.asarray(system.forcing_energy)
    first, last = survival(np.asarray(system.eigenvalues), weight, _LR, _BATCH, _TIMES)
    return -math.log(last / first) / math.log(_TIMES[1] / _TIMES[0])


def _bulk_exponent(alpha: float) -> float:
    """How tr Lambda^2 = sum j^(-4 alpha) grows.

    Log2 of two successive octaves, 1 - 4 alpha; positive means it diverges.
    """

    def octave(start: float) -> float:
        return float(np.sum(np.arange(start, 2.0 * start) ** (-4.0 * alpha)))

    return math.log2(octave(2048.0) / octave(1024.0))


def _points(count: int) -> list[tuple[float, float]]:
    """Random points with alpha in (.1, 1.2), beta in (-.3, 1.2), away from every boundary and from p = 0."""
    draws = np.random.default_rng(SEED + 80)
    points: list[tuple[float, float]] = []
    while len(points) < count:
        alpha, beta = float(draws.uniform(0.1, 1.2)), float(draws.uniform(-0.3, 1.2))
        lines = (alpha - 0.25, alpha - 0.5, beta - 0.5, beta - alpha)
        p = 2.0 * alpha + 2.0 * beta - 1.0
        if p > 0.2 and min(abs(line) for line in lines) > _MARGIN:
            points.append((alpha, beta))
    return points
