"""The live reader through the real client, against the stand-in API server."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
import stamina
import yaml

from collector.kubernetes import from_settings
from collector.kubernetes.collect import KubernetesCollector
from collector.kubernetes.kinds import KINDS, OWNERS, Kind
from collector.kubernetes.live import LiveReader
from ledger.errors import AccessError, SourceError
from ledger.settings import Cluster, KubernetesSource
from tests.collector.kubernetes import apiserver
from tests.collector.kubernetes.apiserver import ApiServer, Fault, by_list
from tests.collector.kubernetes.builders import (
    NOW,
    WINDOW,
    Json,
    collect,
    lives,
    node,
    pod,
    running,
    thing,
)

PODS, NODES, JOBS = "/api/v1/pods", "/api/v1/nodes", "/apis/batch/v1/jobs"
RAY_JOBS = "/apis/ray.io/v1/rayjobs"


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    with stamina.set_testing(True, attempts=3):
        yield


def pods(count: int) -> list[Json]:
    return [pod(f"p{number:02}", running("08:30")) for number in range(count)]


def paged(server: ApiServer, page: int = 2) -> KubernetesCollector:
    return KubernetesCollector(
        "train-a", LiveReader(KubernetesSource(server=server.url), Path(), page), snapshot=True
    )


def names(frame: pl.DataFrame) -> list[str]:
    return frame.filter(pl.col("state") == "running")["pod"].to_list()


def test_reads_a_cluster() -> None:
    job = thing("ray.io/v1", "RayJob", "grpo", labels={"experiment": "grpo"})
    made = pod("a", running("08:30"), owners=[job])
    with ApiServer(by_list([job, made, node()]), now=NOW - 3600) as server:
        facts = collect(server=server.url)
    assert lives(facts, "a")[-1] == ("08:30", "23:00", "running", None)
    assert facts.tables["workloads"]["root_name"].unique().to_list() == ["grpo"]
    assert facts.tables["nodes"]["end"].to_list() == [facts.data_through]
    assert set(facts.tables) == {
        *("workloads", "nodes", "resources", "claims", "volumes", "mounts", "events")
    }
    assert not facts.gaps
    assert not facts.quarantine


def test_a_time_after_the_server_s_clock_is_put_aside() -> None:
    with ApiServer({PODS: [pod("a", running("12:00"))]}, now=NOW - 13 * 3600) as server:
        facts = collect(server=server.url)
    assert [entry.reason for entry in facts.quarantine] == ["bad_date"]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7])
def test_pages_are_read_to_the_end(count: int) -> None:
    with ApiServer({PODS: pods(count)}, now=NOW) as server:
        facts = paged(server).collect(WINDOW)
        assert names(facts.tables["workloads"]) == [f"p{number:02}" for number in range(count)]
        assert [request.limit for request in server.seen(PODS)] == [2] * max(1, -(-count // 2))


def test_a_list_that_expires_half_way_starts_again_and_is_not_mixed() -> None:
    server = ApiServer({PODS: pods(5)}, {PODS: [Fault(410, times=1, only_continued=True)]}, now=NOW)

    def change(path: str) -> None:
        if path == PODS:  # after the first page p00 goes and p99 comes
            server.lists[PODS] = [*pods(5)[1:], pod("p99", running("08:30"))]

    server.on_page = change
    with server:
        facts = paged(server).collect(WINDOW)
    assert names(facts.tables["workloads"]) == ["p01", "p02", "p03", "p04", "p99"]
    starts = [request.token is None for request in server.seen(PODS)]
    assert starts == [True, False, True, False, False]


def test_a_list_that_always_expires_is_read_in_one_piece() -> None:
    with ApiServer({PODS: pods(5)}, {PODS: [Fault(410, only_continued=True)]}, now=NOW) as server:
        facts = paged(server).collect(WINDOW)
        assert len(names(facts.tables["workloads"])) == 5
        assert server.seen(PODS)[-1].limit is None


def test_one_forbidden_kind_is_a_gap_and_its_table_absent() -> None:
    with ApiServer({PODS: pods(1), NODES: [node()]}, {NODES: [Fault(403)]}, now=NOW) as server:
        facts = collect(server=server.url)
    assert set(facts.tables) == {
        *("workloads", "resources", "claims", "volumes", "mounts", "events")
    }
    (gap,) = facts.gaps
    assert gap.reason == "access_denied"
    assert "grant get and list on nodes" in gap.detail


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.name != "Pod"], ids=lambda kind: kind.resource
)
def test_each_kind_that_is_forbidden_is_named_with_its_permission(kind: Kind) -> None:
    """By a gap, or by a note where only a hint is lost; the rest of the cluster is there."""
    (path, *_) = kind.paths
    one = thing(f"{kind.group}/{kind.versions[0]}".lstrip("/"), kind.name, "x")
    lists = {PODS: pods(1), NODES: [node()], path: [one]}
    with ApiServer(lists, {path: [Fault(403)]}, now=NOW) as server:
        facts = collect(server=server.url)
    assert names(facts.tables["workloads"]) == ["p00"]
    told = [gap.detail for gap in facts.gaps] if not kind.optional else facts.notes
    assert [text for text in told if f"grant get and list on {kind.resource} " in text]
    assert {gap.reason for gap in facts.gaps} <= {"access_denied"}


def test_a_forbidden_kind_that_is_not_installed_is_no_gap() -> None:
    with ApiServer({PODS: pods(1)}, {RAY_JOBS: [Fault(403)]}, now=NOW) as server:
        assert not collect(server=server.url).gaps
        server.lists[RAY_JOBS] = []
        (gap,) = collect(server=server.url).gaps
    assert gap.reason == "access_denied"
    assert "rayjobs.ray.io" in gap.detail


def test_an_older_version_of_a_kind_is_found() -> None:
    with ApiServer({"/apis/kubeflow.org/v2beta1/mpijobs": []}, now=NOW) as server:
        collect(server=server.url)
        assert server.seen("/apis/kubeflow.org/v1/mpijobs")
        assert server.seen("/apis/kubeflow.org/v2beta1/mpijobs")


@pytest.mark.parametrize(
    "fault",
    [
        Fault(500, times=1),
        Fault(503, times=2),
        Fault(0, times=1),
        Fault(429, times=1, headers={"Retry-After": "1"}),
    ],
)
def test_a_passing_fault_is_tried_again(fault: Fault) -> None:
    with ApiServer({PODS: pods(3)}, {PODS: [fault]}, now=NOW) as server:
        facts = paged(server).collect(WINDOW)
    assert len(names(facts.tables["workloads"])) == 3
    assert not facts.gaps


def test_retries_are_ours_alone() -> None:
    with ApiServer({PODS: pods(1)}, {JOBS: [Fault(0)], NODES: [Fault(502)]}, now=NOW) as server:
        facts = collect(server=server.url)
        assert (len(server.seen(JOBS)), len(server.seen(NODES))) == (3, 3)
    assert [gap.reason for gap in facts.gaps] == ["query_failed", "query_failed"]
    assert "nodes" not in facts.tables


def test_retry_after_is_waited_for() -> None:
    wait = Fault(429, times=1, headers={"Retry-After": "1"})
    with stamina.set_testing(False), ApiServer({}, {PODS: [wait]}, now=NOW) as server:
        collect(server=server.url)
        first, second = server.seen(PODS)
    assert 1 <= second.at - first.at < 5


def test_a_server_that_asks_for_hours_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.kubernetes.client.LONGEST_WAIT", 0.01)
    wait = Fault(429, times=1, headers={"Retry-After": "7200"})
    with stamina.set_testing(False), ApiServer({PODS: pods(1)}, {PODS: [wait]}, now=NOW) as server:
        assert names(collect(server=server.url).tables["workloads"]) == ["p00"]


def test_an_answer_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.kubernetes.client.TIMEOUT", (5.0, 0.2))
    slow = Fault(200, seconds=30)
    with ApiServer({PODS: pods(1)}, {NODES: [slow]}, now=NOW) as server:
        facts = collect(server=server.url)
    assert [gap.reason for gap in facts.gaps] == ["query_failed"]


def test_an_answer_that_is_no_list_is_a_gap() -> None:
    page = Fault(200, body=b"<html>please log in</html>")
    with ApiServer({PODS: pods(1)}, {NODES: [page]}, now=NOW) as server:
        facts = collect(server=server.url)
    assert [gap.reason for gap in facts.gaps] == ["query_failed"]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, AccessError),
        (403, AccessError),
        (404, SourceError),
        (500, SourceError),
    ],
)
def test_without_pods_nothing_is_known(status: int, error: type[SourceError]) -> None:
    with ApiServer(faults={PODS: [Fault(status)]}) as server, pytest.raises(error) as caught:
        collect(server=server.url)
    assert type(caught.value) is error
    assert caught.value.hint


@pytest.mark.parametrize("path", ["/apis/batch/v1/jobs", "/apis/ray.io/v1/rayjobs"])
@pytest.mark.parametrize(
    ("status", "reason"),
    [(401, "access_denied"), (403, "access_denied"), (503, "query_failed"), (0, "query_failed")],
)
def test_one_group_that_is_refused_or_down_costs_itself(
    path: str, status: int, reason: str
) -> None:
    """As where an aggregated API is behind its own gate."""
    job = thing("ray.io/v1", "RayJob", "r")
    lists = {PODS: pods(1), RAY_JOBS: [job]}
    with ApiServer(lists, {path: [Fault(status)]}, now=NOW) as server:
        facts = collect(server=server.url)
    assert names(facts.tables["workloads"]) == ["p00"]
    (gap,) = facts.gaps
    assert (gap.reason, path.rpartition("/")[2] in gap.detail) == (reason, True)


def test_a_form_that_is_refused_is_asked_for_as_plain_json() -> None:
    path = "/apis/apps/v1/replicasets"
    with ApiServer({PODS: pods(1)}, {path: [Fault(406, times=1)]}, now=NOW) as server:
        facts = collect(server=server.url)
        assert [one.accept for one in server.seen(path)][1:] == ["application/json"]
    assert not facts.gaps


def test_a_list_that_goes_round_is_given_up() -> None:
    page = json.dumps({"metadata": {"continue": "again"}, "items": []}).encode()
    faults = {"/apis/batch/v1/jobs": [Fault(200, body=page)]}
    with ApiServer({PODS: pods(1)}, faults, now=NOW) as server:
        (gap,) = collect(server=server.url).gaps
    assert "goes round in a circle" in gap.detail


@pytest.mark.parametrize(("loss", "tries"), [(1e9, [3, 3, 3]), (1e-9, [3, 0, 0])])
def test_a_server_that_fails_at_every_kind_is_not_waited_for_at_each(
    monkeypatch: pytest.MonkeyPatch, loss: float, tries: list[int]
) -> None:
    monkeypatch.setattr("collector.kubernetes.client.LONGEST_LOSS", loss)
    faults = {path: [Fault(429)] for path in (NODES, "/apis/batch/v1/jobs", "/api/v1/events")}
    with ApiServer({PODS: pods(1)}, faults, now=NOW) as server:
        facts = collect(server=server.url)
        assert [len(server.seen(path)) for path in faults] == tries
    assert names(facts.tables["workloads"]) == ["p00"]
    assert {gap.reason for gap in facts.gaps} == {"query_failed"}


def test_after_some_losses_each_request_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.kubernetes.client.LONGEST_LOSS", 0.3)
    jobs = "/apis/batch/v1/jobs"
    faults = {NODES: [Fault(503, seconds=0.11)], jobs: [Fault(503, times=2)]}
    with ApiServer({PODS: pods(1)}, faults, now=NOW) as server:
        collect(server=server.url)
        assert [len(server.seen(path)) for path in faults] == [3, 1]


def test_a_server_that_is_not_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(SourceError, match="pods cannot be listed") as caught:
            collect(server=address)
    assert "\n" not in str(caught.value)
    assert not isinstance(caught.value, AccessError)


def kubeconfig(folder: Path, url: str, token: str) -> Path:
    path = folder / "config"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "other",
                "clusters": [{"name": "c", "cluster": {"server": url}}],
                "users": [{"name": "u", "user": {"token": token}}],
                "contexts": [{"name": "train-a", "context": {"cluster": "c", "user": "u"}}],
            }
        )
    )
    return path


def test_logs_in_through_a_kubeconfig(tmp_path: Path) -> None:
    with ApiServer({PODS: pods(1)}, token="right", now=NOW) as server:
        path = kubeconfig(tmp_path, server.url, "right")
        before = path.read_bytes()
        cluster = Cluster.model_validate(
            {"name": "c", "kubernetes": {"kubeconfig": "config", "context": "train-a"}}
        )
        facts = from_settings(cluster, tmp_path).collect(WINDOW)
        assert names(facts.tables["workloads"]) == ["p00"]
        assert path.read_bytes() == before
        kubeconfig(tmp_path, server.url, "wrong")
        with pytest.raises(AccessError, match="does not know us"):
            from_settings(cluster, tmp_path).collect(WINDOW)


@pytest.mark.parametrize(
    "source",
    [
        {"kubeconfig": "absent"},
        {"kubeconfig": "config", "context": "absent"},
        {"kubeconfig": "broken", "context": "c"},
        {"kubeconfig": "odd"},
        {"in_cluster": True},
    ],
)
def test_a_way_in_that_does_not_exist(tmp_path: Path, source: Json) -> None:
    kubeconfig(tmp_path, "http://127.0.0.1:1", base64.b64encode(b"t").decode())
    (tmp_path / "broken").write_text("a: [")
    (tmp_path / "odd").write_text("contexts: 5\ncurrent-context: a")
    cluster = Cluster.model_validate({"name": "c", "kubernetes": source})
    with pytest.raises(SourceError, match="cannot log in") as caught:
        from_settings(cluster, tmp_path).collect(WINDOW)
    assert "\n" not in str(caught.value)


def test_probe_says_what_would_be_blind() -> None:
    faults = {NODES: [Fault(403)], RAY_JOBS: [Fault(403)]}
    with ApiServer({PODS: pods(5)}, faults, now=NOW) as server:
        probes = {probe.need: probe for probe in paged(server).probe()}
        assert [request.limit for request in server.seen(PODS)] == [1]
    assert probes["list pods"].ok
    assert not probes["list nodes"].ok
    assert "capacity" in probes["list nodes"].blind
    assert probes["list rayjobs.ray.io"].detail == "not installed"


def test_a_probe_looks_at_what_is_answered() -> None:
    faults = {NODES: [Fault(200, body=b"<html>Please log in</html>")]}
    with ApiServer({PODS: pods(1)}, faults, now=NOW) as server:
        probes = {probe.need: probe for probe in paged(server).probe()}
    assert not probes["list nodes"].ok
    assert "answered no list" in probes["list nodes"].detail


def test_doing_without_an_optional_kind_is_no_fault() -> None:
    events, volumes = "/api/v1/events", "/api/v1/persistentvolumes"
    faults = {events: [Fault(403)] * 2, volumes: [Fault(403)] * 2}
    with ApiServer({PODS: pods(1), NODES: [node()]}, faults, now=NOW) as server:
        collector = paged(server)
        probes = {probe.need: probe for probe in collector.probe()}
        facts = collector.collect(WINDOW)
    assert (probes["list events"].ok, probes["list events"].blind) == (True, "")
    assert "grant get and list on events" in probes["list events"].detail
    assert not probes["list persistentvolumes"].ok
    assert [gap.reason for gap in facts.gaps] == ["access_denied"]
    assert "persistentvolumes" in facts.gaps[0].detail
    assert any("events cannot be listed" in note for note in facts.notes)
    assert "volumes" not in facts.tables


def test_declared_access_is_what_is_listed() -> None:
    with ApiServer(now=NOW) as server:
        collector = paged(server)
        collector.collect(WINDOW)
        paths = {request.path for request in server.requests} - {"/apis"}
        asked = {tuple(path.split("/")[2:]) for path in paths}
        (status,) = server.seen("/api/v1/namespaces/kube-system/configmaps")
    every = collector.permissions.kubernetes
    declared = {(each.group, plural) for each in every for plural in each.resources}
    core = {path[-1] for path in asked if path[0] == "v1"}
    named = {(path[0], path[-1]) for path in asked if path[0] != "v1"}
    assert declared - set(OWNERS) == {*(("", plural) for plural in core), *named}
    assert not any("secret" in plural for _, plural in declared)
    (one,) = (each for each in every if "configmaps" in each.resources)
    assert (one.namespace, one.names) == ("kube-system", ("cluster-autoscaler-status",))
    assert status.fields == "metadata.name=cluster-autoscaler-status"


def test_the_stand_in_runs_as_a_process_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "objects.json").write_text(
        json.dumps({"kind": "List", "apiVersion": "v1", "items": [*pods(2), node()]})
    )
    command = [sys.executable, apiserver.__file__, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        try:
            assert process.stdout
            url = process.stdout.readline().strip()
            assert names(collect(server=url).tables["workloads"]) == ["p00", "p01"]
        finally:
            process.terminate()


def test_credentials_in_the_address_are_never_shown() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://mary:s3cret@127.0.0.1:{probe.getsockname()[1]}"
    cluster = Cluster.model_validate({"name": "train-a", "kubernetes": {"server": address}})
    collector = from_settings(cluster, Path("/"))
    with pytest.raises(SourceError) as caught:
        collector.collect(WINDOW)
    shown = f"{caught.value} {collector.probe()}"
    assert "127.0.0.1" in shown
    assert "s3cret" not in shown
    assert "mary" not in shown
