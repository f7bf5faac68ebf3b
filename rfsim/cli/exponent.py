"""`rfsim exponent`: measured, predicted for the window, and in the limit."""

import argparse

from rfsim.checks import InputError
from rfsim.cli.output import emit
from rfsim.cli.setup import add_source_arguments, parameters, read_source, told_warnings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_source_arguments(parser)
    group = parser.add_argument_group("schedule")
    group.add_argument("--lr", type=float, required=True, metavar="ETA", help="constant learning rate")
    group.add_argument(
        "--batch", type=float, required=True, metavar="B0", help="first batch; B_t = ceil(B0 (1+T_t)^TH)"
    )
    group.add_argument("--vartheta", type=float, default=0.0, metavar="TH", help="growth of batch/lr ~ T^TH; default 0")
    group.add_argument("--window", required=True, metavar="T1,T2", help="window in intrinsic time")
    group.add_argument("--allow-unstable", action="store_true", help="measure although the schedule is unstable")
    parser.add_argument(
        "--quantity",
        choices=("gap", "clean", "forcing", "memory", "total"),
        default="gap",
        help="forcing, clean and total are taken above the floor; memory is the kernel; default gap",
    )


def run(options: argparse.Namespace) -> int:
    """Measure and print one exponent."""
    from rfsim.propagation import propagation
    from rfsim.provenance import versions

    try:
        window = tuple(float(item) for item in options.window.split(","))
    except ValueError as error:
        raise InputError(
            f"window must be two intrinsic times T1,T2, got {options.window!r}; give for example 40,1e4"
        ) from error
    source = read_source(options)
    told: list[str] = []
    with told_warnings(told):
        found = propagation(
            source.spectrum,
            lr=options.lr,
            batch=options.batch,
            vartheta=options.vartheta,
            window=window,  # type: ignore[arg-type]
            quantity=options.quantity,
            alpha=options.alpha,
            beta=options.beta,
            allow_unstable=options.allow_unstable,
        )
    result = {
        "quantity": found.quantity,
        "limit": found.limit,
        "finite_window": found.finite_window,
        "measured": found.measured,
        "uncertainty": found.uncertainty,
        "window": list(found.window),
        "reason": found.reason,
        "source": source.name,
        "seed": options.seed,
        "warnings": told,
        "parameters": parameters(options),
        "versions": versions(),
    }
    reasons = {}
    if found.limit is None:
        reasons["limit"] = found.reason
    if found.finite_window is None:
        reasons["finite_window"] = "the continuum prediction is not positive and finite over this window"
    emit(result, options.json, reasons=reasons)
    return 0
