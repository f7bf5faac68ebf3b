"""`rfsim verify`: theorems checked with numbers."""

import argparse
from typing import Any

from rfsim.cli.output import emit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--scale", choices=("quick", "standard", "full"), default="quick", help="default quick")
    parser.add_argument("--only", metavar="NAME", help="one family or one check")
    parser.add_argument("--list", action="store_true", help="name the families and stop")
    parser.add_argument("--cache", metavar="DIR", help="keep finished families here and resume from them")


def run(options: argparse.Namespace) -> int:
    """Run the checks; status 1 if any fails."""
    from rfsim import verify
    from rfsim.progress import Progress
    from rfsim.provenance import output_folder, versions

    if options.list:
        emit({"families": list(verify.names())}, options.json)
        return 0
    progress = Progress("verify")
    cache = None if options.cache is None else output_folder(options.cache)
    checks = verify.run(options.scale, options.only, cache=cache, progress=progress)
    progress.close()
    passed = sum(bool(check.passed) for check in checks)
    if options.json:
        result = {"checks": [check._asdict() for check in checks], "passed": passed, "of": len(checks)}
        emit({**result, "scale": options.scale, "versions": versions()}, True)
    else:
        for check in checks:
            print(line(check))
        print(f"{passed} of {len(checks)} checks passed (scale {options.scale})")
    return 0 if passed == len(checks) else 1


def line(check: Any) -> str:
    """One check as a line of text."""

    def number(value: object) -> str:
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    verdict = "ok  " if check.passed else "FAIL"
    return (
        f"{verdict} {check.name}: {check.statement} "
        f"[predicted {number(check.predicted)}, measured {number(check.measured)}, tolerance {number(check.tolerance)}]"
    )
