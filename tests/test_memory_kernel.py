"""Memory integrals against 80-digit arithmetic: values, derivatives, both limits of the time scale, q = 1 and 2."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfsim.surrogates.kernel import kinks, memory_integrals

Q = (0.02, 0.5, 0.9999, 1.0, 1.0 + 1e-10, 1.3, 2.0, 2.0 - 1e-9, 7.5, 40.0)
C = (1e-6, 8.3e-7, 1e-4, 2e-2, 1.0, 1e3, 1e6)


def once(x, c, q):
    """Integral of (1 + c y)^(-q) over y from 0 to x."""
    return mp.log(1 + c * x) / c if q == 1 else (1 - (1 + c * x) ** (1 - q)) / (c * (q - 1))


def twice(x, c, q):
    """Integral of `once`."""
    if q == 1:
        return ((1 + c * x) * mp.log(1 + c * x) - c * x) / c**2
    if q == 2:
        return (c * x - mp.log(1 + c * x)) / c**2
    return x / (c * (q - 1)) - ((1 + c * x) ** (2 - q) - 1) / (c**2 * (q - 1) * (2 - q))


def literal(at, edges, left, right, c, q):
    """int_0^at g(u) (1 + c (at - u))^(-q) du, piece by piece: the value at its start, and its slope from there."""
    total = mp.mpf(0)
    for a, b, start, end in zip(edges[:-1], edges[1:], left, right, strict=True):
        if a >= at:
            break
        slope, stop = (mp.mpf(end) - start) / (mp.mpf(b) - a), min(b, at)
        held = start + slope * (mp.mpf(stop) - a)
        far, near = mp.mpf(at) - a, mp.mpf(at) - stop
        total += start * once(far, c, q) - held * once(near, c, q) + slope * (twice(far, c, q) - twice(near, c, q))
    return total


def magnitude(at, shape, c, q):
    """Sum of the absolute values of what the kinks add: rounding is relative to it."""
    lags = [mp.mpf(at) - u for u in shape.place if u < at]
    each = zip(lags, shape.jump, shape.bend, strict=False)
    return sum(abs(jump) * once(x, c, q) + abs(bend) * twice(x, c, q) for x, jump, bend in each)


def ramps(seed, pieces=7, continuous=False):
    """Edges over six decades and values of a piecewise-linear function."""
    draw = np.random.default_rng(seed)
    edges = np.concatenate([[0.0], np.cumsum(10.0 ** draw.uniform(-2.0, 3.0, pieces))])
    left, right = draw.uniform(0.0, 1.0, (2, pieces))
    if continuous:
        right[:-1] = left[1:]
    return edges, left, right, np.sort(draw.uniform(0.0, edges[-1], 4))


def evaluate(edges, left, right, at, c, q, **options):
    shape = kinks(edges, left, right)
    return memory_integrals(at, shape.place, shape.jump[:, None], shape.bend[:, None], c, q, **options)


@pytest.mark.parametrize("q", Q)
@pytest.mark.parametrize("c", C)
def test_values_and_derivatives(c, q):
    for seed in (0, 1):
        edges, left, right, at = ramps(seed, continuous=seed == 1)
        found = evaluate(edges, left, right, at, c, q)
        shape = kinks(edges, left, right)
        plain = evaluate(edges, left, right, at, c, q, gradient=False)
        assert plain.by_q is None
        np.testing.assert_array_equal(plain.value, found.value)
        with mp.workdps(80):
            for row, t in enumerate(at):
                scale = float(magnitude(t, shape, mp.mpf(c), mp.mpf(q)))
                exact = literal(t, edges, left, right, mp.mpf(c), mp.mpf(q))
                assert abs(found.value[row, 0] - exact) <= 1e-13 * scale
                h = mp.mpf(10) ** -12
                by_q = [literal(t, edges, left, right, mp.mpf(c), mp.mpf(q) + s * h) for s in (1, -1)]
                by_c = [literal(t, edges, left, right, c * mp.exp(s * h), mp.mpf(q)) for s in (1, -1)]
                for mine, (up, down) in ((found.by_q, by_q), (found.by_log_c, by_c)):
                    assert abs(mine[row, 0] - (up - down) / (2 * h)) <= 2e-12 * scale * max(1.0, 1.0 / q)


def check(c, q, edges, left, right, at, tolerance):
    """Values and derivatives to a share of the sum of the absolute values of their parts."""
    found, shape = evaluate(edges, left, right, at, c, q), kinks(edges, left, right)
    with mp.workdps(60):
        h = mp.mpf(10) ** -12
        for row, t in enumerate(at):
            scale = float(magnitude(t, shape, mp.mpf(c), mp.mpf(q)))
            exact = literal(t, edges, left, right, mp.mpf(c), mp.mpf(q))
            by_q = [literal(t, edges, left, right, mp.mpf(c), mp.mpf(q) + s * h) for s in (1, -1)]
            by_c = [literal(t, edges, left, right, c * mp.exp(s * h), mp.mpf(q)) for s in (1, -1)]
            assert abs(found.value[row, 0] - exact) <= tolerance * scale
            for mine, (up, down) in ((found.by_q, by_q), (found.by_log_c, by_c)):
                assert abs(mine[row, 0] - (up - down) / (2 * h)) <= tolerance * scale * max(1.0, 1.0 / q)


@pytest.mark.parametrize("q", [0.5, 0.9, 1.1, 1.9, 2.1, 7.5])
@pytest.mark.parametrize("c", [0.003, 0.02, 0.05, 0.08, 0.099])
def test_on_both_sides_of_the_power_series(c, q):
    """c T (1 + q) up to .099, where the series in c x ends, and from .101 on, where differences take over."""
    edges, left, right = np.array([0.0, 0.3, 1.0]), np.array([1.0, 0.2]), np.array([0.7, 0.5])
    for reach in (c, c + 2e-3):
        check(reach / (1.0 + q), q, edges, left, right, np.array([0.4, 1.0]), 1e-13)


@pytest.mark.parametrize("q", [0.9, 0.98, 1.02, 1.1, 1.9, 2.1])
@pytest.mark.parametrize("log", [0.3, 0.49, 0.51, 2.0, 4.9, 5.1])
def test_derivatives_on_both_sides_of_the_series_in_the_exponent(log, q):
    """(1 - q) log(1 + c T) and (2 - q) log(1 + c T) around .05, where the divided differences leave their series."""
    edges, left, right = np.array([0.0, 0.01, 1.0]), np.array([1.0, 0.6]), np.array([0.8, 0.5])
    check(float(np.expm1(log)), q, edges, left, right, np.array([0.5, 1.0]), 1e-13)


@pytest.mark.parametrize(("c", "q"), [(1e-3, 0.02), (0.3, 1.0), (5.0, 1.7), (40.0, 2.0), (1e4, 12.0)])
def test_the_witness_is_the_integral(c, q):
    """The closed form used above against numeric integration, which knows the kernel only."""
    edges, left, right, at = ramps(5, pieces=3)
    with mp.workdps(25):
        t = mp.mpf(at[-1])
        marks = sorted(
            {mp.mpf(0), *(mp.mpf(e) for e in edges if e < t), *(t - 10 ** mp.mpf(k) / c for k in range(-3, 8))}
        )
        marks = [m for m in marks if 0 <= m < t] + [t]

        def injected(u):
            which = max(i for i in range(3) if edges[i] <= u)
            share = (u - edges[which]) / (edges[which + 1] - edges[which])
            return (1 - share) * left[which] + share * right[which]

        total = mp.quad(lambda u: injected(u) * (1 + c * (t - u)) ** (-q), marks)
        assert abs(total / literal(at[-1], edges, left, right, mp.mpf(c), mp.mpf(q)) - 1) < 1e-12
    assert evaluate(edges, left, right, at, c, q).value[-1, 0] == pytest.approx(float(total), rel=1e-11)


def test_a_kernel_much_shorter_than_a_step():
    """Each observation then sees the last injection only: g(T) / (c (q - 1)), whatever happened before."""
    edges, left, right = np.array([0.0, 10.0, 20.0]), np.array([3.0, 7.0]), np.array([3.0, 7.0])
    found = evaluate(edges, left, right, np.array([5.0, 10.0, 10.0 + 1e-9, 15.0]), 1e6, 3.0)
    just = 7.0 * (1.0 - (1.0 + 1e-3) ** -2.0) + 3.0 * (1.0 + 1e-3) ** -2.0  # a thousandth of a time scale later
    np.testing.assert_allclose(2e6 * found.value[:, 0], [3.0, 3.0, just, 7.0], rtol=1e-6)


def test_a_kernel_much_longer_than_the_run_is_the_area():
    edges, left, right, at = ramps(3)
    found = evaluate(edges, left, right, at, 1e-15, 40.0)
    area = [float(np.trapezoid(*reversed(line(edges, left, right, t)))) for t in at]
    np.testing.assert_allclose(found.value[:, 0], area, rtol=1e-9)


def line(edges, left, right, stop):
    """The function up to `stop` as points."""
    x, y = [], []
    for a, b, start, end in zip(edges[:-1], edges[1:], left, right, strict=True):
        last = min(b, stop)
        if last <= a:
            break
        x += [a, last]
        y += [start, start + (end - start) * (last - a) / (b - a)]
    return np.array(x), np.array(y)


def test_observations_on_and_before_the_kinks():
    """An observation at a kink has not seen it; at 0 there is nothing."""
    edges, left, right = np.array([0.0, 1.0, 3.0]), np.array([2.0, 50.0]), np.array([2.0, 90.0])
    found = evaluate(edges, left, right, np.array([0.0, 0.5, 1.0, 3.0]), 2.0, 0.7)
    same = evaluate(edges[:2], left[:1], right[:1], np.array([0.0, 0.5, 1.0]), 2.0, 0.7)
    np.testing.assert_array_equal(found.value[:3], same.value)
    assert found.value[0, 0] == found.by_q[0, 0] == found.by_log_c[0, 0] == 0.0
    assert found.value[3, 0] > found.value[2, 0]


@given(st.integers(0, 2**32 - 1), st.sampled_from(Q), st.floats(-6.0, 6.0), st.integers(1, 200))
def test_blocks_of_rows_and_columns_do_not_matter(seed, q, log_c, rows):
    """Every row and every injection alone gives what all give together; constants are exact."""
    draw = np.random.default_rng(seed)
    edges, left, right, _ = ramps(seed)
    at = np.sort(draw.uniform(0.0, edges[-1], rows))
    shape = kinks(edges, left, right)
    both = np.stack([shape.jump, 0.0 * shape.jump], axis=1), np.stack([shape.bend, 0.0 * shape.bend], axis=1)
    both[0][0, 1] = 1.0
    c = 10.0**log_c
    found = memory_integrals(at, shape.place, *both, c, q)
    alone = evaluate(edges, left, right, at[-1:], c, q)
    scale = memory_integrals(at[-1:], shape.place, *(np.abs(b) for b in both), c, q).value[0, 0]
    assert abs(found.value[-1, 0] - alone.value[0, 0]) <= 1e-13 * scale
    with mp.workdps(80):
        unit = [float(once(mp.mpf(t), mp.mpf(c), mp.mpf(q))) for t in at[[0, -1]]]
    np.testing.assert_allclose(found.value[[0, -1], 1], unit, rtol=1e-13)
