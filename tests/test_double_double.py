"""Double-double arithmetic against mpmath, to 31 digits."""

import mpmath
import numpy as np
import pytest

from rfsim import double_double as dd
from rfsim.double_double import DoubleDouble

DIGITS = 1e-31
# sums of numbers of opposite sign lose digits of the result, not of the larger operand


def drawn(seed, shape, *, positive=False):
    """Numbers of every size from 1e-8 to 1e8 whose low part carries digits too."""
    draw = np.random.default_rng(seed)
    high = draw.standard_normal(shape) * 10.0 ** draw.uniform(-8, 8, shape)
    high = np.abs(high) if positive else high
    return DoubleDouble(high, high * draw.uniform(-1, 1, shape) * 2.0**-54)


def told(a):
    """The exact values as a list of mpf."""
    parts = zip(np.ravel(a.high), np.ravel(a.low), strict=True)
    return [mpmath.mpf(float(high)) + mpmath.mpf(float(low)) for high, low in parts]


def matrix(a):
    rows, columns = a.high.shape
    return mpmath.matrix(rows, columns) + mpmath.matrix(np.array(told(a), dtype=object).reshape(rows, columns).tolist())


def largest(found, wanted, scale=None):
    scale = wanted if scale is None else scale
    return max(float(abs(f - w) / abs(s)) for f, w, s in zip(found, wanted, scale, strict=True))


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(50):
        yield


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_arithmetic(name):
    a, b = drawn(0, 500), drawn(1, 500)
    found = told(getattr(dd, name)(a, b))
    pairs = list(zip(told(a), told(b), strict=True))
    if name in ("add", "subtract"):
        sign = 1 if name == "add" else -1
        wanted, scale = [x + sign * y for x, y in pairs], [abs(x) + abs(y) for x, y in pairs]
    else:
        wanted = scale = [x * y if name == "multiply" else x / y for x, y in pairs]
    assert largest(found, wanted, scale) < DIGITS


def test_a_difference_of_neighbours_is_exact():
    a = DoubleDouble(np.array([1.0]), np.array([2.0**-60]))
    assert told(dd.subtract(a, dd.exact(np.array([1.0])))) == [mpmath.mpf(2) ** -60]
    assert told(dd.negative(a)) == [-1 - mpmath.mpf(2) ** -60]


def test_results_are_normalised():
    """The low part is below half a unit in the last place of the high part: adding it changes nothing."""
    a, b = drawn(2, 300), drawn(3, 300, positive=True)
    for c in (dd.add(a, b), dd.multiply(a, b), dd.divide(a, b), dd.square_root(b)):
        np.testing.assert_array_equal(c.high + c.low, c.high)


def test_square_root():
    a = drawn(4, 300, positive=True)
    assert largest(told(dd.square_root(a)), [mpmath.sqrt(x) for x in told(a)]) < DIGITS


@pytest.mark.parametrize("count", [1, 2, 3, 64, 101])
def test_total(count):
    a = drawn(5, (count, 3))
    found = told(dd.total(a))
    columns = [told(dd.part(a, (slice(None), k))) for k in range(3)]
    scale = [mpmath.fsum(abs(x) for x in column) for column in columns]
    assert largest(found, [mpmath.fsum(column) for column in columns], scale) < DIGITS


def test_operands_broadcast():
    a, b = drawn(6, (4, 1)), drawn(7, (1, 5))
    product = dd.multiply(a, b)
    assert product.high.shape == product.low.shape == (4, 5)
    assert told(dd.part(product, (2, 3))) == told(dd.multiply(dd.part(a, (2, 0)), dd.part(b, (0, 3))))


def cauchy(points, nodes):
    """Gram matrix of 1/(l + p) under equal weights at the nodes, scaled to unit diagonal: nearly singular."""
    inverse = dd.divide(dd.exact(1.0), dd.add(dd.exact(nodes[:, None]), dd.exact(points)))
    gram = dd.total(
        dd.multiply(
            DoubleDouble(inverse.high[:, :, None], inverse.low[:, :, None]),
            DoubleDouble(inverse.high[:, None, :], inverse.low[:, None, :]),
        )
    )
    root = dd.square_root(DoubleDouble(np.diag(gram.high).copy(), np.diag(gram.low).copy()))
    rows = DoubleDouble(root.high[:, None], root.low[:, None])
    return dd.divide(dd.divide(gram, rows), DoubleDouble(root.high[None, :], root.low[None, :]))


def test_factorisation_of_a_nearly_singular_matrix():
    gram = cauchy(np.geomspace(1e-3, 10.0, 14), np.geomspace(0.01, 1.0, 40))
    assert np.linalg.cond(gram.high) > 1e15  # hopeless in float64
    factor, chosen = dd.cholesky(gram, least_pivot=1e-28)
    assert sorted(chosen) == list(range(14))
    assert np.all(np.diff(np.diag(factor.high)) <= 0.0)  # largest pivot first
    assert np.all(np.triu(factor.high, 1) == 0.0)
    lower = matrix(factor)
    wanted = matrix(dd.part(gram, np.ix_(chosen, chosen)))
    difference = lower * lower.T - wanted
    assert max(float(abs(difference[i, j])) for i in range(14) for j in range(14)) < 1e-30


def test_dependent_rows_are_left_out():
    gram = cauchy(np.array([0.1, 1.0, 0.1, 3.0, 1.0]), np.geomspace(0.01, 1.0, 9))
    factor, chosen = dd.cholesky(gram, least_pivot=1e-25)
    assert len(chosen) == factor.high.shape[0] == 3
    assert {0, 2} & set(chosen)
    assert {1, 4} & set(chosen)
    assert 3 in chosen


def test_solution_of_a_triangular_system():
    factor, _ = dd.cholesky(cauchy(np.geomspace(0.05, 5.0, 8), np.geomspace(0.01, 1.0, 20)), least_pivot=1e-28)
    right = drawn(8, (8, 3))
    found = matrix(dd.solve_lower(factor, right))
    lower, given = matrix(factor), matrix(right)
    for column in range(3):
        x = [found[i, column] for i in range(8)]
        for row in range(8):
            terms = [lower[row, i] * x[i] for i in range(row + 1)]
            scale = mpmath.fsum(abs(term) for term in terms) + abs(given[row, column])
            assert abs(mpmath.fsum(terms) - given[row, column]) / scale < 1e-30
