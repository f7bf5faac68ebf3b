"""Laws in the effective lr on schedules that were not run: modelled norms in predictions, fit files and designs."""

import dataclasses
import itertools
import json
import warnings

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from test_cli import ask, call

from rfsim import schedules
from rfsim.checks import InputError
from rfsim.cli import main
from rfsim.logs import NormModel, run
from rfsim.surrogates import FitResult, fit, law, log_of_law
from rfsim.surrogates.block_rates import block_rates
from rfsim.surrogates.design_search import block_means, layout
from rfsim.surrogates.run_record import as_run
from rfsim.surrogates.schedule_design import design
from rfsim.surrogates.sensitivity import final_loss_and_slope

PEAK, BATCH, STEPS = 1e-3, 64.0, 1000
MODEL = NormModel(5.0, 0.05)  # it settles at .01 within some 100 steps of the largest lr
FALLING = law("elr-fsl", rate_unit=0.1), np.array([2.5, 3.0, 20.0, 0.35, 0.05, 2.0, 1.1])
FORCING = (
    law("forcing-memory", clock_power=0.5, effective=True, lr_unit=0.1, batch_unit=BATCH),
    np.array([2.5, 3.0, 0.35, 0.05, 0.4, 0.3, 1.1]),
)


def literal_norms(lr, model):
    return oracles.norms(lr, model.weight_decay, model.initial, model.update)


def loss_of(one, values, lr, model=MODEL):
    """Loss after the last step of a schedule, with norms by the literal recursion."""
    norms = literal_norms(lr, model)
    ready = one.prepare(as_run(schedules.from_arrays(lr, BATCH), [len(lr)], norm=norms))
    return one.evaluate(values, ready, gradient=False)[0][0]


# --- rates of blocks -------------------------------------------------------------------------------------------------


@given(
    lr=st.lists(st.floats(0.0, 0.5), min_size=1, max_size=40),
    decay=st.floats(0.0, 1.9),
    initial=st.floats(1e-3, 10.0),
    update=st.floats(0.1, 3.0),
)
def test_blocks_of_one_update_are_the_recursion(lr, decay, initial, update):
    model = NormModel(decay, initial, update)
    rate, _ = block_rates(np.array(lr), np.ones(len(lr)), model)
    assert_allclose(rate, np.array(lr) / literal_norms(lr, model), rtol=1e-11)


@pytest.mark.parametrize("decay", [0.0, 0.05, 5.0])
def test_blocks_have_nearly_the_mean_rate_of_their_updates(decay):
    steps, model = 20_000, NormModel(decay, 0.02, 0.9)
    schedule = schedules.cosine(steps, PEAK, BATCH, to=0.1, warmup=200)
    laid = layout(steps, 200, np.asarray(schedule.batch), np.array([200]), linear=False)
    assert laid.updates.max() > 40
    rate, _ = block_rates(block_means(schedule.lr, laid), laid.updates, model)
    every = np.asarray(schedule.lr) / literal_norms(np.asarray(schedule.lr), model)
    assert_allclose(rate, block_means(every, laid), rtol=2e-4)


@pytest.mark.parametrize("decay", [0.0, 1.0, 300.0])
def test_derivative_goes_through_all_later_norms(decay):
    """Central differences in the lr of each block, of one update and of many, for a number made of all rates."""
    model = NormModel(decay, 0.004, 1.3)
    count = np.array([1, 3, 1, 7, 50, 1, 1, 2, 9, 400, 3, 1])
    lr = PEAK * np.linspace(1.0, 0.2, 12)
    by_rate = np.random.default_rng(0).uniform(-1.0, 1.0, 12)
    rate, reverse = block_rates(lr, count, model)
    found, differences = reverse(by_rate), []
    for move in 1e-5 * np.diag(lr):
        higher, lower = (block_rates(lr + sign * move, count, model)[0] @ by_rate for sign in (1, -1))
        differences.append((higher - lower) / (2.0 * move.sum()))
    assert_allclose(found, differences, rtol=1e-6, atol=1e-6 * np.abs(found).max())
    at_fixed_norms = by_rate * rate / lr
    assert np.abs(found - at_fixed_norms).max() > 0.3 * np.abs(at_fixed_norms).max()


def test_derivative_at_an_lr_of_zero():
    lr, count = np.array([PEAK, 0.0, 0.0]), np.array([5, 1, 20])
    found = block_rates(lr, count, MODEL)[1](np.array([0.3, -0.2, 1.0]))
    for place, slope in enumerate(found):
        move = 1e-9 * np.eye(3)[place]
        first, second, third = (block_rates(lr + j * move, count, MODEL)[0] @ [0.3, -0.2, 1.0] for j in (0, 1, 2))
        assert slope == pytest.approx((4.0 * second - third - 3.0 * first) / 2e-9, rel=1e-5)


