"""Logs of runs that nobody trained: exact risks or losses of a law with noise, as runs and as CSV files."""

from pathlib import Path
from typing import Any

import numpy as np

from rfsim.checks import FloatArray, InputError, finite_number, whole_number
from rfsim.exact import risk
from rfsim.logs import Run, run
from rfsim.provenance import write_text
from rfsim.schedules import Schedule
from rfsim.spectra import Spectrum
from rfsim.surrogates.laws import Law, values_of


def training_log(
    seed: int,
    spectrum: Spectrum,
    schedule: Schedule,
    *,
    every: int,
    irreducible: float = 0.0,
    noise: float = 0.0,
    name: str = "run",
) -> Run:
    """Log of SGD on a spectrum: (irreducible + risk_k) exp(noise z_k) at rows k, with independent normal z_k.

    The risk is exact; what a log adds is the irreducible loss and the noise of its evaluations. The median of a row is
    the exact loss, its mean exp(noise^2/2) times that.

    Parameters
    ----------
    seed : of the noise; runs that are evaluated apart need seeds of their own.
    spectrum, schedule : as in `rfsim.risk`; N steps.
    every : a row every so many steps, the first after that many updates; the last row is after all N.
    irreducible : loss >= 0 that no training removes, for example the label noise; the risk does not contain it.
    noise : standard deviation of log loss, >= 0.
    name : of the run.

    Returns
    -------
    A run of ceil(N/every) rows with the schedule of all steps.

    Raises
    ------
    InputError : for numbers out of range, an empty schedule, and what `rfsim.risk` refuses.
    """
    rows, base = _rows(schedule, every), finite_number("irreducible", irreducible)
    if base < 0.0:
        raise InputError(f"irreducible must be a loss of at least 0, got {base:g}")
    exact = base + np.asarray(risk(spectrum, schedule, at=rows).risk)
    return noisy(seed, run(rows, exact, schedule, name=name), noise)


def log_of_law(
    seed: int,
    law: Law[Any],
    values: object,
    schedule: Schedule,
    *,
    every: int,
    noise: float = 0.0,
    norm: object = None,
    name: str = "run",
) -> Run:
    """Log whose losses a law makes, L(values)_k exp(noise z_k) at rows k, with independent normal z_k.

    Parameters
    ----------
    law : with units, such as `law("forcing-memory", lr_unit=0.1, batch_unit=16.0)`.
    values : (k,) parameters of the law, an array or name -> value.
    norm : (N,) norm of every step or a `NormModel`, for laws in the effective learning rate.
    seed, schedule, every, noise, name : as in `training_log`.

    Raises
    ------
    InputError : for numbers out of range, a law without units, or losses that are not positive.
    """
    rows = _rows(schedule, every)
    empty = run(rows, np.ones(len(rows)), schedule, name=name, norm=norm)
    loss, _ = law.evaluate(values_of(law, values), law.prepare(empty), gradient=False)
    return noisy(seed, run(rows, loss, schedule, name=name, norm=norm), noise)


def noisy(seed: int, log: Run, noise: float) -> Run:
    """The run with losses loss_k exp(noise z_k), z_k independent and normal; no findings are kept.

    Raises
    ------
    InputError : for a negative noise or seed.
    """
    size, draw = finite_number("noise", noise), np.random.default_rng(whole_number("seed", seed, least=0))
    if size < 0.0:
        raise InputError(f"noise must be a standard deviation of at least 0, got {size:g}")
    loss = log.loss * np.exp(size * draw.standard_normal(len(log.loss)))
    return run(log.step, loss, log.schedule, name=log.name, norm=log.norm_model or log.norm, warmup=log.warmup)


def write_log(path: str | Path, log: Run, *, lr_every: int | None = None, last_lr: float | None = None) -> None:
    """Write a run as CSV with columns step,lr,batch,loss (and param_norm if it has one), as a training script would.

    The row of step k holds the loss after k updates and lr and batch of the update that follows. After the last update
    none follows: those cells are empty, unless `last_lr` says otherwise; a row without loss tells the last ones.
    `rfsim.logs.read_run` gets the losses back exactly, and the schedule if its shape is one that it recognises or if
    `lr_every` is 1.

    Parameters
    ----------
    path : of the file, written whole or not at all.
    log : the run.
    lr_every : also write a row without loss every so many steps, from step 0 on.
    last_lr : lr logged after the last update, such as the 0 of a scheduler that was stepped past its end.

    Raises
    ------
    InputError : for `lr_every` below 1 or a negative `last_lr`. RunError : if the file cannot be written.
    """
    steps = log.schedule.steps
    at = np.union1d(log.step.astype(np.int64), [steps - 1])
    if lr_every is not None:
        at = np.union1d(at, np.arange(0, steps, whole_number("lr_every", lr_every)))
    if last_lr is not None and finite_number("last_lr", last_lr) < 0.0:
        raise InputError(f"last_lr must be at least 0, got {last_lr:g}")
    losses = dict(zip(log.step.astype(np.int64).tolist(), log.loss.tolist(), strict=True))
    columns = {
        "lr": [*np.asarray(log.schedule.lr).tolist(), last_lr],
        "batch": [*np.asarray(log.schedule.batch).tolist(), None],
    }
    extra = {} if log.norm is None else {"param_norm": [*np.asarray(log.norm).tolist(), None]}
    lines = [",".join(["step", *columns, "loss", *extra])]
    for step in at.tolist():
        cells = [step, *(column[step] for column in columns.values()), losses.get(step)]
        cells += [column[step] for column in extra.values()]
        lines.append(",".join("" if cell is None else repr(cell) for cell in cells))
    write_text(path, "\n".join(lines) + "\n")


def _rows(schedule: Schedule, every: int) -> FloatArray:
    """Steps of the rows."""
    gap = whole_number("every", every)
    if schedule.steps == 0:
        raise InputError("the schedule has no steps, so there is nothing to log; give it steps")
    rows = np.arange(gap, schedule.steps + 1, gap)
    return np.union1d(rows, [schedule.steps]).astype(np.float64)
