"""What logs do to a reader who takes every row at its word: each trap is found here and named in one line."""

import numpy as np

from rfsim.checks import FloatArray, InputError
from rfsim.logs.series import Series

JUMP = 0.01  # of the peak: a last lr that leaves its neighbours by more is looked at
WINDOW = 10  # rows that the last point is compared with
OUTLIER = 5.0  # a last loss that leaves the extrapolation by more than this many times the usual error is no point


def without_fake_last_lr(step: FloatArray, lr: FloatArray) -> tuple[FloatArray, FloatArray, list[str]]:
    """Rows of the lr without a last one that no schedule leads to, and the line that says so.

    A schedule object that was stepped past its end reports 0, or its first value. The last row is dropped if the lr
    changes by more than `JUMP` of the peak in it, and by more than five times any of the last five changes.
    """
    if lr.size < 4:
        return step, lr, []
    moves = np.abs(np.diff(lr[-7:]))
    if moves[-1] <= JUMP * lr.max() or moves[-1] <= 5.0 * moves[:-1].max():
        return step, lr, []
    flat = "no anneal took place" if moves[:-1].max() <= 1e-9 * lr.max() else "nothing before leads there"
    return (
        step[:-1],
        lr[:-1],
        [
            f"the last logged lr, {lr[-1]:g} at step {step[-1]:g}, is not the schedule's: the row before, at step "
            f"{step[-2]:g}, has {lr[-2]:g} and {flat}; ignored"
        ],
    )


def without_other_evaluation(series: Series, lr_step: FloatArray, lr: FloatArray) -> tuple[Series, list[str]]:
    """The loss without a last point that comes from another evaluation (other data or more batches), and its line.

    Each of the last rows is compared with the parabola through the ten rows before it, in log loss. The last point goes
    if it lies off by more than `OUTLIER` times the worst such error of the 20 points before it, and by more than 0.2 %
    of the loss; not if it lies below and the logged lr (rows `lr_step`, `lr`) halved since the last row but two.
    """
    if series.step.size < WINDOW + 8:
        return series, []
    step, value = series.step[-WINDOW - 21 :], np.log(series.value[-WINDOW - 21 :])
    errors = np.array(
        [value[k] - _ahead(step[k - WINDOW : k], value[k - WINDOW : k], step[k]) for k in range(WINDOW, step.size)]
    )
    usual = float(np.abs(errors[:-1]).max())
    if abs(errors[-1]) <= max(OUTLIER * usual, 0.002):
        return series, []
    if errors[-1] < 0 and lr.size and np.diff(np.log2(np.interp(step[[-3, -1]], lr_step, lr) + 1e-300))[0] < -1:
        return series, []
    kept = Series(series.name, series.step[:-1], series.value[:-1], series.findings)
    return kept, [
        f"{series.name}: the last point, {series.value[-1]:.4f} at step {series.step[-1]:g}, lies {errors[-1]:+.4f} in "
        f"log loss off the rows before it, which miss by at most {usual:.1g}: taken for another evaluation and left out"
    ]


def _ahead(step: FloatArray, value: FloatArray, to: float) -> float:
    """Value at `to` of the least-squares parabola through the rows."""
    place = (step - to) / (step[-1] - step[0])
    return float(np.polynomial.polynomial.polyfit(place, value, 2)[0])


def single_points(singles: dict[str, tuple[float, float]], loss: Series) -> list[str]:
    """Lines about loss series of one row, (step, value) by name: final evaluations, never points of the curve."""
    return [
        f"{name} is one point, {value:.4f} at step {step:g}, another evaluation: it lies {value - loss.value[-1]:+.4f} "
        f"off the last point of {loss.name} (step {loss.step[-1]:g}) and is not used"
        for name, (step, value) in singles.items()
    ]


def usable_lr(series: Series, *, elsewhere: bool) -> tuple[FloatArray, FloatArray, list[str]]:
    """Rows of the lr, or none (with a line) if it is 0 everywhere and the schedule is known from elsewhere.

    Raises
    ------
    InputError : for a negative lr, or an lr that is 0 everywhere and no other source of the schedule.
    """
    if (series.value < 0).any():
        first = int(np.argmax(series.value < 0))
        raise InputError(
            f"lr must not be negative, got {series.value[first]:g} at step {series.step[first]:g} in column "
            f"{series.name}; correct the log or give schedule="
        )
    if (series.value == 0.0).all():
        if not elsewhere:
            raise InputError(
                f"lr must be above 0 somewhere, got 0 in all {series.value.size} rows of column {series.name}; "
                f"give schedule= or name another column"
            )
        none = np.zeros(0)
        return none, none, [f"{series.name} is 0 in all {series.value.size} rows: ignored"]
    return without_fake_last_lr(series.step, series.value)


def late_rows(loss: Series, step: FloatArray, lr: FloatArray) -> bool:
    """True if the loss reacts to a drop of the lr before the rows of the lr show it.

    Looked at: the first drop of the lr below 0.6 of the row before, both on the same rows as the loss. The loss reacts
    where its change per row in log loss leaves the mean of the eight changes before by ten times their spread.
    """
    value = np.interp(step, loss.step, np.log(loss.value))
    if step.size < 14 or not np.isin(step, loss.step).all():
        return False
    drops = np.flatnonzero(lr[1:] < 0.6 * lr[:-1]) + 1
    if not drops.size or not 11 <= drops[0] < step.size - 1:
        return False
    at = int(drops[0])
    changes = np.diff(value) / np.diff(step)
    before = changes[at - 10 : at - 2]
    spread = max(float(np.abs(before - before.mean()).max()), 1e-12)
    return bool(changes[at - 2] < before.mean() - 10.0 * spread)
