"""The learning rate of every step of a run, from whatever the log has: a configuration, or rows.

Never from the integral of subsampled rows: what is between the rows comes from a shape that meets all of them, and
where no shape does, a line says how far the integral may be off.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rfsim.checks import FloatArray, InputError, require_memory
from rfsim.logs.configs import Plan, plan_of
from rfsim.logs.ends import lr_jumps, with_last_fall
from rfsim.logs.recognise import recognise, rise_of, tolerance
from rfsim.logs.shapes import Shape


@dataclass(frozen=True)
class Rows:
    """Logged lr: steps (n,), values (n,), and what is known before them.

    Attributes
    ----------
    step, lr : the row of step s has the lr of the update from s to s + 1.
    before : lr of all steps of the parent, (first,), or an empty array.
    """

    step: FloatArray
    lr: FloatArray
    before: FloatArray


def from_log(
    rows: Rows, horizon: int, *, config: Mapping[str, object], warmup: int
) -> tuple[FloatArray, list[str], int]:
    """Learning rates (N,) of all steps with N >= horizon, what was found, and the steps of the warm-up.

    Precedence: rows of every step; a configuration that the rows confirm; a shape recognised in the rows; a
    configuration that no rows contradict; interpolation between rows.

    Raises
    ------
    InputError : if there is nothing to reconstruct from, or the steps before the first row cannot be known.
    """
    own = plan_of(config, float(rows.lr.min()) if rows.lr.size else None)
    plan = own if own is None or not warmup else replace(own, warmup=warmup)
    if not rows.lr.size:
        if plan is None:
            raise InputError(
                "lr is in no column of the log and its configuration names no schedule that is known; "
                "give schedule= (a SPEC with lr=PEAK, or a CSV step,lr,batch) or name the column with lr="
            )
        if not plan.floors:
            raise InputError(
                f"lr is in no column of the log and its configuration does not say where the {plan.kind} decay ends; "
                f"give schedule= (a SPEC with lr=PEAK, or a CSV step,lr,batch)"
            )
        shape = plan.shapes()[0][1]
        line = f"lr of every step from the configuration alone, no row to check it with: {shape.words()}"
        line += "" if plan.kind == "constant" or plan.said else "; it does not say where the decay ends: taken as 0"
        return _values(shape, max(horizon, plan.steps)), [line], plan.warmup
    if rows.before.size == 0 and _dense(rows):
        return _every_step(rows, horizon, warmup)
    step, lr = _with_parent(rows)
    contradicted = f"the rows before step {warmup} are no straight warm-up over {warmup} steps: they win"
    inside = bool(warmup) and bool((step < warmup).any())
    confirmed, told = _confirmed(plan, step, lr, rows.before.size > 0), []
    if confirmed is None and inside:
        plan, told = own, [contradicted]
        confirmed = _confirmed(plan, step, lr, rows.before.size > 0)
    if confirmed is not None:
        assert plan is not None
        shape, findings = confirmed[0], [*told, *confirmed[1]]
        findings += _unlogged(rows, shape, f"taken from the configuration ({shape.words()})")
        return _values(shape, max(horizon, plan.steps)), findings, plan.warmup
    if lr_jumps(rows.lr) and rows.lr[-1] < rows.lr[-2] and horizon <= rows.step[-1] + _gap(rows.step):
        earlier = replace(rows, step=rows.step[:-1], lr=rows.lr[:-1])
        values, findings, up = from_log(earlier, max(horizon, int(rows.step[-1])), config=config, warmup=warmup)
        values, line = with_last_fall(values, rows.step, rows.lr)
        return values, [*findings, line], up
    recognised = recognise(step, lr, warmup=warmup)
    if recognised is None and inside:
        recognised = recognise(step, lr)  # rows inside the warm-up say otherwise
        if recognised is not None:
            values, findings, up = _from_shape(recognised, rows, horizon, plan, 0)
            return (
                values,
                [contradicted, *findings],
                up,
            )
    if recognised is not None:
        return _from_shape(recognised, rows, horizon, plan, warmup)
    if plan is not None:
        deviation, shape = min(
            ((float(np.abs(shape.at(step) - lr).max()), shape) for _, shape in plan.shapes()), key=lambda pair: pair[0]
        )
        if deviation <= 0.01 * plan.peak:
            line = f"lr of every step from the configuration: {shape.words()}"
            line += f"; {lr.size} logged rows deviate by up to {deviation:.2g}"
            return _values(shape, max(horizon, plan.steps)), [line], plan.warmup
    return _interpolated(rows, horizon, warmup)


def _values(shape: Shape, steps: int) -> FloatArray:
    require_memory(f"a schedule of {steps:g} steps", 40.0 * steps, "check the steps in the log and its configuration")
    return np.maximum(shape.at(np.arange(steps, dtype=float)), 0.0)


def _with_parent(rows: Rows) -> tuple[FloatArray, FloatArray]:
    """Rows with the last two steps of the parent in front, so that a decay from the resume step is seen to start."""
    first = rows.before.size
    if first < 2 or rows.step[0] < first:
        keep = rows.step >= first
        return rows.step[keep], rows.lr[keep]
    return np.append([first - 2.0, first - 1.0], rows.step), np.append(rows.before[-2:], rows.lr)


def _gap(step: FloatArray) -> float:
    return float(np.median(np.diff(step))) if step.size > 1 else 1.0


def _late_start(rows: Rows) -> bool:
    """True if steps before the first row are neither logged nor a parent's nor just the first interval."""
    return rows.step[0] > max(2.0 * _gap(rows.step), 1.0) and rows.step[0] > rows.before.size + 2.0 * _gap(rows.step)


