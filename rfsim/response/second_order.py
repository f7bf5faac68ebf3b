"""Second-order Taylor numbers carried along the path of gradient descent: three ways to one trace.

Through a map f they move as u -> Df u, v -> Df v, w -> Df w + D^2 f[u, v]. Started at theta_{s+1} as (u, v, 0) and
carried to step n, D^2 L_val[u, v] + D L_val w is the bilinear form of Hess G_{n,s+1}, Gauss-Newton part and
curvature drift both, and no Hessian of a composed map is ever stored. One step costs two nested derivatives along a
direction (forward) of a gradient (reverse).

 - `kernel`  every noise column by itself, so K(n, s) for each s: r columns, N^2/2 steps each.
 - `moments` mean shift m (p,) and covariance C (p, p) of all noise so far: p directions, N steps each.
 - `probes`  random signs in place of the columns: one direction per probe, N steps.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from rfsim.response.objective import CHUNK, Bound, Objective, Tree, bind, blockwise

Map = Callable[[jax.Array], jax.Array]
Jet = tuple[jax.Array, jax.Array, jax.Array]  # u, v, w


def push(function: Map, point: jax.Array, jet: Jet) -> tuple[jax.Array, Jet]:
    """f(point) and the jet (Df u, Df v, Df w + D^2 f[u, v]) there."""
    left, right, bend = jet

    def first(x: jax.Array, u: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.jvp(function, (x,), (u,))

    (value, left), (right, bend) = jax.jvp(first, (point, left), (right, bend))
    return value, (left, right, bend)


def _bilinear(value: Map, theta: jax.Array, jet: Jet) -> jax.Array:
    return push(value, theta, jet)[1][2]


def _kept(keep: jax.Array, evaluate: Callable[..., Tree], *arguments: Tree) -> Tree:
    """`evaluate(*arguments)` at recorded steps, zeros of its shape elsewhere."""
    empty = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(evaluate, *arguments))
    return lax.cond(keep, evaluate, lambda *_: empty, *arguments)


def _total(function: Callable[[jax.Array], jax.Array], count: int, shape: tuple[int, ...]) -> jax.Array:
    """Sum of function(i), i = 0..count-1, of the given shape, some at a time."""
    if count <= CHUNK:
        return jax.vmap(function)(jnp.arange(count)).sum(axis=0)
    blocks = -(-count // CHUNK)

    def add(so_far: jax.Array, first: jax.Array) -> tuple[jax.Array, None]:
        index = first + jnp.arange(CHUNK)
        found = jax.vmap(function)(jnp.minimum(index, count - 1))
        real = (index < count).reshape((CHUNK,) + (1,) * len(shape))
        return so_far + jnp.where(real, found, 0.0).sum(axis=0), None

    return lax.scan(add, jnp.zeros(shape), CHUNK * jnp.arange(blocks))[0]


def _descend(model: Bound, lr: jax.Array) -> jax.Array:
    """Noise-free path theta_0..theta_N, (N+1, p)."""

    def step(theta: jax.Array, eta: jax.Array) -> tuple[jax.Array, jax.Array]:
        after = model.step(theta, eta)
        return after, after

    return jnp.concatenate([model.start[None, :], lax.scan(step, model.start, lr)[1]])


@partial(jax.jit, static_argnames="objective")
def kernel(
    objective: Objective, parameters: Tree, data: Tree, lr: jax.Array, keep: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Baseline (N+1,) and kernel (N+1, N) at the steps n with `keep` (N+1,), zero at the others and for s >= n."""
    model = bind(objective, parameters, data)
    path = _descend(model, lr)
    steps = lr.shape[0]
    baseline = lax.map(lambda now: _kept(now[0], model.value, now[1]), (keep, path))

    def injected(source: jax.Array) -> jax.Array:
        column = model.columns(path[source])

        def response(index: jax.Array) -> jax.Array:
            left, right = column(index)

            def advance(jet: Jet, now: tuple[jax.Array, ...]) -> tuple[Jet, jax.Array]:
                t, eta, theta, after, wanted = now
                jet = lax.cond(t > source, lambda j: push(lambda x: model.step(x, eta), theta, j)[1], lambda j: j, jet)
                return jet, _kept(wanted & (t >= source), partial(_bilinear, model.value), after, jet)

            along = (jnp.arange(steps), lr, path[:-1], path[1:], keep[1:])
            return lax.scan(advance, (left, right, jnp.zeros_like(left)), along)[1]

        return 0.5 * _total(response, model.rank, (steps,))

    rows = lax.map(injected, jnp.arange(steps)) if steps else jnp.zeros((0, 0))
    return baseline, jnp.concatenate([jnp.zeros((1, steps)), rows.T])


