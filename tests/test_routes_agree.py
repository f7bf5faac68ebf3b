"""All pairs of routes on one table of cases; every pair here is exact, so only rounding may separate them.

A route is a function of a case that returns the risk at all steps 0..N. Routes that cannot run a case return None.
"""

import itertools

import jax
import numpy as np
import oracles
import pytest
from cases import Case, every_step, random_case
from numpy.testing import assert_allclose

import rfsim
from rfsim.routes import recursion, volterra
from rfsim.schedules import constant, cosine, from_arrays, power, wsd

STEPS = 12


def sampled_case():
    problem = rfsim.power_law(0.6, 0.2, ambient=8, noise_var=0.7)
    spectrum = rfsim.sample_features(jax.random.key(3), problem, 4)
    return Case(spectrum, power(STEPS, 0.25, 3.0, vartheta=0.6))


def population_case():
    spectrum = rfsim.population(rfsim.power_law(0.7, 0.3, ambient=20, noise_var=0.5))
    return Case(spectrum, wsd(STEPS, 0.3, 2.0, decay=0.5, warmup=2))


CASES = {
    "changing lr and batch": random_case(1, steps=STEPS),
    "no label noise": random_case(2, steps=STEPS, noise=False),
    "fractional batches": random_case(4, steps=STEPS, whole_batches=False),
    "multiplicity": random_case(5, steps=STEPS, multiplicity=True),
    "one mode": random_case(6, steps=STEPS, modes=1),
    "constant": Case(random_case(7).spectrum, constant(STEPS, 0.1, 3.0)),
    "cosine": Case(random_case(8).spectrum, cosine(STEPS, 0.3, 16.0)),
    "infinite batch": Case(random_case(9).spectrum, from_arrays(np.linspace(0.5, 0.0, STEPS), np.inf)),
    "sampled features": sampled_case(),
    "population": population_case(),
}


def mode_loop(case):
    *numbers, multiplicity = case.plain
    return oracles.mode_loop(*numbers, multiplicity=multiplicity)["risk"]


def volterra_loop(case):
    *numbers, multiplicity = case.plain
    return oracles.volterra_loop(*numbers, multiplicity=multiplicity)


def dense_matrix(case):
    """Full second-moment iteration; features W = 1 in an ambient space of the modes and one unseen coordinate."""
    lam, energy, floor, noise, lr, batch, multiplicity = case.plain
    if set(multiplicity) != {1.0}:
        return None
    eigenvalues = np.array([*lam, 1.0])
    target = np.sqrt(np.array([*energy, floor]) / eigenvalues)
    weights = np.eye(len(lam) + 1, len(lam))
    return oracles.dense_covariance(weights, eigenvalues, target, noise, lr, batch)


def recursion_route(case):
    return recursion.risk(case.spectrum, case.schedule, at=every_step(case.schedule)).risk


def recursion_traced(case):
    return jax.jit(lambda s, c: rfsim.risk(s, c, at=range(STEPS + 1)).risk)(case.spectrum, case.schedule)


def terminal(case):
    return [float(rfsim.terminal_risk(case.spectrum, case.schedule.part(0, stop))) for stop in range(STEPS + 1)]


def volterra_route(case):
    return volterra.risk(case.spectrum, case.schedule, at=every_step(case.schedule)).risk


# name: (route, "exact" or "asymptotic in M", relative tolerance)
ROUTES = {
    "mode loop": (mode_loop, "exact", 1e-12),
    "volterra loop": (volterra_loop, "exact", 1e-12),
    "dense matrix": (dense_matrix, "exact", 1e-11),
    "recursion": (recursion_route, "exact", 1e-12),
    "recursion, traced": (recursion_traced, "exact", 1e-12),
    "terminal risk": (terminal, "exact", 1e-12),
    "volterra": (volterra_route, "exact", 1e-12),
}


@pytest.fixture(scope="module", params=CASES)
def values(request):
    case = CASES[request.param]
    return {name: route(case) for name, (route, _, _) in ROUTES.items()}


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(ROUTES, 2)))
def test_exact_routes_agree(values, one, other):
    assert ROUTES[one][1] == ROUTES[other][1] == "exact"
    if values[one] is None or values[other] is None:
        assert "dense matrix" in (one, other)  # the only route that needs multiplicity one
        return
    tolerance = max(ROUTES[one][2], ROUTES[other][2])
    assert_allclose(values[one], values[other], rtol=tolerance)
    assert len(values[one]) == STEPS + 1


@pytest.mark.parametrize("name", CASES)
def test_all_curves_of_the_two_package_routes_agree(name):
    case = CASES[name]
    at = every_step(case.schedule)
    one = recursion.risk(case.spectrum, case.schedule, at=at)
    other = volterra.risk(case.spectrum, case.schedule, at=at)
    for curve in ("step", "intrinsic_time", "risk", "forcing", "memory", "clean", "gap"):
        # the gap of a triangular solve is relative to its row, so allow rounding of the risk
        assert_allclose(getattr(one, curve), getattr(other, curve), rtol=1e-12, atol=1e-15, err_msg=curve)


def test_a_long_run_of_both_package_routes():
    spectrum = rfsim.population(rfsim.power_law(0.5, 0.4, ambient=50, noise_var=1.0))
    schedule = power(1500, 0.3, 4.0, vartheta=0.5, via="lr")
    at = np.arange(0, 1501, 100)
    one = rfsim.risk(spectrum, schedule, at=at, route="recursion")
    other = rfsim.risk(spectrum, schedule, at=at, route="volterra")
    for curve in ("risk", "forcing", "memory", "clean", "gap"):
        assert_allclose(getattr(one, curve), getattr(other, curve), rtol=1e-11, err_msg=curve)


def test_sampled_features_against_the_full_second_moment():
    """W itself instead of its spectrum: v = 6, M = 3, H = Lambda^(1/2) W W^T Lambda^(1/2) never diagonalised."""
    problem = rfsim.power_law(0.4, 0.3, ambient=6, noise_var=0.3)
    features = rfsim.random_features(jax.random.key(8), problem, 3)
    schedule = from_arrays(np.linspace(0.3, 0.05, 10), np.arange(1.0, 11.0))
    expected = oracles.dense_covariance(
        np.asarray(features.weights), problem.eigenvalues, problem.target, 0.3, schedule.lr, schedule.batch
    )
    curve = recursion.risk(rfsim.feature_spectrum(features), schedule, at=range(11))
    assert_allclose(curve.risk, expected, rtol=1e-12)
    assert curve.floor > 0.01
