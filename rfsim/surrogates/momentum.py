"""The momentum law: a power of the sum of learning rates, less a running average of the falls of the learning rate."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter

from rfsim.checks import InputError, finite_number, positive_number
from rfsim.logs import Run
from rfsim.schedules import intrinsic_time
from rfsim.surrogates.changes import largest_lr, learning_rate, lr_drops, moving_clock, observed_steps
from rfsim.surrogates.laws import Parameter, register

_START_STEPS = (30.0, 100.0, 300.0, 1000.0, 3000.0)
_START_ALPHA = (0.5, 0.5, 0.5, 0.3, 0.8)


class Averages(NamedTuple):
    """A run for this law.

    log_clock : (m,) log of the clock at the observations.
    steps : (m,) updates before each observation, at least 1.
    drop : (N,) falls of the lr; fallen : (m,) their sum up to each observation.
    """

    log_clock: np.ndarray
    steps: np.ndarray
    drop: np.ndarray
    fallen: np.ndarray


@register
@dataclass(frozen=True)
class Momentum:
    """L = L_0 + A S1^(-alpha) - C S2, S2 = sum of m_i, m_i = lam m_{i-1} + eta_{i-1} - eta_i.

    S1 is the sum of the lr over the updates before the observation, S2 the sum of m_i over the same updates, both with
    the last one. lam is fitted through `steps` = 1/(1 - lam), the number of updates over which a fall of the lr acts;
    the published fits have lam from .99 to .999. The recursion is exact; S2 follows from its last value, as
    (1 - lam) S2_t = sum of the falls up to t - lam m_t.

    Options
    -------
    lam : a fixed lam in [0, 1), or None (fitted).
    warmup_in_memory : whether the rises of the lr in the warm-up count as negative falls, default False. The lr
        before the first update is 0.
    lr_unit : unit of eta; None until `calibrated`, which takes the largest lr of the runs.

    Source: theory, section 7.4 (an empirical form).
    """

    lam: float | None = None
    warmup_in_memory: bool = False
    lr_unit: float | None = None

    @property
    def name(self) -> str:
        """Name on the command line."""
        return "momentum"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Five parameters, four if lam is fixed."""
        free = (
            Parameter("L_0", 0.0, 12.0, "loss", "limit of the loss"),
            Parameter("A", 0.0, 1e5, "loss", "amplitude of the power of the clock"),
            Parameter("alpha", 0.02, 4.0, "1", "exponent of the clock", log=True),
            Parameter("C", 0.0, 1e5, "loss / (lr step)", "gain of a fall of the lr, per update that it acts"),
            Parameter("steps", 2.0, 1e5, "steps", "1/(1 - lam), the updates over which a fall acts", log=True),
        )
        return free if self.lam is None else free[:-1]

    @property
    def linear(self) -> tuple[str, ...]:
        """The three amplitudes."""
        return ("L_0", "A", "C")

    def calibrated(self, runs: Sequence[Run]) -> "Momentum":
        """Take the largest lr of the runs as unit of lr."""
        return self if self.lr_unit is not None else replace(self, lr_unit=largest_lr(runs))

    def prepare(self, run: Run, at: np.ndarray | None = None) -> Averages:
        """Clock at the rows of the run (or at steps `at`, from 1 on), and the falls of its lr.

        Raises
        ------
        InputError : without unit, or for a row before the first update with a positive lr.
        """
        if self.lr_unit is None:
            raise InputError("the law has no unit of lr yet; call calibrated(runs), or give lr_unit")
        if self.lam is not None and not 0.0 <= finite_number("lam", self.lam) < 1.0:
            raise InputError(f"lam must lie in [0, 1), got {self.lam:g}; published fits have .99 to .999")
        lr = learning_rate(run) / positive_number("lr_unit", self.lr_unit)
        steps = observed_steps(run, at, first=1)
        drop = lr_drops(lr, warmup=self.warmup_in_memory)
        clock = moving_clock(intrinsic_time(lr)[steps], run)
        last = int(steps.max())
        return Averages(np.log(clock), steps, drop[:last], np.cumsum(drop)[steps - 1])

    def evaluate(
        self, values: np.ndarray, prepared: Averages, *, gradient: bool = True
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Loss (m,) and gradient (m, 5), or (m, 4) with a fixed lam."""
        l_0, a, alpha, c = values[:4]
        rest = 1.0 / values[4] if self.lam is None else 1.0 - self.lam  # 1 - lam
        lam = 1.0 - rest
        power = np.exp(-alpha * prepared.log_clock)
        average = lfilter([1.0], [1.0, -lam], prepared.drop)
        last = average[prepared.steps - 1]
        total = (prepared.fallen - lam * last) / rest
        loss = l_0 + a * power - c * total
        if not gradient:
            return loss, None
        columns = [np.ones_like(power), power, -a * power * prepared.log_clock, -total]
        if self.lam is None:
            slope = lfilter([0.0, 1.0], [1.0, -lam], average)[prepared.steps - 1]  # dm/dlam
            by_lam = (total - last - lam * slope) / rest
            columns.append(-c * by_lam * rest**2)
        return loss, np.stack(columns, axis=1)

    def starts(self, prepared: Sequence[Averages], losses: Sequence[np.ndarray]) -> np.ndarray:
        """Five starts: 30 to 3000 updates."""
        rows = [[0.0, 0.0, alpha, 0.0, steps] for steps, alpha in zip(_START_STEPS, _START_ALPHA, strict=True)]
        return np.array(rows)[:, : len(self.parameters)]

    def centres(self, prepared: Sequence[Averages]) -> dict[str, tuple[str, float]]:
        """A is fitted at the middle of the log clock."""
        return {"A": ("alpha", float(np.mean(np.concatenate([one.log_clock for one in prepared]))))}
