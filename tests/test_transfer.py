"""Transfer and comparison: errors against literal sums, one split for all laws, nothing learnt from the test runs."""

import dataclasses
import json
import warnings

import numpy as np
import pytest

from rfsim import schedules
from rfsim.checks import InputError
from rfsim.logs import run
from rfsim.surrogates import FitResult, FitWarning, fit, law
from rfsim.surrogates.comparison import LAWS, compare, named_law
from rfsim.surrogates.transfer import moving_rows, transfer

PEAK = 0.01
TRUE = {"L_0": 2.0, "A": 3.0, "alpha": 0.6, "C": 0.004, "steps": 60.0}


def momentum_loss(lr, at, unit=PEAK, true=TRUE):
    """The momentum law by its recursion, update by update; the lr rises nowhere."""
    eta, lam = np.asarray(lr) / unit, 1.0 - 1.0 / true["steps"]
    average = total = clock = 0.0
    before, losses = eta[0], {}
    for step, now in enumerate(eta, 1):
        average = lam * average + before - now
        total, clock, before = total + average, clock + now, now
        losses[step] = true["L_0"] + true["A"] * clock ** -true["alpha"] - true["C"] * total
    return np.array([losses[int(step)] for step in at])


def made(name, schedule, *, noise=1e-4, seed=0, every=10, **more):
    at = np.arange(every, schedule.steps + 1, every)
    losses = momentum_loss(schedule.lr, at) * np.exp(noise * np.random.default_rng(seed).standard_normal(at.size))
    return run(at, losses, schedule, name=name, **more)


@pytest.fixture(scope="module")
def split():
    """Two runs to fit and two to predict; the second of these is three times as long."""
    fitted = [
        made("flat", schedules.constant(600, PEAK, 1.0), seed=1),
        made("fall", schedules.cosine(600, PEAK, 1.0, to=0.1), seed=2),
    ]
    tests = [
        made("wsd", schedules.wsd(500, PEAK, 1.0, decay=0.3, shape="linear", to=0.1), seed=3),
        made("long", schedules.constant(1800, PEAK, 1.0), seed=4),
    ]
    return fitted, tests


@pytest.fixture(scope="module")
def result(split):
    return fit(law("momentum"), split[0])


# --- transfer --------------------------------------------------------------------------------------------------------


def test_errors_are_those_of_a_literal_sum(split, result):
    found = transfer(result, split[1])
    assert [one.name for one in found.runs] == ["wsd", "long"]
    for one, own, predicted in zip(found.runs, split[1], found.predictions, strict=True):
        loss = momentum_loss(own.schedule.lr, own.step, true=result.params)
        np.testing.assert_allclose(predicted.loss, loss, rtol=1e-12)
        error = loss - own.loss
        assert one.rows == own.step.size
        assert one.rmse == pytest.approx(np.sqrt((error**2).sum() / error.size), rel=1e-9)
        worst = np.abs(error).argmax()
        assert one.max_error == pytest.approx(error[worst], rel=1e-9)
        assert one.max_error_step == own.step[worst]
        assert (one.last_error, one.last_step) == (pytest.approx(error[-1], rel=1e-9), own.step[-1])
        assert one.noise_floor == pytest.approx(own.noise * own.loss.sum() / own.loss.size, rel=1e-12)
    assert found.rmse == pytest.approx((found.runs[0].rmse + found.runs[1].rmse) / 2, rel=1e-12)


def test_the_right_law_predicts_to_the_noise_floor_and_its_band_covers(split, result):
    found = transfer(result, split[1])
    for one in found.runs:
        assert 0.5 * one.noise_floor < one.rmse < 2.0 * one.noise_floor
        assert one.coverage > 0.85
    assert found.noise_floor == pytest.approx(np.mean([one.noise_floor for one in found.runs]))
    assert found.coverage == pytest.approx(np.mean([one.coverage for one in found.runs]))
    narrow = transfer(result, split[1], level=0.3)
    assert narrow.coverage < 0.6
    assert narrow.level == 0.3


