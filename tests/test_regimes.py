"""Regime and phase labels: every cell, every line, every crossing, and both coordinate systems."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rfsim import regimes
from rfsim.checks import InputError
from rfsim.exponents import PHASE_IV_SPLIT

SPLIT = 1 - 1 / math.sqrt(2)

INTERIOR = {
    "FB1": [(0.2, 0.4), (0.05, 0.48), (0.24, 0.3)],
    "FB2": [(0.12, 0.65), (0.2, 1.2), (0.01, 0.6)],
    "LM1": [(0.4, 0.3), (0.45, 0.44), (0.49, 0.05), (0.27, 0.26)],
    "LM2": [(0.27, 0.4), (0.45, 0.48), (0.26, 0.49)],
    "LM3": [(0.3, 0.7), (0.26, 0.6), (0.48, 1.5)],
    "IM1": [(0.6, 0.2), (0.7, 0.3), (0.7, -0.1), (2.0, 0.49)],
    "IM2": [(0.7, 0.6), (1.5, 0.9), (0.55, 0.52)],
    "IM3": [(0.7, 0.9), (0.6, 0.7), (1.2, 2.0)],
}
PHASES = {
    "Ia": [(0.6, 0.2), (0.7, 0.3), (0.7, -0.1), (2.0, 0.49)],
    "Ib": [(0.2, 0.4), (0.4, 0.3), (0.27, 0.4), (0.25, 0.3), (0.4, 0.4), (SPLIT, 0.4)],
    "Ic": [(0.12, 0.65), (0.2, 1.2)],
    "II": [(0.7, 0.6), (1.5, 0.9)],
    "III": [(0.7, 0.9), (0.6, 0.7), (1.2, 2.0)],
    "IVa": [(0.3, 0.7), (0.48, 1.5)],
    "IVb": [(0.26, 0.6), (0.29, 0.9)],
}
LINES = [
    ((0.25, 0.3), "FB1|LM2", "FB1", ("alpha=1/4",), "Ib"),
    ((0.25, 0.7), "FB2|LM3", "FB2", ("alpha=1/4",), "boundary:Ic|IVb"),
    ((0.5, 0.2), "LM1|IM1", "LM1", ("alpha=1/2",), "boundary:Ia|Ib"),
    ((0.5, 0.9), "LM3|IM3", "LM3", ("alpha=1/2",), "boundary:III|IVa"),
    ((0.1, 0.5), "FB1|FB2", "FB1", ("beta=1/2",), "boundary:Ib|Ic"),
    ((0.27, 0.5), "LM2|LM3", "LM2", ("beta=1/2",), "boundary:Ib|IVb"),
    ((0.4, 0.5), "LM2|LM3", "LM2", ("beta=1/2",), "boundary:Ib|IVa"),
    ((0.8, 0.5), "IM1|IM2", "IM1", ("beta=1/2",), "boundary:Ia|II"),
    ((0.4, 0.4), "LM1|LM2", "LM1", ("beta=alpha",), "Ib"),
    ((0.7, 0.7), "IM2|IM3", "IM2", ("beta=alpha",), "boundary:II|III"),
    ((0.25, 0.5), "FB1|FB2|LM2|LM3", "FB1", ("alpha=1/4", "beta=1/2"), "boundary:Ib|Ic|IVb"),
    (
        (0.5, 0.5),
        "LM1|LM2|LM3|IM1|IM2|IM3",
        "LM1",
        ("alpha=1/2", "beta=1/2", "beta=alpha"),
        "boundary:Ia|Ib|II|III|IVa",
    ),
]


def literal_label(alpha: float, beta: float) -> str:
    """The regime table as a chain of comparisons (interior points only)."""
    if alpha < 0.25:
        return "FB1" if beta < 0.5 else "FB2"
    if alpha < 0.5:
        return "LM1" if beta < alpha else "LM2" if beta < 0.5 else "LM3"
    return "IM1" if beta < 0.5 else "IM2" if beta < alpha else "IM3"


def clear_of_lines(alpha: float, beta: float, margin: float) -> bool:
    return min(abs(alpha - 0.25), abs(alpha - 0.5), abs(beta - 0.5), abs(beta - alpha)) > margin


@pytest.mark.parametrize(("label", "point"), [(name, point) for name, points in INTERIOR.items() for point in points])
def test_interior_points(label: str, point: tuple[float, float]) -> None:
    found = regimes.regime(*point)
    assert (found.label, found.default_label, found.neighbours, found.boundaries) == (label, label, (), ())
    if label.startswith("FB"):
        assert found.q_forcing is None
        assert found.q_memory is None
    else:
        assert (found.q_forcing, found.q_memory) == regimes.response_coordinates(*point)
        assert regimes.regime_from_exponents(found.q_forcing, found.q_memory).label == label


def test_the_exponents_of_the_reference_point() -> None:
    found = regimes.regime(0.4, 0.3)
    assert (found.q_forcing, found.q_memory) == (pytest.approx(0.5, abs=1e-15), pytest.approx(0.75, abs=1e-15))
    assert found.data_exponent == pytest.approx(0.4 / 1.4)
    assert found.compute_exponent == pytest.approx(0.4 / 2.4)
    assert found.data_scaling == (found.data_exponent, pytest.approx(1 / 1.4), pytest.approx(0.8 / 1.4))


@pytest.mark.parametrize(("phase", "point"), [(name, point) for name, points in PHASES.items() for point in points])
def test_compute_phases(phase: str, point: tuple[float, float]) -> None:
    assert regimes.regime(*point).compute_phase == phase


@pytest.mark.parametrize(("point", "neighbours", "default", "lines", "phase"), LINES)
def test_lines_and_crossings(
    point: tuple[float, float], neighbours: str, default: str, lines: tuple[str, ...], phase: str
) -> None:
    found = regimes.regime(*point)
    assert found.label == f"boundary:{neighbours}"
    assert found.neighbours == tuple(neighbours.split("|"))
    assert found.default_label == default
    assert found.boundaries == lines
    assert found.compute_phase == phase
    assert (found.q_memory is None) == default.startswith("FB")
    if found.q_memory is not None and found.q_forcing is not None:
        assert regimes.regime_from_exponents(found.q_forcing, found.q_memory).label == found.label


@pytest.mark.parametrize("point", [case[0] for case in LINES])
def test_neighbours_are_what_one_finds_around_the_point(point: tuple[float, float]) -> None:
    turns = np.linspace(0, 2 * np.pi, 721)[:-1] + 0.003
    around = {literal_label(point[0] + 1e-6 * np.cos(t), point[1] + 1e-6 * np.sin(t)) for t in turns}
    assert set(regimes.regime(*point).neighbours) == around


@pytest.mark.parametrize("shift", [4e-13, -4e-13])
def test_the_tolerance_is_1e_12(shift: float) -> None:
    assert regimes.regime(0.5 + shift, 0.2).label == "boundary:LM1|IM1"
    assert regimes.regime(0.5 + 10 * shift, 0.2).label == ("IM1" if shift > 0 else "LM1")
    assert regimes.regime(0.7 + shift, 0.7).boundaries == ("beta=alpha",)
    assert regimes.regime(0.7 + 10 * shift, 0.7).label == ("IM2" if shift > 0 else "IM3")


def test_the_split_of_phase_iv_and_the_source_range() -> None:
    found = regimes.regime(PHASE_IV_SPLIT, 0.8)
    assert (found.label, found.compute_phase) == ("LM3", "boundary:IVa|IVb")
    assert found.boundaries == ("alpha=1-1/sqrt(2)",)
    assert regimes.regime(PHASE_IV_SPLIT, 0.4).boundaries == ()
    inside, on, beyond = (regimes.regime(0.6, beta) for beta in (2.1, 2.2, 2.3))
    assert [point.in_source_range for point in (inside, on, beyond)] == [True, False, False]
    assert [point.label for point in (inside, on, beyond)] == ["IM3"] * 3
    assert on.boundaries == ("beta=1+2alpha",)


def test_rate_lines_do_not_change_the_label() -> None:
    assert regimes.regime(0.7, 0.0).rate_lines == ("beta=0",)
    assert regimes.regime(0.7, 0.0).label == "IM1"
    assert regimes.regime(1.0, 0.8).rate_lines == ("alpha=1",)
    assert regimes.regime(1.0, 0.3).rate_lines == ()


@given(st.floats(0.01, 3.0), st.floats(-2.0, 4.0))
def test_labels_are_those_of_the_table(alpha: float, beta: float) -> None:
    assume(2 * alpha + 2 * beta > 1 + 1e-9)
    assume(clear_of_lines(alpha, beta, 1e-9))
    assert regimes.regime(alpha, beta).label == literal_label(alpha, beta)


@given(st.floats(0.2501, 3.0), st.floats(-2.0, 4.0))
def test_labels_are_invariant_under_the_change_of_coordinates(alpha: float, beta: float) -> None:
    assume(2 * alpha + 2 * beta > 1 + 1e-3)
    assume(clear_of_lines(alpha, beta, 1e-9))
    q_forcing, q_memory = regimes.response_coordinates(alpha, beta)
    found = regimes.regime(alpha, beta)
    assert regimes.regime_from_exponents(q_forcing, q_memory).label == found.label
    back = regimes.regime(*regimes.power_law_coordinates(q_forcing, q_memory))
    assert (back.label, back.compute_phase) == (found.label, found.compute_phase)


@given(st.floats(0.01, 4.0), st.floats(0.01, 4.0))
def test_fourth_column_of_the_table(q_forcing: float, q_memory: float) -> None:
    assume(min(abs(q_memory - 1), abs(q_forcing - 1), abs(q_forcing - q_memory)) > 1e-9)
    order = sorted([("F", q_forcing), ("K", q_memory), ("1", 1.0)], key=lambda item: item[1])
    expected = {"FK1": "LM1", "KF1": "LM2", "K1F": "LM3", "F1K": "IM1", "1FK": "IM2", "1KF": "IM3"}
    found = regimes.regime_from_exponents(q_forcing, q_memory)
    assert found.label == expected["".join(name for name, _ in order)]
    assert found.boundaries == ()


def test_response_boundaries() -> None:
    found = regimes.regime_from_exponents(1.0, 1.0)
    assert found.neighbours == ("LM1", "LM2", "LM3", "IM1", "IM2", "IM3")
    assert found.boundaries == ("q_memory=1", "q_forcing=1", "q_forcing=q_memory")
    assert regimes.regime_from_exponents(0.4, 1.0) == ("boundary:LM1|IM1", "LM1", ("LM1", "IM1"), ("q_memory=1",))
    assert regimes.regime_from_exponents(2.0, 5.0).label == "IM2"


@pytest.mark.parametrize(("q_forcing", "q_memory"), [(1.0, 0.0), (1.0, -0.5), (0.0, 1.0), (-1.0, 1.0)])
def test_finite_bulk_has_no_response_coordinates(q_forcing: float, q_memory: float) -> None:
    with pytest.raises(InputError, match="finite-bulk"):
        regimes.regime_from_exponents(q_forcing, q_memory)


def test_grid_equals_the_points_one_by_one() -> None:
    alpha = np.array([-0.1, 0.0, 0.1, 0.25, 0.3, PHASE_IV_SPLIT, 0.4, 0.5, 0.7, 1.2])
    beta = np.array([-0.3, 0.0, 0.25, 0.3, 0.4, 0.5, 0.7, 0.9])
    grid = regimes.classify_grid(alpha[None, :], beta[:, None])
    assert grid.shape == (8, 10)
    for i, b in enumerate(beta):
        for j, a in enumerate(alpha):
            if a <= 0 or 2 * a + 2 * b <= 1 + 1e-12:
                assert grid[i, j] == ""
            else:
                assert grid[i, j] == regimes.regime(float(a), float(b)).label
    assert regimes.classify_grid(0.4, 0.3).shape == ()
    assert str(regimes.classify_grid(0.4, 0.3)) == "LM1"
    assert regimes.classify_grid(np.zeros((0,)), np.zeros((0,))).shape == (0,)


@pytest.mark.parametrize(
    ("alpha", "beta", "word"),
    [
        ([0.4, math.nan], 0.3, "alpha"),
        (0.4, [math.inf], "beta"),
        ([0.1, 0.2], [1.0, 2.0, 3.0], "broadcast"),
        ("x", 1, "arrays"),
    ],
)
def test_bad_grids_are_named(alpha: object, beta: object, word: str) -> None:
    with pytest.raises(InputError, match=word):
        regimes.classify_grid(alpha, beta)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("alpha", "beta", "word"),
    [
        (0.0, 1.0, "alpha"),
        (-1.0, 3.0, "alpha"),
        (0.2, 0.3, "2 alpha"),
        (math.nan, 1.0, "alpha"),
        (0.4, math.inf, "beta"),
    ],
)
def test_bad_points_are_named(alpha: float, beta: float, word: str) -> None:
    with pytest.raises(InputError, match=word):
        regimes.regime(alpha, beta)


def test_closed_forms_do_not_import_jax() -> None:
    modules = "rfsim.regimes, rfsim.gap_laws, rfsim.amplitudes"
    code = f"import sys, {modules}; raise SystemExit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
