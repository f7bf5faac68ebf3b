"""The path of a schedule: intrinsic time, ratio batch / lr and data used, by any clock; how far two paths are apart."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rfsim.checks import InputError, positive_number
from rfsim.precision import is_traced
from rfsim.schedules.clock import intrinsic_time, recorded_steps
from rfsim.schedules.record import Schedule

Clock = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From lr (N,) and batch (N,) to the clock increment (N,) and the ratio (N,) of every step."""

_SLIVER = 1e-12  # pieces of a path shorter than this share of it come from rounding


class Path(NamedTuple):
    """What a schedule does, at recorded steps t.

    step : (k,) recorded steps in 0..N.
    lr, batch, ratio : (k,) of the step from t to t+1; at t = N those of the last step, as if it went on flat.
    intrinsic_time : (k,) clock T_t, the sum of the increments of the steps before t.
    data : (k,) samples used by the steps before t.

    With the clock of SGD the ratio is r_t = batch / lr and data = integral of r over the clock.
    """

    step: np.ndarray
    lr: np.ndarray
    batch: np.ndarray
    intrinsic_time: np.ndarray
    ratio: np.ndarray
    data: np.ndarray


class PathDistance(NamedTuple):
    """How far two runs are from sharing one ratio path; all numbers are 0 if they do.

    ratio : mean over the common clock of |log(r_a / r_b)|: 0.01 is one per cent of the ratio.
    largest : largest |log(r_a / r_b)| on the common clock.
    data : largest difference of the data used at equal clock, over the data of the longer run.
    horizon : difference of the final clocks, over the longer one.
    """

    ratio: float
    largest: float
    data: float
    horizon: float


def sgd_clock(lr: np.ndarray, batch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Clock of SGD: increment lr, ratio batch / lr (inf where lr is 0)."""
    return _power_clock(lr, batch, 1.0)


def power_clock(power: float) -> Clock:
    """Clock with increment lr^p and ratio batch / lr^p; p = 2 is the calibration proposed for Muon-like optimisers."""
    exponent = positive_number("power", power)

    def clock(lr: np.ndarray, batch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _power_clock(lr, batch, exponent)

    return clock


def path(schedule: Schedule, *, at: object = None, clock: Clock = sgd_clock) -> Path:
    """Intrinsic time, ratio and data of a schedule at recorded steps.

    Parameters
    ----------
    schedule : N >= 1 steps, not traced.
    at : recorded steps in 0..N, increasing; default every step 0..N.
    clock : function (lr, batch) -> (increment, ratio) of arrays (N,), default `sgd_clock`.

    Returns
    -------
    Path. Clock and data are sums in which rounding errors are compensated: right to 1e-15 of the sum over any number
    of steps.

    Raises
    ------
    InputError : for a traced or empty schedule, bad steps, or a clock that gives increments that are negative, not
        finite or of another shape.
    """
    steps = recorded_steps(np.arange(_length_of(schedule) + 1) if at is None else at, schedule.steps)
    lr, batch = np.asarray(schedule.lr), np.asarray(schedule.batch)
    increment, ratio = _read_clock(clock, lr, batch)
    now = np.minimum(steps, schedule.steps - 1)
    return Path(steps, lr[now], batch[now], intrinsic_time(increment, steps), ratio[now], _running_data(batch, steps))


def path_distance(a: Schedule, b: Schedule, *, clock: Clock = sgd_clock, grain: float | None = None) -> PathDistance:
    """Measure how well two schedules share a ratio path r(T): see `PathDistance`.

    Steps whose increment is 0 move no clock and are left out. The ratio is compared where both clocks run, piece by
    piece between their ticks. `ratio` is a distance: symmetric, and no longer than a detour through a third schedule
    of the same horizon.

    Parameters
    ----------
    a, b : schedules with finite batches.
    clock : the clock on which they are compared.
    grain : compare the mean ratio (data used over clock) in windows of this length of the clock instead, so that
        whole-number batches that alternate around a value count as that value.

    Raises
    ------
    InputError : for empty schedules, schedules whose clock never moves, infinite batches, or a grain that is not
        positive or beyond the common clock.
    """
    paths = [_pieces(one, clock) for one in (a, b)]
    end = min(time[-1] for time, _, _ in paths)
    longest = max(time[-1] for time, _, _ in paths)
    edges = np.union1d(paths[0][0], paths[1][0])
    edges = edges[edges <= end]
    used = [np.interp(edges, time, data) for time, _, data in paths]
    gap = float(np.max(np.abs(used[0] - used[1])) / max(data[-1] for _, _, data in paths))
    if grain is None:
        middle = 0.5 * (edges[1:] + edges[:-1])
        logs = [np.log(ratio[np.searchsorted(time, middle, "right") - 1]) for time, ratio, _ in paths]
    else:
        windows = int(end / positive_number("grain", grain) + _SLIVER)
        if windows == 0:
            raise InputError(f"grain {grain:g} is beyond the common clock {end:g}; take shorter windows")
        edges = np.minimum(grain * np.arange(windows + 1.0), end)
        logs = [np.log(np.diff(np.interp(edges, time, data))) for time, _, data in paths]
    width = np.diff(edges)
    real = width > _SLIVER * longest
    apart = np.abs(logs[0] - logs[1])[real]
    mean = float(np.average(apart, weights=width[real]))
    return PathDistance(mean, float(apart.max()), gap, float((longest - end) / longest))


def _pieces(schedule: Schedule, clock: Clock) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Clock at the ticks (n+1,), ratio between them (n,), data at the ticks (n+1,); steps without a tick left out."""
    _length_of(schedule)
    lr, batch = np.asarray(schedule.lr), np.asarray(schedule.batch)
    increment, ratio = _read_clock(clock, lr, batch)
    moving = increment > 0.0
    if not moving.any():
        raise InputError("the clock of the schedule never moves (lr 0 at every step), so it has no ratio path")
    if not np.isfinite(batch).all():
        raise InputError("batch is inf somewhere, so the ratio is not finite; use finite batches for a ratio path")
    return intrinsic_time(increment[moving]), ratio[moving], intrinsic_time(batch[moving])


def _length_of(schedule: Schedule) -> int:
    if is_traced(schedule):
        raise InputError("a traced schedule has no path in numbers; call this outside of jit, vmap and grad")
    if schedule.steps == 0:
        raise InputError("the schedule has no steps, so it has no path; give it at least one step")
    return schedule.steps


def _read_clock(clock: Clock, lr: np.ndarray, batch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    increment, ratio = (np.asarray(values, dtype=np.float64) for values in clock(lr, batch))
    if increment.shape != lr.shape or ratio.shape != lr.shape:
        raise InputError(
            f"clock must return increment and ratio of shape {lr.shape}, got {increment.shape} and {ratio.shape}"
        )
    if not (np.isfinite(increment) & (increment >= 0.0)).all() or not (ratio > 0.0).all():
        raise InputError("clock must return finite increments >= 0 and ratios > 0; check it on these lr and batch")
    return increment, ratio


def _running_data(batch: np.ndarray, steps: np.ndarray) -> np.ndarray:
    if np.isfinite(batch).all():
        return intrinsic_time(batch, steps)
    return np.concatenate([[0.0], np.cumsum(batch)])[steps]


def _power_clock(lr: np.ndarray, batch: np.ndarray, exponent: float) -> tuple[np.ndarray, np.ndarray]:
    increment = np.asarray(lr) ** exponent
    with np.errstate(divide="ignore"):
        return increment, np.asarray(batch) / increment
