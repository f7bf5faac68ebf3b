"""The valley of an error curve over an exponent: its minimum, and where the curve leaves a level."""

from typing import NamedTuple

import numpy as np

from rfsim.checks import FloatArray


class Valley(NamedTuple):
    """The minimum of an error curve over q_K.

    q_memory : of the minimum: vertex of the parabola through the squared errors of the lowest point and its two
        neighbours, in log q_K; at an end of the grid that end.
    error : lowest error on the grid, in loss.
    low, high : where the error exceeds `factor` times its lowest, linearly interpolated in log q_K, the minimum being
        inside in any case; the end of the grid on an open side.
    open_low, open_high : the error does not exceed it on that side of the grid.
    at_end : the lowest point is an end of the grid, so the minimum may lie beyond.
    coarse : both neighbours of the lowest point exceed `factor` times it, so the width is a guess.
    """

    q_memory: float
    error: float
    low: float
    high: float
    open_low: bool
    open_high: bool
    at_end: bool
    coarse: bool


def valley(q_memory: FloatArray, error: FloatArray, factor: float) -> Valley:
    """Minimum of an error curve (g,) over values (g,) of q_K, and its width: see `Valley`."""
    x, low = np.log(q_memory), int(np.argmin(error))
    at_end = low in (0, len(x) - 1)
    place = x[low]
    if not at_end:
        left, right = x[low - 1] - x[low], x[low + 1] - x[low]
        rise_left, rise_right = error[low - 1] ** 2 - error[low] ** 2, error[low + 1] ** 2 - error[low] ** 2
        curvature = (rise_right / right - rise_left / left) / (right - left)
        if curvature > 0.0:
            place = x[low] - 0.5 * (rise_right / right - curvature * right) / curvature
    level = factor * error[low]
    below, open_low = crossing(x[low::-1], error[low::-1], level)
    above, open_high = crossing(x[low:], error[low:], level)
    ends = np.exp([place, min(place, below), max(place, above)]).tolist()
    coarse = not at_end and bool(min(error[low - 1], error[low + 1]) > level)
    return Valley(ends[0], float(error[low]), ends[1], ends[2], open_low, open_high, at_end, coarse)


def crossing(x: FloatArray, height: FloatArray, level: float) -> tuple[float, bool]:
    """Where a curve that begins below `level` first exceeds it, and whether it does not."""
    over = np.flatnonzero(height > level)
    if not over.size:
        return float(x[-1]), True
    after = int(over[0])
    share = (level - height[after - 1]) / (height[after] - height[after - 1])
    return float(x[after - 1] + share * (x[after] - x[after - 1])), False
