"""The linear model: the loss is quadratic, so the expansion about gradient descent ends there and is exact."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rfsim.checks import InputError, RunError
from rfsim.precision import float64_array, is_traced
from rfsim.response.expansion import Response
from rfsim.schedules import Schedule, intrinsic_time, recorded_steps
from rfsim.spectra import Spectrum


def linear_response(spectrum: Spectrum, schedule: Schedule, *, at: object = None, frozen: bool = False) -> Response:
    """Risk of a Spectrum as gradient descent plus the response to noise; exact for Gaussian inputs.

    R_t = floor + sum_j w_j prod_{u<t} (1 - eta_u l_j)^2
        + sum_{s<t} (eta_s^2/B_s) sum_j l_j^2 prod_{s<u<t} (1 - eta_u l_j)^2 [m_j (R_s + sigma^2) + rho_j(s)].

    The risk has no factor 1/2. It is the risk of the exact routes in another split: `baseline` is not the forcing,
    since the part rho_j(s) of the noise sits in `noise` here and in the factors q there.

    Parameters
    ----------
    spectrum : n modes; schedule : N steps; at : recorded steps, as in `rfsim.risk`.
    frozen : take R_s and rho_j(s) on the noise-free path, as `small_noise_response` does; this leaves out terms of
        fourth order in the noise scale, sum of products of two eta^2/B.

    Raises
    ------
    InputError : for complex nodes. RunError : when the risk leaves the float64 range.
    """
    if not isinstance(spectrum, Spectrum) or not isinstance(schedule, Schedule):
        raise InputError(
            f"linear_response needs a Spectrum and a Schedule, got {type(spectrum).__name__} and "
            f"{type(schedule).__name__}; make them with rfsim.spectrum and rfsim.schedules"
        )
    steps = recorded_steps(at, schedule.steps)
    fields = ("eigenvalues", "forcing_energy", "multiplicity", "floor", "noise_var")
    modes = [jnp.asarray(float64_array(name, getattr(spectrum, name))) for name in fields]
    lr, batch = jnp.asarray(schedule.lr), jnp.asarray(schedule.batch)
    descent, noise = _split(*modes, lr, 1.0 / batch, jnp.asarray(not frozen, dtype=jnp.float64))
    baseline, noise = descent[steps], noise[steps]
    total = baseline + noise
    if is_traced(total, lr):
        time = jnp.concatenate([jnp.zeros(1), jnp.cumsum(lr)])[steps]
        return Response(steps, time, baseline, noise, total, jnp.zeros_like(total))
    good = np.isfinite(np.asarray(total))
    if not good.all():
        raise RunError(f"the risk leaves the float64 range at recorded step {steps[int(np.argmin(good))]}; lower lr")
    found = (np.asarray(value) for value in (baseline, noise, total, jnp.zeros_like(total)))
    return Response(steps, intrinsic_time(schedule.lr, steps), *found)


@jax.jit
def _split(
    eigenvalues: jax.Array,
    energy: jax.Array,
    multiplicity: jax.Array,
    floor: jax.Array,
    noise_var: jax.Array,
    lr: jax.Array,
    inverse_batch: jax.Array,
    feedback: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Gradient-descent risk and response, both (N+1,); `feedback` 1 follows the noisy path, 0 the noise-free one."""

    def step(
        carry: tuple[jax.Array, jax.Array], now: tuple[jax.Array, jax.Array]
    ) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
        descent, added = carry
        eta, inverse = now
        x = eta * eigenvalues
        # 1 - x (2 - x) keeps the digits of slow modes
        decay = jnp.where(x < 0.5, 1.0 - x * (2.0 - x), jnp.square(1.0 - x))
        rho = descent + feedback * added
        risk = floor + rho.sum()
        injected = inverse * jnp.square(x) * (multiplicity * (risk + noise_var) + rho)
        carry = decay * descent, decay * added + injected
        return carry, (floor + carry[0].sum(), carry[1].sum())

    start = (energy, jnp.zeros_like(energy))
    descent, added = lax.scan(step, start, (lr, inverse_batch))[1]
    first = (floor + energy.sum())[None]
    return jnp.concatenate([first, descent]), jnp.concatenate([jnp.zeros(1), added])
