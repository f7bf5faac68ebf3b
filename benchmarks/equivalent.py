"""Seconds of the deterministic equivalent, cold and warm, and how they grow with width, horizon and accuracy.

    python benchmarks/equivalent.py [--plot FILE.png]

Prints tables; with --plot the three costs become one picture too. Cold means a fresh process, without the time of
`import rfsim` and of jax itself.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

import rfsim
from rfsim.continuum import forcing_profile, memory_profile
from rfsim.routes import jump, recursion
from rfsim.sources.equivalent import equivalent_details
from rfsim.stretches import stretches

POINT = (0.7, 0.3)  # alpha, beta


def seconds(work: Callable[[], object], rounds: int = 3) -> float:
    """Best of a few rounds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def problem(width: int, alpha: float = POINT[0], beta: float = POINT[1]) -> rfsim.Problem:
    """Twice as many coordinates as features."""
    return rfsim.power_law(alpha, beta, ambient=2 * width)


def cold(width: int) -> float:
    """Seconds of the first equivalent of a fresh process, after the imports."""
    script = (
        "import time, jax, rfsim\n"
        "from rfsim.sources.equivalent import equivalent\n"
        f"problem = rfsim.power_law({POINT[0]}, {POINT[1]}, ambient={2 * width})\n"
        "start = time.perf_counter()\n"
        f"equivalent(problem, {width})\n"
        "print(time.perf_counter() - start)\n"
    )
    return float(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout)


def main(plot: str | None = None) -> None:
    """Print the tables, and draw them if a path is given."""
    print(f"deterministic equivalent at (alpha, beta) = {POINT}, v = 2 M\n")
    print(f"{'width':>12}{'cold s':>10}{'wanted':>9}{'warm s':>10}{'wanted':>9}")
    for width, cold_wanted, warm_wanted in ((12_800, "< 2", "< 0.3"), (10**9, "< 10", "")):
        warm = seconds(lambda width=width: rfsim.equivalent(problem(width), width))
        print(f"{width:12,}{cold(width):10.2f}{cold_wanted:>9}{warm:10.3f}{warm_wanted:>9}")

    widths, horizons, spacings = [], [], []
    print(f"\n{'width':>22}{'warm s':>10}{'nodes':>8}{'identities':>12}")
    for exponent in (1, 2, 3, 4, 6, 8, 10, 12):
        width = 10**exponent
        found = equivalent_details(problem(width), width)
        warm = seconds(lambda width=width: rfsim.equivalent(problem(width), width), 2)
        print(f"{width:22,}{warm:10.3f}{found.spectrum.modes:8}{found.identity_error:12.0e}")
        widths.append((width, warm))

    width = 10_000
    nodes = rfsim.equivalent(problem(width).replace(noise_var=1.0), width)
    print(f"\nwidth {width:,}, recursion over {nodes.modes} nodes instead of {width:,} modes")
    print(f"{'steps':>22}{'seconds':>10}{'us/step':>9}")
    for steps in (10**3, 10**4, 10**5):
        schedule = rfsim.schedules.constant(steps, 0.05, 16)
        recursion.terminal_risk(nodes, schedule).block_until_ready()
        spent = seconds(lambda schedule=schedule: recursion.terminal_risk(nodes, schedule).block_until_ready())
        print(f"{steps:22,}{spent:10.3f}{spent / steps * 1e6:9.2f}")

    print(f"\nwidth {width:,}, route jump over the same nodes, one recorded step at the end")
    print(f"{'steps':>22}{'seconds':>10}")
    for exponent in (3, 5, 7, 9, 11, 13, 15):
        long = stretches([0.05], [16.0], [10**exponent])
        spent = seconds(lambda long=long: jump.risk(nodes, long, at=[long.edges[-1]]))
        print(f"{10**exponent:22,}{spent:10.4f}")
        horizons.append((10**exponent, spent))

    finest = equivalent_details(problem(width), width, spacing=0.2)
    times = np.geomspace(1.0, 1.0 / finest.lower_edge, 40)
    print(f"\nwidth {width:,}, largest relative error of F(T) and K(T) against spacing 0.2, T up to 1/lower edge")
    print(f"{'spacing':>22}{'warm s':>10}{'nodes':>8}{'identities':>12}{'F, K':>10}")
    for spacing in (0.8, 0.6, 0.5, 0.4, 0.3):
        found = equivalent_details(problem(width), width, spacing=spacing)
        warm = seconds(lambda spacing=spacing: rfsim.equivalent(problem(width), width, spacing=spacing), 2)
        off = max(
            float(np.max(np.abs(profile(found.spectrum, times) / profile(finest.spectrum, times) - 1.0)))
            for profile in (forcing_profile, memory_profile)
        )
        print(f"{spacing:22.2f}{warm:10.3f}{found.spectrum.modes:8}{found.identity_error:12.0e}{off:10.0e}")
        spacings.append((off, warm))
    if plot is not None:
        draw(plot, widths, horizons, spacings)


def draw(path: str, *costs: list[tuple[float, float]]) -> None:
    """Write one picture of seconds against width, horizon and accuracy."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), sharey=True, layout="constrained")
    labels = ("width M", "horizon in steps (route jump, width 10,000)", "relative error of F and K (width 10,000)")
    for axis, label, points in zip(axes, labels, costs, strict=True):
        axis.loglog(*zip(*points, strict=True), "o-")
        axis.set(xlabel=label, ylim=(1e-4, 10.0))
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("seconds, warm")
    figure.savefig(path, dpi=120, metadata={"Software": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--plot", metavar="FILE.png")
    main(parser.parse_args().plot)
