"""The forcing-memory law: published anchors, literal sums over steps in every convention, and its gradient."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.integrate import quad

from rfsim.checks import InputError
from rfsim.logs import run
from rfsim.schedules import batch_ramp, constant, cosine, eight_one_one, from_arrays, join, stages, warmed, wsd
from rfsim.surrogates import law
from rfsim.surrogates.forcing_memory import PURE_POWER, log_age, path_of_pieces
from rfsim.surrogates.laws import law_record, parameter_names, values_of
from rfsim.surrogates.pieces import Pieces, pieces

PUBLISHED = {  # the 124M fit
    "L_inf": 2.85619,
    "A_F": 27.8556,
    "q_F": 0.37415,
    "A_0": 121.298,
    "A_1": 5.03e-12,
    "c_K": 18.1955,
    "q_K": 1.01707,
}
PREFIX, TAIL = 9765.6, 488_280  # clock at the start of the tail, updates of a tail at lr .005 and batch 4
VALUES = np.array([2.8, 20.0, 0.45, 0.03, 1.5, 0.7, 0.9])


# --- published anchors -----------------------------------------------------------------------------------------------


def anchored(shape, at):
    one = law("forcing-memory", lr_unit=1.0, batch_unit=1.0)
    return one.evaluate(values_of(one, PUBLISHED), path_of_pieces(shape, np.array(at)), gradient=False)[0]


def test_anchors_of_the_prefix():
    flat = Pieces(np.array([0.0, PREFIX]), np.array([1 / 800]), np.array([1 / 800]))
    expected = [5.031842136, 4.093203336, 3.842878752]
    np.testing.assert_allclose(anchored(flat, [1000.0, 5000.0, PREFIX]), expected, atol=6e-10)


def test_anchors_of_the_8_1_1_tail():
    ends = PREFIX + 0.005 * TAIL / 2 * np.cumsum([10**-0.5, 0.1])
    rate = np.array([1 / 800, 10**-0.5 / 800, 0.1 / 800])
    shape = Pieces(np.array([0.0, PREFIX, *ends]), rate, rate)
    np.testing.assert_allclose(ends, [10151.6192, 10273.6892], atol=5e-5)
    np.testing.assert_allclose(anchored(shape, ends), [3.783407865, 3.765196772], atol=6e-10)


def test_anchors_of_the_wsd_tail():
    end = PREFIX + 0.005 * TAIL * 0.9 / math.log(10.0)
    shape = Pieces(np.array([0.0, PREFIX, end]), np.array([1 / 800, 1 / 800]), np.array([1 / 800, 1 / 8000]))
    assert end == pytest.approx(10719.8579, abs=5e-5)
    expected = [3.799117814, 3.751825061]
    np.testing.assert_allclose(anchored(shape, [PREFIX + (end - PREFIX) / 2, end]), expected, atol=1e-8)


def test_anchors_from_a_schedule_of_updates():
    """The same through 2.4 million updates of lr .005 and batch 4."""
    steps = round(PREFIX / 0.005)
    whole = join(
        constant(steps, 0.005, 4.0), constant(TAIL // 2, 0.005 * 10**-0.5, 4.0), constant(TAIL // 2, 5e-4, 4.0)
    )
    one = law("forcing-memory", lr_unit=1.0, batch_unit=1.0)
    log = run([200_000, 1_000_000, steps, steps + TAIL // 2, steps + TAIL], np.ones(5), whole)
    expected = [5.031842136, 4.093203336, 3.842878752, 3.783407865, 3.765196772]
    np.testing.assert_allclose(one.evaluate(values_of(one, PUBLISHED), one.prepare(log))[0], expected, atol=1e-8)


# --- literal sums ----------------------------------------------------------------------------------------------------

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def literal(values, schedule, at, *, p=1.0, f=1.0, i=2.0, tau=1.0, lr_unit=1.0, batch_unit=1.0, panels=4):
    """Step by step: each spreads eta^i / B over eta^p of the clock; Gauss's rule over quarters of each step."""
    l_inf, a_f, q_f, a_0, a_1, c, q = values
    found = []
    for rows in at:
        eta = [float(x) / lr_unit for x in schedule.lr[:rows]]
        batch = [float(x) / batch_unit for x in schedule.batch[:rows]]
        end, whole = math.fsum(x**p for x in eta), math.fsum(x**f for x in eta)
        total, clock, forcing = l_inf + a_f * (tau + whole) ** -q_f, 0.0, 0.0
        for x, b in zip(eta, batch, strict=True):
            if x == 0.0:
                continue
            width = x**p / panels
            for panel in range(panels):
                share = (panel + 0.5 * (NODES + 1.0)) / panels
                source = a_0 + a_1 * (tau + forcing + share * x**f) ** -q_f
                kernel = (1.0 + c * np.maximum(end - clock - share * x**p, 0.0)) ** -q
                total += x**i / b / x**p * float(WEIGHTS @ (source * kernel)) * 0.5 * width
            clock, forcing = clock + x**p, forcing + x**f
        found.append(total)
    return np.array(found)


