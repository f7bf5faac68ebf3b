"""Regime map: the plane of response exponents and the plane of spectrum parameters, with exponents measured on exact
dynamics.

A point is placed twice: where the closed forms put it, and where exponents fitted to exact curves put it. Forcing is
the curve of the exact recursion; memory is what is left of the noise of the first step at every later one.
"""

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rfsim.exponents import forcing_exponent, memory_exponent
from rfsim.figures.style import BLACK, GREY, PALE, REGIME_COLOURS, VERMILION, canvas, panel, styled
from rfsim.measure import fit_exponent
from rfsim.problems import power_law
from rfsim.propagation import propagation
from rfsim.regimes import EXAMPLES, classify_grid, regime, regime_from_exponents
from rfsim.routes import recursion
from rfsim.schedules import constant
from rfsim.sources.population import population

title = "Regimes of joint schedules"
alt = (
    "Two maps. Left, forcing exponent against memory exponent with six regimes; right, spectrum decay against target "
    "decay with eight regimes and an excluded corner. Measured points lie on their closed-form positions."
)

POINTS = EXAMPLES
_AMBIENT = 2**200  # finite bulk: an ambient dimension far beyond what the window can see, never laid out as an array
_Q_END = (2.1, 2.0)  # ends of the response plane: q_F, q_K
# where the names of the regimes stand, out of the way of lines and points
_RESPONSE_NAMES = {
    "LM1": (0.17, 0.62),
    "LM2": (0.72, 0.3),
    "LM3": (1.75, 0.42),
    "IM1": (0.45, 1.62),
    "IM2": (1.22, 1.72),
    "IM3": (1.75, 1.2),
}
_POWER_LAW_NAMES = {
    "FB1": (0.175, 0.46),
    "FB2": (0.125, 0.95),
    "LM1": (0.445, 0.17),
    "LM2": (0.335, 0.455),
    "LM3": (0.375, 0.95),
    "IM1": (0.9, 0.2),
    "IM2": (0.98, 0.68),
    "IM3": (0.66, 1.06),
}
_ALPHA_END, _BETA_ENDS = 1.2, (-0.3, 1.2)


def parameters(scale: str) -> dict[str, Any]:
    """What is run: a long window of exact dynamics at infinite width."""
    last = {"test": 500.0, "quick": 3e3, "standard": 3e4, "full": 3e5}[scale]
    return {"window": [last / 100.0, last], "lr": 0.1, "batch": 16, "points": POINTS, "seed": None}


def compute(scale: str) -> dict[str, Any]:
    """Regions, and closed-form and measured places of the points."""
    settings = parameters(scale)
    window = tuple(settings["window"])
    placed = [_place(name, *point, window, settings["lr"], settings["batch"]) for name, point in POINTS.items()]
    return {"window": window, "response": response_regions(), "power_law": _power_law_regions(), "points": placed}


def _place(name: str, alpha: float, beta: float, window: tuple[float, float], lr: float, batch: int) -> dict[str, Any]:
    """Exponents of one point in closed form and as fitted to exact curves over the window."""
    found: dict[str, Any] = {"name": name, "alpha": alpha, "beta": beta, "label": regime(alpha, beta).label}
    q_forcing, q_memory = forcing_exponent(alpha, beta), memory_exponent(alpha)
    if found["label"].startswith("FB"):  # no power law of memory; forcing alone, by gradient descent
        source = population(power_law(alpha, beta).replace(ambient=_AMBIENT))
        steps = int(np.ceil(window[1] / lr)) + 1
        at = np.unique(np.rint(np.geomspace(window[0], window[1], 300) / lr).astype(int))
        # gradient noise is switched off: at this ambient dimension no batch would be stable
        curve = recursion.risk(source, constant(steps, lr, np.inf), at=at)
        fit = fit_exponent(curve.intrinsic_time, curve.forcing)
        measured = {"q_forcing": fit.exponent, "q_memory": None}
        errors = {"q_forcing": fit.uncertainty, "q_memory": None}
        place = (alpha, _beta(alpha, fit.exponent))
        read_off = None
        q_memory_told = None
    else:
        source = population(power_law(alpha, beta))
        vartheta = 1.0 if alpha < 0.5 else 0.0  # a constant ratio has no bounded risk in long memory
        both = [
            propagation(
                source, lr=lr, batch=batch, vartheta=vartheta, window=window, quantity=quantity, alpha=alpha, beta=beta
            )
            for quantity in ("forcing", "memory")
        ]
        measured = {"q_forcing": both[0].measured, "q_memory": both[1].measured}
        errors = {"q_forcing": both[0].uncertainty, "q_memory": both[1].uncertainty}
        alpha_read = 0.5 / (2.0 - both[1].measured)
        place = (alpha_read, _beta(alpha_read, both[0].measured))
        read_off = regime_from_exponents(both[0].measured, both[1].measured).label
        q_memory_told = q_memory
    return {
        **found,
        "closed": {"q_forcing": q_forcing, "q_memory": q_memory_told},
        "measured": measured,
        "uncertainty": errors,
        "measured_place": place,
        "label_from_measured": read_off,
    }


