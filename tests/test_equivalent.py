"""Deterministic equivalent: published digits, a closed contour over written-out eigenvalues, and sampled W."""

import math

import jax
import numpy as np
import pytest
import wedge
from numpy.testing import assert_allclose

import rfsim
from rfsim.checks import InputError, RunError
from rfsim.sources import equivalent as module
from rfsim.sources.equivalent import equivalent_details
from rfsim.sources.fixed_point import kernel_mass
from rfsim.sources.population import population


def laplace(spectrum, times):
    """F(T) - floor and K(T) of the nodes, (k,), (k,)."""
    decay = np.exp(-2.0 * np.asarray(times)[:, None] * spectrum.eigenvalues)
    return (decay * spectrum.forcing_energy).sum(axis=1), (decay * spectrum.multiplicity * spectrum.eigenvalues**2).sum(
        axis=1
    )


def contour(problem, found, width, **changes):
    return wedge.wedge(
        np.asarray(problem.eigenvalues),
        np.asarray(problem.target),
        width,
        0.4 * found.lower_edge,
        2.0 * found.upper_edge,
        **changes,
    )


# --- published digits ------------------------------------------------------------------------------------------------


def test_floor_and_kappa_at_width_12800():
    spectrum = rfsim.equivalent(rfsim.power_law(0.7, 0.3, ambient=25600), 12800)
    assert_allclose(spectrum.floor, 2.3265822557745386e-4, rtol=1e-13)
    assert_allclose(rfsim.equivalent(rfsim.power_law(0.6, 0.7, ambient=25600), 12800).floor, 4.59365088753881e-5, 1e-13)
    long = rfsim.equivalent(rfsim.power_law(0.27, 0.4, ambient=25600), 12800)
    assert_allclose(long.floor, 0.17048338803164034, rtol=1e-13)
    assert_allclose(rfsim.limiting_risk(long, 0.05 * 12800 ** (2 * 0.27 - 1), 1.0), 0.184153993, atol=6e-10)


def test_kappa_does_not_depend_on_the_target():
    kappas = [
        rfsim.kappa(rfsim.equivalent(rfsim.power_law(0.7, beta, ambient=25600), 12800), 0.05, 1.0)
        for beta in (-0.15, 0.3, 0.6, 2.0)
    ]
    assert_allclose(kappas, kappas[0], rtol=1e-14)
    base = population(rfsim.power_law(0.7, 0.3, ambient=25600))
    assert_allclose(kappas[0], kernel_mass(base, 12800, 0.05, 1.0), rtol=1e-12)


@pytest.mark.parametrize(
    ("alpha", "beta", "width", "floor", "kappa"),
    [
        (0.7, 0.3, 10, 0.1895402785776, 0.0613589660),
        (0.7, 0.3, 200, 0.0135935287773, 0.0736366977),
        (0.7, 0.3, 3200, 9.169650398e-4, 0.0773948221),
        (0.7, 0.3, 51200, 5.865198622e-5, 0.0786488437),
        (0.7, 0.6, 51200, 1.66224488e-6, None),
        (0.6, 0.7, 51200, 8.79911088e-6, 0.1291517400),
        (0.27, 0.4, 51200, 0.111101186, 0.0744804788),
        (0.6, 0.2, 512, 0.0458927375, None),
        (0.4, 0.3, 512, 0.2042290293, None),
        (0.2, 0.4, 512, 0.9402785007, None),
        (0.12, 0.65, 512, 0.60440635, None),
    ],
)
def test_published_floors_and_kernel_masses(alpha, beta, width, floor, kappa):
    spectrum = rfsim.equivalent(rfsim.power_law(alpha, beta, ambient=2 * width), width)
    assert_allclose(spectrum.floor, floor, rtol=4e-9)
    if kappa is not None:
        lr = 0.05 if alpha > 0.5 else 0.05 * width ** (2 * alpha - 1)
        assert_allclose(rfsim.kappa(spectrum, lr, 1.0), kappa, atol=5.1e-11)


