"""Parameter norms that were not logged, from the weight decay of a configuration."""

from collections.abc import Mapping

import numpy as np

from rfsim.checks import FloatArray, InputError, finite_vector, non_negative_number, positive_number

_BLOCK = 20.0  # e-folds of decay that one block of the recursion spans
_INITIAL = 0.02  # root mean square of the initial parameters where the configuration does not say


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
    shrink = 2.0 * np.log1p(-rate * decay)  # log of the factor of n^2 in each step
    gained = (rate * size) ** 2
    fallen = np.concatenate([[0.0], np.cumsum(shrink)])
    squares = np.empty(rate.size)
    now, first = start**2, 0
    while first < rate.size:  # blocks short enough that the weights exp(-fallen) keep their digits
        last = int(np.searchsorted(-fallen, -fallen[first] + _BLOCK, side="right"))
        last = min(max(last, first + 1), rate.size)
        local = fallen[first : last + 1] - fallen[first]
        grown = now + np.concatenate([[0.0], np.cumsum(gained[first:last] * np.exp(-local[1:]))])
        whole = grown * np.exp(local)
        squares[first:last], now, first = whole[:-1], float(whole[-1]), last
    return np.sqrt(squares)


def modelled(config: Mapping[str, object], lr: FloatArray) -> tuple[FloatArray, str]:
    """Norm of every step by `weight_decay_norm` with the numbers of a configuration, and a line that says so.

    Raises
    ------
    InputError : if the configuration names no weight decay.
    """
    decay = _number(config, ("weight_decay", "wd"))
    if decay is None or decay <= 0.0:
        raise InputError(
            "norm weight-decay needs a weight_decay above 0 in the configuration of the log, and there is none; name a "
            "column of norms, or make them with rfsim.logs.weight_decay_norm"
        )
    initial = _number(config, ("init_std", "initializer_range", "init_scale"))
    told = f"init_std {initial:g}" if initial else f"initial parameters of {_INITIAL:g}, which the log does not say"
    values = weight_decay_norm(lr, decay, initial=initial or _INITIAL)
    return values, (
        f"norm of every step modelled, not measured: weight_decay {decay:g}, {told}, updates of size lr per parameter; "
        f"{values.min():.3g} to {values.max():.3g}"
    )


def _number(config: Mapping[str, object], keys: tuple[str, ...]) -> float | None:
    for key in keys:
        value = config.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value):
            return float(value)
    return None
