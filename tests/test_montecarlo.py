"""Monte-Carlo SGD: both engines against plain NumPy SGD, the exact recursion, and each other.

Seeds are fixed; every statistical test states its chance of a false alarm. Shapes are few, because each compiles anew.
"""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import rfsim
from rfsim import schedules
from rfsim.checks import InputError, RunError
from rfsim.measure import agreement
from rfsim.routes import recursion
from rfsim.routes.montecarlo import Ensemble, law, literal, simulate
from rfsim.routes.montecarlo.ensemble import mean_and_error
from rfsim.routes.montecarlo.runs import _chunk_size
from rfsim.routes.montecarlo.stretches import RECORDS, STEPS, stretches

ENGINES = ("law", "literal")
RUNS = 4096
STEPS_RUN = 60
FALSE_ALARM = 1e-4  # of one ensemble of 25 points; 1e-3 for the whole file, with its single z-tests and KS tests
AT = np.r_[0, 1:20, 25, 30, 40, 50, 60]


def model(width=10, noise_var=0.3):
    problem = rfsim.power_law(0.4, 0.3, ambient=24, noise_var=noise_var)
    return rfsim.random_features(jax.random.key(8), problem, width)


FEATURES = model()
SPECTRUM = rfsim.feature_spectrum(FEATURES)
SCHEDULES = {
    "constant": schedules.constant(STEPS_RUN, 0.3, 1),
    "lr decay": schedules.power(STEPS_RUN, 0.35, 1, vartheta=0.5, via="lr"),
    "batch growth": schedules.power(STEPS_RUN, 0.3, 1, vartheta=0.9),
}


@pytest.fixture(scope="module")
def ensembles():
    return {
        (engine, name): simulate(jax.random.key(3), FEATURES, schedule, runs=RUNS, engine=engine, at=AT, chunk=2048)
        for engine in ENGINES
        for name, schedule in SCHEDULES.items()
    }


def theory(spectrum, schedule, *, batch_term=True):
    """Risk at steps 0..N by a plain loop; without `batch_term` the wrong theory that drops eta^2 l^2 / B from q."""
    lam, rho = np.asarray(spectrum.eigenvalues), np.array(spectrum.forcing_energy)
    out = [rho.sum() + spectrum.floor]
    for eta, size in zip(schedule.lr, schedule.batch, strict=True):
        q = (1 - eta * lam) ** 2 + (eta**2 * lam**2 / size if batch_term else 0.0)
        rho = q * rho + eta**2 / size * lam**2 * (out[-1] + spectrum.noise_var)
        out.append(rho.sum() + spectrum.floor)
    return np.array(out)


def numpy_sgd(seed, features, lr, batch, runs):
    """Risk of plain SGD runs after the given steps (runs,), one after the other; shares no code with rfsim."""
    rng = np.random.default_rng(seed)
    lam, theta = np.asarray(features.problem.eigenvalues), np.asarray(features.problem.target)
    weights, sigma = np.asarray(features.weights), np.sqrt(features.problem.noise_var)
    out = np.empty(runs)
    for run in range(runs):
        a = np.zeros(weights.shape[1])
        for eta, size in zip(lr, batch, strict=True):
            x = rng.standard_normal((size, lam.size)) * np.sqrt(lam)
            y = x @ theta + sigma * rng.standard_normal(size)
            phi = x @ weights
            a = a - eta / size * phi.T @ (phi @ a - y)
        out[run] = np.sum(lam * (weights @ a - theta) ** 2)
    return out


# --- against the exact risk ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("engine", ENGINES)
def test_mean_agrees_with_exact_risk_and_not_with_wrong_theories(ensembles, engine, name):
    found = ensembles[engine, name]
    schedule = SCHEDULES[name]
    assert found.engine == engine
    assert found.samples.shape == (RUNS, len(AT))
    np.testing.assert_array_equal(found.step, AT)
    np.testing.assert_allclose(found.intrinsic_time, np.r_[0, np.cumsum(schedule.lr)][AT], rtol=1e-14)

    def judged(curve):
        return agreement(found.mean, curve[AT], found.stderr, runs=RUNS, false_alarm_rate=FALSE_ALARM)

    right = judged(theory(SPECTRUM, schedule))
    assert right.points == len(AT) - 1
    assert right.passed, right
    assert judged(recursion.risk(SPECTRUM, schedule, at=np.arange(STEPS_RUN + 1)).risk).passed
    assert not judged(theory(SPECTRUM, schedule, batch_term=False)).passed
    assert not judged(theory(SPECTRUM.replace(noise_var=0.6), schedule)).passed


