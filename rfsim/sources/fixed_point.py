"""The fixed point behind the deterministic equivalent of Lambda^(1/2) W W^T Lambda^(1/2) at width M.

m(z) [1 + (1/M) sum_j lambda_j / (lambda_j m(z) - z)] = 1, with m -> 1 as |z| -> infinity and Im m < 0 for Im z > 0; the
resolvent is then close to diag(1/(lambda_j m(z) - z)) (Marchenko and Pastur; Wang, Liu, Chen 2026, deterministic
equivalent). Population sums run over the nodes of a Spectrum, whose multiplicities count coordinates, so that their
cost does not grow with the ambient dimension.
"""

import numpy as np
from scipy.optimize import brentq

from rfsim import double_double as dd
from rfsim.checks import InputError, RunError
from rfsim.double_double import DoubleDouble
from rfsim.spectra import Spectrum

_ITERATIONS = 200


def on_negative_axis(spectrum: Spectrum, width: float, points: np.ndarray) -> tuple[np.ndarray, float]:
    """m(-p) in (0, 1) at points p > 0 (n,), and the largest residual of the fixed-point equation.

    The equation reads g(m) = m + (1/M) sum_j lambda_j m/(lambda_j m + p) - 1 = 0 with g increasing and concave, so
    Newton's method from the left never overshoots.
    """
    lam, count = spectrum.eigenvalues[:, None], spectrum.multiplicity[:, None]
    m = np.ones(points.shape)
    for _ in range(_ITERATIONS):
        under = lam * m + points
        excess = m + (count * lam * m / under).sum(axis=0) / width - 1.0
        slope = 1.0 + (count * lam * points / under**2).sum(axis=0) / width
        moved = m - excess / slope
        moved = np.where(moved > 0.0, moved, m / 16.0)
        settled = np.max(np.abs(moved / m - 1.0)) < 1e-14
        m = moved
        if settled:
            break
    residual = float(np.max(np.abs(m + (count * lam * m / (lam * m + points)).sum(axis=0) / width - 1.0)))
    if not residual < 1e-12:
        raise RunError(f"fixed point: residual {residual:.1e} after {_ITERATIONS} Newton steps; report this problem")
    return m, residual


def above_spectrum(spectrum: Spectrum, width: float, z: np.ndarray) -> np.ndarray:
    """m(z) > 1 at real z (n,) above the upper edge.

    x = M (m - 1) solves x = g sum_j lambda_j/(z - lambda_j g) with g = 1 + x/M; the right side is convex in x and the
    smaller root is meant, which Newton's method from 0 approaches from the left.
    """
    lam, count = spectrum.eigenvalues[:, None], spectrum.multiplicity[:, None]
    x = np.zeros(z.shape)
    for _ in range(_ITERATIONS):
        grown = 1.0 + x / width
        under = z - lam * grown
        ratio = (count * lam / under).sum(axis=0)
        excess = grown * ratio - x
        slope = ratio / width + grown * (count * np.square(lam / under)).sum(axis=0) / width - 1.0
        if not (under.min() > 0.0 and slope.max() < 0.0):
            raise RunError("fixed point: a point above the spectrum lies inside it; report this problem")
        step = excess / slope
        x = x - step
        if np.max(np.abs(step) / np.maximum(x, 1e-300)) < 1e-13:
            break
    return 1.0 + x / width


def in_upper_half_plane(spectrum: Spectrum, width: float, z: object) -> np.ndarray:
    """m(z) at complex z (n,) with Im z > 0, continued from the negative axis along arcs of constant |z|.

    The population sums need the eigenvalues to resolve the distance of z from the spectrum: give every mode, not nodes.
    """
    target = np.atleast_1d(np.asarray(z, dtype=np.complex128))
    if not (np.isfinite(target).all() and (target.imag > 0.0).all()):
        raise InputError("z must be finite with positive imaginary part; give points of the upper half plane")
    lam, count = spectrum.eigenvalues[:, None], spectrum.multiplicity[:, None]
    m = on_negative_axis(spectrum, width, np.abs(target))[0].astype(np.complex128)
    for share in np.linspace(0.0, 1.0, 65)[1:]:
        now = np.abs(target) * np.exp(1j * (np.pi + share * (np.angle(target) - np.pi)))
        for _ in range(_ITERATIONS):
            under = lam * m - now
            total = (count * lam / under).sum(axis=0) / width
            step = (m * (1.0 + total) - 1.0) / (1.0 + total - m * (count * lam**2 / under**2).sum(axis=0) / width)
            m = m - step
            if np.max(np.abs(step / m)) < 1e-15:
                break
    residual = np.abs(m * (1.0 + (count * lam / (lam * m - target)).sum(axis=0) / width) - 1.0)
    if not (residual.max() < 1e-10 and (m.imag < 0.0).all()):
        raise RunError(f"fixed point: residual {residual.max():.1e} or wrong branch; move z away from the real axis")
    return m


