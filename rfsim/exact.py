"""`risk`: the exact curve by whichever route fits, after the stability of the run has been checked."""

import warnings
from collections.abc import Callable

import numpy as np

from rfsim.checks import InputError, one_of
from rfsim.curves import Curve
from rfsim.precision import is_traced
from rfsim.routes import recursion, volterra
from rfsim.schedules import Schedule, is_constant, recorded_steps
from rfsim.spectra import Spectrum
from rfsim.stationary import lr_limit, pointwise_limit

ROUTES = ("auto", "recursion", "volterra")


class StabilityWarning(UserWarning):
    """A schedule whose kernel row mass exceeds one: nothing guarantees that its risk stays bounded."""


def risk(
    spectrum: Spectrum,
    schedule: Schedule,
    *,
    at: object = None,
    route: str = "auto",
    allow_unstable: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Curve:
    """Exact risk of SGD at recorded steps, R_t = F_t + sum_{s<t} K_{t,s} (R_s + sigma^2).

    Parameters
    ----------
    spectrum : modes, floor and label noise; schedule : N steps of (lr, batch).
    at : recorded steps in 0..N, strictly increasing; default about 200 log-spaced ones with 0 and N.
    route : "recursion" for any length, "volterra" through the explicit kernel, "auto" is the recursion.
    allow_unstable : run an unstable schedule; the curve then says at which step the risk overflowed.
    progress : called with the number of finished steps (recursion only).

    Returns
    -------
    Curve with arrays step, intrinsic_time, risk, forcing, memory, clean, gap of k recorded steps.

    Raises
    ------
    InputError : for an unstable constant schedule, a step beyond the pointwise limit, or bad `at` or `route`.

    Warns
    -----
    StabilityWarning : when the kernel row mass of a changing schedule exceeds one somewhere.
    """
    one_of("route", route, ROUTES)
    if not is_traced(spectrum, schedule):
        steps = recorded_steps(at, schedule.steps)
        check_stability(spectrum, schedule, allow_unstable=allow_unstable)
        if route == "volterra":
            return volterra.risk(spectrum, schedule, at=steps)
        return recursion.risk(spectrum, schedule, at=steps, progress=progress)
    if route == "volterra":
        raise InputError(
            "route volterra holds its kernel in NumPy and cannot be traced by jit, vmap or grad; use recursion"
        )
    return recursion.risk(spectrum, schedule, at=at)


def check_stability(spectrum: Spectrum, schedule: Schedule, *, allow_unstable: bool = False) -> None:
    """Raise InputError if the run is unstable, warn if its row mass exceeds one; do nothing if `allow_unstable`.

    A constant schedule is judged by the exact criterion (kappa < 1 and pointwise contraction), any other schedule by
    pointwise contraction at every step.
    """
    if allow_unstable or schedule.steps == 0:
        return
    lr, batch = np.asarray(schedule.lr), np.asarray(schedule.batch)
    if is_constant(schedule):
        if lr[0] == 0.0:
            return
        limit = lr_limit(spectrum, float(batch[0]))
        if lr[0] >= limit:
            raise InputError(
                f"lr {lr[0]:g} is not below the stability limit {limit:.6g} of this spectrum at batch {batch[0]:g}; "
                + (
                    "no lr is stable on an infinite trace (alpha <= 1/2): use a finite ambient dimension"
                    if limit == 0.0
                    else "lower lr, raise batch"
                )
                + ", or allow unstable runs (allow_unstable=True, --allow-unstable)"
            )
        return
    growth = (1.0 + 1.0 / batch) * lr * float(np.max(spectrum.eigenvalues))
    worst = int(np.argmax(growth))
    if growth[worst] >= 2.0:
        raise InputError(
            f"lr {lr[worst]:g} at step {worst} is not below the pointwise limit "
            f"{pointwise_limit(spectrum, float(batch[worst])):.6g} of this spectrum at batch {batch[worst]:g}; "
            f"lower lr, raise batch, or allow unstable runs (allow_unstable=True, --allow-unstable)"
        )
    trace = float(np.sum(np.asarray(spectrum.multiplicity) * np.asarray(spectrum.eigenvalues)))
    if float(np.max(lr / batch)) * trace / (2.0 - growth[worst]) < 1.0:
        return
    mass = recursion.row_mass(spectrum, schedule, at=np.arange(schedule.steps + 1))
    if np.max(mass) >= 1.0:
        warnings.warn(
            f"the kernel row mass reaches {np.max(mass):.4g} at step {int(np.argmax(mass))}, above 1: this schedule is "
            f"not certified stable and its risk may grow; lower lr or raise batch if that is not wanted",
            StabilityWarning,
            stacklevel=3,
        )
