"""Schedules as few pieces: against the steps themselves, with the literal integral over the clock."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfsim.checks import InputError
from rfsim.schedules import batch_ramp, constant, cosine, eight_one_one, linear, stages, wsd
from rfsim.surrogates.cell_integrals import cell_integrals
from rfsim.surrogates.pieces import pieces

TOLERANCE = 2e-5


def of(schedule, tolerance=TOLERANCE):
    """Pieces of eta/B over the intrinsic time, with the arrays that they describe."""
    lr, batch = np.asarray(schedule.lr), np.asarray(schedule.batch)
    return pieces(lr, lr / batch, tolerance=tolerance), lr, lr / batch


def check(found, increment, rate, tolerance=TOLERANCE):
    """Step by step: every piece begins and ends with a step, has the area of its steps, and is near each of them."""
    moving = [(float(d), float(g)) for d, g in zip(increment, rate, strict=True) if d > 0.0]
    clock = [0.0]
    for d, _ in moving:
        clock.append(math.fsum([clock[-1], d]))
    largest = max(g for _, g in moving) or 1.0
    edges, left, right = found
    assert len(left) == len(right) == len(edges) - 1
    assert edges[0] == 0.0
    assert edges[-1] == pytest.approx(clock[-1], rel=1e-12)
    assert (np.diff(edges) > 0.0).all()
    assert (left >= 0.0).all()
    assert (right >= 0.0).all()
    step = 0
    for a, b, start, end in zip(edges[:-1], edges[1:], left, right, strict=True):
        first = step
        while step < len(moving) and clock[step + 1] <= b + 1e-9 * clock[-1] / len(moving):
            step += 1
        assert step > first
        assert clock[step] == pytest.approx(b, rel=1e-12)
        top = max(g for _, g in moving[first:step])
        bound = tolerance * largest * max(top / largest, 1e-3) ** 0.3
        area = math.fsum(d * g for d, g in moving[first:step])
        assert 0.5 * (start + end) * (b - a) == pytest.approx(area, rel=1e-9, abs=1e-13 * largest * clock[-1])
        for at in range(first, step):
            middle = 0.5 * (clock[at] + clock[at + 1])
            line = start + (end - start) * (middle - a) / (b - a)
            assert abs(line - moving[at][1]) <= bound * (1.0 + 1e-6) + 1e-12 * largest
            if step - first > 1:
                within = abs(end - start) * moving[at][0] / (b - a)
                assert within <= max(0.25 * top, bound) * (1.0 + 1e-6) + 1e-12 * largest
    assert step == len(moving)


@given(st.data())
def test_random_stages_and_ramps(data):
    """Flat stretches, straight lines, curves and noise, one after another, with steps that do not move the clock."""
    draw = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    parts = []
    kinds = st.sampled_from(["flat", "line", "curve", "noise", "off", "pair"])
    for kind in data.draw(st.lists(kinds, min_size=1, max_size=6)):
        n = int(draw.integers(1, 120))
        s = np.arange(n) / n
        parts.append(
            {
                "flat": np.full(n, draw.uniform(0.1, 1.0)),
                "line": draw.uniform(0.1, 1.0) + draw.uniform(0.0, 1.0) * s,
                "curve": 0.1 + draw.uniform(0.0, 1.0) * (1.0 + np.cos(np.pi * s)),
                "noise": draw.uniform(0.1, 1.0, n),
                "off": np.zeros(n),
                "pair": np.repeat(draw.uniform(0.1, 1.0, n), 2),
            }[kind]
        )
    rate = np.concatenate(parts)
    increment = rate if data.draw(st.booleans()) else draw.uniform(0.0, 1.0, len(rate)) * (rate > 0.0)
    tolerance = data.draw(st.sampled_from([1e-9, 2e-5, 1e-2]))
    if (increment > 0.0).any():
        check(pieces(increment, rate, tolerance=tolerance), increment, rate, tolerance)


def test_a_constant_is_one_piece_and_stages_are_exact():
    (edges, left, right), _, _ = of(constant(1000, 0.25, 8.0))
    assert (edges.tolist(), left.tolist(), right.tolist()) == ([0.0, 250.0], [0.03125], [0.03125])
    (edges, left, right), _, _ = of(eight_one_one(1000, 0.5, 2.0))
    assert edges == pytest.approx([0.0, 400.0, 400.0 + 50.0 * 10**-0.5, 405.0 + 50.0 * 10**-0.5], rel=1e-14)
    assert left.tolist() == right.tolist()
    np.testing.assert_array_equal(left, [0.25, 0.25 * 10**-0.5, 0.25 * 0.1])
    (edges, left, right), _, _ = of(stages(64, 0.5, 4.0, at=[16, 32, 48], lr_to=[1.0, 2.0, 0.5], batch_to=[2, 1, 4]))
    assert edges.tolist() == [0.0, 8.0, 16.0, 32.0, 36.0]
    assert left.tolist() == right.tolist() == [0.125, 0.0625, 0.25, 0.015625]


def test_a_ramp_of_the_batch_is_few_pieces():
    schedule = batch_ramp(2000, 0.5, 4.0, to=64.0)
    found, increment, rate = of(schedule)
    check(found, increment, rate)


def memory(found, at, c, q):
    return cell_integrals(at, found.edges, found.left[:, None], found.right[:, None], c, q, gradient=False).value[:, 0]


def literal_memory(increment, rate, at, c, q):
    """Each step by itself, its rate times the integral of the kernel over it."""
    total, clock = np.zeros(len(at)), 0.0
    for d, g in zip(increment, rate, strict=True):
        far, near = (np.maximum(at - edge, 0.0) for edge in (clock, clock + d))
        growth = np.log1p(c * (far - near) / (1.0 + c * near))  # log of the ratio of 1 + c lag
        total += g * (1.0 + c * near) ** (1.0 - q) * np.expm1((1.0 - q) * growth) / ((1.0 - q) * c)
        clock += d
    return total


@pytest.mark.parametrize(
    ("shape", "c", "rtol"),
    [
        # the batch grows a thousandfold: linearly, and by a constant factor per step; the lr falls a hundredfold
        ("linear batch", 0.02, 1e-4),
        ("linear batch", 0.2, 6e-4),
        ("linear batch", 1.0, 3e-4),
        ("exponential batch", 0.02, 5e-6),
        ("exponential batch", 1.0, 5e-5),
        ("exponential lr", 0.02, 1e-6),
        ("exponential lr", 1.0, 1e-5),
    ],
)
def test_the_memory_of_ramps_over_decades(shape, c, rtol):
    n = 10_000
    u = np.arange(n) / n
    batch = {"linear batch": 1.0 + 999.0 * u, "exponential batch": 1000.0**u}.get(shape, np.ones(n))
    increment = 0.01**u if shape == "exponential lr" else np.ones(n)
    found = pieces(increment, increment / batch)
    assert len(found.left) < 300
    at = np.cumsum(increment)[np.linspace(n // 20, n - 1, 30).astype(int)]
    wanted = literal_memory(increment, increment / batch, at, c, 0.9)
    np.testing.assert_allclose(memory(found, at, c, 0.9), wanted, rtol=rtol)


@pytest.mark.parametrize("seed", range(6))
def test_a_line_is_made_of_small_steps(seed):
    """Rates over eight decades, each its own increment: tiny steps next to a large one lie on a line by accident."""
    rate = 10.0 ** np.random.default_rng(seed).uniform(-8, 0, 30)
    rate[-1] = 1e-3
    rate /= rate.max()
    at = np.cumsum(rate)
    for c in (0.02, 1.0, 50.0):
        wanted = literal_memory(rate, rate, at, c, 0.9)
        # steps below 1e-3 of the largest enter with an error of 2e-6 of it, at most
        np.testing.assert_allclose(memory(pieces(rate, rate), at, c, 0.9), wanted, rtol=1e-9, atol=2e-6 * rate.max())
    found = pieces(rate, rate)
    assert all(found.left[np.searchsorted(found.edges, at[rate > 1e-2] - 1e-3) - 1] == rate[rate > 1e-2])


def test_one_step_and_two():
    found = pieces(np.array([0.5]), np.array([3.0]))
    assert [part.tolist() for part in found] == [[0.0, 0.5], [3.0], [3.0]]
    found = pieces(np.array([0.0, 0.5, 0.0, 1.5, 0.0]), np.array([9.0, 3.0, 9.0, 4.0, 9.0]))
    assert found.edges.tolist() == [0.0, 0.5, 2.0]
    assert found.left.tolist() == found.right.tolist() == [3.0, 4.0]  # a jump, not a line


def test_an_exponential_decay_is_a_straight_line_in_the_clock():
    """1/r = eta/B falls linearly with the sum of a geometric eta."""
    found, _, _ = of(wsd(100_000, 1e-3, 4.0))
    assert len(found.left) == 2
    assert found.left[1] == pytest.approx(2.5e-4, rel=1e-4)
    assert found.right[1] == pytest.approx(2.5e-5, rel=1e-3)
    check(*of(wsd(3000, 1e-3, 4.0)))


@pytest.mark.parametrize("shape", [cosine, linear])
@pytest.mark.parametrize("to", [0.0, 0.1])
def test_curves_need_few_pieces(shape, to):
    found, _, _ = of(shape(100_000, 3e-4, 1.0, to=to, warmup=2000))
    assert len(found.left) < 500
    check(*of(shape(2000, 3e-4, 1.0, to=to, warmup=40)))
    coarse, _, _ = of(shape(100_000, 3e-4, 1.0, to=to, warmup=2000), tolerance=1e-2)
    assert len(coarse.left) < 0.2 * len(found.left)


def test_a_line_that_ends_at_zero_does_not_go_below():
    """The line through the middles of the last steps would be negative half a step later."""
    increment, rate = np.ones(9), np.array([1.0, 1.0, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0])
    found = pieces(increment, rate)
    check(found, increment, rate)
    assert found.right[-1] == 0.0
    assert len(found.left) > 2


def test_a_rate_of_zero_everywhere_is_a_flat_zero():
    found = pieces(np.full(5, 0.5), np.zeros(5))
    assert [part.tolist() for part in found] == [[0.0, 2.5], [0.0], [0.0]]


def test_rates_that_differ_by_rounding_are_equal():
    rate = 0.1 * (1.0 + 1e-15 * np.arange(50) % 2)
    assert len(pieces(np.full(50, 0.1), rate).left) == 1


@pytest.mark.parametrize("tail", [1e-17, 1e-30, 5e-324])
def test_steps_too_short_for_the_clock_add_nothing(tail):
    """A cosine to 0 ends with an lr of 1e-17: steps that the clock cannot resolve may not become empty pieces."""
    increment = np.concatenate([np.full(1000, 1.0), np.full(3, tail), [1.0], np.full(2, tail)])
    rate = np.concatenate([np.full(1000, 1.0), [1.0, 2.0, 3.0], [4.0], [5.0, 6.0]])
    edges, left, right = pieces(increment, rate)
    assert (np.diff(edges) > 0.0).all()
    assert edges[-1] == 1001.0
    assert left.tolist() == right.tolist() == [1.0, 4.0]


def test_what_is_refused():
    with pytest.raises(InputError, match="the clock never moves"):
        pieces(np.zeros(3), np.ones(3))
    with pytest.raises(InputError, match="same length"):
        pieces(np.ones(3), np.ones(4))
    with pytest.raises(InputError, match="tolerance must be positive"):
        pieces(np.ones(3), np.ones(3), tolerance=0.0)
