"""How far the mean over sampled weights is from the deterministic equivalent, and that it shrinks like 1/width."""

from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure

from rfsim.figures.style import BLUE, ORANGE, VERMILION, canvas, numbers, panel, styled
from rfsim.precision import jnp
from rfsim.problems import Problem, power_law
from rfsim.routes import recursion
from rfsim.schedules import Schedule, from_arrays
from rfsim.sources.equivalent import equivalent
from rfsim.spectra import Spectrum

title = "Sampled features minus deterministic equivalent, against width"
alt = (
    "Two log-log panels, risk and noisy-clean gap: the relative difference between the mean over sampled weights and "
    "the deterministic equivalent falls along lines of slope -1 in the width, within its standard errors, for finite "
    "bulk, long memory and integrable memory."
)

POINTS = {"FB": (0.2, 0.4), "LM": (0.4, 0.3), "IM": (0.7, 0.3)}  # alpha, beta
NAMES = {"FB": "finite bulk", "LM": "long memory", "IM": "integrable memory"}
_NOISE, _STEPS, _BATCH, _LR = 1.0, 60, 4.0, 0.3
_DRAWS = {  # draws of W at each width
    "test": {8: 400, 16: 200, 32: 60},
    "quick": {8: 2000, 16: 1000, 32: 300, 64: 80},
    "standard": {8: 40000, 16: 20000, 32: 8000, 64: 2500, 128: 400},
    "full": {8: 256000, 16: 128000, 32: 64000, 64: 16000, 128: 2000, 256: 250},
}
_AT_ONCE = 2**22  # entries of W drawn at once


def parameters(scale: str) -> dict[str, Any]:
    """What is run: v = 2 M; lr falls to 3/10 and the batch grows along 60 steps."""
    return {
        "points": POINTS,
        "draws": {str(width): draws for width, draws in _DRAWS[scale].items()},
        "lr": _LR,
        "batch": _BATCH,
        "steps": _STEPS,
        "noise_var": _NOISE,
        "seed": 5,
    }


def schedule(alpha: float, width: int) -> Schedule:
    """lr from .3 (times M^(2 alpha - 1) without a finite trace) down to 3/10 of it, batch ceil(4 (1 + .3 s)^(1/2))."""
    rate = _LR * (float(width) ** (2.0 * alpha - 1.0) if alpha < 0.5 else 1.0)
    return from_arrays(rate * np.linspace(1.0, 0.3, _STEPS), np.ceil(_BATCH * np.sqrt(1.0 + 0.3 * np.arange(_STEPS))))


def compute(scale: str) -> dict[str, Any]:
    """Relative difference of risk and gap after the last step, by point and width, and the c in c/M."""
    settings = parameters(scale)
    rng = np.random.default_rng(settings["seed"])
    return {"points": {name: _point(rng, *point, _DRAWS[scale]) for name, point in POINTS.items()}}


def _point(rng: np.random.Generator, alpha: float, beta: float, draws: dict[int, int]) -> dict[str, Any]:
    rows = []
    for width, count in draws.items():
        problem = power_law(alpha, beta, ambient=2 * width, noise_var=_NOISE)
        path = schedule(alpha, width)
        theory = recursion.risk(padded(equivalent(problem, width)), path, at=[_STEPS])
        wanted = np.array([theory.risk[0], theory.gap[0]])
        found = sampled(rng, problem, width, path, count)
        mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(count)
        rows.append({"width": width, "draws": count, "difference": mean / wanted - 1.0, "stderr": error / wanted})
    difference, error = (np.array([row[name] for row in rows]) for name in ("difference", "stderr"))
    slopes, spread = one_over_width(np.array([row["width"] for row in rows]), difference, error)
    return {"alpha": alpha, "beta": beta, "rows": rows, "c": slopes, "residual": spread}


def padded(spectrum: Spectrum) -> Spectrum:
    """The same spectrum with modes that carry nothing, up to a multiple of 128: equal shapes are compiled once."""
    more = -spectrum.modes % 128
    return spectrum.replace(
        eigenvalues=np.append(spectrum.eigenvalues, np.full(more, np.min(spectrum.eigenvalues))),
        forcing_energy=np.append(spectrum.forcing_energy, np.zeros(more)),
        multiplicity=np.append(spectrum.multiplicity, np.zeros(more)),
    )


