"""Jump route against 50-digit matrix powers, a dense symmetric eigensolver, the recursion and published minima."""

import mpmath
import numpy as np
import pytest
from cases import every_step, random_case
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq

import rfsim
from rfsim.curves import State
from rfsim.routes import jump, recursion, volterra
from rfsim.routes.jump.constant import Constant
from rfsim.routes.jump.walk import Modes
from rfsim.schedules import constant, from_arrays
from rfsim.stretches import Stretches, from_schedule, stretches

CURVES = ("risk", "forcing", "memory", "clean", "gap")
TIMES = [0, 1, 10, 10**3, 10**6, 10**9, 10**12]


# --- 50 digits -------------------------------------------------------------------------------------------------------


def exact_curves(spectrum, lr, batch, times):
    """All curves by powers of the full linear map of (forcing, clean memory, gap, 1), to 50 digits: {name: (k,)}."""
    with mpmath.workdps(50):
        lam = [mpmath.mpf(float(x)) for x in spectrum.eigenvalues]
        n, eta = len(lam), mpmath.mpf(lr)
        inverse = mpmath.mpf(0) if np.isinf(batch) else 1 / mpmath.mpf(batch)
        step, start = mpmath.zeros(3 * n + 1), mpmath.zeros(3 * n + 1, 1)
        step[3 * n, 3 * n] = start[3 * n] = 1
        for i, x in enumerate(eta * one for one in lam):
            injection = inverse * x * x * mpmath.mpf(float(spectrum.multiplicity[i]))
            start[i] = mpmath.mpf(float(spectrum.forcing_energy[i]))
            for part in range(3):
                step[part * n + i, part * n + i] = (1 - x) ** 2 + inverse * x * x
            for j in range(n):
                step[n + i, j] += injection
                step[n + i, n + j] += injection
                step[2 * n + i, 2 * n + j] += injection
            step[n + i, 3 * n] = injection * mpmath.mpf(float(spectrum.floor))
            step[2 * n + i, 3 * n] = injection * mpmath.mpf(float(spectrum.noise_var))
        rows = []
        for time in times:
            after = step ** int(time) * start
            forcing, clean, gap = (mpmath.fsum(after[part * n + i] for i in range(n)) for part in range(3))
            forcing += mpmath.mpf(float(spectrum.floor))
            rows.append([forcing + clean + gap, forcing, clean + gap, forcing + clean, gap])
        return {name: np.array([float(row[k]) for row in rows]) for k, name in enumerate(CURVES)}


FOUR = ([1.0, 0.25, 0.01, 1e-4], [1.0, 0.5, 0.3, 0.2])


def near_the_edge():
    spectrum = rfsim.spectrum(*FOUR, floor=0.1, noise_var=0.5)
    return spectrum, brentq(lambda lr: rfsim.kappa(spectrum, lr, 1.0) - 0.999, 0.1, 0.9, xtol=1e-15), 1.0


def case(lam, energy, *, lr=0.3, batch=2.0, floor=0.1, noise=0.5, count=None):
    count = np.ones(len(lam)) if count is None else np.asarray(count, dtype=float)
    return rfsim.Spectrum(np.array(lam, dtype=float), np.array(energy, dtype=float), count, floor, noise), lr, batch


