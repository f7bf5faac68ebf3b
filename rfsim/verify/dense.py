"""Literal matrices as witnesses: the error covariance and its mean-square map in plain NumPy, no modes, no Spectrum.

H = Lambda^(1/2) W W^T Lambda^(1/2), error e = Lambda^(1/2)(W a - theta*), C = E e e^T, risk = tr C. One step of
Gaussian SGD gives

    C <- C - eta (H C + C H) + eta^2 [(1 + 1/B) H C H + (tr C + sigma^2)/B H^2].
"""

from typing import NamedTuple

import numpy as np

from rfsim.sources.features import Features


class Dense(NamedTuple):
    """feature_matrix : (v, v) H; start : (v,) error at step 0."""

    feature_matrix: np.ndarray
    start: np.ndarray


def dense_model(features: Features) -> Dense:
    """H and the first error of given features."""
    root = np.sqrt(np.asarray(features.problem.eigenvalues))
    half = root[:, None] * np.asarray(features.weights)
    return Dense(half @ half.T, -root * np.asarray(features.problem.target))


def covariance_step(H: np.ndarray, C: np.ndarray, lr: float, batch: float, noise: float) -> np.ndarray:
    """One step of the covariance iteration above."""
    HC = H @ C
    spread = (1.0 + 1.0 / batch) * (HC @ H) + (np.trace(C) + noise) / batch * (H @ H)
    # C H and not (H C)^T: that would let an antisymmetric rounding error of C grow
    return C - lr * (HC + C @ H) + lr**2 * spread


def covariance_risk(
    model: Dense, lr: np.ndarray, batch: np.ndarray, noise: float, *, target: bool = True
) -> np.ndarray:
    """Risk tr C at steps 0..N, (N+1,); without `target` the run starts from no error, which leaves the gap."""
    C = np.outer(model.start, model.start) if target else np.zeros_like(model.feature_matrix)
    risk = [np.trace(C)]
    for eta, size in zip(lr, batch, strict=True):
        C = covariance_step(model.feature_matrix, C, float(eta), float(size), noise)
        risk.append(np.trace(C))
    return np.array(risk)


def mean_square_map(H: np.ndarray, lr: float, batch: float) -> np.ndarray:
    """Matrix (n^2, n^2) of the covariance step without label noise, acting on C stacked into one vector."""
    identity = np.eye(len(H))
    square = H @ H
    drift = np.kron(H, identity) + np.kron(identity, H)
    share = np.outer(square.ravel(), identity.ravel()) / batch
    return np.kron(identity, identity) - lr * drift + lr**2 * ((1.0 + 1.0 / batch) * np.kron(H, H) + share)


def active_part(H: np.ndarray, rank: int) -> np.ndarray:
    """H restricted to its range, of dimension `rank`, (rank, rank), in a basis that is not its eigenbasis."""
    basis = np.linalg.qr(H[:, :rank])[0]  # columns of H span its range
    return basis.T @ H @ basis


def spectral_radius(matrix: np.ndarray) -> tuple[float, float]:
    """Largest |eigenvalue|, and a bound on its rounding error: n eps |matrix| times the condition of the eigenvalue."""
    values, right = np.linalg.eig(matrix)
    top = int(np.argmax(np.abs(values)))
    left = np.linalg.inv(right)[top]
    condition = np.linalg.norm(left) * np.linalg.norm(right[:, top])
    rounding = len(matrix) * np.finfo(float).eps * np.linalg.norm(matrix, 2) * condition
    return float(np.abs(values[top])), float(rounding)
