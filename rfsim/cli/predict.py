"""`rfsim predict`: what a fit says about other logs, or about a schedule that has not been run."""

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

from rfsim.checks import InputError, positive_number, whole_number
from rfsim.cli import norm
from rfsim.cli.fit import common_warmup
from rfsim.cli.logs import LOGS, add_log_arguments, described, number_or_text, read_as_fitted, tables, tell_findings
from rfsim.cli.output import emit, shown_rows, warn
from rfsim.cli.setup import is_schedule_file, parameters

if TYPE_CHECKING:
    from rfsim.logs import Run
    from rfsim.schedules import Schedule
    from rfsim.surrogates import FitResult

_FAR = 1.05  # horizons beyond this multiple of the fitted ones are told
COLUMNS = ("run", "step", "loss", "stderr", "low", "high", "observed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("fit", metavar="FIT.json", help="what rfsim fit --out wrote")
    parser.add_argument(
        "logs", nargs="*", metavar="LOG", help=f"logs to predict at their rows: {LOGS}; for chinchilla one table"
    )
    group = parser.add_argument_group("instead of logs: --schedule with")
    group.add_argument("--steps", type=int, metavar="N", help="number of steps, a warm-up included")
    group.add_argument(
        "--at",
        metavar="t1,t2,...",
        help="predict after these steps; default up to 200 from the first fitted row on",
    )
    norm.add_norm_arguments(group)
    add_log_arguments(parser)
    parser.add_argument("--level", type=float, default=0.95, metavar="P", help="of the band; default 0.95")
    parser.add_argument(
        "--rows",
        type=int,
        metavar="K",
        help="about K evenly spaced rows of each run (or of the table) with the first and the last; default all with "
        "--json, else 40",
    )
    parser.epilog = (
        "The warm-up of the fitted runs is put in front of logs that start after it, and into a SPEC without warmup=; "
        "--warmup says otherwise. A SPEC takes the largest lr and the batch of the fitted runs unless --lr and "
        "--batch are given. Laws in the effective lr take the norm of a schedule from the model of the fitted runs, or "
        "from --weight-decay."
    )


def run(options: argparse.Namespace) -> int:
    """Print the predictions of one fit."""
    from rfsim.cli.points import is_table_fit, predict_table
    from rfsim.provenance import versions
    from rfsim.surrogates import FitResult
    from rfsim.surrogates.uncertainty import checked_level

    checked_level(options.level)
    if options.rows is not None:
        whole_number("rows", options.rows)
    if is_table_fit(options.fit):
        return predict_table(options)
    fit = FitResult.from_json(options.fit)
    found = _of_logs(fit, options) if options.logs else _of_schedule(fit, options)
    told = [
        f"{name} reaches {ratio:.3g} times the intrinsic time of the fitted runs: the band holds if the law does so far"
        for name, ratio in found.ratios
        if ratio > _FAR
    ]
    told += found.told
    for line in told:
        warn(line)
    result = {
        "law": fit.law.name,
        "law_parameters": fit.params,
        "level": options.level,
        **found.result,
        "warnings": told,
        "arguments": parameters(options),
        "versions": versions(),
    }
    if options.json:
        emit(result, True, reasons=found.reasons)
    else:
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*(result[name] for name in COLUMNS), strict=True)]
        print(tables(rows, COLUMNS if options.logs else COLUMNS[:-1]))
        if options.logs:
            shown = ("name", "rows", "rmse", "noise_floor", "max_error", "last_error", "coverage", "horizon_ratio")
            print("\n" + tables(result["per_file"], shown))
        else:
            print("\n" + tables([result], ("schedule", "steps", "lr", "batch", "warmup", "horizon_ratio")))
    return 0


class _Found(NamedTuple):
    """Keys of the result, reasons of its nulls, how far each run reaches beyond the fitted ones, other warnings."""

    result: dict[str, Any]
    reasons: dict[str, str]
    ratios: list[tuple[str, float]]
    told: list[str]


def _of_logs(fit: "FitResult", options: argparse.Namespace) -> _Found:
    from rfsim.surrogates.fitting import windowed
    from rfsim.surrogates.transfer import moving_rows, transfer

    for name in ("steps", "at", *norm.OPTIONS):
        if getattr(options, name) is not None:
            told = name.replace("_", "-")
            raise InputError(f"{told} is for a schedule, got it with logs, which are predicted at their rows; drop it")
    sources = read_as_fitted(options, options.logs, {one.warmup for one in fit.runs})
    sources = [source._replace(run=moving_rows(source.run)) for source in sources]
    tell_findings(sources)
    found = transfer(fit, [source.run for source in sources], level=options.level)
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for source, predicted in zip(sources, found.predictions, strict=True):
        observed = windowed(source.run, fit.window, fit.law)[1]
        _extend(columns, source.run.name, predicted, observed.tolist(), options)
    files = [
        {"file": source.given, **one._asdict(), "warmup": source.run.warmup}
        for source, one in zip(sources, found.runs, strict=True)
    ]
    result = {
        **columns,
        "rmse": found.rmse,
        "per_file": files,
        "runs": [described(source) for source in sources],
        "window": fit.window,
    }
    reasons = {}
    if any(one.noise_floor != one.noise_floor for one in found.runs):
        reasons["noise_floor"] = "a noise floor needs at least 8 rows"
    return _Found(result, reasons, [(one.name, one.horizon_ratio) for one in found.runs], [])


