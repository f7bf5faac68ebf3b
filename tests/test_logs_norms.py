"""Norms modelled from weight decay: against the recursion step by step, its equilibrium, and what the reader does."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfsim.checks import InputError
from rfsim.logs import read_run, weight_decay_norm


def literal(lr, decay, initial, update):
    square, norms = initial**2, []
    for rate in lr:
        norms.append(np.sqrt(square))
        square = (1.0 - rate * decay) ** 2 * square + (rate * update) ** 2
    return np.array(norms)


@given(
    lr=st.lists(st.floats(0.0, 0.5), min_size=1, max_size=60),
    decay=st.floats(0.0, 1.9),
    initial=st.floats(1e-3, 10.0),
    update=st.floats(0.1, 3.0),
)
def test_is_the_recursion(lr, decay, initial, update):
    found = weight_decay_norm(np.array(lr), decay, initial=initial, update=update)
    np.testing.assert_allclose(found, literal(lr, decay, initial, update), rtol=1e-11)


def test_long_runs_keep_their_digits():
    lr = 0.01 * (1.0 + np.cos(np.linspace(0.0, 60.0, 100_000)))  # some 2,000 e-folds of decay
    found = weight_decay_norm(lr, 1.0)
    np.testing.assert_allclose(found, literal(lr, 1.0, 0.02, 1.0), rtol=1e-11)


def test_settles_where_decay_balances_updates():
    found = weight_decay_norm(np.full(50_000, 1e-2), 0.1, update=0.7)
    exact = 0.7 * 1e-2 / np.sqrt(1.0 - (1.0 - 1e-3) ** 2)
    assert found[-1] == pytest.approx(exact, rel=1e-10)
    assert found[-1] == pytest.approx(0.7 * np.sqrt(1e-2 / 0.2), rel=1e-3)


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
    np.testing.assert_allclose(found.norm, literal(np.asarray(found.schedule.lr), 0.1, 0.05, 1.0), rtol=1e-12)
    assert any("modelled, not measured" in line and "init_std 0.05" in line for line in found.findings)
    assert read_run(path).norm is None


def test_reader_asks_for_a_weight_decay(tmp_path):
    path = write(tmp_path / "log.json", {"init_std": 0.05})
    with pytest.raises(InputError, match="weight_decay above 0"):
        read_run(path, norm="weight-decay")
