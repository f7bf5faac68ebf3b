"""Logs: formats, columns, steps and tokens, dirty cells, repeated rows, several files, parents."""

import json
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_files import curve, lines_with, write_columns

from rfsim.checks import InputError, RunError
from rfsim.logs import noise_floor, read_log, read_run, read_runs, run
from rfsim.schedules import constant, read_schedule, write_schedule

STEP = np.arange(100, 2001, 100)
LOSS = 3.0 + 5.0 * STEP**-0.4
LR = 1e-3


def table(path, *, header="step,loss,lr", delimiter=",", rows=None):
    rows = [(s, repr(float(x)), LR) for s, x in zip(STEP, LOSS, strict=True)] if rows is None else rows
    lines = [header.replace(",", delimiter), *(delimiter.join(str(cell) for cell in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def check(run_, step=STEP, loss=LOSS):
    np.testing.assert_array_equal(run_.step, step)
    np.testing.assert_allclose(run_.loss, loss, rtol=1e-15)
    np.testing.assert_allclose(run_.schedule.lr, LR, rtol=1e-15)
    np.testing.assert_array_equal(run_.schedule.batch, 1.0)


# --- formats ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", "\t", ";", ", "])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.json", "a"])
def test_delimiter_is_sniffed_and_the_extension_is_not_trusted(tmp_path, delimiter, name):
    check(read_run(table(tmp_path / name, delimiter=delimiter)))


def test_byte_order_mark_quotes_and_blank_lines(tmp_path):
    path = tmp_path / "a.csv"
    body = "\r\n".join(f'"{s}","{float(x)!r}","{LR}",""' for s, x in zip(STEP, LOSS, strict=True))
    path.write_bytes(("\ufeff" + '"step","loss","lr","a, note"\r\n\r\n' + body).encode())
    check(read_run(path))


def test_text_columns_are_no_series(tmp_path):
    rows = [(s, x, LR, "cosine" if s > 300 else "") for s, x in zip(STEP, LOSS, strict=True)]
    path = table(tmp_path / "a.csv", header="step,loss,lr,phase", rows=rows)
    assert list(read_log(path).tables[0].columns) == ["step", "loss", "lr"]
    check(read_run(path))


def test_a_cell_of_text_is_named_where_it_costs_a_column(tmp_path):
    rows = [(s, x, LR, x + 0.1) for s, x in zip(STEP, LOSS, strict=True)]
    columns = ("step", "loss", "lr", "val_loss")
    for at, column in enumerate(columns[:3]):
        broken = [tuple("oops" if (k, c) == (3, at) else cell for c, cell in enumerate(r)) for k, r in enumerate(rows)]
        path = table(tmp_path / f"{column}.csv", header="step,loss,lr", rows=[row[:3] for row in broken])
        with pytest.raises(InputError, match=f"{column} .*column {column} holds text, 'oops' in row 4"):
            read_run(path)
        with pytest.raises(InputError, match=f"{column} names a column that cannot be read: column {column} holds"):
            read_run(path, **{column: column})
    path = table(tmp_path / "b.csv", header=",".join(columns), rows=[*rows, (3000, 3.0, LR, "3,1")][::-1])
    path.write_text(path.read_text().replace("3,1", '"3,1"'), encoding="utf-8")
    read = read_run(path)  # the validation loss cannot be read, and is not passed over in silence
    assert len(lines_with(read, "column val_loss holds text, '3,1' in row 1: not used")) == 1
    assert read.loss[0] == LOSS[0]
    short = tmp_path / "c.json"
    short.write_text(json.dumps({"train": {"step": [1, 2], "loss": [3.0, 2.9, 2.8], "lr": [1, 1]}}))
    with pytest.raises(InputError, match="column train/loss has 3 values for 2 steps: not used; name one"):
        read_run(short)


def test_a_header_that_is_repeated_where_a_log_was_appended_to_is_no_row(tmp_path):
    rows = [(s, float(x), LR) for s, x in zip(STEP, LOSS, strict=True)]
    path = table(tmp_path / "a.csv", rows=[*rows[:7], ("step", " loss", "lr"), *rows[7:]])
    read = read_run(path)
    check(read)
    assert len(lines_with(read, "header is repeated 1 times")) == 1


def test_a_quote_that_is_never_closed_costs_no_rows_in_silence(tmp_path):
    for count in (40, 9000):  # short, and longer than the largest cell
        step = np.arange(1, count + 1)
        for opened in ((20,), (20, 30)):  # the second one closes the first, and text follows
            note = ['"bad' if s in opened else "ok" for s in step]
            path = write_columns(tmp_path / "a.csv", step=step, loss=curve(step), lr=np.full(count, LR), note=note)
            with pytest.raises(InputError, match="a quote in line 21 that cannot be read"):
                read_run(path)
    note = ['"two' if s == 10 else 'lines"' if s == 15 else "ok" for s in step]
    got = read_run(write_columns(tmp_path / "a.csv", step=step, loss=curve(step), lr=np.full(count, LR), note=note))
    assert lines_with(got, "a quoted cell stretches over the lines 11 to 16: read as one row")


def test_numbers_without_end_are_no_numbers(tmp_path):
    """JSON integers of 5000 digits: Python refuses to read them."""
    path, endless = tmp_path / "a.json", "9" * 5000
    path.write_text(f'{{"step": [1, 2], "loss": [3.0, {endless}], "lr": [1, 1]}}', encoding="utf-8")
    with pytest.raises(InputError, match="is JSON with a number that cannot be read"):
        read_log(path)
    lines = [f'{{"step": {s}, "loss": 3.0, "lr": {LR}}}' for s in range(1, 21)]
    for bad in (endless, "[" * 100_000):
        path.write_text("\n".join([*lines, f'{{"step": 21, "loss": {bad}}}']), encoding="utf-8")
        assert lines_with(read_run(path), "line 21 is not a JSON object (1 such lines of 21)")


def test_a_tenth_of_bad_lines_is_the_most(tmp_path):
    lines = [f'{{"step": {s}, "loss": 3.0, "lr": {LR}}}' for s in range(1, 21)]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join([*lines[:18], "{", "{"]), encoding="utf-8")
    assert read_run(path).step.size == 18
    path.write_text("\n".join([*lines[:15], *"{{{{{"]), encoding="utf-8")
    with pytest.raises(InputError, match=r"neither JSON nor JSON lines \(line 16 cannot be read\)"):
        read_run(path)


def test_columns_without_values_are_not_told(tmp_path):
    path = tmp_path / "a.json"
    history = {"val": {"iter": STEP.tolist(), "loss": LOSS.tolist(), "lr": [LR] * 20}, "wa": {"iter": [], "loss": []}}
    path.write_text(json.dumps({"name": None, "history": history}), encoding="utf-8")
    got = read_run(path)
    check(got)
    assert not lines_with(got, "no cells")
    assert got.known_as == ("a",)  # the file, not "None"


def test_steps_beyond_memory_and_json_without_end_are_refused(tmp_path):
    rows = [(s * 10**k, 3.0, LR) for k, s in ((0, 1), (0, 2), (17, 3))]
    with pytest.raises(RunError, match=r"last row at step 3e\+17 needs .* check the column of the step"):
        read_run(table(tmp_path / "a.csv", rows=rows))
    tokens = table(tmp_path / "b.csv", header="tokens,loss,lr")
    with pytest.raises(RunError, match="the tokens of one step"):
        read_run(tokens, tokens_per_step=1e-12)
    config = {"scheduler": "cosine", "lr": LR, "max_steps": 10**15}
    history = [{"step": int(s), "loss": float(x)} for s, x in zip(STEP, LOSS, strict=True)]
    (tmp_path / "c.json").write_text(json.dumps({"config": config, "history": history}))
    with pytest.raises(RunError, match="a schedule of 1e\\+15 steps needs"):
        read_run(tmp_path / "c.json")
    (tmp_path / "d.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match="nested too deep"):
        read_log(tmp_path / "d.json")


def test_json_lines_with_different_keys(tmp_path):
    """Training rows every 100 steps, validation rows every 200, a line of configuration, a torn last line."""
    lines = [json.dumps({"config": {"batch_size": {"value": 8}}})]
    for s, x in zip(STEP, LOSS, strict=True):
        lines.append(json.dumps({"global_step": int(s), "train/loss": float(x) + 0.01, "train/lr": LR}))
        if s % 200 == 0:
            lines.append(json.dumps({"global_step": int(s), "val": {"loss": float(x)}}))
    path = tmp_path / "log.txt"
    path.write_text("\n".join([*lines, '{"global_step": 21']), encoding="utf-8")
    got = read_run(path)
    check(got, STEP[1::2], LOSS[1::2])
    assert lines_with(got, "joined on the step", "val/loss has 10 rows, one every 200", "train/lr has 20")
    assert lines_with(got, "the loss is val/loss (10 rows)", "train/loss (20 rows)")
    assert lines_with(got, "line 32 is not a JSON object")
    assert lines_with(got, "batch is 1", "batch_size 8")
    assert not lines_with(got, "empty cells")  # a key that a row lacks is a cadence, not a lost cell
    train = read_run(path, loss="train/loss")
    check(train, STEP, LOSS + 0.01)


def test_json_lines_of_one_line_and_plain_arrays(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"step": 3, "loss": 2.5, "lr": 0.1}\n', encoding="utf-8")
    assert read_run(path).loss.tolist() == [2.5]
    rows = [{"step": int(s), "loss": float(x), "lr": LR} for s, x in zip(STEP, LOSS, strict=True)]
    path.write_text(json.dumps(rows), encoding="utf-8")
    check(read_run(path))
    path.write_text(json.dumps({k: [row[k] for row in rows] for k in rows[0]}), encoding="utf-8")
    check(read_run(path))


def export(path, *, name="base", step=STEP, loss=LOSS, lr=None, config=None, rows=False, final=None):
    lr = np.full(len(step), LR) if lr is None else lr
    groups = {
        "train": {"iter": step.tolist(), "train_loss": (loss + 0.1).tolist(), "train_lr": list(lr)},
        "val": {"iter": step.tolist(), "val_loss": loss.tolist(), "val_acc": loss[:-3].tolist()},
    }
    if final is not None:
        groups["final-val"] = {"iter": [int(step[-1])], "final_val_loss": [final]}
    history = groups
    if rows:
        history = [
            {"iter": int(s), "train/loss": float(x) + 0.1, "lr": float(r), "val/loss": float(x), "_step": k}
            for k, (s, x, r) in enumerate(zip(step, loss, lr, strict=True))
        ]
    document = {"name": name, "config": config or {}, "summary": {"lr": 0}, "history": history}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.mark.parametrize("rows", [False, True])
def test_tracker_export(tmp_path, rows):
    got = read_run(export(tmp_path / "export.json", rows=rows))
    check(got)
    assert got.name == "export"
    assert got.known_as == ("base",)
    if rows:
        assert lines_with(got, "step is taken from iter, not from _step")
    else:
        assert lines_with(got, "val/val_acc has 17 values for 20 steps: not used")


def test_final_evaluation_is_no_point_of_the_curve(tmp_path):
    got = read_run(export(tmp_path / "export.json", final=float(LOSS[-1]) + 0.033))
    check(got)
    assert lines_with(got, "final-val/final_val_loss is one point", "+0.0330 off the last point", "step 2000")


def chart(path, runs, column, values):
    heads = ["Step"]
    for owner in runs:
        heads += [f"{owner} - {column}", f"{owner} - {column}__MIN", f"{owner} - {column}__MAX"]
    lines = [",".join(f'"{head}"' for head in heads)]
    for k, s in enumerate(STEP):
        cells = [f'"{s}"']
        for number in range(len(runs)):
            cells += [f'"{float(values[k]) + number!r}"', '"0"', '"99"']
        lines.append(",".join(cells))
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_chart_of_one_run_and_its_lr_in_another_file(tmp_path):
    loss = chart(tmp_path / "loss.csv", ["my run - 2"], "train/loss", LOSS)
    lr = chart(tmp_path / "lr.csv", ["my run - 2"], "train/lr", np.full(STEP.size, LR))
    check(read_run([loss, lr]))
    with pytest.raises(InputError, match=r"lr is in no column.*schedule="):
        read_run(loss)
    check(read_run(loss, schedule="constant", lr=LR))


def test_chart_of_several_runs(tmp_path):
    path = chart(tmp_path / "loss.csv", ["one", "two"], "val/loss", LOSS)
    with pytest.raises(InputError, match=r"name must pick a run.*one, two"):
        read_run(path, schedule="constant", lr=LR)
    check(read_run(path, schedule="constant", lr=LR, name="two"), loss=LOSS + 1)
    both = read_runs([path], schedule="constant", lr=LR)
    assert [one.name for one in both] == ["one", "two"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("1,2,3\n4,5,6\n", "has no header"),
        ("step,loss,loss\n1,2,3\n", "the columns loss twice"),
        ("alpha,beta\nx,y\n", "no column of numbers"),
        ("run 7\nstep,loss\n1,2\n", "the header is taken to be 'run 7'"),
        ("step loss lr\n1 2 3\n", "the header is taken to be 'step loss lr'"),
        ('{"a": [1, 2', "neither JSON nor JSON lines"),
        ("[1, 2, 3]", "each row must be an object"),
    ],
)
def test_files_that_are_no_logs(tmp_path, content, message):
    path = tmp_path / "a.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_run(path)


def test_missing_and_binary_files(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_run(tmp_path / "none.csv")
    (tmp_path / "b.csv").write_bytes(b"\xff\xff\x00\x01")
    with pytest.raises(InputError, match="not UTF-8"):
        read_run(tmp_path / "b.csv")
    with pytest.raises(InputError, match="at least one file"):
        read_run([])


# --- columns ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        "Step,Loss,LR",
        "iter,val_loss,learning_rate",
        "iteration,train/loss,train_lr",
        "global_step,eval/loss,train/learning_rate",
        "_step,valid/loss,optim/lr",
        "trainer/global_step,train_loss,Learning Rate",
        "Iteration,eval_loss,train/lr",
    ],
)
def test_aliases(tmp_path, header):
    check(read_run(table(tmp_path / "a.csv", header=header)))


def test_explicit_names_win_and_unknown_ones_list_what_is_there(tmp_path):
    rows = [(s, x, x + 1, LR, 9.0) for s, x in zip(STEP, LOSS, strict=True)]
    path = table(tmp_path / "a.csv", header="step,val_loss,my_loss,my_lr,lr", rows=rows)
    check(read_run(path, loss="my_loss", lr="MY_LR"), loss=LOSS + 1)
    for argument in ("loss", "lr", "step", "norm", "batch", "tokens"):
        with pytest.raises(InputError, match=rf"{argument} names the column 'nope'.*step, val_loss, my_loss, my_lr"):
            read_run(path, **{argument: "nope"})
    with pytest.raises(InputError, match=r"loss is in no column.*s, x"):
        read_run(table(tmp_path / "b.csv", header="step,s,x"))


def test_validation_comes_before_training(tmp_path):
    rows = [(s, x + 1, x, LR) for s, x in zip(STEP, LOSS, strict=True)]
    got = read_run(table(tmp_path / "a.csv", header="step,loss,val_loss,lr", rows=rows))
    check(got)
    assert lines_with(got, "the loss is val_loss (20 rows)", "also there: loss (20 rows)")


def test_perplexity_becomes_a_loss(tmp_path):
    rows = [(s, repr(math.exp(x)), LR) for s, x in zip(STEP, LOSS, strict=True)]
    got = read_run(table(tmp_path / "a.csv", header="step,val_ppl,lr", rows=rows))
    check(got)
    assert lines_with(got, "val_ppl is a perplexity", "its logarithm is the loss")


def test_batch_and_norm_columns(tmp_path):
    rows = [(s, x, LR, 32 if s <= 1000 else 64, s / 100) for s, x in zip(STEP, LOSS, strict=True)]
    got = read_run(table(tmp_path / "a.csv", header="step,loss,lr,batch_size,param_norm", rows=rows))
    assert got.schedule.steps == 2000
    assert np.asarray(got.schedule.batch)[[0, 1099, 1100, 1999]].tolist() == [32, 32, 64, 64]  # in (1000, 1100]
    np.testing.assert_allclose(got.norm[[0, 100, 150, 1999]], [1, 1, 1.5, 19.99])
    assert read_run(table(tmp_path / "b.csv"), batch=7).schedule.batch[0] == 7


# --- steps and tokens ------------------------------------------------------------------------------------------------


def test_tokens_become_steps(tmp_path):
    rows = [(int(s) * 51200, x, LR) for s, x in zip(STEP, LOSS, strict=True)]
    path = table(tmp_path / "a.csv", header="tokens,loss,lr", rows=rows)
    got = read_run(path, tokens_per_step=51200)
    check(got)
    assert lines_with(got, "steps are tokens / 51200")
    with pytest.raises(InputError, match="tokens_per_step is needed"):
        read_run(path)
    with pytest.raises(InputError, match=r"tokens_per_step must make whole steps, got 51000"):
        read_run(path, tokens_per_step=51000)
    with pytest.raises(InputError, match="tokens_per_step must be positive"):
        read_run(path, tokens_per_step=-1)


def test_tokens_per_step_from_a_configuration(tmp_path):
    document = {
        "config": {"batch_size": 50, "acc_steps": 2, "sequence_length": 512},
        "history": [
            {"tokens_seen": int(s) * 51200, "loss": float(x), "lr": LR} for s, x in zip(STEP, LOSS, strict=True)
        ],
    }
    (tmp_path / "a.json").write_text(json.dumps(document), encoding="utf-8")
    got = read_run(tmp_path / "a.json")
    check(got)
    assert lines_with(got, "batch_size * sequence_length * acc_steps of the configuration")


def test_steps_that_are_not_whole(tmp_path):
    with pytest.raises(InputError, match="step must be whole"):
        read_run(table(tmp_path / "a.csv", rows=[(s + 0.5, x, LR) for s, x in zip(STEP, LOSS, strict=True)]))
    with pytest.raises(InputError, match=r"step is in no column.*loss, lr"):
        read_run(table(tmp_path / "b.csv", header="when,loss,lr"))


# --- dirty rows ------------------------------------------------------------------------------------------------------


def test_missing_and_infinite_cells_are_counted(tmp_path):
    cells = [repr(float(x)) for x in LOSS]
    for at, word in ((2, ""), (5, "NaN"), (7, "Infinity"), (11, "null"), (13, "-inf")):
        cells[at] = word
    got = read_run(table(tmp_path / "a.csv", rows=[(s, x, LR) for s, x in zip(STEP, cells, strict=True)]))
    keep = np.delete(np.arange(20), [2, 5, 7, 11, 13])
    check(got, STEP[keep], LOSS[keep])
    assert lines_with(got, "loss: 1 empty cells and 4 cells with null, NaN or infinity: left out")
    path = tmp_path / "b.jsonl"
    path.write_text('{"step": 1, "loss": NaN, "lr": 1}\n{"step": 2, "loss": null}\n{"step": 3, "loss": 2}', "utf-8")
    assert lines_with(read_run(path), "0 empty cells and 2 cells with null")
    with pytest.raises(InputError, match="no finite value"):
        read_run(table(tmp_path / "c.csv", rows=[(1, "nan", LR), (2, "", LR)]))


def test_a_row_with_missing_cells(tmp_path):
    path = table(tmp_path / "a.csv")
    path.write_text(path.read_text() + "2100,3.2345\n2200\n", encoding="utf-8")
    got = read_run(path)
    assert got.step[-1] == 2100
    assert lines_with(got, "2 of 22 rows do not have the 3 cells", "2100,3.2345")


def test_loss_must_be_positive(tmp_path):
    rows = [(1, 2.0, LR), (2, -1.0, LR)]
    with pytest.raises(InputError, match=r"loss must be above 0, got -1 at step 2"):
        read_run(table(tmp_path / "a.csv", rows=rows))


def test_repeated_steps_keep_the_later_row(tmp_path):
    rows = [(1, 3.0, LR), (2, 2.9, LR), (3, 2.8, LR), (2, 2.95, LR), (3, 2.8, LR), (4, 2.7, LR)]
    got = read_run(table(tmp_path / "a.csv", rows=rows))
    assert got.loss.tolist() == [3.0, 2.95, 2.8, 2.7]
    assert lines_with(got, "loss: 1 places where the step goes back")
    assert lines_with(got, "2 steps occur more than once, 2 rows left out", "1 of these", "0.05 at step 2")
    same = read_run(table(tmp_path / "b.csv", rows=[(1, 3.0, LR), (1, 3.0, LR), (2, 2.9, LR)]))
    assert lines_with(same, "all repeats are identical")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(20)), doubled=st.sets(st.integers(0, 19)))
