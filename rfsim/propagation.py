"""One exponent of one schedule three ways: measured on exact dynamics, predicted for the same window, and in the limit.

The schedule is a constant lr with B_t = ceil(batch (1 + T_t)^vartheta), so the ratio grows like T^vartheta.
"""

import math
from typing import NamedTuple

import numpy as np

from rfsim.checks import InputError, finite_number, non_negative_number, one_of, positive_number
from rfsim.continuum import accumulate, forcing_profile, memory_profile, time_grid
from rfsim.exact import check_stability
from rfsim.gap_laws import clean_exponent, finite_bulk_gap, gap_law, schedule_effect
from rfsim.measure import ExponentFit, fit_exponent
from rfsim.regimes import forcing_exponent, memory_exponent, regime
from rfsim.routes import recursion
from rfsim.schedules import Schedule, power
from rfsim.spectra import Spectrum

QUANTITIES = ("gap", "clean", "forcing", "memory", "total")
_POINTS = 400  # recorded steps in the window


class Propagation(NamedTuple):
    """An exponent measured, predicted for the window, and in the limit; exponents are positive for decay.

    limit : exponent at infinite width and time, None if there is none (`reason` says why).
    finite_window : slope of the continuum prediction over the same window; None when it is not defined there.
    measured, uncertainty : minus the least-squares slope of the exact curve on log-uniform T, and how far a local
        exponent inside the window may lie from it.
    window : (T1, T2) that was measured.
    intrinsic_time, value, predicted : (k,) the curve that was fitted and the continuum prediction there.
    """

    quantity: str
    limit: float | None
    finite_window: float | None
    measured: float
    uncertainty: float
    window: tuple[float, float]
    reason: str
    intrinsic_time: np.ndarray
    value: np.ndarray
    predicted: np.ndarray


def propagation(
    spectrum: Spectrum,
    *,
    lr: float,
    batch: float,
    vartheta: float,
    window: tuple[float, float],
    quantity: str = "gap",
    alpha: float | None = None,
    beta: float | None = None,
    allow_unstable: bool = False,
) -> Propagation:
    """Measure one exponent of the ratio path r ~ T^vartheta on exact dynamics, beside its predictions.

    Parameters
    ----------
    spectrum : any source, with its noise_var; lr, batch : constant lr and first batch; vartheta : growth of the ratio.
    window : (T1, T2) in intrinsic time, 0 < T1 < T2.
    quantity : "gap"; "clean", "forcing", "total" above the floor; "memory" is the kernel K_{t,0} against its lag.
    alpha, beta : exponents of the power law behind the spectrum, for the limit; None: no limit.

    Raises
    ------
    InputError : for an unknown quantity, a bad window, a gap without label noise, or an unstable schedule.
    """
    one_of("quantity", quantity, QUANTITIES)
    lr, batch = positive_number("lr", lr), positive_number("batch", batch)
    vartheta = finite_number("vartheta", vartheta)
    first, last = _window(window, lr)
    if quantity == "gap" and non_negative_number("noise_var", float(spectrum.noise_var)) == 0.0:
        raise InputError("noise_var is 0, so there is no gap to measure; give label noise or choose another quantity")
    steps = math.ceil(last / lr) + 2
    schedule = power(steps, lr, batch, vartheta=vartheta)
    check_stability(spectrum, schedule, allow_unstable=allow_unstable)
    inside = np.geomspace(first, last, _POINTS) / lr
    recorded = np.unique(np.concatenate([np.floor(inside[:1]), np.rint(inside), np.ceil(inside[-1:])]).astype(np.int64))
    time, value = _measure(spectrum, schedule, recorded, quantity)
    measured = fit_exponent(time, value, window=(first, last))
    predicted, slope = _predict(spectrum, lr, batch, vartheta, quantity, time, (first, last))
    limit, reason = _limit(alpha, beta, vartheta, quantity, float(spectrum.noise_var))
    return Propagation(
        quantity,
        limit,
        None if slope is None else slope.exponent,
        measured.exponent,
        measured.uncertainty,
        (first, last),
        reason,
        time,
        value,
        predicted,
    )


