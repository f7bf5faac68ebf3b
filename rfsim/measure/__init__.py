"""Measured exponents of curves y(T) = floor + A T^-q L(T), and agreement between two curves.

Conventions. Exponents are *minus* logarithmic slopes, so a decaying curve has a positive one. Widths of stretches and
of smoothing are in decades of T. A recorded time 0 has no logarithm and is dropped. `stderr` holds one standard error
per value and the points are taken as independent; without it a value still counts as known to a few rounding errors
only, so that a curve which has come within machine precision of its floor gets the error bars it deserves.

Plain NumPy on concrete arrays; nothing here imports jax.
"""

from rfsim.measure.agreement import Agreement, agreement, family_threshold
from rfsim.measure.fits import fit_exponent, local_exponents
from rfsim.measure.records import ExponentFit, LocalExponents
from rfsim.measure.windows import power_window

__all__ = [
    "Agreement",
    "ExponentFit",
    "LocalExponents",
    "agreement",
    "family_threshold",
    "fit_exponent",
    "local_exponents",
    "power_window",
]
