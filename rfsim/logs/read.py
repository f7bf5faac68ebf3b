"""Logs -> runs: which columns, which steps, which parent, and the schedule of every step."""

import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from rfsim.checks import FloatArray, InputError, require_memory, whole_number
from rfsim.logs.configs import is_parent, peak_of, resumed_from
from rfsim.logs.formats import Log, read_log
from rfsim.logs.given import from_given, is_spec
from rfsim.logs.norms import modelled
from rfsim.logs.reconstruct import Rows, from_log
from rfsim.logs.record import Run, run
from rfsim.logs.roles import batches, loss_of, lr_rows, norms, single_values
from rfsim.logs.segments import merged
from rfsim.logs.series import Series, choose, clean, full_name, places, unreadable
from rfsim.logs.steps import Steps
from rfsim.logs.text import stem
from rfsim.logs.traps import single_points, without_other_evaluation
from rfsim.schedules.record import Schedule

WEIGHT_DECAY = "weight-decay"  # asks for norms modelled from the configuration
_FEWER = "check the column of the step, or the tokens of one step"
Source = str | Path | Sequence[str | Path]


def read_run(
    source: Source,
    *,
    step: str | None = None,
    loss: str | None = None,
    lr: str | float | None = None,
    batch: str | float | None = None,
    tokens: str | None = None,
    norm: str | None = None,
    tokens_per_step: float | None = None,
    schedule: Schedule | str | Path | None = None,
    warmup: int = 0,
    parents: Sequence[Run | Source] = (),
    name: str | None = None,
) -> Run:
    """Read one run from one or several files.

    Rows of the loss and rows of the learning rate may lie at different steps: no loss row is lost. The lr of every
    step comes from `schedule`, rows of every step, a configuration that the rows confirm, a shape recognised in the
    rows, or lines between rows, in this order (`rfsim.logs.reconstruct`). The row of step k holds the loss after k
    updates and the lr of the update that follows. What was found is told in `Run.findings`.

    Parameters
    ----------
    source : a file, or the files of one run in the order in which they were written; the later one wins on an overlap.
    step, tokens, loss, norm : names of columns, "group/column" or "column"; without them aliases decide, validation
        loss before training loss. A perplexity is turned into log perplexity. norm "weight-decay" stands for norms
        modelled from the weight decay of the configuration, see `weight_decay_norm`.
    lr, batch : a column, or a number: the peak lr of a SPEC, the batch of all steps (1 if there is no column).
    tokens_per_step : turns tokens into steps; without it the configuration's batch times sequence length.
    schedule : a Schedule, a SPEC such as "wsd:decay=0.2", or a CSV file step,lr,batch.
    warmup : steps N of a linear warm-up from 0, lr s/(N - 1) at steps s < N, in front of logs that start after it. A
        SPEC gets it too, as (s + 1)/N, unless it names its own. A Schedule or a CSV file has every step: there it says
        how many of them are the warm-up, and changes none.
    parents : runs, or files of runs, from which this one was resumed: their rows and lr hold before its first step.
    name : of the run; of the column group where a chart holds several runs.

    Raises
    ------
    InputError : for files, columns or arguments that do not fit, or an lr that cannot be known for some steps.
    """
    warmup = whole_number("warmup", warmup, least=0)
    if isinstance(lr, int | float) and (schedule is None or not is_spec(schedule)):
        raise InputError(
            f"lr is the peak of a SPEC if it is a number, got {lr:g} without one; give schedule=SPEC, or drop it"
        )
    paths = [source] if isinstance(source, str | Path) else list(source)
    if not paths:
        raise InputError("source must name at least one file, got none; give the path of a log")
    logs = [_only(read_log(path), name) for path in paths]
    config = {key: value for log in logs for key, value in log.config.items()}
    label = name or stem(logs[0].source)
    aliases = tuple(dict.fromkeys(log.name for log in logs))
    findings = [line for log in logs for line in log.findings]
    found = places(logs)
    named = {"step": step, "loss": loss, "lr": lr, "batch": batch, "tokens": tokens, "norm": norm}
    for argument, wanted in named.items():
        if isinstance(wanted, str) and wanted not in found and (bad := unreadable(argument, logs, wanted=wanted)):
            raise InputError(f"{argument} names a column that cannot be read: {bad[0]}; correct it or name another one")
    steps = Steps(step, tokens, tokens_per_step, config, logs)
    text = {argument: unreadable(argument, logs) for argument in named}
    findings += [line for argument in named for line in text[argument] if "text" in line]
    read = functools.partial(clean, steps_of=steps.of, files=[log.source.name for log in logs])
    losses, other_losses = choose("loss", loss, found)
    if not losses:
        raise InputError(
            f"loss is in no column of {', '.join(log.source.name for log in logs)}: its columns of numbers are "
            f"{', '.join(found)}; {''.join(f'{line}; ' for line in text['loss'])}name one with loss="
        )
    clear = read(losses)
    steps.require_tokens()
    series, told = loss_of(clear, losses, other_losses, found)
    findings += [*series.findings, *told]
    rates, told = lr_rows(lr, found, read, series, elsewhere=schedule is not None or bool(config))
    findings += told
    findings += [
        f"{full_name(t, c)} has {have} values for {of} steps: not used"
        for log in logs
        for t in log.tables
        for c, (have, of) in t.short.items()
    ]
    series, told = without_other_evaluation(series, *rates)
    findings += [*told, *single_points(single_values(found, losses, steps), series), *steps.findings]
    resume = resumed_from(config)
    same = {
        "step": step,
        "tokens": tokens,
        "tokens_per_step": tokens_per_step,
        "loss": loss,
        "lr": lr if isinstance(lr, str) else None,
        "batch": batch,
        "norm": norm,
    }
    parent = _parent(parents, label, resume, series.step[0], warmup=warmup, **same)
    if parent is None and resume is not None:
        findings.append(f"the run was resumed from {Path(resume[0]).name} of a parent that is not given ({resume[0]})")
    begin = 0 if parent is None else _begin(resume, series, rates[0], parent)
    before = np.zeros(0) if parent is None else np.asarray(parent.schedule.lr)[:begin]
    rows = Rows(rates[0], rates[1], before)
    horizon = int(series.step[-1])
    end = max(horizon, rows.step[-1]) if rows.step.size and schedule is None else horizon
    require_memory(f"the schedule of {label} up to its last row at step {end:g}", 40.0 * end, _FEWER)
    if schedule is not None:
        peak = float(lr) if isinstance(lr, int | float) else _peak(rows, config)
        given, told, up = from_given(schedule, horizon, peak=peak, warmup=warmup, rows=rows)
        values, sizes = np.asarray(given.lr), np.asarray(given.batch)
    else:
        if not rows.lr.size and text["lr"] and not config:
            raise InputError(f"lr cannot be read: {text['lr'][0]}; correct it, give schedule= or name another column")
        values, told, up = from_log(rows, horizon, config=config, warmup=warmup)
        sizes = np.ones(values.size)
    findings += told
    if batch is not None or schedule is None or is_spec(schedule):  # a Schedule and a file have the batch of every step
        sizes, told = batches(batch, found, read, sizes, config)
        findings += told
    norm_rows, told = (None, []) if norm == WEIGHT_DECAY else norms(norm, found, read, values.size)
    findings += told
    own = run(
        series.step,
        series.value,
        Schedule(values, sizes),
        name=label,
        norm=norm_rows,
        findings=findings,
        warmup=up,
        known_as=aliases,
    )
    whole = own if parent is None else merged(parent, own, begin)
    if norm != WEIGHT_DECAY:
        return whole
    model, line = modelled(config)
    normed = whole.with_norm(model)
    assert normed.norm is not None
    return normed.told(f"{line}; {normed.norm.min():.3g} to {normed.norm.max():.3g}")


