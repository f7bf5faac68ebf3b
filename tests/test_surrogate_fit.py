"""Fitting: coordinates, Huber's objective, elimination of the amplitudes, many starts, and what is refused."""

import math
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from rfsim.checks import InputError, RunError
from rfsim.logs import run
from rfsim.schedules import constant, eight_one_one, from_arrays
from rfsim.surrogates import FitWarning, Parameter, fit, law
from rfsim.surrogates.fitting import _rival, windowed
from rfsim.surrogates.objective import Coordinates, Data, Minimum, descend, huber, residuals, residuals_and_slopes
from rfsim.surrogates.projection import project
from rfsim.surrogates.uncertainty import Spread

NAMES = ("E", "A", "q", "B", "s")
TRUE = np.array([2.5, 6.0, 0.5, -0.4, 90.0])


@dataclass(frozen=True)
class Toy:
    """L = E + A x^(-q) + B exp(-log(x/s)^2 / 2): a law of the step x alone, with a bump of either sign."""

    exponents: tuple[float, ...] = (0.3, 0.5, 0.7)
    name = "toy"
    linear = ("E", "A", "B")
    parameters = (
        Parameter("E", 0.0, 12.0, "loss", "limit"),
        Parameter("A", 0.0, 1e4, "loss", "amplitude"),
        Parameter("q", 0.02, 8.0, "1", "exponent", log=True),
        Parameter("B", -5.0, 5.0, "loss", "height of the bump"),
        Parameter("s", 1.0, 1e4, "steps", "place of the bump", log=True),
    )

    def calibrated(self, runs):
        return self

    def prepare(self, each, at=None):
        return np.asarray(each.step if at is None else at, dtype=np.float64)

    def evaluate(self, values, x, *, gradient=True):
        e, a, q, b, s = values
        power, bump = x**-q, np.exp(-0.5 * np.log(x / s) ** 2)
        loss = e + a * power + b * bump
        if not gradient:
            return loss, None
        slopes = (np.ones_like(x), power, -a * power * np.log(x), bump, b * bump * np.log(x / s) / s)
        return loss, np.stack(slopes, axis=1)

    def starts(self, prepared, losses):
        return np.array([[0.0, 0.0, q, 0.0, s] for q in self.exponents for s in (60.0, 200.0)])

    def centres(self, prepared):
        return {"A": ("q", float(np.mean(np.log(np.concatenate(prepared)))))}


def log_of(loss, rows, name="log", steps=1000):
    return run(rows, loss, constant(steps, 1e-3, 1.0), name=name)


def toy_runs(noise=1e-3, seed=0, values=TRUE, count=2):
    rows = np.unique(np.geomspace(2, 1000, 70).round())
    draw = np.random.default_rng(seed)
    loss = Toy().evaluate(values, rows)[0]
    return [log_of(loss * np.exp(noise * draw.standard_normal(len(rows))), rows, name=str(i)) for i in range(count)]


def toy_data(runs):
    return Data(tuple(Toy().prepare(each) for each in runs), tuple(each.loss for each in runs))


def coordinates(fixed=None, data=None):
    return Coordinates(Toy(), Toy().centres((data or toy_data(toy_runs())).prepared), fixed or {})


# --- coordinates -----------------------------------------------------------------------------------------------------

VALUES = st.tuples(
    st.floats(0.0, 12.0), st.floats(0.0, 1e4), st.floats(0.02, 8.0), st.floats(-5.0, 5.0), st.floats(1.0, 1e4)
)


@given(VALUES, st.sets(st.sampled_from(NAMES), max_size=4))
def test_coordinates_there_and_back(values, held):
    values = np.array(values)
    fixed = {name: float(values[NAMES.index(name)]) for name in held}
    map_ = coordinates(fixed)
    place = map_.to(values)
    assert place.shape == (5 - len(held),)
    np.testing.assert_allclose(map_.values(place), values, rtol=1e-12, atol=1e-300)
    for name, value in fixed.items():
        assert map_.values(place + 1.0)[NAMES.index(name)] == value  # a fixed one does not move


@given(VALUES, st.sets(st.sampled_from(NAMES), max_size=4))
def test_derivative_of_the_coordinates(values, held):
    values = np.array(values)
    map_ = coordinates({name: float(values[NAMES.index(name)]) for name in held})
    place = map_.to(values)
    _, slope = map_._values(place)
    assert slope.shape == (5, len(place))
    for at in range(len(place)):
        step = 1e-6 * (np.arange(len(place)) == at) * max(1.0, abs(place[at]))
        numeric = (map_.values(place + step) - map_.values(place - step)) / (2.0 * step[at])
        np.testing.assert_allclose(slope[:, at], numeric, rtol=1e-6, atol=1e-7 * (1.0 + np.abs(values).max()))


