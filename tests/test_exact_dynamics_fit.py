"""The forcing-memory law fitted to curves of the exact dynamics: it finds the kernel, and predicts other schedules."""

import numpy as np
import pytest

import rfsim
from rfsim import schedules
from rfsim.logs import run
from rfsim.surrogates import fit, law

STEPS, LR, BATCH, NOISE, IRREDUCIBLE = 50_000, 0.1, 128, 25.0, 1.0
ROWS = np.linspace(STEPS / 1000, STEPS, 1000).astype(int)


def log(spectrum, schedule, rows=ROWS):
    curve = rfsim.risk(spectrum, schedule, at=np.concatenate([[0], rows]))
    return run(rows, np.asarray(curve.risk)[1:] + IRREDUCIBLE, schedule)


def slope_of_the_kernel(spectrum, lag):
    """Minus the slope of the log of the true kernel over the log of the lags (n,), without any fit."""
    eigenvalues, weight = np.asarray(spectrum.eigenvalues), np.asarray(spectrum.multiplicity)
    kernel = np.exp(-2.0 * np.outer(lag, eigenvalues)) @ (weight * eigenvalues**2)
    return -np.polyfit(np.log(lag), np.log(kernel), 1)[0]


def worst(fitted, unseen):
    """Largest error of predicted losses, over the excess above the irreducible loss."""
    return max(np.abs((fitted.predict(each).loss - each.loss) / (each.loss - IRREDUCIBLE)).max() for each in unseen)


# without noise two minima lie within 4 % of one another, with the same q_K; the fit says so
@pytest.mark.filterwarnings("ignore::rfsim.surrogates.FitWarning")
@pytest.mark.parametrize(("alpha", "beta"), [(0.4, 0.3), (0.6, 0.2)], ids=["LM", "IM"])
def test_fit_of_8_1_1_finds_the_kernel_and_predicts_wsd_and_cosine(alpha, beta):
    problem = rfsim.power_law(alpha=alpha, beta=beta, ambient=np.inf, noise_var=NOISE)
    spectrum = rfsim.population(problem)
    fitted = fit(law("forcing-memory"), log(spectrum, schedules.eight_one_one(STEPS, LR, BATCH)))

    # over the lags between two rows and the whole run
    slope = slope_of_the_kernel(spectrum, np.geomspace(LR * STEPS / 1000, 0.85 * LR * STEPS, 60))
    assert slope == pytest.approx(2.0 - 1.0 / (2.0 * alpha), abs=0.01)
    assert fitted.params["q_K"] == pytest.approx(slope, abs=0.05)

    assert worst(fitted, [log(spectrum, one(STEPS, LR, BATCH)) for one in (schedules.wsd, schedules.cosine)]) < 0.02


@pytest.mark.filterwarnings("ignore::rfsim.surrogates.FitWarning")
@pytest.mark.parametrize(("alpha", "beta"), [(0.45, 0.25), (0.35, 0.2)])
def test_the_same_after_20_thousand_steps_of_other_long_memory(alpha, beta):
    seen, unseen, slope = short(alpha, beta, 20_000, LR, BATCH, 400)
    fitted = fit(law("forcing-memory"), seen)
    assert fitted.params["q_K"] == pytest.approx(slope, abs=0.025)
    assert worst(fitted, unseen) < 0.01


def short(alpha, beta, steps, lr, batch, count):
    """A short 8-1-1 log, WSD and cosine, and the slope of the kernel over the lags that the log sees."""
    spectrum = rfsim.population(rfsim.power_law(alpha=alpha, beta=beta, ambient=np.inf, noise_var=NOISE))
    rows = np.linspace(steps / count, steps, count).astype(int)
    made = [
        log(spectrum, one(steps, lr, batch), rows) for one in (schedules.eight_one_one, schedules.wsd, schedules.cosine)
    ]
    return made[0], made[1:], slope_of_the_kernel(spectrum, np.geomspace(lr * rows[0], 0.85 * lr * steps, 60))


SHORT = {  # alpha, beta, steps, lr, batch, rows
    "IM, 5,000 steps": (0.6, 0.2, 5000, 0.1, 16, 250),
    "IM, 2,000 steps": (0.6, 0.2, 2000, 0.15, 16, 200),
    "steeper IM, 5,000 steps": (0.7, 0.3, 5000, 0.1, 16, 250),
}


@pytest.mark.filterwarnings("ignore::rfsim.surrogates.FitWarning")
@pytest.mark.parametrize("name", SHORT)
def test_short_curves_need_a_forcing_that_is_a_power_and_a_constant_source(name):
    """The recipe of `ForcingMemory` finds the kernel; the default is off, and its alternatives say so."""
    seen, unseen, slope = short(*SHORT[name])
    recipe = fit(law("forcing-memory", forcing_start=0.01), seen, fixed={"A_1": 0.0})
    assert recipe.params["q_K"] == pytest.approx(slope, abs=0.05)
    assert worst(recipe, unseen) < 0.02
    default = fit(law("forcing-memory"), seen, starts=[recipe.values])
    assert default.params["q_K"] > slope + 0.075
    assert default.conf_int(method="wald")["q_K"].low > slope + 0.02
    found = default.with_alternatives().alternatives
    assert not any(form.rejected for form in found.forms)
    assert found.forms[-1].params["q_K"] == pytest.approx(recipe.params["q_K"], abs=0.01)
    assert found.intervals["q_K"].low < slope + 0.015  # up to what a power can say of that kernel


@pytest.mark.filterwarnings("ignore::rfsim.surrogates.FitWarning")
@pytest.mark.parametrize("steps", [5000, 2000])
def test_short_curves_of_long_memory_give_the_kernel_in_every_form(steps):
    seen, _, slope = short(0.4, 0.3, steps, 0.1, 16, 200)
    recipe = fit(law("forcing-memory", forcing_start=0.01), seen, fixed={"A_1": 0.0})
    assert recipe.params["q_K"] == pytest.approx(slope, abs=0.05)
    found = fit(law("forcing-memory"), seen, starts=[recipe.values]).with_alternatives().alternatives
    assert found.ranges["q_K"].low > slope - 0.05
    assert found.ranges["q_K"].high < slope + 0.02
