"""Columns of one or several files -> one clean series: finite, sorted, each step once, later segments over earlier."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rfsim.checks import FloatArray, InputError
from rfsim.logs.columns import ALIASES, LOSSES, candidates, loss_columns, named, plain
from rfsim.logs.formats import Log, Table

_PARTS = 30  # a file of more parts in the order of the steps is not one that was appended to
_FEW, _FAR = 10, 100.0  # of more rows than this the last step is at most so many times the one before it

Place = tuple[int, Table, str]
"""Where a column is: number of the file, table, name inside the table."""


@dataclass(frozen=True)
class Series:
    """Values at steps, sorted, each step once, with what was done to the rows.

    Attributes
    ----------
    name : the column, with its group in front.
    step, value : (n,) float64.
    findings : one line each.
    """

    name: str
    step: FloatArray
    value: FloatArray
    findings: tuple[str, ...] = ()


def full_name(table: Table, column: str) -> str:
    """The column with the group of its table in front, unless the column says it itself."""
    return column if not table.label else f"{table.label}/{column}"


def places(logs: Sequence[Log]) -> dict[str, list[Place]]:
    """All columns of all files by full name, in the order of the files."""
    found: dict[str, list[Place]] = {}
    for number, log in enumerate(logs):
        for table in log.tables:
            for column in table.columns:
                found.setdefault(full_name(table, column), []).append((number, table, column))
    return found


def unreadable(argument: str, logs: Sequence[Log], *, wanted: str | None = None) -> list[str]:
    """Lines about columns that would play a role by their names, or are wanted, but hold text or too few values."""
    aliases = set().union(*(ALIASES[role] for role in (LOSSES if argument == "loss" else (argument,))))
    lines = []
    for table in (table for log in logs for table in log.tables):
        told = {name: f"holds text, {cell}" for name, cell in table.text.items()}
        told |= {name: f"has {have} values for {of} steps" for name, (have, of) in table.short.items()}
        for name, what in told.items():
            full = full_name(table, name)
            meant = wanted in (name, full) if wanted is not None else not {plain(name), plain(full)}.isdisjoint(aliases)
            if meant:
                lines.append(f"column {full} {what}: not used")
    return lines


def choose(argument: str, wanted: str | None, found: dict[str, list[Place]]) -> tuple[list[Place], list[str]]:
    """Places of the column that plays a role (`argument` is its name), and the other columns that could.

    Without a wanted name the aliases decide, by the full name first and then by the bare one. A loss must have at
    least three rows if any candidate has: one-row evaluations are no curve.
    """
    if wanted is not None:
        bare = [full for full, held in found.items() if plain(held[0][2]) == plain(wanted)]
        if wanted not in found and len(bare) == 1:
            wanted = bare[0]
        return found[named(argument, wanted, list(found))], []
    pick: Callable[[list[str]], list[str]] = (
        loss_columns if argument == "loss" else lambda names: candidates(names, argument)
    )
    listed = pick(list(found))
    for full, held in found.items():
        if full not in listed and not pick([full]) and pick([held[0][2]]):
            listed.append(full)
    if argument == "loss":
        listed.sort(key=lambda full: _rank(full, found[full][0][2]))
        listed.sort(key=lambda full: count(found[full]) < 3)
    elif argument == "step":
        listed.sort(key=lambda full: plain(full).rpartition("/")[2] == "_step")
    if not listed:
        return [], []
    first = listed[0]
    same = [full for full in listed if plain(full) == plain(first)]
    return [place for full in same for place in found[full]], [full for full in listed if full not in same]


def _rank(full: str, bare: str) -> int:
    """Place of a loss column in `LOSSES`, by its full name before its bare one."""
    by_name = [rank for name in (full, bare) for rank, role in enumerate(LOSSES) if plain(name) in ALIASES[role]]
    return by_name[0] if by_name else len(LOSSES)


def count(held: Sequence[Place]) -> int:
    """Finite values that a column holds over all files."""
    return sum(int(np.isfinite(table.columns[column]).sum()) for _, table, column in held)


def clean(held: Sequence[Place], steps_of: Callable[[Table], FloatArray], files: Sequence[str]) -> Series:
    """One series from the places of its column.

    Cells that are empty, null, NaN or infinite are left out and counted. Of two files the later one wins over the
    range of steps that it covers; of two rows with one step the later one wins. Of more than ten rows a last one
    at more than a hundred times the step before it is left out: a schedule up to a mistyped step has no end.

    Raises
    ------
    InputError : if no finite value is left.
    """
    number, table, column = held[0]
    name, findings = full_name(table, column), []
    parts = []
    empty = bad = 0
    for number, table, column in held:
        values, steps = table.columns[column], steps_of(table)
        empty, bad = empty + table.lost.get(column, (0, 0))[0], bad + table.lost.get(column, (0, 0))[1]
        lost_step = np.isfinite(values) & ~np.isfinite(steps)
        if lost_step.any():
            findings.append(f"{name}: {int(lost_step.sum())} values have no step: left out")
        keep = np.isfinite(values) & np.isfinite(steps)
        parts.append((number, steps[keep], values[keep]))
    if empty or bad:
        findings.append(f"{name}: {empty} empty cells and {bad} cells with null, NaN or infinity: left out")
    parts = [part for part in parts if part[1].size]
    if not parts:
        raise InputError(f"column {name} has no finite value at a step; name another column")
    parts, told = _override(parts, name, files)
    findings += told
    step = np.concatenate([steps for _, steps, _ in parts])
    value = np.concatenate([values for _, _, values in parts])
    part = np.append(0, np.cumsum(np.diff(step) < 0))
    order = np.argsort(step, kind="stable")
    step, value, part = step[order], value[order], part[order]
    last = np.append(np.diff(step) > 0, True)
    if part.any():
        line = f"{name}: {int(part.max())} places where the step goes back: rows sorted by step"
        between = _between(step, part, last)
        if between:
            line += (
                f"; {between} rows lie between rows that were written later, from where the step had gone back: if the "
                f"run was resumed there, give its parts as two files"
            )
        findings.append(line)
    if not last.all():
        findings.append(_doubles(name, step, value, last))
    step, value = step[last], value[last]
    if step.size > _FEW and step[-1] > _FAR * step[-2] > 0.0:
        findings.append(
            f"{name}: the last row, {value[-1]:g} at step {step[-1]:.12g}, is far beyond all others, the last of which "
            f"is at step {step[-2]:.12g}: taken for a mistyped step and left out"
        )
        step, value = step[:-1], value[:-1]
    return Series(name, step, value, tuple(findings))


def _between(step: FloatArray, part: np.ndarray, stays: np.ndarray) -> int:
    """Rows that stay although a later part of the file covers their step; 0 if the rows are in no order at all.

    step, part, stays : (n,) sorted by step; `part` counts the places before a row at which the step went back.
    """
    count = int(part.max()) + 1
    if count > _PARTS:
        return 0
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(low, part, step)
    np.maximum.at(high, part, step)
    covered = (step[:, None] >= low) & (step[:, None] <= high) & (np.arange(count) > part[:, None])
    return int((covered.any(axis=1) & stays).sum())


def _override(
    parts: list[tuple[int, FloatArray, FloatArray]], name: str, files: Sequence[str]
) -> tuple[list, list[str]]:
    """Parts without the rows of earlier files inside the range of a later one, and what was dropped."""
    findings = []
    kept: list[tuple[int, FloatArray, FloatArray]] = []
    for number, steps, values in parts:
        lower, upper = steps.min(), steps.max()
        for at, (other, old_steps, old_values) in enumerate(kept):
            inside = (old_steps >= lower) & (old_steps <= upper)
            if other == number or not inside.any():
                continue
            common, new, old = np.intersect1d(steps, old_steps, return_indices=True)
            apart = np.abs(values[new] - old_values[old])
            worst = (
                f", largest disagreement {apart.max():.3g} at step {common[apart.argmax()]:g}" if common.size else ""
            )
            findings.append(
                f"{name}: {int(inside.sum())} rows of {files[other]} lie within steps {lower:g} to {upper:g} of "
                f"{files[number]}: the later segment wins{worst}"
            )
            kept[at] = (other, old_steps[~inside], old_values[~inside])
        kept.append((number, steps, values))
    return kept, findings


def _doubles(name: str, step: FloatArray, value: FloatArray, last: np.ndarray) -> str:
    """Line about steps that occur more than once (sorted rows; `last` marks the row of each step that stays)."""
    group = np.cumsum(np.append(False, last[:-1]))
    size = int(group[-1]) + 1
    high, low = np.full(size, -np.inf), np.full(size, np.inf)
    np.maximum.at(high, group, value)
    np.minimum.at(low, group, value)
    times = np.bincount(group)
    apart = high - low
    worst = int(apart.argmax())
    line = (
        f"{name}: {int((times > 1).sum())} steps occur more than once, {int((~last).sum())} rows left out, "
        f"the later row of the file stays"
    )
    if apart[worst] == 0.0:
        return f"{line}; all repeats are identical"
    return (
        f"{line}; {int((apart > 0).sum())} of these steps have different values, largest disagreement "
        f"{apart[worst]:.3g} at step {step[last][worst]:g}"
    )
