"""Sweep over spectrum, target and ratio path: where a finite window shows the limit, where it cannot, and why."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from rfsim.figures.style import BLACK, EFFECT_COLOURS, GREY, PALE, canvas, panel, plain_span, styled
from rfsim.regimes import memory_exponent
from rfsim.sweep import Cell, sweep, tally

title = "Sweep: what a window shows of the limit"
alt = (
    "Maps of ratio growth against alpha, one for each beta. Cells are coloured by the measured effect of label noise, "
    "preserve, change or destroy, and white where the window cannot decide. Lines are the limit. Marked cells, which "
    "say the opposite of the limit or decide nothing, lie along the lines and where gap and clean risk tie."
)

BETAS = (0.15, 0.3, 0.5)
_LR, _BATCH, _NOISE = 0.1542358173412625, 16, 25.0
_GRIDS = {  # window, alphas, cells in vartheta
    "test": ((20.0, 300.0), (0.4, 0.6), 4),
    "quick": ((30.0, 1e3), (0.3, 0.4, 0.6, 0.75), 9),
    "standard": ((40.0, 1e4), (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8), 18),
    "full": ((40.0, 1e5), (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8), 18),
}
_RANGE = (0.02, 1.55)  # of vartheta; cell centres


def parameters(scale: str) -> dict[str, Any]:
    """What is run."""
    window, alphas, count = _GRIDS[scale]
    betas = {"test": BETAS[1:2], "quick": BETAS[:2]}.get(scale, BETAS)
    return {
        "window": window,
        "alpha": alphas,
        "beta": betas,
        "vartheta": np.linspace(*_RANGE, count),
        "lr": _LR,
        "batch": _BATCH,
        "noise_var": _NOISE,
        "seed": None,
    }


def compute(scale: str) -> dict[str, Any]:
    """All cells, with what was expected, measured and said about each."""
    settings = parameters(scale)
    cells = sweep(
        settings["alpha"],
        settings["beta"],
        settings["vartheta"],
        window=settings["window"],
        lr=_LR,
        batch=_BATCH,
        noise_var=_NOISE,
    )
    return {
        "window": settings["window"],
        "alpha": settings["alpha"],
        "vartheta": settings["vartheta"],
        "maps": [
            {"beta": beta, "cells": [_told(cell) for cell in cells if cell.beta == beta]} for beta in settings["beta"]
        ],
        "tally": tally(cells),
        "blame": {word: sum(cell.blame == word for cell in cells) for word in ("gap", "clean", "line")},
        "expected": sum(
            cell.expected.label == cell.measured.label for cell in cells if cell.expected and cell.measured
        ),
        "cells": len(cells),
    }


def _told(cell: Cell) -> dict[str, Any]:
    return {
        **{key: value for key, value in cell._asdict().items() if key not in ("expected", "measured")},
        "expected": None if cell.expected is None else cell.expected._asdict(),
        "measured": None if cell.measured is None else cell.measured._asdict(),
    }


def caption(data: dict[str, Any]) -> str:
    """How many cells agree, and what holds back the others."""
    counts, blame = data["tally"], data["blame"]
    inside = data["cells"] - counts["outside"]
    return (
        "Effect of label noise on the exponent of the risk when batch/lr grows like T^vartheta, at infinite width. "
        f"Fill: measured on the exact recursion for T in {plain_span(data['window'])}; white: not decided beyond the "
        f"uncertainty of the fits. Lines: the limit. Of {inside} cells {counts['agree']} show the limit, "
        f"{counts['undecided']} are undecided (circles) and {counts['opposite']} say the opposite (crosses). The "
        f"continuum integral over this window, without any fit, expects {data['expected']} of the {inside} measured "
        f"labels. Where the window fails, the gap is far from its limit in {blame['gap']} cells, the clean risk in "
        f"{blame['clean']}, and {blame['line']} lie on a line or where gap and clean risk tie, as they do everywhere "
        "beyond the ceiling if q_F >= q_K (rows without a dashed line). Unstable cells left of the black line count as "
        f"destroyed; grey: no such problem, p <= 0. sigma^2 = {_NOISE:g}."
    )


@styled
def draw(data: dict[str, Any]) -> Figure:
    """One map for each beta."""
    count = len(data["maps"])
    figure, grid = canvas(1, count, width=1.2 + 3.9 * count, height=5.0, sharey=True, squeeze=False)
    alphas, varthetas = np.array(data["alpha"]), np.array(data["vartheta"])
    columns, rows = _edges(varthetas), np.arange(alphas.size + 1) - 0.5
    for axes, letter, one in zip(grid[0], "abc", data["maps"], strict=False):
        for cell in one["cells"]:
            column = int(np.argmin(np.abs(varthetas - cell["vartheta"])))
            row = int(np.argmin(np.abs(alphas - cell["alpha"])))
            measured = cell["measured"]
            colour = PALE if measured is None else EFFECT_COLOURS[measured["label"]]
            axes.fill_between(columns[column : column + 2], rows[row], rows[row + 1], color=colour, alpha=0.75, lw=0)
            mark = {"undecided": "o", "opposite": "x"}.get(cell["verdict"])
            if mark:
                middle = 0.5 * (columns[column] + columns[column + 1])
                axes.plot(middle, row, mark, color=GREY if mark == "o" else BLACK, mfc="none", ms=4.5)
        for row, alpha in enumerate(alphas):  # the limit, row by row
            q_memory = memory_exponent(alpha)
            edge = max(0.0, 1.0 - q_memory)
            q_forcing = (2.0 * alpha + 2.0 * one["beta"] - 1.0) / (2.0 * alpha)
            if q_forcing <= 0.0:
                continue
            axes.plot([edge, edge], rows[row : row + 2], color=BLACK, lw=2.0)
            if q_forcing < q_memory:
                axes.plot([q_forcing + edge] * 2, rows[row : row + 2], color=BLACK, lw=2.0, ls=(0, (2, 1)))
        axes.set(xlim=(columns[0], columns[-1]), ylim=(rows[0], rows[-1]), xlabel=r"growth of the ratio $\vartheta$")
        axes.set_yticks(range(alphas.size), [f"{alpha:g}" for alpha in alphas])
        panel(axes, letter, rf"$\beta={one['beta']:g}$")
    grid[0, 0].set_ylabel(r"$\alpha$")
    handles: list[Any] = [
        Patch(facecolor=EFFECT_COLOURS[name], edgecolor=GREY, alpha=0.75, label=name)
        for name in ("destroy", "change", "preserve", "undecided")
    ]
    handles += [
        Line2D([], [], color=BLACK, lw=2.0, label="limit: destroy line"),
        Line2D([], [], color=BLACK, lw=2.0, ls=(0, (2, 1)), label="limit: change | preserve"),
        Line2D([], [], color=GREY, marker="o", mfc="none", ls="", label="neither the limit nor its opposite"),
        Line2D([], [], color=BLACK, marker="x", ls="", label="opposite of the limit"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=8 if count > 1 else 2)
    return figure


def _edges(centres: np.ndarray) -> np.ndarray:
    """Edges of the cells around evenly spaced centres."""
    half = 0.5 * (centres[1] - centres[0])
    return np.append(centres - half, centres[-1] + half)