@partial(jax.jit, static_argnames="objective")
def moments(
    objective: Objective, parameters: Tree, data: Tree, lr: jax.Array, inverse_batch: jax.Array, keep: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Baseline and noise, both (N+1,), at the steps with `keep` (N+1,).

    C <- J C J^T + (eta^2/B) Sigma and m <- J m + (1/2) D^2 D_t : C; noise = (1/2) Tr[C Hess L_val] + m . grad L_val.
    """
    model = bind(objective, parameters, data)
    size = model.start.size
    units = jnp.eye(size)
    zero = jnp.zeros(size)

    def evaluate(theta: jax.Array, mean: jax.Array, cov: jax.Array) -> tuple[jax.Array, jax.Array]:
        def entry(index: jax.Array) -> jax.Array:
            return _bilinear(model.value, theta, (units[index], cov[index], zero))

        value, shift = jax.jvp(model.value, (theta,), (mean,))
        return value, 0.5 * _total(entry, size, ()) + shift

    def step(carry: Jet, now: tuple[jax.Array, ...]) -> tuple[Jet, tuple[jax.Array, jax.Array]]:
        theta, mean, cov = carry
        eta, inverse, wanted = now

        def descend(x: jax.Array) -> jax.Array:
            return model.step(x, eta)

        after, mean = jax.jvp(descend, (theta,), (mean,))
        # rows i: J e_i, J C e_i, D^2 D_t[e_i, C e_i]
        jacobian, spread, bend = blockwise(lambda i: push(descend, theta, (units[i], cov[i], zero))[1], size)
        mean = mean + 0.5 * bend.sum(axis=0)
        cov = jacobian.T @ spread + eta**2 * inverse * model.matrix(theta)
        cov = 0.5 * (cov + cov.T)
        return (after, mean, cov), _kept(wanted, evaluate, after, mean, cov)

    start = (model.start, zero, jnp.zeros((size, size)))
    first = _kept(keep[0], evaluate, *start)
    rest = lax.scan(step, start, (lr, inverse_batch, keep[1:]))[1]
    baseline, noise = (jnp.concatenate([head[None], tail]) for head, tail in zip(first, rest, strict=True))
    return baseline, noise


@partial(jax.jit, static_argnames=("objective", "count"))
def probes(
    key: jax.Array,
    objective: Objective,
    parameters: Tree,
    data: Tree,
    lr: jax.Array,
    inverse_batch: jax.Array,
    keep: jax.Array,
    count: int,
) -> tuple[jax.Array, jax.Array]:
    """Baseline (N+1,) and unbiased estimates of the noise, (count, N+1), at the steps with `keep` (N+1,).

    Every step adds sqrt(eta^2/B) times a random-sign mixture of the noise columns to u and v; mixtures of different
    steps are independent, so the expectation of each pair product is the sum over steps, at the price of one step.
    """
    model = bind(objective, parameters, data)
    zero = jnp.zeros_like(model.start)

    def evaluate(theta: jax.Array, jet: Jet) -> jax.Array:
        return 0.5 * _bilinear(model.value, theta, jet)

    def probe(one: jax.Array) -> jax.Array:
        def step(carry: tuple[jax.Array, Jet], now: tuple[jax.Array, ...]) -> tuple[tuple[jax.Array, Jet], jax.Array]:
            theta, jet = carry
            t, eta, inverse, wanted = now
            signs = jax.random.rademacher(jax.random.fold_in(one, t), (model.rank,), dtype=theta.dtype)
            left, right = model.draw(theta, signs)
            after, (u, v, bend) = push(lambda x: model.step(x, eta), theta, jet)
            scale = eta * jnp.sqrt(inverse)
            jet = (u + scale * left, v + scale * right, bend)
            return (after, jet), _kept(wanted, evaluate, after, jet)

        along = (jnp.arange(lr.shape[0]), lr, inverse_batch, keep[1:])
        return lax.scan(step, (model.start, (zero, zero, zero)), along)[1]

    noise = blockwise(lambda i: probe(jax.random.fold_in(key, i)), count)
    baseline = lax.map(lambda now: _kept(now[0], model.value, now[1]), (keep, _descend(model, lr)))
    return baseline, jnp.concatenate([jnp.zeros((count, 1)), noise], axis=1)
