"""Kubeflow Trainer 2, training-operator 1 and mpi-operator, JobSet, LeaderWorkerSet."""

from __future__ import annotations

from tests.worlds.model import Json, Truth, World, suffix

_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"


def trainer() -> World:
    """A TrainJob: it owns a JobSet of its name, whose Jobs bear the step; pods do not."""
    world, name = World("kubeflow-trainer"), "sft-8b"
    root = world.thing("trainer.kubeflow.org/v1alpha1", "TrainJob", name, labels={"owner": "lin"})
    jobs = world.thing("jobset.x-k8s.io/v1alpha2", "JobSet", name, root)
    for step, group, phase, pods in (
        ("dataset-initializer", "dataset-initializer", "data", 1),
        ("model-initializer", "model-initializer", "unknown", 1),
        ("trainer", "node", "update", 3),
    ):
        truth = Truth(
            name,
            "lin",
            f"replicated-job:{group}",
            phase,
            f"TrainJob/{name}",
            frozenset({"owner", "root"}),
        )
        _replicated(world, jobs, group, truth, pods=pods, step=step)
    return world


def job_set() -> World:
    """A JobSet with a part for each role; every Job of it has one pod."""
    world, name = World("jobset"), "ppo-13b"
    jobs = world.thing("jobset.x-k8s.io/v1alpha2", "JobSet", name)
    for group, phase, count in (
        ("trainer", "update", 2),
        ("rollout", "rollout", 2),
        ("reward", "reward", 1),
    ):
        truth = Truth(name, "mei", f"replicated-job:{group}", phase, f"JobSet/{name}")
        for index in range(count):
            _replicated(world, jobs, group, truth, index=index, more={"owner": "mei"})
    return world


def _replicated(
    world: World,
    jobs: Json,
    group: str,
    truth: Truth,
    *,
    index: int = 0,
    pods: int = 1,
    step: str | None = None,
    more: dict[str, str] | None = None,
) -> None:
    name = jobs["metadata"]["name"]
    labels = {
        "jobset.sigs.k8s.io/jobset-name": name,
        "jobset.sigs.k8s.io/jobset-uid": jobs["metadata"]["uid"],
        "jobset.sigs.k8s.io/replicatedjob-name": group,
        "jobset.sigs.k8s.io/replicatedjob-replicas": "1",
        "jobset.sigs.k8s.io/job-index": str(index),
        "jobset.sigs.k8s.io/job-global-index": str(index),
        "jobset.sigs.k8s.io/job-key": suffix(f"{name}{group}{index}", 12),
        "jobset.sigs.k8s.io/restart-attempt": "0",
    }
    job_name = f"{name}-{group}-{index}"
    job = world.job(job_name, jobs, labels={**labels, **({_STEP: step} if step else {})})
    for number in range(pods):
        world.pod(
            f"{job_name}-{number}-{suffix(f'{job_name}{number}')}",
            truth,
            job,
            labels=world.job_labels(
                job,
                **{"batch.kubernetes.io/job-completion-index": str(number), **labels},
                **(more or {}),
            ),
            annotations={"batch.kubernetes.io/job-completion-index": str(number)},
        )


