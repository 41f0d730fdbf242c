"""How long ``runbill --help`` takes: what a person waits for, and every shell completion."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ELSEWHERE = True
RUNS = 10
TARGET_SECONDS = 0.3


def bench() -> dict[str, Any]:
    """Median wall-clock seconds of 10 runs after a warm-up."""
    command = [str(Path(sys.executable).with_name("runbill")), "--help"]
    seconds = [_once(command) for _ in range(RUNS + 1)][1:]
    median = statistics.median(seconds)
    return {
        "seconds": round(median, 4),
        "slowest_seconds": round(max(seconds), 4),
        "target_seconds": TARGET_SECONDS,
        "met": median < TARGET_SECONDS,
    }


def _once(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start
