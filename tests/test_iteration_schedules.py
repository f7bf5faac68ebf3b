"""Powers of the iteration, lr ~ n^-l and B ~ n^b: which ratio path they follow, and their gap on exact dynamics."""

import numpy as np
import pytest

import rfsim
from rfsim.continuum import accumulate
from rfsim.gap_laws import iteration_gap_law, iteration_schedule
from rfsim.measure import fit_exponent
from rfsim.regimes import memory_exponent
from rfsim.routes import recursion
from rfsim.schedules import path, polynomial

STEPS, WINDOW = 20_000, (200.0, 20_000.0)
CASES = [  # alpha, beta, l, b: both memories, below and above the ceiling, each with lr decay, batch growth and both
    (0.6, 0.2, 0.2, 0.3),
    (0.6, 0.2, 0.5, 0.0),
    (0.6, 0.2, 0.3, 1.0),
    (0.4, 0.3, 0.0, 0.5),
    (0.4, 0.3, 0.2, 0.4),
    (0.4, 0.3, 0.5, 0.2),
    (0.4, 0.3, 0.3, 0.9),
]


@pytest.mark.parametrize(("alpha", "beta", "fall", "growth"), CASES)
def test_gap_per_iteration_on_exact_dynamics(alpha, beta, fall, growth):
    """Measured within .006 of the accumulation integral on the same path, and within .065 of the limit (1 - l) q_N."""
    spectrum = rfsim.population(rfsim.power_law(alpha, beta, noise_var=25.0))
    schedule = polynomial(STEPS, 0.15, 16.0, lr_decay=fall, batch_growth=growth, exact_batch=True)
    at = np.unique(np.geomspace(100, STEPS, 200).astype(int))
    measured = fit_exponent(at.astype(float), recursion.risk(spectrum, schedule, at=at).gap, window=WINDOW).exponent
    grid = np.unique(np.concatenate([np.arange(200), np.geomspace(200, STEPS, 3000).astype(int)]))
    followed = path(schedule, at=grid)
    integral = accumulate(spectrum, followed.intrinsic_time, 25.0, followed.ratio)
    assert measured == pytest.approx(
        fit_exponent(grid[1:].astype(float), integral[1:], window=WINDOW).exponent, abs=6e-3
    )
    limit = iteration_gap_law(memory_exponent(alpha), fall, growth)
    assert measured == pytest.approx(limit.exponent, abs=0.065)
    late = path(schedule, at=[STEPS // 2, STEPS])
    slope = np.log(late.ratio[1] / late.ratio[0]) / np.log(late.intrinsic_time[1] / late.intrinsic_time[0])
    assert slope == pytest.approx(iteration_schedule(fall, growth), abs=0.01)


def test_late_windows_are_nearer_to_the_limit():
    for alpha, beta, fall, growth in ((0.6, 0.2, 0.2, 0.3), (0.4, 0.3, 0.2, 0.4)):
        spectrum = rfsim.population(rfsim.power_law(alpha, beta, noise_var=25.0))
        schedule = polynomial(STEPS, 0.15, 16.0, lr_decay=fall, batch_growth=growth, exact_batch=True)
        at = np.unique(np.geomspace(10, STEPS, 300).astype(int))
        gap = recursion.risk(spectrum, schedule, at=at).gap
        limit = iteration_gap_law(memory_exponent(alpha), fall, growth).exponent
        off = [
            abs(fit_exponent(at.astype(float), gap, window=window).exponent - limit)
            for window in ((20.0, 400.0), (1000.0, 20_000.0))
        ]
        assert off[1] < 0.7 * off[0]
