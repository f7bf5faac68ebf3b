"""Two realisations of one ratio path: lr decay at a fixed batch, and batch growth at a fixed lr.

Intrinsic time is cut into macro steps of equal length dT, each with a whole level g. On every macro step the lr-decay
run makes g updates with lr dT / g and the base batch b, the batch-growth run makes n updates with lr dT / n and batch
g b / n. Both advance the clock by dT, use g b samples and have ratio g b / dT, so they share one path exactly; their
risks differ by the size of their steps only (theory: Wang, Liu, Chen 2026, matched factorisations).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rfsim.checks import InputError, positive_number, require_entries, whole_number
from rfsim.schedules.clock import intrinsic_time as running_sum
from rfsim.schedules.paths import _pieces, power_clock
from rfsim.schedules.record import Schedule, from_arrays, require_steps

_ROUNDING = 1e-12
_NODES = 8  # Gauss nodes per macro step for a ratio path that is a function


class Pair(NamedTuple):
    """Two schedules that share a ratio path, to be compared at the ends of macro steps only.

    lr_decay, batch_growth : the schedules; lr_decay has the constant batch b, batch_growth the constant lr.
    level : (K,) whole levels g of the macro steps.
    lr_decay_steps, batch_growth_steps : (K + 1,) steps of each schedule at the ends of macro steps, from 0.
    intrinsic_time, data : (K + 1,) clock and samples there, the same for both.
    """

    lr_decay: Schedule
    batch_growth: Schedule
    level: np.ndarray
    lr_decay_steps: np.ndarray
    batch_growth_steps: np.ndarray
    intrinsic_time: np.ndarray
    data: np.ndarray


def pair(
    target: Schedule | Callable[[np.ndarray], object],
    *,
    lr: float,
    batch: int,
    group: int = 4,
    intrinsic_time: float | None = None,
    power: float = 1.0,
) -> Pair:
    """Realise a ratio path twice, by lr decay at a fixed batch and by batch growth at a fixed lr.

    Parameters
    ----------
    target : a schedule, whose path is taken over, or a function of intrinsic times (k,) that returns r(T) > 0 (k,).
    lr : of the batch-growth run. Macro steps have length dT = group lr; what is left of the horizon after the last
        whole one is not realised.
    batch : base batch b of the lr-decay run, a whole number. The ratio batch / lr has level g = group.
    group : updates n per macro step of the batch-growth run. Batches are whole numbers: if `group` does not divide
        `batch`, levels are multiples of group / gcd(group, batch).
    intrinsic_time : final clock; needed for a function, and at most that of a schedule.
    power : p of the clock with increment lr^p and ratio batch / lr^p; macro steps are then made of lr = (dT/g)^(1/p).

    Returns
    -------
    Pair. Levels are rounded such that the data used up to every macro step is the target's to half a level.

    Raises
    ------
    InputError : for a target that is not positive, a horizon shorter than one macro step, or a ratio below half a
        level somewhere.
    """
    lr, power = positive_number("lr", lr), positive_number("power", power)
    batch, group = whole_number("batch", batch), whole_number("group", group)
    end, data = _target(target, intrinsic_time, power)
    length = group * lr**power
    macros = math.floor(end / length * (1.0 + _ROUNDING))
    if macros < 1:
        raise InputError(
            f"the path ends at intrinsic time {end:g}, before the first macro step of {length:g}; lower lr or group"
        )
    require_steps(macros * group)
    times = np.minimum(length * np.arange(macros + 1.0), end)
    unit = group // math.gcd(group, batch)
    wanted = data(times) / (unit * batch)
    level = unit * np.diff(np.floor(wanted + 0.5))
    require_entries(
        "level", level, level >= 1.0, "at least 1 (raise group, or lower batch or lr: the ratio falls below one level)"
    )
    require_steps(int(level.sum()))
    counts = level.astype(np.int64)
    decaying = from_arrays(np.repeat((length / level) ** (1.0 / power), counts), float(batch))
    growing = from_arrays(lr, np.repeat(level * batch / group, group))
    before = np.concatenate([[0], np.cumsum(counts)])
    return Pair(
        decaying, growing, counts, before, group * np.arange(macros + 1), times, batch * before.astype(np.float64)
    )


def _target(
    target: Schedule | Callable[[np.ndarray], object], horizon: float | None, power: float
) -> tuple[float, Callable[[np.ndarray], np.ndarray]]:
    """Final clock of the target and its data used as a function of the clock."""
    if isinstance(target, Schedule):
        time, _, used = _pieces(target, power_clock(power))
        end = float(time[-1]) if horizon is None else positive_number("intrinsic_time", horizon)
        if end > time[-1] * (1.0 + 1e-12):
            raise InputError(f"intrinsic_time {end:g} is beyond the end {time[-1]:g} of the target; extend the target")
        return end, lambda times: np.interp(times, time, used)
    if horizon is None:
        raise InputError("intrinsic_time is missing; a ratio path that is a function needs a final clock")
    end = positive_number("intrinsic_time", horizon)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)

    def data(times: np.ndarray) -> np.ndarray:
        half = 0.5 * np.diff(times)
        places = (times[:-1] + half)[:, None] + half[:, None] * nodes
        ratio = np.asarray(target(places.ravel()), dtype=np.float64)
        ratio = np.broadcast_to(ratio, (places.size,))
        require_entries("target", ratio, np.isfinite(ratio) & (ratio > 0.0), "finite and positive")
        return running_sum(half * (ratio.reshape(places.shape) @ weights))

    return end, data