@pytest.mark.parametrize(("alpha", "kappa"), [(0.7, 0.0792676945457), (0.6, 0.1415919159992)])
def test_kappa_tends_to_its_value_at_infinite_width(alpha, kappa):
    gaps = [
        rfsim.kappa(rfsim.equivalent(rfsim.power_law(alpha, 0.3, ambient=2 * width), width), 0.05, 1.0) - kappa
        for width in (10**3, 10**5, 10**7, 10**9)
    ]
    # the missing tail of the trace is of order M^(1 - 2 alpha)
    ratios = np.array(gaps[1:]) / gaps[:-1]
    assert_allclose(ratios[1:], 100.0 ** (1.0 - 2.0 * alpha), rtol=2e-3)


RATE = 0.1542358173412625


def curves(alpha, beta, lr, vartheta, at):
    """(centred risk, gap) at the steps for the schedule of the published figures."""
    spectrum = rfsim.equivalent(rfsim.power_law(alpha, beta, ambient=1024, noise_var=25.0), 512)
    curve = rfsim.risk(spectrum, rfsim.schedules.power(max(at), lr, 16.0, vartheta=vartheta), at=at)
    return np.stack([curve.risk - curve.floor, curve.gap], axis=1)


def test_published_dynamics_of_an_integrable_memory():
    expected = [[1.9143459, 0.0527854], [1.0095129, 0.2328233], [0.6801994, 0.3516954]]
    assert_allclose(curves(0.6, 0.2, RATE, 0.0, [1, 10, 50]), expected, rtol=2e-6)


def test_published_dynamics_of_a_finite_bulk():
    expected = [[3.34117656, 0.0209374975], [2.89802648, 0.19360982]]
    assert_allclose(curves(0.2, 0.4, 0.8 * 512**-0.6, 0.0, [1, 10]), expected, rtol=1e-7)


@pytest.mark.parametrize(
    ("alpha", "beta", "vartheta", "last", "expected"),
    [
        (0.4, 0.3, 0.25, 333, [[1.08566233, 0.78750649], [0.79983381, 0.71435436]]),
        (0.4, 0.3, 0.5, 333, [[0.77977334, 0.48877008], [0.36556111, 0.28536483]]),
        (0.4, 0.3, 0.9, 333, [[0.52558708, 0.24073284], [0.14846219, 0.07099064]]),
        (0.6, 0.2, 0.0, 389, [[0.65264199, 0.36879901], [0.56801762, 0.46904341]]),
        (0.6, 0.2, 0.25, 389, [[0.49354884, 0.21205571], [0.26968087, 0.17254775]]),
        (0.6, 0.2, 0.75, 389, [[0.35667474, 0.07724644], [0.12240998, 0.02621604]]),
    ],
)
def test_published_dynamics_under_growing_batches(alpha, beta, vartheta, last, expected):
    assert_allclose(curves(alpha, beta, RATE, vartheta, [65, last]), expected, atol=6e-9)


@pytest.mark.parametrize(
    ("alpha", "beta", "lr", "expected"),
    [
        (0.2, 0.4, 0.8 * 512**-0.6, [[1.87150889, 1.38027445], [0.82861967, 0.39817623], [0.55628330, 0.14250872]]),
        (0.12, 0.65, 0.8 * 512**-0.76, [[1.51685081, 1.17637604], [0.92160179, 0.60507205], [0.64443927, 0.33929546]]),
    ],
)
def test_published_ends_of_the_finite_bulks(alpha, beta, lr, expected):
    for vartheta, wanted in zip((0.0, 1.0, 2.0), expected, strict=True):
        assert_allclose(curves(alpha, beta, lr, vartheta, [205])[0], wanted, atol=6e-9)


# --- the whole spectrum against a closed contour ---------------------------------------------------------------------

INDEX = np.arange(1.0, 81.0)
SMALL = {
    "FB1": (rfsim.power_law(0.2, 0.4, ambient=80), 40),
    "FB, v/M = 1.025": (rfsim.power_law(0.15, 0.6, ambient=41), 40),
    "LM1": (rfsim.power_law(0.4, 0.15, ambient=80), 40),
    "IM1": (rfsim.power_law(0.7, 0.3, ambient=40), 20),
    "IM3, v/M = 1.02": (rfsim.power_law(0.7, 1.3, ambient=82), 80),
    "IM, negative beta, v/M = 100": (rfsim.power_law(1.0, -0.4, ambient=300), 3),
    "steep": (rfsim.power_law(3.0, 0.5, ambient=40), 20),
    "width 1": (rfsim.power_law(0.7, 0.3, ambient=2), 1),
    "flat": (rfsim.problem(np.ones(30), np.ones(30)), 20),
    "repeated": (rfsim.problem(np.repeat([1.0, 0.01], [10, 30]), np.ones(40)), 16),
    "gap": (rfsim.problem(np.repeat([1.0, 1e-4], [4, 40]), INDEX[:44] ** -0.5), 8),
    "isolated": (rfsim.problem(np.append(100.0, np.ones(30)), np.ones(31)), 10),
    "exponential": (rfsim.problem(np.exp(-INDEX[:40] / 2.0), np.ones(40)), 10),
    "one target": (rfsim.problem(1.0 / INDEX, INDEX == 70.0), 40),
}


