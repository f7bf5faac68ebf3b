"""Slow literal references at tiny size: plain loops, Fractions, mpmath. Nothing here imports rfsim.

The loops only add, multiply and divide, so they run in whatever numbers they are given: float, Fraction or mpf.
"""

from fractions import Fraction

import mpmath
import numpy as np


def as_fractions(values):
    """Exact rational values of floats or of strings such as '1/4'."""
    return [Fraction(value) for value in values]


# --- norms under weight decay ----------------------------------------------------------------------------------------


def norms(lr, weight_decay, initial, update):
    """Norm before every step, from n^2 <- (1 - lr weight_decay)^2 n^2 + (lr update)^2."""
    square, found = initial**2, []
    for rate in lr:
        found.append(np.sqrt(square))
        square = (1.0 - rate * weight_decay) ** 2 * square + (rate * update) ** 2
    return np.array(found)


# --- dynamics --------------------------------------------------------------------------------------------------------


def dense_covariance(weights, eigenvalues, target, noise_var, lr, batch):
    """Risk tr C_t, t = 0..N, from C <- C - eta (HC + CH) + eta^2 ((1+1/B) HCH + ((tr C + sigma^2)/B) H^2).

    The full v x v second moment of e = Lambda^(1/2) (W a - theta*), with no eigenbasis: Gaussian fourth moments only.
    """
    root = np.diag(np.sqrt(eigenvalues))
    h = root @ weights @ weights.T @ root
    e = -root @ np.asarray(target, dtype=float)
    c = np.outer(e, e)
    risks = [np.trace(c)]
    for eta, size in zip(lr, batch, strict=True):
        drift = c - eta * (h @ c + c @ h)
        c = drift + eta**2 * ((1 + 1 / size) * (h @ c @ h) + (np.trace(c) + noise_var) / size * (h @ h))
        risks.append(np.trace(c))
    return np.array(risks)


def mode_loop(eigenvalues, energies, floor, noise_var, lr, batch, multiplicity=None):
    """All curves at steps 0..N as lists, each from its own scalar recursion over modes."""
    count = [1] * len(eigenvalues) if multiplicity is None else list(multiplicity)
    zero = floor * 0
    states = {"risk": list(energies), "forcing": list(energies), "clean": list(energies)}
    states |= {"memory": [zero] * len(energies), "gap": [zero] * len(energies)}
    curves = {name: [] for name in states}
    for step in range(len(lr) + 1):
        for name, state in states.items():
            based = floor if name in ("risk", "forcing", "clean") else zero
            curves[name].append(based + sum(state, zero))
        if step == len(lr):
            return curves
        eta, size = lr[step], batch[step]
        source = {
            "risk": curves["risk"][-1] + noise_var,
            "memory": curves["risk"][-1] + noise_var,
            "forcing": zero,
            "clean": curves["clean"][-1],
            "gap": curves["gap"][-1] + noise_var,
        }
        for name, state in states.items():
            for j, value in enumerate(eigenvalues):
                factor = (1 - eta * value) ** 2 + eta**2 * value**2 / size
                state[j] = factor * state[j] + eta**2 * value**2 * count[j] * source[name] / size
    raise AssertionError("not reached")


def kernel_loop(eigenvalues, lr, batch, multiplicity=None):
    """K[t][s] = (eta_s^2/B_s) sum_j m_j l_j^2 prod_{u=s+1}^{t-1} q_u(l_j), written out, zero for s >= t."""
    count = [1] * len(eigenvalues) if multiplicity is None else list(multiplicity)
    steps = len(lr)
    kernel = [[0] * steps for _ in range(steps + 1)]
    for t in range(steps + 1):
        for s in range(t):
            for value, often in zip(eigenvalues, count, strict=True):
                product = lr[s] ** 2 / batch[s] * often * value**2
                for u in range(s + 1, t):
                    product *= 1 - 2 * lr[u] * value + (1 + 1 / batch[u]) * lr[u] ** 2 * value**2
                kernel[t][s] += product
    return kernel


