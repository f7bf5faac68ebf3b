"""What a joint schedule does to a law, beyond the gap exponents: constants, edges, realisations, anneals.

Finite windows are compared with what the theory says for the same window, limits with extrapolations whose order of
approach is known.
"""

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from scipy.integrate import quad

from rfsim.accumulation import unit_local_exponent
from rfsim.amplitudes import memory_amplitude
from rfsim.anneal import decompose, gain
from rfsim.continuum import accumulate, forcing_profile, time_grid
from rfsim.gap_laws import lm_edge, lm_edge_forcing_factor
from rfsim.measure import fit_exponent
from rfsim.problems import power_law
from rfsim.renewal import renewal_risk
from rfsim.routes import jump, recursion
from rfsim.schedules import from_spec, pair, path, polynomial, power
from rfsim.sources.equivalent import equivalent
from rfsim.stretches import stretches
from rfsim.verify.check import Check, above, near
from rfsim.verify.filters import power_population

_LOCAL = {  # theory: at T = 1e3, 1e6, 1e14
    (0.5, 0.8): (0.2424, 0.2892, 0.2997),
    (0.75, 0.5): (0.2027, 0.2436, 0.2499),
    (1.0, 0.5): (0.3739, 0.4341, 0.4703),
    (7 / 6, 0.5): (0.4443, 0.4865, 0.4994),
}
_LOCAL_TIMES = (1e3, 1e6, 1e14)
_RENEWAL = (0.877, 0.926, 0.957, 0.976, 0.987, 0.993)  # theory: exact over predicted at t = 1e2 .. 1e7, (.7, .9)
_BULK = {  # theory: risk above the floor and gap at the end, width 512, vartheta 0, 1, 2
    (0.2, 0.4): ((1.87150889, 1.38027445), (0.82861967, 0.39817623), (0.55628330, 0.14250872)),
    (0.12, 0.65): ((1.51685081, 1.17637604), (0.92160179, 0.60507205), (0.64443927, 0.33929546)),
}
_EDGE = (0.4, 0.75, 0.25)  # alpha, q_K, vartheta = 1 - q_K
_STRENGTHS = (0.05, 0.1, 0.15)  # c_K/c_r


def checks(scale: str) -> Iterator[Check]:
    """Checks of the family."""
    yield from _local()
    yield from _renewal()
    yield from _edge({"quick": 1e8, "standard": 1e12, "full": 1e12}[scale])
    yield from _pairs({"quick": 400, "standard": 1500, "full": 3000}[scale])
    yield from _anneal({"quick": 2000, "standard": 10_000, "full": 100_000}[scale])
    yield _iterations({"quick": 20_000, "standard": 100_000, "full": 400_000}[scale])
    yield _bulk()


def _local() -> Iterator[Check]:
    worst = max(
        abs(unit_local_exponent(*point, time) - value)
        for point, row in _LOCAL.items()
        for time, value in zip(_LOCAL_TIMES, row, strict=True)
    )
    yield near(
        "schedules/local-exponents",
        "local exponents of int (1 + T - u)^-q_K (1 + u)^-vartheta du at T = 1e3, 1e6, 1e14 against twelve published "
        "digits (largest difference)",
        0.0,
        worst,
        1e-4,
    )
    worst = 0.0
    for point in _LOCAL:
        for time in (1e2, 1e6):
            sides = [_quadrature(*point, time * math.exp(step)) for step in (-0.01, 0.01)]
            worst = max(worst, abs(unit_local_exponent(*point, time) + math.log(sides[1] / sides[0]) / 0.02))
    # central difference over .02 in log T: .01^2/6 times a third derivative below 1
    yield near(
        "schedules/local-quadrature",
        "the same exponents from the logarithmic difference of adaptive quadratures (largest difference)",
        0.0,
        worst,
        0.01**2 / 6.0,
    )


def _quadrature(q_memory: float, vartheta: float, time: float) -> float:
    half, total = math.log1p(0.5 * time), 0.0
    for near_end, far_end in ((vartheta, q_memory), (q_memory, vartheta)):

        def term(v: float, near_end: float = near_end, far_end: float = far_end) -> float:
            return math.exp((1.0 - near_end) * v) * (2.0 + time - math.exp(v)) ** -far_end

        total += quad(term, 0.0, half, epsabs=0.0, epsrel=1e-11, limit=400)[0]
    return total


def _renewal() -> Iterator[Check]:
    times = np.array([1e2, 1e3, 1e4, 1e5, 1e6, 1e7])
    ratios = {}
    for point in ((0.7, 0.9), (0.9, 1.5)):
        source = power_population(*point)
        exact = jump.risk(source, stretches([0.2], [1.0], [int(times[-1])]), at=times)
        ratios[point] = np.asarray(exact.risk) / renewal_risk(source, 0.2, 1.0, times).risk
    yield near(
        "schedules/renewal",
        "(.7, .9), lr .2, batch 1: exact risk over F/(1 - kappa) + (sum F) K/(1 - kappa)^2 at t = 1e2 .. 1e7 against "
        "the published approach to 1 (largest difference)",
        0.0,
        float(np.max(np.abs(ratios[0.7, 0.9] - _RENEWAL))),
        6e-4,  # published to three digits
    )
    yield near(
        "schedules/renewal-limit",
        "(.9, 1.5), lr .2, batch 1: exact risk over the renewal formula at t = 1e7",
        1.0,
        float(ratios[0.9, 1.5][-1]),
        2e-4,  # next order T^-(q_K - 1) = T^-.44, a few percent of it
    )


