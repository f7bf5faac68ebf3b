"""What the gap tells about the schedule that made it: the ratio r = batch/lr, never lr and batch apart.

Below the memory ceiling the gap determines the ratio path: on a fixed infinite system with eventually monotone r,
Z ~ A T^-q with 0 < q < q_K holds if and only if r ~ c_r T^vartheta with the vartheta and c_r returned here. At the
ceiling, q = q_K, it does not: every r with integrable 1/r that grows fast enough leaves a multiple of the same tail
k(T). Halving lr and batch together changes neither r(T) nor, in the continuum, the gap.

Source: theory of Wang, Liu, Chen 2026 (identifiability); Beta integrals as in `rfsim.gap_laws.gap_amplitude`.
"""

from typing import NamedTuple

from rfsim.checks import InputError, finite_number, positive_number
from rfsim.exponents import TOLERANCE
from rfsim.memory_edge import beta_function, response_number


class RatioLaw(NamedTuple):
    """r ~ ratio_amplitude T^vartheta, or None and the reason why the gap does not say."""

    vartheta: float | None
    ratio_amplitude: float | None
    reason: str


def ratio_from_gap(
    q_memory: float,
    gap_exponent: float,
    gap_amplitude: float,
    *,
    memory_amplitude: float,
    noise_var: float,
    kernel_mass: float | None = None,
) -> RatioLaw:
    """Ratio path behind a gap Z ~ A T^-q: the inverse of `gap_law` and `gap_amplitude`.

    * q_K < 1: vartheta = q + 1 - q_K and c_r = sigma^2 c_K Beta(q_K - q, 1 - q_K) / A;
    * q_K > 1: vartheta = q and c_r = sigma^2 kbar / A.

    Parameters
    ----------
    gap_exponent, gap_amplitude
        q and A > 0.
    memory_amplitude
        c_K in k ~ c_K x^-q_K.
    noise_var
        sigma^2 > 0.
    kernel_mass
        kbar, the integral of k; needed for q_K > 1 only.

    Returns
    -------
    RatioLaw
        Both None where the gap does not decay (q <= 0: an edge or an instability, which depends on feedback), at or
        beyond the ceiling (q >= q_K), and at q_K = 1, where logarithms decide.

    Raises
    ------
    InputError
        q_memory <= 0, amplitudes or noise that are not positive, or a missing kernel_mass.
    """
    q_memory = response_number("q_memory", q_memory)
    exponent = finite_number("gap_exponent", gap_exponent)
    noise = positive_number("noise_var", noise_var)
    scale = noise / positive_number("gap_amplitude", gap_amplitude)
    strength = positive_number("memory_amplitude", memory_amplitude)
    if exponent <= TOLERANCE:
        return RatioLaw(
            None, None, "the gap does not decay: an edge or an instability, where feedback sets the amplitude"
        )
    if exponent >= q_memory - TOLERANCE:
        return RatioLaw(None, None, "at the memory ceiling: every ratio that grows fast enough leaves this gap")
    if abs(q_memory - 1.0) <= TOLERANCE:
        return RatioLaw(None, None, "q_memory = 1: the gap carries a logarithm, and its exponent alone does not say")
    if q_memory < 1.0:
        amplitude = scale * strength * beta_function(q_memory - exponent, 1.0 - q_memory)
        return RatioLaw(exponent + 1.0 - q_memory, amplitude, "long memory: the gap follows k * 1/r")
    if kernel_mass is None:
        raise InputError("kernel_mass must be given for q_memory > 1: pass the integral of k, e.g. profile_mass(alpha)")
    mass = positive_number("kernel_mass", kernel_mass)
    return RatioLaw(exponent, scale * mass, "integrable memory: the gap follows 1/r")
