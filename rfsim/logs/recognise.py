"""Rows of a logged learning rate -> the few parameters of the schedule behind them, or None."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.optimize import least_squares

from rfsim.checks import FloatArray
from rfsim.logs.shapes import Shape, Warmup, by_roundness, roundest, warmed

EXACT = 1e-6  # of the peak: rows must be met this well
SAME = 1e-9  # of the peak: rows of one level

_LINES: dict[str, tuple[Callable, Callable]] = {
    "linear": (lambda lr: lr, lambda y: y),
    "exponential": (np.log, np.exp),
    "inverse-sqrt": (lambda lr: lr**-2.0, lambda y: y**-0.5),
}
"""Decays that are straight after a transform of the lr: the transform and its inverse."""


def tolerance(lr: FloatArray) -> float:
    """How well rows must be met if they were written with few digits: a unit in the last one of the peak, else 1e-6."""
    peak = float(lr.max())
    looked_at = lr[:: max(lr.size // 2000, 1)].tolist()
    for digits in range(4, 8):
        if all(float(f"{value:.{digits}g}") == value for value in looked_at):
            return max(EXACT * peak, 1.01 * 10.0 ** (np.floor(np.log10(peak)) - digits + 1))
    return EXACT * peak


def recognise(step: FloatArray, lr: FloatArray, *, warmup: int = 0) -> Shape | None:
    """The shape that meets all rows within 1e-6 of the peak, with as few parameters as possible; else None.

    If there is none and the rows were written with few digits, within a unit in the last digit (`tolerance`).

    Tried in this order: constant; piecewise constant; after a plateau (which may be missing) a linear, exponential,
    inverse square-root, square-root or cosine decay, which may end on a floor. Starts and ends are rounded to whole
    steps where the rows allow it. Rows below the top on its left are a warm-up, straight or half a cosine.

    Parameters
    ----------
    step, lr : (n,) rows; the row of step s has the lr of the update that follows it.
    warmup : steps of a linear warm-up from 0, lr s / (warmup - 1), or (s + 1) / warmup if rows inside it say so; rows
        inside it must agree with one of them.
    """
    with np.errstate(all="ignore"):  # a transform may meet numbers outside its domain: that kind is then not it
        exact = _recognised(step, lr, warmup, EXACT * float(lr.max()))
        few_digits = tolerance(lr) > EXACT * float(lr.max())
        return _recognised(step, lr, warmup, tolerance(lr)) if exact is None and few_digits else exact


def _recognised(step: FloatArray, lr: FloatArray, warmup: int, allowed: float) -> Shape | None:
    top = int(lr.argmax())
    if warmup or (np.diff(lr[: top + 1]) <= 0).any() or top == 0:
        return _split(step, lr, step < warmup, warmup, allowed)
    rows = np.arange(lr.size)
    for heads in (top + 1, top):  # the highest row may be the last of the warm-up or the first after it
        shape = _split(step, lr, rows < heads, 0, allowed)
        if shape is not None:
            return shape
    return None


def _split(step: FloatArray, lr: FloatArray, head: np.ndarray, warmup: int, allowed: float) -> Shape | None:
    """The shape whose warm-up has the rows of `head` and whose body has the others."""
    if head.all():
        return None
    gap = float(np.median(np.diff(step))) if step.size > 1 else 1.0
    lowest = float(step[head][-1]) if head.any() else 0.0 if step[0] <= 2.0 * gap else float(step[0])
    body = _body(step[~head], lr[~head], allowed, max(lowest, float(warmup)))
    if body is None:
        return None
    shape = body
    if warmup:
        shapes = [warmed(body, warmup, from_zero=zero) for zero in (True, False)]
        shape = next((one for one in shapes if _meets(one, step, lr, allowed)), shapes[0])
    elif head.any():
        rise = rise_of(step[head], lr[head], float(step[~head][0]), body, allowed)
        if rise is None:
            return None
        shape = replace(body, warmup=rise)
    return shape if _meets(shape, step, lr, allowed) else None


def _meets(shape: Shape, step: FloatArray, lr: FloatArray, allowed: float) -> bool:
    return bool(np.abs(shape.at(step) - lr).max() <= allowed)


def _body(step: FloatArray, lr: FloatArray, allowed: float, lowest: float) -> Shape | None:
    """Plateau, decay and floor, or stages, of rows that do not rise at first and hold down to step `lowest`."""
    if not step.size:
        return None
    peak = float(lr.max())
    if np.ptp(lr) <= min(allowed, SAME * peak):
        return Shape("constant", float(lr[0]))
    stages = _stages(step, lr)
    if stages is not None:
        return stages
    if (np.diff(lr) > allowed).any():
        return None
    flat = int((np.abs(lr - lr[0]) <= SAME * peak).sum())
    tail = int((np.abs(lr - lr[-1]) <= SAME * peak).sum())
    tail = tail if tail > 1 else 0
    falling = slice(flat, lr.size - tail)
    if lr[falling].size < 3:
        return None
    for kind in _LINES:
        shape = _straight(kind, step, lr, flat, tail, allowed, lowest)
        if shape is not None:
            return shape
    return _root(step, lr, flat, tail, allowed) or _cosine(step, lr, flat, tail, allowed)


def _stages(step: FloatArray, lr: FloatArray) -> Shape | None:
    """Piecewise constant, if the lr changes in at most a quarter of the rows; each change at the roundest step."""
    changes = np.flatnonzero(np.abs(np.diff(lr)) > SAME * lr.max()) + 1
    if changes.size > lr.size // 4:
        return None
    held = np.diff(np.append(np.append(0, changes), lr.size))
    if (held[:-1] < 2).any():
        return None
    places = tuple((float(roundest(step[at - 1], step[at])), float(lr[at])) for at in changes)
    return Shape("stages", float(lr[0]), stages=places)


def _straight(
    kind: str, step: FloatArray, lr: FloatArray, flat: int, tail: int, allowed: float, lowest: float
) -> Shape | None:
    """A decay that is straight after the transform of its kind."""
    forward, back = _LINES[kind]
    stop = lr.size - tail
    falling, values = step[flat:stop], lr[flat:stop]
    if kind != "linear" and (lr <= 0).any():
        return None
    slope, level = np.polyfit(falling - falling[0], forward(values), 1)
    line = back(level + slope * (falling - falling[0]))
    if slope == 0 or not np.abs(line - values).max() <= allowed:
        return None

    def crossing(value: float) -> float:
        return float(falling[0] + (forward(np.float64(value)) - level) / slope)

    whole = abs(crossing(lr[0]) - step[0]) < 0.5
    if flat == 1 and whole:  # the first row is on the line: no plateau, it goes on to the left
        low = float(back(level + slope * (lowest - falling[0])))
        starts, peak = ([lowest], low) if np.isfinite(low) and low > 0 else ([float(step[0])], float(lr[0]))
    else:
        peak, starts = float(lr[0]), _whole(crossing(lr[0]), step[flat - 1], step[flat])
    ends = _whole(crossing(lr[-1]), step[stop - 1], step[stop]) if tail else [float(step[-1])]
    for start in starts:
        for end in ends:
            shape = Shape(kind, peak, start, end, float(lr[-1]))
            if tail and _meets(shape, step, lr, allowed):
                return shape
            if not tail and _meets(shape, step, lr, allowed):
                last, to = _end(kind, step, lr, start, peak)
                return Shape(kind, peak, start, last, to)
    return None


def _whole(place: float, lower: float, upper: float) -> list[float]:
    """Candidates for a step near `place` in [lower, upper]: whole ones close to it, the roundest first, then itself."""
    near = [float(whole) for whole in by_roundness(max(place - 2, lower), min(place + 2, upper))]
    close = [whole for whole in near if abs(whole - place) < 0.02]
    return [*close, *(whole for whole in near if whole not in close), float(np.clip(place, lower, upper))]


def _end(
    kind: str, step: FloatArray, lr: FloatArray, start: float | None = None, peak: float | None = None
) -> tuple[float, float]:
    """Where a decay without a floor in its rows is taken to end, and the lr there.

    The roundest step within one interval of rows after the last, if the lr there is a whole number of hundredths of
    the peak; else the last row.
    """
    first, top = (step[0], float(lr[0])) if start is None or peak is None else (start, peak)
    gap = float(np.median(np.diff(step)))
    end = float(roundest(step[-1] - 1, step[-1] + gap))
    if end > step[-1]:
        if kind == "sqrt":
            to = top - (top - float(lr[-1])) * float(np.sqrt((end - first) / (step[-1] - first)))
        else:
            forward, back = _LINES[kind]
            level, now = forward(np.float64(top)), forward(np.float64(lr[-1]))
            to = float(back(level + (now - level) * (end - first) / (step[-1] - first)))
        share = 100.0 * to / float(lr.max())
        if share > -1e-4 and abs(share - round(share)) < 1e-4:
            return end, _snapped(to, float(lr.max()))
    return float(step[-1]), _snapped(float(lr[-1]), float(lr.max()))


def _snapped(value: float, peak: float) -> float:
    """The value, or 0 where only rounding errors are left."""
    return value if value > 1e-12 * peak else 0.0


def _rounder(value: float) -> float:
    """The value, or the number of six digits that it is but for rounding errors."""
    rounder = float(f"{value:.6g}")
    return rounder if abs(value - rounder) <= 1e-12 * abs(value) else value


def _root(step: FloatArray, lr: FloatArray, flat: int, tail: int, allowed: float) -> Shape | None:
    """Decay peak - c sqrt(s - start) after a plateau: the square of the distance to the peak is straight."""
    stop = lr.size - tail
    falling, peak = step[flat:stop], float(lr[0])
    square = (peak - lr[flat:stop]) ** 2
    slope, level = np.polyfit(falling - falling[0], square, 1)
    if slope <= 0:
        return None
    for start in _whole(float(falling[0] - level / slope), step[flat - 1], step[flat]):
        if tail:
            reached = start + (peak - lr[-1]) ** 2 / slope
            shapes = [
                Shape("sqrt", peak, start, end, float(lr[-1])) for end in _whole(reached, step[stop - 1], step[stop])
            ]
        else:
            shapes = [Shape("sqrt", peak, start, *_end("sqrt", step, lr, start, peak))]
        for shape in shapes:
            if _meets(shape, step, lr, allowed):
                return shape
    return None


def _cosine(step: FloatArray, lr: FloatArray, flat: int, tail: int, allowed: float) -> Shape | None:
    """Half a cosine: start and end by least squares, then whole steps nearby; peak and floor follow linearly."""
    rows = slice(flat, lr.size - tail)  # plateau and floor are not on the wave
    s, values, span = step[rows], lr[rows], step[-1] - step[0]

    def levels(ends: FloatArray) -> tuple[FloatArray, float, float]:
        wave = np.cos(np.pi * (s - ends[0]) / max(ends[1] - ends[0], 1.0))
        centred = wave - wave.mean()
        half = float(centred @ values / (centred @ centred))
        middle = float(values.mean() - half * wave.mean())
        return (middle + half * wave - values) / values.max(), middle + half, middle - half

    best = None
    for reach in (0.0, 0.02, 0.25, 1.0, 3.0):
        guess = np.array([s[0], s[-1] + reach * span])
        found = least_squares(lambda x: levels(x)[0], guess, x_scale=span, xtol=1e-15, ftol=1e-15, gtol=1e-15)
        if best is None or found.cost < best.cost:
            best = found
    if best is None or np.abs(best.fun).max() > 1e-3:
        return None
    grid = [
        np.array([a, b]) for a in np.round(best.x[0]) + np.arange(-2, 3) for b in np.round(best.x[1]) + np.arange(-2, 3)
    ]
    worst = [float(np.abs(levels(ends)[0]).max()) for ends in grid]
    for ends in (grid[int(np.argmin(worst))], best.x):
        _, peak, to = levels(ends)
        if to < 0:
            to = 0.0 if to > -allowed else to
        shape = Shape("cosine", _rounder(peak), float(ends[0]), float(ends[1]), _rounder(to))
        if to >= 0 and _meets(shape, s[s <= ends[1]], values[s <= ends[1]], allowed):
            return shape
    return None


def rise_of(step: FloatArray, lr: FloatArray, upper: float, body: Shape, allowed: float) -> Warmup | None:
    """Warm-up of rows that end before step `upper`: straight through the rows, else half a cosine."""
    peak = float(body.at(np.array([upper]))[0]) if body.kind != "cosine" else body.peak
    if step.size >= 2:
        slope, level = np.polyfit(step, lr, 1)
        if np.abs(level + slope * step - lr).max() <= allowed and slope > 0:
            place = (peak - level) / slope
            for _ in range(20):  # the body may fall while the line rises: where do they meet?
                place = (float(body.at(np.array([place]))[0]) - level) / slope if body.kind != "cosine" else place
            steps = float(round(place)) if abs(place - round(place)) < 0.01 else float(place)
            first = float(level) if abs(level) > allowed else 0.0
            return Warmup(steps, first) if first >= 0 else None
    else:  # one row: through 0 at step -1, or at step 0
        for first_of in (lambda w: peak / w, lambda w: 0.0):
            for whole in by_roundness(step[0] + 1, upper):
                rise = Warmup(float(whole), first_of(whole))
                if abs(float(rise.at(step, peak)[0]) - lr[0]) <= allowed:
                    return rise
        return None
    widths = np.arange(int(step[-1]) + 1, int(upper) + 1, dtype=float)
    low = 0.5 * (1.0 + np.cos(np.pi * step[None, :] / widths[:, None]))
    drop = ((peak - lr)[None, :] * low).sum(axis=1) / (low**2).sum(axis=1)
    misses = np.abs(peak - drop[:, None] * low - lr[None, :]).max(axis=1)
    best = int(misses.argmin())
    if misses[best] > allowed:
        return None
    return Warmup(float(widths[best]), float(max(peak - drop[best], 0.0)), "cosine")
