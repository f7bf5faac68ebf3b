"""`rfsim fit`: a law fitted to training logs, or to final losses."""

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from rfsim.checks import InputError, positive_number, whole_number
from rfsim.cli.logs import (
    LOGS,
    Source,
    add_fit_arguments,
    add_log_arguments,
    described,
    read_sources,
    require_out,
    starts_progress,
    tables,
    tell_findings,
)
from rfsim.cli.output import emit, warn
from rfsim.cli.setup import parameters, told_warnings

if TYPE_CHECKING:
    from rfsim.surrogates import FitResult
    from rfsim.surrogates.uncertainty import Interval

_INTERVALS = ("wald", "profile", "bootstrap")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("logs", nargs="+", metavar="LOG", help=f"{LOGS}; for chinchilla one table of points")
    parser.add_argument(
        "--law",
        required=True,
        metavar="NAME[:option=value,...]",
        help="forcing-memory | fsl | lr-fsl | elr-fsl | multi-power | momentum | chinchilla; "
        "for example forcing-memory:clock_power=0.5",
    )
    parser.add_argument("--out", metavar="FIT.json", help="write the fit here, for rfsim predict")
    add_log_arguments(parser)
    add_fit_arguments(parser)
    group = parser.add_argument_group("uncertainty")
    group.add_argument(
        "--fix", action="append", default=[], metavar="NAME=VALUE", help="hold a parameter; may be repeated"
    )
    group.add_argument(
        "--intervals",
        choices=_INTERVALS,
        help="confidence intervals: local, by refits with the parameter held, or of resampled blocks of rows; "
        "default wald (chinchilla: bootstrap)",
    )
    group.add_argument("--resamples", type=int, metavar="N", help="of the bootstrap; default 200 (chinchilla: 1000)")
    group.add_argument("--seed", type=int, metavar="S", help="of the bootstrap; default 0")
    group.add_argument(
        "--alternatives",
        action="store_true",
        help="fit other forms of the law, too, such as A_1 = 0, and tell how far each parameter leans on the form",
    )
    points = parser.add_argument_group("final losses (chinchilla)")
    points.add_argument("--model-size", metavar="COLUMN", help="column of the number of parameters")
    points.add_argument("--flop", metavar="COLUMN", help="column of the training FLOP, where there are no tokens")
    points.add_argument("--drop-largest", type=int, metavar="K", help="leave out the K largest losses; default 0")
    points.add_argument(
        "--free-scale", action="store_true", help="maximum likelihood with the scale of the residuals free"
    )


def run(options: argparse.Namespace) -> int:
    """Fit and print one law."""
    from rfsim.surrogates.comparison import named_law
    from rfsim.surrogates.uncertainty import checked_level

    if options.law.partition(":")[0] == "chinchilla":
        from rfsim.cli.points import fit_table

        return fit_table(options)
    for name in ("model_size", "flop", "drop_largest", "free_scale"):
        if getattr(options, name):
            raise InputError(f"{name} is for chinchilla only, got it with law {options.law}; drop it")
    if options.intervals != "bootstrap":
        for name in ("resamples", "seed"):
            if getattr(options, name) is not None:
                raise InputError(f"{name} is for the bootstrap; drop it, or give --intervals bootstrap")
    law = named_law(options.law)
    fixed = fixed_values(options.fix)
    checked_level(options.level)
    positive_number("huber", options.huber)
    resamples = whole_number("resamples", 200 if options.resamples is None else options.resamples, least=2)
    seed = whole_number("seed", options.seed or 0, least=0)
    require_out(options.out, [*options.logs, *(options.parent or [])])
    return _fit(options, law, fixed, resamples, seed)


