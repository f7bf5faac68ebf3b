"""Figures: the numbers behind them against anchors and independent sums, and the runner of their files."""

import json
import subprocess
import sys
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from rfsim import figures, schedules
from rfsim.checks import InputError, RunError
from rfsim.exponents import forcing_exponent
from rfsim.figures import exponents, gallery, paired_schedules, rapid_target, regime_map, schedule_map, two_groupings
from rfsim.figures.slopes import sampled_slope, slope_weights
from rfsim.figures.style import image
from rfsim.measure import family_threshold, fit_exponent
from rfsim.problems import power_law
from rfsim.provenance import json_ready
from rfsim.regimes import regime_from_exponents
from rfsim.routes import recursion
from rfsim.schedules import constant
from rfsim.sources.population import population

NAMES = (
    "regime_map",
    "schedule_map",
    "sweep_map",
    "exponents",
    "finite_bulk",
    "rapid_target",
    "two_groupings",
    "three_layers",
    "width_gap",
    "paired_schedules",
    "anneal",
    "fit_and_transfer",
    "memory_profile",
    "fitted_regime",
)


@cache
def computed(name):
    """Data of a figure at the test scale, through JSON as in its side file."""
    return json.loads(json.dumps(json_ready(gallery.load(name).compute("test")), allow_nan=False))


def area(corners):
    x, y = np.transpose(np.array(corners, dtype=float))
    return 0.5 * abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))


# --- every figure ----------------------------------------------------------------------------------------------------


def test_names_are_listed_without_matplotlib_or_jax():
    code = (
        "import sys, rfsim.figures as f; assert f.names() == tuple(f.FIGURES);"
        "print(*f.names()); sys.exit('matplotlib' in sys.modules or 'jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert tuple(done.stdout.split()) == NAMES == figures.names()


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_has_words_axes_and_the_same_bytes_every_time(name):
    module, data = gallery.load(name), computed(name)
    told = module.caption(data)
    assert len(told) > 200
    assert "nan" not in told.lower().split()
    assert module.title
    assert len(module.alt) > 50
    first, second = module.draw(data), module.draw(data)
    for axes in first.axes:
        assert axes.get_xlabel()
        assert axes.get_title(loc="left")
    assert first.axes[0].get_ylabel()
    for kind, start in (("png", b"\x89PNG"), ("pdf", b"%PDF")):
        bytes_of = image(first, kind)
        assert bytes_of.startswith(start)
        assert bytes_of == image(second, kind)
        assert b"Date" not in bytes_of
        assert b"Software" not in bytes_of


@pytest.mark.parametrize("name", NAMES)
def test_text_inside_a_panel_does_not_overlap_other_text(name):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = gallery.load(name).draw(computed(name))
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    for axes in figure.axes:
        texts = [*axes.texts, *axes.get_xticklabels(), axes.xaxis.label, axes.yaxis.label]
        boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts if text.get_text()]
        for place, (word, box) in enumerate(boxes):
            for other, other_box in boxes[:place]:
                assert not box.padded(-1.0).overlaps(other_box.padded(-1.0)), (word, other)


@pytest.mark.parametrize("name", NAMES)
def test_every_scale_has_parameters_that_fit_into_json(name):
    module = gallery.load(name)
    for scale in figures.SCALES:
        assert "seed" in json.loads(json.dumps(json_ready(module.parameters(scale)), allow_nan=False))


# --- the runner ------------------------------------------------------------------------------------------------------


@pytest.fixture
def fake(monkeypatch):
    """A figure that counts what is called, in place of the first one."""
    calls = []
    settings = {"size": 3, "seed": 5}

    def draw(data):
        calls.append("draw")
        from matplotlib.figure import Figure

        figure = Figure(figsize=(1, 1))
        figure.subplots().plot(data["y"])
        return figure

    def compute(scale):
        calls.append("compute")
        return {"y": np.arange(float(settings["size"])), "bad": np.nan}

    module = SimpleNamespace(
        title="A title",
        alt="A line.",
        parameters=lambda scale: dict(settings),
        compute=compute,
        caption=lambda data: f"{len(data['y'])} points",
        draw=draw,
    )
    monkeypatch.setattr(gallery, "load", lambda name: module)
    return SimpleNamespace(calls=calls, settings=settings, module=module)


