"""Command line: `rfsim COMMAND`. Help and version answer without importing jax.

Exit status: 0 success, 1 a check failed or a run cannot be done, 2 bad usage or bad input.
"""

import argparse
import importlib
import os
import re
import sys
from typing import NoReturn

from rfsim.checks import InputError, RunError
from rfsim.version import __version__

_COMMANDS = {
    "regime": "regime, exponents and rates of a power-law problem",
    "risk": "exact risk of SGD under a joint schedule",
    "simulate": "Monte-Carlo SGD beside the exact risk",
    "schedule": "show a schedule, pair lr decay and batch growth, or design one from a fit",
    "exponent": "one exponent measured, predicted for the window, and in the limit",
    "fit": "a law of the loss fitted to training logs",
    "predict": "other logs, or a schedule not yet run, predicted by a fit with an error band",
    "compare": "all laws fitted to some logs and asked about others",
    "verify": "check the theorems with numbers",
    "figures": "draw the figures",
    "reproduce": "the main job: verify, draw, and write one page that shows both",
}
_KEPT = {
    "simulate": "finished runs are kept where --checkpoint was given",
    "verify": "finished families are kept where --cache was given",
    "figures": "finished figures are kept in the folder",
    "reproduce": "finished parts are kept in the folder",
    "fit": "the fit is kept if a line above says so",
}
"""What is left of a command that is interrupted; nothing of those that are not here."""
_NUMBER = re.compile(r"^-(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$|^-(inf|nan)$")


class Parser(argparse.ArgumentParser):
    """An argument parser that takes -1e-3 for a number, not for an option."""

    def __init__(self, **options: object) -> None:
        super().__init__(allow_abbrev=False, **options)  # type: ignore[arg-type]
        self._negative_number_matcher = _NUMBER

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n(see {self.prog} --help)\n")


def build_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="rfsim",
        description="Reference simulator for SGD learning curves on Gaussian random features.",
        epilog="rfsim reproduce --scale quick runs the whole story in a few minutes.",
    )
    parser.add_argument("--version", action="version", version=f"rfsim {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    for name, told in _COMMANDS.items():
        command = commands.add_parser(name, help=told, description=told[0].upper() + told[1:] + ".")
        importlib.import_module(f"rfsim.cli.{name}").add_arguments(command)
        command.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    options = build_parser().parse_args(arguments)
    try:
        status = importlib.import_module(f"rfsim.cli.{options.command}").run(options)
        sys.stdout.flush()
        return int(status)
    except InputError as error:
        print(f"rfsim {options.command}: error: {error}", file=sys.stderr)
        return 2
    except (RunError, MemoryError) as error:
        print(f"rfsim {options.command}: cannot be done: {error or 'out of memory'}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        left = _KEPT.get(options.command, "nothing is kept")
        print(f"\nrfsim {options.command}: interrupted; {left}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of stdout has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
