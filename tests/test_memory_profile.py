"""The q_K profile: valleys by hand, refits against independent multistart fits, flags at the ends of the grid."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rfsim.checks import InputError
from rfsim.logs import run
from rfsim.schedules import constant, cosine, eight_one_one, wsd
from rfsim.surrogates import FitResult, fit, law
from rfsim.surrogates.memory_profile import GRID, memory_profile
from rfsim.surrogates.objective import Coordinates, Minimum
from rfsim.surrogates.uncertainty import profile_interval
from rfsim.surrogates.valley import valley

STEPS = 2000
VALUES = {
    "forcing-memory": [2.0, 3.0, 0.5, 0.02, 0.05, 0.05, 1.2],
    "fsl": [2.0, 3.0, 0.5, 0.05, 0.05, 0.05, 1.2],
}
GIVEN = np.array([0.8, 1.0, 1.1, 1.2, 1.3, 1.5])

pytestmark = pytest.mark.filterwarnings("ignore::rfsim.surrogates.FitWarning")


def made(name):
    """Four runs of the law with noise 1e-3."""
    rng = np.random.default_rng(7)
    chosen = law(name, lr_unit=0.1, **({"batch_unit": 1.0} if name == "forcing-memory" else {}))
    rows = np.unique(np.round(np.geomspace(5, STEPS, 40)).astype(int))
    runs = []
    for label, schedule in (
        ("constant", constant(STEPS, 0.1, 1.0)),
        ("cosine", cosine(STEPS, 0.1, 1.0)),
        ("wsd", wsd(STEPS, 0.1, 1.0)),
        ("stairs", eight_one_one(STEPS, 0.1, 1.0)),
    ):
        empty = run(rows, np.ones(len(rows)), schedule)
        loss = chosen.evaluate(np.array(VALUES[name]), chosen.prepare(empty), gradient=False)[0]
        runs.append(run(rows, loss * np.exp(1e-3 * rng.standard_normal(len(rows))), schedule, name=label))
    return chosen, runs


@pytest.fixture(scope="module")
def case():
    chosen, runs = made("forcing-memory")
    free = fit(chosen, runs[:2])
    runs = runs[:3]
    return chosen, runs, free, memory_profile(chosen, runs[:2], runs[2], GIVEN, free=free)


# --- valleys ---------------------------------------------------------------------------------------------------------


@given(
    st.floats(-0.25, 0.25),
    st.floats(0.1, 3.0),
    st.floats(0.0, 2.0),
    st.lists(st.floats(0.05, 0.3), min_size=6, max_size=6),
)
def test_vertex_of_a_parabola_in_the_square(centre, curvature, floor, widths):
    """error^2 = floor^2 + curvature (log q - centre)^2 on an uneven grid: the vertex comes out."""
    x = np.cumsum([-0.6, *widths, 0.5])
    x[-1] = max(x[-1], 0.6)
    error = np.sqrt((0.1 + floor) ** 2 + curvature * (x - centre) ** 2)
    found = valley(np.exp(x), error, 1.1)
    if not found.at_end:
        assert math.log(found.q_memory) == pytest.approx(centre, abs=1e-6)
    assert found.error == error.min()
    assert found.low <= np.exp(x[np.argmin(error)]) <= found.high


def test_width_by_hand():
    """Errors 4 3 2 1 2 at log q = 0..4: twice the minimum at 2 and 4, one and a half times at 2.5 and 3.5."""
    q = np.exp(np.arange(5.0))
    found = valley(q, np.array([4.0, 3.0, 2.0, 1.0, 2.0]), 1.5)
    assert (found.low, found.high) == pytest.approx((math.exp(2.5), math.exp(3.5)), rel=1e-12)
    assert not (found.open_low)
    assert not (found.open_high)
    assert not (found.at_end)
    assert found.q_memory == pytest.approx(math.exp(3.0), rel=1e-12)
    wide = valley(q, np.array([4.0, 3.0, 2.0, 1.0, 2.0]), 2.5)
    assert wide.low == pytest.approx(math.exp(1.5), rel=1e-12)
    assert (wide.high, wide.open_high, wide.open_low) == (q[-1], True, False)


def test_minimum_at_an_end_and_a_dip_beyond_the_wall():
    q = np.exp(np.arange(5.0))
    last = valley(q, np.array([4.0, 3.0, 2.0, 1.5, 1.0]), 1.2)
    assert (last.q_memory, last.at_end, last.open_high) == (q[-1], True, True)
    assert last.low == pytest.approx(math.exp(3.6), rel=1e-12)
    first = valley(q, np.array([1.0, 1.0, 2.0, 3.0, 4.0]), 1.5)
    assert (first.q_memory, first.at_end) == (1.0, True)
    dip = valley(q, np.array([1.05, 2.0, 1.0, 2.0, 3.0]), 1.5)
    assert dip.low == pytest.approx(math.exp(1.5), rel=1e-12)
    assert not dip.open_low
    assert dip.coarse


def test_a_valley_narrower_than_the_grid_holds_its_vertex():
    """Squares 9, 1, 5 at 0, 1, 2: slopes -8 and 4, vertex at 1 + (8 - 4) / (2 * 12) = 7/6."""
    found = valley(np.exp(np.arange(3.0)), np.sqrt([9.0, 1.0, 5.0]), 1.05)
    assert math.log(found.q_memory) == pytest.approx(7.0 / 6.0, rel=1e-12)
    assert found.high == pytest.approx(found.q_memory, rel=1e-12)
    assert math.log(found.low) == pytest.approx(1.0 - 0.05 / 2.0, rel=1e-12)
    assert found.coarse


# --- profiles --------------------------------------------------------------------------------------------------------


def test_refits_are_those_of_independent_multistart_fits(case):
    chosen, runs, _, found = case
    for place in (0, 2, 5):
        alone = fit(chosen, runs[:2], fixed={"q_K": float(GIVEN[place])})
        assert found.objective[place] == pytest.approx(alone.objective, rel=1e-5)
        assert_allclose(found.values[place, [2, 6]], alone.values[[2, 6]], rtol=1e-3)
        predicted = alone.predict(runs[2]).loss
        by_hand = math.sqrt(float(np.mean((predicted - runs[2].loss) ** 2)))
        assert found.held_out_error[place] == pytest.approx(by_hand, rel=1e-2)
        assert_allclose(found.fit_error_by_run[place], list(alone.rmse.values()), rtol=1e-2)


def test_errors_belong_to_the_stored_parameters(case):
    chosen, runs, _, found = case
    assert_array_equal(found.values[:, 6], GIVEN)
    for values, fitted, unseen in zip(found.values, found.fit_error_by_run, found.held_out_error_by_run, strict=True):
        errors = [
            np.sqrt(np.mean((chosen.evaluate(values, chosen.prepare(one), gradient=False)[0] - one.loss) ** 2))
            for one in runs
        ]
        assert_allclose([*fitted, *unseen], errors, rtol=1e-12)
    assert found.fit_names == ("constant", "cosine")
    assert found.held_out_names == ("wsd",)
    assert_allclose(found.fit_error, found.fit_error_by_run.mean(axis=1), rtol=1e-15)


def test_both_minima_lie_at_the_true_exponent(case):
    _, _, free, found = case
    fitted, unseen = found.relative
    assert fitted.min() == unseen.min() == 1.0
    assert abs(found.fit.q_memory - 1.2) < 0.05
    assert abs(found.held_out.q_memory - 1.2) < 0.05
    assert all("narrower than the grid" in line for line in found.notes())
    assert 0.8 < found.held_out.low < 1.2 < found.held_out.high < 1.5
    assert f"{free.params['q_K']:.4g}" in found.summary()


def test_interval_is_that_of_the_profile_method(case):
    _, _, free, found = case
    expected = profile_interval(
        free.law,
        "q_K",
        free.values,
        free.data,
        Coordinates(free.law, free.law.centres(free.data.prepared), {}),
        free.huber,
        free.spread,
        0.95,
    )
    width = expected.high - expected.low
    assert abs(found.interval.low - expected.low) < 0.15 * width
    assert abs(found.interval.high - expected.high) < 0.15 * width
    assert not (found.open_low)
    assert not (found.open_high)
    assert found.deviance.min() >= 0.0
    assert found.deviance[0] > found.deviance[2] > found.deviance[3] < found.deviance[4] < found.deviance[5]


def test_held_out_losses_never_enter_the_fit(case):
    chosen, runs, free, found = case
    other = run(runs[2].step, 1.5 * runs[2].loss, runs[2].schedule, name="other")
    again = memory_profile(chosen, runs[:2], [other, runs[2]], GIVEN, free=free)
    assert_array_equal(again.values, found.values)
    assert_array_equal(again.held_out_error_by_run[:, 1], found.held_out_error)
    assert (again.held_out_error_by_run[:, 0] > 1.0).all()


def test_ends_of_the_grid_are_flagged(case):
    chosen, runs, free, _ = case
    seen = []
    found = memory_profile(
        chosen, runs[:2], runs[2], [0.7, 0.8, 0.9], free=free, progress=lambda done, total: seen.append((done, total))
    )
    assert found.fit.at_end
    assert found.held_out.at_end
    assert found.held_out.q_memory == 0.9
    assert sum("extend the grid" in line for line in found.notes()) == 2
    assert seen == [(i, 5) for i in range(1, 6)]
    narrow = memory_profile(chosen, runs[:2], runs[2], [1.19, 1.2, 1.21], free=free, factor=3.0)
    assert (narrow.open_low, narrow.open_high) == (True, True)
    assert free.params["q_K"] > 1.21  # and the free fit is part of the interval
    assert narrow.interval == pytest.approx((1.19, free.params["q_K"]), rel=1e-12)
    assert any("weakly determined" in line for line in narrow.notes())


def test_functional_scaling_law_without_a_given_free_fit():
    chosen, runs = made("fsl")
    found = memory_profile(chosen, runs[1:3], runs[3:], [0.9, 1.05, 1.2, 1.35, 1.5])  # a constant lr has no falls
    assert found.name == "q_K"
    assert found.held_out.q_memory == pytest.approx(1.2, abs=0.1)
    assert found.interval.low < 1.2 < found.interval.high


def test_the_window_also_cuts_the_held_out_runs():
    """Rows from the last one at a tenth of the clock on, here for the run itself and by a literal sum of its lr."""
    chosen, runs = made("fsl")
    found = memory_profile(chosen, runs[:2], runs[2], [1.0, 1.2, 1.4], window="last-decade")
    clock = np.array([math.fsum(np.asarray(runs[2].schedule.lr)[: int(step)]) for step in runs[2].step])
    first = int(np.sum(clock <= 0.1 * clock[-1])) - 1
    assert 5 < first < len(clock) - 5
    predicted = chosen.evaluate(found.values[1], chosen.prepare(runs[2]), gradient=False)[0]
    error = math.sqrt(float(np.mean((predicted - runs[2].loss)[first:] ** 2)))
    assert found.held_out_error[1] == pytest.approx(error, rel=1e-12)


def test_what_is_fixed_stays_and_a_better_held_fit_is_told(case):
    chosen, runs, _, _ = case
    held = fit(chosen, runs[:2], fixed={"q_F": 0.48}, starts=VALUES["forcing-memory"])
    found = memory_profile(chosen, runs[:2], runs[2], [1.1, 1.2, 1.3], free=held)
    assert_array_equal(found.values[:, 2], 0.48)
    assert not any("better than the free one" in line for line in found.notes())
    missed = replace(held, objective=1.01 * found.objective.min())
    told = memory_profile(chosen, runs[:2], runs[2], [1.1, 1.2, 1.3], free=missed)
    assert any("better than the free one" in line for line in told.notes())
    assert told.deviance.min() == 0.0


@pytest.mark.parametrize("falling", [True, False])
def test_the_better_of_the_two_ways_is_kept(case, monkeypatch, falling):
    """Five values, passed outwards and back: the ends once, the middle three times.

    Every passage is told to lie in another basin, with an objective that rises or falls from call to call.
    """
    chosen, runs, free, _ = case
    calls = []

    def other_basin(law, start, data, held):
        return start, float(len(calls) + 1)

    def end(law, start, data, held, **options):
        calls.append(float(held.fixed[6]))
        return Minimum(start, 1.0 / len(calls) if falling else float(len(calls)), 1, True)

    monkeypatch.setattr("rfsim.surrogates.memory_profile.project", other_basin)
    monkeypatch.setattr("rfsim.surrogates.memory_profile.descend", end)
    grid = [1.0, 1.1, 1.2, 1.3, 1.4]
    found = memory_profile(chosen, runs[:2], runs[2], grid, free=free)
    pick = max if falling else min
    visits = [[i + 1 for i, value in enumerate(calls) if value == q] for q in grid]
    assert [len(one) for one in visits] == [1, 2, 3, 2, 1]
    kept = [pick(one) for one in visits]
    assert_allclose(found.objective, [1.0 / one if falling else one for one in kept], rtol=1e-12)


def test_default_grid_is_symmetric_about_one():
    assert 1.0 in np.round(GRID, 12)
    assert_allclose(np.array(GRID) * np.array(GRID)[::-1], 1.0, rtol=1e-12)


def test_errors(case, tmp_path):
    chosen, runs, free, _ = case
    path = tmp_path / "fit.json"
    free.to_json(path)
    for options, word in (
        ({"q_memory": [1.0, 1.2]}, "at least 3"),
        ({"q_memory": [1.0, 1.2, 1.1]}, "increasing"),
        ({"q_memory": [1.0, 1.2, 50.0]}, "bounds"),
        ({"factor": 1.0}, "factor"),
        ({"level": 1.0}, "level"),
        ({"fixed": {"q_K": 1.0}}, "fixed must leave q_K free"),
        ({"free": FitResult.from_json(path)}, "read from a file"),
    ):
        with pytest.raises(InputError, match=word):
            memory_profile(chosen, runs[:2], runs[2], **options)
    with pytest.raises(InputError, match="fixed must leave q_K free"):
        memory_profile(chosen, runs[:2], runs[2], free=replace(free, fixed={"q_K": 1.0}))
    for other, told in ((law("fsl"), "name fsl"), (law("forcing-memory", clock_power=0.5), "clock_power 0.5")):
        with pytest.raises(InputError, match=f"free must be a fit of the law, which has {told}, got"):
            memory_profile(other, runs[:2], runs[2], free=free)
    with pytest.raises(InputError, match="fit of fit_runs"):
        memory_profile(chosen, runs[1:], runs[0], free=free)
    with pytest.raises(InputError, match="held_out is empty"):
        memory_profile(chosen, runs[:2], [])
    with pytest.raises(InputError, match="no free memory exponent"):
        memory_profile(law("momentum"), runs[:2], runs[2])
    with pytest.raises(InputError, match="no free memory exponent"):
        memory_profile(law("fsl", q_memory=1.2), runs[:2], runs[2])
