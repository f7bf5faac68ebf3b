"""The final loss of a law and its derivative in the learning rate of every update, for the design of schedules.

A schedule is given as blocks of updates that share an lr: `lr` (n,), `count` (n,) updates of each block, `batch` (n,).
With one update per block this is the law itself; long blocks far from the end make it quick for long schedules.
"""

from functools import singledispatch
from typing import Any

import numpy as np

from rfsim.checks import InputError
from rfsim.logs import NormModel
from rfsim.surrogates.block_rates import block_rates
from rfsim.surrogates.forcing_memory import ForcingMemory, log_age
from rfsim.surrogates.functional_scaling import FunctionalScaling
from rfsim.surrogates.kernel import _divided
from rfsim.surrogates.laws import Law, needs_norm
from rfsim.surrogates.momentum import Momentum
from rfsim.surrogates.multi_power import MultiPower
from rfsim.surrogates.rate_scaling import EffectiveRateScaling, RateScaling

_LEAST = 1e-12  # lr over its unit below which derivatives, some infinite at 0, are taken


def final_loss_and_slope(
    law: Law[Any],
    values: np.ndarray,
    lr: np.ndarray,
    count: np.ndarray,
    batch: np.ndarray,
    norm_model: NormModel | None = None,
) -> tuple[float, np.ndarray]:
    """Loss after the last update, and its derivative (n,) in the lr of each block.

    Parameters
    ----------
    law : with its units; values : (k,) its parameters.
    lr : (n,) >= 0; count : (n,) updates of each block; batch : (n,).
    norm_model : for laws in the effective lr, whose derivative goes through the norms too (`block_rates`).

    The derivative is exact for the sum over blocks, and costs as much as that sum. That the warm-up of some laws ends
    where the lr first stops rising is taken as it is, not differentiated.

    Raises
    ------
    InputError : for a law without such a derivative, or in the effective lr without a model of the norm.
    """
    if not needs_norm(law):
        return _in_rate(law, values, lr, count, batch)
    if norm_model is None:
        raise InputError(f"norm_model is missing: {law.name} needs the norms that the lr leads to; give a NormModel")
    rate, reverse = block_rates(lr, count, norm_model)
    loss, by_rate = _in_rate(law, values, rate, count, batch)
    return loss, reverse(by_rate)


@singledispatch
def _in_rate(
    law: Law[Any], values: np.ndarray, lr: np.ndarray, count: np.ndarray, batch: np.ndarray
) -> tuple[float, np.ndarray]:
    """Final loss and its derivative in what the law takes as lr: the lr itself, or the effective one."""
    raise InputError(f"law {law.name} has no derivative in the lr; allowed: a law of rfsim in the lr and the batch")


@_in_rate.register
def _(
    law: ForcingMemory, values: np.ndarray, lr: np.ndarray, count: np.ndarray, batch: np.ndarray
) -> tuple[float, np.ndarray]:
    l_inf, a_f, q_f, a_0, a_1, c = values[:6]
    q = law.q_memory if law.q_memory is not None else values[6]
    p, f = law.clock_power, law.forcing_power
    power = (1.0 + p if law.injection_power is None else law.injection_power) - p
    x = np.maximum(lr / _unit(law, law.lr_unit), _LEAST)
    size = batch / _unit(law, law.batch_unit)
    increment, moved = count * x**p, count * x**f
    rate = x**power / size
    forcing = np.concatenate([[0.0], np.cumsum(moved)])
    log_lag = np.log1p(c * _after(increment))
    whole = _divided(log_lag, 1.0 - q) / c  # integral of the kernel over all lags up to that of each edge
    kernel = np.exp(-q * log_lag)
    kept = whole[:-1] - whole[1:]
    # the mean source of a block by Simpson's rule, its kernel exactly
    middle = law.forcing_start + 0.5 * (forcing[1:] + forcing[:-1])
    decay, half = np.exp(-q_f * log_age(forcing, law.forcing_start)), np.exp(-q_f * np.log(middle))
    source = a_0 + a_1 / 6.0 * (decay[1:] + 4.0 * half + decay[:-1])
    loss = l_inf + a_f * decay[-1] + float(np.sum(rate * kept * source))
    # through the clock of the memory, that of the forcing, and the rate
    strength = rate * source
    past = np.cumsum(strength * kernel[:-1])
    by_increment = past - np.concatenate([[0.0], np.cumsum(strength * kernel[1:])[:-1]])
    weight = np.zeros_like(decay)
    weight[:-1] += a_1 / 6.0 * rate * kept
    weight[1:] += a_1 / 6.0 * rate * kept
    weight[-1] += a_f
    at_edges = -q_f * weight * decay / (law.forcing_start + forcing)
    at_middles = -q_f * a_1 / 1.5 * rate * kept * half / middle
    by_moved = _after(at_edges[1:])[:-1] + _after(at_middles)[1:] + 0.5 * at_middles
    slope = by_increment * p * increment / x + by_moved * f * moved / x + kept * source * power * rate / x
    return loss, slope / law.lr_unit


