"""Exponents of the power-law model as plain functions of (alpha, beta): coordinates, clean components, optimal rates.

Eigenvalues j^(-2 alpha), target coordinates j^(-beta), p = 2 alpha + 2 beta - 1 > 0. Everything here is exact
arithmetic on exponents; constants are in `rfsim.amplitudes`, names of regimes in `rfsim.regimes`.
Every function raises InputError for alpha <= 0, for p <= 0 and for anything that is not a finite number.
"""

import math
from typing import NamedTuple

from rfsim.checks import InputError, finite_number, positive_number

TOLERANCE = 1e-12
"""Distance from a line within which a point counts as lying on it."""

PHASE_IV_SPLIT = 1.0 - math.sqrt(0.5)
"""The alpha that separates the compute phases IVb (below) and IVa (above)."""

_LARGEST = 1e100


class Optimum(NamedTuple):
    """An optimum in a resource x: risk ~ x^-rate with width ~ x^width and intrinsic time ~ x^intrinsic_time."""

    rate: float
    width: float
    intrinsic_time: float


class Component(NamedTuple):
    """One additive term of the clean risk, of order width^width_exponent * intrinsic_time^time_exponent."""

    name: str
    width_exponent: float
    time_exponent: float


class TakeOver(NamedTuple):
    """From T ~ width^exponent on, the component `after` is larger than `before`."""

    before: str
    after: str
    exponent: float


def power_law_point(alpha: float, beta: float) -> tuple[float, float, float]:
    """Check (alpha, beta); return both as floats, and p = 2 alpha + 2 beta - 1 (target energy above mode j is j^-p).

    Raises
    ------
    InputError
        alpha is not a positive number, beta is not finite, or p <= 0 (the target has infinite energy).
    """
    alpha = positive_number("alpha", alpha)
    beta = finite_number("beta", beta)
    if not 1.0 / _LARGEST <= alpha <= _LARGEST:
        raise InputError(f"alpha must lie in [{1 / _LARGEST:g}, {_LARGEST:g}], got {alpha:g}; use a moderate alpha")
    if abs(beta) > _LARGEST:
        raise InputError(f"beta must lie within +-{_LARGEST:g}, got {beta:g}; use a moderate beta")
    energy_decay = 2.0 * alpha + 2.0 * beta - 1.0
    if energy_decay <= TOLERANCE:
        raise InputError(
            f"alpha and beta must satisfy 2 alpha + 2 beta > 1 (finite target energy), got alpha={alpha!r}, "
            f"beta={beta!r} with 2 alpha + 2 beta = {2.0 * alpha + 2.0 * beta:.12g}; raise alpha or beta"
        )
    return alpha, beta, energy_decay


def forcing_exponent(alpha: float, beta: float) -> float:
    """q_F = (2 alpha + 2 beta - 1)/(2 alpha): the forcing decays like T^-q_F at infinite width (source exponent)."""
    alpha, beta, _ = power_law_point(alpha, beta)
    return 1.0 + (beta - 0.5) / alpha  # exact at q_F = 1


def memory_exponent(alpha: float) -> float:
    """q_K = 2 - 1/(2 alpha): one injection of noise is forgotten like T^-q_K. Not positive for alpha <= 1/4."""
    alpha = positive_number("alpha", alpha)
    return 2.0 - 1.0 / (2.0 * alpha)


def response_coordinates(alpha: float, beta: float) -> tuple[float, float]:
    """(q_F, q_K) of a power-law problem."""
    return forcing_exponent(alpha, beta), memory_exponent(alpha)