EXACT = {
    "four modes": case(*FOUR),
    "one mode": case([0.7], [1.0]),
    "zero-energy target": case([1, 0.5, 1e-3], [0, 0, 0]),
    "nothing to learn or to hear": case([1, 0.5, 1e-3], [0, 0, 0], floor=0.0, noise=0.0),
    "degenerate": case([1, 1, 0.5, 0.5, 0.5, 1e-3], [1, 0.2, 0.3, 0.4, 0, 0.6]),
    "nearly degenerate": case(
        [1, 1 + 1e-13, 0.5, 0.5 * (1 + 1e-10), 0.5 * (1 + 1e-15), 1e-3], [1, 0.2, 0.3, 0.4, 0, 0.6]
    ),
    "close": case([1, 1 + 1e-6, 0.5, 0.5 * (1 + 1e-4), 0.5 * (1 + 1e-8), 1e-3], [1, 0.2, 0.3, 0.4, 0.1, 0.6]),
    "1 - kappa = 1e-3": near_the_edge(),
    "modes without memory": case([1, 0.5, 0.3, 1e-3], [1, 0.4, 0.2, 0.1], count=[1, 0, 2, 0]),
    "multiplicities": case([1, 0.5, 0.3, 1e-3], [1, 0.4, 0.2, 0.1], count=[0.2, 0.1, 2, 50]),
    "large batch": case(*FOUR, lr=0.01, batch=1e6),
    "small lr": case(*FOUR, lr=1e-5, batch=1.0),
    "beyond the fold": case([1.2, 0.4, 0.6, 0.8], [1, 0.5, 0.3, 0.2], lr=0.95, batch=4.0),
    "gradient descent": case([1.2, 0.4, 0.6, 1.0], [1, 0.5, 0.3, 0.2], lr=1.0, batch=np.inf),
    "twenty decades": case([1, 0.25, 1e-10, 1e-20], FOUR[1]),
}


@pytest.mark.parametrize("name", EXACT)
def test_all_curves_equal_fifty_digit_matrix_powers(name):
    spectrum, lr, batch = EXACT[name]
    curve = jump.risk(spectrum, stretches(lr, batch, 10**12), at=TIMES)
    expected = exact_curves(spectrum, lr, batch, TIMES)
    for which in CURVES:
        assert_allclose(getattr(curve, which), expected[which], rtol=1e-12, atol=0.0, err_msg=which)
    assert curve.step.dtype.kind == "i"
    assert_allclose(curve.intrinsic_time, lr * np.array(TIMES), rtol=1e-15)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize(("first", "second"), [(1, 9), (100, 900), (10**5, 9 * 10**5), (4 * 10**8, 6 * 10**8)])
def test_the_state_is_carried_to_all_digits(name, first, second):
    spectrum, lr, batch = EXACT[name]
    state, _ = jump.evolve(spectrum, stretches(lr, batch, first))
    curve = jump.risk(spectrum, stretches(lr, batch, second), at=[second], state=state)
    expected = exact_curves(spectrum, lr, batch, [first + second])
    for which in CURVES:
        assert_allclose(getattr(curve, which), expected[which], rtol=1e-12, atol=0.0, err_msg=which)


def test_up_to_1e15_steps():
    spectrum, lr, batch = EXACT["twenty decades"]
    curve = jump.risk(spectrum, stretches(lr, batch, 10**15), at=[10**15])
    assert_allclose(curve.gap, exact_curves(spectrum, lr, batch, [10**15])["gap"], rtol=1e-13)


# --- other witnesses -------------------------------------------------------------------------------------------------


def symmetric_closed_form(spectrum, lr, batch, times):
    """Gap per noise and clean risk by a dense eigensolver of diag(1-q) - g g^T."""
    x, c = lr * spectrum.eigenvalues, lr**2 / batch
    g = np.sqrt(c) * spectrum.eigenvalues
    mu, y = np.linalg.eigh(np.diag(x * (2 - (1 + 1 / batch) * x)) - np.outer(g, g))
    a, z = y.T @ g, y.T @ (spectrum.forcing_energy / g)
    t = np.asarray(times, dtype=float)[:, None]
    unit = (-np.expm1(t * np.log1p(-mu)) / mu) @ a**2
    return unit, spectrum.floor * (1 + unit) + np.exp(t * np.log1p(-mu)) @ (a * z)


def test_against_a_dense_symmetric_eigensolver_at_real_times():
    draw = np.random.default_rng(4)
    spectrum = rfsim.spectrum(draw.uniform(0.05, 1.0, 40), draw.exponential(1.0, 40), floor=0.2, noise_var=2.0)
    times = np.array([0.0, 0.3, 1.0, 2.5, 17.25, 400.5, 3e4])
    curve = jump.risk(spectrum, stretches(0.05, 3.0, 10**5), at=times)
    unit, clean = symmetric_closed_form(spectrum, 0.05, 3.0, times)
    assert_allclose(curve.gap, 2.0 * unit, rtol=1e-11)
    assert_allclose(curve.clean, clean, rtol=1e-11)
    assert_array_equal(curve.step, times)


