"""The last row of a log: whether its lr jumps there, and whether its loss does."""

import numpy as np

from rfsim.checks import FloatArray
from rfsim.logs.series import Series

JUMP = 0.01  # of the peak: a last lr that leaves its neighbours by more is looked at
WINDOW = 10  # rows that the last point is compared with
OUTLIER = 5.0  # a last loss that leaves the extrapolation by more than this many times the usual error is off
LEAST = 0.002  # in log loss: a last loss that is off by less is a point
RISE = 10.0  # times the usual change of the loss between rows' differences: a larger rise is a jump


def lr_jumps(lr: FloatArray) -> bool:
    """True if the lr changes by more than `JUMP` of the peak in its last row, and five times any of the five before."""
    if lr.size < 4:
        return False
    moves = np.abs(np.diff(lr[-7:]))
    return bool(moves[-1] > JUMP * lr.max() and moves[-1] > 5.0 * moves[:-1].max())


def last_error(step: FloatArray, value: FloatArray) -> tuple[float, float]:
    """How far the last of the values (n,) lies off the rows before it, and the worst such error of the 20 before.

    Each value is compared with the parabola by least squares of the `WINDOW` rows before it. Too few rows: (0, inf).
    """
    if step.size < WINDOW + 8:
        return 0.0, np.inf
    step, value = step[-WINDOW - 21 :], value[-WINDOW - 21 :]
    # in places counted from the row itself the parabola's value there is its constant, one row of the pseudo-inverse
    rows = np.lib.stride_tricks.sliding_window_view(step, WINDOW + 1)
    before = np.lib.stride_tricks.sliding_window_view(value, WINDOW)[:-1]
    place = (rows[:, :-1] - rows[:, -1:]) / (rows[:, -2:-1] - rows[:, :1])
    constant = np.linalg.pinv(place[:, :, None] ** np.arange(3.0))[:, 0]
    errors = value[WINDOW:] - (constant * before).sum(axis=1)
    return float(errors[-1]), float(np.abs(errors[:-1]).max())


def loss_fell(loss: Series, since: float) -> bool:
    """True if the last loss lies below what the rows up to step `since` lead to, as after a drop of the lr.

    If several rows come after `since`, every so many-th row is looked at, the last one among them.
    """
    after = int((loss.step > since).sum())
    if after == 0:
        return False
    step, value = loss.step[::-1][::after][::-1], np.log(loss.value[::-1][::after][::-1])
    error, usual = last_error(step, value)
    return error < -max(OUTLIER * usual, LEAST)


def loss_rose(value: FloatArray) -> bool:
    """True if the last log loss lies above the one before by more than `RISE` times the median second difference.

    That difference is of the 20 rows before. A bend where a decay starts is in two of them and does not move the
    median, and no decay ends in a rise.
    """
    rise = float(value[-1] - value[-2])
    return rise > max(RISE * float(np.median(np.abs(np.diff(value[-21:-1], 2)))), LEAST)


def with_last_fall(values: FloatArray, step: FloatArray, lr: FloatArray) -> tuple[FloatArray, str]:
    """Learning rates (N,) with the fall to the last row of the lr, which the loss has followed, and the line about it.

    Where between the last two rows the lr fell is not logged: a straight line joins them.
    """
    begin, end = int(step[-2]), int(step[-1])
    values = values.copy()
    values[begin:] = np.interp(np.arange(begin, values.size), step[-2:], lr[-2:])
    return values, (
        f"the lr falls from {lr[-2]:g} at step {begin} to {lr[-1]:g} at its last row, step {end}, and the loss with "
        f"it: a straight line between them"
    )
