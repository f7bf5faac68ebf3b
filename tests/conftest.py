"""What every test runs under: float64 from rfsim itself, strict promotion, no display, and a hypothesis profile."""

import os

os.environ.setdefault("MPLBACKEND", "Agg")

import jax
from hypothesis import HealthCheck, settings

import rfsim.precision  # noqa: F401  (float64 is switched on by the package, not by the tests)

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

# deadline=None: the first example of a property compiles, the others do not
settings.register_profile("dev", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "ci",
    deadline=None,
    max_examples=40,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
