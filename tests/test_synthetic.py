"""Logs that the library makes: exact losses, the noise that was asked for, and files that the readers get back."""

import csv

import numpy as np
import pytest

from rfsim.checks import InputError, RunError
from rfsim.logs import NormModel, read_run
from rfsim.problems import power_law
from rfsim.routes import volterra
from rfsim.schedules import constant, cosine, eight_one_one, from_arrays, linear, power, stages, warmed, wsd
from rfsim.sources.population import population
from rfsim.surrogates import law
from rfsim.surrogates.synthetic import log_of_law, training_log, write_log

LR, BATCH = 0.1, 8


@pytest.fixture(scope="module")
def source():
    return population(power_law(0.6, 0.2, ambient=40, noise_var=1.0))


def test_losses_are_those_of_the_volterra_equation(source):
    schedule = wsd(203, LR, BATCH)
    log = training_log(0, source, schedule, every=20, irreducible=1.5, name="short")
    np.testing.assert_array_equal(log.step, [20, 40, 60, 80, 100, 120, 140, 160, 180, 200, 203])
    exact = volterra.risk(source, schedule, at=log.step).risk
    np.testing.assert_allclose(log.loss, 1.5 + exact, rtol=1e-12)
    assert log.name == "short"
    assert log.schedule.steps == 203


def test_noise_is_log_normal_of_the_stated_width_and_belongs_to_the_seed(source):
    schedule, noise = constant(3000, LR, BATCH), 1e-2
    clean = training_log(0, source, schedule, every=1, irreducible=1.0)
    first, same, other = (
        training_log(seed, source, schedule, every=1, irreducible=1.0, noise=noise) for seed in (7, 7, 8)
    )
    np.testing.assert_array_equal(first.loss, same.loss)
    z = np.log(first.loss / clean.loss) / noise
    fresh = np.log(other.loss / clean.loss) / noise
    for one in (z, fresh):  # five standard errors of mean, variance, and correlation from row to row
        assert abs(one.mean()) < 5.0 / np.sqrt(3000)
        assert abs(one.var() - 1.0) < 5.0 * np.sqrt(2.0 / 3000)
        assert abs(np.mean(one[1:] * one[:-1])) < 5.0 / np.sqrt(3000)
    assert abs(np.mean(z * fresh)) < 5.0 / np.sqrt(3000)
    assert first.noise == pytest.approx(noise, rel=0.15)  # the reader's estimate


def test_losses_of_a_law_in_closed_form():
    """Forcing alone: L_inf + A_F (1 + T)^(-q_F), T the sum of lr over its unit."""
    schedule = cosine(400, LR, BATCH)
    one = law("forcing-memory", lr_unit=LR, batch_unit=float(BATCH))
    values = {"L_inf": 2.0, "A_F": 3.0, "q_F": 0.5, "A_0": 0.0, "A_1": 0.0, "c_K": 1.0, "q_K": 0.7}
    log = log_of_law(3, one, values, schedule, every=100, name="made")
    clock = np.cumsum(np.asarray(schedule.lr) / LR)[[99, 199, 299, 399]]
    np.testing.assert_allclose(log.loss, 2.0 + 3.0 * (1.0 + clock) ** -0.5, rtol=1e-13)
    noisy = log_of_law(3, one, values, schedule, every=100, noise=0.1)
    expected = 0.1 * np.random.default_rng(3).standard_normal(4)
    np.testing.assert_allclose(np.log(noisy.loss / log.loss), expected, rtol=1e-10)


def test_norms_reach_laws_of_the_effective_rate_and_the_file(tmp_path):
    """Twice the norm at twice the lr is the same effective rate."""
    values = [2.65, 8.0, 20.0, 0.45, 0.1, 20.0, 1.3]
    one = law("elr-fsl", rate_unit=LR)
    norm = 1.0 + np.arange(300) / 300
    single = log_of_law(0, one, values, constant(300, LR, BATCH), every=50, norm=norm)
    double = log_of_law(0, one, values, constant(300, 2.0 * LR, BATCH), every=50, norm=2.0 * norm)
    bare = log_of_law(0, one, values, constant(300, LR, BATCH), every=50, norm=np.ones(300))
    np.testing.assert_allclose(double.loss, single.loss, rtol=1e-13)
    assert np.abs(bare.loss / single.loss - 1.0).max() > 1e-3
    modelled = log_of_law(0, one, values, constant(300, LR, BATCH), every=50, norm=NormModel(0.5, 0.3), noise=1e-3)
    assert modelled.norm_model == NormModel(0.5, 0.3)
    np.testing.assert_array_equal(modelled.norm, NormModel(0.5, 0.3).norm(np.full(300, LR)))
    write_log(tmp_path / "norms.csv", single, lr_every=1)
    np.testing.assert_array_equal(read_run(tmp_path / "norms.csv").norm, norm)


