"""Few nodes against sums over all modes, in the continuum and in discrete steps; error estimates against the truth."""

import functools

import jax
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import rfsim
from rfsim.compress import compress, compress_with_error, compression_error
from rfsim.compress.fine import fine_rule
from rfsim.compress.gauss import lanczos, rule
from rfsim.compress.integrands import Modes
from rfsim.routes import recursion

MODES = 40_000


# --- spectra ---------------------------------------------------------------------------------------------------------


def power(alpha, beta, modes=MODES):
    index = np.arange(1.0, modes + 1.0)
    return rfsim.spectrum(index ** (-2 * alpha), index ** (-2 * alpha - 2 * beta))


def irregular():
    """Spectra without a power law, by name."""
    index = np.arange(1.0, MODES + 1.0)
    draw = np.random.default_rng(7)
    third = MODES // 3
    bulk = index**-0.8
    clusters = np.concatenate([draw.uniform(a, 2 * a, third) for a in (1.0, 1e-2, 1e-6)])
    few_values = np.repeat(index[:40] ** -0.8, 1000)
    spikes = index**-1.0
    spikes[:3] = 400.0, 90.0, 30.0
    noisy = draw.normal(size=MODES) ** 2
    table = {
        "exponential, dense": (np.exp(-20 * index / MODES), np.exp(-30 * index / MODES), None),
        "exponential, stretched": (np.exp(1 - 0.1 * np.sqrt(index)), index**-1.5, None),
        "exponential, wide": (np.exp(1 - np.sqrt(index)), np.exp(-1.5 * np.sqrt(index)), None),
        "rapid target": (bulk, np.exp(-np.minimum(index, 700.0)), None),
        "gaps": (clusters, draw.exponential(size=clusters.size) * clusters, None),
        "repeated values": (few_values, draw.exponential(size=MODES) * few_values**2, None),
        "isolated large ones": (spikes, index**-1.5, None),
        "random energies": (bulk, bulk**1.75 * noisy, draw.exponential(size=MODES)),
        "zero energies": (bulk, bulk**1.75 * (draw.uniform(size=MODES) < 0.1), None),
        "zero multiplicities": (bulk, bulk**1.75, 1.0 * (draw.uniform(size=MODES) < 0.5)),
        "each mode in one measure only": (bulk, bulk**1.75 * (index % 2), (index + 1) % 2),
        "energy above, memory below": (bulk, bulk**1.75 * (index < 1000), 1.0 * (index >= 1000)),
    }
    return {name: rfsim.spectrum(lam, f, multiplicity=m) for name, (lam, f, m) in table.items()}


POWERS = [(0.15, 0.5), (0.15, 1.0), (0.3, 0.4), (0.3, 2.0), (0.5, 0.1), (0.5, 1.0), (0.7, 0.3), (1.0, -0.4), (1.0, 0.5)]
POWERS += [(2.0, -1.4), (2.0, 0.3), (2.0, 1.5)]
NAMES = [f"{alpha}, {beta}" for alpha, beta in POWERS] + list(irregular())


@functools.cache
def full(name):
    return power(*map(float, name.split(","))) if name[0].isdigit() else irregular()[name]


@functools.cache
def small(name):
    return compress_with_error(full(name))


# --- sums over all modes, written out here ---------------------------------------------------------------------------


def sums(spectrum, functions):
    """Forcing and memory sums (2, k) of functions l -> values, mode by mode."""
    lam = np.asarray(spectrum.eigenvalues)
    kernel = np.asarray(spectrum.multiplicity) * lam * lam
    return np.array([[np.sum(w * f(lam)) for f in functions] for w in (np.asarray(spectrum.forcing_energy), kernel)])


def flow(time):
    return lambda lam: np.exp(-2.0 * time * lam)


def steps(lr, batch, count):
    return lambda lam: ((1.0 - lr * lam) ** 2 + (lr * lam) ** 2 / batch) ** count


def product(lr, batch):
    def decay(lam):
        value = np.ones(lam.shape)
        for eta, size in zip(lr, batch, strict=True):
            value *= (1.0 - eta * lam) ** 2 + (eta * lam) ** 2 / size
        return value

    return decay


def last_times(spectrum):
    """2 T min l = 10 for the modes of either measure; wide spectra end at 2e16 / max l."""
    lam = np.asarray(spectrum.eigenvalues)
    longest = 2e16 / lam.max() if lam.min() < 1e-25 * lam.max() else np.inf
    parts = (np.asarray(spectrum.forcing_energy), np.asarray(spectrum.multiplicity))
    return [min(longest, 5.0 / lam[part > 0.0].min()) for part in parts]


