"""One risk, grouped twice: forcing + memory, and clean + gap. The memory of the clean run belongs to the second term
of the one and to the first term of the other."""

from typing import Any

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from rfsim.exact import risk
from rfsim.figures.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, canvas, numbers, panel, styled
from rfsim.measure import agreement
from rfsim.problems import power_law
from rfsim.routes.montecarlo import simulate
from rfsim.schedules import log_spaced_steps, power
from rfsim.sources.features import sample_features

title = "Two groupings of one risk"
alt = (
    "Four stacked area charts of risk against intrinsic time, two for long and two for integrable memory. In each row "
    "the same total is split into forcing plus memory and into clean plus gap; a hatched strip, the memory of the "
    "clean run, changes sides. Dots of SGD lie on the total."
)

POINTS = {"LM": (0.4, 0.3, 0.5, 2), "IM": (0.6, 0.2, 0.25, 1)}  # alpha, beta, vartheta, first batch
NAMES = {"LM": "long memory", "IM": "integrable memory"}
_LR, _NOISE = 0.15, 1.0
_SIZES = {"test": (96, 6.0, 16), "quick": (256, 29.0, 128), "standard": (512, 50.0, 1024), "full": (1024, 50.0, 4096)}
_FALSE_ALARMS = 1e-3


def parameters(scale: str) -> dict[str, Any]:
    """What is run: one draw of W per point, a constant lr and a growing batch."""
    width, end, runs = _SIZES[scale]
    return {
        "points": POINTS,
        "width": width,
        "ambient": 2 * width,
        "lr": _LR,
        "noise_var": _NOISE,
        "steps": int(np.ceil(end / _LR)),
        "runs": runs,
        "draws": "float32",
        "seed": 11,
    }


def compute(scale: str) -> dict[str, Any]:
    """Exact curves and SGD of both points."""
    settings = parameters(scale)
    rows = {name: _row(*point, settings, number) for number, (name, point) in enumerate(POINTS.items())}
    return {"width": settings["width"], "runs": settings["runs"], "rows": rows}


def _row(
    alpha: float, beta: float, vartheta: float, batch: int, settings: dict[str, Any], number: int
) -> dict[str, Any]:
    problem = power_law(alpha, beta, ambient=settings["ambient"], noise_var=_NOISE)
    draw_features, draw_runs = jax.random.split(jax.random.fold_in(jax.random.key(settings["seed"]), number))
    source = sample_features(draw_features, problem, settings["width"])
    schedule = power(settings["steps"], _LR, batch, vartheta=vartheta)
    at = log_spaced_steps(settings["steps"], 160)
    curve = risk(source, schedule, at=at)
    sampled = log_spaced_steps(settings["steps"], 26)
    runs = simulate(draw_runs, source, schedule, runs=settings["runs"], at=sampled, draws="float32")
    exact = risk(source, schedule, at=sampled)
    verdict = agreement(runs.mean, exact.risk, runs.stderr, runs=settings["runs"], false_alarm_rate=_FALSE_ALARMS)
    return {
        "alpha": alpha,
        "beta": beta,
        "vartheta": vartheta,
        "batch": batch,
        "time": curve.intrinsic_time,
        "risk": curve.risk,
        "forcing": curve.forcing,
        "memory": curve.memory,
        "clean": curve.clean,
        "gap": curve.gap,
        "floor": float(curve.floor),
        "clean_memory": curve.clean - curve.forcing,
        "sampled_time": runs.intrinsic_time,
        "mean": runs.mean,
        "stderr": runs.stderr,
        "largest_z": verdict.max_abs_z,
        "threshold": verdict.threshold,
        "agrees": verdict.passed,
    }


