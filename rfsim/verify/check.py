"""The record of one check, and the few ways in which a check is decided."""

import math
from typing import NamedTuple

Value = float | str | None


class Check(NamedTuple):
    """One statement put to the test.

    name : "family/part"; statement : one sentence with the formula; predicted, measured : numbers, words or None;
    tolerance : largest |measured - predicted| that passes, None where words are compared; seconds : time it took.
    """

    name: str
    statement: str
    predicted: Value
    measured: Value
    tolerance: float | None
    passed: bool
    seconds: float = 0.0
    family: str = ""


def near(name: str, statement: str, predicted: float, measured: float, tolerance: float) -> Check:
    """Passed iff |measured - predicted| <= tolerance (never for NaN)."""
    predicted, measured, tolerance = float(predicted), float(measured), float(tolerance)
    passed = math.isfinite(measured) and math.isfinite(tolerance) and abs(measured - predicted) <= tolerance
    return Check(
        name, statement, _told(predicted), _told(measured), tolerance if math.isfinite(tolerance) else None, passed
    )


def above(name: str, statement: str, threshold: float, measured: float) -> Check:
    """Passed iff measured > threshold."""
    passed = not math.isnan(measured) and measured > threshold
    return Check(name, statement, f"above {threshold:.6g}", _told(float(measured)), None, bool(passed))


def same(name: str, statement: str, predicted: str, measured: str) -> Check:
    """Passed iff the two words are equal."""
    return Check(name, statement, predicted, measured, None, predicted == measured)


def failure(name: str, reason: str) -> Check:
    """A check that could not be finished, with the reason as its measured value."""
    return Check(name, "the check could not be finished", None, reason, None, False)


def _told(value: float) -> float | str:
    """Numbers that JSON does not know become words."""
    return value if math.isfinite(value) else str(value)
