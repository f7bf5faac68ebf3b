"""Literal SGD: draw inputs and labels, form the features, take the mean gradient of the batch. The witness of the law.

    x = Lambda^(1/2) z, y = <x, theta*> + eps, f = <W^T x, a>,   a <- a - (eta/B) sum_i W^T x_i (f_i - y_i).

Sample i of a step has its own key. A batch is worked off in large pieces, the rest of it in small masked ones, so one
compiled kernel serves every batch size.
"""

from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jax import lax

from rfsim.checks import InputError
from rfsim.precision import float64_array, jnp
from rfsim.routes.montecarlo.stretches import STEPS, Stretch, risk_or_inf
from rfsim.sources.features import Features
from rfsim.spectra import Array

_PIECES = (64, 8)  # samples at once: large, small
_PIECE_BYTES = 32 * 2**20  # a piece of x and of the features stays below this
_LARGEST_BATCH = 2**31


class LiteralModel(NamedTuple):
    """What a run needs: roots of eigenvalues (v,) and noise variance, target (v,), weights W (v, M)."""

    root: Array
    target: Array
    weights: Array
    noise_root: Array


def literal_model(features: Features) -> LiteralModel:
    """Model of Features, or InputError if the shapes do not fit."""
    problem = features.problem
    root = np.sqrt(np.asarray(float64_array("eigenvalues", problem.eigenvalues)))
    weights = np.asarray(float64_array("weights", features.weights))
    if weights.ndim != 2 or weights.shape[0] != root.size or weights.size == 0:
        raise InputError(
            f"weights must have shape (ambient, width) with ambient {problem.ambient}, got {weights.shape}; "
            f"make them with random_features"
        )
    if not np.isfinite(weights).all():
        raise InputError("weights must be finite, got NaN or infinity; draw them anew")
    target = np.asarray(float64_array("target", problem.target))
    return LiteralModel(root, target, weights, np.asarray(np.sqrt(np.float64(problem.noise_var))))


def check_sizes(batch: np.ndarray) -> None:
    """Raise InputError for a finite batch whose samples cannot be numbered."""
    if np.max(batch, where=np.isfinite(batch), initial=0.0) > _LARGEST_BATCH:
        raise InputError(f"batch must be at most {_LARGEST_BATCH} with engine literal; use engine law or batch inf")


def pieces(model: LiteralModel) -> tuple[int, int]:
    """Samples drawn at once, (large, small): powers of two that depend on the shape of W only."""
    room = _PIECE_BYTES // (8 * sum(model.weights.shape))
    large = min(_PIECES[0], 2 ** max(0, room.bit_length() - 1))
    return large, min(_PIECES[1], large)


def bytes_per_run(model: LiteralModel) -> int:
    """Memory that one run keeps alive: one piece of inputs (twice: z and x) and of features, and a few states."""
    ambient, width = model.weights.shape
    return 8 * (pieces(model)[0] * (2 * ambient + width) + 2 * ambient + 4 * width)


def start(model: LiteralModel, runs: int) -> jax.Array:
    """States a_0 = 0, (runs, M)."""
    return jnp.zeros((runs, model.weights.shape[1]))


@partial(jax.jit, static_argnames=("single", "sizes"))
def advance(
    model: LiteralModel,
    keys: jax.Array,
    states: jax.Array,
    stretch: Stretch,
    *,
    single: bool,
    sizes: tuple[int, int],
) -> tuple[jax.Array, jax.Array]:
    """Run one stretch for all runs; return states (runs, M) and records (runs, RECORDS)."""
    one = partial(_advance_one, model, single=single, sizes=sizes)
    return jax.vmap(one, in_axes=(0, 0, None))(keys, states, stretch)


def _advance_one(
    model: LiteralModel, key: jax.Array, vector: jax.Array, stretch: Stretch, *, single: bool, sizes: tuple[int, int]
) -> tuple[jax.Array, jax.Array]:
    ambient = model.root.shape[0]
    dtype = jnp.float32 if single else jnp.float64

    def piece_gradient(
        step_key: jax.Array, vector: jax.Array, begin: jax.Array, batch: jax.Array, size: int
    ) -> jax.Array:
        """Sum of the gradients of samples begin..begin+size-1, those beyond the batch left out."""
        number = begin + jnp.arange(size, dtype=jnp.uint32)
        sample_keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(step_key, number)
        draws = jax.vmap(lambda k: jax.random.normal(k, (ambient + 1,), dtype=dtype))(sample_keys).astype(jnp.float64)
        inputs = draws[:, :ambient] * model.root[None, :]
        labels = inputs @ model.target + model.noise_root * draws[:, ambient]
        formed = inputs @ model.weights
        residual = jnp.where(number < batch, formed @ vector - labels, 0.0)
        return jnp.asarray(residual @ formed)

    def sampled(step_key: jax.Array, vector: jax.Array, batch: jax.Array) -> jax.Array:
        large, small = sizes
        samples = batch.astype(jnp.uint32)
        full = (samples // large).astype(jnp.int32)
        rest = (samples % large + (small - 1)) // small

        def add_large(number: jax.Array, total: jax.Array) -> jax.Array:
            begin = number.astype(jnp.uint32) * large
            return total + piece_gradient(step_key, vector, begin, samples, large)

        def add_small(number: jax.Array, total: jax.Array) -> jax.Array:
            begin = full.astype(jnp.uint32) * large + number.astype(jnp.uint32) * small
            return total + piece_gradient(step_key, vector, begin, samples, small)

        total = lax.fori_loop(0, full, add_large, jnp.zeros_like(vector))
        total = lax.fori_loop(0, rest.astype(jnp.int32), add_small, total)
        return total / jnp.maximum(batch, 1.0)

    def infinite(step_key: jax.Array, vector: jax.Array, batch: jax.Array) -> jax.Array:
        return jnp.asarray(model.root * _error(model, vector)) @ model.weights

    def risk_if(wanted: jax.Array, vector: jax.Array) -> jax.Array:
        return lax.cond(wanted, lambda a: jnp.square(_error(model, a)).sum(), lambda a: jnp.zeros(()), vector)

    def step(number: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        vector, history = carry
        lr, batch = stretch.lr[number], stretch.batch[number]
        step_key = jax.random.fold_in(key, stretch.first + number.astype(jnp.uint32))
        gradient = lax.cond(jnp.isinf(batch), infinite, sampled, step_key, vector, batch)
        vector = vector - lr * gradient
        return vector, history.at[number + 1].set(risk_if(stretch.record[number + 1], vector))

    history = jnp.zeros(STEPS + 1).at[0].set(risk_if(stretch.record[0], vector))
    vector, history = lax.fori_loop(0, stretch.length, step, (vector, history))
    return vector, risk_or_inf(history[stretch.place])


def _error(model: LiteralModel, vector: jax.Array) -> jax.Array:
    """Error vector Lambda^(1/2) (W a - theta*), (v,)."""
    return jnp.asarray(model.root * (model.weights @ vector - model.target))
