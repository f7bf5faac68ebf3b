"""Designed schedules: slopes against differences, optima against enumeration, bounds, errors and what is told."""

import itertools
import json
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from test_cli import ask, call

import rfsim
from rfsim import schedules
from rfsim.logs import NormModel, run
from rfsim.surrogates import FitResult, fit, law
from rfsim.surrogates.design_search import block_means, denser, knots, layout, settle, slack
from rfsim.surrogates.design_task import Task
from rfsim.surrogates.laws import needs_norm
from rfsim.surrogates.run_record import as_run
from rfsim.surrogates.schedule_design import design
from rfsim.surrogates.sensitivity import final_loss_and_slope

PEAK, BATCH = 1e-3, 64.0
FORCING_MEMORY = [2.5, 3.0, 0.35, 0.05, 0.4, 0.3, 1.1]
UNITS = {"lr_unit": PEAK, "batch_unit": BATCH}
# law and values that are like those of fits, with every option that changes a formula
LAWS = {
    "forcing-memory": (law("forcing-memory", **UNITS), FORCING_MEMORY),
    "forcing-memory, clock 1/2": (law("forcing-memory", clock_power=0.5, **UNITS), FORCING_MEMORY),
    "forcing-memory, other powers": (
        law("forcing-memory", clock_power=0.7, forcing_power=1.2, injection_power=2.2, q_memory=1.0, **UNITS),
        FORCING_MEMORY[:6],
    ),
    "forcing-memory, late power": (law("forcing-memory", forcing_start=3.0, **UNITS), FORCING_MEMORY),
    "fsl": (law("fsl", lr_unit=PEAK), [2.5, 3.0, 0.35, 0.05, 0.01, 0.3, 1.1]),
    "fsl, warm-up": (law("fsl", lr_unit=PEAK, warmup_in_memory=True, q_memory=0.6), [2.5, 3.0, 0.35, 0.05, 0.01, 0.3]),
    "multi-power": (law("multi-power"), [3.04, 0.525, 0.508, 363.8, 2.07, 0.583, 0.641]),
    "multi-power, no warm-up": (
        law("multi-power", warmup_in_memory=False),
        [3.04, 0.525, 0.508, 200.0, 2.07, 0.583, 0],
    ),
    "momentum": (law("momentum", lr_unit=PEAK), [2.5, 3.0, 0.35, 1e-3, 40.0]),
    "momentum, warm-up": (law("momentum", lr_unit=PEAK, lam=0.95, warmup_in_memory=True), [2.5, 3.0, 0.35, 1e-3]),
    "lr-fsl": (law("lr-fsl", rate_unit=PEAK), [2.5, 3.0, 20.0, 0.35, 0.05, 2.0, 1.1]),
    "elr-fsl": (law("elr-fsl", rate_unit=0.1), [2.5, 3.0, 20.0, 0.35, 0.05, 2.0, 1.1]),
    "forcing-memory, effective": (
        law("forcing-memory", clock_power=0.5, effective=True, lr_unit=0.1, batch_unit=BATCH),
        FORCING_MEMORY,
    ),
}
NORM = NormModel(5.0, 0.02)  # it settles at .01 within some 100 steps of the largest lr
every_law = pytest.mark.parametrize("name", LAWS)


def of(name):
    """Law and its values as an array."""
    one, values = LAWS[name]
    return one, np.array(values, dtype=np.float64)


def norm_of(one):
    """The model of the norm for a law that needs one."""
    return NORM if needs_norm(one) else None


def designed(one, values, *arguments, **options):
    """The design under a law and its values, with the norm if it needs one."""
    return design((one, values), *arguments, norm=norm_of(one), **options)


def loss_of(one, values, schedule):
    """Loss of the law after the last step, all steps used."""
    ready = one.prepare(as_run(schedule, [schedule.steps], norm=norm_of(one)))
    return one.evaluate(np.asarray(values, dtype=np.float64), ready, gradient=False)[0][0]


def singly(one, values, lr, batch=BATCH):
    """`final_loss_and_slope` with every update a block."""
    return final_loss_and_slope(one, values, lr, np.ones(len(lr)), np.broadcast_to(batch, lr.shape), norm_of(one))


