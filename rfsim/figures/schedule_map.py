"""Schedule map: does label noise under r ~ T^vartheta preserve, change or destroy the exponent q_0 of the clean risk?

Every point is decided twice. Predicted: the closed form in the limit. Measured: from the exponents of gap and
gap/clean over a finite window, on exact dynamics at infinite width, or on SGD. Finite windows disagree with the limit
near the lines; the map shows where.
"""

from typing import Any

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from rfsim.continuum import accumulate, forcing_profile, time_grid
from rfsim.figures.slopes import sampled_slope, slope_weights
from rfsim.figures.style import BLACK, EFFECT_COLOURS, GREY, PALE, canvas, numbers, panel, plain_span, styled
from rfsim.gap_laws import gap_law, schedule_effect
from rfsim.measure import fit_exponent
from rfsim.problems import power_law
from rfsim.regimes import memory_exponent
from rfsim.routes import recursion
from rfsim.routes.montecarlo import simulate
from rfsim.schedules import power
from rfsim.sources.population import population
from rfsim.spectra import Spectrum, spectrum
from rfsim.sweep import Decision, decide

title = "Preserve, change or destroy"
alt = (
    "Two maps, long and integrable memory, of ratio growth against clean exponent. A grey strip is unstable, a "
    "vertical line destroys, above a rising and then flat curve noise changes the exponent and below it preserves it. "
    "Points of exact dynamics and of SGD are filled by what was measured and rimmed by what was predicted."
)

ALPHA = {"LM": 0.4, "IM": 0.6}
NAMES = {"LM": "long memory", "IM": "integrable memory"}
EFFECTS = ("preserve", "change", "destroy")
_LR, _BATCH, _NOISE = 0.1542358173412625, 16, 25.0
_RANGE = {"LM": ((0.0, 1.7), (0.0, 0.95)), "IM": ((-0.3, 1.8), (0.0, 1.4))}
_VARTHETA = {"LM": (0.1, 0.25, 0.5, 0.8, 1.1, 1.5), "IM": (-0.15, 0.0, 0.4, 0.8, 1.2, 1.6)}
_CLEAN = {"LM": (0.15, 0.35, 0.5, 0.65), "IM": (0.2, 0.5, 0.75, 1.0)}
_SAMPLED = {  # (vartheta, q_0) of the points decided by SGD
    "LM": ((0.15, 0.58), (0.38, 0.58), (0.65, 0.58), (0.65, 0.08), (0.95, 0.25), (1.3, 0.25)),
    "IM": ((-0.1, 0.65), (0.2, 0.65), (0.6, 0.92), (0.6, 0.1), (1.0, 0.35), (1.4, 0.35)),
}
_SIZES = {  # window of the exact points; width, window and runs of SGD, per memory
    "test": ((10.0, 200.0), {"LM": (96, (1.0, 10.0), 16), "IM": (96, (1.0, 20.0), 16)}),
    "quick": ((30.0, 3e3), {"LM": (768, (4.0, 40.0), 64), "IM": (768, (5.0, 100.0), 64)}),
    "standard": ((300.0, 3e4), {"LM": (3072, (6.0, 80.0), 128), "IM": (1024, (6.0, 200.0), 128)}),
    "full": ((1e3, 1e5), {"LM": (16384, (8.0, 240.0), 128), "IM": (4096, (8.0, 900.0), 128)}),
}


def target_exponent(alpha: float, q_clean: float) -> float:
    """The beta whose forcing exponent, and with it the clean exponent if it is below q_K, is q_clean."""
    return 0.5 * (1.0 + 2.0 * alpha * (q_clean - 1.0))


def parameters(scale: str) -> dict[str, Any]:
    """What is run."""
    window, sampled = _SIZES[scale]
    return {
        "alpha": ALPHA,
        "lr": _LR,
        "batch": _BATCH,
        "noise_var": _NOISE,
        "window": window,
        "vartheta": _VARTHETA,
        "q_clean": _CLEAN,
        "sampled_points": _SAMPLED,
        "sampled": {
            name: dict(zip(("width", "window", "runs"), sizes, strict=True)) for name, sizes in sampled.items()
        },
        "curve_points": {"test": 4, "quick": 9, "standard": 25, "full": 49}[scale],
        "draws": "float32",
        "seed": 20261,
    }


