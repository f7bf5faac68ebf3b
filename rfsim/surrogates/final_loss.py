"""The final loss of a training run from model size and tokens: points, the law, its fit and its bootstrap."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rfsim.checks import (
    FloatArray,
    InputError,
    finite_vector,
    positive_number,
    same_length,
    whole_number,
)
from rfsim.logs.columns import named, plain
from rfsim.logs.formats import read_log
from rfsim.surrogates.laws import Parameter, register

ALIASES = {
    "model_size": ("model_size", "params", "parameters", "num_params", "n_params", "n", "size"),
    "tokens": ("tokens", "training_tokens", "num_tokens", "train_tokens", "n_tokens", "d"),
    "flop": ("training_flop", "flop", "flops", "training_flops", "compute", "c"),
    "loss": ("loss", "final_loss", "val_loss", "validation_loss", "val/loss", "eval_loss", "train_loss"),
}
"""Names of the columns of a table of points, plain (lower case, underlines), best first."""


@dataclass(frozen=True)
class Points:
    """Final losses of n runs: model_size N (n,) parameters, tokens D (n,), loss (n,), all positive."""

    model_size: FloatArray
    tokens: FloatArray
    loss: FloatArray

    def __len__(self) -> int:
        return len(self.loss)

    def without_largest(self, count: int) -> "Points":
        """The points without the `count` largest losses, in the same order; of equal losses the later ones stay.

        Raises
        ------
        InputError : for a count that leaves no point.
        """
        count = whole_number("count", count, least=0)
        if count > len(self) - 1:
            raise InputError(f"count must be at most {len(self) - 1} to leave a point, got {count}; drop fewer points")
        keep = np.sort(np.argsort(-self.loss, kind="stable")[count:])
        return Points(self.model_size[keep], self.tokens[keep], self.loss[keep])


def points(model_size: object, tokens: object, loss: object) -> Points:
    """Return checked points from three arrays of one length.

    Raises
    ------
    InputError : for entries that are not positive and finite, or for different lengths.
    """
    arrays = {
        name: finite_vector(name, value, least=0.0, strict=True)
        for name, value in (("model_size", model_size), ("tokens", tokens), ("loss", loss))
    }
    same_length(**arrays)
    return Points(**arrays)


def read_points(
    path: str | Path,
    *,
    model_size: str | None = None,
    tokens: str | None = None,
    flop: str | None = None,
    loss: str | None = None,
    kc: float = 6.0,
) -> Points:
    """Read points from a table with a header; tokens are C/(kc N) where the file has the training FLOP C only.

    Parameters
    ----------
    model_size, tokens, flop, loss : names of columns; without them `ALIASES` decide, a column of tokens before FLOP.
    kc : FLOP of training per parameter and token.

    Raises
    ------
    InputError : if the file or a column is missing, a cell is not a positive number, or both tokens and flop are named.
    """
    kc = positive_number("kc", kc)
    if tokens is not None and flop is not None:
        raise InputError(f"tokens {tokens!r} and flop {flop!r} both fix the tokens; name one of them")
    columns = {name: values for table in read_log(path).tables for name, values in table.columns.items()}

    def column(role: str, wanted: str | None) -> FloatArray | None:
        if wanted is not None:
            return columns[named(role, wanted, list(columns))]
        return next((columns[name] for alias in ALIASES[role] for name in columns if plain(name) == alias), None)

    size, final = column("model_size", model_size), column("loss", loss)
    measured = None if flop is not None else column("tokens", tokens)
    compute = None if measured is not None else column("flop", flop)
    lacking = [role for role, values in (("model_size", size), ("loss", final)) if values is None]
    if lacking or size is None or (measured is None and compute is None):
        raise InputError(
            f"points {path} has no known column for {lacking[0] if lacking else 'tokens or flop'}; its columns of "
            f"numbers are {', '.join(columns)}; name one with {lacking[0] if lacking else 'tokens= or flop'}="
        )
    return points(size, measured if compute is None else compute / (kc * size), final)


class LogPoints(NamedTuple):
    """Points as the law sees them: log N (m,) and log D (m,)."""

    size: FloatArray
    tokens: FloatArray


@register
@dataclass(frozen=True)
class FinalLoss:
    """L(N, D) = E + A N^(-alpha) + B D^(-beta): the loss at the end of a run of N parameters on D tokens.

    Its data are `Points`, not runs: `prepare` takes points, and sizes come from the points themselves.
    Source: theory, section 7.5; the form of Hoffmann et al. 2022.
    """

    @property
    def name(self) -> str:
        """Name on the command line."""
        return "chinchilla"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Five parameters, in the order E, A, B, alpha, beta."""
        return (
            Parameter("E", 0.0, 50.0, "loss", "limit of the loss for a large model and much data"),
            Parameter("A", 0.0, 1e15, "loss parameters^alpha", "amplitude of the term of the model size"),
            Parameter("B", 0.0, 1e15, "loss tokens^beta", "amplitude of the term of the tokens"),
            Parameter("alpha", 0.0, 4.0, "1", "exponent of the model size"),
            Parameter("beta", 0.0, 4.0, "1", "exponent of the tokens"),
        )

    @property
    def linear(self) -> tuple[str, ...]:
        """The three amplitudes."""
        return ("E", "A", "B")

    def calibrated(self, runs: Sequence[Any]) -> "FinalLoss":
        """The law itself: parameters and tokens are counted, no unit is to be fixed."""
        return self

    def prepare(self, run: Any, at: np.ndarray | None = None) -> LogPoints:
        """Logarithms of the sizes and tokens of points, or of the pairs `at` (m, 2) of (N, D).

        Raises
        ------
        InputError : for a run in place of points, or pairs that are not positive.
        """
        if at is not None:
            pairs = np.asarray(at, dtype=np.float64)
            if pairs.ndim != 2 or pairs.shape[1] != 2 or not (np.isfinite(pairs).all() and (pairs > 0.0).all()):
                raise InputError(f"at must hold pairs (N, D) of positive numbers, got shape {pairs.shape}; stack them")
            return LogPoints(np.log(pairs[:, 0]), np.log(pairs[:, 1]))
        if not isinstance(run, Points):
            raise InputError(
                f"law chinchilla is about final losses at (N, D), got a {type(run).__name__}; make them with "
                f"points(model_size, tokens, loss) or read_points(file)"
            )
        return LogPoints(np.log(run.model_size), np.log(run.tokens))

    def evaluate(
        self, values: np.ndarray, prepared: LogPoints, *, gradient: bool = True
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Loss (m,) and gradient (m, 5) in E, A, B, alpha, beta."""
        limit, by_size, by_tokens, alpha, beta = values
        size, tokens = np.exp(-alpha * prepared.size), np.exp(-beta * prepared.tokens)
        loss = limit + by_size * size + by_tokens * tokens
        if not gradient:
            return loss, None
        slopes = [-by_size * size * prepared.size, -by_tokens * tokens * prepared.tokens]
        return loss, np.stack([np.ones_like(loss), size, tokens, *slopes], axis=1)

    def starts(self, prepared: Sequence[LogPoints], losses: Sequence[np.ndarray]) -> np.ndarray:
        """Nine starts: both exponents .2, .5 and 1; the amplitudes are solved for."""
        return np.array([[0.0, 0.0, 0.0, alpha, beta] for alpha in (0.2, 0.5, 1.0) for beta in (0.2, 0.5, 1.0)])

    def centres(self, prepared: Sequence[LogPoints]) -> dict[str, tuple[str, float]]:
        """A and B are fitted as the terms at the geometric mean of the sizes and of the tokens."""
        return {
            "A": ("alpha", float(np.mean(np.concatenate([one.size for one in prepared])))),
            "B": ("beta", float(np.mean(np.concatenate([one.tokens for one in prepared])))),
        }