def test_the_centre_is_where_the_amplitude_does_not_feel_the_exponent():
    data = toy_data(toy_runs())
    map_ = coordinates(data=data)
    centre = math.exp(map_.centres["A"][1])
    place = map_.to(TRUE)
    moved = map_.values(place + np.array([0.0, 0.0, 0.1, 0.0, 0.0]))
    assert moved[2] == pytest.approx(0.5 * math.exp(0.1))
    assert moved[1] * centre ** -moved[2] == pytest.approx(TRUE[1] * centre ** -TRUE[2], rel=1e-13)


def test_bounds_and_values_inside_them():
    map_ = coordinates()
    low, high = map_.bounds()
    np.testing.assert_allclose(low, [0.0, 0.0, math.log(0.02), -5.0, 0.0])
    np.testing.assert_allclose(high, [12.0, np.inf, math.log(8.0), 5.0, math.log(1e4)])
    np.testing.assert_array_equal(map_.bottom, map_.low)
    np.testing.assert_array_equal(map_.top, [12.0, np.inf, 8.0, 5.0, 1e4])  # that of E + A keeps its sign only
    for wild in (np.full(5, -1e9), np.full(5, 1e9), np.zeros(5)):
        inside = map_.inside(wild)
        assert (inside >= map_.bottom).all()
        assert (inside <= map_.top).all()
        place = map_.to(inside)
        assert (place >= low).all()
        assert (place <= high).all()
    held = coordinates({"E": 3.0, "q": 0.5})
    assert len(held.bounds()[0]) == 3
    assert held.inside(np.full(5, 1e9))[[0, 2]].tolist() == [3.0, 0.5]


# --- the objective ---------------------------------------------------------------------------------------------------


def rho(rest, delta):
    """Huber's rho of one residual."""
    return 0.5 * rest * rest if abs(rest) <= delta else delta * (abs(rest) - 0.5 * delta)


def literal_objective(values, runs, delta):
    """Row by row."""
    total = 0.0
    for each in runs:
        for x, loss in zip(each.step, each.loss, strict=True):
            e, a, q, b, s = values
            model = e + a * x**-q + b * math.exp(-0.5 * math.log(x / s) ** 2)
            total += rho(math.log(max(model, 1e-8 * each.loss.min())) - math.log(loss), delta)
    return total


@given(st.floats(-3.0, 3.0), st.floats(1e-3, 2.0))
def test_huber_by_hand(rest, delta):
    assert huber(np.array([rest]), delta)[0] == pytest.approx(rho(rest, delta), rel=1e-14, abs=1e-300)


def test_the_objective_of_a_fit_is_the_sum_over_rows():
    runs = toy_runs(noise=3e-3)
    for delta in (1e-3, 3e-2):
        found = fit(Toy(), runs, huber=delta)
        assert found.objective == pytest.approx(literal_objective(found.values, runs, delta), rel=1e-10)
        rest = np.concatenate(list(found.residuals.values()))
        assert found.objective == pytest.approx(sum(rho(r, delta) for r in rest), rel=1e-10)


def test_residuals_and_their_slopes():
    data = toy_data(toy_runs())
    values = np.array([2.2, 5.0, 0.4, 0.3, 70.0])
    rest, slopes = residuals_and_slopes(Toy(), values, data)
    np.testing.assert_array_equal(rest, residuals(Toy(), values, data))
    for at in range(5):
        step = 1e-6 * values * (np.arange(5) == at)
        numeric = (residuals(Toy(), values + step, data) - residuals(Toy(), values - step, data)) / (2.0 * step[at])
        np.testing.assert_allclose(slopes[:, at], numeric, rtol=1e-6, atol=1e-9)


def test_a_negative_loss_is_far_away_but_finite():
    data = toy_data(toy_runs())
    rest, slopes = residuals_and_slopes(Toy(), np.array([0.0, 0.0, 0.5, -5.0, 90.0]), data)
    assert np.isfinite(rest).all()
    assert np.isfinite(slopes).all()
    assert rest.min() < -18.0