def _beta(alpha: float, q_forcing: float) -> float:
    """The target exponent that has this forcing exponent."""
    return 0.5 * (1.0 + 2.0 * alpha * (q_forcing - 1.0))


def response_regions() -> dict[str, Any]:
    """Polygons of the six regimes that have response exponents, (corners, 2) each."""
    right, top = _Q_END
    return {
        "LM1": [[0, 0], [1, 1], [0, 1]],
        "LM2": [[0, 0], [1, 0], [1, 1]],
        "LM3": [[1, 0], [right, 0], [right, 1], [1, 1]],
        "IM1": [[0, 1], [1, 1], [1, top], [0, top]],
        "IM2": [[1, 1], [top, top], [1, top]],
        "IM3": [[1, 1], [right, 1], [right, top], [top, top]],
    }


def _power_law_regions() -> dict[str, Any]:
    """Polygons of the eight regimes in (alpha, beta), and the corner where the target has infinite energy."""
    right, (low, high) = _ALPHA_END, _BETA_ENDS
    return {
        "FB1": [[0, 0.5], [0.25, 0.25], [0.25, 0.5]],
        "FB2": [[0, 0.5], [0.25, 0.5], [0.25, high], [0, high]],
        "LM1": [[0.25, 0.25], [0.5, 0.0], [0.5, 0.5]],
        "LM2": [[0.25, 0.25], [0.5, 0.5], [0.25, 0.5]],
        "LM3": [[0.25, 0.5], [0.5, 0.5], [0.5, high], [0.25, high]],
        "IM1": [[0.5, 0.0], [0.5 - low, low], [right, low], [right, 0.5], [0.5, 0.5]],
        "IM2": [[0.5, 0.5], [right, 0.5], [right, right]],
        "IM3": [[0.5, 0.5], [high, high], [0.5, high]],
        "excluded": [[0, low], [0.5 - low, low], [0, 0.5]],
    }


def region_labels(regions: dict[str, Any]) -> dict[str, str]:
    """For every polygon in (alpha, beta), the label that the closed form gives to the mean of its corners."""
    centres = np.array([np.mean(corners, axis=0) for corners in regions.values()])
    return dict(zip(regions, classify_grid(centres[:, 0], centres[:, 1]).tolist(), strict=True))


def _deviation(point: dict[str, Any], key: str) -> float:
    return abs(point["measured"][key] - point["closed"][key])