def forcing_loop(eigenvalues, energies, floor, lr, batch):
    """F_t = floor + sum_j w_j prod_{u<t} q_u(l_j), t = 0..N."""
    curve = []
    for t in range(len(lr) + 1):
        total = floor
        for value, energy in zip(eigenvalues, energies, strict=True):
            product = energy
            for u in range(t):
                product *= 1 - 2 * lr[u] * value + (1 + 1 / batch[u]) * lr[u] ** 2 * value**2
            total += product
        curve.append(total)
    return curve


def volterra_loop(eigenvalues, energies, floor, noise_var, lr, batch, multiplicity=None):
    """R_t = F_t + sum_{s<t} K_{t,s} (R_s + sigma^2) by a double loop over steps."""
    kernel = kernel_loop(eigenvalues, lr, batch, multiplicity)
    risks = forcing_loop(eigenvalues, energies, floor, lr, batch)
    for t in range(len(risks)):
        for s in range(t):
            risks[t] += kernel[t][s] * (risks[s] + noise_var)
    return risks


def gradient_descent(eigenvalues, energies, floor, lr):
    """Risk of full-gradient descent, floor + sum_j w_j prod (1 - eta_u l_j)^2, t = 0..N."""
    state, risks = list(energies), []
    for eta in [*lr, 0.0]:
        risks.append(floor + sum(state))
        state = [(1 - eta * value) ** 2 * energy for value, energy in zip(eigenvalues, state, strict=True)]
    return risks


def step_matrix(eigenvalues, lr, batch, multiplicity=None):
    """Matrix A of one step of a constant schedule on the mode energies, rho <- A rho + source."""
    count = np.ones(len(eigenvalues)) if multiplicity is None else np.asarray(multiplicity)
    x = lr * np.asarray(eigenvalues)
    return np.diag((1 - x) ** 2 + x**2 / batch) + np.outer(count * x**2 / batch, np.ones(len(x)))


# --- constant schedules ----------------------------------------------------------------------------------------------


def kappa(eigenvalues, lr, batch, multiplicity=None):
    """Total kernel mass as sum_j m_j c l_j^2 / (1 - q_j) with q formed literally; exact in Fractions."""
    count = [1] * len(eigenvalues) if multiplicity is None else list(multiplicity)
    total = 0
    for value, often in zip(eigenvalues, count, strict=True):
        factor = 1 - 2 * lr * value + (1 + 1 / batch) * lr**2 * value**2
        total += often * lr**2 * value**2 / batch / (1 - factor)
    return total


# --- spectra ---------------------------------------------------------------------------------------------------------


def feature_spectrum(weights, eigenvalues, target, digits=60):
    """Eigenvalues (ascending), target energies and floor in `digits` digits, by mpmath on the smaller Gram matrix."""
    v, m = weights.shape
    with mpmath.workdps(digits):
        root = [mpmath.sqrt(mpmath.mpf(float(value))) for value in eigenvalues]
        b = mpmath.matrix([r * mpmath.mpf(float(t)) for r, t in zip(root, target, strict=True)])
        a = mpmath.matrix(v, m)
        for i in range(v):
            for k in range(m):
                a[i, k] = root[i] * mpmath.mpf(float(weights[i, k]))
        total = mpmath.fsum(value**2 for value in b)
        if v <= m:
            found, vectors = mpmath.eigsy(a * a.T)
            projected = vectors.T * b
            energies = [projected[j] ** 2 for j in range(v)]
        else:
            found, vectors = mpmath.eigsy(a.T * a)
            projected = vectors.T * (a.T * b)
            energies = [projected[j] ** 2 / found[j] for j in range(m)]
        order = sorted(range(len(energies)), key=lambda j: found[j])
        floor = total - mpmath.fsum(energies) if v > m else mpmath.mpf(0)
        lam = np.array([float(found[j]) for j in order])
        return lam, np.array([float(energies[j]) for j in order]), float(floor), float(total)
