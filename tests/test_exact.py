"""`rfsim.risk`: what it refuses, what it warns about, and that stability is judged by the right criterion."""

import tracemalloc
import warnings

import jax
import numpy as np
import pytest
from cases import random_case
from numpy.testing import assert_allclose, assert_array_equal

import rfsim
from rfsim import smooth
from rfsim.exact import routed
from rfsim.schedules import constant, from_arrays
from rfsim.stretches import stretches

ONE = rfsim.spectrum([1.0], [1.0], noise_var=1.0)
TWO = rfsim.spectrum([1.0, 0.25], [1.0, 1.0], floor=0.1, noise_var=1.0)


def test_stable_constant_runs_quietly():
    limit = rfsim.lr_limit(TWO, 2.0)
    curve = rfsim.risk(TWO, constant(20_000, 0.999 * limit, 2.0))
    assert curve.risk[-1] < rfsim.limiting_risk(TWO, 0.999 * limit, 2.0) < np.inf
    assert (np.diff(curve.gap) > -1e-12 * curve.gap[-1]).all()
    assert curve.gap[-1] > 200.0


@pytest.mark.parametrize("batch", [1.0, 2.0, 64.0, np.inf])
def test_unstable_constant_lr_is_refused_and_the_limit_named(batch):
    limit = rfsim.lr_limit(TWO, batch)
    for lr in (limit, 1.001 * limit, 100.0):
        with pytest.raises(rfsim.InputError, match=rf"stability limit {limit:.6g} .*lower lr.*allow"):
            rfsim.risk(TWO, constant(10, lr, batch))
    assert np.isfinite(rfsim.risk(TWO, constant(10, 1.001 * limit, batch), allow_unstable=True).risk).all()


def test_a_constant_is_judged_by_kappa_and_not_by_the_pointwise_limit():
    # one mode at batch 1: pointwise limit 1, row limit 2/3
    with pytest.raises(rfsim.InputError, match=r"0\.666667"):
        rfsim.risk(ONE, constant(10, 0.7, 1.0))
    rfsim.risk(ONE, constant(10, 0.66, 1.0))


def test_a_step_beyond_the_pointwise_limit_is_refused_by_number():
    schedule = from_arrays([0.1, 0.1, 1.2, 0.1], [1.0, 1.0, 1.0, 1.0])
    with pytest.raises(rfsim.InputError, match=r"lr 1\.2 at step 2 .*pointwise limit 1 "):
        rfsim.risk(ONE, schedule)
    schedule = from_arrays([1.2, 1.2, 1.2], [8.0, 1.0, 8.0])  # lr is fine at batch 8
    with pytest.raises(rfsim.InputError, match="at step 1"):
        rfsim.risk(ONE, schedule)
    assert rfsim.risk(ONE, schedule, allow_unstable=True).risk[-1] > 0


def test_row_mass_above_one_warns():
    schedule = from_arrays(np.r_[np.full(30, 0.7), 0.1], np.ones(31))
    with pytest.warns(rfsim.StabilityWarning, match=r"row mass reaches 1\.1.* at step 30"):
        curve = rfsim.risk(ONE, schedule, at=[31])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(rfsim.risk(ONE, schedule, at=[31], allow_unstable=True).risk, curve.risk)


def test_row_mass_below_one_is_quiet_even_where_the_certificate_fails():
    schedule = from_arrays([0.1, 0.9, 0.1], np.ones(3))  # certificate .9/.2 > 1, true row mass .81
    mass = rfsim.row_mass(ONE, schedule, at=range(4))
    assert 0.8 < mass.max() < 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rfsim.risk(ONE, schedule)


def test_warning_points_at_the_caller():
    with pytest.warns(rfsim.StabilityWarning) as caught:
        rfsim.risk(ONE, from_arrays(np.r_[np.full(30, 0.7), 0.1], np.ones(31)))
    assert caught[0].filename == __file__


def test_routes():
    case = random_case(1)
    curves = [
        rfsim.risk(case.spectrum, case.schedule, at=[0, 12], route=route, allow_unstable=True)
        for route in ("auto", "recursion", "volterra", "jump")
    ]
    assert_array_equal(curves[0].risk, curves[1].risk)
    assert_allclose(curves[2].risk, curves[1].risk, rtol=1e-12)
    assert_allclose(curves[3].risk, curves[1].risk, rtol=1e-12)
    for route in ("jump?", None, "Volterra"):
        with pytest.raises(rfsim.InputError, match="route must be one of auto, jump, recursion, volterra"):
            rfsim.risk(case.spectrum, case.schedule, route=route)


@pytest.mark.parametrize("route", ["volterra", "jump"])
def test_traced_runs_refuse_the_routes_that_need_numbers(route):
    with pytest.raises(rfsim.InputError, match=rf"{route} .*traced"):
        jax.jit(lambda s: rfsim.risk(s, constant(3, 0.1, 1.0), route=route).risk)(TWO)


