"""The effective learning rate of blocks of updates under a model of the norm, and its derivative in the lr."""

from collections.abc import Callable

import numpy as np

from rfsim.logs import NormModel
from rfsim.logs.norms import backward, forward

Reverse = Callable[[np.ndarray], np.ndarray]


def block_rates(lr: np.ndarray, count: np.ndarray, model: NormModel) -> tuple[np.ndarray, Reverse]:
    """Effective lr of each block, and the map from the derivative of a number in these to that in the lr.

    In a block of lr e the square of the norm q goes on as q_j = s^j q_0 + (e update)^2 (1 - s^j)/(1 - s) after j
    updates, s = (1 - e weight_decay)^2: this for j = count leads to the next block, and for j = (count - 1)/2, the
    middle of the block, gives its rate e/q_j^(1/2). Blocks of one update are the recursion of `weight_decay_norm`. The
    derivative is exact for what is computed, with that through all later norms.

    Parameters
    ----------
    lr : (n,) lr >= 0 of the blocks, lr weight_decay below 1. count : (n,) updates of each.

    Returns
    -------
    (n,) rates, and by_rate (n,) -> by_lr (n,).
    """
    moved = (lr * model.update) ** 2
    log_factor = 2.0 * np.log1p(-lr * model.weight_decay)
    half = 0.5 * (count - 1.0)
    whole_kept, half_kept = np.exp(count * log_factor), np.exp(half * log_factor)
    whole_sum, half_sum = _geometric(count, log_factor), _geometric(half, log_factor)
    square = forward(whole_kept, moved * whole_sum, model.initial**2)
    middle = half_kept * square + moved * half_sum
    norm = np.sqrt(middle)

    def reverse(by_rate: np.ndarray) -> np.ndarray:
        by_middle = -0.5 * by_rate * lr / (middle * norm)
        by_square = backward(whole_kept, half_kept * by_middle)  # of each block's first norm
        by_next = np.append(by_square[1:], 0.0)
        by_moved = by_middle * half_sum + by_next * whole_sum
        by_log_factor = by_middle * (half * half_kept * square + moved * _geometric_slope(half, log_factor))
        by_log_factor += by_next * (count * whole_kept * square + moved * _geometric_slope(count, log_factor))
        through = by_log_factor * -2.0 * model.weight_decay / (1.0 - lr * model.weight_decay)
        return np.asarray(by_rate / norm + by_moved * 2.0 * lr * model.update**2 + through)

    return lr / norm, reverse


def _geometric(terms: np.ndarray, log_factor: np.ndarray) -> np.ndarray:
    """1 + s + ... + s^(m - 1) = (1 - s^m)/(1 - s) for s = exp(log_factor), m of any size."""
    still = log_factor == 0.0
    safe = np.where(still, -1.0, log_factor)
    return np.where(still, terms, np.expm1(terms * safe) / np.expm1(safe))


def _geometric_slope(terms: np.ndarray, log_factor: np.ndarray) -> np.ndarray:
    """Derivative of `_geometric` in log_factor.

    It loses digits where m log_factor is small, as much as what it is multiplied with makes up for.
    """
    still = log_factor == 0.0
    safe = np.where(still, -1.0, log_factor)
    one, power = np.expm1(safe), np.expm1(terms * safe)
    slope = (terms * (1.0 + power) * one - power * (1.0 + one)) / one**2
    return np.where(still, 0.5 * terms * (terms - 1.0), slope)
