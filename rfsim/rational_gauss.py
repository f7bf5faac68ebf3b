"""Few positive nodes in place of a measure on (0, infinity) that is known through its Stieltjes transform.

Given f(p) = int dmu(l) / (l + p) at points p > 0 that are log-spaced over the support, the functions 1/(l + p_i) span a
space that contains exp(-2 T l) for every T up to exp(-pi^2/spacing), uniformly over all scales. Their Gram matrix and
the matrix of a multiplication operator are divided differences of f; the eigenvalues of the operator compressed to the
space are the nodes, the squared components of 1 the weights, so weights are positive and nodes lie inside the support
(the Ritz-Galerkin form of a rational Gauss rule; Golub and Welsch for polynomials). Like any Gauss rule it is exact for
products of two functions of the space.

The operator is not l itself but Phi(l) = sum_k l/(l + s_k) with log-spaced s_k, close to a multiple of log l, so that
small nodes keep their relative accuracy. Gram matrices of such functions are nearly singular; they are formed and
factorised with 32 digits.
"""

from typing import NamedTuple

import numpy as np

from rfsim import double_double as dd
from rfsim.checks import RunError
from rfsim.double_double import DoubleDouble

SPACING = 0.3  # of the points, in log p: exp(-pi^2/0.3) = 5e-15
_REACH = 8.0  # points reach beyond the support by this factor on both sides
_ABOVE = 12  # points on the other side, p = -z with z above the support, closing in on its upper edge
_SHIFT = 1.2  # spacing of the s_k, in log
_LEAST_PIVOT = 1e-25  # points whose function depends on the others to this accuracy are left out


class Rule(NamedTuple):
    """Nodes (n,) ascending and positive weights (n,): sum w h(x) approximates int h dmu."""

    nodes: np.ndarray
    weights: np.ndarray


class Points(NamedTuple):
    """Where the transform has to be known: the p_i (n,), then the s_k, in one array; n; and the support."""

    every: np.ndarray
    points: int
    lower: float
    upper: float


def rule_points(lower: float, upper: float, *, spacing: float = SPACING) -> Points:
    """Points for a measure whose support lies in [lower, upper], `spacing` apart in log p.

    Some points are negative, p = -z with z above the support: 1/(z - l) resolves the upper edge, where integrands
    such as l/(1 - lr l) and high powers of (1 - lr l)^2 are steepest when lr is large.
    """
    count = int(np.ceil(np.log(upper / lower * _REACH**2) / spacing)) + 1
    points = np.geomspace(upper * _REACH, lower / _REACH, count)
    above = -upper * (1.0 + 2.0 ** -np.arange(0.0, _ABOVE))
    return Points(np.concatenate([points, above, _shifts(lower, upper, points)]), count + above.size, lower, upper)


def rational_gauss(where: Points, value: DoubleDouble, slope: DoubleDouble) -> Rule:
    """Rational Gauss rule of the measure with f(p) = int dmu/(l+p) and -f'(p) = int dmu/(l+p)^2 at the points.

    Parameters
    ----------
    where : from `rule_points`; value, slope : f and -f' at `where.every`, to about 30 digits.

    Returns
    -------
    Rule. Its relative error for int exp(-2 T l) dmu is about exp(-pi^2/spacing), at best 1e-12, while 2 T lower is not
    large; it has about (log(upper/lower) + 4)/spacing nodes, fewer where fewer are enough.

    Raises
    ------
    RunError : if weight falls outside the support, which means that f was not accurate enough.
    """
    count, lower, upper = where.points, where.lower, where.upper
    points, shifts = where.every[:count], where.every[count:]
    # divided differences int dmu / ((l + p_i)(l + p_j)), rows: points then shifts, columns: points
    gram = _differences(where.every, value, slope, slice(0, count))
    square = dd.part(gram, slice(0, count))
    operator = dd.exact(np.zeros((count, count)))
    for row, shift in enumerate(shifts, start=count):
        operator = dd.add(operator, _compressed(points, shift, square, dd.part(gram, row)))
    scale = dd.square_root(DoubleDouble(np.diag(square.high).copy(), np.diag(square.low).copy()))
    square, operator = _scaled(square, scale), _scaled(operator, scale)
    ones = dd.divide(dd.part(value, slice(0, count)), scale)
    factor, kept = dd.cholesky(square, least_pivot=_LEAST_PIVOT)
    half = dd.solve_lower(factor, dd.part(operator, np.ix_(kept, kept)))
    compressed = dd.solve_lower(factor, DoubleDouble(half.high.T.copy(), half.low.T.copy()))
    start = dd.solve_lower(factor, dd.part(ones, (kept, None))).high[:, 0]
    levels, vectors = np.linalg.eigh((compressed.high + compressed.high.T) / 2.0)
    nodes, weights = _invert(levels, shifts), np.square(vectors.T @ start)
    inside = (nodes > lower * (1.0 - 1e-6)) & (nodes < upper * (1.0 + 1e-6))
    lost = weights[~inside].sum()
    if not lost <= 1e-11 * weights.sum():
        raise RunError(
            f"rational Gauss rule: a share {lost / weights.sum():.1e} of the weight lies outside "
            f"[{lower:g}, {upper:g}]; the Stieltjes transform is not accurate enough"
        )
    return Rule(nodes[inside], weights[inside])


