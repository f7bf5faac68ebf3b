"""Logs of real runs: schedules recognised exactly, and every trap of these files in one line."""

import numpy as np
import pytest
from shared_data import shared

from rfsim.logs import read_run, read_runs

UP = 3e-4 * 2160 / 2  # sum of the warm-up s/2159 over its 2160 steps


def lines_with(run, *words):
    return [line for line in run.findings if all(word in line for word in words)]


def total(run, steps):
    return float(np.asarray(run.schedule.lr)[:steps].sum())


def cosine_sum(steps):
    """Closed sum of 3e-5 + 1.35e-4 (1 + cos(pi k/n)) over k = 0..n-1: the cosines add up to 1."""
    count = steps - 2160
    return UP + 3e-5 * count + 1.35e-4 * (count + 1)


@pytest.mark.parametrize("size", ["25M", "100M"])
@pytest.mark.parametrize(
    ("name", "steps", "expected", "words"),
    [
        ("constant_24000", 23936, UP + 3e-4 * (23936 - 2160), "constant 0.0003"),
        ("constant_72000", 71936, UP + 3e-4 * (71936 - 2160), "constant 0.0003"),
        ("cosine_24000", 24000, cosine_sum(24000), "cosine decay from 0.0003 at step 2160 to 3e-05 at step 24000"),
        ("cosine_72000", 72000, cosine_sum(72000), "cosine decay from 0.0003 at step 2160 to 3e-05 at step 72000"),
        (
            "wsd_20000_24000",
            24000,
            UP + 3e-4 * 17840 + 2.7e-4 / (1 - 0.1 ** (1 / 4000)),
            "exponential decay from 0.0003 at step 20000 to 3e-05 at step 24000",
        ),
        (
            "wsdld_20000_24000",
            24000,
            UP + 3e-4 * 17840 + 3e-4 * 4000 - 2.7e-4 * 3999 / 2,
            "linear decay from 0.0003 at step 20000 to 3e-05 at step 24000",
        ),
        ("wsdcon_3", 14144, UP + 3e-4 * 5840 + 3e-5 * 6144, "0.0003, then 3e-05 from step 8000"),
        ("wsdcon_9", 14144, UP + 3e-4 * 5840 + 9e-5 * 6144, "0.0003, then 9e-05 from step 8000"),
        ("wsdcon_18", 14144, UP + 3e-4 * 5840 + 1.8e-4 * 6144, "0.0003, then 0.00018 from step 8000"),
    ],
)
def test_schedules_recognised_from_rows(size, name, steps, expected, words):
    run = read_run(shared("mpl", size, f"{name}.csv"), warmup=2160)
    assert run.name == name
    assert run.schedule.steps >= steps
    assert total(run, steps) == pytest.approx(expected, rel=1e-12)
    assert lines_with(run, "recognised from", words, "linear warm-up from 0, s/2159")
    assert lines_with(run, "steps 0 to", "straight warm-up from 0, s/2159, over 2160 steps, as asked")
    if name.startswith("wsdcon"):
        assert lines_with(run, "between the rows at steps 7936 and 8000: placed at the roundest step, 8000")
    assert 5e-5 < run.noise < 3e-4


@pytest.mark.parametrize("name", ["cosine_24000", "wsdcon_9"])
def test_nothing_is_lost_without_a_warm_up(name):
    """Without the argument the steps before the first row have the peak, and a line says so."""
    run = read_run(shared("mpl", "25M", f"{name}.csv"))
    assert np.asarray(run.schedule.lr)[0] == pytest.approx(3e-4)
    assert lines_with(run, "taken as 0.0003, without warm-up (give warmup= or parents=)")


@pytest.fixture(scope="module")
def exports():
    names = (
        "constant_50k",
        "cosine_to_tenth_50k",
        "cosine_to_zero_50k",
        "wsd_linear_0.1_50k",
        "wsd_linear_0.2_15k",
        "wsd_linear_0.2_50k",
        "wsd_sqrt_0.2_50k",
    )
    return dict(zip(names, read_runs([shared("logs", f"{name}.json") for name in names]), strict=True))


def rise():
    """Sum over steps 0..299 of the straight warm-up from a hundredth of the peak, in units of the peak."""
    return 0.01 * 300 + 0.99 * 299 / 2


def one_cycle(floor):
    """Closed sums of the one-cycle cosine: up over 299 steps from 1/100, down over 49,700 steps, of 50,000 in all."""
    up = 299 * 0.01 + 0.99 * (299 - 1) / 2  # sum of (1 - cos(pi k/n))/2 over k = 0..n-1 is (n - 1)/2
    down = 49_700 * floor + (1 - floor) * (49_700 + 1) / 2 + floor  # k = 0..n-1, and the last step at the floor
    return up + down


