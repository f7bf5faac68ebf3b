"""Finite bulk: the memory is flat at first, so the gap follows the integral of lr/batch: linear, log, bounded."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rfsim.continuum import accumulate, memory_profile, time_grid
from rfsim.figures.style import BLACK, BLUE, GREEN, GREY, PALE, VERMILION, canvas, numbers, panel, styled
from rfsim.figures.width_gap import padded
from rfsim.problems import power_law
from rfsim.routes import recursion
from rfsim.schedules import log_spaced_steps, power
from rfsim.sources.equivalent import equivalent
from rfsim.spectra import Spectrum

title = "Gap in the finite bulk under three ratio paths"
alt = (
    "Four log-log panels of the noisy-clean gap against intrinsic time, two finite-bulk points at width 512 and at an "
    "enormous width. At width 512 the exact gap lies on the continuum prediction and well below the flat-memory law. "
    "At the enormous width the flat-memory laws are followed over the early window: linear, logarithmic, saturating."
)

POINTS = {"FB1": (0.2, 0.4), "FB2": (0.12, 0.65)}
VARTHETAS = (0.0, 1.0, 2.0)
SHAPES = {0.0: "linear", 1.0: "logarithmic", 2.0: "saturating"}
_BULK_LR, _BATCH, _NOISE = 0.8, 16, 25.0
_SIZES = {"test": (64, 10**6), "quick": (512, 10**15), "standard": (512, 10**15), "full": (512, 10**15)}
_FLAT = 0.01  # share of M^(2 alpha) up to which the memory is flat to a tenth
_END = 0.3  # share of M^(2 alpha) at which the wide panels end


def parameters(scale: str) -> dict[str, Any]:
    """What is run: v = 2 M, lr .8 M^(2 alpha - 1), batches ceil(16 (1 + T)^vartheta), T <= 2 M^(2 alpha)/log M."""
    width, wide = _SIZES[scale]
    return {
        "points": POINTS,
        "vartheta": VARTHETAS,
        "width": width,
        "wide": wide,
        "lr": {name: rate(alpha, width) for name, (alpha, _) in POINTS.items()},
        "steps": {name: steps(alpha, width) for name, (alpha, _) in POINTS.items()},
        "batch": _BATCH,
        "noise_var": _NOISE,
        "seed": None,
    }


def rate(alpha: float, width: int) -> float:
    """Constant lr, of the order of the largest admissible one."""
    return _BULK_LR * float(width) ** (2.0 * alpha - 1.0)


def steps(alpha: float, width: int) -> int:
    """Steps of the window T <= 2 M^(2 alpha)/log M."""
    return int(2.0 * float(width) ** (2.0 * alpha) / float(np.log(width)) / rate(alpha, width))


def injected(vartheta: float, time: np.ndarray) -> np.ndarray:
    """Integral of (1 + u)^-vartheta over 0 < u < T: T, log(1 + T), or T/(1 + T)."""
    return {0.0: time, 1.0: np.log1p(time), 2.0: time / (1.0 + time)}[vartheta]


def compute(scale: str) -> dict[str, Any]:
    """The exact gap on the deterministic equivalent, its continuum prediction, and the flat-memory law."""
    settings = parameters(scale)
    points = {}
    for name, (alpha, beta) in POINTS.items():
        ours, wide = (
            padded(equivalent(power_law(alpha, beta, ambient=2 * size, noise_var=_NOISE), size))
            for size in (settings["width"], settings["wide"])
        )
        points[name] = {
            "alpha": alpha,
            "beta": beta,
            "scale": float(settings["width"]) ** (2.0 * alpha),
            "wide_scale": float(settings["wide"]) ** (2.0 * alpha),
            "rows": [_row(ours, settings["lr"][name], settings["steps"][name], vartheta) for vartheta in VARTHETAS],
            "wide_rows": [_wide(wide, alpha, settings["wide"], vartheta) for vartheta in VARTHETAS],
        }
    return {"width": settings["width"], "wide": settings["wide"], "points": points}


def _row(spectrum: Spectrum, lr: float, count: int, vartheta: float) -> dict[str, Any]:
    curve = recursion.risk(spectrum, power(count, lr, _BATCH, vartheta=vartheta), at=log_spaced_steps(count, 40))
    time = np.asarray(curve.intrinsic_time)[1:]
    gap, flat = _continuum(spectrum, lr, float(time[-1]), vartheta, time)
    return {
        "vartheta": vartheta,
        "time": time,
        "gap": np.asarray(curve.gap)[1:],
        "centred": np.asarray(curve.risk - curve.floor)[1:],
        "continuum": gap,
        "flat": flat,
    }


def _wide(spectrum: Spectrum, alpha: float, width: int, vartheta: float) -> dict[str, Any]:
    lr, scale = rate(alpha, width), float(width) ** (2.0 * alpha)
    time = np.geomspace(1e-2, _END * scale, 121)
    gap, flat = _continuum(spectrum, lr, float(time[-1]), vartheta, time)
    share = float(np.exp(np.interp(np.log(_FLAT * scale), np.log(time), np.log(gap / flat))))
    return {"vartheta": vartheta, "time": time, "continuum": gap, "flat": flat, "flat_share": share}


def _continuum(
    spectrum: Spectrum, lr: float, last: float, vartheta: float, time: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gap of the continuum with feedback, and sigma^2 k(0) times the integral of lr/batch, (k,) each."""
    grid = time_grid(last, 3000)
    gap = accumulate(spectrum, grid, _NOISE, _BATCH / lr * (1.0 + grid) ** vartheta, feedback=True)
    start = float(memory_profile(spectrum, [0.0])[0])
    return np.interp(time, grid, gap), _NOISE * start * lr / _BATCH * injected(vartheta, time)


