"""``runbill agent``: what it needs, says and ends with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from ledger.schema import CLOSES, WORKLOADS
from ledger.store import Ledger
from tests.cli.conftest import Invoke
from tests.collector.agent.watchserver import WatchServer
from tests.collector.kubernetes.apiserver import Fault
from tests.collector.kubernetes.builders import node, pod, running


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    return tmp_path / "runbill.yaml"


def name(settings: Path, server: WatchServer, agent: str = "agent: true") -> None:
    url = f'{{server: "{server.url}"}}'
    settings.write_text(f"clusters: [{{name: train-a, kubernetes: {url}, {agent}}}]\n")


def test_once_writes_what_is_there(invoke: Invoke, settings: Path) -> None:
    with WatchServer() as server:
        server.put(node())
        server.put(pod("a", running("08:05")))
        name(settings, server)
        result = invoke("agent", "--once", "-v", "--config", settings)
        again = invoke("agent", "--once", "-v", "--config", settings)
    assert (result.exit_code, again.exit_code) == (0, 0), result.stderr + again.stderr
    assert "begins to watch" in result.stderr
    assert "goes on from" in again.stderr
    ledger = Ledger(str(settings.parent / "ledger"))
    rows = ledger.scan(WORKLOADS).collect()
    assert set(rows["source"]) == {"agent/train-a"}
    assert set(rows["interval_seconds"]) == {0.0}
    assert ledger.scan(CLOSES).select(pl.col("source").unique()).collect().item() == "agent/train-a"


def test_a_clock_that_is_late_finds_where_it_stood(
    invoke: Invoke, settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with WatchServer() as server:
        server.put(node())
        name(settings, server)
        assert invoke("agent", "--once", "--config", settings).exit_code == 0
        late = datetime.now(UTC) - timedelta(days=2)
        monkeypatch.setattr("cli.clock.now", lambda: late)
        result = invoke("agent", "--once", "-v", "--config", settings)
    assert (result.exit_code, "goes on from" in result.stderr) == (0, True), result.stderr


def test_a_refusal_names_the_role(invoke: Invoke, settings: Path) -> None:
    with WatchServer(faults={"/api/v1/pods": [Fault(403)]}) as server:
        name(settings, server)
        for more in ([], ["--once"]):
            result = invoke("agent", *more, "--config", settings)
            assert result.exit_code == 4
            assert "grant get, list and watch" in result.stderr


def test_it_watches_only_what_runs_will_count(invoke: Invoke, settings: Path) -> None:
    with WatchServer() as server:
        name(settings, server, "agent: false")
        result = invoke("agent", "--once", "--config", settings)
        assert (result.exit_code, "agent: true" in result.stderr) == (2, True)
        name(settings, server)
        assert invoke("agent", "train-b", "--once", "--config", settings).exit_code == 2
        assert invoke("agent", "--flush", "soon", "--config", settings).exit_code == 2
