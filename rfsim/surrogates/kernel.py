"""Integrals of a power-law memory kernel against a piecewise-linear injection, exact, with their derivatives."""

from typing import NamedTuple

import numpy as np

_ROWS = 32  # observations handled together, few enough to stay in the cache; they share the kinks before the last one
_NEAR = 0.05  # below this the divided differences use their series
_SHORT = 0.1  # observations with c T (1 + q) below this use the power series of the kernel
_POWERS = 12  # terms of that series


class Kinks(NamedTuple):
    """A piecewise-linear function of the clock by what changes where: g(u) = sum of jumps and changes of slope.

    place : (n,) clock values, increasing.
    jump : (n,) jump of the function there (the first is its first value).
    bend : (n,) change of its slope there (the first is its first slope).
    """

    place: np.ndarray
    jump: np.ndarray
    bend: np.ndarray


def kinks(edges: np.ndarray, left: np.ndarray, right: np.ndarray) -> Kinks:
    """Jumps and bends of the function with values left (n,), right (n,) at the ends of pieces edges (n+1,).

    The function goes on to 0 behind the last edge only from there, so nothing before the end depends on it.
    """
    slope = (right - left) / np.diff(edges)
    before = np.concatenate([[0.0], right[:-1]])
    return Kinks(edges[:-1], left - before, np.diff(slope, prepend=0.0))


class Integrals(NamedTuple):
    """Memory integrals at observations (m,), one column per injection, and their derivatives.

    value : (m, k) int_0^T g(u) (1 + c (T-u))^(-q) du.
    by_q, by_log_c : (m, k) derivatives in q and in log c; None if not asked for.
    """

    value: np.ndarray
    by_q: np.ndarray | None
    by_log_c: np.ndarray | None


def memory_integrals(
    at: np.ndarray, place: np.ndarray, jump: np.ndarray, bend: np.ndarray, c: float, q: float, *, gradient: bool = True
) -> Integrals:
    """Evaluate int_0^T g(u) (1 + c (T-u))^(-q) du exactly for piecewise-linear g.

    Integrating by parts twice leaves sum_i jump_i K1(T - u_i) + bend_i K2(T - u_i) over the kinks u_i before T, with
    K1 the integral of the kernel from 0 and K2 that of K1. With L = log(1 + c x), a = 1 - q and
    E_a = (exp(a L) - 1)/a: K1 = E_a/c and K2 = (exp(L) E_a - E_(a+1))/c^2; q = 1 and q = 2 are ordinary values. Where
    c T is small those differences would lose their digits, and the power series in c x is summed instead. The rounding
    error is some 1e-15 times the sum of |jump| K1 + |bend| K2, which is far above the integral itself if g has ramps
    that are short compared with T; `rfsim.surrogates.cell_integrals` has none of that.

    Parameters
    ----------
    at : (m,) clock of the observations, increasing.
    place : (n,) clock of the kinks, increasing.
    jump, bend : (n, k) of the k injections, as in `Kinks`.
    c, q : time scale (one over the clock) and exponent of the kernel, positive.
    """
    m, k = len(at), jump.shape[1]
    value = np.zeros((m, k))
    by_q = np.zeros((m, k)) if gradient else None
    by_c = np.zeros((m, k)) if gradient else None
    stops = np.searchsorted(place, at, side="left")
    for start in range(0, m, _ROWS):
        rows = slice(start, start + _ROWS)
        n = int(stops[rows].max(initial=0))
        if n == 0:
            continue
        parts = antiderivatives(np.maximum(at[rows, None] - place[None, :n], 0.0), c, q, gradient=gradient)
        steps, bends = jump[:n], bend[:n]
        value[rows] = parts[0] @ steps + parts[1] @ bends
        if by_q is not None and by_c is not None:
            by_q[rows], by_c[rows] = parts[2] @ steps + parts[3] @ bends, parts[4] @ steps + parts[5] @ bends
    return Integrals(value, by_q, by_c)


