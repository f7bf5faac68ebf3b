"""Sums over earlier steps: few terms per observation against the literal sum over all of them."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rfsim.checks import InputError
from rfsim.surrogates.sums import terms

PEAK = 3e-4


def rates(kind, steps, rng):
    """Learning rates of `steps` steps, with a warm-up over the first tenth."""
    u = (np.arange(steps) + 1.0) / steps
    shape = {
        "constant": np.ones(steps),
        "cosine": 0.5 * (1.0 + np.cos(np.pi * u)),
        "linear": np.minimum(1.0, 4.0 * (1.0 - u)),
        "exponential": np.where(u > 0.7, 10.0 ** (-(u - 0.7) / 0.3), 1.0),
        "noise": np.exp(rng.normal(0.0, 0.3, steps)),
        "polygon": np.interp(u, np.linspace(0.0, 1.0, 31), np.exp(rng.normal(0.0, 0.5, 31))),
        "pauses": np.where(rng.random(steps) < 0.3, 0.0, 1.0) * (1.1 - u),
        "stairs": 0.5 ** np.floor(5.0 * u),
        "cyclic": 1.1 + np.sin(np.arange(steps) / 50.0),
        "decades": 10.0 ** rng.uniform(-6.0, 0.0, steps),
    }[kind]
    return PEAK * shape * np.minimum(1.0, 10.0 * u)


KINDS = ("constant", "cosine", "linear", "exponential", "noise", "polygon", "pauses", "stairs", "cyclic", "decades")


def literal(function, at, until, place, weight, extra):
    """The sum, and the sum of absolute values, observation by observation."""
    total, size = np.zeros(len(at)), np.zeros(len(at))
    for i, (now, n) in enumerate(zip(at, until, strict=True)):
        values = weight[:n] * function(np.maximum(now - place[:n], 0.0), extra[:n])
        total[i], size[i] = values.sum(), np.abs(values).sum()
    return total, size


def saturating(lag, extra):
    """The bracket of the multi-power law: its time scale is below one step."""
    return 1.0 - (1.0 + 2.0 * np.exp(-0.65 * extra) * lag) ** -0.6


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 10**6), steps=st.integers(1, 3000))
@example(seed=31761, steps=347)
@example(seed=156, steps=208)
def test_equals_the_literal_sum(kind, seed, steps):
    rng = np.random.default_rng(seed)
    lr = rates(kind, steps, rng)
    clock = np.concatenate([[0.0], np.cumsum(lr)])
    until = np.unique(rng.integers(0, steps + 1, 12))
    drop, extra = -np.diff(lr, prepend=0.0), np.log(np.maximum(lr, 1e-60))
    found = terms(clock[until], until, clock[:-1], drop, extra)
    wanted, size = literal(saturating, clock[until], until, clock[:-1], drop, extra)
    got = found.total(saturating(found.lag, found.extra[found.node]))
    assert (np.abs(got - wanted) <= 3e-8 * size + 1e-300).all()

    def fading(lag, _):
        return (1.0 + lag / PEAK) ** -1.3

    found = terms(clock[until], until, clock[1:], lr**2)
    wanted, size = literal(fading, clock[until], until, clock[1:], lr**2, extra)
    assert np.abs(found.total(fading(found.lag, 0.0)) - wanted).max() <= 1e-7 * size.max() + 1e-300


@pytest.mark.parametrize("kind", ["cosine", "polygon", "pauses"])
def test_without_nodes_every_step_is_a_term(kind):
    lr = rates(kind, 700, np.random.default_rng(5))
    clock = np.concatenate([[0.0], np.cumsum(lr)])
    until = np.array([0, 1, 5, 350, 700])
    found = terms(clock[until], until, clock[1:], lr, nodes=0)
    assert len(found.lag) == sum(int((lr[:n] > 0).sum()) for n in until)
    np.testing.assert_allclose(found.total(np.ones_like(found.lag)), clock[until], rtol=1e-13, atol=1e-18)


def test_a_source_that_is_a_power_of_the_place():
    lr = rates("cosine", 20000, np.random.default_rng(0))
    clock = np.concatenate([[0.0], np.cumsum(lr)]) / PEAK
    until = np.array([3, 40, 2000, 2001, 9999, 20000])
    place, weight = clock[1:-1], -np.diff(lr)
    found = terms(clock[until], until - 1, place, weight, from_zero=True)
    got = found.total(found.place[found.node] ** -0.8 * np.log1p(0.3 * found.lag))
    for value, now, n in zip(got, clock[until], until - 1, strict=True):
        each = weight[:n] * place[:n] ** -0.8 * np.log1p(0.3 * (now - place[:n]))
        assert abs(value - each.sum()) <= 1e-7 * np.abs(each).sum()


def test_more_nodes_are_more_accurate_and_terms_grow_with_the_logarithm():
    lr = rates("cosine", 100_000, np.random.default_rng(0))
    clock = np.concatenate([[0.0], np.cumsum(lr)])
    until = np.linspace(1, 100_000, 40).astype(int)
    drop, extra = -np.diff(lr, prepend=0.0), np.log(np.maximum(lr, 1e-60))
    wanted, size = literal(saturating, clock[until], until, clock[:-1], drop, extra)
    errors = []
    for nodes in (3, 5, 8):
        found = terms(clock[until], until, clock[:-1], drop, extra, nodes=nodes)
        got = found.total(saturating(found.lag, found.extra[found.node]))
        errors.append(float((np.abs(got - wanted) / size).max()))
        assert len(found.lag) < 700 * len(until)  # of 100 000 steps
    assert errors[0] < 1e-3
    assert errors[1] < 0.1 * errors[0]
    assert errors[2] < 0.1 * errors[1]
    assert errors[2] < 1e-8


@pytest.mark.parametrize(("kind", "most"), [("noise", 1200), ("cyclic", 1200), ("pauses", 600), ("decades", 3000)])
def test_rough_rates_need_few_terms(kind, most):
    lr = rates(kind, 20_000, np.random.default_rng(0))
    clock = np.concatenate([[0.0], np.cumsum(lr)])
    until = np.linspace(1, 20_000, 40).astype(int)
    drop, extra = -np.diff(lr, prepend=0.0), np.log(np.maximum(lr, 1e-60))
    found = terms(clock[until], until, clock[:-1], drop, extra)
    got = found.total(saturating(found.lag, found.extra[found.node]))
    wanted, size = literal(saturating, clock[until], until, clock[:-1], drop, extra)
    assert (np.abs(got - wanted) / size).max() < 1e-8
    assert len(found.lag) < most * len(until)


def test_totals_by_parts_are_the_totals():
    lr = rates("noise", 3000, np.random.default_rng(2))
    clock = np.concatenate([[0.0], np.cumsum(lr)])
    until = np.r_[0, np.arange(5, 3000, 9), 0, 2999]
    found = terms(clock[until], until, clock[:-1], lr, np.log(lr))
    assert len(found.lag) > 2 * 2**14
    values = saturating(found.lag, found.extra[found.node])
    both = found.totals(lambda lag, weight, node: [weight * saturating(lag, found.extra[node]), weight])
    np.testing.assert_allclose(both, [found.total(values), found.total(np.ones_like(values))], rtol=1e-13)
    empty = terms(np.array([1.0]), np.array([0]), np.array([0.0]), np.ones(1))
    assert empty.totals(lambda lag, weight, node: [weight, lag]).tolist() == [[0.0], [0.0]]


def test_points_below_their_lag_are_terms_of_their_own():
    place, at = np.arange(4000.0), np.array([4000.0])
    found = terms(at, np.array([4000]), place, np.ones(4000), clear=np.where(place < 64, 1e9, 0.0))
    single = np.flatnonzero(np.isin(found.node, np.arange(64)))
    assert len(single) == 64
    assert found.total(1.0 / (1.0 + found.lag))[0] == pytest.approx((1.0 / np.arange(2.0, 4002.0)).sum(), rel=1e-7)


def test_observations_without_terms_sum_to_nothing():
    found = terms(np.array([0.0, 1.0, 2.0]), np.array([0, 1, 2]), np.array([0.0, 1.0]), np.array([0.0, 3.0]))
    assert found.total(np.ones_like(found.lag)).tolist() == [0.0, 0.0, 3.0]
    found = terms(np.array([1.0]), np.array([2]), np.array([0.0, 1.0]), np.zeros(2))
    assert found.total(np.ones_like(found.lag)).tolist() == [0.0]


def test_nodes_must_be_a_whole_number():
    for nodes in (-1, 2.5):
        with pytest.raises(InputError, match="nodes"):
            terms(np.array([1.0]), np.array([1]), np.array([0.0]), np.ones(1), nodes=nodes)
