"""Problems: what they hold, and what they refuse."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rfsim
from rfsim.problems import laid_out


def test_power_law_counts_from_one_to_v():
    problem = rfsim.power_law(0.4, 0.3, ambient=4, noise_var=0.25)
    assert_allclose(problem.eigenvalues, [1.0, 2**-0.8, 3**-0.8, 4**-0.8], rtol=1e-15)
    assert_allclose(problem.target, [1.0, 2**-0.3, 3**-0.3, 4**-0.3], rtol=1e-15)
    assert (problem.alpha, problem.beta, problem.ambient, problem.noise_var) == (0.4, 0.3, 4, 0.25)


def test_power_law_with_a_growing_target():
    problem = rfsim.power_law(1.0, -0.4, ambient=3)
    assert_allclose(problem.target, [1.0, 2**0.4, 3**0.4], rtol=1e-15)


def test_infinite_power_law_holds_no_arrays():
    problem = rfsim.power_law(0.4, 0.3)
    assert problem.ambient == math.inf
    assert problem.eigenvalues.size == problem.target.size == 0


@pytest.mark.parametrize(
    ("alpha", "beta", "word"),
    [
        (0.0, 1.0, "alpha"),
        (-0.4, 3.0, "alpha"),
        (0.2, 0.3, "2 alpha . 2 beta"),
        (0.2, 0.2, "exceed 1"),
        (math.nan, 1.0, "alpha"),
        (0.4, math.inf, "beta"),
        ("0.4", 0.3, "alpha"),
        (0.4, None, "beta"),
        (True, 0.3, "alpha"),
        (np.ones(2), 0.3, "alpha"),
    ],
)
def test_bad_exponents_are_named(alpha, beta, word):
    with pytest.raises(rfsim.InputError, match=word):
        rfsim.power_law(alpha, beta)


@pytest.mark.parametrize("ambient", [0, -3, 2.5, math.nan, -math.inf, "many", None, True])
def test_bad_ambient_is_named(ambient):
    with pytest.raises(rfsim.InputError, match="ambient"):
        rfsim.power_law(0.4, 0.3, ambient=ambient)


@pytest.mark.parametrize("noise", [-0.1, math.nan, math.inf, "loud", None])
def test_bad_noise_is_named(noise):
    with pytest.raises(rfsim.InputError, match="noise_var"):
        rfsim.power_law(0.4, 0.3, ambient=3, noise_var=noise)
    with pytest.raises(rfsim.InputError, match="noise_var"):
        rfsim.problem([1.0], [1.0], noise_var=noise)


def test_a_huge_power_law_is_not_laid_out_until_somebody_asks():
    huge = rfsim.power_law(0.4, 0.3, ambient=10**12)
    assert huge.eigenvalues.shape == (0,)
    assert huge.ambient == 10**12
    with pytest.raises(rfsim.RunError, match=r"ambient dimension 1000000000000 needs 29802\.\d GiB.*lower ambient"):
        laid_out(huge)
    with pytest.raises(rfsim.InputError, match="ambient is infinite"):
        laid_out(rfsim.power_law(0.4, 0.3))
    small = rfsim.power_law(0.4, 0.3, ambient=3)
    assert laid_out(small) is small


def test_arbitrary_problem():
    problem = rfsim.problem([0.5, 2.0], [1, -3], noise_var=0.1)
    assert_array_equal(problem.eigenvalues, [0.5, 2.0])
    assert_array_equal(problem.target, [1.0, -3.0])
    assert problem.target.dtype == np.float64
    assert (problem.alpha, problem.beta, problem.ambient) == (None, None, 2)
    assert problem.replace(noise_var=3.0).noise_var == 3.0
    assert problem.noise_var == 0.1


@pytest.mark.parametrize(
    ("eigenvalues", "target", "word"),
    [
        ([1.0, 0.0], [1, 1], "eigenvalues .* position 1"),
        ([1.0, -1.0], [1, 1], "eigenvalues"),
        ([1.0, np.nan], [1, 1], "eigenvalues"),
        ([1.0, np.inf], [1, 1], "eigenvalues"),
        ([1.0, 1.0], [1, np.nan], "target .* position 1"),
        ([1.0, 1.0], [1.0], "eigenvalues has 2, target has 1"),
        ([], [], "eigenvalues"),
        (1.0, 1.0, "shape"),
        ([[1.0]], [[1.0]], "shape"),
        ([1j], [1.0], "eigenvalues"),
        (["one"], [1.0], "eigenvalues"),
    ],
)
def test_bad_arrays_are_named(eigenvalues, target, word):
    with pytest.raises(rfsim.InputError, match=word):
        rfsim.problem(eigenvalues, target)


def test_problems_are_pytrees_with_static_sizes():
    problem = rfsim.power_law(0.4, 0.3, ambient=5, noise_var=0.25)
    leaves, tree = jax.tree.flatten(problem)
    assert len(leaves) == 3
    again = jax.tree.unflatten(tree, [-leaf for leaf in leaves])  # unflattening must not validate
    assert again.ambient == 5
    assert again.noise_var == -0.25
    total = jax.jit(lambda p: jnp.sum(p.eigenvalues) + p.ambient)(problem)
    assert_allclose(float(total), np.sum(problem.eigenvalues) + 5, rtol=1e-14)


def test_problem_under_tracing():
    def energy(lam):
        made = rfsim.problem(lam, [1.0, 2.0])
        return jnp.sum(made.eigenvalues * made.target**2)

    assert_allclose(jax.jit(jax.grad(energy))(jnp.array([1.0, 0.5])), [1.0, 4.0], rtol=1e-14)
