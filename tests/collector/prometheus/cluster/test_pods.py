"""Pods: lives, states, requests, owners, labels."""

from __future__ import annotations

import json
from datetime import datetime

import polars as pl
import pytest

from ledger.schema import WORKLOADS
from tests.collector.prometheus.builders import (
    DAY,
    KSM,
    MINUTE,
    Sample,
    at,
    collect,
    line,
    node,
    pod,
    small_day,
)

NODE = node("gpu-0", at("0:00"), at("24:00"))
BASE = {**KSM, "namespace": "research", "pod": "u1", "uid": "u1"}


def workloads(samples: list[Sample]) -> pl.DataFrame:
    return collect([*NODE, *samples]).tables["workloads"]


def spans(frame: pl.DataFrame) -> list[tuple[str, datetime, datetime]]:
    return frame.select("state", "start", "end").rows()


def without(samples: list[Sample], *names: str) -> list[Sample]:
    return [sample for sample in samples if sample.name not in names]


def test_rows_have_the_form_of_the_table() -> None:
    frame = collect(small_day()).tables["workloads"]
    assert frame.schema == {
        name: dtype for name, dtype in WORKLOADS.schema.items() if name != "source"
    }
    assert frame["cluster"].unique().to_list() == ["train-a"]
    assert frame["day"].unique().to_list() == [DAY]


def test_a_bound_pod_is_held_until_the_first_sample_that_shows_it_running() -> None:
    frame = workloads(pod("u1", at("10:00"), at("12:00"), running=at("10:05")))
    assert spans(frame) == [
        ("held", at("10:00"), at("10:05")),
        ("running", at("10:05"), at("12:00")),
    ]
    assert frame["node"].to_list() == ["gpu-0", "gpu-0"]
    assert frame["interval_seconds"].to_list() == [60.0, 60.0]


def test_a_held_pod_says_why_as_far_as_it_is_told() -> None:
    def waiting(reason: str, start: str, end: str) -> list[Sample]:
        labels = {**BASE, "container": "main", "reason": reason}
        return line("kube_pod_container_status_waiting_reason", labels, at(start), at(end))

    frame = workloads(
        [
            *pod("u1", at("10:00"), at("12:00"), running=at("11:00")),
            *waiting("ContainerCreating", "10:00", "10:09"),
            *waiting("ImagePullBackOff", "10:10", "10:59"),
        ]
    )
    assert frame.select("state", "reason", "start").rows() == [
        ("held", "ContainerCreating", at("10:00")),
        ("held", "ImagePullBackOff", at("10:10")),
        ("running", None, at("11:00")),
    ]


def test_a_pod_that_is_not_bound_has_no_node() -> None:
    waiting = [
        *line("kube_pod_info", {**BASE, "node": ""}, at("9:00"), at("9:59")),
        *line("kube_pod_status_phase", {**BASE, "phase": "Pending"}, at("9:00"), at("9:59")),
    ]
    frame = workloads([*waiting, *pod("u1", at("10:00"), at("11:00"))])
    assert frame.select("node", "start", "end").rows() == [
        (None, at("9:00"), at("10:00")),
        ("gpu-0", at("10:00"), at("11:00")),
    ]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_ends_though_it_stays_visible(phase: str) -> None:
    lingering = [sample for sample in pod("u1", at("11:01"), at("16:00"), phase=phase)]
    frame = workloads([*pod("u1", at("10:00"), at("11:00")), *lingering])
    assert spans(frame) == [("running", at("10:00"), at("11:00"))]


def test_a_hole_is_not_charged() -> None:
    frame = workloads([*pod("u1", at("10:00"), at("11:00")), *pod("u1", at("13:00"), at("14:00"))])
    assert spans(frame) == [
        ("running", at("10:00"), at("11:00")),
        ("running", at("13:00"), at("14:00")),
    ]


def test_a_name_that_is_used_again_is_another_pod() -> None:
    frame = workloads(
        [
            *pod("u1", at("12:00"), at("17:00"), name="train-0"),
            *pod("u2", at("17:01"), at("22:00"), name="train-0"),
        ]
    )
    assert frame.select("uid", "pod", "start", "end").rows() == [
        ("u1", "train-0", at("12:00"), at("17:00")),
        ("u2", "train-0", at("17:01"), at("22:00")),
    ]


