"""Deterministic equivalent: the Spectrum of any finite width without sampling W, as a few positive real nodes.

Both measures are known through their Stieltjes transforms on the negative axis, where the fixed point m(-p) is real and
easy:

    forcing   int dnu_F/(l + p) = sum_j b_j^2 / (lambda_j m + p) - floor/p,
    memory    int dN/(l + p) = M m/p   or   int l dN/(l + p) = M (1 - m) = m sum_j lambda_j / (lambda_j m + p),

N counting eigenvalues, the kernel being int l^2 dN; of the two measures the one that is spread more evenly over the
scales is taken. Their rational Gauss rules are put side by side: nodes that carry
forcing and no multiplicity, and nodes that carry multiplicity and no forcing. Cost grows with the logarithm of the
width only.
"""

import math
from typing import NamedTuple

import numpy as np

from rfsim import double_double as dd
from rfsim.checks import InputError, RunError, positive_number, whole_number
from rfsim.double_double import DoubleDouble
from rfsim.precision import require_float64
from rfsim.problems import Problem
from rfsim.rational_gauss import SPACING, Rule, rational_gauss, rule_points
from rfsim.sources.fixed_point import above_spectrum, inverse_omega, on_negative_axis, support
from rfsim.sources.population import population
from rfsim.spectra import Spectrum

_IDENTITY_TOLERANCE = 1e-9
_BEYOND = 1e15  # by how much the eigenvalues of an infinite spectrum are followed down below the one at `width`
_FINEST = 0.1  # spacing below which nothing is gained

Transform = tuple[DoubleDouble, DoubleDouble]  # f(p) = int dmu/(l+p) and -f'(p)


class Equivalent(NamedTuple):
    """A deterministic equivalent and how far it can be trusted.

    spectrum : nodes; omega : root of (1/M) sum omega lambda/(1 + omega lambda) = 1; lower_edge, upper_edge : of the
        positive support.
    residual : largest residual of the fixed-point equation in float64; identity_error : largest relative error of the
    six moment identities (number of modes, trace and second moment of the eigenvalues; mass, first and second moment of
    the forcing).
    """

    spectrum: Spectrum
    omega: float
    lower_edge: float
    upper_edge: float
    residual: float
    identity_error: float


def equivalent(problem: Problem, width: int, *, spacing: float = SPACING) -> Spectrum:
    """Spectrum of the deterministic equivalent of random features of the given width.

    Parameters
    ----------
    problem : finite ambient dimension above the width, or infinite for a power law with alpha > 1/2.
    width : M; 10^9 costs little more than 10^3.
    spacing : resolution of the nodes in log l; the default gives F(T), K(T) and the risk to about 1e-10 relative, and
        kappa to 1e-11 up to .999 of the pointwise limit. Once even the slowest mode dies out (2 T lower_edge large)
        errors are absolute, about 1e-16 of the value at T = 0.

    Returns
    -------
    Spectrum with floor sum_j b_j^2/(1 + omega lambda_j). It differs from the mean over W by O(1/M), and a single W
    scatters around it.

    Raises
    ------
    InputError : for an ambient dimension that does not exceed the width, an infinite one with alpha <= 1/2, or a
        spacing below 0.1.
    RunError : if the fixed point does not converge or a moment identity fails.
    """
    return equivalent_details(problem, width, spacing=spacing).spectrum


def equivalent_details(problem: Problem, width: int, *, spacing: float = SPACING) -> Equivalent:
    """Like `equivalent`, with edges, residual and the errors of the moment identities."""
    require_float64()
    size = float(whole_number("width", width))
    if positive_number("spacing", spacing) < _FINEST:
        raise InputError(f"spacing must be at least {_FINEST:g}, got {spacing:g}; below {SPACING:g} nothing is gained")
    if problem.ambient <= size:
        raise InputError(
            f"ambient must exceed width, got {problem.ambient:g} and {width}: at ambient = width the spectrum has a "
            f"hard edge at 0, below it there is no floor; raise ambient"
        )
    if problem.ambient == math.inf and problem.alpha is not None and problem.alpha <= 0.5:
        raise InputError(
            f"alpha must exceed 1/2 for an infinite ambient dimension, got {problem.alpha:g}: the trace diverges and "
            f"with it the spectrum of the features; give a finite ambient dimension"
        )
    base = population(problem, least=size * _BEYOND ** (0.5 / problem.alpha) if problem.alpha is not None else 0.0)
    scale, unit = _power_of_two(float(base.eigenvalues.max())), _power_of_two(float(base.forcing_energy.sum()))
    base = base.replace(eigenvalues=base.eigenvalues / scale, forcing_energy=base.forcing_energy / unit)
    root = inverse_omega(base, size)
    lower, upper = support(base, size, float(root.high))
    energy = dd.exact(base.forcing_energy)
    floor = dd.total(dd.divide(dd.multiply(energy, root), dd.add(dd.exact(base.eigenvalues), root)))
    where = rule_points(lower, upper, spacing=spacing)
    trace = float((base.multiplicity * base.eigenvalues).sum())
    counted = trace / (size * upper) > size * lower / trace
    memory_transform, force_transform, residual = _transforms(base, size, floor, where.every, counted)
    memory = rational_gauss(where, *memory_transform)
    forcing = rational_gauss(where, *force_transform) if base.forcing_energy.any() else Rule(np.zeros(0), np.zeros(0))
    none, nothing = np.zeros(memory.nodes.size), np.zeros(forcing.nodes.size)
    spectrum = Spectrum(
        np.concatenate([memory.nodes, forcing.nodes]),
        np.concatenate([none, forcing.weights]),
        np.concatenate([memory.weights if counted else memory.weights / memory.nodes, nothing]),
        float(floor.high),
        problem.noise_var,
    )
    error = _identity_error(base, size, spectrum)
    if not error < _IDENTITY_TOLERANCE:
        raise RunError(
            f"deterministic equivalent: a moment identity is off by {error:.1e}; lower spacing (got {spacing:g}) "
            "or report this"
        )
    spectrum = spectrum.replace(
        eigenvalues=spectrum.eigenvalues * scale,
        forcing_energy=spectrum.forcing_energy * unit,
        floor=float(spectrum.floor) * unit,
    )
    return Equivalent(spectrum, 1.0 / (float(root.high) * scale), lower * scale, upper * scale, residual, error)