# --- the final loss and its slope ------------------------------------------------------------------------------------


@every_law
@pytest.mark.parametrize("spec", ["cosine:to=0.1,warmup=37", "wsd:decay=0.3,shape=linear,to=0.02", "8-1-1:warmup=10"])
def test_final_loss_is_that_of_the_law(name, spec):
    one, values = of(name)
    schedule = schedules.from_spec(spec, steps=700, lr=PEAK, batch=BATCH)
    exact = 1e-9 if "forcing" not in name else 5e-6  # that law draws lines through the batch and the lr itself
    assert_allclose(singly(one, values, schedule.lr)[0], loss_of(one, values, schedule), rtol=exact)


def test_final_loss_sees_the_batch_of_every_step():
    one, values = of("forcing-memory")
    schedule = schedules.from_spec("batch-ramp:to=8,start=0.4", steps=500, lr=PEAK, batch=BATCH)
    assert_allclose(singly(one, values, schedule.lr, schedule.batch)[0], loss_of(one, values, schedule), rtol=5e-6)
    assert singly(one, values, schedule.lr)[0] > singly(one, values, schedule.lr, schedule.batch)[0] + 1e-3


@every_law
def test_slope_is_the_derivative_in_every_direction(name):
    one, values = of(name)
    lr = np.asarray(schedules.cosine(300, PEAK, BATCH, to=0.1, warmup=20).lr)
    lr = lr * np.linspace(1.0, 0.95, 300)  # no two neighbours equal
    slope = singly(one, values, lr)[1]
    directions = np.random.default_rng(5).uniform(-1.0, 1.0, (6, 300))
    directions = np.concatenate([directions, np.eye(300)[[0, 7, 150, 298, 299]]])
    for direction in directions * lr:
        h = 1e-5 * 0.5
        higher, lower = (singly(one, values, lr + sign * h * direction)[0] for sign in (1, -1))
        scale = np.abs(slope * direction).sum()
        assert_allclose((higher - lower) / (2 * h), slope @ direction, rtol=1e-6, atol=1e-6 * scale + 1e-9)


def test_laws_without_a_slope_say_so():
    one, values = of("elr-fsl")
    with pytest.raises(rfsim.InputError, match=r"norm_model is missing: elr-fsl needs the norms"):
        final_loss_and_slope(one, values, np.full(5, PEAK), np.ones(5), np.ones(5))
    with pytest.raises(rfsim.InputError, match="no units yet"):
        singly(law("fsl"), np.ones(7), np.full(5, PEAK))

    class Other:
        name = "other"

    with pytest.raises(rfsim.InputError, match="law other has no derivative"):
        singly(Other(), np.ones(7), np.full(5, PEAK))


# --- blocks and knots ------------------------------------------------------------------------------------------------


@given(st.integers(1, 20_000), st.data())
def test_blocks_hold_every_update_once_and_are_short_near_the_ends(steps, data):
    warmup = data.draw(st.integers(0, steps - 1))
    places = knots(steps, warmup, data.draw(st.integers(2, 60)))
    assert places[0] == warmup
    assert places[-1] == steps - 1
    assert (np.diff(places) > 0).all()
    assert set(places) <= set(denser(places))
    laid = layout(steps, warmup, np.full(steps, BATCH), places, linear=True)
    assert laid.first[0] == 0
    assert_array_equal(np.append(laid.first[1:], steps), laid.first + laid.updates)
    assert set(places) <= set(laid.first)
    nearer = np.minimum(laid.first + laid.updates, steps - laid.first)
    assert (laid.updates <= np.maximum(nearer / 100.0, 1.0) + 1).all()
    assert len(laid.first) <= 400 * (2.0 + np.log(max(steps / 400.0, 1.0))) + len(places)