def power_law_coordinates(q_forcing: float, q_memory: float) -> tuple[float, float]:
    """(alpha, beta) of the power-law problem with these response exponents: the inverse of `response_coordinates`.

    Raises
    ------
    InputError
        q_forcing <= 0, or q_memory >= 2 (no power law of the eigenvalues forgets that fast).
    """
    q_forcing = positive_number("q_forcing", q_forcing)
    q_memory = finite_number("q_memory", q_memory)
    if q_memory >= 2.0:
        raise InputError(f"q_memory must be below 2 for power-law eigenvalues, got {q_memory:g}; pass a number below 2")
    alpha = 0.5 / (2.0 - q_memory)
    return alpha, 0.5 + alpha * (q_forcing - 1.0)


def clean_forcing_terms(alpha: float, beta: float) -> list[Component]:
    """Terms of the clean forcing F(T, M), an order-of-magnitude sum valid for 1 << T <= C M^(2 alpha).

    * "floor": M^-p (beta < 1/2) or M^(-2 alpha) (beta > 1/2; a factor log M at beta = 1/2);
    * "transient": T^-q_F, the target not yet learned;
    * "feature": M^-1 T^-(q_K - 1), target energy scattered by the random features; only for alpha, beta > 1/2
      (elsewhere absent or below the floor).

    Source: theory of Wang, Liu, Chen 2026, appendix E.1-E.3; the components F_0, F_pp, F_ac of Paquette et al. 2024.
    """
    alpha, beta, energy_decay = power_law_point(alpha, beta)
    terms = [
        Component("floor", -energy_decay if beta < 0.5 else -2.0 * alpha, 0.0),
        Component("transient", 0.0, -energy_decay / (2.0 * alpha)),
    ]
    if alpha > 0.5 + TOLERANCE and beta > 0.5 + TOLERANCE:
        terms.append(Component("feature", -1.0, -1.0 + 0.5 / alpha))
    return terms


def clean_risk_terms(alpha: float, beta: float) -> list[Component]:
    """`clean_forcing_terms` and, for alpha > 1/4, the "memory" of minibatch noise, lr * T^-q_K at the largest lr.

    That lr is of order 1 for alpha >= 1/2 and M^(2 alpha - 1) below; the batch is constant.
    """
    terms = clean_forcing_terms(alpha, beta)
    if alpha > 0.25 + TOLERANCE:
        terms.append(Component("memory", min(0.0, 2.0 * alpha - 1.0), -2.0 + 0.5 / alpha))
    return terms


def takeover_times(alpha: float, beta: float, *, memory: bool = False) -> list[TakeOver]:
    """Which component leads and from when: exponents x of the take-over times T ~ M^x inside 1 <= T <= C M^(2 alpha).

    Starts from "transient" and follows the largest term of `clean_forcing_terms` (or, with `memory`, of
    `clean_risk_terms`). Exponents only: a take-over at x = 0 happens after a time that does not grow with the width.
    """
    terms = clean_risk_terms(alpha, beta) if memory else clean_forcing_terms(alpha, beta)
    leader = next(term for term in terms if term.name == "transient")
    now = 0.0
    path: list[TakeOver] = []
    while True:
        crossings = [
            ((leader.width_exponent - term.width_exponent) / (term.time_exponent - leader.time_exponent), term)
            for term in terms
            if term.time_exponent > leader.time_exponent + TOLERANCE
        ]
        reachable = [(max(when, now), term) for when, term in crossings if when <= 2.0 * alpha * (1.0 + TOLERANCE)]
        if not reachable:
            return path
        now, successor = min(reachable, key=lambda item: (round(item[0], 12), -item[1].time_exponent))
        path.append(TakeOver(leader.name, successor.name, now))
        leader = successor


