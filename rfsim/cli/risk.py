"""`rfsim risk`: the exact curve."""

import argparse
from typing import TYPE_CHECKING, Any

from rfsim.cli.output import emit
from rfsim.cli.setup import (
    Source,
    add_schedule_arguments,
    add_source_arguments,
    parameters,
    read_any_schedule,
    read_source,
    told_warnings,
)

if TYPE_CHECKING:
    from rfsim.curves import Curve
    from rfsim.exact import AnySchedule

COLUMNS = ("step", "intrinsic_time", "risk", "forcing", "memory", "clean", "gap")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_source_arguments(parser)
    add_schedule_arguments(parser)
    parser.add_argument(
        "--route", choices=("recursion", "volterra", "jump", "auto"), default="auto", help="default auto"
    )


def run(options: argparse.Namespace) -> int:
    """Compute and print the curve."""
    from rfsim.exact import routed
    from rfsim.progress import Progress

    source = read_source(options)
    schedule, at = read_any_schedule(options, modes=source.spectrum.modes)
    told: list[str] = []
    progress = Progress("steps")
    with told_warnings(told):
        found = routed(
            source.spectrum,
            schedule,
            at=at,
            route=options.route,
            allow_unstable=options.allow_unstable,
            progress=progress,
        )
    progress.close()
    result, reasons = describe(source, schedule, found.curve, options, told)
    emit(
        {**result, "route": found.route, "route_error": found.error},
        options.json,
        reasons=reasons,
        table=COLUMNS,
    )
    return 0


def describe(
    source: Source, schedule: "AnySchedule", curve: "Curve", options: argparse.Namespace, told: list[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The result of an exact run, and for every null in it the reason."""
    import math

    from rfsim import stationary
    from rfsim.exact import constant_pair
    from rfsim.provenance import versions

    result: dict[str, Any] = {name: getattr(curve, name) for name in COLUMNS}
    reasons: dict[str, str] = {}
    result |= {"floor": float(curve.floor), "kappa": None, "terminal_risk": None, "stable": None, "lr_limit": None}
    spectrum = source.spectrum
    same = constant_pair(schedule)
    if same is None and curve.step[-1] == 0 and options.schedule == "constant":
        same = options.lr, options.batch  # no step is taken, but what it would do is known
    if same is not None and same[0] > 0.0:
        lr, batch = same
        mass, end = stationary.kappa(spectrum, lr, batch), stationary.limiting_risk(spectrum, lr, batch)
        result["stable"] = stationary.is_stable(spectrum, lr, batch)
        result["lr_limit"] = stationary.lr_limit(spectrum, batch)
        result["kappa"], result["terminal_risk"] = mass, end
        if not math.isfinite(mass):
            reasons["kappa"] = "the kernel mass diverges at this lr"
        if not math.isfinite(end):
            reasons["terminal_risk"] = "the schedule is unstable, its risk has no limit"
    else:
        empty = curve.step[-1] == 0 and same is None
        why = "the schedule has no steps" if empty else "defined for constant schedules with lr > 0 only"
        reasons |= dict.fromkeys(("kappa", "terminal_risk", "stable", "lr_limit"), why)
    result["overflow_step"] = curve.overflow_step
    if curve.overflow_step is not None:
        for name in ("risk", "forcing", "memory", "clean", "gap"):
            reasons[name] = f"values that left the float64 range, from step {curve.overflow_step} on"
    else:
        reasons["overflow_step"] = "the risk stays within the float64 range"
    result |= {
        "source": source.name,
        "modes": spectrum.modes,
        "seed": options.seed,
        "warnings": told,
        "parameters": parameters(options),
        "versions": versions(),
    }
    return result, reasons
