"""The forcing-memory law fitted to curves of the exact dynamics: it finds the kernel, and predicts other schedules."""

import numpy as np
import pytest

import rfsim
from rfsim import schedules
from rfsim.logs import run
from rfsim.surrogates import fit, law

STEPS, LR, BATCH, NOISE, IRREDUCIBLE = 50_000, 0.1, 128, 25.0, 1.0
ROWS = np.linspace(STEPS / 1000, STEPS, 1000).astype(int)


def log(spectrum, schedule):
    curve = rfsim.risk(spectrum, schedule, at=np.concatenate([[0], ROWS]))
    return run(ROWS, np.asarray(curve.risk)[1:] + IRREDUCIBLE, schedule)


# without noise two minima lie within 4 % of one another, with the same q_K; the fit says so
@pytest.mark.filterwarnings("ignore::rfsim.surrogates.FitWarning")
@pytest.mark.parametrize(("alpha", "beta"), [(0.4, 0.3), (0.6, 0.2)], ids=["LM", "IM"])
def test_fit_of_8_1_1_finds_the_kernel_and_predicts_wsd_and_cosine(alpha, beta):
    problem = rfsim.power_law(alpha=alpha, beta=beta, ambient=np.inf, noise_var=NOISE)
    spectrum = rfsim.population(problem)
    fitted = fit(law("forcing-memory"), log(spectrum, schedules.eight_one_one(STEPS, LR, BATCH)))

    # the true kernel over the lags between two rows and the whole run, without any fit
    eigenvalues, weight = np.asarray(spectrum.eigenvalues), np.asarray(spectrum.multiplicity)
    lag = np.geomspace(LR * STEPS / 1000, 0.85 * LR * STEPS, 60)
    kernel = np.exp(-2.0 * np.outer(lag, eigenvalues)) @ (weight * eigenvalues**2)
    slope = -np.polyfit(np.log(lag), np.log(kernel), 1)[0]
    assert slope == pytest.approx(2.0 - 1.0 / (2.0 * alpha), abs=0.01)
    assert fitted.params["q_K"] == pytest.approx(slope, abs=0.05)

    for schedule in (schedules.wsd(STEPS, LR, BATCH), schedules.cosine(STEPS, LR, BATCH)):
        unseen = log(spectrum, schedule)
        excess = unseen.loss - IRREDUCIBLE
        error = fitted.predict(unseen).loss - unseen.loss
        assert np.abs(error / excess).max() < 0.02
