"""Mode recursion against literal loops, exact rationals and published numbers; its behaviour as jax code."""

import tracemalloc
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from cases import every_step, random_case
from numpy.testing import assert_allclose, assert_array_equal

import rfsim
from rfsim.routes import recursion
from rfsim.schedules import constant, from_arrays

CURVES = ("risk", "forcing", "memory", "clean", "gap")

# exact rationals of the two-mode example: eigenvalues (1, 1/4), energies (1, 1), floor 1/10, lr 1/2, batch 2, noise 1
RATIONALS = {
    "risk": ["21/10", "425/256", "55549/40960", "745857/655360"],
    "clean": ["21/10", "391/256", "47219/40960", "587247/655360"],
    "gap": ["0", "17/128", "833/4096", "15861/65536"],
    "forcing": ["21/10", "799/640", "68717/81920", "6453031/10485760"],
}


def two_modes(**changes):
    return rfsim.spectrum([1.0, 0.25], [1.0, 1.0], floor=0.1, noise_var=1.0).replace(**changes)


# --- values ----------------------------------------------------------------------------------------------------------


def test_exact_rationals():
    curve = recursion.risk(two_modes(), constant(3, 0.5, 2.0), at=[0, 1, 2, 3])
    for name, texts in RATIONALS.items():
        assert_allclose(getattr(curve, name), [float(Fraction(text)) for text in texts], rtol=1e-15, atol=1e-15)
    expected = [float(Fraction(r) - Fraction(f)) for r, f in zip(RATIONALS["risk"], RATIONALS["forcing"], strict=True)]
    assert_allclose(curve.memory, expected, rtol=1e-15)


def test_oracle_gives_the_same_rationals():
    half, one = Fraction(1, 2), Fraction(1)
    found = oracles.mode_loop([one, one / 4], [one, one], one / 10, one, [half] * 3, [2 * one] * 3)
    for name, texts in RATIONALS.items():
        assert found[name] == oracles.as_fractions(texts)
    assert [r - f for r, f in zip(found["risk"], found["forcing"], strict=True)] == found["memory"]


def test_one_step_factor_of_ten_isotropic_dimensions():
    spectrum = rfsim.spectrum(np.ones(10), np.full(10, 0.1))
    curve = recursion.risk(spectrum, constant(5, 0.3, 4.0), at=range(6))
    # (1 - .3)^2 + .3^2 / 4 per mode, and each of the ten modes receives .3^2 / 4 of the whole risk
    assert_allclose(curve.risk[1:] / curve.risk[:-1], 0.7375, rtol=1e-14)


def test_one_mode_below_the_pointwise_limit_can_diverge():
    spectrum = rfsim.spectrum([1.0], [1.0], noise_var=2.0)
    schedule = constant(60, 0.7, 1.0)
    curve = recursion.risk(spectrum, schedule, at=range(61))
    assert_allclose(curve.risk[1:], 1.07 * curve.risk[:-1] + 0.49 * 2.0, rtol=1e-14)
    mass = recursion.row_mass(spectrum, schedule, at=range(61))
    assert_allclose(mass, 7 / 6 * (1 - (29 / 50) ** np.arange(61.0)), rtol=1e-13)
    assert mass[-1] > 1.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("steps", [1, 12])
def test_equals_the_mode_loop(seed, steps):
    case = random_case(seed, steps=steps, multiplicity=seed % 2 == 1, whole_batches=seed < 2)
    *numbers, multiplicity = case.plain
    expected = oracles.mode_loop(*numbers, multiplicity=multiplicity)
    curve = recursion.risk(case.spectrum, case.schedule, at=every_step(case.schedule))
    for name in CURVES:
        assert_allclose(getattr(curve, name), expected[name], rtol=1e-12, err_msg=name)
    assert_allclose(float(rfsim.terminal_risk(case.spectrum, case.schedule)), expected["risk"][-1], rtol=1e-12)
    assert_array_equal(curve.step, np.arange(steps + 1))
    assert_allclose(curve.intrinsic_time, [np.sum(case.schedule.lr[:t]) for t in range(steps + 1)], rtol=1e-14)
    assert curve.overflow_step is None


def test_infinite_batch_is_gradient_descent():
    case = random_case(7)
    lam, energy, floor, _, lr, *_ = case.plain
    curve = recursion.risk(case.spectrum, from_arrays(lr, np.inf), at=every_step(case.schedule))
    assert_allclose(curve.risk, oracles.gradient_descent(lam, energy, floor, lr), rtol=1e-13)
    assert_array_equal(curve.memory, 0.0)
    assert_array_equal(curve.gap, 0.0)


