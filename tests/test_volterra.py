"""The explicit kernel and the Volterra equation against written-out loops."""

from fractions import Fraction

import numpy as np
import oracles
import pytest
from cases import every_step, random_case
from numpy.testing import assert_allclose, assert_array_equal

import rfsim
from rfsim.routes import recursion, volterra
from rfsim.schedules import constant, from_arrays


def two_modes(**changes):
    return rfsim.spectrum([1.0, 0.25], [1.0, 1.0], floor=0.1, noise_var=1.0).replace(**changes)


def test_exact_rationals():
    schedule = constant(3, 0.5, 2.0)
    kernel = volterra.kernel(two_modes(), schedule)
    lags = [float(Fraction(text)) for text in ("17/128", "867/16384", "46665/2097152")]
    assert kernel.shape == (4, 3)
    for lag, value in enumerate(lags, start=1):
        assert_allclose(np.diagonal(kernel, -lag), value, rtol=1e-15)
    assert_array_equal(np.triu(kernel), 0.0)
    forcing = [float(Fraction(text)) for text in ("21/10", "799/640", "68717/81920", "6453031/10485760")]
    assert_allclose(volterra.forcing(two_modes(), schedule), forcing, rtol=1e-15)
    risk = [float(Fraction(text)) for text in ("21/10", "425/256", "55549/40960", "745857/655360")]
    assert_allclose(volterra.risk(two_modes(), schedule, at=range(4)).risk, risk, rtol=1e-15)


def test_oracle_gives_the_same_rationals():
    half, one = Fraction(1, 2), Fraction(1)
    kernel = oracles.kernel_loop([one, one / 4], [half] * 3, [2 * one] * 3)
    assert [kernel[t][0] for t in (1, 2, 3)] == oracles.as_fractions(["17/128", "867/16384", "46665/2097152"])
    risk = oracles.volterra_loop([one, one / 4], [one, one], one / 10, one, [half] * 3, [2 * one] * 3)
    assert risk == oracles.as_fractions(["21/10", "425/256", "55549/40960", "745857/655360"])


@pytest.mark.parametrize("seed", range(4))
def test_kernel_and_forcing_equal_the_loops(seed):
    case = random_case(seed, steps=7, multiplicity=seed % 2 == 0)
    lam, energy, floor, _, lr, batch, count = case.plain
    expected = np.array(oracles.kernel_loop(lam, lr, batch, count))
    assert_allclose(volterra.kernel(case.spectrum, case.schedule), expected, rtol=1e-13)
    assert_allclose(volterra.row_sums(case.spectrum, case.schedule), expected.sum(axis=1), rtol=1e-13)
    expected = oracles.forcing_loop(lam, energy, floor, lr, batch)
    assert_allclose(volterra.forcing(case.spectrum, case.schedule), expected, rtol=1e-13)
    assert_allclose(
        rfsim.kernel(case.spectrum, case.schedule)[1, 0], lr[0] ** 2 / batch[0] * np.dot(count, np.square(lam))
    )


def test_row_sums_equal_the_row_mass_of_the_recursion():
    case = random_case(31, steps=40, multiplicity=True, whole_batches=False)
    mass = recursion.row_mass(case.spectrum, case.schedule, at=every_step(case.schedule))
    assert_allclose(volterra.row_sums(case.spectrum, case.schedule), mass, rtol=1e-12)
    assert_allclose(rfsim.row_mass(case.spectrum, case.schedule, at=[0, 40]), mass[[0, 40]], rtol=1e-15)


def test_a_silent_first_step_injects_nothing():
    schedule = from_arrays([0.0, 0.5, 0.3], [1.0, np.inf, 2.0])
    kernel = volterra.kernel(two_modes(), schedule)
    assert_array_equal(kernel[:, :2], 0.0)  # lr 0 and infinite batch
    assert kernel[3, 2] > 0.0


def test_zero_steps():
    empty = constant(0, 0.1, 1.0)
    assert volterra.kernel(two_modes(), empty).shape == (1, 0)
    assert_array_equal(volterra.forcing(two_modes(), empty), [2.1])
    assert_array_equal(volterra.risk(two_modes(), empty).risk, [2.1])


def test_room_is_asked_for_before_work_starts():
    schedule = constant(100_000, 0.1, 1.0)
    for use in (volterra.kernel, volterra.risk, volterra.forcing):
        with pytest.raises(rfsim.RunError, match=r"needs \d+\.\d GiB"):
            use(two_modes(), schedule)


def test_default_recorded_steps_end_with_the_last():
    curve = volterra.risk(two_modes(), constant(300, 0.1, 4.0))
    assert curve.step[0] == 0
    assert curve.step[-1] == 300
    assert len(curve.step) < 301
    assert_allclose(curve.intrinsic_time, 0.1 * curve.step, rtol=1e-14)
