"""Cost of Monte-Carlo SGD: the step that is exact in law at three batch sizes, and against the literal engine.

Run from the repository: `python benchmarks/montecarlo.py`. Contenders take turns, so that a busy machine slows both;
times are medians. Target: law step at B = 10^6 at most 1.5 times that at B = 1; law at least 300 times literal.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import jax

import rfsim
from rfsim.routes.montecarlo import simulate


def paired_medians(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of every call; each is run once beforehand to compile, then all take turns."""
    for call in calls.values():
        call()
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            taken[name].append(time.perf_counter() - began)
    return {name: statistics.median(times) for name, times in taken.items()}


def law_by_batch(rounds: int, steps: int) -> None:
    problem = rfsim.power_law(0.4, 0.3, ambient=2048, noise_var=0.25)
    spectrum = rfsim.sample_features(jax.random.key(0), problem, 1024)

    print(f"\nExact in law, {spectrum.modes} modes, {steps} steps per call\n")
    print("| runs | batch | us per step and run | ratio to B = 1 |")
    print("|---|---|---|---|")
    for runs in (1, 16):
        calls = {}
        for batch in (1, 64, 10**6):
            schedule = rfsim.schedules.constant(steps, 0.05, batch)
            calls[f"{batch}"] = lambda s=schedule, r=runs: simulate(
                jax.random.key(1), spectrum, s, runs=r, chunk=r, at=[steps]
            )
        times = paired_medians(calls, rounds)
        for batch, seconds in times.items():
            print(f"| {runs} | {batch} | {1e6 * seconds / steps / runs:.2f} | {seconds / times['1']:.2f} |")


def law_against_literal(rounds: int, ambient: int = 4096, width: int = 1024, batch: int = 64, runs: int = 8) -> None:
    problem = rfsim.power_law(0.4, 0.3, ambient=ambient, noise_var=0.25)
    features = rfsim.random_features(jax.random.key(0), problem, width)
    spectrum = rfsim.feature_spectrum(features)
    steps = {"law": 2048, "literal": 8}
    schedules = {engine: rfsim.schedules.constant(count, 0.05, batch) for engine, count in steps.items()}
    sources = {"law": spectrum, "literal": features}

    def call(engine: str) -> Callable[[], object]:
        schedule, source = schedules[engine], sources[engine]
        return lambda: simulate(
            jax.random.key(2), source, schedule, runs=runs, chunk=runs, engine=engine, at=[schedule.steps]
        )

    times = paired_medians({engine: call(engine) for engine in steps}, rounds)
    speed = {engine: steps[engine] * runs / seconds for engine, seconds in times.items()}
    print(f"\nBoth engines, v = {ambient}, M = {width}, B = {batch}, {runs} runs at once\n")
    print("| engine | runs x steps per second | ratio to literal |")
    print("|---|---|---|")
    for engine, rate in speed.items():
        print(f"| {engine} | {rate:.4g} | {rate / speed['literal']:.4g} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="times each contender is run")
    rounds = parser.parse_args().rounds
    print(f"jax {jax.__version__} on {jax.devices()[0].device_kind}, medians of {rounds} paired rounds")
    law_by_batch(rounds, steps=1024)
    law_against_literal(max(3, rounds // 2))