def test_slow_modes_keep_their_digits():
    # a rounded q, the same at every step, would be wrong by up to 1.1e-16 each time: 1.5e-11 after 10^5 steps here
    x = np.geomspace(1e-7, 1e-5, 41)
    state, _ = recursion.evolve(rfsim.spectrum(x, np.ones(41)), constant(100_000, 1.0, np.inf))
    assert_allclose(state.forcing, np.exp(2e5 * np.log1p(-x)), rtol=3e-13)


def test_mean_over_two_published_feature_draws():
    problem = rfsim.power_law(0.6, 0.2, ambient=1024, noise_var=25.0)
    curves = []
    for seed in (11, 23):
        weights = np.random.default_rng(seed).standard_normal((1024, 512)) / np.sqrt(512)
        spectrum = rfsim.feature_spectrum(rfsim.Features(problem, weights))
        curve = recursion.risk(spectrum, constant(50, 0.1542358173412625, 16.0), at=[0, 1, 10, 50])
        curves.append((curve.risk - curve.floor, curve.gap))
    centred, gap = np.mean(curves, axis=0)
    expected = [2.2152687691469763, 1.9292063860888849, 1.0395097826800233, 0.6870887732940822]
    assert_allclose(centred, expected, rtol=1e-12)
    assert_allclose(gap, [0.0, 0.05256398403356702, 0.23298269586560255, 0.3522832006662625], rtol=1e-12)


def test_initial_risk_of_the_published_finite_bulk_draws():
    problem = rfsim.power_law(0.2, 0.4, ambient=1024, noise_var=25.0)
    moving = []
    for seed in (11, 23, 37, 53):
        weights = np.random.default_rng(seed).standard_normal((1024, 512)) / np.sqrt(512)
        moving.append(np.sum(rfsim.feature_spectrum(rfsim.Features(problem, weights)).forcing_energy))
    assert_allclose(np.mean(moving), 3.4201531255601747, rtol=1e-12)


# --- published constructions: aligned model, lr .05, batch 16, no label noise, target energy 1 -----------------------


def construction(eigenvalues, squares):
    energy = eigenvalues * squares
    return rfsim.spectrum(eigenvalues, energy / energy.sum())


def at_times(spectrum, times, batch=16.0):
    steps = [round(20 * time) for time in times]
    return recursion.risk(spectrum, constant(steps[-1], 0.05, batch), at=steps)


def test_canonical_construction():
    j = np.arange(1.0, 4097.0)
    assert_allclose(at_times(construction(j**-0.8, j**-0.6), [100]).risk, 0.0256072, rtol=1e-5)


def test_canonical_and_sparse_construction_at_large_size():
    j = np.arange(1.0, 65537.0)
    curve = at_times(construction(j**-0.8, j**-0.6), [1, 10, 100])
    assert_allclose(curve.risk, [0.497719, 0.154213, 0.0431383], rtol=1e-5)
    assert_allclose(curve.forcing, [0.494715, 0.151305, 0.0413926], rtol=1e-5)
    root = np.rint(np.sqrt(j))
    squares = np.where(root * root == j, 2 * root - 1, 0.0)
    assert_allclose(
        at_times(construction(j**-0.8, j**-0.6 * squares), [10, 100]).risk, [0.182282, 0.0526893], rtol=1e-5
    )


def test_stretched_construction():
    j = np.arange(1.0, 2049.0)
    curve = at_times(construction(np.exp(1.0 - np.sqrt(j)), j**-1.5), [10, 100, 1000])
    assert_allclose(curve.risk, [4.11770e-3, 1.61336e-4, 8.67419e-6], rtol=1e-5)


def test_geometric_construction():
    lam = np.exp(-1.4 * np.arange(2048.0))  # from the 532nd on the eigenvalues underflow to exact zeros
    curve = at_times(construction(lam, lam**0.75), [10, 100, 1000, 5000])
    assert_allclose(curve.risk, [3.06387e-3, 5.76517e-5, 1.012127e-6, 6.18526e-8], rtol=1e-5)


def test_finite_construction():
    lam = np.zeros(80)
    lam[:64] = 10.0 ** (-np.arange(64.0) / 63)
    curve = at_times(construction(lam, 1.0 / np.arange(1.0, 81.0)), [10, 50, 100])
    assert_allclose(curve.risk, [1.20326e-3, 7.8293e-8, 2.0171e-12], rtol=2.5e-5)


