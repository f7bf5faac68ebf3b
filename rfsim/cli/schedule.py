"""`rfsim schedule show`, `pair` and `design`: a schedule, two realisations of one path, and the best under a fit."""

import argparse
from typing import Any

from rfsim.checks import InputError
from rfsim.cli.design import add_design_arguments, refuse_design_arguments, run_design
from rfsim.cli.output import emit, shown_rows
from rfsim.cli.setup import SPECS, is_schedule_file, parameters, read_schedule

SHOWN = ("step", "lr", "batch", "intrinsic_time", "ratio", "data")
PAIRED = (
    "intrinsic_time",
    "data",
    "ratio",
    "level",
    "lr_decay_step",
    "lr_decay_lr",
    "lr_decay_batch",
    "batch_growth_step",
    "batch_growth_lr",
    "batch_growth_batch",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "action",
        choices=("show", "pair", "design"),
        help="show: every step with clock, ratio and data; pair: lr decay and batch growth with the same ratio path; "
        "design: the falling lr with the lowest final loss that a fit predicts",
    )
    parser.add_argument("schedule", metavar="SPEC|FILE.csv|FIT.json", help=f"{SPECS}; design: a fit of rfsim fit")
    parser.add_argument("--steps", type=int, metavar="N", help="number of steps")
    parser.add_argument(
        "--lr",
        type=float,
        metavar="ETA",
        help="learning rate (peak); of the batch-growth run for pair; largest for design",
    )
    parser.add_argument("--batch", type=float, metavar="B", help="batch size (first); of the lr-decay run for pair")
    parser.add_argument(
        "--rows",
        type=int,
        metavar="K",
        help="about K evenly spaced rows with the first and the last; default all with --json, else 40",
    )
    parser.add_argument(
        "--group", type=int, default=4, metavar="G", help="pair: updates of the batch-growth run per macro step"
    )
    parser.add_argument(
        "--clock-power", type=float, default=1.0, metavar="P", help="clock is the sum of lr^P; default 1"
    )
    parser.add_argument(
        "--out",
        metavar="PATH",
        help="show, design: write a CSV file step,lr,batch; pair: write two of them into this folder",
    )
    add_design_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Print what was asked for."""
    from rfsim.provenance import versions

    options.at = None
    if options.action == "design":
        result, reasons, table = run_design(options, shown_rows)
    else:
        refuse_design_arguments(options)
        result, reasons, table = (_show if options.action == "show" else _pair)(options)
    shown = parameters(options)
    del shown["at"]
    emit({**result, "parameters": shown, "versions": versions()}, options.json, reasons=reasons, table=table)
    return 0


def _show(options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
    import numpy as np

    from rfsim import schedules

    schedule = read_schedule(options)[0]
    whole = schedules.path(schedule, clock=schedules.power_clock(options.clock_power))
    rows = shown_rows(options, schedule.steps)
    result: dict[str, Any] = {name: getattr(whole, name)[rows] for name in SHOWN}
    end = {"end_intrinsic_time": float(whole.intrinsic_time[-1]), "end_data": float(whole.data[-1])}
    reasons = {}
    for name, values in {**result, **end}.items():
        if not np.isfinite(values).all():
            reasons[name] = "infinite where the batch is inf" + (" or lr is 0" if name == "ratio" else "")
    if options.out is not None:
        schedules.write_schedule(options.out, schedule)
    return {**result, "steps": schedule.steps, **end}, reasons, SHOWN


def _pair(options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
    from rfsim import schedules
    from rfsim.provenance import output_folder

    lr, batch = options.lr, options.batch
    if is_schedule_file(options.schedule):
        options.lr = options.batch = None  # the file has its own; these are of the two runs
    target = read_schedule(options)[0]
    for name, value in (("lr", lr), ("batch", batch)):
        if value is None:
            raise InputError(
                f"{name} is missing; pair needs --lr of the batch-growth run and --batch of the lr-decay run"
            )
        setattr(options, name, value)
    made = schedules.pair(target, lr=lr, batch=batch, group=options.group, power=options.clock_power)
    clock = schedules.power_clock(options.clock_power)
    apart = schedules.path_distance(made.lr_decay, made.batch_growth, clock=clock)
    grain = 10.0 * float(made.intrinsic_time[1])
    grain = min(grain, float(made.intrinsic_time[-1]))
    off = schedules.path_distance(made.lr_decay, target, clock=clock, grain=grain)
    rows = shown_rows(options, len(made.level))
    one, other = made.lr_decay_steps[rows], made.batch_growth_steps[rows]
    result: dict[str, Any] = {
        "intrinsic_time": made.intrinsic_time[rows],
        "data": made.data[rows],
        "ratio": made.level[rows] * float(batch) / made.intrinsic_time[1],
        "level": made.level[rows],
        "lr_decay_step": one,
        "lr_decay_lr": made.lr_decay.lr[one],
        "lr_decay_batch": made.lr_decay.batch[one],
        "batch_growth_step": other,
        "batch_growth_lr": made.batch_growth.lr[other],
        "batch_growth_batch": made.batch_growth.batch[other],
        "macro_steps": len(made.level),
        "lr_decay_steps": made.lr_decay.steps,
        "batch_growth_steps": made.batch_growth.steps,
        "end_intrinsic_time": float(made.intrinsic_time[-1]),
        "end_data": float(made.data[-1]),
        "path_distance": apart._asdict(),
        "target_distance": {**off._asdict(), "grain": grain},
    }
    if options.out is not None:
        folder = output_folder(options.out)
        for name in ("lr_decay", "batch_growth"):
            schedules.write_schedule(folder / f"{name}.csv", getattr(made, name))
    return result, {}, PAIRED
