"""Logs: the lr of every step from rows and configurations; each trap of a log is found and named."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from log_files import curve, lines_with, write_columns

from rfsim.checks import InputError
from rfsim.logs import Shape, read_run, recognise
from rfsim.logs.series import Series
from rfsim.logs.shapes import Warmup, roundest
from rfsim.logs.traps import late
from rfsim.schedules import from_arrays
from rfsim.surrogates import law, log_of_law

PEAK = 3e-4


def write(path, step, lr, loss=None):
    loss = curve(step) if loss is None else loss
    rows = [f"{int(s)},{float(r)!r},{float(x)!r}" for s, r, x in zip(step, lr, loss, strict=True)]
    path.write_text("\n".join(["step,lr,loss", *rows]), encoding="utf-8")
    return path


def export(path, step, lr, **config):
    config = {"lr": PEAK, "iterations": 20_000, "warmup_steps": 500, **config}
    history = {"iter": step.tolist(), "train/lr": list(map(float, lr)), "val/loss": curve(step).tolist()}
    path.write_text(json.dumps({"name": "x", "config": config, "history": history}), encoding="utf-8")
    return path


FALLS = {  # literal formulas, the lr over the peak as a function of the done fraction u and of the floor f
    "linear": lambda u, f: 1 - (1 - f) * u,
    "exponential": lambda u, f: f**u,
    "sqrt": lambda u, f: 1 - (1 - f) * np.sqrt(u),
    "cosine": lambda u, f: f + (1 - f) * (1 + np.cos(np.pi * u)) / 2,
    "inverse-sqrt": lambda u, f: (1 + (f**-2 - 1) * u) ** -0.5,
}


def truth(kind, start, end, floor, steps, warmup=0):
    s = np.arange(steps + 1.0)
    u = np.clip((s - start) / (end - start), 0, 1)
    lr = PEAK * FALLS[kind](u, floor)
    lr[:warmup] = lr[warmup] * (s[:warmup] + 1) / warmup
    return lr


# --- shapes from rows ------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    kind=st.sampled_from(sorted(FALLS)),
    start=st.integers(2000, 8000),
    length=st.integers(1500, 6000),
    floor=st.sampled_from([0.03, 0.1, 0.25]),
    every=st.integers(20, 130),
    offset=st.integers(0, 100),
    after=st.integers(-400, 800),
)
def test_shapes_are_found_exactly_from_subsampled_rows(kind, start, length, floor, every, offset, after):
    """Every step within 1e-6 of the peak up to the last row: rows at odd steps, floor seen or not."""
    end = start + length
    steps = end + after
    lr = truth(kind, start, end, floor, steps)
    rows = np.arange(offset, steps + 1, every)
    assume(after < -every or after > 3 * every)
    found = recognise(rows.astype(float), lr[rows])
    assert found is not None
    assert found.kind == kind
    assert found.start == start
    if after > 0:
        assert found.end == end
    within = np.arange(rows[-1] + 1)
    np.testing.assert_allclose(found.at(within.astype(float)), lr[within], atol=1e-6 * PEAK)


@pytest.mark.parametrize("warmup", [0, 500, 777])
@pytest.mark.parametrize("kind", sorted(FALLS))
def test_integral_equals_the_closed_sum(tmp_path, kind, warmup):
    """Rows every 100 steps after the warm-up; the sum over all steps against a literal loop over the formula."""
    floor, steps = 0.1, 20_000
    lr = truth(kind, 12_000, steps, floor, steps, warmup)
    rows = np.arange(1000, steps + 1, 100)
    got = read_run(write(tmp_path / "a.csv", rows, lr[rows]), warmup=warmup)
    assert got.schedule.steps == steps
    exact = 0.0
    for s in range(steps):
        u = max(s - 12_000, 0) / 8000
        exact += PEAK * float(FALLS[kind](np.float64(u), floor)) * (min(s / (warmup - 1), 1.0) if warmup else 1.0)
    assert np.asarray(got.schedule.lr).sum() == pytest.approx(exact, rel=1e-12)
    assert got.warmup == warmup
    assert lines_with(got, f"lr of every step recognised from {rows.size} rows: {kind} decay from 0.0003 at step 12000")
    how = f"a straight warm-up from 0, s/{warmup - 1}" if warmup else "taken as 0.0003, without warm-up"
    assert lines_with(got, "steps 0 to 999 have no lr row", how)


def test_closed_sums_of_a_linear_and_an_exponential_decay(tmp_path):
    """Arithmetic and geometric series, as numbers that no schedule code makes."""
    rows = np.arange(100, 20_001, 100)
    line = truth("linear", 12_000, 20_000, 0.1, 20_000)
    got = read_run(write(tmp_path / "a.csv", rows, line[rows]))
    assert np.asarray(got.schedule.lr).sum() == pytest.approx(PEAK * (12_000 + 8000 - 0.9 * 7999 / 2), rel=1e-12)
    power = truth("exponential", 12_000, 20_000, 0.1, 20_000)
    got = read_run(write(tmp_path / "a.csv", rows, power[rows]))
    assert np.asarray(got.schedule.lr).sum() == pytest.approx(
        PEAK * (12_000 + 0.9 / (1 - 0.1 ** (1 / 8000))), rel=1e-12
    )


@pytest.mark.parametrize(("kind", "first"), [("linear", 0.0), ("linear", 0.01), ("cosine", 0.01)])
def test_warm_up_in_the_rows(tmp_path, kind, first):
    s = np.arange(20_001.0)
    done = s[:500] / 500
    rise = done if kind == "linear" else (1 - np.cos(np.pi * done)) / 2
    lr = np.full(s.size, PEAK)
    lr[:500] = PEAK * (first + (1 - first) * rise)
    rows = np.arange(40, 20_001, 40)
    got = read_run(write(tmp_path / "a.csv", rows, lr[rows]))
    np.testing.assert_allclose(got.schedule.lr, lr[:-1], atol=1e-6 * PEAK)
    assert got.warmup == 500
    assert lines_with(got, f"{kind} warm-up from")


def test_piecewise_constant_drops_are_placed_at_the_roundest_step(tmp_path):
    rows = np.arange(128, 16_001, 128)
    lr = np.where(rows < 8000, PEAK, np.where(rows < 12_000, PEAK / 3, PEAK / 10))
    got = read_run(write(tmp_path / "a.csv", rows, lr))
    values = np.asarray(got.schedule.lr)
    assert (np.flatnonzero(np.diff(values)) + 1).tolist() == [8000, 12_000]
    assert lines_with(got, "becomes 0.0001 between the rows at steps 7936 and 8064: placed at the roundest step, 8000")
    assert lines_with(got, "becomes 3e-05 between the rows at steps 11904 and 12032", "12000")


@given(lower=st.integers(0, 10**6), width=st.integers(1, 5000))
def test_roundest_step(lower, width):
    """Against a literal search over all steps of the interval."""
    inside = range(lower + 1, lower + width + 1)
    zeros = [len(str(s)) - len(str(s).rstrip("0")) for s in inside]
    best = max(zeros)
    assert roundest(lower, lower + width) == max(s for s, z in zip(inside, zeros, strict=True) if z == best)


def test_numbers_with_few_digits_are_met_to_their_last_digit():
    """lr written with 7 decimals: the line is still found, with its start on the right step."""
    lr = truth("linear", 12_000, 20_000, 0.1, 20_000)
    rows = np.arange(100, 20_001, 100)
    found = recognise(rows.astype(float), np.round(lr[rows], 7))
    assert found is not None
    assert (found.kind, found.start) == ("linear", 12_000)


@pytest.mark.parametrize("digits", [4, 5, 6])
def test_numbers_with_few_significant_digits(digits):
    lr = truth("cosine", 12_000, 20_000, 0.1, 20_000)
    rows = np.arange(100, 20_001, 100)
    found = recognise(rows.astype(float), np.array([float(f"{value:.{digits}g}") for value in lr[rows]]))
    assert found is not None
    assert (found.kind, found.start, found.end) == ("cosine", 12_000, 20_000)


@pytest.mark.parametrize("kind", ["linear", "exponential", "inverse-sqrt"])
def test_a_decay_without_plateau_goes_on_to_step_0_and_to_its_warm_up(tmp_path, kind):
    s = np.arange(20_001.0)
    falling = PEAK * FALLS[kind](s / 20_000, 0.1)
    rows = np.arange(100, 20_001, 100)
    got = read_run(write(tmp_path / "a.csv", rows, falling[rows]))
    np.testing.assert_allclose(got.schedule.lr, falling[:-1], rtol=1e-9)
    rising = np.minimum(falling, PEAK * (s + 1) / 1050)  # they meet between two rows
    got = read_run(write(tmp_path / "b.csv", rows, rising[rows]))
    np.testing.assert_allclose(got.schedule.lr, rising[:-1], rtol=1e-6)


def test_rows_inside_the_warm_up_win_over_the_argument(tmp_path):
    rows = np.arange(0, 5001, 50)
    got = read_run(write(tmp_path / "a.csv", rows, PEAK * np.minimum(rows / 1000, 1.0)), warmup=1000)
    np.testing.assert_allclose(got.schedule.lr, PEAK * np.minimum(np.arange(5000) / 1000, 1.0), atol=1e-15)
    assert lines_with(got, "the rows before step 1000 are no straight warm-up over 1000 steps: they win")


def test_rows_of_every_step_are_taken_as_they_are(tmp_path):
    rng = np.random.default_rng(3)
    lr = PEAK * rng.uniform(0.5, 1.0, 301)
    got = read_run(write(tmp_path / "a.csv", np.arange(301), lr))
    np.testing.assert_array_equal(got.schedule.lr, lr)  # 301 rows, and so 301 steps
    assert lines_with(got, "from its own row, 301 rows")
    got = read_run(write(tmp_path / "a.csv", np.arange(1, 301), PEAK * np.minimum(np.arange(2, 302) / 50, 1.0)))
    assert np.asarray(got.schedule.lr)[0] == pytest.approx(PEAK / 50)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6), every=st.integers(20, 200))
def test_interpolation_bound_holds(tmp_path, seed, every):
    """A falling lr that no shape meets: the integral is off by no more than the line says."""
    rng = np.random.default_rng(seed)
    lr = PEAK * np.sort(rng.uniform(0.1, 1.0, 6001))[::-1]
    rows = np.arange(0, 6001, every)
    got = read_run(write(tmp_path / "a.csv", rows, lr[rows]))
    (line,) = lines_with(got, "no shape with few parameters", "straight lines between them")
    bound = float(line.split("off by at most ")[1].split(",")[0])
    last = int(rows[-1])
    assert abs(np.asarray(got.schedule.lr)[:last].sum() - lr[:last].sum()) <= bound * 1.01 + PEAK


def test_interpolation_bound_is_met_by_a_staircase(tmp_path):
    """Levels that fall right after a row: the integral is off by (every - 1)/every of the bound."""
    rng, rows, every = np.random.default_rng(0), np.arange(0, 6001, 100), 100
    level = PEAK * np.sort(rng.uniform(0.1, 1.0, rows.size))[::-1]
    lr = level[np.searchsorted(rows, np.arange(6001), side="left")]
    got = read_run(write(tmp_path / "a.csv", rows, lr[rows]))
    (line,) = lines_with(got, "straight lines between them")
    bound = float(line.split("off by at most ")[1].split(",")[0])
    off = abs(np.asarray(got.schedule.lr)[:6000].sum() - lr[:6000].sum())
    assert off == pytest.approx(bound * (every - 1) / every, rel=5e-3)  # the line has three digits


def test_rows_that_no_shape_meets_get_the_warm_up(tmp_path):
    """Rows from step 1000 on: steps before it rise in a straight line to the first row, or the first after the rise."""
    rows = np.arange(1000, 6001, 50)
    lr = PEAK * np.random.default_rng(0).uniform(0.5, 1.0, rows.size)
    for warmup, top in ((800, lr[0]), (1020, lr[0] + 0.4 * (lr[1] - lr[0]))):
        got = read_run(write(tmp_path / "a.csv", rows, lr), warmup=warmup)
        assert got.warmup == warmup
        rise = [top * min(s / (warmup - 1), 1.0) for s in range(min(warmup, 1000))]
        np.testing.assert_allclose(np.asarray(got.schedule.lr)[: len(rise)], rise, rtol=1e-12)
        np.testing.assert_allclose(np.asarray(got.schedule.lr)[rows[:-1]], lr[:-1], rtol=1e-12)


def test_lr_rows_that_end_before_the_loss(tmp_path):
    step = np.arange(50, 2001, 50)

    def cells(lr, last=1500):
        return [repr(float(x)) if s <= last else "" for s, x in zip(step, lr, strict=True)]

    def read(lr):
        return read_run(write_columns(tmp_path / "a.csv", step=step, loss=curve(step), lr=lr))

    fall = PEAK * np.where(step <= 1000, 1.0, 1.0 - (step - 1000) / 2000)
    with pytest.raises(InputError, match=r"lr after its last row at step 1500 .* inside a linear decay.*schedule="):
        read(cells(fall))
    assert read(cells(fall, 1950)).schedule.steps == 2000  # one interval is no gap
    rough = PEAK * np.random.default_rng(0).uniform(0.5, 1.0, step.size)
    rough[28:30] = PEAK * np.array([0.9, 0.8])
    with pytest.raises(InputError, match=r"lr after its last row at step 1500 .* inside a decay"):
        read(cells(rough))
    rough[28] = rough[29]
    got = read(cells(rough))
    assert lines_with(got, "the lr rows end at step 1500, the loss at 2000: the last lr is held")
    assert (np.asarray(got.schedule.lr)[1500:] == rough[29]).all()
    ended = PEAK * np.clip(1.0 - (step - 1000) / 500, 0.0, 1.0)
    got = read(cells(ended))
    assert lines_with(got, "the lr rows end at step 1500, the loss at 2000: from there on the lr is that of the shape")
    assert (np.asarray(got.schedule.lr)[1500:] == 0.0).all()
    assert lines_with(read(cells(np.full(step.size, PEAK))), "the lr rows end at step 1500, the loss at 2000")


def test_every_step_has_a_row_up_to_the_last(tmp_path):
    dense = np.arange(301)
    lr = [PEAK if s <= 200 else "" for s in dense]
    got = read_run(write_columns(tmp_path / "a.csv", step=dense, loss=curve(dense), lr=lr))
    assert lines_with(got, "the lr ends at step 200, the loss at 300: the last lr is held")
    assert (np.asarray(got.schedule.lr) == PEAK).all()


# --- configurations --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["linear", "sqrt", "cosine", "exponential"])
def test_configuration_confirmed_by_rows(tmp_path, kind):
    floor = 0.1 if kind == "exponential" else 0.0
    lr = truth(kind, 16_000, 20_000, floor, 20_000, 500)
    rows = np.arange(50, 20_001, 50)
    config = {"scheduler": "wsd", "decay_type": kind, "wsd_fract_decay": 0.2, "wsd_final_lr_scale": floor}
    got = read_run(export(tmp_path / "a.json", rows, lr[rows], **config))
    np.testing.assert_allclose(got.schedule.lr, lr[:-1], atol=1e-12)
    assert lines_with(got, "from the configuration", f"{kind} decay", "largest deviation from 400 logged rows")
    assert got.warmup == 500


def test_configuration_alone_and_against_the_rows(tmp_path):
    rows = np.arange(50, 20_001, 50)
    config = {"scheduler": "cosine", "min_lr": PEAK / 10}
    path = export(tmp_path / "a.json", rows, np.zeros(rows.size), **config)
    got = read_run(path)
    expected = truth("cosine", 500, 20_000, 0.1, 20_000, 500)
    np.testing.assert_allclose(got.schedule.lr, expected[:-1], rtol=1e-12)
    assert lines_with(got, "train/lr is 0 in all 400 rows: ignored")
    assert lines_with(got, "from the configuration alone, no row to check it with")
    line = truth("linear", 16_000, 20_000, 0.1, 20_000)
    got = read_run(export(tmp_path / "a.json", rows, line[rows], **config))
    np.testing.assert_allclose(got.schedule.lr, line[:-1], atol=1e-12)
    assert lines_with(got, "the configuration's schedule deviates from the rows by up to", "the rows win")


@pytest.mark.parametrize(
    ("config", "knots"),
    [
        ({"lr_scheduler_type": "cosine", "warmup_ratio": 0.1}, {199: 1.0, 1100: 0.5}),
        ({"lr_scheduler_type": "cosine", "warmup_steps": 0, "warmup_ratio": 0.1}, {199: 1.0, 1100: 0.5}),
        ({"lr_scheduler_type": "linear", "warmup": 0.1}, {99: 0.5, 1100: 0.5, 1999: 1 / 1800}),
        ({"lr_decay_style": "WSD", "min_lr": PEAK / 100, "lr_wsd_decay_iters": 400}, {1600: 1.0, 1800: 0.505}),
        (
            {"scheduler": "wsd", "wsd_final_lr_scale": 0.2, "min_lr": 0.0, "wsd_fract_decay": 0.2, "eta_min": 1e-9},
            {1800: 0.6},
        ),
        ({"lr_decay_style": "cosine", "min_lr": PEAK / 10, "lr_decay_iters": 1000}, {500: 0.55, 1500: 0.1}),
        (
            {"lr_decay_style": "cosine", "min_lr": 0.0, "lr_decay_iters": 1000, "lr_warmup_fraction": 0.1},
            {49: 0.5, 99: 1.0, 550: 0.5},
        ),
        ({"scheduler": "cosine", "min_lr_ratio": 0.2}, {1000: 0.6}),
        ({"scheduler": "cosine", "min_lr": -1.0}, {1000: 0.5}),
    ],
)
def test_configurations_without_rows(tmp_path, config, knots):
    step = np.arange(50, 2001, 50)
    history = [{"step": int(s), "loss": float(x)} for s, x in zip(step, curve(step), strict=True)]
    whole = {"config": {"lr": PEAK, "max_steps": 2000, **config}, "history": history}
    (tmp_path / "a.json").write_text(json.dumps(whole), encoding="utf-8")
    got = read_run(tmp_path / "a.json")
    assert np.asarray(got.schedule.lr)[list(knots)] == pytest.approx(PEAK * np.array(list(knots.values())), rel=1e-6)
    said = config.get("min_lr", config.get("min_lr_ratio", -1.0)) >= 0.0
    assert bool(lines_with(got, "it does not say where the decay ends: taken as 0")) is not said


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (
            {"decay_type": "exp", "wsd_fract_decay": 0.2},
            "does not say where the exponential decay ends; give schedule=",
        ),
        ({"warmup_ratio": 3, "wsd_fract_decay": 0.2}, "names no schedule that is known"),  # of what?
        ({"lr": 10**400, "wsd_fract_decay": 0.2}, "names no schedule that is known"),
    ],
)
def test_configurations_that_do_not_tell_the_lr(tmp_path, config, told):
    history = [{"step": s, "loss": float(curve(s))} for s in range(50, 2001, 50)]
    whole = {"config": {"scheduler": "wsd", "lr": PEAK, "max_steps": 2000, **config}, "history": history}
    (tmp_path / "a.json").write_text(json.dumps(whole), encoding="utf-8")
    with pytest.raises(InputError, match=told):
        read_run(tmp_path / "a.json")


def test_a_warm_up_that_is_said_beside_that_of_the_configuration(tmp_path):
    """Rows that begin after it, or no rows, take what is said; rows inside it have their own, and are told to win."""
    config = {"scheduler": "constant", "warmup_steps": 300}
    rows = np.arange(50, 20_001, 50)
    lr = PEAK * np.minimum((rows + 1) / 300, 1.0)
    every = np.arange(20_000)
    for first, own, steps in ((2000, lr, 1000), (50, np.zeros(rows.size), 1000), (50, lr, 300)):
        kept = rows >= first
        path = export(tmp_path / "a.json", rows[kept], own[kept], **config)
        got = read_run(path, warmup=1000)
        np.testing.assert_allclose(got.schedule.lr, PEAK * np.minimum((every + 1) / steps, 1.0), rtol=1e-9)
        assert got.warmup == (steps if steps == 1000 else pytest.approx(300, abs=1))
        assert bool(lines_with(got, "no straight warm-up over 1000 steps: they win")) is (steps == 300)
        assert read_run(path).warmup == 300
    bent = PEAK * np.minimum((rows + 1) / 300, 1.0) ** 3  # neither straight nor a cosine: the rows count
    got = read_run(export(tmp_path / "b.json", rows, bent, **config))
    np.testing.assert_allclose(np.asarray(got.schedule.lr)[rows[:-1]], bent[:-1], rtol=1e-9)


def test_a_warm_up_beside_rows_of_every_step_is_told(tmp_path):
    dense = np.arange(301)
    got = read_run(write(tmp_path / "a.csv", dense, np.full(301, PEAK)), warmup=50)
    assert (np.asarray(got.schedule.lr) == PEAK).all()
    assert got.warmup == 0
    assert lines_with(got, "the rows begin at step 0: warmup=50 is not used")


def test_rows_five_percent_off_the_configuration_are_interpolated(tmp_path):
    """They wave about the plan, so that no shape meets them: the rows count, not the plan."""
    rows = np.arange(0, 20_001, 50)
    lr = truth("linear", 16_000, 20_000, 0.5, 20_000, 500)[rows] * (1.0 + 0.05 * np.sin(rows))
    config = {"scheduler": "wsd", "wsd_fract_decay": 0.2, "wsd_final_lr_scale": 0.5}
    got = read_run(export(tmp_path / "a.json", rows, lr, **config))
    assert lines_with(got, "straight lines between them")
    np.testing.assert_allclose(np.asarray(got.schedule.lr)[rows[:-1]], lr[:-1], rtol=1e-12)
    near = truth("linear", 16_000, 20_000, 0.5, 20_000, 500)[rows] * (1.0 + 0.005 * np.sin(rows))
    assert lines_with(read_run(export(tmp_path / "b.json", rows, near, **config)), "from the configuration")


@pytest.mark.parametrize("shift", [-1, 1])
def test_rows_one_step_off_the_configuration(tmp_path, shift):
    """One step late is shifted back; one step early, as schedulers that end on the last step do, is kept."""
    lr = truth("cosine", 500 + shift, 20_000 + shift, 0.0, 20_000)
    rows = np.arange(550, 20_001, 50)
    got = read_run(export(tmp_path / "a.json", rows, lr[rows], scheduler="cos", cos_final_lr=0.0))
    exact = lr if shift < 0 else truth("cosine", 500, 20_000, 0.0, 20_000)
    np.testing.assert_allclose(np.asarray(got.schedule.lr)[501:], exact[501:20_000], atol=1e-12)
    words = "one step early (start at 499, end at 19999): kept as logged" if shift < 0 else "one step late: shifted"
    assert lines_with(got, words)


def test_no_source_of_the_lr(tmp_path):
    rows = np.arange(50, 2001, 50)
    with pytest.raises(InputError, match=r"lr must be above 0 somewhere, got 0 in all 40 rows"):
        read_run(write(tmp_path / "a.csv", rows, np.zeros(rows.size)))
    with pytest.raises(InputError, match=r"lr must not be negative, got -1"):
        read_run(write(tmp_path / "a.csv", rows, -np.ones(rows.size)))
    with pytest.raises(InputError, match=r"begin inside a linear decay; give parents=, warmup= or schedule="):
        read_run(write(tmp_path / "a.csv", rows + 5000, PEAK * (1 - rows / 4000)))
    with pytest.raises(InputError, match=r"cannot be known from the rows"):
        read_run(write(tmp_path / "a.csv", rows + 5000, PEAK * np.random.default_rng(0).uniform(0.5, 1, rows.size)))


# --- traps -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", [0.0, 7e-4, 0.7 * PEAK])
def test_fake_last_lr(tmp_path, last):
    rows = np.arange(50, 5001, 50)
    got = read_run(write(tmp_path / "a.csv", rows, np.append(np.full(99, PEAK), last)))
    assert (np.asarray(got.schedule.lr) == PEAK).all()
    assert got.schedule.steps == 5000
    assert lines_with(got, f"the last logged lr, {last:g} at step 5000", "no anneal took place; ignored")


def test_a_true_last_lr_of_zero_is_kept(tmp_path):
    rows = np.arange(50, 20_001, 50)
    for kind in ("linear", "sqrt", "cosine"):
        lr = truth(kind, 16_000, 20_000, 0.0, 20_000)
        got = read_run(write(tmp_path / "a.csv", rows, lr[rows]))
        assert not lines_with(got, "last logged lr")
        np.testing.assert_allclose(got.schedule.lr, lr[:-1], atol=1e-12)


def test_last_point_of_another_evaluation(tmp_path):
    rows = np.arange(50, 5001, 50)
    noise = 1 + 3e-4 * np.random.default_rng(1).standard_normal(rows.size)
    loss = curve(rows) * noise
    loss[-1] += 0.033
    got = read_run(write(tmp_path / "a.csv", rows, np.full(100, PEAK), loss))
    assert got.step[-1] == 4950
    assert lines_with(got, "loss: the last point", "at step 5000", "taken for another evaluation and left out")
    loss[-1] -= 0.066
    got = read_run(write(tmp_path / "a.csv", rows, np.full(100, PEAK), loss))
    assert got.step[-1] == 4950
    fell = np.append(np.full(98, PEAK), [PEAK / 10, PEAK / 10])  # a loss that falls behind a drop of the lr is a point
    assert read_run(write(tmp_path / "a.csv", rows, fell, loss)).step[-1] == 5000
    loss[-1] += 0.033
    assert read_run(write(tmp_path / "a.csv", rows, np.full(100, PEAK), loss)).step[-1] == 5000


def test_a_last_point_that_is_off_by_a_thousandth_stays(tmp_path):
    """The rows before it are exact, so that any noise is many times theirs: 0.2 % of the loss is the least."""
    rows = np.arange(5000, 10_001, 50)
    for factor, last in ((1.001, 10_000), (0.999, 10_000), (1.003, 9950)):
        loss = np.append(curve(rows)[:-1], factor * curve(rows[-1]))
        assert read_run(write(tmp_path / "a.csv", rows, np.full(rows.size, PEAK), loss)).step[-1] == last


def dropped(rows, at, seen):
    """Loss that falls quickly after the lr dropped at step `at`, and the rows of an lr that shows it from `seen` on."""
    loss = curve(rows) - 0.05 * (1 - np.exp(-np.maximum(rows - at, 0) / 100))
    return loss, np.where(rows < seen, PEAK, PEAK / 10)


def test_lr_that_is_logged_one_row_late(tmp_path):
    rows = np.arange(128, 16_001, 128)
    loss, lr = dropped(rows, 8000, 8100)  # the row 8064 still has the old lr although the loss has reacted
    got = read_run(write(tmp_path / "a.csv", rows, lr, loss))
    assert lines_with(got, "the loss reacts to the drop of the lr one row before the lr shows it")
    assert (np.flatnonzero(np.diff(np.asarray(got.schedule.lr))) + 1).tolist() == [8000]
    loss, lr = dropped(rows, 8000, 8000)
    good = read_run(write(tmp_path / "a.csv", rows, lr, loss))
    assert not lines_with(good, "reacts")
    assert (np.flatnonzero(np.diff(np.asarray(good.schedule.lr))) + 1).tolist() == [8000]


@pytest.mark.parametrize("dense", [False, True])
def test_lr_that_is_logged_one_step_late(tmp_path, dense):
    if dense:
        rows, lr = np.arange(3001), np.where(np.arange(3001) < 2001, PEAK, PEAK / 10)
        expected = np.where(np.arange(3000) < 2000, PEAK, PEAK / 10)
    else:
        rows = np.arange(50, 20_001, 50)
        lr = truth("linear", 12_001, 20_001, 0.1, 20_000)[rows]
        expected = truth("linear", 12_000, 20_000, 0.1, 20_000)[:-1]
    got = read_run(write(tmp_path / "a.csv", rows, lr))
    assert lines_with(got, "one step after a round number: lr logged one step late, shifted back")
    np.testing.assert_allclose(np.asarray(got.schedule.lr)[: expected.size], expected, atol=1e-12)


def drop_law(rate, exponent=1.5):
    """The law and its values, with a memory that forgets at `rate`."""
    values = {"L_inf": 2.8, "A_F": 20.0, "q_F": 0.45, "A_0": 0.3 * rate, "A_1": 0.0, "c_K": rate, "q_K": exponent}
    return law("forcing-memory", lr_unit=PEAK, batch_unit=1.0), values


@pytest.mark.parametrize("rate", [0.02, 0.2, 1.0])
@pytest.mark.parametrize("noise", [0.0, 1e-4])
def test_a_drop_that_is_logged_one_step_late(tmp_path, rate, noise):
    """Rows every 50 steps: row 8000 still has the old lr, and the loss of row 8050 has seen fifty steps of the new."""
    made, values = drop_law(rate)
    for at, by in ((8000, 1), (8000, 0), (8050, 0)):
        lr = np.where(np.arange(12_001) < at, PEAK, PEAK / 10)
        log = log_of_law(1, made, values, from_arrays(lr[:-1], 1.0), every=50, noise=noise)
        step = log.step.astype(int)
        got = read_run(write(tmp_path / "a.csv", step, lr[step - by], log.loss))
        assert (np.flatnonzero(np.diff(np.asarray(got.schedule.lr))) + 1).tolist() == [at]
        assert len(lines_with(got, "one step late, moved back by one step")) == by


@pytest.mark.parametrize("every", [20, 50, 64, 100])
@pytest.mark.parametrize("noise", [0.0, 1e-4, 1e-3])
def test_a_drop_in_its_place_is_not_moved(every, noise):
    """Slow and quick memories of short and long tails, small and large drops, at any row; no case is moved."""
    for number, (rate, exponent, to) in enumerate(
        (rate, exponent, to) for rate in (0.002, 0.2, 5.0) for exponent in (0.6, 2.5) for to in (0.1, 0.55)
    ):
        made, values = drop_law(rate, exponent)
        for row in (20, 25, 30):
            lr = np.where(np.arange((row + 12) * every + 1) < row * every, PEAK, to * PEAK)
            log = log_of_law(number, made, values, from_arrays(lr[:-1], 1.0), every=every, noise=noise)
            assert late(Series("loss", log.step, log.loss), log.step, lr[log.step.astype(int)]) is None


@pytest.mark.parametrize("at", [8030, 8060, 8090])
def test_a_drop_between_two_rows_is_not_the_round_row_before_it(at):
    """Rows every 100 steps and a slow memory: what the loss fell by up to row 8100 leaves no room for step 8000."""
    made, values = drop_law(0.002)
    lr = np.where(np.arange(12_001) < at, PEAK, PEAK / 10)
    log = log_of_law(1, made, values, from_arrays(lr[:-1], 1.0), every=100)
    assert late(Series("loss", log.step, log.loss), log.step, lr[log.step.astype(int)]) is None


def test_noise_is_no_reaction_to_a_drop():
    """500 exact drops under noise alone, at which the curve has no kink: ten times the spread is never left."""
    step = np.arange(50.0, 3001.0, 50.0)
    lr = np.where(step < 2000, PEAK, PEAK / 10)
    draws = np.random.default_rng(2).standard_normal((500, step.size))
    moved = [late(Series("loss", step, curve(step) * np.exp(1e-4 * z)), step, lr) for z in draws]
    assert moved == [None] * 500


def test_a_loss_with_fewer_rows_than_the_lr_does_not_say_which_row_is_late():
    """lr every 10 steps, loss every 100: that it reacts before step 7900 says more than one row of the lr."""
    step, rows = np.arange(100.0, 16_001.0, 100.0), np.arange(10.0, 16_001.0, 10.0)
    loss, _ = dropped(step, 7850, 0)
    seen = np.where(rows < 8000, PEAK, PEAK / 10)
    assert late(Series("loss", step, loss), rows, seen) is None
    assert late(Series("loss", step, loss), step, seen[9::10]) == "row"


def test_a_short_decay_is_no_late_drop(tmp_path):
    """1, .7, .4, .1 of the peak in four rows: the loss moves with the first of them, before the lr has halved."""
    made, values = drop_law(0.2)
    lr = PEAK * (1.0 - 0.9 * np.clip((np.arange(10_001) - 9000) / 300, 0.0, 1.0))
    log = log_of_law(1, made, {**values, "A_0": 0.02}, from_arrays(lr[:-1], 1.0), every=100)
    step = log.step.astype(int)
    got = read_run(write(tmp_path / "a.csv", step, lr[step], log.loss))
    assert not lines_with(got, "reacts")
    np.testing.assert_allclose(got.schedule.lr, lr[:-1], atol=1e-12)


@pytest.mark.parametrize("config", [False, True])
@pytest.mark.parametrize("every", [10, 100])
def test_the_warm_up_is_late_with_the_rest(tmp_path, every, config):
    """Row s has the lr of the update before it; from step 0 on each step gets its own."""
    expected = truth("cosine", 500, 20_000, 0.0, 20_000, 500)[:-1]
    rows = np.arange(every, 20_001, every)
    if config:
        path = export(tmp_path / "a.json", rows, expected[rows - 1], scheduler="cos", cos_final_lr=0.0)
    else:
        path = write(tmp_path / "a.csv", rows, expected[rows - 1])
    got = read_run(path)
    assert lines_with(got, "one step late", "shifted back")
    np.testing.assert_allclose(got.schedule.lr, expected, atol=1e-12)


@pytest.mark.parametrize("rise", ["linear", "cosine"])
def test_a_shape_moved_with_its_warm_up(rise):
    shape, step = Shape("sqrt", PEAK, 60.0, 90.0, 1e-4, Warmup(20.0, 1e-5, rise)), np.arange(120.0)
    np.testing.assert_allclose(shape.shifted(-3.0, warmup=True).at(step), shape.at(step + 3.0), atol=1e-18)
    np.testing.assert_array_equal(shape.shifted(-3.0).at(step)[:20], shape.at(step)[:20])


def test_a_warm_up_that_is_in_no_row_is_not_late(tmp_path):
    expected = truth("linear", 12_000, 20_000, 0.1, 20_000)[:-1]
    expected[:500] = PEAK * np.arange(500) / 499
    rows = np.arange(550, 20_001, 50)
    got = read_run(write(tmp_path / "a.csv", rows, expected[rows - 1]), warmup=500)
    assert lines_with(got, "lr logged one step late, shifted back")
    np.testing.assert_allclose(np.asarray(got.schedule.lr)[:20_000], expected, atol=1e-12)


def test_a_lone_row_of_another_series_does_not_move_the_curve(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [{"step": int(s), "val_loss": float(curve(s)), "lr": PEAK} for s in range(50, 3001, 50)]
    rows.append({"step": 3000, "final_val_loss": float(curve(3000)) - 0.02})
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    got = read_run(path)
    assert got.loss[-1] == pytest.approx(curve(3000))
    assert lines_with(got, "final_val_loss is one point", "-0.0200 off the last point of val_loss")


def test_words_of_a_shape():
    assert Shape("constant", 1e-3).words() == "constant 0.001"
    assert Shape("stages", 1e-3, stages=((10.0, 1e-4),)).words() == "0.001, then 0.0001 from step 10"