def test_population_against_the_recursion():
    spectrum = rfsim.population(rfsim.power_law(0.7, 0.3, noise_var=1.0))
    at = [0, 1, 2, 10, 100, 1000, 10_000, 100_000]
    curve, expected = jump.risk(spectrum, stretches(0.05, 1.0, 10**5), at=at), None
    expected = recursion.risk(spectrum, constant(10**5, 0.05, 1.0), at=at)
    for which in CURVES:
        assert_allclose(getattr(curve, which), getattr(expected, which), rtol=2e-13, err_msg=which)


def test_infinite_trace_is_carried_too():
    spectrum = rfsim.population(rfsim.power_law(0.4, 0.3, noise_var=1.0))
    schedule = from_arrays(
        np.repeat([0.05, 0.05, 0.02], [100, 300, 600]), np.repeat([4.0, 16.0, 64.0], [100, 300, 600])
    )
    curve = jump.risk(spectrum, schedule, at=[1, 100, 101, 400, 450, 1000])
    expected = recursion.risk(spectrum, schedule, at=[1, 100, 101, 400, 450, 1000])
    for which in CURVES:
        assert_allclose(getattr(curve, which), getattr(expected, which), rtol=1e-13, err_msg=which)


@pytest.mark.parametrize("seed", range(6))
def test_changing_schedules_equal_recursion_and_volterra(seed):
    spectrum = random_case(seed, modes=7, multiplicity=True).spectrum
    draw = np.random.default_rng(seed)
    lengths = draw.integers(1, 150, 6)
    lr = np.repeat(draw.uniform(0.0, 0.5, 6) * (draw.random(6) < 0.8), lengths)
    batch = np.repeat(np.where(draw.random(6) < 0.2, np.inf, draw.uniform(0.5, 9.0, 6)), lengths)
    schedule = from_arrays(lr, batch)
    curve = jump.risk(spectrum, schedule, at=every_step(schedule))
    for witness in (recursion, volterra):
        expected = witness.risk(spectrum, schedule, at=every_step(schedule))
        for which in (*CURVES, "intrinsic_time"):
            assert_allclose(getattr(curve, which), getattr(expected, which), rtol=1e-12, atol=1e-300, err_msg=which)


def test_states_of_both_routes_are_the_same_thing():
    spectrum = random_case(3, modes=5).spectrum
    state, _ = recursion.evolve(spectrum, constant(200, 0.2, 3.0))
    jumped, _ = jump.evolve(spectrum, stretches(0.2, 3.0, 200))
    for mine, theirs in zip(jumped, state, strict=True):
        assert_allclose(mine, theirs, rtol=1e-12)
    schedule = constant(300, 0.1, 2.0)
    mine = jump.risk(spectrum, schedule, at=[0, 7, 300], state=state)
    theirs = recursion.risk(spectrum, schedule, at=[0, 7, 300], state=state)
    assert_allclose(mine.gap, theirs.gap, rtol=1e-12)
    assert_allclose(mine.clean, theirs.clean, rtol=1e-12)


def test_a_mode_without_memory_right_on_a_root():
    # the divided difference ((1-delta)^t - (1-d)^t) / (d - delta) at d = delta
    base = rfsim.spectrum([1.0, 0.2], [0.0, 0.0])
    root = Modes(base).constant(0.1, 1.0).eigen.roots[1]
    lam = float(brentq(lambda x: 0.1 * x * (2 - 2 * 0.1 * x) - root, 0.5, 1.0, xtol=1e-16))
    spectrum = rfsim.Spectrum(np.array([1.0, 0.2, lam]), np.array([0, 0, 1.0]), np.array([1.0, 1.0, 0.0]), 0.0, 0.0)
    curve = jump.risk(spectrum, stretches(0.1, 1.0, 10**6), at=[1, 10, 1000])
    assert_allclose(curve.memory, exact_curves(spectrum, 0.1, 1.0, [1, 10, 1000])["memory"], rtol=1e-12)
    state, _ = jump.evolve(spectrum, stretches(0.1, 1.0, 1000))
    assert_allclose(sum(state.clean_memory), curve.memory[-1], rtol=1e-12)


