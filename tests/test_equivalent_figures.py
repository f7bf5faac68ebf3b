"""The two figures that hold the deterministic equivalent against sampled weights: their numbers by other means."""

import json
from functools import cache

import numpy as np
import pytest

from rfsim.figures import gallery, three_layers, width_gap
from rfsim.problems import power_law
from rfsim.provenance import json_ready
from rfsim.routes import recursion
from rfsim.schedules import constant, power
from rfsim.sources.equivalent import equivalent


@cache
def stored(name):
    """Data of a figure at the test scale, as text in its side file."""
    return json.dumps(json_ready(gallery.load(name).compute("test")), allow_nan=False)


def computed(name):
    return json.loads(stored(name))


# --- three layers ----------------------------------------------------------------------------------------------------


def test_published_sizes_of_the_three_layers():
    settings = three_layers.parameters("standard")
    assert settings["width"] == 512
    assert settings["steps"] == {"LM": 333, "IM": 389, "FB1": 205, "FB2": 205}
    assert settings["lr"]["FB1"] == pytest.approx(0.01894646, rel=1e-6)
    assert settings["lr"]["FB2"] == pytest.approx(0.00698304, rel=1e-6)


def test_every_layer_is_what_it_says():
    data = computed("three_layers")
    for name, point in data["points"].items():
        alpha, beta, ratios = three_layers.POINTS[name]
        assert [row["vartheta"] for row in point["rows"]] == list(ratios)
        settings = three_layers.parameters("test")
        row = point["rows"][-1]
        steps = settings["steps"][name]
        path = power(steps, settings["lr"][name], 16, vartheta=ratios[-1])
        curve = recursion.risk(equivalent(power_law(alpha, beta, ambient=48, noise_var=25.0), 24), path, at=[1, steps])
        ends = [0, -1] if row["time"][0] > 0 else [1, -1]
        np.testing.assert_allclose(np.array(row["gap"]["equivalent"])[ends], curve.gap, rtol=1e-9)
        np.testing.assert_allclose(np.array(row["centred"]["equivalent"])[ends], curve.risk - curve.floor, rtol=1e-9)
        for one in point["rows"]:
            for quantity in ("centred", "gap"):
                layer = {key: np.array(one[quantity][key])[1:] for key in ("sgd", "stderr", "sampled", "equivalent")}
                # 16 runs of skewed risks over two W: few, so far from normal
                assert np.max(np.abs(layer["sgd"] - layer["sampled"]) / layer["stderr"]) < 9.0
                assert np.max(np.abs(layer["sampled"] / layer["equivalent"] - 1.0)) < 0.5
        literal = point["literal"]
        assert np.isfinite(literal["largest_z"])
        assert np.max(np.abs(np.array(literal["mean"]) / np.array(literal["exact"]) - 1.0)) < 0.8


def test_distances_of_layers_are_relative_l2_and_the_worst_is_told():
    assert three_layers._apart(np.array([3.0, 4.0]), np.array([3.0, 0.0])) == pytest.approx(4.0 / 3.0)
    data = computed("three_layers")
    told = three_layers.caption(data)
    pair = "sampled_equivalent"
    rows = [row[quantity][pair] for row in data["points"]["LM"]["rows"] for quantity in ("centred", "gap")]
    assert three_layers.worst(data, ("LM",), pair) == max(rows)
    assert "not all met" in told  # at this width they cannot be
    for point in data["points"].values():
        for row in point["rows"]:
            for quantity in ("centred", "gap"):
                for key in three_layers.GATES:
                    row[quantity][key] = 0.01
    assert "all met" in three_layers.caption(data).replace("not all met", "")


# --- width gap -------------------------------------------------------------------------------------------------------


def test_mean_over_weights_of_width_one_is_a_one_dimensional_integral():
    """One feature: l = sum_j lambda_j w_j^2, written out for each draw."""
    problem = power_law(0.4, 0.3, ambient=2, noise_var=1.0)
    path = width_gap.schedule(0.4, 1)
    found = width_gap.sampled(np.random.default_rng(3), problem, 1, path, 50)
    weights = np.random.default_rng(3).standard_normal((50, 2, 1))[:, :, 0]
    lam, b = np.arange(1.0, 3.0) ** -0.8, np.arange(1.0, 3.0) ** -0.7
    for one, (risk, gap) in zip(weights, found, strict=True):
        direction = np.sqrt(lam) * one
        value = direction @ direction
        noisy = clean = (direction @ b) ** 2 / value
        floor = b @ b - noisy
        for lr, size in zip(path.lr, path.batch, strict=True):
            q, kick = (1 - lr * value) ** 2 + (lr * value) ** 2 / size, (lr * value) ** 2 / size
            noisy, clean = q * noisy + kick * (noisy + floor + 1.0), q * clean + kick * (clean + floor)
        assert risk == pytest.approx(floor + noisy, rel=1e-10)
        assert gap == pytest.approx(noisy - clean, rel=1e-8)


def test_padding_changes_nothing():
    spectrum = equivalent(power_law(0.4, 0.3, ambient=40, noise_var=1.0), 20)
    padded = width_gap.padded(spectrum)
    assert padded.modes == 128
    one, other = (recursion.risk(each, constant(50, 0.1, 2), at=[50]) for each in (spectrum, padded))
    assert other.risk[0] == pytest.approx(float(one.risk[0]), rel=1e-14)


def test_one_over_width_fits_are_exact_for_their_law_and_count_in_standard_errors():
    widths = np.array([8, 16, 32, 64])
    law = np.stack([0.5 / widths + 2.0 / widths**2, -1.0 / widths], axis=1)
    error = np.full((4, 2), 1e-3)
    slopes, residual = width_gap.one_over_width(widths, law, error)
    np.testing.assert_allclose(slopes, [0.5, -1.0], rtol=1e-9)
    assert np.all(residual < 1e-8)
    law[3] += 0.02  # a difference that stays
    assert np.all(width_gap.one_over_width(widths, law, error)[1] > 4.0)


def test_measured_differences_shrink_with_the_width():
    for point in computed("width_gap")["points"].values():
        assert max(point["residual"]) < 4.5
        first = point["rows"][0]
        assert abs(first["difference"][0]) < 0.25
        assert all(row["stderr"][0] > 0.0 for row in point["rows"])
