"""The commands that the simulator and the demo tell to run next work as they are printed."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

Invoke = Callable[..., Result]
SMALL = ("--days", "2", "--end", "2026-11-03", "--gpus", "1", "--interval", "300")


def told(text: str, label: str) -> list[str]:
    """The words of the command behind a label."""
    found = re.search(rf"{label}: runbill (.*)", text)
    assert found, text
    return shlex.split(found[1])


def test_what_simulate_tells_closes_every_simulated_day(tmp_path: Path, invoke: Invoke) -> None:
    done = invoke("simulate", "a world", *SMALL)
    run = invoke(*told(done.stdout, "Close it"), "-o", "json")
    assert run.exit_code == 0, run.stderr
    assert json.loads(run.stdout)["window"]["end"] == "2026-11-04T00:00:00Z"


def test_what_the_demo_tells_can_be_asked(tmp_path: Path, invoke: Invoke) -> None:
    done = invoke("demo", "shown", *SMALL)
    assert done.exit_code == 0, done.stderr
    assert invoke(*told(done.stdout, "Ask more")).exit_code == 0
    report = invoke("--config", "shown/runbill.yaml", "report").stdout
    if "In full" in report:
        assert told(report, "In full, with commands")[:2] == ["--config", "shown/runbill.yaml"]