@pytest.mark.parametrize("linear", [True, False])
def test_blocks_have_the_mean_of_their_updates(linear):
    steps, warmup = 9000, 300
    batch = np.linspace(8.0, 64.0, steps)
    one, values = of("fsl")
    task = Task(one, values, steps, batch, warmup, 0.0, PEAK, None)
    places = knots(steps, warmup, 9)
    levels = PEAK * np.linspace(1.0, 0.1, len(places)) ** 2
    lr = task.between(places, levels, linear=linear)
    laid = layout(steps, warmup, batch, places, linear=linear)
    stops = laid.first + laid.updates
    literal = [lr[a:b].mean() for a, b in zip(laid.first, stops, strict=True)]
    assert_allclose(laid.weights @ levels, literal, rtol=1e-12)
    assert_allclose(block_means(lr, laid), literal, rtol=1e-12)
    assert_allclose(laid.batch, [1.0 / np.mean(1.0 / batch[a:b]) for a, b in zip(laid.first, stops, strict=True)])
    assert_allclose((laid.back @ np.arange(len(laid.first))), np.arange(len(laid.first)) @ laid.weights.toarray())
    assert_allclose(lr[:warmup], PEAK * np.arange(1, warmup + 1) / warmup)  # the first level is the peak


@every_law
def test_blocks_have_nearly_the_loss_of_all_updates(name):
    one, values = of(name)
    schedule = schedules.cosine(20_000, PEAK, BATCH, to=0.1, warmup=200)
    laid = layout(20_000, 200, np.asarray(schedule.batch), np.array([200]), linear=False)
    assert len(laid.first) < 3000
    found = final_loss_and_slope(one, values, block_means(schedule.lr, laid), laid.updates, laid.batch, norm_of(one))[0]
    assert_allclose(found, loss_of(one, values, schedule), rtol=2e-4)


# --- the search ------------------------------------------------------------------------------------------------------


def test_settle_solves_a_monotone_least_squares_problem():
    """Distance to a target: the answer is the isotonic regression within bounds, by pooling neighbours literally."""
    target = np.array([0.7, 0.9, 0.2, 0.5, 0.45, 1.4, 0.05, -0.3])

    def evaluate(levels):
        return 1.0 + float(np.sum((levels - target) ** 2)), 2.0 * (levels - target)

    pools = []
    for value in target:
        pools.append([value])
        while len(pools) > 1 and np.mean(pools[-2]) < np.mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    expected = np.clip(np.concatenate([[np.mean(pool)] * len(pool) for pool in pools]), 0.1, 0.75)
    for start in (np.full(8, 0.75), np.full(8, 0.1), np.linspace(0.75, 0.1, 8)):
        levels, loss = settle(evaluate, start, 0.1, 0.75)
        assert_allclose(levels, expected, atol=2e-4)
        assert_allclose(loss, evaluate(expected)[0], atol=1e-6)
        assert slack(levels, evaluate(levels)[1], 0.1, 0.75) < 1e-3


def test_slack_is_the_best_first_order_gain_of_any_step_function():
    one, values = of("forcing-memory")
    lr = np.linspace(1.0, 0.2, 40) * PEAK
    slope = singly(one, values, lr)[1]
    gains = []
    for fall in range(41):
        target = np.where(np.arange(40) < fall, PEAK, 0.1 * PEAK)
        small = 1e-5
        gains.append((singly(one, values, lr)[0] - singly(one, values, lr + small * (target - lr))[0]) / small)
    assert_allclose(slack(lr, slope, 0.1 * PEAK, PEAK), max(gains), rtol=1e-3)
    assert max(gains) > 1e-3


