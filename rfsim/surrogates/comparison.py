"""Comparison: all laws fitted to the same runs and asked about the same others."""

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfsim.checks import InputError, RunError
from rfsim.logs import Run, run
from rfsim.schedules import constant
from rfsim.surrogates import laws
from rfsim.surrogates.fitting import HUBER, fit
from rfsim.surrogates.laws import Law
from rfsim.surrogates.result import FitResult
from rfsim.surrogates.transfer import Transfer, moving_rows, transfer
from rfsim.surrogates.uncertainty import FitWarning

LAWS = (
    "forcing-memory",
    "forcing-memory:clock_power=0.5",
    "forcing-memory:clock_power=0.5,effective=1",
    "fsl",
    "lr-fsl",
    "elr-fsl",
    "multi-power",
    "momentum",
    "chinchilla",
)
"""What is compared by default, fixed in advance: every law, forcing-memory on both clocks and in lr/norm too."""

NOT_A_CURVE = (
    "chinchilla needs the final losses of runs of several model sizes and tokens, and a split of loss curves has none; "
    "fit a table of points with columns model_size, tokens, loss"
)


@dataclass(frozen=True)
class LawComparison:
    """One law on the split.

    law : its text, see `named_law`. result : the fit, or None. train, test : of the fitted and of the predicted runs,
    or None. reason : why one of them is None. notes : what the fit has to tell, one line each.
    """

    law: str
    result: FitResult | None = None
    train: Transfer | None = None
    test: Transfer | None = None
    reason: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """All laws on one split: names of the fitted and of the predicted runs, window of the fit, one entry per law."""

    fitted: tuple[str, ...]
    predicted: tuple[str, ...]
    window: str
    laws: tuple[LawComparison, ...]

    def __getitem__(self, law: str) -> LawComparison:
        """The entry of one law, by its text."""
        for one in self.laws:
            if one.law == law:
                return one
        raise KeyError(law)

    def records(self) -> list[dict[str, Any]]:
        """One mapping per law, ready for JSON: law, parameters, train_rmse, test_rmse (means over runs, in loss),
        noise_floor (mean over the predicted runs), starts_share, unidentified, per_file, reason; None for what is not
        there. per_file holds the fields of `RunTransfer` with split "train" or "test".
        """
        return [_told(one) for one in self.laws]

    def table(self) -> str:
        """Laws, their errors over fitted and predicted runs, then every predicted run under every law, as text."""
        head = ("law", "train rmse", "test rmse", "")
        rows = [
            (one.law, _error(one.train), _error(one.test), "" if one.reason is None else one.reason.split(";")[0])
            for one in self.laws
        ]
        shown = [one for one in self.laws if one.test is not None]
        lines = aligned([head, *rows])
        if shown:
            measured = [one.test for one in shown if one.test is not None]
            files = [("test rmse of", *self.predicted), ("noise floor", *_numbers(measured[0], "noise_floor"))]
            files += [(one.law, *_numbers(found, "rmse")) for one, found in zip(shown, measured, strict=True)]
            files.append(("horizon ratio", *_numbers(measured[0], "horizon_ratio", "{:.3g}")))
            lines += ["", *aligned(files)]
        return "\n".join(lines)