def _edge(last: float) -> Iterator[Check]:
    """Continuum with feedback on the long-memory edge for three amplitudes, and exact dynamics on a window of it."""
    alpha, q_memory, vartheta = _EDGE
    slow, fast = power_population(alpha, 0.3), power_population(alpha, 0.9)
    grid = time_grid(last)
    plateau = exponent = factor = measured = 0.0
    for strength in _STRENGTHS:
        edge = lm_edge(q_memory, strength)
        amplitude = memory_amplitude(alpha) / strength
        ratio = amplitude * (1.0 + grid) ** vartheta
        gap = accumulate(slow, grid, 1.0, ratio, feedback=True)
        early, late = np.interp([last / 1e4, last], grid, gap)
        shrink = 1e4**vartheta  # the next term of the row mass falls like T^-vartheta
        assert edge.plateau_factor is not None
        plateau = max(plateau, abs((shrink * late - early) / (shrink - 1.0) / edge.plateau_factor - 1.0))
        clean = {}
        for name, source in (("slow", slow), ("fast", fast)):
            forcing = forcing_profile(source, grid)
            clean[name] = forcing, forcing + accumulate(source, grid, forcing, ratio, feedback=True)
        slope = fit_exponent(grid[1:], clean["fast"][1][1:], window=(last / 1e3, last)).exponent
        exponent = max(exponent, abs(slope - edge.exponent))
        if edge.exponent > 0.5:
            multiple = np.interp([last / 1e4, last], grid, clean["slow"][1] / clean["slow"][0])
            shrink = 1e4 ** (edge.exponent - 0.5)
            limit = (shrink * multiple[1] - multiple[0]) / (shrink - 1.0)
            factor = max(factor, abs(limit / lm_edge_forcing_factor(0.5, q_memory, strength) - 1.0))
        steps, lr = 10_000, 0.1
        schedule = power(steps, lr, amplitude * lr, vartheta=vartheta, exact_batch=True)
        at = np.unique(np.rint(np.geomspace(400, steps, 60)).astype(int))
        curve = recursion.risk(fast, schedule, at=at)
        time, window = np.asarray(curve.intrinsic_time), (40.0, steps * lr)
        found = fit_exponent(time, np.asarray(curve.clean), window=window).exponent
        wanted = fit_exponent(time, np.interp(time, grid, clean["fast"][1]), window=window).exponent
        measured = max(measured, abs(found - wanted))
    # what is left after the extrapolation falls like T^-2 vartheta, with a factor of order 1
    yield near(
        "schedules/edge-plateau",
        f"LM edge, vartheta = 1 - q_K, c_K/c_r = .05, .1, .15: gap of the continuum, extrapolated from T = "
        f"{last / 1e4:g} and {last:g}, over sigma^2 C1/(1 - C1) (largest relative difference)",
        0.0,
        plateau,
        2.0 * (last / 1e4) ** (-2.0 * vartheta),
    )
    yield near(
        "schedules/edge-exponent",
        "LM edge, beta = .9: clean exponents of the three amplitudes against the root g of (c_K/c_r) B(1 - q_K, q_K - "
        "g) = 1 (largest difference)",
        0.0,
        exponent,
        0.05 * (last / 1e3) ** -vartheta,  # share of the next term at the start of the window
    )
    yield near(
        "schedules/edge-factor",
        "LM edge, beta = .3, q_F < g: clean risk over forcing, extrapolated, against 1/[1 - (c_K/c_r) B(1 - q_K, q_K - "
        "q_F)] (largest relative difference)",
        0.0,
        factor,
        0.1 * (last / 1e4) ** -vartheta,
    )
    yield near(
        "schedules/edge-window",
        "LM edge, beta = .9: clean exponents of the exact recursion on [40, 1000] against the continuum with feedback "
        "on the same window, three amplitudes (largest difference)",
        0.0,
        measured,
        0.003,  # terms of order lr max l = .1 times the row mass, below .1, over a window of log width 3.2
    )