@pytest.mark.parametrize(
    "name",
    [
        "forcing-memory",
        "forcing-memory, clock 1/2",
        "forcing-memory, effective",
        "fsl",
        "multi-power",
        "momentum",
        "lr-fsl",
        "elr-fsl",
    ],
)
def test_three_knots_against_all_levels_of_a_grid(name):
    one, values = of(name)
    places = [0, 40, 79]
    found = designed(one, values, 80, lr_max=PEAK, lr_min=0.05 * PEAK, batch=BATCH, places=places)
    grid = PEAK * np.linspace(0.05, 1.0, 14)
    step = np.arange(80)
    best = min(
        loss_of(one, values, schedules.from_arrays(np.interp(step, places, levels), BATCH))
        for levels in itertools.product(grid, grid, grid)
        if levels[0] >= levels[1] >= levels[2]
    )
    assert found.loss <= best + 1e-5  # the grid can be better by what the search's own loss is off
    assert found.loss >= best - 0.02 * abs(singly(one, values, np.full(80, PEAK))[0] - best) - 2e-3
    assert_array_equal(found.places, places)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("forcing-memory", FORCING_MEMORY),
        ("multi-power", [3.04, 0.1, 0.508, 363.8, 2.07, 0.583, 0.641]),
        ("momentum", [2.5, 0.5, 0.35, 0.02, 40.0]),
    ],
)
def test_two_stages_against_all_places_and_levels(name, values):
    one = LAWS[name][0]
    found = designed(one, values, 40, lr_max=PEAK, lr_min=0.0, batch=BATCH, stages=2)
    lr = np.asarray(found.schedule.lr)
    assert lr[0] > lr[-1]
    assert_array_equal(found.places, [0, np.argmin(lr)])
    assert_array_equal(lr, np.where(np.arange(40) < np.argmin(lr), lr[0], lr[-1]))
    levels = PEAK * np.linspace(0.0, 1.0, 11)
    best = min(
        loss_of(one, values, schedules.from_arrays(np.where(np.arange(40) < place, high, low), BATCH))
        for place in range(2, 40, 2)
        for high, low in itertools.product(levels[1:], levels)
        if low <= high
    )
    assert found.loss <= best + 1e-5
    assert found.loss == pytest.approx(loss_of(one, values, found.schedule), rel=1e-12)


# --- cases with a known answer ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_without_memory_the_largest_lr_is_best(power):
    one = law("forcing-memory", clock_power=power, **UNITS)
    found = design((one, [2.0, 3.0, 0.4, 0.0, 0.0, 0.3, 1.1]), 200, lr_max=PEAK, warmup=10, batch=BATCH)
    assert_allclose(found.schedule.lr, schedules.from_spec("constant:warmup=10", steps=200, lr=PEAK, batch=1.0).lr)
    assert found.best == "constant:warmup=10"
    assert found.gain == 0.0
    assert found.notes[0].startswith("no schedule was found that is better than constant")
    assert found.slack <= 1e-12
    clock = np.arange(1, 11).sum() / 10 + 190
    assert found.loss == pytest.approx(2.0 + 3.0 * (1.0 + clock) ** -0.4, rel=1e-12)


@pytest.mark.parametrize("name", ["forcing-memory", "lr-fsl"])
def test_without_forcing_the_lowest_lr_is_best(name):
    one = LAWS[name][0]
    values = [2.0, 0.0, 0.4, 0.05, 0.0, 0.3, 1.1] if name == "forcing-memory" else [2.0, 0, 20.0, 0.4, 0.05, 2.0, 1.1]
    found = designed(one, values, 120, lr_max=PEAK, lr_min=0.1 * PEAK, batch=BATCH)
    assert_allclose(found.schedule.lr, 0.1 * PEAK, rtol=2e-3)
    lowest = loss_of(one, values, schedules.constant(120, 0.1 * PEAK, BATCH))
    assert found.loss == pytest.approx(lowest, abs=1e-6 * lowest)


def test_no_training_at_all_is_not_a_schedule():
    one, values = LAWS["forcing-memory"][0], [2.0, 0.0, 0.4, 0.05, 0.0, 0.3, 1.1]
    found = designed(one, values, 60, lr_max=PEAK, batch=BATCH)
    assert found.schedule.lr[0] > 0.0
    assert found.loss == pytest.approx(2.0, abs=1e-3)
    with pytest.raises(rfsim.InputError, match="no training at all is best"):
        designed(one, values, 60, lr_max=PEAK, batch=BATCH, stages=1)
    with pytest.raises(rfsim.InputError, match=r"end is 0.0, and the schedule has no other step"):
        designed(one, values, 1, lr_max=PEAK, end=0.0)


@every_law
def test_a_single_step_is_designed(name):
    one, values = of(name)
    found = designed(one, values, 1, lr_max=PEAK, batch=BATCH)
    losses = [loss_of(one, values, schedules.constant(1, lr, BATCH)) for lr in PEAK * np.linspace(0.01, 1.0, 100)]
    assert found.loss == pytest.approx(min(losses), rel=1e-4)


