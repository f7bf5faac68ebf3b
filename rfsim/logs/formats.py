"""Text of a log -> tables of numbers: CSV, TSV, JSON lines, tracker exports and charts saved from a tracker's page.

What begins with a brace or bracket is JSON, else a table with the delimiter of its header; extensions are not trusted.
"""

import csv
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from rfsim.checks import FloatArray, InputError
from rfsim.logs.columns import ALIASES, plain
from rfsim.logs.text import stem, text_of, uncommented

DELIMITERS = "\t,;|"
MISSING = {"", "null", "none", "na", "n/a", "nan", "-nan", "inf", "+inf", "-inf", "infinity", "-infinity", "+infinity"}
_ENDS = ("__MIN", "__MAX")


@dataclass(frozen=True)
class Table:
    """Columns of one cadence: name -> (n,) float64, NaN where a cell is missing, empty or not finite.

    Attributes
    ----------
    label : the group of a tracker export ("val", "train"), else "".
    columns : numbers by name; a column of text is left out.
    short : columns that hold fewer values than the steps of their table: name -> (values, steps).
    lost : column -> (empty cells, cells with null, NaN or infinity); keys that a JSON row lacks are not counted.
    text : columns that are left out because of a cell that is no number: name -> that cell and its row, in words.
    """

    label: str
    columns: dict[str, FloatArray]
    short: dict[str, tuple[int, int]] = field(default_factory=dict)
    lost: dict[str, tuple[int, int]] = field(default_factory=dict)
    text: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Log:
    """One file: where it is, the name of its run, its configuration and its tables."""

    source: Path
    name: str
    config: dict[str, object]
    tables: tuple[Table, ...]
    findings: tuple[str, ...] = ()


def read_log(path: str | Path) -> Log:
    """Read one file of any of the formats.

    Raises
    ------
    InputError : if the file is missing, is not text (or text compressed by gzip), or holds no table of numbers.
    """
    source = Path(path)
    text = text_of(path)
    if not text.strip():
        raise InputError(f"log {path} is empty; give a file with a header and rows")
    log = _read_json(source, text) if text.lstrip()[0] in "{[" else _read_table(source, text)
    if not any(table.columns for table in log.tables):
        raise InputError(f"log {path} holds no column of numbers{_header_of(text)}; give a header and rows of numbers")
    return log


def _header_of(text: str) -> str:
    """What the header of a table is taken to be, where that may be why it has no numbers."""
    first = next(line for line in text.splitlines() if line.strip())
    return "" if first.lstrip()[0] in "{[" else f": the header is taken to be {first[:60]!r}, cells between commas"


def _number(cell: object) -> float:
    """The cell as a float; NaN for what is missing or not finite; ValueError for text."""
    if isinstance(cell, bool):
        return float(cell)
    if cell is None:
        return math.nan
    if isinstance(cell, str):
        word = cell.strip()
        if word.lower() in MISSING:
            return math.nan
        cell = float(word.replace("_", "x"))  # Python reads 1_000, logs do not write it
    if not isinstance(cell, int | float):
        raise ValueError(cell)
    value = float(cell)
    return value if math.isfinite(value) else math.nan


def _columns(cells: Mapping[str, Sequence[object]]) -> dict[str, FloatArray]:
    """Columns whose cells are all numbers or missing; columns of text are left out."""
    kept = {}
    for name, column in cells.items():
        try:
            kept[name] = np.array([_number(cell) for cell in column], dtype=np.float64)
        except (ValueError, OverflowError):
            continue
    return kept


def _text(cells: Mapping[str, Sequence[object]], columns: Mapping[str, FloatArray]) -> dict[str, str]:
    """The first cell that is no number of each column that was left out, with its row."""
    found = {}
    for name, column in cells.items():
        if name not in columns:
            row = next((at for at, cell in enumerate(column, 1) if not _readable(cell)), 0)
            found[name] = f"{str(column[row - 1])[:24]!r} in row {row}" if row else "no cells"
    return found


def _readable(cell: object) -> bool:
    try:
        _number(cell)
    except (ValueError, OverflowError):
        return False
    return True


