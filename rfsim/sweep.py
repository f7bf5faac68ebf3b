"""A sweep over (alpha, beta, vartheta) that decides every cell twice: in the limit by closed form, and by measurement.

A window (T1, T2) is finite, so near the lines of the map what is measured may differ from the limit. The continuum
integral over the same window, with feedback and nothing fitted, says beforehand what the window must show; each
disagreement is traced to the gap or to the clean risk being still far from its limit.
"""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from rfsim.checks import InputError, finite_number, positive_number, whole_number
from rfsim.compress import compress_with_error
from rfsim.continuum import accumulate, forcing_profile, time_grid
from rfsim.gap_laws import clean_exponent, gap_law, schedule_effect
from rfsim.measure import fit_exponent
from rfsim.problems import Problem, power_law
from rfsim.regimes import forcing_exponent, memory_exponent
from rfsim.routes import recursion
from rfsim.schedules import power
from rfsim.sources.population import population
from rfsim.spectra import Spectrum

VERDICTS = ("agree", "undecided", "opposite", "outside")
_POINTS = 300  # recorded steps in the window
_SHAPE = 256  # numbers of nodes are filled up to a multiple of this


class Decision(NamedTuple):
    """What a window says: exponent of the gap, difference q_N - q_0 from gap/clean, and the label that follows."""

    label: str
    gap_exponent: float
    gap_uncertainty: float
    difference: float
    difference_uncertainty: float


class Cell(NamedTuple):
    """One cell of a sweep.

    limit : label of `rfsim.gap_laws.schedule_effect`, or "outside" where the map does not reach (finite bulk, p <= 0).
    q_gap, q_clean : exponents in the limit; q_gap is None if the gap grows.
    expected, measured : decisions of the continuum and of the exact recursion on the window; None outside.
    verdict : "agree", "undecided" (the window cannot tell, or the limit is a tie), "opposite", or "outside".
    blame : "gap" or "clean", whichever is farther from its limit on the window, or "line" on a line of the map; None
        where they agree or nothing was measured.
    reason : one sentence.
    """

    alpha: float
    beta: float
    vartheta: float
    limit: str
    q_gap: float | None
    q_clean: float | None
    expected: Decision | None
    measured: Decision | None
    verdict: str
    blame: str | None
    reason: str


def decide(gap: tuple[float, float], difference: tuple[float, float]) -> Decision:
    """Label of (exponent, uncertainty) of the gap and of gap/clean.

    A gap that does not decay destroys. One that decays beyond its uncertainty changes the exponent if it decays more
    slowly than the clean risk, and preserves it if faster, each beyond the uncertainty of the difference. Everything
    else is undecided.
    """
    if gap[0] <= 0.0:
        label = "destroy"
    elif gap[0] <= gap[1] or abs(difference[0]) <= difference[1]:
        label = "undecided"
    else:
        label = "preserve" if difference[0] > 0.0 else "change"
    return Decision(label, *gap, *difference)


def sweep(
    alphas: Iterable[float],
    betas: Iterable[float],
    varthetas: Iterable[float],
    *,
    window: tuple[float, float],
    lr: float,
    batch: int,
    noise_var: float,
    progress: Callable[[int], None] | None = None,
) -> list[Cell]:
    """Preserve, change or destroy in every cell of a grid, in the limit and measured on exact dynamics.

    The schedule is a constant lr with B_t = ceil(batch (1 + T_t)^vartheta) at infinite width.

    Parameters
    ----------
    alphas, betas, varthetas : the grid; cells come in this order, vartheta fastest.
    window : (T1, T2) in intrinsic time, lr <= T1 and 2 T1 < T2.
    progress : called with the number of finished cells.

    Raises
    ------
    InputError : for numbers out of range; cells outside of the map are not errors.
    """
    lr, noise_var = positive_number("lr", lr), positive_number("noise_var", noise_var)
    batch = whole_number("batch", batch)
    if lr * (1.0 + 1.0 / batch) >= 2.0:
        raise InputError(f"lr {lr:g} is not below the pointwise limit {2.0 * batch / (batch + 1.0):g}; lower lr")
    if len(window) != 2 or not lr <= window[0] < 0.5 * window[1] < math.inf:
        raise InputError(f"window must satisfy lr <= T1 and 2 T1 < T2, got {window!r}; give for example (40, 1e4)")
    ratios = [finite_number("varthetas", vartheta) for vartheta in varthetas]
    cells = []
    for alpha in [positive_number("alphas", alpha) for alpha in alphas]:
        for beta in [finite_number("betas", beta) for beta in betas]:
            outside = _outside(alpha, beta)
            source = None if outside else _few_nodes(power_law(alpha, beta, noise_var=noise_var))
            for vartheta in ratios:
                if source is None:
                    cell = Cell(alpha, beta, vartheta, "outside", None, None, None, None, "outside", None, outside)
                else:
                    cell = _cell(source, alpha, beta, vartheta, window, lr, batch)
                cells.append(cell)
                if progress is not None:
                    progress(len(cells))
    return cells


def tally(cells: Iterable[Cell]) -> dict[str, int]:
    """How many cells have each verdict."""
    found = [cell.verdict for cell in cells]
    return {verdict: found.count(verdict) for verdict in VERDICTS}


