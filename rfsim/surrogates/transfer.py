"""Transfer: how well a fitted law predicts runs that it has not seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rfsim.checks import InputError
from rfsim.logs import Run
from rfsim.schedules import intrinsic_time
from rfsim.surrogates.fitting import windowed
from rfsim.surrogates.result import FitResult, Prediction


class RunTransfer(NamedTuple):
    """How well one run is predicted; errors are predicted minus observed loss.

    name : of the run. rows : number of rows compared.
    rmse : root mean square error, in loss.
    max_error, max_error_step : the error of largest absolute value, in loss, and the step of its row.
    last_error, last_step : the error of the last row, in loss, and its step.
    coverage : share of the rows that lie within the band of the prediction.
    noise_floor : of the log, in loss: its standard deviation of log loss times the mean loss; NaN if unknown. An rmse
        of that size cannot be improved.
    horizon_ratio : intrinsic time of the run's last row over the longest of the fitted runs; NaN if unknown.
    """

    name: str
    rows: int
    rmse: float
    max_error: float
    max_error_step: int
    last_error: float
    last_step: int
    coverage: float
    noise_floor: float
    horizon_ratio: float


@dataclass(frozen=True)
class Transfer:
    """Predictions of runs by one fit, without refitting.

    level : of the bands. runs : one record per run, in their order. predictions : beside them, at the compared rows.
    """

    level: float
    runs: tuple[RunTransfer, ...]
    predictions: tuple[Prediction, ...]

    @property
    def rmse(self) -> float:
        """Mean over the runs of their root mean square errors, in loss."""
        return float(np.mean([run.rmse for run in self.runs]))

    @property
    def noise_floor(self) -> float:
        """Mean over the runs of the noise floors of their logs, in loss; NaN if one is unknown."""
        return float(np.mean([run.noise_floor for run in self.runs]))

    @property
    def coverage(self) -> float:
        """Mean over the runs of the shares of rows within the band."""
        return float(np.mean([run.coverage for run in self.runs]))


def transfer(result: FitResult, runs: Sequence[Run] | Run, *, level: float = 0.95) -> Transfer:
    """Predict runs with a fitted law as it stands, and compare with what they logged.

    The rows compared are those of the window of the fit: a law that was fitted to last decades is not asked about
    first ones.

    Parameters
    ----------
    level : of the bands.

    Raises
    ------
    InputError : without runs, or for runs that lack what the law needs.
    """
    chosen = [runs] if isinstance(runs, Run) else list(runs)
    if not chosen:
        raise InputError("runs is empty; give at least one run to predict")
    longest = max((run.intrinsic_time for run in result.runs), default=float("nan"))
    records, predictions = [], []
    for run in chosen:
        steps, observed = windowed(run, result.window, result.law)
        predicted = result.predict(run, at=steps, level=level)
        records.append(_record(run, observed, predicted, longest))
        predictions.append(predicted)
    return Transfer(float(level), tuple(records), tuple(predictions))


def moving_rows(run: Run) -> Run:
    """The run without the rows at which no update with a positive lr has been made, and a finding if there are any.

    At such rows the clock of every law is 0: powers of it are infinite, and the loss is that of the initial weights.

    Raises
    ------
    InputError : if no row is left.
    """
    clock = intrinsic_time(np.asarray(run.schedule.lr))
    begun = clock[run.step.astype(np.int64)] > 0.0
    if begun.all():
        return run
    if not begun.any():
        raise InputError(f"lr of {run.name} is 0 before all of its rows; give the schedule that was run")
    count = int((~begun).sum())
    kept = run.part(float(run.step[begun][0]), float(run.step[-1]))
    return kept.told(f"{count} row{'s' if count > 1 else ''} before the first update with a positive lr: left out")


def _record(run: Run, observed: np.ndarray, predicted: Prediction, longest: float) -> RunTransfer:
    error = predicted.loss - observed
    worst = int(np.argmax(np.abs(error)))
    horizon = float(np.asarray(run.schedule.lr)[: int(predicted.step[-1])].sum())
    return RunTransfer(
        name=run.name,
        rows=len(observed),
        rmse=float(np.sqrt(np.mean(error**2))),
        max_error=float(error[worst]),
        max_error_step=int(predicted.step[worst]),
        last_error=float(error[-1]),
        last_step=int(predicted.step[-1]),
        coverage=float(np.mean((predicted.low <= observed) & (observed <= predicted.high))),
        noise_floor=float(run.noise * np.mean(observed)),
        horizon_ratio=horizon / longest if longest > 0.0 else float("nan"),
    )
