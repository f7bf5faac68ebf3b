"""Parameter norms that were not logged, from the weight decay of a configuration."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_banded

from rfsim.checks import FloatArray, InputError, finite_vector, non_negative_number, positive_number
from rfsim.logs.configs import first_positive

_INITIAL = 0.02  # root mean square of the initial parameters where the configuration does not say


@dataclass(frozen=True)
class NormModel:
    """Numbers of `weight_decay_norm`, which turn any schedule into norms: what a schedule alone does not say.

    Attributes
    ----------
    weight_decay : decoupled weight decay >= 0. initial : root mean square of the initial parameters, positive.
    update : root mean square of an update over lr, positive.

    Raises
    ------
    InputError : for values out of range.
    """

    weight_decay: float
    initial: float = _INITIAL
    update: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight_decay", non_negative_number("weight_decay", self.weight_decay))
        object.__setattr__(self, "initial", positive_number("initial", self.initial))
        object.__setattr__(self, "update", positive_number("update", self.update))

    def norm(self, lr: object) -> FloatArray:
        """Norm (N,) before every step, `weight_decay_norm` of these lr (N,).

        Raises
        ------
        InputError : for a negative lr, or lr weight_decay of 1 and more.
        """
        return weight_decay_norm(lr, self.weight_decay, initial=self.initial, update=self.update)

    def __str__(self) -> str:
        return f"weight_decay {self.weight_decay:g}, initial {self.initial:g}, update {self.update:g}"


def weight_decay_norm(lr: object, weight_decay: float, *, initial: float = _INITIAL, update: float = 1.0) -> FloatArray:
    """Root mean square of the parameters before every step under decoupled weight decay, as a model.

    n_(k+1)^2 = (1 - lr_k weight_decay)^2 n_k^2 + lr_k^2 update^2: updates of an adaptive optimiser have a root mean
    square of order one per parameter and are taken as orthogonal to the parameters. At constant lr the norm settles
    at update sqrt(lr / (2 weight_decay)) after about 1/(lr weight_decay) steps, so that the effective lr, lr/n, follows
    the square root of lr slowly and lr itself at once.

    Parameters
    ----------
    lr : (N,) learning rates >= 0.
    weight_decay : decoupled weight decay >= 0 (each step multiplies parameters by 1 - lr weight_decay).
    initial : root mean square of the initial parameters, positive.
    update : root mean square of an update over lr, positive.

    Returns
    -------
    (N,) norms, positive.

    Raises
    ------
    InputError : for values out of range, or lr weight_decay of 1 and more.

    Source: the recursion of the squared norm, averaged over orthogonal updates (a model, not a measurement).
    """
    rate = finite_vector("lr", lr, least=0.0)
    decay = non_negative_number("weight_decay", weight_decay)
    start, size = positive_number("initial", initial), positive_number("update", update)
    if (rate * decay >= 1.0).any():
        raise InputError(f"lr times weight_decay must stay below 1, got {(rate * decay).max():g}; lower one of them")
    return np.sqrt(forward((1.0 - rate * decay) ** 2, (rate * size) ** 2, start**2))


def forward(factor: FloatArray, gain: FloatArray, start: float) -> FloatArray:
    """The recursion y_0 = start, y_(k+1) = factor_k y_k + gain_k, as y_0..y_(n-1) (n,); 0 <= factor (n,) <= 1.

    It is solved as a bidiagonal system, whose elimination is the recursion itself.
    """
    bands = np.ones((2, factor.size))
    bands[1, :-1] = -factor[:-1]
    return np.asarray(solve_banded((1, 0), bands, np.concatenate([[start], gain[:-1]]), check_finite=False))


def backward(factor: FloatArray, slope: FloatArray) -> FloatArray:
    """The reverse of `forward`: z_(n-1) = slope_(n-1), z_k = slope_k + factor_k z_(k+1), as z_0..z_(n-1) (n,).

    If slope_k is the derivative of a number in y_k alone, z_k is that in y_k with all that follows from it.
    """
    bands = np.ones((2, factor.size))
    bands[0, 1:] = -factor[:-1]
    return np.asarray(solve_banded((0, 1), bands, slope, check_finite=False))


def modelled(config: Mapping[str, object]) -> tuple[NormModel, str]:
    """The model with the numbers of a configuration, and the beginning of a line that says so.

    Raises
    ------
    InputError : if the configuration names no weight decay.
    """
    found = first_positive(config, ("weight_decay", "wd"))
    if found is None:
        raise InputError(
            "norm weight-decay needs a weight_decay above 0 in the configuration of the log, and there is none; name a "
            "column of norms (in Python, Run.with_norm(NormModel(weight_decay)) makes them)"
        )
    decay, start = found[1], first_positive(config, ("init_std", "initializer_range", "init_scale"))
    told = f"init_std {start[1]:g}" if start else f"initial parameters of {_INITIAL:g}, which the log does not say"
    return NormModel(decay, start[1] if start else _INITIAL), (
        f"norm of every step modelled, not measured: weight_decay {decay:g}, {told}, updates of size lr per parameter"
    )
