"""Few nodes from a Stieltjes transform: discrete measures with exact sums as witness."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rfsim import double_double as dd
from rfsim.checks import RunError
from rfsim.rational_gauss import SPACING, rational_gauss, rule_points


def transform(nodes, weights, points):
    """f(p) = sum w/(l+p) and -f'(p), to 32 digits."""
    inverse = dd.divide(dd.exact(1.0), dd.add(dd.exact(nodes[:, None]), dd.exact(points)))
    value = dd.multiply(dd.exact(weights[:, None]), inverse)
    return dd.total(value), dd.total(dd.multiply(value, inverse))


def rule_of(nodes, weights, *, spacing=SPACING, lower=None, upper=None):
    where = rule_points(lower or nodes.min(), upper or nodes.max(), spacing=spacing)
    return rational_gauss(where, *transform(nodes, weights, where.every))


def laplace(nodes, weights, times):
    return (weights * np.exp(-2.0 * times[:, None] * nodes)).sum(axis=1)


def measures():
    draw = np.random.default_rng(3)
    j = np.arange(1.0, 3001.0)
    return {
        "power": (j**-0.8, j**-1.4),
        "steep": (j**-3.0, j**-2.0),
        "random": (10.0 ** draw.uniform(-4, 0, 2000), draw.exponential(1.0, 2000)),
        "weights over thirty decades": (10.0 ** draw.uniform(-3, 0, 500), 10.0 ** draw.uniform(-30, 0, 500)),
        "gap": (np.concatenate([draw.uniform(0.9, 1.0, 300), draw.uniform(1e-5, 2e-5, 300)]), np.ones(600)),
        "exponential": (np.exp(-np.arange(20.0)), np.ones(20)),
        "repeated": (np.repeat([1.0, 0.3, 0.01], 50), np.ones(150)),
    }


MEASURES = measures()


@pytest.mark.parametrize("name", MEASURES)
def test_laplace_and_stieltjes_sums_of_few_nodes_are_the_full_sums(name):
    nodes, weights = MEASURES[name]
    rule = rule_of(nodes, weights)
    assert rule.nodes.size <= min(nodes.size, (np.log(nodes.max() / nodes.min()) + 6.0) / SPACING + 4)
    times = np.concatenate([[0.0], np.geomspace(1e-2, 5.0 / nodes.min(), 60)])
    # near the end the sum is carried by the lowest few nodes, down to e^-10 of their weight
    wanted = laplace(nodes, weights, times)
    assert_allclose(laplace(*rule, times), wanted, rtol=2e-11, atol=1e-16 * wanted[0])
    for power in (1, 2):
        assert_allclose((rule.weights * rule.nodes**power).sum(), (weights * nodes**power).sum(), rtol=1e-12)
    points = np.geomspace(nodes.min(), nodes.max(), 30)
    found = (rule.weights / (rule.nodes + points[:, None])).sum(axis=1)
    assert_allclose(found, (weights / (nodes + points[:, None])).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("name", MEASURES)
def test_weights_are_positive_and_nodes_lie_inside_the_support_in_order(name):
    nodes, weights = MEASURES[name]
    rule = rule_of(nodes, weights)
    assert np.all(rule.weights >= 0.0)
    assert np.all(np.diff(rule.nodes) > 0.0)
    assert rule.nodes[0] >= nodes.min() * (1.0 - 1e-6)
    assert rule.nodes[-1] <= nodes.max() * (1.0 + 1e-6)


def test_a_measure_of_few_points_is_found_again():
    nodes, weights = np.array([0.002, 0.05, 0.7]), np.array([3.0, 1.0, 0.5])
    rule = rule_of(nodes, weights)
    heavy = rule.weights > 1e-10
    assert_allclose(rule.nodes[heavy], nodes, rtol=1e-10)
    assert_allclose(rule.weights[heavy], weights, rtol=1e-10)


def test_the_error_falls_like_the_exponential_of_one_over_the_spacing():
    j = np.arange(1.0, 2001.0)
    nodes, weights = j**-1.4, j**-1.6
    times = np.geomspace(0.1, 2.0 / nodes.min(), 40)
    wanted = laplace(nodes, weights, times)
    spacings = np.array([2.0, 1.5, 1.2, 1.0, 0.8, 0.65])
    errors = np.array(
        [np.abs(laplace(*rule_of(nodes, weights, spacing=h), times) / wanted - 1.0).max() for h in spacings]
    )
    slope = np.polyfit(1.0 / spacings, np.log(errors), 1)[0]
    assert -2.6 * np.pi**2 < slope < -0.9 * np.pi**2  # a Gauss rule is up to twice as good as the space it comes from
    assert np.all(errors < 20.0 * np.exp(-(np.pi**2) / spacings))


def test_a_measure_on_another_scale_is_as_easy():
    nodes, weights = MEASURES["power"]
    rule, scaled = rule_of(nodes, weights), rule_of(nodes * 2.0**40, weights * 2.0**-20)
    times = np.geomspace(0.1, 1.0 / nodes.min(), 10)
    assert_allclose(laplace(*scaled, times * 2.0**-40) * 2.0**20, laplace(*rule, times), rtol=1e-12)


def test_a_transform_of_another_measure_is_refused():
    nodes, weights = MEASURES["power"]
    with pytest.raises(RunError, match="outside"):
        rule_of(nodes, weights, lower=nodes.min() * 30.0)
    with pytest.raises(RunError, match="outside"):
        rule_of(nodes, weights, upper=nodes.max() / 3.0)


def test_a_transform_with_float64_errors_is_refused():
    nodes, weights = MEASURES["power"]
    where = rule_points(nodes.min(), nodes.max())
    value, slope = transform(nodes, weights, where.every)
    draw = np.random.default_rng(0)
    noisy = dd.exact(value.high * (1.0 + 1e-12 * draw.standard_normal(value.high.shape)))
    with pytest.raises(RunError, match="not accurate enough"):
        rational_gauss(where, noisy, slope)


@pytest.mark.parametrize("spacing", [0.2, 0.7])
def test_points_cover_the_support_and_shifts_lie_between_them(spacing):
    where = rule_points(1e-6, 2.0, spacing=spacing)
    points, shifts = where.every[: where.points], where.every[where.points :]
    above = -points[points < 0.0]
    points = points[points > 0.0]
    assert 2.0 < above.min() < 2.001
    assert above.max() == 4.0
    assert np.all(np.abs(np.diff(np.log(points))) <= spacing * (1.0 + 1e-12))
    assert points.min() < 1e-6 < 2.0 < points.max()
    assert shifts.size >= 2
    distance = np.abs(np.log(shifts[:, None] / points)).min(axis=1)
    assert_allclose(distance, np.abs(np.diff(np.log(points))).min() / 2.0, rtol=1e-6)
