"""Figure of the sweep: its cells are those of the sweep, its lines the limits, its counts the caption's."""

import json

import numpy as np
import pytest
from matplotlib.colors import to_hex

from rfsim.figures import sweep_map
from rfsim.figures.style import EFFECT_COLOURS
from rfsim.provenance import json_ready
from rfsim.sweep import sweep


@pytest.fixture(scope="module")
def data():
    return json.loads(json.dumps(json_ready(sweep_map.compute("test")), allow_nan=False))


def test_cells_are_those_of_the_sweep(data):
    settings = sweep_map.parameters("test")
    run = {key: settings[key] for key in ("window", "lr", "batch", "noise_var")}
    wanted = sweep(settings["alpha"], settings["beta"], settings["vartheta"], **run)
    found = data["maps"][0]["cells"]
    assert [cell["measured"]["label"] for cell in found] == [cell.measured.label for cell in wanted]
    assert [cell["limit"] for cell in found] == [cell.limit for cell in wanted]
    assert data["tally"] == {
        verdict: sum(cell["verdict"] == verdict for cell in found)
        for verdict in ("agree", "undecided", "opposite", "outside")
    }
    assert data["expected"] <= len(found) == data["cells"]


def test_caption_counts(data):
    told = sweep_map.caption(data)
    counts = data["tally"]
    assert f"Of {data['cells'] - counts['outside']} cells {counts['agree']} show the limit" in told
    assert f"{counts['opposite']} say the opposite" in told
    assert f"far from its limit in {data['blame']['gap']} cells" in told


def test_fills_show_what_was_measured_and_lines_the_limit(data):
    (axes,) = sweep_map.draw(data).axes
    cells = data["maps"][0]["cells"]
    for fill, cell in zip(axes.collections, cells, strict=True):
        assert to_hex(fill.get_facecolor()[0]) == to_hex(EFFECT_COLOURS[cell["measured"]["label"]])
        low, high = fill.get_datalim(axes.transData).get_points()
        assert low[0] < cell["vartheta"] < high[0]
        assert low[1] < data["alpha"].index(cell["alpha"]) < high[1]
    lines = [line for line in axes.lines if len(line.get_xdata()) == 2]
    places = {(round(float(np.mean(line.get_ydata()))), round(float(line.get_xdata()[0]), 12)) for line in lines}
    # beta = .3: alpha .4 has the edge at 1/4 and q_0 = 1/2; alpha .6 the edge at 0 and q_0 = 2/3
    assert places == {(0, 0.25), (0, 0.75), (1, 0.0), (1, round(2 / 3, 12))}
