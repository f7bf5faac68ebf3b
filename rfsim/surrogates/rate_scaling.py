"""The functional scaling law as a sum over updates, in the effective learning rate lr/norm or in the lr itself."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rfsim.checks import InputError, positive_number
from rfsim.logs import Run
from rfsim.schedules import intrinsic_time
from rfsim.surrogates.changes import effective_rate, learning_rate, observed_steps
from rfsim.surrogates.laws import Parameter, register
from rfsim.surrogates.sums import Terms, terms

_START_A1 = (0.3, 0.5, 0.8, 0.5, 0.5, 0.3)
_START_A2 = (0.7, 1.0, 1.5, 0.5, 2.0, 0.3)
_START_LAG = (0.1, 0.03, 0.03, 0.01, 0.1, 0.003)  # B_2/a_2 over the longest clock
_START_AGE = (0.003, 0.003, 0.003, 0.03, 0.01, 0.0003)  # B_1 over the longest clock


class Injections(NamedTuple):
    """A run for this law: clock at the observations (m,), and rate^2 of every update as terms."""

    clock: np.ndarray
    memory: Terms


@dataclass(frozen=True)
class _RateScaling(ABC):
    """The law for a rate that a subclass defines."""

    rate_unit: float | None = None
    nodes: int = 8

    @property
    @abstractmethod
    def name(self) -> str:
        """Name on the command line."""

    @abstractmethod
    def rate(self, run: Run) -> np.ndarray:
        """The rate of every update (N,)."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Seven parameters."""
        return (
            Parameter("L_inf", 0.0, 12.0, "loss", "limit of the loss at infinite time and small rate"),
            Parameter("C_1", 0.0, 1e12, "loss clock^a_1", "amplitude of the power of the clock"),
            Parameter("B_1", 1e-4, 1e8, "clock", "clock at the start of the power", log=True),
            Parameter("a_1", 0.02, 8.0, "1", "exponent of the clock", log=True),
            Parameter("C_2", 0.0, 1e12, "loss clock^a_2", "strength of the noise of one update at rate 1"),
            Parameter("B_2", 1e-2, 1e8, "clock", "lag up to which that noise stays", log=True),
            Parameter("a_2", 0.02, 40.0, "1", "exponent with which it fades", log=True),
        )

    @property
    def linear(self) -> tuple[str, ...]:
        """The three amplitudes."""
        return ("L_inf", "C_1", "C_2")

    def calibrated(self, runs: Sequence[Run]) -> "_RateScaling":
        """Take the largest rate of the runs as its unit.

        Raises
        ------
        InputError : if a run lacks the norm that the rate needs, or no rate is positive.
        """
        rates = [self.rate(run) for run in runs]
        if self.rate_unit is not None:
            return self
        largest = max((float(rate.max(initial=0.0)) for rate in rates), default=0.0)
        if largest <= 0.0:
            raise InputError("runs must have an update with a positive lr, got 0 everywhere; give the schedule run")
        return replace(self, rate_unit=largest)

    def prepare(self, run: Run, at: np.ndarray | None = None) -> Injections:
        """Clock at the rows of the run (or at steps `at`), and rate^2 of its updates.

        Raises
        ------
        InputError : without unit or norm.
        """
        if self.rate_unit is None:
            raise InputError("the law has no unit of the rate yet; call calibrated(runs), or give rate_unit")
        rate = self.rate(run) / positive_number("rate_unit", self.rate_unit)
        steps = observed_steps(run, at)
        clock = intrinsic_time(rate)
        return Injections(clock[steps], terms(clock[steps], steps, clock[1:], rate**2, nodes=self.nodes))

    def evaluate(
        self, values: np.ndarray, prepared: Injections, *, gradient: bool = True
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Loss (m,) and gradient (m, 7)."""
        l_inf, c_1, b_1, a_1, c_2, b_2, a_2 = values
        memory = prepared.memory
        age = b_1 + prepared.clock
        log_age = np.log(age)
        power = np.exp(-a_1 * log_age)

        def kernels(lag: np.ndarray, weight: np.ndarray, node: np.ndarray) -> list[np.ndarray]:
            whole = b_2 + lag
            log = np.log(whole)
            kernel = weight * np.exp(-a_2 * log)
            return [kernel, kernel * log, kernel / whole] if gradient else [kernel]

        sums = memory.totals(kernels)
        kept = sums[0]
        loss = l_inf + c_1 * power + c_2 * kept
        if not gradient:
            return loss, None
        by_a2, by_b2 = -sums[1], -a_2 * sums[2]
        columns = (
            np.ones_like(power),
            power,
            -c_1 * a_1 * power / age,
            -c_1 * power * log_age,
            kept,
            c_2 * by_b2,
            c_2 * by_a2,
        )
        return loss, np.stack(columns, axis=1)

    def starts(self, prepared: Sequence[Injections], losses: Sequence[np.ndarray]) -> np.ndarray:
        """Six starts over exponents and time scales."""
        longest = max(max(float(one.clock.max()) for one in prepared), 1.0)
        grid = zip(_START_A1, _START_A2, _START_LAG, _START_AGE, strict=True)
        rows = [[0.0, 0.0, age * longest, a_1, 0.0, lag * longest * a_2, a_2] for a_1, a_2, lag, age in grid]
        return np.array(rows)

    def centres(self, prepared: Sequence[Injections]) -> dict[str, tuple[str, float]]:
        """C_1 at the middle of the log clock, C_2 at a thirtieth of the longest clock."""
        clock = np.concatenate([one.clock for one in prepared])
        middle = float(np.mean(np.log(np.maximum(clock, 1.0))))
        return {"C_1": ("a_1", middle), "C_2": ("a_2", float(np.log(max(clock.max() / 30.0, 1.0))))}


@register
@dataclass(frozen=True)
class EffectiveRateScaling(_RateScaling):
    """L_k = L_inf + C_1 (B_1 + t_k)^(-a_1) + C_2 sum_{j <= k} (B_2 + t_k - t_j)^(-a_2) rate_j^2, rate = lr/norm.

    t_k is the sum of the rate over the updates up to k, k itself included; the observation after update k has seen
    them all. The sum runs over all updates and is evaluated with few terms per observation, to 1e-7 of its
    value. norm is that of the parameters (or of the update, whichever the run holds): the law depends on the run
    through the ratio alone.

    Options
    -------
    rate_unit : unit of the rate; None until `calibrated`, which takes the largest rate of the runs.
    nodes : accuracy of the sum, see `rfsim.surrogates.sums.terms`; 0 sums update by update.

    Source: theory, section 7.3 (an empirical form).
    """

    @property
    def name(self) -> str:
        """Name on the command line."""
        return "elr-fsl"

    @property
    def effective(self) -> bool:
        """True: the law is in the effective lr."""
        return True

    def rate(self, run: Run) -> np.ndarray:
        """lr/norm of every update.

        Raises
        ------
        InputError : if the run has no norm.
        """
        return effective_rate(run, self.name)


@register
@dataclass(frozen=True)
class RateScaling(_RateScaling):
    """The law of `EffectiveRateScaling` with the learning rate itself as rate: norms are not used.

    Source: theory, section 7.3 (an empirical form).
    """

    @property
    def name(self) -> str:
        """Name on the command line."""
        return "lr-fsl"

    def rate(self, run: Run) -> np.ndarray:
        """Lr of every update."""
        return learning_rate(run)
