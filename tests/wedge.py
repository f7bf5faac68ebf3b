"""A slow witness of the deterministic equivalent that shares nothing with rfsim: every population eigenvalue written
out, complex nodes on a closed wedge around the positive spectrum, extended precision where the machine has it.

    int h dmu = -(1/pi) Im of the integral of g h along  arc |z| = b up, ray inwards at angle phi, arc |z| = a down,

with g = sum_j b_j^2 / (lambda_j m - z) for the forcing and g = M z (1 - m) for the memory. Zero stays outside.
"""

from typing import NamedTuple

import numpy as np

Real, Complex = np.longdouble, np.clongdouble
EPS = float(np.finfo(Real).eps)
I = Complex(1j)  # noqa: E741
PI = 2 * np.arccos(Real(0))


class Wedge(NamedTuple):
    """Complex nodes (n,), their weights for forcing and memory (n,), and which of them lie on the ray."""

    nodes: np.ndarray
    forcing: np.ndarray
    memory: np.ndarray
    ray: slice

    def laplace(self, times, *, closed=True):
        """F(T) - floor and K(T), (k,), (k,); without the arcs if not `closed`."""
        part = slice(None) if closed else self.ray
        decay = np.exp(-2 * np.asarray(times, dtype=Real)[:, None] * self.nodes[part])
        return tuple((decay * w[part]).sum(axis=1).real.astype(float) for w in (self.forcing, self.memory))


def legendre(count):
    """Gauss-Legendre nodes and weights on [-1, 1], by Newton's method in extended precision."""
    x = np.polynomial.legendre.leggauss(count)[0].astype(Real)
    for _ in range(4):
        before, value = np.ones_like(x), x.copy()
        for k in range(2, count + 1):
            before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / Real(k)
        slope = count * (x * value - before) / (x * x - 1)
        x = x - value / slope
    return x, 2 / ((1 - x * x) * slope * slope)


def fixed_point(lam, width, z, start):
    """m(z) by Newton's method from a neighbour's value."""
    m = start
    for _ in range(100):
        under = lam * m - z
        total = (lam / under).sum() / width
        step = (m * (1 + total) - 1) / (1 + total - m * (lam**2 / under**2).sum() / width)
        m = m - step
        if abs(step) <= 4 * EPS * abs(m):
            return m
    return m


def wedge(eigenvalues, target, width, inner, outer, *, angle=0.7, share=None):
    """Nodes and weights for |z| from `inner` (below the support) to `outer` (above it).

    `share` stands in the place of the width in the equation of m(z): another number is a wrong theory.
    """
    lam, energy = (np.asarray(a, dtype=Real) for a in (eigenvalues, eigenvalues * np.square(target)))
    angle, inner, outer = Real(angle), Real(inner), Real(outer)
    length = np.log(outer / inner)
    x, w = legendre(30 + int(15 * length))
    up, wide = legendre(50)
    turn = angle * (up + 1) / 2
    radius = np.exp(np.log(outer) - length * (x + 1) / 2)
    arc, ray = np.exp(I * turn), np.exp(I * angle)
    z = np.concatenate([outer * arc, radius * ray, inner * arc[::-1]])
    dz = np.concatenate(
        [
            I * outer * arc * wide * angle / 2,
            -radius * ray * w * length / 2,
            -I * inner * (arc * wide)[::-1] * angle / 2,
        ]
    )
    share, m, found = width if share is None else share, Complex(1), []
    for factor in np.geomspace(1e3, 1.0, 40):  # from infinity, where m = 1
        m = fixed_point(lam, share, factor * z[0], m)
    for one in z:
        m = fixed_point(lam, share, one, m)
        found.append(m)
    m = np.array(found)
    assert (m.imag < 0).all()
    g = (energy[:, None] / (lam[:, None] * m - z)).sum(axis=0)
    return Wedge(z, I / PI * dz * g, I * width / PI * dz * z * (1 - m), slice(up.size, up.size + x.size))


def risk(nodes, floor, noise, lr, batch):
    """Risk at steps 0..N by the mode recursion on complex nodes; what it means is the real part."""
    rho, z, history = nodes.forcing.copy(), nodes.nodes, []
    for eta, size in zip([*lr, 0.0], [*batch, 1.0], strict=True):
        history.append(float(floor + rho.sum().real))
        x = Real(eta) * z
        rho = ((1 - x) ** 2 + x * x / Real(size)) * rho + Real(eta) ** 2 / Real(size) * nodes.memory * (
            history[-1] + noise
        )
    return np.array(history)
