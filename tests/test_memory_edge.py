"""The long-memory edge (.4, .3), vartheta = 1 - q_K = .25: exponents and plateaus that depend on amplitudes."""

from functools import cache

import numpy as np
import pytest

from rfsim.amplitudes import memory_amplitude
from rfsim.continuum import accumulate, forcing_profile, time_grid
from rfsim.gap_laws import lm_edge, lm_edge_clean_exponent, lm_edge_forcing_factor
from rfsim.measure import fit_exponent
from rfsim.problems import power_law
from rfsim.routes import recursion
from rfsim.schedules import power
from rfsim.sources.population import population

ALPHA, Q_MEMORY, VARTHETA = 0.4, 0.75, 0.25
STRENGTHS = (0.05, 0.1, 0.15)  # c_K/c_r
BETAS = {0.3: 0.5, 0.9: 2.0}  # q_F: below most edge exponents, and above all
LAST = 1e12


def ratio_amplitude(strength):
    return memory_amplitude(ALPHA) / strength


@cache
def long_run(strength):
    """Continuum with feedback to T = 1e12: grid, gap for sigma^2 = 1, forcing and clean risk for each beta."""
    grid = time_grid(LAST, 5000)
    ratio = ratio_amplitude(strength) * (1.0 + grid) ** VARTHETA
    sources = {beta: population(power_law(ALPHA, beta)) for beta in BETAS}
    gap = accumulate(sources[0.3], grid, 1.0, ratio, feedback=True)
    forcing = {beta: forcing_profile(source, grid) for beta, source in sources.items()}
    clean = {
        beta: forcing[beta] + accumulate(source, grid, forcing[beta], ratio, feedback=True)
        for beta, source in sources.items()
    }
    return grid, gap, forcing, clean


def late(values, grid, power_of_correction):
    """Limit of values whose distance to it falls like T^-power, from T = 1e8 and 1e12."""
    first, second = np.interp([1e8, LAST], grid, values)
    shrink = 1e4**power_of_correction
    return (shrink * second - first) / (shrink - 1.0), first, second


@pytest.mark.parametrize("strength", STRENGTHS)
def test_the_gap_tends_to_the_plateau_of_its_amplitude(strength):
    edge = lm_edge(Q_MEMORY, strength)
    grid, gap, _, _ = long_run(strength)
    limit, first, second = late(gap, grid, VARTHETA)  # the next term of the row mass is Kbar/r
    assert abs(second / edge.plateau_factor - 1.0) < 0.2 * abs(first / edge.plateau_factor - 1.0)
    assert limit == pytest.approx(edge.plateau_factor, rel=5e-4)


@pytest.mark.parametrize("strength", STRENGTHS)
def test_a_fast_forcing_leaves_the_clean_risk_to_the_edge_exponent(strength):
    grid, _, _, clean = long_run(strength)
    expected = lm_edge_clean_exponent(BETAS[0.9], Q_MEMORY, strength)
    assert expected == lm_edge(Q_MEMORY, strength).exponent < Q_MEMORY
    found = fit_exponent(grid[1:], clean[0.9][1:], window=(1e9, LAST)).exponent
    assert found == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("strength", STRENGTHS)
def test_a_slow_forcing_keeps_its_exponent_below_the_edge_exponent_and_gains_a_factor(strength):
    grid, _, forcing, clean = long_run(strength)
    q_forcing, edge = BETAS[0.3], lm_edge(Q_MEMORY, strength)
    multiple = clean[0.3] / forcing[0.3]
    if q_forcing < edge.exponent:
        limit, _, second = late(multiple, grid, edge.exponent - q_forcing)
        factor = lm_edge_forcing_factor(q_forcing, Q_MEMORY, strength)
        assert limit == pytest.approx(factor, rel=0.01)
        assert second < factor  # still on its way: the second exponent is close
    else:
        # two powers, T^-q_F and T^-g with .054 between them: their ratio of amplitudes is still falling
        assert edge.exponent < q_forcing
        found = [fit_exponent(grid[1:], clean[0.3][1:], window=w).exponent for w in ((1e5, 1e8), (1e9, LAST))]
        assert found[0] < found[1] < edge.exponent
        # clean T^g = a - b T^-(q_F - g): its limit a from the last three even steps in log T (Aitken)
        x, y, z = np.interp([1e6, 1e9, LAST], grid, clean[0.3] * (1.0 + grid) ** edge.exponent)
        assert (z - y) / (y - x) == pytest.approx(1e3 ** -(q_forcing - edge.exponent), rel=0.05)


@pytest.mark.parametrize("strength", STRENGTHS)
def test_exact_dynamics_follow_the_amplitude_as_the_window_predicts(strength):
    """Recursion to T = 4000, lr .1: measured slopes and gap against the continuum with feedback, no fit."""
    lr, last = 0.1, 4000.0
    steps = round(last / lr)
    path = power(steps, lr, ratio_amplitude(strength) * lr, vartheta=VARTHETA, exact_batch=True)
    at = np.unique(np.rint(np.geomspace(40.0, last, 60) / lr).astype(int))
    grid, gap, _, clean = long_run(strength)
    for beta in BETAS:
        source = population(power_law(ALPHA, beta, noise_var=1.0))
        curve = recursion.risk(source, path, at=at)
        time = np.asarray(curve.intrinsic_time)
        measured = fit_exponent(time, curve.clean, window=(40.0, last)).exponent
        predicted = fit_exponent(time, np.interp(time, grid, clean[beta]), window=(40.0, last)).exponent
        assert measured == pytest.approx(predicted, abs=0.01)
        # steps of lr against the continuum: terms of order lr max l of the row mass, fed back
        assert curve.gap[-1] == pytest.approx(np.interp(last, grid, gap), rel=0.05)


def test_measured_exponents_of_three_amplitudes_are_apart():
    found = []
    for strength in STRENGTHS:
        grid, _, _, clean = long_run(strength)
        found.append(fit_exponent(grid[1:], clean[0.9][1:], window=(40.0, 4000.0)).exponent)
    assert found[0] > found[1] + 0.05 > found[2] + 0.15