def _window(window: tuple[float, float], lr: float) -> tuple[float, float]:
    if len(window) != 2:
        raise InputError(f"window must be two intrinsic times T1,T2, got {window!r}; give for example 40,1e4")
    first, last = positive_number("window", window[0]), positive_number("window", window[1])
    if first < lr or last <= 2.0 * first:
        raise InputError(
            f"window must satisfy lr <= T1 and 2 T1 < T2, got {first:g},{last:g} with lr {lr:g}; "
            f"start later or end later"
        )
    return first, last


def _measure(
    spectrum: Spectrum, schedule: Schedule, recorded: np.ndarray, quantity: str
) -> tuple[np.ndarray, np.ndarray]:
    """Times and values (k,) of the quantity at the recorded steps."""
    if quantity == "memory":  # noise of step 0 decays through the steps after it, like a forcing
        weight = spectrum.multiplicity * np.square(spectrum.eigenvalues)
        injected = schedule.lr[0] ** 2 / schedule.batch[0] * weight
        alone = spectrum.replace(forcing_energy=injected, floor=0.0, noise_var=0.0)
        curve = recursion.risk(alone, schedule.part(1, schedule.steps), at=recorded)
        return np.asarray(curve.intrinsic_time), np.asarray(curve.forcing)
    if quantity == "forcing" or quantity == "clean":
        spectrum = spectrum.replace(noise_var=0.0)
    curve = recursion.risk(spectrum, schedule, at=recorded)
    if curve.overflow_step is not None:
        raise InputError(f"the risk overflows at step {curve.overflow_step}; lower lr or end the window earlier")
    values = {"gap": curve.gap, "clean": curve.clean, "forcing": curve.forcing, "total": curve.risk}[quantity]
    return np.asarray(curve.intrinsic_time), np.asarray(values if quantity == "gap" else values - spectrum.floor)


def _predict(
    spectrum: Spectrum,
    lr: float,
    batch: float,
    vartheta: float,
    quantity: str,
    time: np.ndarray,
    window: tuple[float, float],
) -> tuple[np.ndarray, ExponentFit | None]:
    """Continuum prediction at the given times, and its slope over the window."""
    grid = time_grid(float(time[-1]))
    ratio = np.ceil(batch * (1.0 + grid) ** vartheta) / lr
    if quantity == "memory":
        values = lr**2 / batch * memory_profile(spectrum, grid)
    elif quantity == "gap":
        values = accumulate(spectrum, grid, float(spectrum.noise_var), ratio)
    else:
        values = forcing_profile(spectrum, grid)
        if quantity != "forcing":
            noise = float(spectrum.noise_var) if quantity == "total" else 0.0
            source = values + float(spectrum.floor) + noise
            values = values + accumulate(spectrum, grid, source, ratio, feedback=True)
    at_times = np.interp(time, grid, values)
    if not (np.isfinite(values).all() and (values[grid >= window[0]] > 0.0).all()):
        return at_times, None
    return at_times, fit_exponent(grid[1:], values[1:], window=window)


def _limit(
    alpha: float | None, beta: float | None, vartheta: float, quantity: str, noise_var: float
) -> tuple[float | None, str]:
    """Asymptotic exponent of a power-law problem, or None with the reason."""
    if alpha is None or beta is None:
        return None, "the limit is known for power-law problems only"
    label = regime(alpha, beta).default_label
    q_forcing = forcing_exponent(alpha, beta)
    if quantity == "forcing":
        return q_forcing, f"{label}: forcing exponent q_F = p / (2 alpha)"
    if label.startswith("FB"):
        if quantity == "gap":
            return -finite_bulk_gap(
                alpha, vartheta
            ).time_exponent, f"{label}: gap ~ integral of 1/r while T << width^(2 alpha)"
        return None, f"{label}: finite bulk has no width-independent exponent for {quantity}"
    q_memory = memory_exponent(alpha)
    if quantity == "memory":
        return q_memory, f"{label}: memory exponent q_K = 2 - 1/(2 alpha)"
    law = gap_law(q_memory, vartheta)
    if quantity == "gap":
        return law.exponent, f"{label}: {law.reason}"
    q_clean = clean_exponent(q_forcing, q_memory)
    effect = schedule_effect(q_memory, q_clean, vartheta, noise_var if quantity == "total" else 0.0)
    if quantity == "clean":
        if not law.stable:
            return None, f"{label}: {law.reason}"
        return q_clean, f"{label}: clean exponent q_0 = min(q_F, q_K)"
    return effect.total_exponent, f"{label}: {effect.reason}"