@_in_rate.register
def _(
    law: FunctionalScaling, values: np.ndarray, lr: np.ndarray, count: np.ndarray, batch: np.ndarray
) -> tuple[float, np.ndarray]:
    l_0, c_1, s, a_0, a_1, c = values[:6]
    q = law.q_memory if law.q_memory is not None else values[6]
    unit = _unit(law, law.lr_unit)
    moved = count * lr / unit
    clock = np.concatenate([[0.0], np.cumsum(moved)])
    end = clock[-1]
    drop, counted = _drops(lr / unit, warmup=law.warmup_in_memory, first=False)
    counted &= clock[:-1] > 0.0
    drop = np.where(counted, drop, 0.0)
    place = np.where(counted, clock[:-1], end)
    lag = _after(moved)[:-1]
    log = np.log1p(c * lag)
    gained = _divided(log, 1.0 - q) / c
    follows = a_1 * place**-s
    source = a_0 + follows
    loss = l_0 + c_1 * end**-s - float(np.sum(drop * source * gained))
    by_lag = np.cumsum(-drop * source * np.exp(-q * log))
    by_place = _after(s * drop * follows / place * gained)[1:]
    by_moved = by_lag + by_place - s * c_1 * end ** (-s - 1.0)
    return loss, (by_moved * count + _through_drops(-source * gained * counted)) / unit


@_in_rate.register
def _(
    law: MultiPower, values: np.ndarray, lr: np.ndarray, count: np.ndarray, batch: np.ndarray
) -> tuple[float, np.ndarray]:
    l_0, a, alpha, b, c, beta, gamma = values
    x = np.maximum(lr / law.lr_unit, _LEAST)
    lag = _after(count * x)[:-1]  # update k itself included
    drop, counted = _drops(lr / law.lr_unit, warmup=law.warmup_in_memory, first=True)
    drop = np.where(counted, drop, 0.0)
    rate = c * x**-gamma
    left = np.exp(-beta * np.log1p(rate * lag))
    loss = l_0 + a * lag[0] ** -alpha - b * float(np.sum(drop * (1.0 - left)))
    faster = -b * drop * beta * left / (1.0 + rate * lag)  # derivative in rate x lag
    by_moved = np.cumsum(faster * rate) - alpha * a * lag[0] ** (-alpha - 1.0)
    direct = -gamma * faster * rate * lag / x
    return loss, (by_moved * count + direct + _through_drops(-b * (1.0 - left) * counted)) / law.lr_unit


@_in_rate.register
def _(
    law: Momentum, values: np.ndarray, lr: np.ndarray, count: np.ndarray, batch: np.ndarray
) -> tuple[float, np.ndarray]:
    l_0, a, alpha, c = values[:4]
    rest = 1.0 / values[4] if law.lam is None else 1.0 - law.lam  # 1 - lam
    unit = _unit(law, law.lr_unit)
    clock = max(float(np.sum(count * lr)) / unit, _LEAST)
    drop, counted = _drops(lr / unit, warmup=law.warmup_in_memory, first=True)
    updates = _after(count.astype(np.float64))[:-1]
    acted = np.where(counted, -np.expm1(updates * np.log1p(-rest)) / rest if rest < 1.0 else 1.0, 0.0)
    loss = l_0 + a * clock**-alpha - c * float(np.sum(drop * acted))
    return loss, (-alpha * a * clock ** (-alpha - 1.0) * count + _through_drops(-c * acted)) / unit


@_in_rate.register(EffectiveRateScaling)
@_in_rate.register(RateScaling)
def _(
    law: EffectiveRateScaling | RateScaling, values: np.ndarray, lr: np.ndarray, count: np.ndarray, batch: np.ndarray
) -> tuple[float, np.ndarray]:
    l_inf, c_1, b_1, a_1, c_2, b_2, a_2 = values
    unit = _unit(law, law.rate_unit)
    x = lr / unit
    lag = _after(count * x)
    # the updates of a block lie evenly from its begin to its end; its last one has the lag of the end
    middle = b_2 + lag[1:] + 0.5 * (count - 1.0) * x
    kernel = count * middle**-a_2
    age = b_1 + lag[0]
    loss = l_inf + c_1 * age**-a_1 + c_2 * float(np.sum(kernel * x**2))
    later = -a_2 * c_2 * kernel / middle * x**2
    by_moved = np.concatenate([[0.0], np.cumsum(later)[:-1]]) - a_1 * c_1 * age ** (-a_1 - 1.0)
    return loss, (by_moved * count + later * 0.5 * (count - 1.0) + 2.0 * c_2 * kernel * x) / unit


def _unit(law: Law[Any], unit: float | None) -> float:
    if unit is None:
        raise InputError(f"law {law.name} has no units yet; take that of a fit, or give the unit as an option")
    return unit


def _after(values: np.ndarray) -> np.ndarray:
    """Sums from each entry to the end (n+1,), the last one 0."""
    return np.concatenate([np.cumsum(values[::-1])[::-1], [0.0]])


def _drops(lr: np.ndarray, *, warmup: bool, first: bool) -> tuple[np.ndarray, np.ndarray]:
    """Falls of the lr at each block (n,), and which of them count, as in `changes.lr_drops`."""
    drop = -np.diff(lr, prepend=0.0)
    counted = np.ones(len(lr), dtype=bool)
    if not warmup:
        stops = np.flatnonzero((drop >= 0.0) & (np.cumsum(lr) > 0.0))
        counted[: int(stops[0]) if stops.size else len(lr)] = False
    if not first:
        counted[:1] = False
    return np.where(counted, drop, 0.0), counted


def _through_drops(by_drop: np.ndarray) -> np.ndarray:
    """Derivative in the lr (n,) from that in the falls eta_{i-1} - eta_i (n,)."""
    return np.concatenate([by_drop[1:], [0.0]]) - by_drop