def test_rapid_construction():
    j = np.arange(1.0, 16385.0)
    curve = at_times(construction(j**-0.8, np.exp(-j)), [4, 10])
    assert_allclose(curve.forcing, [4.90467e-3, 6.4556e-5], rtol=1e-5)  # the forcing does not depend on the size


# --- continuing, recording -------------------------------------------------------------------------------------------


def test_a_run_can_be_continued():
    case = random_case(3, steps=20)
    whole = recursion.risk(case.spectrum, case.schedule, at=every_step(case.schedule))
    state, _ = recursion.evolve(case.spectrum, case.schedule.part(0, 8))
    rest = case.schedule.part(8, 20)
    state, curve = recursion.evolve(case.spectrum, rest, at=every_step(rest), state=state)
    for name in CURVES:
        assert_allclose(getattr(curve, name), getattr(whole, name)[8:], rtol=1e-13)
    assert_allclose(np.sum(state.gap), whole.gap[-1], rtol=1e-13)
    assert_allclose(np.sum(state.forcing) + case.spectrum.floor, whole.forcing[-1], rtol=1e-13)
    assert_allclose(np.sum(state.clean_memory), whole.clean[-1] - whole.forcing[-1], rtol=1e-12)


@pytest.mark.parametrize("steps", [1023, 1024, 1025, 8192, 8193, 20000])
def test_horizons_around_the_chunk_sizes(steps):
    spectrum = two_modes()
    schedule = from_arrays(0.4 / (1.0 + np.arange(steps)) ** 0.2, 1.0 + np.arange(steps) % 7)
    lam, energy, floor, noise, lr, batch, _ = random_case(0)._replace(spectrum=spectrum, schedule=schedule).plain
    risk, state = [], np.array(energy)
    lam = np.array(lam)
    for eta, size in zip(lr, batch, strict=True):
        risk.append(floor + state.sum())
        state = ((1 - eta * lam) ** 2 + eta**2 * lam**2 / size) * state + eta**2 * lam**2 / size * (risk[-1] + noise)
    risk.append(floor + state.sum())
    at = [t for t in (0, 1, 1023, 1024, 1025, 8191, 8192, 8193, 16384, 16385, steps) if t < steps] + [steps]
    assert_allclose(recursion.risk(spectrum, schedule, at=at).risk, np.array(risk)[at], rtol=1e-12)


def test_recorded_steps_do_not_change_values():
    case = random_case(5, steps=12)
    every = recursion.risk(case.spectrum, case.schedule, at=range(13))
    some = recursion.risk(case.spectrum, case.schedule, at=[3, 12])
    for name in CURVES:
        assert_array_equal(getattr(some, name), getattr(every, name)[[3, 12]])


def test_progress_reports_finished_steps():
    seen = []
    recursion.risk(two_modes(), constant(2500, 0.1, 4.0), progress=seen.append)
    assert seen[-1] == 2500
    assert seen == sorted(seen)
    assert len(seen) > 1


def test_zero_steps():
    empty = constant(0, 0.1, 1.0)
    curve = recursion.risk(two_modes(), empty)
    assert_array_equal(curve.step, [0])
    assert curve.risk[0] == 2.1
    assert float(rfsim.terminal_risk(two_modes(), empty)) == 2.1
    assert float(jax.jit(rfsim.terminal_risk)(two_modes(), empty)) == 2.1
    assert_array_equal(jax.jit(lambda s: recursion.risk(s, empty).gap)(two_modes()), [0.0])


@pytest.mark.parametrize(
    "at", [[-1], [4], [0, 0], [2, 1], [0.5], [np.nan], [np.inf], [1e30], [], [[0, 1]], "all", [True], [[[]]]]
)
def test_bad_recorded_steps(at):
    schedule = constant(3, 0.1, 1.0)
    for route in ("recursion", "volterra"):
        with pytest.raises(rfsim.InputError, match=r"^at "):
            rfsim.risk(two_modes(), schedule, at=at, route=route)


def test_recorded_step_beyond_the_schedule_names_both():
    with pytest.raises(rfsim.InputError, match=r"step 12 .*0\.\.10"):
        recursion.risk(two_modes(), constant(10, 0.1, 1.0), at=[0, 12])


# --- as jax code -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, 2, 10, 12])
def test_jit_equals_eager(steps):
    case = random_case(11, steps=steps, multiplicity=True)
    at = every_step(case.schedule)
    eager = recursion.risk(case.spectrum, case.schedule, at=at)
    traced = jax.jit(lambda s, c: recursion.risk(s, c, at=at))(case.spectrum, case.schedule)
    for name in (*CURVES, "intrinsic_time", "step"):
        assert_allclose(getattr(traced, name), getattr(eager, name), rtol=1e-13, err_msg=name)
    assert traced.overflow_step is None
    mass = jax.jit(lambda s, c: recursion.row_mass(s, c, at=at))(case.spectrum, case.schedule)
    assert_allclose(mass, recursion.row_mass(case.spectrum, case.schedule, at=at), rtol=1e-13)


def test_vmap_over_lr_equals_a_loop():
    case = random_case(12)
    scales = np.array([0.0, 0.3, 0.8, 1.0])
    rates = jnp.asarray(scales[:, None] * np.asarray(case.schedule.lr)[None, :])
    found = jax.vmap(lambda lr: rfsim.terminal_risk(case.spectrum, case.schedule.replace(lr=lr)))(rates)
    loop = [float(rfsim.terminal_risk(case.spectrum, case.schedule.replace(lr=np.asarray(lr)))) for lr in rates]
    assert_allclose(found, loop, rtol=1e-13)
    assert len(set(loop)) == 4


def test_vmap_over_noise_equals_a_loop_and_is_affine():
    case = random_case(13)
    noises = jnp.array([0.0, 0.5, 2.0])
    found = jax.vmap(lambda s2: rfsim.risk(case.spectrum.replace(noise_var=s2), case.schedule, at=[5, 12]).risk)(noises)
    loop = [recursion.risk(case.spectrum.replace(noise_var=float(s2)), case.schedule, at=[5, 12]).risk for s2 in noises]
    assert_allclose(found, loop, rtol=1e-13)
    assert_allclose((loop[2] - loop[0]) / (loop[1] - loop[0]), 4.0, rtol=1e-10)


def test_vmap_over_spectra_equals_a_loop():
    case = random_case(14)
    lam = jnp.stack([jnp.asarray(case.spectrum.eigenvalues) * scale for scale in (0.5, 0.9, 1.0)])
    found = jax.vmap(lambda e: rfsim.terminal_risk(case.spectrum.replace(eigenvalues=e), case.schedule))(lam)
    loop = [float(rfsim.terminal_risk(case.spectrum.replace(eigenvalues=np.asarray(e)), case.schedule)) for e in lam]
    assert_allclose(found, loop, rtol=1e-13)


def central_differences(function, values, step):
    slopes = []
    for i in range(len(values)):
        shift = np.zeros(len(values))
        shift[i] = step
        slopes.append((float(function(values + shift)) - float(function(values - shift))) / (2 * step))
    return np.array(slopes)


@pytest.mark.parametrize("steps", [7, 12])
def test_gradient_in_lr(steps):
    case = random_case(15, steps=steps)
    lr = np.array(case.schedule.lr)
    lr[0] = lr[-1] = 0.0

    def risk(rates):
        # the oracle and not rfsim: lr - step is negative at the ends, which a Schedule refuses
        lam, energy, floor, noise, _, batch, _ = case.plain
        return oracles.mode_loop(lam, energy, floor, noise, list(rates), batch)["risk"][-1]

    gradient = jax.grad(lambda x: rfsim.terminal_risk(case.spectrum, case.schedule.replace(lr=x)))(jnp.asarray(lr))
    assert_allclose(gradient, central_differences(risk, lr, 1e-5), rtol=1e-7, atol=1e-8)
    assert abs(gradient[0]) > 1e-3  # the slope at the lr 0 end is no accident of a where
    assert abs(gradient[-1]) > 1e-3


def test_gradient_in_batch():
    case = random_case(16)
    batch = np.asarray(case.schedule.batch)

    def risk(sizes):
        return rfsim.terminal_risk(case.spectrum, case.schedule.replace(batch=sizes))

    gradient = jax.grad(risk)(jnp.asarray(batch))
    assert_allclose(gradient, central_differences(risk, batch, 1e-4), rtol=1e-6, atol=1e-9)
    assert (np.asarray(gradient) < 0).all()
    at_infinity = jax.grad(risk)(jnp.full(batch.size, jnp.inf))
    assert_array_equal(at_infinity, 0.0)


