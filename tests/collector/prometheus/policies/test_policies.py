"""States of jobs, queues and autoscalers, and ends of containers, from series alone."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from collector.prometheus import from_settings
from ledger.facts import Facts
from ledger.settings import Cluster
from ledger.window import Window
from tests.collector.prometheus import builders
from tests.collector.prometheus.builders import (
    KSM,
    Sample,
    collect,
    line,
    node,
    write_openmetrics,
    write_parquet,
)
from tests.real_servers import SERVERS

YESTERDAY = datetime.now(UTC).date() - timedelta(days=1)  # servers keep nothing older than a month
WINDOW = Window.of_day(YESTERDAY)


def at(clock: str) -> datetime:
    return builders.at(clock, YESTERDAY)


def stamp(clock: str) -> str:
    return f"{YESTERDAY}T{clock}:00Z"


RAY = {"job": "kuberay", "namespace": "train"}
START, END = at("00:00"), at("24:00")
EARLY = START - timedelta(minutes=10)  # counters go on from the day before
Labels = dict[str, str]


def seconds(clock: str) -> float:
    return at(clock).timestamp()


def status(name: str, word: str, start: datetime, end: datetime) -> list[Sample]:
    labels = {**RAY, "name": name, "uid": f"uid-{name}", "deployment_status": word}
    return line("kuberay_job_deployment_status", labels, start, end)


def world() -> list[Sample]:
    """A day on which something of each kind happened."""
    queue = {"cohort": "all", "cluster_queue": "research", "flavor": "h100", "resource": "gpu"}
    done = {**KSM, "namespace": "train", "job_name": "done"}
    lost = {**KSM, "namespace": "train", "job_name": "lost"}
    box = {**KSM, "namespace": "train", "pod": "a", "uid": "uid-a", "container": "main"}
    pool = {"nodepool": "gpu"}
    last = "kube_pod_container_status_last_terminated"
    return [
        *node("gpu-0", START, END),
        *status("grpo", "Initializing", START, at("07:59")),
        *status("grpo", "Running", at("08:00"), at("11:59")),
        *status("grpo", "Complete", at("12:00"), END),
        *status("old", "Failed", START, END),
        *line(
            "kuberay_job_execution_duration_seconds",
            {
                **RAY,
                "name": "grpo",
                "uid": "uid-grpo",
                "job_deployment_status": "Complete",
                "retry_count": "0",
            },
            at("12:00"),
            END,
            value=14400,
        ),
        *line(
            "kuberay_cluster_info",
            {**RAY, "name": "grpo-x1", "owner_kind": "RayJob"},
            START,
            at("20:00"),
        ),
        *line("kuberay_cluster_info", {**RAY, "name": "lab", "owner_kind": "None"}, START, END),
        *line("kube_job_created", done, START, END, value=seconds("01:00")),
        *line("kube_job_status_start_time", done, START, END, value=seconds("01:01")),
        *line("kube_job_status_completion_time", done, at("06:00"), END, value=seconds("06:00")),
        *line("kube_job_complete", {**done, "condition": "true"}, at("06:00"), END),
        *line("kube_job_spec_active_deadline_seconds", done, START, END, value=3600),
        *line("kube_job_status_active", lost, START, at("08:59"), value=1),
        *line("kube_job_status_active", lost, at("09:00"), END, value=0),
        *line("kube_job_failed", {**lost, "condition": "true"}, at("09:00"), END),
        *line("kube_job_failed", {**lost, "condition": "false"}, at("09:00"), END, value=0),
        *line(f"{last}_reason", {**box, "reason": "OOMKilled"}, at("10:00"), END),
        *line(f"{last}_exitcode", box, at("10:00"), END, value=137),
        *line(f"{last}_timestamp", box, at("10:00"), END, value=seconds("09:59:30")),
        *line("kube_pod_container_status_restarts_total", box, START, END, value=4),
        *line("kueue_cluster_queue_nominal_quota", queue, START, END, value=64),
        *line("kueue_cluster_queue_borrowing_limit", queue, START, END, value=16),
        *line("kueue_cluster_queue_resource_usage", queue, START, END, value=72.5),
        *line(
            "kueue_pending_workloads",
            {"cluster_queue": "research", "status": "active"},
            START,
            END,
            value=3,
        ),
        *line(
            "kueue_admission_wait_time_seconds_sum",
            {"cluster_queue": "research", "priority_class": ""},
            EARLY,
            END,
            value=lambda since: 90 + since / 60,
        ),
        *line(
            "kueue_evicted_workloads_total",
            {"cluster_queue": "research", "reason": "Preempted"},
            EARLY,
            END,
            value=lambda since: 5 if since < 3600 else 7,
        ),
        *line("karpenter_nodepools_limit", {**pool, "resource_type": "cpu"}, START, END, value=96),
        *line("karpenter_nodepools_allowed_disruptions", {**pool, "reason": "Empty"}, START, END),
        *line(
            "karpenter_nodeclaims_disrupted_total",
            {**pool, "reason": "empty", "capacity_type": "spot"},
            at("05:00"),
            END,
            value=2,
        ),
        *line("cluster_autoscaler_node_group_min_count", {"node_group": "g"}, START, END, value=2),
        *line("cluster_autoscaler_unneeded_nodes_count", {}, START, END, value=1),
        *line("cluster_autoscaler_scale_down_in_cooldown", {}, START, END, value=0),
    ]


def told(facts: Facts, kind: str) -> dict[str, dict[str, object]]:
    rows = facts.tables["resources"].filter(pl.col("kind") == kind)
    return {row["name"]: json.loads(row["configuration"]) for row in rows.iter_rows(named=True)}


def day_of(samples: Iterable[Sample]) -> Facts:
    return collect(list(samples), WINDOW)


def test_a_ray_job_tells_when_it_ran_and_ended() -> None:
    found = told(day_of(world()), "RayJob")
    assert found["grpo"] == {
        "jobDeploymentStatus": "Complete",
        "state": "finished",
        "startedAt": stamp("08:00"),
        "finishedAt": stamp("12:00"),
        "executionSeconds": 14400,
    }
    # It failed on an earlier day: when is that day's to tell.
    assert found["old"] == {"jobDeploymentStatus": "Failed", "state": "failed"}


def test_a_ray_cluster_tells_whose_it_is_and_when_it_was_seen_last() -> None:
    facts = day_of(world())
    assert told(facts, "RayCluster") == {
        "grpo-x1": {"owner": {"kind": "RayJob"}},
        "lab": {"owner": None},
    }
    seen = dict(
        facts.tables["resources"]
        .filter(pl.col("kind") == "RayCluster")
        .select("name", pl.col("seen_at").dt.strftime("%H:%M"))
        .iter_rows()
    )
    assert seen == {"grpo-x1": "20:00", "lab": "00:00"}


def test_jobs_tell_the_times_of_the_api() -> None:
    assert told(day_of(world()), "Job") == {
        "done": {
            "state": "finished",
            "submittedAt": stamp("01:00"),
            "startedAt": stamp("01:01"),
            "finishedAt": stamp("06:00"),
            "activeDeadlineSeconds": 3600,
        },
        "lost": {"state": "failed", "finishedAt": stamp("09:00")},
    }


def test_queues_pools_and_groups_tell_their_amounts() -> None:
    facts = day_of(world())
    assert told(facts, "ClusterQueue") == {
        "research": {
            "cohort": "all",
            "quotas": {"h100": {"gpu": {"nominalQuota": 64, "borrowingLimit": 16}}},
            "usage": {"h100": {"gpu": {"total": 72.5}}},
            "pendingWorkloads": 3,
            "waitSeconds": 1440,
        }
    }
    assert told(facts, "NodePool") == {
        "gpu": {"limits": {"cpu": 96}, "allowedDisruptions": {"Empty": 1}}
    }
    assert told(facts, "NodeGroup") == {"g": {"manager": "cluster-autoscaler", "minSize": 2}}
    assert told(facts, "ClusterAutoscaler") == {
        "cluster-autoscaler": {"scaleDownCandidates": 1, "scaleDownInCooldown": False}
    }


def test_ends_of_containers_and_counts_of_controllers_are_events() -> None:
    rows = day_of(world()).tables["events"].sort("kind")
    assert rows.select("kind", "object_kind", "name", "reason", "count").rows() == [
        ("out_of_memory", "Pod", "a", "OOMKilled", 1),
        ("preemption", "ClusterQueue", "research", "Preempted", 2),
        ("scale_down", "NodePool", "gpu", "empty", 2),
    ]
    first = rows.row(0, named=True)
    assert first["id"] == f"uid-a/main/{YESTERDAY}T09:59:30Z"
    assert json.loads(first["attributes"]) == {"container": "main", "exitCode": 137, "restarts": 4}
    assert all(WINDOW.start <= row["time"] < WINDOW.end for row in rows.iter_rows(named=True))


def test_an_end_of_an_earlier_day_is_no_event_of_this_one() -> None:
    box = {**KSM, "namespace": "train", "pod": "a", "uid": "uid-a", "container": "main"}
    last = "kube_pod_container_status_last_terminated"
    early = seconds("00:00") - 60
    facts = day_of(
        [
            *node("gpu-0", START, END),
            *line(f"{last}_reason", {**box, "reason": "Error"}, START, END),
            *line(f"{last}_timestamp", box, START, END, value=early),
        ]
    )
    assert facts.tables["events"].is_empty()


def test_without_such_series_nothing_is_told_and_nothing_lacks() -> None:
    facts = day_of(node("gpu-0", START, END))
    assert not {"resources", "events"} & facts.tables.keys()
    assert not any("kueue" in gap.detail or "kube_job" in gap.detail for gap in facts.gaps)


def test_what_could_not_be_read_replaces_nothing() -> None:
    facts = collect(world(), WINDOW, broken=frozenset({"kueue_pending_workloads"}))
    assert not {"resources", "events"} & facts.tables.keys()
    assert any("kueue_pending_workloads" in gap.detail for gap in facts.gaps)


@pytest.fixture(scope="module", params=SERVERS)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterable[tuple[Facts, Facts]]:
    """A real server, which works it out, beside an export of the same samples."""
    folder = tmp_path_factory.mktemp("policies")
    samples = world()
    text = write_openmetrics(samples, folder / "samples.txt")
    write_parquet(samples, folder / "export")
    with SERVERS[request.param].serve(folder / "server", [text]) as url:
        yield _facts({"url": url}, folder), _facts({"export": "export"}, folder)


def _facts(block: Labels, folder: Path) -> Facts:
    cluster = Cluster.model_validate({"name": "train-a", "prometheus": block})
    return from_settings(cluster, folder).collect(WINDOW)


@pytest.mark.parametrize("table", ["resources", "events"])
def test_a_server_works_out_what_samples_say(pair: tuple[Facts, Facts], table: str) -> None:
    server, export = pair
    columns = [name for name in export.tables[table].columns if name != "seen_at"]
    assert export.tables[table].height > 5 - 3 * (table == "events")
    assert (
        server.tables[table].select(columns).rows() == export.tables[table].select(columns).rows()
    )
    assert [gap.reason for gap in server.gaps] == [gap.reason for gap in export.gaps]
