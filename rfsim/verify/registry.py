"""What can be verified: families, the module that holds each, and the names of their checks.

Names are kept here so that a wrong name is told at once, without importing jax or the families.
"""

from typing import NamedTuple

SEED = 20260  # every random draw of the checks derives from it; fixed in advance


class Family(NamedTuple):
    """module : name inside rfsim.verify; summary : what the family shows; parts : its checks, after the slash."""

    module: str
    summary: str
    parts: tuple[str, ...]


FAMILIES: dict[str, Family] = {
    "recursion": Family(
        "equations",
        "mode recursion = Volterra equation = matrix iteration of the error covariance",
        ("rational", "isotropic", "dense", "dense-clean", "dense-gap", "volterra", "row-mass"),
    ),
    "groupings": Family(
        "groupings",
        "forcing + memory and clean + gap are two groupings of one risk",
        ("memory", "clean", "gap", "affine", "small-noise"),
    ),
    "montecarlo": Family(
        "sampling",
        "SGD itself, literal and exact in law, has the exact mean risk; a wrong theory is told apart",
        ("law", "literal", "law-rejects-wrong", "literal-rejects-wrong", "wrong-loop"),
    ),
    "stability": Family(
        "stability",
        "a constant schedule is stable iff eta (1+1/B) max l < 2 and kappa < 1",
        ("limit", "gradient-descent", "kappa", "below", "above", "pointwise-not-enough"),
    ),
    "terminal": Family(
        "terminal",
        "the risk of a stable constant schedule tends to (floor + sigma^2 kappa)/(1 - kappa)",
        ("run", "clean", "gap", "fixed-point"),
    ),
    "sandwich": Family(
        "sandwich",
        "label noise adds between N_t and N_t/(1 - row mass)",
        ("kernel-mass", "lower", "upper", "first-step", "last-step", "schedule-lower", "schedule-upper"),
    ),
    "tauberian": Family(
        "tauberian",
        "spectral mass near zero decides the laws of forcing and memory, constants included",
        (
            "criterion",
            "canonical-forcing",
            "canonical-memory",
            "canonical-run",
            "kernel-mass-long",
            "kernel-mass-integrable",
            "alternating",
            "sparse",
            "random",
            "stretched-forcing",
            "stretched-memory",
            "exponential-forcing",
            "exponential-memory",
            "geometric-mean",
            "geometric-harmonic",
            "geometric-memory-harmonic",
            "rapid",
            "rapid-memory",
            "rapid-loss",
            "finite",
        ),
    ),
    "counterexamples": Family(
        "counterexamples",
        "where the masses are not regular, the power law fails, and by how much",
        ("spectral-gap", "no-limit-mass", "no-limit-forcing", "packet", "packet-bulk", "packet-mass"),
    ),
    "exponents": Family(
        "exponents",
        "forcing and memory exponents at one point of each of the eight regimes",
        (
            "forcing-window",
            "memory-window",
            *(f"forcing-{label}" for label in ("LM1", "LM2", "LM3", "IM1", "IM2", "IM3", "FB1", "FB2")),
            *(f"memory-{label}" for label in ("LM1", "LM2", "LM3", "IM1", "IM2", "IM3", "FB1", "FB2")),
            "memory-FB1-width",
            "memory-FB2-width",
        ),
    ),
    "gaps": Family(
        "gaps",
        "exponents and constants of the noisy-clean gap under a ratio that grows like T^vartheta",
        (
            *(f"exponent-LM-{vartheta}" for vartheta in ("0.5", "0.8", "1.25")),
            *(f"exponent-IM-{vartheta}" for vartheta in ("0.25", "0.5", "1")),
            "published",
            "limit-LM",
            "limit-IM",
            "constant-LM",
            "constant-LM-log",
            "constant-LM-ceiling",
            "constant-IM",
            "constant-IM-tie",
            "constant-IM-ceiling",
            "feedback",
        ),
    ),
    "schedules": Family(
        "schedules",
        "what a joint schedule does beyond exponents: finite windows, renewal, edges, paired realisations, anneals",
        (
            "local-exponents",
            "local-quadrature",
            "renewal",
            "renewal-limit",
            "edge-plateau",
            "edge-exponent",
            "edge-factor",
            "edge-window",
            "pair-wsd-order",
            "pair-wsd-steps",
            "pair-8-1-1-order",
            "pair-8-1-1-steps",
            "anneal-parts",
            "anneal-gain",
            "iteration-time",
            "finite-bulk",
        ),
    ),
    "equivalent": Family(
        "equivalents",
        "the deterministic equivalent: its equation, its spectrum on a closed contour, and the mean over sampled W",
        (
            "fixed-point",
            "floor",
            "kappa",
            "moments",
            "contour-forcing",
            "contour-memory",
            "two-rays",
            "sampled-forcing",
            "sampled-memory",
            "rejects-wrong",
        ),
    ),
    "regimes": Family(
        "labels",
        "regime labels agree with the signs of measured differences of exponents",
        ("labels", "coordinates"),
    ),
    "response": Family(
        "response",
        "SGD on any differentiable model is gradient descent plus the trace of noise and curvature along its path",
        (
            "linear",
            "machinery",
            "kernel",
            "symmetric",
            "skewed",
            "drift-needed",
            "montecarlo",
            "montecarlo-rejects-wrong",
            "probes",
        ),
    ),
    "surrogates": Family(
        "surrogates",
        "laws for measured curves: published values, identities, and fits of the exact dynamics",
        (
            "anchors",
            "telescoped",
            "memory-exponent-LM",
            "wsd-LM",
            "cosine-LM",
            "memory-exponent-IM",
            "wsd-IM",
            "cosine-IM",
            "allocation",
        ),
    ),
}


def names() -> tuple[str, ...]:
    """Names of the families."""
    return tuple(FAMILIES)


def check_names(family: str) -> tuple[str, ...]:
    """Full names of the checks of a family."""
    return tuple(f"{family}/{part}" for part in FAMILIES[family].parts)
