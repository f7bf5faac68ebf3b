"""m(z), omega, edges and kappa of the deterministic equivalent against closed forms, mpmath and published digits."""

import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

import rfsim
from rfsim.checks import InputError
from rfsim.sources.equivalent import equivalent_details
from rfsim.sources.fixed_point import in_upper_half_plane, inverse_omega, kernel_mass, on_negative_axis, support
from rfsim.sources.population import population

QUARTER = rfsim.problem([1.0, 1 / 4, 1 / 9, 1 / 16], [1.0, 0.5, 0.25, 0.125])  # the smallest example of the theory


def base(eigenvalues, target=1.0):
    lam = np.asarray(eigenvalues, dtype=float)
    return population(rfsim.problem(lam, target * np.ones(lam.size)))


def power(alpha, ambient):
    return base(np.arange(1.0, ambient + 1.0) ** (-2.0 * alpha))


def negative(spectrum, width, points):
    return on_negative_axis(spectrum, width, np.asarray(points, dtype=float))[0]


# --- published and closed values -------------------------------------------------------------------------------------


def test_published_values():
    spectrum = population(QUARTER)
    assert_allclose(negative(spectrum, 2, [1.0, 0.1]), [0.6721723755549672, 0.2599824749063969], rtol=1e-13)
    found = in_upper_half_plane(spectrum, 2, [0.3 + 0.2j, 2 + 0.5j])
    expected = [0.46082489032994 - 0.60059019604535j, 1.19251212008755 - 0.58936436489544j]
    assert_allclose(found, expected, rtol=1e-12)
    root = inverse_omega(spectrum, 2)
    assert_allclose(1.0 / root.high, 5.100553642072536, rtol=1e-14)
    floor = np.sum(spectrum.forcing_energy * root.high / (spectrum.eigenvalues + root.high))
    assert_allclose(floor, 0.1965633568481272, rtol=1e-13)


@pytest.mark.parametrize(("ambient", "width"), [(2, 1), (3, 2), (40, 20), (10, 9), (1000, 10)])
def test_flat_spectrum_is_marchenko_and_pastur(ambient, width):
    """m^2 + (v/M - 1 - z) m + z = 0."""
    spectrum, c = base(np.ones(ambient)), ambient / width
    points = np.geomspace(1e-4, 1e4, 30)
    half = (c - 1.0 + points) / 2.0
    assert_allclose(negative(spectrum, width, points), points / (half + np.sqrt(half**2 + points)), rtol=1e-13)
    z = np.array([0.5 + 0.3j, 3.0 + 0.01j, -2.0 + 1.0j, 0.01 + 0.01j])
    m = in_upper_half_plane(spectrum, width, z)
    assert_allclose(m**2 + (c - 1.0 - z) * m + z, 0.0, atol=1e-13 * np.abs(z).max())
    assert np.all(m.imag < 0.0)
    start = float(inverse_omega(spectrum, width).high)
    assert_allclose(start, c - 1.0, rtol=1e-14)
    assert_allclose(support(spectrum, width, start), [(1.0 - math.sqrt(c)) ** 2, (1.0 + math.sqrt(c)) ** 2], rtol=1e-11)


def test_two_values_of_the_flat_spectrum():
    assert_allclose(negative(base(np.ones(2)), 1, [1.0]), math.sqrt(2.0) - 1.0, rtol=1e-15)
    assert_allclose(negative(base(np.ones(3)), 2, [1.0]), 0.5, rtol=1e-15)
    assert_allclose(in_upper_half_plane(base(np.ones(3)), 2, 0.5 + 0.3j), 0.2 - 0.6j, rtol=1e-13)


# --- the equations themselves ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "width", "ambient"), [(0.2, 50, 100), (0.4, 30, 31), (0.7, 100, 300), (2.0, 5, 40)])
def test_the_equation_holds_on_and_off_the_negative_axis(alpha, width, ambient):
    spectrum, lam = power(alpha, ambient), np.arange(1.0, ambient + 1.0) ** (-2.0 * alpha)
    points = np.geomspace(1e-3 * lam[-1], 1e3, 40)
    m, residual = on_negative_axis(spectrum, width, points)
    assert residual < 1e-14
    assert np.all((m > 0.0) & (m < 1.0))
    assert np.all(np.diff(m) > 0.0)
    for p, value in zip(points, m, strict=True):
        assert abs(value * (1.0 + np.sum(lam / (lam * value + p)) / width) - 1.0) < 1e-13
    z = np.outer(np.geomspace(0.3 * lam[-1], 10.0, 9), np.exp(1j * np.array([0.3, 1.0, 2.5]))).ravel()
    m = in_upper_half_plane(spectrum, width, z)
    for at, value in zip(z, m, strict=True):
        assert abs(value * (1.0 + np.sum(lam / (lam * value - at)) / width) - 1.0) < 1e-12
        assert value.imag < 0.0


def test_off_the_axis_joins_the_axis_and_infinity():
    spectrum = power(0.5, 60)
    near = in_upper_half_plane(spectrum, 20, [-0.3 + 1e-9j])
    assert_allclose(near.real, negative(spectrum, 20, [0.3]), rtol=1e-9)
    far = in_upper_half_plane(spectrum, 20, [1e6j])
    trace = float(np.sum(spectrum.eigenvalues)) / 20
    assert_allclose((far - 1.0) * 1e6j, trace, rtol=1e-5)  # m = 1 + tr Lambda/(M z) + ...


