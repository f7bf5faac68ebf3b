"""Leading constants against 30-digit integrals, direct sums and the finite-width equations they are limits of."""

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from rfsim import amplitudes
from rfsim.checks import InputError


def power_sum_decay(power: float, decay: float, time: float) -> float:
    """sum_j j^-power exp(-2 T j^-decay) over all j >= 1: modes up to 2e6 one by one, the rest by Euler-Maclaurin."""
    last = 200_000
    mode = np.arange(last, 0, -1, dtype=np.float64)
    head = float(np.sum(mode**-power * np.exp(-2 * time * mode**-decay)))
    tail, weight = 0.0, 1.0
    for k in range(30):  # exponential series, each power an exact Hurwitz zeta value
        term = weight * float(mpmath.zeta(power + k * decay, last + 1))
        tail += term
        if abs(term) < 1e-17 * abs(tail):
            return head + tail
        weight *= -2 * time / (k + 1)
    raise AssertionError("the tail series of this witness did not converge")


@pytest.mark.parametrize("alpha", [0.3, 0.4, 0.7, 1.2])
def test_memory_amplitude_is_the_limit_of_the_profile(alpha: float) -> None:
    q_memory = 2 - 1 / (2 * alpha)
    gaps = [
        power_sum_decay(4 * alpha, 2 * alpha, time) / (amplitudes.memory_amplitude(alpha) * time**-q_memory) - 1
        for time in (3.0, 30.0, 300.0)
    ]
    assert abs(gaps[-1]) < 1e-6
    assert abs(gaps[0]) > abs(gaps[1]) >= abs(gaps[2]) or abs(gaps[1]) < 1e-9


@pytest.mark.parametrize(("alpha", "beta"), [(0.4, 0.3), (0.2, 0.4), (0.7, 0.9), (0.6, 0.2), (0.7, -0.1)])
def test_forcing_amplitude_is_the_limit_of_the_sum(alpha: float, beta: float) -> None:
    p = 2 * alpha + 2 * beta - 1
    time = 40.0 if alpha < 0.3 else 300.0
    limit = amplitudes.forcing_amplitude(alpha, beta) * time ** (-p / (2 * alpha))
    assert power_sum_decay(2 * alpha + 2 * beta, 2 * alpha, time) / limit == pytest.approx(1, abs=1e-6)


def test_published_digits() -> None:
    assert amplitudes.memory_amplitude(0.4) == pytest.approx(0.91080, abs=5e-6)
    assert amplitudes.omega_amplitude(0.7, 2.0) == pytest.approx(0.761919, abs=5e-7)
    assert amplitudes.omega_amplitude(0.4, 2.0) == pytest.approx(0.820578, abs=5e-7)
    law = amplitudes.floor_law(0.7, 0.3, 2.0)
    assert law == (pytest.approx(3.0365, abs=5e-5), pytest.approx(-1.0), False)


def test_profile_mass_is_the_integral_of_the_profile() -> None:
    alpha = 0.8
    mode = np.arange(1, 200_001, dtype=np.float64)
    head = 0.5 * float(np.sum(mode ** (-2 * alpha)))
    tail = 0.5 * float(mpmath.zeta(2 * alpha, 200_001))
    assert amplitudes.profile_mass(alpha) == pytest.approx(head + tail, rel=1e-12)


@given(st.floats(-0.99, 0.99), st.floats(-40.0, 20.0), st.floats(0.01, 60.0))
@settings(max_examples=30)
def test_logistic_moment(power: float, low: float, length: float) -> None:
    high = low + length
    knots = [low, *(x for x in (-20, -5, 0, 5, 20) if low < x < high), high]
    with mpmath.workdps(25):
        expected = mpmath.quad(lambda v: mpmath.exp(power * v) / (1 + mpmath.exp(v)), knots)
    assert amplitudes.logistic_moment(power, low, high) == pytest.approx(float(expected), rel=1e-11)


def test_logistic_moment_with_infinite_ends() -> None:
    for power in (0.1, 0.5, 0.9):
        whole = math.pi / math.sin(math.pi * power)
        assert amplitudes.logistic_moment(power, -math.inf, math.inf) == pytest.approx(whole, rel=1e-13)
    assert amplitudes.logistic_moment(0.0, -3.0, math.inf) == pytest.approx(3 + math.log1p(math.exp(-3.0)), rel=1e-13)


