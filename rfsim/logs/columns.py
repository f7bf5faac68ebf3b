"""Which column of a log is which: aliases of names, and the choice where several fit."""

import re
from collections.abc import Iterable, Sequence

from rfsim.checks import InputError

ALIASES: dict[str, set[str]] = {
    "step": {
        "step",
        "steps",
        "iter",
        "iters",
        "iteration",
        "iterations",
        "global_step",
        "_step",
        "trainer/global_step",
        "train/global_step",
        "train/step",
        "optimizer_step",
        "update",
        "num_updates",
    },
    "tokens": {
        "tokens",
        "token",
        "num_tokens",
        "tokens_seen",
        "n_tokens",
        "total_tokens",
        "train_tokens",
        "consumed_tokens",
        "num_input_tokens_seen",
        "throughput/total_tokens",
        "train/tokens",
        "time/token",
    },
    "loss": {"loss"},
    "validation": {
        "val_loss",
        "val/loss",
        "valid_loss",
        "valid/loss",
        "validation_loss",
        "validation/loss",
        "eval_loss",
        "eval/loss",
        "test_loss",
        "test/loss",
        "val/val_loss",
        "eval/eval_loss",
        "valid/valid_loss",
        "loss/val",
        "loss/eval",
        "loss/valid",
    },
    "training": {"train_loss", "train/loss", "training_loss", "training/loss", "train/train_loss", "loss/train"},
    "perplexity": {
        "ppl",
        "perplexity",
        "val_ppl",
        "val/ppl",
        "val_perplexity",
        "val/perplexity",
        "val/val_perplexity",
        "valid/ppl",
        "eval_perplexity",
        "eval/perplexity",
        "train_ppl",
        "train/ppl",
        "train_perplexity",
        "train/perplexity",
        "train/train_perplexity",
    },
    "lr": {
        "lr",
        "learning_rate",
        "learningrate",
        "train_lr",
        "train/lr",
        "train/train_lr",
        "train/learning_rate",
        "optim/lr",
        "optimizer/lr",
        "optim/learning_rate",
        "optim/learning_rate_group0",
        "lr-adamw",
        "lr-adam",
        "lr-sgd",
    },
    "batch": {"batch", "batch_size", "global_batch_size", "train/batch_size", "train/global_batch_size"},
    "norm": {
        "param_norm",
        "parameter_norm",
        "params_norm",
        "weight_norm",
        "train/param_norm",
        "train/weight_norm",
        "optim/param_norm",
    },
}
"""Names of each role in lower case; `validation` before `training` before a bare `loss` before `perplexity`."""

LOSSES = ("validation", "loss", "training", "perplexity")


def plain(name: str) -> str:
    """The name as the aliases have it: lower case, without blanks around it, inner blanks and dots as underlines."""
    return re.sub(r"[ .]+", "_", re.sub(r"\s*/\s*", "/", name.strip().lower()))


def is_perplexity(name: str) -> bool:
    """True if the last part of the name says that the column holds a perplexity."""
    return any(word in plain(name).rpartition("/")[2].split("_") for word in ("ppl", "perplexity"))


def candidates(names: Iterable[str], role: str) -> list[str]:
    """Columns that could play a role by their names, in the order of the file."""
    return [name for name in names if plain(name) in ALIASES[role]]


def named(argument: str, wanted: str, names: Sequence[str]) -> str:
    """The column that the caller named, as the file writes it.

    Raises
    ------
    InputError : if there is none, or two names differ only in case; with the columns that are present.
    """
    if wanted in names:
        return wanted
    alike = [name for name in names if plain(name) == plain(wanted)]
    if len(alike) == 1:
        return alike[0]
    raise InputError(
        f"{argument} names the column {wanted!r}, which is {'twice' if alike else 'not'} in the log; "
        f"its columns of numbers are {', '.join(names) or '(none)'}; name one of them"
    )


def loss_columns(names: Iterable[str]) -> list[str]:
    """Columns that could be the loss, best first: validation, a bare `loss`, training, perplexity."""
    listed = list(names)
    return [name for role in LOSSES for name in candidates(listed, role)]
