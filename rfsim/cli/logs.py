"""Arguments that the commands about training logs share, and the runs and texts that they make of them."""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rfsim.checks import InputError, RunError, whole_number

if TYPE_CHECKING:
    from rfsim.logs import Run

LOGS = "a CSV, TSV, JSON-lines or tracker file; FILE+FILE for one run in several files"


_OPTIONS = {"parents": "parent"}  # where the option is called otherwise
_ARGUMENT = re.compile(
    r"(?<![\w:,=-])(parents|warmup|schedule|step|loss|lr|batch|tokens|tokens_per_step|norm)=(?!\.\.\.)(?=(\w?))"
)
"""An argument of `read_run` with its equals sign; not the keys inside a SPEC."""


class Source(NamedTuple):
    """A run and the text of the argument that it came from."""

    given: str
    run: "Run"


def add_log_arguments(parser: argparse.ArgumentParser) -> None:
    """How logs are read: columns, schedule, warm-up, parents."""
    group = parser.add_argument_group("logs")
    group.add_argument(
        "--warmup",
        type=int,
        metavar="N",
        help="put a linear warm-up from 0 over N steps in front of logs that start after it, and into a SPEC without "
        "warmup=; with FILE.csv it says how many of its steps are the warm-up",
    )
    group.add_argument(
        "--schedule",
        metavar="SPEC|FILE.csv",
        help="schedule of every log; a SPEC ends at the last row of the loss, so give its decay in whole steps if the "
        "run went on; default what the lr column or the configuration of the log says",
    )
    group.add_argument("--step", metavar="COLUMN", help="column of the step; default by its usual names")
    group.add_argument("--loss", metavar="COLUMN", help="column of the loss; default by its usual names")
    group.add_argument("--lr", metavar="COLUMN|ETA", help="column of the lr, or the peak lr of a SPEC")
    group.add_argument("--batch", metavar="COLUMN|B", help="column of the batch size, or the batch size of all steps")
    group.add_argument("--tokens", metavar="COLUMN", help="column of the tokens, for logs without steps")
    group.add_argument("--tokens-per-step", type=float, metavar="K", help="tokens of one step")
    group.add_argument(
        "--norm",
        metavar="COLUMN",
        help="column of the parameter or update norm, for laws in the effective lr; or weight-decay: modelled from the "
        "configuration",
    )
    group.add_argument(
        "--parent",
        action="append",
        metavar="FILE",
        help="log from which the others were resumed; may be repeated; default what their configurations say",
    )


def add_fit_arguments(parser: argparse.ArgumentParser) -> None:
    """How a law is fitted."""
    group = parser.add_argument_group("fit")
    group.add_argument(
        "--window",
        choices=("all", "last-decade"),
        default="all",
        help="rows used: all, or those from a tenth of the run's intrinsic time on; default all",
    )
    group.add_argument(
        "--huber", type=float, default=1e-3, metavar="D", help="width of Huber's loss in log loss; default 1e-3"
    )
    group.add_argument("--level", type=float, default=0.95, metavar="P", help="of bands and intervals; default 0.95")


def read_sources(options: argparse.Namespace, texts: Sequence[str], *, warmup: int = 0) -> list[Source]:
    """The runs of log arguments, with names that differ; `warmup` is used where --warmup is not given."""
    try:
        read = _read_sources(options, texts, warmup)
    except InputError as error:
        raise InputError(as_options(str(error))) from error
    return [
        source._replace(run=replace(source.run, findings=tuple(map(as_options, source.run.findings))))
        for source in read
    ]


def as_options(text: str) -> str:
    """A message of the library with the arguments that it asks for as options of the command line."""
    text = re.sub(r"^tokens_per_step\b", "tokens-per-step", re.sub(r"^parents\b", "parent", text))
    return _ARGUMENT.sub(
        lambda found: f"--{_OPTIONS.get(found[1], found[1].replace('_', '-'))}{' ' * bool(found[2])}", text
    )


def _read_sources(options: argparse.Namespace, texts: Sequence[str], warmup: int) -> list[Source]:
    from rfsim.logs import read_run, read_runs

    same = _reading(options, warmup)
    sources = [_files(text) for text in texts]
    counts = Counter(map(files_of, texts))
    twice = [text for text in texts if counts[files_of(text)] > 1]
    if twice:
        raise InputError(f"log {twice[-1]} is given twice; each run counts once")
    parents = options.parent or []
    if not parents:
        owners = [text for text, files in zip(texts, sources, strict=True) for _ in range(_count(files))]
        runs = read_runs(sources, **same)
    else:
        above = [_files(one) for one in parents]
        owners = list(texts)
        runs = [
            read_run(files, parents=() if text in parents else above, **same)
            for text, files in zip(texts, sources, strict=True)
        ]
    return _distinct([Source(text, run) for text, run in zip(owners, runs, strict=True)])