def _read_table(source: Path, text: str) -> Log:
    lines, comments = uncommented(text.splitlines())
    header_line = next(line for line in lines if line.strip())
    bare = re.sub(r'"[^"]*"', "", header_line)
    delimiter = max(DELIMITERS, key=bare.count)
    rows, findings = _cells(source, lines, delimiter if bare.count(delimiter) else ",")
    findings = [*comments, *findings]
    header = [cell.strip() for cell in rows[0]]
    if all(_is_number(cell) for cell in header):
        raise InputError(f"log {source} has no header, its first row is {header_line[:60]!r}; name the columns there")
    doubled = {name for name in header if name and header.count(name) > 1}
    if doubled:
        raise InputError(f"log {source} has the columns {', '.join(sorted(doubled))} twice; name each column once")
    again = [row for row in rows[1:] if [cell.strip() for cell in row] == header]
    if again:
        findings.append(f"the header is repeated {len(again)} times: left out, the rows after it are kept")
        rows = [rows[0], *(row for row in rows[1:] if [cell.strip() for cell in row] != header)]
    torn = [row for row in rows[1:] if len(row) != len(header)]
    if torn:
        findings.append(
            f"{len(torn)} of {len(rows) - 1} rows do not have the {len(header)} cells of the header (the first is "
            f"{delimiter.join(torn[0])[:40]!r}): missing cells count as empty, extra ones are left out"
        )
    filled = [(row + [""] * len(header))[: len(header)] for row in rows[1:]]
    cells = {name: [row[at] for row in filled] for at, name in enumerate(header) if name}
    run_names, tables = _charts(cells)
    name = run_names[0] if len(run_names) == 1 else stem(source)
    if len(run_names) > 1:
        findings.append(f"the file holds the runs {', '.join(run_names)}")
    return Log(source, name, {}, tuple(tables), tuple(findings))


def _cells(source: Path, lines: Sequence[str], delimiter: str) -> tuple[list[list[str]], list[str]]:
    """Cells of the rows that are not blank, and a line for each row that a quoted cell stretches over several lines."""
    rows, findings, first = [], [], 1
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    try:
        for row in reader:
            last = reader.line_num
            if last > first:
                again = csv.reader(lines[first - 1 : last], delimiter=delimiter, skipinitialspace=True, strict=True)
                next(again)  # csv.Error if the quote is not closed, or text follows where it is
                findings.append(f"a quoted cell stretches over the lines {first} to {last}: read as one row")
            first = last + 1
            if any(cell.strip() for cell in row):
                rows.append(row)
    except csv.Error as error:
        raise InputError(
            f"log {source} has a quote in line {first} that cannot be read ({error}); close it, or leave it out"
        ) from error
    return rows, findings


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(_number(cell))
    except ValueError:
        return False


def _charts(cells: dict[str, list[str]]) -> tuple[list[str], list[Table]]:
    """Run names and tables of a chart saved as CSV (`Step`, `run - train/loss`, `..__MIN`, `..__MAX`), or one table."""
    series = {name for name in cells if " - " in name and any(name + end in cells for end in _ENDS)}
    plain = {n: c for n, c in cells.items() if not n.endswith(_ENDS) or n[:-5] not in cells}
    if not series:
        columns = _columns(plain)
        return [], [Table("", columns, lost=_lost(plain, columns), text=_text(plain, columns))]
    tables: dict[str, dict[str, list[str]]] = {}
    shared = {name: column for name, column in plain.items() if " - " not in name}
    for name in plain:
        if " - " in name:
            owner, _, column = name.rpartition(" - ")
            tables.setdefault(owner, dict(shared))[column] = plain[name]
    kept = {owner: _columns(columns) for owner, columns in tables.items()}
    return list(tables), [
        Table("" if len(kept) == 1 else owner, columns, lost=_lost(tables[owner], columns))
        for owner, columns in kept.items()
    ]


def _lost(cells: Mapping[str, Sequence[object]], columns: Mapping[str, FloatArray]) -> dict[str, tuple[int, int]]:
    """Empty cells and cells without a finite number, by column."""
    counts = {}
    for name, values in columns.items():
        empty = sum(isinstance(cell, str) and not cell.strip() for cell in cells[name])
        counts[name] = (empty, int(np.isnan(values).sum()) - empty)
    return counts


