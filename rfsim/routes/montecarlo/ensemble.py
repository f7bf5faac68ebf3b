"""The Ensemble: the risk of every run at the recorded steps, and its statistics."""

from dataclasses import dataclass, field

import jax
import numpy as np

from rfsim.checks import InputError, finite_vector


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Ensemble:
    """Independent SGD runs under one schedule. The risk has no factor 1/2; the floor is included, sigma^2 is not.

    Attributes
    ----------
    step : (k,) recorded steps t.
    intrinsic_time : (k,) T_t = sum of lr over the steps before t.
    mean : (k,) mean risk over the runs; inf where a run has diverged.
    stderr : (k,) standard error of the mean; inf where it is unknown (a single run, or a run has diverged).
    samples : (runs, k) risk ||Lambda^(1/2) (W a_t - theta*)||^2 of every run; inf once it left the float64 range.
    runs : number of runs; engine : "law" or "literal".
    """

    step: np.ndarray
    intrinsic_time: np.ndarray
    mean: np.ndarray
    stderr: np.ndarray
    samples: np.ndarray
    runs: int = field(metadata={"static": True})
    engine: str = field(metadata={"static": True})

    def quantiles(self, levels: object) -> np.ndarray:
        """Quantiles of the risk over the runs, (len(levels), k), linear between order statistics.

        Raises
        ------
        InputError : for a level outside [0, 1].
        """
        given = finite_vector("levels", np.atleast_1d(np.asarray(levels)))
        if given.min() < 0.0 or given.max() > 1.0:
            raise InputError(f"levels must lie in [0, 1], got {given.tolist()}; pass for example [0.1, 0.5, 0.9]")
        ordered = np.sort(self.samples, axis=0)
        place = given * (self.runs - 1)
        below = np.floor(place).astype(np.int64)
        share = (place - below)[:, None]
        low, high = ordered[below], ordered[np.minimum(below + 1, self.runs - 1)]
        with np.errstate(invalid="ignore"):  # inf - inf, which is not used
            between = low + share * (high - low)
        return np.where((share == 0.0) | (low == high), low, between)


def mean_and_error(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error (k,), (k,) of samples (runs, k) >= 0, without overflow, cancellation or NaN.

    Deviations are taken from the first run, so runs that agree have standard error exactly 0.
    """
    runs = samples.shape[0]
    top = samples.max(axis=0)
    finite = np.isfinite(top)
    scale = np.where(finite & (top > 0.0), top, 1.0)
    scaled = np.where(finite, samples, 0.0) / scale
    moved = scaled - scaled[0]
    shift = moved.mean(axis=0)
    mean = np.where(finite, scale * (scaled[0] + shift), np.inf)
    if runs == 1:
        return mean, np.full(mean.shape, np.inf)
    spread = np.sqrt(np.square(moved - shift).sum(axis=0) / (runs - 1) / runs)
    return mean, np.where(finite, scale * spread, np.inf)
