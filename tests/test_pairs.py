"""Paths of schedules, clocks, and the two realisations of one ratio path."""

import math
from fractions import Fraction
from itertools import pairwise

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import rfsim
from rfsim import schedules
from rfsim.routes import recursion
from rfsim.schedules import pair, path, path_distance, power_clock

SPECTRUM = rfsim.spectrum(1.0 / np.arange(1.0, 201.0), np.arange(1.0, 201.0) ** -1.5, noise_var=1.0)


# --- the path of one schedule ----------------------------------------------------------------------------------------


def test_path_by_hand():
    found = path(schedules.from_arrays([0.5, 0.25, 0.0], [2, 8, 4]))
    assert_array_equal(found.step, [0, 1, 2, 3])
    assert_array_equal(found.lr, [0.5, 0.25, 0.0, 0.0])
    assert_array_equal(found.batch, [2, 8, 4, 4])
    assert_array_equal(found.intrinsic_time, [0.0, 0.5, 0.75, 0.75])
    assert_array_equal(found.ratio, [4.0, 32.0, math.inf, math.inf])
    assert_array_equal(found.data, [0.0, 2.0, 10.0, 14.0])
    some = path(schedules.from_arrays([0.5, 0.25, 0.0], [2, 8, 4]), at=[1, 3])
    for name, values in some._asdict().items():
        assert_array_equal(values, getattr(found, name)[[1, 3]])


def test_a_million_steps_keep_their_digits():
    schedule = schedules.polynomial(10**6, 0.3, 1.7, lr_decay=0.37, batch_growth=0.21, exact_batch=True)
    found = path(schedule, at=[10, 12345, 10**6])
    for place, step in enumerate((10, 12345, 10**6)):
        assert found.intrinsic_time[place] == pytest.approx(math.fsum(schedule.lr[:step]), rel=1e-15)
        assert found.data[place] == pytest.approx(math.fsum(schedule.batch[:step]), rel=1e-15)
    tenth = schedules.constant(10**6, 0.1, 1.0)
    assert path(tenth, at=[10**6]).intrinsic_time[0] == float(Fraction(0.1) * 10**6)


def test_data_is_the_integral_of_the_ratio():
    found = path(schedules.cosine(200, 0.3, 4.0).replace(batch=np.arange(1, 201)))
    integral = np.concatenate([[0.0], np.cumsum(found.ratio[:-1] * np.diff(found.intrinsic_time))])
    assert_allclose(found.data, integral, rtol=1e-12)


def test_gradient_descent_uses_infinite_data():
    found = path(schedules.from_arrays(0.1, [2.0, math.inf, 3.0]))
    assert_array_equal(found.data, [0.0, 2.0, math.inf, math.inf])


def test_other_clocks():
    schedule = schedules.from_arrays([0.5, 0.25], [2, 8])
    muon = path(schedule, clock=power_clock(2.0))
    assert_allclose(muon.intrinsic_time, [0.0, 0.25, 0.3125], rtol=1e-15)
    assert_allclose(muon.ratio, [8.0, 128.0, 128.0], rtol=1e-15)
    assert_array_equal(muon.data, path(schedule).data)
    own = path(schedule, clock=lambda lr, batch: (np.ones(2), batch + lr))
    assert_array_equal(own.intrinsic_time, [0.0, 1.0, 2.0])
    assert_array_equal(own.ratio, [2.5, 8.25, 8.25])
    for wrong, word in (
        (lambda lr, batch: (lr[:1], batch), "shape"),
        (lambda lr, batch: (-lr, batch), "increments"),
        (lambda lr, batch: (lr, 0.0 * batch), "ratios"),
        (lambda lr, batch: (np.nan * lr, batch), "finite"),
    ):
        with pytest.raises(rfsim.InputError, match=word):
            path(schedule, clock=wrong)
    with pytest.raises(rfsim.InputError, match="power must be positive"):
        power_clock(0.0)