def test_momentum_law_falls_within_one_step_at_the_best_place():
    """The gain of a fall is linear in it and the rest convex in the clock: one fall from the top to the bottom."""
    one, values, steps, low = LAWS["momentum"][0], [2.5, 3.0, 0.35, 5e-3, 40.0], 400, 0.1 * PEAK
    at = [
        loss_of(one, values, schedules.from_arrays(np.where(np.arange(steps) < place, PEAK, low), BATCH))
        for place in range(1, steps)
    ]
    found = designed(one, values, steps, lr_max=PEAK, lr_min=low, batch=BATCH)
    assert found.loss == pytest.approx(min(at), rel=1e-9)
    fall = int(np.flatnonzero(np.diff(found.schedule.lr) < -0.5 * PEAK)[0]) + 1
    assert fall == 1 + int(np.argmin(at))
    assert any("within one step" in note and f"after step {fall - 1}" in note for note in found.notes)
    assert found.slack < 1e-6


@pytest.mark.parametrize(("q", "noise"), [(0.8, 1e-3), (2.0, 5e-3)])
def test_forcing_memory_falls_as_the_root_of_its_kernel(q, noise):
    """Constant noise: with x the clock that is left, d/d eta of A_0 k(x) eta + mu/eta is 0 for eta ~ k(x)^(-1/2)."""
    one, steps, c = law("forcing-memory", **UNITS), 3000, 0.02
    values = [2.5, 8.0, 0.4, noise, 0.0, c, q]
    found = designed(one, values, steps, lr_max=PEAK, batch=BATCH)

    def built(last):
        lr, left = np.empty(steps), 0.0
        for step in range(steps - 1, -1, -1):
            lr[step] = min(1.0, last * (1.0 + c * left) ** (q / 2.0))
            left += lr[step]
        return PEAK * lr

    def loss(log_last):
        return loss_of(one, values, schedules.from_arrays(built(np.exp(log_last)), BATCH))

    best = minimize_scalar(loss, bounds=(-9.0, 0.0), method="bounded")
    assert found.loss == pytest.approx(best.fun, abs=1e-5)
    lr, expected = np.asarray(found.schedule.lr), built(np.exp(best.x))
    assert expected[-1] < 0.5 * PEAK
    assert np.abs(lr - expected).max() < 0.05 * PEAK
    assert np.abs(np.diff(lr)).max() < 0.02 * PEAK
    assert 0.0 < found.gain < 0.05
    assert found.slack < 1e-4


# --- what holds for every design -------------------------------------------------------------------------------------


@settings(max_examples=12)
@example("forcing-memory", 2, 0.0, 0.5, 0.0)
@example("fsl", 2, 0.0, 0.5, None)
@given(
    st.sampled_from(list(LAWS)),
    st.integers(2, 300),
    st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    st.floats(0.0, 0.9),
    st.sampled_from([None, 0.0, 0.3, 1.0]),
)
def test_bounds_order_warmup_end_and_loss(name, steps, low, share, end):
    one, values = of(name)
    warmup = int(share * steps)
    last = None if end is None else (low + end * (1.0 - low)) * PEAK
    if last == 0.0 and steps == warmup + 1:
        with pytest.raises(rfsim.InputError, match=r"end is 0.0, and the schedule has no other step after its warm-up"):
            designed(one, values, steps, lr_max=PEAK, lr_min=low * PEAK, warmup=warmup, end=last, batch=BATCH)
        return
    found = designed(one, values, steps, lr_max=PEAK, lr_min=low * PEAK, warmup=warmup, end=last, batch=BATCH)
    lr = np.asarray(found.schedule.lr)
    late = lr[warmup:]
    assert len(lr) == steps
    assert (np.diff(late) <= 0.0).all()
    assert late.min() >= low * PEAK
    assert late.max() <= PEAK
    assert last is None or lr[-1] == last
    assert_allclose(lr[:warmup], late[0] * np.arange(1, warmup + 1) / max(warmup, 1), rtol=1e-12)
    assert_array_equal(found.schedule.batch, BATCH)
    assert found.loss == pytest.approx(loss_of(one, values, found.schedule), rel=1e-13)
    assert found.loss <= min(found.baselines.values())
    assert found.baselines[found.best] == min(found.baselines.values())
    assert found.gain == found.baselines[found.best] - found.loss
    assert np.isnan(found.gain_stderr)
    for spec, loss in found.baselines.items():
        made, _, peak = spec.partition(" at lr ")
        again = schedules.from_spec(made, steps=steps, lr=float(peak or PEAK), batch=BATCH)
        assert loss == pytest.approx(loss_of(one, values, again), rel=1e-5)


