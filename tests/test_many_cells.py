"""Memory integrals over many cells from few terms: against each cell by Gauss's rule, all kinks, and steps as such."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_forcing_memory import literal

import rfsim.surrogates.forcing_memory as forcing_memory
from rfsim.logs import run
from rfsim.schedules import from_arrays
from rfsim.surrogates import fit, law
from rfsim.surrogates.kernel import kinks, memory_integrals
from rfsim.surrogates.many_cells import integrals, many_cells

NODES, WEIGHTS = np.polynomial.legendre.leggauss(48)
CONVENTIONS = [
    {},
    {"clock_power": 0.5},
    {"clock_power": 2.0, "injection_power": 2.0},
    {"forcing_power": 0.5, "injection_power": 1.0},
    {"forcing_start": 0.01},
]


def rates(kind, steps, rng):
    """Learning rates without structure."""
    u = np.arange(steps) / steps
    return {
        "noise": np.exp(rng.normal(0.0, 0.3, steps)),
        "decay": (1.0 - 0.9 * u) * (1.0 + 0.05 * rng.standard_normal(steps)),
        "cyclic": 1.1 + np.sin(np.arange(steps) / 50.0),
        "polygon": np.interp(u, np.linspace(0.0, 1.0, 31), np.exp(rng.normal(0.0, 0.5, 31))),
        "pauses": np.where(rng.random(steps) < 0.3, 0.0, 1.0) * (1.1 - u),
        "tiny and huge": 10.0 ** rng.uniform(-4.0, 0.0, steps),
        "warm-up": np.minimum(1.0, 5.0 * u + 1e-3) * np.exp(rng.normal(0.0, 0.3, steps)),
        "gaps": np.where(rng.random(steps) < 0.05, 1e-3, 1.0),
    }[kind]


KINDS = ("noise", "decay", "cyclic", "polygon", "pauses", "tiny and huge", "warm-up", "gaps")


def prepared(kind, steps, seed, count=9, **options):
    """The law and its path with cells, few or many."""
    rng = np.random.default_rng(seed)
    lr = rates(kind, steps, rng)
    lr[0] = max(lr[0], 1e-3)  # the clock moves
    batch = rng.integers(1, 5, steps) if seed % 2 else np.full(steps, 2)
    rows = np.unique(np.concatenate([[0, steps], rng.integers(0, steps + 1, count)]))
    one = law("forcing-memory", lr_unit=1.0, batch_unit=1.0, **options)
    return one, one.prepare(run(rows, np.ones(len(rows)), from_arrays(lr, batch.astype(float))))


def terms_of(path, one):
    start = one.forcing_start if one.clock_power == one.forcing_power else None
    return many_cells(path.memory, path.edges, path.rate, path.log_source, start=start)


def by_cells(path, b, c, q):
    """Integrals, and the size of the third, by Gauss's rule in the log of 1 + c times lag over each cell."""
    source = np.exp(-b * path.log_source)
    slope = np.abs(path.log_source) * source
    value = np.zeros((len(path.memory), 4))
    for row, now in enumerate(path.memory):
        n = int(np.searchsorted(path.edges[:-1], now, side="left"))
        begin, end = path.edges[:n], np.minimum(path.edges[1 : n + 1], now)
        near = 1.0 + c * (now - end)
        log = np.log1p(c * (end - begin) / near)
        y = 0.5 * (NODES + 1.0) * log[:, None]
        back = np.expm1(y) * near[:, None] / c  # distance from the end
        kernel = np.exp((1.0 - q) * y) * near[:, None] ** (1.0 - q) / c * (0.5 * WEIGHTS * log[:, None])
        x = 2.0 * (end[:, None] - back - begin[:, None]) / np.diff(path.edges)[:n, None] - 1.0
        for column, each in enumerate((np.ones_like(source), source, -path.log_source * source, slope)):
            first, second = (path.rate * each)[:, :n]
            line = 0.5 * (first + second)[:, None] + 0.5 * 3.0**0.5 * (second - first)[:, None] * x
            value[row, column] = float((kernel * line).sum())
    return value


@pytest.mark.parametrize("options", CONVENTIONS, ids=str)
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 10**6),
    steps=st.integers(1, 700),
    b=st.floats(0.02, 2.0),
    log_c=st.floats(-5.0, 3.0),
    q=st.floats(0.05, 3.0),
)
def test_equals_the_sum_over_cells(options, kind, seed, steps, b, log_c, q):
    one, path = prepared(kind, steps, seed, **options)
    c = 10.0**log_c
    found = integrals(terms_of(path, one), b, c, q).value
    wanted = by_cells(path, b, c, q)
    size = wanted[:, [0, 1, 3]]
    assert (np.abs(found - wanted[:, :3]) <= 3e-6 * size + 1e-13 * size.max()).all()


