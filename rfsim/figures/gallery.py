"""The list of figures, and the runner that writes NAME.png, NAME.pdf and NAME.json or finds them up to date."""

import importlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from rfsim.checks import InputError, one_of
from rfsim.provenance import json_ready, output_folder, source_digest, versions, write_bytes, write_json
from rfsim.version import __version__

FIGURES = {
    "regime_map": "which regime: response exponents and spectrum parameters",
    "schedule_map": "preserve, change or destroy: what a ratio path does to the exponent of the risk",
    "sweep_map": "sweep over alpha, beta and vartheta: where a finite window shows the limit, and where it does not",
    "exponents": "gap exponent against the growth of batch/lr: measured, for the window, in the limit",
    "finite_bulk": "gap in the finite bulk: linear, logarithmic, saturating with the integral of lr/batch",
    "rapid_target": "a rapidly decaying target: forcing below every power, memory and risk not",
    "two_groupings": "one risk, grouped twice: forcing + memory and clean + gap",
    "three_layers": "SGD, exact risk of sampled features and deterministic equivalent on each other",
    "width_gap": "mean over sampled features minus deterministic equivalent, against width",
    "paired_schedules": "lr decay and batch growth with one ratio path: apart by updates, together by intrinsic time",
    "anneal": "what an anneal does: noise withheld, signal not learnt, and the ceiling of the memory",
    "fit_and_transfer": "a law fitted to the logs of two schedules predicts two others, with bands and residuals",
    "memory_profile": "how sharply runs determine the memory exponent: errors with q_K held, fitted and held out",
    "fitted_regime": "where fitted exponents lie on the regime map, with their uncertainty",
}
"""Names of all figures with what each is about; the module rfsim.figures.NAME holds the figure."""

SCALES = ("quick", "standard", "full")


class FigureRecord(NamedTuple):
    """One finished figure: paths of its three files, and the seconds it took (0 if it was up to date)."""

    name: str
    title: str
    alt: str
    caption: str
    parameters: dict[str, Any]
    seed: int | None
    png: Path
    pdf: Path
    json: Path
    seconds: float


def names() -> tuple[str, ...]:
    """Names of all figures, in the order in which they are made."""
    return tuple(FIGURES)


def run(
    names: Sequence[str] | str | None = None,
    scale: str = "quick",
    out: str | Path = "figures",
    *,
    progress: Callable[[str], None] | None = None,
) -> list[FigureRecord]:
    """Make figures: NAME.png, NAME.pdf, and NAME.json with parameters, seed, versions, caption and all numbers plotted.

    A figure whose side file was written by the same rfsim source at the same scale with the same parameters is not
    computed again; pictures that are missing beside such a file are drawn from it. Files are whole or absent, the
    side file comes last, and the same inputs give the same bytes.

    Parameters
    ----------
    names : figures to make, all by default.
    scale : "quick" (all figures under a minute on two cores), "standard" (minutes) or "full".
    out : folder, made if absent.
    progress : called with one line of text when a figure starts.

    Raises
    ------
    InputError : for an unknown figure or scale.
    RunError : if the folder cannot be written.
    """
    chosen = list(FIGURES) if names is None else [names] if isinstance(names, str) else list(names)
    for name in chosen:
        if name not in FIGURES:
            raise InputError(f"figure {name!r} is not known; allowed: {', '.join(FIGURES)}")
    one_of("scale", scale, SCALES)
    folder = output_folder(out)
    records = []
    for place, name in enumerate(dict.fromkeys(chosen)):
        if progress is not None:
            progress(f"figure {place + 1} of {len(chosen)}: {name}")
        records.append(_make(name, scale, folder))
    return records


def load(name: str) -> ModuleType:
    """The module of one figure; imports matplotlib."""
    return importlib.import_module(f"rfsim.figures.{name}")


def _make(name: str, scale: str, folder: Path) -> FigureRecord:
    module, started = load(name), time.perf_counter()
    paths = {kind: folder / f"{name}.{kind}" for kind in ("png", "pdf", "json")}
    parameters = json_ready(module.parameters(scale))
    stored = _up_to_date(paths["json"], scale, parameters)
    fresh = stored is None
    if stored is None:
        data = json_ready(module.compute(scale))
        stored = {
            "name": name,
            "title": module.title,
            "scale": scale,
            "parameters": parameters,
            "seed": parameters.get("seed"),
            "versions": versions(),
            "source": source_digest(),
            "caption": module.caption(data),
            "data": data,
        }
    missing = [kind for kind in ("png", "pdf") if fresh or not paths[kind].exists()]
    if fresh:  # an interruption from here on leaves pictures without a side file, which counts as not made
        paths["json"].unlink(missing_ok=True)
    if missing:
        from rfsim.figures.style import image

        picture = module.draw(stored["data"])
        for kind in missing:
            write_bytes(paths[kind], image(picture, kind))
    if fresh:
        write_json(paths["json"], stored)
    seconds = time.perf_counter() - started if missing else 0.0
    return FigureRecord(
        name,
        module.title,
        module.alt,
        stored["caption"],
        parameters,
        stored["seed"],
        paths["png"],
        paths["pdf"],
        paths["json"],
        seconds,
    )


def _up_to_date(path: Path, scale: str, parameters: dict[str, Any]) -> dict[str, Any] | None:
    """The stored side file if it belongs to this rfsim version and source, scale and parameters, else None."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        found = (stored["versions"]["rfsim"], stored["source"], stored["scale"], stored["parameters"])
        same = found == (__version__, source_digest(), scale, parameters)
        return stored if same and {"data", "caption", "seed"} <= stored.keys() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
