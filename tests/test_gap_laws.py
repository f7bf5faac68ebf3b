"""Gap exponents, constants, edges, schedule effects: accumulation integrals and marched equations as witnesses."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import zeta

from rfsim.checks import InputError
from rfsim.exponents import memory_exponent
from rfsim.gap_laws import (
    clean_exponent,
    finite_bulk_gap,
    gap_amplitude,
    gap_law,
    iteration_gap_law,
    iteration_schedule,
    lm_edge,
    lm_edge_clean_exponent,
    lm_edge_forcing_factor,
    lm_growth_rate,
    schedule_effect,
)
from rfsim.memory_edge import _secular_sum


def accumulated(q_memory: float, vartheta: float, time: float) -> float:
    """Integral over 0 < u < T of (1 + T - u)^-q_K (1 + u)^-vartheta, in logarithmic coordinates from both ends."""
    half = math.log1p(time / 2)

    def early(v: float) -> float:
        u = math.expm1(v)
        return float((1 + time - u) ** -q_memory * math.exp((1 - vartheta) * v))

    def late(v: float) -> float:
        lag = math.expm1(v)
        return float(math.exp((1 - q_memory) * v) * (1 + time - lag) ** -vartheta)

    return sum(quad(part, 0, half, epsabs=0, epsrel=1e-11, limit=400)[0] for part in (early, late))


def local_exponent(q_memory: float, vartheta: float, time: float) -> float:
    step = 0.01
    values = [accumulated(q_memory, vartheta, time * math.exp(s)) for s in (-step, step)]
    return -math.log(values[1] / values[0]) / (2 * step)


# local exponents of the accumulation integral at T = 1e4, 1e9, published to four digits
TABLE = [
    ((0.5, 0.8), 0.2691, 0.2974),
    ((0.5, 1.0), 0.4044, 0.4548),
    ((0.75, 0.25), -0.0250, -0.0013),
    ((0.75, 0.35), 0.0761, 0.0988),
    ((0.75, 0.5), 0.2272, 0.2489),
    ((0.75, 0.9), 0.5955, 0.6393),
    ((0.75, 1.0), 0.6616, 0.7087),
    ((0.75, 2.0), 0.7507, 0.7500),
    ((1.0, 1.0), 0.8912, 0.9517),
    ((1.0, 1.5), 1.0155, 1.0001),
    ((7 / 6, 0.0), -0.0458, -0.0054),
    ((7 / 6, 0.5), 0.4673, 0.4960),
    ((7 / 6, 7 / 6), 1.1240, 1.1616),
    ((7 / 6, 1.5), 1.1947, 1.1676),
]


@pytest.mark.parametrize(("point", "early", "late"), TABLE)
def test_gap_exponent_is_the_limit_of_the_local_exponents(
    point: tuple[float, float], early: float, late: float
) -> None:
    assert local_exponent(*point, 1e4) == pytest.approx(early, abs=1.5e-4)
    assert local_exponent(*point, 1e9) == pytest.approx(late, abs=1.5e-4)
    law = gap_law(*point)
    assert law.exponent is not None
    distances = [abs(local_exponent(*point, time) - law.exponent) for time in (1e4, 1e7, 1e10)]
    assert distances[0] > distances[1] > distances[2] - 1e-8  # 1e-8: noise of the numerical derivative
    slow = 2.0 / math.log(1e10) if law.logarithm else 0.02
    assert distances[2] < slow
    if law.logarithm and not law.edge:  # log T lowers the local exponent by 1/log T
        assert distances[2] > 0.5 / math.log(1e10)


BRANCHES = [
    ((0.75, 0.2), None, False, "unstable"),
    ((0.75, 0.25), 0.0, False, "edge"),
    ((0.75, 0.5), 0.25, False, "ratio"),
    ((0.75, 1.0), 0.75, True, "ceiling"),
    ((0.75, 1.5), 0.75, False, "ceiling"),
    ((1.0, -0.1), None, False, "unstable"),
    ((1.0, 0.0), 0.0, True, "edge"),
    ((1.0, 0.4), 0.4, True, "ratio"),
    ((1.0, 1.0), 1.0, True, "ratio"),
    ((1.0, 1.2), 1.0, False, "ceiling"),
    ((7 / 6, -0.01), None, False, "unstable"),
    ((7 / 6, 0.0), 0.0, False, "edge"),
    ((7 / 6, 1.0), 1.0, False, "ratio"),
    ((7 / 6, 7 / 6), 7 / 6, False, "two-term"),
    ((7 / 6, 3.0), 7 / 6, False, "ceiling"),
]


@pytest.mark.parametrize(("point", "exponent", "logarithm", "branch"), BRANCHES)
def test_branches(point: tuple[float, float], exponent: float | None, logarithm: bool, branch: str) -> None:
    law = gap_law(*point)
    assert (law.logarithm, law.branch, law.edge) == (logarithm, branch, branch == "edge")
    assert law.exponent == (None if exponent is None else pytest.approx(exponent, abs=1e-15))
    assert law.reason


@given(st.floats(0.05, 3.0), st.floats(-1.0, 4.0))
def test_the_exponent_is_continuous_and_never_above_the_memory(q_memory: float, vartheta: float) -> None:
    law, next_law = gap_law(q_memory, vartheta), gap_law(q_memory, vartheta + 1e-6)
    if law.exponent is None:
        assert vartheta < max(0.0, 1 - q_memory)
        assert not law.stable
        return
    assert 0.0 <= law.exponent <= q_memory
    assert next_law.exponent is not None
    assert -1e-12 <= next_law.exponent - law.exponent <= 1e-6 + 1e-9


@pytest.mark.parametrize(
    ("q_memory", "vartheta"), [(0.75, 0.5), (0.5, 0.8), (0.75, 1.0), (1.0, 0.5), (1.0, 1.0), (1.4, 0.5)]
)
def test_amplitudes_are_limits_of_the_accumulation_integral(q_memory: float, vartheta: float) -> None:
    law = gap_law(q_memory, vartheta)
    mass = 1 / (q_memory - 1) if q_memory > 1 else None
    amplitude = gap_amplitude(q_memory, vartheta, 1.0, 8.0, 25.0, mass)
    assert amplitude is not None
    assert law.exponent is not None
    ratios = []
    for time in (1e6, 1e10, 1e14):
        predicted = amplitude * time**-law.exponent * (math.log(time) if law.logarithm else 1.0)
        ratios.append(25.0 / 8.0 * accumulated(q_memory, vartheta, time) / predicted)
    distances = np.abs(np.array(ratios) - 1)
    assert (np.diff(distances) < 0).all()
    if law.logarithm:  # distance constant/log T: extrapolate linearly in 1/log T, log T = 10 and 14 decades
        limit = (14 * ratios[2] - 10 * ratios[1]) / 4
    else:  # distance a power of T: Aitken's extrapolation
        first, second = ratios[1] - ratios[0], ratios[2] - ratios[1]
        limit = ratios[2] - second**2 / (second - first)
    assert limit == pytest.approx(1.0, abs=2e-3)


def test_amplitudes_that_depend_on_the_whole_path_are_not_given() -> None:
    for q_memory, vartheta in [(0.75, 0.1), (0.75, 1.5), (1.0, 0.0), (1.0, 2.0), (7 / 6, 7 / 6), (7 / 6, 2.0)]:
        assert gap_amplitude(q_memory, vartheta, 1.0, 8.0, 1.0, 6.0) is None
    assert gap_amplitude(1.5, 0.0, 1.0, 8.0, 0.5, 6.0) == pytest.approx(0.5 * 0.75 / 0.25)
    assert gap_amplitude(1.5, 0.0, 1.0, 8.0, 0.5, 8.0) is None
    assert gap_amplitude(0.75, 0.5, 1.0, 8.0, 0.0) == 0.0
    with pytest.raises(InputError, match="kernel_mass"):
        gap_amplitude(1.5, 0.5, 1.0, 8.0, 1.0)


def convolve_power(q_memory: float, power: float) -> float:
    """Integral over 0 < x < 1 of (1 - x)^-q_K x^power, by quadrature with the end singularities as weights."""
    return float(quad(lambda _: 1.0, 0, 1, weight="alg", wvar=(power, -q_memory))[0])


@pytest.mark.parametrize(
    ("q_memory", "strength"), [(0.75, 0.05), (0.5, 0.2), (0.75, 0.22), (0.3, 0.1), (0.75, 0.4), (0.5, 0.9)]
)
def test_edge_plateau_and_exponent_solve_the_scale_invariant_equation(q_memory: float, strength: float) -> None:
    edge = lm_edge(q_memory, strength)
    # a constant Z is carried into C1 (1 + Z) by the operator
    constant = strength * convolve_power(q_memory, q_memory - 1)
    assert edge.constant == pytest.approx(constant, rel=1e-8)
    if edge.bounded:
        assert edge.plateau_factor == pytest.approx(constant * (1 + edge.plateau_factor), rel=1e-7)
    else:
        assert edge.plateau_factor is None
    # T^-g is carried into itself
    assert strength * convolve_power(q_memory, q_memory - 1 - edge.exponent) == pytest.approx(1.0, rel=1e-6)
    assert (edge.exponent > 0) == edge.bounded == (edge.constant < 1)


def test_edge_by_marching_the_volterra_equation() -> None:
    """Z(T) = integral of k(T - u)(1 + Z(u))/r(u), k = (1 + x)^-q, r = c (1 + u)^(1 - q): cells on a growing grid."""
    q_memory, ratio = 0.5, 16.0
    grid = np.expm1(np.linspace(0, math.log(1e7), 1200))

    def march(forcing: np.ndarray, noise: float) -> np.ndarray:
        risk = forcing.copy()
        for n in range(1, len(grid)):
            lags = 1 + grid[n] - grid[: n + 1]
            weights = (lags[:-1] ** (1 - q_memory) - lags[1:] ** (1 - q_memory)) / (1 - q_memory)
            middle = 0.5 * (grid[1 : n + 1] + grid[:n])
            source = 0.5 * (risk[:n] + np.append(risk[1:n], risk[n - 1])) + noise
            risk[n] = forcing[n] + np.sum(weights * source / (ratio * (1 + middle) ** (1 - q_memory)))
        return risk

    edge = lm_edge(q_memory, 1 / ratio)
    assert edge.plateau_factor is not None
    gap = march(np.zeros_like(grid), 1.0)
    assert gap[-1] == pytest.approx(edge.plateau_factor, rel=0.03)
    assert abs(gap[-1] / edge.plateau_factor - 1) < abs(gap[600] / edge.plateau_factor - 1)
    for q_forcing in (0.2, 1.5):
        clean = march((1 + grid) ** -q_forcing, 0.0)
        slope = -np.polyfit(np.log(1 + grid[900:]), np.log(clean[900:]), 1)[0]
        expected = lm_edge_clean_exponent(q_forcing, q_memory, 1 / ratio)
        assert slope == pytest.approx(expected, abs=0.02)
        if q_forcing < edge.exponent:
            factor = lm_edge_forcing_factor(q_forcing, q_memory, 1 / ratio)
            assert clean[-1] / (1 + grid[-1]) ** -q_forcing == pytest.approx(factor, rel=0.02)
        else:
            assert expected == edge.exponent < q_memory


def test_edge_constant_one_grows_like_a_logarithm() -> None:
    edge = lm_edge(0.5, 1 / math.pi)
    assert edge.constant == pytest.approx(1.0, abs=1e-12)
    assert (edge.bounded, edge.plateau_factor, edge.exponent) == (False, None, 0.0)
    assert "log" in edge.reason
    with pytest.raises(InputError, match="q_forcing"):
        lm_edge_forcing_factor(0.3, 0.5, 1 / math.pi)


def direct_secular_sum(alpha: float, rate: float) -> float:
    """sum_j lambda^2/(2 lambda + s): 20,000 terms, then mpmath quadrature and two Euler-Maclaurin corrections."""
    first = 20_000
    mode = np.arange(first - 1, 0, -1, dtype=np.float64)
    eigenvalues = mode ** (-2 * alpha)

    def term(x: mpmath.mpf) -> mpmath.mpf:
        return 1 / (2 * x ** (2 * alpha) + rate * x ** (4 * alpha))

    with mpmath.workdps(25):
        start = mpmath.log(first)
        knots = [start + k for k in (0, 2, 5, 10, 20, 40, 80, 200, 400, 800)]
        tail = mpmath.quad(lambda v: mpmath.exp(v) * term(mpmath.exp(v)), knots)
        tail += term(mpmath.mpf(first)) / 2 - mpmath.diff(term, first) / 12
    return float(np.sum(eigenvalues**2 / (2 * eigenvalues + rate))) + float(tail)


@pytest.mark.parametrize(
    ("alpha", "rate"), [(0.4, 1e-6), (0.3, 0.1), (0.5, 1e-4), (0.5001, 1e-4), (0.7, 0.05), (0.45, 30.0)]
)
def test_secular_sum(alpha: float, rate: float) -> None:
    assert _secular_sum(2 * alpha, math.log(rate)) == pytest.approx(direct_secular_sum(alpha, rate), rel=1e-11)


@pytest.mark.parametrize(("alpha", "ratio"), [(0.4, 20.0), (0.3, 5.0), (0.45, 1.0), (0.5, 6.0), (0.7, 0.8)])
def test_growth_rate_solves_the_secular_equation(alpha: float, ratio: float) -> None:
    assert direct_secular_sum(alpha, lm_growth_rate(alpha, ratio)) == pytest.approx(ratio, rel=1e-10)


def test_growth_rate_of_the_reference_point() -> None:
    rate = lm_growth_rate(0.4, 20.0)
    assert rate == pytest.approx(4.879e-4, abs=5e-8)
    leading = 0.9107964133842260 * math.gamma(0.25) * rate**-0.25
    assert leading + 0.5 * float(mpmath.zeta(0.8)) == pytest.approx(20.0, abs=1e-3)
    assert (0.9107964133842260 * math.gamma(0.25) / 20.0) ** 4 > 1.5 * rate  # the leading term alone is far off


def test_growth_rate_is_that_of_a_large_finite_system() -> None:
    """Largest eigenvalue of dz/dT = -2 lambda z + lambda^2 (sum z)/r, a finite matrix with modes to spare."""
    modes, alpha, ratio = 1500, 0.7, 0.6
    eigenvalues = np.arange(1, modes + 1, dtype=np.float64) ** (-2 * alpha)
    matrix = np.diag(-2 * eigenvalues) + np.outer(eigenvalues, eigenvalues) / ratio
    assert lm_growth_rate(alpha, ratio) == pytest.approx(np.linalg.eigvalsh(matrix)[-1], rel=1e-3)


def test_growth_needs_a_small_ratio_for_integrable_memory() -> None:
    limit = 0.5 * float(zeta(1.4))
    assert 0 < lm_growth_rate(0.7, 0.99 * limit) < lm_growth_rate(0.7, 0.5 * limit)
    with pytest.raises(InputError, match="ratio"):
        lm_growth_rate(0.7, limit * 1.0001)
    with pytest.raises(InputError, match="alpha"):
        lm_growth_rate(0.25, 1.0)
    with pytest.raises(InputError, match="ratio"):
        lm_growth_rate(0.4, 0.0)
    # one mode: 1/(2 + s) = r
    assert lm_growth_rate(300.0, 0.25) == pytest.approx(2.0, rel=1e-12)


EFFECTS = [
    ((0.75, 0.5, 0.1), "unstable", None, None),
    ((0.75, 0.5, 0.25), "destroy", 0.0, 0.0),
    ((0.75, 0.5, 0.5), "change", 0.25, 0.25),
    ((0.75, 0.5, 0.75), "critical", 0.5, 0.5),
    ((0.75, 0.5, 0.9), "preserve", 0.65, 0.5),
    ((0.75, 0.75, 3.0), "critical", 0.75, 0.75),
    ((0.75, 0.8, 3.0), "change", 0.75, 0.75),
    ((7 / 6, 0.5, -0.1), "unstable", None, None),
    ((7 / 6, 0.5, 0.0), "destroy", 0.0, 0.0),
    ((7 / 6, 0.5, 0.25), "change", 0.25, 0.25),
    ((7 / 6, 0.5, 0.5), "critical", 0.5, 0.5),
    ((7 / 6, 0.5, 0.75), "preserve", 0.75, 0.5),
]


@pytest.mark.parametrize(("point", "label", "gap", "total"), EFFECTS)
def test_schedule_effects(
    point: tuple[float, float, float], label: str, gap: float | None, total: float | None
) -> None:
    found = schedule_effect(*point)
    assert found.label == label
    assert found.gap_exponent == (None if gap is None else pytest.approx(gap, abs=1e-12))
    assert found.total_exponent == (None if total is None else pytest.approx(total, abs=1e-12))
    assert found.edge == (label == "destroy")
    assert found.reason


def test_schedule_effect_without_label_noise_and_with_logarithms() -> None:
    clean = schedule_effect(0.75, 0.5, 0.9, noise_var=0.0)
    assert (clean.label, clean.gap_exponent, clean.total_exponent) == ("clean", None, 0.5)
    unstable = schedule_effect(0.75, 0.5, 0.1, noise_var=0.0)
    assert (unstable.label, unstable.total_exponent) == ("clean", None)
    assert "unstable" in unstable.reason
    tie = schedule_effect(0.75, 0.75, 1.0)
    assert (tie.label, tie.logarithm) == ("critical", True)
    assert "log T" in tie.reason
    constant = schedule_effect(1.0, 0.5, 0.0)
    assert (constant.label, constant.logarithm, constant.edge) == ("destroy", True, True)
    assert not gap_law(1.0, 0.0).stable


@given(st.floats(0.05, 2.5), st.floats(0.01, 1.0))
def test_schedule_effect_boundaries(q_memory: float, share: float) -> None:
    assume(abs(q_memory - 1) > 1e-6)
    assume(share < 0.999)
    q_clean = share * q_memory
    start = max(0.0, 1 - q_memory)
    minimal = schedule_effect(q_memory, q_clean, 9.0).minimal_vartheta
    assert minimal == pytest.approx(q_clean + start)
    labels = [
        schedule_effect(q_memory, q_clean, vartheta).label
        for vartheta in (start - 1e-9, start, start + 1e-9, minimal - 1e-9, minimal, minimal + 1e-9)
    ]
    assert labels == ["unstable", "destroy", "change", "change", "critical", "preserve"]


@given(st.floats(0.05, 2.5), st.floats(1.0, 5.0), st.floats(-1.0, 5.0))
def test_nothing_is_preserved_above_the_ceiling(q_memory: float, factor: float, vartheta: float) -> None:
    found = schedule_effect(q_memory, factor * q_memory, vartheta)
    assert found.minimal_vartheta is None or factor > 1 + 1e-12 or found.label != "preserve"
    assert found.label in {"unstable", "destroy", "change", "critical"}


@given(st.floats(0.26, 2.0), st.floats(0.0, 0.95), st.floats(0.0, 3.0))
def test_iteration_schedules(alpha: float, decay: float, growth: float) -> None:
    """The exponents per iteration, written out in l and b."""
    q_memory = memory_exponent(alpha)
    law = iteration_gap_law(q_memory, decay, growth)
    if alpha < 0.5:
        start = decay + 2 * alpha * growth - (1 - 2 * alpha)
        assume(min(abs(start), abs(2 * decay + growth - 1), abs(alpha - 0.5)) > 1e-9)
        expected = None if start < 0 else start / (2 * alpha) if 2 * decay + growth < 1 else (1 - decay) * q_memory
    else:
        assume(alpha > 0.5 + 1e-9)
        expected = min(decay + growth, (1 - decay) * q_memory)
    assert law.exponent == (None if expected is None else pytest.approx(expected, abs=1e-9))


def test_iteration_schedule_follows_the_two_power_laws() -> None:
    decay, growth = 0.3, 0.4
    n = np.arange(1, 2_000_001, dtype=np.float64)
    lr = n**-decay
    time, ratio = np.cumsum(lr), n**growth / lr
    slope = math.log(ratio[-1] / ratio[len(n) // 10]) / math.log(time[-1] / time[len(n) // 10])
    assert iteration_schedule(decay, growth) == pytest.approx(slope, rel=1e-3)


def test_finite_bulk_gap() -> None:
    assert finite_bulk_gap(0.2, 0.0) == (pytest.approx(-0.4), 1.0, False)
    assert finite_bulk_gap(0.2, 1.0) == (pytest.approx(-0.4), 0.0, True)
    assert finite_bulk_gap(0.2, 2.0) == (pytest.approx(-0.4), 0.0, False)


def test_clean_exponent() -> None:
    assert clean_exponent(0.5, 0.75) == 0.5
    assert clean_exponent(1.5, 1.2) == 1.2


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: gap_law(0.0, 0.5), "q_memory"),
        (lambda: gap_law(math.nan, 0.5), "q_memory"),
        (lambda: gap_law(0.5, math.inf), "vartheta"),
        (lambda: clean_exponent(-1.0, 0.5), "q_forcing"),
        (lambda: schedule_effect(0.5, 0.0, 1.0), "q_clean"),
        (lambda: schedule_effect(0.5, 0.5, 1.0, -1.0), "noise_var"),
        (lambda: lm_edge(1.0, 0.1), "q_memory"),
        (lambda: lm_edge(0.5, 0.0), "amplitude_ratio"),
        (lambda: lm_edge(0.999, 1e6), "amplitude_ratio"),
        (lambda: lm_edge(0.5, 1e-320), "amplitude_ratio"),
        (lambda: gap_amplitude(0.5, 0.8, 0.0, 1.0, 1.0), "memory_amplitude"),
        (lambda: gap_amplitude(0.5, 0.8, 1.0, -1.0, 1.0), "ratio_amplitude"),
        (lambda: iteration_schedule(1.0, 0.0), "lr_decay"),
        (lambda: iteration_schedule(-0.1, 0.0), "lr_decay"),
        (lambda: iteration_schedule(0.1, -1.0), "batch_growth"),
        (lambda: finite_bulk_gap(0.25, 0.0), "alpha"),
    ],
)
def test_bad_input_is_named(call, word: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=word):
        call()
