"""Two realisations of one ratio path: their risks separate against the number of updates and coincide against
intrinsic time, to first order in the learning rate."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from rfsim.figures.style import BLACK, BLUE, GREY, ORANGE, canvas, numbers, panel, power_guide, styled
from rfsim.problems import power_law
from rfsim.routes import recursion
from rfsim.schedules import Pair, from_spec, pair, path_distance
from rfsim.sources.population import population
from rfsim.spectra import Spectrum

title = "One ratio path, two schedules"
alt = (
    "Six panels, one row for WSD and one for 8-1-1. Left: risk against updates, where lr decay and batch growth "
    "separate. Middle: the same risks against intrinsic time, where they lie on each other. Right: their largest "
    "difference falls in proportion to the learning rate at equal time and stays large at equal update."
)

PATHS = {"WSD": "wsd:decay=0.4,to=0.1", "8-1-1": "8-1-1"}
POINT = (0.6, 0.2)  # alpha, beta
_LR, _BATCH, _GROUP, _NOISE = 0.16, 16, 2, 1.0
_STEPS = {"test": 300, "quick": 650, "standard": 1500, "full": 3000}  # at the largest lr
_HALVINGS = 4
_SHOWN = 1  # the lr of the curves: how often it was halved
_RECORDS = 160
_TOP = 2.4  # risks are shown from this multiple of the last one on


def parameters(scale: str) -> dict[str, Any]:
    """What is run: lr halved and batch halved, so that the ratio path stays the same."""
    return {
        "point": POINT,
        "paths": PATHS,
        "lr": [_LR / 2**k for k in range(_HALVINGS)],
        "batch": [_BATCH // 2**k for k in range(_HALVINGS)],
        "group": _GROUP,
        "noise_var": _NOISE,
        "steps": _STEPS[scale],
        "seed": None,
    }


def compute(scale: str) -> dict[str, Any]:
    """Risks of both realisations, and their largest differences for every lr."""
    settings = parameters(scale)
    source = population(power_law(*POINT, noise_var=_NOISE))
    return {"rows": {name: _row(source, spec, settings) for name, spec in PATHS.items()}}


def _row(source: Spectrum, spec: str, settings: dict[str, Any]) -> dict[str, Any]:
    at_time, at_step, curves = [], [], {}
    for halvings, (lr, batch) in enumerate(zip(settings["lr"], settings["batch"], strict=True)):
        target = from_spec(spec, steps=settings["steps"] * 2**halvings, lr=lr, batch=batch)
        made = pair(target, lr=lr, batch=batch, group=_GROUP)
        one, other, same_step = risks(source, made)
        at_time.append(float(np.max(np.abs(one / other - 1.0))))
        at_step.append(float(np.max(np.abs(same_step / other - 1.0))))
        if halvings == _SHOWN:
            keep = np.unique(np.rint(np.linspace(1, len(made.level), _RECORDS)).astype(int))
            curves = {
                "lr": lr,
                "batch": batch,
                "time": made.intrinsic_time[keep],
                "lr_decay_step": made.lr_decay_steps[keep],
                "lr_decay": one[keep],
                "batch_growth_step": made.batch_growth_steps[keep],
                "batch_growth": other[keep],
                "data": float(made.data[-1]),
                "distance": path_distance(made.lr_decay, made.batch_growth).ratio,
            }
    orders = [math.log2(a / b) for a, b in pairwise(at_time)]
    return {**curves, "lrs": settings["lr"], "at_time": at_time, "at_step": at_step, "orders": orders, "spec": spec}


def risks(source: Spectrum, made: Pair) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Risks at the ends of macro steps: lr decay, batch growth, and lr decay after as many updates as the latter."""
    both = np.union1d(made.lr_decay_steps, made.batch_growth_steps)
    curve = recursion.risk(source, made.lr_decay, at=both)
    decaying = np.asarray(curve.risk)
    growing = np.asarray(recursion.risk(source, made.batch_growth, at=made.batch_growth_steps).risk)
    places = np.searchsorted(both, made.lr_decay_steps), np.searchsorted(both, made.batch_growth_steps)
    return decaying[places[0]], growing, decaying[places[1]]