def read_as_fitted(options: argparse.Namespace, texts: Sequence[str], warmups: set[int]) -> list[Source]:
    """The runs of log arguments, with the warm-up of a fit in front of those that start after it and have none.

    Parameters
    ----------
    warmups : of the fitted runs; --warmup goes before.
    """
    known = sorted(warmups - {0})
    if options.warmup is not None or not known or (options.schedule and not _takes_warmup(options.schedule)):
        return read_sources(options, texts)
    only = known[0] if len(warmups) == 1 else None
    try:
        plain = read_sources(options, texts)
    except InputError:
        if only is None:
            raise
        return read_sources(options, texts, warmup=only)
    late = [source.run.warmup == 0 and source.run.step[0] >= known[0] for source in plain]
    if not any(late):
        return plain
    if only is None:
        run = plain[late.index(True)].run
        raise InputError(
            f"warmup is missing: {run.name} starts at step {run.step[0]:g} and the fitted runs have warm-ups of "
            f"{', '.join(map(str, sorted(warmups)))} steps; give --warmup N, or --warmup 0"
        )
    again = read_sources(options, texts, warmup=only)
    return [new if is_late else old for new, old, is_late in zip(again, plain, late, strict=True)]


def _takes_warmup(schedule: str) -> bool:
    """True for a SPEC without a warm-up of its own; a file has every step."""
    from rfsim.schedules.spec import SHAPES, read_spec

    return schedule.partition(":")[0] in SHAPES and "warmup" not in read_spec(schedule)[1]


def files_of(text: str) -> tuple[Path, ...]:
    """Files of a log argument, by which two spellings of one log are known to be the same."""
    return tuple(Path(file).resolve() for file in _files(text))


def number_or_text(text: str | None) -> str | float | None:
    """A number where the text is one, else the text: the name of a column."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def require_out(path: str | None, inputs: Sequence[str]) -> None:
    """Refuse, before any work, a file that cannot be written or that would overwrite an input."""
    import tempfile

    if path is None:
        return
    out = Path(path)
    if out.is_dir():
        raise InputError(f"out {path} is a folder; give the path of a file to write")
    own = {file for text in inputs for file in files_of(text)}
    if out.resolve() in own:
        raise InputError(f"out {path} is one of the files that are read and would replace it; choose another file")
    try:
        with tempfile.TemporaryFile(dir=out.parent):
            pass
    except OSError as error:
        raise RunError(f"out {path} cannot be written ({error.strerror}); choose a folder that exists") from error


def tell_findings(sources: Sequence[Source]) -> None:
    """What was found in each log, one line each, on stderr."""
    for source in sources:
        for finding in source.run.findings:
            print(f"rfsim: log {source.run.name}: {finding}", file=sys.stderr)


def starts_progress(label: str) -> "tuple[Callable[[int, int], None], Callable[[], None]]":
    """A progress line for work that reports done and total, and what closes it."""
    from rfsim.progress import Progress

    line = Progress(label)

    def shown(done: int, total: int) -> None:
        line.total = total
        line(done)

    return shown, line.close


def described(source: Source) -> dict[str, Any]:
    """What a result says of a run: name, file, rows, last step, warm-up, findings."""
    run = source.run
    return {
        "name": run.name,
        "file": source.given,
        "rows": len(run.step),
        "last_step": int(run.step[-1]),
        "warmup": run.warmup,
        "findings": list(run.findings),
    }


def tables(records: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    """Records as text with the named columns."""
    from rfsim.surrogates.comparison import aligned

    return "\n".join(aligned([tuple(columns), *(tuple(_cell(record[name]) for name in columns) for record in records)]))


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _reading(options: argparse.Namespace, warmup: int) -> dict[str, Any]:
    """Keywords of `read_run` from the options."""
    asked = warmup if options.warmup is None else whole_number("warmup", options.warmup, least=0)
    return {
        "step": options.step,
        "loss": options.loss,
        "lr": number_or_text(options.lr),
        "batch": number_or_text(options.batch),
        "tokens": options.tokens,
        "tokens_per_step": options.tokens_per_step,
        "norm": options.norm,
        "schedule": options.schedule,
        "warmup": asked,
    }


def _files(text: str) -> list[str]:
    """Files of one run: the text itself if it is a file, else what stands between plus signs."""
    return [text] if "+" not in text or Path(text).exists() else [part for part in text.split("+") if part] or [text]


def _count(files: list[str]) -> int:
    """How many runs a source holds: several for a chart."""
    from rfsim.logs import read_log
    from rfsim.logs.read import is_chart

    log = read_log(files[0])
    return len({table.label for table in log.tables}) if is_chart(log) else 1


def _distinct(sources: list[Source]) -> list[Source]:
    """The sources with names that differ: those of equal name get the folder of their file in front."""
    counts = Counter(source.run.name for source in sources)
    named = []
    for source in sources:
        run, parent = source.run, Path(_files(source.given)[0]).resolve().parent.name
        named.append(Source(source.given, replace(run, name=f"{parent}/{run.name}") if counts[run.name] > 1 else run))
    seen: Counter[str] = Counter()
    for at, source in enumerate(named):
        seen[source.run.name] += 1
        if seen[source.run.name] > 1:
            again = f"{source.run.name} ({seen[source.run.name]})"
            named[at] = Source(source.given, replace(source.run, name=again))
    return named
