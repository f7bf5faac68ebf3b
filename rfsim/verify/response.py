"""Small-noise response against enumerated noise, hand-made derivatives, plain matrices and sampled SGD.

Witnesses use no automatic derivative: a quartic with its derivatives by hand, noise with two values of which every
sequence is taken, dense matrices for the linear model, and a tanh unit with two parameters whose SGD is plain NumPy.
"""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from rfsim.problems import power_law
from rfsim.response import linear_response, probed_response, response_kernel, small_noise_response
from rfsim.routes import recursion
from rfsim.schedules import constant
from rfsim.sources import features as sources
from rfsim.spectra import spectrum
from rfsim.verify.check import Check, above, near
from rfsim.verify.dense import dense_model
from rfsim.verify.equations import changing_schedule
from rfsim.verify.registry import SEED

_EPS = float(np.finfo(float).eps)
_RATE = 1e-3  # false alarms of each of the two sampled checks
_SIZES = {"quick": (40, 200), "standard": (100, 1000), "full": (300, 3000)}  # modes, steps
_RUNS = {"quick": 20_000, "standard": 200_000, "full": 1_000_000}
_LR, _STEPS, _START = 0.15, 4, 0.9  # of the quartic
_LAWS = {  # values and chances of noise of mean 0 and variance 1
    "symmetric": ((-1.0, 1.0), (0.5, 0.5)),
    "skewed": ((2.0, -0.5), (0.2, 0.8)),
}
_INPUTS = np.linspace(-2.0, 2.0, 11)
_LABELS = np.tanh(2.0 * _INPUTS) + 0.5 * np.cos(5.0 * _INPUTS)
_UNIT = np.array([1.6, 0.4])  # first parameters of the tanh unit


def checks(scale: str) -> Iterator[Check]:
    """Checks of the family."""
    yield _linear(*_SIZES[scale])
    yield _machinery()
    yield from _quartic()
    yield from _sampled(_RUNS[scale])


# --- the linear model ------------------------------------------------------------------------------------------------


def _linear(modes: int, steps: int) -> Check:
    draws = np.random.default_rng(SEED + 80)
    lam = draws.uniform(0.01, 1.0, modes)
    lam *= 3.0 / lam.sum()
    system = spectrum(lam, draws.exponential(size=modes), floor=0.3, noise_var=0.5)
    schedule = changing_schedule(steps, 0.5, SEED + 81)
    at = np.arange(steps + 1)
    exact = recursion.risk(system, schedule, at=at).risk
    found = linear_response(system, schedule, at=at).total
    return near(
        "response/linear",
        "linear model: gradient descent plus sum_s (eta^2/B) sum_j l^2 prod (1 - eta l)^2 [R_s + sigma^2 + rho_j(s)] "
        "is the exact risk (largest relative difference)",
        0.0,
        float(np.max(np.abs(found / exact - 1.0))),
        (16 * steps + modes) * _EPS,
    )


def _machinery() -> Check:
    """Hessian-vector products on the linear model, against dense matrices with theta_s on the noise-free path."""
    problem = power_law(0.5, 0.3, ambient=7, noise_var=0.4)
    drawn = sources.random_features(jax.random.key(SEED + 82), problem, 4)
    model = dense_model(drawn)
    half, start = jnp.sqrt(problem.eigenvalues)[:, None] * jnp.asarray(drawn.weights), jnp.asarray(model.start)
    steps = 20
    schedule = changing_schedule(steps, 0.7 / float(np.linalg.norm(model.feature_matrix, 2)), SEED + 83)

    def risk(a: jax.Array) -> jax.Array:
        return jnp.sum(jnp.square(start + half @ a))

    def loss(a: jax.Array) -> jax.Array:
        return 0.5 * risk(a)

    def covariance(a: jax.Array, direction: jax.Array) -> jax.Array:
        gradient = half.T @ (start + half @ a)
        return (risk(a) + 0.4) * (half.T @ (half @ direction)) + jnp.vdot(gradient, direction) * gradient

    found = small_noise_response(
        loss, jnp.zeros(4), schedule, covariance=covariance, validation=risk, at=np.arange(steps + 1)
    )
    H, error = model.feature_matrix, model.start
    spread = np.zeros_like(H)
    noise = [0.0]
    for lr, batch in zip(schedule.lr, schedule.batch, strict=True):
        keep = np.eye(len(H)) - lr * H
        pushed = H @ error
        injected = (error @ error + 0.4) * H @ H + np.outer(pushed, pushed)
        spread = keep @ spread @ keep + lr**2 / batch * injected
        error = keep @ error
        noise.append(np.trace(spread))
    return near(
        "response/machinery",
        "the expansion of a general model, applied to the linear one, is the trace of dense matrices on the "
        "noise-free path (largest relative difference of the noise)",
        0.0,
        float(np.max(np.abs(found.noise[1:] / np.array(noise[1:]) - 1.0))),
        100 * steps * _EPS,  # a few roundings of 7 x 7 products per step
    )