def _outside(alpha: float, beta: float) -> str:
    """Why the map does not reach this problem; empty if it does."""
    if 2.0 * alpha + 2.0 * beta <= 1.0:
        return "p = 2 alpha + 2 beta - 1 is not positive: the target has infinite energy"
    if alpha <= 0.25:
        return "finite bulk (alpha <= 1/4): no memory exponent, the gap follows the integral of lr/batch"
    return ""


def _few_nodes(problem: Problem) -> Spectrum:
    """The population as few nodes (1e-9), filled up with empty ones: equal shapes are compiled once."""
    found = compress_with_error(population(problem)).spectrum
    more = -found.modes % _SHAPE
    return found.replace(
        eigenvalues=np.append(found.eigenvalues, np.full(more, np.min(found.eigenvalues))),
        forcing_energy=np.append(found.forcing_energy, np.zeros(more)),
        multiplicity=np.append(found.multiplicity, np.zeros(more)),
    )


def _cell(
    source: Spectrum, alpha: float, beta: float, vartheta: float, window: tuple[float, float], lr: float, batch: int
) -> Cell:
    q_memory = memory_exponent(alpha)
    q_clean = clean_exponent(forcing_exponent(alpha, beta), q_memory)
    effect, law = schedule_effect(q_memory, q_clean, vartheta), gap_law(q_memory, vartheta)
    time, gap, clean = _exact(source, vartheta, window, lr, batch)
    measured = _curves(time, gap, clean, window)
    expected = _curves(time, *_continuum(source, vartheta, time, lr, batch), window)
    verdict, blame, reason = _judge(effect.label, law.exponent, q_clean, expected, measured, window)
    return Cell(alpha, beta, vartheta, effect.label, law.exponent, q_clean, expected, measured, verdict, blame, reason)


def _exact(
    source: Spectrum, vartheta: float, window: tuple[float, float], lr: float, batch: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Time, gap and clean risk of the exact recursion around the window."""
    steps = math.ceil(window[1] / lr) + 1
    inside = np.rint(np.geomspace(window[0], window[1], _POINTS) / lr).astype(np.int64)
    at = np.unique(np.concatenate([[max(inside[0] - 1, 0)], inside, [steps]]))
    curve = recursion.risk(source, power(steps, lr, batch, vartheta=vartheta), at=at)
    return np.asarray(curve.intrinsic_time), np.asarray(curve.gap), np.asarray(curve.clean)


def _continuum(
    source: Spectrum, vartheta: float, time: np.ndarray, lr: float, batch: int
) -> tuple[np.ndarray, np.ndarray]:
    """Gap and clean risk of the continuum with feedback at the same times, for the same rounded-up batches."""
    grid = time_grid(float(time[-1]))
    ratio = np.ceil(batch * (1.0 + grid) ** vartheta) / lr
    forcing = forcing_profile(source, grid)
    clean = forcing + accumulate(source, grid, forcing, ratio, feedback=True)
    gap = accumulate(source, grid, float(source.noise_var), ratio, feedback=True)
    return np.interp(time, grid, gap), np.interp(time, grid, clean)


def _curves(time: np.ndarray, gap: np.ndarray, clean: np.ndarray, window: tuple[float, float]) -> Decision:
    if not (np.isfinite(gap).all() and np.isfinite(clean).all()):
        return Decision("destroy", -math.inf, 0.0, -math.inf, 0.0)  # grown beyond float64
    fits = [fit_exponent(time, curve, window=window) for curve in (gap, gap / clean)]
    return decide(*((fit.exponent, fit.uncertainty) for fit in fits))


def _judge(
    limit: str,
    q_gap: float | None,
    q_clean: float,
    expected: Decision,
    measured: Decision,
    window: tuple[float, float],
) -> tuple[str, str | None, str]:
    """Verdict, blame and reason of one cell."""
    predicted = "destroy" if limit == "unstable" else limit
    if measured.label == predicted:
        return "agree", None, f"the window shows the limit: {limit}"
    told = (
        f"limit {limit}, window {measured.label}; the continuum says {expected.label} for T in [{window[0]:g}, "
        f"{window[1]:g}]"
    )
    if limit == "critical":
        return "undecided", "line", f"{told}: gap and clean risk have the same exponent, only slow factors differ"
    verdict = "undecided" if measured.label == "undecided" else "opposite"
    if q_gap is None or limit in ("unstable", "destroy"):
        slope = f"the gap's slope there is {expected.gap_exponent:+.3f}"
        if q_gap is None:
            return verdict, "gap", f"{told}: {slope}, its growth has not set in yet"
        return verdict, "line", f"{told}: {slope}, on the edge it tends to 0 from one side"
    gap_off = expected.gap_exponent - q_gap
    clean = expected.gap_exponent - expected.difference
    clean_off = clean - q_clean
    blame = "gap" if abs(gap_off) >= abs(clean_off) else "clean"
    return (
        verdict,
        blame,
        f"{told}: gap exponent {expected.gap_exponent:.3f} (limit {q_gap:.3f}), clean exponent {clean:.3f} (limit "
        f"{q_clean:.3f}), and the limits are {abs(q_gap - q_clean):.3f} apart",
    )
