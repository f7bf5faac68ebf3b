"""What an anneal does: parts against literal loops, what they are compared with, and the least gap."""

import jax
import numpy as np
import pytest
from cases import random_case
from numpy.testing import assert_allclose

import rfsim
from rfsim import schedules
from rfsim.anneal import anneal_start, clock_cost, decompose, drop, gain, memory_ceiling
from rfsim.measure import fit_exponent
from rfsim.routes import recursion

PARTS = ("signal", "old_noise", "new_noise")


def literal_parts(case, start, lr, batch):
    """Parts after each step of a run (lr, batch) that follows the first `start` steps, mode by mode."""
    lam, energy, floor, noise, first_lr, first_batch, often = case.plain
    signal, old, new = list(energy), [0.0] * len(lam), [0.0] * len(lam)
    curves = {name: [] for name in PARTS}
    rates, sizes = [*first_lr[:start], *lr, 0.0], [*first_batch[:start], *batch, 1.0]
    for step, (eta, size) in enumerate(zip(rates, sizes, strict=True)):
        if step >= start:
            curves["signal"].append(floor + sum(signal))
            curves["old_noise"].append(sum(old))
            curves["new_noise"].append(sum(new))
        risk = floor + sum(signal) + sum(old) + sum(new)
        for j, value in enumerate(lam):
            kept = 1 - 2 * eta * value + (1 + 1 / size) * eta**2 * value**2
            injected = eta**2 / size * often[j] * value**2 * (risk + noise)
            signal[j] *= kept
            old[j] = kept * old[j] + (injected if step < start else 0.0)
            new[j] = kept * new[j] + (injected if step >= start else 0.0)
    return {name: np.array(values) for name, values in curves.items()}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_parts_are_those_of_literal_loops(seed):
    case = random_case(seed, steps=15, multiplicity=True)
    case = case._replace(schedule=case.schedule.scaled(lr=0.3))
    start = 6
    found = decompose(case.spectrum, case.schedule, start=start)
    rest = case.schedule.part(start, 15)
    lr, batch = float(case.schedule.lr[start - 1]), float(case.schedule.batch[start - 1])
    for run, rates, sizes in (
        (found.annealed, rest.lr, rest.batch),
        (found.same_time, *steady(lr, batch, rest.lr.sum() / lr)),
        (found.same_data, *steady(lr, batch, rest.batch.sum() / batch)),
    ):
        expected = literal_parts(case, start, rates, sizes)
        for name in PARTS:
            assert_allclose(getattr(run, name), expected[name], rtol=1e-11, err_msg=name)
        assert_allclose(run.signal + run.old_noise + run.new_noise, run.risk, rtol=1e-14)
        assert_allclose(run.intrinsic_time - run.intrinsic_time[0], np.concatenate([[0], np.cumsum(rates)]), atol=1e-13)
        assert_allclose(run.data - run.data[0], np.concatenate([[0], np.cumsum(sizes)]), rtol=1e-13)
        assert_allclose(run.step, start + np.arange(len(rates) + 1))


def steady(lr, batch, steps):
    """`steps` constant steps, the last one a fraction."""
    whole = np.ones(int(steps))
    rest = steps - int(steps)
    share = np.append(whole, rest) if rest > 1e-9 else whole
    return lr * share, batch * share


