"""Factorisation collapse: by hand on short runs, and on exact dynamics of matched factorisations."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import rfsim
from rfsim.checks import InputError
from rfsim.logs import run
from rfsim.schedules import constant, from_arrays, join, pair, power_clock
from rfsim.surrogates.collapse import collapse, collapse_all

SPECTRUM = rfsim.spectrum(1.0 / np.arange(1.0, 201.0), np.arange(1.0, 201.0) ** -1.5, noise_var=1.0)
HORIZON = 20.0


def ratio(time):
    """200, growing tenfold over the last fifth, as an annealed lr at a fixed batch makes it."""
    return 200.0 * 10.0 ** np.clip((time - 0.8 * HORIZON) / (0.2 * HORIZON), 0.0, 1.0)


def exact_run(schedule, steps, name, offset=1.0):
    return run(steps, offset + np.asarray(rfsim.risk(SPECTRUM, schedule, at=steps).risk), schedule, name=name)


def exact_pair(lr):
    found = pair(ratio, lr=lr, batch=round(200.0 * lr), intrinsic_time=HORIZON)
    decay = exact_run(found.lr_decay, found.lr_decay_steps[1:], "lr decay")
    growth = exact_run(found.batch_growth, found.batch_growth_steps[1:], "batch growth")
    return found, decay, growth


# --- by hand ---------------------------------------------------------------------------------------------------------


def test_two_short_runs():
    """Clocks 0.5, 1, 2 and 1, 1.5, 2; the second run has one row more in the common stretch 1 to 2."""
    a = run([1, 2, 4], [5.0, 4.0, 2.0], from_arrays(0.5, np.full(4, 2.0)), name="a")
    b = run([1, 2, 4], [4.5, 4.25, 2.0], from_arrays([1.0, 0.5, 0.25, 0.25], [4.0, 2.0, 1.0, 1.0]), name="b")
    found = collapse(a, b)
    assert_array_equal(found.intrinsic_time, [1.0, 2.0])
    assert_array_equal(found.loss_first, [4.0, 2.0])
    assert_array_equal(found.loss_second, [4.5, 2.0])
    assert_array_equal(found.difference, [0.5, 0.0])
    assert found.interpolated == 0
    assert found.rmse == pytest.approx(math.sqrt(0.125), rel=1e-15)
    assert found.largest == 0.5
    assert found.by_step == pytest.approx(math.sqrt((0.5**2 + 0.25**2) / 3.0), rel=1e-15)
    assert found.path == (0.0, 0.0, 0.0, 0.0)
    assert found.notes() == []
    assert "rmse 0.354" in found.summary()
    assert "0 of 4 losses" in found.summary()


def test_straight_lines_between_rows():
    """Losses 10 - T and 10 - 2 T on other clocks: the monotone cubic through a straight line is that line."""
    a = run([2, 4, 8], 10.0 - 0.25 * np.array([2.0, 4.0, 8.0]), constant(8, 0.25, 1.0))
    b = run([1, 2, 3], 10.0 - 2.0 * np.array([0.75, 1.5, 2.25]), constant(3, 0.75, 3.0))
    found = collapse(a, b, at=[0.8, 1.0, 1.5, 1.75])
    assert_allclose(found.difference, [-0.8, -1.0, -1.5, -1.75], rtol=1e-12)
    assert found.interpolated == 6  # rows are met at 1 in one run and at 1.5 in the other
    assert collapse(b, a, at=[1.5]).difference[0] == pytest.approx(1.5, rel=1e-12)


def test_rows_at_a_standing_clock():
    """An lr of 0 moves no clock: of the rows at clock 1 the last counts."""
    still = from_arrays([0.5, 0.5, 0.0, 0.0, 0.5], [1.0, 1.0, 1.0, 1.0, 1.0])
    a = run([1, 2, 4, 5], [5.0, 4.0, 3.5, 3.0], still)
    b = run([1, 2, 3], [5.0, 3.0, 3.0], constant(3, 0.5, 1.0))
    found = collapse(a, b)
    assert_array_equal(found.intrinsic_time, [0.5, 1.0, 1.5])
    assert_array_equal(found.loss_first, [5.0, 3.5, 3.0])
    assert_array_equal(found.difference, [0.0, -0.5, 0.0])


def test_another_clock():
    """On the clock sum lr^2 four steps of lr 1/2 are one of lr 1, so rows 4, 8 meet rows 1, 2."""
    a = run([4, 8], [3.0, 2.0], constant(8, 0.5, 1.0))
    b = run([1, 2], [3.5, 2.0], constant(2, 1.0, 4.0))
    found = collapse(a, b, clock=power_clock(2.0))
    assert_array_equal(found.intrinsic_time, [1.0, 2.0])
    assert_array_equal(found.difference, [0.5, 0.0])
    assert found.path.ratio == 0.0
    assert math.isnan(found.by_step)  # the logs share no step


def test_other_paths_are_named():
    a = run([1, 2, 3, 4], [5.0, 4.0, 3.0, 2.0], constant(4, 0.5, 1.0), name="a")
    b = run([1, 2, 3, 4], [5.0, 4.0, 3.0, 2.0], constant(4, 0.5, 2.0), name="b")
    found = collapse(a, b)
    assert found.path.ratio == pytest.approx(math.log(2.0), rel=1e-12)
    assert found.notes()[0].startswith("a and b do not share a ratio path")
    assert "factor 2" in found.summary()
    ragged = run([1, 2, 3, 4], [5.0, 4.0, 3.0, 2.0], from_arrays(0.5, [1.0, 3.0, 1.0, 3.0]), name="c")
    assert collapse(b, ragged).notes() != []
    assert collapse(b, ragged, grain=1.0).notes() == []


def test_clocks_that_are_equal_but_for_rounding():
    """.1 + .1 + .1 is 4e-17 more than .05 + .25: both last rows are at one clock, within the stretch of both logs."""
    a = run([1, 3], [5.0, 4.0], from_arrays(np.full(3, 0.1), 1.0), name="a")
    b = run([1, 2], [5.5, 3.5], from_arrays([0.05, 0.25], 1.0), name="b")
    ends = [float(rfsim.schedules.intrinsic_time(one.schedule.lr)[-1]) for one in (a, b)]
    assert ends[0] != ends[1]
    for one, other, sign in ((a, b, -1.0), (b, a, 1.0)):
        for at in (None, [ends[0]], [ends[1]]):
            found = collapse(one, other, at=at)
            assert found.interpolated == 0
            assert_array_equal(found.difference, [0.5 * sign])


@pytest.mark.parametrize(("factor", "told"), [(1.01, False), (1.05, True)])
def test_a_ratio_that_is_off_by_a_few_percent(factor, told):
    a = run([1, 4], [5.0, 2.0], constant(4, 0.5, 100.0), name="a")
    b = run([1, 4], [5.0, 2.0], constant(4, 0.5, 100.0 * factor), name="b")
    assert bool(collapse(a, b).notes()) is told


def test_errors():
    a = run([1, 2], [5.0, 4.0], constant(2, 0.5, 1.0), name="a")
    late = run([8, 9], [5.0, 4.0], constant(9, 0.5, 1.0), name="late")
    with pytest.raises(InputError, match="common stretch"):
        collapse(a, late)
    with pytest.raises(InputError, match=r"at must be in the stretch 0\.5 to 1"):
        collapse(a, a, at=[0.75, 1.5])
    with pytest.raises(InputError, match="at least 2"):
        collapse_all([a])


@given(st.integers(2, 6), st.integers(2, 30))
def test_a_run_collapses_on_itself_in_smaller_steps(parts, steps):
    """Each step cut into equal parts is the same path; a loss that is a function of the clock collapses exactly."""
    lr, batch = 0.3 / np.arange(1.0, steps + 1.0), np.full(steps, float(parts))
    whole = from_arrays(lr, batch)
    cut = from_arrays(np.repeat(lr / parts, parts), np.repeat(batch / parts, parts))
    rows = np.arange(1, steps + 1)
    loss = 1.0 + 1.0 / (1.0 + np.cumsum(lr))
    found = collapse(run(rows, loss, whole), run(rows * parts, loss, cut))
    assert found.interpolated == 0
    assert found.largest == 0.0
    assert found.path.ratio < 1e-12


# --- exact dynamics --------------------------------------------------------------------------------------------------


def test_matched_factorisations_collapse_with_the_size_of_their_steps():
    """Step sizes halved each time: the difference falls by an order between 1 and 2, and is below 1/200 of by-step."""
    sizes, errors = (0.04, 0.02, 0.01, 0.005), []
    for lr in sizes:
        made, decay, growth = exact_pair(lr)
        found = collapse(decay, growth, at=made.intrinsic_time[1:])
        assert found.interpolated == 0
        assert found.path.ratio < 1e-12
        assert found.rmse < found.by_step / 200.0
        assert found.largest < 10.0 * found.rmse
        errors.append(found.rmse)
        same = collapse(decay, growth)
        assert_allclose(same.intrinsic_time, made.intrinsic_time[1:], rtol=1e-12)
        assert same.rmse == pytest.approx(found.rmse, rel=1e-12)
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders.min() > 0.9
    assert orders.max() < 2.2


def test_logs_at_other_clocks_are_interpolated():
    """The lr-decay run logged evenly in steps, off the macro boundaries."""
    made, _, growth = exact_pair(0.02)
    rows = np.unique(np.linspace(30, made.lr_decay.steps, 60).astype(int))
    found = collapse(exact_run(made.lr_decay, rows, "even"), growth)
    assert found.interpolated > 30
    assert found.rmse < 5e-5
    assert found.by_step > 1e-3


def test_a_different_path_does_not_collapse():
    """The same pair with the batches of one run halved: the noise doubles and the losses part."""
    made, decay, _ = exact_pair(0.02)
    noisy = exact_run(made.batch_growth.scaled(batch=0.5), made.batch_growth_steps[1:], "noisy")
    found = collapse(decay, noisy, at=made.intrinsic_time[1:])
    assert found.path.ratio == pytest.approx(math.log(2.0), rel=1e-9)
    assert found.rmse > 1e-3
    assert found.notes() != []


def test_all_pairs():
    made, decay, growth = exact_pair(0.04)
    finer = exact_pair(0.02)[1]
    found = collapse_all([decay, growth, finer], at=made.intrinsic_time[1:])
    assert [(one.first, one.second) for one in found] == [
        ("lr decay", "batch growth"),
        ("lr decay", "lr decay"),
        ("batch growth", "lr decay"),
    ]
    assert found[0].rmse == collapse(decay, growth, at=made.intrinsic_time[1:]).rmse
    assert max(one.rmse for one in found) < 2e-3  # paths whose levels were rounded apart
    assert found[0].rmse < 0.01 * found[1].rmse


def test_a_warm_up_in_front_moves_both_clocks():
    """The same first steps before both runs change their clocks alike, and the collapse stays."""
    made, _, _ = exact_pair(0.04)
    front = from_arrays(np.linspace(0.002, 0.02, 10), 4.0)
    decay = exact_run(join(front, made.lr_decay), 10 + made.lr_decay_steps[1:], "lr decay")
    growth = exact_run(join(front, made.batch_growth), 10 + made.batch_growth_steps[1:], "batch growth")
    found = collapse(decay, growth, at=made.intrinsic_time[1:] + float(np.sum(np.linspace(0.002, 0.02, 10))))
    assert found.interpolated == 0
    assert found.rmse < found.by_step / 200.0
