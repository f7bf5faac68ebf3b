"""One stretch of constant lr and batch in closed form: what any number of steps, whole or not, does to a state.

In the energies of the modes a step is c -> (1 - D + q 1^T) c + q (source), D = diag(d), d = 1 - q_step(l) = x (2 -
(1+1/B) x), q = (eta^2/B) m l^2, x = eta l. With the roots delta_k of rfsim.secular, E_k = (1 - delta_k)^t and G_j =
(1 - d_j)^t,

    memory that energy w leaves : q-response psi_k = sum_j w_j (E_k - G_j) / (d_j - delta_k)
    gap, source 1               : q-response psi_k = (1 - E_k) / delta_k
    response psi                : modes i gain q_i sum_k psi_k / (N_k (d_i - delta_k)), in all sum_k psi_k / N_k.

All divided differences are positive and are evaluated as such, by expm1 and log1p of ratios.
"""

import numpy as np

from rfsim import secular
from rfsim.curves import State

_BLOCK = 2**20  # entries of the largest temporary array
_FROZEN = 1e-40  # of lr times an eigenvalue
_LARGE = 100.0  # growth by more than exp of this: what does not grow is below rounding


class Constant:
    """A spectrum under one lr > 0 and one batch, decomposed once; evaluated at any times t >= 0 after its start."""

    def __init__(self, eigenvalues: np.ndarray, multiplicity: np.ndarray, lr: float, batch: float) -> None:
        # a mode this slow cannot move within 2^53 steps: what noise puts into it is below any rounding
        awake = np.where(lr * eigenvalues < _FROZEN, 0.0, multiplicity)
        self.decay, self.kept, self.injection = step_terms(lr * eigenvalues, awake, batch)
        self.log_bare = _log_kept(self.decay, self.kept)
        self.active = np.flatnonzero(self.injection > 0.0)
        self.passive = np.flatnonzero(self.injection == 0.0)
        if self.active.size:
            groups = secular.group(self.decay[self.active], self.injection[self.active])
            self.groups = groups
            self.eigen = secular.decompose(groups.poles, groups.weights)
            self.share = self.injection[self.active] / groups.weights[groups.member]
            kept = np.empty(groups.poles.size)
            kept[groups.member] = self.kept[self.active]
            self.group_log_bare = _log_kept(groups.poles, kept)
            self.log_root = _log_kept(self.eigen.roots, kept + self.eigen.own)
            with np.errstate(divide="ignore"):  # log (1 - root) - log (1 - own pole), without the difference
                self.log_gain = np.log1p(self.eigen.own / kept)
            self.inverse = 1.0 / self.eigen.differences

    def kernel_modes(self, energy: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Energies (n, c) of the modes in terms of groups: (g, c) of the groups, of the roots, and roots minus groups.

        The part of `energy` that decays with root k is z_k = sum_j w_j / (d_j - delta_k) / N_k; z_k - w_k is small
        where the modes hardly mix and is formed without the difference.
        """
        grouped = self._grouped(energy)
        others = self.inverse.copy()
        np.fill_diagonal(others, 0.0)
        weights, own = self.eigen.weights, self.eigen.own[:, None]
        a = others.T @ grouped
        s = (others.T @ weights)[:, None]
        b = ((others * others).T @ weights)[:, None] if self._squares_fit() else self._others_squared(others)
        scale = 1.0 - s + b * own
        excess = (a * own + grouped * (s - b * own)) / scale
        return grouped, (grouped + a * own) / scale, excess

    def passive_modes(self, energy: np.ndarray) -> np.ndarray:
        """Share (g, c) of the modes without memory in what decays with each root: sum_j w_j / (d_j - delta_k) / N_k."""
        differences = self.decay[self.passive][:, None] - self.eigen.roots[None, :]
        return (energy[self.passive].T @ (1.0 / differences)).T * self.eigen.inverse_norm[:, None]

    def totals(self, time: np.ndarray, state: State, floor: float, noise: float) -> np.ndarray:
        """Totals (k, 3) of forcing (without the floor), memory of the clean run, and gap at times (k,)."""
        modes = np.stack(state, axis=1)
        bare = _products(time, self.log_bare, modes)
        if not self.active.size:
            return bare
        energy = np.stack([modes[:, 0] + modes[:, 1], modes[:, 2]], axis=1)
        exponent = time[:, None] * self.log_root
        change = np.expm1(exponent)
        source = np.array([floor, noise])
        gained = self._memory_of(time, exponent, change, energy)
        gained += source * (self._unit(time, change) @ self.eigen.inverse_norm)[:, None]
        large = np.flatnonzero(exponent.max(axis=1) > _LARGE)
        if large.size:  # coefficients and powers together, since the powers alone may not fit
            gained[large] = self._late(time[large], exponent[large], energy, source)
        nothing = ~energy.any(axis=0) & (source == 0.0)
        bare[:, 1:] += np.where(nothing, 0.0, gained)
        return bare

    def _late(self, time: np.ndarray, exponent: np.ndarray, energy: np.ndarray, source: np.ndarray) -> np.ndarray:
        """What `totals` adds, (k, 2), where an unstable root has grown to more than everything else."""
        grouped, parts, _ = self.kernel_modes(energy)
        growing = self.eigen.roots < 0.0
        rest = -self.eigen.inverse_norm[growing] / self.eigen.roots[growing]
        if self.passive.size:
            parts = parts + self.passive_modes(energy)
        weight = parts[growing] + source * rest[:, None]
        with np.errstate(divide="ignore"):
            logs = exponent[:, growing, None] + np.log(np.abs(weight))
        grown = np.sum(np.sign(weight) * np.exp(logs), axis=1)
        return grown - np.exp(time[:, None] * self.group_log_bare) @ grouped

    def advance(self, time: float, state: State, floor: float, noise: float) -> State:
        """State after `time` more steps."""
        modes = np.stack(state, axis=1)
        bare = np.exp(time * self.log_bare)
        after = bare[:, None] * modes
        if self.active.size:
            energy = np.stack([modes[:, 0] + modes[:, 1], modes[:, 2]], axis=1)
            response = self._responses(time, energy)
            unit = self._unit(np.array([time]), np.expm1(time * self.log_root)[None, :])[0]
            response[:, 0] += floor * unit if floor else 0.0
            response[:, 1] += noise * unit if noise else 0.0
            nothing = ~energy.any(axis=0) & (np.array([floor, noise]) == 0.0)
            response = np.where(nothing, 0.0, response)  # not 0 times overflow
            gained = self.inverse @ (response * self.eigen.inverse_norm[:, None])
            gained *= self.groups.weights[:, None]
            gained = self.share[:, None] * gained[self.groups.member]
            after[self.active, 1:] += gained
        after = np.where(np.isnan(after), np.inf, after)
        return State(after[:, 0], after[:, 1], after[:, 2])

    def _grouped(self, energy: np.ndarray) -> np.ndarray:
        size = self.groups.poles.size
        columns = [np.bincount(self.groups.member, weights=column, minlength=size) for column in energy[self.active].T]
        return np.stack(columns, axis=1)

    def _squares_fit(self) -> bool:
        return bool(np.abs(self.inverse).max() < 1e150)

    def _others_squared(self, others: np.ndarray) -> np.ndarray:
        return np.sum((self.eigen.weights[:, None] * others) * others, axis=0)[:, None]

    def _unit(self, time: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Gap response (1 - (1 - delta_k)^t) / delta_k from change = (1 - delta_k)^t - 1, both (k, g)."""
        roots = self.eigen.roots
        safe = np.where(roots == 0.0, 1.0, roots)
        return np.where(roots == 0.0, time[:, None], -change / safe)

    def _memory_of(self, time: np.ndarray, exponent: np.ndarray, change: np.ndarray, energy: np.ndarray) -> np.ndarray:
        """Total memory (k, c) that the energies (n, c) have left after each time.

        sum_k w_k (E_k - G_k) + sum_k (z_k - w_k) (E_k - theta): the sum of z - w vanishes, so theta is free, and 0
        or 1 is taken, whichever leaves less to cancel.
        """
        grouped, _, excess = self.kernel_modes(energy)
        decayed = np.exp(exponent)
        memory = (-decayed * np.expm1(-time[:, None] * self.log_gain)) @ grouped
        late, early = decayed @ excess, change @ excess
        size = np.abs(excess)
        memory += np.where(decayed @ size < np.abs(change) @ size, late, early)
        if self.passive.size and energy[self.passive].any():
            rows = max(1, _BLOCK // (self.passive.size * self.eigen.roots.size))
            for start in range(0, time.size, rows):
                part = slice(start, start + rows)
                quotients = self._quotients(
                    time[part, None, None],
                    self.decay[self.passive][:, None] - self.eigen.roots,
                    self.log_bare[self.passive][:, None],
                )
                memory[part] += np.einsum("tjk,jc,k->tc", quotients, energy[self.passive], self.eigen.inverse_norm)
        return memory

    def _responses(self, time: float, energy: np.ndarray) -> np.ndarray:
        """Responses psi (g, c) to the energies (n, c) after `time`."""
        logs = self.group_log_bare[:, None]
        response = self._quotients(time, self.eigen.differences, logs).T @ self._grouped(energy)
        if self.passive.size and energy[self.passive].any():
            differences = self.decay[self.passive][:, None] - self.eigen.roots
            logs = self.log_bare[self.passive][:, None]
            response += self._quotients(time, differences, logs).T @ energy[self.passive]
        return response

    def _quotients(self, time: float | np.ndarray, difference: np.ndarray, log_bare: np.ndarray) -> np.ndarray:
        """((1 - delta)^t - (1 - d)^t) / (d - delta) > 0 for difference = d - delta, to full relative accuracy."""
        ratio = np.log1p(difference * np.exp(-log_bare))  # log (1 - delta) - log (1 - d)
        larger = log_bare + np.maximum(ratio, 0.0)
        safe = np.where(difference == 0.0, 1.0, np.abs(difference))
        quotient = np.exp(time * larger) * (-np.expm1(-np.abs(time * ratio))) / safe
        return np.where(difference == 0.0, time * np.exp((time - 1.0) * log_bare), quotient)


def step_terms(x: np.ndarray, multiplicity: np.ndarray, batch: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Decay d, what is kept 1 - d (both to relative accuracy), and injection m x^2 / B of modes with x = lr *
    eigenvalue."""
    decay = x * (2.0 - (1.0 + 1.0 / batch) * x)
    kept = np.where(x < 0.5, 1.0 - decay, np.square(1.0 - x) + x * (x / batch))
    return decay, kept, (multiplicity * x) * (x / batch)


def _log_kept(decay: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """log(1 - decay), from whichever of decay and kept = 1 - decay is known better; a mode that is learnt at once
    gets -1e300."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(decay < 0.5, np.log1p(-decay), np.log(kept))
    return np.maximum(logs, -1e300)


def _products(time: np.ndarray, logs: np.ndarray, modes: np.ndarray) -> np.ndarray:
    """Sums over modes of modes (n, c) times exp(t logs), (k, c), in pieces that keep memory small."""
    result = np.empty((time.size, modes.shape[1]))
    rows = max(1, _BLOCK // logs.size)
    for start in range(0, time.size, rows):
        result[start : start + rows] = np.exp(time[start : start + rows, None] * logs) @ modes
    return np.where(modes.any(axis=0), result, 0.0)
