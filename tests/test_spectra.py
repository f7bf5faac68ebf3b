"""The Spectrum record and its file."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rfsim


def test_zero_eigenvalues_join_the_floor():
    spectrum = rfsim.spectrum([0.0, 2.0, 0.0, 1.0], [0.5, 3.0, 0.25, 4.0], floor=0.1, multiplicity=[1, 2, 3, 4])
    assert_array_equal(spectrum.eigenvalues, [2.0, 1.0])
    assert_array_equal(spectrum.forcing_energy, [3.0, 4.0])
    assert_array_equal(spectrum.multiplicity, [2.0, 4.0])
    assert_allclose(spectrum.floor, 0.85, rtol=1e-15)
    assert spectrum.modes == 2


def test_defaults():
    spectrum = rfsim.spectrum([2, 1], [3, 4])
    assert_array_equal(spectrum.multiplicity, [1.0, 1.0])
    assert spectrum.floor == spectrum.noise_var == 0.0
    assert spectrum.eigenvalues.dtype == spectrum.forcing_energy.dtype == np.float64
    assert spectrum.replace(noise_var=2.0).noise_var == 2.0


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (([1.0, -1.0], [1, 1]), "eigenvalues .* position 1"),
        (([1.0, np.nan], [1, 1]), "eigenvalues"),
        (([1.0, np.inf], [1, 1]), "eigenvalues"),
        (([1.0, 1.0], [1, -1]), "forcing_energy"),
        (([1.0, 1.0], [1, np.nan]), "forcing_energy"),
        (([1.0, 1.0], [1]), "eigenvalues has 2, forcing_energy has 1"),
        (([0.0, 0.0], [1, 1]), "eigenvalues .*positive"),
        (([], []), "eigenvalues"),
        (([[1.0]], [[1.0]]), "shape"),
        (([1j], [1.0]), "eigenvalues"),
    ],
)
def test_bad_arrays_are_named(arguments, word):
    with pytest.raises(rfsim.InputError, match=word):
        rfsim.spectrum(*arguments)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"multiplicity": [1, -1]}, "multiplicity"),
        ({"multiplicity": [1]}, "multiplicity has 1"),
        ({"multiplicity": [1, np.inf]}, "multiplicity"),
        ({"floor": -0.1}, "floor"),
        ({"floor": np.nan}, "floor"),
        ({"noise_var": -1}, "noise_var"),
        ({"noise_var": np.inf}, "noise_var"),
        ({"noise_var": "x"}, "noise_var"),
    ],
)
def test_bad_options_are_named(options, word):
    with pytest.raises(rfsim.InputError, match=word):
        rfsim.spectrum([1.0, 2.0], [1.0, 1.0], **options)


def test_spectra_are_pytrees():
    spectrum = rfsim.spectrum([2.0, 1.0], [3.0, 4.0], floor=0.5, noise_var=0.25)
    assert len(jax.tree.leaves(spectrum)) == 5
    negative = jax.tree.map(lambda leaf: -leaf, spectrum)  # unflattening must not validate
    assert negative.noise_var == -0.25
    stacked = jax.vmap(lambda scale: spectrum.replace(eigenvalues=scale * jnp.asarray(spectrum.eigenvalues)))(
        jnp.ones(3)
    )
    assert stacked.eigenvalues.shape == (3, 2)


def test_spectrum_under_tracing():
    slope = jax.grad(lambda lam: jnp.sum(rfsim.spectrum(lam, lam**2).forcing_energy))(jnp.array([1.0, 3.0]))
    assert_allclose(slope, [2.0, 6.0], rtol=1e-15)


# --- files -----------------------------------------------------------------------------------------------------------


def write(tmp_path, text):
    path = tmp_path / "spectrum.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_file_in_any_order_with_a_zero_mode(tmp_path):
    path = write(tmp_path, "\ufefftarget_energy, eigenvalue,name\n0.5,0,z\n3,0.25,a\n\n 2 ,1e0,b\n0.25,0.0,c\n")
    spectrum = rfsim.read_spectrum(path, noise_var=0.5)
    assert_array_equal(spectrum.eigenvalues, [0.25, 1.0])
    assert_array_equal(spectrum.forcing_energy, [3.0, 2.0])
    assert spectrum.floor == 0.75
    assert spectrum.noise_var == 0.5


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "lacks column eigenvalue, target_energy"),
        ("eigenvalue\n1\n", "lacks column target_energy"),
        ("eigenvalue;target_energy\n1;1\n", "lacks column"),
        ("eigenvalue,target_energy\n", "no rows"),
        ("eigenvalue,target_energy\n1,1\n-1,1\n", "eigenvalue .* position 1"),
        ("eigenvalue,target_energy\nnan,1\n", "eigenvalue"),
        ("eigenvalue,target_energy\ninf,1\n", "eigenvalue"),
        ("eigenvalue,target_energy\n1,-1\n", "target_energy"),
        ("eigenvalue,target_energy\n1,nan\n", "target_energy"),
        ("eigenvalue,target_energy\n1,\n", "target_energy .* row 1"),
        ("eigenvalue,target_energy\n1,1\n2\n", "target_energy .* row 2"),
        ("eigenvalue,target_energy\none,1\n", "one"),
        ("eigenvalue,target_energy\n0,1\n", "positive"),
    ],
)
def test_bad_file_is_named(tmp_path, text, word):
    with pytest.raises(rfsim.InputError, match=word):
        rfsim.read_spectrum(write(tmp_path, text))


def test_unreadable_files(tmp_path):
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00\x01")
    for path in (tmp_path / "absent.csv", tmp_path, binary):
        with pytest.raises(rfsim.InputError, match="cannot be read"):
            rfsim.read_spectrum(path)


def test_bad_noise_with_a_good_file(tmp_path):
    path = write(tmp_path, "eigenvalue,target_energy\n1,1\n")
    with pytest.raises(rfsim.InputError, match="noise_var"):
        rfsim.read_spectrum(path, noise_var=-1.0)