@pytest.mark.parametrize("engine", ENGINES)
def test_float32_draws_agree_with_exact_risk(engine):
    name = "batch growth"
    found = simulate(
        jax.random.key(4), FEATURES, SCHEDULES[name], runs=2048, engine=engine, at=AT, draws="float32", chunk=2048
    )
    exact = theory(SPECTRUM, SCHEDULES[name])[AT]
    assert found.samples.dtype == np.float64
    assert agreement(found.mean, exact, found.stderr, runs=2048, false_alarm_rate=FALSE_ALARM).passed


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("batch", [1, 3])
def test_one_step_mean_near_instability(engine, batch):
    # later means are carried by rare runs; one step has light enough tails
    lr = 0.97 * rfsim.lr_limit(SPECTRUM, batch)
    schedule = schedules.constant(1, lr, batch)
    found = simulate(jax.random.key(5), FEATURES, schedule, runs=RUNS, engine=engine, chunk=2048)
    exact = theory(SPECTRUM, schedule)
    assert agreement(found.mean, exact, found.stderr, runs=RUNS, false_alarm_rate=1e-5).passed


def test_isotropic_one_step_factor():
    # d = 10, B = 4, eta = .3: (1 - .3)^2 + .09 (1 + 10)/4 = .7375
    spectrum = rfsim.spectrum(np.ones(10), np.full(10, 0.1))
    found = simulate(jax.random.key(6), spectrum, schedules.constant(1, 0.3, 4), runs=RUNS, chunk=2048)
    assert agreement(found.mean, [1.0, 0.7375], found.stderr, runs=RUNS, false_alarm_rate=1e-5).passed


# --- whole distributions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 3, 64])
def test_distribution_after_one_and_two_steps_is_that_of_numpy_sgd(batch):
    # three two-sample KS tests per batch at p < 1e-5 each: false-alarm rate 9e-5 over the three batches
    schedule = schedules.constant(2, 0.3, batch)
    witness = {t: numpy_sgd(batch + t, FEATURES, [0.3] * t, [batch] * t, RUNS) for t in (1, 2)}
    wrong = numpy_sgd(7, FEATURES, [0.3], [batch * 2], RUNS)
    for engine in ENGINES:
        found = simulate(jax.random.key(10 + batch), FEATURES, schedule, runs=RUNS, engine=engine, chunk=2048)
        for t in (1, 2):
            assert stats.ks_2samp(found.samples[:, t], witness[t]).pvalue > 1e-5
        assert stats.ks_2samp(found.samples[:, 1], wrong).pvalue < 1e-5