def caption(data: dict[str, Any]) -> str:
    """Differences at equal time and at equal update, with the measured order."""
    told = []
    for name, row in data["rows"].items():
        orders = ", ".join(f"{order:.2f}" for order in row["orders"])
        told.append(
            f"{name} ({row['spec']}; curves at lr {row['lr']:g}, batch {row['batch']}): after "
            f"{row['lr_decay_step'][-1]} updates of lr decay and {row['batch_growth_step'][-1]} of batch growth both "
            f"have used {row['data']:.0f} samples and reached T = {row['time'][-1]:.4g}; the ratios differ by "
            f"{row['distance']:.0e} on average; largest relative difference of the risk at equal T "
            + ", ".join(f"{value:.2g}" for value in row["at_time"])
            + " for lr "
            + ", ".join(f"{value:g}" for value in row["lrs"])
            + f" (orders {orders}), at equal update "
            + ", ".join(f"{value:.2g}" for value in row["at_step"])
        )
    return (
        f"Exact risk at alpha {POINT[0]:g}, beta {POINT[1]:g}, infinite width, sigma^2 = {_NOISE:g}. The ratio path of "
        f"a target schedule is cut into macro steps of {_GROUP} lr with whole levels g; on each, lr decay makes g "
        f"updates at the base batch and batch growth makes {_GROUP} updates at the base lr, with the same clock, data "
        f"and ratio. Compared at the ends of macro steps. Lr and batch are halved together, which keeps the path. "
        f"{'. '.join(told)}."
    )


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Rows: paths; columns: against updates, against intrinsic time, largest difference against lr."""
    figure, grid = canvas(2, 3, width=12.6, height=6.8)
    letters = iter("abcdef")
    for axes_of_row, (name, row) in zip(grid, data["rows"].items(), strict=True):
        steps, time, apart = axes_of_row
        one, other = numbers(row["lr_decay"]), numbers(row["batch_growth"])
        steps.plot(row["lr_decay_step"], one, color=BLUE, label="lr decay")
        steps.plot(row["batch_growth_step"], other, color=ORANGE, label="batch growth")
        time.plot(row["time"], one, color=BLUE, lw=2.6, label="lr decay")
        top = _TOP * other.min()
        few = slice(None, None, 4)
        time.plot(row["time"][few], other[few], "o", color=ORANGE, mfc="white", label="batch growth")
        for axes, clock, key in ((steps, "updates", "lr_decay_step"), (time, "intrinsic time T", "time")):
            begin, end = np.interp(-top, -one, row[key]), row[key][-1]
            axes.set(
                xlabel=clock, ylabel="risk", ylim=(0.8 * other.min(), top), xlim=(begin, end + 0.03 * (end - begin))
            )
            panel(axes, next(letters), f"{name}: against {clock.removesuffix(' T')}")
            axes.legend(loc="lower left")
        lrs, at_time, at_step = (numbers(row[key]) for key in ("lrs", "at_time", "at_step"))
        apart.plot(lrs, at_step, "s--", color=GREY, label="at equal update")
        apart.plot(lrs, at_time, "o-", color=BLACK, label="at equal intrinsic time")
        power_guide(apart, lrs[-1], lrs[0], 0.45 * at_time[-1], -1.0, "")
        apart.annotate(
            r"$\propto$ lr", (lrs[1], 0.45 * at_time[-1] * lrs[1] / lrs[-1]), xytext=(6, -9), textcoords="offset points"
        )
        apart.set(xscale="log", yscale="log", xlabel="lr (batch / lr fixed)", ylabel="largest relative difference")
        apart.set(xlim=(lrs[-1] / 1.3, lrs[0] * 1.3), ylim=(0.2 * at_time.min(), 6.0 * at_step.max()))
        apart.set_xticks(lrs, [f"{lr:g}" for lr in lrs])
        apart.minorticks_off()
        apart.legend(loc="upper left")
        panel(apart, next(letters), f"{name}: difference of the two")
    return figure