def test_run_writes_three_files_and_a_complete_side_file(fake, tmp_path):
    lines = []
    (record,) = figures.run("exponents", out=tmp_path / "new", progress=lines.append)
    assert lines == ["figure 1 of 1: exponents"]
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "exponents.json",
        "exponents.pdf",
        "exponents.png",
    ]
    side = json.loads(record.json.read_text())
    assert side["data"] == {"y": [0.0, 1.0, 2.0], "bad": None}
    assert side["caption"] == record.caption == "3 points"
    assert side["parameters"] == record.parameters == {"size": 3, "seed": 5}
    assert side["seed"] == record.seed == 5
    assert side["scale"] == "quick"
    assert {"rfsim", "jax", "numpy", "matplotlib"} <= side["versions"].keys()
    assert record.png.read_bytes().startswith(b"\x89PNG")
    assert record.seconds > 0.0


def test_a_finished_figure_is_not_computed_again(fake, tmp_path):
    (first,) = figures.run("exponents", out=tmp_path)
    before = {path: path.read_bytes() for path in (first.png, first.pdf, first.json)}
    fake.calls.clear()
    (second,) = figures.run(["exponents"], out=tmp_path)
    assert fake.calls == []
    assert second == first._replace(seconds=0.0)
    first.png.unlink()
    figures.run("exponents", out=tmp_path)
    assert fake.calls == ["draw"]
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("change", ["parameters", "scale", "version", "broken file"])
def test_a_figure_of_other_origin_is_computed_again(fake, tmp_path, monkeypatch, change):
    (first,) = figures.run("exponents", out=tmp_path)
    fake.calls.clear()
    if change == "parameters":
        fake.settings["size"] = 4
    elif change == "version":
        monkeypatch.setattr(gallery, "__version__", "0.0.0")
    elif change == "broken file":
        first.json.write_text('{"versions": {')
    figures.run("exponents", scale="standard" if change == "scale" else "quick", out=tmp_path)
    assert fake.calls == ["compute", "draw"]


def test_an_interruption_leaves_no_side_file_that_speaks_for_other_pictures(fake, tmp_path):
    (first,) = figures.run("exponents", out=tmp_path)
    old = first.json.read_bytes()

    def interrupted(data):
        raise KeyboardInterrupt

    fake.settings["size"], compute, fake.module.compute = 4, fake.module.compute, interrupted
    with pytest.raises(KeyboardInterrupt):
        figures.run("exponents", out=tmp_path)
    assert first.json.read_bytes() == old  # nothing was touched yet
    fake.module.compute, fake.module.draw = compute, interrupted
    with pytest.raises(KeyboardInterrupt):
        figures.run("exponents", out=tmp_path)
    assert not first.json.exists()


def test_bad_names_scales_and_folders_are_refused_before_any_work(fake, tmp_path):
    with pytest.raises(InputError, match=r"'nothing' is not known.*regime_map.*two_groupings"):
        figures.run(["regime_map", "nothing"], out=tmp_path / "a")
    with pytest.raises(InputError, match="scale must be one of full, quick, standard"):
        figures.run(scale="huge", out=tmp_path / "a")
    assert not (tmp_path / "a").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        figures.run("regime_map", out=tmp_path / "file")
    assert fake.calls == []


def test_a_real_figure_passes_through_the_runner(tmp_path, monkeypatch):
    monkeypatch.setattr(gallery, "SCALES", (*gallery.SCALES, "test"))
    (first,) = figures.run("exponents", "test", tmp_path / "a")
    (second,) = figures.run("exponents", "test", tmp_path / "b")
    for path, other in zip(first[6:9], second[6:9], strict=True):
        assert path.read_bytes() == other.read_bytes()
    assert json.loads(first.json.read_text())["data"] == computed("exponents")


# --- regime map ------------------------------------------------------------------------------------------------------


def test_every_polygon_carries_the_label_of_its_inside():
    regions = computed("regime_map")["power_law"]
    labels = regime_map.region_labels(regions)
    assert labels == {name: "" if name == "excluded" else name for name in regions}
    assert set(labels) - {"excluded"} == {"FB1", "FB2", "LM1", "LM2", "LM3", "IM1", "IM2", "IM3"}
    assert sum(map(area, regions.values())) == pytest.approx(1.2 * 1.5)  # they fill the panel without overlap
    response = computed("regime_map")["response"]
    for name, corners in response.items():
        assert regime_from_exponents(*np.mean(corners, axis=0)).label == name
    assert sum(map(area, response.values())) == pytest.approx(2.1 * 2.0)


def test_measured_exponents_lie_on_the_closed_forms():
    points = computed("regime_map")["points"]
    assert [point["name"] for point in points] == [point["label"] for point in points]
    for point in points:
        known = [key for key in ("q_forcing", "q_memory") if point["closed"][key] is not None]
        assert known == (["q_forcing"] if point["label"].startswith("FB") else ["q_forcing", "q_memory"])
        for key in known:
            assert abs(point["measured"][key] - point["closed"][key]) < 0.01
        assert np.hypot(*np.subtract(point["measured_place"], (point["alpha"], point["beta"]))) < 0.01
        assert point["label_from_measured"] == (None if point["label"].startswith("FB") else point["label"])


