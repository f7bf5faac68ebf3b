"""`rfsim schedule show` and `rfsim schedule pair`: keys, numbers, tables, files, and errors before any work."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from test_cli import ask, call

from rfsim import schedules

SHOW = ["schedule", "show"]
SIZES = ["--lr", "0.1", "--batch", "4"]


def test_show_lists_every_step_with_clock_ratio_and_data(capsys):
    found = ask(capsys, *SHOW, "wsd:decay=0.1,to=0.1", "--steps", "1000", *SIZES)
    assert {"step", "lr", "batch", "intrinsic_time", "ratio", "data"} <= set(found)
    assert found["step"] == list(range(1000))
    assert found["lr"][-1] == pytest.approx(0.01, rel=1e-15)
    lr, batch = np.array(found["lr"]), np.array(found["batch"])
    assert_array_equal(lr, schedules.wsd(1000, 0.1, 4, decay=0.1, to=0.1).lr)
    assert_allclose(found["ratio"], batch / lr, rtol=1e-15)
    assert_allclose(found["intrinsic_time"], np.concatenate([[0], np.cumsum(lr)[:-1]]), rtol=1e-12)
    assert_array_equal(found["data"], 4 * np.arange(1000))
    assert found["steps"] == 1000
    assert found["end_intrinsic_time"] == pytest.approx(lr.sum(), rel=1e-12)
    assert found["end_data"] == 4000
    assert "reasons" not in found


@pytest.mark.parametrize("spec", sorted([*schedules.spec.SHAPES, "constant:warmup=0.3", "linear:to=0,warmup=2"]))
def test_show_takes_every_shape(capsys, spec):
    spec = {"stages": "stages:at=0.5/0.75,batch_to=2/3", "power": "power:vartheta=0.5,via=lr"}.get(spec, spec)
    found = ask(capsys, *SHOW, spec, "--steps", "20", *SIZES)
    expected = schedules.from_spec(spec, steps=20, lr=0.1, batch=4.0)
    assert found["lr"] == expected.lr.tolist()
    assert found["batch"] == expected.batch.tolist()


def test_what_is_infinite_is_null_with_a_reason(capsys):
    found = ask(capsys, *SHOW, "linear:to=0", "--steps", "3", *SIZES)
    assert found["ratio"][2] is None
    assert "lr is 0" in found["reasons"]["ratio"]
    found = ask(capsys, *SHOW, "constant", "--steps", "2", "--lr", "0.1", "--batch", "inf")
    assert found["batch"] == [None, None]
    assert found["end_data"] is None
    assert {"batch", "ratio", "data", "end_data"} == set(found["reasons"])


def test_rows_and_table(capsys):
    found = ask(capsys, *SHOW, "constant", "--steps", "1000", *SIZES, "--rows", "11")
    assert len(found["step"]) == 11
    assert found["step"][0] == 0
    assert found["step"][-1] == 999
    status, out, err = call(capsys, *SHOW, "constant", "--steps", "1000", *SIZES)
    assert status == 0
    assert err == ""
    lines = out.splitlines()
    assert lines[0].split() == ["step", "lr", "batch", "intrinsic_time", "ratio", "data"]
    assert lines[1].split() == ["0", "0.1", "4", "0", "40", "0"]
    assert lines[40].split()[0] == "999"
    assert "end_data: 4000" in lines


def test_another_clock(capsys):
    found = ask(capsys, *SHOW, "constant", "--steps", "4", *SIZES, "--clock-power", "2")
    assert_allclose(found["intrinsic_time"], 0.01 * np.arange(4), rtol=1e-12)
    assert_allclose(found["ratio"], 400.0, rtol=1e-12)


def test_written_file_is_read_again(capsys, tmp_path):
    path = tmp_path / "schedule.csv"
    first = ask(capsys, *SHOW, "8-1-1", "--steps", "20", *SIZES, "--out", str(path))
    again = ask(capsys, *SHOW, str(path))
    assert again["lr"] == first["lr"]
    assert again["data"] == first["data"]
    assert len(ask(capsys, *SHOW, str(path), "--steps", "5")["lr"]) == 5


def test_pair_prints_two_realisations_and_their_distance(capsys, tmp_path):
    folder = tmp_path / "pair"
    found = ask(
        capsys, "schedule", "pair", "wsd:decay=0.2", "--steps", "1000", "--lr", "0.1", "--batch", "8",
        "--group", "2", "--out", str(folder),
    )  # fmt: skip
    expected = schedules.pair(schedules.wsd(1000, 0.1, 8), lr=0.1, batch=8, group=2)
    assert found["level"] == expected.level.tolist()
    assert found["intrinsic_time"] == expected.intrinsic_time[:-1].tolist()
    assert found["lr_decay_step"] == expected.lr_decay_steps[:-1].tolist()
    assert found["batch_growth_step"] == expected.batch_growth_steps[:-1].tolist()
    assert set(found["lr_decay_batch"]) == {8.0}
    assert set(found["batch_growth_lr"]) == {0.1}
    for run in ("lr_decay", "batch_growth"):
        assert_allclose(np.array(found[f"{run}_batch"]) / np.array(found[f"{run}_lr"]), found["ratio"], rtol=1e-13)
        written = schedules.read_schedule(folder / f"{run}.csv")
        assert written.steps == found[f"{run}_steps"]
        assert_array_equal(written.lr, getattr(expected, run).lr)
    assert max(found["path_distance"].values()) < 1e-12
    assert set(found["path_distance"]) == {"ratio", "largest", "data", "horizon"}
    assert 0.0 < found["target_distance"]["ratio"] < 0.02
    assert found["end_data"] == expected.data[-1]
    risk = ["risk", "--alpha", "0.6", "--beta", "0.2", "--ambient", "50", "--noise-var", "1", "--schedule"]
    ends = [ask(capsys, *risk, str(folder / f"{run}.csv"))["risk"][-1] for run in ("lr_decay", "batch_growth")]
    assert ends[0] == pytest.approx(ends[1], rel=0.02)


def test_pair_takes_files_and_prints_a_table(capsys, tmp_path):
    path = tmp_path / "schedule.csv"
    schedules.write_schedule(path, schedules.batch_ramp(400, 0.1, 8.0, to=4.0))
    found = ask(capsys, "schedule", "pair", str(path), *SIZES)
    assert found["level"][0] >= 8
    assert max(found["path_distance"].values()) < 1e-12
    status, out, err = call(capsys, "schedule", "pair", "8-1-1", "--steps", "500", *SIZES)
    assert (status, err) == (0, "")
    assert out.splitlines()[0].split()[:4] == ["intrinsic_time", "data", "ratio", "level"]
    assert "path_distance" in out


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["show", "nothing", "--steps", "5", *SIZES], "not known"),
        (["show", "wsd:decay=0.7,warmup=0.7", "--steps", "50", *SIZES], "together longer"),
        (["show", "constant", "--steps", "5", "--lr", "0.1"], "batch is missing"),
        (["show", "constant", "--steps", "5", "--batch", "4"], "lr is missing"),
        (["show", "constant", *SIZES], "steps is missing"),
        (["show", "constant", "--steps", "0", *SIZES], "no steps"),
        (["show", "constant", "--steps", "-3", *SIZES], "steps must be at least 0"),
        (["show", "constant", "--steps", "5", "--lr", "-1e-1", "--batch", "4"], "lr must be positive"),
        (["show", "constant", "--steps", "5", *SIZES, "--rows", "0"], "rows"),
        (["show", "constant", "--steps", "5", *SIZES, "--clock-power", "0"], "power"),
        (["show", "absent.csv"], "cannot be read"),
        (["pair", "constant", "--steps", "5", "--lr", "0.1", "--batch", "2.5"], "batch must be a whole number"),
        (["pair", "constant", "--steps", "3", *SIZES], "before the first macro step"),
        (["pair", "constant", "--steps", "50", *SIZES, "--group", "0"], "group"),
        (["pair", "constant", "--steps", "50", "--lr", "0.1"], "batch is missing"),
        (["swap", "constant", "--steps", "50", *SIZES], "invalid choice"),
        (["show"], "required"),
    ],
)
def test_bad_input_exits_with_2(capsys, arguments, word):
    status, out, err = call(capsys, "schedule", *arguments)
    assert status == 2
    assert out == ""
    assert word in err
    assert "Traceback" not in err


def test_files_that_cannot_be_written_exit_with_1(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    for action, place in (("show", tmp_path / "no" / "a.csv"), ("pair", tmp_path / "file")):
        status, out, err = call(capsys, "schedule", action, "constant", "--steps", "50", *SIZES, "--out", str(place))
        assert status == 1
        assert out == ""
        assert "cannot be done" in err


def test_help_does_not_import_jax(capsys):
    status, out, _ = call(capsys, "schedule", "--help")
    assert status == 0
    assert "batch-ramp" in out.replace("\n", "").replace(" ", "")
    assert json.loads(call(capsys, *SHOW, "constant", "--steps", "1", *SIZES, "--json")[1])["steps"] == 1
