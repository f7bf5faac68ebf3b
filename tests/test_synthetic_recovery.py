"""Curves that a law makes, with noise .001: its stated 95 % intervals hold the parameters that made them.

The number of misses of one parameter in n repetitions is binomial. The counts allowed below are chosen so that a law
whose intervals are exact fails with a stated small probability. Counts of 24 repetitions do not see errors that are
somewhat too long, so the mean square of the errors over the standard errors is tested beside them.
`benchmarks/recovery.py` counts 100 repetitions, with profile intervals.
"""

import warnings
from typing import NamedTuple

import numpy as np
import pytest
from scipy.stats import binom, chi2

from rfsim.logs import run
from rfsim.schedules import constant, eight_one_one, stages, warmed, wsd
from rfsim.surrogates import fit, law

STEPS, LR, BATCH, WARMUP, NOISE = 12_000, 1e-3, 4.0, 300, 1e-3
REPETITIONS = 24
FALSE_ALARM = 1e-3  # of one parameter among all of this file, and of the mean square of all errors

# name on the test -> (law, options, parameters); the amplitudes give terms far above the noise on the schedules below
TRUTHS = {
    "forcing-memory": ("forcing-memory", {}, [2.8, 20.0, 0.45, 3e-4, 2e-2, 0.02, 0.9]),
    "forcing-memory, p = 1/2": ("forcing-memory", {"clock_power": 0.5}, [2.8, 20.0, 0.45, 3e-4, 2e-2, 0.02, 0.9]),
    "multi-power": ("multi-power", {}, [2.65, 0.6, 0.45, 350.0, 2.1, 0.6, 0.55]),
    "momentum": ("momentum", {}, [2.65, 12.0, 0.45, 1.5e-3, 150.0]),
    "fsl": ("fsl", {}, [2.65, 12.0, 0.45, 1.5e-3, 1e-2, 0.02, 0.8]),
    "lr-fsl": ("lr-fsl", {}, [2.65, 8.0, 20.0, 0.45, 0.1, 20.0, 1.3]),
    "elr-fsl": ("elr-fsl", {}, [2.65, 8.0, 20.0, 0.45, 0.1, 20.0, 1.3]),
}
PARAMETERS = sum(len(values) for _, _, values in TRUTHS.values())


def schedules():
    """A constant, an 8-1-1, a decay, a fall and a rise of the lr, and two batches; all with a warm-up."""
    shapes = {
        "constant": constant(STEPS, LR, BATCH),
        "8-1-1": eight_one_one(STEPS, LR, BATCH),
        "wsd": wsd(STEPS, LR, BATCH),
        "dip": stages(STEPS, LR, BATCH, at=[0.03, 0.1, 0.4], lr_to=[0.3, 1.0, 0.3]),
        "large batch": stages(STEPS, LR, BATCH, at=[0.05, 0.3], batch_to=[4.0, 1.0]),
    }
    return {name: warmed(shape, WARMUP) for name, shape in shapes.items()}


def norms(number):
    """Norm of the parameters of each step, another growth for each run."""
    return 4.0 + (1.0 + 0.5 * number) * np.sqrt(np.arange(STEPS) / STEPS)


def truth(name):
    """The law and runs with the losses that it makes, without noise."""
    kind, options, values = TRUTHS[name]
    rows = np.unique(np.concatenate([np.geomspace(40, STEPS, 75), np.linspace(100, STEPS, 75)]).round())
    shapes = schedules()
    if kind != "forcing-memory":
        del shapes["large batch"]  # the other laws do not know of the batch
    bare = [
        run(rows, np.ones(len(rows)), shape, name=each, norm=norms(number))
        for number, (each, shape) in enumerate(shapes.items())
    ]
    one = law(kind, **options).calibrated(bare)
    losses = [one.evaluate(np.array(values), one.prepare(each), gradient=False)[0] for each in bare]
    return one, [
        run(rows, loss, each.schedule, name=each.name, norm=each.norm) for each, loss in zip(bare, losses, strict=True)
    ]


def noisy(made, *seed):
    """The runs with log-normal noise, which the whole numbers `seed` give."""
    draw = np.random.default_rng([20, *seed])
    return [
        run(
            each.step,
            each.loss * np.exp(NOISE * draw.standard_normal(len(each.step))),
            each.schedule,
            name=each.name,
            norm=each.norm,
        )
        for each in made
    ]


class Recovery(NamedTuple):
    """Fits of one law to repetitions of noise.

    held : method -> (repetitions, parameters), whether the intervals hold the truth.
    shares : of starts that reach the optimum (repetitions,).
    squares : errors of the parameters (of the logs of log parameters) over their standard errors, squared, summed over
        the parameters (repetitions,); variances : of these sums, if the parameters are normal with their covariance.
    """

    held: dict
    shares: np.ndarray
    squares: np.ndarray
    variances: np.ndarray


