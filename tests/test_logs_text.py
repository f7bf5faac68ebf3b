"""Files as tools write them: compressed, in UTF-16, with comments on top, blanks in names, parents beside children."""

import codecs
import gzip
import json

import numpy as np
import pytest
from log_files import curve, lines_with, write_columns

from rfsim.checks import InputError
from rfsim.logs import read_run, read_runs

STEP = np.arange(0, 3001, 50)


@pytest.fixture
def table(tmp_path):
    return write_columns(tmp_path / "one.csv", step=STEP, loss=curve(STEP), lr=np.full(STEP.size, 1e-3))


def same(one, other):
    np.testing.assert_array_equal(one.loss, other.loss)
    np.testing.assert_array_equal(one.schedule.lr, other.schedule.lr)
    return True


@pytest.mark.parametrize("lines", [False, True])
def test_compressed_logs(table, tmp_path, lines):
    plain = table
    if lines:
        plain = tmp_path / "one.jsonl"
        rows = [{"step": int(s), "loss": float(curve(s)), "lr": 1e-3} for s in STEP]
        plain.write_text("\n".join(map(json.dumps, rows)))
    packed = tmp_path / f"two{plain.suffix}.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    got = read_run(packed)
    assert got.name == "two"
    assert same(got, read_run(plain))
    packed.write_bytes(gzip.compress(plain.read_bytes())[:-40])
    with pytest.raises(InputError, match=r"log .*gz is compressed and cannot be unpacked .*; give a whole file"):
        read_run(packed)


@pytest.mark.parametrize("order", ["le", "be"])
def test_utf_16_with_its_mark(table, tmp_path, order):
    mark = {"le": codecs.BOM_UTF16_LE, "be": codecs.BOM_UTF16_BE}[order]
    (tmp_path / "two.csv").write_bytes(mark + table.read_text().encode(f"utf-16-{order}"))
    assert same(read_run(tmp_path / "two.csv"), read_run(table))
    (tmp_path / "two.csv").write_bytes(mark + b"x")
    with pytest.raises(InputError, match="not UTF-8 text"):
        read_run(tmp_path / "two.csv")


def test_comments_on_top_of_a_table(table, tmp_path):
    two = tmp_path / "two.csv"
    two.write_text("# run of May, exported\n\n  # lr 1e-3, constant\n" + table.read_text())
    got = read_run(two)
    assert same(got, read_run(table))
    assert lines_with(got, "2 lines of comment on top: left out")
    two.write_text("# run of May\n# " + table.read_text())  # numbers follow at once: the last comment is the header
    got = read_run(two)
    assert same(got, read_run(table))
    assert lines_with(got, "1 lines of comment on top: left out")


def test_blanks_around_the_slash_of_a_name(table, tmp_path):
    (tmp_path / "two.csv").write_text(
        table.read_text().replace("loss", "Train / Loss").replace("lr", "Train /Learning Rate")
    )
    assert same(read_run(tmp_path / "two.csv"), read_run(table))


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz"])
def test_a_table_beside_the_child_is_its_parent(tmp_path, ending):
    text = "step,loss,lr\n" + "".join(f"{s},{float(curve(s))!r},0.001\n" for s in STEP.tolist())
    text = text.replace(",", "\t") if ending == "tsv" else text
    (tmp_path / f"base.{ending}").write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    (tmp_path / "other.csv").write_text("no log")
    late = STEP[STEP >= 2000]
    rows = [{"step": int(s), "loss": float(curve(s)), "lr": 1e-3 * (1 - (s - 2000) / 1000)} for s in late]
    child = {"name": "child", "config": {"resume_from": "/runs/base/step_2000.pt"}, "history": rows}
    (tmp_path / "child.json").write_text(json.dumps(child))
    (run,) = read_runs([tmp_path / "child.json"])
    assert lines_with(run, "resumed from base at step 2000: 40 rows")
    np.testing.assert_array_equal(run.step, STEP)
    np.testing.assert_array_equal(np.asarray(run.schedule.lr)[:2000], 1e-3)


def test_rows_that_begin_inside_the_warm_up(tmp_path):
    lr = 1e-3 * np.minimum(1.0, (np.arange(9001) + 1.0) / 700)
    step = np.arange(350, 9001, 50)
    got = read_run(write_columns(tmp_path / "one.csv", step=step, loss=curve(step), lr=lr[step]))
    np.testing.assert_allclose(got.schedule.lr, lr[:-1], rtol=1e-9)
    assert lines_with(got, "steps 0 to 349 have no lr row: their lr is that of the warm-up in which the rows begin")


def test_levels_of_a_cosine_are_the_decimals_that_they_are(tmp_path):
    step = np.arange(0, 9951, 50)
    for peak, to in ((1e-3, 1e-4), (6e-4, 6e-5), (2.5e-4, 0.0), (1e-3 / 3, 1e-4 / 3)):
        lr = to + (peak - to) * 0.5 * (1 + np.cos(np.pi * np.maximum(step - 500, 0) / 9500))
        got = read_run(write_columns(tmp_path / "one.csv", step=step, loss=curve(step), lr=lr))
        assert np.asarray(got.schedule.lr).max() == pytest.approx(peak, rel=1e-12, abs=0)
        if peak != 1e-3 / 3:
            assert (np.asarray(got.schedule.lr)[:500] == peak).all()