def test_coverage_counts_rows_in_the_band(split, result):
    own = split[1][0]
    predicted = result.predict(own)
    moved = predicted.loss.copy()
    moved[:7] = predicted.high[:7] * 1.01  # seven rows above the band, the others in its middle
    (one,) = transfer(result, dataclasses.replace(own, loss=moved)).runs
    assert one.coverage == pytest.approx(1 - 7 / moved.size)
    assert one.last_error == 0.0
    assert one.max_error < 0.0  # predicted minus observed
    assert one.max_error_step <= own.step[6]


def test_horizons_are_ratios_of_intrinsic_time_also_from_a_file(split, result):
    longest = max(float(np.asarray(own.schedule.lr)[: int(own.step[-1])].sum()) for own in split[0])
    expected = [float(np.asarray(own.schedule.lr)[: int(own.step[-1])].sum()) / longest for own in split[1]]
    assert expected[1] == pytest.approx(3.0)
    for source in (result, FitResult.from_json(result.to_json())):
        np.testing.assert_allclose([one.horizon_ratio for one in transfer(source, split[1]).runs], expected, rtol=1e-12)
    record = json.loads(result.to_json())
    for one in record["runs"]:  # as written before files held it
        del one["intrinsic_time"]
    assert np.isnan(transfer(FitResult.from_json(json.dumps(record)), split[1]).runs[0].horizon_ratio)


def test_the_horizon_of_a_run_is_its_last_row(split, result):
    """The schedule goes on after the log ends: only the steps up to the last row were predicted."""
    longest = max(one.intrinsic_time for one in result.runs)
    short = split[1][1].part(0, 900)
    assert short.schedule.steps == 1800
    found = transfer(result, short).runs[0]
    assert found.last_step == 900
    assert found.horizon_ratio == pytest.approx(900 * PEAK / longest, rel=1e-12)


def test_a_fit_of_last_decades_is_asked_about_last_decades(split):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        late = fit(law("momentum"), split[0], window="last-decade")
    own = split[1][1]
    (one,) = transfer(late, own).runs
    (predicted,) = transfer(late, own).predictions
    assert predicted.step[0] == 180  # of 1800 equal steps
    assert one.rows == (1800 - 180) / 10 + 1


def test_rows_before_the_first_update_are_left_out():
    own = run([0, 1, 2, 5, 6], [9.0, 8.0, 7.0, 6.0, 5.0], schedules.from_arrays([0.0, 0.0, 0.1, 0.1, 0.1, 0.1], 1.0))
    kept = moving_rows(own)
    assert kept.step.tolist() == [5.0, 6.0]
    assert kept.findings[-1] == "3 rows before the first update with a positive lr: left out"
    assert moving_rows(kept) is kept
    with pytest.raises(InputError, match="lr of run is 0 before all of its rows"):
        moving_rows(run([1, 2], [2.0, 1.0], schedules.from_arrays([0.0, 0.0], 1.0)))


def test_no_runs_is_an_error(result, split):
    with pytest.raises(InputError, match="runs is empty"):
        transfer(result, [])
    for one, other in (([], split[1]), (split[0], [])):
        with pytest.raises(InputError, match="runs to fit and runs to predict"):
            compare(one, other)
    with pytest.raises(InputError, match="laws is empty"):
        compare(split[0], split[1], laws=())


# --- comparison ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def comparison(split):
    return compare(*split, laws=("momentum", "multi-power", "elr-fsl", "chinchilla"))


def test_all_laws_stand_on_one_split(comparison, split, result):
    assert (comparison.fitted, comparison.predicted) == (("flat", "fall"), ("wsd", "long"))
    own = comparison["momentum"]
    assert own.result.params == result.params
    assert own.test.rmse == transfer(result, split[1]).rmse
    assert own.test.rmse < comparison["multi-power"].test.rmse  # the data are those of the momentum law
    with pytest.raises(KeyError):
        comparison["astrology"]


def test_records_are_means_over_files_and_nulls_have_reasons(comparison):
    records = {one["law"]: one for one in comparison.records()}
    for one in records.values():
        for split, name in (("train", "train_rmse"), ("test", "test_rmse")):
            files = [file for file in one["per_file"] if file["split"] == split]
            if one["reason"] is None:
                assert len(files) == 2
                assert one[name] == pytest.approx(np.mean([file["rmse"] for file in files]), rel=1e-12)
            else:
                assert (one[name], files) == (None, [])
    assert records["momentum"]["parameters"].keys() == TRUE.keys()
    assert "norm" in records["elr-fsl"]["reason"]
    assert "several model sizes" in records["chinchilla"]["reason"]
    assert records["multi-power"]["reason"] is None


