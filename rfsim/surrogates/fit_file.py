"""The record of a fit file, checked entry by entry before a result is made of it."""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from rfsim.checks import InputError
from rfsim.logs import NormModel
from rfsim.surrogates import laws
from rfsim.surrogates.laws import Law
from rfsim.surrogates.run_record import NUMBERS

WINDOWS = ("all", "last-decade")


def read_record(source: str | Path, wanted: str) -> dict[str, Any]:
    """The record in the text of a fit file, or in the file at a path, if its format is the one wanted.

    Raises
    ------
    InputError : for a file that cannot be read, text that is not JSON, or another format.
    """
    text = str(source)
    if not text.lstrip().startswith("{"):
        try:
            text = Path(source).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            told = getattr(error, "strerror", None) or "it is not text"
            raise InputError(f"fit file {source} cannot be read ({told}); give a file of rfsim fit") from error
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is not a fit of rfsim ({error}); make one with rfsim fit --out") from error
    found = record.get("format") if isinstance(record, dict) else None
    if not isinstance(record, dict) or found != wanted:
        raise InputError(
            f"this is not a fit of rfsim: format must be {wanted!r}, got {found!r}; make one with rfsim fit --out"
        )
    return record


def checked_record(record: object) -> Law[Any]:
    """The law of a record that `FitResult.to_json` could have written.

    Raises
    ------
    InputError : for an entry that is missing or is not what its name says.
    """
    whole = _mapping(record, "the file")
    law = _law(_entry(whole, "law", "an object", lambda x: isinstance(x, dict)))
    names = laws.parameter_names(law)
    values = laws.values_of(law, _numbers(_entry(whole, "parameters", "an object", lambda x: isinstance(x, dict))))
    for parameter, value in zip(law.parameters, values, strict=True):
        if parameter.log and value < 0.0:
            raise _wrong(f"parameters.{parameter.name}", "a number of at least 0", float(value))
    count = len(names)
    _entry(whole, "covariance", f"{count} rows of {count} numbers", lambda x: _shape(x) == (count, count))
    _entry(whole, "objective", "a number of at least 0", lambda x: _real(x) and x >= 0)
    _entry(whole, "huber", "a number above 0", lambda x: _real(x) and x > 0)
    _entry(whole, "share", "a number from 0 to 1", lambda x: _real(x) and 0 <= x <= 1)
    _entry(whole, "starts", "a whole number", _whole)
    if not isinstance(whole.get("converged", True), bool):  # files of earlier versions do not have it
        raise _wrong("converged", "true or false", whole["converged"])
    _entry(whole, "window", " or ".join(WINDOWS), lambda x: x in WINDOWS)
    fixed = _entry(whole, "fixed", "an object", lambda x: isinstance(x, dict))
    for name, value in fixed.items():
        if name not in names or not _real(value):
            raise _wrong("fixed", f"numbers by names among {', '.join(names)}", {name: value})
    _entry(whole, "samples", f"null or rows of {count} numbers", lambda x: x is None or _samples(x, count))
    _entry(whole, "rival", f"null or {count} numbers", lambda x: x is None or _shape(x) == (count,))
    for number, form in enumerate(_listed(whole.get("alternatives"), "alternatives")):
        _form(_mapping(form, f"alternatives[{number}]"), f"alternatives[{number}].", names)
    spread = _mapping(_entry(whole, "spread", "an object"), "spread")
    for name in ("scale", "inflation", "rows"):
        _entry(spread, name, "a number above 0", lambda x: _real(x) and x > 0, at="spread.")
    for name in ("at_bound", "unidentified"):
        told = f"a list of names among {', '.join(names)}"
        _entry(spread, name, told, lambda x: isinstance(x, list) and all(one in names for one in x), at="spread.")
    for number, run in enumerate(_entry(whole, "runs", "a list", lambda x: isinstance(x, list) and bool(x))):
        _run(_mapping(run, f"runs[{number}]"), f"runs[{number}].")
    return law


def _run(run: dict[str, Any], at: str) -> None:
    _entry(run, "name", "a text", lambda x: isinstance(x, str), at=at)
    rows = _shape(_entry(run, "step", "a list of numbers of at least 0 that increase", _increasing, at=at))
    for name in ("loss", "fitted"):
        told = f"{rows[0]} numbers above 0, as many as step"
        _entry(run, name, told, lambda x: _shape(x) == rows and min(x) > 0, at=at)
    _entry(run, "warmup", "a whole number of at least 0", _whole, at=at)
    for name in NUMBERS:
        if run.get(name) is not None and not _real(run[name]):
            raise _wrong(at + name, "null or a number", run[name])
    if run.get("norm_model") is not None:
        _norm_model(_mapping(run["norm_model"], f"{at}norm_model"), f"{at}norm_model.")


