"""Memory integrals cell by cell: against many digits, relative to the integral itself, in extreme runs too."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_forcing_memory import CONVENTIONS, ROWS, SCHEDULES
from test_memory_kernel import C, Q, literal, ramps

from rfsim.logs import run
from rfsim.schedules import from_arrays
from rfsim.surrogates import law
from rfsim.surrogates.cell_integrals import cell_integrals


def check(edges, left, right, at, c, q, rtol=2e-13):
    """Values to `rtol` of themselves, derivatives to ten times that of the larger of themselves and the value."""
    found = cell_integrals(at, edges, left[:, None], right[:, None], c, q)
    with mp.workdps(100):
        c, q, h = mp.mpf(c), mp.mpf(q), mp.mpf(10) ** -15
        for row, t in enumerate(at):
            exact = literal(t, edges, left, right, c, q)
            by_q = [literal(t, edges, left, right, c, q + s * h) for s in (1, -1)]
            by_c = [literal(t, edges, left, right, c * mp.exp(s * h), q) for s in (1, -1)]
            assert abs(found.value[row, 0] - exact) <= rtol * exact
            for mine, (up, down) in ((found.by_q, by_q), (found.by_log_c, by_c)):
                slope = (up - down) / (2 * h)
                assert abs(mine[row, 0] - slope) <= 10.0 * rtol * max(abs(slope), exact)


@pytest.mark.parametrize("q", Q)
@pytest.mark.parametrize("c", C)
def test_values_and_derivatives(c, q):
    for seed in (0, 1):
        check(*ramps(seed, continuous=seed == 1), c, q)


@pytest.mark.parametrize("q", [0.5, 1.0, 2.0, 10.0])
@pytest.mark.parametrize("c", [1e-4, 1.0, 1e4])
def test_short_strong_cells_far_behind(c, q):
    """A ramp of length 1e-6 from 0 to 1e9 or back, and rates over nine decades, seen from up to 1e4 behind."""
    edges = np.concatenate([[0.0], np.cumsum([1e-6, 1.0, 1e-3, 10.0, 1e-6, 100.0, 1e4])])
    left = np.array([0.0, 1e-3, 1e9, 1.0, 1e9, 1e-3, 1.0])
    right = np.array([1e9, 1.0, 0.0, 1e-9, 0.0, 1.0, 1e-6])
    check(edges, left, right, np.array([0.3, 10.9, 11.5, 200.0, 9e3]), c, q)


@given(st.integers(0, 2**32 - 1), st.sampled_from(Q), st.floats(-6.0, 6.0), st.integers(1, 300))
def test_rows_together_and_alone(seed, q, log_c, rows):
    """Which cells count as far depends on the rows of a block; what they add does not."""
    draw = np.random.default_rng(seed)
    edges, left, right, _ = ramps(seed, pieces=30)
    at, c = np.sort(draw.uniform(0.0, edges[-1], rows)), 10.0**log_c
    both = [np.stack([each, np.ones_like(each)], axis=1) for each in (left, right)]
    found = cell_integrals(at, edges, *both, c, q)
    for row in (0, rows - 1):
        alone = cell_integrals(at[[row]], edges, *both, c, q)
        for each, one in zip(found, alone, strict=True):
            np.testing.assert_allclose(each[row], one[0], rtol=1e-12, atol=1e-12 * found.value[row].max())
    plain = cell_integrals(at, edges, *both, c, q, gradient=False)
    np.testing.assert_array_equal(plain.value, found.value)


@pytest.mark.parametrize("q", [0.05, 0.9, 1.0, 2.0, 10.0])
@pytest.mark.parametrize("q_f", [0.05, 2.0, 4.0])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("constant", {"forcing_start": 0.3}),
        ("cosine to 0 after a warm-up", CONVENTIONS[4]),
        ("six decades", {"clock_power": 2.0, "forcing_power": 0.5, "injection_power": 1.0}),
    ],
)
def test_the_loss_of_extreme_runs(name, options, q_f, q):
    """A source resolved by tiny cells, a rate lr^-1 that spikes where a cosine ends, an lr over six decades."""
    shapes = {**SCHEDULES, "six decades": from_arrays(10.0 ** np.random.default_rng(0).uniform(-6, 0, 90), np.ones(90))}
    one = law("forcing-memory", lr_unit=0.5, batch_unit=3.0, **options)
    path = one.prepare(run(ROWS, np.ones(8), shapes[name]))
    source = np.exp(-q_f * path.log_source) * path.rate
    for log_c in (-3.0, 0.0, 3.0):
        loss, _ = one.evaluate(np.array([0.0, 0.0, q_f, 0.3, 1.5, 10.0**log_c, q]), path, gradient=False)
        first, second = 0.3 * path.rate + 1.5 * source
        middle, half = 0.5 * (first + second), 0.5 * 3.0**0.5 * (second - first)
        with mp.workdps(60):
            for mine, t in zip(loss, path.memory, strict=True):
                exact = literal(t, path.edges, middle - half, middle + half, mp.mpf(10.0**log_c), mp.mpf(q))
                assert abs(mine - exact) <= 1e-12 * exact
