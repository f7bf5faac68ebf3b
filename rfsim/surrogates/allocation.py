"""What a final-loss law says about sizes: model and tokens for a budget, for a loss, and for a loss that is served.

All functions take the values (E, A, B, alpha, beta) of `FinalLoss`, L = E + A N^(-alpha) + B D^(-beta). Training costs
kc N D and serving ki N per token: FLOP of a dense model whose parameters all work on each token (kc 6, ki 2),
without attention over long contexts, recomputation, idle time and failed runs. Other costs enter through kc and ki.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from rfsim.checks import FloatArray, InputError, finite_number, non_negative_number, positive_number
from rfsim.surrogates.final_loss import FinalLoss
from rfsim.surrogates.laws import values_of


@dataclass(frozen=True)
class Allocation:
    """A model size N in parameters with its tokens D, the loss they reach, and the FLOP of training and of serving.

    All have the shape of the budget (or loss) that was asked for.
    """

    model_size: FloatArray
    tokens: FloatArray
    loss: FloatArray
    training: FloatArray
    serving: FloatArray

    @property
    def total(self) -> FloatArray:
        """FLOP of training and serving together."""
        return self.training + self.serving


@dataclass(frozen=True)
class Spread:
    """An uncertain quantity: its value, the standard error of its logarithm, and the ends of its interval."""

    value: float
    log_stderr: float
    low: float
    high: float


def exponents(values: object) -> tuple[float, float]:
    """Powers of the budget: N* grows as C^(beta/(alpha+beta)) and D* as C^(alpha/(alpha+beta))."""
    _, _, _, alpha, beta = _checked(values)
    return float(beta / (alpha + beta)), float(alpha / (alpha + beta))


def compute_optimal(values: object, compute: object, *, kc: float = 6.0) -> Allocation:
    """Size and tokens of the lowest loss for a training budget C (scalar or array, FLOP).

    N* = (alpha A/(beta B))^(1/(alpha+beta)) (C/kc)^(beta/(alpha+beta)), D* = C/(kc N*); there
    L - E = A N*^(-alpha) (1 + alpha/beta).

    Raises
    ------
    InputError : for amplitudes or exponents that are not positive, or a budget that is not.

    Source: theory, section 7.5.
    """
    limit, by_size, by_tokens, alpha, beta = _checked(values)
    pairs = np.log(_positive("compute", compute) / positive_number("kc", kc))
    log_size = (np.log(alpha * by_size / (beta * by_tokens)) + beta * pairs) / (alpha + beta)
    size, tokens = np.exp(log_size), np.exp(pairs - log_size)
    loss = limit + by_size * np.exp(-alpha * log_size) * (1.0 + alpha / beta)
    return Allocation(size, tokens, loss, kc * size * tokens, np.zeros_like(size))


def compute_optimal_for_loss(values: object, loss: object, *, kc: float = 6.0) -> Allocation:
    """Size and tokens of the cheapest training run that ends at a loss L (scalar or array, above E).

    With G = L - E: A N^(-alpha) = G beta/(alpha+beta) and B D^(-beta) = G alpha/(alpha+beta).

    Raises
    ------
    InputError : for a loss that is not above E.
    """
    limit, by_size, by_tokens, alpha, beta = _checked(values)
    excess = _excess(limit, loss)
    size = (by_size * (alpha + beta) / (excess * beta)) ** (1.0 / alpha)
    tokens = (by_tokens * (alpha + beta) / (excess * alpha)) ** (1.0 / beta)
    return Allocation(size, tokens, limit + excess, positive_number("kc", kc) * size * tokens, np.zeros_like(size))


def iso_flop(values: object, compute: float, model_size: object, *, kc: float = 6.0) -> FloatArray:
    """Loss (m,) of models of sizes (m,), each trained on the D = C/(kc N) tokens that one budget C pays for.

    Its minimum over the size is `compute_optimal`; it is not symmetric in log N unless alpha A = beta B there.
    """
    limit, by_size, by_tokens, alpha, beta = _checked(values)
    size = _positive("model_size", model_size)
    tokens = positive_number("compute", compute) / (positive_number("kc", kc) * size)
    return limit + by_size * size**-alpha + by_tokens * tokens**-beta


def tokens_for_loss(values: object, loss: object, model_size: object) -> FloatArray:
    """Tokens on which a model of size N must be trained to end at loss L: D = (B/(L - E - A N^(-alpha)))^(1/beta).

    Raises
    ------
    InputError : if the model is too small for this loss on any number of tokens; says the size above which it is not.
    """
    limit, by_size, by_tokens, alpha, beta = _checked(values)
    excess, size = _excess(limit, loss), _positive("model_size", model_size)
    left = excess - by_size * size**-alpha
    if not (left > 0.0).all():
        least = float(np.max((by_size / excess) ** (1.0 / alpha)))
        raise InputError(
            f"model_size {float(np.min(size)):.4g} cannot reach the loss {float(np.min(limit + excess)):.6g} on any "
            f"number of tokens; take a size above {least:.4g}"
        )
    return np.asarray((by_tokens / left) ** (1.0 / beta))


def serving_optimal(
    values: object,
    loss: float,
    *,
    queries: float,
    tokens_per_query: float,
    kc: float = 6.0,
    ki: float = 2.0,
) -> Allocation:
    """Size and tokens that reach a loss at the lowest cost of training and of serving S tokens over the lifetime.

    Minimises kc N D + ki N S at fixed L. With x = A N^(-alpha) and y = B D^(-beta), x + y = L - E, the minimum is at
    kc D (alpha x/(beta y) - 1) = ki S: one root, since the left side grows from 0 without bound as y falls. Without
    queries it is `compute_optimal_for_loss`; the more are served, the smaller the model and the longer its training.

    Parameters
    ----------
    queries, tokens_per_query : over the lifetime of the model; S is their product, at least 0.
    kc, ki : FLOP (or money) per parameter and token of training and of serving.

    Raises
    ------
    InputError : for a loss that is not above E, or negative counts.

    Source: the setting of Sardana et al. 2024; the condition is derived from the law as above.
    """
    limit, by_size, by_tokens, alpha, beta = _checked(values)
    excess = float(_excess(limit, finite_number("loss", loss)))
    kc, ki = positive_number("kc", kc), positive_number("ki", ki)
    served = non_negative_number("queries", queries) * non_negative_number("tokens_per_query", tokens_per_query)

    def log_tokens(q: float) -> float:
        """Log D at alpha x/(beta y) = 1 + q."""
        return float(np.log(by_tokens * (alpha + beta * (1.0 + q)) / (excess * alpha))) / beta

    if served == 0.0:
        q = 0.0
    else:
        wanted = np.log(ki / kc) + np.log(served)
        high = max(wanted - log_tokens(0.0), 0.0)
        low = min(wanted - log_tokens(float(np.exp(high))), 0.0) - 1.0
        root = brentq(lambda log_q: log_q + log_tokens(float(np.exp(log_q))) - wanted, low, high, xtol=1e-14)
        q = float(np.exp(root))
    share = beta * (1.0 + q) / (alpha + beta * (1.0 + q))
    size = np.asarray((by_size / (excess * share)) ** (1.0 / alpha))
    tokens = np.asarray(np.exp(log_tokens(q)))
    return Allocation(size, tokens, np.asarray(limit + excess), kc * size * tokens, ki * size * served)


def break_even(
    values: object,
    loss: float,
    model_size: float,
    *,
    tokens_per_query: float,
    kc: float = 6.0,
    ki: float = 2.0,
) -> float:
    """Number of queries from which a smaller model costs less in all than the compute-optimal one of the same loss.

    Q = kc (N1 D1 - N* D*) / (ki (N* - N1) tokens_per_query): the longer training of the smaller model N1 on the D1
    tokens that bring it to the same loss, over what it saves per query.

    Raises
    ------
    InputError : if N1 is not below N*, where nothing is saved, or too small to reach the loss.
    """
    best = compute_optimal_for_loss(values, finite_number("loss", loss), kc=kc)
    size, per_query = positive_number("model_size", model_size), positive_number("tokens_per_query", tokens_per_query)
    if size >= best.model_size:
        raise InputError(
            f"model_size {size:.4g} is not below the compute-optimal {float(best.model_size):.4g} of this loss: "
            f"it saves nothing in serving; take a smaller one"
        )
    training = kc * size * tokens_for_loss(values, loss, size)
    return float((training - best.training) / (positive_number("ki", ki) * (best.model_size - size) * per_query))


def optimum_spread(
    values: object, compute: float, *, samples: np.ndarray, level: float = 0.95, kc: float = 6.0
) -> dict[str, Spread]:
    """How certain "model_size" N*, "tokens" D* and the exponent "size_exponent" of N* are at a budget.

    Parameters
    ----------
    samples : (R, 5) refitted values (`bootstrap`), which give standard errors of the logarithms and percentiles. A and
        B are uncertain by large factors and tied to the exponents, so that no errors of single values would do.
    level : of the interval, between 0 and 1.

    Raises
    ------
    InputError : for samples of another shape, or a level outside (0, 1).
    """
    checked, pairs = _checked(values), positive_number("compute", compute) / positive_number("kc", kc)
    level = positive_number("level", level)
    if level >= 1.0:
        raise InputError(f"level must be below 1, got {level:g}; pass for example 0.95")
    drawn = np.asarray(samples, dtype=np.float64)
    if drawn.ndim != 2 or drawn.shape[1] != 5 or len(drawn) < 2:
        raise InputError(f"samples must have the shape (R, 5) with R >= 2, got {drawn.shape}; pass bootstrap(fit)")
    logs = np.stack([_logs(_checked(one), pairs) for one in drawn])
    error = logs.std(axis=0, ddof=1)
    low, high = np.percentile(logs, [50.0 * (1.0 - level), 50.0 * (1.0 + level)], axis=0)
    names = ("model_size", "tokens", "size_exponent")
    rows = zip(names, np.exp(_logs(checked, pairs)), error, np.exp(low), np.exp(high), strict=True)
    return {name: Spread(float(at), float(e), float(a), float(b)) for name, at, e, a, b in rows}


def _logs(values: FloatArray, pairs: float) -> FloatArray:
    """Logarithms (3,) of N*, D* and the exponent of N*, with N D = `pairs`."""
    _, by_size, by_tokens, alpha, beta = values
    size = (np.log(alpha * by_size / (beta * by_tokens)) + beta * np.log(pairs)) / (alpha + beta)
    return np.array([size, np.log(pairs) - size, np.log(beta / (alpha + beta))])


def _checked(values: object) -> FloatArray:
    """Values (5,) with positive amplitudes and exponents."""
    array = values_of(FinalLoss(), values)
    if array[0] < 0.0 or not (array[1:] > 0.0).all():
        raise InputError(f"values must be E >= 0 and A, B, alpha, beta > 0, got {array.tolist()}; fit them to points")
    return array


def _positive(name: str, value: object) -> FloatArray:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim > 1 or not (np.isfinite(array).all() and (array > 0.0).all()):
        raise InputError(f"{name} must be positive and finite, a number or a 1-d array, got {value!r}; correct it")
    return array


def _excess(limit: float, loss: object) -> FloatArray:
    """L - E, positive."""
    excess = _positive("loss", loss) - limit
    if not (excess > 0.0).all():
        raise InputError(f"loss must be above its limit E = {limit:.6g}, got {loss!r}; no model reaches less")
    return excess
