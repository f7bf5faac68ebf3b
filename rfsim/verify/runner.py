"""Run families of checks one after another, keep what is finished, and turn every accident into a failed check."""

import importlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rfsim.checks import InputError, one_of
from rfsim.provenance import json_ready, output_folder, source_digest, versions, write_json
from rfsim.verify.check import Check, failure
from rfsim.verify.registry import FAMILIES, SEED, check_names

SCALES = ("quick", "standard", "full")


def run(
    scale: str = "quick",
    only: str | None = None,
    *,
    cache: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[Check]:
    """Verify the theorems with numbers and return one `Check` for each statement.

    Parameters
    ----------
    scale : "quick" (under a minute), "standard" (minutes) or "full": larger systems, longer runs, more samples.
    only : name of a family, or of one check ("family/part").
    cache : folder in which every family that passed is kept as `verify-FAMILY-SCALE.json`, with versions, scale,
    seed and a
        digest of the source text of rfsim; a later run with the same of all these reads it back, so that an interrupted
        run resumes.
    progress : called with a line of text before a family starts and after each check.

    Raises
    ------
    InputError : for an unknown scale or name (the message lists the names).
    RunError : when the cache folder cannot be written.

    Notes
    -----
    A family that raises has its unfinished checks reported as failed, with the reason as their measured value.
    """
    one_of("scale", scale, SCALES)
    families = _selected(only)
    folder = None if cache is None else output_folder(cache)
    identity = (
        None if folder is None else {"scale": scale, "seed": SEED, "versions": versions(), "source": source_digest()}
    )
    told = progress or (lambda text: None)
    done: list[Check] = []
    for family in families:
        path = None if folder is None else folder / f"verify-{family}-{scale}.json"
        checks = None if path is None else _read(path, family, identity)
        if checks is None:
            wanted = check_names(family) if only is None or only == family else (only,)
            told(f"{family}: {FAMILIES[family].summary}")
            checks = list(_family(family, scale, wanted, told))
            if path is not None and len(wanted) == len(check_names(family)) and all(check.passed for check in checks):
                write_json(path, {"family": family, **(identity or {}), "checks": checks})
        else:
            told(f"{family}: read from {path}")
        done += [check for check in checks if only in (None, family, check.name)]
    return done


def _selected(only: str | None) -> tuple[str, ...]:
    if only is None:
        return tuple(FAMILIES)
    family = only.partition("/")[0] if isinstance(only, str) else ""
    if family not in FAMILIES or (only != family and only not in check_names(family)):
        known = check_names(family) if family in FAMILIES else tuple(FAMILIES)
        kind = "check" if family in FAMILIES else "family"
        raise InputError(f"only names no known {kind}: {only!r}; allowed: {', '.join(known)}")
    return (family,)


def _family(family: str, scale: str, wanted: tuple[str, ...], told: Callable[[str], None]) -> Iterator[Check]:
    """Checks of one family in the order in which they finish, then a failure for each one that is missing."""
    missing = list(wanted)
    reason = "the family did not report this check"
    begun = time.perf_counter()
    try:
        for check in importlib.import_module(f"rfsim.verify.{FAMILIES[family].module}").checks(scale):
            now = time.perf_counter()
            if check.name in missing:
                missing.remove(check.name)
                told(f"  {check.name}: {'passed' if check.passed else 'FAILED'}")
                yield check._replace(seconds=now - begun, family=family)
                if not missing:
                    return
            begun = time.perf_counter()
    except Exception as error:  # a crash is the result of a check, not the end of the run
        reason = f"{type(error).__name__}: {error}"
    for name in missing:
        told(f"  {name}: FAILED ({reason})")
        yield failure(name, reason)._replace(seconds=time.perf_counter() - begun, family=family)
        begun = time.perf_counter()


def _read(path: Path, family: str, identity: dict | None) -> list[Check] | None:
    """Checks kept by an earlier run of the same code at the same scale, else None."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        checks = [Check(**check) for check in stored["checks"]]
        same = all(stored[key] == value for key, value in json_ready({"family": family, **(identity or {})}).items())
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return checks if same else None
