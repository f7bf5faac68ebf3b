"""What a law is: named parameters with bounds and units, and a loss with its gradient on a prepared run."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from rfsim.checks import InputError
from rfsim.logs import Run

Prepared = TypeVar("Prepared")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a law.

    name : as in the equation of the law.
    low, high : bounds within which it is fitted, low < high. An amplitude that is fitted at the centre of the data
        (`Law.centres`) keeps its sign only: its fit may end outside, and says so.
    unit : in words, such as "loss" or "1 / clock".
    meaning : in words.
    log : fitted through its logarithm (a positive scale or exponent); else through its value.
    """

    name: str
    low: float
    high: float
    unit: str
    meaning: str
    log: bool = False


class Law(Protocol[Prepared]):
    """A form for the loss of a run, with free parameters; implementations are frozen dataclasses of their options."""

    @property
    def name(self) -> str:
        """The name on the command line, such as "forcing-memory"."""
        ...

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The k parameters, in the order of every array of values."""
        ...

    @property
    def linear(self) -> tuple[str, ...]:
        """Names of the amplitudes: the loss is a sum of them times functions of the other parameters."""
        ...

    def calibrated(self, runs: Sequence[Run]) -> "Law[Prepared]":
        """The law with the units (of lr, of batch) that these runs fix: chosen once, at the fit, and stored with it."""
        ...

    def prepare(self, run: Run, at: np.ndarray | None = None) -> Prepared:
        """Everything about a run that does not depend on the parameters, at its rows or at the steps `at` (m,)."""
        ...

    def evaluate(
        self, values: np.ndarray, prepared: Prepared, *, gradient: bool = True
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Loss (m,) and its gradient (m, k) in the parameters (None if not asked for)."""
        ...

    def starts(self, prepared: Sequence[Prepared], losses: Sequence[np.ndarray]) -> np.ndarray:
        """Parameter values (s, k) from which fits begin; those of the amplitudes are solved for and may be 0."""
        ...

    def centres(self, prepared: Sequence[Prepared]) -> dict[str, tuple[str, float]]:
        """Amplitudes fitted at the centre of the data: name -> (name of its exponent q, log x0), a = A x0^(-q)."""
        ...


@runtime_checkable
class Rated(Protocol):
    """A law whose clock is the sum of a rate of its own, such as the effective lr."""

    def rate(self, run: Run) -> np.ndarray:
        """The rate of every step (N,)."""
        ...


def needs_norm(one: Law[Any]) -> bool:
    """Whether the law is in the effective lr, for which a run needs the norm of every step."""
    return bool(getattr(one, "effective", False))


class Alternative(NamedTuple):
    """A form in which a law is as plausible as it stands.

    name : in the terms of the law, such as "A_1 = 0". law : with other options, but the same parameters and units.
    fixed : parameters to hold, name -> value.
    """

    name: str
    law: Law[Any]
    fixed: dict[str, float]


@runtime_checkable
class Variable(Protocol):
    """A law that says in which other forms it is as plausible."""

    def alternatives(self) -> tuple[Alternative, ...]:
        """Other forms of the law, units as they are."""
        ...


_LAWS: dict[str, type] = {}


def register(law: type) -> type:
    """Make a law known by the name that its instances have, for the command line and for fit files."""
    _LAWS[law().name] = law
    return law


def law_names() -> tuple[str, ...]:
    """Names of all laws of a loss curve."""
    return tuple(_LAWS)


def law(name: str, **options: Any) -> Law[Any]:
    """Return the law of this name with its options, such as `law("forcing-memory", clock_power=0.5)`.

    Raises
    ------
    InputError : for an unknown name or option.
    """
    if name not in _LAWS:
        raise InputError(f"law {name!r} is not known; allowed: {', '.join(_LAWS)}")
    known = _LAWS[name].__dataclass_fields__  # type: ignore[attr-defined]
    for option in options:
        if option not in known:
            raise InputError(f"law {name} does not take {option!r}; allowed: {', '.join(known) or 'no options'}")
    return _LAWS[name](**options)


def law_record(one: Law[Any]) -> dict[str, Any]:
    """The name and all options of a law, from which `law(**record)` makes it again."""
    return {"name": one.name, **asdict(one)}  # type: ignore[call-overload]


def parameter_names(one: Law[Any]) -> tuple[str, ...]:
    """Names of the parameters of a law, in order."""
    return tuple(parameter.name for parameter in one.parameters)


def values_of(one: Law[Any], values: object) -> np.ndarray:
    """Values (k,) from an array or from a mapping name -> value, checked against the parameters of the law.

    Raises
    ------
    InputError : for missing or unknown names, a wrong length, or values that are not finite.
    """
    names = parameter_names(one)
    if isinstance(values, dict):
        wrong = [name for name in values if name not in names] or [name for name in names if name not in values]
        if wrong:
            raise InputError(f"parameters of {one.name} must be {', '.join(names)}; {wrong[0]!r} is unknown or missing")
        values = [values[name] for name in names]
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (len(names),):
        raise InputError(f"values must hold the {len(names)} parameters {', '.join(names)}, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"values must be finite, got {names[int(np.argmin(np.isfinite(array)))]} not finite")
    return array