@pytest.mark.parametrize(("alpha", "width", "ambient"), [(0.3, 20, 40), (0.7, 5, 500), (1.5, 30, 31)])
def test_omega_has_thirty_digits(alpha, width, ambient):
    spectrum = power(alpha, ambient)
    root = inverse_omega(spectrum, width)
    with mpmath.workdps(50):
        found = mpmath.mpf(float(root.high)) + mpmath.mpf(float(root.low))
        lam = [mpmath.mpf(float(value)) for value in spectrum.eigenvalues]
        excess = mpmath.fsum(value / (value + found) for value in lam) - width
        slope = mpmath.fsum(value / (value + found) ** 2 for value in lam)
        assert abs(excess / slope / found) < mpmath.mpf(10) ** -30


@pytest.mark.parametrize(
    ("alpha", "width", "ambient"), [(0.2, 50, 100), (0.7, 100, 300), (0.7, 100, 102), (2.0, 5, 40)]
)
def test_nothing_lies_outside_the_edges_and_something_inside(alpha, width, ambient):
    """The density -Im[M (1 - m)/z]/pi vanishes beyond the edges and starts at them."""
    spectrum = power(alpha, ambient)
    lower, upper = support(spectrum, width, float(inverse_omega(spectrum, width).high))
    assert 0.0 < lower < upper
    outside = np.array([lower * 0.999, lower * 0.9, upper * 1.001, upper * 1.1])
    inside = np.array([lower * 1.001, lower * 1.1, upper * 0.999, upper * 0.9])
    tiny = 1e-9

    def density(x):
        m = in_upper_half_plane(spectrum, width, x * (1.0 + tiny * 1j))
        return np.abs((width * (1.0 - m) / x).imag) * x / width

    assert np.max(density(outside)) < 1e-4 * np.min(density(inside))


def test_extreme_eigenvalues_of_one_large_draw_lie_at_the_edges():
    width, ambient = 200, 400
    problem = rfsim.power_law(0.6, 0.3, ambient=ambient)
    spectrum = population(problem)
    lower, upper = support(spectrum, width, float(inverse_omega(spectrum, width).high))
    weights = np.random.default_rng(1).standard_normal((ambient, width)) / math.sqrt(width)
    drawn = rfsim.feature_spectrum(rfsim.Features(problem, weights)).eigenvalues
    assert_allclose(drawn.min(), lower, rtol=0.12)  # fluctuations of order M^(-2/3) = .03
    assert_allclose(drawn.max(), upper, rtol=0.4)  # one isolated eigenvalue, fluctuations (2/M)^(1/2) = .1


# --- kappa -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "width", "ambient"), [(0.3, 40, 80), (0.7, 300, 10**6), (0.6, 10**9, 2 * 10**9)])
@pytest.mark.parametrize("batch", [1.0, 1e6])
def test_kappa_of_the_transform_is_kappa_of_the_nodes(alpha, width, ambient, batch):
    problem = rfsim.power_law(alpha, 0.3, ambient=ambient)
    found, spectrum = equivalent_details(problem, width), population(problem)
    for share, tolerance in ((0.01, 1e-13), (0.25, 1e-12), (0.5, 1e-10)):  # of the pointwise limit
        lr = share * 2.0 / ((1.0 + 1.0 / batch) * found.upper_edge)
        kappa = kernel_mass(spectrum, width, lr, batch)
        assert_allclose(rfsim.kappa(found.spectrum, lr, batch), kappa, rtol=tolerance)


def test_kappa_in_thirty_digits():
    """M (m(z) - 1)/(B + 1) at z = 2B/((B + 1) lr), from the root of the fixed-point equation in mpmath."""
    lam = np.arange(1.0, 41.0) ** -1.4
    with mpmath.workdps(40):
        z = mpmath.mpf(2) * 4 / (5 * mpmath.mpf(0.05))
        exact = [mpmath.mpf(float(value)) for value in lam]
        m = mpmath.findroot(lambda m: m * (1 + mpmath.fsum(x / (x * m - z) for x in exact) / 20) - 1, 1.05)
        expected = float(20 * (m - 1) / 5)
    assert_allclose(kernel_mass(base(lam), 20, 0.05, 4.0), expected, rtol=1e-14)


def test_kappa_diverges_where_its_point_enters_the_spectrum():
    spectrum = power(0.7, 40)
    _, upper = support(spectrum, 20, float(inverse_omega(spectrum, 20).high))
    edge = 2.0 / (1.5 * upper)
    assert math.isfinite(kernel_mass(spectrum, 20, edge * (1.0 - 1e-6), 2.0))
    assert kernel_mass(spectrum, 20, edge * 1.001, 2.0) == math.inf
    assert kernel_mass(spectrum, 20, 1e3, 2.0) == math.inf


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("z", [1.0, 1.0 - 0.1j, np.nan, np.inf * 1j, [1j, 2.0]])
def test_points_outside_the_upper_half_plane_are_refused(z):
    with pytest.raises(InputError, match="positive imaginary part"):
        in_upper_half_plane(power(0.5, 10), 5, z)