def _pairs(steps: int) -> Iterator[Check]:
    source = power_population(0.6, 0.2).replace(noise_var=1.0)
    for name, spec in (("wsd", "wsd:decay=0.4,to=0.1"), ("8-1-1", "8-1-1")):
        at_time, at_step = [], []
        for halvings in range(4):
            lr, batch = 0.08 / 2**halvings, 16 // 2**halvings
            made = pair(from_spec(spec, steps=steps * 2**halvings, lr=lr, batch=batch), lr=lr, batch=batch, group=2)
            growing = np.asarray(recursion.risk(source, made.batch_growth, at=made.batch_growth_steps).risk)
            both = np.union1d(made.lr_decay_steps, made.batch_growth_steps)
            decaying = np.asarray(recursion.risk(source, made.lr_decay, at=both).risk)
            same_time = decaying[np.searchsorted(both, made.lr_decay_steps)]
            same_step = decaying[np.searchsorted(both, made.batch_growth_steps)]
            at_time.append(float(np.max(np.abs(same_time / growing - 1.0))))
            at_step.append(float(np.max(np.abs(same_step / growing - 1.0))))
        orders = [math.log2(a / b) for a, b in pairwise(at_time)]
        yield near(
            f"schedules/pair-{name}-order",
            f"{name} by lr decay and by batch growth: risks at equal intrinsic time differ by "
            f"{', '.join(f'{value:.2g}' for value in at_time)} when lr is halved; order of the last halving",
            1.0,
            orders[-1],
            0.05,  # the next order: it halves with lr and was below .2 at the first halving
        )
        yield above(
            f"schedules/pair-{name}-steps",
            f"{name}: at equal update the same risks stay apart (smallest of the largest relative differences, over "
            f"that at equal time, {at_time[-1]:.2g})",
            10.0,
            min(at_step) / at_time[-1],
        )


def _anneal(steps: int) -> Iterator[Check]:
    source = power_population(0.6, 0.2).replace(noise_var=1.0)
    schedule = from_spec("wsd:decay=0.2,to=0.1", steps=steps, lr=0.1, batch=4)
    found = decompose(source, schedule)
    exact = np.asarray(recursion.risk(source, schedule, at=found.annealed.step).risk)
    parts = found.annealed
    yield near(
        "schedules/anneal-parts",
        "WSD: signal + old noise + new noise is the exact risk of the whole schedule at every step of the anneal "
        "(largest relative difference)",
        0.0,
        float(np.max(np.abs((parts.signal + parts.old_noise + parts.new_noise) / exact - 1.0))),
        1e-12,
    )
    won = gain(found)
    yield above(
        "schedules/anneal-gain",
        "WSD against constant lr at equal intrinsic time: share of the lower risk that is new noise withheld",
        0.9,
        won.new_noise / won.total,
    )


def _iterations(steps: int) -> Check:
    """Powers of the iteration, lr ~ n^-l and B ~ n^b: the slope per iteration on exact dynamics."""
    worst, window = 0.0, (steps / 100.0, float(steps))
    for alpha, beta, fall, growth in ((0.6, 0.2, 0.2, 0.3), (0.6, 0.2, 0.5, 0.0), (0.4, 0.3, 0.2, 0.4)):
        source = power_population(alpha, beta).replace(noise_var=25.0)
        schedule = polynomial(steps, 0.15, 16.0, lr_decay=fall, batch_growth=growth, exact_batch=True)
        at = np.unique(np.geomspace(steps / 200.0, steps, 200).astype(int))
        measured = fit_exponent(at.astype(float), recursion.risk(source, schedule, at=at).gap, window=window).exponent
        grid = np.unique(np.concatenate([np.arange(200), np.geomspace(200, steps, 3000).astype(int)]))
        followed = path(schedule, at=grid)
        noise = accumulate(source, followed.intrinsic_time, 25.0, followed.ratio, feedback=True)
        worst = max(worst, abs(measured - fit_exponent(grid[1:].astype(float), noise[1:], window=window).exponent))
    return near(
        "schedules/iteration-time",
        "lr ~ n^-l, batch ~ n^b: gap exponents per iteration of the exact recursion against the continuum with "
        "feedback on r ~ T^((l + b)/(1 - l)), three schedules (largest difference)",
        0.0,
        worst,
        0.006,  # terms lr_n max l/2 <= .15 * 200^-.2/2 = .026 at the start of the window, over log 100 = 4.6
    )


def _bulk() -> Check:
    worst = 0.0
    for (alpha, beta), ends in _BULK.items():
        lr = 0.8 * 512.0 ** (2.0 * alpha - 1.0)
        steps = int(2.0 * 512.0 ** (2.0 * alpha) / math.log(512.0) / lr)
        source = equivalent(power_law(alpha, beta, ambient=1024, noise_var=25.0), 512)
        for vartheta, (centred, gap) in zip((0.0, 1.0, 2.0), ends, strict=True):
            curve = recursion.risk(source, power(steps, lr, 16, vartheta=vartheta), at=[steps])
            worst = max(worst, abs(float(curve.risk[0] - curve.floor) / centred - 1.0))
            worst = max(worst, abs(float(curve.gap[0]) / gap - 1.0))
    return near(
        "schedules/finite-bulk",
        "finite bulk at width 512: risk above the floor and gap of three ratio paths on the deterministic equivalent "
        "against twelve reference values (largest relative difference)",
        0.0,
        worst,
        1e-6,
    )
