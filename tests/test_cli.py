"""The command line: contract of names and keys, exit status, and errors before any work."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rfsim.cli import main

EQUIVALENT = ["risk", "--alpha", "0.7", "--beta", "0.3", "--source", "equivalent", "--lr", "0.05", "--batch", "1"]
EXPONENT = ["exponent", "--alpha", "0.6", "--beta", "0.2", "--lr", "0.1", "--batch", "4"]
RISK = ["risk", "--alpha", "0.4", "--beta", "0.3", "--width", "16", "--lr", "0.1", "--batch", "4"]


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run one command in this process; return status, stdout and stderr."""
    try:
        status = main(list(arguments))
    except SystemExit as stop:
        status = int(stop.code or 0)
    out, err = capsys.readouterr()
    return status, out, err


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    """Run one command with --json and return what it printed, refusing NaN and Infinity."""
    status, out, err = call(capsys, *arguments, "--json")
    assert status == 0, err

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in JSON")

    return json.loads(out, parse_constant=refuse)


# --- help, version, imports ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["risk", "--help"], ["regime", "0.4", "0.3"]])
def test_light_commands_do_not_import_jax(arguments: list[str]) -> None:
    script = (
        "import sys\nfrom rfsim.cli import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "assert 'jax' not in sys.modules and 'matplotlib' not in sys.modules"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_module_runs_as_a_script() -> None:
    run = subprocess.run([sys.executable, "-m", "rfsim", "--version"], capture_output=True, text=True, check=False)
    assert run.returncode == 0
    assert run.stdout.startswith("rfsim ")
    assert run.stderr == ""


# --- regime ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "beta", "label"),
    [
        ("0.4", "0.3", "LM1"), ("0.27", "0.4", "LM2"), ("0.3", "0.7", "LM3"), ("0.6", "0.2", "IM1"),
        ("0.7", "0.6", "IM2"), ("0.7", "0.9", "IM3"), ("0.2", "0.4", "FB1"), ("0.12", "0.65", "FB2"),
    ],
)  # fmt: skip
def test_regime_labels(capsys: pytest.CaptureFixture[str], alpha: str, beta: str, label: str) -> None:
    found = ask(capsys, "regime", alpha, beta)
    assert found["regime"] == found["default_regime"] == label
    assert found["boundaries"] == []
    if label.startswith("FB"):
        assert found["q_forcing"] is None
        assert found["q_memory"] is None
        assert set(found["reasons"]) == {"q_forcing", "q_memory"}
    else:
        a, b = float(alpha), float(beta)
        assert found["q_forcing"] == pytest.approx((2 * a + 2 * b - 1) / (2 * a), rel=1e-14)
        assert found["q_memory"] == pytest.approx(2 - 1 / (2 * a), rel=1e-14)


def test_regime_on_boundaries_names_the_neighbours(capsys: pytest.CaptureFixture[str]) -> None:
    on_half = ask(capsys, "regime", "0.5", "0.3")
    assert on_half["regime"] == "boundary:LM1|IM1"
    assert on_half["default_regime"] == "LM1"
    tie = ask(capsys, "regime", "0.4", "0.4")
    assert tie["regime"] == "boundary:LM1|LM2"
    assert tie["boundaries"] == ["beta=alpha"]


def test_regime_takes_negative_and_exponent_form_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(capsys, "regime", "7e-1", "-1e-1")["regime"] == "IM1"
    assert ask(capsys, "regime", "0.7", "-.1")["beta"] == -0.1


# --- risk ------------------------------------------------------------------------------------------------------------