def test_gradient_in_the_spectrum():
    case = random_case(17)
    gradient = jax.grad(lambda s: rfsim.terminal_risk(s, case.schedule))(case.spectrum)

    def risk(values):
        return rfsim.terminal_risk(case.spectrum.replace(eigenvalues=values), case.schedule)

    expected = central_differences(risk, np.asarray(case.spectrum.eigenvalues), 1e-5)
    assert_allclose(gradient.eigenvalues, expected, rtol=1e-6, atol=1e-8)
    unit = recursion.risk(case.spectrum.replace(noise_var=1.0), case.schedule, at=[12]).gap[0]
    assert_allclose(float(gradient.noise_var), unit, rtol=1e-12)


def test_gradient_of_a_recorded_curve():
    case = random_case(18)
    slopes = jax.jacobian(lambda lr: rfsim.risk(case.spectrum, case.schedule.replace(lr=lr), at=[3, 12]).gap)(
        jnp.asarray(case.schedule.lr)
    )
    assert slopes.shape == (2, 12)
    assert_array_equal(slopes[0, 3:], 0.0)  # later steps do not reach back
    assert (np.asarray(slopes[0, :3]) != 0.0).all()


# --- compiling, memory -----------------------------------------------------------------------------------------------


@pytest.fixture
def compilations():
    """List that grows by one entry per compilation of anything by jax."""
    seen = []

    def listen(event, duration, **_):
        if "backend_compile" in event:
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield seen
    jax.monitoring.clear_event_listeners()


def test_a_second_call_with_other_numbers_compiles_nothing(compilations):
    jax.jit(lambda x: 3 * x + 1)(jnp.ones(3))
    assert compilations  # the listener hears
    for run in (recursion.risk, rfsim.terminal_risk, recursion.row_mass, rfsim.risk):
        one, other = random_case(21, modes=6), random_case(22, modes=6)
        run(one.spectrum, one.schedule.replace(lr=0.2 * one.schedule.lr))
        before = len(compilations)
        run(other.spectrum, other.schedule.replace(lr=0.1 * other.schedule.lr))
        assert len(compilations) == before, run


def test_close_horizons_share_compiled_code(compilations):
    spectrum = random_case(23, modes=7).spectrum
    recursion.risk(spectrum, constant(1000, 0.01, 2.0))
    before, cached = len(compilations), recursion._advance_compiled._cache_size()
    for steps in (1001, 1002, 37):
        recursion.risk(spectrum, constant(steps, 0.01, 2.0))
    assert recursion._advance_compiled._cache_size() == cached
    assert len(compilations) == before


def test_memory_does_not_grow_with_steps():
    spectrum = rfsim.spectrum(np.arange(1.0, 101.0) ** -1.2, np.arange(1.0, 101.0) ** -1.5, noise_var=0.1)
    peaks = []
    for steps in (50_000, 300_000):
        schedule = constant(steps, 0.1, 4.0)
        recursion.risk(spectrum, schedule)
        tracemalloc.start()
        recursion.risk(spectrum, schedule)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 1_000_000  # a copy of one schedule array would be 2 MB more


def test_compiled_chunk_holds_totals_and_not_modes():
    modes, chunk = 1000, recursion._CHUNKS[1]
    system = recursion.Systems(jnp.ones((3, modes)), jnp.ones(3), jnp.ones((3, 3)), jnp.ones(3))
    lowered = recursion._advance_compiled.lower(
        jnp.ones(modes), jnp.ones(modes), system, np.ones(chunk), np.ones(chunk)
    )
    usage = lowered.compile().memory_analysis()
    assert usage.temp_size_in_bytes + usage.output_size_in_bytes < 8 * (6 * chunk + 100 * modes)


# --- overflow --------------------------------------------------------------------------------------------------------


def longdouble_overflow(spectrum, schedule):
    """First step whose risk exceeds the float64 range, by an extended-range loop."""
    lam = np.asarray(spectrum.eigenvalues, dtype=np.longdouble)
    state = np.asarray(spectrum.forcing_energy, dtype=np.longdouble)
    for step, (eta, size) in enumerate(zip(schedule.lr, schedule.batch, strict=True)):
        source = np.longdouble(spectrum.floor) + state.sum() + np.longdouble(spectrum.noise_var)
        state = ((1 - eta * lam) ** 2 + eta**2 * lam**2 / size) * state + eta**2 * lam**2 / size * source
        if np.longdouble(spectrum.floor) + state.sum() > np.finfo(np.float64).max:
            return step + 1
    return None


