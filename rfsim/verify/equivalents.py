"""The deterministic equivalent against its own equations, against a closed contour over written-out eigenvalues, and
against the mean over sampled W; a wrong fixed point is told apart."""

import math
from collections.abc import Iterator

import numpy as np
from scipy.optimize import brentq

from rfsim import stationary
from rfsim.problems import Problem, power_law
from rfsim.sources import equivalent, fixed_point
from rfsim.sources.population import population
from rfsim.spectra import Spectrum
from rfsim.verify.check import Check, above, near
from rfsim.verify.registry import SEED

_POINTS = {"FB": (0.2, 0.4), "LM": (0.4, 0.3), "IM": (0.7, 0.3)}  # alpha, beta
_ANGLE = 0.7
_DRAWS = {"quick": 400, "standard": 1500, "full": 10000}
_SAMPLED_WIDTH = 64
_DEVIATIONS = 4.5  # standard errors; six numbers, so one seed in 20,000 fails


def checks(scale: str) -> Iterator[Check]:
    """Checks of the family."""
    width = 40
    problems = {name: power_law(alpha, beta, ambient=2 * width) for name, (alpha, beta) in _POINTS.items()}
    found = {name: equivalent.equivalent_details(problem, width) for name, problem in problems.items()}
    size = f"width {width}, v = {2 * width}, points {', '.join(_POINTS)}"
    yield near(
        "equivalent/fixed-point",
        "m(z) [1 + (1/M) sum lambda/(lambda m - z)] = 1 on and off the negative axis, Im m < 0: largest residual, sums "
        f"written out ({size})",
        0.0,
        max(_residual(problem, width) for problem in problems.values()),
        1e-12,
    )
    worst = [_floor_and_kappa(problems[name], found[name].spectrum, width) for name in _POINTS]
    yield near(
        "equivalent/floor",
        "floor = sum lambda theta^2/(1 + omega lambda) with (1/M) sum omega lambda/(1 + omega lambda) = 1 (largest "
        f"relative error, {size})",
        0.0,
        max(floor for floor, _ in worst),
        1e-12,
    )
    yield near(
        "equivalent/kappa",
        "kappa = M (m - 1)/(B + 1) with the real m > 1 at z = 2B/((B + 1) lr), for B = 1 and 16 (largest relative "
        f"error, {size})",
        0.0,
        max(mass for _, mass in worst),
        1e-11,
    )
    yield near(
        "equivalent/moments",
        "number of modes, trace, second moment; mass and two moments of the forcing (largest relative error, sums "
        f"written out, {size})",
        0.0,
        max(_moments(problems[name], found[name].spectrum, width) for name in _POINTS),
        1e-12,
    )
    apart = [_contour(problems[name], found[name], width) for name in _POINTS]
    for place, name in enumerate(("forcing", "memory")):
        yield near(
            f"equivalent/contour-{name}",
            f"{name} at T = 0 and from 1/100 of the fastest to the slowest mode equals the integral over a closed "
            f"wedge in the plane of z (largest error over the value at 0, {size})",
            0.0,
            max(one[place] for one in apart),
            1e-11,
        )
    yield above(
        "equivalent/two-rays",
        "a wedge left open, without its two arcs, is another number: smallest error of the forcing at T = 0, over the "
        "floor",
        0.1,
        min(one[2] for one in apart),
    )
    yield from _sampled(_DRAWS[scale])


def _residual(problem: Problem, width: int) -> float:
    lam, spectrum = np.asarray(problem.eigenvalues), population(problem)
    p = np.geomspace(1e-2 * lam[-1], 1e2, 30)
    z = np.outer(np.geomspace(0.3 * lam[-1], 5.0, 8), np.exp(1j * np.array([0.3, 1.0, 2.5]))).ravel()
    m = np.concatenate(
        [fixed_point.on_negative_axis(spectrum, width, p)[0], fixed_point.in_upper_half_plane(spectrum, width, z)]
    )
    z = np.concatenate([-p, z])
    left = m * (1.0 + (lam[:, None] / (lam[:, None] * m - z)).sum(axis=0) / width) - 1.0
    return float(np.max(np.abs(left))) if np.all(m.imag[p.size :] < 0.0) else math.inf