def _power_of_two(value: float) -> float:
    """Power of two next to a positive value, by which numbers are scaled without rounding; 1 for 0."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1) if value > 0.0 else 1.0


def _transforms(
    base: Spectrum, width: float, floor: DoubleDouble, points: np.ndarray, counted: bool
) -> tuple[Transform, Transform, float]:
    """Stieltjes transforms of memory (dN if `counted`, else l dN) and forcing measure at p (n,), with 32 digits."""
    below = points > 0.0
    start = np.empty(points.shape)
    start[below], residual = on_negative_axis(base, width, points[below])
    start[~below] = above_spectrum(base, width, -points[~below])
    lam, count = dd.exact(base.eigenvalues[:, None]), dd.exact(base.multiplicity[:, None])
    energy, p, big = dd.exact(base.forcing_energy[:, None]), dd.exact(points), dd.exact(float(width))
    trace = dd.multiply(count, lam)
    m = dd.exact(start)
    for _ in range(3):  # a Newton step with a float64 slope adds 15 digits, fewer close to the upper edge
        under = dd.add(dd.multiply(lam, m), p)
        mean = dd.divide(dd.total(dd.divide(trace, under)), big)
        excess = dd.subtract(dd.add(m, dd.multiply(m, mean)), dd.exact(1.0))
        slope = 1.0 + (trace.high * points / under.high**2).sum(axis=0) / width
        m = dd.subtract(m, dd.exact(excess.high / slope))
    inverse = dd.divide(dd.exact(1.0), dd.add(dd.multiply(lam, m), p))
    trace_share, force_share = dd.multiply(trace, inverse), dd.multiply(energy, inverse)
    first = dd.divide(dd.total(dd.multiply(trace_share, inverse)), big)
    second = dd.divide(dd.total(dd.multiply(dd.multiply(trace_share, lam), inverse)), big)
    # dm/dz at z = -p, from the derivative of the fixed-point equation
    turn = dd.divide(first, dd.subtract(second, dd.divide(dd.exact(1.0), dd.multiply(m, m))))
    if counted:
        value = dd.divide(dd.multiply(big, m), p)
        memory = value, dd.divide(dd.add(value, dd.multiply(big, turn)), p)
    else:
        memory = dd.multiply(m, dd.total(trace_share)), dd.negative(dd.multiply(turn, big))
    flat = dd.divide(floor, p)
    force_value = dd.subtract(dd.total(force_share), flat)
    direct = dd.total(dd.multiply(force_share, inverse))
    moved = dd.multiply(turn, dd.total(dd.multiply(dd.multiply(force_share, lam), inverse)))
    force_slope = dd.subtract(dd.subtract(direct, moved), dd.divide(flat, p))
    return memory, (force_value, force_slope), residual


def _identity_error(base: Spectrum, width: float, spectrum: Spectrum) -> float:
    """Largest relative error of the moment identities: N has M modes, trace tr Lambda and second moment
    tr Lambda^2 + (tr Lambda)^2/M; the forcing has mass |b|^2 - floor, first moment sum b^2 lambda and second
    sum b^2 (lambda^2 + lambda tr Lambda/M)."""
    lam, count, energy = base.eigenvalues, base.multiplicity, base.forcing_energy
    nodes, many, force = spectrum.eigenvalues, spectrum.multiplicity, spectrum.forcing_energy
    trace = (count * lam).sum()
    pairs = [
        (many.sum(), width),
        ((many * nodes).sum(), trace),
        ((many * nodes**2).sum(), (count * lam**2).sum() + trace**2 / width),
    ]
    if energy.any():
        pairs += [
            (force.sum() + spectrum.floor, energy.sum()),
            ((force * nodes).sum(), (energy * lam).sum()),
            ((force * nodes**2).sum(), (energy * (lam**2 + lam * trace / width)).sum()),
        ]
    return float(max(abs(found / wanted - 1.0) for found, wanted in pairs))