def inverse_omega(spectrum: Spectrum, width: float) -> DoubleDouble:
    """1/omega with (1/M) sum_j omega lambda_j / (1 + omega lambda_j) = 1, to 32 digits."""
    lam, count = spectrum.eigenvalues, spectrum.multiplicity

    def excess(log_inverse: float) -> float:
        return float((count * lam / (np.exp(log_inverse) + lam)).sum() / width - 1.0)

    low, high = float(np.log(lam.min())) - 60.0, float(np.log((count * lam).sum() / width)) + 1.0
    found = brentq(excess, low, high, xtol=1e-15, rtol=8 * np.finfo(float).eps, maxiter=1000)
    root = dd.exact(np.exp(np.array(found)))
    trace = dd.multiply(dd.exact(count), dd.exact(lam))
    for _ in range(3):
        under = dd.add(dd.exact(lam), root)
        share = dd.divide(trace, under)
        rest = dd.subtract(dd.total(share), dd.exact(float(width)))
        root = dd.add(root, dd.exact(rest.high / (share.high / under.high).sum()))
    return root


def support(spectrum: Spectrum, width: float, start: float) -> tuple[float, float]:
    """Edges of the positive spectrum: stationary points of z(u) = u (1 - (1/M) sum_j lambda_j/(lambda_j - u)).

    The lower one lies at u in (-1/omega, 0), the upper one above the largest eigenvalue; `start` is 1/omega.
    """
    lam, count = spectrum.eigenvalues, spectrum.multiplicity
    top = float(lam.max())

    def slope(u: float, offset: np.ndarray) -> float:
        return float(1.0 - (count * np.square(lam / offset)).sum() / width)

    def below(log_size: float) -> float:
        return slope(-np.exp(log_size), lam + np.exp(log_size))

    def above(log_gap: float) -> float:
        return slope(top + np.exp(log_gap), (top - lam) + np.exp(log_gap))

    high = float(np.log(start))
    low = high
    while below(low) > 0.0:
        low -= 5.0
        if low < high - 700.0:
            raise RunError("no lower edge: the ambient dimension does not exceed the width; raise ambient")
    size = np.exp(brentq(below, low, high, maxiter=1000))
    lower = -size * (1.0 - (count * lam / (lam + size)).sum() / width)
    right = float(np.log(top))
    left = right
    while above(left) > 0.0:
        left -= 5.0
    while above(right) < 0.0:
        right += 5.0
    gap = np.exp(brentq(above, left, right, maxiter=1000))
    upper = (top + gap) * (1.0 + (count * lam / ((lam - top) - gap) * -1.0).sum() / width)
    return float(lower), float(upper)


def kernel_mass(spectrum: Spectrum, width: float, lr: float, batch: float) -> float:
    """kappa of a constant schedule on the deterministic equivalent, M (m(z) - 1)/(B + 1) at z = 2B/((B+1) lr) above the
    spectrum.

    Solved for x = M (m - 1) itself, which m - 1 would have lost at large width; inf where z lies inside the spectrum.
    Newton's method climbs to the root from the left until rounding stops it.
    """
    lam, count = spectrum.eigenvalues, spectrum.multiplicity
    z = 2.0 / ((1.0 + 1.0 / batch) * lr)
    x: float = 0.0
    for _ in range(10 * _ITERATIONS):
        grown = 1.0 + x / width
        under = z - lam * grown
        if under.min() <= 0.0:
            return np.inf
        value = grown * (count * lam / under).sum() - x
        slope = (count * lam / under).sum() / width + grown * (count * lam**2 / under**2).sum() / width - 1.0
        if slope >= 0.0:
            return np.inf
        step = value / slope
        if -step <= 4e-16 * x:
            return float(x / (batch + 1.0))
        x = float(x - step)
    raise RunError(f"kappa: no convergence at lr {lr:g}, which is too close to the edge of the spectrum; lower lr")
