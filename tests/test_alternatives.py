"""Other forms of a fit: each is its own fit, forms are rejected by the stated rule, ranges hold what they say."""

from dataclasses import dataclass

import numpy as np
import pytest
from test_surrogate_fit import NAMES, TRUE, Toy, log_of

from rfsim.logs import run
from rfsim.schedules import eight_one_one
from rfsim.surrogates import FitResult, fit, law
from rfsim.surrogates.alternatives import AS_FITTED, MISFIT, _Fitted
from rfsim.surrogates.laws import Alternative, Variable, parameter_names
from rfsim.surrogates.objective import Data, huber
from rfsim.surrogates.uncertainty import student_width


@dataclass(frozen=True)
class Shifted(Toy):
    """The toy law of x + shift; also with the shift, without the bump, and with a steep power."""

    shift: float = 0.0

    def prepare(self, each, at=None):
        return super().prepare(each, at) + self.shift

    def alternatives(self):
        return (
            Alternative("B = 0", self, {"B": 0.0}),
            Alternative("shift = 1", Shifted(shift=1.0), {}),
            Alternative("q = 0.6", self, {"q": 0.6}),
        )


def rows_of(count=300):
    return np.unique(np.geomspace(2, 1000, count).round())


def toy_log(noise, seed=0, values=TRUE, shift=0.0):
    rows = rows_of()
    loss = Toy().evaluate(values, rows + shift)[0]
    return log_of(loss * np.exp(noise * np.random.default_rng(seed).standard_normal(len(rows))), rows)


@pytest.fixture(scope="module")
def noisy():
    return fit(Shifted(), toy_log(2e-3)).with_alternatives()


def test_every_form_is_a_fit_of_its_own(noisy):
    forms = {form.name: form for form in noisy.alternatives.forms}
    assert list(forms) == [AS_FITTED, "B = 0", "shift = 1", "q = 0.6"]
    one = toy_log(2e-3)
    alone = {
        AS_FITTED: noisy,
        "B = 0": fit(Toy(), one, fixed={"B": 0.0, "s": 90.0}),
        "shift = 1": fit(Shifted(shift=1.0), one),
        "q = 0.6": fit(Toy(), one, fixed={"q": 0.6}),
    }
    for name, form in forms.items():
        assert form.objective == pytest.approx(alone[name].objective, rel=1e-6)
        for at, parameter in enumerate(NAMES):
            if (name, parameter) != ("B = 0", "s"):  # no bump, no place of it
                assert form.values[at] == pytest.approx(alone[name].values[at], rel=1e-3)
    wald = forms["q = 0.6"].intervals
    for name, ends in alone["q = 0.6"].conf_int(method="wald").items():
        np.testing.assert_allclose(wald[NAMES.index(name)], ends, rtol=1e-3)
    np.testing.assert_allclose(wald[NAMES.index("q")], 0.6, rtol=1e-12)


def literal_misfit(rest, delta):
    """Mean correlation of the residuals, cut at the width, over lags 1 to 4."""
    cut = [max(-delta, min(delta, each)) for each in rest]
    pairs = [(a, b) for lag in (1, 2, 3, 4) for a, b in zip(cut[lag:], cut, strict=False)]
    return sum(a * b for a, b in pairs) / (0.5 * sum(a * a + b * b for a, b in pairs))


@pytest.mark.parametrize("noise", [0.0, 2e-4, 2e-3])
@pytest.mark.parametrize("shift", [0.18, 0.26, 0.4])
def test_forms_are_rejected_by_the_stated_rule(noise, shift):
    """Data of the law with a shift between those of two forms, all of them wrong."""
    one = toy_log(noise, seed=3, shift=shift)
    found = fit(Shifted(), one).with_alternatives().alternatives
    best = min(found.forms, key=lambda form: form.objective)
    alone = fit(best.law, one, fixed=best.fixed, starts=[best.values])
    misfit = max(literal_misfit(alone.residuals["log"], alone.huber), 0.0)
    assert (misfit > 0.7) == (noise == 0.0)
    data = Data((alone.law.prepare(one),), (one.loss,))
    own = _Fitted(Alternative(AS_FITTED, alone.law, {}), alone.values, data, alone.fixed, alone.huber)
    assert own.misfit == pytest.approx(misfit, rel=1e-9, abs=1e-12)
    if noise == 0.0:  # the nearer form is the better one, by a factor of 2 at a shift of about .2
        rejected = {form.name: form.rejected for form in found.forms}
        assert rejected["shift = 1"] == (shift < 0.2)
    quantile = student_width(0.95, alone.spread.rows) ** 2 / alone.spread.scale
    for form in found.forms:
        rest = np.log(Toy().evaluate(form.values, one.step + form.law.shift)[0] / one.loss)
        assert form.objective == pytest.approx(float(np.sum(huber(rest, alone.huber))), rel=1e-9, abs=1e-20)
        rise = form.objective - best.objective
        assert form.deviance == pytest.approx(alone.spread.scale * rise, rel=1e-4, abs=1e-6)
        assert form.rejected == (rise > quantile + (MISFIT**2 - 1.0) * misfit * best.objective)