@pytest.mark.parametrize("name", SMALL)
def test_the_whole_spectrum_is_that_of_a_closed_contour(name):
    problem, width = SMALL[name]
    found = equivalent_details(problem, width)
    exact = contour(problem, found, width)
    times = np.concatenate([[0.0], np.geomspace(0.01, 50.0, 50) / found.lower_edge])
    times = np.concatenate([times, np.geomspace(0.01, 100.0, 40) / found.upper_edge])
    alive = 2.0 * times * found.lower_edge <= 10.0
    for mine, wanted, scale in zip(laplace(found.spectrum, times), exact.laplace(times), (1, width), strict=True):
        rounding = 2e3 * wedge.EPS * (wanted.max() + scale * float(found.spectrum.floor))
        assert_allclose(mine[alive], wanted[alive], rtol=1e-9, atol=rounding)
        assert_allclose(mine, wanted, rtol=0, atol=1e-12 * wanted.max())


def test_two_rays_alone_are_another_quantity():
    problem, width = SMALL["IM1"]
    found = equivalent_details(problem, width)
    exact = contour(problem, found, width)
    times = np.array([0.0, 1.0, 5.0, 10.0])
    wrong = exact.laplace(times, closed=False)[0] - laplace(found.spectrum, times)[0]
    assert np.all(np.abs(wrong) > 0.1 * float(found.spectrum.floor))
    # late, what the inner arc would have taken away: the share angle/pi of the pole that the floor makes at zero
    assert_allclose(wrong[2:], float(found.spectrum.floor) * 0.7 / math.pi, rtol=0.2)


def test_a_wrong_fixed_point_is_noticed():
    """1/M replaced by 1/v in the equation of m(z)."""
    problem, width = SMALL["LM1"]
    found = equivalent_details(problem, width)
    wrong = contour(problem, found, width, share=int(problem.ambient) - 1)
    times = np.geomspace(0.1, 1.0, 5) / found.lower_edge
    for mine, other in zip(laplace(found.spectrum, times), wrong.laplace(times), strict=True):
        assert np.all(np.abs(other / mine - 1.0) > 0.05)


@pytest.mark.parametrize("name", ["FB1", "LM1", "IM1", "repeated"])
def test_exact_dynamics_of_a_changing_schedule_on_complex_nodes(name):
    problem, width = SMALL[name]
    problem = problem.replace(noise_var=0.7)
    found = equivalent_details(problem, width)
    exact = contour(problem, found, width, angle=0.5)
    steps = 300
    lr = np.linspace(0.5, 0.05, steps) / found.upper_edge
    batch = np.ceil(2.0 * (1.0 + np.arange(steps)) ** 0.4)
    curve = rfsim.risk(found.spectrum, rfsim.schedules.from_arrays(lr, batch), at=np.arange(steps + 1))
    wanted = wedge.risk(exact, float(found.spectrum.floor), 0.7, lr, batch)
    assert_allclose(curve.risk, wanted, rtol=1e-10)
    clean = wedge.risk(exact, float(found.spectrum.floor), 0.0, lr, batch)
    assert_allclose(curve.gap[1:], (wanted - clean)[1:], rtol=1e-8)


@pytest.mark.parametrize(("share", "tolerance"), [(0.3, 1e-12), (0.7, 1e-12), (0.9, 1e-12), (0.999, 1e-10)])
def test_accuracy_near_the_pointwise_limit_is_as_documented(share, tolerance):
    for alpha, width in ((0.3, 40), (0.7, 3000)):
        problem = rfsim.power_law(alpha, 0.3, ambient=2 * width)
        found, base = equivalent_details(problem, width), population(problem)
        lr = share * 2.0 / (1.0625 * found.upper_edge)
        assert_allclose(rfsim.kappa(found.spectrum, lr, 16.0), kernel_mass(base, width, lr, 16.0), rtol=tolerance)