def test_divided_differences_through_their_limit():
    fixed = Modes(rfsim.spectrum([1.0, 0.2], [1.0, 1.0])).constant(0.1, 1.0)
    d = 0.125
    at = [-0.1, -1e-3, -1e-9, 0.0, 1e-9, 1e-3, 0.1]
    found = fixed._quotients(5.0, np.array(at), np.log1p(-d))
    expected = [sum((1 - d + h) ** k * (1 - d) ** (4 - k) for k in range(5)) for h in at]
    assert_allclose(found, expected, rtol=1e-14)


def test_many_small_steps_are_one_large_step():
    spectrum = rfsim.population(rfsim.power_law(0.6, 0.2, ambient=5000, noise_var=1.0))
    fixed = Modes(spectrum).constant(0.05, 4.0)
    state = Modes(spectrum).start(None)
    for _ in range(40):
        state = fixed.advance(2.5e4, state, 0.3, 1.0)
    once = fixed.totals(np.array([1e6]), Modes(spectrum).start(None), 0.3, 1.0)[0]
    assert_allclose([part.sum() for part in state], once, rtol=1e-12)


def test_nothing_is_negative():
    spectrum = rfsim.population(rfsim.power_law(0.7, 0.6, noise_var=1e-6))
    fixed = Constant(spectrum.eigenvalues, spectrum.multiplicity, 0.05, 8.0)
    state = Modes(spectrum).start(None)
    for time in (1.0, 10.0, 1e3, 1e6, 1e10):
        state = fixed.advance(time, state, 0.0, 1e-6)
        for part in state:
            assert part.min() >= 0.0


# --- overflow --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spectrum", "lr", "batch", "steps"),
    [
        (rfsim.spectrum([1.0, 0.25], [1.0, 1.0], floor=0.1, noise_var=1.0), 1.3, 1.0, 3000),
        (rfsim.spectrum([1.0, 0.25], [1.0, 1.0], floor=0.1), 1.3, 1.0, 3000),
        (rfsim.spectrum([1.0, 0.25], [1.0, 1.0], floor=0.1, noise_var=1.0), 2.5, np.inf, 3000),
        (rfsim.spectrum([1.0], [1.0], floor=0.25, noise_var=1e-200), 0.7, 1.0, 11_000),
    ],
    ids=["both", "no noise", "forcing only", "memory only"],
)
def test_overflow_is_flagged_where_the_recursion_flags_it(spectrum, lr, batch, steps):
    at = np.arange(0, steps + 1, 13)
    curve = jump.risk(spectrum, stretches(lr, batch, steps), at=at)
    expected = recursion.risk(spectrum, constant(steps, lr, batch), at=at)
    assert curve.overflow_step == expected.overflow_step
    assert curve.overflow_step is not None
    for which in CURVES:
        mine, theirs = np.asarray(getattr(curve, which)), np.asarray(getattr(expected, which))
        assert_array_equal(np.isfinite(mine), np.isfinite(theirs), err_msg=which)
        assert not np.isnan(mine).any()
        assert_allclose(mine[np.isfinite(mine)], theirs[np.isfinite(mine)], rtol=1e-11, err_msg=which)
    later = jump.risk(spectrum, stretches([lr, 0.01], batch, [steps, 100]), at=[steps + 100])
    assert np.isinf(later.risk).all()
    assert later.overflow_step == curve.overflow_step