SCHEDULES = {
    "constant": constant(90, 0.8, 2.0),
    "8-1-1": eight_one_one(90, 0.8, 2.0),
    "stages of both": stages(90, 0.4, 2.0, at=[20, 40, 70], lr_to=[2.0, 0.5, 0.25], batch_to=[4.0, 1.0, 3.0]),
    "off in the middle": from_arrays(np.r_[np.full(30, 0.8), np.zeros(20), np.full(40, 0.2)], np.full(90, 2.0)),
    "off at the end": from_arrays(np.r_[np.full(70, 0.8), np.zeros(20)], np.full(90, 2.0)),
    "off at the start": from_arrays(np.r_[np.zeros(20), np.full(70, 0.8)], np.full(90, 2.0)),
    "wsd": wsd(90, 0.8, 2.0),
    "cosine to 0 after a warm-up": warmed(cosine(90, 0.8, 2.0, to=0.0), 9),
    "ramp of the batch": batch_ramp(90, 0.8, 2.0, to=16.0),
}
# a decay over 18 steps is a straight line of 1/r over the clock, which falls within each step, too
LINES = {"wsd": 1e-3, "cosine to 0 after a warm-up": 1.5e-3}
ROWS = np.array([1, 2, 17, 40, 41, 75, 89, 90])
CONVENTIONS = [
    {},
    {"clock_power": 0.5},
    {"clock_power": 0.5, "injection_power": 2.0},
    {"clock_power": 2.0, "forcing_power": 2.0, "injection_power": 4.0},
    {"clock_power": 1.0, "forcing_power": 0.5, "injection_power": 0.0},
    {"forcing_start": 0.3},
    {"clock_power": 0.5, "forcing_power": 2.0, "forcing_start": 7.0},
]


@pytest.mark.parametrize("options", CONVENTIONS, ids=str)
@pytest.mark.parametrize("name", SCHEDULES)
def test_equals_the_literal_sum_over_steps(name, options):
    schedule = SCHEDULES[name]
    one = law("forcing-memory", lr_unit=0.5, batch_unit=3.0, **options)
    loss, _ = one.evaluate(VALUES, one.prepare(run(ROWS, np.ones(8), schedule)))
    p = options.get("clock_power", 1.0)
    exact = literal(
        VALUES,
        schedule,
        ROWS,
        p=p,
        f=options.get("forcing_power", 1.0),
        i=options.get("injection_power", 1.0 + p),
        tau=options.get("forcing_start", 1.0),
        lr_unit=0.5,
        batch_unit=3.0,
    )
    np.testing.assert_allclose(loss, exact, rtol=LINES.get(name, 6e-6))


