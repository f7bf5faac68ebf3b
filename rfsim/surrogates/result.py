"""The result of a fit: parameters with uncertainty, residuals, predictions with a band, and a file that round-trips."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rfsim.checks import InputError, one_of
from rfsim.logs import Run
from rfsim.provenance import json_ready, versions, write_text
from rfsim.schedules import Schedule, recorded_steps
from rfsim.surrogates import laws
from rfsim.surrogates.alternatives import Alternatives, fitted_forms
from rfsim.surrogates.derived import Criteria, Estimate, criteria, estimates
from rfsim.surrogates.fit_file import checked_record, read_record
from rfsim.surrogates.laws import Law
from rfsim.surrogates.objective import Coordinates, Data
from rfsim.surrogates.run_record import RunRecord, as_run, norm_for
from rfsim.surrogates.uncertainty import (
    Interval,
    Spread,
    block_bootstrap,
    checked_level,
    profile_interval,
    quantiles,
    root,
    student_width,
    wald_interval,
)

_FORMAT = "rfsim fit 1"
_EDGE = 1e-9  # relative rounding of a value on its bound
_FEW = 0.5  # a share of starts below this is a reason to doubt the optimum


class Prediction(NamedTuple):
    """Predicted losses at steps (m,).

    loss : the law at the fitted parameters.
    stderr : of the law's mean, from the uncertainty of the parameters.
    low, high : band for a logged loss at `level`: uncertainty of the mean and scatter of the rows around the fit. If
        the fit has a rival optimum, the hull of the bands of equal width about both.
    """

    step: np.ndarray
    loss: np.ndarray
    stderr: np.ndarray
    low: np.ndarray
    high: np.ndarray
    level: float


@dataclass(frozen=True)
class FitResult:
    """A fitted law.

    Attributes
    ----------
    law : the law with its options and units. values : (k,) parameters in its order. spread : local uncertainty.
    objective : sum of Huber's rho of the log residuals, r^2/2 within `huber`, huber (|r| - huber/2) beyond.
    converged : False if the descent to the optimum ran into its limit of evaluations.
    window, fixed : rows used and parameters held. starts, share : number of starts and share that reach the optimum.
    rival : (k,) parameters of another optimum that the data do not reject at 95 %, or None. Bands and profile
        intervals reach over it; standard errors and Wald intervals are about the best optimum alone.
    runs : what was fitted, run by run. samples : (b, k) parameters of a block bootstrap, or None.
    alternatives : other forms of the law on the same rows, or None: see `with_alternatives`.
    data, sources : prepared rows and the runs they are of, for refits; None after reading a fit file.
    """

    law: Law[Any]
    values: np.ndarray
    spread: Spread
    objective: float
    huber: float
    window: str
    fixed: dict[str, float]
    starts: int
    share: float
    runs: tuple[RunRecord, ...]
    samples: np.ndarray | None = None
    rival: np.ndarray | None = None
    alternatives: Alternatives | None = field(default=None, compare=False)
    converged: bool = True
    data: Data | None = field(default=None, compare=False)
    sources: tuple[Run, ...] | None = field(default=None, compare=False)

    @property
    def params(self) -> dict[str, float]:
        """Parameters by name."""
        return dict(zip(laws.parameter_names(self.law), self.values.tolist(), strict=True))

    @property
    def stderr(self) -> dict[str, float]:
        """Standard errors by name: of the bootstrap if there is one, else local; 0 for fixed and on a bound."""
        error = np.sqrt(np.maximum(np.diag(self.spread.covariance), 0.0))
        if self.samples is not None:
            error = np.std(self.samples, axis=0, ddof=1)
        return dict(zip(laws.parameter_names(self.law), error.tolist(), strict=True))

    @property
    def derived(self) -> dict[str, Estimate]:
        """What the law makes of its parameters, such as "A_0 / c_K^q_K", by name; empty for most laws."""
        return estimates(self.law, self.values, self.spread, self.samples)

    @property
    def criteria(self) -> Criteria:
        """AIC and BIC of the log residuals."""
        free = len(self.law.parameters) - len(self.fixed)
        return criteria(np.concatenate(list(self.residuals.values())), free)

    @property
    def at_bound(self) -> tuple[str, ...]:
        """Names of parameters that ended on a bound."""
        return self.spread.at_bound

    @property
    def unidentified(self) -> tuple[str, ...]:
        """Names of parameters that the data do not determine."""
        return self.spread.unidentified

    @property
    def residuals(self) -> dict[str, np.ndarray]:
        """Log L_model - log L_observed of every run, by name."""
        return {run.name: np.log(run.fitted) - np.log(run.loss) for run in self.runs}

    @property
    def rmse(self) -> dict[str, float]:
        """Root mean square error of every run by name, in loss."""
        return {run.name: run.rmse for run in self.runs}

    def conf_int(self, level: float = 0.95, *, method: str = "profile") -> dict[str, Interval]:
        """Confidence intervals by name.

        Parameters
        ----------
        level : in (0, 1).
        method : "profile" (refits with the parameter held; default), "wald" (local, on the log scale of log
            parameters; NaN for one on a bound, where the profile has an end and this has none) or "bootstrap"
            (quantiles of `bootstrapped` samples).

        Raises
        ------
        InputError : for "profile" on a result read from a file (it holds no schedules), "bootstrap" without samples.
        """
        level = checked_level(level)
        one_of("method", method, ("profile", "wald", "bootstrap"))
        names = laws.parameter_names(self.law)
        moving = [name for name in names if name not in self.fixed]
        if method == "bootstrap":
            if self.samples is None:
                raise InputError("method bootstrap needs samples; call result.bootstrapped(...) first")
            low, high = quantiles(self.samples, level)
            return {name: Interval(float(low[i]), float(high[i])) for i, name in enumerate(names) if name in moving}
        coordinates = self._coordinates()
        if method == "wald":
            none = Interval(float("nan"), float("nan"))
            return {
                name: none
                if name in self.at_bound
                else wald_interval(names.index(name), self.values, coordinates, self.spread, level)
                for name in moving
            }
        data = self._rows("profile intervals")
        return {
            name: profile_interval(
                self.law, name, self.values, data, coordinates, self.huber, self.spread, level, self.rival
            )
            for name in moving
        }

    def bootstrapped(
        self,
        resamples: int = 200,
        *,
        blocks: int = 8,
        seed: int = 0,
        progress: Callable[[int, int], None] | None = None,
    ) -> "FitResult":
        """The result with block-bootstrap samples: see `uncertainty.block_bootstrap`."""
        samples = block_bootstrap(
            self.law,
            self.values,
            self._rows("a bootstrap"),
            self._coordinates(),
            self.huber,
            resamples=resamples,
            blocks=blocks,
            seed=seed,
            progress=progress,
        )
        return replace(self, samples=samples)

    def with_alternatives(self, *, progress: Callable[[int, int], None] | None = None) -> "FitResult":
        """The result with other forms of the law fitted to the same rows: see `alternatives.fitted_forms`.

        Raises
        ------
        InputError : for a result that was read from a file, or whose parameters were all given.
        """
        data, rows = self._rows("other forms"), [run.step for run in self.runs]
        assert self.sources is not None
        forms = fitted_forms(self.law, self.values, self.fixed, data, self.sources, rows, self.huber, progress=progress)
        return replace(self, alternatives=forms)

    def run_of(self, schedule: Schedule | Run, at: object = None, *, norm: object = None) -> Run:
        """The run that `predict` evaluates, with the norm of every step if the law is in the effective lr.

        Parameters and errors are those of `predict`.
        """
        if isinstance(schedule, Run):
            return schedule if norm is None else schedule.with_norm(norm_for(self.law, norm, self.runs))
        return as_run(schedule, at, norm=norm_for(self.law, norm, self.runs))

    def predict(
        self, schedule: Schedule | Run, at: object = None, *, level: float = 0.95, norm: object = None
    ) -> Prediction:
        """Predict the loss under a schedule (or of a run, at its rows) without refitting.

        Parameters
        ----------
        schedule : lr and batch of every step, warm-up included; or a run.
        at : steps (m,) after which the loss is wanted; default the rows of the run, or about 200 steps.
        level : of the band.
        norm : for laws in the effective lr, a `NormModel` or the norm (N,) of every step; default the norm of the run,
            and for a schedule the model on which all fitted runs agree, with the lr of the schedule.

        Raises
        ------
        InputError : for steps outside the schedule, or a norm that the law needs and cannot have or does not use.
        """
        level = checked_level(level)
        run = self.run_of(schedule, at, norm=norm)
        steps = run.step if at is None else recorded_steps(at, run.schedule.steps).astype(np.float64)
        prepared = self.law.prepare(run, steps)
        loss, gradient = self.law.evaluate(self.values, prepared)
        assert gradient is not None
        if self.samples is None:
            error = np.linalg.norm(gradient @ root(self.spread.covariance), axis=1)
        else:
            drawn = np.stack([self.law.evaluate(one, prepared, gradient=False)[0] for one in self.samples])
            error = np.std(drawn, axis=0, ddof=1)
        scatter = loss * self.scatter
        half = student_width(level, self.spread.rows) * np.hypot(error, scatter)
        other = loss if self.rival is None else self.law.evaluate(self.rival, prepared, gradient=False)[0]
        return Prediction(steps, loss, error, np.minimum(loss, other) - half, np.maximum(loss, other) + half, level)

    @property
    def scatter(self) -> float:
        """Standard deviation of the log residuals: their sum of squares over rows less free parameters off a bound."""
        rest = np.concatenate(list(self.residuals.values())) if self.runs else np.zeros(0)
        free = sum(name not in (*self.fixed, *self.at_bound) for name in laws.parameter_names(self.law))
        return float(np.sqrt(np.sum(rest**2) / max(rest.size - free, 1))) if rest.size else float("nan")

    def notes(self) -> list[str]:
        """What a reader has to know before trusting the numbers, one line each."""
        told = []
        if len(self.fixed) == len(self.values):
            told.append(f"{self.law.name}: all parameters were given; evaluated, not fitted, without an uncertainty")
        if not self.converged:
            told.append(
                f"{self.law.name}: the descent ran into its limit of evaluations; the optimum is not settled, and "
                f"neither are its errors"
            )
        if self.share < _FEW:
            told.append(
                f"{self.law.name}: only {self.share:.0%} of {self.starts} starts reach the optimum; try more starts"
            )
        if self.rival is not None:
            names = laws.parameter_names(self.law)
            values = ", ".join(f"{name} {value:.4g}" for name, value in zip(names, self.rival, strict=True))
            told.append(
                f"{self.law.name}: another optimum is not rejected ({values}); bands and profile intervals reach over "
                f"it, standard errors do not know of it"
            )
        for parameter, value in zip(self.law.parameters, self.values, strict=True):
            below, above = (end - side * _EDGE * abs(end) for end, side in ((parameter.low, 1), (parameter.high, -1)))
            if not below <= value <= above:
                told.append(
                    f"{self.law.name}: {parameter.name} = {value:.4g} is outside its usual range, {parameter.low:g} to "
                    f"{parameter.high:g}; a large exponent carries it there: doubt both"
                )
        for name in self.unidentified:
            told.append(f"{self.law.name}: {name} is not determined by these runs; fix it or fit more varied schedules")
        return told

    def summary(self) -> str:
        """A table of the parameters and the runs, as text."""
        names = laws.parameter_names(self.law)
        intervals = self.conf_int(method="bootstrap" if self.samples is not None else "wald")
        rows: list[tuple[str, ...]] = [("parameter", "value", "stderr", "95 % from", "to", "unit", "")]
        for parameter, name in zip(self.law.parameters, names, strict=True):
            remark = "fixed" if name in self.fixed else "at bound" if name in self.at_bound else ""
            remark = "not determined" if name in self.unidentified else remark
            low, high = intervals.get(name, Interval(float("nan"), float("nan")))
            numbers = (self.params[name], self.stderr[name], low, high)
            rows.append((name, *(f"{value:.6g}" for value in numbers), parameter.unit, remark))
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        lines += [f"{name} = {value:.6g}, stderr {error:.3g}" for name, (value, error) in self.derived.items()]
        lines.append(f"law {json.dumps(json_ready(laws.law_record(self.law)))}")
        lines.append(
            f"objective {self.objective:.10g} (Huber {self.huber:g}), window {self.window}, "
            f"{self.share:.0%} of {self.starts} starts, residuals x {self.spread.inflation:.3g} correlated, "
            f"AIC {self.criteria.aic:.6g}, BIC {self.criteria.bic:.6g}"
        )
        for run in self.runs:
            lines.append(
                f"{run.name}: {len(run.step)} rows, rmse {run.rmse:.5f}, "
                f"noise floor {run.noise * run.loss.mean():.5f}, warm-up {run.warmup} steps"
            )
        forms = [] if self.alternatives is None else [self.alternatives.summary()]
        return "\n".join([*lines, *forms, *self.notes()])

    def to_json(self, path: str | Path | None = None) -> str:
        """The result as JSON text, which `from_json` reads back; written to `path` if given, whole or not at all."""
        record = {
            "format": _FORMAT,
            "law": laws.law_record(self.law),
            "parameters": self.params,
            "stderr": self.stderr,
            "derived": {name: one._asdict() for name, one in self.derived.items()},
            "criteria": self.criteria._asdict(),
            "covariance": self.spread.covariance,
            "spread": {
                "scale": self.spread.scale,
                "inflation": self.spread.inflation,
                "rows": self.spread.rows,
                "at_bound": list(self.at_bound),
                "unidentified": list(self.unidentified),
            },
            "objective": self.objective,
            "huber": self.huber,
            "window": self.window,
            "fixed": self.fixed,
            "starts": self.starts,
            "share": self.share,
            "converged": self.converged,
            "runs": [run.to_record() for run in self.runs],
            "samples": self.samples,
            "rival": self.rival,
            "alternatives": None if self.alternatives is None else self.alternatives.records(),
            "versions": versions(),
        }
        text = json.dumps(json_ready(record), indent=1, allow_nan=False) + "\n"
        if path is not None:
            write_text(path, text)
        return text

    @classmethod
    def from_json(cls, source: str | Path) -> "FitResult":
        """Read what `to_json` gave: its text, or the path of a file.

        Raises
        ------
        InputError : for text that is not a fit of this format.
        """
        return cls._from_record(read_record(source, _FORMAT))

    @classmethod
    def _from_record(cls, record: dict[str, Any]) -> "FitResult":
        law = checked_record(record)
        found = record["spread"]
        runs = tuple(RunRecord.from_record(run) for run in record["runs"])
        return cls(
            law=law,
            values=laws.values_of(law, record["parameters"]),
            spread=Spread(
                np.asarray(record["covariance"], dtype=np.float64),
                found["scale"],
                found["inflation"],
                found["rows"],
                tuple(found["at_bound"]),
                tuple(found["unidentified"]),
            ),
            objective=record["objective"],
            huber=record["huber"],
            window=record["window"],
            fixed=record["fixed"],
            starts=record["starts"],
            share=record["share"],
            converged=record.get("converged", True),
            runs=runs,
            samples=None if record["samples"] is None else np.asarray(record["samples"], dtype=np.float64),
            rival=None if record["rival"] is None else np.asarray(record["rival"], dtype=np.float64),
            alternatives=None if record.get("alternatives") is None else Alternatives.of(record["alternatives"]),
        )

    def _coordinates(self) -> Coordinates:
        centres = self.law.centres(self.data.prepared) if self.data is not None else {}
        return Coordinates(self.law, centres, self.fixed)

    def _rows(self, wanted: str) -> Data:
        if self.data is None:
            raise InputError(f"{wanted} need the fitted runs, which a fit file does not hold; fit the logs again")
        if len(self.fixed) == len(self.values):
            raise InputError(f"{wanted} need a free parameter of {self.law.name}, and all were given; fix fewer")
        return self.data
