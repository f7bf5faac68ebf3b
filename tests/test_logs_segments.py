"""A run in several parts: later files over earlier ones, parts of one file, parents and where they end."""

import json

import numpy as np
import pytest
from log_files import curve, lines_with, write_columns

from rfsim.checks import InputError
from rfsim.logs import read_many, read_run, read_runs, run
from rfsim.logs.segments import merged
from rfsim.schedules import constant

PEAK = 1e-3
STEP = np.arange(50, 2001, 50)


def export(path, *, step=STEP, loss=None, name="x", **config):
    """A tracker's file with a constant lr."""
    loss = curve(step) if loss is None else loss
    history = {"iter": step.tolist(), "train/lr": [PEAK] * len(step), "val/loss": loss.tolist()}
    path.write_text(json.dumps({"name": name, "config": config, "history": history}), encoding="utf-8")
    return path


# --- parents ---------------------------------------------------------------------------------------------------------


def test_a_parents_rows_after_the_resume_are_not_the_childs():
    """Parent logged every 50 steps, child resumed at 1000 and logged every 200: rows 1050..1150 are another course."""
    norm = np.arange(1.0, 2001.0)
    parent = run(STEP, curve(STEP), constant(2000, PEAK, 1.0), name="parent", norm=norm, warmup=7)
    own = np.arange(1200, 2001, 200)
    child = run(own, curve(own) - 0.1, constant(2000, PEAK / 10, 1.0), norm=2.0 * norm)
    got = merged(parent, child, 1000)
    assert got.step.tolist() == [*range(50, 1001, 50), *range(1200, 2001, 200)]
    np.testing.assert_array_equal(got.norm, np.append(norm[:1000], 2.0 * norm[1000:]))
    assert got.warmup == 7


def test_a_resume_step_after_the_first_row_is_not_the_resume(tmp_path):
    """The path names checkpoint 1500, the child's rows begin at 1100: its lr holds from there on."""
    parent = run(STEP, curve(STEP), constant(2000, 2 * PEAK, 1.0), name="parent")
    own = STEP[STEP >= 1100]
    got = read_run(export(tmp_path / "a.json", step=own, resume_from="exps/parent/ckpts/1500"), parents=[parent])
    assert lines_with(got, "resumed from parent at step 1100")
    np.testing.assert_array_equal(got.schedule.lr, np.where(np.arange(2000) < 1100, 2 * PEAK, PEAK))


def test_a_drop_at_the_resume_is_told_from_there(tmp_path):
    """The rows before the child's first one are the parent's: the lr changes after step 999, not after step 0."""
    parent = run(STEP, curve(STEP), constant(2000, PEAK, 1.0), name="parent")
    own = STEP[STEP > 1000]
    lr = np.where(own < 1500, PEAK / 2, PEAK / 10)
    path = write_columns(tmp_path / "a.csv", step=own, loss=curve(own), lr=lr)
    got = read_run(path, parents=[parent])
    assert not lines_with(got, "between the rows at steps 0 and")
    assert np.asarray(got.schedule.lr)[[0, 1049, 1050, 1499, 1500]].tolist() == [PEAK] * 2 + [PEAK / 2] * 2 + [
        PEAK / 10
    ]


def test_a_parent_given_by_its_path_has_the_lr_of_the_same_column(tmp_path):
    columns = {"rate": np.full(STEP.size, PEAK), "lr": np.full(STEP.size, 9.0)}
    parent = write_columns(tmp_path / "parent.csv", step=STEP, loss=curve(STEP), **columns)
    own = STEP > 1000
    child = {name: values[own] for name, values in columns.items()}
    path = write_columns(tmp_path / "child.csv", step=STEP[own], loss=curve(STEP[own]), **child)
    assert (np.asarray(read_run(path, parents=[parent], lr="rate").schedule.lr) == PEAK).all()


def test_files_are_read_once_and_the_folder_only_for_what_is_missing(tmp_path, monkeypatch):
    parent = export(tmp_path / "base.json", name="base")
    children = [
        export(tmp_path / f"child{at}.json", step=STEP[STEP > 1000], resume_from="exps/base/ckpts/1000")
        for at in range(4)
    ]
    read, original = [], read_many.read_log
    monkeypatch.setattr(read_many, "read_log", lambda path: read.append(path) or original(path))
    assert len(read_runs([parent, *children])) == 5
    assert len(read) == 5
    read.clear()
    (one,) = read_runs(children[:1])  # base.json is the first of the folder
    assert lines_with(one, "resumed from base at step 1000")
    assert len(read) == 2


# --- several files ---------------------------------------------------------------------------------------------------