@pytest.mark.parametrize(("one", "values"), [FALLING, FORCING], ids=["elr-fsl", "forcing-memory"])
def test_final_loss_is_that_of_the_literal_norms(one, values):
    lr = np.asarray(schedules.cosine(400, PEAK, BATCH, to=0.1, warmup=20).lr)
    found, _ = final_loss_and_slope(one, values, lr, np.ones(400), np.full(400, BATCH), MODEL)
    assert found == pytest.approx(loss_of(one, values, lr), rel=5e-6)


# --- designs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "values"),
    [(FALLING[0], [2.5, 3.0, 3.0, 0.35, 0.05, 2.0, 1.1]), (FORCING[0], [2.5, 10.0, 0.35, 0.05, 0.4, 0.3, 1.1])],
    ids=["elr-fsl", "forcing-memory"],
)
def test_a_small_design_against_all_schedules_of_a_grid(one, values):
    """Six free steps in which the norm falls fivefold and more: no falling sequence of grid levels has a lower loss,
    nor has the design with any run of neighbours moved; the design at a norm that stays is far worse."""
    model, high = NormModel(30.0, 0.2), 0.02
    low, values, same = 0.05 * high, np.array(values), {"batch": BATCH, "places": range(6)}
    found = design((one, values), 6, lr_max=high, lr_min=low, norm=model, **same)
    lr = np.asarray(found.schedule.lr)
    assert literal_norms(lr, model)[-1] < 0.04
    assert found.loss == pytest.approx(loss_of(one, values, lr, model), rel=1e-12)
    grid = high * np.linspace(1.0, 0.05, 6)
    losses = [loss_of(one, values, np.array(each), model) for each in itertools.combinations_with_replacement(grid, 6)]
    assert found.loss <= min(losses) < max(losses) - 1.0
    for begin, stop in itertools.combinations(range(7), 2):
        for factor in (0.98, 1.02):
            moved = lr.copy()
            moved[begin:stop] *= factor
            moved = np.minimum.accumulate(np.clip(moved, low, high))
            assert loss_of(one, values, moved, model) >= found.loss - 1e-5
    still = design((one, values), 6, lr_max=high, lr_min=low, norm=NormModel(0.0, 0.2, 1e-9), **same)
    assert loss_of(one, values, np.asarray(still.schedule.lr), model) > found.loss + 1.0


def test_the_norm_changes_the_design():
    one, values = FALLING
    slow, quick = (
        np.asarray(design((one, values), 100, lr_max=PEAK, batch=BATCH, norm=model).schedule.lr)
        for model in (NormModel(1e-9, 0.01, 1e-9), NormModel(5.0, 0.002))
    )
    assert np.abs(slow - quick).max() > 0.05 * PEAK
    still = law("lr-fsl", rate_unit=0.001)  # a norm that stays at .01 only sets the unit
    assert_allclose(slow, design((still, values), 100, lr_max=PEAK, batch=BATCH).schedule.lr, atol=0.02 * PEAK)


@pytest.fixture(scope="module")
def fitted():
    """A fit in the effective lr to two noisy runs of the law itself, with modelled norms."""
    one, values = FALLING
    made = [
        log_of_law(seed, one, values, schedules.from_spec(spec, steps=STEPS, lr=PEAK, batch=BATCH), every=10,
                   noise=1e-3, norm=MODEL, name=spec[:3])
        for seed, spec in enumerate(("cosine:to=0.1,warmup=50", "wsd:decay=0.2,shape=linear,to=0.1,warmup=50"))
    ]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(law("elr-fsl"), [one.part(60, STEPS) for one in made])


def changed(result, change):
    """The fit with the record of its file changed."""
    record = json.loads(result.to_json())
    for one in record["runs"]:
        change(one)
    return FitResult.from_json(json.dumps(record))