# --- gap exponents ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("LM", {0.35: 0.064, 0.5: 0.212, 0.65: 0.354, 0.8: 0.484, 0.95: 0.596, 1.25: 0.732}),
        ("IM", {0.25: 0.197, 0.5: 0.454, 0.75: 0.710, 1.0: 0.956, 1.35: 1.198}),
    ],
)
def test_window_exponents_are_the_published_ones(name, expected):
    source = population(power_law(*exponents.POINTS[name], noise_var=25.0))
    for vartheta, value in expected.items():
        assert exponents.window_exponent(source, vartheta, (40.0, 1e4)) == pytest.approx(value, abs=1.5e-3)


def test_measured_gap_exponents_follow_the_window_and_the_late_window_is_nearer_the_limit():
    for name, limits in (("LM", (0.1, 0.55)), ("IM", (0.5, 7 / 6))):
        found = computed("exponents")["memory"][name]
        assert found["limit"] == pytest.approx(limits)
        assert found["measured"] == pytest.approx(found["finite_window"], abs=5e-3)
        dense = np.array(found["curve_vartheta"])
        limit = np.interp(dense, *np.transpose(found["limit_line"]))
        inside = dense > found["edge"]
        early, late = (np.abs(np.array(found[key]) - limit)[inside] for key in ("curve", "late_curve"))
        assert late.mean() < 0.4 * early.mean()
        assert late.max() < 0.06


# --- rapid target ----------------------------------------------------------------------------------------------------


def test_exact_risk_of_the_rapid_target_hits_its_anchors():
    data = computed("rapid_target")
    assert data["width"] == 524288
    assert data["kappa"] == pytest.approx(0.101982, abs=5e-7)
    assert data["exact_fit"]["exponent"] == pytest.approx(0.7691, abs=1e-3)
    at = np.array([20, 80, 200, 1000, 2000, 20000])
    curve = recursion.risk(rapid_target.rapid_spectrum(524288), constant(20000, 0.05, 16), at=at)
    anchors = [0.181651, 5.66772e-3, 4.08414e-4, 9.8702e-5, 5.84896e-5, 9.83745e-6]
    np.testing.assert_allclose(curve.risk, anchors, rtol=1e-5)
    forcing, _ = rapid_target.laplace_sums(524288, at)
    np.testing.assert_allclose(forcing[1:3], [4.90467e-3, 6.4556e-5], rtol=1e-5)
    np.testing.assert_allclose(curve.forcing[:3], forcing[:3], rtol=1e-9)
    assert data["risk"][-1] == pytest.approx(9.83745e-6, rel=1e-5)


def test_merged_modes_of_the_rapid_target_equal_all_modes_one_by_one():
    width, steps, lr, batch = 300, 200, 0.05, 16
    lam = np.arange(1.0, width + 1) ** -0.8
    rho = lam * np.exp(-np.arange(1.0, width + 1))
    rho /= rho.sum()
    kernel = lam**2
    for _ in range(steps):
        q = (1 - lr * lam) ** 2 + lr**2 * lam**2 / batch
        rho = q * rho + lr**2 / batch * lam**2 * rho.sum()
        kernel = q * kernel
    curve = recursion.risk(rapid_target.rapid_spectrum(width), constant(steps, lr, batch), at=[steps])
    assert curve.risk[0] == pytest.approx(rho.sum(), rel=1e-10)
    full = recursion.risk(rapid_target.literal_spectrum(width), constant(steps, lr, batch), at=[steps])
    assert full.risk[0] == pytest.approx(rho.sum(), rel=1e-12)
    assert rapid_target.laplace_sums(width, np.array([steps]))[1][0] == pytest.approx(kernel.sum(), rel=1e-10)


def test_masses_are_sums_over_small_eigenvalues():
    width, below = 40, np.array([1.0, 0.5, 0.1, 40**-0.8, 0.01])
    lam = np.arange(1.0, width + 1) ** -0.8
    for found, weight in zip(
        rapid_target.masses(width, below), (lam * np.exp(-np.arange(1.0, width + 1)), lam**2), strict=True
    ):
        expected = [weight[lam <= bound].sum() / weight.sum() for bound in below]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert found[0] == 1.0
        assert found[-1] == 0.0