def _norm_model(model: dict[str, Any], at: str) -> None:
    known = [one.name for one in fields(NormModel)]
    for name in model:
        if name not in known:
            raise _wrong(at[:-1], f"an object of {', '.join(known)}", model)
    _entry(model, "weight_decay", "a number of at least 0", lambda x: _real(x) and x >= 0, at=at)
    for name in known[1:]:
        _entry(model, name, "a number above 0", lambda x: _real(x) and x > 0, at=at)


def _form(form: dict[str, Any], at: str, names: tuple[str, ...]) -> None:
    """One form of `Alternatives.records`; `names` are the parameters of the fit, which it has, too."""
    _entry(form, "name", "a text", lambda x: isinstance(x, str), at=at)
    law = _law(_entry(form, "law", "an object with a name", lambda x: isinstance(x, dict) and "name" in x, at=at))
    if laws.parameter_names(law) != names:
        raise _wrong(f"{at}law", f"a law with the parameters {', '.join(names)}", laws.law_record(law))
    for name in ("parameters", "fixed"):
        _numbers(_entry(form, name, "an object", lambda x: isinstance(x, dict), at=at))
    laws.values_of(law, form["parameters"])
    if not set(form["fixed"]) <= set(names):
        raise _wrong(f"{at}fixed", f"numbers by names among {', '.join(names)}", form["fixed"])
    count = len(names)
    _entry(form, "intervals", f"{count} pairs of numbers", lambda x: _shape(x) == (count, 2), at=at)
    for name in ("objective", "deviance"):
        _entry(form, name, "a number of at least 0", lambda x: _real(x) and x >= 0, at=at)
    _entry(form, "rejected", "true or false", lambda x: isinstance(x, bool), at=at)


def _law(record: dict[str, Any]) -> Law[Any]:
    """The law with its options, each of the kind that the option has."""
    made = laws.law(name=_entry(record, "name", f"one of {', '.join(laws.law_names())}", lambda x: isinstance(x, str)))
    for option in fields(made):  # type: ignore[arg-type]
        value = record.get(option.name, option.default)
        good = isinstance(value, bool) if isinstance(option.default, bool) else value is None or _real(value)
        if not good:
            raise _wrong(
                f"law.{option.name}", "true or false" if isinstance(option.default, bool) else "a number", value
            )
    return laws.law(**record)


def _listed(value: object, what: str) -> list[Any]:
    """A list, empty for None; never an empty one that was given."""
    if value is not None and not (isinstance(value, list) and value):
        raise _wrong(what, "null or a list of forms", value)
    return value or []


def _mapping(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(what, "an object", value)
    return value


def _entry(
    record: dict[str, Any], name: str, told: str, good: Callable[[Any], bool] = lambda x: True, *, at: str = ""
) -> Any:
    if name not in record:
        raise InputError(f"this is not a fit of rfsim: {at}{name} is missing; make one with rfsim fit --out")
    if not good(record[name]):
        raise _wrong(at + name, told, record[name])
    return record[name]


def _wrong(name: str, told: str, value: object) -> InputError:
    return InputError(
        f"this is not a fit of rfsim: {name} must be {told}, got {str(value)[:40]}; make one with rfsim fit --out"
    )


def _numbers(record: dict[str, Any]) -> dict[str, Any]:
    for name, value in record.items():
        if not _real(value):
            raise _wrong(f"parameters.{name}", "a number", value)
    return record


def _real(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 1e308  # false for NaN too; whole numbers without end have no float


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _increasing(value: Any) -> bool:
    """True for a list of one or more numbers >= 0, each above the one before."""
    shape = _shape(value)
    return len(shape) == 1 and shape[0] > 0 and value[0] >= 0 and bool((np.diff(value) > 0.0).all())


def _shape(value: object) -> tuple[int, ...]:
    """The shape of nested lists of finite numbers, (-1,) for anything else."""
    if not isinstance(value, list):
        return (-1,)
    try:
        array = np.asarray(value)
    except ValueError:
        return (-1,)
    return array.shape if array.dtype.kind in "iuf" and np.isfinite(array).all() else (-1,)


def _samples(value: object, count: int) -> bool:
    shape = _shape(value)
    return len(shape) == 2 and shape[0] > 1 and shape[1] == count