# --- acceptance ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_continuum_integrals_and_estimates(name):
    whole, found = full(name), small(name)
    few = found.spectrum
    assert found.nodes == few.modes <= 200
    assert np.all(np.asarray(few.forcing_energy) >= 0.0)
    assert np.all(np.asarray(few.multiplicity) >= 0.0)
    assert np.asarray(few.eigenvalues).max() == np.asarray(whole.eigenvalues).max()
    top = np.asarray(whole.eigenvalues).max()
    ends = last_times(whole)
    assert_allclose(found.valid_until, max(ends), rtol=1e-12)
    for measure, (end, estimate) in enumerate(zip(ends, (found.forcing_error, found.memory_error), strict=True)):
        functions = [flow(time) for time in (0.0, *np.geomspace(0.05 / top, end, 30))]
        exact, mine = sums(whole, functions)[measure], sums(few, functions)[measure]
        error = np.abs(mine - exact) / np.maximum(exact, 1e-50 * exact[0])
        assert error.max() <= 1e-9
        assert error.max() <= estimate + 1e-13
        assert estimate <= 1e-9


@pytest.mark.parametrize("name", [name for name in NAMES if "wide" not in name])  # nothing is claimed for those
def test_late_errors_are_absolute(name):
    whole, found = full(name), small(name)
    for measure, (end, late) in enumerate(zip(last_times(whole), (found.forcing_late, found.memory_late), strict=True)):
        functions = [flow(time) for time in (0.0, *(end * np.array([1.01, 1.3, 2.0, 5.0, 30.0])))]
        exact, mine = sums(whole, functions)[measure], sums(found.spectrum, functions)[measure]
        assert np.abs(mine - exact)[1:].max() <= 1e-12 * exact[0]
        assert np.abs(mine - exact)[1:].max() <= (late + 1e-14) * exact[0]


@pytest.mark.parametrize("name", NAMES)
def test_discrete_steps_and_kappa(name):
    whole, found = full(name), small(name)
    top = np.asarray(whole.eigenvalues).max()
    pairs = [(share * 2.0 / (1.0 + 1.0 / batch), batch) for share in (0.05, 0.95) for batch in (1.0, 3.0, 1e9)]
    table = [(lr / top, batch, count) for lr, batch in pairs for count in (1.0, 7.0, 90.0, 2500.0)]
    functions = [flow(0.0), *(steps(*row) for row in table)]
    exact, mine = sums(whole, functions), sums(found.spectrum, functions)
    time = np.array([0.0, *(lr * count for lr, _, count in table)])
    for measure, (end, estimate) in enumerate(
        zip(last_times(whole), (found.forcing_error, found.memory_error), strict=True)
    ):
        start = exact[measure, 0]
        scale = np.maximum(exact[measure], np.where(time > end, 1e-3, 1e-50) * start)
        error = np.abs(mine - exact)[measure] / scale
        assert error.max() <= estimate + 1e-12
        assert error.max() <= 1e-9
    for lr, batch in pairs:
        mass = rfsim.kappa(whole, lr / top, batch)
        assert_allclose(rfsim.kappa(found.spectrum, lr / top, batch), mass, rtol=1e-10)
        assert_allclose(rfsim.kappa(found.spectrum, lr / top, batch), mass, rtol=found.kappa_error + 1e-13)


@pytest.mark.parametrize("name", ["0.15, 1.0", "0.5, 0.1", "2.0, 0.3", "gaps", "random energies", "exponential, dense"])
def test_changing_schedules(name):
    whole, few = full(name), small(name).spectrum
    step = np.arange(250.0)
    top = np.asarray(whole.eigenvalues).max()
    lr = (0.9 * (1.0 + 0.05 * step) ** -0.5 + 0.08 * np.cos(step)) / top
    batch = np.ceil(1.0 + step**0.7)
    functions = [product(lr[start:stop], batch[start:stop]) for start, stop in ((0, 3), (0, 40), (0, 250), (100, 250))]
    assert_allclose(sums(few, functions), sums(whole, functions), rtol=1e-9)