@pytest.mark.parametrize("c", [0.05, 3.0, 300.0])
@pytest.mark.parametrize("name", ["wsd", "ramp of the batch"])
def test_lines_through_short_steps_are_near_the_steps(name, c):
    """With many steps the error of the straight lines is that of their tolerance, for slow and for fast kernels."""
    make = {"wsd": wsd, "ramp of the batch": batch_ramp}[name]
    schedule = make(1500, 0.05, 2.0)
    one = law("forcing-memory", lr_unit=0.05, batch_unit=2.0)
    values = np.array([0.0, 0.0, 0.45, 1.0, 0.0, c, 0.9])  # memory alone
    rows = np.array([1200, 1350, 1500])
    loss, _ = one.evaluate(values, one.prepare(run(rows, np.ones(3), schedule)))
    exact = literal(values, schedule, rows, lr_unit=0.05, batch_unit=2.0)
    # within a step the line falls by its share of the ramp, 1/300 of the whole; a kernel shorter than that sees it
    np.testing.assert_allclose(loss, exact, rtol={0.05: 3e-6, 3.0: 1e-4, 300.0: 1e-3}[c])


def following(tau, q_f, c, q, t):
    """Integral of (tau + u)^(-q_F) (1 + c (t - u))^(-q) from 0 to t by adaptive integration."""
    marks = [0.0, *np.geomspace(1e-2 * tau, t, 16), *(t - np.geomspace(1e-5, t, 16))]
    return math.fsum(
        quad(lambda u: (tau + u) ** -q_f * (1.0 + c * (t - u)) ** -q, a, b, epsabs=0.0, epsrel=1e-11)[0]
        for a, b in itertools.pairwise(sorted({min(max(m, 0.0), t) for m in marks}))
    )


@pytest.mark.parametrize("q_f", [0.02, 0.45, 1.0, 3.0, 8.0])
@pytest.mark.parametrize(("c", "q"), [(1e-5, 0.9), (1e-3, 1.0), (1.0, 0.3), (1.0, 3.0), (1e3, 1.2)])
def test_the_source_that_follows_the_forcing(q_f, c, q):
    """Its integral over 10 thousand units of the clock at constant 1/r, against adaptive integration."""
    one = law("forcing-memory", lr_unit=1.0, batch_unit=1.0)
    shape = Pieces(np.array([0.0, 1e4]), np.array([1.0]), np.array([1.0]))
    at = np.array([0.3, 30.0, 1e3, 1e4])
    loss, _ = one.evaluate(np.array([0.0, 0.0, q_f, 0.0, 1.0, c, q]), path_of_pieces(shape, at))
    for row, t in enumerate(at):
        exact = following(1.0, q_f, c, q, t)
        # lines over a 24th of an e-fold: worst for a kernel that sees one place of its cell
        assert loss[row] == pytest.approx(exact, rel=(2e-4 if c >= 1.0 else 2e-5) * q_f * (1.0 + q_f), abs=1e-10)


@pytest.mark.parametrize("t", [1e3, 1e9, 1e15])
@pytest.mark.parametrize("q", [0.3, 0.9, 1.5])
def test_memory_of_a_constant_source_to_the_last_moment(t, q):
    """The last e-fold of the clock holds all times at which a quick kernel matters."""
    one = law("forcing-memory", lr_unit=1.0, batch_unit=1.0)
    shape, c = Pieces(np.array([0.0, t]), np.array([1.0]), np.array([1.0])), 0.5
    loss, _ = one.evaluate(np.array([0.0, 0.0, 0.5, 1.0, 0.0, c, q]), path_of_pieces(shape, np.array([t])))
    exact = math.expm1((1.0 - q) * math.log1p(c * t)) / (c * (1.0 - q))
    assert loss[0] == pytest.approx(exact, rel=1e-13)


# --- gradient and options --------------------------------------------------------------------------------------------


