"""Properties of the exact dynamics over random spectra, targets, schedules, batches and noise."""

import math

import numpy as np
import oracles
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import rfsim
from rfsim import stationary
from rfsim.routes import recursion, volterra
from rfsim.schedules import Schedule, constant, from_arrays, intrinsic_time

CURVES = ("risk", "forcing", "memory", "clean", "gap")
STEPS = 12  # one horizon, and few numbers of modes, so that few shapes compile

positive = st.floats(1e-3, 1e3)
energies = st.one_of(st.just(0.0), st.floats(1e-6, 1e3))
batches = st.one_of(st.integers(1, 50).map(float), st.floats(0.2, 1e6), st.just(math.inf))
finite_batches = st.floats(0.2, 1e4)


@st.composite
def spectra(draw, multiplicities=True):
    modes = draw(st.sampled_from([1, 3]))

    def vector(entries):
        return np.array(draw(st.lists(entries, min_size=modes, max_size=modes)))

    return rfsim.spectrum(
        vector(positive),
        vector(energies),
        floor=draw(energies),
        noise_var=draw(energies),
        multiplicity=vector(st.floats(0.1, 10.0)) if multiplicities and draw(st.booleans()) else None,
    )


@st.composite
def schedules_for(draw, spectrum, batches=batches, steps=STEPS):
    """Every step at 0 to 95 % of its pointwise limit."""
    sizes = np.array(draw(st.lists(batches, min_size=steps, max_size=steps)))
    share = np.array(draw(st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 0.95)), min_size=steps, max_size=steps)))
    return from_arrays(share * 2.0 / ((1.0 + 1.0 / sizes) * np.max(spectrum.eigenvalues)), sizes)


@st.composite
def runs(draw, multiplicities=True, batches=batches):
    spectrum = draw(spectra(multiplicities))
    return spectrum, draw(schedules_for(spectrum, batches))


def every(spectrum, schedule):
    return recursion.risk(spectrum, schedule, at=np.arange(schedule.steps + 1))


def same(one, other, scale, rtol=1e-11):
    """Equal up to rounding of what the run started with and received."""
    assert_allclose(one, other, rtol=rtol, atol=1e-13 * scale)


def size_of(spectrum, curve):
    return float(np.max(curve.risk)) + float(spectrum.noise_var)


@given(runs())
def test_risk_stays_above_the_floor(run):
    curve = every(*run)
    floor = float(run[0].floor)
    assert (curve.forcing >= floor).all()
    assert (curve.risk >= curve.forcing).all()
    assert (curve.risk >= curve.clean).all()
    assert (curve.clean >= curve.forcing).all()
    assert (curve.memory >= 0).all()
    assert (curve.gap >= 0).all()


@given(runs(), st.floats(0.0, 5.0), st.floats(0.0, 5.0), st.data())
def test_risk_is_linear_in_target_energy_and_noise(run, first, second, data):
    one, schedule = run
    other = one.replace(
        forcing_energy=np.array(data.draw(st.lists(energies, min_size=one.modes, max_size=one.modes))),
        floor=data.draw(energies),
        noise_var=data.draw(energies),
    )
    mixed = one.replace(
        forcing_energy=first * one.forcing_energy + second * other.forcing_energy,
        floor=first * one.floor + second * other.floor,
        noise_var=first * one.noise_var + second * other.noise_var,
    )
    a, b, c = every(one, schedule), every(other, schedule), every(mixed, schedule)
    for name in CURVES:
        same(getattr(c, name), first * getattr(a, name) + second * getattr(b, name), size_of(mixed, c))


@given(runs())
def test_two_groupings_of_one_risk_from_separate_recursions(run):
    spectrum, schedule = run
    curve = every(spectrum, schedule)
    scale = size_of(spectrum, curve)
    same(curve.forcing + curve.memory, curve.risk, scale)
    same(curve.clean + curve.gap, curve.risk, scale)
    # the parts from runs that know nothing of each other
    quiet = every(spectrum.replace(noise_var=0.0), schedule)
    same(curve.clean, quiet.risk, scale)
    untaught = spectrum.replace(forcing_energy=np.zeros(spectrum.modes), floor=0.0)
    same(curve.gap, every(untaught, schedule).risk, scale)
    same(curve.risk[-1], float(rfsim.terminal_risk(spectrum, schedule)), scale)
    same(curve.memory, volterra.risk(spectrum, schedule, at=curve.step).memory, scale)


@given(runs(batches=finite_batches))
def test_clean_sgd_has_memory_too(run):
    spectrum, schedule = run
    quiet = every(spectrum.replace(noise_var=0.0), schedule)
    assert_array_equal(quiet.gap, 0.0)
    learnt = quiet.risk[0] > 0 and float(schedule.lr[0]) > 0
    if learnt:
        assert (quiet.memory[1:] > 0).all()
    assert quiet.memory[0] == 0.0


