"""SGD exact in law: the error vector moves by a few scalar draws and one Gaussian vector, whatever the batch size.

In the eigenbasis let e be the error vector, |e|^2 the risk R (floor included), s^2 = R + sigma^2. A sample z ~ N(0, I)
has residual p = z.e - eps ~ N(0, s^2), and given p it is z = e p/s^2 + h with h ~ N(0, I - e e^T/s^2). Over a batch,
with X = sum_i p_i^2 / s^2 ~ chi-square with B degrees of freedom and one such h that is independent of X,

    sum_i z_i p_i = e X + s sqrt(X) h,    h = g - e (g.e) / (s (s + sigma)),   g ~ N(0, I),

    e <- e - (eta/B) l * [ e (X - sqrt(X) (g.e)/(s + sigma)) + s sqrt(X) g ],

which is the law of literal SGD with Gaussian labels, at O(modes) per step. Zero modes (l = 0) never move; they enter
only through g.e = sum_j g_j e_j + sqrt(floor) g_0. As B -> infinity it is gradient descent, e <- e - eta l * e.
"""

from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jax import lax

from rfsim.checks import InputError
from rfsim.precision import jnp
from rfsim.routes.montecarlo.stretches import STEPS, Stretch, risk_or_inf
from rfsim.spectra import Array, Spectrum

BLOCK = 16  # steps whose draws are made at once; divides STEPS; changes no result


class LawModel(NamedTuple):
    """What a run needs: eigenvalues (n,), start (n,) error vector, and the roots of floor and noise variance."""

    eigenvalues: Array
    start: Array
    floor_root: Array
    noise_root: Array


def law_model(spectrum: Spectrum) -> LawModel:
    """Model of a Spectrum of real modes of multiplicity one, else InputError."""
    modes = (spectrum.eigenvalues, spectrum.forcing_energy, spectrum.multiplicity)
    if any(np.iscomplexobj(array) for array in modes):
        raise InputError("the spectrum has complex nodes, which no SGD run has; simulate a sampled spectrum instead")
    if not np.all(np.asarray(spectrum.multiplicity) == 1.0):
        raise InputError(
            "the spectrum has multiplicities other than 1, so no SGD run has it; simulate a sampled spectrum instead"
        )
    values = (spectrum.eigenvalues, np.sqrt(np.asarray(spectrum.forcing_energy)))
    roots = (np.sqrt(np.float64(spectrum.floor)), np.sqrt(np.float64(spectrum.noise_var)))
    return LawModel(*(np.asarray(value, dtype=np.float64) for value in (*values, *roots)))


def bytes_per_run(model: LawModel) -> int:
    """Memory that one run keeps alive: the draws of a block of steps, and a few states."""
    return 8 * (model.eigenvalues.shape[0] + 1) * (BLOCK + 4)


def start(model: LawModel, runs: int) -> jax.Array:
    """States (runs, n) before the first step."""
    return jnp.tile(jnp.asarray(model.start), (runs, 1))


@partial(jax.jit, static_argnames="single")
def advance(
    model: LawModel, keys: jax.Array, states: jax.Array, stretch: Stretch, *, single: bool
) -> tuple[jax.Array, jax.Array]:
    """Run one stretch for all runs; return states (runs, n) and records (runs, RECORDS). `single`: float32 draws."""
    one = partial(_advance_one, model, single=single)
    return jax.vmap(one, in_axes=(0, 0, None))(keys, states, stretch)


def _advance_one(
    model: LawModel, key: jax.Array, error: jax.Array, stretch: Stretch, *, single: bool
) -> tuple[jax.Array, jax.Array]:
    modes = model.eigenvalues.shape[0]

    def draw(step: jax.Array, batch: jax.Array) -> tuple[jax.Array, jax.Array]:
        gaussian_key, chi_key = jax.random.split(jax.random.fold_in(key, step))
        gaussian = jax.random.normal(gaussian_key, (modes + 1,), dtype=jnp.float32 if single else jnp.float64)
        return gaussian.astype(jnp.float64), 2.0 * jax.random.gamma(chi_key, 0.5 * batch, dtype=jnp.float64)

    def step(carry: tuple[jax.Array, jax.Array], now: tuple) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        error, risk = carry
        lr, inverse_batch, gaussian, chi = now
        scale = jnp.sqrt(risk + jnp.square(model.noise_root))
        width = scale + model.noise_root
        overlap = (gaussian[:modes] * error).sum() + gaussian[modes] * model.floor_root
        pull = jnp.where(inverse_batch > 0.0, chi * inverse_batch, 1.0)
        spread = jnp.sqrt(chi) * inverse_batch
        along = pull - spread * overlap / jnp.where(width > 0.0, width, 1.0)
        error = error - (lr * model.eigenvalues) * (along * error + (spread * scale) * gaussian[:modes])
        risk = _risk(model, error)
        return (error, risk), risk

    def block(number: jax.Array, carry: tuple) -> tuple:
        error, risk, history = carry
        begin = number * BLOCK
        lr, batch = (lax.dynamic_slice(jnp.asarray(array), (begin,), (BLOCK,)) for array in (stretch.lr, stretch.batch))
        sampled = (batch > 0.0) & jnp.isfinite(batch)
        batch = jnp.where(sampled, batch, 1.0)
        steps = jnp.asarray(stretch.first) + (begin + jnp.arange(BLOCK, dtype=jnp.int32)).astype(jnp.uint32)
        gaussians, chis = jax.vmap(draw)(steps, batch)
        inverse_batch = jnp.where(sampled, 1.0 / batch, 0.0)
        (error, risk), risks = lax.scan(step, (error, risk), (lr, inverse_batch, gaussians, chis))
        return error, risk, lax.dynamic_update_slice(history, risks, (begin,))

    risk = _risk(model, error)
    blocks = (stretch.length + (BLOCK - 1)) // BLOCK
    error, _, history = lax.fori_loop(0, blocks, block, (error, risk, jnp.zeros(STEPS)))
    return error, risk_or_inf(jnp.concatenate([risk[None], history])[stretch.place])


def _risk(model: LawModel, error: jax.Array) -> jax.Array:
    return jnp.square(error).sum() + jnp.square(model.floor_root)
