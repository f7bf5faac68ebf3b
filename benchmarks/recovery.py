"""How often stated 95 % intervals hold the parameters that made a log, for every law: the recovery test, longer.

    python benchmarks/recovery.py [--repetitions N] [LAW ...]

The logs, laws and parameters are those of `tests/test_synthetic_recovery.py`, with other noise. For each law it prints
the lowest coverage among its parameters, of Wald and of profile intervals, and the lowest that 1 of 1000 exact laws of
as many parameters would have by chance. 100 repetitions of forcing-memory take most of an hour, of the others minutes.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from test_synthetic_recovery import TRUTHS, coverage

METHODS = ("wald", "profile")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("law", nargs="*", help=f"among {', '.join(TRUTHS)}; default all")
    options = parser.parse_args()
    for name in options.law:
        if name not in TRUTHS:
            parser.error(f"law {name!r} is not among {', '.join(TRUTHS)}")
    print(f"{'law':24} {'by chance':>10} {'wald':>8} {'profile':>8} {'seconds':>8}")
    for name in options.law or TRUTHS:
        values = np.array(TRUTHS[name][2])
        begin, seeds = time.perf_counter(), range(10_000, 10_000 + options.repetitions)
        found = coverage(name, seeds, methods=METHODS, starts=0.75 * values[None])
        lowest = [found.held[method].mean(axis=0).min() for method in METHODS]
        chance = binom.ppf(1e-3 / len(values), options.repetitions, 0.95) / options.repetitions
        print(f"{name:24} {chance:10.3f} {lowest[0]:8.3f} {lowest[1]:8.3f} {time.perf_counter() - begin:8.0f}")


if __name__ == "__main__":
    main()
