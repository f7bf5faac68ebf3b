"""Finite width: sample the frozen feature weights W and take the Spectrum that SGD sees, exact given W.

The spectrum of Lambda^(1/2) W W^T Lambda^(1/2) comes from the small triangular factor R of Lambda^(1/2) W = Q R, whose
Gram matrix R^T R is the M x M feature covariance. Column pivoting keeps R graded like the spectrum, so that eigenvalues
spread over twenty decades keep their relative accuracy; the Gram matrix itself would square the condition number and
lose half the digits.
"""

import math
from dataclasses import dataclass

import jax
import numpy as np
from scipy import linalg

from rfsim.checks import InputError, RunError, require_memory, whole_number
from rfsim.precision import float64_array, is_traced, jnp, require_float64
from rfsim.problems import Problem, laid_out
from rfsim.spectra import Spectrum

_COPIES = 4  # arrays of the size of W alive at once while sampling and factorising


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Features:
    """A problem together with frozen feature weights W (v, M): what literal SGD is run on."""

    problem: Problem
    weights: np.ndarray | jax.Array


def sample_features(key: jax.Array, problem: Problem, width: int) -> Spectrum:
    """Spectrum of one draw of W, entries iid N(0, 1/width).

    Parameters
    ----------
    key : jax random key; problem : with a finite ambient dimension v; width : M, number of trained features.

    Returns
    -------
    Spectrum with min(v, M) modes, ascending; the energy of the other v - min(v, M) directions is the floor.

    Raises
    ------
    InputError : for a bad width or an infinite ambient dimension.
    RunError : if W would not fit into memory; the message says how many GiB it needs.
    """
    features = random_features(key, problem, width)
    return _spectrum(features.problem, np.asarray(features.weights), full_rank=True)


def random_features(key: jax.Array, problem: Problem, width: int) -> Features:
    """Draw W (v, M) with iid N(0, 1/M) entries and keep it, for literal SGD and for `feature_spectrum`.

    Raises
    ------
    InputError : for a bad key or width, an infinite ambient dimension, or under tracing.
    RunError : if W would not fit into memory.
    """
    require_float64()
    if is_traced(key, problem):
        raise InputError(
            "features are factorised by LAPACK and cannot be traced by jit, vmap or grad; sample them outside"
        )
    check_key(key)
    width = whole_number("width", width)
    if problem.ambient == math.inf:
        raise InputError("ambient is infinite, but W can only be sampled with finitely many rows; pass ambient=2*width")
    require_room(int(problem.ambient), width)
    problem = laid_out(problem)
    weights = jax.random.normal(key, (int(problem.ambient), width), dtype=jnp.float64) / math.sqrt(width)
    return Features(problem, np.asarray(weights))


def feature_spectrum(features: Features) -> Spectrum:
    """Spectrum of given features; directions that W does not reach to rounding count as zero modes.

    Raises
    ------
    InputError : for weights of the wrong shape, not finite, or all zero.
    """
    weights = np.asarray(float64_array("weights", features.weights))
    if weights.ndim != 2 or weights.shape[0] != features.problem.ambient or weights.shape[1] == 0:
        raise InputError(
            f"weights must have shape (ambient, width) with ambient {features.problem.ambient}, got {weights.shape}"
        )
    if not np.isfinite(weights).all():
        raise InputError("weights must be finite, got NaN or infinity; draw them anew")
    return _spectrum(features.problem, weights, full_rank=False)


def aligned_features(spectrum: Spectrum) -> Features:
    """Features of the aligned linear model with this Spectrum: literal SGD on it has exactly these modes.

    Mode j is one coordinate with population eigenvalue l_j and weight 1; the floor is one more coordinate that no
    feature sees.

    Raises
    ------
    InputError : for multiplicities other than one, which no linear model has.
    """
    if not np.all(np.asarray(spectrum.multiplicity) == 1.0):
        raise InputError(
            "the spectrum has multiplicities other than 1, which no linear model has; use sampled features"
        )
    lam = np.asarray(spectrum.eigenvalues)
    target = np.sqrt(np.asarray(spectrum.forcing_energy) / lam)
    unseen = math.sqrt(float(spectrum.floor))
    problem = Problem(np.append(lam, 1.0), np.append(target, unseen), spectrum.noise_var, ambient=lam.size + 1)
    return Features(problem, np.eye(lam.size + 1, lam.size))


def check_key(key: object) -> None:
    """Raise InputError unless `key` is one jax random key."""
    if isinstance(key, jax.Array):
        if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
            if key.ndim == 0:
                return
        elif key.dtype == jnp.uint32 and key.ndim == 1:
            return
    raise InputError(f"key must be one jax random key, got {type(key).__name__}; pass jax.random.key(seed)")


def require_room(ambient: int, width: int) -> None:
    """Raise RunError if a W of this shape and its factorisation exceed this machine's memory."""
    needed = 8.0 * _COPIES * ambient * width
    require_memory(f"width {width} with ambient dimension {ambient}", needed, "lower width or ambient")


def _spectrum(problem: Problem, weights: np.ndarray, *, full_rank: bool) -> Spectrum:
    root = np.sqrt(np.asarray(problem.eigenvalues))
    matrix = root[:, None] * weights
    signal = root * np.asarray(problem.target)
    ambient, width = matrix.shape
    if ambient >= width:
        factors, triangle, _ = linalg.qr(matrix, mode="raw", pivoting=True, overwrite_a=True, check_finite=False)
        reflectors, scales = factors
        rotated, _, info = linalg.lapack.dormqr("L", "T", reflectors, scales, signal[:, None], lwork=64 * width + 64)
        if info != 0:
            raise RunError(f"LAPACK dormqr failed with code {info} on a {ambient} x {width} matrix; report this")
        signal, unreached = rotated[:width, 0], rotated[width:, 0]
        core = np.triu(triangle[:width])
    else:
        triangle, order = linalg.qr(matrix.T, mode="r", pivoting=True, check_finite=False)
        core = np.empty((ambient, ambient))
        core[order] = triangle[:ambient].T  # rows back in the order of the coordinates
        unreached = np.zeros(0)
    left, singular, _ = linalg.svd(core, full_matrices=False, overwrite_a=True, check_finite=False)
    eigenvalues = np.square(singular[::-1])
    energy = np.square(left.T @ signal)[::-1]
    tolerance = 0.0 if full_rank else (np.finfo(float).eps * max(ambient, width) * singular[0]) ** 2
    moving = eigenvalues > max(tolerance, np.finfo(float).tiny)
    if not moving.any():
        raise InputError("weights reach no direction of the problem: every eigenvalue is zero; draw other weights")
    floor = math.fsum(np.square(unreached)) + math.fsum(energy[~moving])
    kept = np.ones(int(moving.sum()))
    return Spectrum(eigenvalues[moving], energy[moving], kept, floor, problem.noise_var)
