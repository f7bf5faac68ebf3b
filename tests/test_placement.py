"""Placement on the regime map: probabilities against wedges of the plane and Student's distribution."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import f as fisher
from scipy.stats import t as student

from rfsim.checks import InputError
from rfsim.logs import run
from rfsim.regimes import regime_from_exponents
from rfsim.schedules import constant, cosine
from rfsim.surrogates import FitResult, fit, law
from rfsim.surrogates.placement import LABELS, _cells, placement
from rfsim.surrogates.uncertainty import Spread

NEAR_INFINITE = 1e7  # degrees of freedom at which Student's distribution is normal


def result_at(q_forcing, q_memory, log_covariance, rows=NEAR_INFINITE, *, samples=None, told=((), ()), options=None):
    """A fit of the forcing-memory law with this covariance of (log q_F, log q_K); told: at a bound, not determined."""
    chosen = law("forcing-memory", lr_unit=0.1, batch_unit=1.0, **(options or {}))
    values = np.array([2.0, 3.0, q_forcing, 0.02, 0.05, 0.05, q_memory])
    covariance = np.zeros((7, 7))
    scale = np.array([q_forcing, q_memory])
    covariance[np.ix_([2, 6], [2, 6])] = np.asarray(log_covariance) * np.outer(scale, scale)
    kept = len(chosen.parameters)
    return FitResult(
        law=chosen,
        values=values[:kept],
        spread=Spread(covariance[:kept, :kept], 1.0, 1.0, rows, *told),
        objective=1.0,
        huber=1e-3,
        window="all",
        fixed={},
        starts=1,
        share=1.0,
        runs=(),
        samples=samples,
    )


def wedges(log_covariance):
    """Probability of every label at q_F = q_K = 1: the angles of the six wedges once the covariance is made round."""
    rays = {  # (log q_F, log q_K) of the two edges, anticlockwise
        "LM3": ((0.0, -1.0), (1.0, 0.0)),
        "IM3": ((1.0, 0.0), (1.0, 1.0)),
        "IM2": ((1.0, 1.0), (0.0, 1.0)),
        "IM1": ((0.0, 1.0), (-1.0, 0.0)),
        "LM1": ((-1.0, 0.0), (-1.0, -1.0)),
        "LM2": ((-1.0, -1.0), (0.0, -1.0)),
    }
    white = np.linalg.inv(np.linalg.cholesky(np.asarray(log_covariance)))
    found = {}
    for label, (one, other) in rays.items():
        (x, y), (u, v) = white @ one, white @ other
        found[label] = math.atan2(x * v - y * u, x * u + y * v) / (2.0 * math.pi)
    return found


@given(st.floats(0.05, 5.0), st.floats(0.05, 5.0))
def test_cells_are_those_of_the_map(q_forcing, q_memory):
    index = _cells(np.array([q_forcing]), np.array([q_memory]))[0]
    found = regime_from_exponents(q_forcing, q_memory)
    assert LABELS[index] in (found.neighbours or (found.label,))  # the map has lines of width 1e-12


@pytest.mark.parametrize("pair", [(1.0, 1.0), (0.5, 0.5), (0.5, 1.0), (1.0, 0.5), (1.0, 2.0), (2.0, 1.0), (2.0, 2.0)])
def test_ties_are_those_of_the_map(pair):
    assert LABELS[_cells(*(np.array([value]) for value in pair))[0]] == regime_from_exponents(*pair).default_label


def test_round_uncertainty_where_all_regimes_meet():
    """Eighths of the plane, and quarters for LM3 and IM1; for Student's distribution too."""
    for rows in (3.0, NEAR_INFINITE):
        found = placement(result_at(1.0, 1.0, 0.04 * np.eye(2), rows))
        eighths = {"LM1": 1, "LM2": 1, "LM3": 2, "IM1": 2, "IM2": 1, "IM3": 1}
        for label, count in eighths.items():
            share = count / 8.0
            assert found.probabilities[label] == pytest.approx(share, abs=5.0 * math.sqrt(share * (1 - share) / 20000))
        assert sum(found.probabilities.values()) == pytest.approx(1.0, rel=1e-12)
        assert found.label == "boundary:LM1|LM2|LM3|IM1|IM2|IM3"
        assert found.default_label == "LM1"
        assert set(found.near) == {"q_memory=1", "q_forcing=1", "q_forcing=q_memory"}
        assert found.boundary_unresolved


