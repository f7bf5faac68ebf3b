"""Argument checks and error types (floor 0: imports nothing of rfsim and no jax).

Every message says which argument is wrong, what came, what is allowed and what to do.
"""

import math
import os
from collections.abc import Collection
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray

MOST = 2**62  # whole numbers up to this fit everywhere

FloatArray = NDArray[np.float64]


class InputError(ValueError):
    """Bad input: an argument that no run could be made with (the command line exits with 2)."""


class RunError(RuntimeError):
    """A run that cannot be done or went wrong: too large, unstable, not writable (the command line exits with 1)."""


def finite_number(name: str, value: object) -> float:
    """Return `value` as a finite float, or raise InputError."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real | np.ndarray):
        raise InputError(f"{name} must be a finite number, got {value!r}; pass a float")
    array = np.asarray(value)
    if array.ndim != 0 or array.dtype.kind not in "iuf":
        raise InputError(f"{name} must be a single finite number, got {value!r}; pass a float")
    number = float(array)
    if not math.isfinite(number):
        raise InputError(f"{name} must be finite, got {number}; pass an ordinary number")
    return number


def positive_number(name: str, value: object, *, allow_inf: bool = False) -> float:
    """Return `value` as a float > 0 (`inf` too if `allow_inf`), or raise InputError."""
    if allow_inf and isinstance(value, Real) and float(value) == math.inf:
        return math.inf
    number = finite_number(name, value)
    if number <= 0.0:
        raise InputError(f"{name} must be positive, got {number:g}; pass a number above 0")
    return number


def non_negative_number(name: str, value: object) -> float:
    """Return `value` as a float >= 0, or raise InputError."""
    number = finite_number(name, value)
    if number < 0.0:
        raise InputError(f"{name} must not be negative, got {number:g}; pass 0 or a positive number")
    return number


def whole_number(name: str, value: object, *, least: int = 1) -> int:
    """Return `value` as an int >= `least`, or raise InputError."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral | Real):
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}; pass an int")
    if isinstance(value, Integral) and abs(int(value)) > MOST:
        raise InputError(f"{name} must be at most 2^62, got {str(int(value))[:24]}...; pass a smaller whole number")
    real = float(value)
    if math.isfinite(real) and abs(real) > MOST:
        raise InputError(f"{name} must be at most 2^62, got {real:g}; pass a smaller whole number")
    if not math.isfinite(real) or real != math.floor(real):
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}; pass an int")
    number = int(value) if isinstance(value, Integral) else int(real)
    if number < least:
        raise InputError(f"{name} must be at least {least}, got {number}; pass a larger whole number")
    return number


def told_apart(first: float, second: float) -> tuple[str, str]:
    """Two numbers as text, with as many digits (from 6 on) as it takes to see that they differ."""
    if first == second:
        return f"{first:g}", f"{second:g}"
    texts = ("", "")
    for digits in range(6, 18):
        texts = f"{first:.{digits}g}", f"{second:.{digits}g}"
        if texts[0] != texts[1]:
            break
    return texts


def one_of(name: str, value: object, allowed: Collection[str]) -> str:
    """Return `value` if it is one of the `allowed` words, or raise InputError."""
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(sorted(allowed))}; got {value!r}; pick one of these")
    return value


def finite_vector(name: str, value: object, *, least: float | None = None, strict: bool = False) -> FloatArray:
    """Return `value` as a one-dimensional, non-empty, finite float64 array with entries >= (or >) `least`."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be a one-dimensional array of numbers, got {type(value).__name__}") from error
    if array.ndim != 1 or array.size == 0:
        raise InputError(
            f"{name} must be a one-dimensional array with at least one entry, got shape {array.shape}; "
            f"pass a list or a 1-d array"
        )
    require_entries(name, array, np.isfinite(array), "finite")
    if least is not None:
        good = array > least if strict else array >= least
        require_entries(name, array, good, f"{'above' if strict else 'at least'} {least:g}")
    return array


def require_entries(name: str, array: NDArray[np.generic], good: NDArray[np.bool_], wanted: str) -> None:
    """Raise InputError naming the first entry of `array` that is not `good`."""
    if not good.all():
        first = int(np.argmin(good))
        raise InputError(
            f"{name} must be {wanted} everywhere, got {array[first]} at position {first} "
            f"({int((~good).sum())} of {array.size} entries are wrong); correct these entries"
        )


def same_length(**arrays: NDArray[np.generic]) -> None:
    """Raise InputError unless all named arrays have the same length."""
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError(f"{' and '.join(lengths)} must have the same length, got: {told}; make them equally long")


def require_memory(what: str, needed: float, remedy: str) -> None:
    """Raise RunError if `needed` bytes exceed four fifths of this machine's memory."""
    held = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 16 * 2**30
    if needed > 0.8 * held:
        raise RunError(
            f"{what} needs {needed / 2**30:.1f} GiB, this machine has {held / 2**30:.1f} GiB of memory; {remedy}"
        )
