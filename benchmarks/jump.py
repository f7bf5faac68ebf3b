"""Speed and accuracy of the jump route, printed as tables.

    python benchmarks/jump.py

Median of several rounds, warm. The recursion is compiled and warm too; where it would take too long its time is
extrapolated from a shorter run in the same table, and the table says so.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np

import rfsim
from rfsim import smooth
from rfsim.routes import jump, recursion
from rfsim.schedules import constant
from rfsim.stretches import stretches

ROUNDS = 7


def seconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Median time of a call, after one call to warm up."""
    work()
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def modes(count: int, noise: float = 0.5) -> rfsim.Spectrum:
    """A power-law spectrum over three decades, with as many nodes as wanted."""
    index = np.geomspace(1.0, 1e3, count)
    return rfsim.spectrum(index**-1.2, index**-1.6, floor=0.01, noise_var=noise)


def constant_schedules() -> None:
    """R at 400 log-spaced times against the number of nodes."""
    at = np.unique(np.rint(np.geomspace(1.0, 1e12, 400)))
    check = [10, 1000, 100_000]
    print("constant schedule, all curves at 400 log-spaced times up to 10^12 (wanted: 300 nodes under 50 ms)\n")
    print(f"{'nodes':>8}{'ms':>10}{'against the recursion, t <= 10^5':>36}{'recursion for 10^5 steps, ms':>32}")
    for count in (30, 100, 300, 700):
        spectrum = modes(count)
        taken = seconds(lambda s=spectrum: jump.risk(s, stretches(0.1, 64.0, 10**12), at=at))
        expected = recursion.risk(spectrum, constant(10**5, 0.1, 64.0), at=check)
        found = jump.risk(spectrum, stretches(0.1, 64.0, 10**12), at=check)
        error = max(
            float(np.max(np.abs(np.asarray(getattr(found, name)) / getattr(expected, name) - 1.0)))
            for name in ("risk", "gap", "memory")
        )
        direct = seconds(lambda s=spectrum: recursion.risk(s, constant(10**5, 0.1, 64.0), at=check), rounds=1)
        print(f"{count:8d}{taken * 1e3:10.1f}{error:36.1e}{direct * 1e3:32.0f}")


def smooth_schedules() -> None:
    """Changing schedules against the horizon: time, estimated and true error."""
    spectrum = modes(100)
    print("\nchanging schedules, 100 nodes, rtol 1e-5, 12 recorded steps; recursion extrapolated beyond 10^5 steps\n")
    print(f"{'schedule':>18}{'steps':>10}{'s':>8}{'estimate':>11}{'true':>10}{'recursion, s':>14}{'ratio':>10}")
    makes: dict[str, Callable[[int], smooth.Smooth]] = {
        "power, batch": lambda n: smooth.power(n, 0.2, 2.0, vartheta=0.6, exact_batch=True),
        "power, lr": lambda n: smooth.power(n, 0.2, 2.0, vartheta=0.6, via="lr"),
        "wsd": lambda n: smooth.wsd(n, 0.2, 2.0, warmup=0.01),
        "cosine": lambda n: smooth.cosine(n, 0.2, 2.0),
    }
    for name, make in makes.items():
        per_step = 0.0
        for steps in (10**5, 10**8, 10**12):
            schedule = make(steps)
            at = np.unique(np.rint(np.geomspace(1.0, steps, 12)))
            start = time.perf_counter()
            run = jump.smooth_risk(spectrum, schedule, at=at, rtol=1e-5)
            taken = time.perf_counter() - start
            true = ""
            if steps <= 10**5:
                sampled = schedule.sampled()
                expected = recursion.risk(spectrum, sampled, at=at)
                per_step = seconds(lambda s=sampled, a=at: recursion.risk(spectrum, s, at=a), rounds=1) / steps
                true = f"{np.max(np.abs(run.curve.gap / expected.gap - 1.0)):.1e}"
            direct = per_step * steps
            row = f"{name:>18}{steps:10.0e}{taken:8.2f}{run.error.max():11.1e}{true:>10}"
            print(f"{row}{direct:14.3g}{direct / taken:10.3g}")


def main() -> None:
    """Print the tables."""
    constant_schedules()
    smooth_schedules()


if __name__ == "__main__":
    main()