def _of_schedule(fit: "FitResult", options: argparse.Namespace) -> _Found:
    import numpy as np

    for name in ("step", "loss", "tokens", "tokens_per_step", "norm", "parent"):
        if getattr(options, name) is not None:
            raise InputError(f"{name.replace('_', '-')} is for logs, and none is given; give LOGs, or drop it")
    if options.schedule is None:
        raise InputError("logs and schedule are missing; give LOGs, or --schedule SPEC --steps N")
    at = None if options.at is None else _numbers(options.at)
    schedule, warmup = _planned(fit, options, at)
    if at is None:  # where the law was not fitted, as in a warm-up, it may be far off
        first = min((float(one.step[0]) for one in fit.runs), default=1.0)
        first = first if 1.0 <= first < schedule.steps else 1.0
        at = np.rint(np.geomspace(first, schedule.steps, 200)).tolist()
    planned = fit.run_of(schedule, np.unique(at), norm=norm.given_norm(options))
    predicted = fit.predict(planned, level=options.level)
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    _extend(columns, options.schedule, predicted, [None] * len(predicted.step), options)
    lr, batch = np.asarray(schedule.lr), np.asarray(schedule.batch)
    longest = max((one.intrinsic_time for one in fit.runs), default=float("nan"))
    ratio = float(lr[: int(predicted.step[-1])].sum()) / longest if longest > 0.0 else float("nan")
    reasons = {"observed": "a schedule has no log"}
    if ratio != ratio:
        reasons["horizon_ratio"] = "the fit file does not hold the intrinsic time of its runs"
    if warmup is None:
        reasons["warmup"] = "every step is in the schedule file"
    if planned.norm_model is None:
        reasons["norm_model"] = norm.REASON
    result = {
        **columns,
        "schedule": options.schedule,
        "steps": schedule.steps,
        "lr": float(lr.max(initial=0.0)),
        "batch": float(batch[0]) if batch.size else None,
        "warmup": warmup,
        "horizon_ratio": ratio,
        "norm_model": norm.described_norm(planned.norm_model),
    }
    return _Found(result, reasons, [(options.schedule, ratio)], _beyond_fitted(fit, planned))


def _beyond_fitted(fit: "FitResult", planned: "Run") -> list[str]:
    """A line where the largest effective lr of a schedule is above those of the fitted runs."""
    import numpy as np

    known = [one.effective_lr for one in fit.runs if np.isfinite(one.effective_lr)]
    if planned.norm is None or not known:
        return []
    peak = float((np.asarray(planned.schedule.lr) / planned.norm).max())
    if peak <= _FAR * max(known):
        return []
    return [
        f"the largest effective lr, {peak:.4g}, is above those of the fitted runs, up to {max(known):.4g}: the band "
        f"holds if the law does there"
    ]


def _planned(fit: "FitResult", options: argparse.Namespace, at: list[float] | None) -> "tuple[Schedule, float | None]":
    """The schedule of a SPEC or a file, and the warm-up in it (None for a file, which has every step)."""
    from rfsim import schedules

    steps = None if options.steps is None else whole_number("steps", options.steps)
    if is_schedule_file(options.schedule):
        for name in ("lr", "batch", "warmup"):
            if getattr(options, name) is not None:
                raise InputError(f"{name} is in the schedule file for every step, got --{name} too; drop it")
        schedule = schedules.read_schedule(options.schedule)
        if steps is not None and steps > schedule.steps:
            raise InputError(f"steps must be at most {schedule.steps}, the rows of {options.schedule}, got {steps}")
        return schedule.part(0, schedule.steps if steps is None else steps), None
    own = schedules.read_spec(options.schedule)[1].get("warmup")
    if steps is None and at is None:
        raise InputError("steps is missing; give --steps N with --schedule SPEC")
    steps = whole_number("at", max(at or [0.0])) if steps is None else steps
    lr, batch = (
        _number_or_fitted(name, getattr(options, name), max((getattr(one, name) for one in fit.runs), default=0.0))
        for name in ("lr", "batch")
    )
    schedule = schedules.from_spec(options.schedule, steps=steps, lr=lr, batch=batch)
    if own is not None:
        if options.warmup is not None:
            raise InputError(f"warmup is in the schedule {options.schedule} and in --warmup; give one of them")
        return schedule, float(own)  # type: ignore[arg-type]
    fitted = common_warmup(fit)
    if options.warmup is None and fitted is None:
        raise InputError("warmup is missing: the fitted runs have different ones; give --warmup N, or --warmup 0")
    warmup = fitted if options.warmup is None else whole_number("warmup", options.warmup, least=0)
    return (schedules.warmed(schedule, float(warmup)) if warmup else schedule), float(warmup or 0)


def _number_or_fitted(name: str, text: str | None, fitted: float) -> float:
    """The lr or batch that was given, else that of the fitted runs."""
    given = number_or_text(text)
    if isinstance(given, str):
        raise InputError(f"{name} must be a number for a schedule, got {given!r}; columns are for logs")
    if given is None and not fitted > 0.0:
        raise InputError(f"{name} is missing, and the fit file does not hold that of its runs; give --{name}")
    return positive_number(name, fitted if given is None else given, allow_inf=name == "batch")


def _numbers(text: str) -> list[float]:
    try:
        return [float(item) for item in text.split(",")]
    except ValueError as error:
        raise InputError(f"at must list whole steps such as 100,1000; got {text[:40]!r}") from error


def _extend(
    columns: dict[str, list[Any]], name: str, predicted: Any, observed: list[Any], options: argparse.Namespace
) -> None:
    """Append the rows of one run that are to be printed."""
    rows = shown_rows(options, len(predicted.step))
    columns["run"] += [name] * len(rows)
    columns["step"] += [int(step) for step in predicted.step[rows]]
    for key in ("loss", "stderr", "low", "high"):
        columns[key] += getattr(predicted, key)[rows].tolist()
    columns["observed"] += [observed[row] for row in rows]