def test_a_lone_sample_counts_half_an_interval_to_each_side() -> None:
    frame = workloads(pod("u1", at("10:00"), at("10:00")))
    assert spans(frame) == [("running", at("9:59:30"), at("10:00:30"))]


def test_a_life_over_midnight_reaches_it() -> None:
    frame = workloads(pod("u1", at("23:00:30"), at("24:00:30") + 10 * MINUTE))
    assert spans(frame) == [("running", at("23:00:30"), at("24:00"))]


def test_requests_add_up_over_containers_and_keep_the_original_name() -> None:
    extra = line(
        "kube_pod_container_resource_requests",
        {**BASE, "container": "sidecar", "resource": "cpu"},
        at("10:00"),
        at("11:00"),
        value=0.25,
    )
    row = workloads([*pod("u1", at("10:00"), at("11:00")), *extra]).row(0, named=True)
    assert (row["cpu_millicores"], row["memory_bytes"]) == (16250, 64 * 2**30)
    assert (row["gpus"], row["gpu_resource"]) == (8, "nvidia.com/gpu")


def test_a_request_that_changes_splits_the_life_there() -> None:
    samples = without(pod("u1", at("10:00"), at("11:00")), "kube_pod_container_resource_requests")
    labels = {**BASE, "container": "main", "resource": "cpu"}
    name = "kube_pod_container_resource_requests"
    steps = [
        *line(name, labels, at("10:00"), at("10:29"), value=2.0),
        *line(name, labels, at("10:30"), at("11:00"), value=4.0),
    ]
    frame = workloads([*samples, *steps])
    assert frame.select("start", "end", "cpu_millicores", "gpus").rows() == [
        (at("10:00"), at("10:30"), 2000, 0),
        (at("10:30"), at("11:00"), 4000, 0),
    ]


def test_a_lost_sample_of_a_request_is_no_change() -> None:
    samples = [
        sample
        for sample in pod("u1", at("10:00"), at("11:00"))
        if not (sample.name.endswith("requests") and sample.time == at("10:30"))
    ]
    assert workloads(samples).height == 1


def test_requests_that_were_not_read_are_unknown_not_zero() -> None:
    facts = collect(
        [
            *NODE,
            *without(pod("u1", at("10:00"), at("11:00")), "kube_pod_container_resource_requests"),
        ]
    )
    assert facts.tables["workloads"].select("gpus", "cpu_millicores").row(0) == (None, None)
    assert any(
        gap.reason == "no_series" and "resource_requests" in gap.detail for gap in facts.gaps
    )


@pytest.mark.parametrize(
    ("sanitised", "original"),
    [
        ("nvidia_com_mig_3g_40gb", "nvidia.com/mig-3g.40gb"),
        ("nvidia_com_mig_1c_3g_40gb_me", "nvidia.com/mig-1c.3g.40gb.me"),
        ("amd_com_gpu", "amd.com/gpu"),
        ("nvidia_com_gpu_shared", "nvidia.com/gpu.shared"),
    ],
)
def test_card_resources_get_their_name_back(sanitised: str, original: str) -> None:
    cards = line(
        "kube_pod_container_resource_requests",
        {**BASE, "container": "main", "resource": sanitised},
        at("10:00"),
        at("11:00"),
        value=2.0,
    )
    frame = workloads([*pod("u1", at("10:00"), at("11:00"), gpus=0), *cards])
    assert frame.select("gpus", "gpu_resource").rows() == [(2, original)]


def test_labels_are_kept_sanitised_and_a_change_splits_the_life() -> None:
    samples = without(pod("u1", at("10:00"), at("11:00")), "kube_pod_labels")
    frame = workloads(
        [
            *samples,
            *line("kube_pod_labels", {**BASE, "label_owner": "lin"}, at("10:00"), at("10:19")),
            *line("kube_pod_labels", {**BASE, "label_owner": "wei"}, at("10:20"), at("11:00")),
        ]
    )
    assert frame.select("start", "labels").rows() == [
        (at("10:00"), '{"label_owner":"lin"}'),
        (at("10:20"), '{"label_owner":"wei"}'),
    ]


