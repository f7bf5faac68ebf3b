"""Eigenvalues of diag(d) - q 1^T, q > 0, all to relative accuracy: the map of one step minus the identity.

The eigenvalues delta_k are the roots of 1 = sum_i q_i / (d_i - delta): one below the smallest pole and one between
each two neighbours. Every root is kept as an offset from the nearer of its two poles (the lowest one possibly from
zero), so that all differences d_i - delta_k, of which the eigenvectors are made, keep their digits. The weights are
then recomputed from the computed roots, which makes the eigenvectors those of an exact decomposition of a matrix
that differs by rounding only.
"""

from typing import NamedTuple

import numpy as np

from rfsim.checks import InputError, RunError, finite_vector, require_memory, same_length

_EPS = float(np.finfo(np.float64).eps)
_MERGE = 4.0 * _EPS  # poles closer than this, relative to their size, are one pole
_CAP = 100  # iterations for the roots between poles
_FIRST_CAP = 2000  # iterations for the lowest root, which may be many decades away from its pole
_BLOCK = 2**18  # entries of the (poles, roots) array worked on at a time


class Groups(NamedTuple):
    """Poles (g,) in increasing order and their weights (g,); member (n,) says which pole each given one belongs to."""

    poles: np.ndarray
    weights: np.ndarray
    member: np.ndarray


class Decomposition(NamedTuple):
    """Eigenvalues and what their eigenvectors are made of.

    Attributes
    ----------
    roots : (n,) delta_k, increasing; roots[k] < poles[k], and roots[k] > poles[k - 1].
    own : (n,) poles[k] - roots[k] > 0, accurate also where both agree to all digits.
    differences : (n, n) poles[i] - roots[k]; left vectors are 1 / differences[:, k], right vectors weights /
        differences[:, k].
    weights : (n,) the weights that belong exactly to these roots.
    inverse_norm : (n,) 1 / N_k, N_k = sum_i q_i / (d_i - delta_k)^2.
    residual : largest relative difference between `weights` and the given ones.
    iterations : of the slowest root.
    """

    roots: np.ndarray
    own: np.ndarray
    differences: np.ndarray
    weights: np.ndarray
    inverse_norm: np.ndarray
    residual: float
    iterations: int


def group(poles: np.ndarray, weights: np.ndarray) -> Groups:
    """Sort poles and merge those that agree to rounding; their weights add up.

    In a merged group the deviations from the common share of the weight do not feel each other: they stay
    eigenvectors of the pole itself, and only the sum of the group takes part in the secular equation (classical
    deflation).
    """
    order = np.argsort(poles, kind="stable")
    ordered = poles[order]
    starts = np.concatenate([[True], ~_same(ordered[1:], ordered[:-1])])
    bounds = np.append(np.flatnonzero(starts), poles.size)
    for run in np.flatnonzero(np.diff(bounds) > 2):
        first, stop = bounds[run], bounds[run + 1]
        while not _same(ordered[stop - 1], ordered[first]):  # a chain of neighbours that creeps away from its first
            first = first + int(np.argmin(_same(ordered[first:stop], ordered[first])))
            starts[first] = True
    number = np.cumsum(starts) - 1
    member = np.empty(poles.size, dtype=np.int64)
    member[order] = number
    total = np.bincount(member, weights=weights, minlength=int(number[-1]) + 1)
    return Groups(ordered[starts], total, member)


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.abs(a - b) <= _MERGE * np.maximum(np.abs(a), np.abs(b))


