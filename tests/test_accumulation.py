"""Accumulated noise of the unit profile: published local exponents, quadrature in extended precision, closed forms."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfsim.accumulation import unit_accumulation, unit_local_exponent, unit_window_exponent
from rfsim.checks import InputError
from rfsim.gap_laws import gap_law

TIMES = (1e2, 1e3, 1e4, 1e6, 1e9, 1e14)
TABLE = {  # theory: finite-window traps, four digits
    (0.5, 0.8): (0.1746, 0.2424, 0.2691, 0.2892, 0.2974, 0.2997),
    (0.5, 1.0): (0.3037, 0.3739, 0.4044, 0.4341, 0.4548, 0.4703),
    (1.0, 0.5): (0.3037, 0.3739, 0.4044, 0.4341, 0.4548, 0.4703),
    (0.75, 0.25): (-0.1082, -0.0491, -0.0250, -0.0073, -0.0013, -0.0001),
    (0.75, 0.35): (-0.0086, 0.0523, 0.0761, 0.0931, 0.0988, 0.0999),
    (0.75, 0.5): (0.1374, 0.2027, 0.2272, 0.2436, 0.2489, 0.2499),
    (0.75, 0.75): (0.3632, 0.4398, 0.4697, 0.4912, 0.4985, 0.4999),
    (0.75, 0.9): (0.4813, 0.5621, 0.5955, 0.6241, 0.6393, 0.6469),
    (0.75, 1.0): (0.5499, 0.6291, 0.6616, 0.6905, 0.7087, 0.7221),
    (0.75, 1.25): (0.6782, 0.7320, 0.7448, 0.7495, 0.7500, 0.7500),
    (0.75, 2.0): (0.7685, 0.7545, 0.7507, 0.7500, 0.7500, 0.7500),
    (1.0, 1.0): (0.7659, 0.8534, 0.8912, 0.9276, 0.9517, 0.9690),
    (1.0, 1.5): (1.0124, 1.0279, 1.0155, 1.0028, 1.0001, 1.0000),
    (7 / 6, 0.0): (-0.1425, -0.0770, -0.0458, -0.0185, -0.0054, -0.0008),
    (7 / 6, 0.25): (0.1208, 0.1822, 0.2095, 0.2334, 0.2451, 0.2493),
    (7 / 6, 0.5): (0.3844, 0.4443, 0.4673, 0.4865, 0.4960, 0.4994),
    (7 / 6, 1.0): (0.8800, 0.9584, 0.9866, 1.0052, 1.0074, 1.0026),
    (7 / 6, 7 / 6): (1.0133, 1.0936, 1.1240, 1.1494, 1.1616, 1.1659),
    (7 / 6, 1.5): (1.1821, 1.2070, 1.1947, 1.1749, 1.1676, 1.1667),
}


def witness(q_memory: float, vartheta: float, time: float) -> mpmath.mpf:
    """I(T) by quadrature with 30 digits, each half in the logarithm of the distance to its end."""
    with mpmath.workdps(30):
        q, v, t = mpmath.mpf(q_memory), mpmath.mpf(vartheta), mpmath.mpf(time)
        knots = mpmath.linspace(0, mpmath.log(1 + t / 2), 9)
        early = mpmath.quad(lambda s: (t + 2 - mpmath.exp(s)) ** -q * mpmath.exp((1 - v) * s), knots)
        late = mpmath.quad(lambda s: (t + 2 - mpmath.exp(s)) ** -v * mpmath.exp((1 - q) * s), knots)
        return early + late


@pytest.mark.parametrize("point", TABLE)
def test_published_local_exponents(point: tuple[float, float]) -> None:
    found = [unit_local_exponent(*point, time) for time in TIMES]
    np.testing.assert_allclose(found, TABLE[point], rtol=0.0, atol=1e-4)  # printed to four digits
    law = gap_law(*point)
    assert abs(found[-1] - law.exponent) < (1.1 / math.log(1e14) if law.logarithm else 4e-3)


POINTS = [(0.5, 0.8), (0.75, 1.0), (1.0, 1.0), (7 / 6, 7 / 6), (1.0 - 1e-9, 2.0), (3.0, -1.5), (12.0, 0.3), (0.4, 25.0)]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("time", [1e-3, 1.0, 1e3, 1e14])
def test_value_and_slope_against_extended_precision(point: tuple[float, float], time: float) -> None:
    value = witness(*point, time)
    assert unit_accumulation(*point, time) == pytest.approx(float(value), rel=1e-11)
    with mpmath.workdps(30):
        step = mpmath.mpf("1e-6")  # the central difference is off by step^2/6 times a third derivative of order 1
        sides = [witness(*point, time * mpmath.exp(s)) for s in (-step, step)]
        slope = -mpmath.log(sides[1] / sides[0]) / (2 * step)
    assert unit_local_exponent(*point, time) == pytest.approx(float(slope), abs=1e-9)


def test_exponents_zero_and_one_in_closed_form() -> None:
    for time in (0.3, 40.0, 1e10):
        assert unit_accumulation(1.0, 0.0, time) == pytest.approx(math.log1p(time), rel=1e-14)
        # partial fractions of 1/((1 + T - u)(1 + u))
        assert unit_accumulation(1.0, 1.0, time) == pytest.approx(2 * math.log1p(time) / (time + 2), rel=1e-14)
        assert unit_accumulation(2.0, 0.0, time) == pytest.approx(time / (1 + time), rel=1e-13)


@given(st.floats(0.05, 3.0), st.floats(0.0, 3.0), st.floats(-2.0, 14.0))
def test_profile_and_ratio_change_places(q_memory: float, vartheta: float, decades: float) -> None:
    vartheta += 0.05
    one, other = (unit_accumulation(*pair, 10.0**decades) for pair in ((q_memory, vartheta), (vartheta, q_memory)))
    assert one == pytest.approx(other, rel=1e-12)
    assert one > 0.0


@pytest.mark.parametrize("point", [(0.5, 0.8), (0.75, 1.0), (7 / 6, 0.5), (7 / 6, 1.5)])
def test_a_window_gives_its_least_squares_slope(point: tuple[float, float]) -> None:
    window = (40.0, 1e4)
    places = np.linspace(*np.log(window), 4001)
    values = [float(np.log(unit_accumulation(*point, math.exp(place)))) for place in places]
    half = np.ones(places.size)
    half[[0, -1]] = math.sqrt(0.5)  # trapezoidal: the ends stand for half a cell
    slope = -np.polyfit(places, values, 1, w=half)[0]
    assert unit_window_exponent(*point, window) == pytest.approx(slope, abs=1e-6)
    assert unit_window_exponent(*point, (1e3, 1.001e3)) == pytest.approx(unit_local_exponent(*point, 1e3), abs=1e-4)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: unit_accumulation(0.0, 0.5, 1.0), "q_memory"),
        (lambda: unit_accumulation(31.0, 0.5, 1.0), "q_memory"),
        (lambda: unit_local_exponent(0.5, math.nan, 1.0), "vartheta"),
        (lambda: unit_local_exponent(0.5, -31.0, 1.0), "vartheta"),
        (lambda: unit_local_exponent(0.5, 0.5, 0.0), "time"),
        (lambda: unit_window_exponent(0.5, 0.5, (10.0, 10.0)), "window"),
        (lambda: unit_window_exponent(0.5, 0.5, (0.0, 10.0)), "window"),
    ],
)
def test_bad_input_is_named(call, word: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=word):
        call()