# --- every size ------------------------------------------------------------------------------------------------------


_PROBLEMS = ((0.15, (0.4, 2.0)), (0.27, (0.3,)), (0.5, (0.1,)), (0.7, (-0.15, 0.9)), (1.5, (-0.9,)))


@pytest.mark.parametrize(
    ("alpha", "betas", "width"),
    [(alpha, betas, width) for alpha, betas in _PROBLEMS for width in (1, 2, 10, 1000)]
    + [(alpha, betas, 10**9) for alpha, betas in _PROBLEMS if alpha <= 1.0],  # beyond: thirty decades, too slow here
)
def test_every_width_exponent_and_aspect_ratio(alpha, betas, width):
    for ratio in (1.001, 2.0, 50.0, math.inf):
        if ratio == math.inf and alpha <= 0.5:
            continue
        ambient = math.inf if ratio == math.inf else max(round(ratio * width), width + 1)
        for beta in betas[:1] if width > 1000 else betas:
            found = equivalent_details(rfsim.power_law(alpha, beta, ambient=ambient), width)
            nodes = found.spectrum
            assert found.residual < 1e-14
            assert found.identity_error < 2e-11
            assert np.all(nodes.forcing_energy >= 0.0)
            assert np.all(nodes.multiplicity >= 0.0)
            assert found.lower_edge * (1.0 - 1e-6) <= nodes.eigenvalues.min()
            assert nodes.eigenvalues.max() <= found.upper_edge * (1.0 + 1e-6)
            assert 0.0 < nodes.floor < nodes.floor + nodes.forcing_energy.sum()
            assert_allclose(nodes.multiplicity.sum(), width, rtol=1e-12)


@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 0.4), (0.7, 0.3), (1.2, -0.6), (3.0, 0.5)])
def test_floor_and_omega_from_written_out_sums(alpha, beta):
    width, ambient = 3000, 60_000
    found = equivalent_details(rfsim.power_law(alpha, beta, ambient=ambient), width)
    j = np.arange(1.0, ambient + 1.0)
    lam = j ** (-2 * alpha)
    share = found.omega * lam / (1.0 + found.omega * lam)
    assert_allclose(math.fsum(share), width, rtol=1e-12)
    assert_allclose(found.spectrum.floor, math.fsum(lam * j ** (-2 * beta) / (1.0 + found.omega * lam)), rtol=1e-12)


@pytest.mark.parametrize(("alpha", "beta", "width"), [(0.7, -0.15, 10**8), (1.3, -0.7, 10**7), (2.0, -1.3, 10**6)])
def test_infinite_ambient_is_the_limit_of_large_ones_also_for_wide_features(alpha, beta, width):
    last = rfsim.equivalent(rfsim.power_law(alpha, beta), width)
    # sums over the coordinates beyond v are of order (M/v)^(2 alpha - 1) and, for the floor, (M/v)^p
    rates = min(2 * alpha - 1, 2 * alpha + 2 * beta - 1)
    gaps = []
    for reach in (1e4, 1e6):
        one = rfsim.equivalent(rfsim.power_law(alpha, beta, ambient=int(width * reach)), width)
        gaps.append(abs(one.floor / last.floor - 1.0))
    assert gaps[0] < 20.0 * 1e4**-rates
    assert gaps[1] < gaps[0] * 3.0 * 100.0**-rates


@pytest.mark.parametrize(("alpha", "beta", "width"), [(1.3, -0.7, 10**9), (2.0, -1.3, 10**6)])
def test_the_tail_of_an_infinite_problem_begins_far_beyond_the_width(monkeypatch, alpha, beta, width):
    problem = rfsim.power_law(alpha, beta)
    floor = rfsim.equivalent(problem, width).floor
    monkeypatch.setattr(module, "_BEYOND", 1e22)
    assert_allclose(rfsim.equivalent(problem, width).floor, floor, rtol=1e-13)
    monkeypatch.setattr(module, "_BEYOND", 1e3)
    assert abs(rfsim.equivalent(problem, width).floor / floor - 1.0) > 1e-6


