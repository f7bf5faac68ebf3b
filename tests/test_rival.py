"""An optimum that the data do not reject: in bands, profile intervals, the q_K profile, placements and captions.

The case is the long-memory fit of the figures, whose other optimum lies in another regime and predicts cosine apart.
"""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rfsim.figures import gallery
from rfsim.figures.fit_and_transfer import FITTED, PREDICTED, experiment, schedules
from rfsim.figures.style import remarks
from rfsim.provenance import json_ready
from rfsim.regimes import regime_from_exponents
from rfsim.surrogates import FitResult, fit, law
from rfsim.surrogates.memory_profile import _not_rejected, memory_profile
from rfsim.surrogates.objective import huber, residuals
from rfsim.surrogates.placement import placement
from rfsim.surrogates.uncertainty import profile_interval, root, student_width

AT = 0.709  # a value of q_K that only the other optimum's valley reaches
GRID = [0.69, AT, 0.735, 0.755, 0.765, 0.78, 0.8]

pytestmark = pytest.mark.filterwarnings("ignore::rfsim.surrogates.FitWarning")


@pytest.fixture(scope="module")
def case():
    """Runs by name, the fit, and the fit without its other optimum."""
    _, runs, result = experiment("LM", "test")
    return runs, result, replace(result, rival=None)


@cache
def computed(name):
    """Data of a figure at the test scale, through JSON as in its side file."""
    return json.loads(json.dumps(json_ready(gallery.load(name).compute("test")), allow_nan=False))


def deviance(result, objective):
    return result.spread.scale * (objective - result.objective)


def interval(result, level=0.95):
    given = (result.values, result.data, result._coordinates(), result.huber, result.spread, level)
    return profile_interval(result.law, "q_K", *given, result.rival)


@pytest.fixture(scope="module")
def held(case):
    """Many starts with q_K held at `AT`: knows nothing of sweeps and rivals."""
    runs, result, _ = case
    return fit(result.law, [runs[name] for name in FITTED], fixed={"q_K": AT})


def test_the_case_has_two_optima_that_differ(case):
    """The other one has the objective that a literal sum gives, within the quantile of the best."""
    _, result, _ = case
    rest = residuals(result.law, result.rival, result.data)
    height = deviance(result, float(np.sum(np.where(np.abs(rest) < 1e-3, rest**2 / 2, 1e-3 * (np.abs(rest) - 5e-4)))))
    assert 0.0 < height < student_width(0.95, result.spread.rows) ** 2
    pair = dict(zip(result.params, result.rival, strict=True))
    assert regime_from_exponents(pair["q_F"], pair["q_K"]).label == "LM2"
    assert regime_from_exponents(result.params["q_F"], result.params["q_K"]).label == "LM1"


# --- bands -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*FITTED, *PREDICTED])
def test_the_band_holds_both_optima_and_is_the_hull_of_their_bands(case, name):
    runs, result, alone = case
    told, plain = result.predict(runs[name], level=0.9), alone.predict(runs[name], level=0.9)
    other = result.law.evaluate(result.rival, result.law.prepare(runs[name]), gradient=False)[0]
    gradient = result.law.evaluate(result.values, result.law.prepare(runs[name]))[1]
    error = np.linalg.norm(gradient @ root(result.spread.covariance), axis=1)
    half = student_width(0.9, result.spread.rows) * np.hypot(error, told.loss * result.scatter)
    np.testing.assert_allclose(told.low, np.min([told.loss - half, other - half], axis=0), rtol=1e-14)
    np.testing.assert_allclose(told.high, np.max([told.loss + half, other + half], axis=0), rtol=1e-14)
    for one, two in ((told.loss, plain.loss), (told.stderr, plain.stderr), (plain.stderr, error)):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal([plain.low, plain.high], [plain.loss - half, plain.loss + half])  # to the last bit


def test_only_the_hull_reaches_the_other_prediction_of_cosine(case):
    runs, result, alone = case
    other = result.law.evaluate(result.rival, result.law.prepare(runs["cosine"]), gradient=False)[0]
    told, plain = result.predict(runs["cosine"]), alone.predict(runs["cosine"])
    assert other[-1] < plain.low[-1] - 2.0 * (plain.loss[-1] - plain.low[-1])
    assert ((told.low < other) & (other < told.high)).all()


def test_a_fit_file_gives_the_same_band(case):
    runs, result, _ = case
    again = FitResult.from_json(result.to_json())
    np.testing.assert_array_equal(again.predict(runs["cosine"]).low, result.predict(runs["cosine"]).low)


# --- intervals -------------------------------------------------------------------------------------------------------


def test_the_profile_interval_reaches_over_the_other_valley(case, held):
    _, result, alone = case
    assert deviance(result, held.objective) < student_width(0.95, result.spread.rows) ** 2
    both, one = interval(result), interval(alone)
    assert both.low < result.rival[-1] < one.low
    assert both.low < AT < one.low < result.params["q_K"] < one.high <= both.high


def test_an_end_in_the_other_valley_lies_on_the_quantile(case):
    """The refit held at the lower end, from the other optimum alone, has the deviance of Student's quantile."""
    runs, result, _ = case
    low = interval(result).low
    start = result.rival.copy()
    start[-1] = low
    end = fit(result.law, [runs[name] for name in FITTED], fixed={"q_K": low}, starts=[start])
    assert np.sqrt(deviance(result, end.objective)) == pytest.approx(student_width(0.95, result.spread.rows), rel=0.01)