def compute(scale: str) -> dict[str, Any]:
    """Lines of the map, the boundary that the window of the exact points sees, and all decided points."""
    settings = parameters(scale)
    maps = {}
    for place, (name, alpha) in enumerate(ALPHA.items()):
        q_memory = memory_exponent(alpha)
        edge = max(0.0, 1.0 - q_memory)
        (left, right), (bottom, top) = _RANGE[name]
        corners = (edge, edge + q_memory, right)
        maps[name] = {
            "alpha": alpha,
            "q_memory": q_memory,
            "edge": edge,
            "range": [[left, right], [bottom, top]],
            "line": [[corner, gap_law(q_memory, corner).exponent] for corner in corners],
            "window_line": _window_line(alpha, edge, right, settings),
            "exact": [
                exact_point(alpha, vartheta, q_clean, settings["window"])
                for vartheta in _VARTHETA[name]
                for q_clean in _CLEAN[name]
            ],
            "sampled": [
                sampled_point(alpha, *point, **settings["sampled"][name], seed=settings["seed"] + 100 * place + number)
                for number, point in enumerate(_SAMPLED[name])
            ],
        }
    return {"window": settings["window"], "sampled": settings["sampled"], "maps": maps}


# --- decisions -------------------------------------------------------------------------------------------------------


def exact_point(alpha: float, vartheta: float, q_clean: float, window: tuple[float, float]) -> dict[str, Any]:
    """One point decided on the exact recursion at infinite width, and on the continuum integral over its window."""
    source = population(power_law(alpha, target_exponent(alpha, q_clean), noise_var=_NOISE))
    steps = int(np.ceil(window[1] / _LR)) + 1
    at = np.unique(np.rint(np.geomspace(window[0], window[1], 300) / _LR).astype(np.int64))
    at = np.concatenate([at[:1] - 1, at, [steps]])
    curve = recursion.risk(source, power(steps, _LR, _BATCH, vartheta=vartheta), at=np.unique(at))
    measured = _decide_curves(np.asarray(curve.intrinsic_time), np.asarray(curve.gap), np.asarray(curve.clean), window)
    grid, gap = window_gap(source, vartheta, window)
    expected = _decide_curves(grid, gap, window_clean(source, vartheta, grid), window)
    return _told(alpha, vartheta, q_clean, measured, expected.label)


def _decide_curves(time: np.ndarray, gap: np.ndarray, clean: np.ndarray, window: tuple[float, float]) -> Decision:
    fits = [fit_exponent(time, curve, window=window) for curve in (gap, gap / clean)]
    return decide(*((fit.exponent, fit.uncertainty) for fit in fits))


def sampled_point(
    alpha: float, vartheta: float, q_clean: float, *, width: int, window: tuple[float, float], runs: int, seed: int
) -> dict[str, Any]:
    """One point decided on SGD: runs with and without label noise, their mean difference being the gap.

    The modes are the first `width` ones of the infinite problem. The energy of the rest, which hardly moves inside
    the window, is kept as the floor and not subtracted.
    """
    beta = target_exponent(alpha, q_clean)
    index = np.arange(1.0, width + 1.0)
    energy = index ** (-2.0 * (alpha + beta))
    whole = population(power_law(alpha, beta))
    source = spectrum(
        index ** (-2.0 * alpha), energy, floor=float(np.sum(whole.forcing_energy) - energy.sum()), noise_var=_NOISE
    )
    steps = int(np.ceil(window[1] / _LR))
    at = np.unique(np.rint(np.geomspace(window[0], steps * _LR, 60) / _LR).astype(np.int64))
    schedule = power(steps, _LR, _BATCH, vartheta=vartheta)
    key = jax.random.key(seed)  # both ensembles share their inputs: run i of one is run i of the other
    noisy, clean = (
        simulate(key, source.replace(noise_var=noise), schedule, runs=runs, at=at, draws="float32")
        for noise in (_NOISE, 0.0)
    )
    time, gap = noisy.intrinsic_time, noisy.mean - clean.mean
    ends = (float(time[0]), float(time[-1]))
    added = (noisy.samples - clean.samples) / gap
    fits = [
        sampled_slope(time, gap, added, ends),
        sampled_slope(time, gap / clean.mean, added - clean.samples / clean.mean, ends),
    ]
    measured = decide(*((exponent, 2.0 * error) for exponent, error in fits))
    exact = recursion.risk(source, schedule, at=at)
    weights = slope_weights(time, ends)
    expected = [float(weights @ np.log(curve)) for curve in (exact.gap, exact.gap / exact.clean)]
    told = _told(alpha, vartheta, q_clean, measured, decide((expected[0], 0.0), (expected[1], 0.0)).label)
    scores = [(fit[0] - wanted) / fit[1] for fit, wanted in zip(fits, expected, strict=True)]
    return {**told, "exact_gap_exponent": expected[0], "exact_difference": expected[1], "z": scores}