@given(
    st.sampled_from(list(SCHEDULES)),
    st.sampled_from(CONVENTIONS),
    st.floats(0.05, 4.0),
    st.floats(-3.0, 3.0),
    st.floats(0.05, 10.0),
)
@example("constant", {"clock_power": 0.5}, 4.0, 0.0, 1.0)  # small derivatives of large parts
@example("constant", {"forcing_start": 0.3}, 3.0, 0.0, 2.0)
@example("constant", {"forcing_start": 0.3}, 2.0, 0.0, 1.0)  # tiny cells resolve the source
@example("cosine to 0 after a warm-up", CONVENTIONS[4], 2.0, 0.0, 1.0)  # the rate lr^-1 spikes at the end
@example("cosine to 0 after a warm-up", CONVENTIONS[4], 0.5, 2.0, 2.0)
def test_gradient(name, options, q_f, log_c, q):
    one = law("forcing-memory", lr_unit=0.5, batch_unit=3.0, **options)
    prepared = one.prepare(run(ROWS, np.ones(8), SCHEDULES[name]))
    values = np.array([2.8, 20.0, q_f, 0.3, 1.5, 10.0**log_c, q])
    loss, gradient = one.evaluate(values, prepared)
    assert gradient.shape == (8, 7)
    for at in range(7):
        step = 1e-3 * max(values[at], 1e-3)
        moves = [s * step * (np.arange(7) == at) for s in (1, -1, 2, -2)]
        near, below, far, under = (one.evaluate(values + move, prepared, gradient=False)[0] for move in moves)
        numeric = (8.0 * (near - below) - (far - under)) / (12.0 * step)  # to the fourth order of the step
        np.testing.assert_allclose(gradient[:, at], numeric, rtol=1e-5, atol=1e-8 * loss.max() / values[at])


def test_with_a_fixed_exponent_of_the_memory():
    for q in (0.9, 1.0):
        free, held = (law("forcing-memory", lr_unit=1.0, batch_unit=1.0, q_memory=each) for each in (None, q))
        assert parameter_names(held) == parameter_names(free)[:-1]
        log = run(ROWS, np.ones(8), SCHEDULES["stages of both"])
        loss, gradient = free.evaluate(np.array([*VALUES[:-1], q]), free.prepare(log))
        other, fewer = held.evaluate(VALUES[:-1], held.prepare(log))
        np.testing.assert_array_equal(other, loss)
        np.testing.assert_array_equal(fewer, gradient[:, :-1])
        assert held.starts([held.prepare(log)], [log.loss]).shape == (9, 6)
    assert free.starts([free.prepare(log)], [log.loss]).shape == (9, 7)


def test_rows_at_the_start_alone_and_in_any_order():
    one = law("forcing-memory", lr_unit=1.0, batch_unit=1.0)
    log = run(ROWS, np.ones(8), SCHEDULES["wsd"])
    together, slopes = one.evaluate(VALUES, one.prepare(log))
    mixed = np.array([5, 0, 7, 2, 2, 1])
    loss, gradient = one.evaluate(VALUES, one.prepare(log, ROWS[mixed]))
    np.testing.assert_allclose(loss, together[mixed], rtol=1e-14)
    np.testing.assert_allclose(gradient, slopes[mixed], rtol=1e-10, atol=1e-12)
    alone, _ = one.evaluate(VALUES, one.prepare(run([75], [3.0], SCHEDULES["wsd"])))
    assert alone[0] == pytest.approx(together[5], rel=1e-14)
    start, _ = one.evaluate(VALUES, one.prepare(log, np.array([0])))
    assert start[0] == VALUES[0] + VALUES[1]


def test_the_loss_stays_while_the_lr_is_zero():
    one = law("forcing-memory", lr_unit=1.0, batch_unit=1.0)
    log = run([70, 71, 90], np.ones(3), SCHEDULES["off at the end"])
    loss, _ = one.evaluate(VALUES, one.prepare(log))
    assert loss[0] == loss[1] == loss[2]


