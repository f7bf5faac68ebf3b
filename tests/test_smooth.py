"""Smooth schedules: the array schedules at whole steps, sums of blocks, and long runs against the exact recursion."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rfsim
from rfsim import schedules, smooth
from rfsim.routes import jump, recursion
from rfsim.routes.jump import long

N = 3000
PAIRS = {
    "wsd": (smooth.wsd(N, 0.3, 4.0), schedules.wsd(N, 0.3, 4.0)),
    "wsd sqrt": (
        smooth.wsd(N, 0.3, 4.0, decay=0.5, shape="sqrt", warmup=30),
        schedules.wsd(N, 0.3, 4.0, decay=0.5, shape="sqrt", warmup=30),
    ),
    "linear to 0": (
        smooth.wsd(N, 0.3, 4.0, decay=N - 10, shape="linear", to=0, warmup=10),
        schedules.wsd(N, 0.3, 4.0, decay=N - 10, shape="linear", to=0, warmup=10),
    ),
    "cosine": (smooth.cosine(N, 0.3, 4.0, warmup=0.1), schedules.cosine(N, 0.3, 4.0, warmup=0.1)),
    "power via batch": (
        smooth.power(N, 0.05, 4.0, vartheta=0.5, exact_batch=True),
        schedules.power(N, 0.05, 4.0, vartheta=0.5, exact_batch=True),
    ),
    "power via lr": (
        smooth.power(N, 0.05, 4.0, vartheta=0.5, via="lr"),
        schedules.power(N, 0.05, 4.0, vartheta=0.5, via="lr"),
    ),
    "power via large lr": (
        smooth.power(N, 1.0, 4.0, vartheta=1.5, via="lr"),
        schedules.power(N, 1.0, 4.0, vartheta=1.5, via="lr"),
    ),
    "power via falling ratio": (
        smooth.power(N, 0.2, 4.0, vartheta=-0.5, via="lr"),
        schedules.power(N, 0.2, 4.0, vartheta=-0.5, via="lr"),
    ),
    "power via tiny lr": (
        smooth.power(N, 1e-3, 4.0, vartheta=2.0, via="lr"),
        schedules.power(N, 1e-3, 4.0, vartheta=2.0, via="lr"),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_shapes_are_those_of_the_array_schedules(name):
    mine, theirs = PAIRS[name]
    sampled = mine.sampled()
    assert_allclose(sampled.lr, theirs.lr, rtol=1e-12, atol=1e-16)
    assert_allclose(sampled.batch, theirs.batch, rtol=1e-13)


def test_rounded_up_batches_are_those_of_the_array_schedule():
    mine = smooth.power(N, 0.05, 4.0, vartheta=0.5)
    assert mine.ceil
    assert_array_equal(mine.sampled().batch, schedules.power(N, 0.05, 4.0, vartheta=0.5).batch)


def test_the_discrete_clock_of_power_rates_far_out():
    # one step of the map, from steps that no loop reaches: T_{t+1} - T_t = lr_t
    one = smooth.power(10**9, 0.05, 1.0, vartheta=0.7, via="lr")
    clock = one.lr.__self__
    for start in (200.0, 1e4, 1e6):
        u, after = clock.time(np.array([start, start + 1.0]))
        assert_allclose(after, u + 0.05 * u**-0.7, rtol=1e-15)
    # and a loop of 10^5 steps
    u = 1.0
    for _ in range(10**5):
        u += 0.05 * u**-0.7
    assert_allclose(clock.time(np.array([1e5]))[0], u, rtol=1e-12)


# --- blocks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*PAIRS, "rounded up", "rounded up, steep"])
@pytest.mark.parametrize(("start", "stop"), [(0, 1), (0, 64), (300, 365), (400, 2000), (2700, 3000), (500, 2400)])
def test_blocks_keep_their_sums(name, start, stop):
    if name == "rounded up":
        schedule = smooth.power(N, 0.05, 4.0, vartheta=0.5)
    elif name == "rounded up, steep":
        schedule = smooth.power(N, 0.3, 40.0, vartheta=1.5)
    else:
        schedule = PAIRS[name][0]
    for begin, end in zip([start, *schedule.breaks], [*schedule.breaks, stop], strict=True):
        begin, end = max(begin, start, schedule.head), min(end, stop)
        if end <= begin:
            continue
        lr, batch = smooth.block(schedule, float(begin), float(end))
        sampled = schedule.sampled()
        rates, sizes = np.asarray(sampled.lr)[begin:end], np.asarray(sampled.batch)[begin:end]
        assert_allclose(lr * (end - begin), rates.sum(), rtol=1e-11)
        # a steep rounded-up batch crosses thousands of plateaus: their mean is used then
        rtol = 3e-6 if "steep" in name else 1e-11
        assert_allclose(lr * lr / batch * (end - begin), np.sum(rates**2 / sizes), rtol=rtol)


def test_plateau_edges_rising_and_falling():
    rising = smooth.power(N, 0.05, 4.0, vartheta=0.5)
    batch = rising.sampled().batch
    expected = np.flatnonzero(np.diff(batch)) + 1
    assert_array_equal(smooth.plateau_edges(rising, 0.0, float(N)), expected)
    falling = smooth.smooth(1000, 0.1, lambda step: 30.0 - 0.02 * step, ceil=True)
    expected = np.flatnonzero(np.diff(falling.sampled().batch)) + 1
    assert_array_equal(smooth.plateau_edges(falling, 0.0, 1000.0), expected)
    assert smooth.plateau_edges(falling, 5.0, 20.0).size == 0


def test_constant_blocks_have_no_variation():
    assert smooth.variation(smooth.wsd(N, 0.3, 4.0), 0.0, 2400.0) == 0.0
    assert smooth.variation(smooth.wsd(N, 0.3, 4.0), 2500.0, 2600.0) > 0.0
    assert smooth.variation(PAIRS["linear to 0"][0], 2000.0, 3000.0) == math.inf


# --- long runs -------------------------------------------------------------------------------------------------------

INDEX = np.arange(1, 41.0)
SPECTRUM = rfsim.spectrum(INDEX**-1.2, INDEX**-1.6, noise_var=0.5, floor=0.01)
STEPS = 100_000
RUNS = {
    "power via batch": smooth.power(STEPS, 0.2, 2.0, vartheta=0.6, exact_batch=True),
    "power, rounded up": smooth.power(STEPS, 0.2, 2.0, vartheta=0.6),
    "power via lr": smooth.power(STEPS, 0.2, 2.0, vartheta=0.6, via="lr"),
    "wsd": smooth.wsd(STEPS, 0.2, 2.0, warmup=0.01),
    "linear to 0": smooth.wsd(STEPS, 0.2, 2.0, decay=0.4, shape="linear", to=0.0),
    "cosine": smooth.cosine(STEPS, 0.2, 2.0, warmup=0.05),
}
AT = [0, 1, 100, 300, 1000, 1500, 5000, 5001, 30_000, 90_000, 99_990, 100_000]


def deviation(curve, expected):
    """Largest relative difference of risk, memory and gap, (k,)."""
    parts = []
    for which in ("risk", "memory", "gap"):
        a, b = np.asarray(getattr(curve, which)), np.asarray(getattr(expected, which))
        parts.append(np.abs(a - b) / np.where(b == 0.0, 1.0, b))
    return np.max(parts, axis=0)


@pytest.mark.parametrize("name", RUNS)
def test_the_error_estimate_is_true(name):
    schedule = RUNS[name]
    expected = recursion.risk(SPECTRUM, schedule.sampled(), at=AT)
    for rtol in (1e-3, 1e-5):
        run = jump.smooth_risk(SPECTRUM, schedule, at=AT, rtol=rtol)
        assert run.error.max() <= rtol
        true = deviation(run.curve, expected)
        assert true.max() <= run.error.max()
    assert_allclose(run.curve.forcing, expected.forcing, rtol=3e-6)
    assert_allclose(run.curve.clean, expected.clean, rtol=1e-5)
    assert_allclose(run.curve.intrinsic_time, expected.intrinsic_time, rtol=1e-11)
    assert_array_equal(run.curve.step, AT)


@pytest.mark.parametrize("name", ["power via batch", "power via lr", "cosine"])
def test_halving_converges_with_order_two_and_extrapolation_beyond(name):
    schedule, at = RUNS[name], [400, 1000, 5000, 30_000, 100_000]
    expected = recursion.risk(SPECTRUM, schedule.sampled(), at=at)
    modes = long.Modes(SPECTRUM)
    chain = long.base_edges(schedule)
    routes = [long._approach(schedule, chain, float(time)) for time in at]
    gaps = []
    for _ in range(5):
        gaps.append(long._run(modes, schedule, chain, routes, modes.start(None))[:, 2])
        chain, routes = chain.halved(schedule), [route.halved(schedule) for route in routes]
    errors = np.abs(np.array(gaps) / expected.gap - 1.0).max(axis=1)
    assert 1.8 < np.log2(errors[2] / errors[4]) / 2 < 2.3
    better = np.abs((4 * np.array(gaps[1:]) - gaps[:-1]) / 3 / expected.gap - 1.0).max(axis=1)
    assert np.log2(better[1] / better[3]) / 2 > 2.4
    assert better[3] < 0.1 * errors[4]


def test_rounding_up_matters_by_half_over_the_batch():
    at = np.unique(np.rint(np.geomspace(3000, 90_000, 12)))
    rounded = jump.smooth_risk(SPECTRUM, RUNS["power, rounded up"], at=at, rtol=1e-4).curve.gap
    exact = jump.smooth_risk(SPECTRUM, RUNS["power via batch"], at=at, rtol=1e-4).curve.gap
    # ceil(B) - B is anything between 0 and 1 at one step, 1/2 on average
    scaled = (exact / rounded - 1.0) * 2.0 * RUNS["power via batch"].batch(at)
    assert scaled.min() > 0.0
    assert scaled.max() < 2.1
    assert abs(scaled.mean() - 1.0) < 0.3


def test_a_constant_schedule_is_one_stretch():
    schedule = smooth.smooth(10**12, 0.1, 4.0)
    run = jump.smooth_risk(SPECTRUM, schedule, at=[10, 10**12])
    assert run.stretches == 1
    assert_allclose(run.curve.risk[-1], rfsim.limiting_risk(SPECTRUM, 0.1, 4.0), rtol=1e-12)
    assert_allclose(run.curve.risk[0], recursion.risk(SPECTRUM, schedules.constant(10, 0.1, 4.0), at=[10]).risk[0])


def test_far_beyond_any_loop():
    # quasi-static: the gap of a slowly rising batch is that of the present batch, up to the slow tail of the kernel
    schedule = smooth.power(10**12, 0.2, 2.0, vartheta=0.5, exact_batch=True)
    run = jump.smooth_risk(SPECTRUM, schedule, at=[10**8, 10**10, 10**12], rtol=1e-5)
    batch = schedule.batch(np.array([1e8, 1e10, 1e12]))
    present = [0.5 * k / (1 - k) for k in (rfsim.kappa(SPECTRUM, 0.2, float(one)) for one in batch)]
    assert_allclose(run.curve.gap, present, rtol=1e-4)
    assert_allclose(run.curve.gap[2], present[2], rtol=2e-5)
    coarse = jump.smooth_risk(SPECTRUM, schedule, at=[10**8, 10**10, 10**12], rtol=1e-3)
    assert deviation(coarse.curve, run.curve).max() < 1e-3


def test_continuing_from_a_state():
    state, _ = recursion.evolve(SPECTRUM, schedules.constant(500, 0.3, 2.0))
    schedule = RUNS["cosine"]
    run = jump.smooth_risk(SPECTRUM, schedule, at=[0, 7000], rtol=1e-5, state=state)
    expected = recursion.risk(SPECTRUM, schedule.sampled(), at=[0, 7000], state=state)
    assert deviation(run.curve, expected).max() < 1e-5


def test_an_accuracy_out_of_reach_is_an_error():
    with pytest.raises(rfsim.RunError, match="halvings"):
        jump.smooth_risk(SPECTRUM, RUNS["cosine"], at=[5000], rtol=1e-9, levels=2)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: smooth.smooth(0, 0.1), "steps"),
        (lambda: smooth.smooth(2**54, 0.1), "steps"),
        (lambda: smooth.smooth(10, -0.1), "lr"),
        (lambda: smooth.smooth(10, 0.1, 0.0), "batch"),
        (lambda: smooth.smooth(10, 0.1, breaks=(3, 3)), "breaks"),
        (lambda: smooth.smooth(10, 0.1, breaks=(10,)), "breaks"),
        (lambda: smooth.wsd(100, 0.1, 1.0, shape="cubic"), "shape"),
        (lambda: smooth.wsd(100, 0.1, 1.0, decay=80, warmup=30), "decay"),
        (lambda: smooth.cosine(100, 0.1, 1.0, warmup=130), "warmup"),
        (lambda: smooth.cosine(100, 0.1, 1.0, to=2.0), "to"),
        (lambda: smooth.power(100, 0.1, 1.0, vartheta=-1.0, via="lr"), "vartheta"),
        (lambda: smooth.power(100, 0.1, 1.0, vartheta=0.5, via="width"), "via"),
        (lambda: jump.smooth_risk(SPECTRUM, RUNS["wsd"], at=[0.5]), "whole"),
        (lambda: jump.smooth_risk(SPECTRUM, RUNS["wsd"], at=[STEPS + 1]), "at"),
        (lambda: jump.smooth_risk(SPECTRUM, RUNS["wsd"], rtol=0.0), "rtol"),
    ],
)
def test_bad_input_is_named(make, word):
    with pytest.raises(rfsim.InputError, match=word):
        make()