def test_a_design_is_the_same_every_time_and_for_a_batch_per_step():
    one, values = of("forcing-memory")
    batch = np.where(np.arange(300) < 150, 32.0, 128.0)
    first, second = (designed(one, values, 300, lr_max=PEAK, batch=batch) for _ in range(2))
    assert_array_equal(first.schedule.lr, second.schedule.lr)
    assert_array_equal(first.schedule.batch, batch)
    assert first.loss == loss_of(one, values, first.schedule)


def test_a_law_that_rewards_sudden_falls_is_given_them():
    one, values = of("multi-power")
    found = designed(one, values, 2000, lr_max=PEAK, warmup=50)
    for stages in (2, 4):
        assert found.loss <= designed(one, values, 2000, lr_max=PEAK, warmup=50, stages=stages).loss + 1e-4


def test_values_by_name_and_a_stage_that_does_not_help():
    one, values = of("forcing-memory")
    by_name = dict(zip((parameter.name for parameter in one.parameters), values, strict=True))
    found = design((one, by_name), 400, lr_max=PEAK, batch=BATCH, stages=1)
    assert len(np.unique(found.schedule.lr)) == 1
    assert found.gain < 0.0
    assert any("too little freedom" in note for note in found.notes)
    again = designed(one, values, 400, lr_max=PEAK, batch=BATCH, stages=1, places=[0])
    assert again.loss == pytest.approx(found.loss, rel=1e-9)


# --- from a fit ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    """A fit of the functional scaling law to two noisy runs of 1000 steps that it made itself."""
    one, values = of("fsl")
    runs = []
    for number, spec in enumerate(("cosine:to=0.1,warmup=50", "wsd:decay=0.2,shape=linear,to=0.1,warmup=50")):
        schedule = schedules.from_spec(spec, steps=1000, lr=PEAK, batch=BATCH)
        steps = np.arange(60, 1001, 10)
        clean = one.evaluate(values, one.prepare(as_run(schedule, steps)), gradient=False)[0]
        noise = np.random.default_rng(number).standard_normal(len(steps))
        runs.append(run(steps, clean * np.exp(1e-3 * noise), schedule, name=spec[:3], warmup=50))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(law("fsl"), runs)


def test_defaults_come_from_the_fitted_runs(fitted):
    found = design(fitted, 1000)
    lr = np.asarray(found.schedule.lr)
    assert lr.max() == PEAK
    assert lr[0] == pytest.approx(lr[50] / 50)
    assert_array_equal(found.schedule.batch, BATCH)
    assert not any("times as long" in note or "more than" in note for note in found.notes)


def test_gain_has_the_spread_of_the_parameters(fitted):
    found = design(fitted, 1000, lr_min=0.1 * PEAK)
    other = schedules.from_spec(found.best, steps=1000, lr=PEAK, batch=BATCH)
    ready = [fitted.law.prepare(as_run(one, [1000])) for one in (found.schedule, other)]
    slopes = []
    for each in ready:  # differences in every parameter, not the law's own gradient
        row = []
        for place, value in enumerate(fitted.values):
            moved = [fitted.values.copy() for _ in range(2)]
            h = 1e-5 * max(abs(value), 1e-3)
            moved[0][place] += h
            moved[1][place] -= h
            higher, lower = (fitted.law.evaluate(one, each, gradient=False)[0][0] for one in moved)
            row.append((higher - lower) / (2 * h))
        slopes.append(np.array(row))
    covariance = fitted.spread.covariance
    assert found.loss_stderr == pytest.approx(np.sqrt(slopes[0] @ covariance @ slopes[0]), rel=1e-3)
    apart = slopes[1] - slopes[0]
    assert found.gain_stderr == pytest.approx(np.sqrt(apart @ covariance @ apart), rel=1e-3)
    assert found.gain_stderr < found.loss_stderr  # most of the uncertainty is common to both schedules
    assert found.loss_stderr == pytest.approx(fitted.predict(found.schedule, [1000]).stderr[0], rel=1e-9)


