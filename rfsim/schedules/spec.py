"""The text form of a schedule."""

from collections.abc import Callable

from rfsim.checks import InputError
from rfsim.schedules.record import Schedule
from rfsim.schedules.shapes import constant, cosine, eight_one_one, power, wsd


def from_spec(spec: str, *, steps: int, lr: float, batch: float) -> Schedule:
    """Schedule from a text such as `wsd:decay=0.2,shape=linear,to=0.1`.

    Names and keys: `constant`; `wsd:decay,shape,to,warmup`; `8-1-1`; `cosine:to,warmup`;
    `power:vartheta,via,exact_batch`.

    Raises
    ------
    InputError : for an unknown name or key, or a value that the shape does not allow.
    """
    name, _, rest = spec.partition(":")
    shapes: dict[str, tuple[Callable[..., Schedule], dict[str, Callable[[str], object]]]] = {
        "constant": (constant, {}),
        "wsd": (wsd, {"decay": float, "shape": str, "to": float, "warmup": float}),
        "8-1-1": (eight_one_one, {}),
        "cosine": (cosine, {"to": float, "warmup": float}),
        "power": (power, {"vartheta": float, "via": str, "exact_batch": _switch}),
    }
    if name not in shapes:
        raise InputError(f"schedule {name!r} is not known; allowed: {', '.join(shapes)}, or a CSV file step,lr,batch")
    make, keys = shapes[name]
    options: dict[str, object] = {}
    for item in filter(None, rest.split(",")):
        key, equals, text = item.partition("=")
        if key not in keys or not equals:
            allowed = ", ".join(f"{one}=..." for one in keys) or "none"
            raise InputError(f"schedule {name} does not take {item!r}; allowed: {allowed}")
        if key in options:
            raise InputError(f"schedule {name} has {key} twice; give it once")
        try:
            options[key] = keys[key](text)
        except ValueError as error:
            raise InputError(f"schedule {name}: {key} must be a number, got {text!r}") from error
    if name == "power" and "vartheta" not in options:
        raise InputError("schedule power needs vartheta; write power:vartheta=0.5,via=lr or via=batch")
    return make(steps, lr, batch, **options)


def _switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError(text)
    return text == "1"