def _read_json(source: Path, text: str) -> Log:
    try:
        whole: object = json.loads(text)
    except json.JSONDecodeError:
        return _read_json_lines(source, text)
    except ValueError as error:
        raise InputError(f"log {source} is JSON with a number that cannot be read ({error}); correct it") from error
    except RecursionError as error:
        raise InputError(f"log {source} is JSON nested too deep to be a log; export its history as a table") from error
    if isinstance(whole, list):
        return Log(source, stem(source), {}, (_rows_table(source, whole),))
    assert isinstance(whole, dict)
    found = whole.get("history", whole.get("data"))
    config = whole.get("config")
    config = _unwrapped(config) if isinstance(config, dict) else {}
    name = whole.get("name") or whole.get("run_name") or stem(source)
    if found is None and all(not isinstance(value, list | dict) for value in whole.values()):
        return _read_json_lines(source, text)  # JSON lines with a single line
    tables = _history(source, whole if found is None else found)
    return Log(source, str(name), config, tuple(tables))


def _unwrapped(config: Mapping[str, object]) -> dict[str, object]:
    """Configuration without the {"value": ...} wrappers that some trackers put around each entry."""
    return {
        str(key): entry["value"] if isinstance(entry, dict) and "value" in entry else entry
        for key, entry in config.items()
    }


def _history(source: Path, history: object) -> list[Table]:
    """Tables of a history: a list of rows, columns by name, or groups of columns or rows by name."""
    if isinstance(history, list):
        return [_rows_table(source, history)]
    if not isinstance(history, dict):
        raise InputError(f"log {source}: history must be rows or columns, got {type(history).__name__}")
    tables = []
    flat = {name: column for name, column in history.items() if isinstance(column, list)}
    rows = {name: group for name, group in flat.items() if group and all(isinstance(row, dict) for row in group)}
    if flat.keys() - rows.keys():
        tables.append(_columns_table("", {name: flat[name] for name in flat if name not in rows}))
    for label, group in rows.items():
        tables.append(replace(_rows_table(source, group), label=label))
    for label, group in history.items():
        if isinstance(group, dict):
            columns = {str(name): column for name, column in group.items() if isinstance(column, list)}
            tables.append(_columns_table(str(label), columns))
    return tables


def _columns_table(label: str, cells: Mapping[str, list[object]]) -> Table:
    """Table from columns by name; columns of another length than the steps are named in `short` and left out."""
    steps = [len(cells[name]) for name in cells if plain(name) in ALIASES["step"] | ALIASES["tokens"]]
    length = max(steps, default=max(map(len, cells.values()), default=0))
    short = {name: (len(column), length) for name, column in cells.items() if column and len(column) != length}
    columns = _columns({name: column for name, column in cells.items() if len(column) == length and length})
    whole = {name: column for name, column in cells.items() if len(column) == length and length}
    return Table(label, columns, short, _lost(cells, columns), _text(whole, columns))


def _read_json_lines(source: Path, text: str) -> Log:
    rows, bad = [], []
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    for number, line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):  # no JSON, a number without end, or nested too deep
            bad.append(number)
            continue
        if isinstance(row, dict):
            rows.append(row)
        else:
            bad.append(number)
    if not rows or len(bad) > max(1, len(lines) // 10):
        raise InputError(
            f"log {source} is neither JSON nor JSON lines (line {bad[0] if bad else 1} cannot be read); "
            f"write one object per line"
        )
    config: dict[str, object] = {}
    for row in rows:
        if isinstance(row.get("config"), dict):
            config |= _unwrapped(row.pop("config"))
    found = [f"line {bad[0]} is not a JSON object ({len(bad)} such lines of {len(lines)}): left out"] if bad else []
    return Log(source, stem(source), config, (_rows_table(source, rows),), tuple(found))


def _rows_table(source: Path, rows: Sequence[object]) -> Table:
    """Table from rows with different keys; nested objects become `outer/inner`."""
    flat: list[dict[str, object]] = []
    for row in rows:
        if not isinstance(row, dict):
            raise InputError(f"log {source}: each row must be an object, got {type(row).__name__}; write {{...}}")
        flat.append(_flattened(row))
    names = dict.fromkeys(name for row in flat for name in row)
    columns = _columns({name: [row.get(name) for row in flat] for name in names})
    written = {name: [row[name] for row in flat if name in row] for name in columns}
    text = _text({name: [row.get(name) for row in flat] for name in names}, columns)
    return Table("", columns, lost=_lost(written, _columns(written)), text=text)


def _flattened(row: Mapping[str, object], front: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            flat |= _flattened(value, f"{front}{key}/")
        elif not isinstance(value, list):
            flat[f"{front}{key}"] = value
    return flat
