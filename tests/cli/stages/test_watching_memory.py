"""An agent on a large cluster stays small."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.soak
def test_ten_thousand_pods_with_a_hundred_thousand_changes_fit(tmp_path: Path) -> None:
    script = ROOT / "tests/collector/agent/load.py"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "ledger"), "10000", "100000"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["peak_mb"] < 300
