"""`rfsim reproduce`: verify, draw, and one page that shows both."""

import argparse
import sys
import time
from pathlib import Path

from rfsim.cli.output import emit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--scale", choices=("quick", "standard", "full"), default="quick", help="default quick")
    parser.add_argument("--out", default="rfsim-report", metavar="DIR", help="output folder; default rfsim-report")


def run(options: argparse.Namespace) -> int:
    """Run everything; finished parts are kept in the folder, so that a second call resumes."""
    from rfsim import figures, report, verify
    from rfsim.progress import Progress
    from rfsim.provenance import output_folder, versions, write_json

    start = time.monotonic()
    folder = output_folder(options.out)
    cache = output_folder(folder / "verify")
    pictures = output_folder(folder / "figures")
    progress = Progress("reproduce")
    checks = verify.run(options.scale, cache=cache, progress=progress)
    drawn = figures.run(scale=options.scale, out=pictures, progress=progress)
    progress.close()
    passed = sum(bool(check.passed) for check in checks)
    seconds = time.monotonic() - start
    page = Path(folder) / "index.html"
    report.write_report(page, checks, drawn, scale=options.scale, seconds=seconds)
    summary = {
        "page": str(page),
        "passed": passed,
        "of": len(checks),
        "figures": [str(one.png) for one in drawn],
        "scale": options.scale,
        "seconds": seconds,
    }
    record = {**summary, "checks": [check._asdict() for check in checks], "versions": versions()}
    write_json(folder / "summary.json", record)
    if options.json:
        emit(record, True)
    else:
        for check in checks:
            if not check.passed:
                print(f"FAIL {check.name}: predicted {check.predicted}, measured {check.measured}", file=sys.stderr)
        print(f"{passed} of {len(checks)} checks passed, {len(drawn)} figures drawn in {seconds:.0f} s: open {page}")
    return 0 if passed == len(checks) else 1