@pytest.mark.parametrize("spec", ["wsd:decay=0.2", "wsd:decay=0.3,shape=linear,to=0", "8-1-1", "batch-ramp:start=0.7"])
def test_the_same_clock_the_same_data_and_one_risk(spec):
    spectrum = rfsim.population(rfsim.power_law(0.6, 0.2, ambient=2000, noise_var=1.0))
    schedule = schedules.from_spec(spec, steps=1003, lr=0.1, batch=4)
    found = decompose(spectrum, schedule)
    assert (
        found.start
        == anneal_start(schedule)
        == int(np.argmax(np.diff(schedule.batch / np.maximum(schedule.lr, 1e-9)) > 0)) + 1
    )
    whole = schedules.path(schedule)
    for run in found[1:]:
        assert_allclose(run.signal + run.old_noise + run.new_noise, run.risk, rtol=1e-13)
        assert run.new_noise[0] == 0.0
        assert (np.diff(run.signal) <= 0.0).all()
        assert (np.diff(run.old_noise) <= 0.0).all()
        assert run.data[0] == whole.data[found.start]
        assert run.step[0] == found.start
    assert_allclose(found.same_time.intrinsic_time[-1], whole.intrinsic_time[-1], rtol=1e-13)
    assert_allclose(found.same_data.data[-1], whole.data[-1], rtol=1e-13)
    assert found.annealed.step[-1] == 1003
    full = recursion.risk(spectrum, schedule, at=[found.start, 1003]).risk
    assert_allclose(found.annealed.risk[[0, -1]], full, rtol=1e-13)
    fallen = drop(found.annealed)
    assert fallen.total == pytest.approx(full[0] - full[1], rel=1e-10)
    assert fallen.signal > 0.0
    assert fallen.old_noise > 0.0
    assert fallen.new_noise < 0.0
    for change in (fallen, gain(found), gain(found, against="data")):
        assert change.total == pytest.approx(sum(change[1:]), rel=1e-10)


def test_at_equal_time_an_anneal_wins_by_withholding_noise_only():
    """Signal and old noise differ from constant lr by terms of first order in lr (1 - 1/B)."""
    spectrum = rfsim.population(rfsim.power_law(0.6, 0.2, ambient=2000, noise_var=1.0))
    errors = []
    for halvings in range(4):
        schedule = schedules.wsd(300 * 2**halvings, 0.2 / 2**halvings, 4, decay=0.2)
        won = gain(decompose(spectrum, schedule))
        assert won.new_noise == pytest.approx(won.total, rel=0.02)
        assert won.total > 0.1 * drop(decompose(spectrum, schedule).annealed).total
        errors.append([abs(won.signal), abs(won.old_noise)])
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert_allclose(orders, [[1.0, 2.0]] * 3, atol=0.15)  # old noise is of first order itself


def test_at_equal_data_a_slower_clock_costs_signal():
    spectrum = rfsim.population(rfsim.power_law(0.6, 0.2, ambient=2000, noise_var=1.0))
    schedule = schedules.wsd(1000, 0.1, 4, decay=0.4)
    found = decompose(spectrum, schedule)
    cost = clock_cost(found)
    assert cost.time_lost == pytest.approx(0.1 * 400 - schedule.lr[600:].sum(), rel=1e-12)
    assert cost.signal_lost > 0.0
    assert cost.old_noise_kept > 0.0
    assert cost.noise_withheld > 0.0
    assert cost.net == pytest.approx(cost.noise_withheld - cost.signal_lost - cost.old_noise_kept, rel=1e-10)
    constant = recursion.risk(spectrum, schedules.constant(1000, 0.1, 4), at=[1000])
    own = recursion.risk(spectrum, schedule, at=[1000])
    assert cost.signal_lost == pytest.approx(own.forcing[0] - constant.forcing[0], rel=1e-10)
    assert cost.net == pytest.approx(constant.risk[0] - own.risk[0], rel=1e-10)
    quiet = clock_cost(decompose(spectrum.replace(noise_var=0.0), schedule))
    assert quiet.noise_withheld < 0.5 * cost.noise_withheld
    # with little to withhold, the clock is all that counts and annealing loses
    huge = clock_cost(decompose(spectrum.replace(noise_var=0.0), schedules.wsd(1000, 0.1, 10**6, decay=0.4)))
    assert huge.net < 0.0
    assert huge.signal_lost == pytest.approx(-huge.net, rel=1e-3)


