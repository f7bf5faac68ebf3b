"""What a GPU gives: agreement with the CPU and with the exact risk, and throughput of the engine that is exact in law.

Run from the repository: `python benchmarks/gpu.py`. Prints Markdown, takes under five minutes (the throughput table
stops early on a slow card and says so), exits with 1 if a check fails. Without a GPU it says so and exits with 0.
"""

import argparse
import datetime
import statistics
import sys
import time

import jax
import numpy as np

import rfsim
from rfsim.measure import agreement
from rfsim.routes import recursion
from rfsim.routes.montecarlo import simulate

SIZES = (1, 16, 256, 4096, 65_536)
FALSE_ALARM = 1e-4
LAST_ROW_BY = 200.0  # seconds after the start at which no further row is begun


def check_recursion() -> bool:
    """Exact recursion on both devices: largest relative difference over all curves and recorded steps."""
    problem = rfsim.power_law(0.4, 0.3, ambient=2048, noise_var=0.25)
    cpu = jax.devices("cpu")[0]
    with jax.default_device(cpu):
        spectrum = rfsim.sample_features(jax.random.key(0), problem, 1024)
        schedule = rfsim.schedules.power(20_000, 0.1, 8, vartheta=0.3)
        reference = recursion.risk(spectrum, schedule)
    found = recursion.risk(spectrum, schedule)
    names = ("risk", "forcing", "memory", "clean", "gap")
    worst = 0.0
    for name in names:
        one, other = np.asarray(getattr(found, name)), np.asarray(getattr(reference, name))
        worst = max(worst, float(np.max(np.abs(one - other) / np.maximum(np.abs(other), 1e-300))))
    passed = worst <= 1e-10
    print(f"| exact recursion, 1024 modes, 20,000 steps, against the CPU | {worst:.1e} relative | 1e-10 | {passed} |")
    return passed


def check_engines() -> bool:
    """Ensembles of both engines against the exact risk."""
    problem = rfsim.power_law(0.4, 0.3, ambient=512, noise_var=0.25)
    features = rfsim.random_features(jax.random.key(1), problem, 256)
    spectrum = rfsim.feature_spectrum(features)
    schedule = rfsim.schedules.power(200, 0.1, 4, vartheta=0.5)
    at = np.unique(np.geomspace(1, 200, 25).astype(int))
    exact = recursion.risk(spectrum, schedule, at=at)
    everything = True
    for engine, draws, runs in (("law", "float64", 4096), ("law", "float32", 4096), ("literal", "float64", 1024)):
        found = simulate(jax.random.key(2), features, schedule, runs=runs, engine=engine, at=at, draws=draws)
        told = agreement(found.mean, exact.risk, found.stderr, runs=runs, false_alarm_rate=FALSE_ALARM)
        row = f"{runs:,} runs, {engine}, {draws} draws, against the exact risk at {told.points} steps"
        print(f"| {row} | max z {told.max_abs_z:.2f} | {told.threshold:.2f} | {told.passed} |")
        everything = everything and told.passed
    return everything


def throughput(sizes: tuple[int, ...], began: float, *, modes: int = 256, steps: int = 256) -> None:
    """Table of runs x steps x modes per second."""
    lam = np.arange(1, modes + 1) ** -0.8
    spectrum = rfsim.spectrum(lam, lam**1.75, floor=0.1, noise_var=0.25)
    schedule = rfsim.schedules.constant(steps, 0.1, 64)
    print(f"\nExact in law, {modes} modes, {steps} steps, B = 64: runs x steps x modes per second\n")
    print("| runs | float64 draws | float32 draws |")
    print("|---|---|---|")
    for runs in sizes:
        cells = []
        for draws in ("float64", "float32"):
            if time.perf_counter() - began > LAST_ROW_BY:
                cells.append("left out, no time")
                continue
            taken = []
            for repeat in range(3):
                start = time.perf_counter()
                simulate(jax.random.key(repeat), spectrum, schedule, runs=runs, draws=draws, at=[steps])
                taken.append(time.perf_counter() - start)
                if taken[-1] > 20.0 and repeat:
                    break
            cells.append(f"{runs * steps * modes / statistics.median(taken[1:]):.3g}")  # the first call compiles
        print(f"| {runs:,} | {cells[0]} | {cells[1]} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--anyway", action="store_true", help="run on the default device also if it is no GPU")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="ensemble sizes of the throughput table")
    options = parser.parse_args()
    if jax.default_backend() != "gpu" and not options.anyway:
        print(f"no GPU found (jax runs on {jax.default_backend()}); nothing measured")
        return 0
    began = time.perf_counter()
    device = jax.devices()[0]
    print(
        f"{device.device_kind}, {datetime.date.today().isoformat()}, jax {jax.__version__}, rfsim {rfsim.__version__}\n"
    )
    print("| check | found | allowed | passed |")
    print("|---|---|---|---|")
    passed = check_recursion()
    passed = check_engines() and passed
    throughput(tuple(options.sizes), began)
    print(f"\n{time.perf_counter() - began:.0f} s in all; checks {'passed' if passed else 'FAILED'}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