def test_gain_has_the_spread_of_the_parameters_with_the_norms_of_each_schedule(fitted):
    found = design(fitted, STEPS, lr_min=0.1 * PEAK, warmup=50)
    assert found.norm_model == MODEL
    made, _, peak = found.best.partition(" at lr ")
    other = schedules.from_spec(made, steps=STEPS, lr=float(peak or PEAK), batch=BATCH)
    assert found.baselines[found.best] == pytest.approx(loss_of(fitted.law, fitted.values, np.asarray(other.lr)), 1e-9)
    slopes = []
    for lr in (found.schedule.lr, other.lr):
        row = []
        for move in np.diag(1e-5 * np.maximum(np.abs(fitted.values), 1e-3)):
            higher, lower = (loss_of(fitted.law, fitted.values + sign * move, np.asarray(lr)) for sign in (1, -1))
            row.append((higher - lower) / (2.0 * move.sum()))
        slopes.append(np.array(row))
    covariance = fitted.spread.covariance
    apart = slopes[1] - slopes[0]
    assert found.gain_stderr == pytest.approx(np.sqrt(apart @ covariance @ apart), rel=1e-3)
    assert found.loss_stderr == pytest.approx(np.sqrt(slopes[0] @ covariance @ slopes[0]), rel=1e-3)
    assert 0.0 < found.gain_stderr < found.loss_stderr


def test_gain_has_the_spread_of_bootstrap_samples(fitted):
    samples = fitted.values * np.exp(0.01 * np.random.default_rng(3).standard_normal((20, 7)))
    result = dataclasses.replace(fitted, samples=samples)
    found = design(result, STEPS, lr_min=0.1 * PEAK, warmup=50, stages=2)
    made, _, peak = found.best.partition(" at lr ")
    other = schedules.from_spec(made, steps=STEPS, lr=float(peak or PEAK), batch=BATCH)
    gains = [
        loss_of(fitted.law, one, np.asarray(other.lr)) - loss_of(fitted.law, one, np.asarray(found.schedule.lr))
        for one in samples
    ]
    assert found.gain_stderr == pytest.approx(np.std(gains, ddof=1), rel=1e-9)


def test_an_effective_lr_that_was_not_fitted_is_told(fitted):
    told = " | ".join(design(fitted, 200, warmup=50, stages=2, norm=NormModel(5.0, 0.002)).notes)
    assert "the effective lr rises to" in told
    assert "effective" not in " | ".join(design(fitted, STEPS, warmup=50, stages=2).notes)


# --- predictions -----------------------------------------------------------------------------------------------------


def test_a_schedule_is_predicted_as_the_run_of_it(fitted):
    schedule = schedules.from_spec("wsd:decay=0.3,warmup=50", steps=STEPS, lr=PEAK, batch=BATCH)
    at = np.array([100, 700, 1000])
    norms = literal_norms(np.asarray(schedule.lr), MODEL)
    by_run = fitted.predict(run(at, np.ones(3), schedule, norm=norms))
    for found in (fitted.predict(schedule, at), fitted.predict(schedule, at, norm=norms)):
        for mine, theirs in zip(found, by_run, strict=True):
            assert_allclose(mine, theirs, rtol=1e-12)
    bare = run(at, np.ones(3), schedule)
    assert_allclose(fitted.predict(bare, norm=MODEL).loss, by_run.loss, rtol=1e-12)
    assert fitted.run_of(schedule, at).norm_model == MODEL
    other = fitted.predict(schedule, at, norm=NormModel(1.0))
    assert np.abs(other.loss - by_run.loss).min() > 1e-3
    with pytest.raises(InputError, match=r'give the run a norm .*norm="weight-decay"'):
        fitted.predict(bare)


def test_norms_that_no_model_gives_are_asked_for(fitted):
    schedule = schedules.constant(STEPS, PEAK, BATCH)
    measured = changed(fitted, lambda one: one.update(norm_model=None))
    with pytest.raises(InputError, match=r"those of cos were measured .*norm=NormModel\(.*--weight-decay W"):
        measured.predict(schedule)
    with pytest.raises(InputError, match="those of cos were measured"):
        design(measured, STEPS, warmup=50)
    assert_array_equal(measured.predict(schedule, norm=MODEL).loss, fitted.predict(schedule).loss)
    assert design(measured, 60, warmup=50, stages=1, norm=MODEL).norm_model == MODEL
    decays = iter((5.0, 4.0))
    apart = changed(fitted, lambda one: one["norm_model"].update(weight_decay=next(decays)))
    with pytest.raises(
        InputError, match=r"different models of it \(cos: weight_decay 5.*; wsd: weight_decay 4.*--weight"
    ):
        apart.predict(schedule)
    with pytest.raises(InputError, match="norm has 3, lr has 1000"):
        fitted.predict(schedule, norm=np.ones(3))
    with pytest.raises(InputError, match="below 1"):
        fitted.predict(schedule, norm=NormModel(1e3))


# --- the file --------------------------------------------------------------------------------------------------------


