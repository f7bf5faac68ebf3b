"""Steps of the rows of a table, from its step column or from its tokens."""

from collections.abc import Mapping, Sequence

import numpy as np

from rfsim.checks import FloatArray, InputError, positive_number
from rfsim.logs.columns import ALIASES, plain
from rfsim.logs.configs import tokens_per_step
from rfsim.logs.formats import Log, Table
from rfsim.logs.series import choose, full_name, places


def _is_step(name: str) -> bool:
    return plain(name) in ALIASES["step"] | ALIASES["tokens"]


class Steps:
    """Steps of the rows of each table: its step column, or its tokens over the tokens of a step."""

    def __init__(
        self,
        step: str | None,
        tokens: str | None,
        per_step: float | None,
        config: Mapping[str, object],
        logs: Sequence[Log],
    ) -> None:
        self.step, self.tokens, self.config, self.logs = step, tokens, config, logs
        self.per_step = None if per_step is None else positive_number("tokens_per_step", per_step)
        self.findings: list[str] = []
        for argument, wanted in (("step", step), ("tokens", tokens)):
            if wanted is not None:
                choose(argument, wanted, places(logs))  # InputError if no file has it

    def of(self, table: Table) -> FloatArray:
        """Steps (n,) of the rows, NaN where a row has none.

        Raises
        ------
        InputError : for a table without steps, or tokens that are no whole number of steps.
        """
        own = {full_name(table, column): [(0, table, column)] for column in table.columns}
        if self.tokens is None:
            wanted = self.step if self.step is not None and self._has(table, self.step) else None
            held, others = choose("step", wanted, own)
            if held:
                if others:
                    self._tell(f"step is taken from {full_name(table, held[0][2])}, not from {', '.join(others)}")
                return table.columns[held[0][2]]
        wanted = self.tokens if self.tokens is not None and self._has(table, self.tokens) else None
        held, _ = choose("tokens", wanted, own)
        if not held:
            argument = "step" if self.tokens is None else "tokens"
            where = f"{self.logs[0].source.name}{f' ({table.label})' if table.label else ''}"
            bad = "".join(f"column {name} holds text, {cell}; " for name, cell in table.text.items() if _is_step(name))
            raise InputError(
                f"{argument} is in no column of {where}: its columns of numbers are "
                f"{', '.join(table.columns)}; {bad}name one with step= or tokens="
            )
        return self._from_tokens(table.columns[held[0][2]], full_name(table, held[0][2]))

    @staticmethod
    def _has(table: Table, wanted: str) -> bool:
        return wanted in table.columns or any(full_name(table, column) == wanted for column in table.columns)

    def _tell(self, line: str) -> None:
        if line not in self.findings:
            self.findings.append(line)

    def _from_tokens(self, tokens: FloatArray, name: str) -> FloatArray:
        per_step, source = self.per_step, "as given"
        if per_step is None:
            told = tokens_per_step(self.config)
            if told is None:
                raise InputError(
                    f"tokens_per_step is needed to turn the tokens of column {name} into steps, got none and no "
                    f"configuration that tells it; give tokens_per_step="
                )
            per_step, source = told[0], f"{told[1]} of the configuration"
        exact = tokens / per_step
        whole = np.round(exact)
        off = np.nanmax(np.abs(exact - whole), initial=0.0)
        if off > max(0.05, 1e-6 * np.nanmax(whole, initial=0.0)):
            worst = int(np.nanargmax(np.abs(exact - whole)))
            raise InputError(
                f"tokens_per_step must make whole steps, got {per_step:g} ({source}): {tokens[worst]:.12g} tokens of "
                f"column {name} are {exact[worst]:.6g} steps; give the tokens of one step"
            )
        self._tell(f"steps are {name} / {per_step:g} ({source}), off whole steps by at most {off:.2g}")
        return whole
