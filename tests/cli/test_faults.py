"""A server of series that goes wrong while it is read: the day closes, the next run mends it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import stamina

from cli import exits
from ledger.schema import CLOSES, COSTS, USAGE, WORKLOADS
from ledger.store import Ledger
from ledger.window import Window
from tests.cli.conftest import Invoke
from tests.collector.prometheus.builders import DAY, small_day, write_openmetrics
from tests.conftest import free_port
from tests.prometheus_proxy import Fault, Proxy, proxied
from tests.prometheus_server import running_prometheus

WINDOW = Window.of_day(DAY)
SETTINGS = """
ledger: {ledger}
clusters:
  - name: train-a
    {kubernetes}
    prometheus: {{url: "{url}", timeout_seconds: 1}}
prices: {{gpu: {{default: 2.0}}, vcpu: 0.03, gib: 0.004}}
"""


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    with stamina.set_testing(True, attempts=4, cap=True):
        yield


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("prometheus")
    with running_prometheus(folder, [write_openmetrics(small_day(), folder / "day.om")]) as url:
        yield url


@pytest.fixture
def proxy(upstream: str) -> Iterator[Proxy]:
    with proxied(upstream) as running:
        yield running


@pytest.fixture
def close(tmp_path: Path, proxy: Proxy, invoke: Invoke) -> Callable[[], int]:
    """Run the day; the exit code."""

    def call(kubernetes: str = "") -> int:
        settings = tmp_path / "runbill.yaml"
        text = SETTINGS.format(ledger=tmp_path / "ledger", url=proxy.url, kubernetes=kubernetes)
        settings.write_text(text, "utf-8")
        return invoke("run", "--config", settings, "--day", str(DAY)).exit_code

    return call


@pytest.fixture
def books(tmp_path: Path) -> Callable[[], dict[str, pl.DataFrame]]:
    """What the ledger holds of the day."""

    def call() -> dict[str, pl.DataFrame]:
        ledger = Ledger.open(str(tmp_path / "ledger"))
        return {
            table.name: ledger.scan(table, WINDOW).collect().sort(table.key)
            for table in (WORKLOADS, USAGE, COSTS)
        }

    return call


def closing(folder: Path, source: str = "prometheus/train-a") -> dict[str, Any]:
    ledger = Ledger.open(str(folder / "ledger"))
    rows = ledger.scan(CLOSES, WINDOW, source).filter(pl.col("stage") == "collect").collect()
    return rows.row(0, named=True)


def on(faults: dict[str, Fault]) -> Callable[[str], Fault | None]:
    """A fault for every question about some metrics, but not about which are held."""

    def answer(text: str) -> Fault | None:
        hit = (fault for metric, fault in faults.items() if metric in text)
        return None if "__name__" in text else next(hit, None)

    return answer


def from_on(metric: str, fault: Fault) -> Callable[[str], Fault | None]:
    """The fault from the first question about a metric on."""
    state = {"gone": False}

    def answer(text: str) -> Fault | None:
        state["gone"] = state["gone"] or (metric in text and "__name__" not in text)
        return fault if state["gone"] else None

    return answer


def failures(folder: Path) -> str:
    """What the last close says of queries that failed."""
    gaps = json.loads(closing(folder)["gaps"])
    return "\n".join(gap["detail"] for gap in gaps if gap["reason"] == "query_failed")


CPU, MEMORY, CARDS = (
    "container_cpu_usage_seconds_total",
    "container_memory_working_set_bytes",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
)


@pytest.mark.parametrize(
    ("fault", "blind"),
    [
        pytest.param(Fault.GONE, "cannot be reached", id="killed"),
        pytest.param(Fault.STALL, "not asked any more", id="hangs"),
    ],
)
def test_a_server_that_is_lost_half_way_leaves_gaps_that_the_next_run_fills(
    fault: Fault,
    blind: str,
    proxy: Proxy,
    close: Callable[[], int],
    books: Callable[[], dict[str, pl.DataFrame]],
    tmp_path: Path,
) -> None:
    proxy.fault = from_on(CPU, fault)
    assert close() == exits.GAPS
    told, found = failures(tmp_path), books()
    assert blind in told
    assert CPU in told
    assert CARDS in told
    assert found["workloads"]["uid"].unique().sort().to_list() == ["u1", "u2", "u3"]
    assert found["usage"]["meter"].unique().to_list() == ["up"]
    assert found["costs"]["EffectiveCost"].sum() > 0
    proxy.fault = lambda _: None
    assert close() == exits.OK
    mended = books()
    assert {"cpu_usage", "gpu_activity"} <= set(mended["usage"]["meter"])
    if fault is Fault.GONE:  # a worse reading later on takes nothing away
        proxy.fault = from_on(CPU, fault)
        assert close() == exits.GAPS
        assert books()["usage"].equals(mended["usage"])


def test_a_query_that_fails_is_a_gap_that_the_next_run_fills(
    proxy: Proxy,
    close: Callable[[], int],
    books: Callable[[], dict[str, pl.DataFrame]],
    tmp_path: Path,
) -> None:
    faults = {
        CPU: (Fault.ERROR, "answers 500"),
        MEMORY: (Fault.CUT, "broke off its reply"),
        CARDS: (Fault.GARBAGE, "not Prometheus' JSON"),
        "kube_node_labels": (Fault.STALL, "no reply in time"),
        "kube_pod_labels": (Fault.DRIP, "no reply in time"),
    }
    proxy.fault = on({metric: fault for metric, (fault, _) in faults.items()})
    assert close() == exits.GAPS
    told = failures(tmp_path).splitlines()
    for metric, (_, why) in faults.items():
        assert any(line.startswith(metric) and why in line for line in told), (metric, told)
    assert books()["usage"]["meter"].unique().to_list() == ["up"]
    proxy.fault = lambda _: None
    assert close() == exits.OK
    assert {"cpu_usage", "gpu_activity"} <= set(books()["usage"]["meter"])


def test_a_server_that_is_gone_from_the_start_closes_nothing(
    proxy: Proxy, close: Callable[[], int]
) -> None:
    proxy.fault = lambda _: Fault.GONE
    assert close() == exits.UNREACHABLE


def test_an_api_server_out_of_reach_leaves_the_day_to_prometheus(
    close: Callable[[str], int],
    books: Callable[[], dict[str, pl.DataFrame]],
    tmp_path: Path,
) -> None:
    api = f"http://127.0.0.1:{free_port()}"
    assert close(f'kubernetes: {{server: "{api}"}}') == exits.GAPS
    assert books()["costs"]["EffectiveCost"].sum() > 0
    failed, series = closing(tmp_path, "kubernetes/train-a"), closing(tmp_path)
    assert (failed["status"], failed["coverage"]) == ("failed", 0.0)
    assert (series["status"], series["coverage"]) == ("closed", 1.0)
