"""The norm of a schedule that has not been run, for laws in the effective lr: options, and what a result says of it."""

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rfsim.checks import InputError

if TYPE_CHECKING:
    from rfsim.logs import NormModel

OPTIONS = ("weight_decay", "init_std")
REASON = "the law is in the lr: it needs no norm"


def add_norm_arguments(group: Any) -> None:
    """Declare the arguments."""
    group.add_argument(
        "--weight-decay",
        type=float,
        metavar="W",
        help="for laws in the effective lr: norms modelled with this decoupled weight decay; default as in the fitted "
        "runs, if theirs were modelled (--norm weight-decay)",
    )
    group.add_argument(
        "--init-std", type=float, metavar="S", help="with --weight-decay: rms of the initial parameters; default 0.02"
    )


def given_norm(options: argparse.Namespace) -> "NormModel | None":
    """The model that the options give, or None.

    Raises
    ------
    InputError : for values out of range, or an initial size without weight decay.
    """
    from rfsim.logs import NormModel

    if options.weight_decay is None:
        if options.init_std is not None:
            raise InputError("init-std goes with --weight-decay, which is missing; give both, or drop it")
        return None
    initial = {} if options.init_std is None else {"initial": options.init_std}
    return NormModel(options.weight_decay, **initial)


def described_norm(model: "NormModel | None") -> dict[str, float] | None:
    """The numbers of the model by name."""
    return None if model is None else asdict(model)
