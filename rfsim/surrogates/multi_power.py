"""The multi-power law: a power of the sum of learning rates, less what each fall of the learning rate has gained."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rfsim.checks import positive_number
from rfsim.logs import Run
from rfsim.schedules import intrinsic_time
from rfsim.surrogates.changes import learning_rate, lr_drops, moving_clock, observed_steps
from rfsim.surrogates.laws import Alternative, Parameter, register
from rfsim.surrogates.sums import Terms, terms

_LEAST_LR = 1e-60  # stands for an lr of 0 at gamma = 0, where only the slope in gamma sees it
_START_LAG = (0.1, 0.01, 0.001, 1e-4, 0.03, 0.003)  # lag at which a fall has acted, over the longest clock
_START_BETA = (0.6, 0.6, 0.6, 0.6, 0.2, 1.5)
_START_GAMMA = (0.6, 0.6, 0.6, 0.6, 0.3, 0.9)
_START_ALPHA = (0.5, 0.5, 0.5, 0.5, 0.3, 0.8)


class Falls(NamedTuple):
    """A run for this law: log of the clock at the observations (m,), and the falls of its lr as terms.

    memory : the falls to a positive lr. all_falls : those to lr 0 too, for gamma = 0 alone.
    at_once : (m,) sum of the falls to lr 0 after which the clock has moved; their bracket is 1 at every gamma > 0.
    """

    log_clock: np.ndarray
    memory: Terms
    all_falls: Terms
    at_once: np.ndarray


@register
@dataclass(frozen=True)
class MultiPower:
    """L = L_0 + A S^(-alpha) - B sum_k (eta_{k-1} - eta_k) [1 - (1 + C eta_k^(-gamma) S_k)^(-beta)].

    S is the sum of the lr over all updates before the observation, the warm-up included, S_k that over the updates
    from k on, update k itself included. The lr before the first update is 0. The sum over k runs over all updates; it
    is evaluated with few terms per observation, to about 1e-8 of the sum of the absolute values of its terms.

    gamma is fitted in [0, 1]. At 0 a fall acts over a stretch of the clock S, at 1 over a number of updates; above 1 a
    fall to an ever smaller lr would act ever faster, in updates, and one to lr 0 at once.

    At an update whose lr is 0 the bracket is 1 as soon as the clock has moved since, its limit, and 0 before. At
    gamma = 0 no fall depends on the lr that it leads to, and one to 0 acts as any other.

    Options
    -------
    warmup_in_memory : whether the rises of the lr in the warm-up enter the sum, default True.
    inclusive : whether a row at step s has also seen the update of step s (while the schedule has one), default False:
        a row at step s is taken after s updates, as everywhere here. The published parameters belong to True for both,
        and to a warm-up of w steps whose rates are P i/(w-1) for i = 0..w-1, which `rfsim.logs.read_run` makes.
    lr_unit : unit of eta, default 1: the published parameters are for the lr itself.
    nodes : accuracy of the sum, see `rfsim.surrogates.sums.terms`; 0 sums update by update.

    Source: theory, section 7.4 (Luo et al. 2025; an empirical form).
    """

    warmup_in_memory: bool = True
    inclusive: bool = False
    lr_unit: float = 1.0
    nodes: int = 8

    @property
    def name(self) -> str:
        """Name on the command line."""
        return "multi-power"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Seven parameters."""
        return (
            Parameter("L_0", 0.0, 12.0, "loss", "limit of the loss"),
            Parameter("A", 0.0, 1e5, "loss", "amplitude of the power of the clock"),
            Parameter("alpha", 0.02, 4.0, "1", "exponent of the clock", log=True),
            Parameter("B", 0.0, 1e8, "loss / lr", "gain of a fall of the lr after infinite time"),
            Parameter("C", 1e-9, 1e9, "lr^(gamma - 1)", "rate at which a fall acts, at lr 1", log=True),
            Parameter("beta", 0.02, 20.0, "1", "exponent with which a fall saturates", log=True),
            Parameter("gamma", 0.0, 1.0, "1", "exponent of the dependence of that rate on the lr"),
        )

    @property
    def linear(self) -> tuple[str, ...]:
        """The three amplitudes."""
        return ("L_0", "A", "B")

    def calibrated(self, runs: Sequence[Run]) -> "MultiPower":
        """The law as it is: its unit is an option."""
        return self

    def alternatives(self) -> tuple[Alternative, ...]:
        """Falls that act over a stretch of the clock, and over a number of updates."""
        return tuple(Alternative(f"gamma = {gamma}", self, {"gamma": float(gamma)}) for gamma in (0, 1))

    def prepare(self, run: Run, at: np.ndarray | None = None) -> Falls:
        """Clock at the rows of the run (or at steps `at`, from 1 on), and the falls of its lr.

        Raises
        ------
        InputError : for a row before the first update with a positive lr, where the law is infinite.
        """
        lr = learning_rate(run) / positive_number("lr_unit", self.lr_unit)
        steps = observed_steps(run, at, first=0 if self.inclusive else 1)
        if self.inclusive:
            steps = np.minimum(steps + 1, run.schedule.steps)
        clock = intrinsic_time(lr)
        seen = moving_clock(clock[steps], run)
        drop = lr_drops(lr, warmup=self.warmup_in_memory)
        log_lr = np.log(np.maximum(lr, _LEAST_LR))
        resting = np.where(lr > 0.0, 0.0, drop)
        memory = terms(seen, steps, clock[:-1], drop - resting, log_lr, nodes=self.nodes)
        if not resting.any():
            return Falls(np.log(seen), memory, memory, np.zeros(len(seen)))
        passed = np.minimum(steps, np.searchsorted(clock[:-1], seen))  # updates since which the clock has moved
        every = terms(seen, steps, clock[:-1], drop, log_lr, nodes=self.nodes)
        return Falls(np.log(seen), memory, every, np.cumsum(np.append(0.0, resting))[passed])

    def evaluate(
        self, values: np.ndarray, prepared: Falls, *, gradient: bool = True
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Loss (m,) and gradient (m, 7)."""
        l_0, a, alpha, b, c, beta, gamma = values
        memory, at_once = (prepared.memory, prepared.at_once) if gamma > 0.0 else (prepared.all_falls, 0.0)
        power = np.exp(-alpha * prepared.log_clock)
        rate = c * np.exp(-gamma * memory.extra)

        def brackets(lag: np.ndarray, weight: np.ndarray, node: np.ndarray) -> list[np.ndarray]:
            scaled = rate[node]
            scaled *= lag
            log = np.log1p(scaled)
            left = np.exp(-beta * log)
            if not gradient:
                return [weight * (1.0 - left)]
            found = [weight * (1.0 - left)]
            left *= weight
            scaled /= 1.0 + scaled
            scaled *= left  # -(d left / d log x) / beta
            return [*found, left * log, scaled, scaled * memory.extra[node]]

        sums = memory.totals(brackets)
        sums[0] += at_once
        loss = l_0 + a * power - b * sums[0]
        if not gradient:
            return loss, None
        gained, by_beta = sums[0], sums[1]
        by_log_c, by_gamma = beta * sums[2], -beta * sums[3]
        columns = (
            np.ones_like(power),
            power,
            -a * power * prepared.log_clock,
            -gained,
            -b * by_log_c / c,
            -b * by_beta,
            -b * by_gamma,
        )
        return loss, np.stack(columns, axis=1)

    def starts(self, prepared: Sequence[Falls], losses: Sequence[np.ndarray]) -> np.ndarray:
        """Six starts: falls that act within a tenth to a ten-thousandth of the clock."""
        longest = float(np.exp(max(one.log_clock.max() for one in prepared)))
        typical = self._typical(prepared)
        rows = [
            [0.0, 0.0, alpha, 0.0, np.exp(gamma * typical) / (lag * longest), beta, gamma]
            for lag, beta, gamma, alpha in zip(_START_LAG, _START_BETA, _START_GAMMA, _START_ALPHA, strict=True)
        ]
        return np.array(rows)

    def centres(self, prepared: Sequence[Falls]) -> dict[str, tuple[str, float]]:
        """A at the middle of the log clock; C at the typical lr of the falls."""
        middle = float(np.mean(np.concatenate([one.log_clock for one in prepared])))
        return {"A": ("alpha", middle), "C": ("gamma", self._typical(prepared))}

    @staticmethod
    def _typical(prepared: Sequence[Falls]) -> float:
        """Mean log lr of the falls, by their weight."""
        weight = np.concatenate([np.abs(one.memory.weight) for one in prepared])
        extra = np.concatenate([one.memory.extra[one.memory.node] for one in prepared])
        return float(np.average(extra, weights=weight)) if weight.sum() > 0.0 else 0.0
