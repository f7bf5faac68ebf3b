"""Smooth schedules over long horizons: adaptive stretches, an error estimate from halving them, Richardson
extrapolation.

Inside a stretch lr and batch are constants that keep the sums of eta and eta^2 / B. Three things decide about the
stretches:

- log lr and log batch change by at most a given amount in each (a schedule that does not change needs one stretch);
- they are at most twice as long as the time since the last break, and the first steps after a break are taken one by
one;
- in front of every recorded step they shrink geometrically towards it. The fast modes follow the schedule of the last
  few steps only, so a long last stretch would show them its mean and not its end.

Halving every stretch then divides the error by four.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rfsim.checks import InputError, RunError, finite_number
from rfsim.curves import Curve, State
from rfsim.routes.jump.walk import Modes, as_steps, cross, recorded_times, step_by_step
from rfsim.schedules import log_spaced_steps
from rfsim.smooth import Smooth, block, plateau_edges, variation
from rfsim.spectra import Spectrum

_VARIATION = 0.5  # of log lr and log batch in a stretch of the coarsest level
_SHRINK = 6.0  # ratio of the distances to a recorded step
_LITERAL = 256  # stretches of the coarsest level up to this length are taken step by step on all levels
_RECORDS = 40  # recorded steps by default
_LEVELS = 8


class SmoothRun(NamedTuple):
    """Curve of a smooth schedule and how far it can be trusted.

    curve : extrapolated values at whole recorded steps.
    error : (k,) estimated relative error of risk, memory and gap, the largest of the three.
    levels : how often the stretches were halved; stretches : how many the finest level has in its main chain.
    """

    curve: Curve
    error: np.ndarray
    levels: int
    stretches: int


def smooth_risk(
    spectrum: Spectrum,
    schedule: Smooth,
    *,
    at: object = None,
    rtol: float = 1e-6,
    levels: int = _LEVELS,
    state: State | None = None,
) -> SmoothRun:
    """Risk of a smooth schedule at recorded whole steps, to relative accuracy `rtol`, in time independent of the steps.

    Parameters
    ----------
    spectrum : real modes; schedule : from rfsim.smooth.
    at : whole steps in 0..N, strictly increasing; default about 40 log-spaced ones with 0 and N.
    rtol : wanted relative accuracy of risk, memory and gap; levels : halvings at most.

    Returns
    -------
    SmoothRun; its `error` is the difference of the last two extrapolations.

    Raises
    ------
    RunError : if the estimate does not fall below `rtol` within `levels` halvings.
    """
    rtol = finite_number("rtol", rtol)
    if rtol <= 0.0:
        raise InputError(f"rtol must be positive, got {rtol:g}; the default is 1e-6")
    modes = Modes(spectrum)
    times = (
        log_spaced_steps(schedule.steps, _RECORDS).astype(float) if at is None else recorded_times(at, schedule.steps)
    )
    if (times != np.floor(times)).any():
        raise InputError("at must hold whole steps for a smooth schedule; round them")
    plateaus = math.ceil(rtol**-0.5) if schedule.ceil else 0
    chain = base_edges(schedule, plateaus)
    routes = [_approach(schedule, chain, time, plateaus) for time in times]
    blind = _unresolved(schedule, times, plateaus)
    plain: list[np.ndarray] = []
    extrapolated: list[np.ndarray] = []
    error = np.full(times.size, math.inf)
    for level in range(levels + 1):
        plain.append(_run(modes, schedule, chain, routes, modes.start(state)))
        if level:
            extrapolated.append(plain[-1] + (plain[-1] - plain[-2]) / 3.0)
            # the first extrapolation is judged by what it corrects, the later ones by how they differ
            before = extrapolated[-2] if level > 1 else plain[-1]
            error = _difference(modes, extrapolated[-1], before) + blind
            if error.max() <= rtol:
                break
        if level < levels:
            chain, routes = chain.halved(schedule), [route.halved(schedule) for route in routes]
    else:
        raise RunError(
            f"relative error {error.max():.1e} after {levels} halvings, wanted {rtol:.1e}; raise levels or rtol"
        )
    forcing, clean_memory, gap = extrapolated[-1].T
    forcing = forcing + modes.floor
    clean = forcing + clean_memory
    clock = np.array([math.fsum(_clock(schedule, chain, route)) for route in routes])
    curve = Curve(as_steps(times), clock, clean + gap, forcing, clean_memory + gap, clean, gap, spectrum.floor)
    return SmoothRun(curve, error, level, len(chain.edges) - 1)


def _difference(modes: Modes, new: np.ndarray, old: np.ndarray) -> np.ndarray:
    """Largest relative difference of risk, memory and gap, (k,), between totals (k, 3)."""

    def parts(totals: np.ndarray) -> np.ndarray:
        memory = totals[:, 1] + totals[:, 2]
        return np.stack([modes.floor + totals[:, 0] + memory, memory, totals[:, 2]], axis=1)

    a, b = parts(new), parts(old)
    return np.max(np.abs(a - b) / np.where(a == 0.0, 1.0, np.abs(a)), axis=1)


class Chain(NamedTuple):
    """Stretches between whole steps.

    edges : steps, increasing; marks[i] says which of the coarsest edges edges[i] is, or -1; literal[i] says that the
        stretch that ends at edges[i] is taken step by step. `start` is the coarsest edge of the main chain at which
        this chain begins.
    """

    edges: list[float]
    marks: list[int]
    literal: list[bool]
    start: int = 0

    def stretches(self) -> list[tuple[float, float, bool]]:
        """First step, last step and whether literal, of every stretch."""
        return list(zip(self.edges[:-1], self.edges[1:], self.literal[1:], strict=True))

    def halved(self, schedule: Smooth) -> "Chain":
        """Every stretch in which lr or batch changes cut into two, the literal ones left alone."""
        edges, marks, literal = [self.edges[0]], [self.marks[0]], [True]
        for (a, b, exact), mark in zip(self.stretches(), self.marks[1:], strict=True):
            if not exact and b - a >= 2.0 and variation(schedule, a, b) > 0.0:
                edges.append(a + math.floor(0.5 * (b - a)))
                marks.append(-1)
                literal.append(False)
            edges.append(b)
            marks.append(mark)
            literal.append(exact)
        return Chain(edges, marks, literal, self.start)


def _chain(schedule: Smooth, edges: list[float], start: int = 0) -> Chain:
    """Coarsest chain over these edges."""
    pairs = pairwise(edges)
    exact = [b - a <= _LITERAL and variation(schedule, a, b) > 0.0 for a, b in pairs]
    return Chain(edges, list(range(len(edges))), [True, *exact], start)


def _unresolved(schedule: Smooth, times: np.ndarray, plateaus: int) -> np.ndarray:
    """Relative error (k,) from plateaus of a rounded-up batch B > plateaus that halving does not see: 1 / (2 B^2)."""
    if not schedule.ceil:
        return np.zeros(times.size)
    size = schedule.at(np.maximum(times - 1.0, 0.0))[1]
    return np.where(size > plateaus, 0.5 / size**2, 0.0)


def base_edges(schedule: Smooth, plateaus: int = 0) -> Chain:
    """The coarsest stretches from step 0 to the last; rounded-up batches up to `plateaus` are followed one by one."""
    last = float(schedule.steps)
    places = {0.0, last, float(min(schedule.head, schedule.steps)), *map(float, schedule.breaks)}
    if schedule.ceil:
        bounds = sorted(places)
        for a, b in pairwise(bounds):
            places.update(_small_plateaus(schedule, a, b, plateaus))
    bounds = sorted(places)
    edges = [0.0]
    for a, b in pairwise(bounds):
        edges.extend(_piece(schedule, a, b))
    return _chain(schedule, edges)


def _small_plateaus(schedule: Smooth, start: float, stop: float, plateaus: int) -> list[float]:
    """Steps at which a small rounded-up batch changes."""
    ends = schedule.at(np.array([start, stop - 1.0]))[1]
    if ends[0] == ends[1] or ends.min() > plateaus:
        return []
    low, high = start, stop  # part in which the batch is small
    inside, outside = (start, stop - 1.0) if ends[0] < ends[1] else (stop - 1.0, start)
    if ends.max() > plateaus:
        while abs(outside - inside) > 1.0:
            middle = math.floor(0.5 * (inside + outside))
            small = schedule.at(np.array([middle]))[1][0] <= plateaus
            inside, outside = (middle, outside) if small else (inside, middle)
        low, high = (start, inside + 1.0) if ends[0] < ends[1] else (inside, stop)
    return [low, high, *plateau_edges(schedule, low, high).tolist()]


def _piece(schedule: Smooth, start: float, stop: float) -> list[float]:
    """Edges after `start` up to `stop` of a piece without breaks."""
    if variation(schedule, start, stop) == 0.0:
        return [stop]
    position, waiting = min(start + _LITERAL, stop), [stop]
    edges = [position]
    while waiting:
        end = waiting[-1]
        if end <= position:
            waiting.pop()
            continue
        long = end - position > 2.0 * max(position - start, 1.0) or variation(schedule, position, end) > _VARIATION
        if end - position > _LITERAL and long:
            waiting.append(position + math.floor(0.5 * (end - position)))
            continue
        edges.append(end)
        position = waiting.pop()
    # shrink towards the end of the piece
    first = max(0, len(edges) - 3)
    return edges[:first] + _shrinking(edges[first], stop) if len(edges) > 3 else edges


def _shrinking(start: float, stop: float) -> list[float]:
    """Edges from start to stop with distances to `stop` that shrink by a constant ratio, start included."""
    edges, distance = [start], stop - start
    while distance > _LITERAL:
        distance /= _SHRINK
        edges.append(stop - float(round(distance)))
    if edges[-1] != stop:
        edges.append(stop)
    return list(dict.fromkeys(edges))


def _approach(schedule: Smooth, chain: Chain, time: float, plateaus: int = 0) -> Chain:
    """Way to a recorded step from an edge of the main chain, with stretches that shrink towards it."""
    edges = np.array(chain.edges)
    index = int(np.searchsorted(edges, time, side="left"))
    special = {0.0, float(schedule.steps), *map(float, schedule.breaks)}
    if edges[index] == time and (time in special or time <= min(_LITERAL, *special - {0.0})):
        return _chain(schedule, [time], index)
    index -= 1  # the stretch that holds the step
    if variation(schedule, edges[index], time) == 0.0:
        return _chain(schedule, [float(edges[index]), time], index)
    for _ in range(
        2
    ):  # begin earlier, but behind the literal first steps after a break or a jump of a rounded-up batch
        before = float(edges[max(index - 1, 0)])
        if not (edges[index] in special or before in special or _jumps(schedule, before, plateaus)):
            index -= 1
    return _chain(schedule, _shrinking(float(edges[index]), time), index)


def _jumps(schedule: Smooth, step: float, plateaus: int) -> bool:
    if not schedule.ceil:
        return False
    sizes = schedule.at(np.array([step - 1.0, step]))[1]
    return bool(sizes[0] != sizes[1] and sizes.min() <= plateaus)


def _run(modes: Modes, schedule: Smooth, chain: Chain, routes: list[Chain], start: State) -> np.ndarray:
    """Totals (k, 3) at the recorded steps on one level."""
    wanted: dict[int, list[int]] = {}
    for number, route in enumerate(routes):
        wanted.setdefault(route.start, []).append(number)
    totals = np.empty((len(routes), 3))

    def leave(mark: int, now: State) -> None:
        for number in wanted.get(mark, ()):
            end = now
            for stretch in routes[number].stretches():
                end = _along(modes, schedule, *stretch, end)
            totals[number] = [part.sum() for part in end]

    now = start
    leave(0, now)
    for stretch, mark in zip(chain.stretches(), chain.marks[1:], strict=True):
        now = _along(modes, schedule, *stretch, now)
        if mark >= 0:
            leave(mark, now)
    return totals


def _along(modes: Modes, schedule: Smooth, start: float, stop: float, literal: bool, now: State) -> State:
    """State after the steps start..stop-1."""
    if literal:
        return step_by_step(modes, *schedule.at(start + np.arange(stop - start)), now)[0]
    lr, batch = block(schedule, start, stop)
    return cross(modes, lr, batch, stop - start, np.zeros(0), now)[0]


def _clock(schedule: Smooth, chain: Chain, route: Chain) -> list[float]:
    """Pieces whose sum is the intrinsic time at the end of a route."""
    edges = chain.edges[: chain.marks.index(route.start) + 1] + route.edges[1:]
    return [block(schedule, a, b).lr * (b - a) for a, b in pairwise(edges)]