# --- a quartic in one parameter --------------------------------------------------------------------------------------


def _value(x: Any) -> Any:
    return 0.25 * x**4 - 0.3 * x**3 + 0.5 * x**2


def _derivatives(x: float) -> tuple[float, float, float]:
    return x**3 - 0.9 * x**2 + x, 3.0 * x**2 - 1.8 * x + 1.0, 6.0 * x - 1.8


def _kernel_by_hand(*, drift: bool) -> np.ndarray:
    """Half the second derivative of the rest of the path, s = 0..3; without `drift` the step maps count as linear."""
    path = [_START]
    for _ in range(_STEPS):
        path.append(path[-1] - _LR * _derivatives(path[-1])[0])
    first, second = _derivatives(path[-1])[:2]
    row = np.zeros(_STEPS)
    for s in reversed(range(_STEPS)):
        row[s] = 0.5 * second
        _, curvature, third = _derivatives(path[s])
        slope = 1.0 - _LR * curvature
        second = slope**2 * second - (_LR * third * first if drift else 0.0)
        first = slope * first
    return row


def _enumerated(law: str, scale: float) -> float:
    """Exact mean loss after 4 steps with noise of two values."""
    values, chances = _LAWS[law]
    terms = []
    for sequence in product((0, 1), repeat=_STEPS):
        x = _START
        for which in sequence:
            x -= _LR * (_derivatives(x)[0] + scale * values[which])
        terms.append(math.prod(chances[which] for which in sequence) * _value(x))
    return math.fsum(terms)


def _quartic() -> Iterator[Check]:
    schedule = constant(_STEPS, _LR, 1)

    def unit(x: jax.Array, direction: jax.Array) -> jax.Array:
        return direction

    kernel = np.asarray(response_kernel(_value, _START, schedule, covariance=unit, at=[_STEPS]))[0]
    right, plain = _kernel_by_hand(drift=True), _kernel_by_hand(drift=False)
    yield near(
        "response/kernel",
        "K(n, s) = (1/2) Sigma G'' with both terms of the second derivative of a composed map, written out by hand "
        "(quartic, largest relative difference)",
        0.0,
        float(np.max(np.abs(kernel / right - 1.0))),
        100 * _STEPS * _EPS,
    )
    unscaled = small_noise_response(_value, _START, schedule, covariance=unit, at=[_STEPS])
    for law, order, also, last in (("symmetric", 4.0, "fourth power", 6), ("skewed", 3.0, "cube", 9)):
        scales = 2.0 ** np.array([1 - last, -last])
        errors = [
            abs(_enumerated(law, scale) - float(unscaled.baseline[0] + scale**2 * unscaled.noise[0]))
            for scale in scales
        ]
        # next term: smaller by the scale (skewed) or its square, with a coefficient of order one
        yield near(
            f"response/{law}",
            f"quartic .25x^4 - .3x^3 + .5x^2, four steps, {law} noise of two values: the remainder shrinks as the "
            f"{also} of the noise scale (local order)",
            order,
            math.log2(errors[0] / errors[1]),
            0.02,
        )
    scales = 2.0 ** np.array([-5, -6])
    errors = [
        abs(_enumerated("symmetric", scale) - float(unscaled.baseline[0] + scale**2 * _LR**2 * plain.sum()))
        for scale in scales
    ]
    yield near(
        "response/drift-needed",
        "without the drift that mean-zero noise acquires through curvature the error is of second order only",
        2.0,
        math.log2(errors[0] / errors[1]),
        0.02,
    )


# --- a tanh unit and sampled SGD -------------------------------------------------------------------------------------


def _unit_loss(parameters: jax.Array, example: tuple[jax.Array, jax.Array]) -> jax.Array:
    x, y = example
    return 0.5 * jnp.square(parameters[0] * jnp.tanh(parameters[1] * x) - y)


