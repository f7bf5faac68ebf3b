"""Arithmetic with twice the digits of float64, on arrays: a number is an unevaluated sum high + low with |low| <=
ulp(high)/2.

Only what the rational Gauss rule needs: Gram matrices of nearly dependent functions lose half of their digits, and with
32 digits the half that remains is float64. Error-free sums and products are the classical ones of Knuth and Dekker;
every operation below has a relative error of a few 2^-104.
"""

from typing import Any, NamedTuple

import numpy as np

_SPLITTER = 134217729.0  # 2^27 + 1


class DoubleDouble(NamedTuple):
    """An array of double-double numbers; both parts have the same shape."""

    high: np.ndarray
    low: np.ndarray


def exact(value: object) -> DoubleDouble:
    """A float64 array taken as exact."""
    high = np.asarray(value, dtype=np.float64)
    return DoubleDouble(high, np.zeros_like(high))


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = a + b
    seen = total - a
    return total, (a - (total - seen)) + (b - seen)


def _quick(a: np.ndarray, b: np.ndarray) -> DoubleDouble:
    total = a + b
    return DoubleDouble(total, b - (total - a))


def _two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    product = a * b
    wide_a, wide_b = _SPLITTER * a, _SPLITTER * b
    high_a, high_b = wide_a - (wide_a - a), wide_b - (wide_b - b)
    low_a, low_b = a - high_a, b - high_b
    return product, ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


def add(a: DoubleDouble, b: DoubleDouble) -> DoubleDouble:
    """a + b, broadcasting."""
    high, low = _two_sum(a.high, b.high)
    high_of_low, low_of_low = _two_sum(a.low, b.low)
    partial = _quick(high, low + high_of_low)
    return _quick(partial.high, partial.low + low_of_low)


def negative(a: DoubleDouble) -> DoubleDouble:
    """-a."""
    return DoubleDouble(-a.high, -a.low)


def subtract(a: DoubleDouble, b: DoubleDouble) -> DoubleDouble:
    """a - b, broadcasting."""
    return add(a, negative(b))


def multiply(a: DoubleDouble, b: DoubleDouble) -> DoubleDouble:
    """a b, broadcasting."""
    high, low = _two_product(a.high, b.high)
    return _quick(high, low + (a.high * b.low + a.low * b.high))


def divide(a: DoubleDouble, b: DoubleDouble) -> DoubleDouble:
    """a / b, broadcasting."""
    first = a.high / b.high
    rest = subtract(a, multiply(b, exact(first)))
    second = rest.high / b.high
    rest = subtract(rest, multiply(b, exact(second)))
    quotient = _quick(first, second)
    return add(quotient, exact(rest.high / b.high))


def square_root(a: DoubleDouble) -> DoubleDouble:
    """Square root of positive numbers."""
    start = np.sqrt(a.high)
    rest = subtract(a, multiply(exact(start), exact(start)))
    return _quick(start, rest.high / (2.0 * start))


def total(a: DoubleDouble) -> DoubleDouble:
    """Sum over the first axis, by halving."""
    while a.high.shape[0] > 1:
        half = a.high.shape[0] // 2
        paired = add(
            DoubleDouble(a.high[:half], a.low[:half]), DoubleDouble(a.high[half : 2 * half], a.low[half : 2 * half])
        )
        if a.high.shape[0] % 2:
            paired = DoubleDouble(np.concatenate([paired.high, a.high[-1:]]), np.concatenate([paired.low, a.low[-1:]]))
        a = paired
    return DoubleDouble(a.high[0], a.low[0])


def part(a: DoubleDouble, index: Any) -> DoubleDouble:
    """a[index] of both parts."""
    return DoubleDouble(a.high[index], a.low[index])


def cholesky(matrix: DoubleDouble, *, least_pivot: float) -> tuple[DoubleDouble, np.ndarray]:
    """Lower triangular L (r, r) with L L^T = matrix[chosen][:, chosen], and the rows chosen (r,), in this order.

    For a positive semidefinite matrix (n, n) with unit diagonal. The next row is always the one with the largest pivot;
    rows are left out once all pivots have fallen to `least_pivot`, where they depend on the chosen ones to that
    accuracy.
    """
    high, low = matrix.high.copy(), matrix.low.copy()
    size = high.shape[0]
    order = np.arange(size)
    rank = size
    for column in range(size):
        largest = column + int(np.argmax(np.diag(high)[column:]))
        if high[largest, largest] <= least_pivot:
            rank = column
            break
        swap, back = [column, largest], [largest, column]
        order[swap] = order[back]
        for values in (high, low):
            values[swap] = values[back]
            values[:, swap] = values[:, back]
        root = square_root(DoubleDouble(high[column, column], low[column, column]))
        below = divide(DoubleDouble(high[column:, column], low[column:, column]), root)
        high[column:, column], low[column:, column] = below
        rest = slice(column + 1, size)
        tail = part(below, slice(1, None))
        product = multiply(
            DoubleDouble(tail.high[:, None], tail.low[:, None]), DoubleDouble(tail.high[None, :], tail.low[None, :])
        )
        high[rest, rest], low[rest, rest] = subtract(DoubleDouble(high[rest, rest], low[rest, rest]), product)
    lower = np.tril(np.ones((rank, rank)))
    return DoubleDouble(high[:rank, :rank] * lower, low[:rank, :rank] * lower), order[:rank]


def solve_lower(factor: DoubleDouble, right: DoubleDouble) -> DoubleDouble:
    """X with factor X = right, for lower triangular factor (n, n) and right (n, k)."""
    high, low = right.high.copy(), right.low.copy()
    for row in range(high.shape[0]):
        solved = divide(DoubleDouble(high[row], low[row]), DoubleDouble(factor.high[row, row], factor.low[row, row]))
        high[row], low[row] = solved
        rest = slice(row + 1, high.shape[0])
        column = part(factor, (rest, row))
        product = multiply(
            DoubleDouble(column.high[:, None], column.low[:, None]),
            DoubleDouble(solved.high[None, :], solved.low[None, :]),
        )
        high[rest], low[rest] = subtract(DoubleDouble(high[rest], low[rest]), product)
    return DoubleDouble(high, low)
