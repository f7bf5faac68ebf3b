"""The gap determines the ratio path below the ceiling, never lr and batch apart, and nothing at the ceiling."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rfsim
from rfsim.amplitudes import memory_amplitude, profile_mass
from rfsim.checks import InputError
from rfsim.continuum import accumulate, time_grid
from rfsim.gap_laws import gap_amplitude, gap_law
from rfsim.identification import ratio_from_gap
from rfsim.measure import fit_exponent


@given(st.floats(0.05, 0.95), st.floats(0.02, 0.98), st.floats(0.1, 10), st.floats(0.1, 100), st.floats(0.1, 30))
def test_long_memory_goes_round(q_memory, share, c_memory, c_ratio, noise):
    vartheta = 1.0 - q_memory + share * q_memory
    law = gap_law(q_memory, vartheta)
    amplitude = gap_amplitude(q_memory, vartheta, c_memory, c_ratio, noise)
    found = ratio_from_gap(q_memory, law.exponent, amplitude, memory_amplitude=c_memory, noise_var=noise)
    assert found.vartheta == pytest.approx(vartheta, abs=1e-12)
    assert found.ratio_amplitude == pytest.approx(c_ratio, rel=1e-9)


@given(st.floats(1.05, 1.95), st.floats(0.02, 0.98), st.floats(0.1, 10), st.floats(0.1, 100), st.floats(0.1, 30))
def test_integrable_memory_goes_round(q_memory, share, mass, c_ratio, noise):
    vartheta = share * q_memory
    amplitude = gap_amplitude(q_memory, vartheta, 1.0, c_ratio, noise, kernel_mass=mass)
    found = ratio_from_gap(q_memory, vartheta, amplitude, memory_amplitude=1.0, noise_var=noise, kernel_mass=mass)
    assert found.vartheta == pytest.approx(vartheta, abs=1e-12)
    assert found.ratio_amplitude == pytest.approx(c_ratio, rel=1e-12)


@pytest.mark.parametrize(("alpha", "vartheta"), [(0.4, 0.5), (0.8, 0.5)])
def test_a_gap_of_the_spectrum_itself_gives_its_ratio_back(alpha, vartheta):
    spectrum = rfsim.population(rfsim.power_law(alpha, 0.5, noise_var=2.0))
    grid = time_grid(1e14)
    gap = accumulate(spectrum, grid, 2.0, 30.0 * (1.0 + grid) ** vartheta)
    fit = fit_exponent(grid[1:], gap[1:], window=(1e12, 1e14))
    found = ratio_from_gap(
        2.0 - 0.5 / alpha,
        fit.exponent,
        gap[-1] * grid[-1] ** fit.exponent,
        memory_amplitude=memory_amplitude(alpha),
        noise_var=2.0,
        kernel_mass=profile_mass(alpha) if alpha > 0.5 else None,
    )
    assert found.vartheta == pytest.approx(vartheta, abs=1e-3)
    assert found.ratio_amplitude * grid[-1] ** found.vartheta == pytest.approx(30.0 * grid[-1] ** vartheta, rel=0.01)


def test_lr_and_batch_are_never_told_apart():
    """Halving lr and batch together leaves r(T): the gaps at equal intrinsic time meet as lr falls."""
    spectrum = rfsim.population(rfsim.power_law(0.6, 0.2, ambient=400, noise_var=1.0))
    differences = []
    for lr in (0.2, 0.1, 0.05):
        gaps = []
        for half in (1, 2):
            steps = round(40 / lr) * half
            schedule = rfsim.schedules.power(steps, lr / half, 40 * lr / half, vartheta=0.5, exact_batch=True)
            gaps.append(rfsim.risk(spectrum, schedule, at=[steps]).gap[-1])
        differences.append(abs(gaps[0] / gaps[1] - 1.0))
    assert differences[0] < 0.1
    assert 1.7 < differences[0] / differences[1] < 2.5  # first order in lr
    assert 1.7 < differences[1] / differences[2] < 2.5


def test_at_the_ceiling_very_different_ratios_leave_one_gap():
    """1/r = (a - 1)(1 + u)^-a has integral one for every a > 1, and the same sigma^2 k(T) follows."""
    spectrum = rfsim.population(rfsim.power_law(0.4, 0.3, noise_var=1.0))
    # cells of h = .0017 in log(1 + T) make the integral of 1/r too large by (a h)^2/12, 9e-6 at a = 6
    grid = time_grid(1e12, 16_000)
    gaps = [accumulate(spectrum, grid, 1.0, (1.0 + grid) ** a / (a - 1.0))[-1] for a in (1.5, 3.0, 6.0)]
    np.testing.assert_allclose(gaps[0], gaps[2], rtol=1e-2)
    np.testing.assert_allclose(gaps[1], gaps[2], rtol=2e-5)
    found = ratio_from_gap(0.75, 0.75, gaps[2] * 1e9, memory_amplitude=memory_amplitude(0.4), noise_var=1.0)
    assert found.vartheta is None
    assert "ceiling" in found.reason


def test_what_the_gap_does_not_say_is_said():
    keep = {"memory_amplitude": 1.0, "noise_var": 1.0}
    assert ratio_from_gap(0.75, 0.0, 1.0, **keep).vartheta is None
    assert "logarithm" in ratio_from_gap(1.0, 0.5, 1.0, **keep).reason
    assert ratio_from_gap(1.2, 1.3, 1.0, **keep, kernel_mass=1.0).ratio_amplitude is None
    with pytest.raises(InputError, match="kernel_mass"):
        ratio_from_gap(1.2, 0.5, 1.0, **keep)
    for bad in ({"gap_amplitude": 0.0}, {"noise_var": -1.0}, {"q_memory": -0.1}, {"gap_exponent": float("nan")}):
        arguments = {"q_memory": 0.75, "gap_exponent": 0.3, "gap_amplitude": 1.0, **keep, **bad}
        with pytest.raises(InputError, match=next(iter(bad))):
            ratio_from_gap(**arguments)
