"""Do runs that share a ratio path r(T), with other lr and batch, share their losses? Compared at equal intrinsic time.

Theory lets two factorisations of one path differ by the size of their steps only (theory, section 7.6). The losses are
compared at the same clock; beside the difference stand the distance of the two paths, which should be small, and the
difference at the same step, which shows how much there was to collapse.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator

from rfsim.checks import FloatArray, InputError, finite_vector, require_entries
from rfsim.logs import Run
from rfsim.schedules import Clock, PathDistance, intrinsic_time, path_distance, sgd_clock

_ROUNDING = 1e-9  # clocks closer than this share of the horizon are the same
_OTHER_PATH = 0.02  # mean |log(r_a / r_b)| above which two runs do not share a path


class Collapse(NamedTuple):
    """Two runs at common intrinsic times.

    first, second : names of the runs.
    intrinsic_time : (k,) clocks at which they are compared.
    loss_first, loss_second : (k,) losses there. difference : (k,) second minus first.
    interpolated : how many of the 2k losses lie between rows.
    rmse, largest : root mean square and largest absolute difference, in loss.
    by_step : root mean square difference at equal steps instead, over the steps that both logs span; NaN without any.
    path : distance of the two schedules' ratio paths.
    """

    first: str
    second: str
    intrinsic_time: FloatArray
    loss_first: FloatArray
    loss_second: FloatArray
    difference: FloatArray
    interpolated: int
    rmse: float
    largest: float
    by_step: float
    path: PathDistance

    def notes(self) -> list[str]:
        """What a reader has to know before trusting the numbers, one line each."""
        told = []
        if self.path.ratio > _OTHER_PATH:
            told.append(
                f"{self.first} and {self.second} do not share a ratio path: r differs by {self.path.ratio:.0%} on "
                f"average, at most by a factor {np.exp(self.path.largest):.3g}; losses need not agree"
            )
        return told

    def summary(self) -> str:
        """The comparison as text."""
        line = (
            f"{self.second} - {self.first}: rmse {self.rmse:.3g}, largest {self.largest:.3g} at "
            f"{len(self.intrinsic_time)} clocks (by step {self.by_step:.3g}), path distance {self.path.ratio:.3g}, "
            f"{self.interpolated} of {2 * len(self.intrinsic_time)} losses interpolated"
        )
        return "\n".join([line, *self.notes()])


def collapse(
    first: Run, second: Run, *, at: object = None, clock: Clock = sgd_clock, grain: float | None = None
) -> Collapse:
    """Compare two runs at equal intrinsic time.

    A run's loss at a clock is that of its row there, or lies on the monotone cubic through its rows (Fritsch and
    Carlson 1980). A row at the end of a macro step is a row of both runs of a pair, so nothing is interpolated there.

    Parameters
    ----------
    first, second : two runs.
    at : (k,) intrinsic times, such as the ends of macro steps (`Pair.intrinsic_time`); default those rows of the run
        with fewer rows that lie in the stretch that both logs span.
    clock : (lr, batch) -> (increment, ratio) of every step, default that of SGD.
    grain : window over which the ratios of the paths are averaged before their distance is taken.

    Raises
    ------
    InputError : if the logs span no common stretch, or `at` reaches beyond it.

    Source: theory, section 7.6.
    """
    rows = [_on_clock(run, clock) for run in (first, second)]
    low, high = max(time[0] for time, _ in rows), min(time[-1] for time, _ in rows)
    slack = _ROUNDING * high
    if low > high:
        raise InputError(
            f"{first.name} and {second.name} must span a common stretch of intrinsic time; the logs end at "
            f"{rows[0][0][-1]:g} and {rows[1][0][-1]:g}, one begins at {low:g}: log them at common clocks"
        )
    if at is None:
        inside = [time[(time >= low - slack) & (time <= high + slack)] for time, _ in rows]
        times = min((one for one in inside if one.size), key=len)  # both ends of the stretch are rows
    else:
        times = finite_vector("at", at, least=0.0)
        good = (times >= low - slack) & (times <= high + slack)
        require_entries("at", times, good, f"in the stretch {low:g} to {high:g} that both logs span")
    losses, between = zip(*(_losses_at(time, loss, times, slack) for time, loss in rows), strict=True)
    difference = losses[1] - losses[0]
    return Collapse(
        first=first.name,
        second=second.name,
        intrinsic_time=times,
        loss_first=losses[0],
        loss_second=losses[1],
        difference=difference,
        interpolated=int(sum(between)),
        rmse=float(np.sqrt(np.mean(difference**2))),
        largest=float(np.max(np.abs(difference))),
        by_step=_by_step(first, second),
        path=path_distance(first.schedule, second.schedule, clock=clock, grain=grain),
    )


def collapse_all(
    runs: Sequence[Run], *, at: object = None, clock: Clock = sgd_clock, grain: float | None = None
) -> tuple[Collapse, ...]:
    """`collapse` of every pair of runs, in their order.

    Raises
    ------
    InputError : for fewer than two runs, and as `collapse`.
    """
    chosen = list(runs)
    if len(chosen) < 2:
        raise InputError(f"runs must hold at least 2 runs of one ratio path, got {len(chosen)}")
    return tuple(collapse(a, b, at=at, clock=clock, grain=grain) for a, b in combinations(chosen, 2))


def _on_clock(run: Run, clock: Clock) -> tuple[FloatArray, FloatArray]:
    """Clock and loss of the rows of a run; of rows between which the clock stood still, the last."""
    increment, _ = clock(np.asarray(run.schedule.lr, np.float64), np.asarray(run.schedule.batch, np.float64))
    time = np.asarray(intrinsic_time(np.asarray(increment, np.float64)))[run.step.astype(np.int64)]
    last = np.append(np.diff(time) > 0.0, True)
    return time[last], run.loss[last]


def _losses_at(time: FloatArray, loss: FloatArray, times: FloatArray, slack: float) -> tuple[FloatArray, int]:
    """Losses at given clocks, and how many of them lie between rows."""
    place = np.clip(np.searchsorted(time, times), 1, max(len(time) - 1, 1))
    before, after = place - 1, np.minimum(place, len(time) - 1)
    nearest = np.where(np.abs(time[before] - times) <= np.abs(time[after] - times), before, after)
    on_row = np.abs(time[nearest] - times) <= slack
    found = loss[nearest].copy()
    if not on_row.all():
        found[~on_row] = PchipInterpolator(time, loss)(times[~on_row])
    return found, int(np.sum(~on_row))


def _by_step(first: Run, second: Run) -> float:
    """Root mean square difference at equal steps: the rows of the run with fewer rows in the common span."""
    low, high = max(first.step[0], second.step[0]), min(first.step[-1], second.step[-1])
    inside = [one.step[(one.step >= low) & (one.step <= high)] for one in (first, second)]
    steps = min((one for one in inside if one.size), key=len, default=np.zeros(0))
    if steps.size == 0:
        return float("nan")
    losses = [_losses_at(one.step, one.loss, steps, 0.0)[0] for one in (first, second)]
    return float(np.sqrt(np.mean((losses[1] - losses[0]) ** 2)))
