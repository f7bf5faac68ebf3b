"""Names of the regimes: 3 + 3 (+ 2) joint-schedule regimes and the 4 + 3 clean compute phases, with their boundaries.

Both diagrams are unions of convex cells cut out by a few lines; a cell is written as the sides of the lines it lies
on. A point belongs to every cell whose closure contains it (within `TOLERANCE`), so a boundary point knows all its
neighbours, at crossings too. Exponents themselves are in `rfsim.exponents`, re-exported here.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfsim.checks import InputError, finite_number
from rfsim.exponents import (
    PHASE_IV_SPLIT,
    TOLERANCE,
    Optimum,
    clean_forcing_terms,
    clean_risk_terms,
    compute_optimum,
    compute_phase_rates,
    data_optimum,
    forcing_exponent,
    memory_exponent,
    power_law_coordinates,
    power_law_point,
    response_coordinates,
    takeover_times,
)

__all__ = [
    "EXAMPLES",
    "PHASES",
    "REGIMES",
    "ExponentRegime",
    "Regime",
    "classify_grid",
    "clean_forcing_terms",
    "clean_risk_terms",
    "compute_optimum",
    "compute_phase_rates",
    "data_optimum",
    "forcing_exponent",
    "memory_exponent",
    "power_law_coordinates",
    "regime",
    "regime_from_exponents",
    "response_coordinates",
    "takeover_times",
]

_QUARTER, _HALF, _TARGET, _TIE, _SPLIT = "alpha=1/4", "alpha=1/2", "beta=1/2", "beta=alpha", "alpha=1-1/sqrt(2)"
_SOURCE_END = "beta=1+2alpha"
_RESPONSE_NAMES = {_HALF: "q_memory=1", _TARGET: "q_forcing=1", _TIE: "q_forcing=q_memory"}

_REGIME_CELLS: dict[str, dict[str, int]] = {
    "FB1": {_QUARTER: -1, _TARGET: -1},
    "FB2": {_QUARTER: -1, _TARGET: +1},
    "LM1": {_QUARTER: +1, _HALF: -1, _TIE: -1},
    "LM2": {_QUARTER: +1, _HALF: -1, _TIE: +1, _TARGET: -1},
    "LM3": {_QUARTER: +1, _HALF: -1, _TARGET: +1},
    "IM1": {_HALF: +1, _TARGET: -1},
    "IM2": {_HALF: +1, _TARGET: +1, _TIE: -1},
    "IM3": {_HALF: +1, _TIE: +1},
}
_PHASE_CELLS: dict[str, dict[str, int]] = {
    "Ia": {_HALF: +1, _TARGET: -1},
    "Ib": {_HALF: -1, _TARGET: -1},
    "Ic": {_QUARTER: -1, _TARGET: +1},
    "II": {_HALF: +1, _TARGET: +1, _TIE: -1},
    "III": {_HALF: +1, _TIE: +1},
    "IVa": {_SPLIT: +1, _HALF: -1, _TARGET: +1},
    "IVb": {_QUARTER: +1, _SPLIT: -1, _TARGET: +1},
}

REGIMES = tuple(_REGIME_CELLS)
"""The eight regimes in their fixed order: finite bulk (FB), long memory (LM), integrable memory (IM)."""

PHASES = tuple(_PHASE_CELLS)
"""The seven clean compute phases in their fixed order."""


EXAMPLES = {
    "LM1": (0.4, 0.3),
    "LM2": (0.27, 0.4),
    "LM3": (0.3, 0.7),
    "IM1": (0.6, 0.2),
    "IM2": (0.7, 0.6),
    "IM3": (0.7, 0.9),
    "FB1": (0.2, 0.4),
    "FB2": (0.12, 0.65),
}
"""One point (alpha, beta) well inside each regime, used by figures and verification."""


class Regime(NamedTuple):
    """Everything that the point (alpha, beta) decides; see `regime`."""

    alpha: float
    beta: float
    label: str
    default_label: str
    neighbours: tuple[str, ...]
    boundaries: tuple[str, ...]
    q_forcing: float | None
    q_memory: float | None
    compute_phase: str
    data_exponent: float
    compute_exponent: float
    data_scaling: Optimum
    compute_scaling: Optimum
    in_source_range: bool
    rate_lines: tuple[str, ...]


class ExponentRegime(NamedTuple):
    """The regime of a pair of response exponents; see `regime_from_exponents`."""

    label: str
    default_label: str
    neighbours: tuple[str, ...]
    boundaries: tuple[str, ...]


def _distances(alpha: float, beta: float) -> dict[str, float]:
    """Signed distance of (alpha, beta) to every line."""
    return {
        _QUARTER: alpha - 0.25,
        _HALF: alpha - 0.5,
        _TARGET: beta - 0.5,
        _TIE: beta - alpha,
        _SPLIT: alpha - PHASE_IV_SPLIT,
    }


def _cells_around(cells: Mapping[str, Mapping[str, int]], distances: Mapping[str, float]) -> tuple[str, ...]:
    """Names of the cells whose closure holds the point, in the order of the table."""
    return tuple(
        name
        for name, sides in cells.items()
        if all(side * distances[line] >= -TOLERANCE for line, side in sides.items())
    )


def _label(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else "boundary:" + "|".join(names)


def _neighbours(names: tuple[str, ...]) -> tuple[str, ...]:
    return names if len(names) > 1 else ()


def _default(names: tuple[str, ...]) -> str:
    """Tie-break: alpha = 1/4 goes to FB, alpha = 1/2 to LM, and the smaller subscript within a family."""
    return names[0]


def regime(alpha: float, beta: float) -> Regime:
    """Regime, clean compute phase and optimal rates of the power-law problem (alpha, beta).

    Parameters
    ----------
    alpha, beta
        Eigenvalues j^(-2 alpha), target coordinates j^(-beta); alpha > 0 and 2 alpha + 2 beta > 1.

    Returns
    -------
    Regime
        * label: "FB1", "FB2", "LM1".."LM3", "IM1".."IM3", or "boundary:A|B|..." naming all adjacent regimes in the
          order of `REGIMES` when the point is within 1e-12 of alpha = 1/4, alpha = 1/2, beta = 1/2 or beta = alpha;
        * default_label: on a boundary the smaller subscript within a family, FB at alpha = 1/4, LM at alpha = 1/2;
          elsewhere the label;
        * neighbours: the adjacent regimes on a boundary, else ();
        * boundaries: lines through the point on which a label of either diagram changes ("alpha=1/4", "alpha=1/2",
          "beta=1/2", "beta=alpha", "alpha=1-1/sqrt(2)"), and "beta=1+2alpha", the end of the source range;
        * q_forcing, q_memory: response exponents, None where default_label is FB (the memory is flat there);
        * compute_phase: "Ia".."IVb" of the clean compute optimum, or "boundary:Ia|II" in the order of `PHASES`;
        * data_exponent, compute_exponent: R ~ D^-data_exponent and R ~ f^-compute_exponent with label noise, and
          data_scaling, compute_scaling the same with the exponents of width and intrinsic time;
        * in_source_range: beta < 1 + 2 alpha, the range for which the forcing law is proved;
        * rate_lines: "beta=0" (inside IM1) and "alpha=1" (inside IM2, IM3): rates change form, labels do not.

    Raises
    ------
    InputError
        alpha <= 0, 2 alpha + 2 beta <= 1, or not finite numbers.

    Source: theory of Wang, Liu, Chen 2026 (regimes); Paquette et al. 2024 (4 + 3 phases).
    """
    alpha, beta, _ = power_law_point(alpha, beta)
    distances = _distances(alpha, beta)
    around = _cells_around(_REGIME_CELLS, distances)
    phases = _cells_around(_PHASE_CELLS, distances)
    lines = [name for name in (_QUARTER, _HALF, _TARGET, _TIE) if abs(distances[name]) <= TOLERANCE]
    if {"IVa", "IVb"} <= set(phases):
        lines.append(_SPLIT)
    beyond = beta - 1.0 - 2.0 * alpha
    if abs(beyond) <= TOLERANCE:
        lines.append(_SOURCE_END)
    rate_lines = []
    if alpha > 0.5 and abs(beta) <= TOLERANCE:
        rate_lines.append("beta=0")
    if beta > 0.5 and abs(alpha - 1.0) <= TOLERANCE:
        rate_lines.append("alpha=1")
    finite_bulk = _default(around).startswith("FB")
    data, compute = data_optimum(alpha, beta), compute_optimum(alpha, beta)
    return Regime(
        alpha=alpha,
        beta=beta,
        label=_label(around),
        default_label=_default(around),
        neighbours=_neighbours(around),
        boundaries=tuple(lines),
        q_forcing=None if finite_bulk else forcing_exponent(alpha, beta),
        q_memory=None if finite_bulk else memory_exponent(alpha),
        compute_phase=_label(phases),
        data_exponent=data.rate,
        compute_exponent=compute.rate,
        data_scaling=data,
        compute_scaling=compute,
        in_source_range=beyond < -TOLERANCE,
        rate_lines=tuple(rate_lines),
    )


def regime_from_exponents(q_forcing: float, q_memory: float) -> ExponentRegime:
    """Regime read off the response exponents, also for systems that are not power laws (q_memory >= 2 is allowed).

    LM for q_K < 1, IM for q_K > 1; subscript 1 for q_F < min(q_K, 1), 3 for q_F > max(q_K, 1), 2 between. Same
    boundary conventions as `regime`; lines are "q_memory=1", "q_forcing=1", "q_forcing=q_memory".

    Raises
    ------
    InputError
        An exponent that is not above 0: finite bulk has no response coordinates.
    """
    for name, value in (("q_forcing", q_forcing), ("q_memory", q_memory)):
        if finite_number(name, value) <= TOLERANCE:
            raise InputError(
                f"{name} must be positive, got {value!r}; the finite-bulk regimes FB1, FB2 have no response "
                f"coordinates: call regime(alpha, beta) for them"
            )
    distances = {
        _QUARTER: q_memory,
        _HALF: q_memory - 1.0,
        _TARGET: q_forcing - 1.0,
        _TIE: q_forcing - q_memory,
    }
    around = _cells_around(_REGIME_CELLS, distances)
    lines = tuple(told for line, told in _RESPONSE_NAMES.items() if abs(distances[line]) <= TOLERANCE)
    return ExponentRegime(_label(around), _default(around), _neighbours(around), lines)


def classify_grid(alpha: ArrayLike, beta: ArrayLike) -> NDArray[np.str_]:
    """Labels of `regime` for arrays that broadcast against each other; "" where alpha <= 0 or 2 alpha + 2 beta <= 1.

    Raises
    ------
    InputError
        An entry is not a finite number, or the shapes do not broadcast.
    """
    try:
        alphas, betas = np.broadcast_arrays(np.asarray(alpha, dtype=np.float64), np.asarray(beta, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"alpha and beta must be arrays of numbers that broadcast against each other: {error}; "
            f"pass for example alpha[None, :], beta[:, None]"
        ) from error
    for name, values in (("alpha", alphas), ("beta", betas)):
        if not np.isfinite(values).all():
            raise InputError(f"{name} must be finite everywhere, got NaN or infinity; correct these entries")
    allowed = (alphas > 0.0) & (2.0 * alphas + 2.0 * betas - 1.0 > TOLERANCE)
    distances = {
        _QUARTER: alphas - 0.25,
        _HALF: alphas - 0.5,
        _TARGET: betas - 0.5,
        _TIE: betas - alphas,
    }
    inside = [
        np.logical_and.reduce([side * distances[line] >= -TOLERANCE for line, side in sides.items()])
        for sides in _REGIME_CELLS.values()
    ]
    membership = np.stack(inside).reshape(len(REGIMES), -1).T & allowed.reshape(-1, 1)
    combinations, index = np.unique(membership, axis=0, return_inverse=True)
    told = [tuple(name for name, here in zip(REGIMES, row, strict=True) if here) for row in combinations]
    labels = np.array([_label(names) if names else "" for names in told], dtype=np.str_)
    result: NDArray[np.str_] = labels[index.reshape(alphas.shape)]
    return result
