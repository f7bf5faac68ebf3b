"""A target whose energy falls faster than every power: forcing follows it, memory does not, and in the end neither
does the risk.

The modes are lambda_j = j^-0.8 with target energy proportional to lambda_j e^-j. Forcing and kernel are closed forms
of a constant schedule. The risk is the exact recursion; its modes are individual where they carry forcing energy (all
but e^-64 of it) and Gauss nodes of the power law beyond, which is why 524,288 modes cost as much as 220.
"""

from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure

from rfsim.figures.slopes import sampled_slope
from rfsim.figures.style import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    VERMILION,
    canvas,
    numbers,
    panel,
    plain_span,
    power_guide,
    span,
    styled,
)
from rfsim.measure import fit_exponent
from rfsim.problems import power_law
from rfsim.routes import recursion
from rfsim.routes.montecarlo import simulate
from rfsim.schedules import constant, log_spaced_steps
from rfsim.sources.population import population
from rfsim.spectra import Spectrum, spectrum
from rfsim.stationary import kappa

title = "A rapidly decaying target"
alt = (
    "Three log-log panels against intrinsic time. Forcing and its spectral mass bend below every power; the kernel "
    "and its mass follow a straight line of slope -3/4; the risk of SGD follows forcing first and then a power law."
)

_ALPHA, _LR, _BATCH, _WIDTH = 0.4, 0.05, 16, 524288
_HEAD = 64  # coordinates that `population` keeps one by one
_SAMPLED = {  # width, steps, runs of the Monte Carlo
    "test": (96, 400, 16),
    "quick": (16384, 2000, 20),
    "standard": (16384, 20000, 20),
    "full": (524288, 20000, 20),
}
_WINDOW = (100.0, 800.0)


def parameters(scale: str) -> dict[str, Any]:
    """What is run: the exact curve at full width, and SGD at a width and length that the scale affords."""
    width, steps, runs = _SAMPLED[scale]
    return {
        "alpha": _ALPHA,
        "lr": _LR,
        "batch": _BATCH,
        "noise_var": 0.0,
        "width": _WIDTH,
        "steps": 20000,
        "window": _WINDOW,
        "sampled_width": width,
        "sampled_steps": steps,
        "runs": runs,
        "draws": "float32",
        "seed": 31501,
    }


def compute(scale: str) -> dict[str, Any]:
    """Forcing, kernel and their masses; exact risk; the ensemble and the exact risk of its own width."""
    settings = parameters(scale)
    steps, width = settings["steps"], settings["width"]
    at = log_spaced_steps(steps, 240)
    time = at * _LR
    source = rapid_spectrum(width)
    exact = recursion.risk(source, constant(steps, _LR, _BATCH), at=at)
    energy, kernel = laplace_sums(width, at)
    limits = np.geomspace(1.0, time[-1], 120)
    forcing_mass, kernel_mass = masses(width, 1.0 / limits)
    fit = fit_exponent(exact.intrinsic_time, exact.risk, window=_WINDOW)
    return {
        "width": width,
        "kappa": kappa(source, _LR, _BATCH),
        "time": time,
        "risk": exact.risk,
        "forcing": energy,
        "kernel": kernel / kernel[0],
        "mass_time": limits,
        "forcing_mass": forcing_mass,
        "kernel_mass": kernel_mass,
        "guide_exponent": 2.0 - 0.5 / _ALPHA,
        "window": _WINDOW,
        "exact_fit": {"exponent": fit.exponent, "uncertainty": fit.uncertainty},
        "sampled": _sampled(settings, time, np.asarray(exact.risk)),
    }


def rapid_spectrum(width: int) -> Spectrum:
    """The aligned modes lambda_j = j^-0.8 with energy lambda_j |theta_j|^2 = lambda_j e^-j / norm, j = 1..width."""
    nodes = population(power_law(_ALPHA, 1.0).replace(ambient=width))
    lam = np.asarray(nodes.eigenvalues)
    alone = np.asarray(nodes.multiplicity) == 1.0
    index = lam ** (-0.5 / _ALPHA)
    energy = np.where(alone & (index < _HEAD + 0.5), lam * np.exp(-index), 0.0)
    return nodes.replace(forcing_energy=energy / energy.sum())


def literal_spectrum(width: int) -> Spectrum:
    """The same with every mode written out, for sampling."""
    index = np.arange(1.0, width + 1.0)
    energy = index ** (-2.0 * _ALPHA) * np.exp(-index)
    return spectrum(index ** (-2.0 * _ALPHA), energy / energy.sum())


