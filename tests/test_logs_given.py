"""Schedules that the caller gives: their warm-up, batch and length, and what else was asked for with them."""

import numpy as np
import pytest
from log_files import curve, lines_with, write_columns

from rfsim.checks import InputError
from rfsim.logs import read_run
from rfsim.logs.given import rising_steps
from rfsim.schedules import constant, cosine, from_arrays, warmed, write_schedule

PEAK = 1e-3
STEP = np.arange(50, 2001, 50)


@pytest.fixture
def bare(tmp_path):
    return write_columns(tmp_path / "a.csv", step=STEP, loss=curve(STEP))


@pytest.mark.parametrize(
    ("spec", "warmup", "steps"),
    [
        ("wsd:decay=0.2,warmup=100", 0, 100),
        ("wsd:decay=0.2,warmup=0.05", 0, 100),
        ("polynomial:lr_decay=0.5,warmup=300", 0, 300),  # it falls faster than it rises before step 300
        ("wsd:decay=0.2", 100, 100),
        ("wsd:decay=0.2", 0, 0),
    ],
)
def test_the_warm_up_of_a_spec(bare, spec, warmup, steps):
    got = read_run(bare, schedule=spec, lr=PEAK, warmup=warmup)
    assert got.warmup == steps
    if steps:
        plain = read_run(bare, schedule=spec.partition(",warmup")[0], lr=PEAK)
        rise = np.minimum(np.arange(1.0, 2001.0) / steps, 1.0)
        if spec.startswith("wsd"):
            np.testing.assert_allclose(got.schedule.lr, np.asarray(plain.schedule.lr) * rise, rtol=1e-12)


@pytest.mark.parametrize("own", [0, 100])
def test_a_warm_up_is_said_once(bare, own):
    with pytest.raises(InputError, match=f"warmup is in the schedule wsd:warmup={own} and is given as 50 too"):
        read_run(bare, schedule=f"wsd:warmup={own}", lr=PEAK, warmup=50)


def test_the_warm_up_of_a_schedule_of_every_step(bare, tmp_path):
    """It is found where the lr rises, or said; no lr is changed in either case."""
    risen = warmed(cosine(2100, PEAK, 8.0), 120)
    write_schedule(tmp_path / "s.csv", risen)
    for source in (risen, tmp_path / "s.csv"):
        got = read_run(bare, schedule=source)
        assert got.warmup == 120
        assert lines_with(got, "the lr rises over the first 120 steps", "taken for its warm-up")
        said = read_run(bare, schedule=source, warmup=90)
        assert said.warmup == 90
        assert lines_with(said, "the first 90 steps", "as was said: no lr is changed")
        for one in (got, said):
            np.testing.assert_array_equal(one.schedule.lr, risen.lr)
    assert read_run(bare, schedule=risen, warmup=2100).warmup == 2100
    with pytest.raises(
        InputError, match=r"warmup says that 2101 steps of the schedule that was given rise, .* has 2100"
    ):
        read_run(bare, schedule=risen, warmup=2101)
    flat = read_run(bare, schedule=constant(2000, PEAK, 1.0))
    assert flat.warmup == 0
    assert not lines_with(flat, "warm-up")


@pytest.mark.parametrize(
    ("lr", "steps"),
    [
        ([1.0, 2.0, 3.0, 3.0, 2.0], 3),
        ([1.0, 2.0, 3.0, 2.0, 1.0], 3),
        ([1.0, 2.0, 2.0, 3.0, 1.0], 0),  # a stop on the way up
        ([1.0, 2.0, 1.0, 3.0, 1.0], 0),  # the largest comes later
        ([3.0, 2.0, 1.0], 0),
        ([1.0, 2.0, 3.0], 0),  # it never stops rising
        ([2.0, 2.0], 0),
    ],
)
def test_only_a_rise_to_the_largest_lr_is_a_warm_up(lr, steps):
    assert rising_steps(np.array(lr)) == steps


def test_the_batch_of_a_schedule_goes_before_the_column(tmp_path):
    size = np.where(STEP < 1000, 16, 32)
    own = write_columns(tmp_path / "b.csv", step=STEP, loss=curve(STEP), lr=np.full(STEP.size, PEAK), batch_size=size)
    assert (np.asarray(read_run(own, schedule=constant(2000, PEAK, 64.0)).schedule.batch) == 64.0).all()
    assert np.asarray(read_run(own, schedule=constant(2000, PEAK, 64.0), batch=8).schedule.batch)[0] == 8.0
    assert np.asarray(read_run(own, schedule="constant").schedule.batch)[[0, 1999]].tolist() == [16.0, 32.0]


def test_a_column_that_counts_is_no_batch(tmp_path):
    """`batch` as the number of the row, or of the step; named by the caller it is taken at its word."""
    for count in (np.arange(1, 41), np.arange(0, 40), STEP):
        path = write_columns(tmp_path / "a.csv", step=STEP, loss=curve(STEP), lr=np.full(40, PEAK), batch=count)
        got = read_run(path)
        assert (np.asarray(got.schedule.batch) == 1.0).all()
        assert lines_with(got, f"batch counts from {count[0]} to {count[-1]}", "left out")
        if count[0] > 0:
            assert np.asarray(read_run(path, batch="batch").schedule.batch)[0] == count[0]
    ramp = np.minimum(np.arange(1, 41), 39)  # a ramp that ends is one
    path = write_columns(tmp_path / "b.csv", step=STEP, loss=curve(STEP), lr=np.full(40, PEAK), batch=ramp)
    assert np.asarray(read_run(path).schedule.batch)[-1] == 39.0


def test_a_number_for_lr_needs_a_spec(tmp_path):
    path = write_columns(tmp_path / "b.csv", step=STEP, loss=curve(STEP), lr=np.full(STEP.size, PEAK))
    for schedule in (None, constant(2000, PEAK, 1.0)):
        with pytest.raises(InputError, match="lr is the peak of a SPEC if it is a number, got 5 without one"):
            read_run(path, lr=5.0, schedule=schedule)
    assert np.asarray(read_run(path, lr=5.0, schedule="constant").schedule.lr)[0] == 5.0


def test_tokens_of_a_step_need_tokens(tmp_path):
    lr = np.full(STEP.size, PEAK)
    path = write_columns(tmp_path / "b.csv", step=STEP, tokens=512 * STEP, loss=curve(STEP), lr=lr)
    with pytest.raises(InputError, match="tokens_per_step turns tokens into steps, and the steps are those of column"):
        read_run(path, tokens_per_step=256)
    assert read_run(path, tokens_per_step=256, tokens="tokens").step.tolist() == (2 * STEP).tolist()
    with pytest.raises(InputError, match="step and tokens both name the column of the step, 'step' and 'tokens'"):
        read_run(path, tokens_per_step=256, tokens="tokens", step="step")


def test_a_schedule_of_the_wrong_length_or_kind(bare):
    with pytest.raises(InputError, match="needs a peak lr and the log has none; give lr=NUMBER"):
        read_run(bare, schedule="wsd")
    with pytest.raises(InputError, match="reach the last row of the loss at step 2000"):
        read_run(bare, schedule=from_arrays(np.full(1999, PEAK), 1.0))
