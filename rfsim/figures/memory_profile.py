"""Profile of the memory exponent: errors of fits with q_K held, on fitted and on held-out schedules."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rfsim.exponents import memory_exponent
from rfsim.figures.fit_and_transfer import FITTED, POINTS, PREDICTED, experiment, kernel_slope, settings
from rfsim.figures.style import BLACK, BLUE, GREY, VERMILION, canvas, numbers, panel, remarks, styled
from rfsim.surrogates import law
from rfsim.surrogates.memory_profile import memory_profile

title = "How sharply runs determine the memory exponent"
alt = (
    "Error against the memory exponent held in the fit, for long memory and, at larger scales, integrable memory. The "
    "error of fitted and of held-out runs, each over its own minimum, is a valley around the exponent of the kernel; "
    "below the valleys, bars and crosses mark their widths and minima."
)

_GRIDS = {"LM": (0.57, 1.02), "IM": (0.85, 1.6)}
_FACTOR, _LEVEL = 1.1, 0.95
_NEAR = 0.05  # in log q_K: the grid is finer this far about the free fit
_SHOWN = (0.82, 3.0)  # multiples of the minimum; larger errors are not shown
_CURVES = (("fit", BLUE, "o", "fitted runs", 0.94), ("held_out", VERMILION, "s", "held-out runs", 0.88))  # bar's height


def parameters(scale: str) -> dict[str, Any]:
    """Points and the values of q_K that are held; the small scales have long memory alone.

    `near` holds distances from the free fit, in log q_K, of more values: the valley of the held-out error is narrow.
    """
    size, more = {"test": (7, 3), "quick": (9, 5), "standard": (17, 21), "full": (33, 41)}[scale]
    names = ["LM"] if scale in ("test", "quick") else list(POINTS)
    grids = {name: np.geomspace(*_GRIDS[name], size) for name in names}
    return {
        **settings(scale),
        "points": {name: POINTS[name] for name in names},
        "q_memory": grids,
        "near": np.linspace(-_NEAR, _NEAR, more),
        "factor": _FACTOR,
        "level": _LEVEL,
    }


def compute(scale: str) -> dict[str, Any]:
    """The profile at each point."""
    made = parameters(scale)
    return {
        "points": {name: _profile(name, scale, grid, made["near"]) for name, grid in made["q_memory"].items()},
        "settings": settings(scale),
        "factor": _FACTOR,
        "level": _LEVEL,
    }


def _profile(name: str, scale: str, grid: np.ndarray, near: np.ndarray) -> dict[str, Any]:
    _, runs, free = experiment(name, scale)
    found = memory_profile(
        law("forcing-memory"),
        [runs[shape] for shape in FITTED],
        [runs[shape] for shape in PREDICTED],
        np.union1d(grid, free.params["q_K"] * np.exp(near)),
        factor=_FACTOR,
        level=_LEVEL,
        free=free,
    )
    slope, lags = kernel_slope(POINTS[name], scale)
    return {
        **POINTS[name],
        "q_memory": found.q_memory,
        "error": {"fit": found.fit_error, "held_out": found.held_out_error},
        "valley": {"fit": found.fit, "held_out": found.held_out},
        "interval": [found.interval.low, found.interval.high],
        "free": free.params["q_K"],
        "rival": None if free.rival is None else free.rival[-1],
        "notes": [*free.notes(), *found.notes()],
        "kernel_slope": slope,
        "lags": lags,
        "limit": memory_exponent(POINTS[name]["alpha"]),
    }


def caption(data: dict[str, Any]) -> str:
    """Minima, widths, the interval of the fit, and the exponent of the true kernel."""
    told = [
        f"({letter}) {name} (alpha {one['alpha']:g}, beta {one['beta']:g}): fitted {_words(one['valley']['fit'])}, "
        f"held out {_words(one['valley']['held_out'])}; free fit {one['free']:.3f}, {data['level']:.0%} interval of "
        f"the deviance {one['interval'][0]:.3f} to {one['interval'][1]:.3f}; true kernel {one['kernel_slope']:.3f} "
        f"over lags {one['lags'][0]:g} to {one['lags'][1]:g}, {one['limit']:.4g} in the limit.{remarks(one['notes'])}"
        for letter, (name, one) in zip("ab", data["points"].items(), strict=False)
    ]
    made = data["settings"]
    return (
        f"Root mean square error of the forcing-memory law with q_K held and all else refitted to the logs of "
        f"{' and '.join(FITTED)} (exact dynamics at infinite width, {made['steps']} steps, one row in "
        f"{made['every']}, noise {made['noise']:g}), on these runs and on {' and '.join(PREDICTED)}, which are only "
        f"predicted; each curve over its own minimum. Crosses: minima; bars: where the error stays within a factor "
        f"{data['factor']:g} of it; shaded: interval of the deviance, from one valley to the other where two are not "
        f"rejected; vertical line: logarithmic slope of the true kernel over the lags of the run; dotted: another "
        f"optimum that is not rejected. What the form of the law misses is not part of the interval. {' '.join(told)}"
    )


def _words(valley: dict[str, Any]) -> str:
    """Minimum and width for a sentence; an open side has the end of the grid."""
    low, high = "<" * valley["open_low"], ">" * valley["open_high"]
    return f"{valley['q_memory']:.3f} ({low}{valley['low']:.3f} to {high}{valley['high']:.3f})"


@styled
def draw(data: dict[str, Any]) -> Figure:
    """One panel for each point."""
    points = data["points"]
    figure, grid = canvas(1, len(points), width=5.3 * len(points), height=4.7, sharey=True, squeeze=False)
    axes = grid[0]
    for panel_axes, letter, (name, one) in zip(axes, "ab", points.items(), strict=False):
        _draw_point(panel_axes, one, data["factor"], data["level"])
        panel(panel_axes, letter, rf"{name}: $\alpha={one['alpha']:g}$, $\beta={one['beta']:g}$")
    axes[0].set_ylabel("rms error / its minimum")
    handles = {text: handle for one in axes for handle, text in zip(*one.get_legend_handles_labels(), strict=True)}
    width = f"minimum, and error within a factor {data['factor']:g} of it"
    handles[width] = Line2D([], [], color=GREY, lw=3.5, marker="x", ms=8, mew=2.0, mec=BLACK, solid_capstyle="butt")
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=3 if len(points) > 1 else 2)
    return figure


def _draw_point(axes: Axes, one: dict[str, Any], factor: float, level: float) -> None:
    grid = numbers(one["q_memory"])
    axes.axvspan(*one["interval"], color=(GREY, 0.18), lw=0, label=f"{level:.0%} interval of the fit")
    axes.axvline(one["kernel_slope"], color=BLACK, lw=1.2, label="slope of the true kernel")
    if one["rival"] is not None:
        axes.axvline(one["rival"], color=BLACK, lw=1.2, ls=":", label="another optimum, not rejected")
    for key, colour, marker, told, height in _CURVES:
        error, valley = numbers(one["error"][key]), one["valley"][key]
        axes.plot(grid, error / error.min(), color=colour, marker=marker, ms=3, lw=1.3, label=told)
        axes.plot([valley["low"], valley["high"]], [height, height], color=colour, lw=3.5, solid_capstyle="butt")
        axes.plot(valley["q_memory"], height, marker="x", ms=8, mew=2.0, color=BLACK)
    axes.axhline(factor, color=GREY, lw=0.8, ls=(0, (1, 2)))
    axes.set(xscale="log", xlabel=r"memory exponent held, $q_K$", ylim=_SHOWN, xlim=(grid[0], grid[-1]))
    ticks = [tick for tick in (0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.6, 1.8) if grid[0] <= tick <= grid[-1]]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
