"""What label noise adds to the risk under a ratio path r = batch/lr ~ c_r T^vartheta, on an infinite spectrum.

The memory profile is k(x) ~ c_K x^-q_K. The gap solves Z(T) = integral of k(T - u)(sigma^2 + Z(u))/r(u) over
0 < u < T; its exponent q_N depends on q_K and vartheta only. With e = max(0, 1 - q_K):

* vartheta < e: the row mass (the same integral of k/r) diverges and the gap grows;
* vartheta = e: edge, the gap does not decay and amplitudes decide whether it stays bounded;
* vartheta > e: Z ~ T^-q_N with q_N = min(vartheta - e, q_K).

Source: theory of Wang, Liu, Chen 2026 (long memory q_K < 1, and orders for q_K > 1); Beta integrals and renewal
arguments for the constants. The finite-bulk regimes have their own `finite_bulk_gap`.
"""

from typing import NamedTuple

from rfsim.checks import InputError, finite_number, non_negative_number, positive_number
from rfsim.exponents import TOLERANCE
from rfsim.memory_edge import (
    EdgeLaw,
    beta_function,
    lm_edge,
    lm_edge_clean_exponent,
    lm_edge_forcing_factor,
    lm_growth_rate,
    response_number,
)

__all__ = [
    "EdgeLaw",
    "FiniteBulkGap",
    "GapLaw",
    "ScheduleEffect",
    "clean_exponent",
    "finite_bulk_gap",
    "gap_amplitude",
    "gap_law",
    "iteration_gap_law",
    "iteration_schedule",
    "lm_edge",
    "lm_edge_clean_exponent",
    "lm_edge_forcing_factor",
    "lm_growth_rate",
    "schedule_effect",
]


class GapLaw(NamedTuple):
    """Gap ~ T^-exponent (times log T if `logarithm`); see `gap_law`."""

    exponent: float | None
    logarithm: bool
    branch: str
    stable: bool
    edge: bool
    reason: str


class ScheduleEffect(NamedTuple):
    """What a ratio path does to the exponent of the clean risk; see `schedule_effect`."""

    label: str
    gap_exponent: float | None
    total_exponent: float | None
    logarithm: bool
    edge: bool
    minimal_vartheta: float | None
    reason: str


class FiniteBulkGap(NamedTuple):
    """Gap ~ sigma^2 M^width_exponent T^time_exponent, times log T if `logarithm`."""

    width_exponent: float
    time_exponent: float
    logarithm: bool


def clean_exponent(q_forcing: float, q_memory: float) -> float:
    """q_0 = min(q_F, q_K): exponent of the clean risk above the floor, infinite width, strictly stable schedule.

    On the long-memory edge use `lm_edge_clean_exponent` instead.
    """
    return min(positive_number("q_forcing", q_forcing), response_number("q_memory", q_memory))


def gap_law(q_memory: float, vartheta: float) -> GapLaw:
    """Exponent q_N of the gap for memory exponent q_K and ratio exponent vartheta.

    Returns
    -------
    GapLaw
        * exponent: q_N, None if unstable;
        * logarithm: the gap carries a factor log T (q_K < 1 with vartheta = 1; q_K = 1 with 0 <= vartheta <= 1);
        * branch: "unstable", "edge" (vartheta = e), "ratio" (the gap follows the ratio path), "ceiling" (it follows
          the memory, T^-q_K), or "two-term" (vartheta = q_K > 1: both of the same order, no logarithm);
        * stable: the row mass stays bounded as T grows; on an edge amplitudes must still keep it below 1;
        * edge: vartheta = e within 1e-12;
        * reason: one sentence.

    Raises
    ------
    InputError
        q_memory <= 0 (finite bulk, see `finite_bulk_gap`) or a number that is not finite.
    """
    q_memory = response_number("q_memory", q_memory)
    vartheta = finite_number("vartheta", vartheta)
    start = _edge(q_memory)
    critical_memory = abs(q_memory - 1.0) <= TOLERANCE
    if vartheta < start - TOLERANCE:
        told = f"vartheta is below max(0, 1 - q_memory) = {start:g}: the row mass diverges and the gap grows"
        return GapLaw(None, False, "unstable", False, False, told)
    if vartheta <= start + TOLERANCE:
        if critical_memory:
            told = (
                "q_memory = 1 at a constant ratio: the row mass grows like log T, and so does the gap until feedback "
                "turns it into exponential growth with a rate exponentially small in the ratio"
            )
            return GapLaw(0.0, True, "edge", False, True, told)
        told = "the row mass tends to a constant: below 1 the gap tends to a plateau, from 1 on it grows"
        return GapLaw(0.0, False, "edge", True, True, told)
    if critical_memory:
        if vartheta <= 1.0 + TOLERANCE:
            told = "q_memory = 1: the gap follows the ratio path with a factor log T"
            return GapLaw(min(vartheta, q_memory), True, "ratio", True, False, told)
        return GapLaw(q_memory, False, "ceiling", True, False, "1/r is integrable: the gap follows the memory")
    if q_memory < 1.0:
        if vartheta < 1.0 - TOLERANCE:
            told = "the gap follows the ratio path, less the growth of the filled memory"
            return GapLaw(vartheta - start, False, "ratio", True, False, told)
        if vartheta <= 1.0 + TOLERANCE:
            told = "vartheta = 1: the integral of 1/r grows like log T, the gap is the memory times that"
            return GapLaw(q_memory, True, "ceiling", True, False, told)
        return GapLaw(q_memory, False, "ceiling", True, False, "1/r is integrable: the gap follows the memory")
    if vartheta < q_memory - TOLERANCE:
        return GapLaw(vartheta, False, "ratio", True, False, "the memory is integrable: the gap follows 1/r")
    if vartheta <= q_memory + TOLERANCE:
        told = "vartheta = q_memory: recent injections and remembered early ones decay alike, without a logarithm"
        return GapLaw(q_memory, False, "two-term", True, False, told)
    told = "1/r falls faster than the memory: the gap follows the memory"
    return GapLaw(q_memory, False, "ceiling", True, False, told)