@pytest.mark.parametrize(
    ("labels", "role"),
    [
        ({"label_ray_io_group": "rollout"}, "ray-group:rollout"),
        (
            {"label_ray_io_node_type": "head", "label_ray_io_group": "headgroup"},
            "ray-node-type:head",
        ),
        ({"label_jobset_sigs_k8s_io_replicatedjob_name": "trainer"}, "replicated-job:trainer"),
        ({"label_training_kubeflow_org_replica_type": "worker"}, "replica-type:worker"),
        ({"label_team": "x"}, None),
    ],
)
def test_the_role_comes_from_labels(labels: dict[str, str], role: str | None) -> None:
    assert workloads(pod("u1", at("10:00"), at("11:00"), labels=labels))["role"].to_list() == [role]


def owners(samples: list[Sample]) -> tuple[object, str | None, str | None]:
    row = workloads([*pod("u1", at("10:00"), at("11:00")), *samples]).row(0, named=True)
    return json.loads(row["owners"]), row["root_kind"], row["root_name"]


def owner(kind: str, name: str) -> list[Sample]:
    return line(
        "kube_pod_owner", {**BASE, "owner_kind": kind, "owner_name": name}, at("10:00"), at("11:00")
    )


def test_without_an_owner_series_the_creator_is_the_owner() -> None:
    assert owners([]) == ([{"kind": "RayCluster", "name": "grpo"}], "RayCluster", "grpo")


def test_the_chain_goes_on_above_a_job() -> None:
    above = line(
        "kube_job_owner",
        {
            **KSM,
            "namespace": "research",
            "job_name": "sft-0",
            "owner_kind": "JobSet",
            "owner_name": "sft",
        },
        at("10:00"),
        at("11:00"),
    )
    assert owners([*owner("Job", "sft-0"), *above]) == (
        [{"kind": "Job", "name": "sft-0"}, {"kind": "JobSet", "name": "sft"}],
        "JobSet",
        "sft",
    )


def test_the_chain_goes_on_above_a_replica_set_of_the_same_namespace_only() -> None:
    other = line(
        "kube_replicaset_owner",
        {
            **KSM,
            "namespace": "elsewhere",
            "replicaset": "judge-1",
            "owner_kind": "Deployment",
            "owner_name": "judge",
        },
        at("10:00"),
        at("11:00"),
    )
    assert owners([*owner("ReplicaSet", "judge-1"), *other]) == (
        [{"kind": "ReplicaSet", "name": "judge-1"}],
        "ReplicaSet",
        "judge-1",
    )


@pytest.mark.parametrize(("kind", "name"), [("<none>", "<none>"), ("Node", "gpu-0")])
def test_a_bare_pod_has_no_owner_nor_has_one_that_a_kubelet_runs(kind: str, name: str) -> None:
    samples = without(pod("u1", at("10:00"), at("11:00")), "kube_pod_info")
    info = line(
        "kube_pod_info",
        {**BASE, "node": "gpu-0", "created_by_kind": kind, "created_by_name": name},
        at("10:00"),
        at("11:00"),
    )
    row = workloads([*samples, *info]).row(0, named=True)
    assert (row["owners"], row["root_kind"], row["root_name"]) == ("[]", None, None)


def test_bind_and_finish_times_are_read_where_they_are_exported() -> None:
    extra = [
        *line(
            "kube_pod_status_scheduled_time",
            BASE,
            at("10:00"),
            at("11:00"),
            value=at("9:59:20").timestamp(),
        ),
        *line(
            "kube_pod_completion_time",
            BASE,
            at("11:00"),
            at("11:00"),
            value=at("11:00:20").timestamp(),
        ),
    ]
    row = workloads([*pod("u1", at("10:00"), at("11:00")), *extra]).row(0, named=True)
    assert (row["bound_at"], row["finished_at"]) == (at("9:59:20"), at("11:00:20"))


