"""Gap exponent against vartheta, for long and integrable memory: measured, for the same window, and in the limit."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from rfsim.continuum import accumulate, time_grid
from rfsim.figures.style import BLACK, BLUE, GREY, PALE, VERMILION, canvas, numbers, panel, plain_span, span, styled
from rfsim.gap_laws import gap_law
from rfsim.measure import fit_exponent
from rfsim.problems import power_law
from rfsim.propagation import propagation
from rfsim.regimes import memory_exponent
from rfsim.sources.population import population
from rfsim.spectra import Spectrum

title = "Gap exponent against the growth of batch/lr"
alt = (
    "Two panels, long and integrable memory. Measured gap exponents lie on the curve predicted for their window; "
    "before the kink of the limit both stay below it, and a later window comes closer."
)

POINTS = {"LM": (0.4, 0.3), "IM": (0.6, 0.2)}
NAMES = {"LM": "long memory", "IM": "integrable memory"}
_LR, _BATCH, _NOISE = 0.1542358173412625, 16, 25.0
_VARTHETA = {
    "test": {"LM": (0.35, 0.8), "IM": (0.5, 1.35)},
    "quick": {"LM": (0.35, 0.5, 0.65, 0.8, 0.95, 1.25), "IM": (0.25, 0.5, 0.75, 1.0, 1.35)},
    "standard": {
        "LM": (0.1, 0.25, 0.35, 0.5, 0.65, 0.8, 0.95, 1.1, 1.25, 1.5),
        "IM": (0.0, 0.25, 0.5, 0.75, 1.0, 1.2, 1.35, 1.5),
    },
}
_VARTHETA["full"] = _VARTHETA["standard"]
_RANGE = {"LM": (0.0, 1.6), "IM": (-0.15, 1.6)}


def parameters(scale: str) -> dict[str, Any]:
    """What is run: a constant lr and a batch that grows with intrinsic time, at infinite width."""
    return {
        "points": POINTS,
        "lr": _LR,
        "batch": _BATCH,
        "noise_var": _NOISE,
        "window": [40.0, 1e3 if scale == "test" else 1e4],
        "late_window": [1e6, 1e8],
        "vartheta": _VARTHETA[scale],
        "curve_points": {"test": 7, "quick": 33, "standard": 65, "full": 129}[scale],
        "seed": None,
    }


def compute(scale: str) -> dict[str, Any]:
    """Measured points, finite-window curves for two windows, and the limit."""
    settings = parameters(scale)
    return {
        "window": settings["window"],
        "late_window": settings["late_window"],
        "memory": {name: _memory(name, settings) for name in POINTS},
    }


def _memory(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    alpha, beta = POINTS[name]
    source = population(power_law(alpha, beta, noise_var=_NOISE))
    points = [
        propagation(
            source,
            lr=_LR,
            batch=_BATCH,
            vartheta=vartheta,
            window=tuple(settings["window"]),
            alpha=alpha,
            beta=beta,
            allow_unstable=True,
        )
        for vartheta in settings["vartheta"][name]
    ]
    q_memory = memory_exponent(alpha)
    edge = max(0.0, 1.0 - q_memory)
    corners = (edge, edge + q_memory, _RANGE[name][1])
    dense = np.linspace(*_RANGE[name], settings["curve_points"])
    return {
        "alpha": alpha,
        "beta": beta,
        "q_memory": q_memory,
        "edge": edge,
        "vartheta": list(settings["vartheta"][name]),
        "measured": [point.measured for point in points],
        "uncertainty": [point.uncertainty for point in points],
        "finite_window": [point.finite_window for point in points],
        "limit": [point.limit for point in points],
        "curve_vartheta": dense,
        "curve": [window_exponent(source, vartheta, tuple(settings["window"])) for vartheta in dense],
        "late_curve": [window_exponent(source, vartheta, tuple(settings["late_window"])) for vartheta in dense],
        "limit_line": [[corner, gap_law(q_memory, corner).exponent] for corner in corners],
    }


def window_exponent(source: Spectrum, vartheta: float, window: tuple[float, float]) -> float:
    """Slope over the window of the noise accumulated under r = (batch/lr) (1 + T)^vartheta, without feedback."""
    grid = time_grid(window[1])
    noise = accumulate(source, grid, _NOISE, _BATCH / _LR * (1.0 + grid) ** vartheta)
    return fit_exponent(grid[1:], noise[1:], window=window).exponent


def caption(data: dict[str, Any]) -> str:
    """How far measurement and window prediction differ, and both from the limit."""
    told = []
    for name, found in data["memory"].items():
        measured, predicted, limit = (numbers(found[key]) for key in ("measured", "finite_window", "limit"))
        stable = np.isfinite(limit)
        told.append(
            f"{NAMES[name]} (alpha = {found['alpha']:g}, q_K = {found['q_memory']:.4g}): measured and window "
            f"prediction differ by at most {np.max(np.abs(measured - predicted)[stable]):.4f}, measured and limit by "
            f"up to {np.max(np.abs(measured - limit)[stable]):.3f}"
        )
    window, late_window = plain_span(data["window"]), plain_span(data["late_window"])
    return (
        "Exponent of the gap (what label noise adds to the risk) when batch/lr grows like T^vartheta at infinite "
        f"width. Points: fitted to the exact recursion over T in {window}; bars: how far a local exponent inside the "
        "window may lie from the fit. Blue: slope of the continuum integral over the same window, and dashed over "
        f"{late_window}. Black: the limit. Shaded: growing row mass, where no limit exists and the integral leaves "
        f"out the feedback. {'. '.join(told)}. A constant lr {_LR:.4g}, first batch {_BATCH}, sigma^2 = {_NOISE:g}."
    )


@styled
def draw(data: dict[str, Any]) -> Figure:
    """One panel per kind of memory."""
    figure, panels = canvas(1, 2, width=10.6, height=4.6)
    for axes, letter, (name, found) in zip(panels, "ab", data["memory"].items(), strict=True):
        dense = numbers(found["curve_vartheta"])
        axes.axvspan(dense[0], found["edge"], color=PALE, lw=0)
        axes.axhline(0.0, color=GREY, lw=0.7)
        axes.axhline(found["q_memory"], color=GREY, lw=0.9, ls=":")
        axes.annotate(
            rf"memory ceiling $q_K={found['q_memory']:.3g}$",
            (dense[0], found["q_memory"]),
            xytext=(6, 3),
            textcoords="offset points",
            fontsize=9,
            color=GREY,
        )
        axes.plot(*np.transpose(found["limit_line"]), color=BLACK, lw=1.4, label="limit")
        early, late = span(data["window"]), span(data["late_window"])
        axes.plot(dense, numbers(found["curve"]), color=BLUE, label=f"predicted for T in {early}")
        axes.plot(
            dense,
            numbers(found["late_curve"]),
            color=BLUE,
            lw=1.1,
            ls=(0, (5, 2)),
            label=f"predicted for T in {late}",
        )
        axes.errorbar(
            numbers(found["vartheta"]),
            numbers(found["measured"]),
            yerr=numbers(found["uncertainty"]),
            fmt="o",
            color=VERMILION,
            ms=4.5,
            lw=1.2,
            capsize=2.5,
            label=f"measured for T in {early}",
            zorder=3,
        )
        axes.set(
            xlim=(dense[0], dense[-1]),
            ylim=(-0.25, found["q_memory"] * 1.18),
            xlabel=r"growth of the ratio $\vartheta$   ($B/\eta\sim T^{\vartheta}$)",
            ylabel=r"gap exponent $q_N$   (gap $\sim T^{-q_N}$)",
        )
        panel(axes, letter, f"{NAMES[name]}: " + rf"$\alpha={found['alpha']:g}$, $q_K={found['q_memory']:.3g}$")
        if found["edge"] > 0.0:
            axes.text(
                found["edge"] / 2,
                0.5 * found["q_memory"],
                "row mass grows",
                rotation=90,
                ha="center",
                va="center",
                color=GREY,
            )
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure
