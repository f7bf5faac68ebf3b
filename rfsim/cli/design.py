"""`rfsim schedule design`: the schedule with the lowest final loss that a fit predicts."""

import argparse
from typing import Any

from rfsim.checks import InputError, whole_number
from rfsim.cli import norm
from rfsim.cli.logs import require_out
from rfsim.cli.output import warn

OPTIONS = ("lr_min", "warmup", "end", "stages", *norm.OPTIONS)
SHOWN = ("step", "lr", "batch", "intrinsic_time")


def add_design_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that only a design has."""
    group = parser.add_argument_group("design, from what rfsim fit --out wrote")
    group.add_argument("--lr-min", type=float, metavar="ETA", help="lowest lr after the warm-up; default 0")
    group.add_argument(
        "--warmup", type=int, metavar="W", help="steps of the linear warm-up; default that of the fitted runs"
    )
    group.add_argument("--end", type=float, metavar="ETA", help="lr of the last step; default free")
    group.add_argument("--stages", type=int, metavar="K", help="constant lr in K stages; default any falling lr")
    norm.add_norm_arguments(group)


def refuse_design_arguments(options: argparse.Namespace) -> None:
    """Raise InputError if an option of a design came with another action."""
    for name in OPTIONS:
        if getattr(options, name) is not None:
            raise InputError(f"{name.replace('_', '-')} is for schedule design, got it with {options.action}; drop it")


def run_design(options: argparse.Namespace, rows: Any) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
    """Result, reasons of its nulls, and the columns of its table; `rows` chooses the steps that are shown."""
    import numpy as np

    from rfsim import schedules
    from rfsim.surrogates import FitResult
    from rfsim.surrogates.schedule_design import design

    if options.steps is None:
        raise InputError("steps is missing; give --steps N, the length of the schedule with its warm-up")
    for name, usual in (("group", 4), ("clock_power", 1.0)):
        if getattr(options, name) != usual:
            raise InputError(f"{name.replace('_', '-')} is not for schedule design, whose law has a clock; drop it")
    require_out(options.out, [options.schedule])
    fit = FitResult.from_json(options.schedule)
    found = design(
        fit,
        whole_number("steps", options.steps),
        lr_max=options.lr,
        lr_min=0.0 if options.lr_min is None else options.lr_min,
        batch=options.batch,
        warmup=options.warmup,
        end=options.end,
        stages=options.stages,
        norm=norm.given_norm(options),
    )
    for note in found.notes:
        warn(note)
    if options.out is not None:
        found.to_csv(options.out)
    lr, batch = np.asarray(found.schedule.lr), np.asarray(found.schedule.batch)
    shown = rows(options, found.schedule.steps)
    result = {
        "step": shown,
        "lr": lr[shown],
        "batch": batch[shown],
        "intrinsic_time": schedules.intrinsic_time(lr)[shown],
        "steps": found.schedule.steps,
        "law": fit.law.name,
        "final_loss": found.loss,
        "final_loss_stderr": found.loss_stderr,
        "baselines": dict(sorted(found.baselines.items(), key=lambda one: one[1])),
        "best_baseline": found.best,
        "gain": found.gain,
        "gain_stderr": found.gain_stderr,
        "norm_model": norm.described_norm(found.norm_model),
        "slack": found.slack,
        "knots": found.places,
        "warnings": list(found.notes),
    }
    if not options.json:
        told = result.pop("baselines")
        del result["warnings"], result["knots"]
        if found.norm_model is None:
            del result["norm_model"]
        result.update({f"final_loss of {name}": loss for name, loss in list(told.items())[:8]})
    return result, {"norm_model": norm.REASON} if found.norm_model is None else {}, SHOWN
