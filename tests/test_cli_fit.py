"""`rfsim fit`, `predict` and `compare`: names and keys, files, warm-ups, and errors before any work."""

import json
import subprocess
import sys

import numpy as np
import pytest
from shared_data import shared

from rfsim import schedules
from rfsim.cli import Parser, main
from rfsim.cli.logs import add_fit_arguments, as_options
from rfsim.cli.output import emit
from rfsim.logs import read_run
from rfsim.surrogates import FitResult, law
from rfsim.surrogates.fit_file import WINDOWS

PEAK = 0.01
TRUE = {"L_0": 2.0, "A": 3.0, "alpha": 0.6, "C": 0.004, "steps": 60.0}
MOMENTUM = ["--law", "momentum"]


def call(capsys, *arguments):
    """Run one command in this process; return status, stdout and stderr."""
    try:
        status = main([str(one) for one in arguments])
    except SystemExit as stop:
        status = int(stop.code or 0)
    out, err = capsys.readouterr()
    return status, out, err


def ask(capsys, *arguments, status=0):
    """Run one command with --json and return what it printed, refusing NaN and Infinity."""
    found, out, err = call(capsys, *arguments, "--json")
    assert found == status, err

    def refuse(constant):
        raise AssertionError(f"{constant} in JSON")

    return json.loads(out, parse_constant=refuse)


def momentum_loss(lr, true):
    """The momentum law after every update, by its recursion; a rise of the lr counts nothing."""
    eta, lam = np.asarray(lr) / PEAK, 1.0 - 1.0 / true["steps"]
    average = total = clock = 0.0
    before, losses = eta[0], []
    for now in eta:
        average = lam * average + max(before - now, 0.0)
        total, clock, before = total + average, clock + now, now
        losses.append(true["L_0"] + true["A"] * clock ** -true["alpha"] - true["C"] * total)
    return np.array(losses)


