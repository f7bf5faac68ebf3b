"""Where noise stops decaying: the long-memory edge vartheta = 1 - q_K, and exponential growth at a constant ratio.

The memory profile is k(x) ~ c_K x^-q_K, the ratio r = batch/lr ~ c_r T^vartheta; the risk solves
R(T) = F(T) + integral of k(T - u)(R(u) + sigma^2)/r(u) over 0 < u < T, on an infinite spectrum.
"""

import math
from typing import NamedTuple

from scipy.optimize import brentq

from rfsim.amplitudes import logistic_moment
from rfsim.checks import InputError, finite_number, positive_number
from rfsim.exponents import TOLERANCE

_HEAD = 64  # modes below this one are summed one by one
_ONE_MODE = 50.0  # from this alpha on only the first mode counts in double precision


class EdgeLaw(NamedTuple):
    """The long-memory edge vartheta = 1 - q_K; see `lm_edge`."""

    constant: float
    bounded: bool
    plateau_factor: float | None
    exponent: float
    reason: str


def lm_edge(q_memory: float, amplitude_ratio: float) -> EdgeLaw:
    """The edge vartheta = 1 - q_K of long memory (0 < q_K < 1), where feedback is scale invariant.

    With C1 = (c_K/c_r) Beta(q_K, 1 - q_K): for C1 < 1 the gap tends to sigma^2 C1/(1 - C1); for C1 >= 1 it grows.
    Powers T^-g solve the clean equation without forcing for (c_K/c_r) Beta(1 - q_K, q_K - g) = 1.

    Parameters
    ----------
    amplitude_ratio
        c_K/c_r > 0, from k ~ c_K x^-q_K and r ~ c_r T^(1 - q_K).

    Returns
    -------
    EdgeLaw
        * constant: C1; * bounded: C1 < 1; * plateau_factor: C1/(1 - C1), None if unbounded;
        * exponent: the root g; positive below C1 = 1, zero at it (growth like log T), and for C1 > 1 negative: the gap
          grows like T^-g;
        * reason: one sentence.
    """
    q_memory = _long_memory(q_memory)
    strength = positive_number("amplitude_ratio", amplitude_ratio)
    constant = strength * beta_function(q_memory, 1.0 - q_memory)

    def log_mass(log_distance: float) -> float:
        return math.log(strength) + _log_beta(1.0 - q_memory, math.exp(log_distance))

    low, high = -1.0, 1.0
    while log_mass(low) < 0.0:
        low *= 2.0
        if low < -700.0:
            raise InputError(f"amplitude_ratio must not be that small, got {amplitude_ratio:g}; lower the ratio c_r")
    while log_mass(high) > 0.0:
        high *= 2.0
        if high > 700.0:
            raise InputError(f"amplitude_ratio must not be that large, got {amplitude_ratio:g}; raise the ratio c_r")
    exponent = q_memory - math.exp(float(brentq(log_mass, low, high, xtol=1e-14, rtol=8.9e-16)))
    if abs(constant - 1.0) <= TOLERANCE:
        return EdgeLaw(constant, False, None, 0.0, "edge constant 1: the gap grows like log T")
    if constant > 1.0:
        return EdgeLaw(constant, False, None, exponent, "edge constant above 1: the gap grows like a power of T")
    return EdgeLaw(constant, True, constant / (1.0 - constant), exponent, "edge constant below 1: bounded plateau")


def lm_edge_clean_exponent(q_forcing: float, q_memory: float, amplitude_ratio: float) -> float:
    """q_0 = min(q_F, g) on the long-memory edge, g the exponent of `lm_edge`; not above 0 means no decay."""
    q_forcing = positive_number("q_forcing", q_forcing)
    return min(q_forcing, lm_edge(q_memory, amplitude_ratio).exponent)


def lm_edge_forcing_factor(q_forcing: float, q_memory: float, amplitude_ratio: float) -> float:
    """Clean risk over forcing on the long-memory edge, 1/[1 - (c_K/c_r) Beta(1 - q_K, q_K - q_F)], for q_F < g.

    Raises
    ------
    InputError
        q_forcing >= g: the clean risk does not follow the forcing.
    """
    q_forcing = positive_number("q_forcing", q_forcing)
    q_memory = _long_memory(q_memory)
    limit = lm_edge(q_memory, amplitude_ratio).exponent
    if q_forcing >= limit:
        raise InputError(
            f"q_forcing must be below the edge exponent {limit:.6g}, got {q_forcing:g}: the clean risk decays with the "
            f"edge exponent instead; use lm_edge_clean_exponent"
        )
    return 1.0 / (1.0 - amplitude_ratio * beta_function(1.0 - q_memory, q_memory - q_forcing))


