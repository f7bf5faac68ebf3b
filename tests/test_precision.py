"""Float64 in fresh interpreters, whichever of jax and rfsim comes first; a clear error where it is switched off."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rfsim
from rfsim.routes import recursion, volterra

WORK = """
spectrum = rfsim.spectrum([1.0, 0.25], [1.0, 1.0], floor=0.1, noise_var=1.0)
schedule = rfsim.schedules.constant(3, 0.5, 2.0)
for value in (rfsim.risk(spectrum, schedule).risk[-1], float(rfsim.terminal_risk(spectrum, schedule))):
    assert abs(value - 745857 / 655360) < 1e-15, value
import jax, numpy
assert jax.numpy.asarray(numpy.ones(3)).dtype == 'float64'
print('fine')
"""


def fresh(code, **environment):
    """Run code in a new interpreter; return (exit status, stdout, stderr)."""
    kept = {k: v for k, v in os.environ.items() if k != "JAX_ENABLE_X64"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**kept, "JAX_PLATFORMS": "cpu", **environment},
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "first",
    ["import rfsim, jax", "import jax, rfsim", "import jax; jax.numpy.ones(2) + 1; import rfsim"],
    ids=["rfsim first", "jax first", "jax used first"],
)
def test_float64_whichever_comes_first(first):
    status, out, err = fresh(first + WORK)
    assert (status, out.strip()) == (0, "fine"), err


@pytest.mark.parametrize("word", ["0", "false"])
@pytest.mark.parametrize("first", ["import rfsim", "import jax, rfsim"])
def test_forbidden_float64_is_an_error_that_says_how(word, first):
    status, _, err = fresh(first + WORK, JAX_ENABLE_X64=word)
    assert status == 1
    assert "RunError" in err
    assert "float64" in err
    assert "JAX_ENABLE_X64=1" in err
    assert "jax_enable_x64" in err


@pytest.mark.parametrize("word", ["1", "true"])
def test_float64_that_is_on_already_stays_on(word):
    status, out, err = fresh("import jax, rfsim" + WORK, JAX_ENABLE_X64=word)
    assert (status, out.strip()) == (0, "fine"), err


def test_switching_it_off_later_is_noticed():
    code = "import jax, rfsim\nrfsim.risk\njax.config.update('jax_enable_x64', False)" + WORK
    status, _, err = fresh(code)
    assert status == 1
    assert "float64" in err


def test_import_does_not_import_jax():
    code = (
        "import sys, rfsim, rfsim.checks, rfsim.provenance, rfsim.regimes, rfsim.gap_laws\n"
        "rfsim.__version__, dir(rfsim), rfsim.regime, rfsim.InputError, rfsim.gap_law\n"
        "heavy = [name for name in ('jax', 'jaxlib', 'matplotlib') if name in sys.modules]\n"
        "assert not heavy, heavy\nrfsim.risk\nassert 'jax' in sys.modules\nprint('fine')"
    )
    status, out, err = fresh(code)
    assert (status, out.strip()) == (0, "fine"), err


# --- arrays that were rounded before ---------------------------------------------------------------------------------

LOW = [jnp.ones(2, dtype=dtype) for dtype in ("float32", "float16", "bfloat16", "complex64")]


@pytest.mark.parametrize("low", LOW, ids=lambda array: str(array.dtype))
def test_rounded_jax_arrays_are_refused_by_name(low):
    good = np.ones(2)
    attempts = {
        "eigenvalues": lambda: rfsim.spectrum(low, good),
        "forcing_energy": lambda: rfsim.spectrum(good, low),
        "multiplicity": lambda: rfsim.spectrum(good, good, multiplicity=low),
        "target": lambda: rfsim.problem(good, low),
        "lr": lambda: rfsim.schedules.from_arrays(low, good),
        "batch": lambda: rfsim.schedules.from_arrays(good, low),
        "weights": lambda: rfsim.feature_spectrum(rfsim.Features(rfsim.problem(good, good), low[:, None])),
    }
    for name, attempt in attempts.items():
        with pytest.raises(rfsim.InputError, match=rf"^{name} .*{low.dtype}.*float64"):
            attempt()


def test_rounded_values_are_refused_under_tracing_too():
    with pytest.raises(rfsim.InputError, match=r"lr .*float32"):
        jax.jit(lambda lr: rfsim.schedules.from_arrays(lr, np.ones(2)).lr)(jnp.ones(2, dtype="float32"))


@pytest.mark.parametrize("field", ["eigenvalues", "forcing_energy", "multiplicity", "floor", "noise_var"])
def test_rounded_fields_are_refused_by_the_routes(field):
    spectrum = rfsim.spectrum([1.0, 0.5], [1.0, 1.0])
    rounded = spectrum.replace(**{field: jnp.asarray(getattr(spectrum, field), dtype="float32")})
    schedule = rfsim.schedules.constant(2, 0.1, 1.0)
    for run in (rfsim.terminal_risk, recursion.risk):
        with pytest.raises(rfsim.InputError, match="float32"):
            run(rounded, schedule)
    if field not in ("floor", "noise_var"):
        with pytest.raises(rfsim.InputError, match="float32"):
            volterra.risk(rounded, schedule)


def test_whole_numbers_and_numpy_float32_are_taken_at_their_value():
    spectrum = rfsim.spectrum(jnp.array([2, 1]), np.array([0.1, 0.2], dtype=np.float32))
    assert spectrum.eigenvalues.dtype == spectrum.forcing_energy.dtype == np.float64
    assert spectrum.forcing_energy[0] == float(np.float32(0.1))