def write(path, schedule, *, first=10, last=None, seed=0, batch=None):
    """A log of every tenth step; its lr is that of the update that follows, the last row has the last one."""
    at = np.arange(10, (last or schedule.steps) + 1, 10)
    at = at[at >= first]
    lr = np.append(np.asarray(schedule.lr), np.asarray(schedule.lr)[-1])
    noise = np.exp(1e-4 * np.random.default_rng(seed).standard_normal(schedule.steps))
    losses = momentum_loss(schedule.lr, TRUE) * noise
    rows = [f"{step},{float(losses[step - 1])!r},{float(lr[step])!r}" + (f",{batch}" if batch else "") for step in at]
    path.write_text("\n".join(["step,loss,lr" + (",batch" if batch else ""), *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Logs to fit (flat, fall) and to predict (step, long)."""
    folder = tmp_path_factory.mktemp("logs")
    made = {
        "flat": schedules.constant(600, PEAK, 1.0),
        "fall": schedules.stages(600, PEAK, 1.0, at=[0.4, 0.7], lr_to=[0.4, 0.1]),
        "step": schedules.stages(500, PEAK, 1.0, at=[0.6], lr_to=[0.3]),
        "long": schedules.constant(1200, PEAK, 1.0),
    }
    return {name: write(folder / f"{name}.csv", one, seed=at) for at, (name, one) in enumerate(made.items())}


@pytest.fixture(scope="module")
def fit_file(logs, tmp_path_factory):
    path = tmp_path_factory.mktemp("fits") / "fit.json"
    assert main(["fit", str(logs["flat"]), str(logs["fall"]), *MOMENTUM, "--out", str(path), "--json"]) == 0
    return path


# --- help ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["fit", "predict", "compare"])
def test_help_imports_no_jax(command):
    script = (
        "import sys\nfrom rfsim.cli import main\n"
        f"try:\n    main(['{command}', '--help'])\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "assert not {'jax', 'scipy', 'matplotlib'} & sys.modules.keys()"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "--warmup" in run.stdout


# --- fit -------------------------------------------------------------------------------------------------------------


def test_fit_finds_the_law_and_says_how_well(capsys, logs, tmp_path):
    out = tmp_path / "fit.json"
    found = ask(capsys, "fit", logs["flat"], logs["fall"], *MOMENTUM, "--out", out)
    for name, value in TRUE.items():
        low, high = found["conf_int"][name]
        assert low < found["parameters"][name] < high
        assert abs(found["parameters"][name] - value) < 4 * found["stderr"][name]
    assert found["law"] == "momentum"
    assert found["law_options"]["lr_unit"] == PEAK
    assert (found["at_bound"], found["unidentified"]) == ([], [])
    assert found["starts_share"] == 1.0
    assert (found["window"], found["warmup"]) == ("all", 0)
    assert found["versions"].keys() >= {"rfsim", "numpy"}
    assert found["fit_file"] == str(out)
    assert [one["name"] for one in found["runs"]] == ["flat", "fall"]
    for one in found["runs"]:
        assert one["rows"] == 60
        assert 0.5 < one["rmse"] / one["noise_floor"] < 2.0
        assert any("lr of every step" in line for line in one["findings"])
    kept = FitResult.from_json(out)
    assert kept.params == found["parameters"]
    assert kept.objective == found["objective"]
    assert kept.runs[0].lr == PEAK


def test_findings_and_warnings_go_to_stderr_in_single_lines(capsys, logs):
    status, out, err = call(capsys, "fit", logs["flat"], *MOMENTUM)  # no fall: C and steps are open
    assert status == 0
    lines = err.splitlines()
    assert all(line.startswith(("rfsim: log flat: ", "rfsim: warning: momentum: ")) for line in lines)
    assert any("is not determined by these runs" in line for line in lines)
    assert any("lr of every step" in line for line in lines)
    assert "not determined" in out
    assert "starts" in out


def test_held_parameters_and_options_of_laws(capsys, logs):
    held = ask(capsys, "fit", logs["flat"], logs["fall"], *MOMENTUM, "--fix", "alpha=0.6", "--fix", "steps=60")
    assert (held["parameters"]["alpha"], held["parameters"]["steps"]) == (0.6, 60.0)
    assert held["conf_int"]["alpha"] is None
    assert "alpha, steps fixed" in held["reasons"]["conf_int"]
    option = ask(capsys, "fit", logs["flat"], logs["fall"], "--law", f"momentum:lam={1 - 1 / 60!r}")
    assert "steps" not in option["parameters"]
    assert option["parameters"]["C"] == pytest.approx(TRUE["C"], rel=0.02)


def test_intervals_by_refits_and_by_resampling(capsys, logs):
    both = ("fit", logs["flat"], logs["fall"], *MOMENTUM)
    wald = ask(capsys, *both)
    found = {
        "profile": ask(capsys, *both, "--intervals", "profile"),
        "bootstrap": ask(capsys, *both, "--intervals", "bootstrap", "--resamples", "40", "--seed", "3"),
    }
    for method, one in found.items():
        assert one["intervals"] == method
        for name in TRUE:
            width, expected = np.diff(one["conf_int"][name])[0], np.diff(wald["conf_int"][name])[0]
            assert 0.2 < width / expected < 5.0
    again = ask(capsys, *both, "--intervals", "bootstrap", "--resamples", "40", "--seed", "3")
    assert again["conf_int"] == found["bootstrap"]["conf_int"]
    other = ask(capsys, *both, "--intervals", "bootstrap", "--resamples", "40", "--seed", "4")
    assert other["conf_int"] != again["conf_int"]
    narrow = ask(capsys, *both, "--level", "0.5")
    for name in TRUE:
        assert np.diff(narrow["conf_int"][name])[0] < np.diff(wald["conf_int"][name])[0]


def test_other_forms_are_fitted_if_asked_for(capsys, logs, tmp_path):
    out = tmp_path / "fit.json"
    both = ("fit", logs["flat"], logs["fall"], "--law", "multi-power", "--fix", "L_0=2", "--out", out)
    plain = ask(capsys, *both)
    assert plain["alternatives"] is None
    assert "--alternatives" in plain["reasons"]["alternatives"]
    found = ask(capsys, *both, "--alternatives")
    assert found["parameters"] == plain["parameters"]
    assert found["conf_int"] == plain["conf_int"]
    forms = found["alternatives"]["forms"]
    assert [form["name"] for form in forms] == ["as fitted", "gamma = 0", "gamma = 1"]
    assert forms[1]["fixed"] == {"L_0": 2.0, "gamma": 0.0}
    assert forms[0]["params"] == found["parameters"]
    kept = [form["params"]["beta"] for form in forms if form["name"] == "as fitted" or not form["rejected"]]
    assert found["alternatives"]["ranges"]["beta"] == [min(kept), max(kept)]
    assert found["alternatives"]["intervals"]["beta"][1] >= max(kept)
    assert FitResult.from_json(out).alternatives.report()["ranges"] == found["alternatives"]["ranges"]
    status, text, _ = call(capsys, *both, "--alternatives")
    assert status == 0
    assert "forms, with their error over the lowest: as fitted" in text


def test_a_better_form_is_told(capsys, tmp_path):
    """A log of the forcing-memory law whose forcing is a power from the first step on."""
    from rfsim.logs import run
    from rfsim.surrogates import law

    one = law("forcing-memory", lr_unit=PEAK, batch_unit=1.0, forcing_start=0.01)
    at, schedule = np.arange(1, 101), schedules.eight_one_one(100, PEAK, 1.0)
    values = np.array([2.0, 3.0, 0.5, 0.05, 0.0, 0.1, 1.2])
    loss = one.evaluate(values, one.prepare(run(at, np.ones(100), schedule)))[0]
    loss = loss * np.exp(1e-3 * np.random.default_rng(0).standard_normal(100))
    path = tmp_path / "early.csv"
    path.write_text("step,loss\n" + "".join(f"{s},{float(x)!r}\n" for s, x in zip(at, loss, strict=True)))
    given = ("--schedule", "8-1-1", "--lr", PEAK, "--batch", 1, "--law", "forcing-memory", "--alternatives")
    found = ask(capsys, "fit", path, *given)
    (told,) = [line for line in found["warnings"] if "fits better" in line]
    assert "forcing_start = 0.01" in told
    _, text, err = call(capsys, "fit", path, *given)
    assert told in err
    assert told in text


def test_one_run_in_two_files_and_runs_of_one_name(capsys, logs, tmp_path):
    lines = logs["fall"].read_text().splitlines()
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text("\n".join(lines[:40]) + "\n")
    two.write_text("\n".join([lines[0], *lines[30:]]) + "\n")  # ten rows are in both
    whole = ask(capsys, "fit", logs["flat"], logs["fall"], *MOMENTUM)
    parts = ask(capsys, "fit", logs["flat"], f"{one}+{two}", *MOMENTUM)
    assert parts["parameters"] == whole["parameters"]
    assert any("10 rows of one.csv" in line for line in parts["runs"][1]["findings"])
    twin = tmp_path / "flat.csv"
    twin.write_text(logs["flat"].read_text())
    named = ask(capsys, "fit", logs["flat"], twin, logs["fall"], *MOMENTUM)
    assert [run["name"] for run in named["runs"]] == [
        f"{logs['flat'].parent.name}/flat", f"{tmp_path.name}/flat", "fall",
    ]  # fmt: skip


def test_a_resumed_run_takes_rows_and_lr_of_its_parent(capsys, logs, tmp_path):
    plan = schedules.stages(600, PEAK, 1.0, at=[0.5, 0.75], lr_to=[0.5, 0.2])
    whole = write(tmp_path / "whole.csv", plan, seed=7)
    child = write(tmp_path / "child.csv", plan, seed=7, first=300)
    parent = write(tmp_path / "parent.csv", schedules.constant(400, PEAK, 1.0), seed=7)
    direct = ask(capsys, "fit", parent, whole, *MOMENTUM)
    joined = ask(capsys, "fit", parent, child, *MOMENTUM, "--parent", parent)
    run = joined["runs"][1]
    assert run["rows"] == 60
    assert any("resumed from parent at step 300" in line for line in run["findings"])
    assert run["intrinsic_time"] == pytest.approx(float(np.sum(plan.lr)), rel=1e-12)
    np.testing.assert_allclose(list(joined["parameters"].values()), list(direct["parameters"].values()), rtol=1e-3)


def test_schedule_columns_and_numbers_from_flags(capsys, logs, tmp_path):
    rows = [line.split(",") for line in logs["fall"].read_text().splitlines()[1:]]
    odd = tmp_path / "odd.csv"
    odd.write_text("when,what\n" + "".join(f"{step},{loss}\n" for step, loss, _ in rows))
    spec = ["--schedule", "cosine:to=0.1", "--lr", PEAK, "--step", "when", "--loss", "what", "--batch", "4"]
    found = ask(capsys, "fit", odd, *MOMENTUM, *spec, "--window", "last-decade")
    run = found["runs"][0]
    assert (run["lr"], run["batch"]) == (PEAK, 4.0)
    clock = np.cumsum(np.asarray(schedules.cosine(600, PEAK, 1.0, to=0.1).lr))
    assert run["intrinsic_time"] == pytest.approx(clock[-1], rel=1e-12)
    before = np.flatnonzero(clock[9::10] <= 0.1 * clock[-1])[-1]  # last logged row of the first tenth
    assert run["rows"] == 60 - before
    assert found["window"] == "last-decade"


def test_an_interrupted_fit_leaves_no_file(capsys, logs, tmp_path, monkeypatch):
    out = tmp_path / "fit.json"
    out.write_text("what was there")

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rfsim.provenance.os.replace", stop)
    status, _, err = call(capsys, "fit", logs["flat"], logs["fall"], *MOMENTUM, "--out", out)
    assert status == 130
    assert "interrupted" in err
    assert out.read_text() == "what was there"
    assert list(tmp_path.iterdir()) == [out]


def test_a_fit_is_kept_when_its_bootstrap_is_interrupted(capsys, logs, tmp_path, monkeypatch):
    plain, out = tmp_path / "plain.json", tmp_path / "fit.json"
    assert call(capsys, "fit", logs["flat"], logs["fall"], *MOMENTUM, "--out", plain)[0] == 0

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rfsim.surrogates.result.block_bootstrap", stop)
    asked = ("fit", logs["flat"], logs["fall"], *MOMENTUM, "--intervals", "bootstrap")
    status, _, err = call(capsys, *asked, "--out", out)
    assert status == 130
    assert f"{out} has the fit, for now without the resamples" in err
    assert "interrupted; the fit is kept if a line above says so" in err
    assert FitResult.from_json(out).params == FitResult.from_json(plain).params
    status, _, err = call(capsys, *asked)
    assert (status, "has the fit" in err) == (130, False)


def test_parameters_that_are_all_given_are_evaluated(capsys, logs, tmp_path):
    """Published constants by the command line; the fit file predicts as any other."""
    out, given = (
        tmp_path / "fit.json",
        {"L_0": 3.0, "A": 0.5, "alpha": 0.5, "B": 300.0, "C": 2.0, "beta": 0.6, "gamma": 0.6},
    )
    fixed = [word for name, value in given.items() for word in ("--fix", f"{name}={value}")]
    asked = ("fit", logs["flat"], logs["fall"], "--law", "multi-power", *fixed, "--out", out)
    status, told, err = call(capsys, *asked)
    assert status == 0
    assert "all parameters were given; evaluated, not fitted" in err
    assert "at the given parameters, no fit" in told
    assert FitResult.from_json(out).params == given
    found = ask(capsys, *asked)
    one, run = law("multi-power"), read_run(logs["fall"])
    values = np.array(list(given.values()))
    miss = one.evaluate(values, one.prepare(run), gradient=False)[0] - run.loss
    assert found["runs"][1]["rmse"] == pytest.approx(np.sqrt(np.mean(miss**2)), rel=1e-9)
    assert call(capsys, "predict", out, logs["fall"])[0] == 0


def test_what_an_interrupted_command_keeps(capsys, logs, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rfsim.cli.predict.run", stop)
    status, _, err = call(capsys, "predict", "fit.json", logs["fall"])
    assert (status, err) == (130, "\nrfsim predict: interrupted; nothing is kept\n")


# --- predict ---------------------------------------------------------------------------------------------------------


def test_predicted_logs_are_compared_with_what_they_logged(capsys, logs, fit_file):
    found = ask(capsys, "predict", fit_file, logs["step"], logs["long"])
    true = FitResult.from_json(fit_file).params
    made = {
        "step": schedules.stages(500, PEAK, 1.0, at=[0.6], lr_to=[0.3]),
        "long": schedules.constant(1200, PEAK, 1.0),
    }
    rows = {name: np.array(found[name]) for name in ("run", "step", "loss", "stderr", "low", "high", "observed")}
    assert list(rows["run"]) == ["step"] * 50 + ["long"] * 120
    for one, (name, schedule) in zip(found["per_file"], made.items(), strict=True):
        own = rows["run"] == name
        literal = momentum_loss(schedule.lr, true)[rows["step"][own] - 1]
        np.testing.assert_allclose(rows["loss"][own], literal, rtol=1e-10)
        error = rows["loss"][own] - rows["observed"][own]
        assert one["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-9)
        assert one["file"] == str(logs[name])
        inside = (rows["low"][own] <= rows["observed"][own]) & (rows["observed"][own] <= rows["high"][own])
        assert one["coverage"] == pytest.approx(inside.mean())
    assert found["rmse"] == pytest.approx(np.mean([one["rmse"] for one in found["per_file"]]))
    assert found["per_file"][1]["horizon_ratio"] == pytest.approx(2.0, rel=1e-9)
    assert len(found["warnings"]) == 1
    assert "long reaches 2 times" in found["warnings"][0]


def test_a_schedule_takes_lr_and_batch_of_the_fit(capsys, fit_file):
    found = ask(capsys, "predict", fit_file, "--schedule", "linear:to=0.2", "--steps", "400", "--at", "50,400,200")
    assert (found["lr"], found["batch"], found["warmup"], found["steps"]) == (PEAK, 1.0, 0.0, 400)
    assert found["step"] == [50, 200, 400]
    true = FitResult.from_json(fit_file).params
    literal = momentum_loss(schedules.linear(400, PEAK, 1.0, to=0.2).lr, true)[[49, 199, 399]]
    np.testing.assert_allclose(found["loss"], literal, rtol=1e-10)
    assert all(low < loss < high for low, loss, high in zip(found["low"], found["loss"], found["high"], strict=True))
    assert found["observed"] == [None] * 3
    assert "observed" in found["reasons"]
    half = ask(capsys, "predict", fit_file, "--schedule", "linear:to=0.2", "--at", "400", "--lr", str(PEAK / 2))
    assert half["steps"] == 400
    np.testing.assert_allclose(
        half["loss"], momentum_loss(schedules.linear(400, PEAK / 2, 1.0, to=0.2).lr, true)[[399]], rtol=1e-10
    )


def test_default_rows_of_a_schedule_begin_where_the_fit_does(capsys, fit_file):
    found = ask(capsys, "predict", fit_file, "--schedule", "constant", "--steps", "5000")
    assert (found["step"][0], found["step"][-1]) == (10, 5000)
    assert 100 < len(found["step"]) <= 200
    few = ask(capsys, "predict", fit_file, "--schedule", "constant", "--steps", "5000", "--rows", "3")
    assert len(few["step"]) == 3
    assert (few["step"][0], few["step"][-1]) == (10, 5000)
    status, out, _ = call(capsys, "predict", fit_file, "--schedule", "constant", "--steps", "5000")
    assert status == 0
    assert len(out.splitlines()) == 40 + 4


def test_schedule_files_have_every_step(capsys, fit_file, tmp_path):
    path = tmp_path / "plan.csv"
    schedule = schedules.wsd(300, PEAK, 1.0, decay=0.4, shape="linear", to=0.1)
    schedules.write_schedule(path, schedule)
    found = ask(capsys, "predict", fit_file, "--schedule", path, "--at", "300")
    literal = momentum_loss(schedule.lr, FitResult.from_json(fit_file).params)[-1]
    assert found["loss"][0] == pytest.approx(literal, rel=1e-10)
    assert found["warmup"] is None
    assert "schedule file" in found["reasons"]["warmup"]


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """Two logs whose first 40 steps, a warm-up, are in no row, and one more."""
    folder = tmp_path_factory.mktemp("warm")
    kinds = {
        "flat": schedules.constant(600, PEAK, 1.0),
        "fall": schedules.stages(600, PEAK, 1.0, at=[0.5], lr_to=[0.3]),
        "next": schedules.stages(500, PEAK, 1.0, at=[0.4], lr_to=[0.5]),
    }
    found = {
        name: write(folder / f"{name}.csv", schedules.warmed(one, 40), first=50, seed=at)
        for at, (name, one) in enumerate(kinds.items())
    }
    path = folder / "fit.json"
    arguments = ["fit", str(found["flat"]), str(found["fall"]), *MOMENTUM, "--warmup", "40", "--out", str(path)]
    assert main([*arguments, "--json"]) == 0
    return found, path


def test_the_warm_up_of_the_fit_is_used_unless_told_otherwise(capsys, warm):
    found, path = warm
    assert [one.warmup for one in FitResult.from_json(path).runs] == [40, 40]
    asked = ask(capsys, "predict", path, found["next"], "--warmup", "40")
    silent = ask(capsys, "predict", path, found["next"])
    without = ask(capsys, "predict", path, found["next"], "--warmup", "0")
    assert silent["loss"] == asked["loss"]
    assert silent["per_file"][0]["warmup"] == 40
    assert without["per_file"][0]["warmup"] == 0
    assert without["rmse"] > 3 * silent["rmse"]
    plan = ask(capsys, "predict", path, "--schedule", "constant", "--steps", "500", "--at", "500")
    true = FitResult.from_json(path).params
    warmed = schedules.warmed(schedules.constant(500, PEAK, 1.0), 40)
    assert plan["warmup"] == 40
    assert plan["loss"][0] == pytest.approx(momentum_loss(warmed.lr, true)[-1], rel=1e-10)
    own = ask(capsys, "predict", path, "--schedule", "constant:warmup=100", "--steps", "500", "--at", "500")
    warmed = schedules.warmed(schedules.constant(500, PEAK, 1.0), 100)
    assert own["loss"][0] == pytest.approx(momentum_loss(warmed.lr, true)[-1], rel=1e-10)


def test_a_log_that_starts_at_once_gets_no_warm_up(capsys, warm, logs):
    found = ask(capsys, "predict", warm[1], logs["flat"], warm[0]["next"])
    assert [one["warmup"] for one in found["per_file"]] == [0, 40]


def test_different_warm_ups_have_to_be_chosen_between(capsys, warm, logs, tmp_path):
    path = tmp_path / "mixed.json"
    record = json.loads(warm[1].read_text())
    record["runs"][0]["warmup"] = 20
    path.write_text(json.dumps(record))
    for arguments in ([warm[0]["next"]], ["--schedule", "constant", "--steps", "100"]):
        status, _, err = call(capsys, "predict", path, *arguments)
        assert status == 2
        assert "warmup is missing" in err
        assert call(capsys, "predict", path, *arguments, "--warmup", "40")[0] == 0
    assert call(capsys, "predict", path, logs["flat"])[0] == 0  # it starts at once


def test_a_fit_file_without_lr_asks_for_it(capsys, fit_file, tmp_path):
    record = json.loads(fit_file.read_text())
    for one in record["runs"]:
        del one["lr"], one["intrinsic_time"]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(record))
    status, _, err = call(capsys, "predict", path, "--schedule", "constant", "--steps", "100")
    assert status == 2
    assert "lr is missing" in err
    found = ask(capsys, "predict", path, "--schedule", "constant", "--steps", "100", "--lr", PEAK)
    assert found["horizon_ratio"] is None
    assert "horizon_ratio" in found["reasons"]


# --- compare ---------------------------------------------------------------------------------------------------------


def test_compare_puts_all_laws_on_one_split(capsys, logs):
    split = [logs["flat"], logs["fall"], "--predict", logs["step"], logs["long"]]
    laws = [text for one in ("momentum", "multi-power", "elr-fsl", "chinchilla") for text in ("--law", one)]
    found = ask(capsys, "compare", *split, *laws)
    rows = {one["law"]: one for one in found["laws"]}
    assert list(rows) == ["momentum", "multi-power", "elr-fsl", "chinchilla"]
    for name in ("elr-fsl", "chinchilla"):
        assert rows[name]["parameters"] is rows[name]["train_rmse"] is rows[name]["test_rmse"] is None
        assert rows[name]["per_file"] == []
        assert rows[name]["reason"] == found["reasons"][name]
    own = rows["momentum"]
    assert [(one["file"], one["split"]) for one in own["per_file"]] == [
        (str(logs["flat"]), "train"), (str(logs["fall"]), "train"),
        (str(logs["step"]), "test"), (str(logs["long"]), "test"),
    ]  # fmt: skip
    assert own["test_rmse"] == pytest.approx(np.mean([one["rmse"] for one in own["per_file"][2:]]))
    assert own["test_rmse"] < rows["multi-power"]["test_rmse"]
    assert [one["name"] for one in found["predicted"]] == ["step", "long"]
    fitted = ask(capsys, "fit", logs["flat"], logs["fall"], *MOMENTUM)
    assert own["parameters"] == fitted["parameters"]
    status, out, err = call(capsys, "compare", *split, *laws)
    assert status == 0
    assert "noise floor" in out
    assert "rfsim: log step: " in err


def test_a_log_on_both_sides_is_told(capsys, logs):
    again = logs["fall"].parent / ".." / logs["fall"].parent.name / "fall.csv"
    found = ask(capsys, "compare", logs["flat"], logs["fall"], *MOMENTUM, "--predict", again)
    assert found["warnings"][0] == "fall is fitted and predicted: it is no test of the fit"


def test_norms_make_the_law_of_effective_rates_apply(capsys, logs, tmp_path):
    found = []
    for name, norm in (("flat", 2.0), ("fall", 2.0), ("step", 2.0)):
        path = tmp_path / f"{name}.csv"
        first, *rows = logs[name].read_text().splitlines()
        path.write_text("\n".join([f"{first},size", *(f"{row},{norm}" for row in rows)]) + "\n")
        found.append(path)
    laws = ["--law", "elr-fsl", "--law", "lr-fsl"]
    elr, lr = ask(capsys, "compare", *found[:2], *laws, "--predict", found[2], "--norm", "size")["laws"]
    assert elr["reason"] is None
    assert elr["law_options"]["rate_unit"] == pytest.approx(lr["law_options"]["rate_unit"] / 2.0)
    assert elr["test_rmse"] == pytest.approx(lr["test_rmse"], rel=1e-3)  # a norm that stays only sets the unit


def test_no_law_that_applies_is_a_failure(capsys, logs):
    found = ask(
        capsys, "compare", logs["flat"], "--law", "elr-fsl", "--predict", logs["fall"], status=1
    )  # fmt: skip
    assert found["laws"][0]["test_rmse"] is None


@pytest.mark.parametrize(("size", "sgd", "half"), [("25M", 0.0052, 0.0050), ("100M", 0.0058, 0.0051)])
def test_published_curves_three_fitted_six_predicted(capsys, size, sgd, half):
    fitted = [shared("mpl", size, f"{name}.csv") for name in ("cosine_24000", "constant_24000", "wsdcon_9")]
    others = ("constant_72000", "cosine_72000", "wsd_20000_24000", "wsdld_20000_24000", "wsdcon_3", "wsdcon_18")
    tests = [shared("mpl", size, f"{name}.csv") for name in others]
    laws = ["--law", "forcing-memory", "--law", "forcing-memory:clock_power=0.5"]
    found = ask(capsys, "compare", *fitted, *laws, "--predict", *tests, "--warmup", "2160")
    assert [one["test_rmse"] <= limit for one, limit in zip(found["laws"], (sgd, half), strict=True)] == [True, True]
    for one in found["laws"]:
        assert one["starts_share"] == 1.0
        files = {file["name"]: file for file in one["per_file"] if file["split"] == "test"}
        assert max(files, key=lambda name: files[name]["rmse"]) == "cosine_72000"
        assert files["constant_72000"]["horizon_ratio"] > 3.0
        assert all(file["noise_floor"] < file["rmse"] for file in files.values())


# --- final losses ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Final losses of 30 runs from known constants, and one far outlier."""
    folder = tmp_path_factory.mktemp("points")
    random = np.random.default_rng(5)
    size, tokens = 10 ** random.uniform(7, 10, 30), 10 ** random.uniform(9, 11.5, 30)
    loss = (1.8 + 480 * size**-0.35 + 2000 * tokens**-0.37) * np.exp(1e-3 * random.standard_normal(30))
    lines = [
        f"{n!r},{6 * n * d!r},{one!r}" for n, d, one in zip(*map(np.ndarray.tolist, (size, tokens, loss)), strict=True)
    ]
    path = folder / "points.csv"
    path.write_text("\n".join(["params,flops,loss", *lines, "1e8,6e17,9.5"]) + "\n")
    return path


def test_final_losses(capsys, table, tmp_path):
    out = tmp_path / "fit.json"
    arguments = ("fit", table, "--law", "chinchilla", "--drop-largest", "1", "--resamples", "100", "--out", out)
    found = ask(capsys, *arguments)
    truth = {"E": 1.8, "A": 480.0, "B": 2000.0, "alpha": 0.35, "beta": 0.37}
    for name, value in truth.items():
        assert abs(found["parameters"][name] - value) < 5 * found["stderr"][name]
        assert found["conf_int"][name][0] < found["parameters"][name] < found["conf_int"][name][1]
    assert found["runs"][0]["rows"] == found["rows"] == 30
    assert found["warmup"] is None
    predicted = ask(capsys, "predict", out, table)
    e, a, b, alpha, beta = found["parameters"].values()
    size, tokens = np.array(predicted["model_size"]), np.array(predicted["tokens"])
    np.testing.assert_allclose(predicted["loss"], e + a * size**-alpha + b * tokens**-beta, rtol=1e-12)
    error = np.array(predicted["loss"]) - np.array(predicted["observed"])
    assert predicted["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)))
    assert abs(error[-1]) > 1.0  # the outlier is predicted, and is far off
    assert predicted["coverage"] >= 27 / 31
    assert call(capsys, *arguments[:4], "--resamples", "20")[0] == 0
    assert call(capsys, "predict", out, table)[0] == 0
    few = ask(capsys, "predict", out, table, "--rows", "3")
    for name in ("model_size", "tokens", "loss", "stderr", "low", "high", "observed"):
        assert few[name] == [predicted[name][at] for at in (0, 15, 30)]
    assert (few["rmse"], few["coverage"]) == (predicted["rmse"], predicted["coverage"])  # of all points
    text = call(capsys, "predict", out, table, "--rows", "3")[1]
    assert len(text.partition("\n\n")[0].splitlines()) == 4
    # the outlier was left out: 30 points, five parameters
    rest = np.log(np.array(predicted["loss"]) / np.array(predicted["observed"]))[:30]
    assert found["scatter"] == pytest.approx(np.sqrt((rest**2).sum() / 25), rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--warmup", "3"], "warmup is for loss curves"),
        (["--fix", "E=1"], "fix is for loss curves"),
        (["--window", "last-decade"], "window is for loss curves"),
        (["--intervals", "wald"], "intervals is for loss curves"),
        (["--drop-largest", "-1"], "drop_largest"),
        (["--drop-largest", "99"], "at most 30"),
        (["--model-size", "colour"], "colour"),
        (["--resamples", "1"], "resamples"),
    ],
)
def test_wrong_arguments_for_final_losses(capsys, table, arguments, told):
    status, out, err = call(capsys, "fit", table, "--law", "chinchilla", *arguments)
    assert (status, out) == (2, "")
    assert told in err


# --- messages --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("give parents=, warmup= or schedule=", "give --parent, --warmup or --schedule"),
        ("parents must hold the run", "parent must hold the run"),
        ("schedule= (a SPEC, lr=PEAK) or step,lr", "--schedule (a SPEC, --lr PEAK) or step,lr"),
        ("tokens_per_step is needed; give tokens_per_step=", "tokens-per-step is needed; give --tokens-per-step"),
        ("wsd:decay=0.2,warmup=9 takes warmup=..., to=...", "wsd:decay=0.2,warmup=9 takes warmup=..., to=..."),
        ("batch is 1 (give batch= to set it)", "batch is 1 (give --batch to set it)"),
    ],
)  # fmt: skip
def test_arguments_in_messages_are_those_of_the_command_line(text, told):
    assert as_options(text) == told


def test_errors_and_findings_name_options(capsys, tmp_path):
    at = np.arange(500, 1001, 10)
    rows = [f"{s},{2.0 + 1 / s!r},{PEAK * (1.0 - s / 2000)!r}" for s in at.tolist()]
    (tmp_path / "late.csv").write_text("\n".join(["step,loss,lr", *rows]))
    status, _, err = call(capsys, "fit", tmp_path / "late.csv", *MOMENTUM)
    assert status == 2
    assert "begin inside a linear decay; give --parent, --warmup or --schedule" in err
    (tmp_path / "flat.csv").write_text(
        "\n".join(["step,loss,lr", *(f"{s},{2.0 + 1 / s!r},{PEAK}" for s in at.tolist())])
    )
    found = ask(capsys, "fit", tmp_path / "flat.csv", "--law", "momentum", "--fix", "C=0", "--fix", "steps=50")
    assert any("without warm-up (give --warmup or --parent)" in line for line in found["runs"][0]["findings"])


def test_choices_of_the_window_are_those_of_the_fit():
    parser = Parser()
    add_fit_arguments(parser)
    assert parser.parse_args([]).window == WINDOWS[0]
    for window in WINDOWS:
        assert parser.parse_args(["--window", window]).window == window
    with pytest.raises(SystemExit):
        parser.parse_args(["--window", "first"])


def test_nested_numbers_that_are_not_finite_have_a_reason(capsys):
    gap = float("nan")
    found = {
        "runs": [{"name": "a", "noise_floor": gap}],
        "rows": [1.0, float("inf")],
        "fine": [1.0, {"x": 2}],
        "known": gap,
    }
    emit(found, True, reasons={"known": "told before"})
    printed = json.loads(capsys.readouterr().out)
    assert printed["runs"][0]["noise_floor"] is printed["rows"][1] is printed["known"] is None
    assert printed["reasons"] == {
        "noise_floor": "not a finite number",
        "rows": "not a finite number",
        "known": "told before",
    }


def test_rows_before_the_first_update_are_told_by_compare(capsys, logs, tmp_path):
    first, *rows = logs["flat"].read_text().splitlines()
    (tmp_path / "early.csv").write_text("\n".join([first, f"0,9.0,{PEAK}", *rows]))
    found = ask(capsys, "compare", tmp_path / "early.csv", "--law", "momentum", "--predict", logs["fall"])
    assert found["fitted"][0]["findings"][-1] == "1 row before the first update with a positive lr: left out"
    assert found["fitted"][0]["rows"] == len(rows)


def test_compare_says_why_a_noise_floor_is_null(capsys, logs, tmp_path):
    first, *rows = logs["fall"].read_text().splitlines()
    (tmp_path / "few.csv").write_text("\n".join([first, *rows[::9]]))
    found = ask(capsys, "compare", logs["flat"], "--law", "momentum", "--predict", tmp_path / "few.csv")
    (few,) = (one for one in found["laws"][0]["per_file"] if one["name"] == "few")
    assert few["noise_floor"] is None
    assert found["reasons"]["noise_floor"] == "a noise floor needs at least 8 rows"


def test_a_schedule_file_takes_no_warm_up_of_the_fit(capsys, warm, logs, tmp_path):
    """The fitted runs rise over 40 steps; a file of a constant lr has every step, and a log that begins late too."""
    fit_path = warm[1]
    schedules.write_schedule(tmp_path / "s.csv", schedules.constant(600, PEAK, 1.0))
    late = write(tmp_path / "late.csv", schedules.constant(600, PEAK, 1.0), first=60)
    found = ask(capsys, "predict", fit_path, late, "--schedule", tmp_path / "s.csv")
    assert found["per_file"][0]["warmup"] == 0
    said = ask(capsys, "predict", fit_path, late, "--schedule", tmp_path / "s.csv", "--warmup", "30")
    assert said["per_file"][0]["warmup"] == 30


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["fit", "FLAT"], 2, "--law"),
        (["fit", *MOMENTUM], 2, "LOG"),
        (["fit", "FLAT", "--law", "astrology"], 2, "astrology"),
        (["fit", "FLAT", "--law", "momentum:colour=1"], 2, "colour"),
        (["fit", "FLAT", "--law", "chinchilla:colour=1"], 2, "no options"),
        (["fit", "missing.csv", *MOMENTUM], 2, "missing.csv"),
        (["fit", "FOLDER", *MOMENTUM], 2, "cannot be read"),
        (["fit", "+", *MOMENTUM], 2, "log + cannot be read"),
        (["fit", "FLAT", "FLAT", *MOMENTUM], 2, "twice"),
        (["fit", "FLAT", *MOMENTUM, "--warmup", "-1"], 2, "warmup"),
        (["fit", "FLAT", *MOMENTUM, "--warmup", "x"], 2, "warmup"),
        (["fit", "FLAT", *MOMENTUM, "--schedule", "triangle"], 2, "triangle"),
        (["fit", "FLAT", *MOMENTUM, "--schedule", "wsd:colour=1"], 2, "colour"),
        (["fit", "FLAT", *MOMENTUM, "--loss", "colour"], 2, "colour"),
        (["fit", "FLAT", *MOMENTUM, "--parent", "missing.csv"], 2, "missing.csv"),
        (["fit", "FLAT", *MOMENTUM, "--huber", "0"], 2, "huber"),
        (["fit", "FLAT", *MOMENTUM, "--level", "1"], 2, "level"),
        (["fit", "FLAT", *MOMENTUM, "--window", "first"], 2, "window"),
        (["fit", "FLAT", *MOMENTUM, "--fix", "alpha"], 2, "NAME=VALUE"),
        (["fit", "FLAT", *MOMENTUM, "--fix", "alpha=x"], 2, "NAME=VALUE"),
        (["fit", "FLAT", *MOMENTUM, "--fix", "colour=1"], 2, "colour"),
        (["fit", "FLAT", *MOMENTUM, "--fix", "alpha=99"], 2, "alpha"),
        (["fit", "FLAT", *MOMENTUM, "--fix", "alpha=1", "--fix", "alpha=2"], 2, "twice"),
        (["fit", "FLAT", *MOMENTUM, "--resamples", "1"], 2, "resamples"),
        (["fit", "FLAT", *MOMENTUM, "--seed", "-1"], 2, "seed"),
        (["fit", "FLAT", *MOMENTUM, "--resamples", "50"], 2, "resamples is for the bootstrap; drop it"),
        (["fit", "FLAT", *MOMENTUM, "--intervals", "profile", "--seed", "0"], 2, "seed is for the bootstrap"),
        (["fit", "FLAT", *MOMENTUM, "--intervals", "bootstrap", "--resamples", "1"], 2, "resamples must"),
        (["fit", "FLAT", *MOMENTUM, "--intervals", "bootstrap", "--seed", "-1"], 2, "seed must"),
        (["fit", "FLAT", *MOMENTUM, "--lr", "7"], 2, "got 7 without one; give --schedule SPEC, or drop it"),
        (["fit", "FLAT", *MOMENTUM, "--tokens-per-step", "64"], 2, "tokens-per-step turns tokens into steps"),
        (["predict", "FIT", "FLAT", "--lr", "7"], 2, "got 7 without one"),
        (["fit", "FLAT", *MOMENTUM, "--schedule", "wsd:warmup=5", "--warmup", "5"], 2, "and is given as 5 too"),
        (["fit", "FLAT", *MOMENTUM, "--schedule", "wsd:colour=1"], 2, "to=..., warmup=..."),
        (["fit", "FLAT", *MOMENTUM, "--drop-largest", "3"], 2, "chinchilla only"),
        (["fit", "FLAT", *MOMENTUM, "--out", "FOLDER"], 2, "is a folder"),
        (["fit", "FLAT", *MOMENTUM, "--out", "FLAT"], 2, "is one of the files that are read"),
        (["fit", "missing.csv", *MOMENTUM, "--out", "FOLDER/none/fit.json"], 1, "cannot be written"),
        (["fit", "FLAT", "--law", "elr-fsl"], 2, "norm"),
        (["fit", "FLAT", "--law", "forcing-memory:lr_unit=1e-300"], 1, "no start leads to a finite loss"),
        (["schedule", "design", "FIT", "--steps", "50", "--out", "FIT"], 2, "is one of the files that are read"),
        (["schedule", "design", "FIT", "--steps", "50", "--out", "FOLDER/none/a.csv"], 1, "cannot be written"),
        (["schedule", "design", "FIT", "--steps", "10000000000000"], 1, "lower steps"),
        (["predict", "missing.json", "FLAT"], 2, "missing.json"),
        (["predict", "FLAT", "FLAT"], 2, "not a fit of rfsim"),
        (["predict", "FIT"], 2, "logs and schedule are missing"),
        (["predict", "FIT", "missing.csv"], 2, "missing.csv"),
        (["predict", "FIT", "FLAT", "--steps", "9"], 2, "steps is for a schedule"),
        (["predict", "FIT", "FLAT", "--at", "9"], 2, "at is for a schedule"),
        (["predict", "FIT", "FLAT", "--level", "0"], 2, "level"),
        (["predict", "FIT", "FLAT", "--rows", "0"], 2, "rows"),
        (["predict", "FIT", "--schedule", "constant"], 2, "steps is missing"),
        (["predict", "FIT", "--schedule", "constant", "--steps", "0"], 2, "steps"),
        (["predict", "FIT", "--schedule", "triangle", "--steps", "9"], 2, "triangle"),
        (["predict", "FIT", "--schedule", "missing.csv"], 2, "missing.csv"),
        (["predict", "FIT", "--schedule", "constant", "--steps", "9", "--at", "10"], 2, "step 10"),
        (["predict", "FIT", "--schedule", "constant", "--steps", "9", "--at", "0"], 2, "from 1 to 9"),
        (["predict", "FIT", "--schedule", "constant", "--steps", "9", "--at", "1.5"], 2, "whole"),
        (["predict", "FIT", "--schedule", "constant", "--steps", "9", "--at", "x"], 2, "whole steps"),
        (["predict", "FIT", "--schedule", "constant", "--steps", "9", "--lr", "column"], 2, "lr must be a number"),
        (["predict", "FIT", "--schedule", "constant", "--steps", "9", "--lr", "0"], 2, "lr"),
        (["predict", "FIT", "--schedule", "constant", "--steps", "9", "--loss", "loss"], 2, "loss is for logs"),
        (["predict", "FIT", "--schedule", "constant", "--steps", "9", "--warmup", "10"], 2, "warmup"),
        (["predict", "FIT", "--schedule", "constant:warmup=3", "--steps", "9", "--warmup", "3"], 2, "one of them"),
        (["compare", "FLAT"], 2, "--predict"),
        (["compare", "FLAT", "--predict", "missing.csv"], 2, "missing.csv"),
        (["compare", "FLAT", "--predict", "FALL", "FALL"], 2, "twice"),
        (["compare", "FLAT", "--law", "astrology", "--predict", "FALL"], 2, "astrology"),
        (["compare", "FLAT", *MOMENTUM, *MOMENTUM, "--predict", "FALL"], 2, "twice"),
        (["compare", "FLAT", "--huber", "-1", "--predict", "FALL"], 2, "huber"),
    ],
)  # fmt: skip
def test_bad_input_is_told(capsys, logs, fit_file, tmp_path, monkeypatch, arguments, status, told):
    monkeypatch.chdir(tmp_path)
    places = {"FLAT": str(logs["flat"]), "FALL": str(logs["fall"]), "FIT": str(fit_file), "FOLDER": str(tmp_path)}
    real = [places.get(one, one.replace("FOLDER", str(tmp_path))) for one in arguments]
    before, fit_before = logs["flat"].read_text(), fit_file.read_text()
    found, out, err = call(capsys, *real)
    assert found == status, err
    assert out == ""
    assert told in err
    assert "Traceback" not in err
    assert logs["flat"].read_text() == before
    assert fit_file.read_text() == fit_before
    assert list(tmp_path.iterdir()) == []