def test_refined_spacing_changes_nothing_and_coarser_spacing_converges():
    problem, width = SMALL["LM1"]
    exact = contour(problem, equivalent_details(problem, width), width)
    times = np.geomspace(0.1, 200.0, 30)
    wanted = exact.laplace(times)

    def error(spacing):
        found = laplace(rfsim.equivalent(problem, width, spacing=spacing), times)
        return max(np.abs(mine / other - 1.0).max() for mine, other in zip(found, wanted, strict=True))

    errors = [error(spacing) for spacing in (0.6, 0.5, 0.4, 0.3, 0.2, 0.1)]
    assert 1e-10 < errors[0] < 1e-5
    assert errors[1] < 0.3 * errors[0]
    assert max(errors[2:]) < 1e-10


def test_the_record_scales_with_the_problem():
    problem = rfsim.problem(1.0 / INDEX, INDEX**-0.3, noise_var=0.4)
    one = equivalent_details(problem, 30)
    for factor in (2.0**-900, 2.0**-40, 2.0**500):
        other = equivalent_details(problem.replace(eigenvalues=factor * np.asarray(problem.eigenvalues)), 30)
        assert_allclose(other.spectrum.eigenvalues, factor * one.spectrum.eigenvalues, rtol=0)
        assert_allclose(other.spectrum.forcing_energy, factor * one.spectrum.forcing_energy, rtol=0)
        assert_allclose(other.spectrum.multiplicity, one.spectrum.multiplicity, rtol=0)
        assert_allclose(other.omega * factor, one.omega, rtol=1e-15)
        assert_allclose([other.lower_edge, other.upper_edge], [factor * one.lower_edge, factor * one.upper_edge], 1e-15)
        assert_allclose(other.spectrum.floor, factor * one.spectrum.floor, rtol=1e-15)
        assert other.spectrum.noise_var == 0.4


def test_order_and_repetition_of_eigenvalues_do_not_matter():
    lam, theta = np.array([1.0, 0.3, 0.3, 0.3, 0.05, 0.05]), np.array([1.0, 2.0, -1.0, 0.5, 3.0, 0.0])
    place = np.array([4, 0, 3, 5, 1, 2])
    one = rfsim.equivalent(rfsim.problem(lam, theta), 3)
    other = rfsim.equivalent(rfsim.problem(lam[place], theta[place]), 3)
    # repeated eigenvalues carry the sum of their energies
    merged = rfsim.equivalent(rfsim.problem(lam, np.array([1.0, math.sqrt(5.25), 0.0, 0.0, 0.0, 3.0])), 3)
    times = np.geomspace(0.1, 20.0, 8)
    for spectrum in (other, merged):
        assert_allclose(spectrum.floor, one.floor, rtol=1e-14)
        assert_allclose(laplace(spectrum, times), laplace(one, times), rtol=1e-11)


def test_a_target_of_no_energy_leaves_noise_only():
    spectrum = rfsim.equivalent(rfsim.problem(1.0 / INDEX, np.zeros(80), noise_var=1.0), 30)
    assert spectrum.floor == 0.0
    assert np.all(spectrum.forcing_energy == 0.0)
    curve = rfsim.risk(spectrum, rfsim.schedules.constant(20, 0.1, 2.0))
    assert_allclose(curve.risk, curve.gap)
    assert curve.gap[-1] > 0.0


# --- sampled W -------------------------------------------------------------------------------------------------------

REGIMES = {  # one point each
    "FB1": (0.2, 0.4),
    "FB2": (0.2, 0.7),
    "LM1": (0.4, 0.3),
    "LM2": (0.4, 0.45),
    "LM3": (0.4, 0.7),
    "IM1": (0.7, 0.3),
    "IM2": (0.7, 0.6),
    "IM3": (0.7, 0.9),
}
STEPS, AT = 60, [5, 60]


def changing(alpha, width):
    """A schedule in which lr falls and the batch grows."""
    lr = 0.3 * (width ** (2 * alpha - 1) if alpha < 0.5 else 1.0) * np.linspace(1.0, 0.3, STEPS)
    return rfsim.schedules.from_arrays(lr, np.ceil(4.0 * np.sqrt(1.0 + 0.3 * np.arange(STEPS))))


