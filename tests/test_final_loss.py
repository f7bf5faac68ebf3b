"""The final-loss law: points and their reader, the fit from every start, the free scale, and the bootstrap."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import least_squares, linprog
from scipy.stats import norm
from shared_data import shared

from rfsim.checks import InputError, RunError
from rfsim.surrogates.final_loss import FinalLoss, Points, points, read_points
from rfsim.surrogates.final_loss_fit import PointsFit, bootstrap, fit_points
from rfsim.surrogates.laws import law, law_names, law_record
from rfsim.surrogates.objective import Coordinates, Data, Minimum
from rfsim.surrogates.projection import project

TRUE = np.array([1.8, 400.0, 2000.0, 0.34, 0.36])  # E, A, B, alpha, beta
PUBLISHED = np.array([1.817218, 477.826, 2143.417, 0.347310, 0.367172])  # of the 240 points, fixed scale
OBJECTIVE = 1.0182740e-3
STDERR = np.array([0.0257, 124.5, 1293.0, 0.0154, 0.0206])  # published, of the likelihood with a free scale


def loss_at(values, size, tokens):
    """The law, one point at a time."""
    limit, a, b, alpha, beta = values
    return np.array([limit + a / n**alpha + b / d**beta for n, d in zip(size, tokens, strict=True)])


def grid(noise=0.0, seed=0):
    """Points on 8 sizes and 7 numbers of tokens, with log-normal noise."""
    size, tokens = (x.ravel() for x in np.meshgrid(np.geomspace(1e7, 1e10, 8), np.geomspace(1e9, 1e12, 7)))
    factor = np.exp(noise * np.random.default_rng(seed).standard_normal(len(size)))
    return points(size, tokens, loss_at(TRUE, size, tokens) * factor)


def rho(rest, delta):
    """Huber's rho of one residual."""
    return 0.5 * rest * rest if abs(rest) <= delta else delta * (abs(rest) - 0.5 * delta)


@pytest.fixture(scope="module")
def measured():
    return read_points(shared("chinchilla", "svg_extracted_data.csv")).without_largest(5)


# --- points ----------------------------------------------------------------------------------------------------------


def test_without_largest_keeps_the_order_of_the_rest():
    some = points([1, 2, 3, 4, 5], [10, 20, 30, 40, 50], [3.0, 9.0, 2.0, 9.0, 4.0])
    assert len(some) == 5
    assert some.without_largest(0).loss.tolist() == some.loss.tolist()
    assert some.without_largest(1).model_size.tolist() == [1, 3, 4, 5]  # of the two 9.0 the later one stays
    kept = some.without_largest(3)
    assert (kept.model_size.tolist(), kept.tokens.tolist(), kept.loss.tolist()) == ([1, 3], [10, 30], [3.0, 2.0])
    with pytest.raises(InputError, match="count must be at most 4"):
        some.without_largest(5)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        (([1, 0], [1, 1], [1, 1]), "model_size must be above 0"),
        (([1, 1], [1, -1], [1, 1]), "tokens must be above 0"),
        (([1, 1], [1, 1], [1, math.nan]), "loss must be finite"),
        (([1, 1], [1, 1, 1], [1, 1]), "same length"),
        (([[1, 1]], [1, 1], [1, 1]), "one-dimensional"),
    ],
)
def test_points_are_checked(arrays, words):
    with pytest.raises(InputError, match=words):
        points(*arrays)


def test_tokens_come_from_the_flop(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("hex_color,Model Size,Training FLOP,loss\n#faebdd,1e8,6e18,3.5\n#f8d1b8,2e8,2.4e19,3.25\n")
    read = read_points(file)
    np.testing.assert_allclose(read.tokens, [1e10, 2e10], rtol=1e-15)
    np.testing.assert_array_equal(read.model_size, [1e8, 2e8])
    np.testing.assert_array_equal(read.loss, [3.5, 3.25])
    np.testing.assert_allclose(read_points(file, kc=3.0).tokens, [2e10, 4e10], rtol=1e-15)


def test_tokens_are_taken_before_the_flop_unless_named(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("params,tokens,flops,final loss,other\n1e8,5,6e18,3.5,2.5\n")
    assert read_points(file).tokens.tolist() == [5.0]
    np.testing.assert_allclose(read_points(file, flop="flops").tokens, [1e10])
    assert read_points(file, loss="other", model_size="tokens").loss.tolist() == [2.5]
    assert read_points(file, loss="other", model_size="tokens").model_size.tolist() == [5.0]


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("params,tokens\n1,2\n", {}, "no known column for loss; its columns of numbers are params, tokens"),
        ("tokens,loss\n1,2\n", {}, "no known column for model_size"),
        ("params,loss\n1,2\n", {}, "no known column for tokens or flop"),
        ("params,tokens,loss\n1,2,3\n", {"loss": "val"}, "loss names the column 'val'"),
        ("params,tokens,loss\n1,2,3\n", {"tokens": "tokens", "flop": "loss"}, "both fix the tokens"),
        ("params,tokens,loss\n1,2,3\n", {"kc": 0.0}, "kc must be positive"),
        ("params,tokens,loss\n1,2,3\n1,,3\n", {}, "tokens must be finite everywhere, got nan at position 1"),
        ("params,tokens,loss\n1,2,-3\n", {}, "loss must be above 0"),
    ],
)
def test_tables_that_cannot_be_read(tmp_path, text, options, words):
    file = tmp_path / "table.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=words):
        read_points(file, **options)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.csv"):
        read_points(tmp_path / "nowhere.csv")


