"""The functional scaling law in the learning rate: what each fall of the lr takes from the stationary noise."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rfsim.checks import InputError, positive_number
from rfsim.logs import Run
from rfsim.schedules import intrinsic_time
from rfsim.surrogates.changes import largest_lr, learning_rate, lr_drops, moving_clock, observed_steps
from rfsim.surrogates.derived import Derived, kernel_tails
from rfsim.surrogates.kernel import _divided, _divided_slope
from rfsim.surrogates.laws import Alternative, Parameter, register, values_of
from rfsim.surrogates.sums import Terms, terms

_START_Q = (0.3, 0.7, 0.95, 1.3, 2.0, 4.0, 0.7, 1.3)
_START_LAG = (0.3, 0.1, 0.03, 0.03, 0.03, 0.03, 0.003, 0.003)  # over the longest clock
_START_S = (0.3, 0.5, 0.5, 0.5, 0.5, 0.8, 0.3, 0.8)


class Falls(NamedTuple):
    """A run for this law.

    log_clock : (m,) log of the clock at the observations.
    memory : the falls of the lr as terms, with log_place (k,) the log of the clock at their nodes.
    """

    log_clock: np.ndarray
    memory: Terms
    log_place: np.ndarray


@register
@dataclass(frozen=True)
class FunctionalScaling:
    """L = L_0 + c_1 T^(-s) - sum_i (eta_{i-1} - eta_i) (A_0 + A_1 T_i^(-s)) G(T - T_i).

    G(x) = [1 - (1 + c_4 x)^(-g)] / (c_4 g), g = q_K - 1, is the integral of the memory kernel (1 + c_4 x)^(-q_K), and
    log(1 + c_4 x)/c_4 at q_K = 1. In the practical form, L_0 + c_1 T^(-s) - c_2 sum_i (eta_{i-1} - eta_i)
    (c_3 + T_i^(-s)) (1 - (1 + c_4 (T - T_i))^(-g)), c_2 = A_1/(c_4 g) and c_3 = A_0/A_1 (`practical`): the same law,
    but c_2 changes its sign through infinity where q_K passes 1, which A_0 and A_1 do not.

    T is the sum of eta over the updates before the observation, T_i that before update i. The sum runs over the
    changes of the lr; that to the lr of the first update, at T_i = 0, is left out: the memory of an lr that stays is
    part of the first two terms. The sum is evaluated with few terms per observation, to about 1e-8 of
    the sum of the absolute values of its terms. The batch is fixed within a fit and part of the amplitudes.

    Options
    -------
    q_memory : a fixed q_K, or None (fitted).
    warmup_in_memory : whether the rises of the lr in the warm-up enter the sum, default False: T_i^(-s) is largest
        there, which the form is not made for, and a fit can then end in a second optimum.
    lr_unit : unit of eta; None until `calibrated`, which takes the largest lr of the runs.
    nodes : accuracy of the sum, see `rfsim.surrogates.sums.terms`; 0 sums update by update.

    Source: theory, section 7.2 (an empirical form; the link to the memory integral is exact).
    """

    q_memory: float | None = None
    warmup_in_memory: bool = False
    lr_unit: float | None = None
    nodes: int = 8

    @property
    def name(self) -> str:
        """Name on the command line."""
        return "fsl"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Seven parameters, six if q_K is fixed."""
        free = (
            Parameter("L_0", 0.0, 12.0, "loss", "limit of the loss"),
            Parameter("c_1", 0.0, 1e5, "loss", "amplitude of the power of the clock"),
            Parameter("s", 0.02, 4.0, "1", "exponent of the clock", log=True),
            Parameter("A_0", 0.0, 1e5, "loss / lr clock", "strength of the constant noise source"),
            Parameter("A_1", 0.0, 1e5, "loss / lr clock", "strength of the source that follows the power of the clock"),
            Parameter("c_4", 8.3e-7, 1.2e6, "1 / clock", "rate at which the kernel leaves its plateau", log=True),
            Parameter("q_K", 0.02, 40.0, "1", "exponent of the memory kernel, g + 1", log=True),
        )
        return free if self.q_memory is None else free[:-1]

    @property
    def linear(self) -> tuple[str, ...]:
        """The four amplitudes."""
        return ("L_0", "c_1", "A_0", "A_1")

    def calibrated(self, runs: Sequence[Run]) -> "FunctionalScaling":
        """Take the largest lr of the runs as unit of lr."""
        return self if self.lr_unit is not None else replace(self, lr_unit=largest_lr(runs))

    def practical(self, values: object) -> dict[str, float]:
        """The constants L_0, c_1, s, c_2, c_3, c_4, g of the practical form; c_2 is infinite at q_K = 1."""
        l_0, c_1, s, a_0, a_1, c_4, *rest = (float(value) for value in values_of(self, values))
        g = (rest[0] if rest else float(self.q_memory or 0.0)) - 1.0
        c_2 = a_1 / (c_4 * g) if g else np.inf
        return {"L_0": l_0, "c_1": c_1, "s": s, "c_2": c_2, "c_3": a_0 / a_1 if a_1 else np.inf, "c_4": c_4, "g": g}

    def alternatives(self) -> tuple[Alternative, ...]:
        """A source that does not follow the power of the clock."""
        return (Alternative("A_1 = 0", self, {"A_1": 0.0}),)

    def derived(self, values: np.ndarray) -> dict[str, Derived]:
        """A_0 / c_4^q_K and A_1 / c_4^q_K, the strength of the tail of the memory: see `kernel_tails`."""
        return kernel_tails(self, values, "c_4", self.q_memory)

    def prepare(self, run: Run, at: np.ndarray | None = None) -> Falls:
        """Clock at the rows of the run (or at steps `at`, from 1 on), and the changes of its lr.

        Raises
        ------
        InputError : without unit, or for a row before the first update with a positive lr.
        """
        if self.lr_unit is None:
            raise InputError("the law has no unit of lr yet; call calibrated(runs), or give lr_unit")
        lr = learning_rate(run) / positive_number("lr_unit", self.lr_unit)
        steps = observed_steps(run, at, first=1)
        clock = intrinsic_time(lr)
        seen = moving_clock(clock[steps], run)
        drop = np.where(clock[:-1] > 0.0, lr_drops(lr, warmup=self.warmup_in_memory, first=False), 0.0)
        memory = terms(seen, steps, clock[:-1], drop, nodes=self.nodes, from_zero=True)
        return Falls(np.log(seen), memory, np.log(memory.place))

    def evaluate(
        self, values: np.ndarray, prepared: Falls, *, gradient: bool = True
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Loss (m,) and gradient (m, 7), or (m, 6) with a fixed q_K."""
        l_0, c_1, s, a_0, a_1, c = values[:6]
        q = self.q_memory if self.q_memory is not None else values[6]
        memory = prepared.memory
        power = np.exp(-s * prepared.log_clock)
        at_nodes = np.exp(-s * prepared.log_place)
        moved = prepared.log_place * at_nodes

        def falls(lag: np.ndarray, weight: np.ndarray, node: np.ndarray) -> list[np.ndarray]:
            scaled = c * lag
            log = np.log1p(scaled)
            divided = _divided(log, 1.0 - q)
            source, plain = at_nodes[node], weight * divided
            if not gradient:
                return [plain, plain * source]
            both = weight * (a_0 + a_1 * source)
            slope = scaled / (1.0 + scaled) * (1.0 + (1.0 - q) * divided)
            by_q = both * _divided_slope(log, 1.0 - q, divided)
            return [plain, plain * source, by_q, both * (slope - divided), plain * moved[node]]

        sums = memory.totals(falls) / c
        plain, moving = sums[0], sums[1]
        loss = l_0 + c_1 * power - a_0 * plain - a_1 * moving
        if not gradient:
            return loss, None
        by_q, by_log_c, by_s = -sums[2], sums[3], -sums[4]
        columns = (
            np.ones_like(power),
            power,
            -c_1 * power * prepared.log_clock - a_1 * by_s,
            -plain,
            -moving,
            -by_log_c / c,
            -by_q,
        )
        return loss, np.stack(columns[: len(values)], axis=1)

    def starts(self, prepared: Sequence[Falls], losses: Sequence[np.ndarray]) -> np.ndarray:
        """Eight starts over exponents and time scales."""
        longest = float(np.exp(max(one.log_clock.max() for one in prepared)))
        rows = [
            [0.0, 0.0, s, 0.0, 0.0, 1.0 / (lag * longest * q), q]
            for q, lag, s in zip(_START_Q, _START_LAG, _START_S, strict=True)
        ]
        return np.array(rows)[:, : len(self.parameters)]

    def centres(self, prepared: Sequence[Falls]) -> dict[str, tuple[str, float]]:
        """c_1 and A_1 are fitted at the middle of the log clock."""
        middle = float(np.mean(np.concatenate([one.log_clock for one in prepared])))
        return {"c_1": ("s", middle), "A_1": ("s", middle)}