def decompose(poles: object, weights: object) -> Decomposition:
    """Decompose diag(poles) - weights 1^T.

    Parameters
    ----------
    poles : (n,) strictly increasing, of any sign; weights : (n,) positive.

    Raises
    ------
    InputError : if the poles do not increase or a weight is not positive; `group` prepares them.
    RunError : if the roots did not converge, or the (n, n) array does not fit into memory.

    Notes
    -----
    Roots between poles: rational interpolation of the parts left and right of the root by one pole each, which is
    monotone and quadratic (Bunch, Nielsen and Sorensen 1978), all roots at once, bisection where it would leave its
    bracket. Weights from roots: q_i = prod_k (d_i - delta_k) / prod_{k != i} (d_i - d_k) (Loewner; Gu and Eisenstat
    1994).
    """
    d = finite_vector("poles", poles)
    q = finite_vector("weights", weights, least=0.0, strict=True)
    same_length(poles=d, weights=q)
    if (np.diff(d) <= 0.0).any():
        raise InputError("poles must increase strictly; use rfsim.secular.group to sort and merge them")
    n = d.size
    require_memory(f"an eigen-decomposition of {n} modes", 64.0 * n * n, "use fewer nodes")
    shift, offset = np.empty(n), np.empty(n)
    shift[0], offset[0], first = _lowest_root(d, q)
    slowest = 0
    chunk = max(1, _BLOCK // n)
    for start in range(1, n, chunk):
        stop = min(start + chunk, n)
        shift[start:stop], offset[start:stop], count = _roots_between(d, q, np.arange(start, stop))
        slowest = max(slowest, count)
    differences = (d[:, None] - shift[None, :]) - offset[None, :]
    roots = shift + offset
    own = np.diagonal(differences).copy()
    gaps = d[:, None] - d[None, :]
    np.fill_diagonal(gaps, 1.0)
    exact = np.prod(differences / gaps, axis=1)
    residual = float(np.max(np.abs(exact / q - 1.0)))
    if not residual < 1e-9:
        raise RunError(f"the secular equation of {n} modes was solved to relative {residual:.1e} only; use fewer nodes")
    inverse_norm = 1.0 / np.sum((exact[:, None] / differences) / differences, axis=0)
    return Decomposition(roots, own, differences, exact, inverse_norm, residual, max(slowest, first))


def _lowest_root(d: np.ndarray, q: np.ndarray) -> tuple[float, float, int]:
    """The root below all poles: the point it is measured from (lowest pole or zero), the offset, and iterations."""
    lowest = d[0]
    shift, low, high = lowest, -float(q.sum()) * (1.0 + 1e-12), 0.0
    if lowest > 0.0:
        if np.sum(q / d) < 1.0:
            if np.sum(q / (d - lowest / 2.0)) <= 1.0:
                low = -lowest / 2.0
            else:
                shift, low, high = 0.0, 0.0, lowest / 2.0
        else:
            shift, low = 0.0, lowest + low
    base = d - shift
    offset = low
    for count in range(1, _FIRST_CAP + 1):
        difference = base - offset
        terms = q / difference
        value = 1.0 - terms.sum()
        if abs(value) <= 2.0 * _EPS:
            return float(shift), float(offset), count
        if value > 0.0:
            low = offset
        else:
            high = offset
        slope = np.sum(terms / difference)
        rest = value + difference[0] * slope
        proposed = offset + difference[0] * value / rest if rest > 0.0 else high
        if abs(proposed - offset) <= _EPS * abs(proposed):
            return float(shift), float(proposed), count
        if not low < proposed < high:
            proposed = float(_between(np.array(low), np.array(high)))
        offset = proposed
    raise RunError(f"the lowest root of the secular equation did not converge in {_FIRST_CAP} iterations")


def _between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Points inside (low, high): the geometric mean where both have one sign and lie far apart, else the middle."""
    one_sign = (np.sign(low) * np.sign(high)) > 0.0
    a, b = np.abs(low), np.abs(high)
    far = one_sign & (np.maximum(a, b) > 4.0 * np.minimum(a, b))
    return np.where(far, np.copysign(np.sqrt(a) * np.sqrt(b), low), 0.5 * (low + high))


def _roots_between(d: np.ndarray, q: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Roots number `which` (m,), each between poles which-1 and which: nearer poles (m,), offsets (m,), iterations."""
    left, right = d[which - 1], d[which]
    width = right - left
    # at the middle: which half holds the root, and the equation of the two nearest poles with the others frozen there
    difference = (d[:, None] - left[None, :]) - 0.5 * width[None, :]
    terms = q[:, None] / difference
    frozen = 1.0 - terms.sum(axis=0)
    near_left = frozen < 0.0
    columns = np.arange(which.size)
    terms[which - 1, columns] = 0.0
    terms[which, columns] = 0.0
    constant = 1.0 - terms.sum(axis=0)
    shift = np.where(near_left, left, right)
    other = np.where(near_left, width, -width)
    weight_left, weight_right = q[which - 1], q[which]
    low = np.where(near_left, 0.0, -0.5 * width)
    high = np.where(near_left, 0.5 * width, 0.0)
    offset = _two_pole_root(constant, *_by_side(near_left, weight_left, weight_right), other)
    offset = np.clip(offset, low, high)
    offset = np.where(offset == 0.0, 1e-3 * other, offset)
    active = columns
    for count in range(1, _CAP + 1):
        y = offset[active]
        difference = (d[:, None] - shift[None, active]) - y[None, :]
        terms = q[:, None] / difference
        below = np.minimum(terms, 0.0).sum(axis=0)
        above = np.maximum(terms, 0.0).sum(axis=0)
        value = 1.0 - below - above
        open_ = np.abs(value) > 2.0 * _EPS * (1.0 + above - below)
        terms /= difference
        to_the_right = difference > 0.0
        slope_above = np.sum(terms, axis=0, where=to_the_right)
        slope_below = np.sum(terms, axis=0, where=~to_the_right)
        a = active
        low[a] = np.where(value > 0.0, y, low[a])
        high[a] = np.where(value > 0.0, high[a], y)
        to_left = (left[a] - shift[a]) - y
        to_right = (right[a] - shift[a]) - y
        constant = value + to_left * slope_below + to_right * slope_above
        sides = _by_side(near_left[a], to_left * to_left * slope_below, to_right * to_right * slope_above)
        proposed = _two_pole_root(constant, *sides, other[a])
        outside = ~((proposed > low[a]) & (proposed < high[a]))
        if outside.any():
            proposed[outside] = _between(low[a][outside], high[a][outside])
        moved = np.abs(proposed - y) > 2.0 * _EPS * np.abs(proposed)
        offset[a] = np.where(open_, proposed, y)
        active = a[open_ & moved]
        if active.size == 0:
            return shift, offset, count
    raise RunError(
        f"{active.size} roots of the secular equation did not converge in {_CAP} iterations; use fewer nodes"
    )


def _by_side(near_left: np.ndarray, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(near, far) of two arrays that belong to the left and the right pole."""
    return np.where(near_left, left, right), np.where(near_left, right, left)


def _two_pole_root(constant: np.ndarray, near: np.ndarray, far: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Root y between 0 and `other` of constant + near / y - far / (other - y) = 0, for near, far > 0."""
    span = np.abs(other)
    curve = np.copysign(1.0, other) * constant
    linear = near + far - curve * span
    root = np.sqrt(np.maximum(linear * linear + 4.0 * curve * near * span, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.where(linear > 0.0, 2.0 * near * span / (linear + root), (root - linear) / (2.0 * curve))
    return np.copysign(y, other)
