"""Fitted regime: exponents of a fitted law, with their uncertainty, on the map of response exponents."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rfsim.exponents import forcing_exponent, memory_exponent
from rfsim.figures.fit_and_transfer import FITTED, POINTS, experiment, kernel_slope, settings
from rfsim.figures.regime_map import response_regions
from rfsim.figures.style import BLACK, REGIME_COLOURS, VERMILION, canvas, numbers, panel, remarks, styled
from rfsim.regimes import regime
from rfsim.surrogates.placement import placement

title = "Where fitted exponents lie on the regime map"
alt = (
    "Map of forcing against memory exponent with six regimes, and two enlargements. The fitted long-memory and "
    "integrable-memory points lie in the regimes of the true exponents, with small confidence ellipses; "
    "another optimum of the long-memory fit, not rejected, lies in another regime."
)

_LEVEL = 0.95
_Q_END = (1.5, 1.6)  # ends of the map: q_F, q_K
_NAMES = {
    "LM1": (0.17, 0.62),
    "LM2": (0.8, 0.25),
    "LM3": (1.25, 0.4),
    "IM1": (0.25, 1.45),
    "IM2": (1.15, 1.45),
    "IM3": (1.35, 1.12),
}
_MARKS: dict[str, dict[str, Any]] = {
    "fitted": {"marker": "x", "ms": 8, "mec": VERMILION, "mew": 2.0, "ls": "none"},
    "rival": {"marker": "D", "ms": 7, "mfc": "white", "mec": VERMILION, "mew": 1.4, "ls": "none"},
    "limit": {"marker": "o", "ms": 9, "mfc": "white", "mec": BLACK, "mew": 1.2, "ls": "none"},
}


def parameters(scale: str) -> dict[str, Any]:
    """A point of long and one of integrable memory."""
    return {**settings(scale), "points": POINTS, "fitted": FITTED, "level": _LEVEL}


def compute(scale: str) -> dict[str, Any]:
    """Fitted pairs with their confidence regions and the probabilities of the regimes; true exponents."""
    return {
        "points": {name: _placed(name, scale) for name in POINTS},
        "regions": response_regions(),
        "settings": settings(scale),
        "level": _LEVEL,
    }


def _placed(name: str, scale: str) -> dict[str, Any]:
    point, result = POINTS[name], experiment(name, scale).result
    found = placement(result)
    slope, lags = kernel_slope(point, scale)
    alpha, beta = point["alpha"], point["beta"]
    return {
        **point,
        "true_label": regime(alpha, beta).label,
        "true": [forcing_exponent(alpha, beta), memory_exponent(alpha)],
        "kernel_slope": slope,
        "lags": lags,
        "label": found.label,
        "fitted": [found.q_forcing, found.q_memory],
        "stderr": found.stderr,
        "probabilities": found.probabilities,
        "contour": found.contour(_LEVEL),
        "rival": None if found.rival is None else found.rival._asdict(),
        "remarks": [*result.notes(), *found.remarks],
    }


def caption(data: dict[str, Any]) -> str:
    """Fitted and true pairs, and the probability of the true regime."""
    made = data["settings"]
    told = " ".join(_words(name, one) for name, one in data["points"].items())
    return (
        f"Exponents of the forcing-memory law fitted to {' and '.join(FITTED)} (exact dynamics at infinite width, "
        f"{made['steps']} steps, one row in {made['every']}, noise {made['noise']:g}) on the map of response "
        f"exponents, and both points enlarged. Crosses: fitted, with the joint {data['level']:.0%} region of noise and "
        f"scatter; diamonds: other optima that are not rejected, not part of the regions; rings: exponents in the "
        f"limit of long times; bars: q_K of the true kernel over the lags of the run. What the form of the law misses "
        f"is not part of the regions. {told}"
    )


def _words(name: str, one: dict[str, Any]) -> str:
    (q_forcing, q_memory), (error_f, error_k), true = one["fitted"], one["stderr"], one["true"]
    share = one["probabilities"].get(one["true_label"], 0.0)
    return (
        f"{name} (alpha {one['alpha']:g}, beta {one['beta']:g}, lr {one['lr']:g}, batch {one['batch']}): fitted q_F "
        f"{q_forcing:.3f} +- {error_f:.2g}, q_K {q_memory:.3f} +- {error_k:.2g}; true {true[0]:.3f}, {true[1]:.3f}, "
        f"and {one['kernel_slope']:.3f} over lags {one['lags'][0]:g} to {one['lags'][1]:g}; label {one['label']}, true "
        f"label {one['true_label']} with probability {share:.3f}.{remarks(one['remarks'])}"
    )


@styled
def draw(data: dict[str, Any]) -> Figure:
    """The map, and each point enlarged."""
    points = data["points"]
    figure, axes = canvas(1, 1 + len(points), width=4.3 * (1 + len(points)), height=4.8)
    whole, enlarged = axes[0], axes[1:]
    for one_axes in axes:
        _draw_map(one_axes, data["regions"])
        for one in points.values():
            _draw_point(one_axes, one)
    for name, place in _NAMES.items():
        whole.text(*place, name, ha="center", va="center", fontsize=12, weight="bold")
    whole.set(xlim=(0, _Q_END[0]), ylim=(0, _Q_END[1]))
    panel(whole, "a", "response exponents")
    for one_axes, letter, (name, one) in zip(enlarged, "bcdef", points.items(), strict=False):
        x, y = (np.append(numbers(one["contour"][i]), numbers(one["true"])[i]) for i in (0, 1))
        y = np.append(y, one["kernel_slope"])
        half = 0.75 * max(float(np.ptp(x)), float(np.ptp(y)))
        middle = (0.5 * float(x.min() + x.max()), 0.5 * float(y.min() + y.max()))
        one_axes.set(xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half))
        panel(one_axes, letter, f"{name}, in {one['label']}")
    for one_axes in axes:
        one_axes.set(xlabel=r"forcing exponent $q_F$", ylabel=r"memory exponent $q_K$")
    handles = [
        Line2D([], [], label="fitted, with confidence region", **_MARKS["fitted"]),
        Line2D([], [], label="another optimum, not rejected", **_MARKS["rival"]),
        Line2D([], [], label="true, in the limit", **_MARKS["limit"]),
        Line2D([], [], label="true kernel over the lags of the run", color=BLACK, lw=2.0),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


def _draw_map(axes: Axes, regions: dict[str, Any]) -> None:
    for name, corners in regions.items():
        axes.fill(*np.transpose(corners), facecolor=REGIME_COLOURS[name], lw=0)
    end = max(_Q_END)
    axes.axhline(1.0, color=BLACK, lw=1.6)
    axes.plot([0, end], [0, end], color=BLACK, lw=1.1, ls=(0, (5, 3)))
    axes.axvline(1.0, color=BLACK, lw=1.1, ls=(0, (5, 3)))


def _draw_point(axes: Axes, one: dict[str, Any]) -> None:
    x, y = (numbers(part) for part in one["contour"])
    width = 0.12 * max(float(np.ptp(x)), float(np.ptp(y)))
    axes.fill(x, y, facecolor=(VERMILION, 0.3), edgecolor=VERMILION, lw=1.0)
    true = one["true"]
    axes.plot([true[0] - width, true[0] + width], [one["kernel_slope"]] * 2, color=BLACK, lw=2.0)
    if one["rival"] is not None:
        axes.plot(one["rival"]["q_forcing"], one["rival"]["q_memory"], **_MARKS["rival"])
    axes.plot(*true, **_MARKS["limit"])
    axes.plot(*one["fitted"], **_MARKS["fitted"])
