"""The result of a fit: standard errors, intervals, predictions with a band, text, and a file that round-trips."""

import json
import math
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import binom
from scipy.stats import t as student
from test_surrogate_fit import NAMES, TRUE, Toy, literal_objective, log_of, toy_runs

from rfsim.checks import InputError
from rfsim.logs import run
from rfsim.schedules import constant, cosine, eight_one_one, stages
from rfsim.surrogates import FitResult, FitWarning, Parameter, fit, law
from rfsim.surrogates.uncertainty import student_width

VALUES = np.array([2.8, 20.0, 0.45, 3e-4, 2e-2, 0.02, 0.9])
STEPS = 4000
SCHEDULES = {
    "constant": constant(STEPS, 1e-3, 4.0),
    "8-1-1": eight_one_one(STEPS, 1e-3, 4.0),
    "dip": stages(STEPS, 1e-3, 4.0, at=[0.03, 0.1, 0.4], lr_to=[0.3, 1.0, 0.3]),
}


def made(schedule, seed, name="log", noise=1e-3):
    """A run that the forcing-memory law makes."""
    rows = np.unique(np.geomspace(20, STEPS, 90).round())
    one = law("forcing-memory", lr_unit=1e-3, batch_unit=4.0)
    bare = run(rows, np.ones(len(rows)), schedule, name=name, warmup=7)
    loss = one.evaluate(VALUES, one.prepare(bare))[0]
    loss = loss * np.exp(noise * np.random.default_rng([3, seed]).standard_normal(len(rows)))
    return run(rows, loss, schedule, name=name, warmup=7)


@dataclass(frozen=True)
class Line:
    """L = sum of a_j T_j(x), the first five Chebyshev polynomials of the step x on 1..10."""

    name = "line"
    linear = ("a0", "a1", "a2", "a3", "a4")
    parameters = tuple(Parameter(f"a{j}", -20.0, 20.0, "loss", "coefficient") for j in range(5))

    def calibrated(self, runs):
        return self

    def prepare(self, each, at=None):
        return np.asarray(each.step if at is None else at, dtype=np.float64)

    def evaluate(self, values, x, *, gradient=True):
        design = np.polynomial.chebyshev.chebvander((x - 5.5) / 4.5, 4)
        return design @ values, design if gradient else None

    def starts(self, prepared, losses):
        return np.array([[4.0, 0.0, 0.0, 0.0, 0.0]])

    def centres(self, prepared):
        return {}


@pytest.fixture(scope="module")
def fitted():
    runs = [made(one, number, name) for number, (name, one) in enumerate(SCHEDULES.items())]
    return fit(law("forcing-memory"), runs, starts=[VALUES])


@pytest.fixture(scope="module")
def forms(fitted):
    return fitted.with_alternatives()


@pytest.fixture(scope="module")
def toy():
    return fit(Toy(), toy_runs(noise=2e-3))


# --- standard errors -------------------------------------------------------------------------------------------------


def slopes(values, runs):
    """Derivatives of the log losses by central differences, all rows."""

    def logs(at):
        return np.concatenate([np.log(Toy().evaluate(at, each.step)[0]) for each in runs])

    moves = 1e-6 * np.diag(np.abs(values))
    return np.stack([(logs(values + one) - logs(values - one)) / (2.0 * one.sum()) for one in moves], axis=1)


def test_covariance_of_least_squares():
    """With a wide Huber loss: residual variance times the inverse of J^T J."""
    runs = [toy_runs(noise=2e-3, seed=seed)[0] for seed in (0, 1)]
    found = fit(Toy(), runs, huber=10.0)
    jacobian = slopes(found.values, runs)
    rest = np.concatenate(list(found.residuals.values()))
    assert found.spread.inflation == 1.0
    assert found.spread.rows == len(rest) - 5
    wanted = np.linalg.inv(jacobian.T @ jacobian) * (rest @ rest) / (len(rest) - 5)
    np.testing.assert_allclose(found.spread.covariance, wanted, rtol=1e-4)
    np.testing.assert_allclose(list(found.stderr.values()), np.sqrt(np.diag(wanted)), rtol=1e-4)


