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
        if step is not None and tokens is not None:
            raise InputError(f"step and tokens both name the column of the step, {step!r} and {tokens!r}; name one")
        self.findings: list[str] = []
        self._counted = ""  # a column that counts steps
        self._turned = False  # whether tokens were turned into steps
        for argument, wanted in (("step", step), ("tokens", tokens)):
            if wanted is not None and not any(self._has(table, wanted) for log in logs for table in log.tables):
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
                self._counted = full_name(table, held[0][2])
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

    def require_tokens(self) -> None:
        """Refuse tokens of one step that turned nothing into steps.

        Raises
        ------
        InputError : if they were given and all steps that were asked for come from columns that count steps.
        """
        if self.per_step is not None and self._counted and not self._turned:
            raise InputError(
                f"tokens_per_step turns tokens into steps, and the steps are those of column {self._counted}; leave it "
                f"out, or name the column of the tokens with tokens="
            )

    def has(self, table: Table) -> bool:
        """True if a column of the table counts steps or tokens, by its name or because the caller says so."""
        said = [one for one in (self.step, self.tokens) if one is not None]
        by_name = (_is_step(name) or _is_step(full_name(table, name)) for name in table.columns)
        return any(self._has(table, one) for one in said) or any(by_name)

    @staticmethod
    def _has(table: Table, wanted: str) -> bool:
        return any(plain(wanted) in (plain(column), plain(full_name(table, column))) for column in table.columns)

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
        self._turned = True
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
