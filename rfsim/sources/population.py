"""Infinite width: the Spectrum of the population itself, a few nodes in place of very many or infinitely many modes.

The first coordinates are kept one by one. The others are grouped into blocks of integers [a, b) with b at most 2 a, and
the sum over each block is replaced by the Gauss rule of the *discrete* uniform measure on its integers (discrete
Chebyshev polynomials), so what is approximated is the sum itself and not an integral near it. An infinite spectrum ends
in one node that carries the energy, the trace and the kernel weight of everything beyond the last block.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.special import zeta

from rfsim.checks import InputError
from rfsim.problems import Problem
from rfsim.spectra import Spectrum

_HEAD = 64  # coordinates kept one by one
_NODES = 12  # Gauss nodes per block
_RATIO = 2.0  # last over first integer of a block, and
_DECAY = 2.8  # ... first over last eigenvalue at most 2^_DECAY, lest a steep power law outrun the nodes
_LAST = 1e120  # coordinate at which an infinite spectrum is closed by its tail node, at the latest
_SMALL_EIGENVALUE = 1e-24  # ... or once eigenvalues are this small: frozen at every horizon float64 steps can reach


def population(problem: Problem, *, least: float = 0.0) -> Spectrum:
    """Spectrum at infinite width, W = identity: eigenvalues lambda_j with target energy lambda_j theta*_j^2, no floor.

    Parameters
    ----------
    problem : arbitrary (all modes are kept) or a power law with finite or infinite ambient dimension.
    least : coordinate that an infinite power law is followed up to at least, before its tail becomes one node.

    Returns
    -------
    Spectrum. For power laws of more than a few hundred coordinates the modes are Gauss nodes and `multiplicity` says
    how many coordinates each stands for. Sums of functions that are analytic in the eigenvalue, such as F_t and
    K_{t,s}, keep a relative accuracy of about 1e-11 (tested against full sums) until the slowest mode of a finite
    spectrum dies out. An infinite power law with alpha <= 1/2 has infinite trace, so that kappa is infinite and no
    constant schedule is stable on it; growing ratios are fine.

    Raises
    ------
    InputError : for an infinite power law with alpha <= 1/4, whose memory kernel sum_j lambda_j^2 diverges.
    """
    if problem.alpha is None or problem.beta is None:
        lam = problem.eigenvalues
        return Spectrum(lam, lam * problem.target**2, np.ones(lam.shape[0]), 0.0, problem.noise_var)
    alpha, beta = problem.alpha, problem.beta
    if problem.ambient == math.inf and alpha <= 0.25:
        raise InputError(
            f"alpha must exceed 1/4 for an infinite population, got {alpha:g}: the memory kernel sum of j^(-4 alpha) "
            f"diverges; give a finite ambient dimension or raise alpha"
        )
    index, weight, beyond = _index_nodes(problem.ambient, alpha, least)
    lam = index ** (-2.0 * alpha)
    energy = weight * index ** (-2.0 * (alpha + beta))
    if math.isfinite(beyond):  # everything from coordinate `beyond` on, in one node with its energy and kernel weight
        kernel_tail = _power_tail(4.0 * alpha, beyond)
        if alpha > 0.5:  # its sums of l and of l^2 are both right: kappa needs the first, K_{t,s} the second
            last = kernel_tail / _power_tail(2.0 * alpha, beyond)
        else:
            last = beyond ** (-2.0 * alpha)
        lam = np.append(lam, last)
        weight = np.append(weight, kernel_tail / last**2)
        energy = np.append(energy, _power_tail(2.0 * (alpha + beta), beyond))
        if alpha <= 0.5:  # infinite trace: a node without kernel weight says so to the stability criterion
            lam, weight, energy = np.append(lam, 1e-200), np.append(weight, 1e308), np.append(energy, 0.0)
    return Spectrum(lam[::-1].copy(), energy[::-1].copy(), weight[::-1].copy(), 0.0, problem.noise_var)


def _power_tail(exponent: float, start: float) -> float:
    """Sum of j^(-exponent) over integers j >= start, for exponent > 1."""
    if start < 1e6:
        return float(zeta(exponent, start))
    # Euler-Maclaurin: the neglected term is of relative order start^-4
    base = start ** (1.0 - exponent) / (exponent - 1.0)
    return base * (1.0 + (exponent - 1.0) / (2.0 * start) + exponent * (exponent - 1.0) / (12.0 * start**2))


def _index_nodes(ambient: float, alpha: float, least: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Nodes and weights for sums over j = 1..ambient, and the first integer left out (inf if none is)."""
    end = ambient + 1.0
    limit = end if math.isfinite(end) else min(_LAST, max(1e6, least, _SMALL_EIGENVALUE ** (-1.0 / (2.0 * alpha))))
    ratio = min(_RATIO, 2.0 ** (_DECAY / (2.0 * alpha)))
    head = np.arange(1.0, min(_HEAD, ambient) + 1.0)
    index, weight = [head], [np.ones(head.size)]
    start = head.size + 1.0
    while start < limit:
        stop = min(max(np.floor(start * ratio), start + _NODES), end)
        nodes, weights = _uniform_gauss(stop - start)
        index.append(start + nodes)
        weight.append(weights)
        start = float(stop)
    return np.concatenate(index), np.concatenate(weight), start if start < end else math.inf


@lru_cache(maxsize=4096)
def _uniform_gauss(count: float) -> tuple[np.ndarray, np.ndarray]:
    """Gauss rule of the sum over 0..count-1: nodes and weights, exact for polynomials of degree 2 _NODES - 1.

    The monic discrete Chebyshev polynomials obey p_{k+1} = (x - (count-1)/2) p_k - b_k p_{k-1} with
    b_k = k^2 (count^2 - k^2) / (4 (4 k^2 - 1)) (classical; Golub and Welsch turn it into an eigenproblem).
    """
    size = int(min(_NODES, count))
    if size == count:
        return np.arange(float(size)), np.ones(size)
    order = np.arange(1.0, size)
    # scaled by count so that blocks of 10^100 integers do not overflow
    off_diagonal = np.sqrt(order**2 * (1.0 - (order / count) ** 2) / (4.0 * (4.0 * order**2 - 1.0)))
    nodes, vectors = eigh_tridiagonal(np.zeros(size), off_diagonal)
    return (count - 1.0) / 2.0 + count * nodes, count * vectors[0] ** 2
