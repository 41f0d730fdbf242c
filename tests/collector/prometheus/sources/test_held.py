"""Series that many clusters lack cost one question, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from collector.prometheus.collect import PrometheusCollector
from collector.prometheus.series.catalogue import ALL
from collector.prometheus.series.metric import Series
from collector.prometheus.sources.access import Access
from collector.prometheus.sources.export import ParquetExport
from collector.prometheus.sources.server import Server
from collector.prometheus.sources.source import Reading
from ledger.window import Window
from tests.collector.prometheus.builders import (
    WINDOW,
    MemorySource,
    frame,
    small_day,
    write_parquet,
)
from tests.collector.prometheus.stub import Reply, Request, error, serving

WANTED = ["kube_node_info", "kube_pod_annotations", "gpu_gfx_activity"]


@dataclass(frozen=True)
class Counting(MemorySource):
    """The seam, with what was asked of it."""

    read: list[str] = field(default_factory=list)
    looked: list[int] = field(default_factory=list)

    def samples(self, series: Series, window: Window) -> Reading:
        self.read.append(series.metric)
        return super().samples(series, window)

    def held(self, metrics: object, window: Window) -> frozenset[str]:
        self.looked.append(1)
        return super().held(metrics, window)  # type: ignore[arg-type]


def test_what_is_not_held_is_not_read() -> None:
    source = Counting(frame(small_day()))
    PrometheusCollector("train-a", source).collect(WINDOW)
    absent = {name for one in ALL if one.optional for name in one.names}
    assert not set(source.read) & (absent - set(source.rows["__name__"]))
    assert len(source.looked) == 1


def test_an_index_without_what_every_cluster_has_is_not_believed() -> None:
    @dataclass(frozen=True)
    class Empty(Counting):
        def held(self, metrics: object, window: Window) -> frozenset[str]:
            return frozenset()

    source = Empty(frame(small_day()))
    PrometheusCollector("train-a", source).collect(WINDOW)
    few = {"kube_pod_owner", "kube_pod_annotations", "kube_persistentvolume_info"}
    assert few <= set(source.read)


def test_an_export_names_what_its_files_hold(tmp_path: Path) -> None:
    source = ParquetExport(write_parquet(small_day(), tmp_path, files=3))
    assert source.held(WANTED, WINDOW) == {"kube_node_info"}


def asked(reply: Reply, label: str | None = None) -> tuple[frozenset[str], list[Request]]:
    with serving(lambda _: reply) as stub:
        server = Server(Access(stub.url), "train-a", label)
        return server.held(WANTED, WINDOW), stub.requests


def test_a_server_is_asked_for_the_names_in_its_index() -> None:
    body = {"status": "success", "data": ["kube_node_info", "up"]}
    found, requests = asked(Reply(body=body), "cluster")
    assert found == {"kube_node_info"}
    (request,) = requests
    assert (request.method, request.path) == ("GET", "/api/v1/label/__name__/values")
    (selector,) = parse_qs(request.in_url)["match[]"]
    names = "kube_node_info|kube_pod_annotations|gpu_gfx_activity"
    assert selector == f'{{__name__=~"{names}",cluster=~"|train\\\\-a"}}'


@pytest.mark.parametrize(
    "reply",
    [
        error(403, "no"),
        error(404, "no such page"),
        Reply(body={"status": "success"}),
        Reply(body=b"?"),
    ],
)
def test_a_server_without_an_index_may_hold_all(reply: Reply) -> None:
    assert asked(reply)[0] == set(WANTED)
