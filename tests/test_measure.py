"""Measured exponents against analytic derivatives, scipy's regression and repeated noise."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

from rfsim.checks import InputError
from rfsim.measure import agreement, family_threshold, fit_exponent, local_exponents, power_window

T = np.geomspace(1.0, 1e6, 200)
FLOORED = T**-0.5 + 0.01
LEVELS = {"one standard error": 2 * stats.norm.cdf(1.0) - 1, "two": 2 * stats.norm.cdf(2.0) - 1}
TINY = 1e-5  # chance that a correct coverage count leaves its binomial bounds on one side


def binomial_bounds(trials: int, probability: float) -> tuple[float, float]:
    return stats.binom.ppf(TINY, trials, probability), stats.binom.isf(TINY, trials, probability)


# --- local exponents ------------------------------------------------------------------------------------------------


def uneven(points: int) -> np.ndarray:
    """A smooth map of a uniform grid: spacing varies by a factor of 9, shrinks like 1/points."""
    u = np.linspace(0.0, 1.0, points)
    return np.exp(5 * (u + 0.8 * np.sin(2 * np.pi * u) / (2 * np.pi)))


def test_local_exponents_converge_at_second_order_on_uneven_grids():
    errors = []
    for points in (41, 81, 161, 321):
        t = uneven(points)
        exact = (0.5 * t**-0.5 + 1.25 * t**-1.25) / (t**-0.5 + t**-1.25)
        found = local_exponents(t, t**-0.5 + t**-1.25)
        np.testing.assert_array_equal(found.time, t)
        errors.append(np.abs(found.exponent - exact).max())
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert np.all(orders > 1.8), orders
    assert errors[-1] < 3e-4


@settings(deadline=None)
@given(
    q=st.floats(-3, 3),
    amplitude=st.floats(1e-6, 1e6),
    gaps=st.lists(st.floats(0.05, 2.0), min_size=4, max_size=30),
    smoothing=st.sampled_from([0.0, 0.3, 2.0]),
)
def test_pure_powers_are_exact_on_any_grid(q, amplitude, gaps, smoothing):
    t = np.exp(np.concatenate([[0.0], np.cumsum(gaps)]))
    y = amplitude * t**-q
    np.testing.assert_allclose(local_exponents(t, y, smoothing=smoothing).exponent, q, atol=1e-9)
    fit = fit_exponent(t, y)
    assert abs(fit.exponent - q) < 1e-11
    assert fit.amplitude == pytest.approx(amplitude, rel=1e-9)
    assert fit.points == len(t)


def test_local_exponents_subtract_the_floor_and_drop_time_zero():
    t = np.concatenate([[0.0], T])
    found = local_exponents(t, np.concatenate([[5.0], FLOORED]), floor=0.01)
    assert len(found.time) == len(T)
    np.testing.assert_allclose(found.exponent, 0.5, atol=1e-9)
    plain = local_exponents(T, FLOORED).exponent
    np.testing.assert_allclose(plain, 0.5 * T**-0.5 / FLOORED, atol=1e-3)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_local_errors_are_the_scatter_of_repeated_noise(smoothing):
    t = uneven(40)
    truth = 2 * t**-0.7 + 0.5
    stderr = 1e-3 * truth * (1 + np.sin(np.arange(40)) ** 2)
    rng = np.random.default_rng(11)
    repeats = 2000
    fits = [
        local_exponents(t, truth + stderr * rng.standard_normal(40), floor=0.5, smoothing=smoothing).exponent
        for _ in range(repeats)
    ]
    stated = local_exponents(t, truth, floor=0.5, stderr=stderr, smoothing=smoothing).stderr
    ratio = (np.std(fits, axis=0, ddof=1) / stated) ** 2 * (repeats - 1)
    tail = 1e-4 / (2 * 40)
    low, high = stats.chi2.ppf([tail, 1 - tail], repeats - 1)
    assert np.all((ratio > 0.99 * low) & (ratio < 1.01 * high))  # 1 %: the logarithm is linear only to first order


def test_smoothing_lowers_the_noise_and_keeps_the_slope():
    t = np.geomspace(1, 1e4, 201)
    truth = t**-0.5 + t**-1.25
    exact = (0.5 * t**-0.5 + 1.25 * t**-1.25) / truth
    sharp = local_exponents(t, truth, stderr=0.01 * truth)
    smooth = local_exponents(t, truth, stderr=0.01 * truth, smoothing=0.25)
    assert np.all(smooth.stderr < 0.4 * sharp.stderr)
    np.testing.assert_allclose(smooth.exponent, exact, atol=0.01)


def test_error_bars_grow_at_machine_precision_above_the_floor():
    y = 1.0 + 1e-12 * T**-0.5
    found = local_exponents(T, y, floor=1.0)
    z = (found.exponent - 0.5) / found.stderr
    assert np.abs(found.exponent - 0.5).max() > 0.1  # rounding alone spoils the late slopes
    assert np.abs(z).max() < 3
    fit = fit_exponent(T, y, floor=1.0)
    assert abs(fit.exponent - 0.5) <= 2 * fit.uncertainty
    assert "standard errors of 0" in fit.reason


# --- known floor ------------------------------------------------------------------------------------------------------


def test_the_fit_is_the_regression_on_log_uniform_times():
    def curve(t):
        return 3 * t**-0.4 + 40 * t**-1.1

    recorded = np.unique(np.concatenate([np.arange(1, 60), np.arange(300, 3000, 7), np.geomspace(60, 2e4, 60)]))
    window = (20.0, 1e4)
    grid = np.linspace(np.log(window[0]), np.log(window[1]), 200)
    exact = stats.linregress(grid, np.log(curve(np.exp(grid))))
    fit = fit_exponent(recorded, curve(recorded), window=window)
    assert fit.exponent == pytest.approx(-exact.slope, abs=1e-5)
    assert fit.amplitude == pytest.approx(np.exp(exact.intercept), rel=1e-4)
    inside = (recorded >= 20) & (recorded <= 1e4)
    naive = stats.linregress(np.log(recorded[inside]), np.log(curve(recorded[inside])))
    assert abs(naive.slope - exact.slope) > 1e-3  # most records are late: the plain regression is another number
    assert fit.window == window
    assert fit.points == inside.sum()
    assert fit.floor_uncertainty == 0.0


def test_finite_window_exponent_of_an_accumulation_integral():
    """The local exponents tabulated for int (1+T-u)^-.75 (1+u)^-.5 du, by quadrature here."""

    def integral(t):
        return integrate.quad(
            lambda u: (1 + t - u) ** -0.75 * (1 + u) ** -0.5, 0, t, points=[min(1.0, t / 2)], limit=400
        )[0]

    t = np.geomspace(50, 2e4, 90)
    found = local_exponents(t, [integral(s) for s in t])
    at = np.interp(np.log([1e2, 1e3, 1e4]), np.log(t), found.exponent)
    np.testing.assert_allclose(at, [0.1374, 0.2027, 0.2272], atol=2e-4)


def test_the_floor_example_known_floor():
    fit = fit_exponent(T, FLOORED, floor=0.01)
    assert abs(fit.exponent - 0.5) < 1e-6
    assert abs(fit.exponent - 0.5) <= fit.uncertainty < 1e-6
    assert fit.reason == ""


def test_the_floor_example_without_floor_is_flagged():
    fit = fit_exponent(T, FLOORED)
    assert 0.1 < abs(fit.exponent - 0.5) < 0.3  # what a plain log-log fit does
    assert abs(fit.exponent - 0.5) < fit.uncertainty
    assert "not one power" in fit.reason


@pytest.mark.parametrize("window", [(10.0, 1e3), (1e2, 1e5), (5.0, 9e5)])
@pytest.mark.parametrize(
    ("curve", "local"),
    [
        (lambda t: np.log(t) / t, lambda t: 1 - 1 / np.log(t)),
        (lambda t: 1 / (t * np.log(t) ** 2), lambda t: 1 + 2 / np.log(t)),
        (lambda t: t**-0.5 + t**-0.75, lambda t: (0.5 + 0.75 * t**-0.25) / (1 + t**-0.25)),
    ],
)
def test_systematic_covers_the_drift_of_slowly_varying_laws(curve, local, window):
    t = np.geomspace(2.0, 1e6, 300)
    fit = fit_exponent(t, curve(t), window=window)
    drift = np.abs(local(np.geomspace(*window, 50)) - fit.exponent).max()
    assert drift <= 1.02 * fit.systematic
    assert fit.systematic <= 2 * drift
    assert fit.statistical < 0.01 * drift


@pytest.mark.parametrize("given_stderr", [True, False])
def test_coverage_with_a_known_floor(given_stderr):
    """The error of one standard error covers in 68 % of repeats, and the uncertainty at least as often."""
    t = np.geomspace(1, 1e4, 80)
    truth = 2 * t**-0.6
    relative = 0.03 * (1 + np.linspace(0, 1, 80)) if given_stderr else np.full(80, 0.03)
    rng = np.random.default_rng(21)
    trials = 600
    counts = dict.fromkeys(LEVELS, 0)
    total = dict.fromkeys(LEVELS, 0)
    for _ in range(trials):
        y = truth * (1 + relative * rng.standard_normal(80)) + 0.3
        fit = fit_exponent(t, y, floor=0.3, stderr=relative * truth if given_stderr else None)
        for factor, level in enumerate(LEVELS, start=1):
            counts[level] += abs(fit.exponent - 0.6) <= factor * fit.statistical
            total[level] += abs(fit.exponent - 0.6) <= factor * fit.uncertainty
    slack = 1.0 if given_stderr else 0.97  # the roughness itself is an estimate from 76 second differences
    for level, probability in LEVELS.items():
        low, high = binomial_bounds(trials, probability)
        assert slack * low <= counts[level] <= high / slack
        assert total[level] >= max(counts[level], slack * low)


def test_noise_is_not_taken_for_drift():
    """Of a pure power, halves that differ by more than 8 statistical errors (2 of their own) are rare: below 6 %."""
    t = np.geomspace(1, 1e4, 80)
    rng = np.random.default_rng(22)
    trials = 300
    large = 0
    for _ in range(trials):
        y = t**-0.6 * (1 + 0.03 * rng.standard_normal(80))
        fit = fit_exponent(t, y, stderr=0.03 * t**-0.6)
        large += fit.systematic > 8 * fit.statistical
    assert large <= binomial_bounds(trials, 0.06)[1]


def test_growing_and_humped_curves():
    growing = fit_exponent(T, 3 * T**0.25)
    assert growing.exponent == pytest.approx(-0.25, abs=1e-12)
    hump = T**0.5 / (1 + (T / 1e3) ** 1.0)
    fit = fit_exponent(T, hump)
    assert fit.systematic > 0.4
    assert "not one power" in fit.reason


# --- fitted floor -----------------------------------------------------------------------------------------------------


def test_the_floor_example_fitted_floor():
    fit = fit_exponent(T, FLOORED, floor="fit")
    assert abs(fit.exponent - 0.5) < 0.005
    assert abs(fit.exponent - 0.5) <= fit.uncertainty < 0.005
    assert fit.floor == pytest.approx(0.01, rel=1e-9)
    assert fit.amplitude == pytest.approx(1.0, rel=1e-9)
    assert fit.reason == ""


@settings(deadline=None, max_examples=40)
@given(q=st.floats(0.2, 2.0), ratio=st.floats(-4, 4), amplitude=st.floats(1e-3, 1e3))
def test_fitted_floor_recovers_noise_free_curves(q, ratio, amplitude):
    """Also floors far above the signal: the floor is 10^ratio times the signal in the middle of the window."""
    t = np.geomspace(1, 1e4, 60)
    floor = amplitude * 100**-q * 10**ratio
    fit = fit_exponent(t, floor + amplitude * t**-q, floor="fit")
    assert abs(fit.exponent - q) <= 4 * fit.uncertainty + 1e-12
    assert fit.uncertainty < 1e-5
    assert abs(fit.floor - floor) <= 4 * fit.floor_uncertainty + 1e-12 * amplitude


def test_fitted_floor_is_the_least_squares_solution():
    """An independent minimiser (all three parameters free) finds the same weighted optimum and covariance."""
    t = np.geomspace(1, 1e5, 70)
    rng = np.random.default_rng(5)
    truth = 0.02 + 1.5 * t**-0.55
    stderr = 0.01 * truth
    y = truth + stderr * rng.standard_normal(70)
    fit = fit_exponent(t, y, floor="fit", stderr=stderr)
    best, covariance = optimize.curve_fit(
        lambda t, f, a, q: f + a * t**-q, t, y, p0=[0.03, 1.0, 0.7], sigma=stderr, absolute_sigma=True
    )
    np.testing.assert_allclose([fit.floor, fit.amplitude, fit.exponent], best, rtol=1e-5)
    assert fit.statistical == pytest.approx(np.sqrt(covariance[2, 2]), rel=0.05)
    assert fit.floor_uncertainty == pytest.approx(np.sqrt(covariance[0, 0]), rel=0.01)


def test_relative_weights_follow_log_time_and_not_the_density_of_records():
    def curve(t):
        return t**-0.5 + 0.5 * t**-0.9 + 0.02

    even = np.geomspace(1, 1e5, 400)
    crowded = np.unique(np.concatenate([even, np.geomspace(3e4, 1e5, 2000)]))
    a = fit_exponent(even, curve(even), floor="fit")
    b = fit_exponent(crowded, curve(crowded), floor="fit")
    assert b.exponent == pytest.approx(a.exponent, abs=2e-3)


@pytest.mark.parametrize("floor", [0.02, 1.0])
@pytest.mark.parametrize("given_stderr", [True, False])
def test_coverage_with_a_fitted_floor(floor, given_stderr):
    t = np.geomspace(1, 1e4, 60)
    truth = floor + 2 * t**-0.6
    relative = 0.01
    rng = np.random.default_rng(31)
    trials = 200
    counts = dict.fromkeys(LEVELS, 0)
    floors = 0
    for _ in range(trials):
        y = truth * (1 + relative * rng.standard_normal(60))
        fit = fit_exponent(t, y, floor="fit", stderr=relative * truth if given_stderr else None)
        for factor, level in enumerate(LEVELS, start=1):
            counts[level] += abs(fit.exponent - 0.6) <= factor * fit.uncertainty
        floors += abs(fit.floor - floor) <= 2 * fit.floor_uncertainty
    for level, probability in LEVELS.items():
        assert counts[level] >= binomial_bounds(trials, probability)[0]
    assert floors >= binomial_bounds(trials, LEVELS["two"])[0]


def test_an_unidentified_floor_is_said_to_be_one():
    t = np.geomspace(1, 100, 40)
    y = t**-0.5 + 1e-3
    free = fit_exponent(t, y, floor="fit", stderr=0.01 * y)
    fixed = fit_exponent(t, y, floor=1e-3, stderr=0.01 * y)
    assert "floor is not identified" in free.reason
    assert free.floor >= 0
    assert free.statistical > 2 * fixed.statistical
    assert abs(free.exponent - 0.5) < 2 * free.uncertainty


def test_a_fitted_floor_is_never_negative():
    t = np.geomspace(1, 1e4, 60)
    fit = fit_exponent(t, t**-0.5 - 5e-3, floor="fit")
    assert fit.floor == 0.0
    assert fit.exponent > 0.5
    assert "floor is not identified" in fit.reason


def test_the_interval_is_where_the_profiled_chi_square_has_risen_by_one():
    """Non-negative least squares at fixed q is the witness; the floor is loosely known, so the sides differ."""
    t = np.geomspace(1, 30, 25)
    y = 0.3 + t**-0.5
    fit = fit_exponent(t, y, floor="fit", stderr=0.08 * y)

    def misfit(q):
        columns = np.stack([np.ones(25), t**-q], axis=1) / (0.08 * y[:, None])
        return optimize.nnls(columns, np.full(25, 1 / 0.08))[1] ** 2

    rise = [misfit(fit.exponent + side * fit.statistical) - misfit(fit.exponent) for side in (-1, 1)]
    assert min(rise) == pytest.approx(1.0, abs=1e-3)
    assert max(rise) > 1.02  # or the case could not tell the sides apart


def test_a_wrong_shape_shows_in_the_systematic_part():
    t = np.geomspace(2, 1e6, 200)
    fit = fit_exponent(t, 0.001 + np.log(t) * t**-0.7, floor="fit")
    assert fit.systematic > 10 * fit.statistical
    assert "not one power and a floor" in fit.reason


def test_residuals_beyond_stderr_widen_the_error():
    t = np.geomspace(1, 1e4, 60)
    rng = np.random.default_rng(8)
    y = (0.05 + t**-0.5) * (1 + 0.05 * rng.standard_normal(60))
    honest = fit_exponent(t, y, floor="fit", stderr=0.05 * y)
    optimistic = fit_exponent(t, y, floor="fit", stderr=0.005 * y)
    assert optimistic.statistical == pytest.approx(honest.statistical, rel=0.3)


# --- windows ----------------------------------------------------------------------------------------------------------


def test_window_of_a_pure_power_and_of_a_known_floor_is_everything():
    assert power_window(T, 7 * T**-1.3) == (T[0], T[-1])
    assert power_window(T, FLOORED, floor=0.01) == (T[0], T[-1])
    assert power_window(np.concatenate([[0.0], T]), np.concatenate([[9.0], T**-1.3]), start=5, stop=1e4) == (
        T[T >= 5][0],
        T[T <= 1e4][-1],
    )


def test_window_of_an_unknown_floor_ends_where_the_exponent_has_drifted_by_the_band():
    t1, t2 = power_window(T, FLOORED)
    assert t1 == 1.0
    drift = 0.5 * t1**-0.5 / (t1**-0.5 + 0.01) - 0.5 * t2**-0.5 / (t2**-0.5 + 0.01)
    assert 0.08 < drift <= 0.105
    assert abs(fit_exponent(T, FLOORED, window=(t1, t2)).exponent - 0.5) < 0.05


def test_windows_of_a_broken_power():
    t = np.geomspace(1, 1e6, 400)
    y = np.where(t < 300, t**-0.3, 300**0.7 / t)
    t1, t2 = power_window(t, y)
    assert 300 <= t1 < 600
    assert t2 == t[-1]
    assert fit_exponent(t, y, window=(t1, t2)).exponent == pytest.approx(1.0, abs=1e-6)
    t1, t2 = power_window(t, y, stop=1e3)
    assert t1 == 1.0
    assert 150 < t2 <= 300
    assert fit_exponent(t, y, window=(t1, t2)).exponent == pytest.approx(0.3, abs=1e-6)


def test_window_stops_before_an_exponential_cut_off():
    t1, t2 = power_window(T, T**-0.6 * np.exp(-T / 1e4))
    assert t1 == 1.0
    assert 0.05 < t2 / 1e4 < 0.105  # local exponent .6 + T/1e4 against a band of .1
    assert fit_exponent(T, T**-0.6 * np.exp(-T / 1e4), window=(t1, t2)).exponent == pytest.approx(0.6, abs=0.05)


def test_window_of_log_periodic_curves():
    def curve(relative):
        return T**-1.75 * (1 + relative * np.cos(2 * np.pi * np.log(T) / 1.4))

    assert power_window(T, curve(0.005)) == (T[0], T[-1])
    with pytest.raises(InputError, match="no stretch of half a decade"):
        power_window(T, curve(0.08))
    t1, t2 = power_window(T, curve(0.08), smoothing=0.7)
    assert t1 < 3
    assert t2 > 3e5
    fit = fit_exponent(T, curve(0.08), window=(t1, t2))
    assert fit.exponent == pytest.approx(1.75, abs=0.01)


@pytest.mark.parametrize("given_stderr", [True, False])
def test_noise_neither_hides_a_break_nor_tears_a_power(given_stderr):
    t = np.geomspace(1, 1e6, 300)
    rng = np.random.default_rng(17)
    noise = 1 + 0.02 * rng.standard_normal(300)
    broken = np.where(t < 300, t**-0.3, 300**0.7 / t) * noise
    t1, t2 = power_window(t, broken, stderr=0.02 * broken if given_stderr else None)
    assert 200 < t1 < 800
    assert t2 > 5e5
    power = t**-0.3 * noise
    t1, t2 = power_window(t, power, stderr=0.02 * power if given_stderr else None)
    assert np.log10(t2 / t1) > 5


def test_a_slow_drift_does_not_hide_in_the_noise_of_local_exponents():
    x = np.log(T)
    stderr = 0.1 * np.exp(-0.3 * x - 0.02 * x**2)  # local exponent .3 + .04 log T
    y = 10 * stderr * (1 + 0.1 * np.random.default_rng(7).standard_normal(200))
    t1, t2 = power_window(T, y, stderr=stderr)
    between_halves = 0.04 * np.log(t2 / t1) / 2
    assert between_halves < 0.13  # .05 and two standard errors; the whole record has .28


def test_window_ends_where_values_reach_the_floor():
    y = T**-0.5
    y[120] = 0.0
    assert power_window(T, y) == (T[0], T[119])


def test_window_of_a_long_dense_record():
    steps = np.arange(0, 20_001.0)
    t1, t2 = power_window(steps, 0.1 + (1 + steps) ** -0.5, floor=0.1)
    assert t1 < 6  # (1+T)^-.5 has local exponent .5 T/(1+T)
    assert t2 == 20_000


def test_no_power_no_window():
    with pytest.raises(InputError, match="no stretch of half a decade"):
        power_window(T, np.exp(-((np.log(T)) ** 2)))
    with pytest.raises(InputError, match="no stretch of half a decade"):
        power_window(np.linspace(100, 200, 50), np.linspace(100, 200, 50) ** -0.5)  # too short


# --- agreement --------------------------------------------------------------------------------------------------------


def test_threshold_inverts_the_family_tail():
    for points, rate in ((1, 0.05), (200, 1e-3), (10**6, 1e-9)):
        assert points * 2 * stats.norm.sf(family_threshold(points, rate)) == pytest.approx(rate, rel=1e-9)
        assert points * 2 * stats.t.sf(family_threshold(points, rate, 15), 15) == pytest.approx(rate, rel=1e-7)
    assert family_threshold(10, 0.01, 5) > family_threshold(10, 0.01, 50) > family_threshold(10, 0.01)


@pytest.mark.parametrize("correlated", [False, True])
def test_false_alarms_come_at_most_at_the_stated_rate(correlated):
    points, runs, trials, rate = 30, 8, 1500, 0.1
    rng = np.random.default_rng(41)
    exact = np.geomspace(3, 0.1, points)
    alarms = normal_alarms = 0
    for _ in range(trials):
        draws = rng.standard_normal((runs, points))
        if correlated:
            draws = np.cumsum(draws, axis=1) / np.sqrt(np.arange(1, points + 1))
        sample = exact * (1 + 0.1 * draws)
        stderr = sample.std(axis=0, ddof=1) / np.sqrt(runs)
        alarms += not agreement(sample.mean(axis=0), exact, stderr, runs=runs, false_alarm_rate=rate).passed
        normal_alarms += not agreement(sample.mean(axis=0), exact, stderr, false_alarm_rate=rate).passed
    assert alarms <= binomial_bounds(trials, rate)[1]
    if correlated:
        assert alarms < binomial_bounds(trials, rate)[0]  # conservative
    else:
        independent = 1 - (1 - rate / points) ** points
        assert binomial_bounds(trials, independent)[0] <= alarms
    assert normal_alarms > binomial_bounds(trials, rate)[1]  # 8 runs: the normal threshold would cry wolf


def test_a_wrong_curve_fails():
    rng = np.random.default_rng(2)
    exact = np.geomspace(3, 0.1, 40)
    mean = exact * (1 + 0.01 * rng.standard_normal(40))
    good = agreement(mean, exact, 0.01 * exact)
    bad = agreement(mean, exact * 1.06, 0.01 * exact)
    assert good.passed
    assert not bad.passed
    assert bad.max_abs_z > bad.threshold
    assert good.max_abs_z == pytest.approx(np.abs((mean - exact) / (0.01 * exact)).max())
    assert good.false_alarm_rate == 1e-3


def test_points_that_are_not_random_must_be_equal():
    mean, stderr = np.array([2.0, 1.0]), np.array([1e-15, 0.1])
    assert agreement(mean, [2.0 + 1e-12, 1.05], stderr)[-3:] == (True, 1, 1)
    assert not agreement(mean, [2.0 + 1e-6, 1.05], stderr).passed
    alone = agreement([0.0], [0.0], [0.0])
    assert alone.passed
    assert alone.max_abs_z == 0.0
    assert np.isfinite(alone.threshold)


# --- bad input --------------------------------------------------------------------------------------------------------

T5 = [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: local_exponents([-1.0, 1, 2, 3], [1, 1, 1, 1]), "time"),
        (lambda: local_exponents([1.0, 1, 2, 3], [1, 1, 1, 1]), "time must increase"),
        (lambda: local_exponents([1.0, np.nan, 2], [1, 1, 1]), "time"),
        (lambda: local_exponents([1.0, 2, 3], [1, np.inf, 1]), "value"),
        (lambda: local_exponents([1.0, 2, 3], [1, 1]), "value has 2 entries"),
        (lambda: local_exponents([0.0, 2, 3], [1, 1, 1]), "time has 2 positive"),
        (lambda: local_exponents([1.0, 2, 3], [1, 1, 1], stderr=[1, -1, 1]), "stderr"),
        (lambda: local_exponents([1.0, 2, 3], [1, 1, 1], stderr=[1, 1]), "stderr has 2"),
        (lambda: local_exponents([1.0, 2, 3], [1, 1, 1], smoothing=-1), "smoothing"),
        (lambda: local_exponents([1.0, 2, 3], [1, 1, 1], floor=np.nan), "floor"),
        (lambda: local_exponents([1.0, 20, 300], [2, 1, 1], floor=1.0), "at T = 20 does not exceed floor"),
        (lambda: local_exponents([1.0, 2, 3], [2, 1, -1]), "at T = 3 does not exceed floor"),
        (lambda: fit_exponent(T5[:4], T5[:4]), "time has 4 positive"),
        (lambda: fit_exponent(T, FLOORED, window=(3.0, 3.1)), "window .* holds 1 recorded"),
        (lambda: fit_exponent(T, FLOORED, window=(3.0, 2.0)), "window must have 0 < T1 < T2"),
        (lambda: fit_exponent(T, FLOORED, window=(3.0, 1e8)), "window .* beyond the recorded"),
        (lambda: fit_exponent(T, FLOORED, window=(3.0,)), "window must be two"),
        (lambda: fit_exponent(T, FLOORED, window=7.0), "window must be two"),
        (lambda: fit_exponent(T, FLOORED, window=(1.0, np.nan)), "window must be two"),
        (lambda: fit_exponent(T, FLOORED, points=3), "points"),
        (lambda: fit_exponent(T, FLOORED, floor="guess"), 'floor must be a number or "fit"'),
        (lambda: fit_exponent(T, FLOORED, floor=0.02), r"at T = 10234.1 does not exceed floor 0.02"),
        (lambda: fit_exponent(T, FLOORED, floor="fit", window=(1.0, 1.8)), "log-halves"),
        (lambda: fit_exponent(T, FLOORED - 0.011, floor="fit"), "must be positive"),
        (lambda: fit_exponent(T, T**0.5, floor="fit"), "does not decay"),
        (lambda: fit_exponent(T, np.ones(200), floor="fit"), "does not decay"),
        (lambda: fit_exponent(T, np.zeros(200), floor="fit", stderr=np.zeros(200)), "value is 0"),
        (lambda: power_window(T, FLOORED, tolerance=0), "tolerance"),
        (lambda: power_window(T, FLOORED, smoothing=-0.1), "smoothing"),
        (lambda: power_window(T, FLOORED, start=10, stop=5), "start"),
        (lambda: power_window(T, FLOORED, floor=2.0), "no stretch"),
        (lambda: family_threshold(0, 0.1), "points"),
        (lambda: family_threshold(3, 1.0), "false_alarm_rate"),
        (lambda: family_threshold(3, 0.1, 0), "degrees_of_freedom"),
        (lambda: agreement([1.0, 2], [1.0], [1.0]), "one shape"),
        (lambda: agreement([1.0], [np.nan], [1.0]), "value_b"),
        (lambda: agreement([1.0], [1.0], [-1.0]), "stderr"),
        (lambda: agreement([1.0], [1.0], [1.0], runs=1), "runs"),
    ],
)
def test_bad_input_names_the_argument(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_values_at_the_floor_outside_the_window_do_no_harm():
    y = T**-0.5
    y[150:] = -1.0
    fit = fit_exponent(T, y, window=(1.0, float(T[100])))
    assert fit.exponent == pytest.approx(0.5, abs=1e-12)


def test_measuring_does_not_import_jax():
    code = "import sys, rfsim.measure; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
