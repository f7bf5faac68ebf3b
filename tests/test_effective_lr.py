"""Effective learning rates: protocols on scale-invariant toys, the running mean against its sum, laws that see them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rfsim.checks import InputError
from rfsim.logs import run
from rfsim.schedules import from_arrays
from rfsim.surrogates import law
from rfsim.surrogates.effective_lr import (
    collapse_error,
    effective_lr,
    ema,
    prescribed_norms,
    reference_lr,
    rescaling,
    seed_baseline,
    smoothed_distance,
)

STEPS = 40
TARGET = np.array([[0.3, -0.8], [0.5, 0.1]])
START = np.array([[1.0, 0.4], [-0.2, 0.7]])


def size(matrix):
    return math.sqrt(float((matrix * matrix).sum()))


def sign_update(weights):
    """An update that depends on the direction of the weights only, as those of normalising optimisers."""
    direction = weights / size(weights)
    return np.sign(direction - TARGET) + 0.5 * direction * TARGET


def rates(shape):
    done = np.arange(STEPS) / STEPS
    return 0.05 * {"flat": np.ones(STEPS), "falling": 1.0 - 0.8 * done, "wave": 1.0 + 0.5 * np.sin(9.0 * done)}[shape]


def train(lr, weights, rescale=None):
    """Directions and norms before each update, and the last direction, by the literal loop."""
    directions, norms = [weights / size(weights)], [size(weights)]
    for k in range(len(lr)):
        weights = weights - lr[k] * sign_update(weights)
        if rescale is not None:
            weights = weights * rescale(k, size(weights))
        directions.append(weights / size(weights))
        norms.append(size(weights))
    return np.array(directions), np.array(norms)


# --- protocols -------------------------------------------------------------------------------------------------------


def test_by_hand():
    assert_array_equal(effective_lr([0.5, 0.25, 0.0], [2.0, 0.5, 4.0]), [0.25, 0.5, 0.0])
    assert_array_equal(reference_lr([0.25, 0.5], [8.0, 3.0]), [2.0, 1.5])
    found = prescribed_norms([1.0, 2.0, 1.0], [0.5, 0.25, 0.125], 6.0)
    assert found.lr_factor == 3.0
    assert_array_equal(found.lr, [3.0, 6.0, 3.0])
    assert_array_equal(found.target, [6.0, 24.0, 24.0])
    assert_array_equal(rescaling(found.target[1:], [12.0, 6.0]), [2.0, 4.0])


@pytest.mark.parametrize("shape", ["flat", "falling", "wave"])
def test_prescribed_norms_follow_the_effective_lr_of_another_run(shape):
    directions, norms = train(rates("falling"), START)
    wanted = effective_lr(rates("falling"), norms[:-1])
    plan = prescribed_norms(rates(shape), wanted, size(START))
    assert plan.target[0] == pytest.approx(size(START), rel=1e-15)
    after = np.append(plan.target[1:], plan.target[-1])
    found, sizes = train(plan.lr, START, lambda k, norm: float(rescaling(after[k : k + 1], [norm])[0]))
    assert_allclose(sizes[:-1], plan.target, rtol=1e-13)
    assert_allclose(found, directions, atol=1e-12)
    if shape != "falling":  # without the rescaling the run goes elsewhere
        assert np.abs(train(plan.lr, START)[0] - directions).max() > 1e-3


def test_reference_protocol_follows_from_other_norms():
    """B starts with five times the weights of A, takes lr = ELR_A ||W_B|| step by step, and goes the same way."""
    directions, norms = train(rates("wave"), START)
    wanted = effective_lr(rates("wave"), norms[:-1])
    weights, found = 5.0 * START, [START / size(START)]
    for k in range(STEPS):
        weights = weights - reference_lr(wanted[k : k + 1], [size(weights)])[0] * sign_update(weights)
        found.append(weights / size(weights))
    assert_allclose(np.array(found), directions, atol=1e-12)


def test_hyperball_lr_over_the_norm_of_the_update():
    """One hyperball update turns the weights as a direct one of equal effective lr does, whatever the size of U."""
    radius, update = size(START), np.array([[2.0, -7.0], [0.3, 1.1]])
    lr = 0.2
    moved = START - lr * radius * update / size(update)
    ball = radius * moved / size(moved)
    rate = effective_lr([lr], [size(update)])
    direct = START - reference_lr(rate, [radius])[0] * update
    assert_allclose(ball / size(ball), direct / size(direct), rtol=1e-14)
    assert rate[0] == pytest.approx(0.2 / size(update), rel=1e-15)


def test_protocol_errors():
    with pytest.raises(InputError, match="norm"):
        effective_lr([0.1], [0.0])
    with pytest.raises(InputError, match="same length"):
        effective_lr([0.1, 0.2], [1.0])
    with pytest.raises(InputError, match="lr"):
        effective_lr([-0.1], [1.0])
    with pytest.raises(InputError, match="effective"):
        reference_lr([-1.0], [1.0])
    with pytest.raises(InputError, match="lr"):
        prescribed_norms([0.0, 1.0], [1.0, 1.0], 1.0)
    with pytest.raises(InputError, match="effective"):
        prescribed_norms([1.0, 1.0], [1.0, 0.0], 1.0)
    with pytest.raises(InputError, match="first_norm"):
        prescribed_norms([1.0], [1.0], -2.0)
    with pytest.raises(InputError, match="target"):
        rescaling([0.0], [1.0])


# --- running mean and distances --------------------------------------------------------------------------------------


def literal_ema(values, decay):
    return [
        math.fsum(decay ** (k - j) * values[j] for j in range(k + 1))
        / math.fsum(decay ** (k - j) for j in range(k + 1))
        for k in range(len(values))
    ]


@given(
    st.lists(st.floats(-10.0, 10.0), min_size=1, max_size=30), st.sampled_from([0.0, 0.3, 0.9, 0.99, 1.0 - 2.0**-20])
)
def test_running_mean_is_the_weighted_sum(values, decay):
    assert_allclose(ema(values, decay), literal_ema(values, decay), atol=1e-9)


def test_running_mean_by_hand():
    assert_allclose(ema([4.0, 1.0, 1.0], 0.5), [4.0, 2.0, 10.0 / 7.0], rtol=1e-15)
    assert_array_equal(ema(np.full(500, 3.7)), np.full(500, 3.7))
    assert_array_equal(ema([1.0, 2.0, 5.0], 0.0), [1.0, 2.0, 5.0])
    late = ema(np.where(np.arange(3000) < 1500, 0.0, 1.0))
    assert late[1500 + 99] == pytest.approx(1.0 - 0.99**100, rel=1e-6)
    for wrong in (1.0, -0.1, math.nan):
        with pytest.raises(InputError, match="decay"):
            ema([1.0], wrong)


def test_distance_by_hand():
    """Means (1, 2, 3) and (0, 1, 3) at decay 0 differ by 1, 1, 0; with one row skipped by 1/2 on average."""
    assert smoothed_distance([1.0, 2.0, 3.0], [0.0, 1.0, 3.0], decay=0.0) == pytest.approx(2.0 / 3.0, rel=1e-15)
    assert smoothed_distance([1.0, 2.0, 3.0], [0.0, 1.0, 3.0], decay=0.0, skip=1) == 0.5
    halved = smoothed_distance([1.0, 2.0], [0.0, 4.0], decay=0.5)  # means 1, 5/3 and 0, 8/3
    assert halved == pytest.approx(1.0, rel=1e-15)
    with pytest.raises(InputError, match="skip"):
        smoothed_distance([1.0], [1.0], skip=1)


def log(steps, loss, name="log", warmup=0, norm=None, lr=0.1):
    schedule = from_arrays(lr, np.ones(100)) if np.ndim(lr) == 0 else from_arrays(lr, 1.0)
    return run(steps, loss, schedule, name=name, warmup=warmup, norm=norm)


def test_collapse_error_joins_on_steps_and_leaves_the_warmup_out():
    a = log([1, 2, 4, 6, 8], [5.0, 4.0, 3.0, 2.5, 2.0], warmup=2)
    b = log([2, 4, 5, 8, 9], [4.5, 3.5, 9.0, 2.5, 9.0])
    assert collapse_error(a, b, decay=0.0) == 0.5  # common steps 2, 4, 8, of which 2 is warm-up
    mean_a, mean_b = literal_ema([4.0, 3.0, 2.0], 0.99), literal_ema([4.5, 3.5, 2.5], 0.99)
    by_hand = np.mean(np.abs(np.subtract(mean_a, mean_b))[1:])
    assert collapse_error(a, b) == pytest.approx(by_hand, rel=1e-12)
    assert collapse_error(a, b, warmup=0, decay=0.0) == collapse_error(b, a, warmup=0, decay=0.0) == 0.5
    assert collapse_error(a, a) == 0.0
    with pytest.raises(InputError, match="common step"):
        collapse_error(a, b, warmup=8)
    with pytest.raises(InputError, match="common step"):
        collapse_error(a, log([3, 5], [1.0, 1.0]))


def test_seed_baseline_is_the_mean_over_pairs():
    """Losses 1, 2, 4 at every row: pairs are 1, 2 and 3 apart."""
    runs = [log([1, 2, 3], np.full(3, level)) for level in (1.0, 2.0, 4.0)]
    assert seed_baseline(runs) == pytest.approx(2.0, rel=1e-12)
    with pytest.raises(InputError, match="at least 2"):
        seed_baseline(runs[:1])


# --- the laws --------------------------------------------------------------------------------------------------------


def test_effective_rate_law_sees_the_ratio_and_the_rate_law_does_not():
    steps = 300
    norm = 4.0 + 3.0 * np.sqrt(np.arange(steps) / steps)
    lr = 0.3 * np.linspace(1.0, 0.1, steps)
    other = norm * np.exp(np.linspace(0.0, 1.0, steps))
    rows = np.arange(10, steps + 1, 10)
    a = log(rows, np.full(len(rows), 3.0), lr=lr, norm=norm)
    b = log(rows, np.full(len(rows), 3.0), lr=reference_lr(effective_lr(lr, norm), other), norm=other)
    values = np.array([2.65, 0.8, 3.0, 0.45, 5.0, 2.0, 1.3])

    def predicted(name, one, unit):
        chosen = law(name, rate_unit=unit)
        return chosen.evaluate(values, chosen.prepare(one), gradient=False)[0]

    assert_allclose(predicted("elr-fsl", a, 0.05), predicted("elr-fsl", b, 0.05), rtol=1e-13)
    assert np.abs(predicted("lr-fsl", a, 0.3) - predicted("lr-fsl", b, 0.3)).max() > 0.05
    unit = law("elr-fsl").calibrated([a]).rate_unit
    assert unit == pytest.approx(law("elr-fsl").calibrated([b]).rate_unit, rel=1e-14)