@pytest.mark.parametrize("correlation", [-0.9, 0.0, 0.6, 0.99])
def test_correlated_uncertainty(correlation):
    covariance = np.array([[0.09, 0.03 * correlation], [0.03 * correlation, 0.01]])
    found = placement(result_at(1.0, 1.0, covariance), seed=3).probabilities
    for label, share in wedges(covariance).items():
        assert found[label] == pytest.approx(share, abs=5.0 * math.sqrt(share * (1.0 - share) / 20000))


def test_family_by_students_distribution():
    """q_K 1.3 with error 0.2 of its log and 4 degrees of freedom, q_F far below both."""
    found = placement(result_at(0.05, 1.3, np.diag([1e-6, 0.04]), rows=4.0))
    expected = student.cdf(-math.log(1.3) / 0.2, 4.0)
    assert found.long_memory == pytest.approx(expected, abs=5.0 * math.sqrt(expected / 20000))
    assert found.label == "IM1"
    assert not found.boundary_unresolved
    assert found.probabilities["LM1"] == pytest.approx(found.long_memory, abs=1e-3)
    assert found.stderr == pytest.approx((5e-5, 0.26), rel=1e-12)


def test_distances_by_hand():
    """log q_F = -1, log q_K = 0.5, errors 0.5 and 0.25, correlation 1/2: the diagonal is crossed by error sqrt(3)/4."""
    covariance = np.array([[0.25, 0.0625], [0.0625, 0.0625]])
    found = placement(result_at(math.exp(-1.0), math.exp(0.5), covariance))
    sides = {side.line: side.distance for side in found.sides}
    assert sides["q_forcing=1"] == pytest.approx(2.0, rel=1e-12)
    assert sides["q_memory=1"] == pytest.approx(2.0, rel=1e-12)
    assert sides["q_forcing=q_memory"] == pytest.approx(1.5 / (math.sqrt(3.0) / 4.0), rel=1e-12)
    assert found.near == ()
    wide = placement(result_at(math.exp(-1.0), math.exp(0.5), 4.5 * covariance))
    assert wide.near == ("q_memory=1", "q_forcing=1")


@pytest.mark.parametrize(("distance", "near"), [(0.9, ("q_memory=1",)), (1.2, ())])
def test_near_is_within_one_standard_error(distance, near):
    found = placement(result_at(0.2, math.exp(0.1 * distance), 0.01 * np.eye(2)))
    assert found.sides[0].distance == pytest.approx(distance, rel=1e-9)
    assert found.near == near


@pytest.mark.parametrize(("q_memory", "open_"), [(0.94, False), (0.96, True), (1.04, True), (1.06, False)])
def test_unresolved_boundary(q_memory, open_):
    found = placement(result_at(0.4, q_memory, 1e-10 * np.eye(2)))
    assert found.boundary_unresolved is open_
    assert any("boundary_unresolved" in line for line in found.remarks) is open_
    assert found.near == ()
    assert found.probabilities["LM1" if q_memory < 1.0 else "IM1"] == 1.0


def test_bootstrap_samples_are_counted():
    rng = np.random.default_rng(0)
    pairs = np.exp(0.3 * rng.standard_normal((40, 2))) * [0.9, 1.1]
    samples = np.tile([2.0, 3.0, 0.9, 0.02, 0.05, 0.05, 1.1], (40, 1))
    samples[:, [2, 6]] = pairs
    found = placement(result_at(0.9, 1.1, 1e-8 * np.eye(2), samples=samples))
    assert found.source == "bootstrap"
    counted = [regime_from_exponents(*pair).label for pair in pairs]
    assert found.probabilities == {label: counted.count(label) / 40 for label in LABELS}
    spread = np.std(np.log(pairs), axis=0, ddof=1)
    assert found.stderr == pytest.approx((0.9 * spread[0], 1.1 * spread[1]), rel=1e-12)
    for count in (5, 15, 19):
        few = placement(result_at(0.9, 1.1, 1e-8 * np.eye(2), samples=samples[:count]))
        assert few.source == "covariance"
        assert few.probabilities["IM1"] == 1.0
    assert placement(result_at(0.9, 1.1, 1e-8 * np.eye(2), samples=samples[:20])).source == "bootstrap"


