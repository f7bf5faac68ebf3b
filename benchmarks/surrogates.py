"""Milliseconds of one evaluation of each law on 10^5 steps at 10^3 points, against the sum over all steps.

    python benchmarks/surrogates.py [LAW ...]

The wanted time is 20 ms for the loss. Preparing a run (its clocks, pieces or terms) happens once per run and fit. The
last columns are from a schedule of 10^4 steps at 100 points: the time of the law, of a plain sum over all steps, and
the largest relative difference of the two.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rfsim.logs import run
from rfsim.schedules import Schedule, cosine, eight_one_one, from_arrays, warmed, wsd
from rfsim.surrogates import Law, law, law_record

VALUES = {
    "forcing-memory": [2.65, 20.0, 0.45, 3e-4, 2e-2, 0.02, 0.9],
    "multi-power": [2.65, 0.6, 0.45, 350.0, 2.1, 0.6, 0.55],
    "momentum": [2.65, 12.0, 0.45, 1.5e-3, 150.0],
    "fsl": [2.65, 12.0, 0.45, 1.5e-3, 1e-2, 0.02, 0.8],
    "lr-fsl": [2.65, 8.0, 20.0, 0.45, 0.1, 20.0, 1.3],
    "elr-fsl": [2.65, 8.0, 20.0, 0.45, 0.1, 20.0, 1.3],
}


def rough(steps: int, lr: float, batch: float) -> Schedule:
    """An lr that is drawn anew at every step."""
    return from_arrays(lr * np.exp(np.random.default_rng(0).normal(0.0, 0.3, steps)), batch)


SHAPES = {"8-1-1": eight_one_one, "wsd": wsd, "cosine": cosine, "rough": rough}


def schedule(shape: str, steps: int) -> Schedule:
    """A schedule with a warm-up over a fiftieth."""
    return warmed(SHAPES[shape](steps, 1e-3, 4.0), steps // 50)


def milliseconds(work: Callable[[], object], rounds: int = 7) -> float:
    """Best of a few rounds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return 1e3 * best


def prepared(name: str, shape: str, steps: int, points: int, **options: Any) -> tuple[Law[Any], Any, float]:
    """A calibrated law, its prepared run, and the milliseconds that took."""
    plan = schedule(shape, steps)
    rows = np.unique(np.linspace(steps // 40, steps, points).round())
    norms = 4.0 + np.sqrt(np.arange(steps) / steps)
    log = run(rows, np.ones(len(rows)), plan, norm=norms)
    one = law(name, **options).calibrated([log])
    return one, one.prepare(log), milliseconds(lambda: one.prepare(log), rounds=3)


def literal(one: Law[Any], values: np.ndarray, shape: str, steps: int, points: int) -> Callable[[], np.ndarray]:
    """The forcing-memory law as a sum over all steps before each point, each step at eight points of Gauss's rule."""
    plan = schedule(shape, steps)
    lr, batch = np.asarray(plan.lr) / one.lr_unit, np.asarray(plan.batch) / one.batch_unit
    clock = np.concatenate([[0.0], np.cumsum(lr)])
    nodes, weights = np.polynomial.legendre.leggauss(8)
    places = clock[:-1, None] + 0.5 * (nodes + 1.0) * lr[:, None]
    rows = np.unique(np.linspace(steps // 40, steps, points).round()).astype(int)
    l_inf, a_f, q_f, a_0, a_1, c, q = values

    def total() -> np.ndarray:
        injected = (a_0 + a_1 * (1.0 + places) ** -q_f) * (0.5 * weights) * (lr**2 / batch)[:, None]
        memory = [float((injected[:s] * (1.0 + c * (clock[s] - places[:s])) ** -q).sum()) for s in rows]
        return l_inf + a_f * (1.0 + clock[rows]) ** -q_f + np.array(memory)

    return total


def against(name: str, shape: str, values: np.ndarray) -> tuple[float, float, float]:
    """At 10^4 steps and 100 points: milliseconds of the law and of the sum over all steps, and their difference."""
    steps, points = 10_000, 100
    one, ready, _ = prepared(name, shape, steps, points)
    loss = one.evaluate(values, ready, gradient=False)[0]
    quick = milliseconds(lambda: one.evaluate(values, ready, gradient=False))
    if name == "forcing-memory":
        work = literal(one, values, shape, steps, points)
    elif "nodes" in law_record(one):
        slow, every, _ = prepared(name, shape, steps, points, nodes=0)

        def work() -> np.ndarray:
            return slow.evaluate(values, every, gradient=False)[0]
    else:
        return quick, float("nan"), float("nan")  # its recursion is the sum
    return quick, milliseconds(work, rounds=2), float(np.max(np.abs(loss / work() - 1.0)))


def measured(name: str, shape: str) -> str:
    """One row of the table."""
    values = np.array(VALUES[name])
    one, ready, taken = prepared(name, shape, 100_000, 1000)
    loss = milliseconds(lambda: one.evaluate(values, ready, gradient=False))
    both = milliseconds(lambda: one.evaluate(values, ready))
    quick, slow, off = against(name, shape, values)
    return f"{taken:10.1f}{loss:8.2f}{both:13.2f}{quick:11.2f}{slow:11.1f}{off:12.1e}"


def main() -> None:
    """Print the table."""
    head = ("law", "schedule", "prepare", "loss", "with slopes", "loss 10^4", "all steps", "difference")
    print("{:16}{:9}{:>10}{:>8}{:>13}{:>11}{:>11}{:>12}".format(*head))
    for name in sys.argv[1:] or VALUES:
        for shape in SHAPES:
            print(f"{name:16}{shape:9}{measured(name, shape)}", flush=True)


if __name__ == "__main__":
    main()