def _unlogged(rows: Rows, shape: Shape, how: str) -> list[str]:
    if not _late_start(rows):
        return []
    return [f"steps {rows.before.size} to {rows.step[0] - 1:g} have no lr row: their lr is {how}"]


def _confirmed(plan: Plan | None, step: FloatArray, lr: FloatArray, resumed: bool) -> tuple[Shape, list[str]] | None:
    """The configuration's shape if all rows meet it, also one step early or late; with the line about it."""
    if plan is None:
        return None
    allowed = tolerance(lr)
    for shift, shape in plan.shapes():
        later = step >= plan.warmup
        if not later.any() or np.abs(shape.at(step[later]) - lr[later]).max() > allowed:
            continue
        early, rise = step < plan.warmup + min(shift, 0), None
        if early.any():
            rise = rise_of(step[early], lr[early], float(plan.warmup + 1), shape, allowed)
            shape = shape if rise is None else replace(shape, warmup=rise)
            if np.abs(shape.at(step[early]) - lr[early]).max() > allowed:
                continue
        deviation = float(np.abs(shape.at(step) - lr).max())
        line = f"lr of every step from the configuration: {shape.words()}"
        findings = [f"{line}; largest deviation from {lr.size} logged rows {deviation:.2g}"]
        if not early.any() and plan.warmup and not resumed:
            findings.append(
                f"the warm-up of {plan.warmup} steps is in no row: taken as straight, lr (s + 1)/{plan.warmup}"
            )
        if shift == -1:
            findings.append(
                f"the logged lr follows the configuration's shape one step early (start at {shape.start:g}, end at "
                f"{shape.end:g}): kept as logged"
            )
        if shift == 1:
            findings.append("the logged lr follows the configuration's shape one step late: shifted back by one step")
            shape = shape.shifted(-1.0, warmup=rise is not None)
        return shape, findings
    return None


def _from_shape(
    shape: Shape, rows: Rows, horizon: int, plan: Plan | None, warmup: int
) -> tuple[FloatArray, list[str], int]:
    """Values of a recognised shape, and the lines about it."""
    deviation = float(np.abs(shape.at(rows.step) - rows.lr).max())
    findings = [
        f"lr of every step recognised from {rows.lr.size} rows: {shape.words()}; largest deviation {deviation:.2g}"
    ]
    if plan is not None:
        apart = min(float(np.abs(other.at(rows.step) - rows.lr).max()) for _, other in plan.shapes())
        findings.append(f"the configuration's schedule deviates from the rows by up to {apart:.2g}: the rows win")
    for place, lr in shape.stages:
        left = rows.step[rows.step < place].max(initial=max(rows.before.size - 1.0, 0.0))
        right = rows.step[rows.step >= place].min(initial=np.inf)
        if right - left > 1:
            findings.append(
                f"the lr becomes {lr:g} between the rows at steps {left:g} and {right:g}: "
                f"placed at the roundest step, {place:g}"
            )
    findings += _held(rows, horizon, shape)
    late = _off_by_one(shape, rows)
    if late == 1:
        findings.append(f"{_knots_text(shape)}, one step after a round number: lr logged one step late, shifted back")
        shape = shape.shifted(-1.0, warmup=warmup == 0)  # a warm-up that was asked for is in no row
    elif late == -1:
        findings.append(f"{_knots_text(shape)}, one step before a round number: kept as logged")
    if _late_start(rows) and warmup == 0:
        plateau = shape.kind in ("constant", "stages") or shape.start > rows.step[0] or shape.kind == "cosine"
        if not plateau:
            raise InputError(
                f"lr before the first row at step {rows.step[0]:g} cannot be known: the rows begin inside a "
                f"{shape.kind} decay; give parents=, warmup= or schedule="
            )
        how = f"taken as {shape.at(np.zeros(1))[0]:g}, without warm-up (give warmup= or parents=)"
        if shape.warmup is not None and rows.step[0] < shape.warmup.steps:
            how = "that of the warm-up in which the rows begin"
        findings += _unlogged(rows, shape, how)
    elif _late_start(rows):
        findings += _unlogged(
            rows,
            shape,
            f"a straight warm-up from 0, s/{max(warmup - 1, 1)}, over {warmup} steps, as asked, then {shape.peak:g}",
        )
    end = int(np.ceil(shape.end)) if shape.kind not in ("constant", "stages") else 0
    return _values(shape, max(horizon, int(rows.step[-1]), end)), findings, warmup or _warmup_steps(shape)