@pytest.mark.parametrize("delta", [1e-3, 0.3])
def test_the_optimum_is_one(delta):
    """No other method gets lower, and no small move does; the rows include outliers."""
    runs = toy_runs(noise=2e-3)
    runs[0].loss[[5, 40]] *= 1.3
    found = fit(Toy(), runs, huber=delta)
    assert found.share > 0.5
    least = literal_objective(found.values, runs, delta)
    other = minimize(literal_objective, found.values, (runs, delta), method="Nelder-Mead", options={"maxiter": 800})
    assert other.fun >= least * (1.0 - 1e-7)
    for at in range(5):
        for factor in (0.999, 1.001):
            moved = found.values.copy()
            moved[at] *= factor
            assert literal_objective(moved, runs, delta) > least


def test_huber_does_not_follow_outliers():
    """A tenth of the rows a third too high: the parameters stay, where least squares move by many times more."""
    runs = toy_runs(noise=1e-4)
    runs[0].loss[::10] *= 1.3
    robust, squares = (fit(Toy(), runs, huber=delta) for delta in (1e-4, 10.0))
    miss, far = (abs(one.params["E"] - 2.5) for one in (robust, squares))
    assert miss < 0.01
    assert far > 5.0 * miss


def test_weights_count_rows():
    """A weight of 2 is the run twice, one of 0 is its absence."""
    runs = toy_runs(noise=2e-3)
    one, both = toy_data(runs[:1]), toy_data(runs)
    first = np.ones(len(runs[0].step))
    map_ = coordinates(data=one)
    twice = Data(one.prepared * 2, one.losses * 2)
    for left, right in (
        (Data(one.prepared, one.losses, (2.0 * first,)), twice),
        (Data(both.prepared, both.losses, (first, 0.0 * first)), one),
    ):
        ends = [descend(Toy(), TRUE, each, map_, deltas=(1e-2, 1e-3)) for each in (left, right)]
        np.testing.assert_allclose(ends[0].values, ends[1].values, rtol=1e-4)
        assert ends[0].objective == pytest.approx(ends[1].objective, rel=1e-9)
        near = [project(Toy(), TRUE, each, map_) for each in (left, right)]
        np.testing.assert_allclose(near[0][0], near[1][0], rtol=1e-4)
        assert near[0][1] == pytest.approx(near[1][1], rel=1e-9)


# --- elimination of the amplitudes -----------------------------------------------------------------------------------


def relative(values, runs):
    """Half the sum of squared relative residuals."""
    return 0.5 * sum(float(np.sum((Toy().evaluate(values, each.step)[0] / each.loss - 1.0) ** 2)) for each in runs)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_projection_finds_amplitudes_of_either_sign(sign):
    values = TRUE * np.array([1.0, 1.0, 1.0, sign, 1.0])
    runs = toy_runs(noise=0.0, values=values)
    found, level = project(Toy(), np.array([0.0, 0.0, 0.3, 0.0, 60.0]), toy_data(runs), coordinates())
    np.testing.assert_allclose(found, values, rtol=1e-4)
    assert level < 1e-9


def test_projection_is_the_least_squares_optimum():
    runs = toy_runs(noise=1e-2)
    found, level = project(Toy(), np.array([0.0, 0.0, 0.3, 0.0, 60.0]), toy_data(runs), coordinates())
    assert level == pytest.approx(relative(found, runs), rel=1e-12)
    other = minimize(relative, found, (runs,), method="Nelder-Mead", options={"maxiter": 2000, "fatol": 1e-14})
    assert other.fun > level * (1.0 - 1e-6)


def test_projection_keeps_what_is_fixed_and_the_signs():
    runs = toy_runs(noise=0.0, values=np.array([2.5, -1.0, 0.5, 0.0, 90.0]))  # a rising curve: A would be negative
    map_ = coordinates({"q": 0.5, "B": 0.0})
    found, _ = project(Toy(), TRUE, toy_data(runs), map_)
    assert found[1] == 0.0
    assert (found[2], found[3]) == (0.5, 0.0)
    for held in ({"E": 2.5, "A": 6.0, "B": -0.4}, {"q": 0.5, "s": 90.0}, {"E": 2.5, "A": 6.0, "B": -0.4, "q": 0.5}):
        found, level = project(Toy(), np.array([0.0, 0.0, 0.4, 0.0, 70.0]), toy_data(toy_runs(0.0)), coordinates(held))
        np.testing.assert_allclose(found, TRUE, rtol=1e-5)
        assert level < 1e-9


# --- fits ------------------------------------------------------------------------------------------------------------