@pytest.mark.parametrize(
    ("last", "node_last", "finished"),
    [
        ("23:59", "24:10", "23:59"),  # the cluster outlived it
        ("23:59", "24:00", "23:59"),
        ("23:59", "23:59", None),  # nobody looked afterwards
        ("11:00", "11:00", None),
        ("11:00", "24:00", "11:00"),
        ("24:05", "24:10", None),  # it outlived the day
    ],
)
def test_a_pod_that_the_cluster_outlived_has_finished(
    last: str, node_last: str, finished: str | None
) -> None:
    samples = [*node("gpu-0", at("0:00"), at(node_last)), *pod("u1", at("10:00"), at(last))]
    row = collect(samples).tables["workloads"].row(0, named=True)
    assert row["finished_at"] == (at(finished) if finished else None)


def test_a_pod_that_was_last_seen_before_a_hole_may_live_on() -> None:
    nodes = [*node("gpu-0", at("0:00"), at("11:00")), *node("gpu-0", at("13:00"), at("24:00"))]
    frame = collect([*nodes, *pod("u1", at("10:00"), at("11:00"))]).tables["workloads"]
    assert frame["finished_at"].to_list() == [None]


def test_series_without_a_uid_are_joined_by_a_name_that_is_unique() -> None:
    def strip(sample: Sample) -> Sample:
        labels = json.loads(sample.labels)
        if sample.name != "kube_pod_info":
            labels.pop("uid", None)
        return sample._replace(labels=json.dumps(labels, sort_keys=True, separators=(",", ":")))

    samples = pod("u1", at("10:00"), at("11:00"), running=at("10:05"))
    assert workloads([strip(sample) for sample in samples]).equals(workloads(samples))


def test_a_pod_without_a_uid_is_put_aside() -> None:
    nameless = line("kube_pod_info", {**KSM, "namespace": "n", "pod": "p"}, at("1:00"), at("1:09"))
    facts = collect([*NODE, *pod("u1", at("10:00"), at("11:00")), *nameless])
    assert [(entry.reason, entry.count) for entry in facts.quarantine] == [("no_uid", 10)]
    assert facts.tables["workloads"].height == 1


def test_where_no_series_bears_a_uid_the_name_stands_for_it() -> None:
    def strip(sample: Sample) -> Sample:
        labels = json.loads(sample.labels)
        labels.pop("uid", None)
        return sample._replace(labels=json.dumps(labels, sort_keys=True, separators=(",", ":")))

    lives = [(at("12:00"), at("17:00")), (at("19:00"), at("22:00"))]
    samples = [one for life in lives for one in pod("u1", *life, name="again")]
    facts = collect([*NODE, *pod("u2", at("10:00"), at("11:00")), *map(strip, samples)])
    rows = facts.tables["workloads"].filter(pod="again").sort("start")
    assert rows.select("uid", "start", "end", "gpus").rows() == [
        ("research/again", *life, 8) for life in lives
    ]
    assert facts.quarantine == ()
    assert any("1 pods no uid" in note for note in facts.notes)


def test_a_pod_that_runs_on_no_node_is_put_aside_and_one_that_waits_is_not() -> None:
    running = pod("u1", at("10:00"), at("11:00"), on="")
    queued = pod("u2", at("10:00"), at("11:00"), on="", running=at("11:01"))
    facts = collect([*NODE, *running, *queued])
    assert [(entry.reason, entry.count) for entry in facts.quarantine] == [("no_node", 60)]
    assert facts.tables["workloads"].select("uid", "node", "state").rows() == [("u2", None, "held")]


def test_what_was_read_is_counted_in_samples_of_the_day() -> None:
    good = node("gpu-0", at("10:00"), at("10:09"))
    before = node("gpu-0", at("0:00") - 5 * MINUTE, at("0:00") - MINUTE)
    nameless = line("kube_pod_info", {**KSM, "namespace": "n", "pod": "p"}, at("1:00"), at("1:09"))
    other = line("kube_node_info", {**KSM, "node": "x", "cluster": "b"}, at("1:00"), at("1:09"))
    ours = [
        one._replace(labels=one.labels.replace("{", '{"cluster":"train-a",', 1)) for one in good
    ]
    assert collect([*good, *before, *nameless]).read == len(good) + len(nameless)
    assert collect([*ours, *other], cluster_label="cluster").read == len(ours)