def test_the_model_is_in_the_file(fitted):
    assert [one.norm_model for one in fitted.runs] == [MODEL, MODEL]
    rates = [np.asarray(schedules.cosine(STEPS, PEAK, BATCH, to=0.1, warmup=50).lr)]
    assert fitted.runs[0].effective_lr == pytest.approx((rates[0] / literal_norms(rates[0], MODEL)).max(), rel=1e-11)
    again = FitResult.from_json(fitted.to_json())
    assert again.runs[1].norm_model == MODEL
    assert again.to_json() == fitted.to_json()
    schedule = schedules.constant(STEPS, PEAK, BATCH)
    assert_array_equal(again.predict(schedule).loss, fitted.predict(schedule).loss)


def test_a_file_from_before_the_model_is_read(fitted):
    def older(one):
        del one["norm_model"], one["effective_lr"]

    again = changed(fitted, older)
    assert again.runs[0].norm_model is None
    assert np.isnan(again.runs[0].effective_lr)
    schedule = schedules.constant(STEPS, PEAK, BATCH)
    with pytest.raises(InputError, match="the fit file does not say how they were modelled"):
        again.predict(schedule)
    assert_array_equal(again.predict(schedule, norm=MODEL).loss, fitted.predict(schedule).loss)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (3, r"runs\[0\].norm_model must be an object"),
        ({"weight_decay": 5.0, "initial": 0.02}, r"runs\[0\].norm_model.update is missing"),
        ({"weight_decay": -5.0, "initial": 0.02, "update": 1.0}, "weight_decay must be a number of at least 0"),
        ({"weight_decay": "5", "initial": 0.02, "update": 1.0}, "weight_decay must be a number of at least 0"),
        ({"weight_decay": 5.0, "initial": 0.0, "update": 1.0}, "initial must be a number above 0"),
        ({"weight_decay": 5.0, "initial": 0.02, "update": None}, "update must be a number above 0"),
        (
            {"weight_decay": 5.0, "initial": 0.02, "update": 1.0, "colour": 1},
            "must be an object of weight_decay, initial",
        ),
    ],
)
def test_a_model_that_is_none_is_refused(fitted, entry, message):
    with pytest.raises(InputError, match=message):
        changed(fitted, lambda one: one.update(norm_model=entry))


# --- the command line ------------------------------------------------------------------------------------------------


def write(path, spec, seed, decay):
    """A tracker file of a run of the law: rows of loss and lr, and a configuration."""
    one, values = FALLING
    schedule = schedules.from_spec(spec, steps=STEPS, lr=PEAK, batch=1.0)
    log = log_of_law(seed, one, values, schedule, every=10, noise=1e-3, norm=NormModel(decay, 0.05)).part(20, STEPS)
    lr = np.append(np.asarray(schedule.lr), np.asarray(schedule.lr)[-1])
    train = {"iter": list(range(STEPS + 1)), "train_lr": lr.tolist()}
    held = {"iter": log.step.astype(int).tolist(), "train_loss": log.loss.tolist()}
    config = {"weight_decay": decay, "init_std": 0.05}
    text = json.dumps({"config": config, "history": {"lr": train, "train": held}, "summary": {}, "name": path.stem})
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("norms")
    made = {
        "cos": write(folder / "cos.json", "cosine:to=0.1", 0, 5.0),
        "wsd": write(folder / "wsd.json", "wsd:decay=0.2,shape=linear,to=0.1", 1, 5.0),
        "other": write(folder / "other.json", "linear:to=0.1", 2, 5.0),
        "light": write(folder / "light.json", "linear:to=0.1", 2, 2.0),
    }
    return {name: str(path) for name, path in made.items()}


@pytest.fixture(scope="module")
def fit_files(files, tmp_path_factory):
    """Fits of the command line: in the effective lr, with two weight decays, and in the lr."""
    folder = tmp_path_factory.mktemp("fits")
    effective, mixed, plain = (str(folder / f"{name}.json") for name in ("effective", "mixed", "plain"))
    norm = ["--norm", "weight-decay"]
    for command in (
        [files["cos"], files["wsd"], "--law", "elr-fsl", *norm, "--out", effective],
        [files["cos"], files["light"], "--law", "elr-fsl", *norm, "--out", mixed],
        [files["cos"], files["wsd"], "--law", "lr-fsl", "--out", plain],
    ):
        assert main(["fit", *command, "--json"]) == 0
    return {"EFFECTIVE": effective, "MIXED": mixed, "PLAIN": plain}


