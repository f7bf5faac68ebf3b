"""Accumulated noise of the unit profile, I(T) = int_0^T (1 + T - u)^-q_K (1 + u)^-vartheta du, and its local slopes.

Its local exponent -d log I/d log T tends to the gap exponent of `rfsim.gap_laws.gap_law`, often slowly, and says what a
gap fitted on a finite window must give before feedback. With L = T + 2 the substitution x = 1 + u splits the integral
at L/2 into two alike,

    I = L^-q_K A(q_K, vartheta) + L^-vartheta A(vartheta, q_K),    A(a, b) = int_1^(L/2) x^-b (1 - x/L)^-a dx,

and the binomial series of (1 - x/L)^-a, with x/L <= 1/2, is integrated term by term. Only rounding is lost.
"""

import math

import numpy as np

from rfsim.checks import InputError, finite_number, positive_number
from rfsim.memory_edge import response_number

_TERMS = 5000
_LARGEST = 30.0  # exponents beyond which the series loses digits
_NODES = 64  # Gauss nodes of a window


def unit_accumulation(q_memory: float, vartheta: float, time: float) -> float:
    """I(T) = int_0^T (1 + T - u)^-q_K (1 + u)^-vartheta du, to about 1e-13 relative.

    This is the noise accumulated for the unit profile k(x) = (1 + x)^-q_K, the ratio r = (1 + T)^vartheta and
    sigma^2 = 1, without feedback (theory: Wang, Liu, Chen 2026, gap law).

    Raises
    ------
    InputError
        q_memory not in (0, 30], |vartheta| > 30, time not positive.
    """
    q_memory, vartheta, time = _arguments(q_memory, vartheta, time)
    length = time + 2.0
    early = length**-q_memory * _half(q_memory, vartheta, time)
    late = length**-vartheta * _half(vartheta, q_memory, time)
    return early + late


def unit_local_exponent(q_memory: float, vartheta: float, time: float) -> float:
    """Local exponent -d log I/d log T of `unit_accumulation` at intrinsic time T, by the exact derivative.

    I = L^(1 - q_K - vartheta) J(1/L), J(e) the integral of (1 - s)^-q_K s^-vartheta over e < s < 1 - e, so that
    dI/dT = [(1 - q_K - vartheta) I + (1 + T)^-q_K + (1 + T)^-vartheta]/L. Parameters and errors as there.
    """
    q_memory, vartheta, time = _arguments(q_memory, vartheta, time)
    ends = (1.0 + time) ** -q_memory + (1.0 + time) ** -vartheta
    growth = 1.0 - q_memory - vartheta + ends / unit_accumulation(q_memory, vartheta, time)
    return -time / (time + 2.0) * growth


def unit_window_exponent(q_memory: float, vartheta: float, window: tuple[float, float]) -> float:
    """What a least-squares fit of log I against log T must give on the window [T1, T2], log-uniform: minus the slope.

    An average of the local exponents with a weight that is largest in the middle of the window.

    Raises
    ------
    InputError
        as `unit_accumulation`, or a window without 0 < T1 < T2.
    """
    if len(window) != 2 or not 0.0 < window[0] < window[1]:
        raise InputError(f"window must be two times 0 < T1 < T2, got {window!r}; give for example (40, 1e4)")
    low, high = (math.log(positive_number("window", end)) for end in window)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    places = 0.5 * (low + high) + 0.5 * (high - low) * nodes
    local = np.array([unit_local_exponent(q_memory, vartheta, math.exp(place)) for place in places])
    # slope = int s y ds/int s^2 ds, integrated by parts: y' is averaged with weight 1 - s^2 on -1 < s < 1
    return float(0.75 * np.sum(weights * (1.0 - nodes**2) * local))


def _arguments(q_memory: float, vartheta: float, time: float) -> tuple[float, float, float]:
    q_memory, vartheta = response_number("q_memory", q_memory), finite_number("vartheta", vartheta)
    for name, value in (("q_memory", q_memory), ("vartheta", vartheta)):
        if abs(value) > _LARGEST:
            raise InputError(f"{name} must be at most {_LARGEST:g} in size, got {value:g}; lower it")
    return q_memory, vartheta, positive_number("time", time)


def _half(far: float, near: float, time: float) -> float:
    """A(far, near): integral of x^-near (1 - x/L)^-far over 1 < x < L/2, L = T + 2."""
    length, log_half = time + 2.0, math.log1p(0.5 * time)
    total, coefficient = 0.0, 1.0
    for order in range(_TERMS):
        power = order + 1.0 - near
        if abs(power) * log_half < 1.0:  # [(L/2)^power - 1]/power near its limit, a logarithm
            ratio = math.expm1(power * log_half) / power if power != 0.0 else log_half
            term = length**-order * ratio
        else:
            term = (2.0**-order * math.exp((1.0 - near) * log_half) - length**-order) / power
        term *= coefficient
        total += term
        if order > 4.0 * abs(far) + abs(near) and abs(term) <= 1e-18 * abs(total):
            break
        coefficient *= (far + order) / (order + 1.0)
    return total