def _held(rows: Rows, horizon: int, shape: Shape | None = None) -> list[str]:
    """Line about steps after the last row of the lr, beyond one interval; without a shape its last value is held.

    Raises
    ------
    InputError : if the rows end inside a decay, so that nothing tells how it goes on.
    """
    last = rows.step[-1]
    if horizon <= last + _gap(rows.step):
        return []
    falling = rows.lr.size > 1 and 0.0 < rows.lr[-1] < rows.lr[-2]
    known = shape is not None and (shape.kind in ("constant", "stages") or shape.end >= horizon)
    if falling and not known:
        raise InputError(
            f"lr after its last row at step {last:g} cannot be known: the rows end inside a "
            f"{f'{shape.kind} ' if shape else ''}decay, the loss goes on to step {horizon}; give schedule="
        )
    how = "from there on the lr is that of the shape" if shape else "the last lr is held"
    return [f"the lr rows end at step {last:g}, the loss at {horizon}: {how}"]


def _warmup_steps(shape: Shape) -> int:
    """Steps of the warm-up up to the first step at the top."""
    return 0 if shape.warmup is None else round(shape.warmup.steps)


def _knots(shape: Shape, rows: Rows) -> list[float]:
    """Whole steps that the rows fix: starts of decays and stages between neighbouring rows, ends of cosines."""
    if shape.kind == "stages":
        return [place for place, _ in shape.stages if place - 1 in rows.step and place in rows.step]
    if shape.kind == "constant" or shape.start <= rows.step[0]:
        return [shape.end] if shape.kind == "cosine" else []
    return [shape.start, shape.end] if shape.kind == "cosine" else [shape.start]


def _off_by_one(shape: Shape, rows: Rows) -> int:
    """+1 or -1 if all knots lie this far from multiples of 100, else 0."""
    knots = _knots(shape, rows)
    for shift in (1, -1):
        if knots and all((knot - shift) % 100 == 0 for knot in knots):
            return shift
    return 0


def _knots_text(shape: Shape) -> str:
    places = [place for place, _ in shape.stages] if shape.kind == "stages" else [shape.start]
    return f"the lr changes at step {', '.join(f'{place:g}' for place in places)}"


def _dense(rows: Rows) -> bool:
    return bool(rows.step[0] <= 1 and (np.diff(rows.step) == 1).all() and rows.lr.size > 2)


def _every_step(rows: Rows, horizon: int, warmup: int) -> tuple[FloatArray, list[str], int]:
    """Rows of every step as they are; step 0, if it has none, on the line through the next two."""
    lr = rows.lr if rows.step[0] == 0 else np.append(max(2.0 * rows.lr[0] - rows.lr[1], 0.0), rows.lr)
    findings = [f"lr of every step from its own row, {rows.lr.size} rows"]
    if warmup:
        findings.append(f"the rows begin at step {rows.step[0]:g}: warmup={warmup} is not used")
    shape = recognise(rows.step, rows.lr)
    up = 0 if shape is None else _warmup_steps(shape)
    if shape is not None and _off_by_one(shape, rows) == 1:
        findings.append(f"{_knots_text(shape)}, one step after a round number: lr logged one step late, shifted back")
        lr = np.append(lr[1:], lr[-1])
    if lr.size < horizon:
        findings.append(f"the lr ends at step {lr.size - 1}, the loss at {horizon}: the last lr is held")
        lr = np.append(lr, np.full(horizon - lr.size, lr[-1]))
    return lr, findings, up


def _interpolated(rows: Rows, horizon: int, warmup: int) -> tuple[FloatArray, list[str], int]:
    """Straight lines between rows; their integral is off by at most half of sum |change| * interval."""
    if _late_start(rows) and warmup == 0:
        raise InputError(
            f"lr before the first row at step {rows.step[0]:g} cannot be known from the rows; "
            f"give warmup=, parents= or schedule="
        )
    step, lr = _with_parent(rows)
    values = np.interp(np.arange(max(horizon, int(step[-1])), dtype=float), step, lr)
    bound = 0.5 * float((np.abs(np.diff(lr)) * np.diff(step)).sum())
    held = _held(rows, horizon)
    early = min(warmup, int(step[0]))
    if early:
        values[:early] = np.interp(warmup, step, lr) * np.arange(early) / max(warmup - 1, 1)
    return (
        values,
        [
            f"no shape with few parameters meets the {rows.lr.size} lr rows: straight lines between them; if the lr is "
            f"monotone between rows its integral is off by at most {bound:.3g}, {bound / values.sum():.1e} of it",
            *held,
        ],
        warmup,
    )