def test_sampled_rapid_target_agrees_with_the_exact_curve_of_its_width():
    sampled = computed("rapid_target")["sampled"]
    records = len(sampled["time"]) - 1
    assert sampled["largest_z"] < family_threshold(records, 1e-4, sampled["runs"] - 1)
    low, mean, high = (np.array(sampled[key]) for key in ("low", "mean", "high"))
    assert (low <= high).all()
    assert (low[1:] < mean[1:]).mean() > 0.9
    assert (mean[1:] < high[1:]).mean() > 0.9


# --- schedule map ----------------------------------------------------------------------------------------------------


def test_decisions_need_more_than_their_uncertainty():
    decide = schedule_map.decide
    assert decide((-0.1, 0.2), (-0.6, 0.1)).label == "destroy"
    assert decide((0.0, 0.0), (-0.6, 0.1)).label == "destroy"
    assert decide((0.1, 0.2), (-0.6, 0.1)).label == "undecided"
    assert decide((0.3, 0.1), (-0.2, 0.1)).label == "change"
    assert decide((0.3, 0.1), (0.2, 0.1)).label == "preserve"
    assert decide((0.3, 0.1), (0.05, 0.1)).label == "undecided"


@pytest.mark.parametrize("alpha", [0.4, 0.6])
def test_points_are_placed_at_the_clean_exponent_they_are_meant_for(alpha):
    for q_clean in (0.15, 0.5, 0.7):
        beta = schedule_map.target_exponent(alpha, q_clean)
        assert forcing_exponent(alpha, beta) == pytest.approx(q_clean, rel=1e-14)


@pytest.mark.parametrize(
    ("alpha", "vartheta", "q_clean", "limit", "measured"),
    [
        (0.4, 0.1, 0.5, "unstable", "destroy"),
        (0.4, 0.25, 0.5, "destroy", "destroy"),
        (0.4, 0.5, 0.65, "change", "change"),
        (0.4, 1.5, 0.5, "preserve", "preserve"),
        (0.6, -0.15, 0.8, "unstable", "destroy"),
        (0.6, 0.4, 1.0, "change", "change"),
        (0.6, 1.2, 0.5, "preserve", "preserve"),
        (0.4, 0.8, 0.5, "preserve", "undecided"),  # too near the line for this window: shown, not hidden
        (0.4, 0.5, 0.2, "preserve", "undecided"),
    ],
)
def test_decisions_on_exact_dynamics(alpha, vartheta, q_clean, limit, measured):
    point = schedule_map.exact_point(alpha, vartheta, q_clean, (30.0, 3e3))
    assert (point["limit"], point["measured"]) == (limit, measured)
    assert point["window"] == measured
    assert point["agrees"] == (measured != "undecided")


def test_maps_hold_their_lines_and_all_points():
    maps = computed("schedule_map")["maps"]
    for name, (edge, ceiling) in {"LM": (0.25, 0.75), "IM": (0.0, 7 / 6)}.items():
        found = maps[name]
        assert found["edge"] == pytest.approx(edge)
        assert found["line"][0] == pytest.approx([edge, 0.0])
        assert found["line"][1] == pytest.approx([edge + ceiling, ceiling])
        assert found["line"][2][1] == pytest.approx(ceiling)
        assert len(found["exact"]) == 24
        for point in found["exact"]:
            if point["vartheta"] < edge - 1e-9:
                assert point["limit"] == "unstable"
            elif point["vartheta"] <= edge:
                assert point["limit"] == "destroy"
            else:
                wanted = np.interp(point["vartheta"], *np.transpose(found["line"]))
                assert point["limit"] == ("change" if point["q_clean"] > wanted else "preserve")
        for vartheta, q_clean in found["window_line"]:
            if q_clean is not None:  # early windows see a gap that decays more slowly than in the limit
                assert q_clean < np.interp(vartheta, *np.transpose(found["line"])) + 0.01


def test_sampled_points_agree_with_exact_slopes_of_the_same_modes():
    points = [point for found in computed("schedule_map")["maps"].values() for point in found["sampled"]]
    assert len(points) == 12
    scores = np.array([point["z"] for point in points])
    assert np.abs(scores).max() < family_threshold(scores.size, 1e-4, 15)
    labels = {point["measured"] for point in points}
    assert {"preserve", "change"} <= labels