@given(runs(), st.floats(1e-3, 1e3))
def test_scaling_covariance(run, scale):
    spectrum, schedule = run
    one = every(spectrum, schedule)
    other = every(
        spectrum.replace(eigenvalues=scale * spectrum.eigenvalues), Schedule(schedule.lr / scale, schedule.batch)
    )
    for name in CURVES:
        same(getattr(one, name), getattr(other, name), size_of(spectrum, one))
    assert_allclose(other.intrinsic_time * scale, one.intrinsic_time, rtol=1e-13)


@given(runs(), st.randoms(use_true_random=False))
def test_order_of_modes_does_not_matter(run, random):
    spectrum, schedule = run
    order = list(range(spectrum.modes))
    random.shuffle(order)
    shuffled = spectrum.replace(
        eigenvalues=spectrum.eigenvalues[order],
        forcing_energy=spectrum.forcing_energy[order],
        multiplicity=spectrum.multiplicity[order],
    )
    one, other = every(spectrum, schedule), every(shuffled, schedule)
    for name in CURVES:
        same(getattr(one, name), getattr(other, name), size_of(spectrum, one))


@given(runs())
def test_equal_modes_are_one_mode_of_higher_multiplicity(run):
    spectrum, schedule = run
    split = rfsim.spectrum(
        np.repeat(spectrum.eigenvalues, 2),
        np.repeat(spectrum.forcing_energy, 2) * np.tile([0.25, 0.75], spectrum.modes),
        multiplicity=np.repeat(spectrum.multiplicity, 2) * np.tile([0.7, 0.3], spectrum.modes),
        floor=spectrum.floor,
        noise_var=spectrum.noise_var,
    )
    one, other = every(spectrum, schedule), every(split, schedule)
    for name in CURVES:
        same(getattr(one, name), getattr(other, name), size_of(spectrum, one))


@given(runs(), st.integers(0, STEPS))
def test_a_schedule_can_be_split_anywhere(run, cut):
    spectrum, schedule = run
    whole_state, whole = recursion.evolve(spectrum, schedule, at=[STEPS])
    state, _ = recursion.evolve(spectrum, schedule.part(0, cut))
    state, rest = recursion.evolve(spectrum, schedule.part(cut, STEPS), at=[STEPS - cut], state=state)
    scale = size_of(spectrum, every(spectrum, schedule))
    for part, expected in zip(state, whole_state, strict=True):
        same(part, expected, scale)
    for name in CURVES:
        same(getattr(rest, name), getattr(whole, name), scale)


@given(runs())
def test_large_batches_approach_gradient_descent(run):
    spectrum, schedule = run
    lam, energy = [np.asarray(spectrum.eigenvalues).tolist(), np.asarray(spectrum.forcing_energy).tolist()]
    lr = (np.asarray(schedule.lr) * 0.5).tolist()  # below the limit at every batch used here
    descent = oracles.gradient_descent(lam, energy, float(spectrum.floor), lr)
    limit = every(spectrum, from_arrays(lr, math.inf))
    scale = size_of(spectrum, limit)
    same(limit.risk, descent, scale)
    assert_array_equal(limit.memory, 0.0)
    assert_array_equal(limit.gap, 0.0)
    near = [every(spectrum, from_arrays(lr, size)).risk for size in (1e6, 1e7)]
    assert_allclose(near[1], descent, rtol=1e-3, atol=1e-3 * scale)
    # first order in 1/B
    same(10 * (near[1] - limit.risk), near[0] - limit.risk, scale, rtol=1e-3)


@given(runs())
def test_no_target_and_no_noise_give_nothing(run):
    spectrum, schedule = run
    nothing = spectrum.replace(forcing_energy=np.zeros(spectrum.modes), floor=0.0, noise_var=0.0)
    curve = every(nothing, schedule)
    for name in CURVES:
        assert_array_equal(getattr(curve, name), 0.0)


@given(runs(), st.floats(0.0, 10.0), st.floats(0.0, 10.0))
def test_gap_is_proportional_to_noise_and_clean_does_not_see_it(run, one, other):
    spectrum, schedule = run
    a = every(spectrum.replace(noise_var=one), schedule)
    b = every(spectrum.replace(noise_var=other), schedule)
    assert_array_equal(a.clean, b.clean)
    assert_array_equal(a.forcing, b.forcing)
    assert_allclose(a.gap * other, b.gap * one, rtol=1e-12, atol=1e-200)


@given(runs(), st.data())
def test_a_silent_step_changes_nothing(run, data):
    spectrum, schedule = run
    where = data.draw(st.integers(0, STEPS - 1))
    lr = np.array(schedule.lr)
    lr[where] = 0.0
    curve = every(spectrum, from_arrays(lr, schedule.batch))
    for name in CURVES:
        assert getattr(curve, name)[where + 1] == getattr(curve, name)[where]


