"""Infinite width: few nodes against full sums, tails against zeta functions."""

import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import zeta

import rfsim
from rfsim.sources.population import population


def forcing(spectrum, time):
    return np.sum(spectrum.forcing_energy * np.exp(-2 * time * spectrum.eigenvalues))


def memory(spectrum, time):
    return np.sum(spectrum.multiplicity * spectrum.eigenvalues**2 * np.exp(-2 * time * spectrum.eigenvalues))


def full(alpha, beta, ambient):
    lam = np.arange(1.0, ambient + 1.0) ** (-2 * alpha)
    return rfsim.spectrum(lam, lam * np.arange(1.0, ambient + 1.0) ** (-2 * beta))


@pytest.mark.parametrize(("alpha", "beta"), [(0.2, 0.4), (0.4, 0.3), (0.7, 0.6), (1.0, -0.4), (2.0, 0.1)])
@pytest.mark.parametrize("ambient", [1, 64, 65, 130, 1000, 300_000])
def test_nodes_equal_the_full_sum(alpha, beta, ambient):
    nodes, every = population(rfsim.power_law(alpha, beta, ambient=ambient)), full(alpha, beta, ambient)
    assert nodes.modes <= min(ambient, 400)
    assert nodes.floor == 0.0
    smallest = float(ambient) ** (-2 * alpha)
    for time in (0.0, 1.0, 30.0, 1e3, 1e5):
        if time * smallest < 5:  # beyond that everything is exponentially small
            assert_allclose(forcing(nodes, time), forcing(every, time), rtol=3e-11)
            assert_allclose(memory(nodes, time), memory(every, time), rtol=3e-11)
    assert_allclose(np.sum(nodes.multiplicity), ambient, rtol=1e-12)
    assert_allclose(rfsim.kappa(nodes, 0.05, 1.0), rfsim.kappa(every, 0.05, 1.0), rtol=1e-12)


@pytest.mark.parametrize("alpha", [2.0, 3.0, 6.0])
def test_steep_power_laws_keep_their_digits_while_modes_are_still_alive(alpha):
    ambient = 3000
    nodes, every = population(rfsim.power_law(alpha, 0.3, ambient=ambient)), full(alpha, 0.3, ambient)
    for time in np.geomspace(1.0, float(ambient) ** (2 * alpha), 40):
        assert_allclose(forcing(nodes, time), forcing(every, time), rtol=2e-11)
        assert_allclose(memory(nodes, time), memory(every, time), rtol=2e-11)


def test_an_infinite_power_law_can_be_followed_as_far_as_wanted():
    problem = rfsim.power_law(2.0, 0.1)
    for least in (1e9, 1e15):
        assert population(problem, least=least).eigenvalues[0] < 1.01 * least**-4.0
    assert_allclose(np.sum(population(problem, least=1e15).forcing_energy), zeta(4.2), rtol=1e-13)


def test_exact_dynamics_on_nodes_and_on_all_modes():
    problem = rfsim.power_law(0.45, 0.3, ambient=20_000, noise_var=0.4)
    schedule = rfsim.schedules.power(600, 0.2, 8.0, vartheta=0.6)
    at = [0, 1, 10, 100, 600]
    nodes = rfsim.risk(population(problem), schedule, at=at)
    every = rfsim.risk(full(0.45, 0.3, 20_000).replace(noise_var=0.4), schedule, at=at)
    for name in ("risk", "forcing", "memory", "clean", "gap"):
        assert_allclose(getattr(nodes, name), getattr(every, name), rtol=1e-10, err_msg=name)


def test_finite_ambient_above_a_million_has_no_infinite_tail():
    nodes = population(rfsim.power_law(2.0, -1.4, ambient=1_500_000))
    assert_allclose(np.sum(nodes.forcing_energy), np.sum(np.arange(1.0, 1_500_001.0) ** -1.2), rtol=1e-12)
    assert_allclose(np.sum(nodes.multiplicity), 1_500_000, rtol=1e-12)


@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 0.3), (0.4, 0.3), (0.6, 0.2), (0.7, 0.9), (1.5, 0.2), (2.0, -1.4)])
def test_infinite_sums_are_zeta_functions(alpha, beta):
    spectrum = population(rfsim.power_law(alpha, beta))
    assert_allclose(np.sum(spectrum.forcing_energy), zeta(2 * (alpha + beta)), rtol=1e-11)
    assert_allclose(memory(spectrum, 0.0), zeta(4 * alpha), rtol=1e-11)
    if alpha > 0.5:
        assert_allclose(np.sum(spectrum.multiplicity * spectrum.eigenvalues), zeta(2 * alpha), rtol=1e-11)
        assert (np.diff(spectrum.eigenvalues) > 0).all()