def gap_amplitude(
    q_memory: float,
    vartheta: float,
    memory_amplitude: float,
    ratio_amplitude: float,
    noise_var: float,
    kernel_mass: float | None = None,
) -> float | None:
    """Leading constant A of Z ~ A T^-q_N (times log T where `gap_law` says so), or None where it is not universal.

    * q_K < 1, 1 - q_K < vartheta < 1: sigma^2 Beta(1 - vartheta, 1 - q_K) c_K/c_r; vartheta = 1: sigma^2 c_K/c_r;
      vartheta = 1 - q_K: the plateau of `lm_edge`;
    * q_K = 1: sigma^2 c_K/c_r for 0 < vartheta < 1, twice that at vartheta = 1;
    * q_K > 1, 0 < vartheta < q_K: sigma^2 kbar/c_r; vartheta = 0: sigma^2 m/(1 - m) with m = kbar/c_r < 1.

    None: unstable or unbounded, or a gap that remembers the whole early path (the constant of C k(T) at the ceiling,
    which also enters at vartheta = q_K > 1).

    Parameters
    ----------
    memory_amplitude, ratio_amplitude
        c_K in k ~ c_K x^-q_K and c_r in r ~ c_r T^vartheta.
    noise_var
        sigma^2 >= 0.
    kernel_mass
        kbar, the integral of k; needed for q_K > 1 below the ceiling only.
    """
    law = gap_law(q_memory, vartheta)
    noise_var = non_negative_number("noise_var", noise_var)
    memory_amplitude = positive_number("memory_amplitude", memory_amplitude)
    ratio_amplitude = positive_number("ratio_amplitude", ratio_amplitude)
    strength = memory_amplitude / ratio_amplitude
    if not law.stable:
        return None
    if abs(q_memory - 1.0) <= TOLERANCE:
        if law.branch != "ratio":
            return None
        return noise_var * strength * (2.0 if vartheta >= 1.0 - TOLERANCE else 1.0)
    if q_memory < 1.0:
        if law.edge:
            factor = lm_edge(q_memory, strength).plateau_factor
            return None if factor is None else noise_var * factor
        if law.branch == "ratio":
            return noise_var * strength * beta_function(1.0 - vartheta, 1.0 - q_memory)
        return noise_var * strength if law.logarithm else None
    if law.branch not in ("edge", "ratio"):
        return None
    if kernel_mass is None:
        raise InputError("kernel_mass must be given for q_memory > 1: pass the integral of k, e.g. profile_mass(alpha)")
    mass = positive_number("kernel_mass", kernel_mass) / ratio_amplitude
    if not law.edge:
        return noise_var * mass
    return noise_var * mass / (1.0 - mass) if mass < 1.0 else None