def _told(alpha: float, vartheta: float, q_clean: float, measured: Decision, expected: str) -> dict[str, Any]:
    effect = schedule_effect(memory_exponent(alpha), q_clean, vartheta)
    predicted = "destroy" if effect.label == "unstable" else effect.label
    return {
        "vartheta": vartheta,
        "q_clean": q_clean,
        "limit": effect.label,
        "window": expected,
        "measured": measured.label,
        "agrees": measured.label == predicted,
        **{key: value for key, value in measured._asdict().items() if key != "label"},
    }


# --- what a window sees ----------------------------------------------------------------------------------------------


def window_gap(source: Spectrum, vartheta: float, window: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Time grid (k,) and the accumulated label noise there, without feedback."""
    grid = time_grid(window[1], 2000)
    return grid, accumulate(source, grid, _NOISE, _BATCH / _LR * (1.0 + grid) ** vartheta)


def window_clean(source: Spectrum, vartheta: float, grid: np.ndarray) -> np.ndarray:
    """Forcing and the memory that it feeds, on the grid (k,)."""
    forcing = forcing_profile(source, grid)
    ratio = _BATCH / _LR * (1.0 + grid) ** vartheta
    return forcing + accumulate(source, grid, forcing, ratio, feedback=True)


def _window_line(alpha: float, edge: float, right: float, settings: dict[str, Any]) -> list[list[float | None]]:
    """Where gap and clean risk have equal slopes over the window, as pairs (vartheta, q_0 in the limit)."""
    window = settings["window"]
    q_memory = memory_exponent(alpha)
    levels = np.linspace(0.04, q_memory, 5)
    sources = [population(power_law(alpha, target_exponent(alpha, level))) for level in levels]
    line: list[list[float | None]] = []
    for vartheta in np.linspace(edge, right, settings["curve_points"]):
        grid, gap = window_gap(sources[0], vartheta, window)
        slopes = [
            fit_exponent(grid, gap / window_clean(source, vartheta, grid), window=window).exponent for source in sources
        ]
        falling = np.array(slopes)
        crossed = (falling[:-1] > 0.0) & (falling[1:] <= 0.0)
        if crossed.any():
            below = int(np.argmax(crossed))
            share = falling[below] / (falling[below] - falling[below + 1])
            line.append([vartheta, levels[below] + share * (levels[below + 1] - levels[below])])
        else:
            line.append([vartheta, None])
    return line


# --- words and picture -----------------------------------------------------------------------------------------------


def caption(data: dict[str, Any]) -> str:
    """How many points agree with the limit, how many with their own window, and which do not."""
    told = []
    for name, found in data["maps"].items():
        exact, sampled = found["exact"], found["sampled"]
        sizes = data["sampled"][name]
        open_exact = sum(point["measured"] == "undecided" for point in exact)
        wrong = sum(not point["agrees"] and point["measured"] != "undecided" for point in exact)
        window = sum(point["measured"] == point["window"] for point in exact)
        sampled_right = sum(point["agrees"] for point in sampled)
        sampled_window = sum(point["measured"] == point["window"] for point in sampled)
        largest = max(abs(score) for point in sampled for score in point["z"])
        told.append(
            f"{NAMES[name]}, q_K = {found['q_memory']:.4g}: of {len(exact)} exact points "
            f"{len(exact) - wrong - open_exact} show the effect predicted for the limit, {open_exact} undecided, "
            f"{wrong} opposite; {window} do what the continuum predicts for their window. SGD ({sizes['runs']} runs, "
            f"first {sizes['width']:,} modes, T in {plain_span(sizes['window'])}): {sampled_right} of {len(sampled)} "
            f"as in the limit, {sampled_window} as the exact curve of the same modes and window; its slopes lie "
            f"within {largest:.1f} standard errors of the exact ones"
        )
    return (
        "Effect of label noise when batch/lr grows like T^vartheta, against the exponent q_0 of the clean risk. "
        "Grey: the row mass grows (unstable). Heavy line: the gap stays (destroy). Solid curve q_0 = q_N(vartheta): "
        "above it noise sets a new exponent (change), below it the clean exponent survives (preserve). Dotted: where "
        "gap and clean risk have equal slopes over the window of the exact points, T in "
        f"{plain_span(data['window'])}. Fill: measured effect, from the exponents of gap and gap/clean and their "
        f"uncertainties; rim: predicted effect. {'. '.join(told)}. lr {_LR:.4g}, first batch {_BATCH}, sigma^2 = "
        f"{_NOISE:g}."
    )


@styled
def draw(data: dict[str, Any]) -> Figure:
    """One map per kind of memory."""
    figure, panels = canvas(1, 2, width=11.2, height=5.6)
    for axes, letter, (name, found) in zip(panels, "ab", data["maps"].items(), strict=True):
        _draw_map(axes, found)
        panel(axes, letter, f"{NAMES[name]}: " + rf"$q_K={found['q_memory']:.3g}$, $\alpha={found['alpha']:g}$")
        axes.set(
            xlabel=r"growth of the ratio $\vartheta$   ($B/\eta\sim T^{\vartheta}$)",
            ylabel=r"clean exponent $q_0$   (clean risk $\sim T^{-q_0}$)",
        )
    rim: dict[str, Any] = {"mec": BLACK, "mew": 1.0, "ls": "none", "ms": 8}
    handles = [
        Line2D([], [], marker="o", mfc="white", label="exact recursion", **rim),
        Line2D([], [], marker="s", mfc="white", label="SGD", **rim),
        *(
            Patch(facecolor=EFFECT_COLOURS[effect], edgecolor=BLACK, lw=0.5, label=effect)
            for effect in (*EFFECTS, "undecided")
        ),
        Patch(facecolor=PALE, edgecolor=GREY, lw=0.5, label="unstable (predicted)"),
        Line2D([], [], color=BLACK, lw=1.6, label=r"$q_0=q_N(\vartheta)$"),
        Line2D([], [], color=BLACK, lw=1.2, ls=":", label="equal slopes in the window"),
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=5, title="fill: measured effect   |   rim: predicted effect"
    )
    return figure


def _draw_map(axes: Axes, found: dict[str, Any]) -> None:
    (left, right), (bottom, top) = found["range"]
    line = np.array(found["line"])
    axes.axvspan(left, found["edge"], color=PALE, lw=0)
    axes.fill_between(line[:, 0], line[:, 1], top, color=EFFECT_COLOURS["change"], alpha=0.16, lw=0)
    axes.fill_between(line[:, 0], bottom, line[:, 1], color=EFFECT_COLOURS["preserve"], alpha=0.13, lw=0)
    axes.plot(line[:, 0], line[:, 1], color=BLACK, lw=1.6)
    axes.plot([found["edge"]] * 2, [bottom, top], color=BLACK, lw=3.0, solid_capstyle="butt")
    axes.plot(*numbers(found["window_line"]).T, color=BLACK, lw=1.2, ls=":")
    axes.plot(line[:2, 0], [found["q_memory"]] * 2, color=GREY, lw=0.8, ls=(0, (2, 3)))
    axes.text(
        found["edge"] + 0.03,
        found["q_memory"] + 0.012 * (top - bottom),
        r"$q_0=q_K$",
        color=GREY,
        fontsize=9,
        va="bottom",
    )
    axes.text(
        (left + found["edge"]) / 2, 0.96 * top, "unstable", ha="center", va="top", rotation=90, color=GREY, fontsize=10
    )
    axes.text(
        found["edge"] - 0.012, 0.26 * top, "destroy", ha="right", va="center", rotation=90, fontsize=9, weight="bold"
    )
    axes.text(right - 0.04, 0.97 * top, "change", ha="right", va="top", fontsize=12, weight="bold")
    axes.text(right - 0.04, 0.03 * top, "preserve", ha="right", va="bottom", fontsize=12, weight="bold")
    for kind, marker, size in (("exact", "o", 8.5), ("sampled", "s", 8.5)):
        for point in found[kind]:
            axes.plot(
                point["vartheta"],
                point["q_clean"],
                marker=marker,
                ms=size,
                mfc=EFFECT_COLOURS[point["measured"]],
                mec={**EFFECT_COLOURS, "unstable": GREY, "critical": GREY}[point["limit"]],
                mew=2.2,
                zorder=4,
            )
    axes.set(xlim=(left, right), ylim=(bottom, top))
