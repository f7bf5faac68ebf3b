"""How far the parameters of a fit lean on its form: other forms of the law, fitted to the same rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rfsim.checks import FloatArray
from rfsim.logs import Run
from rfsim.surrogates.laws import Alternative, Law, Variable, law_record, parameter_names, values_of
from rfsim.surrogates.laws import law as law_of
from rfsim.surrogates.objective import Coordinates, Data, descend, huber, residuals
from rfsim.surrogates.projection import project
from rfsim.surrogates.uncertainty import Interval, Spread, spread, student_width, wald_interval

AS_FITTED = "as fitted"
"""Name of the form that was fitted, the first of all forms."""

MISFIT = 2.0
"""Forms are alike if the systematic part of their residuals, root mean square, differs by less than this factor."""

_LEVEL = 0.95  # of the quantile of the deviance
_WIDER = 10.0  # descents pass through this multiple of Huber's width
_LAGS = (1, 2, 3, 4)  # rows so far apart share the misfit, and no noise
_SAME = 1e-4  # least squares closer than this, relative, lie in one basin
_BETTER = 0.99  # an objective below this share of another is told to be better


class Form(NamedTuple):
    """One form of a law, fitted.

    name : in the terms of the law. law, fixed : what was fitted, parameters held. values : (k,) its parameters.
    intervals : (k, 2) their local 95 % intervals; the value twice where it is held or on a bound.
    objective : sum of Huber's rho over the rows.
    deviance : rise of the objective above the lowest of all forms, in units in which it is the square of a Student
        variable if the residuals of that form are noise, as correlated as they look.
    rejected : whether it fits worse than the best form beyond noise and beyond the misfit that the best form has, too.
    """

    name: str
    law: Law[Any]
    fixed: dict[str, float]
    values: FloatArray
    intervals: FloatArray
    objective: float
    deviance: float
    rejected: bool

    @property
    def params(self) -> dict[str, float]:
        """Parameters by name."""
        return dict(zip(parameter_names(self.law), self.values.tolist(), strict=True))


@dataclass(frozen=True)
class Alternatives:
    """Forms of one law fitted to the same rows.

    Attributes
    ----------
    forms : the fit itself, then its alternatives in the order of the law.
    """

    forms: tuple[Form, ...]

    @property
    def kept(self) -> tuple[Form, ...]:
        """The fit, rejected or not, and every alternative that is not rejected."""
        return self.forms[:1] + tuple(form for form in self.forms[1:] if not form.rejected)

    @property
    def shifts(self) -> dict[str, dict[str, float]]:
        """Name of the alternative -> parameter -> its value less that of the fit."""
        first = self.forms[0].params
        return {form.name: {name: x - first[name] for name, x in form.params.items()} for form in self.forms[1:]}

    @property
    def ranges(self) -> dict[str, Interval]:
        """The lowest and the highest value of every parameter over the forms kept."""
        return self._hull(np.stack([form.values[:, None] for form in self.kept]))

    @property
    def intervals(self) -> dict[str, Interval]:
        """The hull of the 95 % intervals of every parameter in the forms kept: noise and form together."""
        return self._hull(np.stack([form.intervals for form in self.kept]))

    def _hull(self, values: FloatArray) -> dict[str, Interval]:
        """Interval that holds all values (forms, k, any) of each parameter."""
        ends = zip(values.min(axis=(0, 2)).tolist(), values.max(axis=(0, 2)).tolist(), strict=True)
        return {name: Interval(*both) for name, both in zip(parameter_names(self.forms[0].law), ends, strict=True)}

    def losses(self, run: Run, at: np.ndarray | None = None) -> FloatArray:
        """What every form says of a run at its rows, or after the steps `at`: losses (forms, m)."""
        parts = [form.law.evaluate(form.values, form.law.prepare(run, at), gradient=False)[0] for form in self.forms]
        return np.stack(parts)

    def records(self) -> list[dict[str, Any]]:
        """What a fit file holds of the forms, which `of` reads."""
        return [
            {
                "name": form.name,
                "law": law_record(form.law),
                "fixed": form.fixed,
                "parameters": form.params,
                "intervals": form.intervals,
                "objective": form.objective,
                "deviance": form.deviance,
                "rejected": form.rejected,
            }
            for form in self.forms
        ]

    def report(self) -> dict[str, Any]:
        """Forms, and the ranges and intervals over those kept, for a reader."""
        names = ("name", "fixed", "params", "objective", "deviance", "rejected")
        return {
            "forms": [{name: getattr(form, name) for name in names} for form in self.forms],
            "shifts": self.shifts,
            "ranges": {name: list(ends) for name, ends in self.ranges.items()},
            "intervals": {name: list(ends) for name, ends in self.intervals.items()},
        }

    @classmethod
    def of(cls, records: list[dict[str, Any]]) -> "Alternatives":
        """The forms of what `records` gave, entries as checked by `fit_file.checked_record`."""
        forms = []
        for one in records:
            law = law_of(**one["law"])
            values, intervals = values_of(law, one["parameters"]), np.asarray(one["intervals"], dtype=np.float64)
            rest = (float(one["objective"]), float(one["deviance"]), one["rejected"])
            forms.append(Form(one["name"], law, one["fixed"], values, intervals, *rest))
        return cls(tuple(forms))

    def notes(self) -> list[str]:
        """What a reader has to know before trusting the numbers, one line each."""
        first = self.forms[0]
        free = len(first.values) - len(first.fixed)
        simple = [form for form in self.forms[1:] if len(form.values) - len(form.fixed) <= free]
        better = min(simple, key=lambda form: form.objective, default=first)
        if not better.objective < _BETTER * first.objective:
            return []
        kind = "a simpler form" if len(better.fixed) > len(first.fixed) else "a form with as many parameters"
        return [
            f"{first.law.name}: {kind} fits better, {better.name} (objective {better.objective:.4g} instead of "
            f"{first.objective:.4g})"
        ]

    def summary(self) -> str:
        """Forms and ranges as text."""
        lowest, first = min(form.objective for form in self.forms), self.forms[0]
        if len(self.forms) == 1:
            return f"{first.law.name} has no other form that is not held"
        errors = [float(np.sqrt(form.objective / lowest)) if lowest > 0.0 else 1.0 for form in self.forms]
        forms = [
            f"{form.name} {error:.3g}{' (rejected)' if form.rejected else ''}"
            for form, error in zip(self.forms, errors, strict=True)
        ]
        wide, moving = self.intervals, [name for name in self.ranges if name not in first.fixed]
        ranges = [
            f"{name} {low:.4g} to {high:.4g} [{wide[name].low:.4g}, {wide[name].high:.4g}]"
            for name, (low, high) in self.ranges.items()
            if name in moving
        ]
        lines = [
            f"forms, with their error over the lowest: {', '.join(forms)}",
            f"over {len(self.kept)} forms that fit as well [with their intervals]: {', '.join(ranges)}",
        ]
        return "\n".join([*lines, *self.notes()])


def fitted_forms(
    law: Law[Any],
    values: FloatArray,
    fixed: dict[str, float],
    data: Data,
    runs: Sequence[Run],
    rows: Sequence[np.ndarray],
    delta: float,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Alternatives:
    """Fit every alternative of a law to the rows that it was fitted to.

    Each descends from the optimum of the fit and from those of the alternatives before it. A form is rejected if its
    objective exceeds the lowest one, O, by more than Q/scale + (MISFIT^2 - 1) c O. Q is the quantile of the deviance at
    95 % and `scale` its units, of the best form. c is the mean correlation of its residuals one to four rows apart, 0
    if negative: the share of O that is no noise. Without misfit this is the test of the deviance; without noise it
    keeps forms whose error is at most MISFIT times that of the best, since how likely a misfit is, no noise can say.

    Parameters
    ----------
    values, fixed, delta : of the fit: its optimum (k,), parameters held, width of Huber's loss.
    data, runs, rows : what was fitted: rows prepared by the law, the runs, and the steps used of each.
    progress : called with alternatives done and alternatives in all.

    Source: theory, section 7.6 (what a fit leaves open).
    """
    wanted = law.alternatives() if isinstance(law, Variable) else ()
    wanted = tuple(one for one in wanted if not one.fixed.keys() & fixed.keys())
    fit = _Fitted(Alternative(AS_FITTED, law, {}), values, data, fixed, delta)
    found = [fit]
    for number, one in enumerate(wanted):
        own = data if one.law == law else data._replace(prepared=tuple(map(one.law.prepare, runs, rows)))
        held = {**fixed, **one.fixed}
        values = _descended(one.law, [start.values for start in found], own, held, delta)
        found.append(_Fitted(one, values, own, held, delta))
        if progress is not None:
            progress(number + 1, len(wanted))
    best = min(found, key=lambda each: each.objective)
    quantile = student_width(_LEVEL, best.spread.rows) ** 2
    slack = quantile / best.spread.scale + (MISFIT**2 - 1.0) * best.misfit * best.objective
    return Alternatives(
        tuple(
            Form(
                name=each.form.name,
                law=each.form.law,
                fixed=each.fixed,
                values=each.values,
                intervals=each.intervals(),
                objective=each.objective,
                deviance=best.spread.scale * (each.objective - best.objective),
                rejected=each.objective - best.objective > slack,
            )
            for each in found
        )
    )


class _Fitted:
    """A form at its optimum: objective, spread, and the share of the objective that is misfit."""

    def __init__(
        self, form: Alternative, values: FloatArray, data: Data, fixed: dict[str, float], delta: float
    ) -> None:
        self.form, self.values, self.fixed = form, values, fixed
        self.coordinates = Coordinates(form.law, form.law.centres(data.prepared), fixed)
        rest = residuals(form.law, values, data)
        self.objective = float(np.sum(huber(rest, delta)))
        self.spread: Spread = spread(form.law, values, data, self.coordinates, delta)
        cut = np.split(np.clip(rest, -delta, delta), np.cumsum([len(loss) for loss in data.losses])[:-1])
        pairs = [np.stack([one[lag:], one[:-lag]]) for lag in _LAGS for one in cut if len(one) > lag]
        first, second = np.concatenate(pairs, axis=1) if pairs else np.zeros((2, 0))
        power = 0.5 * float(first @ first + second @ second)
        self.misfit = max(float(first @ second) / power, 0.0) if power > 0.0 else 0.0

    def intervals(self) -> FloatArray:
        """Local 95 % intervals (k, 2), the value twice where there is none."""
        still = self.spread.at_bound + tuple(self.fixed)
        ends = [
            (value, value)
            if name in still
            else wald_interval(place, self.values, self.coordinates, self.spread, _LEVEL)
            for place, (name, value) in enumerate(zip(self.coordinates.names, self.values.tolist(), strict=True))
        ]
        return np.array(ends, dtype=np.float64)


def _descended(
    law: Law[Any], starts: Sequence[FloatArray], data: Data, fixed: dict[str, float], delta: float
) -> FloatArray:
    """The best optimum of a form from the optima of others; starts that meet on the way descend once."""
    inner = Coordinates(law, law.centres(data.prepared), fixed)
    near = sorted((project(law, start, data, inner) for start in starts), key=lambda one: one[1])
    levels = np.array([level for _, level in near])
    apart = np.append(True, np.diff(levels) > _SAME * levels[:-1])
    ends = [
        descend(law, values, data, inner, deltas=(_WIDER * delta, delta), tolerance=1e-9)
        for (values, _), new in zip(near, apart, strict=True)
        if new
    ]
    return min(ends, key=lambda end: end.objective).values
