"""A real server behind a login and a path, that holds two clusters: each is read as its own."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from polars.testing import assert_frame_equal

from collector.prometheus import PrometheusCollector, from_settings
from ledger.errors import AccessError
from ledger.facts import Facts
from ledger.settings import Cluster, PrometheusSource
from tests.collector.prometheus.builders import (
    WINDOW,
    Sample,
    canonical,
    collect,
    small_day,
    write_openmetrics,
)
from tests.conftest import free_port
from tests.victoria_server import require_victoria, running_victoria, serving

PREFIX = "/select/0/prometheus"
OF_STORE = {"prometheus": "monitoring/k8s", "region": "us-east-2"}
"""What a store's writers add to all series (external labels)."""


@dataclass(frozen=True)
class Store:
    """A store with two clusters: without a login, and behind one."""

    url: str
    guarded: str


def of_cluster(name: str) -> list[Sample]:
    """The small day of one cluster; of the second, pods and nodes bear the same names."""
    more = {"cluster": name, **OF_STORE}
    rows = small_day()
    if name == "train-b":
        rows = [row for row in rows if '"u3"' not in row.labels]
    return [row._replace(labels=canonical({**json.loads(row.labels), **more})) for row in rows]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    require_victoria("victoria-metrics", "vmauth")
    folder = tmp_path_factory.mktemp("roles")
    rows = [*of_cluster("train-a"), *of_cluster("train-b")]
    text = write_openmetrics(rows, folder / "day.om")
    with running_victoria(folder / "server", [text], prefix=PREFIX) as url:
        base = url.removesuffix(PREFIX)
        users = [
            {"username": "runbill", "password": "secret", "url_prefix": base},
            {"bearer_token": "token", "url_prefix": base},
        ]
        config = folder / "auth.yml"
        config.write_text(yaml.safe_dump({"users": users}), "utf-8")
        address = f"127.0.0.1:{free_port()}"
        command = ["vmauth", f"-auth.config={config}", f"-httpListenAddr={address}"]
        with serving(command, folder / "auth" / "log", f"http://{address}/health"):
            yield Store(url, f"http://{address}{PREFIX}")


def reader(url: str, cluster: str = "train-a", **options: str) -> PrometheusCollector:
    block = PrometheusSource(url=url, cluster_label="cluster", **options)
    return from_settings(Cluster(name=cluster, prometheus=block), Path())


def assert_same(live: Facts, expected: Facts) -> None:
    for name in ("nodes", "workloads"):
        assert expected.tables[name].height > 0
        assert_frame_equal(live.tables[name].drop("cluster"), expected.tables[name].drop("cluster"))


@pytest.mark.parametrize("cluster", ["train-a", "train-b"])
def test_each_cluster_of_a_store_is_read_alone(store: Store, cluster: str) -> None:
    live = reader(store.url, cluster).collect(WINDOW)
    assert_same(live, collect([*of_cluster(cluster)]))
    assert ("u3" in live.tables["workloads"]["uid"]) == (cluster == "train-a")


@pytest.mark.parametrize(
    "login",
    [{"username": "runbill", "password": "secret"}, {"token": "token"}],
    ids=["basic", "bearer"],
)
def test_a_login_is_accepted(store: Store, login: dict[str, str]) -> None:
    found = reader(store.guarded, **login)
    assert found.reach() is not None
    names = ["kube_node_info", "kube_pod_info", "nothing"]
    assert found.source.held(names, WINDOW) == set(names[:2])


def test_a_wrong_login_is_refused_and_not_repeated(store: Store) -> None:
    for login in ({"token": "tell-nobody"}, {"username": "runbill", "password": "tell-nobody"}):
        with pytest.raises(AccessError) as refused:
            reader(store.guarded, **login).collect(WINDOW)
        assert "tell-nobody" not in f"{refused.value}{refused.value.message}"
        packed = base64.b64encode(b"runbill:tell-nobody").decode()
        assert packed not in refused.value.message