def data_optimum(alpha: float, beta: float) -> Optimum:
    """Best risk ~ D^-rate from D samples with label noise, over schedules and widths; width, time as powers of D.

    Balances floor, transient, feature term and noise x/D (alpha > 1/4) or M^(1 - 4 alpha) x^(4 alpha)/D (below), where
    x = T^(1/(2 alpha)) <= M. The formulas agree on the lines between regimes. Orders of magnitude only.

    Source: theory of Wang, Liu, Chen 2026, table of optimal rates.
    """
    alpha, beta, p = power_law_point(alpha, beta)
    time = 2.0 * alpha / (1.0 + p)
    if alpha > 0.5 and beta < 0.0:
        return Optimum(p / (2.0 * alpha), 1.0 / (2.0 * alpha), 1.0)
    if beta <= 0.5:
        return Optimum(p / (1.0 + p), 1.0 / (1.0 + p), time)
    if alpha > 0.5:
        return Optimum(p / (1.0 + p), 2.0 * beta / (1.0 + p), time)
    if alpha > 0.25:
        return Optimum(p / (1.0 + p), p / (2.0 * alpha * (1.0 + p)), time)
    scale = p * (1.0 - 2.0 * alpha) + 8.0 * alpha**2
    return Optimum(2.0 * alpha * p / scale, p / scale, 4.0 * alpha**2 / scale)


def compute_optimum(alpha: float, beta: float) -> Optimum:
    """Best risk ~ f^-rate from feature compute f = M D with label noise; width and time as powers of f (D = f/M).

    Same balance as `data_optimum`. At alpha = 1, beta > 1/2 the rate is 1/2 but the allocation is not unique; the
    one returned is the limit from alpha < 1.
    """
    alpha, beta, p = power_law_point(alpha, beta)
    if alpha > 0.5 and beta < 0.0:
        scale = 1.0 + 2.0 * alpha
        return Optimum(p / scale, 1.0 / scale, 2.0 * alpha / scale)
    if beta <= 0.5:
        return Optimum(p / (2.0 + p), 1.0 / (2.0 + p), 2.0 * alpha / (2.0 + p))
    if alpha > 1.0:
        scale = 2.0 * (1.0 + alpha)
        return Optimum(alpha / (1.0 + alpha), 1.0 / scale, 2.0 * alpha / scale)
    if alpha > 0.5:
        scale = 1.0 + p + 2.0 * beta
        return Optimum(p / scale, 2.0 * beta / scale, 2.0 * alpha / scale)
    if alpha > 0.25:
        scale = p + 2.0 * alpha * (1.0 + p)
    else:
        scale = p * (2.0 - 2.0 * alpha) + 8.0 * alpha**2
    return Optimum(2.0 * alpha * p / scale, p / scale, 4.0 * alpha**2 / scale)


def compute_phase_rates(alpha: float, beta: float) -> tuple[float, float]:
    """(rho0, xi0): best clean risk ~ f^-rho0, at width ~ f^xi0, from feature compute f = t B M.

    No label noise, fixed batch; the lr is the largest admissible one, of order 1 (alpha > 1/2) or M^(2 alpha - 1).
    rho0 is continuous across all phase lines; xi0 jumps at alpha = 1 - 1/sqrt 2 (beta > 1/2), where the optimum is
    flat: the IVa value is returned there.

    Source: the 4 + 3 phases of Paquette et al. 2024, with the admissible lr of Wang, Liu, Chen 2026.
    """
    alpha, beta, p = power_law_point(alpha, beta)
    if beta <= 0.5:
        return (p / (2.0 * alpha + 1.0), 1.0 / (2.0 * alpha + 1.0)) if alpha > 0.5 else (p / 2.0, 0.5)
    if alpha > 0.5:
        if beta <= alpha:
            return p / (2.0 * (alpha + beta)), beta / (alpha + beta)
        return (4.0 * alpha - 1.0) / (4.0 * alpha), 0.5
    if alpha >= PHASE_IV_SPLIT - TOLERANCE:
        return alpha, 0.5
    if alpha > 0.25:
        scale = 2.0 * beta * (1.0 - alpha) - alpha
        return (1.0 - 2.0 * alpha) * p / (2.0 * scale), (beta - alpha) / scale
    scale = 2.0 * beta - 1.0 + 3.0 * alpha - 2.0 * alpha * beta
    return alpha * p / scale, p / (2.0 * scale)