@pytest.mark.parametrize(("alpha", "beta"), [(0.15, 0.5), (0.5, 0.3), (2.0, 0.3)])
def test_a_million_modes(alpha, beta):
    whole = power(alpha, beta, 1_000_000)
    found = compress_with_error(whole)
    assert found.nodes <= 200
    functions = [flow(time) for time in np.geomspace(0.3, found.valid_until, 9)]
    error = np.abs(sums(found.spectrum, functions) / sums(whole, functions) - 1.0).max(axis=1)
    assert np.all(error <= (found.forcing_error, found.memory_error))
    assert max(found.forcing_error, found.memory_error) <= 1e-9


@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 0.4), (0.7, 0.3)])
def test_recursion_on_few_nodes_and_on_all_modes(alpha, beta):
    whole = power(alpha, beta, 10_000).replace(noise_var=0.4, floor=0.01)
    few = compress(whole)
    assert (few.noise_var, few.floor) == (0.4, 0.01)
    trace = np.sum(np.asarray(whole.eigenvalues))
    schedule = rfsim.schedules.power(700, 0.3, np.ceil(2.0 * trace * 0.3), vartheta=0.6)
    at = [0, 1, 10, 100, 700]
    mine, exact = recursion.risk(few, schedule, at=at), recursion.risk(whole, schedule, at=at)
    for name in ("risk", "forcing", "memory", "clean", "gap"):
        assert_allclose(getattr(mine, name), getattr(exact, name), rtol=1e-9, err_msg=name)


# --- other inputs ----------------------------------------------------------------------------------------------------


def test_against_thirty_digits():
    lam = 1.0 + 0.3 * np.sin(np.arange(300.0)) - 0.002 * np.arange(300.0)
    energy, count = np.cos(np.arange(300.0)) ** 2, 1.0 + np.arange(300.0) % 3
    few = compress(rfsim.spectrum(lam, energy, multiplicity=count), tolerance=1e-11)
    assert few.modes < 150
    with mpmath.workdps(30):
        for time in (0.0, 0.7, 4.0, 40.0):
            decay = [mpmath.exp(-2 * mpmath.mpf(time) * mpmath.mpf(x)) for x in lam]
            forcing = mpmath.fsum(mpmath.mpf(w) * d for w, d in zip(energy, decay, strict=True))
            kernel = mpmath.fsum(m * mpmath.mpf(x) ** 2 * d for m, x, d in zip(count, lam, decay, strict=True))
            assert 2 * time * lam.min() <= 10
            assert_allclose(sums(few, [flow(time)])[:, 0], [float(forcing), float(kernel)], rtol=1e-11)


def test_three_values_are_three_nodes():
    whole = rfsim.spectrum(np.tile([2.0, 0.5, 0.1], 400), np.arange(1200.0))
    few = compress(whole)
    assert_allclose(few.eigenvalues, [0.1, 0.5, 2.0], rtol=1e-15)
    assert_allclose(few.forcing_energy, [np.arange(k, 1200.0, 3).sum() for k in (2, 1, 0)], rtol=1e-14)
    assert_allclose(few.multiplicity, 400.0, rtol=1e-14)


def test_small_spectra_come_back_as_they_are():
    index = np.arange(1.0, 25.0)
    whole = rfsim.spectrum(index**-0.8, index**-1.0)
    found = compress_with_error(whole)
    assert found.spectrum is whole
    assert (found.nodes, found.forcing_error, found.kappa_error) == (24, 0.0, 0.0)
    wide_apart = rfsim.spectrum(3.0 ** -np.arange(40.0), np.ones(40))
    assert compress(wide_apart) is wide_apart


@pytest.mark.parametrize(("alpha", "beta", "ambient"), [(0.4, 0.3, 1e12), (0.7, 0.6, np.inf), (1.5, 0.2, np.inf)])
def test_population_nodes_are_compressed_again(alpha, beta, ambient):
    nodes = rfsim.population(rfsim.power_law(alpha, beta, ambient=ambient))
    found = compress_with_error(nodes)
    assert found.nodes < 0.7 * nodes.modes
    functions = [flow(time) for time in np.geomspace(1.0, min(found.valid_until, 1e12), 9)]
    assert_allclose(sums(found.spectrum, functions), sums(nodes, functions), rtol=1e-9)
    assert_allclose(rfsim.kappa(found.spectrum, 0.3, 64.0), rfsim.kappa(nodes, 0.3, 64.0), rtol=1e-10)


def test_infinite_trace_stays_infinite():
    nodes = rfsim.population(rfsim.power_law(0.4, 0.3))
    few = compress(nodes)
    assert few.modes < nodes.modes
    assert rfsim.kappa(few, 0.1, 8.0) == np.inf
    assert rfsim.lr_limit(few, 8.0) == 0.0