def coverage(name, seeds, *, methods=("wald",), starts=None):
    """What fits of a law say about the truth; each law and each of `seeds` has noise of its own."""
    kind, options, values = TRUTHS[name]
    _, made = truth(name)
    held, shares, squares, variances = {method: [] for method in methods}, [], [], []
    for seed in seeds:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # no parameter is undetermined, most starts agree
            found = fit(law(kind, **options), noisy(made, seed, list(TRUTHS).index(name)), starts=starts)
        shares.append(found.share)
        error = np.sqrt(np.diag(found.spread.covariance))
        moved = [
            value * np.log(value / true) if parameter.log else value - true
            for parameter, value, true in zip(found.law.parameters, found.values, values, strict=True)
        ]
        squares.append(float(np.sum((np.array(moved) / error) ** 2)))
        variances.append(2.0 * float(np.sum((found.spread.covariance / np.outer(error, error)) ** 2)))
        for method in methods:
            intervals = found.conf_int(method=method).values()
            held[method].append([low <= value <= high for (low, high), value in zip(intervals, values, strict=True)])
    whole = {method: np.array(one) for method, one in held.items()}
    return Recovery(whole, np.array(shares), np.array(squares), np.array(variances))


def allowed(repetitions, alarm):
    """Misses of a 95 % interval that more than a share `alarm` of correct methods would not exceed."""
    return int(binom.isf(alarm, repetitions, 0.05))


@pytest.fixture(scope="module")
def held():
    """What fits of every law say, from starts away from the truth (one for the costly law)."""
    found = {}
    for name, (_, _, values) in TRUTHS.items():
        starts = np.outer([0.75] if name.startswith("forcing") else [0.75, 1.3], values)
        found[name] = coverage(name, range(REPETITIONS), starts=starts)
    return found


@pytest.mark.parametrize("name", TRUTHS)
def test_intervals_hold_the_parameters(held, name):
    """Each parameter of each law; a false alarm anywhere in one of a thousand."""
    misses = REPETITIONS - held[name].held["wald"].sum(axis=0)
    assert misses.max() <= allowed(REPETITIONS, FALSE_ALARM / PARAMETERS), misses
    assert held[name].shares.min() == 1.0


def test_intervals_are_neither_short_nor_long_on_average(held):
    """Over all laws and parameters together: about 170 independent fits of three or so independent parameters each."""
    share = np.mean([one.held["wald"].mean() for one in held.values()])
    spread = (0.95 * 0.05 / (2 * REPETITIONS * len(TRUTHS))) ** 0.5
    assert abs(share - 0.95) < 4.0 * spread


def test_standard_errors_are_those_of_the_errors(held):
    """The mean square of error over standard error is 1, over all laws and parameters; its variance is known.

    A sum of squares of correlated normal numbers is close to a multiple of chi-square with the same variance. Exact
    standard errors fail once in a thousand; ones that are a fifth too long or too short do not pass.
    """
    square = sum(one.squares.sum() for one in held.values()) / (REPETITIONS * PARAMETERS)
    variance = sum(one.variances.sum() for one in held.values()) / (REPETITIONS * PARAMETERS) ** 2
    freedom = 2.0 / variance
    low, high = (chi2.ppf(share, freedom) / freedom for share in (0.5 * FALSE_ALARM, 1.0 - 0.5 * FALSE_ALARM))
    assert low < square < high
    assert low > 1.2**-2
    assert high < 0.8**-2


@pytest.mark.parametrize("name", TRUTHS)
def test_every_start_leads_to_the_same_optimum(name):
    """The starts of the law itself, on one noisy set."""
    assert coverage(name, [1000]).shares[0] == 1.0


@pytest.mark.parametrize("name", ["momentum", "fsl", "lr-fsl"])
def test_profile_and_wald_agree_where_all_is_determined(name):
    kind, options, values = TRUTHS[name]
    found = fit(law(kind, **options), noisy(truth(name)[1], 1001), starts=[values])
    wald, profile = found.conf_int(method="wald"), found.conf_int()
    for parameter, (low, high) in profile.items():
        width = high - low
        assert abs(low - wald[parameter].low) < 0.3 * width
        assert abs(high - wald[parameter].high) < 0.3 * width


def test_a_single_schedule_is_less_certain():
    """An 8-1-1 alone leaves wider intervals than five schedules, and they hold the truth."""
    kind, options, values = TRUTHS["forcing-memory"]
    runs = noisy(truth("forcing-memory")[1], 1002)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        every, alone = (fit(law(kind, **options), some, starts=[values]) for some in (runs, runs[1]))
    assert runs[1].name == "8-1-1"
    assert alone.stderr["q_K"] > 2.0 * every.stderr["q_K"]
    low, high = alone.conf_int(method="wald")["q_K"]
    assert low < values[-1] < high
