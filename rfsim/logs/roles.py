"""The roles that columns play: loss in nats, believable rows of the lr, batch and norm of every step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rfsim.checks import FloatArray, InputError, positive_number
from rfsim.logs.columns import is_perplexity
from rfsim.logs.configs import batch_size
from rfsim.logs.series import Place, Series, choose, count
from rfsim.logs.shapes import roundest
from rfsim.logs.steps import Steps
from rfsim.logs.traps import late, usable_lr

Reader = Callable[[Sequence[Place]], Series]
"""Reads the places of one column as one clean series."""


def loss_of(
    series: Series, held: Sequence[Place], others: Sequence[str], found: dict[str, list[Place]]
) -> tuple[Series, list[str]]:
    """The loss in nats, and what there is to say about its choice.

    Raises
    ------
    InputError : for losses that are not above 0, or a perplexity that is none.
    """
    findings = []
    if others:
        told = ", ".join(f"{other} ({count(found[other])} rows)" for other in others if count(found[other]) > 1)
        findings += [f"the loss is {series.name} ({series.step.size} rows); also there: {told}"] if told else []
    if (series.value <= 0).any():
        first = int(np.argmax(series.value <= 0))
        raise InputError(
            f"loss must be above 0, got {series.value[first]:g} at step {series.step[first]:g} in column "
            f"{series.name}; name another column with loss="
        )
    if is_perplexity(held[0][2]):
        if (series.value <= 1).any():
            raise InputError(f"column {series.name} is called a perplexity but has values up to 1; name another column")
        findings.append(f"{series.name} is a perplexity, {series.value[-1]:.4g} at the end: its logarithm is the loss")
        series = replace(series, value=np.log(series.value))
    return series, findings


def lr_rows(
    lr: str | float | None, found: dict[str, list[Place]], read: Reader, loss: Series, *, elsewhere: bool
) -> tuple[tuple[FloatArray, FloatArray], list[str]]:
    """Rows of the lr that can be believed, and what was found in them."""
    none = np.zeros(0)
    if isinstance(lr, int | float):
        positive_number("lr", lr)
    held, others = choose("lr", lr if isinstance(lr, str) else None, found)
    if not held:
        return (none, none), []
    series = read(held)
    findings = [
        line for line in series.findings if any(word in line for word in ("different values", "null", "mistyped"))
    ]
    findings += [f"the lr is {series.name}; also there: {', '.join(others)}"] if others else []
    step, rates, told = usable_lr(series, loss, elsewhere=elsewhere)
    findings += told
    if not np.array_equal(loss.step, series.step):
        every = [float(np.median(np.diff(s.step))) if s.step.size > 1 else 0.0 for s in (loss, series)]
        findings.append(
            f"{loss.name} has {loss.step.size} rows, one every {every[0]:g} steps, {series.name} has "
            f"{series.step.size}, one every {every[1]:g}: joined on the step, no loss row lost"
        )
    by = late(loss, step, rates) if rates.size else None
    if by is not None:
        findings.append(
            f"the loss reacts to the drop of the lr one {by} before the lr shows it: lr logged one {by} late, "
            f"moved back by one {by}"
        )
        step, rates = (step[:-1], rates[1:]) if by == "row" else (step[step > 0] - 1.0, rates[step > 0])
    return (step, rates), findings


def single_values(
    found: dict[str, list[Place]], losses: Sequence[Place], steps: Steps
) -> dict[str, tuple[float, float]]:
    """Loss columns that hold one value, with its step."""
    values = {}
    for full, held in found.items():
        if held[0] in losses or "loss" not in full.lower() or count(held) != 1:
            continue
        _, table, column = next(place for place in held if np.isfinite(place[1].columns[place[2]]).any())
        at = int(np.argmax(np.isfinite(table.columns[column])))
        step = float(steps.of(table)[at]) if steps.has(table) else float("nan")
        values[full] = (step, float(table.columns[column][at]))
    return values


def batches(
    batch: str | float | None,
    found: dict[str, list[Place]],
    read: Reader,
    sizes: FloatArray,
    config: Mapping[str, object],
) -> tuple[FloatArray, list[str]]:
    """Batch of every step: a number, a column (each value holds from its row on), or what the schedule has.

    A column that was not named and counts its rows is no batch size, whatever it is called.

    Raises
    ------
    InputError : for a batch that is not positive.
    """
    if batch is not None and not isinstance(batch, str):
        return np.full(sizes.size, positive_number("batch", batch)), []
    held, _ = choose("batch", batch, found)
    if not held:
        told = batch_size(config)
        return sizes, [
            f"batch is 1 at every step; the configuration says {told} (give batch= to set it)"
        ] if told else []
    series = read(held)
    if batch is None and _counts(series.value):
        return sizes, [
            f"{series.name} counts from {series.value[0]:g} to {series.value[-1]:g}, {np.diff(series.value)[0]:g} more "
            f"in each row: taken for no batch size and left out (give batch= if it is one)"
        ]
    if (series.value <= 0).any():
        raise InputError(f"batch must be positive, got {series.value.min():g} in column {series.name}; correct the log")
    changes = np.flatnonzero(np.diff(series.value)) + 1
    starts = np.array([roundest(series.step[at - 1], series.step[at]) for at in changes], dtype=float)
    levels = np.append(series.value[0], series.value[changes])
    values = levels[np.searchsorted(starts, np.arange(sizes.size), side="right")]
    return values, [f"batch from {series.name}: {levels[0]:g} to {levels[-1]:g} in {levels.size} levels"]


def _counts(values: FloatArray) -> bool:
    """True if the values are a running count: each is the one before and the same whole number."""
    apart = np.diff(values)
    return bool(values.size > 2 and apart[0] >= 1.0 and apart[0] == np.round(apart[0]) and np.ptp(apart) == 0.0)


def norms(
    norm: str | None, found: dict[str, list[Place]], read: Reader, steps: int
) -> tuple[FloatArray | None, list[str]]:
    """Norm of every step on straight lines between rows, held before the first and after the last."""
    held, _ = choose("norm", norm, found)
    if not held:
        return None, []
    series = read(held)
    if (series.value <= 0).any():
        return None, [f"{series.name} has values that are not positive: not used"]
    values = np.interp(np.arange(steps, dtype=float), series.step, series.value)
    return values, [f"norm of every step from {series.step.size} rows of {series.name}, straight lines between them"]
