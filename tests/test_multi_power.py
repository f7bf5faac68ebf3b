"""The multi-power law on its authors' curves: published numbers, the convention that gives them, and a refit."""

import numpy as np
import pytest
from shared_data import shared

import rfsim.surrogates.multi_power  # noqa: F401  (the law registers itself when imported)
from rfsim.logs import read_runs, run
from rfsim.schedules import from_arrays
from rfsim.surrogates import fit, law
from rfsim.surrogates.objective import Data, huber, residuals

PEAK, LOW, WARMUP = 3e-4, 3e-5, 2160
FITTED = ("cosine_24000", "constant_24000", "wsdcon_9")
PREDICTED = (
    "constant_72000",
    "cosine_72000",
    "wsd_20000_24000",
    "wsdcon_18",
    "wsdcon_3",
    "wsdld_20000_24000",
)
PUBLISHED = {
    "25M": (3.04045406, 0.52468604, 0.50786857, 363.78751622, 2.06560812, 0.58279013, 0.64142257),
    "100M": (2.6514477, 0.60115152, 0.45295811, 437.9464276, 2.13245612, 0.59785199, 0.65523644),
}
PRINTED = {"25M": (0.9988, 0.00376, 0.00465), "100M": (0.9983, 0.00435, 0.00592)}


def schedule(name):
    """The lr of every update. Rates are numbered from 0: P i/(w-1) up to i = w-1, then the shape at i.

    A row at step s has seen the rates 0..s; that of number 0 is 0, so the updates that move are 1..s.
    """
    steps = 72000 if name.endswith("72000") else 24000
    i = np.arange(1, steps + 1.0)
    tail = np.clip((i - 20000) / 4000, 0.0, 1.0)
    if name.startswith("cosine"):
        lr = LOW + 0.5 * (PEAK - LOW) * (1.0 + np.cos(np.pi * np.clip((i - WARMUP) / (steps - WARMUP), 0.0, 1.0)))
    elif name.startswith("wsdcon"):
        lr = np.where(i >= 8000, 1e-5 * int(name.split("_")[1]), PEAK)
    elif name.startswith("wsdld"):
        lr = PEAK + (LOW - PEAK) * tail
    elif name.startswith("wsd"):
        lr = PEAK * (LOW / PEAK) ** tail
    else:
        lr = np.full(steps, PEAK)
    return np.where(i < WARMUP, PEAK * i / (WARMUP - 1), lr)


def curve(size, name):
    """One published curve as a run, its logged lr checked against the schedule."""
    table = np.genfromtxt(shared("mpl", size, f"{name}.csv"), delimiter=",", names=True)
    lr = schedule(name)
    np.testing.assert_allclose(lr[table["step"].astype(int) - 1], table["lr"], rtol=1e-9)
    return run(table["step"], table["loss"], from_arrays(lr, 1.0), name=name)


def scores(one, values, each):
    """R2, mean absolute error, root mean square error of the loss."""
    loss, _ = one.evaluate(np.asarray(values), one.prepare(each), gradient=False)
    miss = loss - each.loss
    spread = each.loss - each.loss.mean()
    return 1.0 - (miss @ miss) / (spread @ spread), np.abs(miss).mean(), np.sqrt((miss**2).mean())


@pytest.mark.parametrize("size", ["25M", "100M"])
def test_published_numbers_from_files_as_they_are_read(size):
    one = law("multi-power", inclusive=True)
    runs = read_runs([shared("mpl", size, f"{name}.csv") for name in PREDICTED], warmup=WARMUP)
    found = np.mean([scores(one, PUBLISHED[size], each) for each in runs], axis=0)
    assert tuple(round(float(value), digits) for value, digits in zip(found, (4, 5, 5), strict=True)) == PRINTED[size]


def test_inclusive_counts_one_update_more():
    lr = np.concatenate([np.linspace(0.0, PEAK, 50), np.geomspace(PEAK, LOW, 150)])
    values, at = np.array(PUBLISHED["25M"]), np.array([20, 60, 150])
    later, plain = law("multi-power", inclusive=True), law("multi-power")
    found = later.evaluate(values, later.prepare(run(at, np.full(3, 3.0), from_arrays(lr, 1.0))))[0]
    moved = plain.evaluate(values, plain.prepare(run(at + 1, np.full(3, 3.0), from_arrays(lr, 1.0))))[0]
    assert found.tolist() == moved.tolist()


@pytest.mark.parametrize("size", ["25M", "100M"])
def test_published_numbers(size):
    one = law("multi-power")
    found = np.mean([scores(one, PUBLISHED[size], curve(size, name)) for name in PREDICTED], axis=0)
    assert tuple(round(float(value), digits) for value, digits in zip(found, (4, 5, 5), strict=True)) == PRINTED[size]


def test_published_numbers_need_the_rises_of_the_warmup():
    one = law("multi-power", warmup_in_memory=False)
    found = np.mean([scores(one, PUBLISHED["25M"], curve("25M", name)) for name in PREDICTED], axis=0)
    assert found[2] > 0.1