def test_macro_steps_of_the_muon_calibration_share_a_path():
    """h updates (b, lr / sqrt h) and one update (b h, lr) share clock, ratio and data when the clock is lr^2."""
    h, lr, b = 6, 0.3, 4
    many = schedules.constant(5 * h, lr / math.sqrt(h), b)
    one = schedules.constant(5, lr, b * h)
    assert path_distance(many, one, clock=power_clock(2.0)).ratio < 1e-14
    assert path_distance(many, one, clock=power_clock(2.0)).horizon < 1e-14
    assert path_distance(many, one).horizon > 0.5  # on the clock of SGD they are different runs


def test_no_path_of_nothing():
    with pytest.raises(rfsim.InputError, match="no steps"):
        path(schedules.constant(0, 0.1, 1))
    with pytest.raises(rfsim.InputError, match="traced"):
        jax.jit(lambda s: path(s).data)(schedules.constant(3, 0.1, 1))


# --- distance --------------------------------------------------------------------------------------------------------


def test_distance_by_hand():
    a = schedules.from_arrays([1.0, 1.0], [2, 2])  # r = 2 on [0, 2]
    b = schedules.from_arrays([0.5, 0.5, 2.0], [1, 2, 16])  # r = 2, 4, 8 on [0, .5], [.5, 1], [1, 3]
    found = path_distance(a, b)
    assert found.ratio == pytest.approx((0.5 * math.log(2) + 1.0 * math.log(4)) / 2)
    assert found.largest == pytest.approx(math.log(4))
    assert found.data == pytest.approx((11 - 4) / 19)  # at T = 2: 3 + 8 against 4
    assert found.horizon == pytest.approx(1 / 3)
    coarse = path_distance(a, b, grain=1.0)
    assert coarse.ratio == pytest.approx(0.5 * (math.log(3 / 2) + math.log(8 / 2)))
    assert coarse.largest == pytest.approx(math.log(4))


def test_steps_without_clock_do_not_count():
    a = schedules.from_arrays([1.0, 0.0, 1.0], [2, 100, 4])
    b = schedules.from_arrays([1.0, 1.0], [2, 4])
    assert path_distance(a, b) == (0.0, 0.0, 0.0, 0.0)


@given(st.integers(0, 2**32 - 1))
def test_it_is_a_distance(seed):
    draw = np.random.default_rng(seed)
    runs = []
    for _ in range(3):
        rates = draw.uniform(0.1, 1.0, draw.integers(1, 30))
        runs.append(schedules.from_arrays(rates / rates.sum(), draw.uniform(1.0, 9.0, rates.size)))
    ab, ba, bc, ac = (path_distance(runs[i], runs[j]) for i, j in ((0, 1), (1, 0), (1, 2), (0, 2)))
    assert_allclose(ab, ba, rtol=1e-12, atol=1e-15)
    assert ac.ratio <= ab.ratio + bc.ratio + 1e-12
    assert ac.data >= 0.0
    assert path_distance(runs[0], runs[0]) == (0.0, 0.0, 0.0, 0.0)


def test_distances_that_cannot_be_taken():
    fine = schedules.constant(4, 0.25, 2)
    for wrong, word in (
        (lambda: path_distance(fine, schedules.constant(0, 0.1, 2)), "no steps"),
        (lambda: path_distance(fine, schedules.from_arrays([0.0, 0.0], 1)), "never moves"),
        (lambda: path_distance(fine, schedules.constant(3, 0.1, math.inf)), "inf"),
        (lambda: path_distance(fine, fine, grain=2.0), "beyond"),
        (lambda: path_distance(fine, fine, grain=0.0), "grain"),
    ):
        with pytest.raises(rfsim.InputError, match=word):
            wrong()


# --- pairs -----------------------------------------------------------------------------------------------------------