def test_a_fit_gives_the_parameters_back():
    found = fit(Toy(), toy_runs(noise=0.0))
    np.testing.assert_allclose(found.values, TRUE, rtol=1e-6)
    assert (found.share, found.starts, found.at_bound, found.unidentified) == (1.0, 6, (), ())


def test_one_run_alone_or_in_a_list():
    runs = toy_runs(count=1)
    np.testing.assert_array_equal(fit(Toy(), runs[0]).values, fit(Toy(), runs).values)


def test_the_share_counts_starts_that_reach_the_best():
    """A bump far beyond the rows feels nothing of them and stays there."""
    runs = toy_runs(noise=1e-3)
    good, bad = [0.0, 0.0, 0.5, 0.0, 90.0], [0.0, 0.0, 0.5, 0.0, 1e4]
    told = []
    found = fit(Toy(), runs, starts=[good, bad, good], progress=lambda *at: told.append(at))
    assert found.share == pytest.approx(2.0 / 3.0)
    assert told == [(1, 3), (2, 3), (3, 3)]
    alone = project(Toy(), np.array(bad), toy_data(runs), coordinates())[0]
    end = descend(Toy(), alone, toy_data(runs), coordinates(), deltas=(1e-2, 1e-3))
    assert end.objective > found.objective * 1.01


def test_few_starts_that_agree_are_a_warning(monkeypatch):
    """Descents that stop at once leave every start where it was."""

    def stay(one, start, data, map_, **options):
        return start, float(residuals(one, start, data) @ residuals(one, start, data))

    monkeypatch.setattr("rfsim.surrogates.fitting.project", stay)
    monkeypatch.setattr(
        "rfsim.surrogates.fitting.descend",
        lambda one, start, data, map_, *, deltas, **_: descend(one, start, data, map_, deltas=deltas, evaluations=1),
    )
    starts = [TRUE * (1.0 + 0.02 * k) for k in range(3)]
    with (
        pytest.warns(FitWarning, match="ran into its limit of evaluations; the optimum is not settled"),
        pytest.warns(FitWarning, match="only 33% of 3 starts reach the optimum"),
    ):
        found = fit(Toy(), toy_runs(), starts=starts)
    np.testing.assert_allclose(found.values, TRUE, rtol=0.05)


def test_fixed_parameters_stay():
    found = fit(Toy(), toy_runs(), fixed={"q": 0.55, "B": -0.3})
    assert (found.params["q"], found.params["B"]) == (0.55, -0.3)
    assert (found.stderr["q"], found.stderr["B"]) == (0.0, 0.0)
    assert found.fixed == {"q": 0.55, "B": -0.3}
    free = fit(Toy(), toy_runs())
    assert found.objective > free.objective
    same = fit(Toy(), toy_runs(), fixed={"q": free.params["q"]})
    assert same.objective == pytest.approx(free.objective, rel=1e-9)
    almost = fit(Toy(), toy_runs(), fixed={name: free.params[name] for name in NAMES[1:]})
    assert almost.params["E"] == pytest.approx(free.params["E"], rel=1e-6)


def test_the_window_keeps_the_last_decade_of_the_clock():
    lr = np.concatenate([np.full(50, 2.0), np.full(100, 0.5), np.full(50, 1.0)])  # clock 100, 150, 200 at 50, 150, 200
    rows = np.array([1, 5, 9, 10, 11, 60, 150, 200])
    each = run(rows, np.linspace(4.0, 3.0, 8), from_arrays(lr, 1.0))
    steps, losses = windowed(each, "last-decade")
    assert steps.tolist() == [10.0, 11.0, 60.0, 150.0, 200.0]  # clock 20 of 200 at step 10
    assert losses.tolist() == each.loss[3:].tolist()
    assert windowed(each, "all")[0].tolist() == rows.tolist()
    late = run(rows[5:], each.loss[5:], each.schedule)
    assert windowed(late, "last-decade")[0].tolist() == [60.0, 150.0, 200.0]
    shorter = run(rows[:-1], each.loss[:-1], each.schedule)  # a tenth of the clock of the last row, not of the schedule
    assert windowed(shorter, "last-decade")[0].tolist() == [5.0, 9.0, 10.0, 11.0, 60.0, 150.0]
    found = fit(Toy(), toy_runs(), window="last-decade")
    assert found.runs[0].step[0] <= 100.0 < found.runs[0].step[1]
    assert found.window == "last-decade"