def test_wide_spectra_are_cut_where_nothing_moves():
    index = np.arange(1.0, 100_001.0)
    whole = rfsim.spectrum(3.0 * np.exp(-0.02 * index / 10), np.exp(-0.001 * index))  # 87 decades
    found = compress_with_error(whole)
    assert_allclose(found.valid_until, 2e16 / whole.eigenvalues.max(), rtol=1e-12)
    assert found.nodes <= 220
    functions = [flow(time) for time in np.geomspace(1.0, found.valid_until, 30)]
    error = np.abs(sums(found.spectrum, functions) / sums(whole, functions) - 1.0).max(axis=1)
    assert np.all(error <= (found.forcing_error, found.memory_error))
    assert_allclose(np.sum(found.spectrum.forcing_energy), np.sum(whole.forcing_energy), rtol=1e-12)


def test_order_and_scale_do_not_matter():
    whole = power(0.5, 0.3, 3000)
    order = np.random.default_rng(1).permutation(3000)
    shuffled = rfsim.spectrum(whole.eigenvalues[order], whole.forcing_energy[order])
    scaled = rfsim.spectrum(whole.eigenvalues * 1024.0, whole.forcing_energy * 3.0, multiplicity=np.full(3000, 5.0))
    few, again, other = compress(whole), compress(shuffled), compress(scaled)
    assert_array_equal(few.eigenvalues, again.eigenvalues)
    assert_array_equal(few.forcing_energy, again.forcing_energy)
    assert_allclose(other.eigenvalues, 1024.0 * few.eigenvalues, rtol=1e-9)
    assert_allclose(other.multiplicity, 5.0 * few.multiplicity, rtol=1e-6)
    assert np.all(np.diff(few.eigenvalues) > 0.0)


def test_tolerance_buys_nodes():
    whole = power(0.7, 0.3)
    counts = []
    for tolerance in (1e-3, 1e-6, 1e-9, 1e-11):
        found = compress_with_error(whole, tolerance=tolerance)
        counts.append(found.nodes)
        functions = [flow(time) for time in np.geomspace(1.0, found.valid_until, 60)]
        error = np.abs(sums(found.spectrum, functions) / sums(whole, functions) - 1.0).max(axis=1)
        assert np.all(error <= (found.forcing_error, found.memory_error))
        assert error.max() > 1e-4 * tolerance  # no more nodes than it needs
    assert counts == sorted(counts)
    assert counts[0] < 0.6 * counts[2]


@given(st.integers(0, 10**6))
@settings(max_examples=8)
def test_estimate_covers_the_error_of_random_spectra(seed):
    draw = np.random.default_rng(seed)
    count = int(draw.integers(25, 1000))
    lam = np.exp(draw.normal(0.0, draw.uniform(0.1, 3.0), count))
    energy = draw.exponential(size=count) * lam ** draw.uniform(-1.0, 3.0) * (draw.uniform(size=count) < 0.7)
    weight = draw.exponential(size=count) * (draw.uniform(size=count) < 0.7)
    whole = rfsim.spectrum(lam, energy, multiplicity=weight)
    found = compress_with_error(whole)
    assert found.nodes <= count
    ends = last_times(whole)
    for measure, (end, estimate) in enumerate(zip(ends, (found.forcing_error, found.memory_error), strict=True)):
        functions = [flow(time) for time in np.geomspace(0.01 / lam.max(), end, 150)]
        exact, mine = sums(whole, functions)[measure], sums(found.spectrum, functions)[measure]
        assert np.max(np.abs(mine / exact - 1.0)) <= estimate + 1e-13
        assert estimate <= 1e-9


def test_compression_error_is_the_full_sum():
    whole, few = full("0.5, 0.1"), compress(full("0.5, 0.1"), tolerance=1e-5)
    times = np.geomspace(0.1, 1e4, 7)
    functions = [flow(time) for time in times]
    expected = np.abs(sums(few, functions) / sums(whole, functions) - 1.0)
    found = compression_error(whole, few, times)
    assert expected.max() > 1e-7
    assert_allclose(found, expected, atol=1e-13)
    assert_array_equal(compression_error(whole, whole, 3.0), np.zeros((2, 1)))


# --- rules -----------------------------------------------------------------------------------------------------------