def test_gain_has_the_spread_of_bootstrap_samples(fitted):
    samples = fitted.values * np.exp(0.01 * np.random.default_rng(3).standard_normal((40, 7)))
    record = json.loads(fitted.to_json())
    record["samples"] = samples.tolist()
    found = design(FitResult.from_json(json.dumps(record)), 1000, lr_min=0.1 * PEAK, stages=2)
    other = schedules.from_spec(found.best, steps=1000, lr=PEAK, batch=BATCH)
    gains = [loss_of(fitted.law, one, other) - loss_of(fitted.law, one, found.schedule) for one in samples]
    assert found.gain_stderr == pytest.approx(np.std(gains, ddof=1), rel=1e-9)


def test_what_cannot_be_trusted_is_told(fitted):
    far = " | ".join(design(fitted, 3000, lr_max=3 * PEAK, lr_min=0.3 * PEAK, stages=2).notes)
    assert "times as long as the fitted runs" in far
    assert "3000 steps are more than the 1000" in far
    assert "the peak 0.003 of the lr lies outside those of the fitted runs, 0.001 to 0.001" in far
    assert "falls to" not in far
    assert "below the lowest one fitted, 0.0001: an extra" in " | ".join(design(fitted, 1000, stages=2, end=0.0).notes)
    assert "outside those of the fitted runs" in " | ".join(design(fitted, 1000, lr_max=0.5 * PEAK, stages=2).notes)
    record = json.loads(fitted.to_json())
    for one in record["runs"]:
        one["noise"] = 1.0
    record["covariance"] = (1e6 * np.array(record["covariance"])).tolist()
    record["runs"][0]["fitted"][0] *= 1e3
    unsure = " | ".join(design(FitResult.from_json(json.dumps(record)), 1000, lr_min=0.1 * PEAK).notes)
    assert "below its uncertainty" in unsure
    assert "below the noise floor" in unsure
    assert "below the scatter" in unsure


def test_a_loss_below_the_limit_of_the_law_is_told():
    one = law("fsl", lr_unit=PEAK)
    found = design((one, [2.5, 8.0, 0.35, 0.05, 0.4, 0.3, 1.1]), 2000, lr_max=PEAK, warmup=20)
    assert found.loss < 2.5
    assert any("below L_0 = 2.5, the limit of the law" in note for note in found.notes)