# --- the law ---------------------------------------------------------------------------------------------------------


def test_the_law_has_a_name_and_a_record():
    assert "chinchilla" in law_names()
    one = law("chinchilla")
    assert law(**law_record(one)) == one == FinalLoss()
    assert one.calibrated([grid()]) is one
    assert [parameter.name for parameter in one.parameters] == ["E", "A", "B", "alpha", "beta"]
    with pytest.raises(InputError, match="does not take 'power'"):
        law("chinchilla", power=1)


@given(st.floats(0.0, 5.0), st.floats(0.0, 14.0), st.floats(0.0, 14.0), st.floats(0.0, 2.0), st.floats(0.0, 2.0))
def test_loss_and_gradient(limit, log_a, log_b, alpha, beta):
    one, data = FinalLoss(), grid()
    seen = one.prepare(data)
    values = np.array([limit, math.exp(log_a), math.exp(log_b), alpha, beta])
    loss, gradient = one.evaluate(values, seen)
    np.testing.assert_allclose(loss, loss_at(values, data.model_size, data.tokens), rtol=1e-12)
    assert one.evaluate(values, seen, gradient=False)[1] is None
    for at in range(5):
        step = np.zeros(5)
        step[at] = 1e-6 * max(1.0, values[at])
        ends = [loss_at(values + sign * step, data.model_size, data.tokens) for sign in (1, -1)]
        slope = (ends[0] - ends[1]) / (2.0 * step[at])
        error = 1e-8 * np.abs(gradient[:, at]) + 1e-15 * loss / step[at]  # of the difference: h^2, and digits lost
        assert (np.abs(gradient[:, at] - slope) <= error).all()


def test_prepare_at_other_sizes_and_what_it_refuses():
    one = FinalLoss()
    seen = one.prepare(None, np.array([[1e8, 1e9], [1e9, 1e10]]))
    np.testing.assert_allclose(one.evaluate(TRUE, seen)[0], loss_at(TRUE, [1e8, 1e9], [1e9, 1e10]), rtol=1e-14)
    with pytest.raises(InputError, match=r"read_points\(file\)"):
        one.prepare("run")
    for wrong in (np.ones(3), np.ones((2, 3)), np.array([[1.0, 0.0]]), np.array([[1.0, math.nan]])):
        with pytest.raises(InputError, match="at must hold pairs"):
            one.prepare(None, wrong)


# --- the fit ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["huber", "free-scale"])
def test_points_without_noise_give_the_parameters_back(method):
    fit = fit_points(grid(), method=method)
    np.testing.assert_allclose(fit.values, TRUE, rtol=1e-7)
    assert fit.share == 1.0
    assert np.abs(fit.residuals()).max() < 1e-9
    np.testing.assert_allclose(fit.predict([1e11], [1e13]), loss_at(TRUE, [1e11], [1e13]), rtol=1e-8)


def test_predict_wants_arrays_of_one_length():
    with pytest.raises(InputError, match="same length"):
        fit_points(grid()).predict([1e9, 1e9], [1e10])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "ols"}, "method must be one of free-scale, huber"),
        ({"delta": 0.0}, "delta must be positive"),
        ({"data": points([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [5, 4, 3, 2, 1])}, "at least 6, .*got 5 with 5 sizes"),
        ({"data": points([7] * 6, range(1, 7), range(1, 7))}, "got 6 with 1 sizes"),
        ({"starts": np.ones((2, 4))}, "values must hold the 5 parameters"),
    ],
)
def test_fits_that_are_refused(change, words):
    with pytest.raises(InputError, match=words):
        fit_points(**{"data": grid(), **change})