def test_risk_keys_and_the_two_groupings(capsys: pytest.CaptureFixture[str]) -> None:
    found = ask(capsys, *RISK, "--steps", "500", "--noise-var", "0.5", "--seed", "3")
    risk, forcing, memory, clean, gap = (np.array(found[k]) for k in ("risk", "forcing", "memory", "clean", "gap"))
    np.testing.assert_allclose(forcing + memory, risk, rtol=1e-14)
    np.testing.assert_allclose(clean + gap, risk, rtol=1e-14)
    assert found["step"][0] == 0
    assert found["step"][-1] == 500
    assert len(found["step"]) > 100
    assert found["intrinsic_time"][-1] == pytest.approx(50.0, rel=1e-14)
    assert found["stable"] is True
    assert 0 < found["kappa"] < 1
    expected = (found["floor"] + 0.5 * found["kappa"]) / (1 - found["kappa"])
    assert found["terminal_risk"] == pytest.approx(expected, rel=1e-12)
    assert found["overflow_step"] is None
    assert found["source"] == "sampled"
    assert found["seed"] == 3
    assert found["versions"]["rfsim"]


def test_at_is_sorted_integers_and_sets_the_horizon(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, *RISK, "--at", "50,0,7", "--json")
    assert status == 0
    assert '"step": [0, 7, 50]' in out


def test_seed_drives_the_features(capsys: pytest.CaptureFixture[str]) -> None:
    first, again, other = (ask(capsys, *RISK, "--at", "9", "--seed", s)["risk"] for s in ("1", "1", "2"))
    assert first == again
    assert first != other


