"""One self-contained HTML page with the verified statements and the figures: no network, no script, light or dark."""

import base64
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from rfsim.checks import RunError
from rfsim.provenance import versions, write_text

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #ffffff; --line: #c9c9c9; --soft: #f2f2f2; --good: #00694c;
--bad: #a33c00; } @media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --paper: #17181a; --line: #4a4c50; --soft: #232528; --good: #57c9a3; --bad: #ff9a5c; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1, h2, h3 { line-height: 1.2; }
.summary { font-size: 1.1rem; border-left: .35rem solid var(--good); padding: .5rem 1rem; background: var(--soft); }
.summary.failed { border-color: var(--bad); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
caption { text-align: left; padding: .3rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top; }
th { background: var(--soft); }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.passed { color: var(--good); font-weight: 600; }
td.failed { color: var(--bad); font-weight: 600; }
td:nth-child(2) { min-width: 16rem; }
@media print { table { font-size: .7rem; } td:nth-child(2) { min-width: 0; } }
figure { margin: 2rem 0; }
figure img { display: block; width: 100%; height: auto; background: #ffffff; border: 1px solid var(--line); }
figcaption { margin-top: .6rem; }
details { margin-top: .4rem; font-size: .9rem; }
pre { overflow-x: auto; background: var(--soft); padding: .6rem; }
""".strip()

_COLUMNS = ("name", "statement", "predicted", "measured", "tolerance", "passed", "seconds")


def write_report(
    path: str | Path, checks: Iterable[Any], figures: Iterable[Any], *, scale: str, seconds: float
) -> Path:
    """Write the page to `path`, whole or not at all.

    Parameters
    ----------
    path : the HTML file; its folder must exist.
    checks : verified statements with the fields name, statement, predicted, measured, tolerance, passed, seconds
        (named tuples as from `rfsim.verify.run`, or mappings); predicted and measured may be numbers, text or None.
    figures : records as from `rfsim.figures.run` (or mappings) with name, title, caption, alt, parameters, seed and
    png, the path
        of the picture that is put into the page.
    scale : "quick", "standard" or "full"; seconds : wall time of the whole run.

    Returns
    -------
    The path.

    Raises
    ------
    RunError : if a picture cannot be read or the page cannot be written.
    """
    rows = [_fields(check) for check in checks]
    pictures = [_fields(record) for record in figures]
    passed = sum(bool(row.get("passed")) for row in rows)
    used = ", ".join(f"{package} {number}" for package, number in versions().items())
    verdict = f"{passed} of {len(rows)} checks passed"
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>rfsim report: {escape(verdict)}</title>",
        f"<style>\n{_STYLE}\n</style></head>",
        "<body>",
        "<header><h1>rfsim report</h1>",
        f'<p class="summary{"" if passed == len(rows) else " failed"}"><strong>{escape(verdict)}.</strong> '
        f"Scale {escape(scale)}, {len(pictures)} figures, {seconds:.0f} s. {escape(used)}.</p></header>",
        "<main>",
        *_check_table(rows),
        *_figure_blocks(pictures),
        "</main>",
        "</body>",
        "</html>",
    ]
    write_text(path, "\n".join(parts) + "\n")
    return Path(path)


def _fields(record: Any) -> Mapping[str, Any]:
    return record if isinstance(record, Mapping) else record._asdict()


def _check_table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Failed checks first; nothing but a remark if there are none at all."""
    parts = ['<section aria-labelledby="checks"><h2 id="checks">Checks</h2>']
    if not rows:
        return [*parts, "<p>No checks were run.</p></section>"]
    parts += [
        '<div class="scroll"><table>',
        "<caption>Every statement with its prediction, what was measured, and how far they may differ.</caption>",
        "<thead><tr>" + "".join(f'<th scope="col">{column}</th>' for column in _COLUMNS) + "</tr></thead>",
        "<tbody>",
    ]
    for row in sorted(rows, key=lambda row: bool(row.get("passed"))):
        cells = [
            f'<th scope="row">{escape(str(row.get("name", "")))}</th>',
            f"<td>{escape(str(row.get('statement', '')))}</td>",
            *(_cell(row.get(column)) for column in ("predicted", "measured", "tolerance")),
            '<td class="passed">passed</td>' if row.get("passed") else '<td class="failed">FAILED</td>',
            f'<td class="number">{_number(row.get("seconds"), 3)}</td>',
        ]
        parts.append("<tr>" + "".join(cells) + "</tr>")
    return [*parts, "</tbody></table></div></section>"]


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return f"<td>{escape(value)}</td>"
    return f'<td class="number">{_number(value, 8)}</td>'


def _number(value: Any, digits: int) -> str:
    """A number in few digits; a dash for none and for what is not finite."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        number = float(value)
    except (TypeError, ValueError):
        return "&ndash;" if value is None else escape(str(value))
    return f"{number:.{digits}g}" if math.isfinite(number) else "&ndash;"


def _figure_blocks(pictures: Sequence[Mapping[str, Any]]) -> list[str]:
    parts = ['<section aria-labelledby="figures"><h2 id="figures">Figures</h2>']
    if not pictures:
        return [*parts, "<p>No figures were made.</p></section>"]
    for record in pictures:
        title = str(record.get("title") or record["name"])
        alt = str(record.get("alt") or title)
        seed = "no random numbers" if record.get("seed") is None else f"seed {record['seed']}"
        parts += [
            f'<figure id="{escape(str(record["name"]))}"><h3>{escape(title)}</h3>',
            f'<img src="data:image/png;base64,{_picture(record["png"])}" alt="{escape(alt)}">',
            f"<figcaption>{escape(str(record['caption']))}</figcaption>",
            f"<details><summary>Parameters ({escape(seed)})</summary><pre>{escape(_settings(record))}</pre></details>",
            "</figure>",
        ]
    return [*parts, "</section>"]


def _settings(record: Mapping[str, Any]) -> str:
    parameters = record.get("parameters") or {}
    return "\n".join(f"{name}: {value}" for name, value in parameters.items()) or "none"


def _picture(path: str | Path) -> str:
    try:
        return base64.b64encode(Path(path).read_bytes()).decode("ascii")
    except OSError as error:
        raise RunError(f"cannot read the picture {path} ({error.strerror}); make the figures again") from error