def test_order_and_repeats_of_rows_do_not_matter(tmp_path, order, doubled):
    rows = [(int(s), repr(float(x)), LR) for s, x in zip(STEP, LOSS, strict=True)]
    mixed = [rows[k] for k in order] + [rows[k] for k in sorted(doubled)]
    check(read_run(table(tmp_path / "a.csv", rows=mixed)))


# --- several files, parents ------------------------------------------------------------------------------------------


def test_the_later_file_wins_over_the_overlap(tmp_path):
    rows = list(zip(STEP.tolist(), LOSS.tolist(), [LR] * 20, strict=True))
    first = table(tmp_path / "a.csv", rows=[(s, x + (0.25 if s > 800 else 0), r) for s, x, r in rows[:12]])
    second = table(tmp_path / "b.csv", rows=rows[8:])
    got = read_run([first, second])
    check(got)
    assert lines_with(got, "loss: 4 rows of a.csv lie within steps 900 to 2000 of b.csv", "0.25 at step 900")


def family(folder, **more):
    """A constant parent of 2000 steps, and a child resumed at 1000 that decays linearly from 1500 to 0 at 2000."""
    parent = export(folder / "long.json", name="parent-run", lr=np.append(np.full(19, LR), 0.0))
    own = STEP[STEP > 1000]
    lr = LR * np.minimum(1.0, (2000 - own) / 500)
    config = {"resume_from": "/somewhere/exps/parent-run/ckpts/1000"}
    child = export(folder / "child.json", name="child-run", step=own, loss=LOSS[10:] - 0.2, lr=lr, config=config | more)
    return parent, child


