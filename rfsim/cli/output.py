"""What commands print: one JSON object, or the same as readable text. Data on stdout, everything else on stderr."""

import json
import math
import sys
from typing import Any

import numpy as np

from rfsim.provenance import json_ready


def emit(
    result: dict[str, Any], as_json: bool, *, reasons: dict[str, str] | None = None, table: tuple[str, ...] = ()
) -> None:
    """Print `result`; `reasons` says why each null is null; the arrays named in `table` become columns of text."""
    reasons = dict(reasons or {})
    for name, value in result.items():
        if name not in reasons and _has_gap(value):
            reasons[name] = "not a finite number"
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


def warn(message: str) -> None:
    """Print a warning on stderr."""
    print(f"rfsim: warning: {message}", file=sys.stderr)


def _has_gap(value: Any) -> bool:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return not np.isfinite(value).all()
    return isinstance(value, float) and not math.isfinite(value)


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating) and np.isnan(value):
        return "none"
    if isinstance(value, float | np.floating):
        return f"{value:.8g}"
    if isinstance(value, list | tuple | np.ndarray):
        return ", ".join(_text(item) for item in value) or "none"
    return "none" if value is None else str(value)