def test_a_batch_twice_as_large_injects_half():
    one = law("forcing-memory", lr_unit=1.0, batch_unit=1.0)
    memory = VALUES * np.array([0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    small, large = (
        one.evaluate(memory, one.prepare(run(ROWS, np.ones(8), constant(90, 0.8, batch))))[0] for batch in (2.0, 4.0)
    )
    np.testing.assert_allclose(small, 2.0 * large, rtol=1e-14)


def test_only_the_ratio_and_the_clock_matter():
    """With p = 1 a path of 1/r over T does not know whether lr or batch made it."""
    one = law("forcing-memory", lr_unit=1.0, batch_unit=1.0)
    by_lr = join(constant(40, 1.0, 4.0), constant(80, 0.5, 4.0))
    by_batch = join(constant(40, 1.0, 4.0), constant(40, 1.0, 8.0))
    first, _ = one.evaluate(VALUES, one.prepare(run([20, 40, 80, 120], np.ones(4), by_lr)))
    second, _ = one.evaluate(VALUES, one.prepare(run([20, 40, 60, 80], np.ones(4), by_batch)))
    np.testing.assert_allclose(first, second, rtol=1e-13)


def test_units_are_taken_from_the_runs_once_and_stored():
    logs = [run(ROWS, np.ones(8), SCHEDULES[name]) for name in ("constant", "stages of both")]
    one = law("forcing-memory").calibrated(logs)
    assert (one.lr_unit, one.batch_unit) == (0.8, 2.0)
    assert one.calibrated([run(ROWS, np.ones(8), constant(90, 9.0, 9.0))]) == one
    assert law(**law_record(one)) == one
    assert law("forcing-memory", lr_unit=3.0).calibrated(logs).lr_unit == 3.0
    scaled = from_arrays(7.0 * np.asarray(logs[1].schedule.lr), 5.0 * np.asarray(logs[1].schedule.batch))
    other = law("forcing-memory", lr_unit=7.0 * 0.8, batch_unit=10.0)
    np.testing.assert_allclose(
        other.evaluate(VALUES, other.prepare(run(ROWS, np.ones(8), scaled)))[0],
        one.evaluate(VALUES, one.prepare(logs[1]))[0],
        rtol=1e-13,
    )


@pytest.mark.parametrize("q_f", [0.02, 0.45, 0.9])
@pytest.mark.parametrize(("c", "q"), [(1e-3, 1.0), (1.0, 0.3), (1e3, 1.2)])
def test_a_source_that_is_a_power_from_the_first_step_on(q_f, c, q):
    """tau = .01: its integral over ten thousand steps of a constant schedule, against adaptive integration."""
    n = 10_000
    one = law("forcing-memory", lr_unit=1.0, batch_unit=1.0, forcing_start=PURE_POWER)
    at = np.array([1, 30, 1000, n])
    values = np.array([0.0, 0.0, q_f, 0.0, 1.0, c, q])
    loss, _ = one.evaluate(values, one.prepare(run(at, np.ones(4), constant(n, 1.0, 1.0))))
    for row, t in enumerate(at.tolist()):
        exact = following(0.01, q_f, c, q, t)
        assert loss[row] == pytest.approx(exact, rel=(2e-4 if c >= 1.0 else 2e-5) * q_f * (1.0 + q_f), abs=1e-10)


def test_the_start_of_the_forcing_is_a_unit_of_its_clock():
    """tau = 1/100 with unit u of the lr is tau = 1 with unit u/100, amplitudes and kernel in the other unit."""
    log = run(ROWS, np.ones(8), SCHEDULES["cosine to 0 after a warm-up"])
    coarse = law("forcing-memory", lr_unit=0.8, batch_unit=2.0, forcing_start=PURE_POWER)
    fine = law("forcing-memory", lr_unit=0.008, batch_unit=2.0)
    l_inf, a_f, q_f, a_0, a_1, c, q = VALUES
    wanted = [l_inf, a_f * 100.0**q_f, q_f, a_0 / 1e4, a_1 * 100.0**q_f / 1e4, c / 100.0, q]
    loss = fine.evaluate(np.array(wanted), fine.prepare(log))[0]
    np.testing.assert_allclose(coarse.evaluate(VALUES, coarse.prepare(log))[0], loss, rtol=1e-9)


def test_the_default_start_changes_no_bit():
    clock = np.concatenate([[0.0], np.geomspace(1e-12, 1e9, 1000)])
    np.testing.assert_array_equal(log_age(clock, 1.0), np.log1p(clock))
    np.testing.assert_allclose(log_age(clock, 0.01), np.log(0.01 + clock), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"clock_power": 0.0}, "clock_power must be positive"),
        ({"clock_power": "half"}, "clock_power must be a finite number"),
        ({"forcing_power": -1.0}, "forcing_power must be positive"),
        ({"injection_power": math.inf}, "injection_power must be"),
        ({"q_memory": -0.5}, "q_memory must be positive"),
        ({"lr_unit": -1.0}, "lr_unit must be positive"),
        ({"forcing_start": 0.0}, "forcing_start must be positive"),
        ({"forcing_start": None}, "forcing_start must be"),
        ({"batch_unit": math.nan}, "batch_unit must be"),
    ],
)
def test_options_that_are_refused(options, words):
    log = run(ROWS, np.ones(8), SCHEDULES["constant"])
    with pytest.raises(InputError, match=words):
        law("forcing-memory", **options).calibrated([log]).prepare(log)