def test_a_large_delta_is_least_squares_and_a_normal_likelihood():
    data = grid(noise=0.01)

    def rest(x):
        return np.log(loss_at([x[0], math.exp(x[1]), math.exp(x[2]), *x[3:]], data.model_size, data.tokens) / data.loss)

    start = [TRUE[0], math.log(TRUE[1]), math.log(TRUE[2]), *TRUE[3:]]
    witness = least_squares(rest, start, xtol=1e-15, ftol=1e-15, gtol=1e-15, x_scale=[1, 5, 5, 1, 1])
    expected = [witness.x[0], *np.exp(witness.x[1:3]), *witness.x[3:]]
    squares = fit_points(data, delta=50.0)
    np.testing.assert_allclose(squares.values, expected, rtol=1e-5)
    np.testing.assert_allclose(squares.objective, witness.cost, rtol=1e-12)
    free = fit_points(data, method="free-scale", delta=50.0)
    np.testing.assert_allclose(free.values, expected, rtol=1e-5)
    np.testing.assert_allclose(free.scale, np.sqrt(np.mean(witness.fun**2)), rtol=1e-9)
    np.testing.assert_allclose(free.objective, -norm.logpdf(witness.fun, scale=free.scale).sum(), rtol=1e-9)


@pytest.mark.parametrize("delta", [1e-3, 0.5, 1.345])
def test_the_free_scale_maximises_the_likelihood(delta):
    data = grid(noise=0.01, seed=3)
    fit = fit_points(data, method="free-scale", delta=delta)
    inside = quad(lambda z: math.exp(-rho(z, delta)), 0.0, delta, epsrel=1e-12)[0]
    outside = math.exp(-0.5 * delta**2) / delta  # of exp(-delta z + delta^2/2) beyond delta

    def negative(values, scale):
        rest = np.log(loss_at(values, data.model_size, data.tokens) / data.loss)
        return sum(rho(r / scale, delta) + math.log(scale) + math.log(2.0 * (inside + outside)) for r in rest)

    least = negative(fit.values, fit.scale)
    np.testing.assert_allclose(fit.objective, least, rtol=1e-11)
    for factor in (0.999, 1.001):
        assert negative(fit.values, fit.scale * factor) > least
        for at in range(5):
            moved = fit.values.copy()
            moved[at] *= factor
            assert negative(moved, fit.scale) > least


def test_recovery_within_the_stated_intervals():
    """Points with noise .001: the 95 % intervals of the bootstrap hold each parameter in at least 86 of 100 draws."""
    held = np.zeros(5)
    for seed in range(100):
        fit = fit_points(grid(noise=1e-3, seed=seed), starts=TRUE[None])
        low, high = np.percentile(bootstrap(fit, resamples=200, seed=seed), [2.5, 97.5], axis=0)
        held += (low <= TRUE) & (high >= TRUE)
    assert (held >= 86).all(), held


# --- the published points --------------------------------------------------------------------------------------------


def check_published(fit):
    np.testing.assert_allclose(fit.values, PUBLISHED, rtol=2e-6)
    np.testing.assert_allclose(fit.objective, OBJECTIVE, rtol=1e-7)


def test_published_optimum(measured):
    assert len(measured) == 240
    fit = fit_points(measured)
    check_published(fit)
    assert fit.share == 1.0
    rest = np.log(loss_at(fit.values, measured.model_size, measured.tokens) / measured.loss)
    # the published number is the plain sum with r^2/2 within delta, over all points
    np.testing.assert_allclose(sum(rho(r, 1e-3) for r in rest), OBJECTIVE, rtol=1e-7)


def test_published_optimum_from_every_start_of_a_coarse_grid(measured):
    """Plain descents, amplitudes as they are: each parameter at the ends and the middle of the classical grid."""
    starts = [
        [math.exp(e), math.exp(a), math.exp(b), alpha, beta]
        for e in (-1.0, 1.0)
        for a in (0.0, 10.0, 25.0)
        for b in (0.0, 10.0, 25.0)
        for alpha in (0.0, 1.0, 2.0)
        for beta in (0.0, 1.0, 2.0)
    ]
    fit = fit_points(measured, starts=np.array(starts))
    check_published(fit)
    assert fit.share == 1.0


def test_published_optimum_with_the_amplitudes_solved_for(measured):
    """All 25 pairs of exponents of the classical grid; at (0, 0) the terms are one, and the descent parts them."""
    one = FinalLoss()
    seen = one.prepare(measured)
    data = Data((seen,), (measured.loss,))
    coordinates = Coordinates(one, one.centres((seen,)), {})
    powers = (0.0, 0.5, 1.0, 1.5, 2.0)
    near = [project(one, np.array([0, 0, 0, a, b]), data, coordinates)[0] for a in powers for b in powers]
    np.testing.assert_allclose(near[1:], np.tile(near[1], (24, 1)), rtol=1e-3)
    fit = fit_points(measured, starts=np.array(near))
    check_published(fit)
    assert fit.share == 1.0


