"""Float64 for everything exact: switch it on, refuse to run without it, refuse inputs that were rounded before.

Importing this module imports jax and, unless the user has forbidden it with `JAX_ENABLE_X64=0`, switches float64 on.
"""

import os

import jax
import jax.numpy as jnp
import numpy as np

from rfsim.checks import InputError, RunError

_REMEDY = "run with JAX_ENABLE_X64=1 or call jax.config.update('jax_enable_x64', True) before making arrays"
_FORBIDDEN = ("0", "false", "no", "off")

if os.environ.get("JAX_ENABLE_X64", "1").lower() not in _FORBIDDEN:
    jax.config.update("jax_enable_x64", True)


def require_float64() -> None:
    """Raise RunError if jax computes in float32, with the remedy."""
    if not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise RunError(f"rfsim needs float64 but jax has it switched off, so results would be wrong; {_REMEDY}")


def is_traced(*values: object) -> bool:
    """True if any leaf of `values` is a tracer, i.e. the caller is inside jit, vmap or grad."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))


def float64_array(name: str, value: object, *, allow_complex: bool = False) -> np.ndarray | jax.Array:
    """Return `value` as a float64 array: a jax array under tracing, else a NumPy array.

    Raises InputError for a jax array in less than float64: it was rounded before rfsim saw it. An explicit NumPy
    float32 array is taken at its exact value.
    """
    require_float64()
    if isinstance(value, jax.Array):
        if value.dtype in (jnp.float32, jnp.float16, jnp.bfloat16, jnp.complex64):
            raise InputError(f"{name} came as {value.dtype}, which has already lost digits; pass float64: {_REMEDY}")
        if isinstance(value, jax.core.Tracer):
            if jnp.issubdtype(value.dtype, jnp.complexfloating):
                return value
            return value.astype(jnp.float64)
    try:
        array = np.asarray(value)
        if array.dtype.kind == "c" and allow_complex:
            return array.astype(np.complex128)
        if array.dtype.kind == "c":
            raise TypeError("complex")
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must hold real numbers, got {type(value).__name__}; pass floats") from error
