"""Late risk of constant schedules: exact risk over the renewal formula tends to one, at the published pace."""

import numpy as np
import pytest

from rfsim.checks import InputError
from rfsim.problems import power_law
from rfsim.renewal import renewal_risk
from rfsim.routes import jump, recursion, volterra
from rfsim.schedules import constant
from rfsim.sources.equivalent import equivalent
from rfsim.sources.population import population
from rfsim.spectra import spectrum
from rfsim.stretches import stretches

TIMES = np.array([1e2, 1e3, 1e4, 1e5, 1e6, 1e7])
RATIOS = {  # theory: exact over predicted at TIMES, eta .2, B 1
    (0.7, 0.9): (0.877, 0.926, 0.957, 0.976, 0.987, 0.993),
    (0.9, 1.5): (1.031, 1.002, 0.9989, 0.9994, 0.9997, 0.9999),
}


def exact(source, lr, batch, steps):
    return jump.risk(source, stretches([lr], [batch], [int(steps[-1])]), at=steps)


@pytest.mark.parametrize("point", RATIOS)
def test_exact_risk_tends_to_the_renewal_formula(point):
    source = population(power_law(*point))
    found = renewal_risk(source, 0.2, 1, TIMES)
    ratio = exact(source, 0.2, 1, TIMES).risk / found.risk
    digits = np.where(np.array(RATIOS[point]) > 0.998, 1e-4, 1e-3)
    if point == (0.9, 1.5):
        digits[:2] = 1e-3
    np.testing.assert_array_less(np.abs(ratio - RATIOS[point]), 0.51 * digits)
    assert found.gap == pytest.approx(np.zeros(TIMES.size))


def test_published_sums():
    found = renewal_risk(population(power_law(0.7, 0.9)), 0.2, 1, [0.0])
    assert found.kernel_mass == pytest.approx(0.34079, abs=5e-6)
    assert found.forcing_sum == pytest.approx(5.4194, abs=5e-5)


def test_sums_and_terms_are_those_of_the_explicit_kernel():
    """A small spectrum, where F and K are summed lag by lag."""
    lr, batch, steps = 0.3, 2.0, 400
    source = spectrum([1.0, 0.4, 0.15], [0.5, 0.3, 0.2], multiplicity=[1.0, 2.0, 1.5], floor=0.1, noise_var=0.7)
    forcing = np.asarray(volterra.risk(source, constant(steps, lr, batch), at=np.arange(steps + 1)).forcing) - 0.1
    lam, count = np.array([1.0, 0.4, 0.15]), np.array([1.0, 2.0, 1.5])
    q = 1 - 2 * lr * lam + 1.5 * (lr * lam) ** 2
    kernel = np.array([np.sum(lr**2 / batch * count * lam**2 * q**lag) for lag in range(2000)])
    mass = kernel.sum()
    for time in (0, 1, 7, 40):
        found = renewal_risk(source, lr, batch, time)
        unit = mass / (1 - mass) - kernel[time:].sum() / (1 - mass) ** 2
        clean = 0.1 * (1 + unit) + forcing[time] / (1 - mass) + forcing.sum() * kernel[time] / (1 - mass) ** 2
        assert found.gap[0] == pytest.approx(0.7 * unit, rel=1e-10)
        assert found.clean[0] == pytest.approx(clean, rel=1e-10)
        assert found.risk[0] == found.clean[0] + found.gap[0]


def test_the_gap_approaches_its_limit_by_the_kernel_mass_that_is_missing():
    source = population(power_law(0.9, 0.5, noise_var=2.0))
    found = renewal_risk(source, 0.2, 1, TIMES)
    curve = exact(source, 0.2, 1, TIMES)
    left = 2.0 * found.kernel_mass / (1 - found.kernel_mass) - np.asarray(curve.gap)
    predicted = 2.0 * found.kernel_mass / (1 - found.kernel_mass) - found.gap
    distance = np.abs(left / predicted - 1)
    assert (np.diff(distance) < 0).all()
    assert distance[-1] < 0.01


def test_floor_of_a_finite_width_is_lifted_by_the_kernel_mass():
    source = equivalent(power_law(0.7, 0.9, ambient=400), 200)
    late = 10**7  # every mode has died out
    found = renewal_risk(source, 0.2, 1, late)
    assert float(found.risk[0]) == pytest.approx(float(source.floor) / (1 - found.kernel_mass), rel=1e-9)
    assert float(exact(source, 0.2, 1, np.array([late])).risk[0]) == pytest.approx(float(found.risk[0]), rel=1e-8)
    short = recursion.risk(source, constant(3000, 0.2, 1), at=[3000]).risk[0]
    assert float(short) == pytest.approx(float(renewal_risk(source, 0.2, 1, 3000).risk[0]), rel=0.1)


def test_unstable_rates_and_bad_steps_are_refused():
    source = population(power_law(0.7, 0.9))
    with pytest.raises(InputError, match="stability limit"):
        renewal_risk(source, 1.0, 1, [10])
    with pytest.raises(InputError, match="steps"):
        renewal_risk(source, 0.2, 1, [-1.0])