def test_runs_that_are_refused():
    still = run([1, 2], [3.0, 3.0], from_arrays(np.zeros(3), np.ones(3)))
    moving = run([1, 2], [3.0, 3.0], constant(3, 0.1, 1.0))
    with pytest.raises(InputError, match="no units"):
        law("forcing-memory").prepare(moving)
    with pytest.raises(InputError, match="positive lr"):
        law("forcing-memory").calibrated([still])
    one = law("forcing-memory").calibrated([moving])
    with pytest.raises(InputError, match="never moves"):
        one.prepare(still)
    for at in (-1, 4, 1.5):
        with pytest.raises(InputError, match="whole numbers from 0 to 3"):
            one.prepare(moving, np.array([1.0, at]))


@pytest.mark.parametrize("tail", [1e-17, 1e-300])
def test_an_lr_too_small_for_the_clock(tail):
    schedule = from_arrays(np.r_[np.full(60, 0.8), np.full(30, tail)], np.full(90, 2.0))
    one = law("forcing-memory").calibrated([run(ROWS, np.ones(8), schedule)])
    loss, gradient = one.evaluate(VALUES, one.prepare(run(ROWS, np.ones(8), schedule)))
    assert np.isfinite(gradient).all()
    assert loss[5] == pytest.approx(loss[7], rel=1e-12)


def test_long_schedules_need_few_cells():
    """What one evaluation costs does not grow with the number of steps."""
    one = law("forcing-memory", lr_unit=1e-3, batch_unit=1.0)
    n = 100_000
    for schedule in (wsd(n, 1e-3, 1.0), cosine(n, 1e-3, 1.0, warmup=2000), eight_one_one(n, 1e-3, 1.0)):
        assert len(one.prepare(run([n], [3.0], schedule)).edges) < 900


def test_pieces_that_end_before_the_last_row_go_on_as_nothing():
    """A memory clock that stops keeps its injections: the last step, whatever follows."""
    short = pieces(np.ones(10), np.ones(10))
    one = law("forcing-memory", lr_unit=1.0, batch_unit=1.0)
    loss, _ = one.evaluate(VALUES, path_of_pieces(short, np.array([10.0])))
    wanted = literal(VALUES, constant(10, 1.0, 1.0), [10])
    np.testing.assert_allclose(loss, wanted, rtol=1e-8)
