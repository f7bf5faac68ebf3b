"""`risk`: the exact curve by whichever route fits, after the stability of the run has been checked."""

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rfsim.checks import InputError, one_of, told_apart
from rfsim.compress import compress_with_error
from rfsim.curves import Curve
from rfsim.precision import is_traced
from rfsim.routes import jump, recursion, volterra
from rfsim.schedules import Schedule, is_constant, recorded_steps
from rfsim.smooth import Smooth
from rfsim.spectra import Spectrum
from rfsim.stationary import lr_limit, pointwise_limit
from rfsim.stretches import Stretches, from_schedule

ROUTES = ("auto", "recursion", "volterra", "jump")

AnySchedule = Schedule | Stretches | Smooth

_STEP, _MODE_STEP = 1e-6, 2e-9  # seconds of the recursion per step, and per step and mode
_PAIR = 1e-7  # seconds of the jump route per stretch and pair of modes
_PATIENCE = 1.0  # seconds below which the recursion is not worth replacing
_RTOL = 1e-5  # relative accuracy asked of smooth schedules
_BLOCK = 2**16  # steps looked at in one go
_MANY = 300  # modes beyond which a long run replaces them by few nodes


class StabilityWarning(UserWarning):
    """A schedule whose kernel row mass exceeds one: nothing guarantees that its risk stays bounded."""


class Routed(NamedTuple):
    """A curve, the route that made it, and the estimated relative error of its risk beyond the spectrum's own."""

    curve: Curve
    route: str
    error: float