def test_a_design_from_exact_dynamics_is_better_in_them():
    """SGD on power-law features: a fit to three exact runs, a design, and the exact final risk of all schedules."""
    steps, peak, batch, noise_var = 3000, 0.1, 4.0, 1.0
    spectrum = rfsim.population(rfsim.power_law(0.8, 0.3, ambient=400, noise_var=noise_var))

    def exact(schedule, at):
        return np.asarray(rfsim.risk(spectrum, schedule, at=at).risk) + noise_var

    at = np.unique(np.rint(np.geomspace(20, steps, 150)).astype(int))
    runs = [
        run(at, exact(one, at), one, name=spec)
        for spec in ("constant", "cosine:to=0.01", "8-1-1")
        for one in [schedules.from_spec(spec, steps=steps, lr=peak, batch=batch)]
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = fit(law("forcing-memory"), runs)
    found = design(result, steps, lr_min=0.01 * peak)
    truth = exact(found.schedule, [steps])[0]
    named = {}
    for spec in found.baselines:
        made, _, lower = spec.partition(" at lr ")
        schedule = schedules.from_spec(made, steps=steps, lr=float(lower or peak), batch=batch)
        named[spec] = exact(schedule, [steps])[0]
    assert truth < min(named.values())
    assert found.loss - noise_var == pytest.approx(truth - noise_var, rel=0.05)
    assert named[found.best] - truth == pytest.approx(found.gain, rel=0.3)


# --- files, command line, errors -------------------------------------------------------------------------------------


def test_command_prints_and_writes_the_design(capsys, tmp_path, fitted):
    path, out = tmp_path / "fit.json", tmp_path / "best.csv"
    fitted.to_json(path)
    command = ["schedule", "design", str(path), "--steps", "800", "--lr-min", "1e-4", "--out", str(out)]
    found = ask(capsys, *command, "--rows", "7")
    expected = design(fitted, 800, lr_min=1e-4)
    again = schedules.read_schedule(out)
    assert_array_equal(again.lr, expected.schedule.lr)
    assert_array_equal(again.batch, BATCH)
    assert found["step"] == np.rint(np.linspace(0, 799, 7)).astype(int).tolist()
    assert found["lr"] == again.lr[found["step"]].tolist()
    assert found["intrinsic_time"][0] == 0.0
    assert found["final_loss"] == pytest.approx(expected.loss, rel=1e-12)
    assert found["gain"] == pytest.approx(found["baselines"][found["best_baseline"]] - found["final_loss"], abs=1e-12)
    assert found["gain_stderr"] > 0.0
    assert found["warnings"] == list(expected.notes)
    assert {"steps", "law", "final_loss_stderr", "slack", "knots", "parameters", "versions"} <= set(found)
    status, text, _ = call(capsys, *command[:-2], "--stages", "2")
    assert status == 0
    assert "best_baseline: " in text
    assert f"final_loss of {expected.best}: " in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["show", "constant", "--steps", "5", "--lr", "1", "--batch", "1", "--warmup", "2"],
            "warmup is for schedule design",
        ),
        (["pair", "8-1-1", "--lr-min", "0.1"], "lr-min is for schedule design"),
        (["design", "FIT"], "steps is missing"),
        (["design", "FIT", "--steps", "100", "--group", "3"], "group is not for schedule design"),
        (["design", "FIT", "--steps", "100", "--clock-power", "2"], "clock-power is not for schedule design"),
        (["design", "nowhere.json", "--steps", "100"], "cannot be read"),
        (["design", "FIT", "--steps", "20"], "warmup must be shorter than the 20 steps, got 50"),
    ],
)
def test_command_refuses(capsys, tmp_path, fitted, arguments, message):
    path = tmp_path / "fit.json"
    fitted.to_json(path)
    status, _, err = call(capsys, "schedule", *[str(path) if word == "FIT" else word for word in arguments])
    assert status == 2
    assert message in err


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"lr_max": None}, "lr_max is missing"),
        ({"lr_max": 0.0}, "lr_max must be positive"),
        ({"lr_min": 2e-3}, "lr_min must lie between"),
        ({"lr_min": -1.0}, "lr_min must lie between"),
        ({"lr_min": 1e-4, "end": 1e-5}, "end must lie between"),
        ({"warmup": 100}, "warmup must be shorter"),
        ({"batch": [1.0, 2.0]}, "batch must be one number or one for each"),
        ({"stages": 0}, "stages must be at least 1"),
        ({"stages": 101}, "stages must be at most"),
        ({"places": [0, 50]}, "places of knots must end at the last step, 99"),
        ({"places": [1, 99]}, "places must begin at the end of the warm-up, 0"),
        ({"places": [0, 60, 60, 99]}, "strictly increasing"),
        ({"places": [0, 60.5, 99]}, "whole numbers"),
        ({"places": [0, 60], "stages": 3}, "one first step for each of the 3 stages"),
    ],
)
def test_arguments_are_checked(changed, message):
    arguments = {"lr_max": PEAK, **changed}
    with pytest.raises(rfsim.InputError, match=message):
        design((LAWS["momentum"]), 100, **arguments)


def test_what_is_not_a_fit_is_refused():
    with pytest.raises(rfsim.InputError, match="fit must be a FitResult"):
        design(LAWS["momentum"][0], 100, lr_max=PEAK)


@pytest.mark.parametrize(
    ("name", "norm", "message"),
    [
        (
            "elr-fsl",
            None,
            r"norm is missing: elr-fsl needs.*norm=NormModel\(weight_decay, initial\).*--weight-decay",
        ),
        ("elr-fsl", np.ones(100), "norm of a design must be a NormModel, got ndarray"),
        ("elr-fsl", NormModel(1e3), "lr_max times weight_decay must be below 1, got 1; lower lr_max"),
        ("lr-fsl", NORM, "norm is for laws in the effective lr, and lr-fsl is in the lr; leave the norm out"),
    ],
)
def test_norms_that_are_refused(name, norm, message):
    with pytest.raises(rfsim.InputError, match=message):
        design(of(name), 100, lr_max=PEAK, norm=norm)
