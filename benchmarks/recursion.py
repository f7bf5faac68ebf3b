"""Speed and memory of the exact recursion, as ratios in one run, printed as a table.

    python benchmarks/recursion.py

Every ratio pairs two ways of doing the same arithmetic, in turn, and takes the median over rounds; both are compiled
and warm.
"""

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import rfsim
from rfsim.routes import recursion
from rfsim.schedules import Schedule

MODES, STEPS, ROUNDS = 1024, 16384, 7


def setting() -> tuple[rfsim.Spectrum, Schedule]:
    """A power-law spectrum under a schedule in which both lr and batch change."""
    index = np.arange(1.0, MODES + 1.0)
    spectrum = rfsim.spectrum(index**-0.8, index**-1.4, noise_var=0.25)
    step = np.arange(STEPS)
    return spectrum, rfsim.schedules.from_arrays(0.1 * (1.0 + step) ** -0.1, np.ceil(8.0 * (1.0 + step) ** 0.2))


def numpy_risk(spectrum: rfsim.Spectrum, schedule: Schedule) -> np.ndarray:
    """The risk alone, by a NumPy loop over steps."""
    lam, energy = spectrum.eigenvalues, spectrum.forcing_energy.copy()
    square = lam * lam
    risk = energy.sum()
    history = np.empty(schedule.steps)
    for t in range(schedule.steps):
        eta, batch = schedule.lr[t], schedule.batch[t]
        factor = 1.0 - 2.0 * eta * lam + (1.0 + 1.0 / batch) * eta * eta * square
        energy = factor * energy + (eta * eta / batch * (risk + spectrum.noise_var)) * square
        risk = energy.sum()
        history[t] = risk
    return history


def numpy_curves(spectrum: rfsim.Spectrum, schedule: Schedule) -> np.ndarray:
    """Forcing, memory of the clean run and gap, by a NumPy loop over steps."""
    lam, forcing = spectrum.eigenvalues, spectrum.forcing_energy.copy()
    square = lam * lam
    clean, gap = np.zeros(MODES), np.zeros(MODES)
    totals = np.array([forcing.sum(), 0.0, 0.0])
    history = np.empty((schedule.steps, 3))
    for t in range(schedule.steps):
        eta, batch = schedule.lr[t], schedule.batch[t]
        factor = 1.0 - 2.0 * eta * lam + (1.0 + 1.0 / batch) * eta * eta * square
        injection = (eta * eta / batch) * square
        forcing = factor * forcing
        clean = factor * clean + injection * (totals[0] + totals[1])
        gap = factor * gap + injection * (totals[2] + spectrum.noise_var)
        totals = np.array([forcing.sum(), clean.sum(), gap.sum()])
        history[t] = totals
    return history


@jax.jit
def bare_scan(
    lam: jax.Array, energy: jax.Array, noise: jax.Array, lr: jax.Array, inverse: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The arithmetic of all curves in the plainest scan."""

    def step(carry: tuple, now: tuple) -> tuple:
        forcing, clean, gap, a, b, c = carry
        eta, over = now
        x = eta * lam
        injection = x * x * over
        factor = (1.0 - x) * (1.0 - x) + injection
        forcing = factor * forcing
        clean = factor * clean + injection * (a + b)
        gap = factor * gap + injection * (c + noise)
        totals = (forcing.sum(), clean.sum(), gap.sum())
        return (forcing, clean, gap, *totals), totals

    zero = jnp.zeros_like(lam)
    start = (energy, zero, zero, energy.sum(), jnp.zeros(()), jnp.zeros(()))
    return lax.scan(step, start, (lr, inverse))[1]


def paired(
    first: Callable[[], object], second: Callable[[], object], rounds: int = ROUNDS
) -> tuple[float, float, float]:
    """Median seconds of both, and the median of second/first round by round."""

    def seconds(work: Callable[[], object]) -> float:
        start = time.perf_counter()
        jax.block_until_ready(work())
        return time.perf_counter() - start

    jax.block_until_ready(first()), jax.block_until_ready(second())
    rows = [(seconds(first), seconds(second)) for _ in range(rounds)]
    return (
        statistics.median(a for a, _ in rows),
        statistics.median(b for _, b in rows),
        statistics.median(b / a for a, b in rows),
    )


def peak_memory(steps: int) -> float:
    """Peak memory in MiB of a fresh process that records 200 steps of a run of `steps` steps with 1,000 modes."""
    script = (
        "import resource, numpy as np, rfsim\n"
        "i = np.arange(1.0, 1001.0)\n"
        "s = rfsim.spectrum(i**-0.8, i**-1.4, noise_var=0.25)\n"
        f"c = rfsim.schedules.constant({steps}, 0.05, 64.0)\n"
        "rfsim.risk(s, c)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
    )
    return float(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Print the table."""
    spectrum, schedule = setting()
    steps = [schedule.steps]
    lam, energy = jnp.asarray(spectrum.eigenvalues), jnp.asarray(spectrum.forcing_energy)
    noise, lr, inverse = jnp.asarray(0.25), jnp.asarray(schedule.lr), jnp.asarray(1.0 / schedule.batch)

    def curves() -> object:
        return recursion.risk(spectrum, schedule, at=steps).risk

    device = jax.devices()[0].device_kind
    print(f"exact recursion, {MODES} modes, {STEPS} steps, {device}; median of {ROUNDS} paired rounds\n")
    print(f"{'':44}{'us/step':>9}{'other':>9}{'ratio':>8}{'wanted':>9}")
    rows = [
        (
            "risk alone against a NumPy loop",
            lambda: recursion.terminal_risk(spectrum, schedule),
            lambda: numpy_risk(spectrum, schedule),
            "over 8",
        ),
        ("all curves against a NumPy loop", curves, lambda: numpy_curves(spectrum, schedule), "over 5"),
    ]
    for name, mine, other, wanted in rows:
        a, b, ratio = paired(mine, other)
        print(f"{name:44}{a / STEPS * 1e6:9.2f}{b / STEPS * 1e6:9.2f}{ratio:8.1f}{wanted:>9}")
    a, b, ratio = paired(lambda: bare_scan(lam, energy, noise, lr, inverse), curves)
    print(f"{'all curves over the bare scan':44}{b / STEPS * 1e6:9.2f}{a / STEPS * 1e6:9.2f}{ratio:8.2f}{'< 1.3':>9}")
    short, long = peak_memory(1_000), peak_memory(1_000_000)
    arrays = 2 * 8 * 1e6 / 2**20
    print(f"\npeak memory, 1,000 modes, 200 records: {short:.0f} MiB at 10^3 steps, {long:.0f} MiB at 10^6 steps;")
    print(f"the schedule arrays of 10^6 steps take {arrays:.0f} MiB, what remains is {long - short - arrays:+.0f} MiB")
    before = recursion._advance_compiled._cache_size()
    for horizon in (1000, 1001, 1002):
        recursion.risk(spectrum, schedule.part(0, horizon))
    print(f"compiled kernels after horizons 1000, 1001, 1002: {recursion._advance_compiled._cache_size() - before} new")
    print(f"peak memory of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
