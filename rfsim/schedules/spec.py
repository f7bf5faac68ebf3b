"""The text form of a schedule."""

from collections.abc import Callable

from rfsim.checks import InputError
from rfsim.schedules.powers import polynomial, power
from rfsim.schedules.record import Schedule
from rfsim.schedules.shapes import (
    _length,
    batch_ramp,
    constant,
    cosine,
    eight_one_one,
    exponential,
    linear,
    stages,
    warmed,
    wsd,
)


def _switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError(text)
    return text == "1"


def _numbers(text: str) -> list[float]:
    return [float(item) for item in text.split("/")]


_FALL: dict[str, Callable[[str], object]] = {"to": float, "warmup": float}
SHAPES: dict[str, tuple[Callable[..., Schedule], dict[str, Callable[[str], object]], str]] = {
    "constant": (constant, {}, ""),
    "wsd": (wsd, {"decay": float, "shape": str, "to": float, "warmup": float}, ""),
    "8-1-1": (eight_one_one, {}, ""),
    "stages": (stages, {"at": _numbers, "lr_to": _numbers, "batch_to": _numbers}, "at"),
    "cosine": (cosine, _FALL, ""),
    "linear": (linear, _FALL, ""),
    "exponential": (exponential, _FALL, ""),
    "power": (power, {"vartheta": float, "via": str, "exact_batch": _switch}, "vartheta"),
    "polynomial": (polynomial, {"lr_decay": float, "batch_growth": float, "exact_batch": _switch}, ""),
    "batch-ramp": (batch_ramp, {"to": float, "start": float, "shape": str, "exact_batch": _switch}, ""),
}
"""Name -> function, its keys with how each is read, and the key that it needs."""

_EXAMPLES = {"stages": "stages:at=0.5/0.75,lr_to=0.1/0.01", "power": "power:vartheta=0.5,via=lr or via=batch"}


def from_spec(spec: str, *, steps: int, lr: float, batch: float) -> Schedule:
    """Schedule from a text such as `wsd:decay=0.2,shape=linear,to=0.1`; lr is the peak, batch the first.

    Names and keys: `constant`; `wsd:decay,shape,to`; `8-1-1`; `stages:at,lr_to,batch_to` (values of several stages
    with slashes, at=0.5/0.75); `cosine:to`; `linear:to`; `exponential:to`; `power:vartheta,via,exact_batch`;
    `polynomial:lr_decay,batch_growth,exact_batch`; `batch-ramp:to,start,shape,exact_batch`; and `warmup` with any.

    Raises
    ------
    InputError : for an unknown name or key, or a value that the shape does not allow.
    """
    name, options = read_spec(spec)
    make, own, _ = SHAPES[name]
    warmup = options.pop("warmup", 0.0) if "warmup" not in own else 0.0
    return warmed(make(steps, lr, batch, **options), warmup)  # type: ignore[arg-type]


def spec_warmup(spec: str, steps: int) -> int | None:
    """Steps of the warm-up that a schedule text of so many steps names, or None if it names none.

    Raises
    ------
    InputError : as `from_spec`.
    """
    own = read_spec(spec)[1].get("warmup")
    return None if own is None else _length("warmup", own, steps)  # type: ignore[arg-type]


def read_spec(spec: str) -> tuple[str, dict[str, object]]:
    """Name and options of a schedule text, checked against the keys of its shape."""
    name, _, rest = spec.partition(":")
    if name not in SHAPES:
        raise InputError(f"schedule {name!r} is not known; allowed: {', '.join(SHAPES)}, or a CSV file step,lr,batch")
    _, own, needed = SHAPES[name]
    keys: dict[str, Callable[[str], object]] = {**own, "warmup": float}
    options: dict[str, object] = {}
    for item in filter(None, rest.split(",")):
        key, equals, text = item.partition("=")
        if key not in keys or not equals:
            allowed = ", ".join(f"{one}=..." for one in keys)
            raise InputError(f"schedule {name} does not take {item!r}; allowed: {allowed}")
        if key in options:
            raise InputError(f"schedule {name} has {key} twice; give it once")
        try:
            options[key] = keys[key](text)
        except ValueError as error:
            raise InputError(f"schedule {name}: {key} must be a number, got {text!r}") from error
    if needed and needed not in options:
        raise InputError(f"schedule {name} needs {needed}; write {_EXAMPLES[name]}")
    return name, options
