"""Agreement of a sampled mean with an exact curve at many points at once."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from rfsim.checks import InputError, finite_number, finite_vector, non_negative_number, positive_number, whole_number


class Agreement(NamedTuple):
    """Outcome of `agreement`: `points` were judged by their z-score, `excluded` by equality."""

    max_abs_z: float
    threshold: float
    false_alarm_rate: float
    passed: bool
    points: int
    excluded: int


def family_threshold(points: int, false_alarm_rate: float, degrees_of_freedom: float | None = None) -> float:
    """Threshold for max |z| over `points` tests with the stated chance of any false alarm (Bonferroni).

    It solves points * P(|z| > threshold) = false_alarm_rate for a normal z, or for Student's t when the standard
    errors come from samples (`degrees_of_freedom` = runs - 1). No independence is needed: with correlated points, as
    along one learning curve, the true rate is lower, so the test is conservative.

    Raises
    ------
    InputError: points < 1, a rate outside (0, 1), degrees_of_freedom <= 0.
    """
    number = whole_number("points", points)
    rate = finite_number("false_alarm_rate", false_alarm_rate)
    if not 0.0 < rate < 1.0:
        raise InputError(f"false_alarm_rate must be between 0 and 1, got {rate:g}; pass for instance 0.001")
    tail = rate / (2.0 * number)
    if degrees_of_freedom is None:
        return float(-special.ndtri(tail))
    return float(stats.t.isf(tail, positive_number("degrees_of_freedom", degrees_of_freedom)))


def agreement(
    value_a: ArrayLike,
    value_b: ArrayLike,
    stderr: ArrayLike,
    *,
    runs: int | None = None,
    false_alarm_rate: float = 1e-3,
    rtol: float = 1e-10,
) -> Agreement:
    """Does a sampled mean agree with an exact curve at all points at once?

    z = (value_a - value_b)/stderr wherever stderr > 1e-12 |value_a|; `passed` needs max |z| <= `family_threshold`
    over these points (Student's t with runs - 1 degrees of freedom if `runs` is given). Points with a smaller stderr
    are not random (step 0): they must be equal to relative `rtol` and are counted in `excluded`. Means of few runs of
    a skewed quantity are not normal; take enough runs for the far tail, or a smaller false-alarm rate.

    Parameters
    ----------
    value_a, value_b, stderr: arrays of one shape: the sampled mean, the exact values, the standard error of the mean.
    runs: number of independent runs behind the mean, at least 2.
    false_alarm_rate: chance that a correct curve fails.
    rtol: relative difference allowed at points that are not random.

    Raises
    ------
    InputError: shapes that differ, entries that are not finite, a negative stderr, a bad rate.
    """
    given = {"value_a": value_a, "value_b": value_b, "stderr": stderr}
    shapes = {name: np.shape(np.asarray(array)) for name, array in given.items()}
    if len(set(shapes.values())) > 1:
        raise InputError(f"value_a, value_b and stderr must have one shape, got {shapes}; compare equal step lists")
    a, b, s = (finite_vector(name, np.ravel(np.asarray(array))) for name, array in given.items())
    s = finite_vector("stderr", s, least=0.0)
    tolerance = non_negative_number("rtol", rtol)
    freedom = None if runs is None else whole_number("runs", runs, least=2) - 1
    random = s > 1e-12 * np.abs(a)
    number = int(random.sum())
    threshold = family_threshold(max(number, 1), false_alarm_rate, freedom)
    largest = float(np.max(np.abs(a - b)[random] / s[random], initial=0.0))
    equal = np.abs(a - b)[~random] <= tolerance * np.maximum(np.abs(a), np.abs(b))[~random]
    passed = largest <= threshold and bool(equal.all())
    return Agreement(largest, threshold, float(false_alarm_rate), passed, number, len(s) - number)