# --- files -----------------------------------------------------------------------------------------------------------

SHAPES = {
    "constant": constant(600, LR, BATCH),
    "8-1-1": eight_one_one(600, LR, BATCH),
    "wsd": wsd(600, LR, BATCH),
    "cosine": cosine(600, LR, BATCH),
    "linear": linear(600, LR, BATCH),
    "batch": stages(600, LR, BATCH, at=[300], batch_to=4),
}


@pytest.mark.parametrize("name", SHAPES)
def test_files_are_read_back(source, tmp_path, name):
    log = training_log(1, source, SHAPES[name], every=20, irreducible=1.0, noise=1e-3)
    write_log(tmp_path / "log.csv", log)
    back = read_run(tmp_path / "log.csv")
    np.testing.assert_array_equal(back.step, log.step)
    np.testing.assert_array_equal(back.loss, log.loss)
    np.testing.assert_allclose(back.schedule.lr, log.schedule.lr, rtol=1e-12)
    np.testing.assert_array_equal(back.schedule.batch, log.schedule.batch)


@pytest.mark.parametrize(
    "schedule", [power(301, LR, BATCH, vartheta=0.5), warmed(cosine(301, LR, BATCH), 50)], ids=["power", "warmed"]
)
def test_any_schedule_is_read_back_from_rows_of_every_step(source, tmp_path, schedule):
    log = training_log(1, source, schedule, every=20, irreducible=1.0)
    write_log(tmp_path / "log.csv", log, lr_every=1)
    back = read_run(tmp_path / "log.csv")
    np.testing.assert_array_equal(back.loss, log.loss)
    np.testing.assert_array_equal(back.schedule.lr, schedule.lr)
    np.testing.assert_array_equal(back.schedule.batch, schedule.batch)


def test_rows_of_a_file_by_hand(source, tmp_path):
    schedule = from_arrays(np.array([0.1, 0.1, 0.05, 0.05, 0.025]), np.array([4.0, 4.0, 4.0, 8.0, 8.0]))
    log = training_log(0, source, schedule, every=2, irreducible=1.0)
    write_log(tmp_path / "log.csv", log, last_lr=0.0)
    with open(tmp_path / "log.csv", newline="") as file:
        rows = list(csv.reader(file))
    a, b, c = (repr(value) for value in log.loss.tolist())
    assert rows == [
        ["step", "lr", "batch", "loss"],
        ["2", "0.05", "4.0", a],
        ["4", "0.025", "8.0", b],
        ["5", "0.0", "", c],
    ]


def test_a_scheduler_stepped_past_its_end_is_noticed(source, tmp_path):
    log = training_log(1, source, SHAPES["constant"], every=20, irreducible=1.0)
    write_log(tmp_path / "log.csv", log, last_lr=0.0)
    back = read_run(tmp_path / "log.csv")
    assert any("last logged lr, 0 at step 600, is not the schedule's" in line for line in back.findings)
    np.testing.assert_array_equal(back.schedule.lr, log.schedule.lr)


# --- errors ----------------------------------------------------------------------------------------------------------


def test_what_is_refused(source, tmp_path):
    schedule = constant(40, LR, BATCH)
    for words, options in (
        ("every must be", {"every": 0}),
        ("irreducible must be a loss", {"every": 10, "irreducible": -1.0}),
        ("noise must be a standard deviation", {"every": 10, "noise": -1e-3}),
    ):
        with pytest.raises(InputError, match=words):
            training_log(0, source, schedule, **options)
    with pytest.raises(InputError, match="seed"):
        training_log(-1, source, schedule, every=10)
    with pytest.raises(InputError, match="no steps"):
        training_log(0, source, constant(0, LR, BATCH), every=10)
    with pytest.raises(InputError, match="no units"):
        log_of_law(0, law("forcing-memory"), np.ones(7), schedule, every=10)
    log = training_log(0, source, schedule, every=10)
    with pytest.raises(InputError, match="lr_every"):
        write_log(tmp_path / "log.csv", log, lr_every=0)
    with pytest.raises(InputError, match="last_lr"):
        write_log(tmp_path / "log.csv", log, last_lr=-0.1)
    assert not (tmp_path / "log.csv").exists()
    with pytest.raises(RunError, match="cannot write"):
        write_log(tmp_path / "missing" / "log.csv", log)
