"""Several logs at once: each resumed run with its parents."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from rfsim.checks import InputError
from rfsim.logs.configs import is_parent, resumed_from
from rfsim.logs.formats import Log, read_log
from rfsim.logs.read import Source, is_chart, read_run
from rfsim.logs.record import Run
from rfsim.logs.text import stem


def read_runs(sources: Sequence[Source], **same: object) -> list[Run]:
    """Read several runs, with the same arguments; a resumed run finds its parent by its configuration.

    A parent is looked for among the sources and then in the folder of the child. Parents of parents are followed.
    A chart that was saved with several runs gives all of them.

    Parameters
    ----------
    sources : one entry per run, see `read_run`.
    same : keywords of `read_run`, except parents.

    Raises
    ------
    InputError : see `read_run`.
    """
    logs = [(source, _first_log(source)) for source in sources]
    runs = []
    for source, log in logs:
        labels = list(dict.fromkeys(table.label for table in log.tables)) if is_chart(log) else [None]
        for label in labels:
            named = {"name": label} if label is not None else {}
            runs.append(_with_ancestors(source, log, logs, {**same, **named}, ()))
    return runs


def _with_ancestors(
    source: Source, log: Log, known: Sequence[tuple[Source, Log]], same: dict[str, object], seen: tuple[Path, ...]
) -> Run:
    """The run with its parents, found by the configuration among the known logs or in the folder."""
    resume = resumed_from(log.config)
    parents: list[Run] = []
    if resume is not None and log.source not in seen:
        elsewhere = chain(known, _beside(log, resume[0]))  # the folder is read only as far as it must be
        match = next(((s, other) for s, other in elsewhere if other is not log and _is_parent(other, resume[0])), None)
        if match is not None:
            without = {key: value for key, value in same.items() if key != "name"}
            parents.append(_with_ancestors(*match, known, without, (*seen, log.source)))
    return read_run(source, parents=parents, **same)  # type: ignore[arg-type]


def _is_parent(log: Log, resume: str) -> bool:
    return is_parent(log.name, resume) or is_parent(stem(log.source), resume)


def _beside(log: Log, resume: str) -> Iterator[tuple[Source, Log]]:
    """Logs in the folder of a log that may be its parent, in the order of their names, JSON before tables.

    JSON may name its run inside, a table only by the name of its file. What cannot be read is passed over.
    """
    folder = log.source.parent
    tables = (path for end in ("csv", "tsv") for path in sorted(folder.glob(f"*.{end}*")))
    for path in chain(sorted(folder.glob("*.json*")), (path for path in tables if is_parent(stem(path), resume))):
        if path != log.source:
            try:
                yield path, read_log(path)
            except InputError:
                continue


def _first_log(source: Source) -> Log:
    paths = [source] if isinstance(source, str | Path) else list(source)
    if not paths:
        raise InputError("source must name at least one file, got none; give the path of a log")
    return read_log(paths[0])
