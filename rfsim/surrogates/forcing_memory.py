"""The forcing-memory law: the shape of the exact Volterra equation with free constants."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rfsim.checks import InputError, finite_number, positive_number
from rfsim.logs import Run
from rfsim.schedules import intrinsic_time
from rfsim.surrogates.cell_integrals import cell_integrals
from rfsim.surrogates.changes import effective_rate, largest_lr, learning_rate, observed_steps
from rfsim.surrogates.derived import Derived, kernel_tails
from rfsim.surrogates.kernel import Integrals
from rfsim.surrogates.laws import Alternative, Parameter, register
from rfsim.surrogates.many_cells import ManyCells, integrals, many_cells
from rfsim.surrogates.pieces import Pieces, pieces

PURE_POWER = 0.01
"""A `forcing_start` with which the forcing is a power of the clock from the first step on, to 1 % of the step."""
_PER_FOLD = 24  # cells of the source per e-fold of the forcing clock
_CLOSE = 1e-12  # a cell does not end this close, relative, to an end of a piece, which is never moved
_GAUSS = 0.5 * np.array([[1.0 - 3.0**-0.5], [1.0 + 3.0**-0.5]])  # places in a cell where its line meets the source
_MANY = 300  # cells from which few terms per observation, to some 1e-8, are quicker than all cells before it
_START_Q_MEMORY = (0.10, 0.35, 0.70, 0.95, 1.01, 1.5, 3.0, 8.0, 20.0)
_START_LAG = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.05, 0.02, 0.01)  # over the longest memory clock
_START_Q_FORCING = (0.10, 0.20, 0.35, 0.55, 0.80, 1.2, 0.9, 0.6, 0.3)


class Path(NamedTuple):
    """A run on the clocks of the law.

    forcing : (m,) forcing clock at the observations.
    memory : (m,) memory clock at the observations.
    edges : (n+1,) memory clock of the edges of n cells.
    log_source : (2, n) log (tau + forcing clock) at Gauss's two points of each cell.
    rate : (2, n) injection rate there.
    many : the same as few terms per observation, if the cells are many.
    """

    forcing: np.ndarray
    memory: np.ndarray
    edges: np.ndarray
    log_source: np.ndarray
    rate: np.ndarray
    many: ManyCells | None


@register
@dataclass(frozen=True)
class ForcingMemory:
    """L = L_inf + A_F (tau+T)^(-q_F) + int_0^S [A_0 + A_1 (tau+T(u))^(-q_F)] g(u) (1 + c_K (S-u))^(-q_K) du.

    T is the forcing clock, the sum of eta^f, S the memory clock, the sum of eta^p, with eta in units of `lr_unit`; a
    step injects eta^i / B, B in units of `batch_unit`, spread evenly over the stretch eta^p of the memory clock that
    it takes. The memory integral is exact over straight pieces of the injection; where these are very many, for an lr
    or a batch without structure, few terms per observation give it to about 1e-7. With p = f = 1 and i = 2 both
    clocks are the intrinsic time and g = 1/r, r = B/eta: the form of the forcing-memory equation of SGD. At p = 1/2,
    with i = 1 + p by default, memory fades per eta^(1/2).

    Options
    -------
    clock_power : p > 0, default 1.
    forcing_power : f > 0, default 1.
    injection_power : i, default 1 + p.
    forcing_start : tau > 0, the clock at which the forcing becomes a power, default 1 (one step at the unit of the lr).
        With 0.01 it is a power from the first step on; the memory of A_1 then loses digits where q_F exceeds 1.
    q_memory : a fixed q_K, or None (fitted).
    effective : eta is the effective lr, lr over the norm of the parameters that the run holds, instead of the lr.
    lr_unit, batch_unit : units; None until `calibrated`, which takes the largest lr and the median batch of the runs.

    Fits of exact or simulated SGD: take forcing_start=0.01 and hold A_1 at 0. The forcing of a power-law spectrum is a
    power from T ~ 3 on, and the source of SGD, R + sigma^2, has A_1/A_0 ~ A_F/sigma^2, almost 0 beside label noise.
    With tau = 1 and A_1 free, A_1 takes up the misfit of the early forcing instead, and moves q_K with it: in curves of
    2,000 to 5,000 steps and integrable memory, q_K lies .1 to .2 above the slope of the kernel, by this recipe within
    .05. `FitResult.with_alternatives` tells how much a fit leans on the choice.

    Source: theory, sections 5.1 and 7.1 (an empirical form).
    """

    clock_power: float = 1.0
    forcing_power: float = 1.0
    injection_power: float | None = None
    q_memory: float | None = None
    effective: bool = False
    lr_unit: float | None = None
    batch_unit: float | None = None
    forcing_start: float = 1.0

    @property
    def name(self) -> str:
        """Name on the command line."""
        return "forcing-memory"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Seven parameters, six if q_K is fixed."""
        free = (
            Parameter("L_inf", 0.0, 12.0, "loss", "limit of the loss at infinite time and small lr"),
            Parameter("A_F", 0.0, 1e4, "loss", "amplitude of the forcing"),
            Parameter("q_F", 0.02, 8.0, "1", "exponent of the forcing", log=True),
            Parameter("A_0", 0.0, 1e5, "loss per injection", "strength of the constant noise source"),
            Parameter("A_1", 0.0, 1e5, "loss per injection", "strength of the source that follows the forcing"),
            Parameter(
                "c_K", 8.3e-7, 1.2e6, "1 / memory clock", "rate at which the kernel leaves its plateau", log=True
            ),
            Parameter("q_K", 0.02, 40.0, "1", "exponent of the memory kernel", log=True),
        )
        return free if self.q_memory is None else free[:-1]

    @property
    def linear(self) -> tuple[str, ...]:
        """The four amplitudes."""
        return ("L_inf", "A_F", "A_0", "A_1")

    def calibrated(self, runs: Sequence[Run]) -> "ForcingMemory":
        """Take the largest (effective) lr of the runs as unit of lr, and their median batch as unit of the batch.

        Raises
        ------
        InputError : if no run has a positive lr, or one lacks the norm of an effective lr.
        """
        if self.lr_unit is not None and self.batch_unit is not None:
            return self
        lr = largest_lr(runs)
        if self.effective:
            lr = max(float(self.rate(run).max(initial=0.0)) for run in runs)
        batch = float(np.median(np.concatenate([np.asarray(run.schedule.batch) for run in runs])))
        units = lr if self.lr_unit is None else self.lr_unit, batch if self.batch_unit is None else self.batch_unit
        return replace(self, lr_unit=units[0], batch_unit=units[1])

    def rate(self, run: Run) -> np.ndarray:
        """The lr of every step (N,), or lr over norm: what eta stands for."""
        return effective_rate(run, self.name) if self.effective else learning_rate(run)

    def alternatives(self) -> tuple[Alternative, ...]:
        """A source that does not follow the forcing, a forcing that is a power throughout (or tau = 1), and both."""
        other = replace(self, forcing_start=1.0 if self.forcing_start != 1.0 else PURE_POWER)
        start, held = f"forcing_start = {other.forcing_start:g}", {"A_1": 0.0}
        return (
            Alternative("A_1 = 0", self, held),
            Alternative(start, other, {}),
            Alternative(f"{start}, A_1 = 0", other, held),
        )

    def derived(self, values: np.ndarray) -> dict[str, Derived]:
        """A_0 / c_K^q_K and A_1 / c_K^q_K, the strength of the tail of the memory: see `kernel_tails`."""
        return kernel_tails(self, values, "c_K", self.q_memory)

    def prepare(self, run: Run, at: np.ndarray | None = None) -> Path:
        """Clocks at the rows of the run (or at steps `at`), and its injection as few linear pieces.

        Raises
        ------
        InputError : without units, for powers or units that are not positive, or steps outside the schedule.
        """
        if self.lr_unit is None or self.batch_unit is None:
            raise InputError("the law has no units yet; call calibrated(runs), or give lr_unit and batch_unit")
        power = positive_number("clock_power", self.clock_power)
        forcing_power = positive_number("forcing_power", self.forcing_power)
        injected = (
            1.0 + power if self.injection_power is None else finite_number("injection_power", self.injection_power)
        )
        if self.q_memory is not None:
            positive_number("q_memory", self.q_memory)
        lr = self.rate(run) / positive_number("lr_unit", self.lr_unit)
        batch = np.asarray(run.schedule.batch, dtype=np.float64) / positive_number("batch_unit", self.batch_unit)
        index = observed_steps(run, at)
        moving = lr > 0.0
        increment = np.where(moving, lr, 0.0) ** power
        rate = np.where(moving, np.where(moving, lr, 1.0) ** (injected - power), 0.0) / batch
        memory, forcing = intrinsic_time(increment), intrinsic_time(lr**forcing_power)
        start = positive_number("forcing_start", self.forcing_start)
        path = _path(
            pieces(increment, rate),
            forcing[index],
            memory[index],
            lambda edge: np.interp(edge, memory, forcing),
            start,
        )
        if len(path.edges) <= _MANY:
            return path
        few = many_cells(
            path.memory, path.edges, path.rate, path.log_source, start=start if power == forcing_power else None
        )
        return path._replace(many=few)

    def evaluate(
        self, values: np.ndarray, prepared: Path, *, gradient: bool = True
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Loss (m,) and gradient (m, 7), or (m, 6) with a fixed q_K."""
        l_inf, a_f, q_f, a_0, a_1, c = values[:6]
        q = self.q_memory if self.q_memory is not None else values[6]
        log_forcing = log_age(prepared.forcing, self.forcing_start)
        decay = np.exp(-q_f * log_forcing)
        if prepared.many is None:
            found = _by_cells(prepared, q_f, c, q, gradient=gradient)
        else:
            found = integrals(prepared.many, q_f, c, q, gradient=gradient)
        value, by_q, by_c = found
        loss = l_inf + a_f * decay + a_0 * value[:, 0] + a_1 * value[:, 1]
        if not gradient or by_q is None or by_c is None:
            return loss, None
        columns = [
            np.ones_like(decay),
            decay,
            -a_f * decay * log_forcing + a_1 * value[:, 2],
            value[:, 0],
            value[:, 1],
            (a_0 * by_c[:, 0] + a_1 * by_c[:, 1]) / c,
            a_0 * by_q[:, 0] + a_1 * by_q[:, 1],
        ]
        return loss, np.stack(columns[: len(values)], axis=1)

    def starts(self, prepared: Sequence[Path], losses: Sequence[np.ndarray]) -> np.ndarray:
        """Nine starts over exponents and time scales: lags 1/(c_K q_K) from a hundredth to all of the clock."""
        longest = max(float(one.memory.max()) for one in prepared)
        scales = [1.0 / (lag * longest * q) for lag, q in zip(_START_LAG, _START_Q_MEMORY, strict=True)]
        grid = zip(_START_Q_MEMORY, _START_Q_FORCING, scales, strict=True)
        rows = [[0.0, 0.0, q_f, 0.0, 0.0, c, q_k][: len(self.parameters)] for q_k, q_f, c in grid]
        return np.array(rows)

    def centres(self, prepared: Sequence[Path]) -> dict[str, tuple[str, float]]:
        """A_F is fitted at the geometric middle of the forcing clock."""
        ages = [log_age(one.forcing, self.forcing_start) for one in prepared]
        return {"A_F": ("q_F", float(np.mean(np.concatenate(ages))))}


def log_age(forcing: np.ndarray, start: float) -> np.ndarray:
    """Log (tau + T) with the digits of log(1 + T/tau)."""
    return np.log(start) + np.log1p(forcing / start)


def path_of_pieces(shape: Pieces, at: np.ndarray) -> Path:
    """Prepare the law (tau = 1) on pieces of 1/r over the intrinsic time, observed at times `at` (m,)."""
    return _path(shape, np.asarray(at, dtype=np.float64), np.asarray(at, dtype=np.float64), lambda edge: edge, 1.0)


def _path(
    shape: Pieces,
    forcing: np.ndarray,
    memory: np.ndarray,
    to_forcing: Callable[[np.ndarray], np.ndarray],
    start: float,
) -> Path:
    """Split pieces so that the source is resolved, `_PER_FOLD` cells per e-fold of tau + T, tau = `start`."""
    ends = np.concatenate([[0.0], to_forcing(shape.edges[-1:])])
    longest = np.log1p(ends[-1] / start)
    folds = int(np.ceil(longest * _PER_FOLD)) + 1
    marks = start * np.expm1(np.linspace(0.0, longest, folds))
    probe = np.linspace(0.0, shape.edges[-1], 4 * folds + 1)
    marks = np.interp(marks, to_forcing(probe), probe)
    after = np.clip(np.searchsorted(shape.edges, marks), 1, len(shape.edges) - 1)
    apart = np.minimum(np.abs(marks - shape.edges[after - 1]), np.abs(shape.edges[after] - marks))
    edges = np.union1d(shape.edges, marks[(apart > _CLOSE * marks) & (marks < shape.edges[-1])])
    points = edges[:-1] + _GAUSS * np.diff(edges)
    which = np.clip(np.searchsorted(shape.edges, points[0], side="right") - 1, 0, len(shape.left) - 1)
    slope = ((shape.right - shape.left) / np.diff(shape.edges))[which]
    rate = shape.left[which] + slope * (points - shape.edges[which])
    log_source = log_age(to_forcing(points.ravel()).reshape(points.shape), start)
    return Path(forcing, memory, edges, log_source, rate, None)


def _by_cells(path: Path, q_f: float, c: float, q: float, *, gradient: bool) -> Integrals:
    """Memory integrals from all cells before each row, with the sources 1, (tau+T)^(-q_F) and its derivative."""
    source = np.exp(-q_f * path.log_source)
    sources = [np.ones_like(source), source] + ([-path.log_source * source] if gradient else [])
    left, right = (np.stack(ends, axis=1) for ends in zip(*(_line(path.rate * one) for one in sources), strict=True))
    order = np.argsort(path.memory, kind="stable")
    found = cell_integrals(path.memory[order], path.edges, left, right, c, q, gradient=gradient)
    back = np.argsort(order, kind="stable")
    if found.by_q is None or found.by_log_c is None:
        return Integrals(found.value[back], None, None)
    return Integrals(found.value[back], found.by_q[back], found.by_log_c[back])


def _line(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values (n,) at the ends of each cell of the line through the injection (2, n) at its Gauss points.

    That line has the area and the first moment of the injection up to the fourth power of the cell.
    """
    middle, half = 0.5 * (points[0] + points[1]), 0.5 * 3.0**0.5 * (points[1] - points[0])
    return middle - half, middle + half
