"""Checkpoints of an ensemble: the finished runs and a fingerprint of what they are runs of."""

import hashlib
import io
import time
import zipfile
from pathlib import Path

import jax
import numpy as np

from rfsim.checks import InputError, RunError
from rfsim.provenance import write_bytes

_BUSY = 20.0  # a file is written again once the work since took this many times the time of writing it


def fingerprint(**parts: object) -> dict[str, str]:
    """A hash of every named part (pytrees of arrays, numbers and words)."""
    return {name: _digest(part) for name, part in parts.items()}


def _digest(part: object) -> str:
    total = hashlib.sha256()
    for leaf in jax.tree.leaves(part):
        array = np.asarray(leaf)
        total.update(f"{array.dtype.str}{array.shape}".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


class Checkpoint:
    """The file of one ensemble. `save` may skip a write that would cost too much; `close` writes what is left."""

    def __init__(self, path: str | Path, marks: dict[str, str]) -> None:
        self.path = Path(path)
        self.marks = marks
        self._waiting: np.ndarray | None = None
        self._cost = 0.0
        self._written = -np.inf

    def load(self) -> np.ndarray | None:
        """Risk of the runs finished so far (done, k), or None if there is no file yet.

        Raises
        ------
        InputError : if the file is no checkpoint, or one of other runs; the message names what differs.
        RunError : if there is no such folder, which is better known before the first chunk than after it.
        """
        if not self.path.exists():
            if not self.path.parent.is_dir():
                raise RunError(
                    f"cannot write checkpoint {self.path}: there is no folder {self.path.parent}; make it first"
                )
            return None
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                samples = np.asarray(stored["samples"], dtype=np.float64)
                found = {name: str(stored[f"mark_{name}"]) for name in self.marks}
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(f"checkpoint {self.path} is no checkpoint ({error}); give another file") from error
        wrong = [name for name, mark in self.marks.items() if found[name] != mark]
        if wrong:
            raise InputError(
                f"checkpoint {self.path} is of other runs: {', '.join(wrong)} differ{'s' if len(wrong) == 1 else ''}; "
                f"repeat the call that made it, or give another file"
            )
        return samples

    def save(self, samples: np.ndarray) -> None:
        """Store the finished runs, at once or, if files are slow to write, with a later chunk."""
        self._waiting = samples
        if time.monotonic() - self._written >= _BUSY * self._cost:
            self.close()

    def close(self) -> None:
        """Write what is not yet in the file."""
        if self._waiting is None:
            return
        began = time.monotonic()
        buffer = io.BytesIO()
        marks = {f"mark_{name}": np.array(mark) for name, mark in self.marks.items()}
        np.savez(buffer, allow_pickle=False, samples=self._waiting, **marks)
        write_bytes(self.path, buffer.getvalue())
        self._waiting = None
        self._written = time.monotonic()
        self._cost = self._written - began
