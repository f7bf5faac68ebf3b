"""`rfsim compare`: all laws fitted to some logs and asked about others."""

import argparse

from rfsim.checks import InputError, positive_number
from rfsim.cli.logs import (
    LOGS,
    Source,
    add_fit_arguments,
    add_log_arguments,
    described,
    files_of,
    read_sources,
    tell_findings,
)
from rfsim.cli.output import emit, warn
from rfsim.cli.setup import parameters


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("logs", nargs="+", metavar="LOG", help=f"fitted: {LOGS}")
    parser.add_argument(
        "--predict", nargs="+", required=True, metavar="LOG", help="predicted without refitting; never part of a fit"
    )
    parser.add_argument(
        "--law",
        action="append",
        metavar="NAME[:option=value,...]",
        help="a law to compare; may be repeated; default all of them",
    )
    add_log_arguments(parser)
    add_fit_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Compare and print the laws."""
    from rfsim.progress import Progress
    from rfsim.provenance import versions
    from rfsim.surrogates.comparison import LAWS, compare, named_law
    from rfsim.surrogates.transfer import moving_rows
    from rfsim.surrogates.uncertainty import checked_level

    laws = LAWS if options.law is None else tuple(options.law)
    for text in laws:
        if text != "chinchilla":
            named_law(text)
    checked_level(options.level)
    positive_number("huber", options.huber)
    if len(set(laws)) < len(laws):
        raise InputError("law is given twice; name each law once")
    known, asked = (list(map(files_of, texts)) for texts in (options.logs, options.predict))
    if len(set(asked)) < len(asked):
        raise InputError("predict names a log twice; each run counts once")
    only_asked = [text for text, files in zip(options.predict, asked, strict=True) if files not in known]
    sources = [Source(given, moving_rows(run)) for given, run in read_sources(options, [*options.logs, *only_asked])]
    fitted = [source for source in sources if files_of(source.given) in known]
    predicted = [source for source in sources if files_of(source.given) in asked]
    tell_findings(sources)
    told = [f"{one.run.name} is fitted and predicted: it is no test of the fit" for one in predicted if one in fitted]
    progress = Progress("law")
    found = compare(
        [source.run for source in fitted],
        [source.run for source in predicted],
        laws=laws,
        window=options.window,
        huber=options.huber,
        level=options.level,
        progress=progress,
    )
    progress.close()
    told += [f"{one.law}: {note.partition(': ')[2] or note}" for one in found.laws for note in one.notes]
    for line in told:
        warn(line)
    files = {source.run.name: source.given for source in sources}
    records = found.records()
    for record in records:
        record["per_file"] = [{**one, "file": files[one["name"]]} for one in record["per_file"]]
    result = {
        "laws": records,
        "window": found.window,
        "level": options.level,
        "fitted": [described(source) for source in fitted],
        "predicted": [described(source) for source in predicted],
        "warnings": told,
        "arguments": parameters(options),
        "versions": versions(),
    }
    if options.json:
        reasons = {one.law: one.reason for one in found.laws if one.reason is not None}
        if any(source.run.noise != source.run.noise for source in sources):
            reasons["noise_floor"] = "a noise floor needs at least 8 rows"
        emit(result, True, reasons=reasons)
    else:
        print(found.table())
    return 0 if any(one.test is not None for one in found.laws) else 1
