"""Spectra of sampled features against 60-digit eigenproblems, and the ways features are made."""

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rfsim
from rfsim.sources import features as module


def normal_weights(seed, shape):
    return np.random.default_rng(seed).standard_normal(shape) / np.sqrt(shape[1])


@pytest.mark.parametrize("alpha", [0.4, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("ambient", [9, 16, 40])
def test_against_sixty_digits(alpha, ambient):
    problem = rfsim.power_law(alpha, 0.3, ambient=ambient)
    weights = normal_weights(ambient, (ambient, 16))
    found = rfsim.feature_spectrum(rfsim.Features(problem, weights))
    lam, energy, floor, total = oracles.feature_spectrum(weights, problem.eigenvalues, problem.target)
    assert found.modes == min(ambient, 16)
    assert_allclose(found.eigenvalues, lam, rtol=1e-12)
    assert_allclose(found.forcing_energy, energy, rtol=1e-11)
    assert_allclose(found.floor, floor, rtol=1e-12, atol=1e-300)
    assert_allclose(found.floor + np.sum(found.forcing_energy), total, rtol=1e-14)
    assert_array_equal(found.multiplicity, 1.0)


def test_steep_spectrum_of_two_thousand_coordinates():
    problem = rfsim.power_law(2.0, 0.0, ambient=2000, noise_var=0.5)
    for width in (50, 400):
        spectrum = rfsim.sample_features(jax.random.key(0), problem, width)
        assert spectrum.modes == width
        assert (spectrum.eigenvalues > 0).all()
        assert np.isfinite(spectrum.eigenvalues).all()
        assert (np.diff(spectrum.eigenvalues) > 0).all()
        assert (spectrum.forcing_energy >= 0).all()
        assert spectrum.floor > 0
        total = np.sum(np.asarray(problem.eigenvalues) * np.asarray(problem.target) ** 2)
        assert_allclose(spectrum.floor + np.sum(spectrum.forcing_energy), total, rtol=1e-12)
        assert spectrum.noise_var == 0.5


@pytest.mark.parametrize(("ambient", "width"), [(30, 12), (12, 12), (12, 30)])
def test_trace_and_energy_are_kept(ambient, width):
    problem = rfsim.power_law(0.6, 0.4, ambient=ambient)
    features = rfsim.random_features(jax.random.key(1), problem, width)
    spectrum = rfsim.feature_spectrum(features)
    rooted = np.sqrt(problem.eigenvalues)[:, None] * np.asarray(features.weights)
    assert_allclose(np.sum(spectrum.eigenvalues), np.sum(rooted**2), rtol=1e-13)
    assert_allclose(np.sum(np.square(spectrum.eigenvalues)), np.sum((rooted.T @ rooted) ** 2), rtol=1e-13)
    first = np.sum(spectrum.eigenvalues * spectrum.forcing_energy)  # b^T H b
    b = np.sqrt(problem.eigenvalues) * problem.target
    assert_allclose(first, np.sum((rooted.T @ b) ** 2), rtol=1e-12)
    assert_allclose(spectrum.floor + np.sum(spectrum.forcing_energy), np.sum(b**2), rtol=1e-13)
    if ambient <= width:
        assert spectrum.floor == 0.0


def test_sampling_is_the_spectrum_of_the_sampled_weights():
    problem = rfsim.power_law(0.6, 0.4, ambient=30)
    one = rfsim.sample_features(jax.random.key(5), problem, 12)
    other = rfsim.feature_spectrum(rfsim.random_features(jax.random.key(5), problem, 12))
    assert_array_equal(one.eigenvalues, other.eigenvalues)
    assert_array_equal(one.forcing_energy, other.forcing_energy)
    different = rfsim.sample_features(jax.random.key(6), problem, 12)
    assert not np.allclose(one.eigenvalues, different.eigenvalues)
    legacy = rfsim.sample_features(jax.random.PRNGKey(5), problem, 12)
    assert legacy.modes == 12


def test_weights_have_variance_one_over_width():
    weights = np.asarray(rfsim.random_features(jax.random.key(2), rfsim.power_law(1, 1, ambient=400), 250).weights)
    assert weights.shape == (400, 250)
    assert weights.dtype == np.float64
    size = weights.size
    # chi-square with `size` degrees of freedom and a mean of `size` standard normals: 5 sigma each, false alarm 1.2e-6
    assert abs(250 * np.sum(weights**2) - size) < 5 * np.sqrt(2 * size)
    assert abs(np.sqrt(250) * np.sum(weights)) < 5 * np.sqrt(size)


def test_directions_without_weight_are_the_floor():
    problem = rfsim.problem([1.0, 0.5, 0.25], [1.0, 2.0, 4.0])
    weights = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 2.0]])
    spectrum = rfsim.feature_spectrum(rfsim.Features(problem, weights))
    assert_allclose(spectrum.eigenvalues, [1.0, 1.0], rtol=1e-15)
    assert_allclose(np.sum(spectrum.forcing_energy), 1.0 + 0.25 * 16, rtol=1e-14)
    assert_allclose(spectrum.floor, 0.5 * 4, rtol=1e-14)