@pytest.mark.filterwarnings("ignore::rfsim.surrogates.FitWarning")  # at gamma = 1, or C wide open
@pytest.mark.parametrize(("size", "least"), [("25M", 0.0056), ("100M", 0.00592)])
def test_refit(size, least):
    """The optimum on the three curves fits them better than the published values.

    On the six others it is better than the published values at 100M (.00592) and worse at 25M (.00542 against .00465):
    there the published values are no optimum of this objective, whose own optimum predicts cosine_72000 less well.
    """
    runs = [curve(size, name) for name in FITTED]
    found = fit(law("multi-power"), runs)
    one = found.law
    data = Data(tuple(one.prepare(each) for each in runs), tuple(each.loss for each in runs))
    published = huber(residuals(one, np.array(PUBLISHED[size]), data), 1e-3).sum()
    assert found.objective < 0.5 * published
    assert found.share == 1.0
    assert np.mean([scores(one, found.values, curve(size, name))[2] for name in PREDICTED]) <= least


def test_a_rate_of_zero_is_a_limit():
    values = np.array(PUBLISHED["25M"])
    at = np.array([1000, 1001, 1100, 1101, 1500])

    def losses(least):
        lr = np.concatenate([np.full(1000, PEAK), np.full(100, least), np.full(400, PEAK)])
        one = law("multi-power")
        return one.evaluate(values, one.prepare(run(at, np.full(5, 3.0), from_arrays(lr, 1.0))))

    loss, gradient = losses(0.0)
    near, near_gradient = losses(1e-13)
    assert np.isfinite(gradient).all()
    # where the clock has moved since the fall, it has acted fully; while the lr is 0 it has not acted
    np.testing.assert_allclose(loss[[0, 3, 4]], near[[0, 3, 4]], rtol=1e-4)
    np.testing.assert_allclose(gradient[[0, 4], 3], near_gradient[[0, 4], 3], rtol=1e-2)
    assert loss[1] == loss[0] == loss[2]


def test_gamma_between_a_clock_and_a_count():
    """At gamma = 0 what a fall has done depends on the clock since, at gamma = 1 on the number of updates since."""
    one = law("multi-power")
    found = {}
    for gamma in (0.0, 1.0):
        for low in (0.5, 0.25):
            lr = np.concatenate([np.full(1000, PEAK), np.full(800, low * PEAK)])
            at = np.array([1000 + (400 if gamma == 1.0 else round(200 / low))])
            values = np.array([0.0, 0.0, 0.5, 1.0, 20.0 if gamma == 0.0 else 0.01, 0.6, gamma])
            made = run(at, np.full(1, 3.0), from_arrays(lr, 1.0))
            with_fall = one.evaluate(values, one.prepare(made))[0][0]
            plain = run(at, np.full(1, 3.0), from_arrays(np.full(len(lr), PEAK), 1.0))
            start = law("multi-power", warmup_in_memory=False)
            assert start.evaluate(values, start.prepare(plain))[0][0] == 0.0
            found[gamma, low] = start.evaluate(values, start.prepare(made))[0][0] / ((1.0 - low) * PEAK)
            assert with_fall != found[gamma, low]
        assert found[gamma, 0.5] == pytest.approx(found[gamma, 0.25], rel=1e-10)


@pytest.mark.parametrize("gamma", [0.0, 1e-3, 0.02, 0.05, 0.1, 0.64, 1.0])
def test_falls_to_a_rate_of_zero_act_at_once(gamma):
    """Loop over the updates: at lr 0 the bracket is 1 once the clock has moved; at gamma = 0 no lr matters."""
    lr = np.full(30, 1e-3)
    lr[15], lr[20:22], lr[27:] = 0.0, 0.0, 0.0
    at = np.array([14, 15, 16, 17, 21, 22, 23, 30])
    beta, c = 0.6, 1.3

    def gained(k):
        total = 0.0
        for j in range(k):
            lag, fall = lr[j:k].sum(), (lr[j - 1] if j else 0.0) - lr[j]
            full = lr[j] == 0.0 and gamma > 0.0
            bracket = float(lag > 0.0) if full else 1.0 - (1.0 + c * lag * (lr[j] ** -gamma if gamma else 1.0)) ** -beta
            total += fall * bracket
        return total

    one = law("multi-power")
    prepared = one.prepare(run(at, np.full(len(at), 3.0), from_arrays(lr, 1.0)))
    values = np.array([0.0, 0.0, 0.5, 1.0, c, beta, gamma])
    loss, gradient = one.evaluate(values, prepared)
    expected = np.array([gained(k) for k in at])
    np.testing.assert_allclose(-loss, expected, rtol=1e-10, atol=1e-17)
    np.testing.assert_allclose(-gradient[:, 3], expected, rtol=1e-10, atol=1e-17)
    np.testing.assert_array_equal(one.evaluate(values, prepared, gradient=False)[0], loss)