def test_a_level_that_rejects_the_other_optimum_leaves_it_out(case):
    _, result, alone = case
    level = 0.3
    height = deviance(result, float(np.sum(huber(residuals(result.law, result.rival, result.data), result.huber))))
    assert height > student_width(level, result.spread.rows) ** 2
    assert interval(result, level) == interval(alone, level)


def test_outermost_crossings_by_hand():
    """sqrt(deviance) 3 1 3 0 4 at log q = 0..4, quantile 2: crossings at 0.5 and 3.5, over the rejected middle."""
    grid = np.exp(np.array([0.0, 2.0, 3.0, 4.0]))
    found, opened = _not_rejected(grid, np.array([9.0, 9.0, 0.01, 16.0]), [(np.exp(3.0), 0.0), (np.e, 1.0)], 2.0)
    assert np.log(found) == pytest.approx([0.5, 3.5], rel=1e-12)
    assert opened == (False, False)
    found, opened = _not_rejected(grid, np.array([9.0, 9.0, 0.0, 16.0]), [(np.exp(3.0), 0.0), (0.1, 1.0)], 2.0)
    assert found == pytest.approx((0.1, np.exp(3.5)), rel=1e-12)
    assert opened == (True, False)


def test_the_profile_follows_both_valleys(case, held):
    runs, result, alone = case
    fitted, others = [runs[name] for name in FITTED], [runs[name] for name in PREDICTED]
    seen = []
    both = memory_profile(
        result.law, fitted, others, GRID, free=result, progress=lambda done, total: seen.append((done, total))
    )
    one = memory_profile(result.law, fitted, others, GRID, free=alone)
    place = GRID.index(AT)
    assert both.objective[place] == pytest.approx(held.objective, rel=1e-5)
    assert both.objective[place] < 0.99 * one.objective[place]
    assert (both.objective <= one.objective).all()
    assert both.interval.low < result.rival[-1] < AT < one.interval.low < both.interval.high
    assert seen == [(number, 26) for number in range(1, 27)]
    for at, values in zip(both.objective, both.values, strict=True):
        assert np.sum(huber(residuals(result.law, values, result.data), result.huber)) == pytest.approx(at, rel=1e-12)


# --- what is told ----------------------------------------------------------------------------------------------------


def test_a_placement_tells_the_regime_of_the_other_optimum(case):
    _, result, alone = case
    found, plain = placement(result), placement(alone)
    q_f, q_k = result.rival[2], result.rival[6]
    assert found.rival == ("LM2", q_f, q_k)
    (told,) = [line for line in found.remarks if "another optimum" in line]
    assert told in found.summary()
    assert f"q_F {q_f:.4g}, q_K {q_k:.4g}, in LM2" in told
    assert plain.rival is None
    assert not plain.remarks
    assert found.probabilities == plain.probabilities  # of one optimum, as the remark says


def test_an_exponent_that_is_an_option_of_the_law_is_that_of_the_other_optimum_too(case):
    _, result, _ = case
    option = law("forcing-memory", q_memory=1.3, lr_unit=0.05, batch_unit=16.0)
    spread = result.spread._replace(covariance=result.spread.covariance[:6, :6])
    found = placement(replace(result, law=option, values=result.values[:6], rival=result.rival[:6], spread=spread))
    assert found.rival == ("IM1", result.rival[2], 1.3)


def test_captions_and_side_files_repeat_what_is_told(case):
    _, result, _ = case
    notes = result.notes()
    assert any("another optimum is not rejected" in line for line in notes)
    assert any("starts reach the optimum" in line for line in notes)
    for name in ("fit_and_transfer", "memory_profile", "fitted_regime"):
        module, data = gallery.load(name), computed(name)
        one = data if name == "fit_and_transfer" else data["points"]["LM"]
        kept = one["remarks" if name == "fitted_regime" else "notes"]
        assert set(notes) <= set(kept)
        assert all(line in module.caption(data) for line in kept)
    assert set(placement(result).remarks) <= set(kept)
    assert remarks([]) == ""


@pytest.mark.parametrize("name", [*FITTED, *PREDICTED])
def test_the_drawn_schedule_is_that_of_every_step(name):
    """Straight lines between the points of the side file: jumps upright, smooth falls to 1e-3 of the peak."""
    run = computed("fit_and_transfer")["runs"][name]
    lr = np.asarray(schedules(20_000, 0.05, 16)[name].lr)
    drawn = np.interp(np.arange(1, len(lr) + 1), run["lr_step"], run["lr"])
    np.testing.assert_allclose(drawn, lr, rtol=0, atol=1e-15 if name in FITTED else 1e-3 * 0.05)


def test_bars_and_crosses_lie_below_the_curves():
    axes = gallery.load("memory_profile").draw(computed("memory_profile")).axes[0]
    heights = [np.asarray(line.get_ydata()) for line in axes.lines]
    below = [height for height in heights if height.max() < 1.0 and height.max() > 0.0]
    assert len(below) >= 4
    assert min(height.max() for height in below) > axes.get_ylim()[0]


def test_the_shaded_residuals_hold_the_other_optimum():
    """Law minus logged: a band below the prediction is shaded above zero."""
    data = computed("fit_and_transfer")
    lower = gallery.load("fit_and_transfer").draw(data).axes[3]
    cosine = data["runs"]["cosine"]
    top = 1e3 * np.max(np.subtract(cosine["predicted"], cosine["low"]))
    shaded = max(path.vertices[:, 1].max() for one in lower.collections for path in one.get_paths())
    assert shaded == pytest.approx(top, rel=1e-12)
    assert lower.get_ylim()[1] > shaded > 1e3 * (cosine["predicted"][-1] - cosine["rival"][-1]) > 5.0