def compare(
    fit_runs: Sequence[Run],
    test_runs: Sequence[Run],
    *,
    laws: Sequence[str] = LAWS,
    window: str = "all",
    huber: float = HUBER,
    level: float = 0.95,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Fit every law to `fit_runs` and predict `test_runs`: nothing of the latter enters a fit.

    Rows before the first update with a positive lr are left out for all laws alike.

    Parameters
    ----------
    laws : texts, see `named_law`.
    window, huber : see `fit`. level : of the bands.
    progress : called with the text of each law before it is fitted.

    Returns
    -------
    A comparison in which a law that does not apply has a reason instead of a result.

    Raises
    ------
    InputError : without runs on either side, or for a law or the value of an option that is not known or allowed.
    """
    if not fit_runs or not test_runs:
        raise InputError("compare needs runs to fit and runs to predict; give at least one of each")
    if not laws:
        raise InputError("laws is empty; name at least one law")
    made = [(text, None if text == "chinchilla" else _usable(named_law(text))) for text in laws]
    known, asked = [moving_rows(run) for run in fit_runs], [moving_rows(run) for run in test_runs]
    rows = []
    for text, one in made:
        if progress is not None:
            progress(text)
        rows.append(
            LawComparison(text, reason=NOT_A_CURVE)
            if one is None
            else _on_split(text, one, known, asked, window, huber, level)
        )
    return Comparison(tuple(run.name for run in known), tuple(run.name for run in asked), window, tuple(rows))


def named_law(text: str) -> Law[Any]:
    """The law of a text: a name, or a name with options such as `forcing-memory:clock_power=0.5`.

    Options are numbers, 0 or 1 for switches, and none for what is to be left open.

    Raises
    ------
    InputError : for a name, an option or a value that is not known.
    """
    name, colon, rest = text.partition(":")
    known = {one.name: one for one in dataclasses.fields(type(laws.law(name)))}  # type: ignore[arg-type]
    options: dict[str, Any] = {}
    for item in rest.split(",") if colon else []:
        key, equals, value = item.partition("=")
        if key not in known or not equals:
            allowed = ", ".join(f"{one}=..." for one in known) or "no options"
            raise InputError(f"law {name} does not take {item!r}; allowed: {allowed}")
        if key in options:
            raise InputError(f"law {name} has {key} twice; give it once")
        options[key] = _value(name, key, value, known[key])
    return laws.law(name, **options)


def _usable(law: Law[Any]) -> Law[Any]:
    """The law, after a trial on a run that every law can take: what fails there is an option, not a log.

    Raises
    ------
    InputError : for an option whose value the law does not allow.
    """
    trial = run([2, 5, 9], np.ones(3), constant(10, 1e-3, 1.0), norm=np.ones(10))
    law.calibrated([trial]).prepare(trial)
    return law


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines of text with columns below each other."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _value(law: str, key: str, text: str, option: "dataclasses.Field[Any]") -> Any:
    if isinstance(option.default, bool):
        if text not in ("0", "1"):
            raise InputError(f"law {law}: {key} must be 0 or 1, got {text!r}")
        return text == "1"
    whole = isinstance(option.default, int)
    if text == "none" and option.default is None:
        return None
    try:
        number = int(text) if whole else float(text)
    except ValueError as error:
        raise InputError(f"law {law}: {key} must be a {'whole ' if whole else ''}number, got {text!r}") from error
    if not np.isfinite(number):
        raise InputError(f"law {law}: {key} must be finite, got {text}")
    return number


def _on_split(
    text: str, law: Law[Any], known: Sequence[Run], asked: Sequence[Run], window: str, huber: float, level: float
) -> LawComparison:
    """One law fitted and asked; what is wrong with it becomes its reason."""
    result = train = None
    notes: tuple[str, ...] = ()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", FitWarning)
            result = fit(law, known, window=window, huber=huber)
        notes = tuple(str(one.message) for one in caught)
        train = transfer(result, known, level=level)
        return LawComparison(text, result, train, transfer(result, asked, level=level), None, notes)
    except (InputError, RunError) as error:
        return LawComparison(text, result, train, None, str(error), notes)


def _told(one: LawComparison) -> dict[str, Any]:
    result, train, test = one.result, one.train, one.test
    files = [
        {"split": split, **run._asdict()}
        for split, found in (("train", train), ("test", test))
        for run in (() if found is None else found.runs)
    ]
    return {
        "law": one.law,
        "law_options": None if result is None else laws.law_record(result.law),
        "parameters": None if result is None else result.params,
        "train_rmse": None if train is None else train.rmse,
        "test_rmse": None if test is None else test.rmse,
        "noise_floor": None if test is None else test.noise_floor,
        "coverage": None if test is None else test.coverage,
        "starts_share": None if result is None else result.share,
        "at_bound": None if result is None else list(result.at_bound),
        "unidentified": None if result is None else list(result.unidentified),
        "per_file": files,
        "reason": one.reason,
    }


def _error(found: Transfer | None) -> str:
    return "none" if found is None else f"{found.rmse:.5f}"


def _numbers(found: Transfer, name: str, form: str = "{:.5f}") -> list[str]:
    return [form.format(getattr(run, name)) for run in found.runs]
