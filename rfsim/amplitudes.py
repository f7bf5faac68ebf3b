"""Leading constants of the power-law model: forcing, memory, floor, feature term, finite bulk, and a finite surrogate.

Eigenvalues j^(-2 alpha), target coordinates j^(-beta), p = 2 alpha + 2 beta - 1, width M, ambient/width ratio c > 1.
Tags: [T] asymptotic in intrinsic time T, [M] asymptotic in the width. Constants multiply the powers that
`rfsim.exponents` gives.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, hyp2f1, zeta

from rfsim.checks import InputError, positive_number, whole_number
from rfsim.exponents import TOLERANCE, memory_exponent, power_law_point

FloatArray = NDArray[np.float64]

_LARGEST_RATIO = 1e12


class FloorLaw(NamedTuple):
    """The zero-mode floor is amplitude * M^width_exponent, times log M if `logarithm`."""

    amplitude: float
    width_exponent: float
    logarithm: bool


def memory_amplitude(alpha: float) -> float:
    """c_K in k(x) ~ c_K x^-q_K [T], the memory profile k(x) = sum_j j^(-4 alpha) exp(-2 x j^(-2 alpha)).

    c_K = 2^-q_K Gamma(1 + q_K)/(4 alpha - 1). Source: Tauberian theorem of Karamata.

    Raises
    ------
    InputError
        alpha <= 1/4: the profile diverges on an infinite spectrum.
    """
    alpha = _long_memory(alpha, "the memory profile")
    q_memory = memory_exponent(alpha)
    return 2.0**-q_memory * math.gamma(1.0 + q_memory) / (4.0 * alpha - 1.0)


def forcing_amplitude(alpha: float, beta: float) -> float:
    """A_F in F(T) ~ A_F T^-q_F [T] at infinite width, A_F = 2^-q_F Gamma(1 + q_F)/p.

    Source: Tauberian theorem of Karamata, for sum_j j^(-p-1) exp(-2 T j^(-2 alpha)).
    """
    alpha, beta, p = power_law_point(alpha, beta)
    q_forcing = p / (2.0 * alpha)
    logarithm = math.lgamma(1.0 + q_forcing) - q_forcing * math.log(2.0) - math.log(p)
    if logarithm > 700.0:
        raise InputError(f"alpha must not be that small, got {alpha:g} with beta={beta:g}: the amplitude overflows")
    return math.exp(logarithm)


def profile_mass(alpha: float) -> float:
    """kbar = integral of the memory profile k over all lags = (1/2) sum_j j^(-2 alpha), at infinite width.

    Raises
    ------
    InputError
        alpha <= 1/2: the memory is not integrable.
    """
    alpha = positive_number("alpha", alpha)
    if alpha <= 0.5 + TOLERANCE:
        raise InputError(f"alpha must be above 1/2 for an integrable memory, got {alpha:g}; use alpha > 1/2")
    return 0.5 * float(zeta(2.0 * alpha))


def omega_amplitude(alpha: float, ratio: float) -> float:
    """w in omega ~ w M^(2 alpha) [M]: root of the integral of 1/(1 + x^(2 alpha)/w) over 0 < x < c being 1.

    omega is the resolvent scale of the zero modes: (1/M) sum_j omega lambda_j/(1 + omega lambda_j) = 1. At c = inf
    the root is [sin(pi/(2 alpha))/(pi/(2 alpha))]^(2 alpha).

    Parameters
    ----------
    alpha
        Spectral exponent.
    ratio
        c = ambient/width > 1; `inf` is allowed for alpha > 1/2.
    """
    alpha, ratio = _alpha_and_ratio(alpha, ratio)
    if math.isinf(ratio):
        angle = math.pi / (2.0 * alpha)
        return (math.sin(angle) / angle) ** (2.0 * alpha)

    def excess(log_w: float) -> float:
        return _stieltjes_moment(1.0, 2.0 * alpha, log_w, ratio) * math.exp(log_w) - 1.0

    low, high = -1.0, 1.0
    while excess(low) > 0.0:
        low *= 2.0
    while excess(high) < 0.0:
        high *= 2.0
        if high > 600.0:
            raise InputError(f"ratio must be clearly above 1, got {ratio!r}; use a larger ambient dimension")
    return math.exp(float(brentq(excess, low, high, xtol=1e-14, rtol=8.9e-16)))


def floor_law(alpha: float, beta: float, ratio: float) -> FloorLaw:
    """Leading constant of the floor F0 = sum_j lambda_j theta_j^2/(1 + omega lambda_j) [M].

    * beta < 1/2: F0 ~ M^-p times the integral of x^(-2 beta)/(x^(2 alpha) + w) over 0 < x < c; slow as beta -> 1/2;
    * beta = 1/2: F0 ~ w^-1 M^(-2 alpha) log M;
    * beta > 1/2: F0 ~ zeta(2 beta) w^-1 M^(-2 alpha); slow as well.

    Parameters
    ----------
    alpha, beta
        Power-law exponents, 2 alpha + 2 beta > 1.
    ratio
        c = ambient/width > 1; `inf` is allowed for alpha > 1/2.
    """
    alpha, beta, p = power_law_point(alpha, beta)
    alpha, ratio = _alpha_and_ratio(alpha, ratio)
    w = omega_amplitude(alpha, ratio)
    if abs(beta - 0.5) <= TOLERANCE:
        return FloorLaw(1.0 / w, -2.0 * alpha, True)
    if beta > 0.5:
        return FloorLaw(float(zeta(2.0 * beta)) / w, -2.0 * alpha, False)
    if math.isinf(ratio):
        amplitude = math.pi / (2.0 * alpha) / math.sin(math.pi * p / (2.0 * alpha)) * w ** (-p / (2.0 * alpha))
    else:
        amplitude = _stieltjes_moment(1.0 - 2.0 * beta, 2.0 * alpha, math.log(w), ratio)
    return FloorLaw(amplitude, -p, False)


def feature_amplitude(alpha: float, beta: float) -> float:
    """Constant of the feature term, F_ac ~ constant * M^-1 T^(-(1 - 1/(2 alpha))) [M, T], for alpha, beta > 1/2.

    zeta(2 beta)/(2 alpha) * Gamma(1 - 1/(2 alpha)) 2^(-(1 - 1/(2 alpha))). Converges very slowly (tens of percent
    at alpha = 0.7): use `forcing_surrogate` for numbers at a finite width.
    """
    alpha, beta, _ = power_law_point(alpha, beta)
    if alpha <= 0.5 + TOLERANCE or beta <= 0.5 + TOLERANCE:
        raise InputError(
            f"alpha and beta must both be above 1/2 for a feature term, got alpha={alpha:g}, beta={beta:g}; "
            f"elsewhere it is absent or below the floor"
        )
    power = 1.0 - 0.5 / alpha
    return float(zeta(2.0 * beta)) / (2.0 * alpha) * math.gamma(power) * 2.0**-power


def bulk_kernel_amplitude(alpha: float, ratio: float) -> float:
    """Constant of tr Lambda^2 + (tr Lambda)^2/M ~ constant * M^(1 - 4 alpha) [M], the finite-bulk memory at lag 0.

    c^(1 - 4 alpha)/(1 - 4 alpha) + c^(2 - 4 alpha)/(1 - 2 alpha)^2, for alpha < 1/4 and finite c = ambient/width.
    """
    alpha, ratio = _alpha_and_ratio(alpha, ratio)
    if alpha >= 0.25 - TOLERANCE:
        raise InputError(f"alpha must be below 1/4 in the finite bulk, got {alpha:g}; use alpha < 1/4")
    return ratio ** (1.0 - 4.0 * alpha) / (1.0 - 4.0 * alpha) + ratio ** (2.0 - 4.0 * alpha) / (1.0 - 2.0 * alpha) ** 2


def forcing_surrogate(alpha: float, beta: float, width: int, intrinsic_time: ArrayLike) -> FloatArray:
    """Finite-width forcing above the floor from a plain sum over the first M modes (within about 10 %).

    sum_{j<=M} lambda_j [theta_j^2 + (1/M) sum_{i<=j} theta_i^2] exp(-2 T lambda_j): the mode's own target energy and
    the share scattered into it by the random features. Compared with the deterministic equivalent the ratio stays in
    0.90-1.02 for 1 << T <= C M^(2 alpha).

    Parameters
    ----------
    width
        M, a whole number >= 1.
    intrinsic_time : array of any shape
        T >= 0.

    Returns
    -------
    array of the same shape
    """
    alpha, beta, _ = power_law_point(alpha, beta)
    width = whole_number("width", width)
    times = np.asarray(intrinsic_time, dtype=np.float64)
    if not np.isfinite(times).all() or (times < 0.0).any():
        raise InputError("intrinsic_time must be finite and not negative everywhere; correct these entries")
    mode = np.arange(1, width + 1, dtype=np.float64)
    eigenvalues, energy = mode ** (-2.0 * alpha), mode ** (-2.0 * beta)
    weights = (eigenvalues * (energy + np.cumsum(energy) / width))[::-1]
    rates = -2.0 * eigenvalues[::-1]
    return np.array([np.exp(rates * time) @ weights for time in times.ravel()]).reshape(times.shape)


def logistic_moment(power: float, low: float, high: float) -> float:
    """Integral of exp(power v)/(1 + exp v) over low < v < high, for -1 < power < 1, to machine precision.

    Parameters
    ----------
    power
        In (-1, 1).
    low
        Lower end; -inf only for power > 0.
    high
        Upper end, above `low`; inf is allowed.
    """
    total = 0.0
    if high > 0.0:
        total += _log_share(1.0 - power, math.exp(-max(low, 0.0))) - _log_share(1.0 - power, math.exp(-high))
    if low < 0.0:
        end = min(high, 0.0)
        if power == 0.0:
            plain = end - low
        else:
            plain = math.exp(power * end) * -math.expm1(power * (low - end)) / power
        total += plain - _log_share(1.0 + power, math.exp(end)) + _log_share(1.0 + power, math.exp(low))
    return total


def _log_share(power: float, end: float) -> float:
    """Integral of t^(power - 1)/(1 + t) over 0 < t < end <= 1, power > 0, as a series of positive terms (Pfaff)."""
    if end == 0.0:
        return 0.0
    return end**power / (power * (1.0 + end)) * float(hyp2f1(1.0, 1.0, 1.0 + power, end / (1.0 + end)))


def _stieltjes_moment(moment: float, decay: float, log_w: float, end: float) -> float:
    """Integral of x^(moment - 1)/(x^decay + w) over 0 < x < end (finite), 0 < moment."""
    power = moment / decay
    top = decay * math.log(end) - log_w
    if power < 1.0:
        return math.exp((power - 1.0) * log_w) / decay * logistic_moment(power, -math.inf, top)
    scale = end**moment * math.exp(-log_w) / moment * float(expit(-top))
    return scale * float(hyp2f1(1.0, 1.0, 1.0 + power, expit(top)))


def _alpha_and_ratio(alpha: float, ratio: float) -> tuple[float, float]:
    alpha = positive_number("alpha", alpha)
    ratio = positive_number("ratio", ratio, allow_inf=True)
    if ratio <= 1.0:
        raise InputError(f"ratio must be above 1 (ambient dimension over width), got {ratio:g}; raise the ambient size")
    if _LARGEST_RATIO < ratio < math.inf:
        raise InputError(f"ratio must be at most {_LARGEST_RATIO:g}, or inf, got {ratio:g}; lower the ambient size")
    if math.isinf(ratio) and alpha <= 0.5 + TOLERANCE:
        raise InputError(f"ratio must be finite for alpha <= 1/2, got inf at alpha={alpha:g}; pass ambient/width")
    return alpha, ratio


def _long_memory(alpha: float, what: str) -> float:
    alpha = positive_number("alpha", alpha)
    if alpha <= 0.25 + TOLERANCE:
        raise InputError(f"alpha must be above 1/4, got {alpha:g}: {what} diverges at infinite width; raise alpha")
    return alpha
