"""What the user gives - a loss, its noise, a validation loss - as functions of one flat vector of parameters."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree

from rfsim.checks import InputError
from rfsim.precision import float64_array, is_traced

CHUNK = 64  # directions, examples or probes that are worked on at once

Tree = Any


class Objective(NamedTuple):
    """The functions, which are static under jit.

    loss : (parameters, example) of one example if the noise comes from data, else (parameters,).
    covariance : (parameters, direction) -> Sigma(parameters) direction, or None if the noise comes from data.
    validation : (parameters,), or None for the training loss.
    """

    loss: Callable[..., jax.Array]
    covariance: Callable[[Tree, Tree], Tree] | None
    validation: Callable[[Tree], jax.Array] | None


class Bound(NamedTuple):
    """An objective at given parameters and data. Vectors are flat: p parameters, r columns of the noise.

    start : (p,); step : (theta, eta) -> theta - eta grad L(theta); value : theta -> validation loss;
    columns : theta -> (index -> (left, right)), pairs with sum_i left_i right_i^T = Sigma(theta); rank : r;
    draw : (theta, z (r,)) -> (left, right) with E left right^T = Sigma(theta) for E z z^T = 1;
    matrix : theta -> Sigma(theta), (p, p).
    """

    start: jax.Array
    step: Callable[[jax.Array, jax.Array], jax.Array]
    value: Callable[[jax.Array], jax.Array]
    columns: Callable[[jax.Array], Callable[[jax.Array], tuple[jax.Array, jax.Array]]]
    rank: int
    draw: Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]
    matrix: Callable[[jax.Array], jax.Array]


def blockwise(function: Callable[[jax.Array], Tree], count: int) -> Tree:
    """function(i), i = 0..count-1, stacked; the last block repeats the last i, so that one program fits all blocks."""
    if count <= CHUNK:
        return jax.vmap(function)(jnp.arange(count))
    blocks = -(-count // CHUNK)
    index = jnp.minimum(jnp.arange(blocks * CHUNK), count - 1).reshape(blocks, CHUNK)
    found = lax.map(jax.vmap(function), index)
    return jax.tree.map(lambda leaf: leaf.reshape(blocks * CHUNK, *leaf.shape[2:])[:count], found)


def bind(objective: Objective, parameters: Tree, data: Tree) -> Bound:
    """The objective as functions of the flat vector (p,) of the given parameters."""
    start, unravel = ravel_pytree(parameters)
    covariance = objective.covariance

    if covariance is None:
        count = len(jax.tree.leaves(data)[0])

        def losses(theta: jax.Array) -> jax.Array:
            tree = unravel(theta)
            return jax.vmap(lambda example: objective.loss(tree, example))(data)

        def loss(theta: jax.Array) -> jax.Array:
            return jnp.mean(losses(theta))

        def one(theta: jax.Array, index: jax.Array) -> jax.Array:
            example = jax.tree.map(lambda leaf: jnp.asarray(leaf)[index], data)
            return jax.grad(lambda point: objective.loss(unravel(point), example))(theta)

        def columns(theta: jax.Array) -> Callable[[jax.Array], tuple[jax.Array, jax.Array]]:
            mean = jax.grad(loss)(theta)

            def column(index: jax.Array) -> tuple[jax.Array, jax.Array]:
                centred = (one(theta, index) - mean) / np.sqrt(count)
                return centred, centred

            return column

        def draw(theta: jax.Array, z: jax.Array) -> tuple[jax.Array, jax.Array]:
            # sum_i (z_i - mean z) g_i is one gradient, that of a weighted loss; no per-example gradient is formed
            weights = (z - jnp.mean(z)) / np.sqrt(count)
            mixed = jax.grad(lambda point: jnp.vdot(weights, losses(point)))(theta)
            return mixed, mixed

        def matrix(theta: jax.Array) -> jax.Array:
            rows = blockwise(partial(one, theta), count)
            centred = rows - jnp.mean(rows, axis=0)[None, :]
            return centred.T @ centred / count

    else:
        count = start.size

        def loss(theta: jax.Array) -> jax.Array:
            return objective.loss(unravel(theta))

        def applied(theta: jax.Array, direction: jax.Array) -> jax.Array:
            return ravel_pytree(covariance(unravel(theta), unravel(direction)))[0]

        def columns(theta: jax.Array) -> Callable[[jax.Array], tuple[jax.Array, jax.Array]]:
            return lambda index: draw(theta, jax.nn.one_hot(index, count, dtype=theta.dtype))

        def draw(theta: jax.Array, z: jax.Array) -> tuple[jax.Array, jax.Array]:
            return z, applied(theta, z)

        def matrix(theta: jax.Array) -> jax.Array:
            rows = blockwise(lambda index: columns(theta)(index)[1], count)
            return 0.5 * (rows + rows.T)

    def step(theta: jax.Array, eta: jax.Array) -> jax.Array:
        return theta - eta * jax.grad(loss)(theta)

    validation = objective.validation
    value = loss if validation is None else lambda theta: validation(unravel(theta))
    return Bound(start, step, value, columns, count, draw, matrix)


# --- checks ----------------------------------------------------------------------------------------------------------


def checked(loss: Any, parameters: Tree, data: Tree, covariance: Any, validation: Any) -> tuple[Objective, Tree, Tree]:
    """Objective, parameters in float64 and data as arrays, or InputError that says what does not fit."""
    for name, function, optional in (
        ("loss", loss, False),
        ("covariance", covariance, True),
        ("validation", validation, True),
    ):
        if not (callable(function) or (optional and function is None)):
            raise InputError(f"{name} must be a function, got {type(function).__name__}; pass a jax function")
        try:
            hash(function)
        except TypeError as error:
            raise InputError(f"{name} must be hashable, got {function!r}; wrap it in a plain function") from error
    if (data is None) == (covariance is None):
        raise InputError(
            f"exactly one of data and covariance must be given, got {'neither' if data is None else 'both'}; pass data "
            f"with a loss of one example, or covariance with a loss of the parameters alone"
        )
    paths = jax.tree_util.tree_leaves_with_path(parameters)
    leaves = [_parameter(f"parameters{jax.tree_util.keystr(path)}", leaf) for path, leaf in paths]
    if sum(np.size(leaf) for leaf in leaves) == 0:
        raise InputError("parameters must hold at least one number, got an empty tree; pass the model's arrays")
    parameters = jax.tree.unflatten(jax.tree.structure(parameters), leaves)
    objective = Objective(loss, covariance, validation)
    if covariance is None:
        data = jax.tree.map(jnp.asarray, data)
        _require_examples(data)
        _require_scalar("loss of one example", lambda p, d: loss(p, jax.tree.map(lambda x: x[0], d)), parameters, data)
    else:
        _require_scalar("loss", loss, parameters)
        _require_direction(covariance, parameters)
    if validation is not None:
        _require_scalar("validation", validation, parameters)
    return objective, parameters, data


def _parameter(name: str, leaf: object) -> np.ndarray | jax.Array:
    array = float64_array(name, leaf)
    if not is_traced(array) and not np.isfinite(array).all():
        raise InputError(f"{name} must be finite, got NaN or infinity; start from ordinary numbers")
    return array


def _require_examples(data: Tree) -> None:
    shapes = [leaf.shape for leaf in jax.tree.leaves(data)]
    if not shapes or any(not shape for shape in shapes) or len({shape[0] for shape in shapes}) > 1 or not shapes[0][0]:
        raise InputError(
            f"data must be arrays whose first axes run over the same examples, at least one; got shapes {shapes}; "
            f"pass for example (inputs, labels)"
        )


def _require_scalar(name: str, function: Any, *arguments: Tree) -> None:
    leaves = jax.tree.leaves(jax.eval_shape(function, *arguments))
    if len(leaves) != 1 or leaves[0].shape != () or not jnp.issubdtype(leaves[0].dtype, jnp.floating):
        told = ", ".join(f"{leaf.dtype}{list(leaf.shape)}" for leaf in leaves)
        raise InputError(f"{name} must return one real number, got {told or 'nothing'}; average or sum over the rest")
    if leaves[0].dtype != jnp.float64:
        raise InputError(f"{name} must return float64, got {leaves[0].dtype}; compute and pass data in float64")


def _require_direction(covariance: Any, parameters: Tree) -> None:
    found = jax.eval_shape(covariance, parameters, parameters)

    def shapes(tree: Tree) -> tuple:
        return jax.tree.structure(tree), [np.shape(leaf) for leaf in jax.tree.leaves(tree)]

    if shapes(found) != shapes(parameters):
        raise InputError(
            f"covariance must return Sigma(parameters) times a direction, in the shape of the parameters "
            f"{shapes(parameters)[1]}, got {shapes(found)[1]}; a matrix S acts as lambda parameters, d: S @ d"
        )