def test_draws_are_seeded():
    one = result_at(0.9, 1.1, 0.04 * np.eye(2))
    assert placement(one).probabilities == placement(one).probabilities
    assert placement(one).probabilities != placement(one, seed=1).probabilities


def test_contour_holds_the_stated_share_of_the_distribution():
    covariance = np.array([[0.09, 0.02], [0.02, 0.01]])
    found = placement(result_at(0.8, 1.1, covariance, rows=9.0))
    x, y = found.contour(0.9, points=33)
    logs = np.stack([np.log(x / 0.8), np.log(y / 1.1)])
    squared = np.einsum("in,ij,jn->n", logs, np.linalg.inv(covariance), logs)
    assert squared == pytest.approx(np.full(33, 2.0 * fisher.ppf(0.9, 2, 9.0)), rel=1e-10)
    assert (x[0], y[0]) == pytest.approx((x[-1], y[-1]), rel=1e-12)


def test_what_was_held_is_said():
    held = placement(result_at(0.4, 1.2, 0.01 * np.eye(2), options={"q_memory": 1.2}))
    assert held.stderr[1] == 0.0
    assert held.q_memory == 1.2
    assert held.probabilities["IM1"] == 1.0
    assert any("q_K was held" in line for line in held.remarks)
    assert {side.line: side.distance for side in held.sides}["q_memory=1"] == math.inf
    told = placement(
        result_at(0.4, 1.2, 0.01 * np.eye(2), told=(("q_K",), ("q_F",)), options={"clock_power": 0.5})
    ).remarks
    assert any("q_K is at a bound" in line for line in told)
    assert any("q_F is not determined" in line for line in told)
    assert any("lr^0.5" in line for line in told)
    assert "probability" in held.summary()
    assert held.remarks[0] in held.summary()


def test_laws_without_exponents_are_refused():
    lr = 0.1 * np.linspace(1.0, 0.1, 200)
    steps = np.arange(5, 201, 5)
    one = run(steps, 2.0 + 1.0 / np.sqrt(steps), constant(200, 0.1, 1.0).replace(lr=lr))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit(law("momentum"), one)
    with pytest.raises(InputError, match="momentum has no pair"):
        placement(found)
    with pytest.raises(InputError, match="draws"):
        placement(result_at(0.4, 1.2, np.eye(2)), draws=0)


def test_a_fit_is_placed_where_its_data_come_from():
    """Noise 1e-3 about the law at (q_F, q_K) = (0.5, 1.2): IM1, away from every line."""
    chosen = law("forcing-memory", lr_unit=0.1, batch_unit=1.0)
    values = np.array([2.0, 3.0, 0.5, 0.02, 0.05, 0.05, 1.2])
    rng = np.random.default_rng(1)
    steps = np.unique(np.round(np.geomspace(5, 3000, 50)).astype(int))
    runs = []
    for name, schedule in (("flat", constant(3000, 0.1, 1.0)), ("cosine", cosine(3000, 0.1, 1.0))):
        empty = run(steps, np.ones(len(steps)), schedule, name=name)
        loss = chosen.evaluate(values, chosen.prepare(empty), gradient=False)[0]
        runs.append(run(steps, loss * np.exp(1e-3 * rng.standard_normal(len(steps))), schedule, name=name))
    found = placement(fit(chosen, runs, starts=values))
    assert found.label == "IM1"
    assert found.probabilities["IM1"] > 0.999
    assert found.near == ()
    assert abs(found.q_memory - 1.2) < 4.0 * found.stderr[1] < 0.2