def _fit(options: argparse.Namespace, law: Any, fixed: dict[str, float], resamples: int, seed: int) -> int:
    from rfsim.provenance import versions
    from rfsim.surrogates import fit
    from rfsim.surrogates.laws import law_record
    from rfsim.surrogates.transfer import moving_rows

    sources = [Source(given, moving_rows(run)) for given, run in read_sources(options, options.logs)]
    tell_findings(sources)
    told: list[str] = []
    with told_warnings(told):
        shown, close = starts_progress("starts")
        result = fit(
            law,
            [source.run for source in sources],
            window=options.window,
            huber=options.huber,
            fixed=fixed,
            progress=shown,
        )
        close()
        method = options.intervals or "wald"
        if options.out is not None and (method == "bootstrap" or options.alternatives):
            result.to_json(options.out)
            missing = "resamples" if method == "bootstrap" else "other forms"
            print(f"rfsim fit: {options.out} has the fit, for now without the {missing}", file=sys.stderr)
        if method == "bootstrap":
            shown, close = starts_progress("resamples")
            result = result.bootstrapped(resamples, seed=seed, progress=shown)
            close()
        intervals = result.conf_int(options.level, method=method)
        if options.alternatives:
            shown, close = starts_progress("forms")
            result = result.with_alternatives(progress=shown)
            close()
    for note in result.alternatives.notes() if result.alternatives is not None else ():
        warn(note)
        told.append(note)
    if options.out is not None:
        result.to_json(options.out)
    found = {
        "law": options.law,
        "law_options": law_record(result.law),
        "parameters": result.params,
        "stderr": result.stderr,
        "conf_int": {name: _ends(intervals.get(name)) for name in result.params},
        "intervals": method,
        "level": options.level,
        "at_bound": list(result.at_bound),
        "unidentified": list(result.unidentified),
        "fixed": result.fixed,
        "objective": result.objective,
        "huber": result.huber,
        "alternatives": None if result.alternatives is None else result.alternatives.report(),
        "starts": result.starts,
        "starts_share": result.share,
        "scatter": result.scatter,
        "inflation": result.spread.inflation,
        "window": result.window,
        "warmup": common_warmup(result),
        "runs": [_run_record(source, record) for source, record in zip(sources, result.runs, strict=True)],
        "fit_file": options.out,
        "warnings": told,
        "arguments": parameters(options),
        "versions": versions(),
    }
    reasons = _reasons(found)
    if options.json:
        emit(found, True, reasons=reasons)
    else:
        print(_text(result, found))
    return 0


def common_warmup(result: "FitResult") -> int | None:
    """Steps of the warm-up of the fitted runs, or None if they differ."""
    known = {run.warmup for run in result.runs}
    return known.pop() if len(known) == 1 else None


def fixed_values(texts: list[str]) -> dict[str, float]:
    """Parameters to hold from texts NAME=VALUE."""
    fixed: dict[str, float] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise InputError(f"fix must be NAME=VALUE with a number, got {text!r}; for example q_K=1.2")
        if name in fixed:
            raise InputError(f"fix has {name} twice; give it once")
        fixed[name] = number
    return fixed


def _run_record(source: Source, record: Any) -> dict[str, Any]:
    """What the result says of a fitted run: rows of the window, errors in loss."""
    return {
        **described(source),
        "rows": len(record.step),
        "rmse": record.rmse,
        "noise_floor": float(record.noise * record.loss.mean()),
        "lr": record.lr,
        "batch": record.batch,
        "intrinsic_time": record.intrinsic_time,
    }


def _ends(interval: "Interval | None") -> list[float] | None:
    """The two ends, or None where there is no interval."""
    return None if interval is None or interval.low != interval.low else list(interval)


def _reasons(found: dict[str, Any]) -> dict[str, str]:
    reasons = {}
    without = [name for name, ends in found["conf_int"].items() if ends is None]
    if without:
        held = [name for name in without if name in found["fixed"]]
        edge = [name for name in without if name not in found["fixed"]]
        told = [f"{', '.join(held)} fixed"] if held else []
        told += [f"{', '.join(edge)} on a bound: --intervals profile gives the other end"] if edge else []
        reasons["conf_int"] = "; ".join(told)
    if found["warmup"] is None:
        reasons["warmup"] = "the runs have different warm-ups, see runs"
    if found["fit_file"] is None:
        reasons["fit_file"] = "no --out was given"
    if found["alternatives"] is None:
        reasons["alternatives"] = "not asked for: --alternatives fits them"
    if any(run["noise_floor"] != run["noise_floor"] for run in found["runs"]):
        reasons["noise_floor"] = "a noise floor needs at least 8 rows"
    return reasons


def _text(result: "FitResult", found: dict[str, Any]) -> str:
    """The result as two tables and what belongs to them."""
    units = {one.name: one.unit for one in result.law.parameters}
    rows = []
    for name, value in found["parameters"].items():
        low, high = found["conf_int"][name] or (None, None)
        remark = "at bound" if name in found["at_bound"] else "fixed" if name in found["fixed"] else ""
        rows.append(
            {
                "parameter": name,
                "value": value,
                "stderr": found["stderr"][name],
                "from": low,
                "to": high,
                "unit": units.get(name, ""),
                "": "not determined" if name in found["unidentified"] else remark,
            }
        )
    options = {name: value for name, value in found["law_options"].items() if name != "name"}
    reached = f"reached from {found['starts_share']:.0%} of {found['starts']} starts"
    if len(found["fixed"]) == len(rows):
        reached = "at the given parameters, no fit"
    lines = [
        f"law: {found['law']}  {json.dumps(options)}",
        tables(rows, tuple(rows[0])),
        f"intervals: {found['intervals']}, level {found['level']:g}",
        f"objective: {found['objective']:.10g}, {reached}",
        *([result.alternatives.summary()] if result.alternatives is not None else []),
        f"window: {found['window']}",
        tables(found["runs"], ("name", "rows", "rmse", "noise_floor", "warmup")),
    ]
    return "\n".join([*lines, *([f"fit file: {found['fit_file']}"] if found["fit_file"] else [])])