def drawn(rng, alpha, width, draws):
    """For every beta of this alpha: eigenvalues, energies (draws, M), floors (draws,), by the Gram matrix."""
    j = np.arange(1.0, 2 * width + 1.0)
    features = j[:, None] ** -alpha * rng.standard_normal((draws, 2 * width, width)) / math.sqrt(width)
    lam, vectors = np.linalg.eigh(features.transpose(0, 2, 1) @ features)
    found = {}
    for name, (own, beta) in REGIMES.items():
        if own == alpha:
            b = j ** (-alpha - beta)
            moved = np.einsum("nvm,v->nm", features, b)
            energy = np.einsum("nmk,nm->nk", vectors, moved) ** 2 / lam
            found[name] = lam, energy, (b**2).sum() - energy.sum(axis=1)
    return found


def literal(lam, energy, floor, schedule, count=1.0):
    """Risk and gap (draws, records, 2) by a plain loop over steps, modes (draws, n) counted `count` times."""
    noisy, clean, kept = energy.copy(), energy.copy(), []
    for step in range(STEPS + 1):
        total, quiet = floor + noisy.sum(axis=1), floor + clean.sum(axis=1)
        if step in AT:
            kept.append(np.stack([total, total - quiet], axis=1))
        if step < STEPS:
            x, size = schedule.lr[step] * lam, schedule.batch[step]
            factor, injected = (1.0 - x) ** 2 + x**2 / size, count * x**2 / size
            noisy = factor * noisy + injected * (total + 1.0)[:, None]
            clean = factor * clean + injected * quiet[:, None]
    return np.stack(kept, axis=1)


def theory(name, width, believed=None):
    alpha, beta = REGIMES[name]
    spectrum = rfsim.equivalent(rfsim.power_law(alpha, beta, ambient=2 * width, noise_var=1.0), believed or width)
    modes = (spectrum.eigenvalues[None], spectrum.forcing_energy[None], np.array([spectrum.floor]))
    return literal(*modes, changing(alpha, width), spectrum.multiplicity)[0]


@pytest.fixture(scope="module")
def means():
    """Mean and standard error over W of risk and gap, by width and regime; the seed was fixed in advance."""
    rng, found = np.random.default_rng(20261129), {}
    for width, draws in ((8, 4000), (16, 1500), (32, 500), (64, 150)):
        for alpha in (0.2, 0.4, 0.7):
            for name, modes in drawn(rng, alpha, width, draws).items():
                values = literal(*modes, changing(alpha, width))
                found[width, name] = values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(draws)
    return found


def at_infinite_width(means, name, believed=lambda width: width):
    """Relative difference from the equivalent over widths 8..64, fitted as c_0 + c_1/M + c_2/M^2: c_0, c_1 and their
    standard errors, each (2 records, 2 quantities), and the residual in standard errors."""
    widths = np.array([8, 16, 32, 64])
    wanted = np.array([theory(name, width, believed(width)) for width in widths])
    difference = np.array([means[width, name][0] for width in widths]) / wanted - 1.0
    error = np.array([means[width, name][1] for width in widths]) / wanted
    powers = widths[:, None] ** -np.arange(3.0)
    fitted = np.empty((2, 2, 2, 2))
    residual = np.empty((2, 2))
    for place in np.ndindex(2, 2):
        weighted = powers / error[(slice(None), *place)][:, None]
        scaled = difference[(slice(None), *place)] / error[(slice(None), *place)]
        cover = np.linalg.inv(weighted.T @ weighted)
        best = cover @ weighted.T @ scaled
        fitted[(slice(None), 0, *place)], fitted[(slice(None), 1, *place)] = best[:2], np.sqrt(np.diag(cover))[:2]
        residual[place] = np.linalg.norm(scaled - weighted @ best)  # one degree of freedom
    return fitted, residual


@pytest.mark.parametrize("name", REGIMES)
def test_difference_from_sampled_weights_shrinks_like_one_over_width(means, name):
    """4.5 standard errors on 8 regimes x 4 numbers x 2 statistics: a false alarm in 2,000 seeds."""
    (limit, slope), residual = at_infinite_width(means, name)
    assert np.all(np.abs(limit[0]) < 4.5 * limit[1])
    assert np.all(residual < 4.5)
    assert np.all(limit[1] < 0.05)  # the draws are many enough to say something
    assert np.max(np.abs(means[8, name][0] / theory(name, 8) - 1.0) * theory(name, 8) / means[8, name][1]) > 4.5
    assert np.all(np.abs(slope[0]) < 2.0 + 4.5 * slope[1])  # a relative difference of order 1/M


