"""The configuration that a tracker keeps with a run -> the learning-rate shapes that it may mean."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from rfsim.logs.shapes import Shape, warmed

KEYS = {
    "scheduler": ("scheduler", "lr_scheduler", "lr_scheduler_type", "lr_schedule", "lr_decay_style", "schedule"),
    "steps": (
        "iterations",
        "max_steps",
        "total_steps",
        "num_steps",
        "train_iters",
        "max_iters",
        "num_train_steps",
        "max_train_steps",
        "num_iterations",
    ),
    "warmup": ("warmup_steps", "warmup_iters", "num_warmup_steps", "lr_warmup_iters", "warmup"),
    "warmup_share": ("warmup_ratio", "warmup_fraction", "lr_warmup_fraction", "warmup_percent"),
    "length": ("lr_decay_iters", "lr_decay_steps"),
    "fraction": ("wsd_fract_decay", "decay_fraction", "decay_frac", "fract_decay", "cooldown_fraction"),
    "decay": ("decay_steps", "num_decay_steps", "cooldown_steps", "lr_wsd_decay_iters", "decay_iters"),
    "decay_kind": ("decay_type", "decay_shape", "lr_wsd_decay_style", "cooldown_type"),
    "lr": ("lr", "learning_rate", "max_lr", "peak_lr", "base_lr"),
    "scale": ("wsd_final_lr_scale", "final_lr_scale", "min_lr_ratio", "final_lr_ratio", "lr_min_ratio"),
    "final": ("final_lr", "min_lr", "lr_end", "eta_min", "cos_final_lr"),
    "wsd_final": ("final_lr", "min_lr", "lr_end"),
    "resume": ("resume_from", "resume_from_checkpoint", "resume", "parent", "init_from_run"),
}
"""Names of each entry, the first that is present counts."""

LENGTHS = ("sequence_length", "seq_length", "seq_len", "block_size", "context_length", "max_seq_len")
ACCUMULATIONS = ("acc_steps", "gradient_accumulation_steps", "grad_accum_steps", "accumulate_grad_batches")

SHAPES = {
    "wsd": "wsd",
    "warmup_stable_decay": "wsd",
    "warmup-stable-decay": "wsd",
    "trapezoidal": "wsd",
    "cos": "cosine",
    "cosine": "cosine",
    "cosine_with_warmup": "cosine",
    "onecycle": "cosine",
    "one_cycle": "cosine",
    "linear": "linear",
    "linear_with_warmup": "linear",
    "constant": "constant",
    "constant_with_warmup": "constant",
    "none": "constant",
}
DECAYS = {
    "linear": "linear",
    "lin": "linear",
    "sqrt": "sqrt",
    "1-sqrt": "sqrt",
    "1_sqrt": "sqrt",
    "minus_sqrt": "sqrt",
    "exp": "exponential",
    "exponential": "exponential",
    "cos": "cosine",
    "cosine": "cosine",
}


@dataclass(frozen=True)
class Plan:
    """What a configuration says about the schedule: kind, peak, steps, warm-up, decay start, floors it may mean.

    said : whether it names the floor.
    """

    kind: str
    peak: float
    steps: int
    warmup: int
    start: int
    floors: tuple[float, ...]
    said: bool = True

    def shape(self, floor: float, *, shift: int = 0) -> Shape:
        """The shape with this floor, its start and end `shift` steps later; without the warm-up."""
        if self.kind == "constant" or self.start >= self.steps:
            return Shape("constant", self.peak)
        return Shape(self.kind, self.peak, self.start + shift, self.steps + shift, floor)

    def shapes(self, shifts: Iterable[int] = (0, -1, 1)) -> list[tuple[int, Shape]]:
        """All shapes that the plan may mean, each with its shift, the most likely first."""
        return [
            (shift, warmed(self.shape(floor, shift=shift), self.warmup)) for shift in shifts for floor in self.floors
        ]


def plan_of(config: Mapping[str, object], lowest: float | None) -> Plan | None:
    """The plan in a configuration, or None if it names no schedule that is known here.

    Parameters
    ----------
    config : entries by name.
    lowest : smallest logged lr, one of the floors that a decay may have when the configuration does not say it.
    """
    word = _entry(config, "scheduler")
    peak, steps = _real(config, "lr"), _real(config, "steps")
    if not isinstance(word, str) or word.lower() not in SHAPES or peak is None or steps is None:
        return None
    if peak <= 0 or steps < 1:
        return None
    kind, start = SHAPES[word.lower()], 0.0
    steps = _real(config, "length") or steps  # the decay may end before the run, or be cut by its end
    rise = _real(config, "warmup_share") or 0.0
    warmup = _real(config, "warmup") or rise * steps
    warmup = warmup * steps if 0 < warmup < 1 else warmup
    if steps < 1 or not 0.0 <= rise < 1.0:
        return None
    if kind == "wsd":
        share, down = _real(config, "fraction"), _real(config, "decay")
        if share is None and down is None:
            return None
        start = steps - (down if share is None else share * steps)  # type: ignore[operator]
        kind = DECAYS.get(str(_entry(config, "decay_kind") or "linear").lower(), "")
        if not kind:
            return None
    elif kind != "constant":
        start = warmup
    scale = _real(config, "scale")
    if SHAPES[word.lower()] == "wsd":  # its own key goes before the general ones; those of a cosine are not its
        told = (None if scale is None else scale * peak, _real(config, "wsd_final"))
    else:
        told = (_real(config, "final"), None if scale is None else scale * peak)
    said = [floor for floor in told if floor is not None and _is_floor(floor, peak, kind)]
    guessed = [0.0] if lowest is None else [lowest, 0.1 * peak, 0.0]
    floors = dict.fromkeys([*said, *(floor for floor in guessed if _is_floor(floor, peak, kind))])
    return Plan(kind, peak, round(steps), round(warmup), round(start), tuple(floors), bool(said))


def _is_floor(lr: float, peak: float, kind: str) -> bool:
    return 0.0 <= lr <= peak and (lr > 0.0 or kind != "exponential")


def resumed_from(config: Mapping[str, object]) -> tuple[str, int | None] | None:
    """What the run was resumed from (a path or a name) and at which step, or None if it was not."""
    value = _entry(config, "resume")
    if not isinstance(value, str) or not value.strip() or value.lower() in ("none", "null", "false", "true", "auto"):
        return None
    digits = "".join(letter for letter in PurePosixPath(value).name.split("-")[-1].split("_")[-1] if letter.isdigit())
    named_so = (
        PurePosixPath(value).name.replace("step", "").replace("ckpt", "").replace("checkpoint", "").strip("-_.pth")
    )
    return value, int(digits) if digits and named_so == digits else None


def is_parent(name: str, resume: str) -> bool:
    """True if the run `name` is the one that `resume` points to: a part of its path, or the whole of it."""
    return name == resume or name in PurePosixPath(resume.replace("\\", "/")).parts


def tokens_per_step(config: Mapping[str, object]) -> tuple[float, str] | None:
    """Tokens of one step and the product they come from, or None."""
    for key in ("tokens_per_step", "tokens_per_batch", "tokens_per_update", "batch_size_tokens"):
        value = _finite(config.get(key))
        if value:
            return value, key
    length = first_positive(
        config, ("sequence_length", "seq_length", "seq_len", "block_size", "context_length", "max_seq_len")
    )
    if length is None:
        return None
    whole = first_positive(config, ("global_batch_size", "train_batch_size", "total_batch_size"))
    if whole is not None:
        return whole[1] * length[1], f"{whole[0]} * {length[0]}"
    size = first_positive(config, ("batch_size", "micro_batch_size"))
    if size is None:
        return None
    parts = [size, length]
    more = first_positive(
        config, ("acc_steps", "gradient_accumulation_steps", "grad_accum_steps", "accumulate_grad_batches")
    )
    parts += [more] if more is not None else []
    return math.prod(value for _, value in parts), " * ".join(key for key, _ in parts)


def batch_size(config: Mapping[str, object]) -> str | None:
    """The batch that a configuration speaks of, in words, or None."""
    keys = ("global_batch_size", "batch_size", "acc_steps", "gradient_accumulation_steps", "world_size")
    parts = [f"{key} {_finite(config.get(key)):g}" for key in keys if _finite(config.get(key)) is not None]
    return ", ".join(parts) or None


def peak_of(config: Mapping[str, object]) -> float | None:
    """Peak learning rate of a configuration, or None."""
    return _real(config, "lr")


def _entry(config: Mapping[str, object], what: str) -> object:
    return next((config[key] for key in KEYS[what] if config.get(key) is not None), None)


def _real(config: Mapping[str, object], what: str) -> float | None:
    return next((value for key in KEYS[what] if (value := _finite(config.get(key))) is not None), None)


def first_positive(config: Mapping[str, object], keys: Iterable[str]) -> tuple[str, float] | None:
    """The first of the keys whose entry is a number above 0, also one written as text, with that number."""
    return next(((key, value) for key in keys if (value := _finite(config.get(key))) is not None and value > 0), None)


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
