"""`rfsim figures`: the pictures."""

import argparse

from rfsim.cli.output import emit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="figures to draw; default all")
    parser.add_argument("--scale", choices=("quick", "standard", "full"), default="quick", help="default quick")
    parser.add_argument("--out", default="figures", metavar="DIR", help="folder for PNG, PDF and JSON; default figures")
    parser.add_argument("--list", action="store_true", help="name the figures and stop")


def run(options: argparse.Namespace) -> int:
    """Draw the figures."""
    from rfsim import figures
    from rfsim.progress import Progress

    if options.list:
        emit({"figures": list(figures.names())}, options.json)
        return 0
    progress = Progress("figures")
    drawn = figures.run(options.names or None, scale=options.scale, out=options.out, progress=progress)
    progress.close()
    if options.json:
        emit({"figures": [one._asdict() for one in drawn], "scale": options.scale}, True)
    else:
        for one in drawn:
            print(f"{one.png}: {one.caption}")
    return 0