def test_a_later_file_wins_between_its_rows_too(tmp_path):
    first = write_columns(tmp_path / "a.csv", step=STEP[:20], loss=curve(STEP[:20]) + 1.0, lr=np.full(20, PEAK))
    later = np.arange(525, 2001, 50)
    second = write_columns(tmp_path / "b.csv", step=later, loss=curve(later), lr=np.full(later.size, PEAK))
    got = read_run([first, second])
    assert got.step.tolist() == [*range(50, 501, 50), *later.tolist()]


@pytest.mark.parametrize("slope", [0.0, 3e-4])
def test_a_zero_at_the_end_of_the_first_file(tmp_path, slope):
    """The lr is level, or falls by 1.5 % from row to row."""
    true = PEAK * (1.0 - slope * np.maximum(STEP - 500, 0))
    lr = np.where(STEP == 1000, 0.0, true)
    parts = [
        write_columns(tmp_path / name, step=STEP[own], loss=curve(STEP[own]), lr=lr[own])
        for name, own in (("a.csv", STEP <= 1000), ("b.csv", STEP > 1000))
    ]
    got = read_run(parts)
    expected = PEAK * (1.0 - slope * np.maximum(np.arange(2000) - 500, 0))
    np.testing.assert_allclose(got.schedule.lr, expected, atol=1e-12)
    assert lines_with(got, "lr is 0 at step 1000 alone")


def test_a_zero_that_a_schedule_leads_to_stays(tmp_path):
    """Two triangles: the lr falls to 0 and rises again, 10 % of the peak per row."""
    lr = PEAK * np.abs(np.arange(STEP.size) % 20 - 10) / 10
    got = read_run(write_columns(tmp_path / "a.csv", step=STEP, loss=curve(STEP), lr=lr), warmup=0)
    assert not lines_with(got, "alone")
    assert np.asarray(got.schedule.lr)[[550, 1550]].tolist() == [0.0, 0.0]


# --- parts of one file -----------------------------------------------------------------------------------------------


def test_rows_of_an_abandoned_course_are_counted(tmp_path):
    """Rows 50..1000, then 525..2000: of the first part 550, 600, .., 1000 alternate with the new ones."""
    later = np.arange(525, 2001, 50)
    step = np.append(STEP[:20], later)
    got = read_run(write_columns(tmp_path / "a.csv", step=step, loss=curve(step), lr=np.full(step.size, PEAK)))
    assert lines_with(
        got, "loss: 1 places where the step goes back", "10 rows lie between rows that were written later", "two files"
    )
    same = np.append(STEP[:20], STEP[10:])  # on the same grid the later row of a step stays: nothing alternates
    got = read_run(write_columns(tmp_path / "a.csv", step=same, loss=curve(same), lr=np.full(same.size, PEAK)))
    assert lines_with(got, "1 places where the step goes back: rows sorted by step")
    assert not lines_with(got, "two files")
    parts = np.concatenate([STEP[30:], STEP[10:30], STEP[:10], [25]])  # written last part first: none covers another
    got = read_run(write_columns(tmp_path / "a.csv", step=parts, loss=curve(parts), lr=np.full(parts.size, PEAK)))
    assert lines_with(got, "3 places where the step goes back: rows sorted by step")
    assert not lines_with(got, "two files")


# --- evaluations without a step --------------------------------------------------------------------------------------


def test_a_final_loss_in_a_group_without_steps(tmp_path):
    history = {
        "train": {"iter": STEP.tolist(), "loss": curve(STEP).tolist(), "lr": [PEAK] * STEP.size},
        "final": {"final_loss": [3.1]},
    }
    (tmp_path / "a.json").write_text(json.dumps({"history": history}), encoding="utf-8")
    got = read_run(tmp_path / "a.json")
    assert got.step.tolist() == STEP.tolist()
    assert lines_with(got, "final/final_loss is one point, 3.1000 without a step, another evaluation")
    history["final"] = {"when": [2000], "final_loss": [3.1]}
    history["train"] = {"when": STEP.tolist(), "loss": curve(STEP).tolist(), "lr": [PEAK] * STEP.size}
    (tmp_path / "b.json").write_text(json.dumps({"history": history}), encoding="utf-8")
    for named in ("when", "WHEN"):  # in both groups, and as the caller spells it
        got = read_run(tmp_path / "b.json", step=named)
        assert got.step.tolist() == STEP.tolist()
        assert lines_with(got, "3.1000 at step 2000, another evaluation")


def test_a_parent_that_is_too_short():
    with pytest.raises(InputError, match="parent run has 100 steps, its child begins at step 500"):
        merged(run([100], [3.0], constant(100, PEAK, 1.0)), run([600], [3.0], constant(600, PEAK, 1.0)), 500)
