"""A million modes over a million steps: compress and run on the few nodes, against the direct recursion.

    python benchmarks/compress.py

The direct recursion runs all modes for a short while; its time per step is extrapolated to the whole horizon. Errors:
of the few nodes against the direct run where it ran, and over the whole horizon against nodes of a tolerance a hundred
times smaller. A second table: nodes, seconds and estimated errors of several spectra of a million modes.
"""

import time

import jax
import numpy as np

import rfsim
from rfsim.compress import compress, compress_with_error
from rfsim.routes import recursion
from rfsim.schedules import Schedule

MODES, STEPS, SHORT = 1_000_000, 1_000_000, 1024
CURVES = ("risk", "forcing", "memory", "clean", "gap")


def setting() -> tuple[rfsim.Spectrum, Schedule]:
    """A power law with alpha = .4 (trace about 80) under a schedule in which lr and batch change at every step."""
    index = np.arange(1.0, MODES + 1.0)
    spectrum = rfsim.spectrum(index**-0.8, index**-1.4, noise_var=0.25)
    step = np.arange(float(STEPS))
    lr = 0.2 * (1.0 + 1e-3 * step) ** -0.2 * (1.0 + 0.3 * np.cos(step / 5000.0))
    return spectrum, rfsim.schedules.from_arrays(lr, np.ceil(16.0 * (1.0 + step) ** 0.3))


def seconds(work: object) -> tuple[float, object]:
    """Time of one call and what it returned."""
    start = time.perf_counter()
    result = jax.block_until_ready(work())  # type: ignore[operator]
    return time.perf_counter() - start, result


def largest(mine: rfsim.Curve, exact: rfsim.Curve) -> float:
    """Largest relative difference over all curves and records."""
    pairs = [(np.asarray(getattr(mine, name)), np.asarray(getattr(exact, name))) for name in CURVES]
    return max(float(np.max(np.abs(a - b) / np.maximum(np.abs(b), 1e-300))) for a, b in pairs)


def spectra() -> dict[str, rfsim.Spectrum]:
    """Spectra of the second table."""
    index = np.arange(1.0, MODES + 1.0)
    draw = np.random.default_rng(0)
    table = {}
    for alpha, beta in ((0.15, 0.5), (0.3, 0.4), (0.5, 0.3), (0.7, 0.3), (1.0, 0.5), (2.0, -1.4), (2.0, 0.3)):
        table[f"power law {alpha:g}, {beta:g}"] = (index ** (-2 * alpha), index ** (-2 * alpha - 2 * beta))
    table["exp(-j/50000)"] = (np.exp(-index / 50_000), np.exp(-1.5 * index / 50_000))
    table["exp(-sqrt(j)/20)"] = (np.exp(-0.05 * np.sqrt(index)), np.exp(-0.05 * np.sqrt(index)))
    noisy = index**-1.4 * draw.normal(size=MODES) ** 2
    table["alpha .4, random energies"] = (index**-0.8, noisy)
    table["alpha 2, random energies"] = (index**-4.0, index**-4.6 * draw.normal(size=MODES) ** 2)
    clusters = np.concatenate([draw.uniform(a, 2 * a, MODES // 2) for a in (1.0, 1e-4)])
    table["two clusters"] = (clusters, clusters * draw.exponential(size=clusters.size))
    return {name: rfsim.spectrum(lam, energy) for name, (lam, energy) in table.items()}


def main() -> None:
    """Print both tables."""
    spectrum, schedule = setting()
    short = schedule.part(0, SHORT)
    records = np.unique(np.rint(np.geomspace(1, SHORT, 40)).astype(int))
    taken, few = seconds(lambda: compress(spectrum))
    recursion.risk(few, schedule.part(0, 20_000))  # compile
    running, curve = seconds(lambda: recursion.risk(few, schedule))
    direct_short, exact = seconds(lambda: recursion.risk(spectrum, short, at=records))
    direct = direct_short / SHORT * STEPS
    finer = compress(spectrum, tolerance=1e-11)
    print(f"{MODES:,} modes, {STEPS:,} steps of a changing schedule, {jax.devices()[0].device_kind}\n")
    print(f"compress to {few.modes} nodes {taken:10.2f} s")
    print(f"recursion on the nodes {running:9.2f} s")
    print(f"direct recursion {direct:15.0f} s  (extrapolated from {SHORT} steps in {direct_short:.1f} s)")
    print(f"faster by {direct / (taken + running):22.0f}    (wanted: over 100)")
    near, far = largest(recursion.risk(few, short, at=records), exact), largest(curve, recursion.risk(finer, schedule))
    print(f"error of all curves, steps 1..{SHORT}, against the direct run: {near:.1e}")
    print(f"error of all curves, all {STEPS:,} steps, against {finer.modes} finer nodes: {far:.1e}")
    print(f"\n{'spectrum of ' + format(MODES, ',') + ' modes':30}{'nodes':>6}{'s':>7}{'F':>9}{'K':>9}{'kappa':>9}")
    for name, full in spectra().items():
        taken, found = seconds(lambda full=full: compress_with_error(full))
        errors = f"{found.forcing_error:9.1e}{found.memory_error:9.1e}{found.kappa_error:9.1e}"
        print(f"{name:30}{found.nodes:6}{taken:7.2f}{errors}", flush=True)


if __name__ == "__main__":
    main()