def test_start_of_an_anneal():
    assert anneal_start(schedules.wsd(100, 0.1, 4, decay=0.2, warmup=0.1)) == 80
    assert anneal_start(schedules.eight_one_one(100, 0.1, 4)) == 80
    assert anneal_start(schedules.batch_ramp(100, 0.1, 4, start=0.3)) == 30
    with pytest.raises(rfsim.InputError, match="no anneal"):
        anneal_start(schedules.constant(10, 0.1, 4))


# --- the ceiling -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "beta", "q_memory"), [(0.4, 0.3, 0.75), (0.6, 0.2, 7 / 6)])
def test_no_growth_of_the_batch_takes_the_gap_below_the_ceiling(alpha, beta, q_memory):
    spectrum = rfsim.population(rfsim.power_law(alpha, beta, noise_var=25.0))
    start, steps, lr = 60, 20_000, 0.15
    at = np.unique(np.geomspace(start, steps, 150).astype(int))
    exponents = []
    for vartheta in (0.5, 1.0, 2.0, 6.0):
        ramp = schedules.power(steps, lr, 16.0, vartheta=vartheta, exact_batch=True)
        schedule = schedules.join(schedules.constant(start, lr, 16.0), ramp.part(0, steps - start))
        found = memory_ceiling(spectrum, schedule, start, at=at)
        assert found.gap[0] == pytest.approx(found.least_gap[0], rel=1e-13)
        assert (found.gap[1:] > found.least_gap[1:]).all()
        exponents.append(fit_exponent(found.intrinsic_time, found.gap, window=(60.0, 2900.0)).exponent)
    least = fit_exponent(found.intrinsic_time, found.least_gap, window=(60.0, 2900.0)).exponent
    assert least == pytest.approx(q_memory, abs=0.04)
    assert (np.diff(exponents[:3]) > 0.05).all()  # the faster the growth, the faster the decay of the gap
    assert_allclose(exponents[2:], least, atol=0.02)  # until it decays as the memory does
    silent = schedule.replace(batch=np.where(np.arange(steps) < start, 16.0, np.inf))
    alone = memory_ceiling(spectrum, silent, start, at=at)
    assert_allclose(alone.gap, alone.least_gap, rtol=1e-12)  # the bound is reached
    assert_allclose(alone.gap, found.least_gap, rtol=1e-12)


# --- bad input -------------------------------------------------------------------------------------------------------


def test_what_cannot_be_split():
    spectrum = rfsim.spectrum([1.0, 0.5], [1.0, 1.0], noise_var=1.0)
    schedule = schedules.wsd(20, 0.1, 4)
    for wrong, word in (
        (lambda: decompose(spectrum, schedules.constant(20, 0.1, 4)), "no anneal"),
        (lambda: decompose(spectrum, schedules.constant(0, 0.1, 4)), "no steps"),
        (lambda: decompose(spectrum, schedule, start=0), "start"),
        (lambda: decompose(spectrum, schedule, start=20), "1..19"),
        (lambda: decompose(spectrum, schedule.scaled(lr=100.0)), "pointwise limit"),
        (lambda: decompose(spectrum, schedule.replace(batch=np.inf), start=3), "batches finite"),
        (lambda: decompose(spectrum, schedules.from_arrays([0.0, 0.1], [1, 1]), start=1), "above 0"),
        (lambda: gain(decompose(spectrum, schedule), against="steps"), "against"),
        (lambda: memory_ceiling(spectrum, schedule, 21), r"1\.\.20"),
        (lambda: memory_ceiling(spectrum, schedule, 5, at=[3]), "before start"),
        (lambda: memory_ceiling(spectrum.replace(noise_var=0.0), schedule, 5), "noise_var is 0"),
        (lambda: jax.jit(lambda s: decompose(spectrum, s, start=3).annealed.risk)(schedule), "outside of jit"),
    ):
        with pytest.raises(rfsim.InputError, match=word):
            wrong()