def _floor_and_kappa(problem: Problem, nodes: Spectrum, width: int) -> tuple[float, float]:
    """Relative errors of floor and kappa; both witnesses are roots of written-out sums, by bisection."""
    lam = np.asarray(problem.eigenvalues)
    energy = lam * np.asarray(problem.target) ** 2
    omega = math.exp(
        brentq(lambda x: (lam / (math.exp(-x) + lam)).sum() / width - 1.0, -50.0, 50.0, xtol=1e-15, rtol=1e-15)
    )
    floor = math.fsum(energy / (1.0 + omega * lam))
    errors = []
    for batch in (1.0, 16.0):
        lr = 0.2 * stationary.pointwise_limit(nodes, batch)
        z = 2.0 * batch / ((batch + 1.0) * lr)
        # below the stationary point of the left side, which is where z would meet the spectrum
        grown = brentq(
            lambda x, z=z: (1.0 + x) * (lam / (z - lam * (1.0 + x))).sum() / width - x, 0.0, 0.3, xtol=1e-17, rtol=1e-15
        )
        errors.append(abs(stationary.kappa(nodes, lr, batch) * (batch + 1.0) / (width * grown) - 1.0))
    return abs(float(nodes.floor) / floor - 1.0), max(errors)


def _moments(problem: Problem, nodes: Spectrum, width: int) -> float:
    lam = np.asarray(problem.eigenvalues)
    energy, trace = lam * np.asarray(problem.target) ** 2, math.fsum(lam)
    x, count, force = (np.asarray(a) for a in (nodes.eigenvalues, nodes.multiplicity, nodes.forcing_energy))
    pairs = (
        (count.sum(), width),
        ((count * x).sum(), trace),
        ((count * x**2).sum(), math.fsum(lam**2) + trace**2 / width),
        (force.sum() + float(nodes.floor), math.fsum(energy)),
        ((force * x).sum(), math.fsum(energy * lam)),
        ((force * x**2).sum(), math.fsum(energy * lam**2) + math.fsum(energy * lam) * trace / width),
    )
    return max(abs(mine / wanted - 1.0) for mine, wanted in pairs)


def _contour(problem: Problem, found: equivalent.Equivalent, width: int) -> tuple[float, float, float]:
    """Largest error of forcing and memory, each over its value at T = 0; error of the open wedge at T = 0 over
    the floor."""
    lam = np.asarray(problem.eigenvalues)
    energy = lam * np.asarray(problem.target) ** 2
    inner, outer = 0.4 * found.lower_edge, 2.0 * found.upper_edge
    length = math.log(outer / inner)
    x, w = np.polynomial.legendre.leggauss(30 + int(15 * length))
    up, wide = np.polynomial.legendre.leggauss(40)
    turn = _ANGLE * (up + 1.0) / 2.0
    radius, ray = outer * np.exp(-length * (x + 1.0) / 2.0), np.exp(1j * _ANGLE)
    arc, swept = np.exp(1j * turn), 1j * np.exp(1j * turn) * wide * _ANGLE / 2.0
    z = np.concatenate([outer * arc, radius * ray, inner * arc[::-1]])
    dz = np.concatenate([outer * swept, -radius * ray * w * length / 2.0, -inner * swept[::-1]])
    m = fixed_point.in_upper_half_plane(population(problem), width, z)
    forcing = 1j / np.pi * dz * (energy[:, None] / (lam[:, None] * m - z)).sum(axis=0)
    memory = 1j * width / np.pi * dz * z * (1.0 - m)
    times = np.concatenate([[0.0], np.geomspace(0.01 / found.upper_edge, 1.0 / found.lower_edge, 40)])
    decay = np.exp(-2.0 * times[:, None] * z)
    nodes = found.spectrum
    kept = np.exp(-2.0 * times[:, None] * nodes.eigenvalues)
    mine = ((kept * nodes.forcing_energy).sum(axis=1), (kept * nodes.multiplicity * nodes.eigenvalues**2).sum(axis=1))
    errors = [
        float(np.max(np.abs((decay * weights).sum(axis=1).real - one)) / one[0])
        for weights, one in zip((forcing, memory), mine, strict=True)
    ]
    part = slice(up.size, up.size + x.size)
    left_open = forcing[part].sum().real - mine[0][0]
    return errors[0], errors[1], float(abs(left_open)) / float(nodes.floor)