def schedule_effect(q_memory: float, q_clean: float, vartheta: float, noise_var: float = 1.0) -> ScheduleEffect:
    """Does label noise under r ~ T^vartheta preserve, change or destroy the clean exponent q_0 of risk - floor?

    Rules, with e = max(0, 1 - q_K) and q_N of `gap_law`: vartheta < e "unstable"; vartheta = e "destroy" (the gap does
    not decay); q_N < q_0 "change" (total exponent q_N); q_N > q_0 "preserve"; q_N = q_0 "critical" (the exponent is
    kept, the slowly varying factors add up). noise_var = 0 is "clean".

    Parameters
    ----------
    q_memory, q_clean
        q_K > 0 and q_0 > 0, see `clean_exponent`.
    vartheta
        Exponent of the ratio path.
    noise_var
        sigma^2 >= 0.

    Returns
    -------
    ScheduleEffect
        label; gap_exponent (None if unstable or clean); total_exponent = min(q_0, q_N) (None if unstable); logarithm
        and edge of the gap; minimal_vartheta = q_0 + e, above which the exponent is preserved (None for q_0 >= q_K:
        the gap never decays faster than the memory); reason.
    """
    q_clean = positive_number("q_clean", q_clean)
    noise_var = non_negative_number("noise_var", noise_var)
    law = gap_law(q_memory, vartheta)
    minimal = q_clean + _edge(q_memory) if q_clean < q_memory - TOLERANCE else None
    if noise_var == 0.0:
        if law.branch == "unstable":
            told = f"no label noise and hence no gap, but minibatch noise alone is unstable: {law.reason}"
            return ScheduleEffect("clean", None, None, False, law.edge, minimal, told)
        return ScheduleEffect("clean", None, q_clean, False, law.edge, minimal, "no label noise: there is no gap")
    if law.exponent is None:
        return ScheduleEffect("unstable", None, None, False, False, minimal, law.reason)
    if law.edge:
        return ScheduleEffect("destroy", 0.0, 0.0, law.logarithm, True, minimal, law.reason)
    if abs(law.exponent - q_clean) <= TOLERANCE:
        told = "gap and clean risk decay alike: the exponent is kept"
        told += ", with the factor log T of the gap" if law.logarithm else ", the amplitudes add up"
        return ScheduleEffect("critical", law.exponent, q_clean, law.logarithm, False, minimal, told)
    if law.exponent < q_clean:
        told = f"the gap decays more slowly than the clean risk: {law.reason}"
        return ScheduleEffect("change", law.exponent, law.exponent, law.logarithm, False, minimal, told)
    told = f"the gap decays faster than the clean risk: {law.reason}"
    return ScheduleEffect("preserve", law.exponent, q_clean, law.logarithm, False, minimal, told)


def iteration_schedule(lr_decay: float, batch_growth: float) -> float:
    """vartheta of the schedule lr ~ n^-l, batch ~ n^b in iterations n: (l + b)/(1 - l), since T_n ~ n^(1 - l).

    Raises
    ------
    InputError
        l outside [0, 1) (intrinsic time would stay bounded or grow like log n), or b < 0 (batches end at 1).
    """
    lr_decay = non_negative_number("lr_decay", lr_decay)
    batch_growth = non_negative_number("batch_growth", batch_growth)
    if lr_decay >= 1.0:
        raise InputError(f"lr_decay must be below 1, got {lr_decay:g}: intrinsic time hardly grows; lower the decay")
    return (lr_decay + batch_growth) / (1.0 - lr_decay)


def iteration_gap_law(q_memory: float, lr_decay: float, batch_growth: float) -> GapLaw:
    """`gap_law` of the schedule lr ~ n^-l, batch ~ n^b with the exponent per iteration, (1 - l) q_N.

    Any exponent q in T becomes (1 - l) q in n; the clean one too.
    """
    law = gap_law(q_memory, iteration_schedule(lr_decay, batch_growth))
    return law if law.exponent is None else law._replace(exponent=(1.0 - lr_decay) * law.exponent)


def finite_bulk_gap(alpha: float, vartheta: float) -> FiniteBulkGap:
    """Gap in finite bulk (alpha < 1/4) inside 1 << T <= C M^(2 alpha), for r ~ M^(1 - 2 alpha) T^vartheta.

    The memory is flat: gap ~ sigma^2 M^(1 - 4 alpha) times the integral of 1/r, hence sigma^2 M^(-2 alpha) times
    T^(1 - vartheta), log T, or 1 for vartheta below, at, above 1. The lr is of order M^(2 alpha - 1), the largest
    admissible one. Orders of magnitude only.
    """
    alpha = positive_number("alpha", alpha)
    vartheta = finite_number("vartheta", vartheta)
    if alpha >= 0.25 - TOLERANCE:
        raise InputError(f"alpha must be below 1/4 in the finite bulk, got {alpha:g}; use gap_law above")
    return FiniteBulkGap(-2.0 * alpha, max(0.0, 1.0 - vartheta), abs(vartheta - 1.0) <= TOLERANCE)


def _edge(q_memory: float) -> float:
    return max(0.0, 1.0 - q_memory)