def check_matched(made, batch, lr, group):
    """Data, clock and ratio agree macro step by macro step, in whole batches."""
    a, b = made.lr_decay, made.batch_growth
    assert (a.batch == batch).all()
    assert (b.lr == lr).all()
    assert_array_equal(b.batch, np.round(b.batch))
    for schedule, steps in ((a, made.lr_decay_steps), (b, made.batch_growth_steps)):
        assert steps[0] == 0
        assert steps[-1] == schedule.steps
        for place, (start, stop) in enumerate(pairwise(steps)):
            rates, sizes = schedule.lr[start:stop], schedule.batch[start:stop]
            assert_allclose(rates.sum(), group * lr, rtol=1e-13)
            assert sizes.sum() == made.level[place] * batch
            assert_allclose(sizes / rates, made.level[place] * batch / (group * lr), rtol=1e-13)
        assert_allclose(schedules.intrinsic_time(schedule.lr)[steps], made.intrinsic_time, rtol=1e-12)
        assert_array_equal(np.concatenate([[0], np.cumsum(schedule.batch)])[steps], made.data)
    assert np.diff(made.lr_decay_steps).tolist() == made.level.tolist()
    assert (np.diff(made.batch_growth_steps) == group).all()
    assert max(path_distance(a, b)) < 1e-13


def test_published_group_sizes():
    """Levels 4..40: 4 updates of batch g with lr .005, against g updates of batch 4 with lr .02 / g."""
    made = pair(
        lambda time: 200.0 * np.arange(4, 41)[(time / 0.02).astype(int)], lr=0.005, batch=4, intrinsic_time=0.74
    )
    assert_array_equal(made.level, np.arange(4, 41))
    check_matched(made, 4, 0.005, 4)
    assert_array_equal(made.batch_growth.batch[::4], np.arange(4, 41))
    assert_allclose(made.lr_decay.lr[made.lr_decay_steps[:-1]], 0.02 / np.arange(4, 41), rtol=1e-14)
    large = pair(lambda time: 3200.0 * (1 + time), lr=0.005, batch=16, group=1, intrinsic_time=3.0)
    check_matched(large, 16, 0.005, 1)


@pytest.mark.parametrize("spec", ["wsd:decay=0.3", "8-1-1", "cosine:to=0.05", "power:vartheta=0.8,via=batch"])
@pytest.mark.parametrize(("batch", "group"), [(8, 4), (6, 4), (5, 1), (3, 7)])
def test_pairs_are_matched_and_follow_the_target(spec, batch, group):
    target = schedules.from_spec(spec, steps=403, lr=0.1, batch=batch)
    made = pair(target, lr=0.1, batch=batch, group=group)
    check_matched(made, batch, 0.1, group)
    whole = path(target)
    wanted = np.interp(made.intrinsic_time, whole.intrinsic_time, whole.data)
    unit = group // math.gcd(group, batch)
    assert np.abs(made.data - wanted).max() <= 0.5 * unit * batch * (1 + 1e-12)
    assert whole.intrinsic_time[-1] - group * 0.1 < made.intrinsic_time[-1] <= whole.intrinsic_time[-1]
    again = pair(made.batch_growth, lr=0.1, batch=batch, group=group)  # a path that is made of levels is kept
    assert_array_equal(again.level, made.level)


def test_a_function_and_a_schedule_of_the_same_path_give_the_same_pair():
    target = schedules.power(4000, 0.01, 64.0, vartheta=0.5, exact_batch=True)
    made = pair(target, lr=0.01, batch=64, group=4)
    same = pair(lambda time: 6400.0 * (1 + time) ** 0.5, lr=0.01, batch=64, group=4, intrinsic_time=40.0)
    assert np.abs(made.level - same.level).max() <= 1
    assert np.abs(made.data - same.data).max() <= 64 + 0.01 * same.data[-1]


def test_pairs_on_another_clock():
    made = pair(lambda time: 100.0 * (1 + time), lr=0.2, batch=4, group=2, intrinsic_time=8.0, power=2.0)
    muon = power_clock(2.0)
    assert max(path_distance(made.lr_decay, made.batch_growth, clock=muon)) < 1e-13
    assert path_distance(made.lr_decay, made.batch_growth).horizon > 0.3
    assert_allclose(path(made.lr_decay, clock=muon).intrinsic_time[-1], 8.0, rtol=1e-12)
    assert made.data[-1] == pytest.approx(100 * 8 + 50 * 64, abs=4)