def caption(data: dict[str, Any]) -> str:
    """How well the continuum and the flat memory describe the gap."""
    told = []
    for name, point in data["points"].items():
        apart = max(abs(row["gap"][-1] / row["continuum"][-1] - 1.0) for row in point["rows"])
        flat = [row["gap"][-1] / row["flat"][-1] for row in point["rows"]]
        wide = [row["flat_share"] for row in point["wide_rows"]]
        told.append(
            f"{name} (alpha = {point['alpha']:g}, beta = {point['beta']:g}): at the end of the window the exact gap is "
            f"within {100 * apart:.1f} % of the continuum and {min(flat):.2f} to {max(flat):.2f} of the flat law; at "
            f"the great width and T = {_FLAT:g} M^(2 alpha) {min(wide):.2f} to {max(wide):.2f} of it"
        )
    return (
        "What label noise adds to the risk when batch/lr grows like (1 + T)^vartheta, in the finite bulk. Top: width "
        f"{data['width']}, ambient twice that, on the deterministic equivalent; dots: exact recursion with batches "
        f"{_BATCH} (1 + T)^vartheta rounded up and lr {_BULK_LR:g} M^(2 alpha - 1); solid: continuum integral with "
        f"feedback, no fit; dotted: flat memory, sigma^2 k(0) times the integral of lr/batch. T is hardly beyond 1 "
        f"there, and the memory has already faded. Bottom: width 10^{_decade(data)}, where 1 << T << M^(2 alpha) has "
        f"room: the gap follows the flat law, linear, logarithmic or saturating for vartheta 0, 1, 2, and leaves it "
        f"when the memory fades (shaded: T beyond {_FLAT:g} M^(2 alpha)). {'. '.join(told)}. "
        f"sigma^2 = {_NOISE:g}."
    )


def _decade(data: dict[str, Any]) -> int:
    """The great width as a power of ten."""
    return round(float(np.log10(data["wide"])))


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Columns: points; rows: width of the experiments, great width."""
    figure, grid = canvas(2, 2, width=10.6, height=8.0)
    letters = iter("abcd")
    colours = dict(zip(VARTHETAS, (VERMILION, BLUE, GREEN), strict=True))
    for axes, (name, point) in zip(grid[0], data["points"].items(), strict=True):
        for row in point["rows"]:
            time, colour = numbers(row["time"]), colours[row["vartheta"]]
            axes.plot(time, numbers(row["flat"]), ls=":", lw=1.3, color=colour)
            axes.plot(time, numbers(row["continuum"]), color=colour, label=rf"$\vartheta={row['vartheta']:g}$")
            axes.plot(time, numbers(row["gap"]), "o", color=colour, mfc="white", ms=4.0)
        axes.axvspan(_FLAT * point["scale"], time[-1] * 1.15, color=PALE, alpha=0.5, lw=0, zorder=0)
        axes.set(xscale="log", yscale="log", xlim=(time[0] * 0.9, time[-1] * 1.15), xlabel="intrinsic time T")
        panel(axes, next(letters), rf"{name}, $\alpha={point['alpha']:g}$: width {data['width']}")
        axes.legend(loc="lower right")
    for axes, (name, point) in zip(grid[1], data["points"].items(), strict=True):
        for row in point["wide_rows"]:
            time, colour = numbers(row["time"]), colours[row["vartheta"]]
            axes.plot(time, numbers(row["flat"]), ls=":", lw=1.3, color=colour)
            label = rf"$\vartheta={row['vartheta']:g}$: {SHAPES[row['vartheta']]}"
            axes.plot(time, numbers(row["continuum"]), color=colour, label=label)
        axes.axvspan(_FLAT * point["wide_scale"], time[-1], color=PALE, alpha=0.5, lw=0, zorder=0)
        axes.set(xscale="log", yscale="log", xlim=(time[0], time[-1]), xlabel="intrinsic time T")
        axes.legend(loc="upper left")
        panel(axes, next(letters), rf"{name}, $\alpha={point['alpha']:g}$: width $10^{{{_decade(data)}}}$")
    for axes in grid[:, 0]:
        axes.set_ylabel("gap, noisy - clean")
    handles = [
        Line2D([], [], color=GREY, marker="o", mfc="white", ls="", label="exact recursion"),
        Line2D([], [], color=GREY, label="continuum with feedback"),
        Line2D([], [], color=GREY, ls=":", label=r"flat memory, $\propto\int du/r$"),
        Line2D([], [], color=BLACK, lw=6, alpha=0.12, label=rf"$T>{_FLAT:g}\,M^{{2\alpha}}$: memory fades"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure
