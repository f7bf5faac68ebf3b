"""`rfsim fit --law chinchilla` and `rfsim predict` with such a fit: final losses of runs of several sizes."""

import argparse
import json
from pathlib import Path
from typing import Any

from rfsim.checks import InputError, positive_number, whole_number
from rfsim.cli import norm
from rfsim.cli.logs import require_out, tables
from rfsim.cli.output import emit, shown_rows
from rfsim.cli.setup import parameters

_FORMAT = "rfsim fit of final losses 1"
_CURVES_ONLY = (
    "warmup",
    "schedule",
    "step",
    "lr",
    "batch",
    "tokens_per_step",
    "norm",
    "parent",
    "fix",
    "alternatives",
    *norm.OPTIONS,
)
_NAMES = ("model_size", "tokens", "flop", "loss")
_SHOWN = ("model_size", "tokens", "loss", "stderr", "low", "high", "observed")


def fit_table(options: argparse.Namespace) -> int:
    """Fit and print the law of final losses."""
    from rfsim.provenance import versions, write_json
    from rfsim.surrogates.final_loss import read_points
    from rfsim.surrogates.final_loss_fit import bootstrap, fit_points
    from rfsim.surrogates.uncertainty import checked_level, quantiles

    if options.law != "chinchilla":
        raise InputError(f"law chinchilla takes no options, got {options.law!r}; write --law chinchilla")
    _refuse(options)
    if len(options.logs) != 1:
        raise InputError(f"chinchilla is fitted to one table of points, got {len(options.logs)} files; join them")
    level, delta = checked_level(options.level), positive_number("huber", options.huber)
    resamples = whole_number("resamples", 1000 if options.resamples is None else options.resamples, least=2)
    seed = whole_number("seed", options.seed or 0, least=0)
    dropped = whole_number("drop_largest", options.drop_largest or 0, least=0)
    require_out(options.out, options.logs)
    columns = {name: getattr(options, name) for name in _NAMES}
    data = read_points(options.logs[0], **columns).without_largest(dropped)
    method = "free-scale" if options.free_scale else "huber"
    fit = fit_points(data, method=method, delta=delta)
    samples = bootstrap(fit, resamples=resamples, seed=seed)
    names = _parameter_names()
    low, high = quantiles(samples, level)
    rest = fit.residuals()
    kept: dict[str, Any] = {
        "format": _FORMAT,
        "law": "chinchilla",
        "parameters": dict(zip(names, fit.values.tolist(), strict=True)),
        "stderr": dict(zip(names, samples.std(axis=0, ddof=1).tolist(), strict=True)),
        "conf_int": {name: [float(a), float(b)] for name, a, b in zip(names, low, high, strict=True)},
        "intervals": "bootstrap",
        "level": level,
        "objective": fit.objective,
        "method": method,
        "huber": delta,
        "scale": fit.scale,
        "starts_share": fit.share,
        "scatter": float(((rest**2).sum() / max(len(rest) - len(fit.values), 1)) ** 0.5),
        "rows": len(data),
        "dropped_largest": dropped,
        "resamples": len(samples),
        "columns": columns,
        "versions": versions(),
    }
    if options.out is not None:
        write_json(options.out, {**kept, "samples": samples})
    rmse = float(((fit.predict(data.model_size, data.tokens) - data.loss) ** 2).mean() ** 0.5)
    source = {"name": Path(options.logs[0]).stem, "rows": len(data), "rmse": rmse, "noise_floor": None, "findings": []}
    result = {
        **kept,
        "at_bound": [],
        "unidentified": [],
        "window": "all",
        "warmup": None,
        "runs": [source],
        "fit_file": options.out,
        "warnings": [],
        "arguments": parameters(options),
    }
    reasons = {"warmup": "final losses have no schedule", "noise_floor": "a point has no neighbours"}
    if options.out is None:
        reasons["fit_file"] = "no --out was given"
    if options.json:
        emit(result, True, reasons=reasons)
        return 0
    rows = [
        {
            "parameter": name,
            "value": kept["parameters"][name],
            "stderr": kept["stderr"][name],
            "from": kept["conf_int"][name][0],
            "to": kept["conf_int"][name][1],
        }
        for name in names
    ]
    print(f"law: chinchilla, {method}, {len(data)} points")
    print(tables(rows, tuple(rows[0])))
    print(f"intervals: bootstrap of {len(samples)} resamples, level {level:g}")
    print(f"objective: {fit.objective:.10g}, reached from {fit.share:.0%} of the starts")
    print(f"rmse: {rmse:.6g}")
    if options.out is not None:
        print(f"fit file: {options.out}")
    return 0