def antiderivatives(lag: np.ndarray, c: float, q: float, *, gradient: bool = True) -> list[np.ndarray]:
    """K1 and K2 at lags of any shape, then (if asked for) their derivatives in q, then those in log c.

    K1 is the integral of the kernel (1 + c x)^(-q) from 0, K2 that of K1. Lags that are all short come from a power
    series; among longer ones a short lag x has the rounding error of 1/c: some 1e-16 x/c in K2.
    """
    scaled = c * lag
    if (1.0 + q) * float(scaled.max(initial=0.0)) < _SHORT:
        return _short(lag, scaled, q, gradient)
    a = 1.0 - q
    log = np.log1p(scaled)
    first, second = _divided(log, a), _divided(log, a + 1.0)
    once, grown = first / c, 1.0 + scaled
    twice = grown * first
    twice -= second
    twice /= c**2
    if not gradient:
        return [once, twice]
    d_first, d_second = _divided_slope(log, a, first), _divided_slope(log, a + 1.0, second)
    d_second -= grown * d_first
    d_second /= c**2
    d_first /= -c
    # K1 = f(c x)/c and K2 = f2(c x)/c^2, so the derivative in log c is x k(x) - K1 and x K1 - 2 K2
    kernel = 1.0 + a * first
    kernel /= grown
    kernel *= lag
    kernel -= once
    return [once, twice, d_first, d_second, kernel, lag * once - 2.0 * twice]


def _short(lag: np.ndarray, scaled: np.ndarray, q: float, gradient: bool) -> list[np.ndarray]:
    """K1 and K2 at lags from their power series in c x, then their derivatives in q, then those in log c.

    (1 + s)^(-q) = sum_k b_k s^k with b_k = -(q + k - 1)/k b_(k-1), integrated once and twice.
    """
    b, slope = np.zeros(_POWERS), np.zeros(_POWERS)  # coefficients and their derivatives in q
    b[0] = 1.0
    for k in range(1, _POWERS):
        b[k] = -(q + k - 1.0) / k * b[k - 1]
        slope[k] = -(b[k - 1] + (q + k - 1.0) * slope[k - 1]) / k
    power = np.arange(_POWERS)
    once, twice = 1.0 / (power + 1.0), 1.0 / ((power + 1.0) * (power + 2.0))
    sums = [b * once, b * twice]
    if gradient:
        sums += [slope * once, slope * twice, power * b * once, power * b * twice]
    square = lag**2
    return [(square if number % 2 else lag) * np.polyval(one[::-1], scaled) for number, one in enumerate(sums)]


def _divided(log: np.ndarray, a: float) -> np.ndarray:
    """E_a = (exp(a L) - 1)/a, and L at a = 0."""
    return log if a == 0.0 else np.expm1(a * log) / a


def _divided_slope(log: np.ndarray, a: float, divided: np.ndarray) -> np.ndarray:
    """Derivative of E_a in a: (L exp(a L) - E_a)/a = L^2 (1/2 + z/3 + z^2/8 + ...), z = a L."""
    z = a * log
    near = np.abs(z) < _NEAR
    if near.all():
        return _slope_series(log, z)
    result = (log * (1.0 + a * divided) - divided) / (a if a != 0.0 else 1.0)
    if near.any():
        result[near] = _slope_series(log[near], z[near])
    return result


def _slope_series(log: np.ndarray, z: np.ndarray) -> np.ndarray:
    """L^2 sum_k z^k / (k! (k+2)), to k = 8."""
    total = np.full_like(z, 1.0 / (40320.0 * 10.0))
    for k, factorial in ((7, 5040.0), (6, 720.0), (5, 120.0), (4, 24.0), (3, 6.0), (2, 2.0), (1, 1.0), (0, 1.0)):
        total = total * z + 1.0 / (factorial * (k + 2))
    return log**2 * total