def _shifts(lower: float, upper: float, points: np.ndarray) -> np.ndarray:
    """Log-spaced s_k, each moved to the middle between two neighbouring points."""
    wanted = np.geomspace(upper * 4.0, lower / 4.0, int(np.log(upper / lower * 16.0) / _SHIFT) + 2)
    place = np.unique(np.searchsorted(-points, -wanted))
    return np.sqrt(points[place - 1] * points[place])


def _differences(every: np.ndarray, value: DoubleDouble, slope: DoubleDouble, columns: slice) -> DoubleDouble:
    rise = dd.subtract(
        DoubleDouble(value.high[None, columns], value.low[None, columns]),
        DoubleDouble(value.high[:, None], value.low[:, None]),
    )
    run = dd.subtract(dd.exact(every[:, None]), dd.exact(every[None, columns]))
    same = run.high == 0.0
    run = DoubleDouble(np.where(same, 1.0, run.high), run.low)
    ratio = dd.divide(rise, run)
    return DoubleDouble(
        np.where(same, slope.high[None, columns], ratio.high), np.where(same, slope.low[None, columns], ratio.low)
    )


def _compressed(points: np.ndarray, shift: float, gram: DoubleDouble, row: DoubleDouble) -> DoubleDouble:
    """int l/(l+s) dmu / ((l+p_i)(l+p_j)) = gram - s int dmu / ((l+s)(l+p_i)(l+p_j))."""
    rise = dd.subtract(DoubleDouble(row.high[None, :], row.low[None, :]), gram)
    third = dd.divide(rise, dd.subtract(dd.exact(points[:, None]), dd.exact(shift)))
    return dd.subtract(gram, dd.multiply(dd.exact(shift), third))


def _scaled(matrix: DoubleDouble, scale: DoubleDouble) -> DoubleDouble:
    rows = DoubleDouble(scale.high[:, None], scale.low[:, None])
    return dd.divide(dd.divide(matrix, rows), DoubleDouble(scale.high[None, :], scale.low[None, :]))


def _invert(levels: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """l with Phi(l) = level, by bisection and Newton steps in log l."""
    low, high = np.full(levels.shape, np.log(shifts[-1]) - 60.0), np.full(levels.shape, np.log(shifts[0]) + 60.0)
    x = (low + high) / 2.0
    for _ in range(200):
        share = 1.0 / (1.0 + shifts[:, None] * np.exp(-x[None, :]))
        excess = share.sum(axis=0) - levels
        low, high = np.where(excess < 0.0, x, low), np.where(excess < 0.0, high, x)
        newton = x - excess / np.maximum((share * (1.0 - share)).sum(axis=0), 1e-300)
        step = np.where((newton > low) & (newton < high), newton, (low + high) / 2.0)
        if np.all(np.abs(step - x) <= 1e-15 * np.maximum(np.abs(x), 1.0)):
            break
        x = step
    return np.exp(x)