def laplace_sums(width: int, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Forcing F_t = sum_j w_j q_j^t and kernel (B/eta^2) K = sum_j l_j^2 q_j^t at the steps (k,)."""
    source = rapid_spectrum(width)
    lam = np.asarray(source.eigenvalues)
    x = _LR * lam
    log_q = np.log1p(-x * (2.0 - (1.0 + 1.0 / _BATCH) * x))
    kernel = np.exp(at[:, None] * log_q) @ (np.asarray(source.multiplicity) * lam**2)
    index = np.arange(1.0, 701.0)  # e^-700 is the end of float64, so these are all modes with forcing energy
    head = index ** (-2.0 * _ALPHA)
    x = _LR * head
    log_q = np.log1p(-x * (2.0 - (1.0 + 1.0 / _BATCH) * x))
    norm = (head * np.exp(-index)).sum()
    forcing = np.exp(at[:, None] * log_q - index) @ head / norm
    return forcing, kernel


def masses(width: int, below: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shares of forcing energy and of kernel weight lambda^2 on eigenvalues up to `below`, (k,) each."""
    first = np.maximum(np.ceil(below ** (-0.5 / _ALPHA) * (1.0 - 1e-12)), 1.0).astype(np.int64)
    index = np.arange(1.0, width + 1.0)
    lam = index ** (-2.0 * _ALPHA)
    tails = []
    for weight in (lam * np.exp(-index), lam**2):
        tail = np.append(np.cumsum(weight[::-1])[::-1], 0.0)
        tails.append(tail[np.minimum(first, width + 1) - 1] / tail[0])
    return tails[0], tails[1]


def _sampled(settings: dict[str, Any], time: np.ndarray, risk: np.ndarray) -> dict[str, Any]:
    """SGD: mean, band and fitted exponent, beside the exact risk of the sampled width."""
    width, steps = settings["sampled_width"], settings["sampled_steps"]
    at = log_spaced_steps(steps, 160)
    schedule = constant(steps, _LR, _BATCH)
    runs = simulate(
        jax.random.key(settings["seed"]),
        literal_spectrum(width),
        schedule,
        runs=settings["runs"],
        at=at,
        draws=settings["draws"],
    )
    own = recursion.risk(rapid_spectrum(width), schedule, at=at)
    low, high = runs.quantiles([0.1, 0.9])
    last = at[-1] * _LR
    window = (_WINDOW[0], min(_WINDOW[1], last)) if last > 2.0 * _WINDOW[0] else (last / 8.0, last)
    exponent, error = sampled_slope(runs.intrinsic_time, runs.mean, runs.samples / runs.mean, window)
    score = np.abs(runs.mean - own.risk)[1:] / runs.stderr[1:]
    return {
        "width": width,
        "runs": settings["runs"],
        "time": runs.intrinsic_time,
        "mean": runs.mean,
        "stderr": runs.stderr,
        "low": low,
        "high": high,
        "exact": own.risk,
        "largest_z": float(score.max()),
        "window": window,
        "fit": {"exponent": exponent, "stderr": error},
        "exact_fit": fit_exponent(own.intrinsic_time, own.risk, window=window).exponent,
        "full_width_fit": fit_exponent(time, risk, window=window).exponent,
    }


def caption(data: dict[str, Any]) -> str:
    """What ran, and the exponents that came out."""
    sampled, fit, exact = data["sampled"], data["sampled"]["fit"], data["exact_fit"]
    risk = dict(zip(numbers(data["time"]).tolist(), data["risk"], strict=True))
    end = max(risk)
    same = tuple(sampled["window"]) == tuple(data["window"])
    window = plain_span(sampled["window"])
    compared = f"the exact curve of this width gives {sampled['exact_fit']:.4f}"
    if not same:
        compared += f" and {data['width']:,} modes give {sampled['full_width_fit']:.4f}"
    return (
        f"Aligned modes lambda_j = j^-0.8 with target energy |theta_j|^2 proportional to e^-j, lr {_LR:g}, batch "
        f"{_BATCH}, no label noise; kappa = {data['kappa']:.6f}. Exact curves: {data['width']:,} modes to T = "
        f"{end:g}. (a) Forcing, and the share of forcing energy on eigenvalues below 1/T: both bend below every "
        f"power. (b) The kernel and the share of kernel weight below 1/T follow T^-{data['guide_exponent']:g}. (c) "
        f"SGD: mean of {sampled['runs']} runs, exact in law, at {sampled['width']:,} modes to T = "
        f"{max(sampled['time']):g}; band from the 10 % to the 90 % quantile of single runs; the risk follows forcing "
        f"first and memory later. Exact exponent on {plain_span(data['window'])}: {exact['exponent']:.4f} (limit "
        f"{data['guide_exponent']:g}). SGD on {window}: {fit['exponent']:.3f} +- {fit['stderr']:.3f}, where "
        f"{compared}. Largest |z| of the mean against the exact curve of its width: {sampled['largest_z']:.2f} over "
        f"{len(sampled['time']) - 1} records. Risk at T = {end:g}: {risk[end]:.5e}."
    )


@styled
def draw(data: dict[str, Any]) -> Figure:
    """The triptych."""
    figure, (left, middle, right) = canvas(1, 3, width=13.2, height=4.5)
    time = numbers(data["time"])
    late = time > 0
    mass_time = numbers(data["mass_time"])
    forcing, kernel = numbers(data["forcing"]), numbers(data["kernel"])
    for axes, curve, mass, curve_text, mass_text, colour in (
        (left, forcing, data["forcing_mass"], r"forcing $F(T)/F(0)$", r"energy on $\lambda\leq 1/T$", BLUE),
        (middle, kernel, data["kernel_mass"], r"kernel $K(T)/K(0)$", r"weight on $\lambda\leq 1/T$", ORANGE),
    ):
        axes.plot(time[late], curve[late], color=colour, label=curve_text)
        axes.plot(
            mass_time, numbers(mass), color=BLACK, lw=1.2, ls=(0, (5, 2)), label=mass_text, drawstyle="steps-post"
        )
        axes.set(xscale="log", yscale="log", xlabel="intrinsic time T", xlim=(time[1], time[-1]))
        axes.legend(loc="lower left")
    left.set(ylim=(1e-30, 10.0), ylabel="share of the start")
    power_guide(left, 5.0, time[-1], 1.0, 4.0, "$T^{-4}$")
    middle.set(ylabel="share of the start")
    at = int(np.searchsorted(time, 10.0))
    guide = data["guide_exponent"]
    power_guide(middle, 10.0, time[-1], 2.2 * kernel[at], guide, rf"$T^{{-{guide:g}}}$")
    panel(left, "a", "forcing and its spectral mass")
    panel(middle, "b", "memory and its spectral mass")

    sampled = data["sampled"]
    sampled_time = numbers(sampled["time"])
    ran = sampled_time > 0
    low, high = numbers(sampled["low"])[ran], numbers(sampled["high"])[ran]
    right.fill_between(sampled_time[ran], low, high, color=VERMILION, alpha=0.25, lw=0, label="80 % of runs")
    right.plot(
        sampled_time[ran],
        numbers(sampled["mean"])[ran],
        color=VERMILION,
        lw=2.4,
        label=f"SGD, {sampled['runs']} runs, v = {sampled['width']:,}",
    )
    right.plot(time[late], numbers(data["risk"])[late], color=BLACK, lw=1.1, label=f"exact, v = {data['width']:,}")
    right.plot(
        sampled_time[ran],
        numbers(sampled["exact"])[ran],
        color=BLACK,
        lw=1.3,
        ls=":",
        label=f"exact, v = {sampled['width']:,}",
    )
    right.plot(time[late], forcing[late], color=BLUE, lw=1.2, ls=(0, (5, 2)), label="forcing")
    first, last = sampled["window"]
    right.axvspan(first, last, color="#eeeeee", lw=0, zorder=0)
    exponent = sampled["fit"]["exponent"]
    at = int(np.searchsorted(time, first))
    power_guide(right, first, last, 4.0 * numbers(data["risk"])[at], exponent, f"slope -{exponent:.3f}", at_start=True)
    right.annotate(
        f"fit window\n{span(sampled['window'])}",
        (float(np.sqrt(first * last)), 0.97),
        xycoords=("data", "axes fraction"),
        ha="center",
        va="top",
        fontsize=8.5,
        color=GREY,
    )
    right.set(
        xscale="log",
        yscale="log",
        xlabel="intrinsic time T",
        ylabel=r"risk (initial risk $=1$)",
        xlim=(time[1], time[-1]),
        ylim=(1e-7, 2.0),
    )
    right.legend(loc="lower left", fontsize=8, handlelength=1.6)
    panel(right, "c", "risk of SGD")
    return figure
