"""Owners, roles and identity of the workloads that post-training clusters run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ledger.facts import Facts
from tests.collector.kubernetes.builders import (
    Json,
    collect,
    container,
    ended,
    node,
    pod,
    row,
    running,
    thing,
)

RAY_JOB = thing(
    "ray.io/v1",
    "RayJob",
    "grpo-7b",
    labels={"experiment": "grpo-7b", "owner": "lin"},
    spec={"shutdownAfterJobFinishes": False, "entrypoint": "python train.py"},
    status={
        "jobStatus": "RUNNING",
        "jobDeploymentStatus": "Running",
        "jobId": "grpo-7b-x1",
        "startTime": "2026-11-30T08:05:00Z",
    },
)
RAY_CLUSTER = thing(
    "ray.io/v1",
    "RayCluster",
    "grpo-7b-raycluster-q8zkp",
    owners=[RAY_JOB],
    labels={"owner": "wang"},
)
SUBMITTER = thing("batch/v1", "Job", "grpo-7b-submit", owners=[RAY_JOB])
PYTORCH = thing("kubeflow.org/v1", "PyTorchJob", "sft-1", labels={"experiment": "sft"})
TRAIN_JOB = thing("trainer.kubeflow.org/v1alpha1", "TrainJob", "opd", labels={"project": "distil"})
JOB_SET = thing("jobset.x-k8s.io/v1alpha2", "JobSet", "opd", owners=[TRAIN_JOB])
JOB_SET_JOB = thing("batch/v1", "Job", "opd-node-0", owners=[JOB_SET])
DEPLOYMENT = thing("apps/v1", "Deployment", "judge", labels={"team": "eval"})
REPLICA_SET = thing("apps/v1", "ReplicaSet", "judge-6c9f", owners=[DEPLOYMENT])
OWNERS = [
    RAY_JOB,
    RAY_CLUSTER,
    SUBMITTER,
    PYTORCH,
    TRAIN_JOB,
    JOB_SET,
    JOB_SET_JOB,
    DEPLOYMENT,
    REPLICA_SET,
]


def ray(name: str, group: str, node_type: str, gpus: int = 8) -> Json:
    return pod(
        name,
        running("08:30"),
        owners=[RAY_CLUSTER],
        containers=[container(gpus=gpus)],
        labels={
            "ray.io/cluster": "grpo-7b-raycluster-q8zkp",
            "ray.io/group": group,
            "ray.io/node-type": node_type,
            "ray.io/originated-from-cr-name": "grpo-7b",
            "ray.io/originated-from-crd": "RayJob",
        },
    )


PODS = [
    ray("head", "headgroup", "head", 0),
    ray("rollout-0", "rollout", "worker"),
    ray("trainer-0", "trainer", "worker"),
    pod("submit", running("08:20"), owners=[SUBMITTER], labels={"job-name": "grpo-7b-submit"}),
    pod(
        "sft-1-worker-0",
        running("08:30"),
        owners=[PYTORCH],
        labels={
            "training.kubeflow.org/replica-type": "Worker",
            "training.kubeflow.org/job-name": "sft-1",
        },
    ),
    pod(
        "opd-node-0-0",
        running("08:30"),
        owners=[JOB_SET_JOB],
        labels={
            "jobset.sigs.k8s.io/jobset-name": "opd",
            "jobset.sigs.k8s.io/replicatedjob-name": "node",
            "batch.kubernetes.io/job-name": "opd-node-0",
            "trainer.kubeflow.org/trainjob-ancestor-step": "trainer",
        },
    ),
    pod("judge-6c9f-abc", running("08:30"), owners=[REPLICA_SET]),
    pod("bare", running("08:30")),
]


def facts_of(folder: Path, *items: Json, **source: Any) -> Facts:  # noqa: ANN401
    path = folder / "objects.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [node(), *items]}))
    return collect(dump=str(path), **source)


def chain(found: Json) -> list[str]:
    return [f"{link['kind']}/{link['name']}" for link in json.loads(found["owners"])]


CHAINS = {
    "head": (["RayCluster/grpo-7b-raycluster-q8zkp", "RayJob/grpo-7b"], "ray-node-type:head"),
    "rollout-0": (["RayCluster/grpo-7b-raycluster-q8zkp", "RayJob/grpo-7b"], "ray-group:rollout"),
    "trainer-0": (["RayCluster/grpo-7b-raycluster-q8zkp", "RayJob/grpo-7b"], "ray-group:trainer"),
    "submit": (["Job/grpo-7b-submit", "RayJob/grpo-7b"], "ray-node-type:submitter"),
    "sft-1-worker-0": (["PyTorchJob/sft-1"], "replica-type:worker"),
    "opd-node-0-0": (["Job/opd-node-0", "JobSet/opd", "TrainJob/opd"], "replicated-job:node"),
    "judge-6c9f-abc": (["ReplicaSet/judge-6c9f", "Deployment/judge"], None),
    "bare": ([], None),
}


@pytest.mark.parametrize("name", CHAINS)
def test_owners_and_role(tmp_path: Path, name: str) -> None:
    found = row(facts_of(tmp_path, *OWNERS, *PODS), name)
    expected, role = CHAINS[name]
    assert (chain(found), found["role"]) == (expected, role)
    root = expected[-1].split("/") if expected else [None, None]
    assert [found["root_kind"], found["root_name"]] == root


def test_labels_of_the_nearest_owner_win(tmp_path: Path) -> None:
    found = row(facts_of(tmp_path, *OWNERS, *PODS), "rollout-0")
    assert json.loads(found["owner_labels"]) == {"experiment": "grpo-7b", "owner": "wang"}
    assert json.loads(found["labels"])["ray.io/group"] == "rollout"
    assert (found["gpus"], found["gpu_resource"]) == (8, "nvidia.com/gpu")


@pytest.mark.parametrize("name", ["rollout-0", "opd-node-0-0"])
def test_labels_continue_a_chain_whose_owner_cannot_be_read(tmp_path: Path, name: str) -> None:
    assert chain(row(facts_of(tmp_path, *PODS), name)) == CHAINS[name][0]


def test_without_labels_a_missing_owner_is_still_the_last_known_one(tmp_path: Path) -> None:
    found = row(facts_of(tmp_path, *PODS), "judge-6c9f-abc")
    assert chain(found) == ["ReplicaSet/judge-6c9f"]
    assert (found["root_kind"], found["root_name"]) == ("ReplicaSet", "judge-6c9f")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (
            {"ray.io/cluster": "c", "ray.io/originated-from-cr-name": "j"},
            ["RayCluster/c", "RayJob/j"],
        ),
        (
            {
                "training.kubeflow.org/job-name": "t",
                "training.kubeflow.org/operator-name": "pytorchjob-controller",
            },
            ["PyTorchJob/t"],
        ),
        ({"volcano.sh/job-name": "v"}, ["Job/v"]),
        ({"leaderworkerset.sigs.k8s.io/name": "l"}, ["LeaderWorkerSet/l"]),
        ({"batch.kubernetes.io/job-name": "b"}, ["Job/b"]),
        ({"kueue.x-k8s.io/pod-group-name": "g"}, ["Workload/g"]),
        ({"jobset.sigs.k8s.io/jobset-name": "s"}, ["JobSet/s"]),
        ({"kueue.x-k8s.io/queue-name": "q"}, []),
    ],
)
def test_labels_stand_in_for_owner_references(
    tmp_path: Path,
    labels: dict[str, str],
    expected: list[str],
) -> None:
    assert (
        chain(row(facts_of(tmp_path, pod("a", running("08:30"), labels=labels)), "a")) == expected
    )


def test_a_label_does_not_name_an_owner_younger_than_the_pod(tmp_path: Path) -> None:
    younger = thing("batch/v1", "Job", "b", created="09:00", labels={"experiment": "other"})
    made = pod("a", running("08:30"), labels={"job-name": "b"})
    assert row(facts_of(tmp_path, younger, made), "a")["owner_labels"] == "{}"


def test_owners_in_a_circle_end(tmp_path: Path) -> None:
    one, two = thing("batch/v1", "Job", "one"), thing("batch/v1", "Job", "two")
    one = thing("batch/v1", "Job", "one", owners=[two])
    two = thing("batch/v1", "Job", "two", owners=[one])
    found = row(facts_of(tmp_path, one, two, pod("a", running("08:30"), owners=[one])), "a")
    assert chain(found) == ["Job/one", "Job/two"]


def test_a_name_used_again_is_another_pod(tmp_path: Path) -> None:
    first = pod("eval-0", ended("08:30", "09:00"), phase="Succeeded", uid="u1")
    second = pod(
        "eval-0",
        ended("12:30", "14:00"),
        phase="Succeeded",
        uid="u2",
        bound="12:00",
        created="12:00",
    )
    rows = (
        facts_of(tmp_path, first, second).tables["workloads"].filter(pl.col("state") == "running")
    )
    assert rows.select("uid", (pl.col("end") - pl.col("start")).dt.total_minutes()).rows() == [
        ("u1", 30),
        ("u2", 90),
    ]


def test_the_newest_of_two_sightings_is_kept(tmp_path: Path) -> None:
    old = pod("a", running("08:30"), resourceVersion="9")
    new = pod("a", ended("08:30", "09:00"), phase="Succeeded", resourceVersion="11")
    for order in ([old, new], [new, old]):
        facts = facts_of(tmp_path, *order)
        assert facts.tables["workloads"].height == 2
        assert row(facts, "a")["finished_at"] is not None


def test_annotations_and_variables_are_allow_listed(tmp_path: Path) -> None:
    made = pod(
        "a",
        running("08:30"),
        annotations={
            "team.example/owner": "lin",
            "experiment": "e",
            "corp.example/ticket": "T-1",
            "kubectl.kubernetes.io/last-applied-configuration": "{secret}",
            "gpu-fraction": "0.5",
        },
        containers=[
            container(
                env=[
                    {"name": "WANDB_RUN_GROUP", "value": "g"},
                    {"name": "WANDB_API_KEY", "value": "secret"},
                    {
                        "name": "WANDB_PROJECT",
                        "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}},
                    },
                ]
            ),
            container("second", env=[{"name": "WANDB_RUN_GROUP", "value": "other"}]),
        ],
    )
    every = row(facts_of(tmp_path, made, annotations=("*",)), "a")
    assert "secret" not in json.dumps(every, default=str)
    found = row(facts_of(tmp_path, made, annotations=("corp.example/*",)), "a")
    assert json.loads(found["annotations"]) == {
        "team.example/owner": "lin",
        "experiment": "e",
        "corp.example/ticket": "T-1",
        "gpu-fraction": "0.5",
    }
    assert json.loads(found["environment"]) == {"WANDB_RUN_GROUP": "g"}
    assert "secret" not in json.dumps(found, default=str)


def test_status_of_jobs_and_labels_of_namespaces_are_kept(tmp_path: Path) -> None:
    namespace = thing("v1", "Namespace", "train", namespace=None, labels={"team": "rl"})
    pool = thing(
        "karpenter.sh/v1",
        "NodePool",
        "gpu",
        namespace=None,
        spec={
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"},
            "template": {"spec": {"requirements": []}},
        },
    )
    facts = facts_of(tmp_path, *OWNERS, *PODS, namespace, pool)
    found = {
        found["kind"]: json.loads(found["configuration"])
        for found in facts.tables["resources"].iter_rows(named=True)
    }
    assert found["RayJob"] == {
        "shutdownAfterJobFinishes": False,
        "jobStatus": "RUNNING",
        "jobDeploymentStatus": "Running",
        "jobId": "grpo-7b-x1",
        "owner": None,
        "state": "running",
        "submittedAt": "2026-11-30T07:59:00Z",
        "startedAt": "2026-11-30T08:05:00Z",
    }
    assert found["NodePool"] == {
        "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}
    }
    assert found["Namespace"] == {"labels": {"team": "rl"}}


def test_the_same_objects_in_any_order_give_the_same_frames(tmp_path: Path) -> None:
    one = facts_of(tmp_path, *OWNERS, *PODS)
    two = facts_of(tmp_path, *reversed(PODS), *reversed(OWNERS))
    assert all(frame.equals(two.tables[name]) for name, frame in one.tables.items())
