"""Finite-bulk figure: published end numbers of the exact gap, and the flat-memory law where it must hold."""

import json
from functools import cache

import numpy as np
import pytest

from rfsim.figures import finite_bulk
from rfsim.provenance import json_ready


@cache
def stored(scale):
    return json.dumps(json_ready(finite_bulk.compute(scale)), allow_nan=False)


def computed(scale="quick"):
    return json.loads(stored(scale))


ENDS = {  # theory: F8 end, risk above the floor and gap for vartheta 0, 1, 2
    "FB1": ((1.87150889, 1.38027445), (0.82861967, 0.39817623), (0.55628330, 0.14250872)),
    "FB2": ((1.51685081, 1.17637604), (0.92160179, 0.60507205), (0.64443927, 0.33929546)),
}


@pytest.mark.parametrize("name", ENDS)
def test_published_end_numbers(name):
    settings = finite_bulk.parameters("quick")
    assert settings["width"] == 512
    assert settings["steps"][name] == 205
    for row, (centred, gap) in zip(computed()["points"][name]["rows"], ENDS[name], strict=True):
        assert row["centred"][-1] == pytest.approx(centred, rel=1e-6)
        assert row["gap"][-1] == pytest.approx(gap, rel=1e-6)


def test_published_rates():
    assert finite_bulk.rate(0.2, 512) == pytest.approx(0.01894646, rel=1e-6)
    assert finite_bulk.rate(0.12, 512) == pytest.approx(0.00698304, rel=1e-6)


def test_flat_law_is_written_out():
    """sigma^2 (tr Lambda^2 + (tr Lambda)^2/M) times lr/16 int (1 + u)^-vartheta du, by the trapezoidal rule."""
    for name, (alpha, _) in finite_bulk.POINTS.items():
        index = np.arange(1.0, 1025.0)
        start = np.sum(index ** (-4 * alpha)) + np.sum(index ** (-2 * alpha)) ** 2 / 512
        for row in computed()["points"][name]["rows"]:
            u = np.linspace(0.0, row["time"][-1], 20001)
            total = np.trapezoid((1.0 + u) ** -row["vartheta"], u)
            assert row["flat"][-1] == pytest.approx(25.0 * start * finite_bulk.rate(alpha, 512) / 16 * total, rel=1e-6)


def test_continuum_describes_the_exact_gap_and_the_flat_law_does_not():
    for point in computed()["points"].values():
        for row in point["rows"]:
            assert np.array(row["continuum"])[10:] == pytest.approx(np.array(row["gap"])[10:], rel=0.05)
            assert row["gap"][-1] < 0.4 * row["flat"][-1]


def test_at_great_width_the_three_shapes_appear():
    for point in computed()["points"].values():
        early, late = 1e-4 * point["wide_scale"], 3e-3 * point["wide_scale"]
        for row in point["wide_rows"]:
            share = np.array(row["continuum"]) / np.array(row["flat"])
            time = np.array(row["time"])
            assert (np.abs(share[time < early] - 1.0) < 0.02).all()
            assert 0.8 < row["flat_share"] < 0.97
            assert np.interp(finite_bulk._FLAT * point["wide_scale"], time, share) == pytest.approx(
                row["flat_share"], rel=1e-3
            )
        linear, logarithm, bounded = (
            np.interp([0.1 * late, late], row["time"], row["continuum"]) for row in point["wide_rows"]
        )
        assert linear[1] / linear[0] == pytest.approx(10.0, rel=0.1)
        grown = np.log1p(late) / np.log1p(0.1 * late)
        assert logarithm[1] / logarithm[0] == pytest.approx(grown, rel=0.1)
        assert bounded[1] / bounded[0] == pytest.approx((1 + 0.1 * late) / (1 + late) * 10, rel=0.1)


def test_caption_tells_the_measured_shares():
    data = computed()
    told = finite_bulk.caption(data)
    for point in data["points"].values():
        ends = [row["gap"][-1] / row["flat"][-1] for row in point["rows"]]
        assert f"{min(ends):.2f} to {max(ends):.2f} of the flat law" in told
        shares = [row["flat_share"] for row in point["wide_rows"]]
        assert f"{min(shares):.2f} to {max(shares):.2f} of it" in told
    assert "width 10^15" in told