def is_table_fit(path: str) -> bool:
    """True if the file is a fit of final losses; files that cannot be read are left to whoever reads them."""
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(record, dict) and record.get("format") == _FORMAT


def predict_table(options: argparse.Namespace) -> int:
    """Predict the losses of a table of points."""
    import numpy as np

    from rfsim.provenance import versions
    from rfsim.surrogates.final_loss import FinalLoss, read_points
    from rfsim.surrogates.uncertainty import student_width

    record = json.loads(Path(options.fit).read_text(encoding="utf-8"))
    for name in ("steps", "at"):
        if getattr(options, name) is not None:
            raise InputError(f"{name} is for loss curves, and {options.fit} is a fit of final losses; drop it")
    _refuse(options)
    if len(options.logs) != 1:
        raise InputError(f"{options.fit} predicts one table of points, got {len(options.logs)} files; give one")
    try:
        values = np.array([record["parameters"][name] for name in _parameter_names()], dtype=np.float64)
        samples = np.asarray(record["samples"], dtype=np.float64)
        scatter, rows, columns = float(record["scatter"]), int(record["rows"]), dict(record["columns"])
        if samples.ndim != 2 or samples.shape[1] != len(values) or set(columns) != set(_NAMES):
            raise ValueError("shape")
    except (KeyError, TypeError, ValueError) as wrong:
        raise InputError(f"fit file {options.fit} is damaged ({wrong!r}); make it again with rfsim fit") from wrong
    columns |= {name: getattr(options, name) for name in ("tokens", "loss") if getattr(options, name) is not None}
    data = read_points(options.logs[0], **columns)
    law = FinalLoss()
    seen = law.prepare(data)
    loss = law.evaluate(values, seen, gradient=False)[0]
    error = np.std([law.evaluate(one, seen, gradient=False)[0] for one in samples], axis=0, ddof=1)
    half = student_width(options.level, max(rows - len(values), 1)) * np.hypot(error, scatter * loss)
    shown = shown_rows(options, len(data))
    result: dict[str, Any] = {
        "law": "chinchilla",
        "model_size": data.model_size[shown],
        "tokens": data.tokens[shown],
        "loss": loss[shown],
        "stderr": error[shown],
        "low": (loss - half)[shown],
        "high": (loss + half)[shown],
        "observed": data.loss[shown],
        "level": options.level,
        "rmse": float(np.sqrt(np.mean((loss - data.loss) ** 2))),
        "coverage": float(np.mean(np.abs(loss - data.loss) <= half)),
        "arguments": parameters(options),
        "versions": versions(),
    }
    if options.json:
        emit(result, True)
    else:
        rows_of = zip(*(result[name] for name in _SHOWN), strict=True)
        print(tables([dict(zip(_SHOWN, row, strict=True)) for row in rows_of], _SHOWN))
        print(f"\nrmse: {result['rmse']:.6g}\ncoverage: {result['coverage']:.3g}")
    return 0


def _refuse(options: argparse.Namespace) -> None:
    given = [name for name in _CURVES_ONLY if getattr(options, name, None) not in (None, [], False)]
    given += ["window"] if getattr(options, "window", "all") != "all" else []
    given += ["intervals"] if getattr(options, "intervals", None) not in (None, "bootstrap") else []
    if given:
        told = given[0].replace("_", "-")
        raise InputError(f"{told} is for loss curves, and chinchilla is about final losses; drop --{told}")


def _parameter_names() -> tuple[str, ...]:
    from rfsim.surrogates.final_loss import FinalLoss
    from rfsim.surrogates.laws import parameter_names

    return parameter_names(FinalLoss())
