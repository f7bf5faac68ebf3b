"""The Spectrum: everything the theory says about the loss goes through this record."""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import numpy as np

from rfsim.checks import InputError, non_negative_number, require_entries, same_length
from rfsim.precision import float64_array, is_traced

Array = np.ndarray | jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Spectrum:
    """Modes of the feature covariance seen by SGD, in any order.

    Attributes
    ----------
    eigenvalues : (n,) eigenvalues l_j > 0 of Lambda^(1/2) W W^T Lambda^(1/2).
    forcing_energy : (n,) energy w_j = <u_j, Lambda^(1/2) theta*>^2 that the target has in mode j.
    multiplicity : (n,) how often the mode counts in the memory kernel, sum_j multiplicity_j l_j^2 Q(l_j).
        One for a sampled W; the weight of a node where few nodes stand for many modes.
    floor : () energy of the zero modes, which SGD never moves.
    noise_var : () label-noise variance sigma^2.

    Notes
    -----
    A quadrature of a continuous spectrum may carry complex nodes and weights; sums then mean their real part.
    """

    eigenvalues: Array
    forcing_energy: Array
    multiplicity: Array
    floor: float | jax.Array
    noise_var: float | jax.Array

    @property
    def modes(self) -> int:
        """Number of modes n."""
        return int(self.eigenvalues.shape[0])

    def replace(self, **changes: object) -> "Spectrum":
        """Return a copy with some fields changed."""
        return replace(self, **changes)  # type: ignore[arg-type]


def spectrum(
    eigenvalues: object,
    forcing_energy: object,
    *,
    multiplicity: object = None,
    floor: float = 0.0,
    noise_var: float = 0.0,
) -> Spectrum:
    """Spectrum from its modes: the aligned linear model when no W is involved.

    Parameters
    ----------
    eigenvalues, forcing_energy : (n,) as in `Spectrum`. A mode with eigenvalue 0 adds its energy to the floor.
    multiplicity : (n,) positive weights of the modes in the memory kernel; default 1.
    floor, noise_var : non-negative numbers.

    Raises
    ------
    InputError : for negative, non-finite or unequally long arrays, or when no eigenvalue is positive.
    """
    lam = float64_array("eigenvalues", eigenvalues)
    energy = float64_array("forcing_energy", forcing_energy)
    count = np.ones(lam.shape) if multiplicity is None else float64_array("multiplicity", multiplicity)
    for name, array in (("eigenvalues", lam), ("forcing_energy", energy), ("multiplicity", count)):
        if array.ndim != 1 or array.shape[0] == 0:
            raise InputError(f"{name} must be a one-dimensional array with at least one entry, got shape {array.shape}")
    same_length(eigenvalues=lam, forcing_energy=energy, multiplicity=count)  # type: ignore[arg-type]
    if is_traced(lam, energy, count, floor, noise_var):
        return Spectrum(lam, energy, count, floor, noise_var)
    lam, energy, count = np.asarray(lam), np.asarray(energy), np.asarray(count)
    for name, array in (("eigenvalues", lam), ("forcing_energy", energy), ("multiplicity", count)):
        require_entries(name, array, np.isfinite(array) & (array >= 0.0), "finite and not negative")
    floor = non_negative_number("floor", floor)
    noise_var = non_negative_number("noise_var", noise_var)
    moving = lam > 0.0
    if not moving.any():
        raise InputError("eigenvalues must contain a positive entry, got only zeros; nothing would be learnt")
    floor += math.fsum(energy[~moving])
    return Spectrum(lam[moving], energy[moving], count[moving], floor, noise_var)


def read_spectrum(path: str | Path, *, noise_var: float = 0.0) -> Spectrum:
    """Read a Spectrum from a CSV file with columns `eigenvalue,target_energy`, rows in any order.

    `target_energy` is <u_j, Lambda^(1/2) theta*>^2; a row with eigenvalue 0 adds to the floor.

    Raises
    ------
    InputError : if the file cannot be read, a column is missing, or a value is not a finite number >= 0.
    """
    columns = read_columns(path, ("eigenvalue", "target_energy"))
    lam, energy = columns["eigenvalue"], columns["target_energy"]
    for name, array in (("eigenvalue", lam), ("target_energy", energy)):
        good = np.isfinite(array) & (array >= 0.0)
        require_entries(f"column {name} of {path}", array, good, "finite and not negative")
    return spectrum(lam, energy, noise_var=noise_var)


def read_columns(path: str | Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Read the named columns of a CSV file with a header as float64 arrays (n,), or raise InputError."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as handle:
            reader = csv.DictReader(handle, skipinitialspace=True)
            header = [name.strip() for name in reader.fieldnames or []]
            reader.fieldnames = header
            rows = [row for row in reader if any(value not in (None, "") for value in row.values())]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"file {path} cannot be read ({error}); give a readable CSV file with a header line"
        ) from error
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise InputError(f"file {path} has column {', '.join(twice)} more than once; keep one of each")
    surplus = [line for line, row in enumerate(rows, start=1) if None in row]
    if surplus:
        raise InputError(f"file {path} has more cells than columns in row {surplus[0]}; check its commas")
    missing = [name for name in names if name not in header]
    if missing:
        raise InputError(
            f"file {path} lacks column {', '.join(missing)}; its header is {','.join(header) or '(empty)'}, "
            f"expected {','.join(names)}"
        )
    if not rows:
        raise InputError(f"file {path} has a header but no rows; give at least one row")
    columns = {}
    for name in names:
        values = np.empty(len(rows))
        for line, row in enumerate(rows):
            try:
                values[line] = float(row[name])
            except (TypeError, ValueError) as error:
                raise InputError(
                    f"column {name} of {path} has {row[name]!r} in row {line + 1}; every cell must be a number"
                ) from error
        columns[name] = values
    return columns