# --- horizons that no array holds -------------------------------------------------------------------------------------


def test_auto_jumps_only_where_stepping_takes_seconds():
    index = np.arange(1.0, 1001.0)
    spectrum = rfsim.spectrum(index**-1.4, index**-2.0, noise_var=0.5)
    short = routed(spectrum, constant(20_000, 0.05, 2.0), at=[20_000])
    assert short.route == "recursion"
    long = routed(spectrum, constant(2_000_000, 0.05, 2.0), at=[20_000, 2_000_000])
    assert long.route == "jump"
    assert_allclose(long.curve.risk[0], short.curve.risk[0], rtol=2e-9)
    assert 0.0 < long.error < 1e-9  # a thousand modes have become few nodes
    full = routed(spectrum, constant(2_000_000, 0.05, 2.0), at=[20_000, 2_000_000], route="jump")
    assert_allclose(full.curve.risk[0], short.curve.risk[0], rtol=1e-11)
    assert_allclose(long.curve.risk, full.curve.risk, rtol=2e-9)
    assert full.error < 1e-13
    assert long.curve.risk[1] == pytest.approx(rfsim.limiting_risk(spectrum, 0.05, 2.0), rel=0.05)


def test_stretches_reach_any_horizon():
    spectrum = rfsim.spectrum([1.0, 1e-6], [1.0, 0.5], noise_var=1.0)
    long = stretches([0.1], [4.0], [10**15])
    curve = rfsim.risk(spectrum, long, at=[0, 10, 10**15])
    assert curve.risk[-1] == pytest.approx(rfsim.limiting_risk(spectrum, 0.1, 4.0), rel=1e-12)
    assert curve.risk[1] == pytest.approx(rfsim.risk(spectrum, constant(10, 0.1, 4.0)).risk[-1], rel=1e-13)
    with pytest.raises(rfsim.InputError, match="stability limit"):
        rfsim.risk(spectrum, stretches([1.9], [1.0], [10**6]))
    with pytest.raises(rfsim.InputError, match=r"at step 7 .*pointwise limit"):
        rfsim.risk(spectrum, stretches([0.1, 3.0], [4.0, 4.0], [7, 5]))
    with pytest.raises(rfsim.InputError, match="route recursion needs every step"):
        rfsim.risk(spectrum, long, route="recursion")


def test_long_schedules_warn_about_their_row_mass_like_short_ones():
    spectrum = rfsim.spectrum([1.0], [1.0], noise_var=1.0)
    with pytest.warns(rfsim.StabilityWarning, match=r"row mass reaches 1\.16"):
        rfsim.risk(spectrum, stretches([0.69, 0.7], 1.0, [1, 60]))
    with pytest.warns(rfsim.StabilityWarning, match=r"row mass reaches 1\.16"):
        rfsim.risk(spectrum, rfsim.schedules.from_arrays([0.69] + [0.7] * 60, 1.0))


def test_smooth_schedules_follow_the_arrays():
    index = np.arange(1.0, 41.0)
    spectrum = rfsim.spectrum(index**-1.2, index**-1.6, noise_var=2.0)
    steps, at = 20_000, [100, 2_000, 20_000]
    array = rfsim.schedules.power(steps, 0.1, 4.0, vartheta=0.5, exact_batch=True)
    found = routed(spectrum, smooth.power(steps, 0.1, 4.0, vartheta=0.5, exact_batch=True), at=at)
    assert found.route == "jump"
    assert_allclose(found.curve.risk, rfsim.risk(spectrum, array, at=at).risk, rtol=2e-5)
    assert found.error < 1e-5
    with pytest.raises(rfsim.InputError, match="pointwise limit"):
        rfsim.risk(spectrum, smooth.wsd(steps, 3.0, 4.0))
    # which spectrum would be unstable is not known under tracing, so nothing is refused there
    assert jax.jit(lambda s: rfsim.risk(s, constant(3, 0.9, 1.0)).risk)(TWO).shape == (4,)


def test_zero_lr_and_zero_steps_are_stable():
    assert_allclose(rfsim.risk(TWO, from_arrays([0.0, 0.0], 1.0)).risk, 2.1)
    assert_allclose(rfsim.risk(TWO, constant(0, 5.0, 1.0)).risk, [2.1])


def test_default_records_are_about_two_hundred():
    curve = rfsim.risk(TWO, constant(5000, 0.1, 4.0))
    assert curve.step[0] == 0
    assert curve.step[-1] == 5000
    assert 120 < len(curve.step) <= 201
    assert curve.step.dtype.kind == "i"
    assert len({len(getattr(curve, name)) for name in ("step", "intrinsic_time", "risk", "gap")}) == 1
    assert curve.floor == 0.1