@pytest.mark.parametrize("alpha", [0.501, 0.51, 0.6, 0.7, 2.0])
def test_infinite_kappa_in_thirty_digits(alpha):
    spectrum = population(rfsim.power_law(alpha, 0.7))
    with mpmath.workdps(30):
        a = 2 * mpmath.mpf(alpha)
        # l / (2 - 2 eta l) = (1/2) sum_k eta^k l^(k+1) at batch 1
        eta = mpmath.mpf(0.05)
        total = eta / 2 * mpmath.nsum(lambda k: eta**k * mpmath.zeta(a * (k + 1)), [0, mpmath.inf])
    assert_allclose(rfsim.kappa(spectrum, 0.05, 1.0), float(total), rtol=1e-11)


@pytest.mark.parametrize("time", [1.0, 1e3, 1e6])
def test_infinite_profiles_against_euler_maclaurin(time):
    alpha, beta = 0.4, 0.3
    spectrum = population(rfsim.power_law(alpha, beta))
    with mpmath.workdps(30):
        t = mpmath.mpf(time)

        def term(power):
            return lambda j: mpmath.mpf(j) ** (-power) * mpmath.exp(-2 * t * mpmath.mpf(j) ** mpmath.mpf("-0.8"))

        cut = 4000
        for found, power in ((forcing, mpmath.mpf("1.4")), (memory, mpmath.mpf("1.6"))):
            f = term(power)
            head = mpmath.fsum(f(j) for j in range(1, cut))
            # substitute u = j^-0.8: the integral over the tail is an incomplete gamma function
            s = (power - 1) / mpmath.mpf("0.8")
            edge = 2 * t * mpmath.mpf(cut) ** mpmath.mpf("-0.8")
            tail = mpmath.gammainc(s, 0, edge) / (mpmath.mpf("0.8") * (2 * t) ** s)
            tail += f(cut) / 2 - mpmath.diff(f, cut) / 12 + mpmath.diff(f, cut, 3) / 720
            assert_allclose(found(spectrum, time), float(head + tail), rtol=1e-10)


def test_published_constants_of_the_limit():
    spectrum = population(rfsim.power_law(0.4, 0.3))
    time = 1e12
    q_forcing, q_memory = 0.5, 0.75
    assert_allclose(forcing(spectrum, time), math.gamma(1.5) / 0.4 * (2 * time) ** -q_forcing, rtol=1e-6)
    assert_allclose(memory(spectrum, time), 0.91080 * time**-q_memory, rtol=1e-4)


def test_arbitrary_problem_keeps_every_mode():
    spectrum = population(rfsim.problem([2.0, 0.5], [3.0, -1.0], noise_var=0.2))
    assert_array_equal(spectrum.eigenvalues, [2.0, 0.5])
    assert_array_equal(spectrum.forcing_energy, [18.0, 0.5])
    assert_array_equal(spectrum.multiplicity, [1.0, 1.0])
    assert spectrum.noise_var == 0.2


@pytest.mark.parametrize("alpha", [0.1, 0.25])
def test_divergent_memory_is_refused(alpha):
    with pytest.raises(rfsim.InputError, match="alpha must exceed 1/4"):
        population(rfsim.power_law(alpha, 1.0))
    assert population(rfsim.power_law(alpha, 1.0, ambient=1000)).modes > 0


@pytest.mark.parametrize("alpha", [0.3, 0.5])
def test_infinite_trace_is_unstable_at_every_constant_lr(alpha):
    spectrum = population(rfsim.power_law(alpha, 0.5, noise_var=1.0))
    assert rfsim.kappa(spectrum, 1e-6, 100.0) == math.inf
    assert rfsim.lr_limit(spectrum, 100.0) == 0.0
    assert rfsim.limiting_risk(spectrum, 1e-6, 100.0) == math.inf
    with pytest.raises(rfsim.InputError, match="infinite trace"):
        rfsim.risk(spectrum, rfsim.schedules.constant(10, 1e-3, 100.0))
    curve = rfsim.risk(spectrum, rfsim.schedules.constant(10, 1e-3, 100.0), allow_unstable=True)
    assert np.isfinite(curve.risk).all()
    growing = rfsim.risk(spectrum, rfsim.schedules.power(50, 0.1, 32.0, vartheta=0.9))
    assert np.isfinite(growing.risk).all()
    assert growing.gap[-1] > 0