def test_covariance_of_hubers_estimate():
    """mean(psi^2) / mean(psi')^2: psi cut at the width, psi' the share of rows within it."""
    runs = [toy_runs(noise=2e-3, seed=seed)[0] for seed in (0, 1)]
    found = fit(Toy(), runs, huber=2e-3)
    jacobian = slopes(found.values, runs)
    rest = np.concatenate(list(found.residuals.values()))
    psi = [max(-2e-3, min(2e-3, r)) for r in rest]
    share = sum(abs(r) <= 2e-3 for r in rest) / len(rest)
    assert 0.5 < share < 0.8
    factor = sum(p * p for p in psi) / share**2 / (len(rest) - 5)
    np.testing.assert_allclose(found.spread.covariance, np.linalg.inv(jacobian.T @ jacobian) * factor, rtol=1e-4)


def test_correlated_residuals_widen_the_errors():
    """Residuals that remember .8 of the one before carry (1 - .8)/(1 + .8) as much information."""
    rows = np.unique(np.linspace(2, 3000, 1500).round())
    draw = np.random.default_rng(4)
    noise = np.zeros(len(rows))
    for at in range(1, len(rows)):
        noise[at] = 0.8 * noise[at - 1] + 6e-4 * draw.standard_normal()
    loss = Toy().evaluate(TRUE, rows)[0]
    found = fit(Toy(), log_of(loss * np.exp(noise), rows, steps=3000), huber=1.0)
    assert 4.5 < found.spread.inflation < 16.0  # 9 on average
    rest = found.residuals["log"].tolist()
    lag, wanted = 1, 1.0
    while (part := sum(a * b for a, b in zip(rest[lag:], rest, strict=False)) / (len(rest) - lag)) > 0.0:
        wanted += 2.0 * part / (sum(a * a for a in rest) / len(rest))
        lag += 1
    assert found.spread.inflation == pytest.approx(wanted, rel=1e-9)
    assert found.spread.rows == pytest.approx(len(rows) / found.spread.inflation - 5)
    plain = fit(Toy(), log_of(loss * np.exp(draw.permutation(noise)), rows, steps=3000), huber=1.0)
    assert plain.spread.inflation == 1.0
    ratio = found.stderr["E"] / plain.stderr["E"]
    assert ratio == pytest.approx(math.sqrt(found.spread.inflation), rel=0.2)


# --- intervals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_wald_intervals(toy, level):
    width = student.ppf(0.5 + level / 2, toy.spread.rows)
    assert student_width(level, toy.spread.rows) == width
    found = toy.conf_int(level, method="wald")
    for name, value, error in zip(NAMES, toy.values, toy.stderr.values(), strict=True):
        low, high = found[name]
        if name in ("q", "s"):  # on the log scale
            factor = math.exp(width * error / value)
            assert (low, high) == pytest.approx((value / factor, value * factor))
        else:
            assert (low, high) == pytest.approx((value - width * error, value + width * error))
        assert isinstance(low, float)
        assert isinstance(high, float)


@pytest.mark.parametrize("level", [0.6827, 0.95])
def test_profile_intervals_end_where_the_refit_is_rejected(toy, level):
    """At both ends of each interval the objective of the refit has risen by the quantile of its deviance."""
    found = toy.conf_int(level)
    wald = toy.conf_int(level, method="wald")
    quantile = student_width(level, toy.spread.rows) ** 2
    runs = toy_runs(noise=2e-3)
    for name in NAMES:
        value = toy.params[name]
        low, high = found[name]
        assert low < value < high
        assert (high - low) / (wald[name].high - wald[name].low) == pytest.approx(1.0, rel=0.25)
        for end in (low, high):
            refit = fit(Toy(), runs, fixed={name: end}, starts=[toy.values])
            rise = literal_objective(refit.values, runs, toy.huber) - literal_objective(toy.values, runs, toy.huber)
            assert toy.spread.scale * rise == pytest.approx(quantile, rel=5e-3)


