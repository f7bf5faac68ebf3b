"""The expansion itself: baseline, noise and total of a user's model, its kernel, and an estimate for large models."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from rfsim.checks import InputError, RunError, one_of, require_memory, whole_number
from rfsim.precision import is_traced
from rfsim.response import second_order
from rfsim.response.objective import Objective, Tree, checked
from rfsim.schedules import Array, Schedule, intrinsic_time, recorded_steps
from rfsim.sources.features import check_key


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Response:
    """Expected validation loss as noise-free gradient descent plus the response to sampling noise.

    Attributes
    ----------
    step : (k,) recorded steps n; intrinsic_time : (k,) T_n = sum of lr over the steps before n.
    baseline : (k,) F(n), the loss of gradient descent with the same learning rates and no noise.
    noise : (k,) sum_{s<n} (eta_s^2/B_s) K(n, s); of either sign for a loss that is not convex.
    total : (k,) baseline + noise, in the units of the loss (no factor is put in or taken out).
    stderr : (k,) standard error of noise and total over random probes; zero where nothing is random.
    """

    step: Array
    intrinsic_time: Array
    baseline: Array
    noise: Array
    total: Array
    stderr: Array


def small_noise_response(
    loss: Callable[..., jax.Array],
    parameters: Tree,
    schedule: Schedule,
    *,
    data: Tree = None,
    covariance: Callable[[Tree, Tree], Tree] | None = None,
    validation: Callable[[Tree], jax.Array] | None = None,
    at: object = None,
    trace: str = "auto",
) -> Response:
    """Second-order response of SGD to its sampling noise, E L_val(theta_n) ~ F(n) + sum_s (eta_s^2/B_s) K(n, s).

    K(n, s) = (1/2) Tr[Sigma(theta_s) Hess G_{n,s+1}(theta_{s+1})] with G_{n,s} the validation loss after the noise-free
    updates s..n-1 and theta_s on the noise-free path from `parameters`.

    Parameters
    ----------
    loss : with `data`, (parameters, example) -> loss of one example; the training loss is the mean over the examples
        and each batch is drawn from them independently, with replacement, so that Sigma = mean of g g^T minus the outer
        product of the mean gradient (without replacement multiply B by (examples - 1)/(examples - B)).
        With `covariance`, (parameters,) -> training loss.
    parameters : pytree of float64 arrays at step 0; p numbers in all.
    schedule : N steps of lr and batch; batch `inf` is gradient descent.
    data : pytree of arrays whose first axes run over the examples.
    covariance : (parameters, direction) -> Sigma(parameters) times direction, for noise of another kind; symmetric,
        for a batch of one.
    validation : (parameters,) -> loss that is reported; default the training loss.
    at : recorded steps in 0..N, strictly increasing; default about 200 log-spaced ones with 0 and N.
    trace : how the exact trace is taken. "moments" carries a (p, p) covariance, cost N p; "columns" sums the rows of
        `response_kernel` and never holds p x p, cost N^2/2 times the examples; "auto" takes the cheaper.

    Returns
    -------
    Response with k recorded steps, stderr 0. Works under jit, vmap and grad (of parameters, data, lr, batch).

    Raises
    ------
    InputError : for functions, shapes or types that do not fit, and unless exactly one of data, covariance is given.
    RunError : when the trace does not fit into memory, or a loss is not finite (gradient descent diverges).

    Notes
    -----
    The remainder is at most (1/6) sum_s eta_s^3 M E|xi_s|^3 with M a bound on third derivatives of G, so it shrinks
    as the cube of the noise scale, as the fourth power if the noise is symmetric. Freezing theta_s in K on the
    noise-free path, and not taking it along the noisy one, costs order four in the noise scale. Derivatives of a loss
    with kinks (relu) miss what happens at the kinks. Functions are compiled once for each function object, so
    pass the same objects again, and do not change what they read from outside. Theory: small-noise expansion of
    stochastic approximation; Wang, Liu, Chen 2026 for its use with learning curves.
    """
    steps, objective, parameters, data = _prepare(loss, parameters, schedule, data, covariance, validation, at)
    one_of("trace", trace, ("auto", "moments", "columns"))
    size, columns, horizon = _sizes(parameters, data, schedule)
    room = 8.0 * (10.0 * size**2 + (0 if data is None else 3.0 * size * columns))
    if trace == "auto":
        trace = "moments" if size <= columns * horizon / 2.0 and room < 2.0**31 else "columns"
    lr, inverse, keep = _arrays(schedule, steps)
    if trace == "moments":
        require_memory(f"a covariance of {size} parameters", room, "take trace='columns' or probed_response")
        baseline, noise = second_order.moments(objective, parameters, data, lr, inverse, keep)
    else:
        _require_kernel_room(size, horizon)
        baseline, kernel = second_order.kernel(objective, parameters, data, lr, keep)
        noise = _concrete(kernel) @ _concrete(lr**2 * inverse)
    return _response(schedule, steps, baseline, noise, np.zeros(len(steps)))


def response_kernel(
    loss: Callable[..., jax.Array],
    parameters: Tree,
    schedule: Schedule,
    *,
    data: Tree = None,
    covariance: Callable[[Tree, Tree], Tree] | None = None,
    validation: Callable[[Tree], jax.Array] | None = None,
    at: object = None,
) -> Array:
    """Kernel K(n, s) = (1/2) Tr[Sigma(theta_s) Hess G_{n,s+1}(theta_{s+1})] as an array (k, N), zero for s >= n.

    Noise injected at step s adds (eta_s^2/B_s) K(n, s) to the expected loss at step n; batch sizes do not enter K.
    Arguments and errors are those of `small_noise_response`; `at=[n]` gives the one row n. Exact and free of p x p
    matrices; the cost grows as N^2 times the number of noise columns (examples, or p with `covariance`).
    """
    steps, objective, parameters, data = _prepare(loss, parameters, schedule, data, covariance, validation, at)
    size, _, horizon = _sizes(parameters, data, schedule)
    _require_kernel_room(size, horizon)
    lr, _, keep = _arrays(schedule, steps)
    baseline, kernel = (_concrete(found) for found in second_order.kernel(objective, parameters, data, lr, keep))
    _require_finite(steps, baseline[steps] + kernel[steps].sum(axis=1))
    return kernel[steps]


def probed_response(
    key: jax.Array,
    loss: Callable[..., jax.Array],
    parameters: Tree,
    schedule: Schedule,
    *,
    probes: int = 64,
    data: Tree = None,
    covariance: Callable[[Tree, Tree], Tree] | None = None,
    validation: Callable[[Tree], jax.Array] | None = None,
    at: object = None,
) -> Response:
    """`small_noise_response` for large models, with random-sign probes in place of the exact trace.

    Unbiased; `stderr` is the standard error over the probes and falls as probes^(-1/2). A probe costs a few gradients
    per step whatever the number of parameters and examples, and no array larger than the parameters is kept per probe.

    Parameters
    ----------
    key : jax random key; probe i uses `fold_in(key, i)`, so more probes keep the earlier ones.
    probes : number of probes, at least 2. The other arguments and the errors are those of `small_noise_response`.
    """
    check_key(key)
    count = whole_number("probes", probes, least=2)
    steps, objective, parameters, data = _prepare(loss, parameters, schedule, data, covariance, validation, at)
    lr, inverse, keep = _arrays(schedule, steps)
    baseline, found = second_order.probes(key, objective, parameters, data, lr, inverse, keep, count)
    estimates = _concrete(found)
    return _response(schedule, steps, baseline, estimates.mean(axis=0), _spread(estimates[:, steps]))


# --- before and after ------------------------------------------------------------------------------------------------


def _prepare(
    loss: object,
    parameters: Tree,
    schedule: object,
    data: Tree,
    covariance: object,
    validation: object,
    at: object,
) -> tuple[np.ndarray, Objective, Tree, Tree]:
    if not isinstance(schedule, Schedule):
        raise InputError(
            f"schedule must be a Schedule, got {type(schedule).__name__}; make one with rfsim.schedules, for example "
            f"rfsim.schedules.constant(steps=100, lr=0.1, batch=8)"
        )
    steps = recorded_steps(at, schedule.steps)
    return steps, *checked(loss, parameters, data, covariance, validation)


def _sizes(parameters: Tree, data: Tree, schedule: Schedule) -> tuple[int, int, int]:
    """Numbers p of parameters, r of noise columns, N of steps."""
    size = sum(int(np.size(leaf)) for leaf in jax.tree.leaves(parameters))
    return size, size if data is None else len(jax.tree.leaves(data)[0]), schedule.steps


def _require_kernel_room(size: int, horizon: int) -> None:
    needed = 8.0 * horizon * (2.0 * size + 3.0 * horizon)
    require_memory(f"a kernel over {horizon} steps of {size} parameters", needed, "take probed_response or fewer steps")


def _arrays(schedule: Schedule, steps: np.ndarray) -> tuple[jax.Array, jax.Array, np.ndarray]:
    keep = np.zeros(schedule.steps + 1, dtype=bool)
    keep[steps] = True
    return jnp.asarray(schedule.lr), 1.0 / jnp.asarray(schedule.batch), keep


def _response(schedule: Schedule, steps: np.ndarray, baseline: Array, noise: Array, stderr: Array) -> Response:
    """Response from baseline and noise at all steps (N+1,) and stderr at the recorded ones (k,)."""
    baseline, noise = _concrete(baseline)[steps], _concrete(noise)[steps]
    total = baseline + noise
    _require_finite(steps, total)
    if is_traced(schedule.lr):
        time: Array = jnp.concatenate([jnp.zeros(1), jnp.cumsum(jnp.asarray(schedule.lr))])[steps]
    else:
        time = intrinsic_time(schedule.lr, steps)
    return Response(steps, time, baseline, noise, total, stderr)


def _spread(estimates: Array) -> Array:
    """Standard error of the mean of estimates (count, k)."""
    return estimates.std(axis=0, ddof=1) / np.sqrt(estimates.shape[0])


def _concrete(value: Array) -> Array:
    """A NumPy array where the caller does not trace."""
    return value if is_traced(value) else np.asarray(value)


def _require_finite(steps: np.ndarray, values: Array) -> None:
    if is_traced(values):
        return
    good = np.isfinite(np.asarray(values))
    if not good.all():
        raise RunError(
            f"the loss or its response is not finite at recorded step {steps[int(np.argmin(good))]}: noise-free "
            f"gradient descent diverges or the loss is not smooth there; lower lr or record earlier steps"
        )
