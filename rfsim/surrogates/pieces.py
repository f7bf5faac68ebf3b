"""A schedule as few pieces: the rate at which noise is injected, piecewise linear in the clock."""

from typing import NamedTuple

import numpy as np

from rfsim.checks import InputError, positive_number, same_length
from rfsim.schedules import intrinsic_time

_TOLERANCE = 2e-5  # largest error of a piece whose rate is the largest of all, over this rate
_POWER = 0.3  # the error of other pieces falls with this power of their largest rate,
_LEAST = 1e-3  # down to this share of the largest of all
_WITHIN = 0.25  # of the largest rate of a piece of several steps: the most that it may change within one of them
_SLIVER = 1e-13  # rates closer than this, relative, are equal


class Pieces(NamedTuple):
    """A function of the clock u that is linear on each of n pieces and may jump between them.

    edges : (n+1,) increasing, from 0 to the end of the clock.
    left, right : (n,) values of the function at the two ends of each piece.
    """

    edges: np.ndarray
    left: np.ndarray
    right: np.ndarray


def pieces(increment: np.ndarray, rate: np.ndarray, *, tolerance: float = _TOLERANCE) -> Pieces:
    """Describe the function whose value is rate_s during step s, a stretch increment_s of the clock, by few pieces.

    Parameters
    ----------
    increment : (N,) clock increments >= 0; a step that moves no clock injects nothing and is left out.
    rate : (N,) values >= 0.
    tolerance : a piece of several steps differs from each of them, at its middle, by at most this share of the largest
        rate of all times x^0.3, x (at least 1e-3) being the largest rate of the piece over that of all. It has their
        integral over the clock exactly.

    Returns
    -------
    Pieces. Steps of equal rate become one piece exactly; where the rate changes, halves of halves become straight
    lines as long as the tolerance allows and each step is a small part of the line; a jump stays a jump, and
    so do two of them one step apart.

    Raises
    ------
    InputError : for arrays of different length, or a clock that never moves.
    """
    step, value = np.asarray(increment, dtype=np.float64), np.asarray(rate, dtype=np.float64)
    same_length(increment=step, rate=value)
    positive_number("tolerance", tolerance)
    moving = step > 0.0
    if not moving.any():
        raise InputError("the clock never moves (lr 0 at every step); give a schedule with a positive lr")
    clock, value = intrinsic_time(step[moving]), value[moving]
    longer = np.diff(clock) > 0.0  # a step below the resolution of the clock adds nothing
    clock, value = clock[np.concatenate([[True], longer])], value[longer]
    step = np.diff(clock)
    largest = float(value.max()) or 1.0
    runs = np.flatnonzero(np.concatenate([[True], np.abs(np.diff(value)) > _SLIVER * largest]))
    runs = np.append(runs, len(value))
    held = np.diff(runs) > 1  # a run of equal rates is a piece of its own
    starts, left, right = [runs[:-1][held]], [value[runs[:-1][held]]], [value[runs[:-1][held]]]
    # the stretches between such runs: refine each by halving until a line fits
    edges = np.flatnonzero(np.diff(np.concatenate([[0], (~held).astype(np.int8), [0]])))
    first, last = runs[edges[0::2]], runs[edges[1::2]]
    middle = 0.5 * (clock[1:] + clock[:-1])
    area = np.concatenate([[0.0], np.cumsum(value * step)])
    while first.size:
        low, high, worst, top, within = _chords(first, last, clock, middle, value, step, area)
        single = last - first == 1
        bound = tolerance * largest * np.maximum(top / largest, _LEAST) ** _POWER
        apart = (last - first == 2) & (np.abs(value[last - 1] - value[first]) > bound)  # always on a line
        good = single | ((worst <= bound) & (within <= np.maximum(_WITHIN * top, bound)) & ~apart)
        low, high = np.where(single, value[first], low), np.where(single, value[first], high)
        starts.append(first[good])
        left.append(low[good])
        right.append(high[good])
        first, last = first[~good], last[~good]
        half = (first + last) // 2
        first, last = np.concatenate([first, half]), np.concatenate([half, last])
    begin = np.concatenate(starts)
    order = np.argsort(begin)
    ends = np.concatenate([clock[begin[order]], clock[-1:]])
    return Pieces(ends, np.concatenate(left)[order], np.concatenate(right)[order])


def _chords(
    first: np.ndarray,
    last: np.ndarray,
    clock: np.ndarray,
    middle: np.ndarray,
    value: np.ndarray,
    step: np.ndarray,
    area: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Line through the first and last step of each stretch, shifted to the stretch's area: its values at both ends.

    Then its largest error, the largest value of the stretch, and the most that the line changes within a step.
    """
    length = clock[last] - clock[first]
    span = np.maximum(middle[last - 1] - middle[first], 1e-300)
    slope = np.where(last - first > 1, (value[last - 1] - value[first]) / span, 0.0)
    centre = (area[last] - area[first]) / length
    low, high = centre - 0.5 * slope * length, centre + 0.5 * slope * length
    order = np.argsort(first)
    counts = (last - first)[order]
    index = np.repeat(first[order] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts) + np.arange(counts.sum())
    which = np.repeat(order, counts)
    line = low[which] + slope[which] * (middle[index] - clock[first[which]])
    begin = np.concatenate([[0], np.cumsum(counts)[:-1]])
    worst, top, longest = np.empty((3, len(first)))
    for found, each in ((worst, np.abs(line - value[index])), (top, value[index]), (longest, step[index])):
        found[order] = np.maximum.reduceat(each, begin)
    worst = np.where((low < 0.0) | (high < 0.0), np.inf, worst)
    return low, high, worst, top, np.abs(slope) * longest