def test_commands_model_the_norm_of_a_schedule(capsys, files, fit_files):
    effective = fit_files["EFFECTIVE"]
    at = ["--at", "100,500,1000"]
    found = ask(capsys, "predict", effective, "--schedule", "linear:to=0.1", "--steps", "1000", *at)
    assert found["norm_model"] == {"weight_decay": 5.0, "initial": 0.05, "update": 1.0}
    log = ask(capsys, "predict", effective, files["other"], "--norm", "weight-decay")
    rows = [log["step"].index(step) for step in found["step"]]
    for name in ("loss", "stderr", "low", "high"):
        assert_allclose(found[name], [log[name][row] for row in rows], rtol=1e-9)
    assert log["rmse"] < 0.01
    same = ask(
        capsys, "predict", effective, "--schedule", "linear:to=0.1", "--steps", "1000", *at,
        "--weight-decay", "5", "--init-std", "0.05",
    )  # fmt: skip
    assert same["loss"] == found["loss"]
    assert same["warnings"] == []
    other = ask(
        capsys, "predict", effective, "--schedule", "linear:to=0.1", "--steps", "1000", *at, "--weight-decay", "20"
    )
    assert other["norm_model"] == {"weight_decay": 20.0, "initial": 0.02, "update": 1.0}
    assert other["loss"] != found["loss"]
    lr = np.asarray(schedules.from_spec("linear:to=0.1", steps=STEPS, lr=PEAK, batch=1.0).lr)
    peak = (lr / literal_norms(lr, NormModel(20.0, 0.02))).max()
    assert f"the largest effective lr, {peak:.4g}, is above those of the fitted runs" in other["warnings"][0]
    plain = ask(capsys, "predict", fit_files["PLAIN"], "--schedule", "linear:to=0.1", "--steps", "1000")
    assert plain["norm_model"] is None
    assert "in the lr" in plain["reasons"]["norm_model"]


def test_commands_design_through_the_norm(capsys, fit_files, tmp_path):
    out = str(tmp_path / "best.csv")
    command = ["schedule", "design", fit_files["EFFECTIVE"], "--steps", "400", "--stages", "2"]
    found = ask(capsys, *command, "--out", out)
    result = FitResult.from_json(fit_files["EFFECTIVE"])
    expected = design(result, 400, stages=2)
    assert found["norm_model"] == {"weight_decay": 5.0, "initial": 0.05, "update": 1.0}
    assert found["final_loss"] == pytest.approx(expected.loss, rel=1e-12)
    assert found["gain_stderr"] > 0.0
    again = ask(capsys, "predict", fit_files["EFFECTIVE"], "--schedule", out, "--at", "400")
    assert again["loss"] == [pytest.approx(found["final_loss"], rel=1e-12)]
    assert again["stderr"] == [pytest.approx(found["final_loss_stderr"], rel=1e-9)]
    given = ask(capsys, *command, "--weight-decay", "2", "--init-std", "0.05")
    assert given["norm_model"]["weight_decay"] == 2.0
    assert given["final_loss"] == pytest.approx(
        design(result, 400, stages=2, norm=NormModel(2.0, 0.05)).loss, rel=1e-12
    )
    assert "norm_model: {" in call(capsys, *command)[1]
    status, text, _ = call(capsys, "schedule", "design", fit_files["PLAIN"], "--steps", "400", "--stages", "2")
    assert (status, "norm_model" in text) == (0, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "MIXED", "--schedule", "constant", "--steps", "9"], "different models of it (cos: weight_decay 5"),
        (["schedule", "design", "MIXED", "--steps", "9"], "--weight-decay W"),
        (["predict", "PLAIN", "--schedule", "constant", "--steps", "9", "--weight-decay", "1"], "leave the norm out"),
        (["schedule", "design", "PLAIN", "--steps", "9", "--weight-decay", "1"], "leave the norm out"),
        (["predict", "EFFECTIVE", "--schedule", "constant", "--steps", "9", "--init-std", "1"], "init-std goes with"),
        (
            ["predict", "EFFECTIVE", "--schedule", "constant", "--steps", "9", "--weight-decay", "-1"],
            "weight_decay must",
        ),
        (["predict", "EFFECTIVE", "--schedule", "constant", "--steps", "9", "--norm", "x"], "norm is for logs"),
        (["predict", "EFFECTIVE", "LOG", "--weight-decay", "1"], "weight-decay is for a schedule"),
        (["predict", "EFFECTIVE", "LOG"], "needs the parameter or update norm"),
        (["schedule", "design", "EFFECTIVE", "--steps", "9", "--weight-decay", "1e4"], "lower lr_max"),
        (
            ["schedule", "show", "constant", "--steps", "9", "--weight-decay", "1"],
            "weight-decay is for schedule design",
        ),
    ],
)
def test_commands_say_what_is_wrong_with_a_norm(capsys, files, fit_files, arguments, message):
    places = {**fit_files, "LOG": files["other"]}
    status, out, err = call(capsys, *[places.get(one, one) for one in arguments])
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