@pytest.mark.parametrize("options", CONVENTIONS[:2], ids=str)
@pytest.mark.parametrize("kind", ["noise", "cyclic", "polygon", "pauses"])
def test_equals_all_kinks_with_derivatives(kind, options):
    one, path = prepared(kind, 3000, 4, count=40, **options)
    b, c, q = 0.45, 0.3, 0.9
    found = integrals(terms_of(path, one), b, c, q)
    source = np.exp(-b * path.log_source)
    middle, half = (0.5 * scale * (path.rate * source).T @ signs for scale, signs in ((1.0, [1, 1]), (3**0.5, [-1, 1])))
    lines = kinks(path.edges, middle - half, middle + half)
    wanted = memory_integrals(path.memory, lines.place, lines.jump[:, None], lines.bend[:, None], c, q)
    for new, old in zip(found, wanted, strict=True):
        np.testing.assert_allclose(new[:, 1], old[:, 0], rtol=2e-7, atol=2e-8 * np.abs(old).max())
    alone = integrals(terms_of(path, one), b, c, q, gradient=False)
    np.testing.assert_array_equal(alone.value, found.value[:, :2])


@pytest.mark.parametrize("kind", ["noise", "tiny and huge", "pauses"])
@pytest.mark.parametrize("options", CONVENTIONS[:3], ids=str)
def test_the_law_equals_the_literal_sum_over_steps(kind, options):
    steps, rng = 1000, np.random.default_rng(8)
    schedule = from_arrays(rates(kind, steps, rng), rng.integers(1, 5, steps).astype(float))
    one = law("forcing-memory", lr_unit=0.5, batch_unit=3.0, **options)
    values, rows = np.array([2.8, 20.0, 0.45, 0.3, 1.5, 0.7, 0.9]), np.array([3, 200, 641, 1000])
    path = one.prepare(run(rows, np.ones(4), schedule))
    assert path.many is not None
    p = options.get("clock_power", 1.0)
    i = options.get("injection_power", 1.0 + p)
    wanted = literal(values, schedule, rows, p=p, i=i, lr_unit=0.5, batch_unit=3.0, panels=1)
    np.testing.assert_allclose(one.evaluate(values, path)[0], wanted, rtol=6e-6)


@pytest.mark.parametrize("options", CONVENTIONS, ids=str)
@given(st.sampled_from(KINDS), st.floats(0.05, 4.0), st.floats(-3.0, 3.0), st.floats(0.05, 10.0))
def test_gradient(options, kind, q_f, log_c, q):
    one, path = prepared(kind, 1500, 5, **options)
    path = path._replace(many=terms_of(path, one))
    values = np.array([2.8, 20.0, q_f, 0.3, 1.5, 10.0**log_c, q])
    loss, gradient = one.evaluate(values, path)
    assert gradient.shape == (len(path.memory), 7)
    for at in range(7):
        step = 1e-5 * max(values[at], 1e-3)
        ends = [one.evaluate(values + s * step * (np.arange(7) == at), path, gradient=False)[0] for s in (1, -1)]
        numeric = (ends[0] - ends[1]) / (2.0 * step)
        np.testing.assert_allclose(gradient[:, at], numeric, rtol=1e-5, atol=1e-8 * loss.max() / values[at])


def test_fits_end_at_the_same_optimum(monkeypatch):
    rng, steps = np.random.default_rng(2), 700
    rows = np.arange(10, steps, 10)
    truth = np.array([2.5, 1.5, 0.5, 0.02, 0.1, 0.3, 0.9])
    logs = []
    for kind in ("noise", "cyclic", "decay"):
        schedule = from_arrays(1e-3 * rates(kind, steps, rng), np.full(steps, 8.0))
        one = law("forcing-memory", lr_unit=1e-3, batch_unit=8.0, q_memory=0.9)
        loss, _ = one.evaluate(truth[:-1], one.prepare(run(rows, np.ones(len(rows)), schedule)))
        logs.append(run(rows, loss + 1e-3 * rng.standard_normal(len(rows)), schedule, name=kind))
    found = []
    for many in (forcing_memory._MANY, 10**9):
        monkeypatch.setattr(forcing_memory, "_MANY", many)
        assert (one.prepare(logs[0]).many is None) == (many == 10**9)
        found.append(fit(one, logs))
    few, exact = found
    assert few.objective == pytest.approx(exact.objective, rel=1e-6)
    np.testing.assert_allclose(few.values, exact.values, rtol=1e-3)


def test_terms_per_observation_are_few():
    """What one evaluation costs does not grow with the number of steps, whatever the schedule."""
    for kind in ("noise", "cyclic", "pauses", "tiny and huge"):
        for options, most in (({}, 500), ({"clock_power": 0.5}, 1500)):
            _, path = prepared(kind, 50_000, 3, count=50, **options)
            rows = len(path.memory)
            assert len(path.edges) > 20_000
            assert len(path.many.far.lag) < most * rows
            assert len(path.many.near.cell) < 60 * rows