def test_schedule_file_replaces_lr_and_batch(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "schedule.csv"
    file.write_text("batch,step,lr\n4,1,0.05\n2,0,0.1\n8,2,0.02\n")
    problem = ["risk", "--alpha", "0.6", "--beta", "0.2", "--schedule", str(file)]
    found = ask(capsys, *problem)
    assert found["step"] == [0, 1, 2, 3]
    np.testing.assert_allclose(found["intrinsic_time"], [0, 0.1, 0.15, 0.17], rtol=1e-14)
    assert found["kappa"] is None
    assert "constant" in found["reasons"]["kappa"]
    status, out, err = call(capsys, *problem, "--at", "4", "--json")
    assert status == 2
    assert out == ""
    assert "step 4" in err


def test_spectrum_file_matches_a_literal_loop(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "spectrum.csv"
    file.write_text("target_energy,eigenvalue\n1,0.25\n0.1,0\n1,1\n")
    found = ask(
        capsys, "risk", "--spectrum", str(file), "--lr", "0.5", "--batch", "2", "--steps", "3", "--noise-var", "1"
    )
    np.testing.assert_allclose(found["risk"], [21 / 10, 425 / 256, 55549 / 40960, 745857 / 655360], rtol=1e-15)
    assert found["kappa"] == pytest.approx(34 / 145, rel=1e-14)
    assert found["floor"] == 0.1


def test_routes_agree_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    one, two = (ask(capsys, *RISK, "--at", "0,40,80", "--schedule", "wsd:decay=0.5", "--route", r)["risk"]
                for r in ("recursion", "volterra"))  # fmt: skip
    np.testing.assert_allclose(one, two, rtol=1e-13)


def test_unstable_lr_is_an_error_that_names_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    limit = ask(capsys, *RISK, "--at", "1")["lr_limit"]
    above = [*RISK, "--at", "10"]
    above[above.index("--lr") + 1] = repr(limit * (1 + 1e-9))
    status, out, err = call(capsys, *above)
    assert status == 2
    assert out == ""
    assert f"{limit:.6g}" in err
    assert "--allow-unstable" in err
    above[above.index("--lr") + 1] = repr(limit * (1 - 1e-9))
    assert ask(capsys, *above)["stable"] is True


def test_allowed_unstable_run_flags_the_overflow_and_never_prints_nan(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["risk", "--alpha", "0.6", "--beta", "0.2", "--width", "8", "--lr", "5", "--batch", "1"]
    found = ask(capsys, *arguments, "--at", "0,10,100000", "--allow-unstable")
    assert 10 < found["overflow_step"] < 100000
    assert found["risk"][1] > found["risk"][0]
    assert found["risk"][2] is None
    assert str(found["overflow_step"]) in found["reasons"]["risk"]
    assert found["terminal_risk"] is None


def test_row_mass_above_one_warns_but_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "one.csv"
    file.write_text("eigenvalue,target_energy\n1,1\n")
    plan = tmp_path / "plan.csv"
    plan.write_text("step,lr,batch\n" + "".join(f"{t},{0.7 if t else 0.69},1\n" for t in range(40)))
    found = ask(capsys, "risk", "--spectrum", str(file), "--schedule", str(plan), "--noise-var", "1")
    assert len(found["warnings"]) == 1
    assert "row mass" in found["warnings"][0]
    ratio = np.diff(found["risk"])[30] / np.diff(found["risk"])[29]
    assert ratio == pytest.approx(1.07, rel=1e-9)  # R <- 1.07 R + .49 sigma^2


def test_an_infinite_trace_is_unstable_at_every_constant_lr(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = call(
        capsys, "risk", "--alpha", "0.4", "--beta", "0.3", "--lr", "0.001", "--batch", "64", "--steps", "9"
    )
    assert status == 2
    assert "limit 0 " in err
    growing = ["risk", "--alpha", "0.4", "--beta", "0.3", "--lr", "0.1", "--batch", "64", "--steps", "9",
               "--schedule", "power:vartheta=1"]  # fmt: skip
    assert len(ask(capsys, *growing)["risk"]) == 10


def test_horizons_beyond_any_array_are_jumped(capsys: pytest.CaptureFixture[str]) -> None:
    constant = ask(capsys, *RISK, "--at", "0,10,1000000000000", "--noise-var", "1")
    assert constant["route"] == "jump"
    assert constant["risk"][2] == pytest.approx(constant["terminal_risk"], rel=1e-9)
    stepped = ask(capsys, *RISK, "--at", "0,10", "--noise-var", "1")
    assert stepped["route"] == "recursion"
    np.testing.assert_allclose(constant["risk"][:2], stepped["risk"], rtol=1e-13)
    stages = ask(capsys, *RISK, "--at", "1000000000", "--schedule", "8-1-1")
    assert stages["kappa"] is None
    assert stages["intrinsic_time"][0] == pytest.approx(0.1e9 * (0.8 + 0.1 * 10**-0.5 + 0.01), rel=1e-12)


def test_equal_horizons_give_equal_curves_by_every_route(capsys: pytest.CaptureFixture[str]) -> None:
    for spec in ("constant", "8-1-1", "wsd:decay=0.5,to=0.2"):
        arguments = [*RISK, "--at", "0,300,1000", "--schedule", spec, "--noise-var", "1"]
        jumped, stepped = (ask(capsys, *arguments, "--route", route) for route in ("jump", "recursion"))
        assert jumped["route_error"] < 1e-5
        np.testing.assert_allclose(jumped["risk"], stepped["risk"], rtol=max(1e-12, 2 * jumped["route_error"]))


def test_equivalent_source_at_any_width(capsys: pytest.CaptureFixture[str]) -> None:
    huge = ask(capsys, *EQUIVALENT, "--width", "1000000000", "--at", "0,1000,1000000000000", "--noise-var", "1")
    assert huge["source"] == "equivalent"
    assert huge["floor"] == pytest.approx(3.0358797e-9, rel=1e-7)
    assert huge["kappa"] == pytest.approx(0.0792557967, rel=1e-8)
    assert huge["modes"] < 400
    mean = ask(capsys, *EQUIVALENT, "--width", "400", "--at", "0,50")
    draw = ask(capsys, *EQUIVALENT, "--width", "400", "--at", "0,50", "--source", "sampled")
    np.testing.assert_allclose(mean["risk"], draw["risk"], rtol=0.3)


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["regime", "0", "1"], 2, "alpha"),
        (["regime", "0.3", "0.2"], 2, "2 alpha + 2 beta"),
        (["regime", "nan", "0.2"], 2, "alpha"),
        (["regime", "0.4", "x"], 2, "BETA"),
        ([*RISK[:5], "--width", "0", *RISK[7:], "--steps", "5"], 2, "width"),
        ([*RISK[:5], "--width", "-3", *RISK[7:], "--steps", "5"], 2, "width"),
        ([*RISK[:5], "--width", "2000000", *RISK[7:], "--steps", "5"], 1, "GiB"),
        ([*RISK[:7], "--lr", "0", "--batch", "4", "--steps", "5"], 2, "lr"),
        ([*RISK[:7], "--lr", "-0.1", "--batch", "4", "--steps", "5"], 2, "lr"),
        ([*RISK[:7], "--lr", "nan", "--batch", "4", "--steps", "5"], 2, "lr"),
        ([*RISK[:7], "--lr", "0.1", "--batch", "0", "--steps", "5"], 2, "batch"),
        ([*RISK[:7], "--lr", "0.1", "--batch", "nan", "--steps", "5"], 2, "batch"),
        ([*RISK[:7], "--steps", "5"], 2, "lr"),
        (RISK, 2, "steps"),
        ([*RISK, "--steps", "-1"], 2, "steps"),
        ([*RISK, "--steps", "1000000000000", "--route", "recursion"], 1, "GiB"),
        ([*RISK, "--at", "1,2.5"], 2, "at"),
        ([*RISK, "--at", "a"], 2, "at"),
        ([*RISK, "--at", "1e30"], 2, "at must be at most 2^62"),
        ([*RISK, "--steps", "9" * 400], 2, "steps must be at most 2^62"),
        ([*RISK, "--steps", "3", "--seed", "18446744073709551615"], 2, "seed must be at most 2^62"),
        ([*RISK, "--steps", "5", "--ambient", "9" * 400], 2, "ambient must be at most 2^62"),
        ([*RISK, "--steps", "10", "--schedule", "power:vartheta=1e6"], 2, "beyond float64"),
        ([*RISK, "--steps", "5", "--schedule", "/"], 2, "is a folder"),
        ([*RISK, "--at", "1", "--steps", "4"], 2, "not allowed with"),
        ([*RISK, "--steps", "5", "--schedule", "triangle"], 2, "triangle"),
        ([*RISK, "--steps", "5", "--schedule", "wsd:colour=1"], 2, "colour"),
        ([*RISK, "--steps", "5", "--schedule", "wsd:decay=x"], 2, "decay"),
        ([*RISK, "--steps", "5", "--schedule", "wsd:decay=0.9,warmup=0.2"], 2, "warmup"),
        ([*RISK, "--steps", "5", "--schedule", "missing.csv"], 2, "missing.csv"),
        ([*RISK, "--steps", "5", "--noise-var", "-1"], 2, "noise_var"),
        ([*RISK, "--steps", "5", "--seed", "-1"], 2, "seed"),
        ([*RISK, "--steps", "5", "--ambient", "x"], 2, "ambient"),
        ([*RISK, "--steps", "5", "--ambient", "inf"], 2, "ambient"),
        ([*RISK, "--steps", "5", "--nonsense"], 2, "nonsense"),
        (["risk", "--beta", "0.3", "--lr", "0.1", "--batch", "4", "--steps", "5"], 2, "alpha"),
        (["risk", "--alpha", "0.2", "--beta", "0.4", "--lr", "0.1", "--batch", "4", "--steps", "5"], 2, "1/4"),
        (["risk", "--alpha", "-1", "--beta", "3", *RISK[5:], "--steps", "5"], 2, "alpha"),
        ([*EXPONENT, "--window", "9"], 2, "window"),
        ([*EXPONENT, "--window", "9,1"], 2, "window"),
        ([*EXPONENT, "--window", "9,99"], 2, "noise_var"),
        (["simulate", *RISK[1:], "--steps", "5", "--runs", "1"], 2, "runs"),
        (["simulate", "--alpha", "0.6", "--beta", "0.2", "--lr", "0.1", "--batch", "4", "--steps", "5"], 2, "ambient"),
        ([*EQUIVALENT, "--steps", "5"], 2, "width"),
        ([*EQUIVALENT, "--width", "50", "--ambient", "50", "--steps", "5"], 2, "ambient must exceed width"),
        ([*EQUIVALENT, "--width", "50", "--ambient", "20", "--steps", "5"], 2, "ambient must exceed width"),
        (["risk", "--alpha", "0.5", *EQUIVALENT[3:], "--width", "5", "--ambient", "inf", "--steps", "5"], 2, "1/2"),
        (["simulate", *EQUIVALENT[1:], "--width", "50", "--steps", "5"], 2, "no modes to run SGD on"),
        (["verify", "--only", "astrology"], 2, "astrology"),
        (["figures", "astrology"], 2, "astrology"),
        (["unknown"], 2, "unknown"),
        ([], 2, "COMMAND"),
    ],
)  # fmt: skip
def test_bad_input_is_told_before_any_work(
    capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, told: str
) -> None:
    found, out, err = call(capsys, *arguments)
    assert found == status, err
    assert out == ""
    assert told in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("eigenvalue\n1\n", "target_energy"),
        ("eigenvalue,target_energy\n1,-2\n", "-2"),
        ("eigenvalue,target_energy\n-1,2\n", "-1"),
        ("eigenvalue,target_energy\n1,nan\n", "nan"),
        ("eigenvalue,target_energy\n1,\n", "target_energy"),
        ("eigenvalue,target_energy\n", "no rows"),
        ("eigenvalue,target_energy\n0,1\n", "zeros"),
        ("", "header"),
        ("eigenvalue,target_energy,eigenvalue\n1,2,3\n", "more than once"),
        ("eigenvalue,target_energy\n1,2,3\n", "more cells"),
    ],
)
def test_bad_spectrum_files(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "spectrum.csv"
    file.write_text(text)
    status, out, err = call(capsys, "risk", "--spectrum", str(file), "--lr", "0.1", "--batch", "4", "--steps", "5")
    assert (status, out) == (2, "")
    assert told in err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("step,lr\n0,0.1\n", "batch"),
        ("step,lr,batch\n0,0.1,4\n2,0.1,4\n", "step"),
        ("step,lr,batch\n0,0.1,4\n0,0.1,4\n", "step"),
        ("step,lr,batch\n0,-0.1,4\n", "lr"),
        ("step,lr,batch\n0,0.1,0\n", "batch"),
        ("step,lr,batch\n0,nan,1\n", "lr"),
    ],
)
def test_bad_schedule_files(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "schedule.csv"
    file.write_text(text)
    status, out, err = call(capsys, "risk", "--alpha", "0.6", "--beta", "0.2", "--schedule", str(file))
    assert (status, out) == (2, "")
    assert told in err


@pytest.mark.parametrize("command", [["figures", "regime_map"], ["reproduce"]])
def test_unwritable_output_folder_is_told_before_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: list[str]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    status, out, err = call(capsys, *command, "--out", str(blocked / "inside"))
    assert (status, out) == (1, "")
    assert "cannot be written" in err


# --- simulate and exponent -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["law", "literal"])
def test_simulate_stands_beside_the_exact_risk(capsys: pytest.CaptureFixture[str], engine: str) -> None:
    arguments = ["simulate", *RISK[1:], "--noise-var", "0.5", "--at", "0,5,20", "--runs", "400", "--engine", engine]
    found = ask(capsys, *arguments)
    exact = ask(capsys, *RISK, "--noise-var", "0.5", "--at", "0,5,20")
    assert found["risk"] == exact["risk"]
    assert found["z"][0] is None  # all runs start alike
    assert found["max_abs_z"] < found["threshold"]
    assert 0 < found["false_alarm_rate"] < 0.05
    assert max(abs(z) for z in found["z"][1:]) == pytest.approx(found["max_abs_z"], rel=1e-9)
    expected = (np.array(found["mean"]) - np.array(found["risk"]))[1:] / np.array(found["stderr"])[1:]
    np.testing.assert_allclose(found["z"][1:], expected, rtol=1e-9)


def test_simulate_survives_an_overflow(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["simulate", "--alpha", "0.6", "--beta", "0.2", "--width", "8", "--lr", "5", "--batch", "1"]
    found = ask(capsys, *arguments, "--at", "0,1,2000", "--runs", "4", "--allow-unstable")
    assert found["risk"][2] is None
    assert found["mean"][2] is None
    assert found["z"][2] is None
    assert found["overflow_step"] > 1
    assert {"risk", "mean", "z"} <= found["reasons"].keys()


def test_no_steps_of_a_constant_schedule_still_know_its_stability(capsys: pytest.CaptureFixture[str]) -> None:
    none, one = (ask(capsys, *RISK, "--at", at) for at in ("0", "1"))
    for name in ("kappa", "stable", "lr_limit", "terminal_risk"):
        assert none[name] == one[name]


def test_infinite_batch_is_told_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    found = ask(
        capsys, "risk", "--alpha", "0.6", "--beta", "0.2", "--width", "4", "--lr", "0.1", "--batch", "inf", "--at", "3"
    )
    assert found["parameters"]["batch"] == "inf"
    assert found["kappa"] == 0


def test_simulate_checkpoint_resumes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["simulate", *RISK[1:], "--at", "0,5", "--runs", "16", "--checkpoint", str(tmp_path / "runs.npz")]
    first = ask(capsys, *arguments)
    assert (tmp_path / "runs.npz").exists()
    assert ask(capsys, *arguments)["mean"] == first["mean"]
    status, _, err = call(capsys, *arguments, "--noise-var", "1")
    assert status == 2
    assert "checkpoint" in err


def test_exponent_is_measured_predicted_and_known_in_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    found = ask(capsys, "exponent", "--alpha", "0.4", "--beta", "0.3", "--vartheta", "0.5", "--quantity", "gap",
                "--lr", "0.154236", "--batch", "16", "--noise-var", "25", "--window", "40,1e4")  # fmt: skip
    assert found["limit"] == pytest.approx(0.25, abs=1e-12)
    assert found["measured"] == pytest.approx(0.212, abs=0.004)  # published for this window
    assert found["finite_window"] == pytest.approx(found["measured"], abs=0.015)
    assert found["window"] == [40.0, 1e4]
    assert 0 < found["uncertainty"] < 0.1


def test_exponent_has_no_limit_without_a_power_law(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "spectrum.csv"
    index = np.arange(1.0, 400.0)
    rows = "\n".join(f"{float(a)!r},{float(b)!r}" for a, b in zip(index**-1.2, index**-1.6, strict=True))
    file.write_text("eigenvalue,target_energy\n" + rows + "\n")
    found = ask(capsys, "exponent", "--spectrum", str(file), "--quantity", "memory", "--lr", "0.1", "--batch", "8",
                "--window", "5,50")  # fmt: skip
    assert found["limit"] is None
    assert "limit" in found["reasons"]
    assert found["measured"] == pytest.approx(found["finite_window"], abs=0.02)


def test_text_output_has_one_row_per_recorded_step(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = call(capsys, *RISK, "--at", "0,5")
    lines = out.splitlines()
    assert status == 0
    assert err == ""
    assert lines[0].split() == ["step", "intrinsic_time", "risk", "forcing", "memory", "clean", "gap"]
    assert lines[2].split()[0] == "5"
    assert math.isclose(float(lines[2].split()[1]), 0.5)


def test_verify_and_figures_name_what_they_have(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(ask(capsys, "verify", "--list")["families"]) >= 8
    assert "regime_map" in ask(capsys, "figures", "--list")["figures"]
