"""Memory integrals of a piecewise-linear injection cell by cell: nothing cancels, however short or strong a cell is.

The sum over kinks of `rfsim.surrogates.kernel` is a small difference of large numbers where cells behind the
observation are short compared with their distance, as those are that resolve the source at the start of a run.
"""

import numpy as np

from rfsim.surrogates.kernel import Integrals, _divided, _divided_slope

_ROWS = 96  # observations handled together, few enough to stay in the cache; they share the cells before the last one
_SMALL = 1.0 / 100.0  # half-length of a cell, over its distance, below which the kernel across it is a power series
_ROUNDING = 1e-15  # of the last term of that series
_NEAR = 0.05  # (1 + |a|) L below which a difference of divided differences uses its series
_POWERS = 10  # terms of that series


def cell_integrals(
    at: np.ndarray, edges: np.ndarray, left: np.ndarray, right: np.ndarray, c: float, q: float, *, gradient: bool = True
) -> Integrals:
    """Evaluate int_0^T g(u) (1 + c (T-u))^(-q) du exactly for piecewise-linear g.

    Across a cell that is short compared with 1/c or its distance the kernel is a power series about its middle, and
    its means with 1 and with the distance from the middle meet the area and the tilt of g. In other cells
    int g k = right M0 + (left - right)/width M1, see `_closed`. The rounding error is some 1e-14 of the integral of |g|
    times the kernel.

    Parameters
    ----------
    at : (m,) clock of the observations, increasing.
    edges : (n+1,) clock of the edges of n cells, increasing.
    left, right : (n, k) values of k injections g at the two ends of each cell; g is 0 outside the cells.
    c, q : time scale (one over the clock) and exponent of the kernel, positive.

    Source: theory, section 7.1.
    """
    m, k, begin, stop = len(at), left.shape[1], edges[:-1], edges[1:]
    width = stop - begin
    half, fall = 0.5 * width, (left - right) / width[:, None]
    middle, area, tilt = begin + half, half[:, None] * (left + right), half[:, None] * (left - right)
    total, series = np.zeros((3 if gradient else 1, m, k)), _series(q)
    started = np.searchsorted(begin, at, side="left")
    for start in range(0, m, _ROWS):
        rows = slice(start, start + _ROWS)
        now, n = at[rows, None], int(started[rows].max())
        lag = at[start] - middle[:n]  # of the earliest of these observations
        far = (lag >= half[:n]) & (c * half[:n] <= _SMALL * (1.0 + c * lag))
        some = np.flatnonzero(far)
        if some.size:
            parts = _means(now - middle[some], half[some], c, q, series, gradient)
            _add(total[:, rows], parts, area[some], tilt[some])
        some = np.flatnonzero(~far)
        if some.size:
            seen = np.minimum(np.maximum(now - begin[some], 0.0), width[some])  # the part before the observation
            parts = _closed(np.maximum(now - stop[some], 0.0), seen, c, q, gradient)
            unseen = width[some] - seen
            for once, twice in zip(parts[0::2], parts[1::2], strict=True):
                twice += unseen * once
            _add(total[:, rows], parts, right[some], fall[some])
    return Integrals(total[0], total[1], total[2]) if gradient else Integrals(total[0], None, None)


def _add(total: np.ndarray, parts: list[np.ndarray], first: np.ndarray, second: np.ndarray) -> None:
    """Add the two parts times their weights (n, k), and (if they are there) their derivatives."""
    for one, once, twice in zip(total, parts[0::2], parts[1::2], strict=True):
        one += once @ first + twice @ second