def _unit_gradients(parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Losses (..., 11) and gradients (..., 11, 2) of the examples at parameters (..., 2), by hand."""
    outer, inner = parameters[..., :1], parameters[..., 1:]
    bent = np.tanh(inner * _INPUTS)
    residual = outer * bent - _LABELS
    gradients = np.stack([residual * bent, residual * outer * _INPUTS * (1.0 - bent**2)], axis=-1)
    return 0.5 * residual**2, gradients


def _unit_hessian(parameters: np.ndarray) -> np.ndarray:
    """Hessian (2, 2) of the mean loss, by hand."""
    outer, inner = parameters
    bent = np.tanh(inner * _INPUTS)
    width = _INPUTS * (1.0 - bent**2)
    residual = outer * bent - _LABELS
    mixed = np.mean((outer * bent + residual) * width)
    last = np.mean((outer * width) ** 2 - 2.0 * residual * outer * bent * width * _INPUTS)
    return np.array([[np.mean(bent**2), mixed], [mixed, last]])


def _sampled(runs: int) -> Iterator[Check]:
    """SGD with the loss minus its linear response to the same noise: mean unchanged, error of second order."""
    # remainder over stderr goes as sqrt(runs)/batch, so the batch grows with the square root of the runs: at batch 40
    # the remainder is 2.7 % of the noise, here it is a tenth of the stderr
    steps, lr = 12, 0.4
    batch = round(8.0 * math.sqrt(runs))
    schedule = constant(steps, lr, batch)
    data = (_INPUTS, _LABELS)
    found = small_noise_response(_unit_loss, _UNIT, schedule, data=data, at=[steps])
    baseline, noise = float(found.baseline[0]), float(found.noise[0])
    rng = np.random.default_rng(SEED + 84)
    samples = []
    spread = np.zeros((2, 2))  # covariance of the linear response
    path = _UNIT.copy()
    for _ in range(steps):
        gradients = _unit_gradients(path)[1]
        keep = np.eye(2) - lr * _unit_hessian(path)
        spread = keep @ spread @ keep + lr**2 / batch * np.cov(gradients.T, bias=True)
        path = path - lr * gradients.mean(axis=0)
    without_drift = 0.5 * float(np.sum(spread * _unit_hessian(path)))
    for size in np.diff(np.append(np.arange(0, runs, 50_000), runs)):
        theta, still, linear = np.tile(_UNIT, (size, 1)), _UNIT.copy(), np.zeros((size, 2))
        for _ in range(steps):
            shares = rng.multinomial(batch, np.full(11, 1.0 / 11.0), size=size) / batch
            gradients = _unit_gradients(theta)[1]
            drawn = np.einsum("re,rep->rp", shares, gradients)
            linear = linear - lr * (linear @ _unit_hessian(still) + drawn - gradients.mean(axis=1))
            theta = theta - lr * drawn
            still = still - lr * _unit_gradients(still)[1].mean(axis=0)
        slope = _unit_gradients(still)[1].mean(axis=0)
        samples.append(_unit_gradients(theta)[0].mean(axis=1) - linear @ slope)
    losses = np.concatenate(samples)
    stderr = losses.std(ddof=1) / math.sqrt(runs)
    z = (losses.mean() - baseline - noise) / stderr
    yield above(
        "response/montecarlo",
        f"a tanh unit under SGD with batches of {batch} drawn with replacement, {runs} runs of {steps} steps: chance "
        f"of a mean this far from the expansion (false-alarm rate {_RATE:g})",
        _RATE,
        float(2.0 * special.ndtr(-abs(z))),
    )
    wrong = min(abs(losses.mean() - baseline - other) for other in (0.0, without_drift, 2.0 * noise)) / stderr
    yield above(
        "response/montecarlo-rejects-wrong",
        "the same test rejects gradient descent alone, the response without drift, twice the response (smallest |z|)",
        float(-special.ndtri(_RATE / 2.0)),
        float(wrong),
    )
    probed = probed_response(jax.random.key(SEED + 85), _unit_loss, _UNIT, schedule, data=data, probes=4096, at=[steps])
    z = (float(probed.noise[0]) - noise) / float(probed.stderr[0])
    yield above(
        "response/probes",
        f"random-sign probes estimate the exact trace: chance of a mean this far off (4096 probes, false-alarm rate "
        f"{_RATE:g})",
        _RATE,
        float(2.0 * special.ndtr(-abs(z))),
    )