@pytest.mark.parametrize("alpha", [0.05, 0.2, 0.25, 0.4, 0.5, 0.7, 1.5, 6.0])
@pytest.mark.parametrize("ratio", [1.01, 2.0, 50.0])
def test_omega_amplitude_solves_its_equation(alpha: float, ratio: float) -> None:
    w = amplitudes.omega_amplitude(alpha, ratio)
    with mpmath.workdps(20):
        integral = mpmath.quad(lambda x: 1 / (1 + x ** (2 * alpha) / w), [0, 1e-3, 0.03, 0.3, 1, ratio])
    assert float(integral) == pytest.approx(1.0, abs=1e-7)


def log_integral(function: Callable[[mpmath.mpf], mpmath.mpf]) -> float:
    """Integral over 0 < x < infinity with x = e^v, cut where powers of x above 0.15 have died out."""
    knots = [-160, -80, -40, -20, -8, 0, 8, 20, 40, 80, 160]
    with mpmath.workdps(20):
        return float(mpmath.quad(lambda v: mpmath.exp(v) * function(mpmath.exp(v)), knots))


@pytest.mark.parametrize("alpha", [0.6, 0.7, 1.0, 3.0])
def test_omega_amplitude_at_infinite_ambient_dimension(alpha: float) -> None:
    w = amplitudes.omega_amplitude(alpha, math.inf)
    integral = log_integral(lambda x: 1 / (1 + x ** (2 * alpha) / w))
    assert integral == pytest.approx(1.0, abs=1e-10)
    assert amplitudes.omega_amplitude(alpha, 1e9) == pytest.approx(w, rel=1e9 ** (1 - 2 * alpha) * 10 + 1e-12)


def finite_width_floor(alpha: float, beta: float, width: int, ratio: int) -> tuple[float, float]:
    """(omega, F0) of the deterministic equivalent at finite width, by direct sums and bisection."""
    mode = np.arange(ratio * width, 0, -1, dtype=np.float64)
    eigenvalues, energy = mode ** (-2 * alpha), mode ** (-2 * beta)

    def excess(log_omega: float) -> float:
        x = math.exp(log_omega) * eigenvalues
        return float(np.sum(x / (1 + x))) / width - 1

    omega = math.exp(brentq(excess, 0.0, 60.0, xtol=1e-14))
    return omega, float(np.sum(eigenvalues * energy / (1 + omega * eigenvalues)))


@pytest.mark.parametrize(("alpha", "beta"), [(0.4, 0.3), (0.7, 0.3), (0.2, 0.4), (0.7, 0.6), (0.3, 0.7), (0.2, 1.2)])
def test_omega_and_floor_are_limits_of_the_finite_width(alpha: float, beta: float) -> None:
    law = amplitudes.floor_law(alpha, beta, 2.0)
    omega_ratio, floor_ratio = [], []
    for width in (300, 3_000, 30_000, 300_000):
        omega, floor = finite_width_floor(alpha, beta, width, 2)
        omega_ratio.append(omega / (amplitudes.omega_amplitude(alpha, 2.0) * width ** (2 * alpha)))
        floor_ratio.append(floor / (law.amplitude * width**law.width_exponent))
    for ratios in (omega_ratio, floor_ratio):
        distances = np.abs(np.array(ratios) - 1)
        assert (np.diff(distances) < 0).all(), ratios
        # the distance shrinks geometrically: Aitken's extrapolation of the last three lands on 1
        a, b, c = ratios[1:]
        assert c - (c - b) ** 2 / (c - 2 * b + a) == pytest.approx(1, abs=0.01), ratios


def test_floor_on_the_line_has_a_logarithm() -> None:
    law = amplitudes.floor_law(0.7, 0.5, 2.0)
    assert law.logarithm
    ratios = [
        finite_width_floor(0.7, 0.5, width, 2)[1] / (law.amplitude * width**law.width_exponent * math.log(width))
        for width in (1_000, 100_000)
    ]
    assert abs(ratios[1] - 1) < abs(ratios[0] - 1) < 0.06


@pytest.mark.parametrize(("alpha", "beta"), [(0.7, 0.3), (0.6, 0.2), (1.2, -0.3)])
def test_floor_at_infinite_ambient_dimension(alpha: float, beta: float) -> None:
    law = amplitudes.floor_law(alpha, beta, math.inf)
    w = amplitudes.omega_amplitude(alpha, math.inf)
    integral = log_integral(lambda x: x ** (-2 * beta) / (x ** (2 * alpha) + w))
    assert law.amplitude == pytest.approx(integral, rel=1e-10)