def test_pairs_that_cannot_be_made():
    target = schedules.wsd(100, 0.1, 8)
    for wrong, word in (
        (lambda: pair(target, lr=0.1, batch=2.5), "batch must be a whole number"),
        (lambda: pair(target, lr=0.0, batch=8), "lr must be positive"),
        (lambda: pair(target, lr=0.1, batch=8, group=0), "group"),
        (lambda: pair(target, lr=30.0, batch=8), "before the first macro step"),
        (lambda: pair(target, lr=0.1, batch=8, intrinsic_time=50.0), "beyond the end"),
        (lambda: pair(target, lr=0.1, batch=8000), "at least 1 .*level"),
        (lambda: pair(lambda time: 80.0, lr=0.1, batch=8), "intrinsic_time is missing"),
        (lambda: pair(lambda time: 1.0 - time, lr=0.1, batch=8, intrinsic_time=5.0), "target must be finite and pos"),
        (lambda: pair(target, lr=0.1, batch=8, power=-1.0), "power"),
        (lambda: pair(target.replace(batch=math.inf), lr=0.1, batch=8), "inf"),
    ):
        with pytest.raises(rfsim.InputError, match=word):
            wrong()


# --- what pairs share: the risk at equal intrinsic time --------------------------------------------------------------


def risks(made, spectrum=SPECTRUM):
    return [
        recursion.risk(spectrum, schedule, at=steps).risk
        for schedule, steps in (
            (made.lr_decay, made.lr_decay_steps),
            (made.batch_growth, made.batch_growth_steps),
        )
    ]


def test_published_bounds_on_the_difference_of_paired_risks():
    """lambda = 1/j, v = 2000: at most 5.7e-6, 2.7e-4, 3.6e-3 for macro steps of .02, .08, .32; second order in them."""
    lam = 1.0 / np.arange(1.0, 2001.0)
    spectrum = rfsim.spectrum(lam, lam, noise_var=1.0)
    worst = []
    for length, bound in ((0.02, 5.7e-6), (0.08, 2.7e-4), (0.32, 3.6e-3)):

        def ratio(time, length=length):  # WSD on the clock: ten times larger over the last fifth
            return 16.0 / length * 10.0 ** np.maximum((time - 51.2) / 12.8, 0.0)

        made = pair(ratio, lr=length / 4, batch=4, group=4, intrinsic_time=64.0)
        one, other = risks(made, spectrum)
        worst.append(np.abs(one - other).max())
        assert worst[-1] < bound
    assert worst[0] > 1e-7  # they are two runs
    orders = np.log(np.divide(worst[1:], worst[:-1])) / math.log(4)
    assert ((orders > 1.7) & (orders < 3.2)).all()


@pytest.mark.parametrize("spec", ["wsd:decay=0.2", "8-1-1"])
def test_paired_risks_agree_to_first_order_in_the_lr_at_equal_time_but_not_at_equal_step(spec):
    """One ratio path B / lr = 100 (1, growing), realised with ever smaller lr."""
    apart = []
    for halvings in range(4):
        lr, batch = 0.16 / 2**halvings, 16 // 2**halvings
        target = schedules.from_spec(spec, steps=650 * 2**halvings, lr=lr, batch=batch)
        made = pair(target, lr=lr, batch=batch, group=2)
        one, other = risks(made)
        apart.append(np.abs(one / other - 1.0).max())
        at_step = recursion.risk(SPECTRUM, made.lr_decay, at=made.batch_growth_steps).risk
        assert np.abs(at_step / other - 1.0).max() > 0.1  # whatever the lr
    orders = np.log2(np.divide(apart[:-1], apart[1:]))
    assert ((orders > 0.9) & (orders < 1.25)).all(), orders
    assert apart[-1] < 5e-3
