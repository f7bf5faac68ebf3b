"""Schedules: shapes by hand, the clock, the text form, files, and everything that must be refused."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rfsim
from rfsim import schedules


def test_constant():
    schedule = schedules.constant(3, 0.2, 5)
    assert_array_equal(schedule.lr, [0.2, 0.2, 0.2])
    assert_array_equal(schedule.batch, [5.0, 5.0, 5.0])
    assert schedule.steps == 3
    assert schedules.constant(0, 0.2, 5).steps == 0


def test_wsd_by_hand():
    exp = schedules.wsd(10, 2.0, 4.0, decay=0.4, to=0.0001)
    assert_allclose(exp.lr, [2, 2, 2, 2, 2, 2, 0.2, 0.02, 0.002, 0.0002], rtol=1e-14)
    linear = schedules.wsd(10, 2.0, 4.0, decay=4, shape="linear", to=0.2)
    assert_allclose(linear.lr, [2, 2, 2, 2, 2, 2, 1.6, 1.2, 0.8, 0.4], rtol=1e-14)
    sqrt = schedules.wsd(10, 2.0, 4.0, decay=4, shape="sqrt", to=0.0)
    assert_allclose(sqrt.lr[6:], 2 * (1 - np.sqrt([0.25, 0.5, 0.75, 1.0])), atol=1e-15)
    assert sqrt.lr[-1] == 0.0
    warm = schedules.wsd(10, 2.0, 4.0, decay=0, warmup=0.4)
    assert_allclose(warm.lr, [0.5, 1, 1.5, 2, 2, 2, 2, 2, 2, 2])
    assert_array_equal(warm.batch, np.full(10, 4.0))
    assert schedules.wsd(0, 1.0, 1.0).steps == 0


def test_eight_one_one_by_hand():
    assert_allclose(schedules.eight_one_one(10, 1.0, 2.0).lr, [1] * 8 + [10**-0.5, 0.1], rtol=1e-15)
    counts = np.unique(schedules.eight_one_one(1000, 1.0, 2.0).lr, return_counts=True)[1]
    assert_array_equal(counts, [100, 100, 800])


def test_cosine_by_hand():
    lr = schedules.cosine(5, 1.0, 2.0, to=0.2).lr
    assert_allclose(lr, [1.0, 0.2 + 0.4 * (1 + math.sqrt(0.5)), 0.6, 0.2 + 0.4 * (1 - math.sqrt(0.5)), 0.2], rtol=1e-14)
    warm = schedules.cosine(12, 3.0, 2.0, to=0.0, warmup=2)
    assert_allclose(warm.lr[:3], [1.5, 3.0, 3.0])
    assert_allclose(warm.lr[-1], 0.0, atol=1e-15)
    assert (np.diff(warm.lr[2:]) < 0).all()


def test_power_through_the_batch():
    schedule = schedules.power(5, 0.5, 4.0, vartheta=2.0)
    assert_array_equal(schedule.batch, [4, 9, 16, 25, 36])  # 4 (1 + t/2)^2
    assert_array_equal(schedule.lr, np.full(5, 0.5))
    whole = schedules.power(50, 0.3, 4.0, vartheta=0.7)
    exact = schedules.power(50, 0.3, 4.0, vartheta=0.7, exact_batch=True)
    assert_allclose(exact.batch, [4 * (1 + 0.3 * t) ** 0.7 for t in range(50)], rtol=1e-14)
    assert_array_equal(whole.batch, np.ceil(exact.batch))
    assert not (exact.batch == whole.batch).all()


def test_power_through_lr():
    schedule = schedules.power(30, 0.4, 4.0, vartheta=0.7, via="lr")
    time = 0.0
    for rate in schedule.lr:
        assert_allclose(rate, 0.4 * (1 + time) ** -0.7, rtol=1e-14)
        time += rate
    assert_array_equal(schedule.batch, np.full(30, 4.0))
    assert schedules.power(0, 0.4, 4.0, vartheta=0.7, via="lr").steps == 0


def test_both_ways_of_power_follow_one_ratio_path():
    for via in ("batch", "lr"):
        schedule = schedules.power(40, 0.1, 3.0, vartheta=0.5, via=via, exact_batch=True)
        time = schedules.intrinsic_time(schedule.lr)[:-1]
        assert_allclose(schedule.batch / schedule.lr, 30.0 * (1 + time) ** 0.5, rtol=1e-13)


def test_the_last_of_a_thousand_steps_uses_the_target():
    for shape in ("exp", "linear", "sqrt"):
        schedule = schedules.wsd(1000, 3.0, 4.0, decay=0.1, shape=shape, to=0.1)
        assert schedule.lr[-1] == 3.0 * 0.1
        assert (schedule.lr[:900] == 3.0).all()
        assert (np.diff(schedule.lr[899:]) < 0.0).all()
    for shape in (schedules.cosine, schedules.linear, schedules.exponential):
        for steps in (1, 2, 3, 1000):
            assert shape(steps, 3.0, 4.0, to=0.1).lr[-1] == 3.0 * 0.1
        assert shape(1000, 3.0, 4.0, to=0.1).lr[0] == 3.0
        assert shape(0, 3.0, 4.0).steps == 0
        assert shape(4, 1.0, 1.0, to=0.25, warmup=4).lr.tolist() == [0.25, 0.5, 0.75, 1.0]


def test_linear_and_exponential_by_hand():
    assert_allclose(schedules.linear(5, 2.0, 3.0, to=0.2).lr, [2.0, 1.6, 1.2, 0.8, 0.4], rtol=1e-14)
    assert_allclose(schedules.exponential(4, 2.0, 3.0, to=0.001).lr, [2.0, 0.2, 0.02, 0.002], rtol=1e-14)
    assert_allclose(schedules.linear(5, 2.0, 3.0, to=0.0, warmup=2).lr, [1.0, 2.0, 2.0, 1.0, 0.0], atol=1e-15)
    assert_array_equal(schedules.linear(5, 2.0, 3.0).batch, np.full(5, 3.0))


def test_stages_by_hand():
    both = schedules.stages(10, 1.0, 4.0, at=[0.5, 8], lr_to=[0.5, 0.1], batch_to=[1.6, 2.0])
    assert_allclose(both.lr, [1] * 5 + [0.5] * 3 + [0.1] * 2, rtol=1e-15)
    assert_array_equal(both.batch, [4] * 5 + [7] * 3 + [8] * 2)  # 6.4 rounded up
    same = schedules.stages(1000, 1.0, 2.0, at=[0.8, 0.9], lr_to=[10**-0.5, 0.1])
    assert_array_equal(same.lr, schedules.eight_one_one(1000, 1.0, 2.0).lr)
    assert_array_equal(schedules.stages(4, 1.0, 2.5, at=4).batch, np.full(4, 2.5))  # a stage that never begins


def test_polynomial_by_hand():
    schedule = schedules.polynomial(4, 0.5, 3.0, lr_decay=0.5, batch_growth=1.5)
    assert_allclose(schedule.lr, [0.5 / math.sqrt(n) for n in (1, 2, 3, 4)], rtol=1e-15)
    assert_array_equal(schedule.batch, [3, 9, 16, 24])  # 3, 8.49, 15.59, 24
    exact = schedules.polynomial(4, 0.5, 3.0, batch_growth=1.5, exact_batch=True)
    assert_allclose(exact.batch, [3 * n**1.5 for n in (1, 2, 3, 4)], rtol=1e-15)
    assert_array_equal(exact.lr, np.full(4, 0.5))


def test_batch_ramp_by_hand():
    ramp = schedules.batch_ramp(6, 0.5, 2.0, to=5.0, start=2, shape="linear")
    assert_array_equal(ramp.batch, [2, 2, 4, 6, 8, 10])
    assert_array_equal(ramp.lr, np.full(6, 0.5))
    exp = schedules.batch_ramp(6, 0.5, 2.0, to=16.0, start=2)
    assert_array_equal(exp.batch, [2, 2, 4, 8, 16, 32])
    assert_array_equal(schedules.batch_ramp(4, 0.5, 10.0, to=0.7, start=2).batch, [10, 10, 9, 7])
    kept = schedules.batch_ramp(4, 0.5, 10.0, to=0.7, start=2, exact_batch=True)
    assert_allclose(kept.batch, [10, 10, 10 * math.sqrt(0.7), 7], rtol=1e-15)
    assert 100.0 * 1.1 > 110.0  # a rounding error, which is not rounded up
    assert schedules.batch_ramp(4, 0.1, 100.0, to=1.1).batch[-1] == 110.0
    assert schedules.stages(4, 0.1, 100.0, at=0.5, batch_to=1.1).batch[-1] == 110.0
    assert schedules.batch_ramp(0, 0.5, 2.0).steps == 0


def test_warm_up_in_front_of_any_shape():
    plain = schedules.polynomial(10, 0.5, 3.0, lr_decay=0.3, batch_growth=1.0)
    warm = schedules.warmed(plain, 0.4)
    assert_allclose(warm.lr[:4], plain.lr[:4] * [0.25, 0.5, 0.75, 1.0], rtol=1e-15)
    assert_array_equal(warm.lr[4:], plain.lr[4:])
    assert_array_equal(warm.batch, plain.batch)
    assert_array_equal(schedules.warmed(plain, 0).lr, plain.lr)
    assert_array_equal(schedules.warmed(schedules.wsd(10, 0.5, 3.0), 4).lr, schedules.wsd(10, 0.5, 3.0, warmup=4).lr)
    with pytest.raises(rfsim.InputError, match="warmup takes 11"):
        schedules.warmed(plain, 11)


def test_joined_scaled_and_extended():
    first, second = schedules.from_arrays([0.1, 0.2], [1, 2]), schedules.from_arrays([0.3], [8])
    joined = schedules.join(first, second, first)
    assert_array_equal(joined.lr, [0.1, 0.2, 0.3, 0.1, 0.2])
    assert_array_equal(joined.batch, [1, 2, 8, 1, 2])
    assert_array_equal(schedules.join(first.part(0, 0), second).lr, [0.3])
    scaled = first.scaled(lr=2.0, batch=3.0)
    assert_allclose(scaled.lr, [0.2, 0.4], rtol=1e-15)
    assert_array_equal(scaled.batch, [3.0, 6.0])
    longer = first.extended(5)
    assert_array_equal(longer.lr, [0.1, 0.2, 0.2, 0.2, 0.2])
    assert_array_equal(longer.batch, [1, 2, 2, 2, 2])
    assert first.extended(2).steps == 2
    for wrong, word in (
        (lambda: first.extended(1), "at least the present 2"),
        (lambda: first.part(0, 0).extended(3), "no last lr"),
        (lambda: first.scaled(lr=0.0), "lr must be positive"),
        (lambda: first.scaled(batch=-1.0), "batch must be positive"),
        (schedules.join, "at least one"),
    ):
        with pytest.raises(rfsim.InputError, match=word):
            wrong()
    total = jax.jit(lambda s: schedules.join(s, s.scaled(lr=2.0)).extended(6).lr.sum())(first)
    assert float(total) == pytest.approx(0.1 + 0.2 + 0.2 + 0.4 + 0.4 + 0.4)


def test_arrays_numbers_and_lists():
    schedule = schedules.from_arrays([0.0, 0.1], 3)
    assert_array_equal(schedule.batch, [3.0, 3.0])
    assert_array_equal(schedules.from_arrays(0.1, [1, 2, math.inf]).lr, [0.1, 0.1, 0.1])
    assert schedules.from_arrays(np.float32(0.1), [1]).lr[0] == float(np.float32(0.1))
    assert schedules.from_arrays([], []).steps == 0
    assert schedule.lr.dtype == schedule.batch.dtype == np.float64


def test_replace_and_part():
    schedule = schedules.from_arrays([0.1, 0.2, 0.3], [1, 2, 3])
    assert_array_equal(schedule.replace(lr=0.5).lr, [0.5, 0.5, 0.5])
    assert_array_equal(schedule.replace(batch=[4, 5, 6]).batch, [4, 5, 6])
    assert_array_equal(schedule.replace(batch=[4, 5, 6]).lr, schedule.lr)
    assert_array_equal(schedule.part(1, 3).lr, [0.2, 0.3])
    with pytest.raises(rfsim.InputError, match="length"):
        schedule.replace(lr=[0.1, 0.2])
    with pytest.raises(rfsim.InputError, match="batch"):
        schedule.replace(batch=0.0)


def test_callables():
    def piecewise(step):
        return 0.1 if step < 2 else 0.05  # plain Python: cannot be traced

    assert_array_equal(schedules.from_callable(4, piecewise, 3).lr, [0.1, 0.1, 0.05, 0.05])
    traced = schedules.from_callable(4, lambda t: 0.1 / (1.0 + t), lambda t: 2.0 + t)
    assert_array_equal(traced.lr, 0.1 / (1.0 + np.arange(4)))
    assert_array_equal(traced.batch, [2.0, 3.0, 4.0, 5.0])
    jaxed = schedules.from_callable(3, lambda t: jnp.where(t < 1, 0.3, 0.1))
    assert_array_equal(jaxed.lr, [0.3, 0.1, 0.1])
    assert_array_equal(jaxed.batch, np.ones(3))
    assert schedules.from_callable(0, lambda t: 0.1).steps == 0
    with pytest.raises(rfsim.InputError, match="lr"):
        schedules.from_callable(4, lambda t: 0.1 - 0.1 * t)
    with pytest.raises(rfsim.InputError, match="batch"):
        schedules.from_callable(4, 0.1, lambda t: 1.0 * t)


def cosine_of_other_library(init, steps, alpha):
    """A schedule in the form of optax: a closure over numbers that maps a jax count to a jax value."""

    def schedule(count):
        count = jnp.minimum(count, steps)
        return init * ((1 - alpha) * 0.5 * (1 + jnp.cos(jnp.pi * count / steps)) + alpha)

    return schedule


def joined_of_other_library(parts, boundaries):
    def schedule(count):
        value = parts[0](count)
        for edge, part in zip(boundaries, parts[1:], strict=True):
            value = jnp.where(count < edge, value, part(count - edge))
        return value

    return schedule


def test_schedules_of_other_libraries_keep_their_values():
    warm = joined_of_other_library(
        [lambda count: 0.3 * jnp.minimum(count, 50) / 50, cosine_of_other_library(0.3, 450, 0.1)], [50]
    )
    found = schedules.from_callable(501, warm, 8)
    for step in (0, 1, 10, 55, 100, 500):
        assert found.lr[step] == pytest.approx(float(warm(step)), rel=1e-14, abs=0.0)
        hand = 0.3 * step / 50 if step < 50 else 0.3 * (0.45 * (1 + math.cos(math.pi * (step - 50) / 450)) + 0.1)
        assert found.lr[step] == pytest.approx(hand, rel=1e-14, abs=0.0)


def test_optax_schedules_work_as_they_are():
    optax = pytest.importorskip("optax")
    for made in (
        optax.constant_schedule(0.1),
        optax.linear_schedule(0.1, 0.01, 400),
        optax.cosine_decay_schedule(0.1, 300, alpha=0.1),
        optax.exponential_decay(0.1, 100, 0.5, staircase=True),
        optax.warmup_cosine_decay_schedule(0.0, 0.1, 50, 500, 0.01),
        optax.piecewise_constant_schedule(0.1, {55: 0.3, 100: 0.1}),
        optax.polynomial_schedule(0.1, 0.01, 2, 300),
        optax.join_schedules([optax.linear_schedule(0.0, 0.1, 10), optax.constant_schedule(0.1)], [10]),
    ):
        found = schedules.from_callable(501, made, 8)
        for step in (0, 1, 10, 55, 100, 500):
            assert found.lr[step] == pytest.approx(float(made(step)), rel=1e-12, abs=0.0)


def test_schedules_are_pytrees():
    schedule = schedules.constant(3, 0.2, 5)
    doubled = jax.tree.map(lambda leaf: 2 * leaf, schedule)
    assert_array_equal(doubled.lr, [0.4, 0.4, 0.4])
    assert len(jax.tree.leaves(schedule)) == 2
    broken = jax.tree.map(lambda leaf: -leaf, schedule)  # unflattening must not validate
    assert broken.lr[0] == -0.2


# --- the clock -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [0, 1, 5, 16383, 16384, 16385, 40000])
def test_clock_keeps_every_digit(steps):
    rates = np.random.default_rng(1).uniform(0.0, 1.0, steps) ** 8
    time = schedules.intrinsic_time(rates)
    assert time.shape == (steps + 1,)
    for t in {0, 1, 5, 16383, 16384, 16385, 30000, steps}:
        if t <= steps:
            assert_allclose(time[t], math.fsum(rates[:t]), rtol=3e-16)
            assert schedules.intrinsic_time(rates, np.array([t]))[0] == time[t]
    some = np.unique(np.linspace(0, steps, 7).astype(int))
    assert_array_equal(schedules.intrinsic_time(rates, some), time[some])


def test_clock_of_many_equal_steps():
    exact = Fraction(0.1) * 300_000
    assert schedules.intrinsic_time(np.full(300_000, 0.1))[-1] == float(exact)
    assert np.cumsum(np.full(300_000, 0.1))[-1] != float(exact)  # what it is better than


@pytest.mark.parametrize("last", [0, 1, 2, 199, 200, 201, 202, 1000, 10**6, 10**9])
def test_log_spaced_steps(last):
    steps = schedules.log_spaced_steps(last)
    assert steps[0] == 0
    assert steps[-1] == last
    assert (np.diff(steps) > 0).all()
    assert len(steps) <= 201
    if last >= 10**6:
        assert len(steps) > 150
        tail = np.diff(np.log(steps[-50:]))
        assert_allclose(tail, tail.mean(), rtol=0.01)


def test_is_constant():
    assert schedules.is_constant(schedules.constant(5, 0.1, 2))
    assert schedules.is_constant(schedules.constant(0, 0.1, 2))
    assert not schedules.is_constant(schedules.from_arrays([0.1, 0.1], [1, 2]))
    assert not schedules.is_constant(schedules.from_arrays([0.1, 0.2], [2, 2]))


# --- text form -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("constant", schedules.constant(20, 0.2, 4)),
        ("constant:", schedules.constant(20, 0.2, 4)),
        ("wsd", schedules.wsd(20, 0.2, 4)),
        (
            "wsd:decay=0.3,shape=linear,to=0,warmup=2",
            schedules.wsd(20, 0.2, 4, decay=0.3, shape="linear", to=0, warmup=2),
        ),
        ("8-1-1", schedules.eight_one_one(20, 0.2, 4)),
        ("cosine:to=0.25", schedules.cosine(20, 0.2, 4, to=0.25)),
        ("power:vartheta=0.5", schedules.power(20, 0.2, 4, vartheta=0.5)),
        ("power:vartheta=0.5,via=lr", schedules.power(20, 0.2, 4, vartheta=0.5, via="lr")),
        ("power:vartheta=.5,exact_batch=1", schedules.power(20, 0.2, 4, vartheta=0.5, exact_batch=True)),
        ("constant:warmup=0.2", schedules.warmed(schedules.constant(20, 0.2, 4), 4)),
        ("stages:at=0.5/15,lr_to=0.5/0.1", schedules.stages(20, 0.2, 4, at=[10, 15], lr_to=[0.5, 0.1])),
        ("stages:at=.5,batch_to=3", schedules.stages(20, 0.2, 4, at=10, batch_to=3)),
        ("linear:to=0,warmup=3", schedules.linear(20, 0.2, 4, to=0, warmup=3)),
        ("exponential:to=0.2", schedules.exponential(20, 0.2, 4, to=0.2)),
        (
            "polynomial:lr_decay=0.3,batch_growth=.5",
            schedules.polynomial(20, 0.2, 4, lr_decay=0.3, batch_growth=0.5),
        ),
        ("batch-ramp:to=8,start=0.5,shape=linear", schedules.batch_ramp(20, 0.2, 4, to=8, start=10, shape="linear")),
    ],
)
def test_text_form(spec, expected):
    found = schedules.from_spec(spec, steps=20, lr=0.2, batch=4)
    assert_array_equal(found.lr, expected.lr)
    assert_array_equal(found.batch, expected.batch)


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("triangle", "triangle"),
        ("", "not known"),
        ("WSD", "allowed"),
        ("constant:to=1", "to=1"),
        ("wsd:length=3", "length=3"),
        ("wsd:decay", "decay"),
        ("wsd:decay=much", "much"),
        ("wsd:decay=-0.1", "decay"),
        ("wsd:decay=1.5", "decay"),
        ("wsd:decay=30", "decay"),
        ("wsd:decay=0.6,warmup=0.6", "warmup"),
        ("wsd:shape=round", "shape"),
        ("wsd:to=0", "to"),
        ("wsd:to=1.1", "to"),
        ("wsd:to=nan", "to"),
        ("wsd:decay=inf", "decay"),
        ("cosine:to=-1", "to"),
        ("cosine:warmup=100", "warmup"),
        ("power", "vartheta"),
        ("power:vartheta=nan", "vartheta"),
        ("power:vartheta=1,via=both", "via"),
        ("power:vartheta=1,exact_batch=2", "exact_batch"),
        ("wsd:decay=0.1,decay=0.2", "decay"),
        ("constant:warmup=0.5,warmup=0.5", "twice"),
        ("8-1-1:warmup=21", "warmup"),
        ("stages", "needs at"),
        ("stages:at=0.5/much", "at must be a number"),
        ("stages:at=0.5/0.2", "increase"),
        ("stages:at=21", "at must"),
        ("stages:at=0.5/0.6/0.7,lr_to=0.5/0.1", "lr_to"),
        ("stages:at=0.5,lr_to=0", "lr_to"),
        ("stages:at=0.5,batch_to=-1", "batch_to"),
        ("linear:to=1.5", "to"),
        ("exponential:to=0", "to"),
        ("polynomial:lr_decay=inf", "lr_decay"),
        ("polynomial:batch_growth=nan", "batch_growth"),
        ("batch-ramp:to=0", "to"),
        ("batch-ramp:start=30", "start"),
        ("batch-ramp:shape=sqrt", "shape"),
    ],
)
def test_bad_text_form_is_named(spec, word):
    with pytest.raises(rfsim.InputError, match=word):
        schedules.from_spec(spec, steps=20, lr=0.2, batch=4)


# --- bad numbers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lr", "batch", "word"),
    [
        ([0.1, -0.1], [1, 1], "lr .* position 1"),
        ([0.1, np.nan], [1, 1], "lr .* position 1"),
        ([0.1, np.inf], [1, 1], "lr"),
        ([0.1, 0.1], [1, 0], "batch .* position 1"),
        ([0.1, 0.1], [np.nan, 1], "batch .* position 0"),
        ([0.1, 0.1], [1, -2], "batch"),
        ([0.1, 0.1], [1, 1, 1], "lr has 2, batch has 3"),
        ([[0.1, 0.1]], [1, 1], "lr .*shape"),
        ([0.1, 0.1], [[1, 1]], "batch .*shape"),
        (0.1, 1.0, "shape"),
        (["a", "b"], [1, 1], "lr"),
        ([0.1 + 1j], [1], "lr"),
        ([None, 0.1], [1, 1], "lr"),
    ],
)
def test_bad_arrays_are_named(lr, batch, word):
    with pytest.raises(rfsim.InputError, match=word):
        schedules.from_arrays(lr, batch)


SHAPES = {
    "constant": schedules.constant,
    "wsd": schedules.wsd,
    "eight_one_one": schedules.eight_one_one,
    "cosine": schedules.cosine,
    "power": lambda *a: schedules.power(*a, vartheta=0.5),
    "stages": lambda *a: schedules.stages(*a, at=0.5),
    "linear": schedules.linear,
    "exponential": schedules.exponential,
    "polynomial": schedules.polynomial,
    "batch_ramp": schedules.batch_ramp,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("steps", "lr", "batch", "word"),
    [
        (-1, 0.1, 1, "steps"),
        (2.5, 0.1, 1, "steps"),
        (np.nan, 0.1, 1, "steps"),
        (True, 0.1, 1, "steps"),
        (3, 0.0, 1, "lr"),
        (3, -1.0, 1, "lr"),
        (3, np.nan, 1, "lr"),
        (3, np.inf, 1, "lr"),
        (3, "0.1", 1, "lr"),
        (3, 0.1, 0, "batch"),
        (3, 0.1, -4, "batch"),
        (3, 0.1, np.nan, "batch"),
    ],
)
def test_bad_numbers_are_named(shape, steps, lr, batch, word):
    with pytest.raises(rfsim.InputError, match=word):
        SHAPES[shape](steps, lr, batch)


def test_infinite_batch_is_allowed():
    assert np.isinf(schedules.constant(2, 0.1, np.inf).batch).all()


# --- files -----------------------------------------------------------------------------------------------------------


def write(tmp_path, text):
    path = tmp_path / "schedule.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_file(tmp_path):
    path = write(tmp_path, "batch, step ,lr,comment\n8,1,0.2,b\n4,0,0.1,a\n\n16,2,0,c\n")
    schedule = schedules.read_schedule(path)
    assert_array_equal(schedule.lr, [0.1, 0.2, 0.0])
    assert_array_equal(schedule.batch, [4, 8, 16])


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "step"),
        ("step,lr\n0,1\n", "batch"),
        ("step,lr,batch\n", "no rows"),
        ("step,lr,batch\n1,0.1,2\n", "expected"),
        ("step,lr,batch\n0,0.1,2\n0,0.1,2\n", "each once"),
        ("step,lr,batch\n0,0.1,2\n2,0.1,2\n", "each once"),
        ("step,lr,batch\n0,-0.1,2\n", "lr"),
        ("step,lr,batch\n0,nan,2\n", "lr"),
        ("step,lr,batch\n0,0.1,0\n", "batch"),
        ("step,lr,batch\n0,0.1\n", "batch"),
        ("step,lr,batch\n0,fast,2\n", "fast"),
        ("step,lr,batch\nnan,0.1,2\n", "step"),
    ],
)
def test_bad_file_is_named(tmp_path, text, word):
    with pytest.raises(rfsim.InputError, match=word):
        schedules.read_schedule(write(tmp_path, text))


def test_written_file_gives_the_same_numbers(tmp_path):
    draw = np.random.default_rng(3)
    schedule = schedules.from_arrays(
        draw.uniform(size=300) * 10.0 ** draw.integers(-12, 3, 300), draw.uniform(1, 9, 300)
    )
    path = tmp_path / "out.csv"
    schedules.write_schedule(path, schedule)
    assert path.read_text().startswith("step,lr,batch\n0,")
    again = schedules.read_schedule(path)
    assert_array_equal(again.lr, schedule.lr)
    assert_array_equal(again.batch, schedule.batch)
    schedules.write_schedule(path, schedules.constant(2, 1.0, math.inf))
    assert np.isinf(schedules.read_schedule(path).batch).all()
    with pytest.raises(rfsim.InputError, match="no steps"):
        schedules.write_schedule(path, schedule.part(0, 0))
    with pytest.raises(rfsim.RunError, match="cannot write"):
        schedules.write_schedule(tmp_path / "no" / "out.csv", schedule)


def test_missing_file_and_folder(tmp_path):
    for path in (tmp_path / "absent.csv", tmp_path):
        with pytest.raises(rfsim.InputError, match="cannot be read"):
            schedules.read_schedule(path)


@pytest.mark.parametrize(("steps", "decay", "warmup"), [(3, 0.5, 0.5), (5, 0.7, 0.3), (7, 0.9, 0.1), (2, 0.2, 0.0)])
def test_fractions_that_fill_the_schedule_fit_at_any_length(steps, decay, warmup):
    lr = schedules.wsd(steps, 1.0, 4, decay=decay, warmup=warmup, to=0.25).lr
    assert lr[-1] == 0.25


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 9])
def test_short_eight_one_one_ends_at_a_tenth(steps):
    assert schedules.eight_one_one(steps, 1.0, 4).lr[-1] == 0.1
