"""Exponents of (alpha, beta): clean components and optimal rates against linear programs on the exponents."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import linprog

from rfsim import exponents
from rfsim.checks import InputError

RNG = np.random.default_rng(20260)
POINTS = [
    (a, b)
    for a, b in zip(RNG.uniform(0.03, 1.6, 500), RNG.uniform(-0.9, 2.0, 500), strict=True)
    if 2 * a + 2 * b - 1 > 0.05
]
ALPHAS = st.floats(0.02, 3.0)
BETAS = st.floats(-2.0, 4.0)


def best_exponent(
    terms: list[tuple[float, ...]], limits: list[tuple[float, ...]], equality: tuple[float, ...]
) -> float:
    """Largest e over z >= 0 with e <= c.z + d for the `terms` (c, d) and c.z <= d for the `limits`."""
    size = len(equality) - 1
    upper = [[-c for c in row[:-1]] + [1.0] for row in terms] + [[*row[:-1], 0.0] for row in limits]
    bound = [row[-1] for row in terms] + [row[-1] for row in limits]
    answer = linprog(
        [0.0] * size + [-1.0],
        A_ub=upper,
        b_ub=bound,
        A_eq=[[*equality[:-1], 0.0]],
        b_eq=[equality[-1]],
        bounds=[(0, None)] * size + [(None, None)],
    )
    assert answer.status == 0
    return float(-answer.fun)


def noisy_program(alpha: float, beta: float, resource: str) -> tuple[list[tuple[float, ...]], ...]:
    """The linear program in (log M, log x, log D) with x = T^(1/2 alpha) <= M, logs to the base of the resource."""
    p = 2 * alpha + 2 * beta - 1
    terms = [(p if beta < 0.5 else 2 * alpha, 0.0, 0.0, 0.0), (0.0, p, 0.0, 0.0)]
    if alpha > 0.5 and beta > 0.5:
        terms.append((1.0, 2 * alpha - 1, 0.0, 0.0))
    terms.append((0.0, -1.0, 1.0, 0.0) if alpha > 0.25 else (4 * alpha - 1, -4 * alpha, 1.0, 0.0))
    largest_lr = min(0.0, 2 * alpha - 1)  # unit batches at lr ~ M^largest_lr: T <= D M^largest_lr
    limits = [(-1.0, 1.0, 0.0, 0.0), (-largest_lr, 2 * alpha, -1.0, 0.0)]
    equality = (0.0, 0.0, 1.0, 1.0) if resource == "data" else (1.0, 0.0, 1.0, 1.0)
    return terms, limits, equality


def clean_program(alpha: float, beta: float) -> tuple[list[tuple[float, ...]], ...]:
    """The linear program in (log M, log T, log t), base f = t M, lr = T/t ~ M^min(0, 2 alpha - 1)."""
    p = 2 * alpha + 2 * beta - 1
    lr = min(0.0, 2 * alpha - 1)
    terms = [(p if beta < 0.5 else 2 * alpha, 0.0, 0.0), (0.0, p / (2 * alpha), 0.0)]
    if alpha > 0.5 and beta > 0.5:
        terms.append((1.0, 1 - 1 / (2 * alpha), 0.0))
    if alpha > 0.25:
        terms.append((-lr, 2 - 1 / (2 * alpha), 0.0))
    return terms, [(-2 * alpha, 1.0, 0.0)], (1.0 - lr, 1.0, 1.0)


def value(terms: list[tuple[float, ...]], *logs: float) -> float:
    return min(sum(c * z for c, z in zip(row[:-1], logs, strict=True)) + row[-1] for row in terms)


@pytest.mark.parametrize("resource", ["data", "compute"])
def test_noisy_rates_and_allocations_solve_the_linear_program(resource: str) -> None:
    closed = {"data": exponents.data_optimum, "compute": exponents.compute_optimum}[resource]
    for alpha, beta in POINTS:
        terms, limits, equality = noisy_program(alpha, beta, resource)
        optimum = closed(alpha, beta)
        assert optimum.rate == pytest.approx(best_exponent(terms, limits, equality), abs=1e-9), (alpha, beta)
        samples = 1.0 if resource == "data" else 1.0 - optimum.width
        logs = (optimum.width, optimum.intrinsic_time / (2 * alpha), samples)
        assert value(terms, *logs) == pytest.approx(optimum.rate, abs=1e-9), (alpha, beta)
        for row in limits:
            assert sum(c * z for c, z in zip(row[:-1], logs, strict=True)) <= row[-1] + 1e-9, (alpha, beta)


def test_clean_rates_and_widths_solve_the_linear_program() -> None:
    for alpha, beta in POINTS:
        terms, limits, equality = clean_program(alpha, beta)
        rho, xi = exponents.compute_phase_rates(alpha, beta)
        assert rho == pytest.approx(best_exponent(terms, limits, equality), abs=1e-9), (alpha, beta)
        time = equality[-1] - equality[0] * xi
        assert value(terms, xi, time) == pytest.approx(rho, abs=1e-9), (alpha, beta)
        assert time <= 2 * alpha * xi + 1e-9


def test_a_wrong_rate_fails_the_linear_program() -> None:
    alpha, beta = 0.3, 0.7  # the LM1 formula used in LM3
    p = 2 * alpha + 2 * beta - 1
    assert abs(p / (2 + p) - best_exponent(*noisy_program(alpha, beta, "compute"))) > 0.01


def line_points() -> list[tuple[str, float, float, float, float]]:
    points = []
    for beta in np.linspace(-0.45, 2.0, 50):
        points += [("alpha=1/2", 0.5, beta, 1.0, 0.0), ("alpha=1", 1.0, beta, 1.0, 0.0)]
        points += [("alpha=1/4", 0.25, beta, 1.0, 0.0), ("alpha=split", exponents.PHASE_IV_SPLIT, beta, 1.0, 0.0)]
    for alpha in np.linspace(0.02, 2.0, 50):
        points += [("beta=1/2", alpha, 0.5, 0.0, 1.0), ("beta=alpha", alpha, alpha, -1.0, 1.0)]
        points += [("beta=0", alpha, 0.0, 0.0, 1.0)]
    return [point for point in points if point[1] + point[2] > 0.51]


def test_rates_are_continuous_across_every_line() -> None:
    step = 1e-7
    for name, alpha, beta, da, db in line_points():
        for function in (
            lambda a, b: exponents.data_optimum(a, b).rate,
            lambda a, b: exponents.compute_optimum(a, b).rate,
            lambda a, b: exponents.compute_phase_rates(a, b)[0],
        ):
            low = function(alpha - step * da, beta - step * db)
            high = function(alpha + step * da, beta + step * db)
            on = function(alpha, beta)
            assert abs(high - low) < 100 * step, (name, alpha, beta)
            assert abs(on - low) < 100 * step, (name, alpha, beta)


def test_allocations_are_continuous_except_where_the_optimum_is_flat() -> None:
    step = 1e-7
    for name, alpha, beta, da, db in line_points():
        if not (name == "alpha=1" and beta > 0.5):
            for function in (exponents.data_optimum, exponents.compute_optimum):
                low = function(alpha - step * da, beta - step * db)
                high = function(alpha + step * da, beta + step * db)
                np.testing.assert_allclose(low, high, atol=100 * step, err_msg=f"{name} {alpha} {beta}")
        if not (name == "alpha=split" and beta > 0.5):
            low_xi = exponents.compute_phase_rates(alpha - step * da, beta - step * db)[1]
            high_xi = exponents.compute_phase_rates(alpha + step * da, beta + step * db)[1]
            assert low_xi == pytest.approx(high_xi, abs=100 * step), (name, alpha, beta)


def test_mapped_rates_of_the_easy_and_hard_branches() -> None:
    for alpha, beta in POINTS:
        if alpha > 0.5:
            source, capacity = exponents.forcing_exponent(alpha, beta), 2 * alpha
            rate = exponents.data_optimum(alpha, beta).rate
            easy = source * capacity / (1 + source * capacity)
            assert rate == pytest.approx(easy if beta > 0 else source, rel=1e-12)


def closed_takeovers(alpha: float, beta: float) -> dict[str, list[tuple[str, str, float]]]:
    """The take-over times of forcing and of clean risk, written regime by regime."""
    p = 2 * alpha + 2 * beta - 1
    to_floor = [("transient", "floor", 2 * alpha)]
    if beta < 0.5:
        return {"forcing": to_floor, "risk": to_floor}
    if alpha < 0.5:
        forcing = [("transient", "floor", 4 * alpha**2 / p)]
        if alpha < 0.25:
            return {"forcing": forcing, "risk": forcing}
        memory = [("transient", "memory", alpha * (1 - 2 * alpha) / (beta - alpha)), ("memory", "floor", 2 * alpha)]
        return {"forcing": forcing, "risk": memory}
    forcing = [("transient", "feature", alpha / beta), ("feature", "floor", 2 * alpha)]
    if beta < alpha:
        return {"forcing": forcing, "risk": forcing}
    return {
        "forcing": forcing,
        "risk": [("transient", "memory", 0.0), ("memory", "feature", 1.0), ("feature", "floor", 2 * alpha)],
    }


def test_takeover_times_match_the_closed_forms() -> None:
    for alpha, beta in POINTS:
        for quantity, expected in closed_takeovers(alpha, beta).items():
            found = exponents.takeover_times(alpha, beta, memory=quantity == "risk")
            assert [step[:2] for step in found] == [step[:2] for step in expected], (alpha, beta, quantity)
            np.testing.assert_allclose([s.exponent for s in found], [s[2] for s in expected], atol=1e-9)


@given(ALPHAS, BETAS, st.booleans())
def test_takeover_path_is_the_upper_envelope(alpha: float, beta: float, memory: bool) -> None:
    assume(2 * alpha + 2 * beta - 1 > 1e-3)
    terms = {t.name: t for t in (exponents.clean_risk_terms if memory else exponents.clean_forcing_terms)(alpha, beta)}
    path = exponents.takeover_times(alpha, beta, memory=memory)
    assert path[-1].after == "floor"
    times = [0.0, *(step.exponent for step in path), 2 * alpha]
    assert np.diff(times).min() > -1e-9
    leaders = ["transient", *(step.after for step in path)]
    for leader, start, stop in zip(leaders, times[:-1], times[1:], strict=True):
        middle = 0.5 * (start + stop)
        heights = {name: t.width_exponent + t.time_exponent * middle for name, t in terms.items()}
        assert heights[leader] >= max(heights.values()) - 1e-9


def test_forcing_terms_of_the_table() -> None:
    floor, transient = exponents.clean_forcing_terms(0.4, 0.3)
    assert floor == ("floor", pytest.approx(-0.4), 0.0)
    assert transient == ("transient", 0.0, pytest.approx(-0.5))
    names = {point: [t.name for t in exponents.clean_forcing_terms(*point)] for point in [(0.7, 0.6), (0.3, 0.7)]}
    assert names == {(0.7, 0.6): ["floor", "transient", "feature"], (0.3, 0.7): ["floor", "transient"]}
    feature = exponents.clean_forcing_terms(0.7, 0.9)[2]
    assert feature.width_exponent == -1.0
    assert -feature.time_exponent == pytest.approx(exponents.memory_exponent(0.7) - 1)
    assert exponents.clean_forcing_terms(0.3, 0.7)[0].width_exponent == pytest.approx(-0.6)


@given(ALPHAS, BETAS)
def test_response_coordinates_invert(alpha: float, beta: float) -> None:
    assume(2 * alpha + 2 * beta - 1 > 1e-3)
    back = exponents.power_law_coordinates(*exponents.response_coordinates(alpha, beta))
    assert back[0] == pytest.approx(alpha, rel=1e-11)
    assert back[1] == pytest.approx(beta, rel=1e-9, abs=1e-10)


@given(st.floats(0.01, 6.0), st.floats(-3.0, 1.95))
def test_power_law_coordinates_invert(q_forcing: float, q_memory: float) -> None:
    back = exponents.response_coordinates(*exponents.power_law_coordinates(q_forcing, q_memory))
    assert back == (pytest.approx(q_forcing, rel=1e-9), pytest.approx(q_memory, abs=1e-12))


def test_special_lines_of_the_response_exponents() -> None:
    for alpha in (0.3, 0.45, 0.8, 1.7):
        assert exponents.forcing_exponent(alpha, 0.5) == 1.0
        assert exponents.forcing_exponent(alpha, alpha) == pytest.approx(exponents.memory_exponent(alpha), rel=1e-14)
    assert exponents.forcing_exponent(0.8, 0.0) == pytest.approx(exponents.memory_exponent(0.8) - 1, rel=1e-14)
    assert exponents.memory_exponent(0.5) == 1.0
    assert exponents.memory_exponent(0.25) == 0.0


@pytest.mark.parametrize(
    ("alpha", "beta", "word"),
    [
        (0.0, 1.0, "alpha"),
        (-0.4, 2.0, "alpha"),
        (math.nan, 0.3, "alpha"),
        (math.inf, 0.3, "alpha"),
        ("0.4", 0.3, "alpha"),
        (1e200, 0.3, "alpha"),
        (0.4, math.nan, "beta"),
        (0.4, -math.inf, "beta"),
        (0.4, None, "beta"),
        (0.4, 1e200, "beta"),
        (0.4, 0.1, "2 alpha"),
        (0.2, 0.3, "2 alpha"),
        (0.3, 0.1, "2 alpha"),
    ],
)
@pytest.mark.parametrize(
    "function",
    [
        exponents.forcing_exponent,
        exponents.clean_forcing_terms,
        exponents.clean_risk_terms,
        exponents.takeover_times,
        exponents.data_optimum,
        exponents.compute_optimum,
        exponents.compute_phase_rates,
    ],
)
def test_bad_points_are_named(function, alpha, beta, word) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=word):
        function(alpha, beta)


def test_bad_response_coordinates_are_named() -> None:
    with pytest.raises(InputError, match="q_memory"):
        exponents.power_law_coordinates(1.0, 2.0)
    with pytest.raises(InputError, match="q_forcing"):
        exponents.power_law_coordinates(0.0, 0.5)
    with pytest.raises(InputError, match="alpha"):
        exponents.memory_exponent(0.0)