def caption(data: dict[str, Any]) -> str:
    """Shares at the end of the run, and how well SGD agrees."""
    told = []
    for name, row in data["rows"].items():
        end = {key: row[key][-1] for key in ("risk", "forcing", "memory", "clean", "gap", "clean_memory")}
        told.append(
            f"{NAMES[name]} (alpha {row['alpha']:g}, beta {row['beta']:g}, batch {row['batch']} (1 + "
            f"T)^{row['vartheta']:g} rounded up) at T = {row['time'][-1]:.3g}: risk {end['risk']:.4f} = forcing "
            f"{end['forcing']:.4f} + memory {end['memory']:.4f} = clean {end['clean']:.4f} + gap {end['gap']:.4f}, "
            f"memory of the clean run {end['clean_memory']:.4f}; SGD {'agrees' if row['agrees'] else 'disagrees'}, "
            f"largest |z| {row['largest_z']:.2f} (threshold {row['threshold']:.2f} at a family-wise false-alarm rate "
            f"of {_FALSE_ALARMS:g})"
        )
    return (
        f"Exact risk of one draw of W (width {data['width']}, ambient {2 * data['width']}, sigma^2 = {_NOISE:g}, "
        f"constant lr {_LR:g}, growing batch, at whose whole-number steps the memory drops), stacked in two ways. "
        "Hatched: memory of the clean run, part of the memory on the left and of the clean risk on the right. Dots: "
        f"mean of {data['runs']} SGD runs, bars two standard errors. {'. '.join(told)}."
    )


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Rows: points; columns: groupings."""
    figure, grid = canvas(2, 2, width=10.6, height=7.4, sharex="row", sharey="row")
    letters = iter("abcd")
    for pair, (name, row) in zip(grid, data["rows"].items(), strict=True):
        for axes, (lower, upper, words) in zip(
            pair, ((BLUE, ORANGE, "forcing + memory"), (GREEN, PURPLE, "clean + gap")), strict=True
        ):
            _stack(axes, row, lower if words == "clean + gap" else upper, lower, upper)
            panel(axes, next(letters), f"{NAMES[name]} " + rf"($\vartheta={row['vartheta']:g}$): {words}")
            axes.set(xscale="log", xlabel="intrinsic time T")
            handles = [
                Patch(facecolor=_tint(upper), label=words.split(" + ")[1]),
                Patch(facecolor=_tint(lower), label=words.split(" + ")[0]),
            ]
            axes.legend(handles=handles, loc="upper right")
        pair[0].set(ylabel="risk", ylim=(0.0, 1.08 * max(row["risk"])))
        pair[0].set_xlim(numbers(row["time"])[1], row["time"][-1])
    handles = [
        Patch(facecolor="white", edgecolor=BLACK, hatch="////", lw=0.0, label="memory of the clean run"),
        grid[0, 0].get_lines()[0],
        grid[0, 0].containers[0],
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def _tint(colour: str) -> tuple[str, float]:
    return colour, 0.45


def _stack(axes: Axes, row: dict[str, Any], middle: str, lower: str, upper: str) -> None:
    """Layers forcing, memory of the clean run (hatched), gap; the middle one takes the colour of its group."""
    late = slice(1, None)
    time = numbers(row["time"])[late]
    forcing, clean, total = (numbers(row[key])[late] for key in ("forcing", "clean", "risk"))
    axes.fill_between(time, 0.0, forcing, color=_tint(lower), lw=0)
    axes.fill_between(time, forcing, clean, color=_tint(middle), lw=0)
    axes.fill_between(time, forcing, clean, facecolor="none", edgecolor=BLACK, hatch="////", lw=0)
    axes.fill_between(time, clean, total, color=_tint(upper), lw=0)
    axes.plot(time, total, color=BLACK, lw=1.4, label="exact risk")
    axes.plot(time, clean if middle == lower else forcing, color=BLACK, lw=0.9, ls=(0, (5, 2)))
    axes.errorbar(
        numbers(row["sampled_time"])[late],
        numbers(row["mean"])[late],
        yerr=2.0 * numbers(row["stderr"])[late],
        fmt="o",
        color=BLACK,
        mfc="white",
        ms=4.5,
        lw=1.0,
        capsize=2,
        clip_on=False,  # the first and the last record lie on the frame
        zorder=5,
        label="SGD, mean of runs",
    )