def test_a_theory_with_one_over_ambient_for_one_over_width_is_told_apart(means):
    for name in REGIMES:
        (limit, _), _ = at_infinite_width(means, name, believed=lambda width: 2 * width - 1)
        assert np.max(np.abs(limit[0]) / limit[1]) > 5.0, name


@pytest.mark.parametrize("alpha", [0.2, 0.4, 0.7])
def test_wide_features_agree_within_the_scatter_of_a_few_draws(alpha):
    """At width 1024 one draw scatters by at most .06 in these numbers, so the mean of 3 by .035."""
    rng, width, told = np.random.default_rng(7), 1024, []
    draws = [drawn(rng, alpha, width, 1) for _ in range(3)]
    for name in draws[0]:
        values = np.concatenate([literal(*one[name], changing(alpha, width)) for one in draws])
        assert np.all(values.std(axis=0, ddof=1) / values.mean(axis=0) < 0.12)
        assert_allclose(values.mean(axis=0), theory(name, width), rtol=0.105)  # 3 standard errors
        told.append(np.abs(values.mean(axis=0) / theory(name, width, 2 * width - 1) - 1.0))
    if alpha < 0.5:  # integrable memory has not seen the width after 60 steps
        assert np.max(told) > 0.105  # 1/M replaced by 1/v


def test_sampled_spectra_of_the_library_scatter_around_the_equivalent():
    problem = rfsim.power_law(0.4, 0.3, ambient=256, noise_var=1.0)
    schedule = changing(0.4, 128)
    mine = rfsim.risk(rfsim.equivalent(problem, 128), schedule, at=AT).risk
    draws = [
        rfsim.risk(rfsim.sample_features(jax.random.key(seed), problem, 128), schedule, at=AT).risk for seed in range(8)
    ]
    assert_allclose(np.mean(draws, axis=0), mine, rtol=4.5 * 0.12 / math.sqrt(8))


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [0, -3, 2.5, math.nan, math.inf, "wide", None, True])
def test_bad_width_is_named(width):
    with pytest.raises(InputError, match="width"):
        rfsim.equivalent(rfsim.power_law(0.7, 0.3, ambient=50), width)


@pytest.mark.parametrize("width", [50, 51, 10**6])
def test_ambient_must_exceed_width(width):
    with pytest.raises(InputError, match=rf"ambient must exceed width, got 50 and {width}.*raise ambient"):
        rfsim.equivalent(rfsim.power_law(0.7, 0.3, ambient=50), width)
    with pytest.raises(InputError, match="ambient must exceed width"):
        rfsim.equivalent(rfsim.problem(np.ones(50), np.ones(50)), width)


@pytest.mark.parametrize("alpha", [0.2, 0.5])
def test_infinite_trace_is_refused(alpha):
    with pytest.raises(InputError, match=r"alpha must exceed 1/2.*finite ambient"):
        rfsim.equivalent(rfsim.power_law(alpha, 0.5), 100)


@pytest.mark.parametrize("spacing", [0.0, -1.0, 0.05, math.nan, "fine"])
def test_bad_spacing_is_named(spacing):
    with pytest.raises(InputError, match="spacing"):
        rfsim.equivalent(rfsim.power_law(0.7, 0.3, ambient=50), 20, spacing=spacing)


def test_nodes_that_are_too_coarse_fail_an_identity_and_say_what_to_do():
    with pytest.raises(RunError, match=r"moment identity is off by .*lower spacing"):
        rfsim.equivalent(rfsim.power_law(0.7, 0.3, ambient=200), 100, spacing=2.0)


@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_a_wrong_fixed_point_never_becomes_a_spectrum(monkeypatch):
    """1/M replaced by 1/v in every transform: the moments are no longer those of M features."""
    right = module._transforms
    monkeypatch.setattr(module, "_transforms", lambda base, width, *rest: right(base, 2.0 * width - 1.0, *rest))
    with pytest.raises(RunError, match=r"identity|outside"):
        rfsim.equivalent(rfsim.power_law(0.7, 0.3, ambient=200), 100)