@given(runs())
def test_kernel_is_causal_positive_and_sums_to_the_row_mass(run):
    spectrum, schedule = run
    kernel = volterra.kernel(spectrum, schedule)
    assert (kernel >= 0).all()
    assert_array_equal(np.triu(kernel), 0.0)
    mass = recursion.row_mass(spectrum, schedule, at=np.arange(STEPS + 1))
    assert_allclose(kernel.sum(axis=1), mass, rtol=1e-11, atol=1e-13 * mass.max())


@given(spectra(), finite_batches, st.floats(0.01, 1.2))
def test_stable_if_and_only_if_the_iteration_converges(spectrum, batch, share):
    lr = share * stationary.pointwise_limit(spectrum, batch)
    matrix = oracles.step_matrix(spectrum.eigenvalues, lr, batch, spectrum.multiplicity)
    radius = np.abs(np.linalg.eigvals(matrix)).max()
    assume(abs(radius - 1) > 1e-9)
    pointwise = share < 1.0 and rfsim.kappa(spectrum, lr, batch) < 1.0
    assert pointwise == (radius < 1.0)
    assert stationary.is_stable(spectrum, lr, batch) == (radius < 1.0)
    assert (lr < rfsim.lr_limit(spectrum, batch)) == (radius < 1.0)
    assert math.isfinite(rfsim.limiting_risk(spectrum, lr, batch)) == (radius < 1.0)


@given(spectra(), finite_batches, st.floats(0.05, 1.5))
def test_a_run_ends_at_the_limiting_risk_or_grows(spectrum, batch, share):
    spectrum = spectrum.replace(eigenvalues=np.maximum(spectrum.eigenvalues, 0.1 * np.max(spectrum.eigenvalues)))
    assume(spectrum.noise_var > 0)
    lr = share * rfsim.lr_limit(spectrum, batch)
    radius = np.abs(
        np.linalg.eigvals(oracles.step_matrix(spectrum.eigenvalues, lr, batch, spectrum.multiplicity))
    ).max()
    assume(abs(math.log(radius)) > 0.02)  # 3000 steps then forget any initial energy by e^-60
    curve = recursion.risk(spectrum, constant(3000, lr, batch), at=[2990, 3000])
    if radius < 1.0:
        assert_allclose(curve.risk, rfsim.limiting_risk(spectrum, lr, batch), rtol=1e-9)
    else:
        assert curve.risk[0] > 1e6 * spectrum.noise_var
        assert curve.risk[1] > curve.risk[0] or np.isinf(curve.risk[1])


@given(spectra(), finite_batches, st.floats(0.01, 0.99))
def test_sandwich(spectrum, batch, share):
    lr = share * rfsim.lr_limit(spectrum, batch)
    curve = every(spectrum, constant(STEPS, lr, batch))
    bounds = stationary.sandwich(spectrum, lr, batch, curve.step, curve.clean)
    slack = 1e-12 * size_of(spectrum, curve)
    assert (bounds.lower <= curve.risk + slack).all()
    assert (curve.risk <= bounds.upper + slack).all()


@given(runs(batches=finite_batches))
def test_row_mass_bounds_the_gap(run):
    spectrum, schedule = run
    mass = recursion.row_mass(spectrum, schedule, at=np.arange(STEPS + 1))
    curve = every(spectrum, schedule)
    first = spectrum.noise_var * mass
    assert (curve.gap >= first * (1 - 1e-11)).all()
    if mass.max() < 0.99:
        assert (curve.gap <= first / (1 - mass.max()) * (1 + 1e-11)).all()


@given(runs(multiplicities=False, batches=finite_batches))
def test_full_second_moment_agrees(run):
    spectrum, schedule = run
    eigenvalues = np.append(spectrum.eigenvalues, 1.0)
    target = np.sqrt(np.append(spectrum.forcing_energy, spectrum.floor) / eigenvalues)
    weights = np.eye(spectrum.modes + 1, spectrum.modes)
    expected = oracles.dense_covariance(
        weights, eigenvalues, target, spectrum.noise_var, schedule.lr.tolist(), schedule.batch.tolist()
    )
    curve = every(spectrum, schedule)
    same(curve.risk, expected, size_of(spectrum, curve), rtol=1e-10)


@given(st.lists(st.floats(0.0, 10.0), max_size=60))
def test_clock_is_the_exact_sum(rates):
    time = intrinsic_time(np.array(rates))
    assert_allclose(time, [math.fsum(rates[:t]) for t in range(len(rates) + 1)], rtol=3e-16)
    assert (np.diff(time) >= 0).all()