def lm_growth_rate(alpha: float, ratio: float) -> float:
    """Rate s of the exponential growth e^(s T) of gap and clean risk at a constant ratio r, infinite spectrum.

    Root s > 0 of sum_j lambda_j^2/(2 lambda_j + s) = r with lambda_j = j^(-2 alpha): the continuum secular equation.
    Exists for every r when 1/4 < alpha <= 1/2 (long memory), and for r < kbar = (1/2) zeta(2 alpha) above. The sum is
    taken exactly up to j = 63, the rest as an exact integral with Euler-Maclaurin corrections.

    Raises
    ------
    InputError
        alpha <= 1/4 (the sum diverges); a stable ratio; a rate too small or too large for a double.
    """
    alpha = positive_number("alpha", alpha)
    ratio = positive_number("ratio", ratio)
    if alpha <= 0.25 + TOLERANCE:
        raise InputError(f"alpha must be above 1/4 for a growth rate, got {alpha:g}: the memory diverges; raise alpha")

    decay = 2.0 * min(alpha, _ONE_MODE)

    def excess(log_rate: float) -> float:
        return math.log(_secular_sum(decay, log_rate) / ratio)

    if excess(-600.0) <= 0.0:
        raise InputError(
            f"ratio must be small enough for growth at alpha={alpha:g}, got {ratio:g}: the constant ratio is stable, "
            f"or its growth rate is below 1e-260; use a smaller ratio"
        )
    if excess(600.0) >= 0.0:
        raise InputError(f"ratio must not be that small, got {ratio:g}: the growth rate exceeds 1e260; raise the ratio")
    return math.exp(float(brentq(excess, -600.0, 600.0, xtol=1e-14, rtol=8.9e-16)))


def response_number(name: str, value: float) -> float:
    """Return `value` as a float above 0, or raise InputError: finite bulk has no response exponents."""
    number = finite_number(name, value)
    if number <= TOLERANCE:
        raise InputError(
            f"{name} must be positive, got {number:g}: the finite-bulk regimes have no such exponent; use alpha > 1/4"
        )
    return number


def _log_beta(first: float, second: float) -> float:
    return math.lgamma(first) + math.lgamma(second) - math.lgamma(first + second)


def beta_function(first: float, second: float) -> float:
    """Euler's Beta function of two positive numbers."""
    return math.exp(_log_beta(first, second))


def _long_memory(q_memory: float) -> float:
    q_memory = response_number("q_memory", q_memory)
    if q_memory >= 1.0 - TOLERANCE:
        raise InputError(f"q_memory must be below 1 on the long-memory edge, got {q_memory:g}; use gap_law above 1")
    return q_memory


def _secular_sum(decay: float, log_rate: float) -> float:
    """Sum over j >= 1 of 1/(2 j^decay + s j^(2 decay)) with s = exp(log_rate), decay > 1/2."""
    rate = math.exp(log_rate)

    def term(x: float) -> float:
        power = x**decay
        return 1.0 / (power * (2.0 + rate * power))

    start = float(_HEAD)
    power = 1.0 / decay - 1.0
    low = log_rate - math.log(2.0) + decay * math.log(start)
    # x -> v = log(s x^decay/2) turns the integral of the terms into a logistic moment
    tail = math.exp(power * (math.log(2.0) - log_rate)) / (2.0 * decay) * logistic_moment(power, low, math.inf)
    # derivatives of the term at the start: with L = x d/dx log f, f' = f L/x, and so on
    share = 1.0 / (1.0 + 2.0 / (rate * start**decay))
    first = -decay * (1.0 + share)
    slope = -(decay**2) * share * (1.0 - share)
    bend = slope * decay * (1.0 - 2.0 * share)
    third = first**3 + 3.0 * first * slope + bend - 3.0 * (first**2 + slope) + 2.0 * first
    value = term(start)
    corrections = value * (0.5 - first / (12.0 * start) + third / (720.0 * start**3))
    head = math.fsum(term(float(j)) for j in range(1, _HEAD))
    return head + tail + corrections