@pytest.mark.parametrize("route", ["recursion", "volterra"])
@pytest.mark.parametrize(
    ("lr", "batch", "noise"),
    [(1.3, 1.0, 0.0), (1.3, 1.0, 2.0), (1.3, 1.0, 1e-250), (2.5, np.inf, 1.0), (1.9, 3.0, 1e30), (6.0, 0.25, 0.0)],
)
def test_overflow_is_flagged_and_never_nan(route, lr, batch, noise):
    spectrum = two_modes(noise_var=noise)
    schedule = constant(1500, lr, batch)
    flagged = longdouble_overflow(spectrum, schedule)
    assert flagged is not None
    curve = rfsim.risk(spectrum, schedule, at=range(1501), allow_unstable=True, route=route)
    assert curve.overflow_step == flagged
    assert_array_equal(np.isfinite(curve.risk), np.arange(1501) < flagged)
    for name in CURVES:
        values = getattr(curve, name)
        assert not np.isnan(values).any(), name
        assert (np.diff(np.isinf(values).astype(int)) >= 0).all(), name  # once inf, always inf
    expected = oracles.mode_loop(*random_case(0)._replace(spectrum=spectrum, schedule=schedule.part(0, 100)).plain[:-1])
    assert_allclose(curve.risk[:101], expected["risk"], rtol=1e-11)
    if noise == 0.0 or np.isinf(batch):
        assert_array_equal(curve.gap, 0.0)
    if np.isinf(batch) and route == "recursion":
        assert_array_equal(curve.memory, 0.0)  # only the forcing explodes; nothing is injected


def test_what_has_not_overflowed_keeps_its_value():
    # one mode, pointwise stable but kappa > 1: memory explodes while the forcing dies out
    spectrum = rfsim.spectrum([1.0], [1.0], floor=0.25, noise_var=1e-200)
    schedule = constant(11_000, 0.7, 1.0)
    at = np.arange(10_000, 11_001)
    curve = rfsim.risk(spectrum, schedule, at=at, allow_unstable=True)
    assert curve.overflow_step is not None
    assert_allclose(curve.forcing, 0.25, rtol=1e-12)
    assert np.isinf(curve.clean[-1])
    assert np.isfinite(curve.gap).all()  # it started 200 decades lower
    assert_allclose(curve.gap[1:] / curve.gap[:-1], 1.07, rtol=1e-12)


def test_risk_overflows_before_its_parts():
    spectrum = rfsim.spectrum([1.0], [1.0], floor=0.1, noise_var=1.0)
    schedule = constant(11_000, 0.7, 1.0)
    curve = recursion.risk(spectrum, schedule, at=range(11_001))
    first = curve.overflow_step
    assert first == longdouble_overflow(spectrum, schedule)
    assert np.isfinite(curve.clean[first])
    assert np.isfinite(curve.gap[first])
    assert np.isinf(curve.risk[first])
    assert np.isfinite(curve.risk[first - 1])


def test_overflow_does_not_depend_on_what_is_recorded():
    spectrum, schedule = two_modes(), constant(3000, 1.3, 1.0)
    flagged = longdouble_overflow(spectrum, schedule)
    for at in ([0], [flagged - 1], [flagged], [3000], [flagged - 1, flagged, 2000]):
        curve = rfsim.risk(spectrum, schedule, at=at, allow_unstable=True)
        assert curve.overflow_step == flagged
        assert_array_equal(np.isinf(curve.risk), np.array(at) >= flagged)


def test_a_state_after_overflow_is_not_nan():
    state, curve = recursion.evolve(two_modes(), constant(3000, 1.3, 1.0))
    assert curve.overflow_step is not None
    for part in state:
        assert not np.isnan(part).any()
    _, curve = recursion.evolve(two_modes(), constant(10, 1.3, 1.0), state=state)
    assert np.isinf(curve.risk).all()
    assert not np.isnan(curve.gap).any()


def test_no_overflow_is_flagged_when_growth_is_cut_short():
    spectrum = two_modes()
    schedule = from_arrays(np.r_[np.full(100, 1.3), np.full(400, 0.1)], np.full(500, 1.0))
    curve = rfsim.risk(spectrum, schedule, allow_unstable=True)
    assert curve.overflow_step is None
    assert np.isfinite(curve.risk).all()
    assert curve.risk.max() > 1e10