def test_a_form_that_the_data_exclude_is_out_of_the_ranges(noisy):
    found = noisy.alternatives
    forms = {form.name: form for form in found.forms}
    assert forms["B = 0"].rejected
    assert forms["q = 0.6"].rejected
    assert [form.name for form in found.kept] == [AS_FITTED] + ["shift = 1"] * (not forms["shift = 1"].rejected)
    for at, name in enumerate(NAMES):
        values = [form.values[at] for form in found.kept]
        assert found.ranges[name] == (min(values), max(values))
        ends = [end for form in found.kept for end in form.intervals[at]]
        assert found.intervals[name] == (min(ends), max(ends))
        assert found.intervals[name].low <= found.ranges[name].low <= noisy.params[name]
        for form in found.forms[1:]:
            assert found.shifts[form.name][name] == form.values[at] - noisy.values[at]


def test_a_form_that_fits_better_is_told():
    """Data with a shift of 1: the fit is the form that is rejected, and stays in the ranges."""
    found = fit(Shifted(), toy_log(2e-4, shift=1.0)).with_alternatives()
    assert found.alternatives.forms[0].rejected
    assert [form.name for form in found.alternatives.kept] == [AS_FITTED, "shift = 1"]
    (told,) = found.alternatives.notes()
    assert "a form with as many parameters fits better, shift = 1" in told
    assert told in found.summary()
    assert f"{AS_FITTED} " in found.summary()
    for at, name in enumerate(NAMES):
        values = [found.alternatives.forms[number].values[at] for number in (0, 2)]
        assert found.alternatives.ranges[name] == (min(values), max(values))
        assert values[0] != values[1]
    low, high = found.alternatives.ranges["q"]
    assert f"q {low:.4g} to {high:.4g} [" in found.summary()
    simple = fit(Shifted(), toy_log(2e-4, values=TRUE * [1, 1, 1, 0, 1], shift=1.0), fixed={"B": 0.0, "s": 90.0})
    assert [form.name for form in simple.with_alternatives().alternatives.forms] == [AS_FITTED, "shift = 1", "q = 0.6"]


def test_the_losses_of_all_forms(noisy):
    one = toy_log(0.0)
    found = noisy.alternatives.losses(one, np.array([10.0, 900.0]))
    assert found.shape == (4, 2)
    for row, form in zip(found, noisy.alternatives.forms, strict=True):
        np.testing.assert_array_equal(row, Toy().evaluate(form.values, np.array([10.0, 900.0]) + form.law.shift)[0])
    np.testing.assert_array_equal(noisy.alternatives.losses(one)[0], noisy.predict(one).loss)


def test_the_fit_itself_is_as_it_was(noisy):
    plain = fit(Shifted(), toy_log(2e-3))
    assert plain.alternatives is None
    np.testing.assert_array_equal(plain.values, noisy.values)
    assert plain.conf_int(method="wald") == noisy.conf_int(method="wald")
    assert noisy.summary().startswith(plain.summary().split("\nlog: ")[0])


def test_laws_without_other_forms_say_so():
    assert not isinstance(law("momentum"), Variable)
    found = fit(Toy(), toy_log(2e-3)).with_alternatives()
    assert [form.name for form in found.alternatives.forms] == [AS_FITTED]
    assert "toy has no other form" in found.summary()
    assert found.alternatives.ranges["q"] == (found.params["q"],) * 2


@pytest.mark.parametrize(
    "one", [law("forcing-memory"), law("forcing-memory", forcing_start=0.01), law("fsl"), law("multi-power")]
)
def test_forms_of_the_laws_have_the_same_parameters(one):
    forms = one.alternatives()
    assert len({form.name for form in forms}) == len(forms) > 0
    for form in forms:
        assert parameter_names(form.law) == parameter_names(one)
        bounds = {parameter.name: parameter for parameter in one.parameters}
        assert all(bounds[name].low <= value <= bounds[name].high for name, value in form.fixed.items())
        assert form.law != one or form.fixed


def test_forms_keep_the_units_and_what_the_fit_holds(tmp_path):
    schedule = eight_one_one(1000, 0.02, 8.0)
    rows = np.unique(np.geomspace(10, 1000, 60).round())
    one = law("forcing-memory", lr_unit=0.02, batch_unit=8.0)
    bare = run(rows, np.ones(len(rows)), schedule)
    loss = one.evaluate(np.array([2.0, 3.0, 0.4, 0.02, 0.0, 0.1, 1.2]), one.prepare(bare))[0]
    log = run(rows, loss * np.exp(1e-3 * np.random.default_rng(0).standard_normal(len(rows))), schedule)
    found = fit(law("forcing-memory"), log, fixed={"q_K": 1.2, "A_1": 0.0}).with_alternatives()
    forms = found.alternatives.forms
    assert [form.name for form in forms] == [AS_FITTED, "forcing_start = 0.01"]
    assert forms[1].law == law("forcing-memory", lr_unit=0.02, batch_unit=8.0, forcing_start=0.01)
    assert forms[1].params["q_K"] == pytest.approx(1.2, rel=1e-12)
    assert FitResult.from_json(found.to_json(tmp_path / "fit.json")).summary() == found.summary()