def test_growth_that_is_cut_short_does_not_overflow():
    spectrum = rfsim.spectrum([1.0, 0.25], [1.0, 1.0], noise_var=1.0)
    schedule = from_arrays(np.r_[np.full(100, 1.3), np.full(400, 0.1)], np.ones(500))
    curve, expected = (route.risk(spectrum, schedule, at=[50, 100, 500]) for route in (jump, recursion))
    assert curve.overflow_step is None
    assert_allclose(curve.risk, expected.risk, rtol=1e-11)


# --- early stopping --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "beta", "noise", "risk", "step"),
    [
        (0.7, 0.3, 0.1, 0.008532519, 10062689),
        (0.7, 0.3, 1.0, 0.0825519471, 47383.08),
        (0.7, 0.3, 10.0, 0.6999742148, 229.010),
        (0.7, 0.6, 0.1, 0.0079659681, 12697.09),
        (0.7, 0.6, 10.0, 0.5681990877, 59.082),
        (0.6, 0.7, 1.0, 0.0914854021, 294.297),
    ],
)
def test_published_minima_at_infinite_width(alpha, beta, noise, risk, step):
    spectrum = rfsim.population(rfsim.power_law(alpha, beta, noise_var=noise))
    found = jump.minimum(spectrum, 0.05, 1.0)
    assert_allclose(found.risk, risk, rtol=0.0, atol=1e-9 if risk == 0.008532519 else 5e-10)
    # a published step comes from comparing risks, which are equal to 1e-16 over a relative width of 1e-5 to 1e-4
    assert_allclose(found.step, step, rtol=2e-6 if step < 1e6 else 1e-4)
    assert not found.monotone
    around = jump.risk(spectrum, stretches(0.05, 1.0, 10**9), at=found.step * np.array([0.99, 1.0, 1.01])).risk
    assert around.argmin() == 1
    assert_allclose(around[1], found.risk, rtol=1e-14)


