"""Gauss rules of discrete measures, many at once: Lanczos with reorthogonalisation, then Golub and Welsch."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal

from rfsim.compress.integrands import Modes

_DEPENDENT = 1e-13  # norm at which a new polynomial counts as zero: there are fewer points than polynomials


class Jacobi(NamedTuple):
    """Orthonormal polynomials p_k of s measures: recurrence diag, off (s, n), and their two integrals (s, n)."""

    diag: np.ndarray
    off: np.ndarray
    forcing: np.ndarray
    kernel: np.ndarray


def lanczos(y: np.ndarray, modes: Modes, sizes: np.ndarray, count: int) -> Jacobi:
    """Polynomials in y, segment by segment, orthonormal in the mean of the two normalised measures.

    Parameters
    ----------
    y : (n,) points in [-1, 1], consecutive segments of `sizes` (s,) points, in the order of `modes`.
    count : number of polynomials. Where a segment has fewer points, what follows is zero and gets weight 0.
    """
    starts = np.cumsum(sizes) - sizes

    def total(values: np.ndarray) -> np.ndarray:
        return np.asarray(np.add.reduceat(values, starts))

    def spread(values: np.ndarray) -> np.ndarray:
        return np.repeat(values, sizes)

    mean = np.zeros(y.shape)
    for values in (modes.forcing, modes.kernel):
        mass = total(values)
        mean += values * spread(np.where(mass > 0.0, 1.0 / np.maximum(mass, 1e-300), 0.0))
    root = np.sqrt(mean / spread(np.maximum(total(mean), 1e-300)))
    safe = np.where(root > 0.0, root, 1.0)
    forcing_density, kernel_density = modes.forcing / safe, modes.kernel / safe
    basis = np.zeros((count, y.size))
    basis[0] = root
    diag, off, forcing, kernel = (np.zeros((sizes.size, count)) for _ in range(4))
    for k in range(count):
        now = basis[k]
        forcing[:, k], kernel[:, k] = total(now * forcing_density), total(now * kernel_density)
        image = y * now
        diag[:, k] = total(image * now)
        if k == count - 1:
            break
        image = image - spread(diag[:, k]) * now
        if sizes.size == 1:
            for _ in range(2):  # einsum and not @: too small to be worth waking threads for
                overlap = np.einsum("kn,n->k", basis[: k + 1], image)
                image -= np.einsum("k,kn->n", overlap, basis[: k + 1])
        else:
            for other in basis[k::-1]:
                image -= spread(total(image * other)) * other
        norm = np.sqrt(total(image * image))
        alive = norm > _DEPENDENT
        off[:, k] = np.where(alive, norm, 0.0)
        basis[k + 1] = image * spread(np.where(alive, 1.0 / np.where(alive, norm, 1.0), 0.0))
    return Jacobi(diag, off, forcing, kernel)


def rule(jacobi: Jacobi, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gauss nodes of the mean measures, and interpolatory weights of forcing and of kernel, (s, count) each.

    Nodes are the eigenvalues of the Jacobi matrix. With its eigenvectors v, the weight of node i for a measure nu is
    v_i[0] sum_k v_i[k] int p_k dnu.
    """
    if jacobi.diag.shape[0] == 1:
        nodes, vectors = (x[None] for x in eigh_tridiagonal(jacobi.diag[0, :count], jacobi.off[0, : count - 1]))
    else:
        matrix = np.zeros((jacobi.diag.shape[0], count, count))
        index = np.arange(count)
        matrix[:, index, index] = jacobi.diag[:, :count]
        matrix[:, index[1:], index[:-1]] = jacobi.off[:, : count - 1]
        nodes, vectors = np.linalg.eigh(matrix)  # reads the lower triangle
    first = vectors[:, 0, :]
    forcing, kernel = (np.einsum("ski,sk->si", vectors, part[:, :count]) for part in (jacobi.forcing, jacobi.kernel))
    return nodes, first * forcing, first * kernel