def test_distribution_of_both_engines_late(ensembles):
    for name in SCHEDULES:
        one, other = ensembles["law", name].samples[:, -1], ensembles["literal", name].samples[RUNS // 2 :, -1]
        assert stats.ks_2samp(one, other).pvalue > 1e-5


def test_literal_engine_is_numpy_sgd_on_the_same_samples():
    # the documented key scheme: run, step, sample; inputs first, label noise last
    sizes = [1, 7, 8, 64, 75, 200]
    lr = np.linspace(0.1, 0.3, len(sizes))
    key = jax.random.key(12)
    found = simulate(key, FEATURES, schedules.from_arrays(lr, sizes), runs=2, engine="literal", chunk=2)
    problem, weights = FEATURES.problem, np.asarray(FEATURES.weights)

    @jax.jit
    def all_draws(run, t):
        step_key = jax.random.fold_in(jax.random.fold_in(key, run), t)
        keys = jax.vmap(lambda i: jax.random.fold_in(step_key, i))(np.arange(max(sizes), dtype=np.uint32))
        return jax.vmap(lambda k: jax.random.normal(k, (25,)))(keys)

    for run in range(2):
        a = np.zeros(weights.shape[1])
        for t, size in enumerate(sizes):
            draws = np.asarray(all_draws(run, t))[:size]
            x = draws[:, :24] * np.sqrt(problem.eigenvalues)
            y = x @ problem.target + np.sqrt(problem.noise_var) * draws[:, 24]
            phi = x @ weights
            a = a - lr[t] / size * phi.T @ (phi @ a - y)
            risk = np.sum(problem.eigenvalues * (weights @ a - problem.target) ** 2)
            np.testing.assert_allclose(found.samples[run, t + 1], risk, rtol=1e-12)


# --- independence of how it is run -----------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_runs_do_not_depend_on_chunks_runs_records_or_horizon(ensembles, engine):
    schedule = SCHEDULES["batch growth"]
    whole = ensembles[engine, "batch growth"].samples[:5]
    few = simulate(jax.random.key(3), FEATURES, schedule, runs=5, engine=engine, at=AT, chunk=2)
    np.testing.assert_allclose(few.samples, whole, rtol=1e-12)
    every = simulate(jax.random.key(3), FEATURES, schedule, runs=2, engine=engine, at=np.arange(61), chunk=2)
    np.testing.assert_allclose(every.samples[:, AT], whole[:2], rtol=1e-12)
    longer = schedules.from_arrays(np.r_[schedule.lr, np.full(700, 0.1)], np.r_[schedule.batch, np.full(700, 3)])
    part = simulate(jax.random.key(3), FEATURES, longer, runs=2, engine=engine, at=[13, 60, 700], chunk=2)
    np.testing.assert_allclose(part.samples[:, :2], few.samples[:2][:, [13, 24]], rtol=1e-12)
    assert np.isfinite(part.samples).all()
    other = simulate(jax.random.key(13), FEATURES, schedule, runs=2, engine=engine, at=AT, chunk=2)
    assert (other.samples[:, 1:] != few.samples[:2, 1:]).all()


def test_old_style_keys_and_aligned_spectra_give_the_same_runs():
    schedule = schedules.constant(5, 0.2, 2)
    new = simulate(jax.random.key(14), SPECTRUM, schedule, runs=2, chunk=2)
    old = simulate(jax.random.PRNGKey(14), FEATURES, schedule, runs=2, chunk=2)
    np.testing.assert_array_equal(new.samples, old.samples)
    aligned = simulate(jax.random.key(14), SPECTRUM, schedule, runs=2, chunk=2, engine="literal")
    made = simulate(jax.random.key(14), rfsim.aligned_features(SPECTRUM), schedule, runs=2, chunk=2, engine="literal")
    np.testing.assert_array_equal(aligned.samples, made.samples)


@pytest.mark.parametrize(("engine", "advance"), [("law", law.advance), ("literal", literal.advance)])
def test_other_numbers_and_horizons_compile_nothing(engine, advance, caplog):
    def run(steps, lr, batch, noise_var):
        features = model(noise_var=noise_var)
        schedule = schedules.constant(steps, lr, batch)
        return simulate(jax.random.key(steps), features, schedule, runs=3, engine=engine, at=[0, steps], chunk=2)

    run(1000, 0.1, 1, 0.2)
    before = advance._cache_size()
    assert before > 0
    with jax.log_compiles(), caplog.at_level("WARNING"):
        for steps, lr, batch in ((1000, 0.05, 3), (1001, 0.2, 9), (1002, 0.02, 70 if engine == "literal" else 10**6)):
            run(steps, lr, batch, 0.1)
        compiled = [record.message for record in caplog.records if "Finished XLA compilation" in record.message]
        jax.jit(lambda x: x + 1.0)(1.0)
    assert "Finished XLA compilation" in caplog.text  # of the line above: the log does tell
    assert advance._cache_size() == before
    assert not compiled


# --- checkpoints -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_interrupted_simulation_resumes_to_the_same_result(tmp_path, engine):
    path = tmp_path / "runs.npz"
    schedule = schedules.constant(30, 0.2, 2)
    seen = []

    def call(**options):
        return simulate(jax.random.key(15), FEATURES, schedule, runs=5, engine=engine, chunk=2, **options)

    def interrupt(done, total):
        seen.append((done, total))
        if done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call(checkpoint=path, progress=interrupt)
    assert seen == [(2, 5)]
    with np.load(path) as stored:
        assert len(stored["samples"]) == 2
    seen.clear()
    resumed = call(checkpoint=path, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(4, 5), (5, 5)]
    np.testing.assert_array_equal(resumed.samples, call().samples)
    seen.clear()
    again = call(checkpoint=path, progress=lambda done, total: seen.append((done, total)))
    assert seen == []
    np.testing.assert_array_equal(again.samples, resumed.samples)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["runs.npz"]


def test_checkpoint_of_other_runs_is_refused(tmp_path):
    path = tmp_path / "runs.npz"
    given = {"key": jax.random.key(16), "source": SPECTRUM, "schedule": schedules.constant(5, 0.2, 2), "runs": 3}
    given |= {"engine": "law", "draws": "float64", "at": [1, 5]}

    def call(**changed):
        options = {**given, **changed}
        key, source, schedule = (options.pop(name) for name in ("key", "source", "schedule"))
        return simulate(key, source, schedule, chunk=2, checkpoint=path, **options)

    call()
    untouched = path.read_bytes()
    others = {
        "key": jax.random.key(17),
        "source": SPECTRUM.replace(noise_var=0.1),
        "schedule": schedules.constant(5, 0.2, 3),
        "at": [2, 5],
        "engine": "literal",
        "draws": "float32",
        "runs": 4,
    }
    for name, other in others.items():
        with pytest.raises(InputError, match=f"other runs: {name} differs"):
            call(**{name: other})
    assert path.read_bytes() == untouched
    path.write_bytes(b"something else")
    with pytest.raises(InputError, match="no checkpoint"):
        call()
    path = tmp_path / "no" / "file.npz"
    with pytest.raises(RunError, match="cannot write"):
        call()


# --- special cases ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_infinite_batch_is_gradient_descent(engine):
    lr = np.linspace(0.1, 0.5, 12)
    descent = schedules.from_arrays(lr, np.inf)
    found = simulate(jax.random.key(18), FEATURES, descent, runs=2, engine=engine, chunk=2)
    shrink = np.cumprod(np.vstack([np.ones(10), 1 - lr[:, None] * SPECTRUM.eigenvalues]), axis=0)
    exact = SPECTRUM.floor + (shrink**2 * SPECTRUM.forcing_energy).sum(axis=1)
    np.testing.assert_allclose(found.samples, np.vstack([exact, exact]), rtol=1e-12)
    np.testing.assert_array_equal(found.stderr, 0.0)


@pytest.mark.parametrize("engine", ENGINES)
def test_zero_target_without_noise_stays_exactly_zero(engine):
    problem = rfsim.problem(FEATURES.problem.eigenvalues, np.zeros(24))
    features = rfsim.Features(problem, FEATURES.weights)
    found = simulate(jax.random.key(19), features, schedules.constant(9, 0.3, 1), runs=2, engine=engine, chunk=2)
    np.testing.assert_array_equal(found.samples, 0.0)
    np.testing.assert_array_equal(found.mean, 0.0)


@pytest.mark.parametrize(("floor", "noise_var"), [(0.5, 0.0), (0.0, 0.5)])
def test_only_floor_or_only_noise(floor, noise_var):
    spectrum = rfsim.spectrum(SPECTRUM.eigenvalues, np.zeros(10), floor=floor, noise_var=noise_var)
    schedule = schedules.constant(20, 0.2, 2)
    still = simulate(jax.random.key(20), spectrum, schedule.replace(lr=0.0), runs=2, chunk=2)
    np.testing.assert_allclose(still.samples, floor, rtol=1e-15)
    found = simulate(jax.random.key(20), spectrum, schedule, runs=RUNS, chunk=2048)
    exact = theory(spectrum, schedule)
    assert exact[-1] > floor + 0.01
    assert (found.samples >= floor * (1 - 1e-15)).all()
    assert agreement(found.mean, exact, found.stderr, runs=RUNS, false_alarm_rate=1e-5).passed


@pytest.mark.parametrize("engine", ENGINES)
def test_width_one(engine):
    features = model(width=1)
    schedule = schedules.constant(10, 0.1, 2)
    found = simulate(jax.random.key(21), features, schedule, runs=2048, engine=engine, chunk=2048)
    exact = theory(rfsim.feature_spectrum(features), schedule)
    assert agreement(found.mean, exact, found.stderr, runs=2048, false_alarm_rate=1e-5).passed


def test_batch_of_a_million():
    schedule = schedules.constant(20, 0.4, 10**6)
    found = simulate(jax.random.key(22), FEATURES, schedule, runs=RUNS, chunk=2048)
    exact = theory(SPECTRUM, schedule)
    assert np.all(found.stderr[1:] < 1e-4 * exact[1:])
    assert agreement(found.mean, exact, found.stderr, runs=RUNS, false_alarm_rate=1e-5).passed


@pytest.mark.parametrize("engine", ENGINES)
def test_diverging_runs_give_inf_and_never_nan(engine):
    schedule = schedules.from_arrays(np.r_[np.full(300, 30.0), np.zeros(20)], 2)
    found = simulate(jax.random.key(23), FEATURES, schedule, runs=2, engine=engine, chunk=2)
    assert not np.isnan(found.samples).any()
    assert np.isfinite(found.samples[:, :5]).all()
    assert np.isinf(found.samples[:, -1]).all()
    assert (np.diff(np.isinf(found.samples).astype(int), axis=1) >= 0).all()
    for array in (found.mean, found.stderr, found.quantiles([0.0, 0.3, 1.0])[:, -1]):
        assert not np.isnan(array).any()
        assert np.isinf(array[-1])


def test_empty_schedule_gives_the_initial_risk():
    found = simulate(jax.random.key(24), SPECTRUM, schedules.constant(0, 0.1, 1), runs=2, chunk=2)
    np.testing.assert_array_equal(found.step, [0])
    np.testing.assert_allclose(found.mean, SPECTRUM.forcing_energy.sum() + SPECTRUM.floor, rtol=1e-14)


def test_chunks_bound_memory_and_share_the_runs_evenly():
    for engine, bytes_per_run in (("law", law.bytes_per_run(law.law_model(SPECTRUM))), ("literal", 10**5)):
        for runs in (1, 7, 1000, 4001, 65_537):
            size = _chunk_size(None, runs, engine, bytes_per_run)
            chunks = -(-runs // size)
            assert 1 <= size <= runs
            assert size * bytes_per_run <= 256 * 2**20
            assert size * chunks - runs < chunks  # less than one idle run per chunk
        assert _chunk_size(None, 9, engine, 2**40) == 1  # larger than the memory allowed: one by one
        assert _chunk_size(20, 9, engine, bytes_per_run) == 9


# --- statistics and stretches ----------------------------------------------------------------------------------------


def test_statistics_of_an_ensemble():
    samples = np.random.default_rng(1).exponential(size=(9, 4)) * np.array([1.0, 1e-300, 1e307, 1.0])
    samples[:, 3] = 0.1
    mean, error = mean_and_error(samples)
    scale = np.array([1.0, 1e-300, 1e307, 1.0])
    np.testing.assert_allclose(mean, (samples / scale).mean(axis=0) * scale, rtol=1e-14)
    np.testing.assert_allclose(error[:3], (samples / scale).std(axis=0, ddof=1)[:3] / 3 * scale[:3], rtol=1e-13)
    assert mean[3] == 0.1
    assert error[3] == 0.0
    step = np.arange(4)
    ensemble = Ensemble(step, step * 1.0, mean, error, samples, 9, "law")
    levels = [0.0, 0.1, 0.5, 0.77, 1.0]
    np.testing.assert_allclose(ensemble.quantiles(levels), np.quantile(samples, levels, axis=0), rtol=1e-14)
    np.testing.assert_allclose(ensemble.quantiles(0.5), np.median(samples, axis=0)[None, :], rtol=1e-14)
    single = mean_and_error(samples[:1])
    np.testing.assert_allclose(single[0], samples[0], rtol=1e-15)
    assert np.isinf(single[1]).all()
    leaves, shape = jax.tree.flatten(ensemble)
    assert len(leaves) == 5
    assert jax.tree.unflatten(shape, leaves).runs == 9
    for wrong in ([-0.1], [0.5, 1.1], [np.nan], []):
        with pytest.raises(InputError, match="levels"):
            ensemble.quantiles(wrong)


@given(st.integers(0, 1500), st.data())
def test_stretches_cover_every_step_and_record_once(last, data):
    count = data.draw(st.integers(1, last + 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    steps = np.sort(rng.choice(last + 1, size=count, replace=False))
    lr = 1.0 + np.arange(last)
    reached, recorded = 0, []
    for stretch, place in stretches(schedules.from_arrays(lr, 1.0) if last else schedules.constant(0, 1, 1), steps):
        assert stretch.first == reached
        assert stretch.lr.shape == (STEPS,)
        assert stretch.place.shape == (RECORDS,)
        np.testing.assert_array_equal(stretch.lr[: stretch.length], lr[reached : reached + int(stretch.length)])
        assert not stretch.lr[stretch.length :].any()
        here = stretch.place[: place.stop - place.start]
        np.testing.assert_array_equal(np.flatnonzero(stretch.record), here)
        assert place.start == len(recorded)
        recorded += list(reached + here)
        reached += int(stretch.length)
    assert reached == steps[-1]
    np.testing.assert_array_equal(recorded, steps)


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"key": 3}, "key"),
        ({"key": jax.random.split(jax.random.key(0))}, "key"),
        ({"key": jax.random.key(0, impl="rbg")}, "threefry"),
        ({"key": np.zeros(3)}, "key"),
        ({"source": "spectrum"}, "source"),
        ({"source": SPECTRUM.replace(multiplicity=np.full(10, 2.0))}, "multiplicities"),
        ({"source": SPECTRUM.replace(multiplicity=np.full(10, 2.0)), "engine": "literal"}, "multiplicities"),
        ({"source": SPECTRUM.replace(eigenvalues=SPECTRUM.eigenvalues + 0j)}, "complex"),
        ({"source": rfsim.Features(FEATURES.problem, np.ones((3, 2))), "engine": "literal"}, "weights"),
        ({"source": rfsim.Features(FEATURES.problem, np.full((24, 2), np.nan)), "engine": "literal"}, "weights"),
        ({"schedule": schedules.constant(4, 0.1, 2.5)}, "batch"),
        ({"schedule": schedules.constant(4, 0.1, 0.5)}, "batch"),
        ({"schedule": schedules.constant(4, 0.1, 2.0**33), "engine": "literal"}, "batch"),
        ({"runs": 0}, "runs"),
        ({"runs": 2.5}, "runs"),
        ({"chunk": 0}, "chunk"),
        ({"engine": "sgd"}, "engine"),
        ({"draws": "float16"}, "draws"),
        ({"at": [0, 5]}, "at"),
        ({"at": [2, 1]}, "at"),
        ({"at": [0.5]}, "at"),
        ({"at": []}, "at"),
    ],
)
def test_bad_input(changed, named):
    options = {"key": jax.random.key(0), "source": SPECTRUM, "schedule": schedules.constant(4, 0.1, 2), "runs": 2}
    options |= changed
    key, source, schedule = (options.pop(name) for name in ("key", "source", "schedule"))
    with pytest.raises(InputError, match=named):
        simulate(key, source, schedule, **options)


def test_tracing_is_refused():
    def mean(lr):
        return simulate(jax.random.key(0), SPECTRUM, schedules.from_arrays(lr, 1.0), runs=1).mean

    with pytest.raises(RunError, match="inside jit"):
        jax.jit(mean)(np.ones(2))