def test_step_of_the_minimum_to_all_digits():
    spectrum, lr, batch = case(FOUR[0], [0.5, 0.4, 0.9, 3.0], lr=0.2, batch=2.0, floor=0.0, noise=0.3)
    found = jump.minimum(spectrum, lr, batch)
    with mpmath.workdps(40):
        lam = [mpmath.mpf(float(x)) for x in spectrum.eigenvalues]
        eta, inverse, noise = mpmath.mpf(lr), 1 / mpmath.mpf(batch), mpmath.mpf(0.3)
        gain = [inverse * (eta * x) ** 2 for x in lam]
        step = mpmath.diag([(1 - eta * x) ** 2 + inverse * (eta * x) ** 2 for x in lam])
        step += mpmath.matrix([[g] * 4 for g in gain])
        powers, vectors = mpmath.eig(step)
        energy = mpmath.matrix([mpmath.mpf(float(w)) for w in spectrum.forcing_energy])
        limit = mpmath.lu_solve(mpmath.eye(4) - step, mpmath.matrix(gain) * noise)
        weights = mpmath.lu_solve(vectors, energy - limit)
        sums = [mpmath.fsum(vectors[:, k]) * weights[k] for k in range(4)]

        def slope(t):
            return mpmath.fsum(mpmath.log(p) * s * p**t for p, s in zip(powers, sums, strict=True)).real

        exact = mpmath.findroot(
            slope, (found.step * 0.999, found.step * 1.001), solver="anderson", tol=1e-60, verify=False
        )
    assert_allclose(found.step, float(exact), rtol=1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_minima_and_turns_equal_a_scan(seed):
    draw = np.random.default_rng(seed)
    n = draw.integers(2, 9)
    spectrum = rfsim.Spectrum(
        10.0 ** draw.uniform(-6, 0, n),
        10.0 ** draw.uniform(-4, 0, n) * (draw.random(n) < 0.8),
        10.0 ** draw.uniform(-1, 2, n) * np.r_[True, draw.random(n - 1) < 0.85],
        draw.choice([0.0, 0.1]),
        10.0 ** draw.uniform(-4, 1),
    )
    lr = draw.uniform(0.05, 0.95) * min(rfsim.lr_limit(spectrum, 2.0), 10.0)
    found = jump.minimum(spectrum, lr, 2.0)
    times = np.concatenate([[0.0], np.geomspace(1e-3, 1e13, 4000)])
    risk = jump.risk(spectrum, stretches(lr, 2.0, 10**13), at=times).risk
    assert found.risk <= risk.min() * (1 + 1e-12)
    assert found.risk >= risk.min() * (1 - 1e-4)
    change = np.diff(risk)
    signs = np.sign(change[np.abs(change) > 1e-13 * risk[1:]])
    assert found.turns.size >= np.count_nonzero(np.diff(signs))  # the scan does not see turns smaller than rounding


def test_two_minima_and_the_lower_one():
    # a fast target, then noise in many slow modes, then a slower target, then noise in many more of the slowest modes
    spectrum = rfsim.spectrum(
        [1.0, 1e-3, 1e-6, 1e-10], [1.0, 0.0, 0.3, 0.0], multiplicity=[1.0, 4e3, 1.0, 4e9], noise_var=0.2
    )
    found = jump.minimum(spectrum, 0.05, 1.0)
    assert found.turns.size == 3
    assert found.step == found.turns[2]
    at_turns = jump.risk(spectrum, stretches(0.05, 1.0, 10**14), at=found.turns).risk
    assert at_turns[0] < at_turns[1] > at_turns[2] < at_turns[0]


def test_monotone_curves_say_so():
    falling = jump.minimum(rfsim.population(rfsim.power_law(0.7, 0.3)), 0.05, 1.0)
    assert falling.monotone
    assert falling.step == np.inf
    assert falling.risk == 0.0
    floor = rfsim.spectrum([1.0, 0.1], [1.0, 1.0], floor=0.3)
    assert_allclose(jump.minimum(floor, 0.1, 2.0).risk, rfsim.limiting_risk(floor, 0.1, 2.0), rtol=1e-14)
    rising = jump.minimum(rfsim.spectrum([1.0, 0.5], [0.0, 0.0], noise_var=1.0), 0.05, 1.0)
    assert rising.monotone
    assert rising.step == 0.0
    assert rising.risk == 0.0


def test_minimum_of_an_unstable_schedule():
    spectrum = rfsim.spectrum([1.0, 1e-3], [1.0, 1.0], noise_var=1e-3)
    found = jump.minimum(spectrum, 0.8, 1.0)
    assert rfsim.kappa(spectrum, 0.8, 1.0) > 1.0
    assert found.step == 0.0
    mild = rfsim.spectrum([1.0, 0.9, 0.8], [1e-9, 1.0, 1.0], noise_var=1e-9)
    lr = rfsim.lr_limit(mild, 1.0) * 1.0001
    found = jump.minimum(mild, lr, 1.0)
    assert np.isfinite(found.risk)


def test_minimum_from_a_state():
    spectrum = rfsim.population(rfsim.power_law(0.7, 0.3, noise_var=1.0))
    whole = jump.minimum(spectrum, 0.05, 1.0)
    state, _ = jump.evolve(spectrum, stretches(0.05, 1.0, 20_000))
    rest = jump.minimum(spectrum, 0.05, 1.0, state=state)
    assert_allclose(rest.step + 20_000, whole.step, rtol=1e-9)
    assert_allclose(rest.risk, whole.risk, rtol=1e-13)


# --- stretches and input ---------------------------------------------------------------------------------------------


def test_run_lengths_and_back():
    lr, batch = np.repeat([0.1, 0.1, 0.2, 0.1], [3, 2, 1, 4]), np.repeat([1.0, 2.0, 2.0, 1.0], [3, 2, 1, 4])
    found = from_schedule(from_arrays(lr, batch))
    assert_array_equal(found.steps, [3, 2, 1, 4])
    assert_array_equal(np.repeat(found.lr, found.steps.astype(int)), lr)
    assert_array_equal(np.repeat(found.batch, found.steps.astype(int)), batch)
    assert_array_equal(found.edges, [0, 3, 5, 6, 10])
    assert from_schedule(constant(0, 0.1, 1.0)).count == 0
    assert isinstance(found, Stretches)


def test_no_steps_and_empty_stretches():
    spectrum = random_case(0).spectrum
    curve = jump.risk(spectrum, constant(0, 0.1, 1.0))
    assert_allclose(curve.risk, spectrum.floor + spectrum.forcing_energy.sum())
    split = jump.risk(spectrum, stretches(0.1, 2.0, [60, 0, 40]), at=[60, 100])
    assert_allclose(split.risk, recursion.risk(spectrum, constant(100, 0.1, 2.0), at=[60, 100]).risk, rtol=1e-13)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((-0.1, 1, 5), "lr"),
        ((0.1, 0, 5), "batch"),
        ((0.1, 1, 2.5), "steps"),
        ((0.1, 1, -1), "steps"),
        ((0.1, 1, 1e16), "2\\^53"),
        (([0.1, 0.2], [1, 2, 3], 5), "length"),
        (([[0.1]], 1, 5), "one-dimensional"),
        ((np.nan, 1, 5), "lr"),
    ],
)
def test_bad_stretches_are_named(arguments, word):
    with pytest.raises(rfsim.InputError, match=word):
        stretches(*arguments)