def test_profile_intervals_follow_a_valley_to_its_end():
    """Amplitude, rate and exponent of the memory trade against each other: each refit has a long way to go."""
    runs = [made(SCHEDULES[name], number, name) for number, name in enumerate(list(SCHEDULES)[:2])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        found = fit(law("forcing-memory"), runs)
        wanted = student.ppf(0.975, found.spread.rows)
        ends = found.conf_int(0.95)
        bounds = {one.name: (one.low, one.high) for one in found.law.parameters}
        met = []
        for name in ("A_0", "c_K"):
            for end, bound in zip(ends[name], bounds[name], strict=True):
                if end != pytest.approx(bound, rel=1e-3, abs=1e-9):
                    again = fit(law("forcing-memory"), runs, fixed={name: end}, starts=[found.values])
                    met.append(math.sqrt(found.spread.scale * (again.objective - found.objective)))
    assert len(met) >= 2
    np.testing.assert_allclose(met, wanted, rtol=0.03)


def test_profile_intervals_at_a_bound_and_open_ones():
    rows = np.unique(np.geomspace(2, 1000, 70).round())
    values = np.array([0.0, 6.0, 0.5, 0.0, 90.0])  # on the bound of E
    loss = Toy().evaluate(values, rows)[0] * np.exp(1e-3 * np.random.default_rng(2).standard_normal(len(rows)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit(Toy(), log_of(loss, rows))
        intervals = found.conf_int()
    assert intervals["E"].low == 0.0
    assert intervals["E"].high > 1e-4
    assert intervals["s"].high > 30.0 * intervals["s"].low  # the place of no bump is open
    assert intervals["A"].low < 6.0 < intervals["A"].high


def test_fixed_parameters_have_no_interval():
    found = fit(Toy(), toy_runs(), fixed={"q": 0.5})
    for method in ("wald", "profile"):
        assert set(found.conf_int(method=method)) == {"E", "A", "B", "s"}
    assert set(found.bootstrapped(5).conf_int(method="bootstrap")) == {"E", "A", "B", "s"}


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95, math.nan, "high"])
def test_levels_that_are_refused(toy, level):
    with pytest.raises(InputError, match="level must"):
        toy.conf_int(level)


def test_methods_that_are_refused(toy):
    with pytest.raises(InputError, match="method must be one of"):
        toy.conf_int(method="guess")
    with pytest.raises(InputError, match="bootstrap needs samples"):
        toy.conf_int(method="bootstrap")


# --- bootstrap -------------------------------------------------------------------------------------------------------


def test_bootstrap_is_seeded_and_each_resample_is_its_own(toy):
    eight = toy.bootstrapped(8, seed=5).samples
    assert eight.shape == (8, 5)
    np.testing.assert_array_equal(toy.bootstrapped(3, seed=5).samples, eight[:3])
    assert (toy.bootstrapped(8, seed=6).samples != eight).any()
    told = []
    toy.bootstrapped(2, progress=lambda *at: told.append(at))
    assert told == [(1, 2), (2, 2)]


def test_a_resample_is_a_fit_of_the_blocks_drawn(toy):
    """The first resample, with its blocks repeated as rows of separate runs."""
    runs, blocks = toy_runs(noise=2e-3), 4
    draw = np.random.default_rng([0, 0]).integers(0, 2 * blocks, 2 * blocks)
    parts = []
    for number, one in enumerate(draw):
        each, place = runs[one // blocks], one % blocks
        own = [i for i in range(len(each.step)) if i * blocks // len(each.step) == place]
        parts.append(log_of(each.loss[own], each.step[own], name=str(number)))
    wanted = fit(Toy(), parts, starts=[toy.values])
    sample = toy.bootstrapped(2, blocks=blocks).samples[0]
    assert literal_objective(sample, parts, 1e-3) == pytest.approx(wanted.objective, rel=1e-4)
    np.testing.assert_allclose(sample, wanted.values, rtol=2e-2)


def test_bootstrap_errors_are_those_of_the_covariance():
    """Independent residuals: resampled and local errors agree up to the noise of 100 resamples and 32 blocks."""
    runs = [toy_runs(noise=2e-3, seed=seed)[0] for seed in range(4)]
    found = fit(Toy(), runs)
    again = found.bootstrapped(100, blocks=20)
    for name in NAMES:
        assert 0.6 < again.stderr[name] / found.stderr[name] < 1.6
        low, high = again.conf_int(method="bootstrap")[name]
        assert low < found.params[name] < high
        assert (low, high) == pytest.approx(np.quantile(again.samples[:, NAMES.index(name)], [0.025, 0.975]))


@pytest.mark.parametrize(("options", "words"), [({"resamples": 1}, "resamples"), ({"blocks": 1}, "blocks")])
def test_bootstraps_that_are_refused(toy, options, words):
    with pytest.raises(InputError, match=f"{words} must be"):
        toy.bootstrapped(**options)


# --- predictions -----------------------------------------------------------------------------------------------------


def test_predictions_are_the_law_at_the_parameters(fitted):
    schedule = cosine(STEPS, 1e-3, 4.0)
    at = [1, 50, 3999, 4000]
    found = fitted.predict(schedule, at=at)
    one = fitted.law
    loss, gradient = one.evaluate(fitted.values, one.prepare(run(at, np.ones(4), schedule)))
    np.testing.assert_array_equal(found.step, at)
    np.testing.assert_array_equal(found.loss, loss)
    for row in range(4):
        variance = gradient[row] @ fitted.spread.covariance @ gradient[row]
        assert found.stderr[row] == pytest.approx(math.sqrt(variance), rel=1e-9)
        half = student_width(0.95, fitted.spread.rows) * math.hypot(math.sqrt(variance), fitted.scatter * loss[row])
        assert found.high[row] - loss[row] == pytest.approx(half, rel=1e-6)
        assert loss[row] - found.low[row] == pytest.approx(half, rel=1e-6)
    wider = fitted.predict(schedule, at=at, level=0.99)
    assert (wider.high > found.high).all()
    assert (wider.level, found.level) == (0.99, 0.95)


def test_predictions_of_runs_and_schedules_agree(fitted):
    each = made(SCHEDULES["dip"], 9)
    found = fitted.predict(each)
    np.testing.assert_array_equal(found.step, each.step)
    by_schedule = fitted.predict(each.schedule, at=each.step.astype(int))
    np.testing.assert_array_equal(by_schedule.loss, found.loss)
    some = fitted.predict(each, at=[10, 20])
    assert some.step.tolist() == [10.0, 20.0]
    whole = fitted.predict(each.schedule)
    assert (whole.step[0], whole.step[-1]) == (1.0, STEPS)
    np.testing.assert_array_equal(fitted.predict(each.schedule, at=whole.step.astype(int)).loss, whole.loss)


def test_the_band_holds_the_rows_of_other_runs(fitted):
    """95 % of new rows, of schedules that were not fitted: with 270 rows, misses beyond chance in one of 10^4."""
    schedules = (cosine(STEPS, 1e-3, 4.0), constant(STEPS, 5e-4, 4.0), eight_one_one(STEPS, 1e-3, 8.0))
    inside = []
    for seed, schedule in enumerate(schedules):
        each = made(schedule, 50 + seed)
        found = fitted.predict(each)
        inside.append((found.low <= each.loss) & (each.loss <= found.high))
    inside = np.concatenate(inside)
    least, most = binom.ppf([1e-4, 1.0 - 1e-4], inside.size, 0.95)
    assert least <= inside.sum() <= most


def test_the_mean_is_within_its_error(fitted):
    one = law("forcing-memory", lr_unit=1e-3, batch_unit=4.0)
    at = np.array([100, 1000, 4000])
    schedule = cosine(STEPS, 1e-3, 4.0)
    true, _ = one.evaluate(VALUES, one.prepare(run(at, np.ones(3), schedule)))
    found = fitted.predict(schedule, at=at)
    assert (np.abs(found.loss - true) < 4.0 * found.stderr).all()
    assert (found.stderr < 1e-3 * found.loss).all()


def test_predictions_with_bootstrap_samples(fitted):
    again = fitted.bootstrapped(12, seed=1)
    found = again.predict(SCHEDULES["8-1-1"], at=[100, 4000])
    one = fitted.law
    prepared = one.prepare(run([100, 4000], np.ones(2), SCHEDULES["8-1-1"]))
    drawn = [one.evaluate(values, prepared)[0] for values in again.samples]
    np.testing.assert_allclose(found.stderr, np.std(drawn, axis=0, ddof=1), rtol=1e-9)
    np.testing.assert_array_equal(found.loss, fitted.predict(SCHEDULES["8-1-1"], at=[100, 4000]).loss)


@pytest.mark.parametrize("at", [[-1], [STEPS + 1], [2.5], [20, 10]])
def test_steps_that_are_refused(fitted, at):
    for target in (SCHEDULES["8-1-1"], made(SCHEDULES["8-1-1"], 0)):
        with pytest.raises(InputError):
            fitted.predict(target, at=at)


# --- what is told ----------------------------------------------------------------------------------------------------


def test_residuals_and_errors_of_runs(fitted):
    for number, (name, schedule) in enumerate(SCHEDULES.items()):
        each = made(schedule, number, name)
        loss, _ = fitted.law.evaluate(fitted.values, fitted.law.prepare(each))
        np.testing.assert_allclose(fitted.residuals[name], np.log(loss / each.loss), atol=1e-14)
        assert fitted.rmse[name] == pytest.approx(math.sqrt(np.mean((loss - each.loss) ** 2)), rel=1e-9)
    assert 0.9e-3 < fitted.scatter < 1.1e-3


def test_scatter_counts_squares_over_rows_less_free_parameters(toy):
    """About 0, not about their mean, which a Huber fit leaves where it is; held parameters take no degrees."""
    shifted = replace(toy, runs=tuple(one._replace(fitted=one.fitted * 1.01) for one in toy.runs))
    for found, free in ((shifted, 5), (replace(shifted, fixed={"q": 0.5, "E": 2.5}), 3)):
        rest = np.concatenate([np.log(one.fitted / one.loss) for one in found.runs])
        assert abs(rest.mean()) > 4.0 * rest.std()
        assert found.scatter == pytest.approx(math.sqrt((rest @ rest) / (len(rest) - free)), rel=1e-12)
    bounded = replace(shifted, spread=shifted.spread._replace(at_bound=("B",)))
    assert bounded.scatter == pytest.approx(shifted.scatter * math.sqrt((len(rest) - 5) / (len(rest) - 4)), rel=1e-12)


def test_scatter_and_band_of_few_rows():
    """Ten rows and a polynomial of five: the scatter is that of the noise, and a band holds the rows of another run.

    The variance over 300 fits is within five standard errors of the true one, 2/(5 * 300) of its square; divided by
    the rows it would be half. One fresh row of each fit is asked about, so that the count within is binomial.
    """
    rows = np.arange(1.0, 11.0)
    draw, true, squares, held = np.random.default_rng(8), np.array([4.0, 0.2, -0.1, 0.05, 0.02]), [], 0
    curve = Line().evaluate(true, rows)[0]
    for at in range(300):
        found = fit(Line(), log_of(curve * np.exp(1e-3 * draw.standard_normal(10)), rows, steps=10), huber=1.0)
        squares.append((found.scatter / 1e-3) ** 2)
        band, row = found.predict(constant(10, 1e-3, 1.0), at=rows), at % 10
        held += bool(band.low[row] <= curve[row] * np.exp(1e-3 * draw.standard_normal()) <= band.high[row])
    assert abs(np.mean(squares) - 1.0) < 5.0 * math.sqrt(2.0 / (5 * 300))
    assert binom.ppf(1e-3, 300, 0.95) <= held <= binom.ppf(1.0 - 1e-3, 300, 0.95)


def test_a_small_share_of_starts_is_noted(toy):
    for share, told in ((0.3, True), (0.6, False)):
        assert any("of 6 starts reach the optimum" in line for line in replace(toy, share=share).notes()) is told


def test_summary(fitted):
    text = fitted.summary()
    lines = text.splitlines()
    assert lines[0].split()[:3] == ["parameter", "value", "stderr"]
    for name, line in zip(fitted.params, lines[1:8], strict=True):
        cells = line.split()
        assert cells[0] == name
        assert float(cells[1]) == pytest.approx(fitted.params[name], rel=1e-5)
        assert float(cells[2]) == pytest.approx(fitted.stderr[name], rel=1e-5)
        low, high = fitted.conf_int(method="wald")[name]
        assert (float(cells[3]), float(cells[4])) == pytest.approx((low, high), rel=1e-5)
    assert '"lr_unit": 0.001' in text
    assert "100% of 1 starts" in text
    for name in SCHEDULES:
        line = next(one for one in lines if one.startswith(f"{name}: "))
        assert f"{len(fitted.residuals[name])} rows" in line
        own = next(one for one in fitted.runs if one.name == name)
        assert f"rmse {own.rmse:.5f}, noise floor {own.noise * np.mean(own.loss):.5f}," in line  # both in loss
        assert "warm-up 7 steps" in line
    assert text == fitted.summary()
    resampled = fitted.bootstrapped(4)
    low, high = resampled.conf_int(method="bootstrap")["q_K"]
    cells = resampled.summary().splitlines()[7].split()
    assert (float(cells[3]), float(cells[4])) == pytest.approx((low, high), rel=1e-5)


# --- the file --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", ["nothing", "samples", "forms"])
def test_a_file_round_trips_to_the_byte(fitted, forms, tmp_path, more):
    result = {"nothing": lambda: fitted, "samples": lambda: fitted.bootstrapped(3), "forms": lambda: forms}[more]()
    path = tmp_path / "fit.json"
    text = result.to_json(path)
    assert path.read_text(encoding="utf-8") == text
    for source in (text, path, str(path)):
        again = FitResult.from_json(source)
        assert again.to_json() == text
        assert again.law == result.law
        np.testing.assert_array_equal(again.values, result.values)
        np.testing.assert_array_equal(again.spread.covariance, result.spread.covariance)
        assert again.summary() == result.summary()
        here, there = (one.predict(SCHEDULES["dip"]) for one in (result, again))
        for mine, theirs in zip(here, there, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        assert again.conf_int(method="wald") == result.conf_int(method="wald")
    record = json.loads(text)
    assert record["format"] == "rfsim fit 1"
    assert set(record["parameters"]) == set(result.params)
    assert record["versions"]["rfsim"]


def test_a_file_of_other_options_and_remarks(tmp_path):
    """Fixed parameters, a fixed exponent, a bound, a run too short for a noise floor."""
    each = made(SCHEDULES["8-1-1"], 0).part(1, 200)
    short = run(each.step[:5], each.loss[:5], each.schedule, name="short")
    assert math.isnan(short.noise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit(
            law("forcing-memory", clock_power=0.5, q_memory=1.0),
            [each, short],
            fixed={"A_1": 0.0},
            window="last-decade",
            starts=[VALUES[:-1]],
        )
    again = FitResult.from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert again.law.q_memory == 1.0
    assert again.fixed == {"A_1": 0.0}
    assert again.window == "last-decade"
    assert again.at_bound == found.at_bound
    assert again.unidentified == found.unidentified
    assert math.isnan(again.runs[1].noise)
    assert "nan" in again.summary()


def test_what_a_file_cannot_do(fitted):
    again = FitResult.from_json(fitted.to_json())
    for act in (again.conf_int, lambda: again.bootstrapped(3), again.with_alternatives):
        with pytest.raises(InputError, match="fit the logs again"):
            act()


def broken(text, change):
    record = json.loads(text)
    change(record)
    return json.dumps(record)


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.pop("format"),
        lambda r: r.update(format="rfsim fit 9"),
        lambda r: r.pop("parameters"),
        lambda r: r["parameters"].pop("q_K"),
        lambda r: r["parameters"].update(q_K="large"),
        lambda r: r["parameters"].update(q_K=None),
        lambda r: r["law"].update(name="none"),
        lambda r: r["law"].update(wrong=1),
        lambda r: r.update(law=3),
        lambda r: r.update(runs=3),
        lambda r: r.update(runs=["a"]),
        lambda r: r.update(runs=[[]]),
        lambda r: r.update(spread=[]),
        lambda r: r.update(runs=[{"name": "a"}]),
        lambda r: r.update(covariance="x"),
        lambda r: r.update(covariance=[[1.0]]),
        lambda r: r.update(samples=[[1.0, 2.0], [3.0, 4.0]]),
        lambda r: r.update(rival=[1.0]),
        lambda r: r.update(share=None),
        lambda r: r.update(starts=1.5),
        lambda r: r.update(window="first"),
        lambda r: r.update(fixed={"colour": 1.0}),
        lambda r: r["parameters"].update(q_F=-1.0),
        lambda r: r["spread"].update(rows=0),
        lambda r: r["spread"].update(at_bound=["colour"]),
        lambda r: r["law"].update(clock_power="half"),
        lambda r: r["law"].update(effective=1),
        lambda r: r["runs"][0].update(step=[]),
        lambda r: r["runs"][0].update(step=5),
        lambda r: r["runs"][0].update(step=r["runs"][0]["step"][::-1]),
        lambda r: r["runs"][0].update(step=[r["runs"][0]["step"][0]] * len(r["runs"][0]["step"])),
        lambda r: r["runs"][0]["step"].__setitem__(0, -1.0),
        lambda r: r["runs"][0]["step"].__setitem__(-1, float("inf")),
        lambda r: r["runs"][0]["loss"].__setitem__(0, 0.0),
        lambda r: r["runs"][0]["fitted"].__setitem__(0, -1.0),
        lambda r: r["covariance"][0].__setitem__(0, float("nan")),
        lambda r: r["covariance"][0].__setitem__(0, "1"),
        lambda r: r.update(share=1.5),
        lambda r: r.update(huber=0.0),
        lambda r: r.update(objective=10**400),
        lambda r: r["runs"][0].update(loss=[1.0]),
        lambda r: r["runs"][0].update(fitted=None),
        lambda r: r["runs"][0].update(warmup="long"),
        lambda r: r["runs"][0].update(lr="high"),
        lambda r: r["runs"][0].update(name=[]),
    ],
)
def test_broken_files_are_refused(fitted, change):
    with pytest.raises(InputError, match=r"must be|must hold|is missing|does not take|not known"):
        FitResult.from_json(broken(fitted.to_json(), change))


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.update(alternatives=[]),
        lambda r: r.update(alternatives=3),
        lambda r: r["alternatives"].append("form"),
        lambda r: r["alternatives"][1].pop("objective"),
        lambda r: r["alternatives"][1].update(name=None),
        lambda r: r["alternatives"][1].update(rejected=0),
        lambda r: r["alternatives"][1].update(deviance=-1.0),
        lambda r: r["alternatives"][1].update(intervals=[[1.0, 2.0]]),
        lambda r: r["alternatives"][1]["parameters"].pop("q_K"),
        lambda r: r["alternatives"][1]["parameters"].update(q_K="large"),
        lambda r: r["alternatives"][1]["fixed"].update(A_1="none"),
        lambda r: r["alternatives"][1]["fixed"].update(colour=1.0),
        lambda r: r["alternatives"][1]["law"].pop("name"),
        lambda r: r["alternatives"][1]["law"].update(clock_power="half"),
        lambda r: r["alternatives"][1].update(law={"name": "fsl"}),
    ],
)
def test_broken_forms_in_files_are_refused(forms, change):
    with pytest.raises(InputError, match=r"must be|must hold|is missing"):
        FitResult.from_json(broken(forms.to_json(), change))


def test_a_file_from_before_there_were_forms(fitted):
    text = broken(fitted.to_json(), lambda r: r.pop("alternatives"))
    assert FitResult.from_json(text).to_json() == fitted.to_json()


@pytest.mark.parametrize("content", [b"", b"[]", b"3", b"{", b"not json", b"\x89PNG\r\n\xff\xfe", b'{"format": 1}'])
def test_files_of_something_else_are_refused(tmp_path, content):
    path = tmp_path / "other.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"not a fit of rfsim|cannot be read \(it is not text\)"):
        FitResult.from_json(path)
    with pytest.raises(InputError, match="cannot be read"):
        FitResult.from_json(tmp_path / "absent.json")
