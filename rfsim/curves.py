"""The Curve: what a route returns, at recorded steps only; the State from which a run is continued."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np

Array = np.ndarray | jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Curve:
    """Risk of one schedule and its two groupings, risk = forcing + memory = clean + gap.

    Attributes
    ----------
    step : (k,) recorded steps t.
    intrinsic_time : (k,) T_t = sum of lr over steps before t.
    risk : (k,) R_t = E ||Lambda^(1/2) (W a_t - theta*)||^2 given W; no factor 1/2, sigma^2 not included.
    forcing : (k,) F_t, floor included: what is left of the initial error.
    memory : (k,) sum_s K_{t,s} (R_s + sigma^2): what sampling noise of all earlier steps left behind.
    clean : (k,) risk of the same schedule with sigma^2 = 0 (source bias).
    gap : (k,) what label noise adds (source variance).
    floor : () energy that is never learnt.
    overflow_step : first step, recorded or not, whose risk left the float64 range, or None. The risk and whichever of
        its parts overflowed are inf from there on, the other parts keep their values; nothing is ever NaN.
    """

    step: Array
    intrinsic_time: Array
    risk: Array
    forcing: Array
    memory: Array
    clean: Array
    gap: Array
    floor: float | jax.Array
    overflow_step: int | None = None


class State(NamedTuple):
    """Where a run stands: mode energies (n,) of forcing, of the memory of the clean run, and of the gap."""

    forcing: Array
    clean_memory: Array
    gap: Array