def test_repeated_features_are_zero_modes():
    problem = rfsim.power_law(0.5, 0.5, ambient=6)
    column = normal_weights(4, (6, 1))
    twice = rfsim.feature_spectrum(rfsim.Features(problem, np.hstack([column, column])))
    once = rfsim.feature_spectrum(rfsim.Features(problem, column))
    assert twice.modes == 1
    assert_allclose(twice.eigenvalues, 2 * once.eigenvalues, rtol=1e-14)
    assert_allclose(twice.floor, once.floor, rtol=1e-13)


def test_aligned_features_have_the_spectrum_they_were_made_from():
    spectrum = rfsim.spectrum([0.2, 3.0, 1.0], [0.5, 0.0, 2.0], floor=0.7, noise_var=0.3)
    back = rfsim.feature_spectrum(rfsim.aligned_features(spectrum))
    order = np.argsort(spectrum.eigenvalues)
    assert_allclose(back.eigenvalues, spectrum.eigenvalues[order], rtol=1e-14)
    assert_allclose(back.forcing_energy, spectrum.forcing_energy[order], rtol=1e-13, atol=1e-30)
    assert_allclose(back.floor, 0.7, rtol=1e-14)
    assert back.noise_var == 0.3
    with pytest.raises(rfsim.InputError, match="multiplicit"):
        rfsim.aligned_features(spectrum.replace(multiplicity=np.array([1.0, 2.0, 1.0])))


def test_width_one():
    problem = rfsim.power_law(0.5, 0.5, ambient=5)
    spectrum = rfsim.sample_features(jax.random.key(3), problem, 1)
    assert spectrum.modes == 1
    weights = np.asarray(rfsim.random_features(jax.random.key(3), problem, 1).weights)[:, 0]
    assert_allclose(spectrum.eigenvalues[0], np.sum(problem.eigenvalues * weights**2), rtol=1e-14)


@pytest.mark.parametrize("width", [0, -1, 2.5, np.nan, "wide", None, True])
def test_bad_width_is_named(width):
    for make in (rfsim.sample_features, rfsim.random_features):
        with pytest.raises(rfsim.InputError, match="width"):
            make(jax.random.key(0), rfsim.power_law(1, 1, ambient=5), width)


def test_width_beyond_memory_says_how_much():
    problem = rfsim.power_law(1, 1, ambient=100_000)
    for make in (rfsim.sample_features, rfsim.random_features):
        with pytest.raises(rfsim.RunError, match=r"width 100000000 .* needs 2\d{5}\.\d GiB.*lower width"):
            make(jax.random.key(0), problem, 10**8)


def test_infinite_ambient_is_refused():
    with pytest.raises(rfsim.InputError, match="ambient"):
        rfsim.sample_features(jax.random.key(0), rfsim.power_law(1, 1), 5)


@pytest.mark.parametrize("key", [0, None, "key", np.zeros(2, dtype=np.uint32), jnp.zeros(2)])
def test_bad_key_is_named(key):
    with pytest.raises(rfsim.InputError, match="key"):
        rfsim.sample_features(key, rfsim.power_law(1, 1, ambient=5), 3)


def test_many_keys_are_refused():
    with pytest.raises(rfsim.InputError, match="key"):
        rfsim.sample_features(jax.random.split(jax.random.key(0), 3), rfsim.power_law(1, 1, ambient=5), 3)


@pytest.mark.parametrize(
    ("weights", "word"),
    [
        (np.ones((3, 2)), "shape"),
        (np.ones(5), "shape"),
        (np.ones((5, 0)), "shape"),
        (np.full((5, 2), np.nan), "finite"),
        (np.zeros((5, 2)), "zero"),
        (np.ones((5, 2)) * 1j, "weights"),
    ],
)
def test_bad_weights_are_named(weights, word):
    with pytest.raises(rfsim.InputError, match=word):
        rfsim.feature_spectrum(module.Features(rfsim.power_law(1, 1, ambient=5), weights))