def test_slopes_of_sampled_curves_are_exact_for_powers_and_their_errors_cover():
    time = np.geomspace(0.5, 100.0, 60)
    weights = slope_weights(time, (1.0, 50.0))
    assert weights @ np.log(3.0 * time**-0.7) == pytest.approx(0.7, rel=1e-12)
    assert (weights[(time < 1.0) | (time > 50.0)] == 0.0).all()
    rng = np.random.default_rng(7)
    estimates, errors = [], []
    for _ in range(300):
        walk = np.cumsum(rng.normal(size=(40, 60)), axis=1) * 0.01  # neighbours are correlated
        samples = time**-0.7 * (1.0 + walk)
        mean = samples.mean(axis=0)
        exponent, error = sampled_slope(time, mean, samples / mean, (1.0, 50.0))
        estimates.append(exponent)
        errors.append(error)
    assert np.mean(errors) == pytest.approx(np.std(estimates), rel=0.15)
    assert np.mean(estimates) == pytest.approx(0.7, abs=4 * np.std(estimates) / np.sqrt(300))


# --- paired schedules and anneals ------------------------------------------------------------------------------------


def test_paired_risks_coincide_in_time_and_separate_in_updates():
    for row in computed("paired_schedules")["rows"].values():
        assert np.array(row["orders"]) == pytest.approx(1.0, abs=0.2)
        assert max(row["at_time"]) < 0.1 * min(row["at_step"])
        assert min(row["at_step"]) > 0.02
        assert row["lr_decay_step"][-1] > 1.1 * row["batch_growth_step"][-1]
        assert row["distance"] < 1e-14
        assert np.abs(np.divide(row["lr_decay"], row["batch_growth"]) - 1.0).max() <= row["at_time"][1]


def test_paired_risks_are_those_of_each_schedule_alone():
    source = population(power_law(0.6, 0.2, ambient=50, noise_var=1.0))
    made = schedules.pair(schedules.eight_one_one(203, 0.1, 8), lr=0.1, batch=8, group=2)
    for found, schedule, steps in zip(
        paired_schedules.risks(source, made),
        (made.lr_decay, made.batch_growth, made.lr_decay),
        (made.lr_decay_steps, made.batch_growth_steps, made.batch_growth_steps),
        strict=True,
    ):
        np.testing.assert_allclose(found, recursion.risk(source, schedule, at=steps).risk, rtol=1e-13)


def test_what_the_anneal_figure_shows_adds_up():
    data = computed("anneal")
    for run in (data["annealed"], data["constant"]):
        parts = sum(np.array(run[key]) for key in ("signal", "old_noise", "new_noise"))
        np.testing.assert_allclose(parts, run["risk"], rtol=1e-13)
    for change in (data["drop"], data["constant_drop"], data["gain"]):
        assert change["total"] == pytest.approx(change["signal"] + change["old_noise"] + change["new_noise"], rel=1e-9)
    assert data["gain"]["new_noise"] == pytest.approx(data["gain"]["total"], rel=1e-2)
    for cost in data["costs"]:
        assert cost["net"] == pytest.approx(cost["noise_withheld"] - cost["signal_lost"] - cost["old_noise_kept"])
    lost = [cost["signal_lost"] for cost in data["costs"]]
    assert (np.diff(lost) > 0.0).all()
    gaps = data["gaps"]
    for gap in gaps["gap"]:
        assert (np.array(gap)[1:] > np.array(gaps["least"])[1:]).all()
    assert gaps["least_exponent"] == pytest.approx(gaps["q_memory"], abs=0.1)
    assert max(gaps["exponents"]) < gaps["least_exponent"] + 0.03


# --- two groupings ---------------------------------------------------------------------------------------------------


def test_both_groupings_have_one_total_and_share_the_memory_of_the_clean_run():
    for row in computed("two_groupings")["rows"].values():
        risk, forcing, memory, clean, gap, shared = (
            np.array(row[key]) for key in ("risk", "forcing", "memory", "clean", "gap", "clean_memory")
        )
        np.testing.assert_allclose(forcing + memory, risk, rtol=1e-13)
        np.testing.assert_allclose(clean + gap, risk, rtol=1e-13)
        np.testing.assert_allclose(memory - gap, shared, rtol=1e-9, atol=1e-13)
        assert (shared[1:] > 0.0).all()
        assert shared.max() > 0.03 * risk[0]  # thick enough to be seen
        assert row["agrees"]
        mean, error = np.array(row["mean"])[1:], np.array(row["stderr"])[1:]
        wrong = np.interp(np.array(row["sampled_time"])[1:], row["time"], forcing)
        assert np.max(np.abs(mean - wrong) / error) > row["threshold"]  # a curve without memory would be noticed


def test_window_of_the_fit_is_inside_the_curve():
    data = computed("rapid_target")
    own = data["sampled"]
    again = fit_exponent(own["time"], own["exact"], window=tuple(own["window"])).exponent
    assert again == pytest.approx(own["exact_fit"])
    assert two_groupings.parameters("standard")["runs"] >= 1000
