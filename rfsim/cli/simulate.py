"""`rfsim simulate`: Monte-Carlo SGD beside the exact curve."""

import argparse

from rfsim.checks import whole_number
from rfsim.cli.output import emit, warn
from rfsim.cli.risk import COLUMNS, describe
from rfsim.cli.setup import add_schedule_arguments, add_source_arguments, read_schedule, read_source, told_warnings

_FALSE_ALARM_RATE = 1e-3  # of the whole family of recorded steps


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_source_arguments(parser)
    add_schedule_arguments(parser)
    group = parser.add_argument_group("runs")
    group.add_argument("--runs", type=int, default=256, metavar="N", help="independent SGD runs; default 256")
    group.add_argument("--engine", choices=("literal", "law"), default="law", help="default law (exact in law, fast)")
    group.add_argument(
        "--draws", choices=("float32", "float64"), default="float64", help="precision of the normal draws"
    )
    group.add_argument("--checkpoint", metavar="FILE.npz", help="keep finished runs here and resume from it")


def run(options: argparse.Namespace) -> int:
    """Run SGD and print its ensemble beside the exact curve."""
    import numpy as np

    import rfsim
    from rfsim.measure import agreement
    from rfsim.progress import Progress

    runs = whole_number("runs", options.runs, least=2)
    schedule, at = read_schedule(options)
    source = read_source(options, every_mode=True)
    told: list[str] = []
    with told_warnings(told):
        curve = rfsim.risk(source.spectrum, schedule, at=at, allow_unstable=options.allow_unstable)
    progress = Progress("runs", runs)
    ensemble = rfsim.simulate(
        source.runs_key,
        source.spectrum if options.engine == "law" else source.features(),
        schedule,
        runs=runs,
        engine=options.engine,
        at=curve.step,
        draws=options.draws,
        checkpoint=options.checkpoint,
        progress=lambda done, _total: progress(done),
    )
    progress.close()
    mean, stderr = np.asarray(ensemble.mean), np.asarray(ensemble.stderr)
    exact = np.asarray(curve.risk)
    finite = np.isfinite(mean) & np.isfinite(stderr) & np.isfinite(exact)
    found = agreement(mean[finite], exact[finite], stderr[finite], runs=runs, false_alarm_rate=_FALSE_ALARM_RATE)
    spread = finite & (stderr > 1e-12 * np.abs(np.where(finite, mean, 0.0)))
    z = np.full(mean.size, np.nan)
    z[spread] = (mean[spread] - exact[spread]) / stderr[spread]
    result, reasons = describe(source, schedule, curve, options, told)
    result |= {
        "mean": mean,
        "stderr": stderr,
        "z": z,
        "max_abs_z": found.max_abs_z,
        "false_alarm_rate": found.false_alarm_rate,
        "threshold": found.threshold,
        "agrees": bool(found.passed),
        "runs": runs,
        "engine": options.engine,
    }
    if not spread.all():
        reasons["z"] = "no spread over the runs at this step (stderr <= 1e-12 mean), or an overflow"
    if not finite.all():
        reasons |= dict.fromkeys(("mean", "stderr"), "runs left the float64 range")
    emit(result, options.json, reasons=reasons, table=(*COLUMNS, "mean", "stderr", "z"))
    if not found.passed:
        warn(
            f"the ensemble mean is {found.max_abs_z:.2f} standard errors off somewhere, beyond {found.threshold:.2f}; "
            f"that happens by chance in {found.false_alarm_rate:g} of such ensembles, or with heavy tails near "
            f"instability"
        )
    return 0
