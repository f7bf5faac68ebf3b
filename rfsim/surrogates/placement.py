"""Where a fitted pair of exponents (q_F, q_K) lies on the regime map, and how certain that is."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import f as fisher

from rfsim.checks import FloatArray, InputError, whole_number
from rfsim.regimes import regime_from_exponents
from rfsim.surrogates.laws import parameter_names
from rfsim.surrogates.result import FitResult
from rfsim.surrogates.uncertainty import checked_level, root

LABELS = ("LM1", "LM2", "LM3", "IM1", "IM2", "IM3")
"""The regimes that have response exponents: long memory q_K < 1, integrable memory q_K > 1."""

_EXPONENTS = {
    "forcing-memory": ("q_F", "q_K"),
    "fsl": ("s", "q_K"),
    "lr-fsl": ("a_1", "a_2"),
    "elr-fsl": ("a_1", "a_2"),
}
_UNRESOLVED = 0.05  # |q_K - 1| up to this leaves the family open whatever the standard error
_FEW = 20  # samples of a bootstrap from which a covariance is taken


class Side(NamedTuple):
    """Distance of the fitted point to a boundary, in standard errors of the combination of logs that crosses it.

    line : "q_memory=1", "q_forcing=1" or "q_forcing=q_memory". distance : >= 0, inf if the combination is fixed.
    """

    line: str
    distance: float


class Rival(NamedTuple):
    """Another optimum of the fit that the data do not reject: its regime and exponents."""

    label: str
    q_forcing: float
    q_memory: float


@dataclass(frozen=True)
class Placement:
    """Regime of fitted exponents.

    Attributes
    ----------
    label : regime of the point (q_F, q_K), "boundary:..." on a line. default_label : with the tie broken.
    q_forcing, q_memory : the fitted exponents.
    covariance : (2, 2) of (log q_F, log q_K); 0 for what is fixed or on a bound.
    probabilities : label -> share of the draws, over `LABELS`; they add up to 1.
    sides : distance to each of the three boundaries.
    near : boundaries within one standard error.
    boundary_unresolved : |q_K - 1| <= 0.05.
    source : "bootstrap" (its samples are the draws) or "covariance" (draws of Student's distribution on logs).
    rows : degrees of freedom of the covariance. remarks : what a reader has to know, one line each.
    rival : another optimum that the data do not reject, or None; probabilities and covariance know nothing of it.
    """

    label: str
    default_label: str
    q_forcing: float
    q_memory: float
    covariance: FloatArray
    probabilities: dict[str, float]
    sides: tuple[Side, ...]
    near: tuple[str, ...]
    boundary_unresolved: bool
    source: str
    rows: float
    remarks: tuple[str, ...]
    rival: Rival | None = None

    @property
    def stderr(self) -> tuple[float, float]:
        """Standard errors of q_F and q_K."""
        errors = np.sqrt(np.diag(self.covariance))
        return float(self.q_forcing * errors[0]), float(self.q_memory * errors[1])

    @property
    def long_memory(self) -> float:
        """Probability of q_K <= 1."""
        return sum(share for label, share in self.probabilities.items() if label.startswith("LM"))

    def contour(self, level: float = 0.95, *, points: int = 181) -> tuple[FloatArray, FloatArray]:
        """Edge of the joint confidence region of (q_F, q_K): two arrays (points,), a closed curve.

        It is the ellipse of the covariance on logs with radius^2 = 2 F_level(2, rows).
        """
        level, count = checked_level(level), whole_number("points", points, least=4)
        angle = np.linspace(0.0, 2.0 * np.pi, count)
        radius = np.sqrt(2.0 * fisher.ppf(level, 2, self.rows))
        moved = radius * root(self.covariance) @ np.stack([np.cos(angle), np.sin(angle)])
        return self.q_forcing * np.exp(moved[0]), self.q_memory * np.exp(moved[1])

    def summary(self) -> str:
        """The placement as text."""
        errors = self.stderr
        lines = [
            f"regime {self.label}: q_F {self.q_forcing:.4g} +- {errors[0]:.2g}, "
            f"q_K {self.q_memory:.4g} +- {errors[1]:.2g}",
            "probability  " + "  ".join(f"{name} {share:.3f}" for name, share in self.probabilities.items()),
            "standard errors to  " + "  ".join(f"{line} {distance:.3g}" for line, distance in self.sides),
        ]
        return "\n".join([*lines, *self.remarks])


def placement(result: FitResult, *, draws: int = 20000, seed: int = 0) -> Placement:
    """Regime of the fitted (q_F, q_K), with the probability of every label from their joint uncertainty.

    If the result holds bootstrap samples, at least 20, the probability of a label is its share of the samples. Else
    pairs are drawn from Student's distribution with the fit's covariance and degrees of freedom, on the logs of the
    exponents. What is held in the fit, or lies on a bound, stays where it is. Another optimum that the data do not
    reject has no part in the probabilities, for lack of a weight that the data give; it is told in the remarks.

    Parameters
    ----------
    result : a fit of forcing-memory (q_F, q_K), fsl (s, q_K), lr-fsl or elr-fsl (a_1, a_2).
    draws, seed : number and seed of the draws, if there are no bootstrap samples.

    Raises
    ------
    InputError : for a law without a power-law kernel.

    Source: theory, sections 4.1 (the map in response exponents) and 7.6 (the unresolved boundary).
    """
    law = result.law
    if law.name not in _EXPONENTS:
        raise InputError(
            f"{law.name} has no pair of exponents (q_F, q_K); place a fit of one of {', '.join(_EXPONENTS)}"
        )
    whole_number("draws", draws)
    whole_number("seed", seed, least=0)
    names = parameter_names(law)
    places = [names.index(name) if name in names else None for name in _EXPONENTS[law.name]]
    centre = np.array([float(law.q_memory) if at is None else float(result.values[at]) for at in places])  # type: ignore[attr-defined]
    if result.samples is not None and len(result.samples) >= _FEW:
        source = "bootstrap"
        columns = [
            np.full(len(result.samples), centre[i]) if at is None else result.samples[:, at]
            for i, at in enumerate(places)
        ]
        pairs = np.stack(columns, axis=1)
        covariance = np.cov(np.log(pairs), rowvar=False)
    else:
        source = "covariance"
        covariance = np.zeros((2, 2))
        for i, at in enumerate(places):
            for j, other in enumerate(places):
                if at is not None and other is not None:
                    covariance[i, j] = result.spread.covariance[at, other] / (centre[i] * centre[j])
        pairs = _drawn(centre, covariance, result.spread.rows, draws, seed)
    q_forcing, q_memory = float(centre[0]), float(centre[1])
    rival = None if result.rival is None else _rival(result.rival, centre, places)
    found = regime_from_exponents(q_forcing, q_memory)
    labels = np.array(LABELS)[_cells(pairs[:, 0], pairs[:, 1])]
    sides = _sides(np.log(centre), covariance)
    near = tuple(side.line for side in sides if side.distance <= 1.0)
    unresolved = abs(q_memory - 1.0) <= _UNRESOLVED
    return Placement(
        label=found.label,
        default_label=found.default_label,
        q_forcing=q_forcing,
        q_memory=q_memory,
        covariance=covariance,
        probabilities={label: float(np.mean(labels == label)) for label in LABELS},
        sides=sides,
        near=near,
        boundary_unresolved=unresolved,
        source=source,
        rows=result.spread.rows,
        remarks=_remarks(result, near, unresolved, rival),
        rival=rival,
    )


def _rival(values: FloatArray, centre: FloatArray, places: list[int | None]) -> Rival:
    """The regime of other parameters (k,); an exponent that is an option of the law stays where it is."""
    pair = [float(centre[i] if at is None else values[at]) for i, at in enumerate(places)]
    return Rival(regime_from_exponents(*pair).label, *pair)


def _cells(q_forcing: FloatArray, q_memory: FloatArray) -> np.ndarray:
    """Places in `LABELS` of pairs (n,); ties as the default labels of `rfsim.regimes`."""
    low, high = np.minimum(q_memory, 1.0), np.maximum(q_memory, 1.0)
    within = np.where(q_forcing <= low, 0, np.where(q_forcing <= high, 1, 2))
    return np.where(q_memory <= 1.0, 0, 3) + within


def _drawn(centre: FloatArray, covariance: FloatArray, rows: float, draws: int, seed: int) -> FloatArray:
    """Pairs (draws, 2) of Student's distribution on logs."""
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal((draws, 2)) @ root(covariance).T
    wide = np.sqrt(rows / rng.chisquare(rows, draws))[:, None]
    return np.asarray(centre * np.exp(np.clip(normal * wide, -700.0, 700.0)))


def _sides(centre: FloatArray, covariance: FloatArray) -> tuple[Side, ...]:
    """Distances of (log q_F, log q_K) to the lines, each the zero of one combination of the two."""
    lines = {"q_memory=1": (0.0, 1.0), "q_forcing=1": (1.0, 0.0), "q_forcing=q_memory": (1.0, -1.0)}
    found = []
    for line, weights in lines.items():
        across = np.array(weights)
        away, error = abs(float(across @ centre)), float(np.sqrt(max(across @ covariance @ across, 0.0)))
        found.append(Side(line, away / error if error > 0.0 else (np.inf if away > 0.0 else 0.0)))
    return tuple(found)


def _remarks(result: FitResult, near: tuple[str, ...], unresolved: bool, rival: Rival | None) -> tuple[str, ...]:
    told = []
    exponents = _EXPONENTS[result.law.name]
    if rival is not None:
        told.append(
            f"another optimum is not rejected, at q_F {rival.q_forcing:.4g}, q_K {rival.q_memory:.4g}, in "
            f"{rival.label}: the probabilities are those of one optimum"
        )
    if unresolved:
        told.append(f"boundary_unresolved: q_K lies within {_UNRESOLVED:g} of 1, so LM and IM cannot be told apart")
    if near:
        told.append(f"within one standard error of {', '.join(near)}")
    for name in exponents:
        if name in result.at_bound:
            told.append(f"{name} is at a bound of the fit: its uncertainty is not part of the probabilities")
        if name in result.unidentified:
            told.append(f"{name} is not determined by the fitted runs: the probabilities only say that it is open")
    held = [name for name in exponents if name in result.fixed or name not in parameter_names(result.law)]
    if held:
        told.append(f"{', '.join(held)} was held in the fit: the probabilities are given its value")
    power = getattr(result.law, "clock_power", 1.0)
    if power != 1.0:
        told.append(f"q_K counts the clock sum lr^{power:g}; the map is made for exponents in the clock sum lr")
    return tuple(told)
