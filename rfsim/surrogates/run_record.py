"""What a fit keeps of a run, and runs that nobody trained: a schedule with the norm that a law needs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from rfsim.checks import InputError
from rfsim.logs import NormModel, Run
from rfsim.schedules import Schedule, log_spaced_steps, recorded_steps
from rfsim.surrogates.laws import Law, needs_norm

NUMBERS = ("noise", "lr", "batch", "intrinsic_time", "lowest_lr", "effective_lr")  # entries that may be unknown


class RunRecord(NamedTuple):
    """What a fit keeps of a run: rows used (n,), fitted losses (n,), noise floor of its log, warm-up steps.

    lr, batch, intrinsic_time : the largest lr, the first batch and the intrinsic time of the last row; NaN if unknown.
    lowest_lr : the lowest lr from the first row, or the end of the warm-up, to the last row; NaN if unknown.
    effective_lr : the largest lr over norm; NaN without norms.
    norm_model : by which the norms were modelled; None if they were measured, and without norms.
    """

    name: str
    step: np.ndarray
    loss: np.ndarray
    fitted: np.ndarray
    noise: float
    warmup: int
    lr: float = float("nan")
    batch: float = float("nan")
    intrinsic_time: float = float("nan")
    lowest_lr: float = float("nan")
    effective_lr: float = float("nan")
    norm_model: NormModel | None = None

    @property
    def rmse(self) -> float:
        """Root mean square of fitted minus observed loss, in loss."""
        return float(np.sqrt(np.mean((self.fitted - self.loss) ** 2)))

    def to_record(self) -> dict[str, Any]:
        """The entries by name, for a fit file."""
        return {**self._asdict(), "norm_model": None if self.norm_model is None else asdict(self.norm_model)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "RunRecord":
        """What `to_record` gave, after it was checked (`fit_file`)."""
        model = record.get("norm_model")
        numbers = {name: float("nan") if record.get(name) is None else float(record[name]) for name in NUMBERS}
        return cls(
            name=record["name"],
            step=np.asarray(record["step"], dtype=np.float64),
            loss=np.asarray(record["loss"], dtype=np.float64),
            fitted=np.asarray(record["fitted"], dtype=np.float64),
            warmup=record["warmup"],
            norm_model=None if model is None else NormModel(**model),
            **numbers,
        )


def as_run(schedule: Schedule, at: object = None, *, name: str = "schedule", norm: object = None) -> Run:
    """A run without losses (all 1) at steps of a schedule, so that laws can be evaluated on it; norm as in `Run`."""
    steps = log_spaced_steps(schedule.steps) if at is None else recorded_steps(at, schedule.steps)
    steps = steps[steps > 0] if at is None else steps
    made = Run(name, steps.astype(np.float64), np.ones(len(steps)), schedule)
    return made if norm is None else made.with_norm(norm)


def norm_for(law: Law[Any], given: object, runs: Sequence[RunRecord]) -> object:
    """The norm with which a law is evaluated on a schedule: the one given, else the model of the fitted runs.

    Parameters
    ----------
    given : a `NormModel`, (N,) norms, or None.
    runs : that were fitted.

    Returns
    -------
    None for a law in the lr itself.

    Raises
    ------
    InputError : for a norm that the law does not use, or where none is given and the runs do not agree on a model.
    """
    if not needs_norm(law):
        if given is not None:
            raise InputError(f"norm is for laws in the effective lr, and {law.name} is in the lr; leave the norm out")
        return None
    if given is not None:
        return given
    remedy = "give one: norm=NormModel(weight_decay, initial), on the command line --weight-decay W --init-std S"
    if not runs:
        raise InputError(f"norm is missing: {law.name} needs the norm of every step, which a schedule lacks; {remedy}")
    unknown = [run.name for run in runs if run.norm_model is None]
    if unknown:
        raise InputError(
            f"norm is missing: {law.name} needs the norm of every step; those of {unknown[0]} were measured (or the "
            f"fit file does not say how they were modelled), so that no model gives those of a schedule; {remedy}"
        )
    models = {run.norm_model: run.name for run in reversed(runs)}
    if len(models) > 1:
        told = "; ".join(f"{name}: {model}" for model, name in reversed(models.items()))
        raise InputError(f"norm is missing: the fitted runs have different models of it ({told}); {remedy}")
    return runs[0].norm_model