def test_bulk_kernel_amplitude() -> None:
    alpha, ratio, width = 0.2, 2.0, 512
    mode = np.arange(1, 1025, dtype=np.float64)
    exact = float(np.sum(mode ** (-4 * alpha)) + np.sum(mode ** (-2 * alpha)) ** 2 / width)
    assert exact == pytest.approx(37.3292, abs=5e-5)
    ratios = []
    for size in (1e3, 1e9, 1e27, 1e60):
        ambient = mpmath.mpf(ratio * size)
        traces = [mpmath.zeta(s) + ambient ** (1 - s) / (1 - s) + ambient**-s / 2 for s in (4 * alpha, 2 * alpha)]
        ratios.append(float((traces[0] + traces[1] ** 2 / size) / size ** (1 - 4 * alpha)))
    limit = amplitudes.bulk_kernel_amplitude(alpha, ratio)
    assert ratios[-1] == pytest.approx(limit, rel=1e-9)
    assert exact / width ** (1 - 4 * alpha) == pytest.approx(limit, rel=0.2)


def test_feature_amplitude_is_the_limit_of_the_scattered_energy() -> None:
    alpha, beta, time = 0.9, 1.2, 1e4
    # zeta(2 beta)/M times the infinite sum of lambda exp(-2 T lambda)
    direct = float(mpmath.zeta(2 * beta)) * power_sum_decay(2 * alpha, 2 * alpha, time)
    limit = amplitudes.feature_amplitude(alpha, beta) * time ** -(1 - 1 / (2 * alpha))
    assert direct / limit == pytest.approx(1, abs=1e-5)


def test_forcing_surrogate_is_the_sum_it_says() -> None:
    alpha, beta, width = 0.7, 0.6, 9
    times = np.array([[0.0, 1.0], [10.0, 1e3]])
    found = amplitudes.forcing_surrogate(alpha, beta, width, times)
    assert found.shape == times.shape
    for index, time in np.ndenumerate(times):
        total = 0.0
        for j in range(1, width + 1):
            scattered = sum(i ** (-2 * beta) for i in range(1, j + 1)) / width
            total += j ** (-2 * alpha) * (j ** (-2 * beta) + scattered) * math.exp(-2 * time * j ** (-2 * alpha))
        assert found[index] == pytest.approx(total, rel=1e-13)
    assert amplitudes.forcing_surrogate(alpha, beta, width, 1.0).shape == ()


def test_forcing_surrogate_resembles_sampled_features() -> None:
    alpha, beta, width, time = 0.7, 0.9, 60, 20.0
    rng = np.random.default_rng(5)
    mode = np.arange(1, 2 * width + 1, dtype=np.float64)
    root, target = mode**-alpha, mode**-beta
    draws = []
    for _ in range(200):
        features = root[:, None] * rng.standard_normal((2 * width, width)) / math.sqrt(width)
        vectors, singular, _ = np.linalg.svd(features, full_matrices=False)
        draws.append(np.sum((vectors.T @ (root * target)) ** 2 * np.exp(-2 * time * singular**2)))
    mean, error = np.mean(draws), np.std(draws) / math.sqrt(len(draws))
    surrogate = float(amplitudes.forcing_surrogate(alpha, beta, width, time))
    assert error < 0.05 * mean
    assert abs(surrogate / mean - 1) < 0.10 + 4 * error / mean


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: amplitudes.memory_amplitude(0.25), "alpha"),
        (lambda: amplitudes.memory_amplitude(math.nan), "alpha"),
        (lambda: amplitudes.profile_mass(0.5), "alpha"),
        (lambda: amplitudes.omega_amplitude(0.7, 1.0), "ratio"),
        (lambda: amplitudes.omega_amplitude(0.5, math.inf), "ratio"),
        (lambda: amplitudes.omega_amplitude(0.4, 1e13), "ratio"),
        (lambda: amplitudes.omega_amplitude(0.7, math.nan), "ratio"),
        (lambda: amplitudes.floor_law(0.3, 0.1, 2.0), "2 alpha"),
        (lambda: amplitudes.feature_amplitude(0.7, 0.4), "beta"),
        (lambda: amplitudes.feature_amplitude(0.4, 0.7), "alpha"),
        (lambda: amplitudes.bulk_kernel_amplitude(0.25, 2.0), "alpha"),
        (lambda: amplitudes.bulk_kernel_amplitude(0.2, math.inf), "ratio"),
        (lambda: amplitudes.forcing_amplitude(0.001, 10.0), "alpha"),
        (lambda: amplitudes.forcing_surrogate(0.7, 0.6, 0, 1.0), "width"),
        (lambda: amplitudes.forcing_surrogate(0.7, 0.6, 4, [-1.0]), "intrinsic_time"),
        (lambda: amplitudes.forcing_surrogate(0.7, 0.6, 4, math.nan), "intrinsic_time"),
    ],
)
def test_bad_input_is_named(call, word: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=word):
        call()