def test_the_share_counts_starts_that_end_elsewhere(monkeypatch):
    def descend(one, start, *rest, **options):
        return Minimum(TRUE, 1e-25 if start[0] > 1.0 else 1e-3, 1, True)

    monkeypatch.setattr("rfsim.surrogates.final_loss_fit.descend", descend)
    starts = np.array([[0.5, 1, 1, 1, 1], [1.5, 1, 1, 1, 1], [0.1, 1, 1, 1, 1], [0.2, 1, 1, 1, 1]])
    assert fit_points(grid(), starts=starts).share == 0.25


@pytest.mark.parametrize("method", ["huber", "free-scale"])
def test_an_optimum_beyond_the_bounds_is_said(method):
    """A term that only the smallest models have: the exponent that fits it lies above 4."""
    data = grid()
    steep = 1.8 + 0.5 * (data.model_size / 1e7) ** -6.0 + 2000.0 * data.tokens**-0.36
    noise = np.exp(0.001 * np.random.default_rng(0).standard_normal(len(data)))
    with pytest.raises(RunError, match=r"must settle within the bounds of the law, .* a term may be absent"):
        fit_points(points(data.model_size, data.tokens, steep * noise), method=method)


def test_descents_that_do_not_end_are_an_error(monkeypatch):
    monkeypatch.setattr("rfsim.surrogates.final_loss_fit.descend", lambda *_, **__: Minimum(TRUE, 1.0, 300, False))
    with pytest.raises(RunError, match="no descent of the final-loss law converged"):
        fit_points(grid())


def test_free_scale_is_least_absolute_deviations(measured):
    fit = fit_points(measured, method="free-scale")
    # the published refit, A 482.01, B 2085.43, alpha .3478, beta .3658
    np.testing.assert_allclose(fit.values[1:], [482.01, 2085.43, 0.3478, 0.3658], rtol=2e-4)
    rest = fit.residuals()
    np.testing.assert_allclose(fit.scale, 1e-3 * np.abs(rest).mean(), rtol=1e-4)
    # no change of the parameters lowers the linearised sum of absolute residuals: a linear programme
    loss, gradient = FinalLoss().evaluate(fit.values, FinalLoss().prepare(measured))
    slopes = gradient / loss[:, None] * fit.values
    count = len(rest)
    found = linprog(
        np.concatenate([np.zeros(5), np.ones(count)]),
        A_ub=np.block([[slopes, -np.eye(count)], [-slopes, -np.eye(count)]]),
        b_ub=np.concatenate([-rest, rest]),
        bounds=[(None, None)] * 5 + [(0.0, None)] * count,
    )
    np.testing.assert_allclose(found.fun, np.abs(rest).sum(), rtol=1e-7)
    assert np.abs(found.x[:5]).max() < 1e-5


# --- the bootstrap ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["huber", "free-scale"])
def test_a_resample_is_a_fit_of_repeated_points(measured, method):
    fit = fit_points(measured, method=method)
    drawn = bootstrap(fit, resamples=4, seed=11)
    counts = np.random.default_rng(11).multinomial(240, np.full(240, 1 / 240), size=4)
    for values, count in zip(drawn, counts, strict=True):
        which = np.repeat(np.arange(240), count)
        again = Points(measured.model_size[which], measured.tokens[which], measured.loss[which])
        np.testing.assert_allclose(values, fit_points(again, method=method).values, rtol=2e-5)


def test_resamples_do_not_depend_on_how_many_are_drawn(measured):
    fit = fit_points(measured)
    many = bootstrap(fit, resamples=501, seed=5)
    assert many.shape == (501, 5)
    np.testing.assert_allclose(bootstrap(fit, resamples=20, seed=5), many[:20], rtol=1e-6)
    assert np.abs(bootstrap(fit, resamples=20, seed=6) / many[:20] - 1.0).max() > 1e-3
    with pytest.raises(InputError, match="resamples must be at least 2"):
        bootstrap(fit, resamples=1)


def test_published_standard_errors(measured):
    """The spread of B is set by few resamples (kurtosis above 25), and moves by a tenth from one set to another."""
    fit = fit_points(measured, method="free-scale")
    stderr = bootstrap(fit, resamples=1000, seed=0).std(axis=0, ddof=1)
    np.testing.assert_allclose(stderr, STDERR, rtol=0.2)


def test_resamples_of_too_few_points_are_refused():
    data = grid(noise=0.05, seed=1)
    few = Points(data.model_size[::9], data.tokens[::9], data.loss[::9])
    fit = PointsFit(few, "huber", 1e-3, TRUE, 1.0, 0.0, 1.0)
    with pytest.raises(RunError, match="resamples fix no parameters"):
        bootstrap(fit, resamples=50)
