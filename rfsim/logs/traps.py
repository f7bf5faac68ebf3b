"""What logs do to a reader who takes every row at its word: each trap is found here and named in one line."""

import numpy as np

from rfsim.checks import FloatArray, InputError
from rfsim.logs.ends import LEAST, OUTLIER, WINDOW, last_error, loss_fell, loss_rose, lr_jumps
from rfsim.logs.series import Series
from rfsim.logs.shapes import roundest

LEVEL = 0.2  # of the lowest: neighbours of a lone 0 that differ by less lead past it


def without_fake_last_lr(step: FloatArray, lr: FloatArray, loss: Series) -> tuple[FloatArray, FloatArray, list[str]]:
    """Rows of the lr without a last one that no schedule leads to, and the line that says so.

    A schedule object that was stepped past its end reports 0, or its first value. The last row is dropped if the lr
    jumps in it (`ends.lr_jumps`); not if it falls there and the loss falls with it, as it does after a drop that was.
    """
    if not lr_jumps(lr) or (lr[-1] < lr[-2] and loss_fell(loss, step[-2])):
        return step, lr, []
    flat = "no anneal took place" if np.ptp(lr[-7:-1]) <= 1e-9 * lr.max() else "nothing before leads there"
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

    The last point goes if it lies off the rows before it, in log loss, by more than `OUTLIER` times their worst such
    error (`ends.last_error`) and by more than 0.2 % of the loss, or if it jumps up (`ends.loss_rose`). Not if the
    logged lr (rows `lr_step`, `lr`) explains it: it halved since the last row but two, or jumps down in its own last
    row, and the point lies below; or it doubled, and the point lies above.
    """
    step, value = series.step, np.log(series.value)
    error, usual = last_error(step, value)
    if step.size < WINDOW + 8 or not (abs(error) > max(OUTLIER * usual, LEAST) or loss_rose(value)):
        return series, []
    if lr.size:
        change = float(np.diff(np.log2(np.interp(step[[-3, -1]], lr_step, lr) + 1e-300))[0])
        drops = lr_jumps(lr) and lr[-1] < lr[-2] and lr_step[-2] < step[-1]
        if (change * error > 0.0 and abs(change) > 1.0) or (error < 0.0 and drops):
            return series, []
    kept = Series(series.name, series.step[:-1], series.value[:-1], series.findings)
    return kept, [
        f"{series.name}: the last point, {series.value[-1]:.4f} at step {series.step[-1]:g}, lies {error:+.4f} in "
        f"log loss off the rows before it, which miss by at most {usual:.1g}: taken for another evaluation and left out"
    ]


def single_points(singles: dict[str, tuple[float, float]], loss: Series) -> list[str]:
    """Lines about loss series of one row, (step, value) by name: final evaluations, never points of the curve."""
    return [
        f"{name} is one point, {value:.4f} {f'at step {step:g}' if np.isfinite(step) else 'without a step'}, another "
        f"evaluation: it lies {value - loss.value[-1]:+.4f} "
        f"off the last point of {loss.name} (step {loss.step[-1]:g}) and is not used"
        for name, (step, value) in singles.items()
    ]


def usable_lr(series: Series, loss: Series, *, elsewhere: bool) -> tuple[FloatArray, FloatArray, list[str]]:
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
    step, value, told = series.step, series.value, []
    lone = np.zeros(value.size, dtype=bool)
    if value.size > 3:  # a 0 between rows that lead past it: the two before and the one after are close together
        near = np.stack([value[:-3], value[1:-2], value[3:]])
        lone[2:-1] = (value[2:-1] == 0.0) & (np.ptp(near, axis=0) < LEVEL * near.min(axis=0))
    if lone.any():
        places = ", ".join(f"{s:g}" for s in step[lone][:5])
        told = [f"{series.name} is 0 at step {places} alone, as at the end of a segment: ignored"]
    step, value, more = without_fake_last_lr(step[~lone], value[~lone], loss)
    return step, value, [*told, *more]


def late(loss: Series, step: FloatArray, lr: FloatArray) -> str | None:
    """Whether the loss reacts to a drop of the lr before the rows of the lr show it: "row", "step" or None.

    Looked at: the first drop of the lr below 0.6 of the row before, if three rows before it and two from it on are
    level, at the rows of the lr that the loss has too. The loss reacts in an interval of rows if its slope in log loss
    leaves the mean of eight slopes before by ten times their spread. If it does before the last row a of the old lr,
    the lr was logged a row late. If it does between a and the first row b of the new lr, the drop came before b, and by
    at most (c - b) d1/d2 steps: c is the row after b, d1 and d2 are what the loss fell by up to b and from b to c, and
    after a drop the loss falls ever more slowly. If that leaves room for step a itself, and a is rounder than all steps
    between a and b, the lr was logged a step late.
    """
    places = np.flatnonzero(np.isin(step, loss.step))
    step, lr = step[places], lr[places]
    drops = np.flatnonzero(lr[1:] < 0.6 * lr[:-1]) + 1
    if step.size < 14 or not drops.size or not 11 <= drops[0] < step.size - 1:
        return None
    at = int(drops[0])
    if (np.diff(places[at - 10 : at + 2]) > 1).any():
        return None  # the loss has no rows at some of the lr: it cannot say which of them shows the drop
    if max(np.ptp(lr[at - 3 : at]), abs(lr[at + 1] - lr[at])) > 1e-9 * lr[at - 1]:
        return None  # not a lone drop: in a decay the loss moves before the lr has halved
    slopes = np.diff(np.interp(step, loss.step, np.log(loss.value))) / np.diff(step)
    usual = slopes[at - 10 : at - 2]
    spread = max(float(np.abs(usual - usual.mean()).max()), 1e-12)
    if slopes[at - 2] < usual.mean() - 10.0 * spread:
        return "row"
    fell = (usual.mean() - slopes[at - 1 : at + 1]) * np.diff(step[at - 1 : at + 2])
    if slopes[at - 1] >= usual.mean() - 10.0 * spread or fell[1] <= 0.0:
        return None
    early = (step[at + 1] - step[at]) * fell[0] / fell[1]
    rounder = roundest(step[at - 1] - 1.0, step[at] - 1.0) == step[at - 1]
    return "step" if early >= step[at] - step[at - 1] and rounder else None
