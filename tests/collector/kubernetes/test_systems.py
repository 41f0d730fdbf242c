"""Training systems through the API: whose pod it is, and what its role is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.systems import KEYS, SYSTEMS, Key, Link, Pod, continued, role, system
from ledger.settings import Identity
from tests.collector.kubernetes.apiserver import ApiServer, by_list
from tests.collector.kubernetes.builders import (
    NOW,
    Json,
    collect,
    container,
    node,
    pod,
    row,
    running,
    thing,
)
from tests.effort import examples


def made(*owners: Json, gpus: int | None = 8, **meta: Any) -> Json:  # noqa: ANN401
    return pod("main", running("08:30"), owners=owners, containers=[container(gpus=gpus)], **meta)


def read(*items: Json) -> Json:
    """The row of the pod ``main``, owners as ``Kind/name`` texts."""
    with ApiServer(by_list([node(), *items]), now=NOW) as server:
        facts = collect(server=server.url)
    assert [gap.detail for gap in facts.gaps] == []
    return row(facts, "main")


def chain(found: Json) -> list[str]:
    return [f"{link['kind']}/{link['name']}" for link in json.loads(found["owners"])]


def test_a_worker_of_a_leader_worker_set_is_owned_through_its_leader() -> None:
    top = thing("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "vllm", labels={"owner": "mei"})
    leaders = thing("apps/v1", "StatefulSet", "vllm", owners=[top])
    leader = pod("vllm-0", running("08:30"), owners=[leaders])
    workers = thing("apps/v1", "StatefulSet", "vllm-0", owners=[leader])
    labels = {
        "leaderworkerset.sigs.k8s.io/name": "vllm",
        "leaderworkerset.sigs.k8s.io/worker-index": "1",
    }
    found = read(top, leaders, leader, workers, made(workers, labels=labels))
    assert chain(found)[-1] == "LeaderWorkerSet/vllm"
    assert chain(found)[:2] == ["StatefulSet/vllm-0", "Pod/vllm-0"]
    assert found["role"] == "lws:worker"
    assert json.loads(found["owner_labels"]) == {"owner": "mei"}


def test_a_launcher_s_job_stands_between_it_and_its_mpi_job() -> None:
    top = thing("kubeflow.org/v2beta1", "MPIJob", "moe")
    job = thing("batch/v1", "Job", "moe-launcher", owners=[top])
    labels = {
        "training.kubeflow.org/job-name": "moe",
        "training.kubeflow.org/job-role": "launcher",
        "training.kubeflow.org/operator-name": "mpi-operator",
        "batch.kubernetes.io/job-name": "moe-launcher",
    }
    for items in ((top, job), (job,), ()):  # gone objects, too
        found = read(*items, made(job, labels=labels))
        assert chain(found) == ["Job/moe-launcher", "MPIJob/moe"]
        assert found["role"] == "replica-type:launcher"


@pytest.mark.parametrize(
    ("labels", "annotations", "expected", "told"),
    [
        (
            {"parent": "skypilot", "skypilot-cluster": "sft-1a2b", "ray-node-type": "head"},
            {"skypilot-cluster-name": "sft"},
            ["SkyPilotCluster/sft"],
            "sky-node-type:head",
        ),
        ({"skypilot-cluster": "sft-1a2b"}, {}, ["SkyPilotCluster/sft-1a2b"], None),
        (
            {"app.kubernetes.io/managed-by": "dstack", "k8s.dstack.ai/name": "dpo"},
            {},
            ["DstackRun/dpo"],
            None,
        ),
        (
            {"determined.ai/task_id": "5.7", "determined.ai/task_type": "TRIAL"},
            {},
            ["DeterminedTask/5.7"],
            "task-type:trial",
        ),
        ({"kueue.x-k8s.io/pod-group-name": "g"}, {}, ["Workload/g"], None),
        (
            {"kueue.x-k8s.io/pod-group-name": "g", "kueue.x-k8s.io/podset": "0a1b2c3d"},
            {},
            ["Workload/g"],
            None,
        ),
        (
            {"kai.scheduler/subgroup-name": "w"},
            {"pod-group-name": "g"},
            ["PodGroup/g"],
            "subgroup:w",
        ),
        ({"kai.scheduler/queue": "q"}, {"pod-group-name": "pg-main-1234"}, [], None),
        ({}, {"scheduling.k8s.io/group-name": "podgroup-1234"}, [], None),
        ({}, {"scheduling.k8s.io/group-name": "gang"}, ["PodGroup/gang"], None),
        (
            {"workflows.argoproj.io/workflow": "w"},
            {"workflows.argoproj.io/node-name": "w[0].train(0:lr:0.5)"},
            ["Workflow/w"],
            "step:train",
        ),
        (
            {"workflows.argoproj.io/workflow": "w"},
            {"workflows.argoproj.io/node-name": "w"},
            ["Workflow/w"],
            None,
        ),
        (
            {"nodeset.slinky.slurm.net/pod-name": "n-0", "app.kubernetes.io/name": "slurmd"},
            {},
            [],
            "slurm:node",
        ),
        (
            {"execution-id": "f1", "workflow-name": "w", "task-name": "train"},
            {},
            ["FlyteWorkflow/f1"],
            "step:train",
        ),
        ({"task-name": "train"}, {}, [], None),
        (
            {"spark-role": "driver", "sparkoperator.k8s.io/app-name": "a"},
            {},
            ["SparkApplication/a"],
            "spark-role:driver",
        ),
        (
            {"volcano.sh/job-name": "v", "volcano.sh/task-spec": "rollout"},
            {},
            ["Job/v"],
            "task-spec:rollout",
        ),
        (
            {
                "trainer.kubeflow.org/trainjob-ancestor-step": "trainer",
                "jobset.sigs.k8s.io/jobset-name": "t",
            },
            {},
            ["JobSet/t", "TrainJob/t"],
            "trainjob-ancestor-step:trainer",
        ),
        (
            {"ray.io/originated-from-cr-name": "j", "ray.io/originated-from-crd": "RayJob"},
            {},
            ["RayJob/j"],
            "ray-node-type:submitter",
        ),
        (
            {
                "ray.io/cluster": "c",
                "ray.io/originated-from-cr-name": "s",
                "ray.io/originated-from-crd": "RayService",
            },
            {},
            ["RayCluster/c", "RayService/s"],
            None,
        ),
        ({"app": "x"}, {}, [], None),
    ],
)
def test_marks_alone_name_job_and_role_in_either_spelling(
    labels: dict[str, str], annotations: dict[str, str], expected: list[str], told: str | None
) -> None:
    marks = Pod(labels, annotations)
    sanitised = Pod(
        {Key(name).sanitised: value for name, value in labels.items()},
        {Key(name, annotation=True).sanitised: value for name, value in annotations.items()},
    )
    for one in (marks, sanitised):
        links = continued([], one, whole=False)
        assert [f"{link.kind}/{link.name}" for link in links] == expected
        assert role(links, one) == told
    found = read(made(labels=labels, annotations=annotations))
    assert (chain(found), found["role"]) == (expected, told)
    assert found["root_name"] == (expected[-1].partition("/")[2] if expected else None)


def test_what_is_no_object_stands_above_all_that_are() -> None:
    job = thing("batch/v1", "Job", "exp-5-trial-7")
    found = read(
        job,
        made(
            job,
            labels={"determined.ai/task_type": "TRIAL", "determined.ai/task_id": "5.7"},
            annotations={"determined.ai/job-name": "lr-sweep"},
        ),
    )
    assert chain(found) == ["Job/exp-5-trial-7", "DeterminedTask/lr-sweep"]
    step = thing("batch/v1", "Job", "t-1")
    marks = {"metaflow/flow_name": "Sft", "metaflow/step_name": "train", "metaflow/user": "lin"}
    found = read(step, made(step, annotations=marks))
    assert chain(found) == ["Job/t-1", "MetaflowFlow/Sft"]
    assert found["role"] == "step:train"
    assert json.loads(found["annotations"])["metaflow/user"] == "lin"


def test_a_chain_that_is_whole_is_not_continued() -> None:
    """A PyTorchJob of an Argo Workflow: the owners are right, whatever labels say besides."""
    workflow = thing("argoproj.io/v1alpha1", "Workflow", "sweep")
    job = thing("kubeflow.org/v1", "PyTorchJob", "sft", owners=[workflow])
    labels = {
        "training.kubeflow.org/job-name": "sft",
        "training.kubeflow.org/replica-type": "Worker",
        "kueue.x-k8s.io/pod-group-name": "g",
    }
    found = read(workflow, job, made(job, labels=labels))
    assert chain(found) == ["PyTorchJob/sft", "Workflow/sweep"]
    assert found["role"] == "replica-type:worker"


def test_an_object_that_a_label_names_tells_its_own_owners() -> None:
    """The RayCluster is gone, the RayJob is there, and something owns it."""
    top = thing("argoproj.io/v1alpha1", "Workflow", "nightly", labels={"team": "rl"})
    job = thing("ray.io/v1", "RayJob", "grpo", owners=[top], labels={"experiment": "grpo"})
    gone = thing("ray.io/v1", "RayCluster", "grpo-x1")
    labels = {
        "ray.io/cluster": "grpo-x1",
        "ray.io/group": "rollout",
        "ray.io/originated-from-cr-name": "grpo",
        "ray.io/originated-from-crd": "RayJob",
    }
    found = read(top, job, made(gone, labels=labels))
    assert chain(found) == ["RayCluster/grpo-x1", "RayJob/grpo", "Workflow/nightly"]
    assert json.loads(found["owner_labels"]) == {"experiment": "grpo", "team": "rl"}


def test_the_template_hash_names_the_deployment_of_a_replica_set_that_is_gone() -> None:
    gone = thing("apps/v1", "ReplicaSet", "judge-6c9f")
    found = read(made(gone, labels={"pod-template-hash": "6c9f"}))
    assert chain(found) == ["ReplicaSet/judge-6c9f", "Deployment/judge"]
    found = read(made(gone, labels={"pod-template-hash": "other"}))
    assert chain(found) == ["ReplicaSet/judge-6c9f"]


def test_jobs_of_kubernetes_and_of_volcano_are_told_apart() -> None:
    batch = thing("batch/v1", "Job", "sft", uid="u-1", labels={"experiment": "batch"})
    volcano = thing(
        "batch.volcano.sh/v1alpha1", "Job", "sft", uid="u-2", labels={"experiment": "v"}
    )
    found = read(batch, volcano, made(labels={"volcano.sh/job-name": "sft"}))
    assert json.loads(found["owner_labels"]) == {"experiment": "v"}
    found = read(batch, volcano, made(labels={"job-name": "sft"}))
    assert json.loads(found["owner_labels"]) == {"experiment": "batch"}


def test_cron_jobs_and_daemon_sets_are_roots() -> None:
    cron = thing("batch/v1", "CronJob", "nightly-eval")
    job = thing("batch/v1", "Job", "nightly-eval-29412345", owners=[cron])
    assert chain(read(cron, job, made(job)))[-1] == "CronJob/nightly-eval"
    agent = thing("apps/v1", "DaemonSet", "exporter")
    assert chain(read(agent, made(agent))) == ["DaemonSet/exporter"]


def test_a_node_is_no_owner_of_the_pods_that_its_kubelet_runs_from_files() -> None:
    static = made({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-1", "uid": "n"}})
    found = read(static)
    assert (chain(found), found["root_name"]) == ([], None)


def test_keys_that_collide_once_sanitised_say_nothing() -> None:
    marks = Pod(
        {"label_ray_io_group_conflict1": "rollout", "label_ray_io_group_conflict2": "trainer"}, {}
    )
    assert role([], marks) is None
    marks = Pod({"label_ray_io_group_conflict1": "a", "label_ray_io_node_type": "head"}, {})
    assert role([], marks) == "ray-node-type:head"


def test_a_system_is_told_by_marks_or_owners() -> None:
    def name(found: Any) -> str | None:  # noqa: ANN401
        return found.name if found else None

    bare = Pod({}, {})
    assert name(system([Link("RunaiJob", "a", "run.ai")], bare)) == "Run:ai"
    assert name(system([Link("Job", "a", "batch")], bare)) == "Jobs and CronJobs"
    assert name(system([Link("Job", "a", "batch.volcano.sh")], bare)) == "Volcano"
    assert name(system([Link("NodeSet", "a")], bare)) == "Slinky"
    assert name(system([Link("FineTune", "a", "acme.example")], bare)) is None
    assert name(system([], Pod({"skypilot-user": "a", "parent": "SkyPilot"}, {}))) == "SkyPilot"


def test_the_defaults_know_every_system_s_word_for_who_a_pod_belongs_to() -> None:
    rules = Identity().owner
    told = {
        f"{'annotation' if key.annotation else 'label'}:{key.name}"
        for one in SYSTEMS
        for key in one.user
    }
    assert told <= set(rules)


VALUES = st.sampled_from(
    [
        "",
        "head",
        "RayJob",
        "skypilot",
        "kubeflow.org",
        "main",
        "pg-a-1",
        "w.train(0)",
        "0",
        "g",
        "ä",
    ]
)
MARKS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=8)
CHAINS = st.lists(
    st.builds(Link, st.sampled_from(["Job", "ReplicaSet", "StatefulSet", "RayJob"]), VALUES),
    max_size=2,
)


@settings(max_examples=examples(150))
@given(MARKS, CHAINS, st.booleans())
def test_nothing_is_invented_and_both_spellings_say_the_same(
    marks: dict[Key, str], above: list[Link], whole: bool
) -> None:
    told = [
        Pod(
            {key.spellings[form]: text for key, text in marks.items() if not key.annotation},
            {key.spellings[form]: text for key, text in marks.items() if key.annotation},
        )
        for form in (0, 1)
    ]
    found = [continued(above, one, whole=whole) for one in told]
    assert found[0] == found[1]
    assert role(above, told[0]) == role(above, told[1])
    assert {link.name for link in found[0]} <= set(marks.values()) - {""}
    assert Link("PodGroup", "pg-a-1") not in found[0]
    whole_chain = [*above, *found[0]]
    assert continued(whole_chain, told[0], whole=True) == []


def test_every_key_of_the_table_has_a_spelling_of_its_own() -> None:
    for annotation in (False, True):
        keys = [key for key in KEYS if key.annotation is annotation]
        assert len({key.sanitised for key in keys}) == len(keys)
