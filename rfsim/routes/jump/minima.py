"""Early stopping: the step at which the risk of a constant schedule is lowest, from the closed form of its
derivative."""

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from rfsim.checks import positive_number
from rfsim.curves import State
from rfsim.routes.jump.walk import Modes
from rfsim.spectra import Spectrum


class Minimum(NamedTuple):
    """Where the risk of a constant schedule is lowest.

    step : real step; 0 where the risk starts at its lowest, inf where it never gets below its limit.
    risk : R there, or its limit.
    turns : (m,) all real steps > 0 at which R turns, increasing; empty for a monotone curve.
    """

    step: float
    risk: float
    turns: np.ndarray

    @property
    def monotone(self) -> bool:
        """True if R only falls or only rises."""
        return self.turns.size == 0


def minimum(spectrum: Spectrum, lr: float, batch: float, *, state: State | None = None) -> Minimum:
    """Lowest risk over all real steps t >= 0 of a constant schedule, found by roots of dR/dt.

    Parameters
    ----------
    spectrum : real modes; lr, batch : positive numbers; an unstable schedule is allowed, its risk grows in the end.
    state : count steps from this state.

    Notes
    -----
    R_t = limit + sum_k b_k (1 - delta_k)^t, so dR/dt is a sum of exponentials a_k exp(-s_k t). It has at most as
    many zeros as the a_k, ordered by s_k, change sign (Laguerre), and they are isolated without any grid: times
    exp(s t), with s between the two rates of one sign change, its derivative has one sign change less, and between
    zeros of that derivative there is at most one zero (Rolle).
    """
    lr, batch = positive_number("lr", lr), positive_number("batch", batch, allow_inf=True)
    modes = Modes(spectrum)
    start = modes.start(state)
    fixed = modes.constant(lr, batch)
    energy = np.sum(np.stack(start), axis=0)[:, None]
    # exponentials of the modes without memory; they cancel within groups of the others
    bare = energy[fixed.passive, 0]
    rates, slopes = [-fixed.log_bare[fixed.passive]], [bare * fixed.log_bare[fixed.passive]]
    limit = modes.floor
    if fixed.active.size:
        eigen = fixed.eigen
        _, parts, _ = fixed.kernel_modes(energy)
        parts = parts[:, 0] + fixed.passive_modes(energy)[:, 0]
        if fixed.passive.size:
            differences = fixed.decay[fixed.passive][:, None] - eigen.roots
            slopes[0] = slopes[0] * (1.0 - np.sum(eigen.inverse_norm / differences, axis=1))
        safe = np.where(eigen.roots == 0.0, 1.0, eigen.roots)
        per_step = np.where(eigen.roots == 0.0, 1.0, -fixed.log_root / safe)  # -log(1 - delta) / delta
        source = modes.floor + modes.noise
        rates.append(-fixed.log_root)
        slopes.append(parts * fixed.log_root + source * eigen.inverse_norm * per_step)
        stable = eigen.roots[0] > 0.0
        limit += source * float(np.sum(eigen.inverse_norm / safe)) if stable else math.inf
    if min(rate.min(initial=math.inf) for rate in rates) < 0.0 and (bare > 0.0).any():
        limit = math.inf if (fixed.log_bare[fixed.passive] > 0.0).any() else limit
    rate, slope = np.concatenate(rates), np.concatenate(slopes)
    order = np.argsort(rate, kind="stable")
    turns = np.array(_zeros(rate[order], slope[order]))
    candidates = np.concatenate([[0.0], turns])
    values = modes.floor + fixed.totals(candidates, start, modes.floor, modes.noise).sum(axis=1)
    best = int(np.argmin(values))
    if turns.size == 0:
        best = 0 if values[0] <= limit else -1
    if best < 0 or limit < values[best]:
        return Minimum(math.inf, float(limit), turns)
    return Minimum(float(candidates[best]), float(values[best]), turns)


def _zeros(rate: np.ndarray, weight: np.ndarray) -> list[float]:
    """Zeros t > 0 of sum_k weight_k exp(-rate_k t) at which its sign changes, rates increasing; see `minimum`."""
    keep = weight != 0.0
    rate, weight = rate[keep], weight[keep]
    levels = []
    for _ in range(rate.size + 1):  # every round removes one of at most rate.size - 1 sign changes
        changes = np.flatnonzero(np.sign(weight[1:]) != np.sign(weight[:-1]))
        levels.append((rate, weight))
        if changes.size == 0:
            break
        middle = 0.5 * (rate[changes[-1]] + rate[changes[-1] + 1])
        weight = weight * (middle - rate)
        weight = weight / np.max(np.abs(weight), initial=1e-300)
    found: list[float] = []
    for rates, weights in reversed(levels[:-1]):
        found = _between(rates, weights, found)
    return found


def _between(rate: np.ndarray, weight: np.ndarray, edges: list[float]) -> list[float]:
    """Sign changes of the exponential sum, given `edges` such that each piece between them holds at most one."""

    def value(log_time: float) -> float:
        time = math.exp(log_time)
        return float(np.sum(weight * np.exp(-(rate - rate[0]) * time)))

    span = rate[-1] - rate[0]
    step = np.min(np.diff(rate)[np.diff(rate) > 0.0], initial=span)
    early = math.log(1e-20 / span) if not edges else min(math.log(1e-20 / span), math.log(edges[0]) - 1.0)
    late = math.log(2000.0 / step)  # beyond, only the slowest exponential is left
    late = max(late, math.log(edges[-1]) + 1.0) if edges else late
    points = [early, *[math.log(edge) for edge in edges], late]
    values = [value(point) for point in points]
    found = []
    for a, b, at_a, at_b in zip(points[:-1], points[1:], values[:-1], values[1:], strict=True):
        if at_a * at_b < 0.0:
            found.append(math.exp(brentq(value, a, b, xtol=1e-14, rtol=8.9e-16, maxiter=500)))
    return found
