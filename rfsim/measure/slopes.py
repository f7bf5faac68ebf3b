"""Slopes in log T as linear functionals of the recorded logarithms, so that errors propagate exactly."""

import numpy as np
from numpy.typing import NDArray
from scipy import special

from rfsim.checks import FloatArray

IndexArray = NDArray[np.intp]


def norm(vector: FloatArray) -> float:
    return float(np.sqrt(np.sum(vector * vector)))


def unexplained(deviation: float, noise: float) -> float:
    """The part of a deviation that noise does not explain."""
    return float(np.sqrt(max(0.0, deviation**2 - noise**2)))


def three_point(x: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Indices and coefficients, (n, 3) each, of the slope at x_i of the parabola through it and its neighbours."""
    centre = np.clip(np.arange(len(x)), 1, len(x) - 2)
    index = centre[:, None] + np.array([-1, 0, 1])
    nodes = x[index] - x[:, None]
    a, b, c = nodes.T
    return index, np.stack(
        [-(b + c) / ((a - b) * (a - c)), -(a + c) / ((b - a) * (b - c)), -(a + b) / ((c - a) * (c - b))], axis=1
    )


def local_slopes(
    x: FloatArray, h: FloatArray, s: FloatArray, half_width: float, at: IndexArray
) -> tuple[FloatArray, FloatArray]:
    """Exponents and their standard errors at the records `at`."""
    index, coefficient = three_point(x)
    index, coefficient = index[at], coefficient[at]
    exponent = -np.sum(coefficient * (h[index] - h[at, None]), axis=1)
    error = np.sqrt(np.sum((coefficient * s[index]) ** 2, axis=1))
    if half_width > 0:
        low = np.minimum(np.searchsorted(x, x[at] - half_width, side="left"), index[:, 0])
        high = np.maximum(np.searchsorted(x, x[at] + half_width, side="right"), index[:, 2] + 1)
        for k in np.flatnonzero(high - low > 3):
            part = slice(low[k], high[k])
            offset = (x[part] - x[at[k]]) / half_width
            row = np.linalg.pinv(np.vander(offset, 3, increasing=True))[1] / half_width
            exponent[k] = -row @ (h[part] - h[at[k]])
            error[k] = norm(row * s[part])
    return exponent, error


def on_records(x: FloatArray, grid: FloatArray, weights: FloatArray) -> FloatArray:
    """Weights on the records x that equal `weights` on the cubic Hermite interpolant at `grid`."""
    n = len(x)
    k = np.clip(np.searchsorted(x, grid, side="right") - 1, 0, n - 2)
    gap = x[k + 1] - x[k]
    u = (grid - x[k]) / gap
    values = _scatter(k, weights * (1 + 2 * u) * (1 - u) ** 2, n)
    values += _scatter(k + 1, weights * u * u * (3 - 2 * u), n)
    slopes = _scatter(k, weights * gap * u * (1 - u) ** 2, n)
    slopes += _scatter(k + 1, weights * gap * u * u * (u - 1), n)
    index, coefficient = three_point(x)
    return values + _scatter(index, slopes[:, None] * coefficient, n)


def _scatter(index: IndexArray, weights: FloatArray, n: int) -> FloatArray:
    """Sum of the weights that go to each of n places."""
    return np.bincount(index.ravel(), weights.ravel(), n).astype(np.float64)


def least_squares_slope(grid: FloatArray, chosen: IndexArray) -> FloatArray:
    weights = np.zeros(len(grid))
    centred = grid[chosen] - grid[chosen].mean()
    weights[chosen] = centred / np.sum(centred * centred)
    return weights


def end_slopes(grid: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights of the slopes at both ends of the quartic fitted on the grid."""
    half = (grid[-1] - grid[0]) / 2
    unit = (grid - grid[0]) / half - 1
    legendre = np.linalg.pinv(np.polynomial.legendre.legvander(unit, 4))
    degree = np.arange(5.0)
    size = degree * (degree + 1) / 2  # |P_n'(+-1)|
    return ((-1.0) ** (degree + 1) * size) @ legendre / half, size @ legendre / half


def sharp_end_slopes(grid: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights of the slopes at both ends of the parabolas through the three grid points there."""
    first = np.zeros(len(grid))
    first[:3] = np.array([-1.5, 2.0, -0.5]) / (grid[1] - grid[0])
    return first, -first[::-1]


def roughness(x: FloatArray, h: FloatArray) -> float:
    """Standard error of one h, from its (median) deviation from the cubic through two neighbours on either side."""
    if len(x) < 5:
        return 0.0
    nodes = np.stack([x[:-4], x[1:-3], x[3:-1], x[4:]], axis=1) - x[2:-2, None]
    values = np.stack([h[:-4], h[1:-3], h[3:-1], h[4:]], axis=1) - h[2:-2, None]
    lagrange = np.ones_like(nodes)
    for i in range(4):
        for j in range(4):
            if i != j:
                lagrange[:, i] *= -nodes[:, j] / (nodes[:, i] - nodes[:, j])
    residual = np.abs(np.sum(lagrange * values, axis=1)) / np.sqrt(1 + np.sum(lagrange**2, axis=1))
    return float(np.median(residual) / special.ndtri(0.75))