def expected_child():
    lr = np.full(2000, LR)
    lr[1500:] = LR * (2000 - np.arange(1500, 2000)) / 500
    return lr


def test_a_resumed_run_has_its_parents_rows_and_lr(tmp_path):
    parent, child = family(tmp_path)
    for got in (
        read_run(child, parents=[parent]),
        read_run(child, parents=[read_run(parent)]),
        read_runs([child, parent])[0],
        read_runs([child])[0],  # from the folder
    ):
        np.testing.assert_array_equal(got.step, STEP)
        np.testing.assert_allclose(got.loss, np.append(LOSS[:10], LOSS[10:] - 0.2))
        np.testing.assert_allclose(got.schedule.lr, expected_child(), atol=1e-18)
        assert lines_with(
            got, "resumed from long at step 1000: 10 rows and the lr of steps 0 to 999", "10 steps are in"
        )
        assert lines_with(got, "at step 1100 they differ by 0.2")


def test_a_parent_that_is_not_given(tmp_path):
    parent, child = family(tmp_path)
    parent.unlink()
    got = read_run(child)
    assert lines_with(got, "resumed from 1000 of a parent that is not given")
    assert lines_with(got, "steps 0 to 1099 have no lr row", "taken as 0.001, without warm-up")
    config = {"scheduler": "wsd", "iterations": 2000, "warmup_steps": 100, "wsd_fract_decay": 0.25, "lr": LR}
    got = read_run(family(tmp_path, **config)[1])
    assert lines_with(got, "steps 0 to 1099 have no lr row: their lr is taken from the configuration")
    assert lines_with(got, "the warm-up of 100 steps is in no row")
    assert np.asarray(got.schedule.lr)[49] == pytest.approx(LR / 2)


