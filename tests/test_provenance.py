"""Side files: whole or absent, valid JSON, and folders that are tried before work starts."""

import json
import math
import os
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import rfsim
from rfsim import provenance


class Pair(NamedTuple):
    left: object
    right: object


def test_versions_name_what_was_used():
    found = provenance.versions()
    assert found["rfsim"] == rfsim.__version__
    assert found["numpy"] == np.__version__
    assert set(found) == {"rfsim", "python", "jax", "numpy", "scipy", "matplotlib"}


def test_json_has_no_nan_and_no_infinity():
    value = {
        1: [1.5, math.nan, math.inf, -math.inf],
        "array": np.array([[1.0, np.nan], [np.inf, 2.0]]),
        "scalars": [np.float64(0.5), np.int64(3), np.bool_(True), np.float64("nan")],
        "jax": jnp.array([1.0, jnp.inf]),
        "pair": Pair(left=(1, 2), right=None),
        "text": "x",
        "path": os.path,
    }
    text = json.dumps(provenance.json_ready(value), allow_nan=False)
    back = json.loads(text)
    assert back["1"] == [1.5, None, None, None]
    assert back["array"] == [[1.0, None], [None, 2.0]]
    assert back["scalars"] == [0.5, 3, True, None]
    assert back["jax"] == [1.0, None]
    assert back["pair"] == {"left": [1, 2], "right": None}
    assert isinstance(back["path"], str)


def test_steps_stay_integers():
    assert json.dumps(provenance.json_ready(np.array([0, 10]))) == "[0, 10]"


def test_files_are_replaced_whole(tmp_path):
    path = tmp_path / "side.json"
    provenance.write_json(path, {"a": 1})
    provenance.write_json(path, {"a": math.nan})
    assert json.loads(path.read_text()) == {"a": None}
    provenance.write_text(tmp_path / "note.txt", "σ²")
    assert (tmp_path / "note.txt").read_text(encoding="utf-8") == "σ²"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["note.txt", "side.json"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "side.json"
    provenance.write_text(path, "old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(provenance.os, "replace", fail)
    with pytest.raises(rfsim.RunError, match="No space left"):
        provenance.write_text(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["side.json"]


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(provenance.os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        provenance.write_text(tmp_path / "side.json", "new")
    assert list(tmp_path.iterdir()) == []


def test_unwritable_targets(tmp_path):
    with pytest.raises(rfsim.RunError, match="cannot write"):
        provenance.write_text(tmp_path / "absent" / "side.json", "x")
    blocker = tmp_path / "file"
    blocker.write_text("x")
    for folder in (blocker, blocker / "below", "/proc/none"):
        with pytest.raises(rfsim.RunError, match=r"output folder .* cannot be written"):
            provenance.output_folder(folder)
    assert blocker.read_text() == "x"


def test_output_folder_is_made_and_left_empty(tmp_path):
    folder = provenance.output_folder(tmp_path / "a" / "b")
    assert folder.is_dir()
    assert list(folder.iterdir()) == []
    assert provenance.output_folder(folder) == folder
