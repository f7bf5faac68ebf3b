"""Effective learning rate: the lr over a logged norm, protocols that prescribe it, and how well curves collapse.

For weights W whose function depends on their direction only, and updates U whose size does not follow that of W, the
direction moves by lr U / ||W||: runs with equal lr / ||W|| and equal seeds go through the same directions. All
functions are transforms of logged arrays, in float64. Norms are Frobenius norms.

* Direct updates, W <- W - lr U: the norm is ||W||.
* Hyperball updates, W <- N(W - lr N(U)) with N(Q) = R Q / ||Q||: the norm is that of the update, ||U||; R cancels if
  it is the norm of W, which it then stays.

Source: theory, section 7.3.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter

from rfsim.checks import FloatArray, InputError, finite_number, finite_vector, same_length, whole_number
from rfsim.logs import Run

DECAY = 0.99  # of the running mean in which losses are compared


def effective_lr(lr: object, norm: object) -> FloatArray:
    """Effective learning rate lr / norm of every step (n,).

    Parameters
    ----------
    lr : (n,) learning rates >= 0.
    norm : (n,) norm > 0 before the update: of the weights for direct updates, of the update for hyperball updates.

    Raises
    ------
    InputError : for arrays of different length, a negative lr or a norm that is not positive.
    """
    rate, size = finite_vector("lr", lr, least=0.0), finite_vector("norm", norm, least=0.0, strict=True)
    same_length(lr=rate, norm=size)
    return rate / size


def reference_lr(effective: object, norm: object) -> FloatArray:
    """Learning rate lr_B = ELR_A ||W_B|| with which run B takes over the effective lr of run A; no norm is touched.

    The norm of B at a step is known when its lr is needed, so this can be applied step by step too. Both runs begin at
    the first step after the warm-up.

    Parameters
    ----------
    effective : (n,) effective lr >= 0 of run A.
    norm : (n,) norm > 0 of run B before the update, of its weights or (hyperball) of its update.

    Raises
    ------
    InputError : as `effective_lr`.
    """
    wanted = finite_vector("effective", effective, least=0.0)
    size = finite_vector("norm", norm, least=0.0, strict=True)
    same_length(effective=wanted, norm=size)
    return wanted * size


class PrescribedNorms(NamedTuple):
    """A run with a prescribed effective lr: after every update its weights are rescaled to the next target norm.

    lr : (n,) scaled learning rates. target : (n,) norm of the weights before each update; lr / target is the
    prescribed effective lr. lr_factor : the number by which the given learning rates were multiplied.
    """

    lr: FloatArray
    target: FloatArray
    lr_factor: float


def prescribed_norms(lr: object, effective: object, first_norm: object) -> PrescribedNorms:
    """Norm targets n_k = lr_k / ELR_k that turn a learning-rate schedule into a prescribed effective one.

    All lr are multiplied by one factor, so that the first target is the norm that the weights have there. After update
    k the weights are multiplied by n_{k+1} / ||W|| (`rescaling`).

    Parameters
    ----------
    lr : (n,) learning rates > 0 from the first step after the warm-up on.
    effective : (n,) effective lr > 0 of the same steps.
    first_norm : norm of the weights before the first of these steps, > 0.

    Raises
    ------
    InputError : for arrays of different length or numbers that are not positive.
    """
    rate, wanted = (finite_vector(n, v, least=0.0, strict=True) for n, v in (("lr", lr), ("effective", effective)))
    same_length(lr=rate, effective=wanted)
    size = finite_number("first_norm", first_norm)
    if size <= 0.0:
        raise InputError(f"first_norm must be positive, got {size:g}; pass the norm of the weights at the first step")
    factor = float(size * wanted[0] / rate[0])
    return PrescribedNorms(rate * factor, rate * factor / wanted, factor)


def rescaling(target: object, norm: object) -> FloatArray:
    """Factor target / norm (n,) by which weights of this norm (n,) are multiplied to reach their targets (n,).

    For the protocol of `prescribed_norms`, the weights after update k, of norm ||W||, take the target of k + 1.

    Raises
    ------
    InputError : for arrays of different length or numbers that are not positive.
    """
    wanted = finite_vector("target", target, least=0.0, strict=True)
    size = finite_vector("norm", norm, least=0.0, strict=True)
    same_length(target=wanted, norm=size)
    return wanted / size


def ema(values: object, decay: float = DECAY) -> FloatArray:
    """Running mean with exponential weights, m_k = sum_{j <= k} decay^(k-j) x_j / sum_{j <= k} decay^(k-j).

    The weights add up to 1 at every row: the mean of a constant is that constant from the first row on, and
    m_0 = x_0. This is the recursion s_k = decay s_{k-1} + (1 - decay) x_k from s = 0, divided by 1 - decay^(k+1). The
    mean counts rows, not steps.

    Parameters
    ----------
    values : (n,) finite.
    decay : in [0, 1); 0 leaves the values as they are.

    Raises
    ------
    InputError : for a decay outside [0, 1) or values that are not finite.
    """
    rows = finite_vector("values", values)
    kept = finite_number("decay", decay)
    if not 0.0 <= kept < 1.0:
        raise InputError(f"decay must lie in [0, 1), got {kept:g}; 0.99 averages over about 100 rows")
    first = rows[0]
    raw = np.asarray(lfilter([1.0 - kept], [1.0, -kept], rows - first), dtype=np.float64)
    weight = 1.0 - kept ** np.arange(1.0, len(rows) + 1.0)
    return first + raw / weight


def smoothed_distance(loss: object, reference: object, *, skip: int = 0, decay: float = DECAY) -> float:
    """Mean of |EMA(loss) - EMA(reference)| over the rows from `skip` on; the running means begin at row 0.

    Parameters
    ----------
    loss, reference : (n,) losses of two runs at the same steps, n > skip.
    skip : rows of the warm-up, left out of the mean.
    decay : of `ema`.

    Raises
    ------
    InputError : for arrays of different length, or fewer rows than are skipped.
    """
    a, b = finite_vector("loss", loss), finite_vector("reference", reference)
    same_length(loss=a, reference=b)
    first = whole_number("skip", skip, least=0)
    if first >= len(a):
        raise InputError(f"skip must be below the number of rows, {len(a)}, got {first}; leave rows to compare")
    return float(np.mean(np.abs(ema(a, decay) - ema(b, decay))[first:]))


def collapse_error(run: Run, reference: Run, *, warmup: int | None = None, decay: float = DECAY) -> float:
    """How far a run is from another with the same effective lr: mean over steps of |EMA(L) - EMA(L_ref)|, in loss.

    Both are taken at the steps that both logged. The mean leaves out the warm-up; the running means do not.

    Parameters
    ----------
    run, reference : two runs, meant to share seeds and effective lr.
    warmup : rows up to this step are left out; default the longer warm-up of the two.
    decay : of the running mean, per common row.

    Raises
    ------
    InputError : if no common step lies after the warm-up.
    """
    end = max(run.warmup, reference.warmup) if warmup is None else whole_number("warmup", warmup, least=0)
    steps, of_run, of_reference = np.intersect1d(run.step, reference.step, return_indices=True)
    skip = int(np.searchsorted(steps, end, side="right"))
    if skip >= len(steps):
        raise InputError(
            f"{run.name} and {reference.name} must have a common step after the warm-up of {end} steps, got none; "
            f"log both at the same steps"
        )
    return smoothed_distance(run.loss[of_run], reference.loss[of_reference], skip=skip, decay=decay)


def seed_baseline(runs: Sequence[Run], *, warmup: int | None = None, decay: float = DECAY) -> float:
    """Mean of `collapse_error` over all pairs of runs that differ in their seeds: what a collapse is compared with.

    Raises
    ------
    InputError : for fewer than two runs, or pairs without common steps after the warm-up.
    """
    chosen = list(runs)
    if len(chosen) < 2:
        raise InputError(f"runs must hold at least 2 runs that differ in their seeds, got {len(chosen)}")
    pairs = combinations(chosen, 2)
    return float(np.mean([collapse_error(a, b, warmup=warmup, decay=decay) for a, b in pairs]))