def test_parents_that_do_not_fit(tmp_path):
    parent, child = family(tmp_path)
    other = export(tmp_path / "other.json", name="other-run")
    assert read_run(child, parents=[other, parent]).step.size == 20
    orphan = export(tmp_path / "orphan.json", step=STEP[10:], loss=LOSS[10:])
    with pytest.raises(InputError, match=r"parents must hold the run.*give one parent"):
        read_run(orphan, parents=[other, parent])
    short = run([100.0], [3.0], constant(100, LR, 1.0))
    with pytest.raises(InputError, match=r"parents: run has 100 steps.*begins at step 1100"):
        read_run(orphan, parents=[short])


# --- the record ------------------------------------------------------------------------------------------------------


def test_run_is_checked():
    schedule = constant(2000, LR, 1.0)
    good = run(STEP, LOSS, schedule, name="x", warmup=3)
    assert (good.name, good.warmup, good.findings) == ("x", 3, ())
    for bad, message in (
        ((STEP[::-1], LOSS, schedule), "strictly increasing"),
        ((STEP + 0.5, LOSS, schedule), "whole numbers"),
        ((STEP, -LOSS, schedule), "loss must be above 0"),
        ((STEP[1:], LOSS, schedule), "same length"),
        ((STEP, LOSS, schedule.part(0, 1999)), "up to the last row at step 2000, got 1999"),
        ((STEP, LOSS, "wsd"), "must be a Schedule"),
    ):
        with pytest.raises(InputError, match=message):
            run(*bad)
    with pytest.raises(InputError, match="norm must be above 0"):
        run(STEP, LOSS, schedule, norm=np.zeros(2000))


