"""One look for all figures: palette, fonts, helpers for axes and legends, and the one function that turns a figure
into bytes.

Nothing here uses pyplot, so drawing neither needs a display nor leaves state behind.
"""

import io
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# eight colours that stay apart for readers with any of the common colour-vision deficiencies (Okabe and Ito 2008)
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY, PALE = "#6b6b6b", "#d9d9d9"

REGIME_COLOURS = {
    "FB1": "#c9c9c9",
    "FB2": "#a9a9a9",
    "LM1": "#bfe3f7",
    "LM2": "#8ecbee",
    "LM3": "#5aa9d6",
    "IM1": "#fbe3b5",
    "IM2": "#f5c76d",
    "IM3": "#e8a33a",
}
EFFECT_COLOURS = {
    "preserve": BLUE,
    "change": ORANGE,
    "destroy": BLACK,
    "undecided": "#ffffff",
}

_LOOK: dict[Any, Any] = {
    "figure.dpi": 100,
    "savefig.dpi": 150,
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": False,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.0,
    "mathtext.fontset": "dejavusans",
    "pdf.fonttype": 42,
    "svg.hashsalt": "rfsim",
}


def styled(draw: Callable[[dict[str, Any]], Figure]) -> Callable[[dict[str, Any]], Figure]:
    """Decorator: run a drawing function under the common look, whatever the reader's matplotlib settings are."""

    @wraps(draw)
    def under_look(data: dict[str, Any]) -> Figure:
        with mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams.update(_LOOK)
            return draw(data)

    return under_look


def canvas(rows: int, columns: int, *, width: float, height: float, **layout: Any) -> tuple[Figure, Any]:
    """A figure of `width` x `height` inches with a grid of axes (rows, columns), squeezed as in matplotlib."""
    figure = Figure(figsize=(width, height))
    return figure, figure.subplots(rows, columns, **layout)


def panel(axes: Axes, letter: str, text: str) -> None:
    """Title of a panel: a bold letter and a few words, flush left."""
    axes.set_title(rf"$\bf{{({letter})}}$ {text}", loc="left")


def numbers(values: Sequence[Any]) -> np.ndarray:
    """Values of a side file as a float64 array; null (not finite) becomes NaN, which matplotlib leaves out."""
    return np.array(values, dtype=np.float64)


def remarks(lines: Sequence[str]) -> str:
    """What a reader has to know, as the end of a caption; empty if there is nothing."""
    return f" To be kept in mind: {'; '.join(lines)}." if lines else ""


def span(ends: Sequence[float]) -> str:
    """An interval for a label, with powers of ten set as such."""
    return "[" + ", ".join(_power(end, r"$10^{{{}}}$") for end in ends) + "]"


def plain_span(ends: Sequence[float]) -> str:
    """An interval for a sentence of plain text."""
    return "[" + ", ".join(_power(end, "10^{}") for end in ends) + "]"


def _power(value: float, pattern: str) -> str:
    exponent = round(float(np.log10(value)))
    return pattern.format(exponent) if exponent >= 4 and value == 10.0**exponent else f"{value:g}"


def power_guide(
    axes: Axes, start: float, stop: float, level: float, exponent: float, text: str, *, at_start: bool = False
) -> None:
    """Dotted guide level (x / start)^-exponent from `start` to `stop`; its text begins above the middle or start."""
    x = np.array([start, stop])
    axes.plot(x, level * (x / start) ** -exponent, ls=":", lw=1.3, color=GREY, zorder=1)
    place = start if at_start else float(np.sqrt(start * stop))
    axes.annotate(
        text,
        (place, level * (place / start) ** -exponent),
        xytext=(4, 5) if at_start else (3, 4),
        textcoords="offset points",
        va="bottom",
        ha="left",
        color=GREY,
        fontsize=9,
    )


def image(figure: Figure, kind: str) -> bytes:
    """The figure as the bytes of a "png" or "pdf" file, the same every time: no date and no program name inside."""
    empty = {"png": {"Software": None}, "pdf": {"Creator": None, "Producer": None, "CreationDate": None}}[kind]
    buffer = io.BytesIO()
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_LOOK)
        figure.savefig(buffer, format=kind, metadata=empty)
    return buffer.getvalue()