@pytest.mark.parametrize("at", [[-1], [11], [3, 2], [1, 1], [np.nan], [], "x"])
def test_bad_recorded_steps_are_named(at):
    with pytest.raises(rfsim.InputError, match="at"):
        jump.risk(random_case(0).spectrum, stretches(0.1, 1.0, 10), at=at)


def test_complex_and_negative_spectra_are_refused():
    spectrum = random_case(0).spectrum
    with pytest.raises(rfsim.InputError, match="complex"):
        jump.risk(spectrum.replace(eigenvalues=spectrum.eigenvalues + 0.1j), stretches(0.1, 1.0, 10))
    with pytest.raises(rfsim.InputError, match="multiplicities"):
        jump.risk(spectrum.replace(multiplicity=-spectrum.multiplicity), stretches(0.1, 1.0, 10))


def test_negative_forcing_weights_are_fine():
    spectrum, lr, batch = case(FOUR[0], [1.0, -0.5, 0.3, -0.01])
    curve = jump.risk(spectrum, stretches(lr, batch, 10**6), at=[1, 10, 10**6])
    assert_allclose(curve.risk, exact_curves(spectrum, lr, batch, [1, 10, 10**6])["risk"], rtol=1e-12)
    assert isinstance(Modes(spectrum).start(None), State)


def test_minimum_with_a_target_in_modes_without_memory():
    spectrum = rfsim.spectrum([1.0, 0.05, 1e-4], [0.1, 1.0, 0.0], multiplicity=[1.0, 0.0, 1e4], noise_var=0.3)
    found = jump.minimum(spectrum, 0.3, 1.0)
    assert 10.0 < found.step < 1e4
    times = found.step * np.array([1 - 1e-3, 1.0, 1 + 1e-3])
    before, at, after = jump.risk(spectrum, stretches(0.3, 1.0, 10**6), at=times).risk
    assert abs(after - before) < 0.01 * (before + after - 2 * at)  # stationary to second order


@pytest.mark.parametrize(
    ("eigenvalues", "lr", "batch"),
    [([1.0, 1e-110, 1e-123], 0.4, 1.0), ([1.0, 1e-160, 1e-170], 0.4, 1.0), ([7.85e-70, 1.75e-56], 5.6e-54, 1e6)],
)
def test_modes_that_cannot_move_do_not_stop_the_others(eigenvalues, lr, batch):
    spectrum = rfsim.spectrum(eigenvalues, np.ones(len(eigenvalues)), noise_var=0.5)
    schedule = rfsim.schedules.constant(50, lr, batch)
    found, wanted = (rfsim.risk(spectrum, schedule, at=[0, 1, 50], route=route) for route in ("jump", "recursion"))
    for name in ("risk", "forcing", "clean"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-13)
    np.testing.assert_allclose(found.gap, wanted.gap, rtol=1e-12, atol=1e-80)