def caption(data: dict[str, Any]) -> str:
    """What was measured and how far it lies from the closed form."""
    known = [point for point in data["points"] if point["measured"]["q_memory"] is not None]
    bulk = [point for point in data["points"] if point["measured"]["q_memory"] is None]
    off = {key: max(known, key=partial(_deviation, key=key)) for key in ("q_forcing", "q_memory")}
    told = [
        f"{name} {point['measured'][key] - point['closed'][key]:+.1e} ({point['name']})"
        for name, key, point in (("q_F", "q_forcing", off["q_forcing"]), ("q_K", "q_memory", off["q_memory"]))
    ]
    right = sum(point["label_from_measured"] == point["label"] for point in known)
    bulk_off = max(abs(point["measured"]["q_forcing"] - point["closed"]["q_forcing"]) for point in bulk)
    first, last = data["window"]
    return (
        "(a) The six regimes that have both response exponents: long memory (LM, q_K < 1) and integrable memory (IM, "
        "q_K > 1), ordered 1 to 3 by where q_F stands relative to 1 and q_K. (b) All eight regimes in the spectrum "
        "exponent alpha and the target exponent beta; finite bulk (FB) has no width-independent memory exponent, and "
        "in the hatched corner the target has infinite energy. Circles: closed form. Crosses: exponents fitted to "
        f"exact curves at infinite width over T in [{first:g}, {last:g}]; largest deviations {told[0]} and {told[1]}. "
        f"The regime read off the measured pair is the predicted one at {right} of {len(known)} points. FB points: "
        f"forcing exponent only, at most {bulk_off:.1e} off, drawn at their known alpha."
    )


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Both planes."""
    figure, (left, right) = canvas(1, 2, width=10.6, height=5.2)
    for axes, regions in ((left, data["response"]), (right, data["power_law"])):
        for name, corners in regions.items():
            if name == "excluded":
                axes.fill(*np.transpose(corners), facecolor="white", edgecolor=PALE, hatch="////", lw=0)
            else:
                axes.fill(*np.transpose(corners), facecolor=REGIME_COLOURS[name], lw=0)
    solid: dict[str, Any] = {"color": BLACK, "lw": 1.6}
    dashed: dict[str, Any] = {"color": BLACK, "lw": 1.1, "ls": (0, (5, 3))}
    q_end, top = _Q_END
    left.axhline(1.0, **solid)
    left.plot([0, top], [0, top], **dashed)
    left.axvline(1.0, **dashed)
    low, high = _BETA_ENDS
    for alpha in (0.25, 0.5):
        right.plot([alpha, alpha], [0.5 - alpha, high], **solid)
    right.plot([0, 0.5 - low], [0.5, low], color=GREY, lw=1.2)
    right.plot([0, _ALPHA_END], [0.5, 0.5], **dashed)
    right.plot([0.25, _ALPHA_END], [0.25, _ALPHA_END], **dashed)

    for name, place in _RESPONSE_NAMES.items():
        left.text(*place, name, ha="center", va="center", fontsize=13, weight="bold")
    for name, place in _POWER_LAW_NAMES.items():
        size = 9.5 if name in ("LM1", "LM2", "FB1") else 12
        right.text(*place, name, ha="center", va="center", fontsize=size, weight="bold")
    right.text(0.25, -0.05, "target energy\ninfinite", ha="center", va="center", color=GREY, fontsize=9)
    line: dict[str, Any] = {"fontsize": 8.5, "color": BLACK, "va": "bottom"}
    left.text(q_end - 0.02, 1.01, r"$q_K=1$", ha="right", **line)
    left.text(0.985, 0.05, r"$q_F=1$", ha="right", rotation=90, **line)
    left.text(1.66, 1.69, r"$q_F=q_K$", ha="center", rotation=45, rotation_mode="anchor", **line)
    right.text(1.19, 0.505, r"$\beta=1/2$", ha="right", **line)
    right.text(0.8, 0.815, r"$\beta=\alpha$", ha="center", rotation=45, rotation_mode="anchor", **line)
    right.text(0.245, 1.18, r"$\alpha=1/4$", ha="right", rotation=90, fontsize=8.5, va="top")
    right.text(0.495, 1.18, r"$\alpha=1/2$", ha="right", rotation=90, fontsize=8.5, va="top")

    ring: dict[str, Any] = {"marker": "o", "ms": 9, "mfc": "white", "mec": BLACK, "mew": 1.1, "ls": "none"}
    cross: dict[str, Any] = {"marker": "x", "ms": 6, "mec": VERMILION, "mew": 1.8, "ls": "none"}
    for point in data["points"]:
        closed, measured = point["closed"], point["measured"]
        if measured["q_memory"] is not None:
            left.plot(closed["q_forcing"], closed["q_memory"], **ring)
            left.plot(measured["q_forcing"], measured["q_memory"], **cross)
        right.plot(point["alpha"], point["beta"], **ring)
        right.plot(*point["measured_place"], **cross)
    handles = [Line2D([], [], label="closed form", **ring), Line2D([], [], label="measured on exact curves", **cross)]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)

    panel(left, "a", "response exponents")
    left.set(xlim=(0, q_end), ylim=(0, top), xlabel=r"forcing exponent $q_F$", ylabel=r"memory exponent $q_K$")
    panel(right, "b", "spectrum and target")
    right.set(
        xlim=(0, _ALPHA_END),
        ylim=_BETA_ENDS,
        xlabel=r"spectrum exponent $\alpha$   ($\lambda_j=j^{-2\alpha}$)",
        ylabel=r"target exponent $\beta$   ($\theta^*_j=j^{-\beta}$)",
    )
    return figure