def is_chart(log: Log) -> bool:
    """True for a chart that was saved with several runs: one table for each, labelled with its name."""
    return any(line.startswith("the file holds the runs") for line in log.findings)


def _only(log: Log, name: str | None) -> Log:
    """The log with the tables of one run, if it is a chart of several."""
    if not is_chart(log):
        return log
    labels = list(dict.fromkeys(table.label for table in log.tables))
    if name not in labels:
        raise InputError(f"name must pick a run of {log.source}, got {name!r}; it holds {', '.join(labels)}")
    kept = tuple(replace(table, label="") for table in log.tables if table.label == name)
    return replace(log, name=str(name), tables=kept, findings=())


def _parent(
    parents: Sequence[Run | Source], label: str, resume: tuple[str, int | None] | None, first: float, **same: object
) -> Run | None:
    """The parent of a run among those that were given, read if it is a file; None if there are none."""
    runs = [item if isinstance(item, Run) else read_run(item, **same) for item in parents]  # type: ignore[arg-type]
    if not runs:
        return None
    if resume is not None:
        match = [one for one in runs if any(is_parent(known, resume[0]) for known in (one.name, *one.known_as))]
        if match:
            return match[0]
    if len(runs) > 1:
        raise InputError(
            f"parents must hold the run that {label} was resumed from"
            f"{f' ({resume[0]})' if resume else ', and the log does not say which'}; got "
            f"{', '.join(one.name for one in runs)}; give one parent"
        )
    return runs[0]


def _begin(resume: tuple[str, int | None] | None, series: Series, lr_step: FloatArray, parent: Run) -> int:
    """First step of a child: where it was resumed, else its first row of any kind."""
    first = int(min(series.step[0], lr_step[0] if lr_step.size else np.inf))
    begin = resume[1] if resume is not None and resume[1] is not None and resume[1] <= first else first
    if begin > parent.schedule.steps:
        raise InputError(
            f"parents: {parent.name} has {parent.schedule.steps} steps, the run that was resumed from it begins at "
            f"step {begin}; give the parent's whole log or schedule"
        )
    return int(begin)


def _peak(rows: Rows, config: dict[str, object]) -> float | None:
    return float(rows.lr.max()) if rows.lr.size else peak_of(config)
