"""The three figures of the surrogates: what they say of the fits, by other means."""

import json
from functools import cache

import numpy as np
import pytest

from rfsim.exponents import forcing_exponent, memory_exponent
from rfsim.figures import fit_and_transfer, gallery, regime_map
from rfsim.logs import run as make_run
from rfsim.problems import power_law
from rfsim.provenance import json_ready
from rfsim.regimes import regime_from_exponents
from rfsim.routes import jump
from rfsim.schedules import cosine
from rfsim.sources.population import population
from rfsim.surrogates import law


@cache
def computed(name):
    """Data of a figure at the test scale, through JSON as in its side file."""
    return json.loads(json.dumps(json_ready(gallery.load(name).compute("test")), allow_nan=False))


def test_both_profiles_are_drawn_side_by_side():
    module, data = gallery.load("memory_profile"), computed("memory_profile")
    one = data["points"]["LM"]
    figure = module.draw({**data, "points": {"LM": one, "IM": one}})
    assert len(figure.axes) == 2
    assert set(module.parameters("standard")["q_memory"]) == {"LM", "IM"}


# --- fit and transfer ------------------------------------------------------------------------------------------------


def test_exact_losses_are_those_of_another_route():
    """Cosine, whose every step has another lr, by the jump route."""
    run = computed("fit_and_transfer")["runs"]["cosine"]
    point = fit_and_transfer.POINTS["LM"]
    source = population(power_law(0.4, 0.3, ambient=2**20, noise_var=1.0))
    at = np.array([100, 600, 2000])
    begin = cosine(20_000, point["lr"], point["batch"]).part(0, 2000)
    expected = 1.0 + jump.risk(source, begin, at=at).risk
    np.testing.assert_allclose(np.interp(at, run["step"], run["exact"]), expected, rtol=1e-10)


def test_predictions_are_those_of_the_stored_parameters():
    data = computed("fit_and_transfer")
    point, schedules = data["point"], fit_and_transfer.schedules(20_000, 0.05, 16)
    one = law("forcing-memory", lr_unit=point["lr"], batch_unit=float(point["batch"]))
    values = np.array(list(data["params"].values()))
    for name, run in data["runs"].items():
        bare = make_run(run["step"], run["logged"], schedules[name])
        loss, _ = one.evaluate(values, one.prepare(bare), gradient=False)
        np.testing.assert_allclose(run["predicted"], loss, rtol=1e-10)
        off = np.array(run["predicted"]) - run["logged"]
        assert run["rmse"] == pytest.approx(np.sqrt(np.mean(off**2)))
        inside = (np.array(run["low"]) <= run["logged"]) & (np.array(run["logged"]) <= run["high"])
        assert run["coverage"] == pytest.approx(inside.mean())


def test_logs_have_the_stated_noise_and_no_shared_one():
    runs = computed("fit_and_transfer")["runs"]
    noise = {name: np.log(np.divide(run["logged"], run["exact"])) for name, run in runs.items()}
    for name, one in noise.items():
        assert one.std() == pytest.approx(2e-4, rel=5.0 / np.sqrt(2.0 * one.size))
        for other, two in noise.items():
            assert other == name or abs(np.corrcoef(one, two)[0, 1]) < 5.0 / np.sqrt(one.size)


def test_held_out_runs_are_predicted_within_a_fiftieth_of_the_excess_loss():
    data = computed("fit_and_transfer")
    for name in fit_and_transfer.PREDICTED:
        assert data["runs"][name]["largest_off"] < 0.02
        assert data["runs"][name]["coverage"] > 0.85
    assert data["params"]["q_K"] == pytest.approx(data["kernel_slope"], abs=0.05)


def test_slope_of_the_kernel_by_sums_over_modes():
    """Ten thousand modes of the integrable-memory point, one by one; those after them do not matter at these lags."""
    slope, lags = fit_and_transfer.kernel_slope({**fit_and_transfer.POINTS["IM"], "ambient": 10_000}, "test")
    eigenvalues = np.arange(1.0, 10_001.0) ** -1.1
    lag = np.geomspace(*lags, 400)
    kernel = (eigenvalues**2 * np.exp(-2.0 * np.outer(lag, eigenvalues))).sum(axis=1)
    assert lags == (10.0, 2000.0)
    assert slope == pytest.approx(-np.polyfit(np.log(lag), np.log(kernel), 1)[0], abs=2e-3)


# --- profile and regime ----------------------------------------------------------------------------------------------


def test_profile_has_its_minima_at_the_true_kernel():
    one = computed("memory_profile")["points"]["LM"]
    assert one["limit"] == memory_exponent(0.4) == 0.75
    assert one["free"] == pytest.approx(computed("fit_and_transfer")["params"]["q_K"])
    low, high = one["interval"]
    assert low < one["free"] < high
    for key in ("fit", "held_out"):
        error = np.array(one["error"][key])
        assert one["q_memory"][int(error.argmin())] == pytest.approx(one["kernel_slope"], rel=0.12)
        assert error[0] > 1.1 * error.min()
        assert error[-1] > 1.5 * error.min()


def test_fitted_points_lie_in_the_true_regimes():
    data = computed("fitted_regime")
    assert data["regions"] == json_ready(regime_map.response_regions())
    for one in data["points"].values():
        assert one["true"] == [forcing_exponent(one["alpha"], one["beta"]), memory_exponent(one["alpha"])]
        assert one["label"] == one["true_label"] == regime_from_exponents(*one["true"]).label
        assert one["probabilities"][one["label"]] > 0.99
        x, y = np.array(one["contour"])
        assert x.min() < one["fitted"][0] < x.max()
        assert y.min() < one["fitted"][1] < y.max()
        assert np.ptp(y) > 4.0 * one["stderr"][1]  # a joint region is wider than one of q_K alone
        assert one["fitted"][1] == pytest.approx(one["kernel_slope"], abs=0.07)
        assert one["fitted"][0] == pytest.approx(one["true"][0], abs=0.03)