def test_part_keeps_the_schedule_whole():
    part = run(STEP, LOSS, constant(2000, LR, 1.0)).part(500, 900)
    assert part.step.tolist() == [500, 600, 700, 800, 900]
    assert part.schedule.steps == 2000
    with pytest.raises(InputError, match="first and last must enclose rows"):
        part.part(10, 20)


def test_noise_floor_finds_the_noise_that_was_put_in():
    """Uneven rows, a curve that falls like a power: sd .002 within five standard errors, and 0 without noise."""
    rng = np.random.default_rng(5)
    step = np.unique(rng.integers(200, 30_000, 1500)).astype(float)
    smooth = 3.0 + 10.0 * step**-0.3
    assert noise_floor(step, smooth) < 1e-8
    found = noise_floor(step, smooth * np.exp(0.002 * rng.standard_normal(step.size)))
    assert abs(found / 0.002 - 1.0) < 5 * 1.2 / math.sqrt(step.size / 4)
    assert math.isnan(noise_floor(step[:5], smooth[:5]))


def test_schedule_file_and_spec_and_record(tmp_path):
    path = table(tmp_path / "a.csv")
    given_schedule = constant(2500, LR, 4.0)
    write_schedule(tmp_path / "s.csv", given_schedule)
    for source in (given_schedule, tmp_path / "s.csv", str(tmp_path / "s.csv")):
        got = read_run(path, schedule=source)
        assert got.schedule.steps == 2500
        assert np.asarray(got.schedule.batch)[0] == 4.0
        assert lines_with(got, "largest deviation from 20 logged rows 0")
    np.testing.assert_array_equal(read_schedule(tmp_path / "s.csv").lr, got.schedule.lr)
    got = read_run(path, schedule="cosine:to=0", warmup=100)
    assert np.asarray(got.schedule.lr)[0] == pytest.approx(LR / 100, rel=1e-3)
    assert lines_with(got, "cosine:to=0 with peak 0.001", "largest deviation", "0.00099 at step 1900")
    with pytest.raises(InputError, match="reach the last row of the loss at step 2000"):
        read_run(path, schedule=constant(1999, LR, 1.0))
    with pytest.raises(InputError, match="neither a file nor one of"):
        read_run(path, schedule="wobble")