def test_training_errors_are_those_of_the_fit(comparison):
    own = comparison["momentum"]
    assert [one.rmse for one in own.train.runs] == pytest.approx(list(own.result.rmse.values()), rel=1e-12)


def test_nothing_of_the_predicted_runs_enters_a_fit(split):
    other = [dataclasses.replace(one, loss=one.loss[::-1] * 3.0) for one in split[1]]
    one, two = (compare(split[0], tests, laws=("momentum",))["momentum"] for tests in (split[1], other))
    assert one.result.params == two.result.params
    assert two.test.rmse > 100 * one.test.rmse


def test_a_law_that_cannot_predict_keeps_its_fit(split):
    normed = [dataclasses.replace(one, norm=np.full(one.schedule.steps, 2.0)) for one in split[0]]
    own = compare(normed, split[1], laws=("elr-fsl",))["elr-fsl"]
    assert own.train is not None
    assert own.test is None
    assert "wsd" in own.reason


def test_too_few_rows_are_a_reason(split):
    short = [one.part(0, 20) for one in split[0]]
    own = compare(short, split[1], laws=("momentum",))["momentum"]
    assert (own.result, own.test) == (None, None)
    assert "give more rows" in own.reason


def test_table_shows_laws_runs_and_reasons(comparison):
    lines = comparison.table().splitlines()
    assert lines[0].split() == ["law", "train", "rmse", "test", "rmse"]
    assert any(line.startswith("elr-fsl") and "none" in line and "norm" in line for line in lines)
    assert any(line.startswith("test rmse of") and "wsd" in line and "long" in line for line in lines)
    row = next(line for line in lines[6:] if line.startswith("momentum"))
    assert [float(cell) for cell in row.split()[1:]] == [round(one.rmse, 5) for one in comparison["momentum"].test.runs]


def test_laws_compared_by_default_are_fixed():
    assert LAWS[:2] == ("forcing-memory", "forcing-memory:clock_power=0.5")
    assert {text.partition(":")[0] for text in LAWS} == {
        "forcing-memory", "fsl", "lr-fsl", "elr-fsl", "multi-power", "momentum", "chinchilla",
    }  # fmt: skip


# --- texts of laws ---------------------------------------------------------------------------------------------------


def test_texts_of_laws():
    assert named_law("forcing-memory:clock_power=0.5") == law("forcing-memory", clock_power=0.5)
    assert named_law("forcing-memory:clock_power=1,q_memory=1.25").q_memory == 1.25
    assert named_law("forcing-memory:q_memory=none") == law("forcing-memory")
    assert named_law("multi-power:warmup_in_memory=0,nodes=0") == law("multi-power", warmup_in_memory=False, nodes=0)
    assert named_law("momentum") == law("momentum")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("astrology", "astrology"),
        ("momentum:", "does not take ''"),
        ("momentum:colour=1", "colour"),
        ("momentum:lam", "does not take 'lam'"),
        ("momentum:lam=x", "lam must be a number"),
        ("momentum:lam=inf", "lam must be finite"),
        ("momentum:lam=.99,lam=.9", "twice"),
        ("multi-power:warmup_in_memory=2", "0 or 1"),
        ("multi-power:nodes=1.5", "whole number"),
        ("multi-power:nodes=none", "whole number"),
    ],
)
def test_wrong_texts_of_laws(text, told):
    with pytest.raises(InputError, match=told):
        named_law(text)


@pytest.mark.parametrize(
    "text", ["momentum:lam=1", "multi-power:nodes=-1", "lr-fsl:rate_unit=0", "forcing-memory:clock_power=0"]
)
def test_options_that_no_run_allows_are_told_before_any_fit(split, text):
    with pytest.raises(InputError, match=text.partition(":")[2].partition("=")[0]):
        compare(*split, laws=(text,))
