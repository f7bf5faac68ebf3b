"""Constant schedules in closed form against exact rationals, mpmath, matrix spectra and long runs."""

from fractions import Fraction

import mpmath
import numpy as np
import oracles
import pytest
from cases import random_case
from numpy.testing import assert_allclose

import rfsim
from rfsim import stationary
from rfsim.routes import recursion, volterra
from rfsim.schedules import constant

TWO = rfsim.spectrum([1.0, 0.25], [1.0, 1.0], floor=0.1, noise_var=1.0)


def test_exact_rationals():
    assert_allclose(rfsim.kappa(TWO, 0.5, 2.0), 34 / 145, rtol=1e-15)
    assert_allclose(rfsim.limiting_risk(TWO, 0.5, 2.0), 97 / 222, rtol=1e-15)
    one = Fraction(1)
    assert oracles.kappa([one, one / 4], one / 2, 2 * one) == Fraction(34, 145)
    mass = stationary.kernel_mass(TWO, 0.5, 2.0, [0, 1, 2, 3])
    lags = np.cumsum([0, Fraction(17, 128), Fraction(867, 16384), Fraction(46665, 2097152)])
    assert_allclose(mass, [float(lag) for lag in lags], rtol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_kappa_equals_the_literal_sum(seed):
    spectrum = random_case(seed, modes=5, multiplicity=True).spectrum
    for batch in (0.5, 1.0, 7.0, 1e6):
        lr = 0.6 * stationary.pointwise_limit(spectrum, batch)
        exact = oracles.kappa(
            *(oracles.as_fractions(spectrum.eigenvalues), Fraction(lr), Fraction(batch)),
            oracles.as_fractions(spectrum.multiplicity),
        )
        assert_allclose(rfsim.kappa(spectrum, lr, batch), float(exact), rtol=1e-14)
    assert rfsim.kappa(spectrum, lr, np.inf) == 0.0


def test_kappa_is_the_limit_of_the_row_sums():
    lr, batch = 0.4, 3.0
    mass = recursion.row_mass(TWO, constant(3000, lr, batch), at=[0, 10, 3000])
    assert_allclose(stationary.kernel_mass(TWO, lr, batch, [0, 10, 3000]), mass, rtol=1e-12)
    assert_allclose(rfsim.kappa(TWO, lr, batch), mass[-1], rtol=1e-12)


def test_kernel_mass_keeps_digits_of_tiny_modes():
    spectrum = rfsim.spectrum([1.0, 1e-12], [1.0, 1.0])
    with mpmath.workdps(60):
        total = mpmath.mpf(0)
        for value in (mpmath.mpf(1), mpmath.mpf("1e-12")):
            x = mpmath.mpf(0.3) * value
            factor = (1 - x) ** 2 + x**2 / 4
            total += x**2 / 4 * (1 - factor**1_000_000) / (1 - factor)
    assert_allclose(stationary.kernel_mass(spectrum, 0.3, 4.0, 1e6), float(total), rtol=1e-14)
    # the slow mode alone
    alone = rfsim.spectrum([1e-12], [1.0])
    with mpmath.workdps(60):
        x = mpmath.mpf(0.3) * mpmath.mpf("1e-12")
        factor = (1 - x) ** 2 + x**2 / 4
        expected = float(x**2 / 4 * (1 - factor**1000) / (1 - factor))
    assert_allclose(stationary.kernel_mass(alone, 0.3, 4.0, 1000), expected, rtol=1e-11)


def test_kernel_mass_when_one_step_kills_a_mode():
    spectrum = rfsim.spectrum([1.0, 0.5], [1.0, 1.0])  # q(1) = 0 at lr 1 and infinite batch, kernel 0
    assert_allclose(stationary.kernel_mass(spectrum, 1.0, np.inf, [0, 1, 2]), 0.0, atol=0)
    near = stationary.kernel_mass(spectrum, 1.0, 1e16, [0, 1, 2])
    assert np.isfinite(near).all()
    assert_allclose(near[1], 1.25e-16, rtol=1e-12)


@pytest.mark.parametrize("batch", [0.5, 1.0, 3.0, 64.0])
def test_one_mode_limits(batch):
    one = rfsim.spectrum([0.8], [1.0])
    assert_allclose(stationary.pointwise_limit(one, batch), 2 * batch / (batch + 1) / 0.8, rtol=1e-15)
    assert_allclose(rfsim.lr_limit(one, batch), 2 * batch / (batch + 2) / 0.8, rtol=1e-14)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("batch", [1.0, 5.0, 1000.0])
def test_lr_limit_is_where_the_step_matrix_reaches_radius_one(seed, batch):
    spectrum = random_case(seed, modes=6, multiplicity=seed == 2).spectrum
    limit = rfsim.lr_limit(spectrum, batch)

    def radius(lr):
        matrix = oracles.step_matrix(spectrum.eigenvalues, lr, batch, spectrum.multiplicity)
        return np.abs(np.linalg.eigvals(matrix)).max()

    assert radius(limit * (1 - 1e-6)) < 1.0 < radius(limit * (1 + 1e-6))
    assert_allclose(radius(limit), 1.0, rtol=1e-12)
    assert stationary.is_stable(spectrum, limit * (1 - 1e-9), batch)
    assert not stationary.is_stable(spectrum, limit * (1 + 1e-9), batch)


def test_lr_limit_at_infinite_batch_is_pointwise():
    assert rfsim.lr_limit(TWO, np.inf) == stationary.pointwise_limit(TWO, np.inf) == 2.0


def test_lr_limit_of_many_modes_in_fifty_digits():
    lam = np.arange(1.0, 2001.0) ** -0.8
    spectrum = rfsim.spectrum(lam, lam)
    limit = rfsim.lr_limit(spectrum, 2.0)
    with mpmath.workdps(50):
        exact = [mpmath.mpf(value) for value in lam]

        def mass(lr):
            return lr / 2 * mpmath.fsum(value / (2 - mpmath.mpf(1.5) * lr * value) for value in exact) - 1

        root = mpmath.findroot(mass, (limit * 0.999, limit * 1.001), solver="anderson")
    assert_allclose(limit, float(root), rtol=1e-13)


@pytest.mark.parametrize("seed", range(3))
def test_limiting_risk_is_where_a_run_ends(seed):
    case = random_case(seed, modes=3)
    lr = 0.5 * rfsim.lr_limit(case.spectrum, 4.0)
    end = recursion.risk(case.spectrum, constant(8000, lr, 4.0), at=[8000])
    assert_allclose(rfsim.limiting_risk(case.spectrum, lr, 4.0), end.risk[0], rtol=1e-11)
    assert_allclose(rfsim.limiting_risk(case.spectrum.replace(noise_var=0.0), lr, 4.0), end.clean[0], rtol=1e-11)


def test_unstable_is_infinite():
    limit = rfsim.lr_limit(TWO, 1.0)
    assert rfsim.limiting_risk(TWO, 1.01 * limit, 1.0) == np.inf
    assert rfsim.kappa(TWO, 1.0001 * stationary.pointwise_limit(TWO, 1.0), 1.0) == np.inf
    assert 1.0 < rfsim.kappa(TWO, 1.01 * limit, 1.0) < np.inf


def test_sandwich_holds_and_is_tight_at_the_right_places():
    lr, batch = 0.5, 2.0
    steps = np.array([0, 1, 2, 5, 20, 100, 1000])
    curve = recursion.risk(TWO, constant(1000, lr, batch), at=steps)
    bounds = stationary.sandwich(TWO, lr, batch, steps, curve.clean)
    assert (bounds.lower <= curve.risk * (1 + 1e-14)).all()
    assert (curve.risk <= bounds.upper * (1 + 1e-14)).all()
    assert_allclose(bounds.lower[:2], curve.risk[:2], rtol=1e-13)  # no feedback yet after one step
    assert_allclose(bounds.upper[-1], curve.risk[-1], rtol=1e-12)  # all feedback in at the end
    assert (bounds.lower[2:] < curve.risk[2:]).all()
    assert_allclose(bounds.kernel_mass, volterra.row_sums(TWO, constant(1000, lr, batch))[steps], rtol=1e-12)


def test_row_certificate_of_the_trace_class_exponential():
    j = np.arange(1.0, 4001.0)
    spectrum = rfsim.spectrum(np.exp(-np.sqrt(j)), np.exp(-np.sqrt(j)))
    assert_allclose(np.sum(spectrum.eigenvalues), 1.67041, rtol=1e-5)
    trace, growth = np.sum(spectrum.eigenvalues), 2 * 0.25 * np.exp(-1.0)
    assert rfsim.kappa(spectrum, 0.25, 1.0) <= 0.25 * trace / (2 - growth) <= 0.4176 <= 5 / (4 * np.e)


@pytest.mark.parametrize(("alpha", "expected"), [(0.7, 0.0792676945457), (0.6, 0.1415919159992)])
def test_infinite_width_kappa(alpha, expected):
    spectrum = rfsim.population(rfsim.power_law(alpha, 0.3))
    assert_allclose(rfsim.kappa(spectrum, 0.05, 1.0), expected, rtol=1e-11)


@pytest.mark.parametrize(("size", "power", "expected"), [(65536, -0.8, 0.064956), (524288, -0.8, 0.101982)])
def test_kappa_of_the_constructions(size, power, expected):
    lam = np.arange(1.0, size + 1.0) ** power
    assert_allclose(rfsim.kappa(rfsim.spectrum(lam, lam), 0.05, 16.0), expected, rtol=1e-5)


@pytest.mark.parametrize("function", [rfsim.kappa, rfsim.limiting_risk, stationary.is_stable])
@pytest.mark.parametrize(
    ("lr", "batch", "word"),
    [
        (0.0, 1.0, "lr"),
        (-0.1, 1.0, "lr"),
        (np.nan, 1.0, "lr"),
        (0.1, 0.0, "batch"),
        (0.1, np.nan, "batch"),
        ("x", 1, "lr"),
    ],
)
def test_bad_lr_and_batch_are_named(function, lr, batch, word):
    with pytest.raises(rfsim.InputError, match=word):
        function(TWO, lr, batch)


def test_bad_constant_runs():
    with pytest.raises(rfsim.InputError, match="batch"):
        rfsim.lr_limit(TWO, 0.0)
    with pytest.raises(rfsim.InputError, match="limit"):
        stationary.kernel_mass(TWO, 5.0, 1.0, [1])
    with pytest.raises(rfsim.InputError, match="limit"):
        stationary.sandwich(TWO, 1.2, 1.0, [1], [1.0])
    with pytest.raises(rfsim.InputError, match="steps and clean"):
        stationary.sandwich(TWO, 0.2, 1.0, [1, 2], [1.0])
    with pytest.raises(rfsim.InputError, match="steps"):
        stationary.kernel_mass(TWO, 0.2, 1.0, [1, -2])


def test_an_lr_just_above_its_limit_is_told_with_enough_digits():
    system = rfsim.spectrum([1.0, 0.5], [1.0, 1.0])
    limit = float(rfsim.lr_limit(system, 4))
    with pytest.raises(rfsim.InputError) as caught:
        rfsim.risk(system, rfsim.schedules.constant(5, limit * (1.0 + 1e-12), 4))
    given, allowed = str(caught.value).split()[1], str(caught.value).split()[8]
    assert float(given) > float(allowed)
