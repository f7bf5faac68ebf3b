"""What is integrated: two measures on (0, 1], the functions of l that matter, and how large an error may be."""

import math
from typing import NamedTuple

import numpy as np

EDGE = 1.01  # in units of max l: where the kappa integrand diverges at 99 % of the pointwise limit
EARLY = 0.02  # first time after 0 at which integrals are compared, in units of 1 / max l
LATE = 1e-3  # late errors are absolute: tolerance times this times the value at T = 0
NEGLIGIBLE = 1e-50  # share of the value at T = 0 below which relative accuracy is not asked for
_SLOW = 10.0  # 2 T min l until which errors are relative


class Modes(NamedTuple):
    """Nodes (n,) ascending with maximum 1, their forcing energy (n,) and their kernel weight m l^2 (n,)."""

    lam: np.ndarray
    forcing: np.ndarray
    kernel: np.ndarray

    def take(self, index: slice | np.ndarray) -> "Modes":
        """The modes at an index, mask or slice."""
        return Modes(self.lam[index], self.forcing[index], self.kernel[index])


class Rows(NamedTuple):
    """Functions of l: exp(-2 T l), q(l)^t, and 1/(l (1 - x l)), whose kernel integral is a multiple of kappa.

    time : (k,) T; power : (3, r) lr, 1/batch, t; edge : (e,) x = lr (1 + 1/B) / 2.
    """

    time: np.ndarray
    power: np.ndarray
    edge: np.ndarray

    @property
    def size(self) -> int:
        """Number of functions, k + r + e."""
        return int(self.time.size + self.power.shape[1] + self.edge.size)

    def felt(self, low: float, high: float) -> np.ndarray:
        """Which functions are neither constant nor zero on [low, high]; the one at T = 0 stands for the constants."""
        lr, _, steps = self.power
        speed = np.concatenate([2.0 * self.time, 2.0 * lr * steps])
        felt = (speed * high > 1e-3) & (speed * low < 400.0)
        felt[: self.time.size] |= self.time == 0.0
        return np.concatenate([felt, np.ones(self.edge.size, dtype=bool)])

    def take(self, keep: np.ndarray) -> "Rows":
        """The functions under a mask."""
        times, powers = self.time.size, self.power.shape[1]
        return Rows(
            self.time[keep[:times]],
            self.power[:, keep[times : times + powers]],
            self.edge[keep[times + powers :]],
        )

    def of(self, lam: np.ndarray) -> np.ndarray:
        """Values (k + r + e, n) at l (n,)."""
        lr, inverse, steps = self.power[:, :, None]
        x = lr * lam
        flow = np.exp(-2.0 * self.time[:, None] * lam)
        kappa = 1.0 / (lam * (1.0 - self.edge[:, None] * lam))
        return np.concatenate([flow, ((1.0 - x) ** 2 + x * x * inverse) ** steps, kappa])


def place(lam: np.ndarray) -> np.ndarray:
    """Coordinate z = log(l / (EDGE - l)) in which bins and windows are cut.

    All integrands are bounded on the disc with diameter [0, EDGE] and on no larger one; in z it is |Im z| < pi/2.
    """
    return np.asarray(np.log(lam / (EDGE - lam)))


def from_place(z: np.ndarray) -> np.ndarray:
    """l at the coordinate z."""
    return np.asarray(EDGE / (1.0 + np.exp(-z)))


def join(parts: list[Modes]) -> Modes:
    """All modes of the parts that carry weight, ascending."""
    lam, forcing, kernel = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.argsort(lam, kind="stable")
    order = order[(forcing[order] > 0.0) | (kernel[order] > 0.0)]
    return Modes(lam[order], forcing[order], kernel[order])


def integrals(rows: Rows, modes: Modes) -> np.ndarray:
    """Forcing and kernel integral of every row, (2, rows), in pieces that keep memory small."""
    total = np.zeros((2, rows.size))
    piece = max(1, 2**20 // max(1, rows.size))
    for start in range(0, modes.lam.size, piece):
        part = modes.take(slice(start, start + piece))
        total += np.stack([part.forcing, part.kernel]) @ rows.of(part.lam).T
    return total


def relative_until(modes: Modes, longest: float) -> np.ndarray:
    """T until which errors of the two integrals are relative (2,): 2 T min l = 10 over the modes that each one has."""
    least = [modes.lam[part > 0.0].min(initial=1.0) for part in (modes.forcing, modes.kernel)]
    return np.minimum(0.5 * _SLOW / np.array(least), longest)


def comparison(until: np.ndarray, spacing: float, *, late: bool) -> Rows:
    """Continuum times over all scales, steps near the stability limit, and kappa up to 99 % of the pointwise limit."""
    last = float(until.max()) * (6.0 if late else 1.0)
    time = np.concatenate([[0.0], np.exp(np.arange(math.log(EARLY), math.log(last), spacing)), until])
    steps = np.unique(np.rint(np.geomspace(1.0, 600.0, 24)))
    pairs = [(lr, inverse) for inverse in (1.0, 0.0) for lr in (0.5, 1.0 / (1.0 + inverse), 1.9 / (1.0 + inverse))]
    power = np.array([(lr, inverse, t) for lr, inverse in pairs for t in steps]).T
    return Rows(time, power, np.array([0.0, 0.5, 0.9, 0.99]))


def early(rows: Rows, until: np.ndarray) -> np.ndarray:
    """Which of the rows before those of kappa are judged by relative error, (2, k + r)."""
    time = rows.time <= until[:, None]
    return np.concatenate([time, np.ones((2, rows.power.shape[1]), dtype=bool)], axis=1)


def allowed(rows: Rows, exact: np.ndarray, until: np.ndarray) -> np.ndarray:
    """The error (2, rows) that counts as one unit of tolerance."""
    moving = early(rows, until)
    split = moving.shape[1]
    unit = np.maximum(exact[:, :split], np.where(moving, NEGLIGIBLE, LATE) * exact[:, :1])
    kappa = np.stack([np.full(rows.edge.size, np.inf), 0.1 * exact[1, split:]])
    return np.maximum(np.concatenate([unit, kappa], axis=1), 1e-300)
