"""Sizes for a budget, for a loss and for a loss that is served, against numeric minimisation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from rfsim.checks import InputError
from rfsim.surrogates.allocation import (
    break_even,
    compute_optimal,
    compute_optimal_for_loss,
    exponents,
    iso_flop,
    optimum_spread,
    serving_optimal,
    tokens_for_loss,
)

REFIT = {"E": 1.8172, "A": 482.01, "B": 2085.43, "alpha": 0.3478, "beta": 0.3658}  # of theory 7.5
VALUES = np.array(list(REFIT.values()))

laws = st.tuples(
    st.floats(0.0, 3.0), st.floats(1.0, 1e4), st.floats(1.0, 1e4), st.floats(0.15, 0.8), st.floats(0.15, 0.8)
)


def excess_at(values, size, tokens):
    """L - E, literally."""
    _, a, b, alpha, beta = values
    return a * size**-alpha + b * tokens**-beta


def least(cost, low, high):
    """Where a cost of log N is least; its logarithm, so that 1e-8 of N can be seen."""
    return math.exp(minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 1e-10}).x)


def test_exponents_of_the_published_refit():
    size, tokens = exponents(REFIT)
    assert round(size, 4) == 0.5126
    assert size + tokens == pytest.approx(1.0, rel=1e-15)
    two = compute_optimal(REFIT, np.array([1e20, 1e22]))
    np.testing.assert_allclose(np.diff(np.log(two.model_size)), size * math.log(100.0), rtol=1e-12)
    np.testing.assert_allclose(np.diff(np.log(two.tokens)), tokens * math.log(100.0), rtol=1e-12)


@given(laws, st.floats(18.0, 26.0), st.floats(1.0, 12.0))
def test_the_budget_is_spent_at_the_least_loss(values, log_compute, kc):
    compute = 10.0**log_compute
    best = compute_optimal(values, compute, kc=kc)

    def cost(log_size):
        return math.log(excess_at(values, math.exp(log_size), compute / kc / math.exp(log_size)))

    centre = math.log(best.model_size)
    found = least(cost, centre - 3.0, centre + 3.0)
    np.testing.assert_allclose(best.model_size, found, rtol=1e-6)
    np.testing.assert_allclose(kc * best.model_size * best.tokens, compute, rtol=1e-11)
    np.testing.assert_allclose(best.loss, values[0] + excess_at(values, best.model_size, best.tokens), rtol=1e-11)
    np.testing.assert_allclose(best.training, compute, rtol=1e-11)
    assert best.serving == 0.0


@given(laws, st.floats(18.0, 26.0))
def test_iso_flop_curve(values, log_compute):
    compute = 10.0**log_compute
    best = compute_optimal(values, compute)
    sizes = best.model_size * np.array([0.01, 0.9, 1.0, 1.1, 100.0])
    curve = iso_flop(values, compute, sizes)
    expected = [values[0] + excess_at(values, size, compute / (6.0 * size)) for size in sizes]
    np.testing.assert_allclose(curve, expected, rtol=1e-12)
    np.testing.assert_allclose(curve[2], best.loss, rtol=1e-11)
    assert curve[0] > curve[1] > curve[2] < curve[3] < curve[4]


@given(laws, st.floats(1e-3, 1.0), st.floats(1.0, 12.0))
def test_the_cheapest_run_of_a_loss(values, excess, kc):
    loss = values[0] + excess
    best = compute_optimal_for_loss(values, loss, kc=kc)
    back = compute_optimal(values, best.training, kc=kc)  # what this budget reaches is this loss, with the same sizes
    np.testing.assert_allclose(back.loss, loss, rtol=1e-10)
    np.testing.assert_allclose(back.model_size, best.model_size, rtol=1e-7)
    np.testing.assert_allclose(back.tokens, best.tokens, rtol=1e-7)
    np.testing.assert_allclose(tokens_for_loss(values, loss, best.model_size), best.tokens, rtol=1e-7)


def test_arrays_of_budgets_and_losses():
    budgets = np.geomspace(1e18, 1e24, 7)
    best = compute_optimal(REFIT, budgets)
    assert best.model_size.shape == best.total.shape == (7,)
    again = compute_optimal_for_loss(REFIT, best.loss)
    np.testing.assert_allclose(again.training, budgets, rtol=1e-9)


def test_a_small_model_reaches_a_loss_on_many_tokens_or_never():
    best = compute_optimal(REFIT, 1e22)
    least_size = (482.01 / (float(best.loss) - 1.8172)) ** (1.0 / 0.3478)
    size = np.array([1.01, 2.0, 10.0]) * least_size
    tokens = tokens_for_loss(REFIT, float(best.loss), size)
    np.testing.assert_allclose(1.8172 + excess_at(VALUES, size, tokens), float(best.loss), rtol=1e-12)
    assert (np.diff(tokens) < 0.0).all()
    with pytest.raises(InputError, match=r"cannot reach the loss .* on any number of tokens; take a size above"):
        tokens_for_loss(REFIT, float(best.loss), 0.99 * least_size)


# --- serving ---------------------------------------------------------------------------------------------------------


@given(
    laws,
    st.floats(0.01, 1.0),
    st.floats(-6.0, 6.0),
    st.floats(1.0, 12.0),
    st.floats(0.1, 4.0),
)
def test_serving_against_numeric_minimisation(values, excess, log_ratio, kc, ki):
    loss = values[0] + excess
    alone = compute_optimal_for_loss(values, loss, kc=kc)
    served = float(alone.tokens) * 10.0**log_ratio
    best = serving_optimal(values, loss, queries=served / 500.0, tokens_per_query=500.0, kc=kc, ki=ki)

    def cost(log_size):
        size = math.exp(log_size)
        left = excess - values[1] * size ** -values[3]
        if left <= 0.0:
            return math.inf
        return math.log(kc * size * (values[2] / left) ** (1.0 / values[4]) + ki * size * served)

    floor = math.log(values[1] / excess) / values[3]  # the smallest size that reaches the loss, at any cost
    found = least(cost, floor, math.log(alone.model_size) + 1e-3)
    np.testing.assert_allclose(math.log(best.total), cost(math.log(found)), atol=1e-9)
    np.testing.assert_allclose(best.model_size, found, rtol=2e-6)
    np.testing.assert_allclose(excess_at(values, best.model_size, best.tokens), excess, rtol=1e-9)
    np.testing.assert_allclose(best.training, kc * best.model_size * best.tokens, rtol=1e-12)
    np.testing.assert_allclose(best.serving, ki * best.model_size * served, rtol=1e-12)
    np.testing.assert_allclose(best.loss, loss, rtol=1e-14)


def test_without_queries_serving_changes_nothing():
    alone = compute_optimal_for_loss(REFIT, 2.1)
    for queries, each in ((0.0, 1e3), (1e6, 0.0)):
        best = serving_optimal(REFIT, 2.1, queries=queries, tokens_per_query=each)
        np.testing.assert_allclose(best.model_size, alone.model_size, rtol=1e-12)
        np.testing.assert_allclose(best.total, alone.training, rtol=1e-12)
    nearly = serving_optimal(REFIT, 2.1, queries=1e-20, tokens_per_query=1.0)
    np.testing.assert_allclose(nearly.model_size, alone.model_size, rtol=1e-12)


def test_more_queries_make_the_model_smaller_and_its_training_longer():
    best = [serving_optimal(REFIT, 2.1, queries=10.0**power, tokens_per_query=1e3) for power in range(4, 40, 2)]
    size, tokens = np.array([b.model_size for b in best]), np.array([b.tokens for b in best])
    assert (np.diff(size) < 0.0).all()
    assert (np.diff(tokens) > 0.0).all()
    # never below the size that reaches the loss on endless data
    assert size[-1] > (482.01 / (2.1 - 1.8172)) ** (1.0 / 0.3478)


@pytest.mark.parametrize("share", [0.5, 0.8, 0.999])
def test_both_models_cost_the_same_at_the_break_even(share):
    best = compute_optimal_for_loss(REFIT, 2.1)
    size = share * float(best.model_size)
    tokens = float(tokens_for_loss(REFIT, 2.1, size))
    at = break_even(REFIT, 2.1, size, tokens_per_query=700.0, kc=5.0, ki=1.5)
    assert at > 0.0

    def more(queries):
        """What the smaller model costs more."""
        small = 5.0 * size * tokens + 1.5 * size * 700.0 * queries
        return small / (5.0 * best.model_size * best.tokens + 1.5 * best.model_size * 700.0 * queries) - 1.0

    assert abs(more(at)) < 1e-9
    assert more(0.5 * at) > 0.0 > more(2.0 * at)


def test_a_slightly_smaller_model_pays_at_once():
    """Its training costs more in second order only, and it serves for less in first order."""
    best = compute_optimal_for_loss(REFIT, 2.1)
    at = [break_even(REFIT, 2.1, (1.0 - e) * float(best.model_size), tokens_per_query=1e3) for e in (1e-2, 1e-3)]
    assert at[0] / at[1] == pytest.approx(10.0, rel=0.05)


@pytest.mark.parametrize(
    ("share", "words"), [(1.0, "is not below the compute-optimal"), (2.0, "is not below"), (0.01, "cannot reach")]
)
def test_no_break_even(share, words):
    size = share * float(compute_optimal_for_loss(REFIT, 2.1).model_size)
    with pytest.raises(InputError, match=words):
        break_even(REFIT, 2.1, size, tokens_per_query=1e3)


# --- uncertainty -----------------------------------------------------------------------------------------------------


def logs(values, compute):
    best = compute_optimal(values, compute)
    return np.array([math.log(best.model_size), math.log(best.tokens), math.log(exponents(values)[0])])


def slopes(compute):
    """Derivatives (3, 5) of `logs` by E, log A, log B, alpha, beta, by central differences."""
    found = np.empty((3, 5))
    for at in range(5):
        step = np.zeros(5)
        step[at] = 1e-5 * VALUES[at]
        found[:, at] = (logs(VALUES + step, compute) - logs(VALUES - step, compute)) / (2.0 * step[at])
    found[:, 1:3] *= VALUES[1:3]
    return found


def test_spread_from_samples_has_the_percentiles_of_the_samples():
    rng = np.random.default_rng(4)
    samples = VALUES * np.exp(0.02 * rng.standard_normal((400, 5)))
    found = optimum_spread(REFIT, 1e23, samples=samples)
    drawn = np.array([logs(one, 1e23) for one in samples])
    assert list(found) == ["model_size", "tokens", "size_exponent"]
    narrow = optimum_spread(REFIT, 1e23, samples=samples, level=0.5)
    for at, (one, half) in enumerate(zip(found.values(), narrow.values(), strict=True)):
        np.testing.assert_allclose(one.value, math.exp(logs(VALUES, 1e23)[at]), rtol=1e-10)
        np.testing.assert_allclose([half.low, half.high], np.exp(np.percentile(drawn[:, at], [25, 75])), rtol=1e-9)
        np.testing.assert_allclose(one.log_stderr, np.std(drawn[:, at], ddof=1), rtol=1e-9)
        np.testing.assert_allclose([one.low, one.high], np.exp(np.percentile(drawn[:, at], [2.5, 97.5])), rtol=1e-9)
        assert one.low < one.value < one.high
    moved = samples.copy()
    moved[:, 1:3] = np.log(samples[:, 1:3])
    first_order = np.sqrt(np.diag(slopes(1e23) @ np.cov(moved.T) @ slopes(1e23).T))
    for one, wanted in zip(found.values(), first_order, strict=True):
        assert one.log_stderr == pytest.approx(wanted, rel=0.1)  # the spread of the samples is small


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: compute_optimal({**REFIT, "A": 0.0}, 1e20), "A, B, alpha, beta > 0"),
        (lambda: compute_optimal({"E": 1.0}, 1e20), "'A' is unknown or missing"),
        (lambda: compute_optimal(REFIT, -1.0), "compute must be positive"),
        (lambda: compute_optimal(REFIT, [[1.0]]), "compute must be positive and finite, a number or a 1-d array"),
        (lambda: compute_optimal(REFIT, 1e20, kc=0.0), "kc must be positive"),
        (lambda: compute_optimal_for_loss(REFIT, 1.8), "loss must be above its limit E = 1.8172"),
        (lambda: compute_optimal_for_loss(REFIT, math.inf), "loss must be positive and finite"),
        (lambda: iso_flop(REFIT, 1e20, [0.0]), "model_size must be positive"),
        (lambda: serving_optimal(REFIT, 2.1, queries=-1.0, tokens_per_query=1.0), "queries must not be negative"),
        (lambda: serving_optimal(REFIT, 1.0, queries=1.0, tokens_per_query=1.0), "above its limit"),
        (lambda: serving_optimal(REFIT, 2.1, queries=1.0, tokens_per_query=1.0, ki=0.0), "ki must be positive"),
        (lambda: break_even(REFIT, 2.1, 1e9, tokens_per_query=0.0), "tokens_per_query must be positive"),
        (lambda: optimum_spread(REFIT, 1e20, samples=np.ones((9, 4))), r"samples must have the shape \(R, 5\)"),
        (lambda: optimum_spread(REFIT, 1e20, samples=np.ones((9, 5)), level=1.0), "level must be below 1"),
    ],
)
def test_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()
