"""The learning problem: population eigenvalues, target and label noise.

y = <x, theta*> + eps, x ~ N(0, diag(eigenvalues)), Var eps = noise_var. The risk never contains noise_var.
"""

import math
from dataclasses import dataclass, field, replace

import jax
import numpy as np

from rfsim.checks import (
    InputError,
    finite_number,
    non_negative_number,
    require_entries,
    require_memory,
    same_length,
    whole_number,
)
from rfsim.precision import float64_array, is_traced

Array = np.ndarray | jax.Array

_LAID_OUT = 2**24  # coordinates up to which a power law is laid out in arrays; beyond, its exponents say it all


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Problem:
    """A linear regression problem in the eigenbasis of the population covariance.

    Made by `power_law` or `problem`, which check their arguments; the record itself checks nothing.

    Attributes
    ----------
    eigenvalues : (v,) population eigenvalues lambda_j > 0; empty for a power law of infinite or huge `ambient`, see
        `laid_out`.
    target : (v,) target coefficients theta*_j; likewise.
    noise_var : () label-noise variance sigma^2.
    alpha, beta : power-law exponents, or None for an arbitrary problem.
    ambient : ambient dimension v, an int or `math.inf`.
    """

    eigenvalues: Array
    target: Array
    noise_var: float | jax.Array
    alpha: float | None = field(default=None, metadata={"static": True})
    beta: float | None = field(default=None, metadata={"static": True})
    ambient: int | float = field(default=0, metadata={"static": True})

    def replace(self, **changes: object) -> "Problem":
        """Return a copy with some fields changed."""
        return replace(self, **changes)  # type: ignore[arg-type]


def check_power_law(alpha: float, beta: float) -> tuple[float, float]:
    """Return (alpha, beta) as floats if alpha > 0 and 2 alpha + 2 beta > 1, else raise InputError."""
    alpha, beta = finite_number("alpha", alpha), finite_number("beta", beta)
    if alpha <= 0.0:
        raise InputError(f"alpha must be positive, got {alpha:g}; eigenvalues are j^(-2 alpha) and have to decay")
    if 2.0 * alpha + 2.0 * beta <= 1.0:
        raise InputError(
            f"2 alpha + 2 beta must exceed 1 for a target of finite energy, got {2 * alpha + 2 * beta:g} "
            f"(alpha {alpha:g}, beta {beta:g}); raise alpha or beta"
        )
    return alpha, beta


def power_law(alpha: float, beta: float, *, ambient: int | float = math.inf, noise_var: float = 0.0) -> Problem:
    """Power-law problem lambda_j = j^(-2 alpha), theta*_j = j^(-beta), j = 1..ambient.

    Parameters
    ----------
    alpha, beta : exponents with alpha > 0 and 2 alpha + 2 beta > 1.
    ambient : ambient dimension v, a whole number or `math.inf`.
    noise_var : label-noise variance sigma^2 >= 0.

    Raises
    ------
    InputError : for exponents, ambient dimension or noise out of range.
    """
    alpha, beta = check_power_law(alpha, beta)
    noise_var = non_negative_number("noise_var", noise_var)
    empty = np.zeros(0)
    if ambient == math.inf:
        return Problem(empty, empty, noise_var, alpha, beta, math.inf)
    size = whole_number("ambient", ambient)
    bare = Problem(empty, empty, noise_var, alpha, beta, size)
    return bare if size > _LAID_OUT else laid_out(bare)


def laid_out(problem: Problem) -> Problem:
    """The problem with its eigenvalues and target as arrays (v,), whatever their size.

    Raises
    ------
    InputError : for an infinite ambient dimension.
    RunError : if the arrays would not fit into memory; the message says how many GiB they need.
    """
    if problem.eigenvalues.shape[0] > 0 or problem.alpha is None or problem.beta is None:
        return problem
    if problem.ambient == math.inf:
        raise InputError("ambient is infinite, so the modes cannot be listed; pass a finite ambient dimension")
    size = int(problem.ambient)
    require_memory(f"ambient dimension {size}", 8.0 * 4 * size, "lower ambient, or width when ambient follows it")
    index = np.arange(1, size + 1, dtype=np.float64)
    return problem.replace(eigenvalues=index ** (-2.0 * problem.alpha), target=index ** (-problem.beta))


def problem(eigenvalues: object, target: object, *, noise_var: float = 0.0) -> Problem:
    """Arbitrary problem from eigenvalues lambda_j > 0 (v,) and target coefficients theta*_j (v,).

    Raises
    ------
    InputError : if the arrays are empty, not one-dimensional, of different length, not finite, or an eigenvalue <= 0.
    """
    lam, theta = float64_array("eigenvalues", eigenvalues), float64_array("target", target)
    for name, array in (("eigenvalues", lam), ("target", theta)):
        if array.ndim != 1 or array.shape[0] == 0:
            raise InputError(f"{name} must be a one-dimensional array with at least one entry, got shape {array.shape}")
    same_length(eigenvalues=lam, target=theta)  # type: ignore[arg-type]
    if not is_traced(lam, theta, noise_var):
        lam, theta = np.asarray(lam), np.asarray(theta)
        require_entries("eigenvalues", lam, np.isfinite(lam) & (lam > 0.0), "positive and finite")
        require_entries("target", theta, np.isfinite(theta), "finite")
        noise_var = non_negative_number("noise_var", noise_var)
    return Problem(lam, theta, noise_var, None, None, lam.shape[0])