@pytest.mark.parametrize(
    ("name", "steps", "expected"),
    [
        ("constant_50k", 50_000, rise() + 49_700),
        ("cosine_to_tenth_50k", 50_000, one_cycle(0.1)),
        ("cosine_to_zero_50k", 50_000, one_cycle(1e-4)),
        ("wsd_linear_0.1_50k", 50_000, rise() + 44_700 + 5001 / 2),
        ("wsd_linear_0.2_15k", 15_000, rise() + 11_700 + 3001 / 2),
        ("wsd_linear_0.2_50k", 50_000, rise() + 39_700 + 10_001 / 2),
        ("wsd_sqrt_0.2_50k", 50_000, rise() + 39_700 + 10_000 - np.sqrt(np.arange(10_000) / 10_000).sum()),
    ],
)
def test_schedules_of_exports(exports, name, steps, expected):
    run = exports[name]
    assert run.schedule.steps == steps
    assert total(run, steps) / 1e-3 == pytest.approx(expected, rel=1e-9)
    assert run.step[0] == 0
    assert run.step.size == steps / 200
    assert lines_with(run, "lr of every step from the configuration", "largest deviation from")
    assert lines_with(run, "val/val_loss has", "joined on the step, no loss row lost")
    assert lines_with(run, "batch is 1 at every step", "batch_size 50, acc_steps 2")


def test_constant_run_has_a_fake_last_lr(exports):
    run = exports["constant_50k"]
    assert lines_with(run, "the last logged lr, 0 at step 50000", "has 0.001 and no anneal took place; ignored")
    assert (np.asarray(run.schedule.lr)[300:] == 1e-3).all()
    assert not any(lines_with(other, "last logged lr") for name, other in exports.items() if name != "constant_50k")


@pytest.mark.parametrize(
    ("name", "value", "offset"),
    [
        ("constant_50k", 3.1405, 0.0373),
        ("cosine_to_zero_50k", 2.9635, 0.0365),
        ("cosine_to_tenth_50k", 2.9819, 0.0357),
        ("wsd_linear_0.1_50k", 2.9825, 0.0343),
        ("wsd_linear_0.2_50k", 2.9660, 0.0357),
        ("wsd_sqrt_0.2_50k", 2.9599, 0.0364),
    ],
)
def test_final_evaluation_is_named_and_kept_off_the_curve(exports, name, value, offset):
    """Published final losses, and their distance from the last row of the validation series."""
    run = exports[name]
    assert lines_with(run, f"one point, {value:.4f} at step 50000", f"{offset:+.4f} off the last point of val/val_loss")
    assert run.loss[-1] == pytest.approx(value - offset, abs=1e-4)


def test_rows_out_of_order_and_repeated_with_other_values(exports):
    run = exports["cosine_to_zero_50k"]
    assert lines_with(run, "val/val_loss: 8 places where the step goes back: rows sorted by step")
    assert lines_with(
        run, "43 steps occur more than once, 60 rows left out", "5 of these steps", "disagreement 0.0286 at step 200"
    )
    assert lines_with(run, "val/val_acc has 260 values for 310 steps: not used")
    assert (np.diff(run.step) == 200).all()


@pytest.mark.parametrize(
    ("name", "begin"),
    [("wsd_linear_0.1_50k", 40_000), ("wsd_linear_0.2_15k", 10_000), ("wsd_sqrt_0.2_50k", 40_000)],
)
def test_decays_have_their_parents_part_in_front(exports, name, begin):
    run, parent = exports[name], exports["constant_50k"]
    assert lines_with(
        run, f"resumed from constant_50k at step {begin}: {begin // 200} rows", "they differ by 0, at most"
    )
    before = parent.step < begin
    np.testing.assert_array_equal(run.loss[: before.sum()], parent.loss[before])
    np.testing.assert_array_equal(run.schedule.lr[:begin], parent.schedule.lr[:begin])
    assert run.warmup == 300


def test_one_cycle_starts_one_step_early(exports):
    for name in ("cosine_to_zero_50k", "cosine_to_tenth_50k"):
        assert lines_with(exports[name], "one step early (start at 299, end at 49999): kept as logged")
        assert lines_with(exports[name], "cosine warm-up from 1e-05 over 299 steps")


def test_a_decay_without_its_parent_takes_the_configuration():
    run = read_run(shared("logs", "wsd_sqrt_0.2_50k.json"))
    assert run.step[0] == 40_000
    assert lines_with(run, "the run was resumed from 40000 of a parent that is not given")
    assert lines_with(run, "steps 0 to 40049 have no lr row: their lr is taken from the configuration")
    assert lines_with(run, "the warm-up of 300 steps is in no row")


def test_training_loss_on_request():
    run = read_run(shared("logs", "constant_50k.json"), loss="train_loss")
    assert run.step.size == 1000
    assert run.noise > 0.002