def _sampled(draws: int) -> Iterator[Check]:
    """Mean of forcing and memory over W at T = 2, against the equivalent and against that of nearly twice the width."""
    width, time = _SAMPLED_WIDTH, 2.0
    rng = np.random.default_rng(SEED + 90)
    right: list[list[float]] = [[], []]
    wrong, allowed = [], [0.0, 0.0]
    for alpha, beta in _POINTS.values():
        problem = power_law(alpha, beta, ambient=2 * width)
        values = _draws(rng, problem, width, time, draws)
        mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(draws)
        believed = [
            _profile(equivalent.equivalent_details(problem, one).spectrum, time) for one in (width, 2 * width - 1)
        ]
        for place in range(2):
            right[place].append(abs(float(mean[place] / believed[0][place]) - 1.0))
            allowed[place] = max(allowed[place], 1.0 / width + _DEVIATIONS * float(error[place] / believed[0][place]))
        wrong.append(abs(float(mean[1] / believed[1][1]) - 1.0))
    told = f"width {width}, {draws} draws, T = {time:g}, points {', '.join(_POINTS)}"
    for place, name in enumerate(("forcing", "memory")):
        yield near(
            f"equivalent/sampled-{name}",
            f"mean {name} over sampled W is that of the equivalent up to 1/M and {_DEVIATIONS:g} standard errors "
            f"(largest relative difference; {told})",
            0.0,
            max(right[place]),
            allowed[place],
        )
    yield above(
        "equivalent/rejects-wrong",
        f"the same test on memory rejects an m(z) with 1/v for 1/M (largest relative difference; {told})",
        allowed[1],
        max(wrong),
    )


def _draws(rng: np.random.Generator, problem: Problem, width: int, time: float, draws: int) -> np.ndarray:
    """Forcing and memory at T for independent W, (draws, 2), from the Gram matrices."""
    root = np.sqrt(np.asarray(problem.eigenvalues))
    signal = root * np.asarray(problem.target)
    values = np.empty((draws, 2))
    for start in range(0, draws, 50):
        count = min(50, draws - start)
        features = root[:, None] * rng.standard_normal((count, root.size, width)) / math.sqrt(width)
        lam, vectors = np.linalg.eigh(features.transpose(0, 2, 1) @ features)
        energy = np.einsum("nmk,nm->nk", vectors, np.einsum("nvm,v->nm", features, signal)) ** 2 / lam
        kept = np.exp(-2.0 * time * lam)
        values[start : start + count, 0] = np.square(signal).sum() - (energy * (1.0 - kept)).sum(axis=1)
        values[start : start + count, 1] = (lam**2 * kept).sum(axis=1)
    return values


def _profile(nodes: Spectrum, time: float) -> tuple[float, float]:
    kept = np.exp(-2.0 * time * np.asarray(nodes.eigenvalues))
    forcing = float(nodes.floor) + float((kept * nodes.forcing_energy).sum())
    return forcing, float((kept * nodes.multiplicity * np.asarray(nodes.eigenvalues) ** 2).sum())