def _closed(end: np.ndarray, width: np.ndarray, c: float, q: float, gradient: bool) -> list[np.ndarray]:
    """M0 and M1 of cells, then (if asked for) their derivatives in q, then those in log c.

    M_j = int_0^w t^j (1 + c (e + t))^(-q) dt over a cell of width w whose end lies e behind the observation. With
    X = 1 + c e, L = log(1 + c w/X), a = 1 - q and E_a = (exp(a L) - 1)/a: M0 = X^a E_a/c and
    M1 = X^(a+1) (E_(a+1) - E_a)/c^2; q = 1 and q = 2 are ordinary values.
    """
    a, scaled = 1.0 - q, c * end
    log, grown = np.log1p(scaled), 1.0 + scaled
    across = np.log1p(c * width / grown)
    scale = np.exp(a * log)
    scale /= c
    double = scale * grown
    double /= c
    first, second = _divided(across, a), _divided(across, a + 1.0)
    once, twice = scale * first, double * _difference(across, a, first, second)
    if not gradient:
        return [once, twice]
    slopes = _divided_slope(across, a, first), _divided_slope(across, a + 1.0, second)
    by_q = [-log * once - scale * slopes[0], -log * twice - double * _difference(across, a, *slopes, slope=True)]
    # the derivative of the kernel in log c is -q times what it exceeds that with q + 1 by
    lower = _divided(across, a - 1.0)
    steeper = [scale * lower / grown, double * _difference(across, a - 1.0, lower, first) / grown]
    return [once, twice, *by_q, q * (steeper[0] - once), q * (steeper[1] - twice)]


def _difference(log: np.ndarray, a: float, first: np.ndarray, second: np.ndarray, *, slope: bool = False) -> np.ndarray:
    """E_(a+1) - E_a, or its derivative in a: sum_k L^k/k! ((a + 1)^(k-1) - a^(k-1)) where L is small."""
    result = second - first
    small = (1.0 + abs(a)) * log < _NEAR
    if small.any():
        x, factorial, each = log[small], 1.0, []
        for k in range(2, _POWERS):
            factorial *= k
            power = (k - 1) * np.array([a + 1.0, a]) ** (k - 2) if slope else np.array([a + 1.0, a]) ** (k - 1)
            each.append((power[0] - power[1]) / factorial)
        result[small] = x**2 * np.polyval(each[::-1], x)
    return result


def _series(q: float) -> np.ndarray:
    """Coefficients (6, p) of the powers of s in the means over -1 < t < 1 of (1 + s t)^(-q) and t (1 + s t)^(-q).

    Rows: powers 0, 2, 4... of the first, powers 1, 3, 5... of the second, the same of their derivatives in q, and of
    those in log s. (1 + x)^(-q) = sum_k b_k x^k with b_k = -(q + k - 1)/k b_(k-1).
    """
    b, slope = [1.0], [0.0]  # coefficients and their derivatives in q
    while len(b) % 2 or len(b) < 4 or abs(b[-1]) * _SMALL ** (len(b) - 1) > _ROUNDING:
        k = len(b)
        slope.append(-(b[-1] + (q + k - 1.0) * slope[-1]) / k)
        b.append(-(q + k - 1.0) / k * b[-1])
    power = np.arange(len(b))
    each = np.stack([np.array(b), np.array(slope), power * np.array(b)]) / (power + 1.0 + power % 2)
    return each.reshape(3, -1, 2).transpose(0, 2, 1).reshape(6, -1)


def _means(
    lag: np.ndarray, half: np.ndarray, c: float, q: float, series: np.ndarray, gradient: bool
) -> list[np.ndarray]:
    """Means over -1 < t < 1 of (1 + c (lag + half t))^(-q) and of t times it; their derivatives in q and log c."""
    grown = c * lag
    grown += 1.0
    share = (c * half) / grown
    square = share * share
    log = np.log(grown)
    kernel = log * -q
    np.exp(kernel, out=kernel)
    share *= kernel
    result = []
    for number, one in enumerate(series[: 6 if gradient else 2]):
        total = square * one[-1]
        total += one[-2]
        for each in one[-3::-1]:
            total *= square
            total += each
        total *= share if number % 2 else kernel
        result.append(total)
    if gradient:
        inverse = 1.0 / grown
        rise = q * inverse - q
        for number in (0, 1):
            result[2 + number] -= log * result[number]
            result[4 + number] *= inverse
            result[4 + number] += rise * result[number]
    return result