def test_rule_is_exact_for_polynomials():
    draw = np.random.default_rng(3)
    sizes = np.array([40, 7, 200])
    y = np.concatenate([np.sort(draw.uniform(-1.0, 1.0, size)) for size in sizes])
    modes = Modes(y, draw.exponential(size=247), draw.exponential(size=247))
    nodes, forcing, kernel = rule(lanczos(y, modes, sizes, 6), 6)
    for row, stop in enumerate(np.cumsum(sizes)):
        part = slice(stop - sizes[row], stop)
        totals = modes.forcing[part].sum(), modes.kernel[part].sum()
        mean = modes.forcing[part] / totals[0] + modes.kernel[part] / totals[1]
        for degree in range(12):  # Gauss for the mean, degree 11; interpolation for each, degree 5
            found = nodes[row] ** degree
            both = forcing[row] @ found / totals[0] + kernel[row] @ found / totals[1]
            assert_allclose(both, mean @ y[part] ** degree, rtol=1e-12, atol=1e-13)
            if degree < 6:
                assert_allclose(forcing[row] @ found, modes.forcing[part] @ y[part] ** degree, rtol=1e-12, atol=1e-12)
                assert_allclose(kernel[row] @ found, modes.kernel[part] @ y[part] ** degree, rtol=1e-12, atol=1e-12)


def test_rule_of_few_points_is_the_points():
    modes = Modes(np.array([-0.5, 0.25, 0.9]), np.array([1.0, 2.0, 0.0]), np.array([0.5, 0.0, 4.0]))
    nodes, forcing, kernel = rule(lanczos(modes.lam, modes, np.array([3]), 7), 7)
    for value, w, m in zip(*modes, strict=True):
        near = np.abs(nodes[0] - value) < 1e-12
        assert_allclose([forcing[0, near].sum(), kernel[0, near].sum()], [w, m], atol=1e-13)


def test_legendre_nodes_are_the_limit_of_many_points():
    y = (np.arange(20_000) + 0.5) / 10_000 - 1.0
    modes = Modes(y, np.full(y.size, 1e-4), np.zeros(y.size))
    nodes, forcing, kernel = rule(lanczos(y, modes, np.array([y.size]), 8), 8)
    x, w = np.polynomial.legendre.leggauss(8)
    assert_allclose(nodes[0], x, atol=1e-7)
    assert_allclose(forcing[0], w, atol=1e-7)
    assert_array_equal(kernel, 0.0)


def test_fine_rule_is_accurate_to_rounding_and_positive():
    for name in ("0.5, 0.1", "gaps", "each mode in one measure only", "rapid target"):
        whole = full(name)
        order = np.argsort(whole.eigenvalues)
        lam = np.asarray(whole.eigenvalues)[order] / np.asarray(whole.eigenvalues).max()
        energy, count = (np.asarray(x)[order] for x in (whole.forcing_energy, whole.multiplicity))
        every = Modes(lam, energy, count * lam**2)
        fine = fine_rule(every)
        assert fine.lam.size < 4000
        assert min(fine.forcing.min(), fine.kernel.min()) >= 0.0
        for time in (0.0, 1.0, 30.0, 1e3):
            for part, other in ((every.forcing, fine.forcing), (every.kernel, fine.kernel)):
                exact = np.sum(part * np.exp(-2 * time * lam))
                assert_allclose(np.sum(other * np.exp(-2 * time * fine.lam)), exact, rtol=1e-12, atol=1e-45)


# --- refusals --------------------------------------------------------------------------------------------------------


def test_bad_input_is_refused():
    whole = power(0.5, 0.3, 100)
    lam = np.asarray(whole.eigenvalues)
    cases = {
        "eigenvalues must hold real numbers": whole.replace(eigenvalues=lam + 0.1j),
        "eigenvalues must be finite and positive": whole.replace(eigenvalues=-lam),
        "forcing_energy must be finite and not negative": whole.replace(forcing_energy=-lam),
        "multiplicity must be finite and not negative": whole.replace(multiplicity=np.full(100, np.nan)),
        "nothing to compress": whole.replace(multiplicity=0.0 * lam, forcing_energy=0.0 * lam),
    }
    for message, spectrum in cases.items():
        with pytest.raises(rfsim.InputError, match=message):
            compress(spectrum)
    for tolerance in (1e-12, 0.1, -1.0, np.nan):
        with pytest.raises(rfsim.InputError, match="tolerance"):
            compress(whole, tolerance=tolerance)
    with pytest.raises(rfsim.InputError, match="traced"):
        jax.jit(lambda x: compress(whole.replace(eigenvalues=x)).eigenvalues)(lam)