def test_a_constant_rate_alone_does_not_determine_the_memory():
    """Two runs of one constant lr: what is forcing and what is memory stays open, and that is said."""
    rows = np.unique(np.geomspace(20, 2000, 50).round())
    one = law("forcing-memory", lr_unit=1e-3, batch_unit=4.0)
    values = np.array([2.8, 20.0, 0.45, 3e-4, 2e-2, 0.02, 0.9])
    made = []
    for number in range(2):
        each = run(rows, np.ones(len(rows)), constant(2000, 1e-3, 4.0), name=str(number))
        loss, _ = one.evaluate(values, one.prepare(each))
        noise = np.exp(1e-3 * np.random.default_rng(10 + number).standard_normal(len(rows)))
        made.append(run(rows, loss * noise, each.schedule, name=str(number)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fit(law("forcing-memory"), made)
    assert {FitWarning} == {one.category for one in caught}
    assert any("is not determined by these runs" in str(one.message) for one in caught)
    assert found.unidentified
    assert "not determined" in found.summary()


def test_parameters_on_a_bound_are_named():
    values = np.array([2.5, 6.0, 0.5, 0.0, 90.0])
    rows = np.unique(np.geomspace(2, 1000, 70).round())
    rising = 2.5 + 0.5 * np.exp(-0.5 * np.log(rows / 90.0) ** 2) - rows**-0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit(Toy(), log_of(rising, rows), fixed={"s": 90.0, "q": 0.5})
        assert "A" in found.at_bound
        assert found.stderr["A"] == 0.0
        assert "at bound" in found.summary()
        assert np.isnan(found.conf_int(method="wald")["A"]).all()
        low, high = found.conf_int()["A"]
        assert low == 0.0 < high
        assert found.params["B"] > 0.5
        high = fit(Toy(), log_of(Toy().evaluate(values, rows)[0] + 20.0, rows), fixed={"q": 0.5, "B": 0.0, "s": 90.0})
        assert high.at_bound == ("E",)


def test_exponents_of_absent_terms_are_not_determined():
    rows = np.unique(np.geomspace(2, 1000, 70).round())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fit(Toy(), log_of(np.full(len(rows), 3.0), rows))
    assert found.params["E"] == pytest.approx(3.0)
    assert {"q", "s"} <= set(found.unidentified)
    assert any("toy: q is not determined" in str(one.message) for one in caught)


def test_runs_of_one_name_are_kept_apart():
    runs = toy_runs(count=3)
    same = [log_of(each.loss * (1.0 + 0.01 * i), each.step, name="log") for i, each in enumerate(runs)]
    found = fit(Toy(), same)
    assert list(found.residuals) == ["log", "log (2)", "log (3)"]
    every = np.concatenate([np.log(each.fitted / each.loss) for each in found.runs])
    assert len(every) == 3 * len(same[0].step)
    assert found.scatter == pytest.approx(math.sqrt(np.sum(every**2) / (len(every) - 5)), rel=1e-12)


def test_a_law_through_all_rows_counts_every_start():
    """Objectives of 1e-20 and 1e-24 are the same optimum."""
    assert fit(Toy(), toy_runs(noise=0.0), starts=[TRUE * f for f in (0.9, 1.0, 1.1)]).share == 1.0


def test_the_order_of_runs_does_not_matter():
    runs = toy_runs(count=3, noise=2e-3)
    first, second = fit(Toy(), runs), fit(Toy(), runs[::-1])
    np.testing.assert_allclose(first.values, second.values, rtol=1e-5)
    assert first.objective == pytest.approx(second.objective, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"runs": []}, "runs is empty"),
        ({"law": "forcing-memory"}, "law must be a law, got 'forcing-memory'"),
        ({"window": "half"}, "window must be one of all, last-decade"),
        ({"huber": 0.0}, "huber must be positive"),
        ({"huber": math.nan}, "huber must be finite"),
        ({"fixed": {"p": 1.0}}, "fixed names 'p', which toy does not have"),
        ({"fixed": {"q": 9.0}}, r"fixed q must lie in \[0.02, 8\]"),
        ({"fixed": {"q": "half"}}, "fixed q must be a finite number"),
        ({"fixed": {"q": math.nan}}, "fixed q must be finite"),
        ({"fixed": dict(zip(NAMES, TRUE.tolist(), strict=True)), "starts": TRUE}, "starts are for a descent"),
        ({"starts": np.ones((2, 4))}, "starts must be rows of 5 parameters"),
        ({"starts": np.ones((0, 5))}, "starts must be rows of 5 parameters"),
        ({"starts": np.full(5, np.nan)}, "starts must be finite"),
        ({"starts": "many"}, "starts must be an array of numbers"),
    ],
)
def test_what_a_fit_refuses(change, words):
    arguments = {"law": Toy(), "runs": toy_runs(), **change}
    with pytest.raises(InputError, match=words):
        fit(arguments.pop("law"), arguments.pop("runs"), **arguments)


