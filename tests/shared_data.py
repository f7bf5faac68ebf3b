"""Where the real logs are: the folder of RFSIM_SHARED, or ../shared beside the project; tests skip without it."""

import os
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("RFSIM_SHARED", Path(__file__).resolve().parents[2] / "shared" / "data"))


def shared(*parts: str) -> Path:
    """Path of a file or folder of the shared data, or skip the test."""
    for root in (ROOT, ROOT / "data"):
        path = root.joinpath(*parts)
        if path.exists():
            return path
    pytest.skip(f"real logs are not at {ROOT.joinpath(*parts)}; set RFSIM_SHARED to the folder that holds them")
