"""Eigenvalues of diag(d) - q 1^T against 150-digit roots, dense eigensolvers and exact identities."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rfsim import secular
from rfsim.checks import InputError


def exact_roots(poles, weights):
    """Roots to 150 digits by bisection between the poles (below the lowest one, from a bound)."""
    with mpmath.workdps(150):
        d, q = [mpmath.mpf(x) for x in poles], [mpmath.mpf(x) for x in weights]
        found = []
        for k in range(len(d)):
            low, high = (d[k - 1] if k else d[0] - 2 * sum(q)), d[k]
            for _ in range(900):
                middle = (low + high) / 2
                value = sum(w / (x - middle) for x, w in zip(d, q, strict=True))
                low, high = (middle, high) if value < 1 else (low, middle)
            found.append(middle)
        return found


CASES = {
    "one mode": ([0.3], [0.1]),
    "two modes": ([0.1, 0.3], [0.01, 0.2]),
    "log-spaced": (np.geomspace(1e-18, 0.4, 9), np.geomspace(1e-18, 0.4, 9) ** 1.6 * 0.1),
    "nearly equal": ([0.1, 0.1 * (1 + 1e-14), 0.1 * (1 + 1e-10), 0.1 * (1 + 1e-6), 0.3], [1e-3, 2e-3, 3e-3, 1e-4, 0.1]),
    "tiny weights": ([1e-3, 0.1, 0.2, 0.4], [1e-40, 1e-3, 1e-90, 1e-2]),
    "almost unstable": ([1e-6, 1e-3, 0.1], [0.5e-6, 0.3e-3, 0.199999 * 0.1]),
    "root at zero side": ([0.5, 0.6, 0.7], [0.2, 0.2, 0.17]),
    "unstable": ([1e-6, 1e-3, 0.1], [0.9e-6, 0.3e-3, 0.02]),
    "far below the poles": ([1e-60, 1e-20, 0.1], [1e-30, 1e-22, 1e-2]),
    "negative poles": ([-0.5, -0.1, 0.3], [0.1, 0.2, 0.3]),
}


@pytest.mark.parametrize("name", CASES)
def test_roots_and_offsets_to_relative_accuracy(name):
    poles, weights = (np.asarray(x, dtype=float) for x in CASES[name])
    found = secular.decompose(poles, weights)
    roots = exact_roots(poles, weights)
    # conditioning: the lowest root moves by kappa / (1 - kappa) relative to a change of the weights
    slack = 1.0 + 1.0 / abs(1.0 - np.sum(weights / poles)) if (poles > 0).all() else 10.0
    for k, root in enumerate(roots):
        assert abs(mpmath.mpf(found.roots[k]) / root - 1) < 1e-14 * slack
        for i, pole in enumerate(poles):
            exact = mpmath.mpf(pole) - root
            assert abs(mpmath.mpf(found.differences[i, k]) / exact - 1) < 1e-13 * slack, (i, k)
    assert_array_equal(found.own, np.diagonal(found.differences))
    assert found.residual < 1e-13
    assert_allclose(found.weights, weights, rtol=1e-13)


def spread(count, seed, decades):
    draw = np.random.default_rng(seed)
    poles = np.sort(10.0 ** draw.uniform(-decades, -0.4, count))
    return poles, poles * 10.0 ** draw.uniform(-4, 0, count) / count


@pytest.mark.parametrize(("count", "decades"), [(300, 1), (300, 20), (700, 3)])
def test_many_modes(count, decades):
    poles, weights = spread(count, 5, decades)
    found = secular.decompose(poles, weights)
    assert found.residual < 1e-12
    assert found.iterations < 30
    assert (found.own > 0).all()
    assert (found.roots[1:] >= poles[:-1]).all()
    # trace and determinant of diag(d) - q 1^T
    assert_allclose(found.own.sum(), weights.sum(), rtol=1e-12)
    logs = np.log(found.roots).sum() - np.log(poles).sum()
    assert_allclose(logs, np.log1p(-np.sum(weights / poles)), rtol=1e-10)
    root = np.sqrt(weights)
    assert_allclose(np.linalg.eigvalsh(np.diag(poles) - np.outer(root, root)), found.roots, atol=1e-13)


@pytest.mark.parametrize("name", CASES)
def test_vectors_are_complete(name):
    poles, weights = (np.asarray(x, dtype=float) for x in CASES[name])
    found = secular.decompose(poles, weights)
    left = 1.0 / found.differences
    product = (left * found.inverse_norm) @ (left.T * found.weights)
    scale = np.sqrt(found.weights[None, :] / found.weights[:, None])  # of the similarity to a symmetric matrix
    assert_allclose(product / scale, np.eye(poles.size), atol=1e-13)


@given(st.integers(2, 30), st.integers(0, 10**6), st.floats(0.6, 15))
def test_invariants_on_random_input(count, seed, decades):
    poles, weights, _ = secular.group(*spread(count, seed, decades))
    found = secular.decompose(poles, weights)
    assert found.residual < 1e-12
    assert_allclose(np.sum(found.inverse_norm), weights.sum(), rtol=1e-11)  # 1^T (right vectors) (left vectors) q


def test_group_merges_equal_poles_only():
    poles = np.array([0.3, 0.1, 0.3, 0.1 * (1 + 1e-13), 0.3 * (1 + 2e-16)])
    groups = secular.group(poles, np.arange(1.0, 6.0))
    assert_allclose(groups.poles, [0.1, 0.1 * (1 + 1e-13), 0.3], rtol=1e-15)
    assert_array_equal(groups.weights, [2.0, 4.0, 9.0])
    assert_array_equal(groups.member, [2, 0, 2, 1, 2])


def test_groups_do_not_creep():
    poles = 0.1 * (1.0 + 3.0 * np.finfo(float).eps * np.arange(1000))
    groups = secular.group(poles, np.ones(1000))
    worst = np.abs(groups.poles[groups.member] / poles - 1.0).max()
    assert worst < 2e-15
    assert groups.weights.sum() == 1000
    assert (np.diff(groups.poles) > 0.0).all()
    assert secular.decompose(groups.poles, 1e-4 * groups.weights).residual < 1e-12


@pytest.mark.parametrize(
    ("poles", "weights", "word"),
    [
        ([0.1, 0.1], [1, 1], "increase"),
        ([0.2, 0.1], [1, 1], "increase"),
        ([0.1], [0.0], "weights"),
        ([0.1], [1, 2], "len"),
    ],
)
def test_bad_input_is_named(poles, weights, word):
    with pytest.raises(InputError, match=word):
        secular.decompose(poles, weights)
