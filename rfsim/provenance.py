"""What every stored result carries: parameters, seed and versions; and files that are whole or absent."""

import hashlib
import json
import os
import platform
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from rfsim.checks import RunError
from rfsim.version import __version__


def versions() -> dict[str, str]:
    """Versions of rfsim, Python and the numerical packages in use."""
    found = {"rfsim": __version__, "python": platform.python_version()}
    for package in ("jax", "numpy", "scipy", "matplotlib"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found


def source_digest() -> str:
    """Digest of the source text of the package: a changed line makes stored results stale."""
    root = Path(__file__).resolve().parent
    total = hashlib.sha256()
    try:
        for path in sorted(root.rglob("*.py")):
            total.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    except OSError as error:
        raise RunError(f"cannot read the package at {root} ({error.strerror}); install it as files") from error
    return total.hexdigest()


def json_ready(value: Any) -> Any:
    """Turn arrays, NumPy scalars and named tuples into JSON values; a number that is not finite becomes None."""
    if isinstance(value, dict):
        return {str(key): json_ready(item) for key, item in value.items()}
    if hasattr(value, "_asdict"):
        return json_ready(value._asdict())
    if isinstance(value, list | tuple):
        return [json_ready(item) for item in value]
    if isinstance(value, np.ndarray) or hasattr(value, "__array__"):
        return json_ready(np.asarray(value).tolist())
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return str(value)


def write_text(path: str | Path, text: str) -> None:
    """Write `text` to `path` so that the file is whole or untouched, or raise RunError."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write `data` to `path` so that the file is whole or untouched, or raise RunError."""
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise RunError(
            f"cannot write {path} ({error.strerror}); choose a folder that exists and is writable"
        ) from error


def write_json(path: str | Path, value: Any) -> None:
    """Write `value` as JSON without NaN or Infinity, whole or not at all."""
    write_text(path, json.dumps(json_ready(value), indent=1, allow_nan=False) + "\n")


def output_folder(path: str | Path) -> Path:
    """Make the folder `path` and prove that it can be written, before any work starts, or raise RunError."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise RunError(
            f"output folder {folder} cannot be written ({error.strerror}); choose another with --out"
        ) from error
    return folder
