"""What an anneal does: noise withheld pays for the signal that its slower clock does not learn; and the memory, below
which no growth of the batch takes the gap."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rfsim.anneal import Parts, clock_cost, decompose, drop, gain, memory_ceiling
from rfsim.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, SKY, VERMILION, canvas, numbers, panel, styled
from rfsim.measure import fit_exponent
from rfsim.problems import power_law
from rfsim.regimes import memory_exponent
from rfsim.schedules import constant, join, power, wsd
from rfsim.sources.population import population

title = "What an anneal does"
alt = (
    "Three panels. Left: the risk during the decay of WSD split into signal, old noise and new noise, solid, beside "
    "constant lr, dashed: only new noise differs. Middle: gain over constant lr at the same data against the length of "
    "the decay, as noise withheld minus signal not learnt minus old noise kept. Right: the gap under ever faster batch "
    "growth stays above a line that falls like the memory."
)

POINT, MEMORY_POINT = (0.6, 0.2), (0.4, 0.3)  # alpha, beta of the anneals and of the last panel
GROWTHS = (0.5, 1.0, 2.0, 6.0)  # vartheta of the last panel
_LR, _BATCH, _NOISE = 0.1, 4, 1.0
_GAP_LR, _GAP_BATCH, _GAP_NOISE, _GAP_START = 0.15, 16, 25.0, 60
_SIZES = {  # steps of the anneals, number of decay lengths, steps of the last panel
    "test": (600, 4, 2000),
    "quick": (2000, 8, 10_000),
    "standard": (4000, 14, 40_000),
    "full": (8000, 20, 200_000),
}
_DECAY = 0.2


def parameters(scale: str) -> dict[str, Any]:
    """What is run."""
    steps, lengths, gap_steps = _SIZES[scale]
    return {
        "point": POINT,
        "lr": _LR,
        "batch": _BATCH,
        "noise_var": _NOISE,
        "steps": steps,
        "decay": _DECAY,
        "decays": np.round(np.geomspace(0.02, 0.9, lengths), 4),
        "memory_point": MEMORY_POINT,
        "growths": GROWTHS,
        "gap_lr": _GAP_LR,
        "gap_batch": _GAP_BATCH,
        "gap_noise_var": _GAP_NOISE,
        "gap_start": _GAP_START,
        "gap_steps": gap_steps,
        "seed": None,
    }


def compute(scale: str) -> dict[str, Any]:
    """Parts of one anneal, gains of many, and gaps under growing batches."""
    settings = parameters(scale)
    source, steps = population(power_law(*POINT, noise_var=_NOISE)), settings["steps"]
    found = decompose(source, wsd(steps, _LR, _BATCH, decay=_DECAY))
    costs = [clock_cost(decompose(source, wsd(steps, _LR, _BATCH, decay=float(d)))) for d in settings["decays"]]
    return {
        "annealed": _curves(found.annealed),
        "constant": _curves(found.same_time),
        "drop": drop(found.annealed)._asdict(),
        "constant_drop": drop(found.same_time)._asdict(),
        "gain": gain(found)._asdict(),
        "decays": settings["decays"],
        "costs": [cost._asdict() for cost in costs],
        "gaps": _gaps(settings["gap_steps"]),
    }


def _curves(parts: Parts) -> dict[str, Any]:
    return {
        "time": parts.intrinsic_time,
        **{k: getattr(parts, k) for k in ("risk", "signal", "old_noise", "new_noise")},
    }


def _gaps(steps: int) -> dict[str, Any]:
    """Gap under r ~ T^vartheta after a constant beginning, and the least gap that is left of this beginning."""
    source = population(power_law(*MEMORY_POINT, noise_var=_GAP_NOISE))
    at = np.unique(np.geomspace(_GAP_START, steps, 120).astype(int))
    begin = constant(_GAP_START, _GAP_LR, _GAP_BATCH)
    gaps = []
    for vartheta in GROWTHS:
        ramp = power(steps - _GAP_START, _GAP_LR, _GAP_BATCH, vartheta=vartheta, exact_batch=True)
        found = memory_ceiling(source, join(begin, ramp), _GAP_START, at=at)
        gaps.append(found.gap)
    time = found.intrinsic_time
    window = (max(0.02 * float(time[-1]), 2.0 * float(time[0])), float(time[-1]))
    return {
        "time": time,
        "vartheta": GROWTHS,
        "gap": gaps,
        "least": found.least_gap,
        "window": window,
        "exponents": [fit_exponent(time, gap, window=window).exponent for gap in gaps],
        "least_exponent": fit_exponent(time, found.least_gap, window=window).exponent,
        "q_memory": memory_exponent(MEMORY_POINT[0]),
    }


def caption(data: dict[str, Any]) -> str:
    """The drop in numbers, the best length of a decay, and the exponents of the gap."""
    fallen, steady, won, gaps = data["drop"], data["constant_drop"], data["gain"], data["gaps"]
    nets = [cost["net"] for cost in data["costs"]]
    best = int(np.argmax(nets))
    cost = data["costs"][best]
    fits = ", ".join(f"{e:.3f} (vartheta {v:g})" for v, e in zip(gaps["vartheta"], gaps["exponents"], strict=True))
    return (
        f"(a) Exact risk in the decay of WSD (exponential to a tenth over the last {_DECAY:.0%} of the steps; alpha "
        f"{POINT[0]:g}, beta {POINT[1]:g}, infinite width, lr {_LR:g}, batch {_BATCH}, sigma^2 = {_NOISE:g}) and of "
        f"constant lr over the same intrinsic time, in parts with recursions of their own. The risk falls by "
        f"{fallen['total']:.4f} = signal learnt {fallen['signal']:.4f} + old noise faded {fallen['old_noise']:.4f} - "
        f"new noise {-fallen['new_noise']:.4f}; at constant lr by {steady['total']:.4f} = {steady['signal']:.4f} + "
        f"{steady['old_noise']:.4f} - {-steady['new_noise']:.4f}. Of the gain {won['total']:.4f}, new noise withheld "
        f"is {won['new_noise']:.4f}, signal and old noise {won['signal']:.1e} and {won['old_noise']:.1e}. (b) Against "
        f"constant lr at the same data the slower clock costs signal and leaves old noise; of the lengths shown the "
        f"decay over {data['decays'][best]:.2g} of the steps gains most, {cost['net']:.4f} = withheld "
        f"{cost['noise_withheld']:.4f} - signal {cost['signal_lost']:.4f} - old noise {cost['old_noise_kept']:.4f}. "
        f"(c) Gap at alpha {MEMORY_POINT[0]:g}, beta {MEMORY_POINT[1]:g} (lr {_GAP_LR:g}, batch {_GAP_BATCH}, sigma^2 "
        f"= {_GAP_NOISE:g}, constant for {_GAP_START} steps, then batch growth T^vartheta); dashed: what is left of "
        f"the gap of step {_GAP_START} if nothing is injected any more, a bound for all batches. Exponents on T in "
        f"[{gaps['window'][0]:.3g}, {gaps['window'][1]:.3g}]: {fits}; bound {gaps['least_exponent']:.3f}, limit q_K = "
        f"{gaps['q_memory']:g}."
    )


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Parts of the risk in one anneal; gain against the length of the decay; gaps and the least gap."""
    figure, (left, middle, right) = canvas(1, 3, width=13.2, height=4.3)
    _draw_parts(left, data["annealed"], data["constant"])
    decays = numbers(data["decays"])
    kept, lost, held, net = (
        numbers([cost[key] for cost in data["costs"]])
        for key in ("old_noise_kept", "signal_lost", "noise_withheld", "net")
    )
    middle.fill_between(decays, 0.0, held, color=(ORANGE, 0.35), lw=0, label="new noise withheld")
    middle.fill_between(decays, 0.0, -lost, color=(BLUE, 0.45), lw=0, label="signal not learnt")
    middle.fill_between(decays, -lost, -lost - kept, color=(GREEN, 0.45), lw=0, label="old noise kept")
    middle.plot(decays, net, "o-", color=BLACK, label="gain")
    middle.axhline(0.0, color=BLACK, lw=0.8)
    middle.set(xscale="log", xlabel="length of the decay / all steps", ylabel="risk of constant lr - risk of WSD")
    middle.set_ylim(1.15 * float((-lost - kept).min()), 1.75 * float(held.max()))
    middle.legend(loc="upper left")
    panel(middle, "b", "gain at the same data")
    gaps = data["gaps"]
    for colour, vartheta, gap in zip((SKY, BLUE, ORANGE, VERMILION), gaps["vartheta"], gaps["gap"], strict=True):
        right.plot(gaps["time"], numbers(gap), color=colour, label=rf"$\vartheta={vartheta:g}$")
    right.plot(gaps["time"], numbers(gaps["least"]), "--", color=BLACK, label="least gap")
    right.set(xscale="log", yscale="log", xlabel="intrinsic time T", ylabel="gap")
    right.legend(loc="lower left")
    panel(right, "c", rf"the ceiling: least gap $\sim T^{{-{gaps['q_memory']:g}}}$")
    return figure


def _draw_parts(axes: Axes, annealed: dict[str, Any], steady: dict[str, Any]) -> None:
    for colour, key, told in (
        (BLACK, "risk", "risk"),
        (BLUE, "signal", "signal"),
        (GREEN, "old_noise", "old noise"),
        (ORANGE, "new_noise", "new noise"),
    ):
        axes.plot(annealed["time"], numbers(annealed[key]), color=colour, label=told)
        axes.plot(steady["time"], numbers(steady[key]), color=colour, ls=(0, (4, 2)))
    axes.plot([], [], color=GREY, label="WSD")
    axes.plot([], [], color=GREY, ls=(0, (4, 2)), label="constant lr")
    axes.set(xlabel="intrinsic time T", ylabel="risk and its parts")
    axes.set_ylim(0.0, 1.55 * float(numbers(steady["risk"]).max()))
    axes.legend(loc="upper center", ncols=3)
    panel(axes, "a", "the decay of WSD")