def test_progress_is_called():
    seen = []
    rfsim.risk(TWO, constant(100, 0.1, 4.0), progress=seen.append)
    assert seen == [100]


# --- found by people who tried to break it ---------------------------------------------------------------------------


def test_a_second_gradient_or_map_compiles_nothing(caplog):
    schedule = constant(60, 0.05, 4.0)

    def compiled(work):
        with caplog.at_level("WARNING"), jax.log_compiles():
            caplog.clear()
            jax.block_until_ready(work())
            return [record.getMessage() for record in caplog.records if "Compiling" in record.getMessage()]

    def gradient(lr):
        return jax.grad(lambda rates: rfsim.terminal_risk(TWO, schedule.replace(lr=rates)))(lr)

    def mapped(noise):
        return jax.vmap(lambda one: rfsim.terminal_risk(TWO.replace(noise_var=one), schedule))(noise)

    for work, first, second in (
        (gradient, np.full(60, 0.05), np.full(60, 0.04)),
        (mapped, np.array([0.1, 0.2]), np.array([0.3, 0.5])),
    ):
        assert compiled(lambda work=work, first=first: work(jax.numpy.asarray(first)))
        assert not compiled(lambda work=work, second=second: work(jax.numpy.asarray(second)))


def test_memory_of_the_stability_check_does_not_grow_with_the_steps():
    index = np.arange(1.0, 9.0)
    spectrum = rfsim.spectrum(index**-0.1, index**-0.5)

    def peak(steps):
        schedule = from_arrays(np.where(np.arange(steps) % 2, 0.2, 0.21), 1.0)
        rfsim.risk(spectrum, schedule.part(0, 40), at=[40])
        tracemalloc.start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rfsim.StabilityWarning)
            rfsim.risk(spectrum, schedule, at=[steps])
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    few, many = peak(100_000), peak(400_000)
    assert many - few < 300_000 * 4  # less than half a float64 per step; is_constant compares one byte per step


def test_stationary_quantities_can_be_traced():
    assert jax.jit(rfsim.kappa)(TWO, 0.5, 2.0) == pytest.approx(34 / 145, rel=1e-14)
    assert jax.jit(rfsim.limiting_risk)(TWO, 0.5, 2.0) == pytest.approx(97 / 222, rel=1e-14)
    assert np.isinf(jax.jit(rfsim.kappa)(TWO, 2.0, 2.0))
    slope = jax.grad(lambda lr: rfsim.limiting_risk(TWO, lr, 2.0))(0.5)
    step = 1e-6
    expected = (rfsim.limiting_risk(TWO, 0.5 + step, 2.0) - rfsim.limiting_risk(TWO, 0.5 - step, 2.0)) / (2 * step)
    assert slope == pytest.approx(expected, rel=1e-8)
    with pytest.raises(rfsim.InputError, match=r"lr_limit .*cannot be traced"):
        jax.jit(rfsim.lr_limit)(TWO, 2.0)


def test_schedules_and_kernels_can_be_traced():
    def last(lr):
        return rfsim.terminal_risk(TWO, rfsim.schedules.wsd(30, lr, 4.0, decay=0.5))

    step = 1e-6
    assert float(jax.grad(last)(0.3)) == pytest.approx(
        float(last(0.3 + step) - last(0.3 - step)) / (2 * step), rel=1e-7
    )
    schedule = constant(5, 0.3, 4.0)
    traced = jax.jit(lambda s: rfsim.kernel(s, schedule))(TWO)
    assert_allclose(traced, rfsim.kernel(TWO, schedule), rtol=1e-14)
    rows = jax.vmap(lambda lam: rfsim.population(rfsim.problem(lam, np.ones(2))).forcing_energy)(np.eye(2) + 1.0)
    assert_allclose(rows, [[2.0, 1.0], [1.0, 2.0]], rtol=1e-15)


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e24, 1e200])
def test_the_lr_limit_does_not_depend_on_the_unit_of_the_eigenvalues(scale):
    scaled = rfsim.spectrum(np.asarray(TWO.eigenvalues) * scale, TWO.forcing_energy)
    assert rfsim.lr_limit(scaled, 3.0) * scale == pytest.approx(rfsim.lr_limit(TWO, 3.0), rel=1e-14)


def test_a_risk_that_overflows_at_the_start_says_so():
    curve = rfsim.risk(rfsim.spectrum([1.0, 0.3], [1e308, 1e308]), constant(3, 0.1, 1.0))
    assert curve.overflow_step == 0
    assert not np.isnan(curve.risk).any()


def test_float32_schedules_are_refused_by_the_routes():
    narrow = rfsim.Schedule(jax.numpy.full(3, 0.1, dtype=jax.numpy.float32), np.ones(3))
    with pytest.raises(rfsim.InputError, match="lr came as float32"):
        rfsim.risk(TWO, narrow)
