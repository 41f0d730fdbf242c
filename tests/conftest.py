"""What all tests share: the folder of sample data, and honest skips."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def missing(reason: str) -> None:
    """Skip for want of something outside the project; in CI that is a failure."""
    if os.environ.get("RUNBILL_CI") == "1":
        pytest.fail(f"not allowed to skip in CI: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with sample bills and cases (``RUNBILL_SHARED``)."""
    folder = Path(os.environ.get("RUNBILL_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        missing(f"no sample data at {folder}; set RUNBILL_SHARED")
    return folder