def risk(
    spectrum: Spectrum,
    schedule: AnySchedule,
    *,
    at: object = None,
    route: str = "auto",
    allow_unstable: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Curve:
    """Exact risk of SGD at recorded steps, R_t = F_t + sum_{s<t} K_{t,s} (R_s + sigma^2).

    Parameters
    ----------
    spectrum : modes, floor and label noise.
    schedule : N steps of (lr, batch); or, for horizons that no array holds, stretches of constant (lr, batch) made by
        `rfsim.stretches.stretches`, or a smooth schedule made by the functions of `rfsim.smooth`.
    at : recorded steps in 0..N, strictly increasing; default about 200 log-spaced ones with 0 and N.
    route : "recursion" step by step, "volterra" through the explicit kernel, "jump" in closed form over constant
        stretches; "auto" takes the recursion unless it would take seconds and jumping is cheaper.
    allow_unstable : run an unstable schedule; the curve then says at which step the risk overflowed.
    progress : called with the number of finished steps (recursion only).

    Returns
    -------
    Curve with arrays step, intrinsic_time, risk, forcing, memory, clean, gap of k recorded steps. Exact to rounding for
    a Schedule or Stretches, to about 1e-5 for a smooth schedule. Where "auto" would step for seconds, and beyond the
    reach of arrays, more than 300 modes are first replaced by few nodes with a relative error of at most 1e-9.
    `routed` says which route was taken and how large its error is.

    Raises
    ------
    InputError : for an unstable constant schedule, a step beyond the pointwise limit, or bad `at` or `route`.

    Warns
    -----
    StabilityWarning : when the kernel row mass of a changing schedule exceeds one somewhere.
    """
    return routed(spectrum, schedule, at=at, route=route, allow_unstable=allow_unstable, progress=progress).curve


def routed(
    spectrum: Spectrum,
    schedule: AnySchedule,
    *,
    at: object = None,
    route: str = "auto",
    allow_unstable: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Routed:
    """Like `risk`, and say which route was taken and how large its error is."""
    one_of("route", route, ROUTES)
    if not isinstance(schedule, Schedule):
        if route not in ("auto", "jump"):
            raise InputError(f"route {route} needs every step in an array; use route jump, or a Schedule")
        few, lost = _few_nodes(spectrum)
        check_stability(few, schedule, allow_unstable=allow_unstable)
        if isinstance(schedule, Smooth):
            run = jump.smooth_risk(few, schedule, at=at, rtol=_RTOL)
            return Routed(run.curve, "jump", lost + float(run.error.max()))
        return Routed(jump.risk(few, schedule, at=at), "jump", lost + _rounding(schedule.count))
    if is_traced(spectrum, schedule):
        if route in ("volterra", "jump"):
            raise InputError(
                f"route {route} works in NumPy and cannot be traced by jit, vmap or grad; use route recursion"
            )
        return Routed(recursion.risk(spectrum, schedule, at=at), "recursion", _rounding(schedule.steps))
    if route != "jump":
        at = recorded_steps(at, schedule.steps)
    check_stability(spectrum, schedule, allow_unstable=allow_unstable)
    if route == "volterra":
        return Routed(volterra.risk(spectrum, schedule, at=at), route, _rounding(schedule.steps))
    lost = 0.0
    if route == "auto" and _seconds(spectrum, schedule) > _PATIENCE:
        spectrum, lost = _few_nodes(spectrum)
    if route == "jump" or (route == "auto" and _jumping_pays(spectrum, schedule)):
        return Routed(jump.risk(spectrum, schedule, at=at), "jump", lost + _rounding(from_schedule(schedule).count))
    curve = recursion.risk(spectrum, schedule, at=at, progress=progress)
    return Routed(curve, "recursion", lost + _rounding(schedule.steps))


def _rounding(count: float) -> float:
    """Bound on the relative rounding error after `count` steps or stretches."""
    return float(np.finfo(np.float64).eps * (count + 10.0))


def _seconds(spectrum: Spectrum, schedule: Schedule) -> float:
    """About how long the recursion would take."""
    return schedule.steps * (_STEP + _MODE_STEP * spectrum.modes)


def _few_nodes(spectrum: Spectrum) -> tuple[Spectrum, float]:
    """A few nodes in place of many modes, and the relative error that costs; the spectrum itself if it is small."""
    if spectrum.modes <= _MANY or np.iscomplexobj(spectrum.eigenvalues) or np.min(spectrum.forcing_energy) < 0.0:
        return spectrum, 0.0
    found = compress_with_error(spectrum)
    return found.spectrum, max(found.forcing_error, found.memory_error)


def _jumping_pays(spectrum: Spectrum, schedule: Schedule) -> bool:
    """True if the recursion would take seconds and the schedule has few enough constant stretches to jump over."""
    stepping = _seconds(spectrum, schedule)
    if stepping < _PATIENCE or np.iscomplexobj(spectrum.eigenvalues):
        return False
    return from_schedule(schedule).count * _PAIR * spectrum.modes**2 < stepping


def constant_pair(schedule: AnySchedule) -> tuple[float, float] | None:
    """(lr, batch) of a schedule that is constant and has at least one step, else None."""
    if isinstance(schedule, Smooth):
        return None
    if isinstance(schedule, Stretches):
        schedule = Schedule(schedule.lr[schedule.steps > 0], schedule.batch[schedule.steps > 0])
    if schedule.steps == 0 or not is_constant(schedule):
        return None
    return float(schedule.lr[0]), float(schedule.batch[0])


def check_stability(spectrum: Spectrum, schedule: AnySchedule, *, allow_unstable: bool = False) -> None:
    """Raise InputError if the run is unstable, warn if its row mass exceeds one; do nothing if `allow_unstable`.

    A constant schedule is judged by the exact criterion (kappa < 1 and pointwise contraction), any other schedule by
    pointwise contraction at every step (at some thousand steps of a smooth one).
    """
    if allow_unstable:
        return
    same = constant_pair(schedule)
    if same is not None:
        _check_constant(spectrum, *same)
        return
    place, lr, batch = _every_rate(schedule)
    if lr.size == 0 or lr.max() == 0.0:
        return
    top = float(np.max(spectrum.eigenvalues))
    worst, growth, ratio = _worst_step(lr, batch, top)
    if growth >= 2.0:
        raise InputError(
            f"lr {lr[worst]:g} at step {int(place[worst])} is not below the pointwise limit "
            f"{pointwise_limit(spectrum, float(batch[worst])):.6g} of this spectrum at batch {batch[worst]:g}; "
            f"lower lr, raise batch, or allow unstable runs (allow_unstable=True, --allow-unstable)"
        )
    trace = float(np.sum(np.asarray(spectrum.multiplicity) * np.asarray(spectrum.eigenvalues)))
    if ratio * trace / (2.0 - growth) < 1.0:
        return
    steps, mass = _row_mass(spectrum, schedule)
    if np.max(mass) >= 1.0:
        warnings.warn(
            f"the kernel row mass reaches {np.max(mass):.4g} at step {int(steps[np.argmax(mass)])}, above 1: this "
            f"schedule is not certified stable and its risk may grow; lower lr or raise batch if that is not wanted",
            StabilityWarning,
            stacklevel=4,
        )


def _worst_step(lr: np.ndarray, batch: np.ndarray, top: float) -> tuple[int, float, float]:
    """Step with the largest (1 + 1/B) lr top, that value, and the largest lr/B; in blocks, to keep memory small."""
    worst, growth, ratio = 0, 0.0, 0.0
    for start in range(0, lr.size, _BLOCK):
        rates, sizes = lr[start : start + _BLOCK], batch[start : start + _BLOCK]
        grown = (1.0 + 1.0 / sizes) * rates * top
        place = int(np.argmax(grown))
        if grown[place] > growth:
            worst, growth = start + place, float(grown[place])
        ratio = max(ratio, float(np.max(rates / sizes)))
    return worst, growth, ratio


def _check_constant(spectrum: Spectrum, lr: float, batch: float) -> None:
    if lr == 0.0:
        return
    limit = lr_limit(spectrum, batch)
    if lr >= limit:
        hopeless = "no lr is stable on an infinite trace (alpha <= 1/2): use a finite ambient dimension"
        given, allowed = told_apart(lr, limit)
        raise InputError(
            f"lr {given} is not below the stability limit {allowed} of this spectrum at batch {batch:g}; "
            f"{hopeless if limit == 0.0 else 'lower lr, raise batch'}, or allow unstable runs (allow_unstable=True, "
            f"--allow-unstable)"
        )


def _every_rate(schedule: AnySchedule) -> tuple[Sequence[int] | np.ndarray, np.ndarray, np.ndarray]:
    """Steps, and lr and batch there: every step, every stretch, or a sample of a smooth schedule with its breaks."""
    if isinstance(schedule, Schedule):
        return range(schedule.steps), np.asarray(schedule.lr), np.asarray(schedule.batch)
    if isinstance(schedule, Stretches):
        used = schedule.steps > 0
        return schedule.edges[:-1][used], schedule.lr[used], schedule.batch[used]
    last = schedule.steps - 1
    spread = np.concatenate([np.linspace(0.0, last, 1000), np.geomspace(1.0, last + 1.0, 1000) - 1.0])
    breaks = np.array([place + offset for place in schedule.breaks for offset in (-1, 0)], dtype=np.float64)
    place = np.unique(np.clip(np.rint(np.concatenate([spread, breaks])), 0, last))
    return place, *schedule.at(place)


def _row_mass(spectrum: Spectrum, schedule: AnySchedule) -> tuple[np.ndarray, np.ndarray]:
    """Steps and kernel row sums there: the largest one by the recursion, or a few for a schedule without arrays."""
    if isinstance(schedule, Schedule):
        step, mass = recursion.largest_row_mass(spectrum, schedule)
        return np.array([step]), np.array([mass])
    # the gap for kernel K/c and noise c is the row mass plus feedback of order 1/c
    large = 1e12
    thin = spectrum.replace(
        forcing_energy=np.zeros(spectrum.modes),
        multiplicity=np.asarray(spectrum.multiplicity) / large,
        floor=0.0,
        noise_var=large,
    )
    if isinstance(schedule, Stretches):
        curve = jump.risk(thin, schedule)
    else:
        some = np.unique(np.rint(np.geomspace(1.0, schedule.steps, 6)))
        curve = jump.smooth_risk(thin, schedule, at=some, rtol=1e-3).curve
    return np.asarray(curve.step), np.asarray(curve.gap)
