"""What a fit says beside its parameters: quantities that it knows better than these, and information criteria."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from rfsim.surrogates.laws import Law, parameter_names
from rfsim.surrogates.uncertainty import Spread, root


class Derived(NamedTuple):
    """A multiple of one amplitude: the name of this, the value, and its derivatives (k,) in the parameters."""

    amplitude: str
    value: float
    slopes: np.ndarray


class Estimate(NamedTuple):
    """A derived quantity of a fit with its standard error."""

    value: float
    stderr: float


@runtime_checkable
class Deriving(Protocol):
    """A law some of whose parameters trade against each other, and that knows what of them is determined."""

    def derived(self, values: np.ndarray) -> dict[str, Derived]:
        """Quantities by their formula, at parameter values (k,)."""
        ...


class Criteria(NamedTuple):
    """Information criteria of n log residuals r with k free parameters, up to a constant of the data.

    aic : n log(sum r^2 / n) + 2 k. bic : n log(sum r^2 / n) + k log n. Lower is better, among fits to the same rows.
    Both count every row as independent: where residuals are correlated they favour laws with many parameters.
    """

    aic: float
    bic: float


def kernel_tails(law: Law[Any], values: np.ndarray, rate: str, exponent: float | None) -> dict[str, Derived]:
    """A_0 / c^q and A_1 / c^q: the strength of the tail A (c x)^(-q) of a memory kernel A (1 + c x)^(-q).

    Observations that lie far behind the changes of the lr, compared with 1/c, see this tail only, along which A and c
    slide; those that resolve 1/c determine A and c, and these products no better.

    Parameters
    ----------
    rate : name of c. exponent : q if the law holds it, or None if it is the parameter q_K.
    """
    names = parameter_names(law)
    at = names.index(rate)
    c, q = values[at], values[names.index("q_K")] if exponent is None else exponent
    found = {}
    for amplitude in ("A_0", "A_1"):
        slopes = np.zeros(len(names))
        slopes[names.index(amplitude)] = c**-q
        value = values[names.index(amplitude)] * c**-q
        slopes[at] = -q * value / c
        if exponent is None:
            slopes[names.index("q_K")] = -np.log(c) * value
        found[f"{amplitude} / {rate}^q_K"] = Derived(amplitude, float(value), slopes)
    return found


def estimates(law: Law[Any], values: np.ndarray, found: Spread, samples: np.ndarray | None) -> dict[str, Estimate]:
    """The derived quantities of a law with standard errors: of the samples (b, k), else by the delta method.

    Without those whose amplitude is on a bound; empty for a law that has none. Source: theory, section 7.6.
    """
    if not isinstance(law, Deriving):
        return {}
    result = {}
    drawn = None if samples is None else [law.derived(one) for one in samples]
    for name, (amplitude, value, slopes) in law.derived(values).items():
        if amplitude in found.at_bound:
            continue
        if drawn is None:
            error = float(np.linalg.norm(slopes @ root(found.covariance)))
        else:
            error = float(np.std([one[name].value for one in drawn], ddof=1))
        result[name] = Estimate(value, error)
    return result


def criteria(residuals: np.ndarray, free: int) -> Criteria:
    """AIC and BIC of log residuals (n,) with `free` parameters; minus infinity for a law through all rows.

    Source: theory, section 7.6.
    """
    count, square = len(residuals), float(residuals @ residuals)
    fitted = count * np.log(square / count) if square > 0.0 else -np.inf
    return Criteria(float(fitted + 2.0 * free), float(fitted + free * np.log(count)))
