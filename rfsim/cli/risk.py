"""`rfsim risk`: the exact curve."""

import argparse
from typing import TYPE_CHECKING, Any

from rfsim.cli.output import emit
from rfsim.cli.setup import (
    Source,
    add_schedule_arguments,
    add_source_arguments,
    parameters,
    read_schedule,
    read_source,
    told_warnings,
)

if TYPE_CHECKING:
    from rfsim.curves import Curve
    from rfsim.schedules import Schedule

COLUMNS = ("step", "intrinsic_time", "risk", "forcing", "memory", "clean", "gap")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_source_arguments(parser)
    add_schedule_arguments(parser)
    parser.add_argument("--route", choices=("recursion", "volterra", "auto"), default="auto", help="default auto")


def run(options: argparse.Namespace) -> int:
    """Compute and print the curve."""
    import rfsim
    from rfsim.progress import Progress

    schedule, at = read_schedule(options)
    source = read_source(options)
    told: list[str] = []
    progress = Progress("steps", schedule.steps)
    with told_warnings(told):
        curve = rfsim.risk(
            source.spectrum,
            schedule,
            at=at,
            route=options.route,
            allow_unstable=options.allow_unstable,
            progress=progress,
        )
    progress.close()
    result, reasons = describe(source, schedule, curve, options, told)
    emit(
        {**result, "route": "recursion" if options.route == "auto" else options.route},
        options.json,
        reasons=reasons,
        table=COLUMNS,
    )
    return 0


def describe(
    source: Source, schedule: "Schedule", curve: "Curve", options: argparse.Namespace, told: list[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The result of an exact run, and for every null in it the reason."""
    import math

    from rfsim import stationary
    from rfsim.provenance import versions
    from rfsim.schedules import is_constant

    result: dict[str, Any] = {name: getattr(curve, name) for name in COLUMNS}
    reasons: dict[str, str] = {}
    result |= {"floor": float(curve.floor), "kappa": None, "terminal_risk": None, "stable": None, "lr_limit": None}
    spectrum = source.spectrum
    if schedule.steps and is_constant(schedule):
        lr, batch = float(schedule.lr[0]), float(schedule.batch[0])
        mass, end = stationary.kappa(spectrum, lr, batch), stationary.limiting_risk(spectrum, lr, batch)
        result["stable"] = stationary.is_stable(spectrum, lr, batch)
        result["lr_limit"] = stationary.lr_limit(spectrum, batch)
        result["kappa"], result["terminal_risk"] = mass, end
        if not math.isfinite(mass):
            reasons["kappa"] = "the kernel mass diverges at this lr"
        if not math.isfinite(end):
            reasons["terminal_risk"] = "the schedule is unstable, its risk has no limit"
    else:
        why = "defined for constant schedules only" if schedule.steps else "the schedule has no steps"
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
