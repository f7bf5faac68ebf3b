"""What commands print: one JSON object, or the same as readable text. Data on stdout, everything else on stderr."""

import argparse
import json
import math
import sys
from typing import Any

import numpy as np

from rfsim.checks import whole_number
from rfsim.provenance import json_ready

_ROWS = 40


def emit(
    result: dict[str, Any], as_json: bool, *, reasons: dict[str, str] | None = None, table: tuple[str, ...] = ()
) -> None:
    """Print `result`; `reasons` says why each null is null; the arrays named in `table` become columns of text."""
    reasons = dict(reasons or {})
    for name, value in result.items():
        if name not in reasons:
            reasons |= {gap: "not a finite number" for gap in _gaps(name, value) if gap not in reasons}
    if as_json:
        if reasons:
            result = {**result, "reasons": reasons}
        print(json.dumps(json_ready(result), allow_nan=False))
        return
    if table:
        columns = [np.asarray(result[name]) for name in table]
        print("  ".join(f"{name:>14}" for name in table))
        for row in zip(*columns, strict=True):
            print("  ".join(f"{_text(value):>14}" for value in row))
    for name, value in result.items():
        if name not in table and name not in ("versions", "parameters"):
            print(f"{name}: {_text(value)}" + (f"  ({reasons[name]})" if name in reasons else ""))


def shown_rows(options: argparse.Namespace, count: int) -> np.ndarray:
    """Indices of about --rows evenly spaced rows of `count`; default all with --json, else 40."""
    wanted = (count if options.json else _ROWS) if options.rows is None else whole_number("rows", options.rows)
    return np.unique(np.rint(np.linspace(0.0, count - 1.0, min(wanted, count))).astype(np.int64))


def warn(message: str) -> None:
    """Print a warning on stderr."""
    print(f"rfsim: warning: {message}", file=sys.stderr)


def _gaps(name: str, value: Any) -> set[str]:
    """Names of the entries, nested ones too, that hold a number that is not finite."""
    if isinstance(value, dict):
        return set().union(*(_gaps(str(key), one) for key, one in value.items()))
    if isinstance(value, list | tuple):
        return set().union(*(_gaps(name, one) for one in value))
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return set() if np.isfinite(value).all() else {name}
    return {name} if isinstance(value, float) and not math.isfinite(value) else set()


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating) and np.isnan(value):
        return "none"
    if isinstance(value, float | np.floating):
        return f"{value:.8g}"
    if isinstance(value, list | tuple | np.ndarray):
        return ", ".join(_text(item) for item in value) or "none"
    return "none" if value is None else str(value)