def sampled(rng: np.random.Generator, problem: Problem, width: int, path: Schedule, count: int) -> np.ndarray:
    """Risk and gap after the last step for `count` draws of W, (count, 2), from the M x M Gram matrices."""
    root = np.sqrt(np.asarray(problem.eigenvalues))
    signal = root * np.asarray(problem.target)
    chunk = max(1, _AT_ONCE // (2 * width * width))
    lam, energy = np.empty((count, width)), np.empty((count, width))
    for start in range(0, count, chunk):
        here = slice(start, min(start + chunk, count))
        normal = rng.standard_normal((here.stop - start, root.size, width))
        features = root[:, None] * normal / np.sqrt(width)
        lam[here], vectors = np.linalg.eigh(features.transpose(0, 2, 1) @ features)
        moved = np.einsum("nvm,v->nm", features, signal)
        energy[here] = np.einsum("nmk,nm->nk", vectors, moved) ** 2 / lam[here]
    floor = np.square(signal).sum() - energy.sum(axis=1)
    noise = np.full(count, float(problem.noise_var))
    return np.asarray(_ends(lam, energy, jnp.asarray(floor), jnp.asarray(noise), path))


@jax.jit
def _ends(lam: jax.Array, energy: jax.Array, floor: jax.Array, noise: jax.Array, path: Schedule) -> jax.Array:
    """Risk and gap after the last step of many spectra, (count, 2)."""

    def one(lam: jax.Array, energy: jax.Array, floor: jax.Array, noise: jax.Array) -> jax.Array:
        curve = recursion.risk(Spectrum(lam, energy, jnp.ones_like(lam), floor, noise), path, at=[_STEPS])
        return jnp.stack([curve.risk[0], curve.gap[0]])

    return jax.vmap(one)(lam, energy, floor, noise)


def one_over_width(widths: np.ndarray, difference: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Leading coefficient of the fit c/M + d/M^2 to differences (k, 2) with errors (k, 2), and the largest residual in
    standard errors; both (2,)."""
    powers = np.stack([1.0 / widths, 1.0 / widths**2], axis=1)
    slopes, residual = np.empty(2), np.empty(2)
    for column in range(2):
        weighted = powers / error[:, column, None]
        scaled = difference[:, column] / error[:, column]
        best = np.linalg.lstsq(weighted, scaled, rcond=None)[0]
        slopes[column], residual[column] = best[0], np.abs(scaled - weighted @ best).max()
    return slopes, residual


def caption(data: dict[str, Any]) -> str:
    """Coefficients of 1/M, and how well the law fits."""
    told = []
    for name, point in data["points"].items():
        first, last = point["rows"][0], point["rows"][-1]
        told.append(
            f"{NAMES[name]} (alpha {point['alpha']:g}, beta {point['beta']:g}): risk "
            f"{100 * first['difference'][0]:+.2f} +- {100 * first['stderr'][0]:.2f} % at width {first['width']}, "
            f"{100 * last['difference'][0]:+.3f} +- "
            f"{100 * last['stderr'][0]:.3f} % at {last['width']}, c = {point['c'][0]:.2f} for the risk and "
            f"{point['c'][1]:.2f} for the gap, largest residual {max(point['residual']):.1f} standard errors"
        )
    draws = ", ".join(f"{row['draws']:,} at {row['width']}" for row in data["points"]["LM"]["rows"])
    return (
        f"Relative difference between the mean over sampled W and the deterministic equivalent after {_STEPS} steps of "
        f"falling lr and growing batch, v = 2 M, sigma^2 = {_NOISE:g}; absolute values, bars two standard errors of "
        f"the mean, draws of W: {draws}. Dashed: the part c/M of fits c/M + d/M^2. {'; '.join(told)}. A single W "
        "scatters far more than this."
    )


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Risk on the left, gap on the right."""
    figure, pair = canvas(1, 2, width=10.6, height=4.6, sharey=True)
    for column, (axes, words) in enumerate(zip(pair, ("risk", "noisy-clean gap"), strict=True)):
        for shift, colour, marker, (name, point) in zip(
            (0.97, 1.0, 1.03), (VERMILION, BLUE, ORANGE), "osD", data["points"].items(), strict=True
        ):
            widths = numbers([row["width"] for row in point["rows"]])
            difference, error = (
                numbers([row[key][column] for row in point["rows"]]) for key in ("difference", "stderr")
            )
            axes.errorbar(
                shift * widths,
                np.abs(difference),
                yerr=2.0 * error,
                fmt=marker,
                color=colour,
                mfc="white",
                capsize=2,
                label=NAMES[name],
            )
            dense = np.geomspace(widths[0], widths[-1], 50)
            c = point["c"][column]
            axes.plot(dense, np.abs(c) / dense, color=colour, lw=1.0, ls=(0, (4, 2)))
        axes.set(xscale="log", xlabel="width M", ylim=(1e-4, 0.3))
        axes.set_yscale("log", nonpositive="clip")
        axes.set_xticks(widths, [f"{width:.0f}" for width in widths])
        axes.minorticks_off()
        axes.legend(loc="upper right")
        panel(axes, "ab"[column], words)
    pair[0].set_ylabel("|mean over W / equivalent - 1|")
    return figure
