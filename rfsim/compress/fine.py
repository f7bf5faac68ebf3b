"""Millions of modes to some thousand nodes in narrow bins, with errors of the size of rounding."""

import numpy as np

from rfsim.compress.gauss import lanczos, rule
from rfsim.compress.integrands import NEGLIGIBLE, Modes, join, place

_NODES, _WIDTH = 12, 0.22  # nodes of a bin, and its width in z = place(l)
_STEEP = 14.0  # most by which the log of a measure below l rises within a bin, so that its low end keeps digits
_PIECE = 2**16  # most modes in a bin; bins are also worked on in groups of about this many modes, which stay in cache
_CUT = 2.5e-22  # modes below this do not move for T up to 2e16: 2 T l < 1e-5


def frozen(modes: Modes) -> Modes:
    """Merge the modes that do not move within any horizon float64 steps can reach.

    Their energy goes to its mean l, their multiplicity to two nodes with the same sums of m l, m l^2 and m l^3 (the
    Gauss-Radau rule of m l with a node at the smallest l): kappa needs the first, what starts to decay the others.
    """
    cut = int(np.searchsorted(modes.lam, _CUT))
    low, rest = modes.take(slice(0, cut)), modes.take(slice(cut, None))
    least, energy, trace = low.lam[0], low.forcing.sum(), low.kernel / low.lam
    above = (low.lam - least) * trace
    at, forcing, kernel = [least], [0.0], [low.kernel.sum()]
    if above.sum() > 1e-14 * low.kernel.sum():
        other = (above @ low.lam) / above.sum()
        share = above.sum() / (other - least)
        at, forcing = [least, other], [0.0, 0.0]
        kernel = [max(trace.sum() - share, 0.0) * least, share * other]
    if energy > 0.0:
        at, forcing, kernel = [*at, low.forcing @ low.lam / energy], [*forcing, energy], [*kernel, 0.0]
    return join([Modes(np.array(at), np.array(forcing), np.array(kernel)), rest])


def fine_rule(modes: Modes) -> Modes:
    """Gauss rules of `_NODES` nodes in every bin that has more modes; the largest mode stays as it is."""
    labels = [place(modes.lam) / _WIDTH]
    for part in (modes.forcing, modes.kernel):
        below = np.cumsum(part)
        labels.append(np.log(np.maximum(below / max(below[-1], 1e-300), 0.1 * NEGLIGIBLE)) / _STEEP)
    bins = np.floor(np.stack(labels))
    bins[:, -1] = np.inf
    starts = np.flatnonzero((np.diff(bins, prepend=-np.inf) != 0.0).any(axis=0))
    sizes = np.diff(np.append(starts, modes.lam.size))
    starts = np.concatenate([first + np.arange(0, size, _PIECE) for first, size in zip(starts, sizes, strict=True)])
    sizes = np.diff(np.append(starts, modes.lam.size))
    dense = sizes > _NODES
    parts = [modes.take(np.repeat(~dense, sizes))]
    group = np.cumsum(np.where(dense, sizes, 0)) // _PIECE
    for number in np.unique(group[dense]):
        chosen = dense & (group == number)
        parts.extend(_narrow(modes.take(_members(starts[chosen], sizes[chosen])), sizes[chosen]))
    return join(parts)


def _members(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Indices of all modes of the bins, bin after bin."""
    first = np.cumsum(sizes) - sizes
    return np.arange(sizes.sum()) + np.repeat(starts - first, sizes)


def _narrow(modes: Modes, sizes: np.ndarray, *, alone: bool = False) -> list[Modes]:
    """Rules of consecutive bins; a bin in which a weight comes out negative gets one rule per measure."""
    starts = np.cumsum(sizes) - sizes
    low, high = modes.lam[starts], modes.lam[starts + sizes - 1]
    middle, half = (low + high) / 2.0, (high - low) / 2.0
    y = (modes.lam - np.repeat(middle, sizes)) / np.repeat(half, sizes)
    nodes, forcing, kernel = rule(lanczos(y, modes, sizes, _NODES), _NODES)
    lam = middle[:, None] + half[:, None] * nodes
    rounding = [1e-17 * weight.sum(axis=1) for weight in (forcing, kernel)]
    good = (forcing.min(axis=1) >= -rounding[0]) & (kernel.min(axis=1) >= -rounding[1])
    good |= alone  # Gauss weights of one measure are squares
    found = [Modes(lam[good].ravel(), forcing[good].clip(0.0).ravel(), kernel[good].clip(0.0).ravel())]
    if not good.all():
        rest, lengths = modes.take(np.repeat(~good, sizes)), sizes[~good]
        nothing = np.zeros(rest.lam.size)
        for one in (rest._replace(kernel=nothing), rest._replace(forcing=nothing)):
            found += _narrow(one, lengths, alone=True)
    return found