def training_operator() -> World:
    """One job of each kind of training-operator 1.9."""
    world = World("training-operator")
    for kind, name, replicas in (
        ("PyTorchJob", "dpo-7b", (("master", 1, "update"), ("worker", 2, "update"))),
        (
            "TFJob",
            "rm-tf",
            (("chief", 1, "update"), ("ps", 1, "update"), ("worker", 1, "update")),
        ),
        ("XGBoostJob", "rank-xgb", (("master", 1, "update"), ("worker", 1, "update"))),
        ("PaddleJob", "ernie-pd", (("worker", 2, "update"),)),
        ("JAXJob", "gemma-jax", (("worker", 2, "update"),)),
        ("MPIJob", "moe-mpi", (("launcher", 1, "unknown"), ("worker", 2, "update"))),
    ):
        root = world.thing("kubeflow.org/v1", kind, name)
        for replica, count, phase in replicas:
            truth = Truth(name, "rui", f"replica-type:{replica}", phase, f"{kind}/{name}")
            for index in range(count):
                labels = {
                    "training.kubeflow.org/job-name": name,
                    "training.kubeflow.org/operator-name": f"{kind.lower()}-controller",
                    "training.kubeflow.org/replica-type": replica,
                    "training.kubeflow.org/replica-index": str(index),
                    "owner": "rui",
                }
                if replica in {"master", "chief", "launcher"}:
                    labels["training.kubeflow.org/job-role"] = "master"
                world.pod(f"{name}-{replica}-{index}", truth, root, labels=labels)
    return world


def mpi_operator() -> World:
    """An MPIJob of mpi-operator 0.6 (v2beta1): roles, no replica types; a Job is the launcher."""
    world, name = World("mpi-operator"), "nemo-mpi"
    root = world.thing("kubeflow.org/v2beta1", "MPIJob", name)

    def labels(role: str, **more: str) -> dict[str, str]:
        return {
            "training.kubeflow.org/job-name": name,
            "training.kubeflow.org/job-role": role,
            "training.kubeflow.org/operator-name": "mpi-operator",
            "owner": "rui",
            **more,
        }

    def truth(role: str, phase: str) -> Truth:
        return Truth(name, "rui", f"replica-type:{role}", phase, f"MPIJob/{name}")

    launcher = world.job(f"{name}-launcher", root)
    world.pod(
        f"{name}-launcher-{suffix(name)}",
        truth("launcher", "unknown"),
        launcher,
        labels=world.job_labels(launcher, **labels("launcher")),
        gpus=None,
    )
    for index in range(2):
        more = {"training.kubeflow.org/replica-index": str(index)}
        world.pod(
            f"{name}-worker-{index}",
            truth("worker", "update"),
            root,
            labels=labels("worker", **more),
        )
    return world


def leader_worker_set() -> World:
    """LeaderWorkerSet 0.7: the workers' StatefulSet is owned by the leader's pod."""
    world, name = World("leaderworkerset"), "vllm-rollout"
    root = world.thing("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", name)
    sets = world.thing("apps/v1", "StatefulSet", name, root)
    for group in range(2):
        labels = {
            "leaderworkerset.sigs.k8s.io/name": name,
            "leaderworkerset.sigs.k8s.io/group-index": str(group),
            "leaderworkerset.sigs.k8s.io/group-key": suffix(f"{name}{group}", 40),
            "leaderworkerset.sigs.k8s.io/template-revision-hash": suffix(name, 10),
            "owner": "mei",
        }
        leader = world.pod(
            f"{name}-{group}",
            Truth(name, "mei", "lws:leader", "rollout", f"LeaderWorkerSet/{name}"),
            sets,
            labels={
                **labels,
                "leaderworkerset.sigs.k8s.io/worker-index": "0",
                "apps.kubernetes.io/pod-index": str(group),
                "statefulset.kubernetes.io/pod-name": f"{name}-{group}",
            },
            annotations={"leaderworkerset.sigs.k8s.io/size": "2"},
        )
        workers = world.thing("apps/v1", "StatefulSet", f"{name}-{group}", leader)
        world.pod(
            f"{name}-{group}-1",
            Truth(name, "mei", "lws:worker", "rollout", f"LeaderWorkerSet/{name}"),
            workers,
            labels={
                **labels,
                "leaderworkerset.sigs.k8s.io/worker-index": "1",
                "apps.kubernetes.io/pod-index": "1",
                "statefulset.kubernetes.io/pod-name": f"{name}-{group}-1",
            },
            annotations={"leaderworkerset.sigs.k8s.io/leader-name": f"{name}-{group}"},
        )
    return world
