"""Norms modelled from weight decay: against the recursion step by step, its equilibrium, and what the reader does."""

import json

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfsim.checks import InputError
from rfsim.logs import NormModel, read_run, run, weight_decay_norm
from rfsim.logs.norms import backward, forward
from rfsim.schedules import constant


@given(
    lr=st.lists(st.floats(0.0, 0.5), min_size=1, max_size=60),
    decay=st.floats(0.0, 1.9),
    initial=st.floats(1e-3, 10.0),
    update=st.floats(0.1, 3.0),
)
def test_is_the_recursion(lr, decay, initial, update):
    found = weight_decay_norm(np.array(lr), decay, initial=initial, update=update)
    np.testing.assert_allclose(found, oracles.norms(lr, decay, initial, update), rtol=1e-11)


def test_long_runs_keep_their_digits():
    lr = 0.01 * (1.0 + np.cos(np.linspace(0.0, 60.0, 100_000)))  # some 2,000 e-folds of decay
    found = weight_decay_norm(lr, 1.0)
    np.testing.assert_allclose(found, oracles.norms(lr, 1.0, 0.02, 1.0), rtol=1e-11)


def test_settles_where_decay_balances_updates():
    found = weight_decay_norm(np.full(50_000, 1e-2), 0.1, update=0.7)
    exact = 0.7 * 1e-2 / np.sqrt(1.0 - (1.0 - 1e-3) ** 2)
    assert found[-1] == pytest.approx(exact, rel=1e-10)
    assert found[-1] == pytest.approx(0.7 * np.sqrt(1e-2 / 0.2), rel=1e-3)


@given(
    factor=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30),
    seed=st.integers(0, 99),
)
def test_recursions_forward_and_backward(factor, seed):
    gain = np.random.default_rng(seed).uniform(0.0, 2.0, len(factor))
    ahead, back = [0.7], [gain[-1]]
    for at in range(len(factor) - 1):
        ahead.append(factor[at] * ahead[-1] + gain[at])
    for at in range(len(factor) - 2, -1, -1):
        back.insert(0, gain[at] + factor[at] * back[0])
    np.testing.assert_allclose(forward(np.array(factor), gain, 0.7), ahead, rtol=1e-13)
    np.testing.assert_allclose(backward(np.array(factor), gain), back, rtol=1e-13)


def test_a_run_takes_norms_or_a_model_of_them():
    schedule = constant(9, 0.1, 1.0)
    modelled = run([3, 9], [2.0, 1.0], schedule, norm=NormModel(2.0, 0.5, 0.7))
    np.testing.assert_allclose(modelled.norm, oracles.norms([0.1] * 9, 2.0, 0.5, 0.7), rtol=1e-12)
    assert modelled.norm_model == NormModel(2.0, 0.5, 0.7)
    assert modelled.part(1, 3).norm_model == modelled.norm_model
    measured = modelled.with_norm(np.arange(1.0, 10.0))
    np.testing.assert_array_equal(measured.norm, np.arange(1.0, 10.0))
    assert measured.norm_model is None
    with pytest.raises(InputError, match="norm has 3, lr has 9"):
        modelled.with_norm(np.ones(3))
    with pytest.raises(InputError, match="norm must be above 0 everywhere"):
        run([3, 9], [2.0, 1.0], schedule, norm=np.zeros(9))


@pytest.mark.parametrize(
    ("numbers", "named"),
    [((-0.1,), "weight_decay"), ((0.1, 0.0), "initial"), ((0.1, 1.0, -1.0), "update"), (("much",), "weight_decay")],
)
def test_bad_models_are_named(numbers, named):
    with pytest.raises(InputError, match=f"{named} must"):
        NormModel(*numbers)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (([-1.0], 0.1), "lr"),
        (([0.1], -0.1), "weight_decay"),
        (([0.1], 10.0), "weight_decay must stay below 1"),
    ],
)
def test_bad_input_is_named(arguments, named):
    with pytest.raises(InputError, match=named):
        weight_decay_norm(*arguments)


def write(path, config):
    steps = list(range(0, 1001, 100))
    lr = [1e-3] * len(steps)
    history = {"train": {"iter": steps, "train_lr": lr, "train_loss": [4.0 - 0.001 * s for s in steps]}}
    path.write_text(json.dumps({"config": config, "history": history, "summary": {}, "name": "made"}))
    return path


def test_reader_models_norms_from_the_configuration(tmp_path):
    path = write(tmp_path / "log.json", {"weight_decay": 0.1, "init_std": 0.05})
    found = read_run(path, norm="weight-decay")
    np.testing.assert_allclose(found.norm, oracles.norms(np.asarray(found.schedule.lr), 0.1, 0.05, 1.0), rtol=1e-12)
    assert any("modelled, not measured" in line and "init_std 0.05" in line for line in found.findings)
    assert found.norm_model == NormModel(0.1, 0.05)
    assert read_run(path).norm is None
    assert read_run(path).norm_model is None


def test_a_resumed_run_has_the_norms_of_all_its_steps(tmp_path):
    path = write(tmp_path / "log.json", {"weight_decay": 0.1, "init_std": 0.05})
    parent = run(np.arange(100.0, 600.0, 100.0), np.ones(5), constant(500, 2e-3, 1.0), norm=np.ones(500))
    whole = read_run(path, norm="weight-decay", parents=[parent])
    np.testing.assert_allclose(whole.norm, oracles.norms(np.asarray(whole.schedule.lr), 0.1, 0.05, 1.0), rtol=1e-12)
    assert whole.norm_model == NormModel(0.1, 0.05)


def test_numbers_that_are_written_as_text(tmp_path):
    path = write(tmp_path / "log.json", {"weight_decay": "0.1", "init_std": "0.05"})
    assert read_run(path, norm="weight-decay").norm_model == NormModel(0.1, 0.05)


def test_norms_of_a_column_have_no_model(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(
        "\n".join(["step,loss,lr,size", *(f"{s},{4.0 - 0.01 * s},0.1,2.0" for s in range(0, 90, 10))]) + "\n"
    )
    found = read_run(path, norm="size")
    np.testing.assert_array_equal(found.norm, 2.0)
    assert found.norm_model is None


def test_reader_asks_for_a_weight_decay(tmp_path):
    path = write(tmp_path / "log.json", {"init_std": 0.05})
    with pytest.raises(InputError, match="weight_decay above 0"):
        read_run(path, norm="weight-decay")
