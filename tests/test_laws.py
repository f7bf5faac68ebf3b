"""The laws in the learning rate against loops over all updates, their gradients, conventions and fits."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rfsim.surrogates.functional_scaling
import rfsim.surrogates.momentum
import rfsim.surrogates.multi_power
import rfsim.surrogates.rate_scaling  # noqa: F401  (laws register themselves when imported)
from rfsim.checks import InputError
from rfsim.logs import run
from rfsim.schedules import from_arrays
from rfsim.surrogates import fit, law, law_names, law_record
from rfsim.surrogates.changes import lr_drops
from rfsim.surrogates.kernel import kinks, memory_integrals

PEAK = 3e-4
VALUES = {
    "multi-power": [2.65, 0.6, 0.45, 440.0, 2.1, 0.6, 0.65],
    "momentum": [2.65, 8.0, 0.45, 4e-3, 40.0],
    "fsl": [2.65, 8.0, 0.45, 0.02, 0.1, 0.05, 1.3],
    "lr-fsl": [2.65, 8.0, 30.0, 0.45, 0.5, 20.0, 1.3],
    "elr-fsl": [2.65, 8.0, 30.0, 0.45, 0.5, 20.0, 1.3],
}
NAMES = tuple(VALUES)
WITH_POWER_OF_CLOCK = ("multi-power", "momentum", "fsl")


def full(name, **options):
    """The law with every change of the lr in its memory, that of the warm-up too."""
    return law(name, **({"warmup_in_memory": True} if name in WITH_POWER_OF_CLOCK else {}), **options)


def schedules(steps, warmup):
    """Learning rates: constant, cosine to a tenth, a decay to 0, stairs; all behind a linear warm-up."""
    s = np.arange(1, steps + 1.0)
    end = np.clip((s - warmup) / (steps - warmup), 0.0, 1.0)
    shapes = [
        np.ones(steps),
        0.1 + 0.45 * (1.0 + np.cos(np.pi * end)),
        np.minimum(1.0, (1.0 - s / steps) / 0.2),
        np.where(s > 0.7 * steps, 0.1, np.where(s > 0.4 * steps, 0.3, 1.0)),
    ]
    return [PEAK * shape * np.minimum(1.0, s / warmup) for shape in shapes]


def log_of(lr, rows, loss=3.0, norm=True, name="log"):
    """A run with these rows; its norm grows as that of parameters does."""
    norms = 5.0 + 3.0 * np.sqrt(np.arange(len(lr)) / len(lr)) if norm is True else norm
    return run(rows, np.broadcast_to(loss, np.shape(rows)), from_arrays(lr, 1.0), norm=norms, name=name)


def runs_of(steps=600, warmup=50, count=40):
    rows = np.unique(np.linspace(warmup // 2, steps, count).astype(int))
    return [log_of(lr, rows, name=str(i)) for i, lr in enumerate(schedules(steps, warmup))]


# --- literal sums ------------------------------------------------------------------------------------------------


def literal(name, values, one, unit):
    """The loss at every row by loops over the updates, written as in the theory with 1-based updates."""
    eta = [0.0, *(float(x) / unit for x in one.schedule.lr)]
    found = []
    for t in (int(x) for x in one.step):
        clock = [math.fsum(eta[: k + 1]) for k in range(t + 1)]
        if name == "multi-power":
            l_0, a, al, b, c, be, g = values
            memory = sum(
                (eta[k - 1] - eta[k]) * (1.0 - (1.0 + c * eta[k] ** -g * (clock[t] - clock[k - 1])) ** -be)
                for k in range(1, t + 1)
                if eta[k - 1] != eta[k]
            )
            found.append(l_0 + a * clock[t] ** -al - b * memory)
        elif name == "momentum":
            l_0, a, al, c, steps = values
            m = total = 0.0
            for k in range(1, t + 1):
                m = (1.0 - 1.0 / steps) * m + eta[k - 1] - eta[k]
                total += m
            found.append(l_0 + a * clock[t] ** -al - c * total)
        elif name == "fsl":
            l_0, c_1, s, a_0, a_1, c, q = values
            g = q - 1.0
            c_2, c_3 = a_1 / (c * g), a_0 / a_1
            memory = sum(
                (eta[k - 1] - eta[k]) * (c_3 + clock[k - 1] ** -s) * (1.0 - (1.0 + c * (clock[t] - clock[k - 1])) ** -g)
                for k in range(2, t + 1)
                if eta[k - 1] != eta[k]
            )
            found.append(l_0 + c_1 * clock[t] ** -s - c_2 * memory)
        else:
            l_inf, c_1, b_1, a_1, c_2, b_2, a_2 = values
            rate = eta if name == "lr-fsl" else [0.0, *(np.asarray(one.schedule.lr) / one.norm / unit)]
            clock = [math.fsum(rate[: k + 1]) for k in range(t + 1)]
            memory = sum((b_2 + clock[t] - clock[k]) ** -a_2 * rate[k] ** 2 for k in range(1, t + 1))
            found.append(l_inf + c_1 * (b_1 + clock[t]) ** -a_1 + c_2 * memory)
    return np.array(found)


def unit_of(one):
    """Unit of the rate of a calibrated law."""
    return one.rate_unit if hasattr(one, "rate_unit") else one.lr_unit


@pytest.mark.parametrize("name", NAMES)
def test_equals_the_loop_over_all_updates(name):
    runs = runs_of(count=15)
    runs[2] = runs[2].part(0, 599)  # at the last update the lr is 0, where the theory's power of it is not defined
    values = np.array(VALUES[name])
    one = full(name).calibrated(runs)
    for each in runs:
        exact = literal(name, values, each, unit_of(one))
        loss, _ = one.evaluate(values, one.prepare(each), gradient=False)
        np.testing.assert_allclose(loss, exact, rtol=2e-9)
        again, _ = one.evaluate(values, one.prepare(each))
        np.testing.assert_array_equal(again, loss)


@pytest.mark.parametrize("name", ["multi-power", "fsl", "lr-fsl", "elr-fsl"])
def test_few_terms_against_every_update(name):
    runs = runs_of(steps=30_000, warmup=1000, count=9)
    values = np.array(VALUES[name])
    quick = full(name).calibrated(runs)
    slow = law(**{**law_record(quick), "nodes": 0})
    for each in runs:
        loss, gradient = quick.evaluate(values, quick.prepare(each))
        exact, exact_gradient = slow.evaluate(values, slow.prepare(each))
        np.testing.assert_allclose(loss, exact, rtol=1e-8)
        size = np.abs(exact_gradient).max(axis=0)
        assert (np.abs(gradient - exact_gradient) <= 1e-6 * size).all()


# --- gradients and the protocol ------------------------------------------------------------------------------------


def ranges(one):
    """Bounds inside which values are drawn: those of the law, cut to where differences of the loss can be taken."""
    cut = {"L_0": 6, "L_inf": 6, "A": 50, "c_1": 50, "A_0": 2, "A_1": 2, "C_1": 50, "C_2": 5}
    cut |= {"B": 1e3, "C": 1e3, "steps": 500, "q_K": 6, "a_2": 6, "alpha": 1.5, "s": 1.5, "a_1": 2, "beta": 5}
    cut |= {"B_1": 1e3, "B_2": 1e3, "c_4": 10}
    low = {"C": 1e-2, "c_4": 1e-3, "B_1": 0.1, "B_2": 0.1, "q_K": 0.1, "a_2": 0.1, "alpha": 0.1, "s": 0.1}
    for p in one.parameters:
        yield p, max(p.low, low.get(p.name, p.low)), min(p.high, cut.get(p.name, p.high))


RUNS = runs_of(count=7)


@pytest.mark.parametrize("name", NAMES)
@given(shares=st.lists(st.floats(0.02, 0.98), min_size=7, max_size=7), which=st.integers(0, 3))
def test_gradient_is_the_slope(name, shares, which):
    one = full(name).calibrated(RUNS)
    values = np.array(
        [
            math.exp(math.log(low) + share * math.log(high / low)) if p.log else low + share * (high - low)
            for (p, low, high), share in zip(ranges(one), shares, strict=False)
        ]
    )
    prepared = one.prepare(RUNS[which])
    _, gradient = one.evaluate(values, prepared)
    assert gradient.shape == (len(RUNS[which].step), len(values))
    for k, p in enumerate(one.parameters):
        slopes = []
        for size in (2e-4, 1e-4):
            step = size * values[k] if p.log else size * max(values[k], 0.05)
            up, down = values.copy(), values.copy()
            up[k], down[k] = up[k] + step, down[k] - step
            ends = [one.evaluate(v, prepared, gradient=False)[0] for v in (up, down)]
            slopes.append((ends[0] - ends[1]) / (2.0 * step))
            noise = 1e-14 * np.abs(ends[0]).max() / step
        slope = (4.0 * slopes[1] - slopes[0]) / 3.0
        allowed = 1e-6 * np.abs(slope) + np.abs(slopes[1] - slopes[0]) * 1e-2 + 30.0 * noise
        # the summed values of a large cancelling memory carry rounding of their own
        assert (np.abs(gradient[:, k] - slope) <= allowed + 1e-9 * np.abs(gradient[:, k]).max()).all(), p.name


@pytest.mark.parametrize("name", NAMES)
def test_the_protocol(name):
    one = law(name)
    assert name in law_names()
    assert one.name == name
    assert law(**law_record(one)) == one
    ready = one.calibrated(RUNS)
    assert law(**law_record(ready)) == ready
    assert ready.calibrated(RUNS[:1]) == ready  # units are chosen once
    names = [p.name for p in ready.parameters]
    assert all(p.low < p.high and p.unit and p.meaning for p in ready.parameters)
    prepared = [ready.prepare(each) for each in RUNS]
    starts = ready.starts(prepared, [each.loss for each in RUNS])
    low, high = (np.array([getattr(p, end) for p in ready.parameters]) for end in ("low", "high"))
    assert starts.shape[1] == len(names)
    assert ((starts >= low) & (starts <= high)).all()
    for amplitude, (exponent, centre) in ready.centres(prepared).items():
        assert {amplitude, exponent} <= set(names)
        assert math.isfinite(centre)
    # the loss is linear in the amplitudes
    values, shifted = np.array(VALUES[name]), np.array(VALUES[name])
    moved = [names.index(amplitude) for amplitude in ready.linear]
    shifted[moved] *= 1.0 + np.arange(1, len(moved) + 1)
    loss, gradient = ready.evaluate(values, prepared[1])
    expected = loss + gradient[:, moved] @ (shifted - values)[moved]
    np.testing.assert_allclose(ready.evaluate(shifted, prepared[1], gradient=False)[0], expected, rtol=1e-12)
    # predictions anywhere, in any order
    at = np.array([600, 50, 333])
    np.testing.assert_allclose(
        ready.evaluate(values, ready.prepare(RUNS[1], at))[0],
        [ready.evaluate(values, ready.prepare(RUNS[1], np.array([k])))[0][0] for k in at],
        rtol=1e-10,
    )


@pytest.mark.parametrize("name", NAMES)
def test_degenerate_runs(name):
    values = np.array(VALUES[name])
    flat = log_of(np.full(50, PEAK), np.array([1, 2, 50]))
    stopped = log_of(np.concatenate([np.full(40, PEAK), np.zeros(10)]), np.array([40, 41, 45, 50]))
    single = log_of(np.full(1, PEAK), np.array([1]))
    late = log_of(np.concatenate([np.zeros(5), np.full(5, PEAK), np.zeros(5), np.full(5, PEAK)]), np.arange(6, 21))
    for each in (flat, stopped, single, late):
        one = law(name).calibrated([each])
        loss, gradient = one.evaluate(values, one.prepare(each))
        assert np.isfinite(loss).all()
        assert np.isfinite(gradient).all()
    with pytest.raises(InputError, match="whole numbers"):
        law(name).calibrated([flat]).prepare(flat, np.array([51]))
    with pytest.raises(InputError, match="whole numbers"):
        law(name).calibrated([flat]).prepare(flat, np.array([2.5]))
    if name in WITH_POWER_OF_CLOCK:
        with pytest.raises(InputError, match="infinite"):
            law(name).calibrated([flat]).prepare(flat, np.array([0, 1]))
        with pytest.raises(InputError, match="positive at some step"):
            law(name).calibrated([late]).prepare(late, np.array([3, 8]))
    else:
        one = law(name).calibrated([flat])
        loss, _ = one.evaluate(values, one.prepare(flat, np.array([0])))
        assert loss[0] == pytest.approx(values[0] + values[1] * values[2] ** -values[3], rel=1e-14)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "multi-power"])
def test_units_come_from_the_runs(name):
    with pytest.raises(InputError, match="no unit"):
        law(name).prepare(RUNS[0])
    with pytest.raises(InputError, match="positive"):
        law(name).calibrated([log_of(np.zeros(3), np.array([1, 2]))])
    # another unit of the lr is absorbed by the unit: the same loss
    scaled = [log_of(np.asarray(each.schedule.lr) * 7.0, each.step) for each in RUNS]
    values = np.array(VALUES[name])
    one, other = law(name).calibrated(RUNS), law(name).calibrated(scaled)
    for a, b in zip(RUNS, scaled, strict=True):
        np.testing.assert_allclose(
            one.evaluate(values, one.prepare(a))[0], other.evaluate(values, other.prepare(b))[0], rtol=1e-12
        )


# --- conventions -----------------------------------------------------------------------------------------------------


def test_drops_of_the_learning_rate():
    lr = np.array([0.0, 1.0, 2.0, 3.0, 3.0, 4.0, 1.0, 2.0])
    assert lr_drops(lr, warmup=True).tolist() == [0.0, -1.0, -1.0, -1.0, 0.0, -1.0, 3.0, -1.0]
    assert lr_drops(lr, warmup=False).tolist() == [0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 3.0, -1.0]
    assert lr_drops(lr[1:], warmup=True).tolist()[:2] == [-1.0, -1.0]
    assert lr_drops(lr[1:], warmup=True, first=False).tolist()[:2] == [0.0, -1.0]
    assert lr_drops(np.full(4, 2.0), warmup=False).tolist() == [0.0] * 4
    assert lr_drops(np.arange(4.0), warmup=False).tolist() == [0.0] * 4
    assert lr_drops(np.zeros(0), warmup=True).tolist() == []


@pytest.mark.parametrize("name", WITH_POWER_OF_CLOCK)
def test_without_the_warmup_a_constant_rate_has_no_memory(name):
    stored = {"multi-power": True, "momentum": False, "fsl": False}
    assert law_record(law(name))["warmup_in_memory"] is stored[name]
    one = law(name, warmup_in_memory=False).calibrated(RUNS)
    constant, cosine = (one.prepare(RUNS[k]) for k in (0, 1))
    values = np.array(VALUES[name])
    memory = [k for k, p in enumerate(one.parameters) if p.name in ("B", "C", "A_0", "A_1") and p.name in one.linear]
    assert not one.evaluate(values, constant)[1][:, memory].any()
    assert (one.evaluate(values, cosine)[1][-1, memory] < 0.0).all()  # falls of the lr lower the loss


@pytest.mark.parametrize("q", [0.7, 1.0, 1.3])
def test_falls_are_the_memory_integral(q):
    """int eta k(T-u) du = eta_0 G(T) - sum_i (eta_{i-1} - eta_i) G(T - T_i)."""
    lr = np.array([1.0] * 20 + [0.4] * 11 + [0.7] * 5 + [0.05] * 30 + [0.5])
    rows = np.array([1, 20, 21, 33, 67])
    each = log_of(lr, rows)
    one = full("fsl", q_memory=q, lr_unit=1.0)
    loss, _ = one.evaluate(np.array([0.0, 0.0, 0.5, 1.0, 0.0, 0.3]), one.prepare(each))
    clock = np.concatenate([[0.0], np.cumsum(lr)])
    shape = kinks(clock, lr, lr)
    wanted = memory_integrals(clock[rows], shape.place, shape.jump[:, None], shape.bend[:, None], 0.3, q)
    at = clock[rows]
    first = np.log1p(0.3 * at) / 0.3 if q == 1.0 else (1.0 - (1.0 + 0.3 * at) ** (1.0 - q)) / (0.3 * (q - 1.0))
    np.testing.assert_allclose(lr[0] * first + loss, wanted.value[:, 0], rtol=3e-14)


def test_practical_form():
    one = law("fsl")
    found = one.practical(VALUES["fsl"])
    assert found["c_2"] == pytest.approx(0.1 / (0.05 * 0.3))
    assert found["c_3"] == pytest.approx(0.2)
    assert found["g"] == pytest.approx(0.3)
    below = law("fsl", q_memory=0.7).practical(VALUES["fsl"][:-1])
    assert below["g"] == pytest.approx(-0.3)
    assert below["c_2"] < 0.0  # as its exponent: the law itself does not change its sign
    assert law("fsl", q_memory=1.0).practical(VALUES["fsl"][:-1])["c_2"] == math.inf


def test_equal_ratios_of_rate_and_norm_are_one_run_to_the_effective_law():
    lr = np.asarray(RUNS[1].schedule.lr)
    norm = np.linspace(5.0, 9.0, len(lr))
    shrunk = 0.25 * (1.0 + np.arange(len(lr)) % 4)
    one, other = (log_of(lr * f, RUNS[1].step, norm=norm * f) for f in (np.ones_like(shrunk), shrunk))
    for name, same in (("elr-fsl", True), ("lr-fsl", False)):
        ready = law(name).calibrated([one, other])
        losses = [ready.evaluate(np.array(VALUES[name]), ready.prepare(each))[0] for each in (one, other)]
        assert np.array_equal(losses[0], losses[1]) == same
        assert (np.abs(losses[0] - losses[1]).max() > 1e-2) != same


def test_the_effective_law_asks_for_the_norm():
    bare = log_of(np.full(9, PEAK), np.arange(1, 9), norm=None, name="bare")
    for act in (lambda: law("elr-fsl").calibrated([bare]), lambda: law("elr-fsl", rate_unit=1.0).prepare(bare)):
        with pytest.raises(InputError, match="norm of every step, and bare has none"):
            act()
    law("lr-fsl").calibrated([bare]).prepare(bare)


def test_momentum_with_a_fixed_lam():
    free, held = law("momentum").calibrated(RUNS), law("momentum", lam=0.975).calibrated(RUNS)
    values = np.array(VALUES["momentum"])
    assert len(held.parameters) == 4
    for each in RUNS:
        loss, gradient = free.evaluate(values, free.prepare(each))
        other, fewer = held.evaluate(values[:4], held.prepare(each))
        np.testing.assert_allclose(other, loss, rtol=1e-12)
        np.testing.assert_allclose(fewer, gradient[:, :4], rtol=1e-9, atol=1e-9)
    assert held.starts([held.prepare(RUNS[0])], [RUNS[0].loss]).shape[1] == 4
    for lam in (1.0, -0.1):
        with pytest.raises(InputError, match="lam"):
            law("momentum", lam=lam).calibrated(RUNS).prepare(RUNS[0])


# --- fits ------------------------------------------------------------------------------------------------------------


def synthetic(name, noise, rng):
    """Runs that the law makes, on four schedules, and its values."""
    values = np.array(VALUES[name])
    rows = np.unique(np.linspace(60, 4000, 120).astype(int))
    bare = [log_of(lr, rows, name=str(i)) for i, lr in enumerate(schedules(4000, 200))]
    one = law(name).calibrated(bare)
    made = []
    for each in bare:
        loss, _ = one.evaluate(values, one.prepare(each), gradient=False)
        made.append(log_of(each.schedule.lr, rows, loss * np.exp(noise * rng.normal(size=len(rows))), name=each.name))
    return values, made


@pytest.mark.parametrize("name", NAMES)
def test_every_start_finds_the_law_that_made_the_runs(name):
    values, made = synthetic(name, 0.0, np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a perfect fit has no scatter to speak of
        found = fit(law(name), made)
    np.testing.assert_allclose(found.values, values, rtol=1e-4)
    assert found.objective < 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_standard_errors_are_the_scatter(name):
    """In units of its standard error, the error of each parameter is about normal: 12 fits, all parameters."""
    rng = np.random.default_rng(11)
    scores, shares = [], []
    for _ in range(12):
        values, made = synthetic(name, 1e-3, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = fit(law(name), made)
        error = np.sqrt(np.diag(found.spread.covariance))
        log = np.array([p.log for p in found.law.parameters])
        miss = np.where(log, found.values * np.log(found.values / values), found.values - values)
        inside = error > 0.0  # 0 where a parameter came to lie on a bound
        scores.append(np.where(inside, miss / np.where(inside, error, 1.0), 0.0))
        shares.append(found.share)
    scores = np.array(scores)
    assert np.abs(scores).max() < 4.5
    assert 0.4 < np.mean(scores**2) < 1.8
    assert min(shares) > 0.8