def test_a_law_whose_parameters_are_all_given_is_evaluated():
    runs, values = toy_runs(), TRUE * 1.01
    with pytest.warns(FitWarning, match="toy: all parameters were given; evaluated, not fitted"):
        found = fit(Toy(), runs, fixed=dict(zip(NAMES, values.tolist(), strict=True)))
    np.testing.assert_array_equal(found.values, values)
    assert found.objective == pytest.approx(literal_objective(values, runs, found.huber), rel=1e-12)
    assert set(found.stderr.values()) == {0.0}
    assert found.conf_int(method="wald") == {}
    assert (found.at_bound, found.unidentified, found.rival) == ((), (), None)
    for each, one in zip(runs, found.runs, strict=True):
        np.testing.assert_array_equal(one.fitted, Toy().evaluate(values, each.step)[0])
    for ask in (found.bootstrapped, found.with_alternatives, found.conf_int):
        with pytest.raises(InputError, match="need a free parameter of toy, and all were given; fix fewer"):
            ask()
    with pytest.raises(RunError, match="toy has losses that are not above 0 at the given parameters"):
        fit(Toy(), runs, fixed={**dict(zip(NAMES, values.tolist(), strict=True)), "E": 0.0, "A": 0.0})


@pytest.mark.parametrize("factor", [1e-300, 1e-40, 1e40, 1e300])
def test_losses_outside_the_range_of_the_arithmetic_are_refused(factor):
    one = toy_runs(count=1)[0]
    with pytest.raises(InputError, match=r"loss of .* must lie between 1e-16 and 1e.16, got .* in nats"):
        fit(Toy(), run(one.step, factor * one.loss, one.schedule))
    with pytest.raises(InputError, match="huber must be at least 1e-16"):
        fit(Toy(), one, huber=1e-300)


def test_too_few_rows_are_refused():
    each = toy_runs()[0]
    with pytest.raises(InputError, match="5 rows but the law has 5 free parameters"):
        fit(Toy(), log_of(each.loss[::14][:5], each.step[::14][:5]))


def test_starts_that_lead_nowhere_finite_are_an_error(monkeypatch):
    monkeypatch.setattr("rfsim.surrogates.fitting.project", lambda *_, **__: (TRUE, math.inf))
    with pytest.raises(RunError, match="no start leads to a finite loss"):
        fit(Toy(), toy_runs())


def test_the_units_of_the_fit_are_those_of_its_runs():
    rows = np.arange(40.0, 2000.0, 40.0)
    plans = {"flat": constant(2000, 2e-3, 8.0), "8-1-1": eight_one_one(2000, 2e-3, 8.0)}
    made = [run(rows, 3.0 + rows**-0.5, plan, name=name) for name, plan in plans.items()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit(law("momentum"), made)
    assert found.law.lr_unit == 2e-3


def test_correlated_residuals_leave_five_degrees_of_freedom():
    rows = np.unique(np.geomspace(2, 1000, 70).round())
    wave = 1e-3 * np.sin(np.linspace(0.0, 4.0 * np.pi, len(rows)))  # neighbours share it, so few rows are independent
    loss = Toy().evaluate(TRUE, rows)[0] * np.exp(wave)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        found = fit(Toy(), log_of(loss, rows))
    assert len(rows) / found.spread.inflation - 5 < 5.0
    assert found.spread.rows == 5.0
    assert fit(Toy(), toy_runs(count=1)).spread.rows > 30.0


@pytest.mark.parametrize(("rise", "told"), [(1.5, True), (2.5, False)])
def test_another_optimum_is_told_if_its_deviance_is_below_the_quantile(rise, told):
    spread = Spread(np.eye(5), 2.0, 1.0, 1e6, (), ())  # deviance 2 (objective - best); 1.96^2 = 3.84 is its quantile
    best, other = Minimum(TRUE, 10.0, 1, True), Minimum(TRUE + 1.0, 10.0 + rise, 1, True)
    found = _rival(best, [other], spread)
    assert (found is not None and found.tolist() == other.values.tolist()) == told
    assert _rival(best, [], spread) is None
