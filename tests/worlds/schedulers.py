"""Volcano, Kueue, KAI and Run:ai."""

from __future__ import annotations

from tests.worlds.model import Truth, World, suffix


def volcano() -> World:
    """A Volcano Job with a task for each role; its kind is called Job as well."""
    world, name = World("volcano"), "kto-14b"
    root = world.thing("batch.volcano.sh/v1alpha1", "Job", name)
    for task, count, phase in (("trainer", 2, "update"), ("rollout", 2, "rollout")):
        truth = Truth(name, "mei", f"task-spec:{task}", phase, f"Job/{name}")
        for index in range(count):
            world.pod(
                f"{name}-{task}-{index}",
                truth,
                root,
                labels={
                    "volcano.sh/job-name": name,
                    "volcano.sh/job-namespace": world.namespace,
                    "volcano.sh/queue-name": "research",
                    "volcano.sh/task-spec": task,
                    "volcano.sh/task-index": str(index),
                    "volcano.sh/job-retry-count": "0",
                    "owner": "mei",
                },
                annotations={
                    "scheduling.k8s.io/group-name": f"{name}-{root['metadata']['uid']}",
                    "volcano.sh/job-name": name,
                    "volcano.sh/task-spec": task,
                },
            )
    return world


def kueue() -> World:
    """A queued Job with its Workload beside it, and a group of plain pods."""
    world, name = World("kueue"), "embed-corpus"
    job = world.job(name, labels={"kueue.x-k8s.io/queue-name": "team-a"})
    world.thing("kueue.x-k8s.io/v1beta2", "Workload", f"job-{name}-{suffix(name)}", job)
    for index in range(2):
        world.pod(
            f"{name}-{index}-{suffix(f'{name}{index}')}",
            Truth(name, "rui", root=f"Job/{name}"),
            job,
            labels=world.job_labels(job, owner="rui", **{"kueue.x-k8s.io/podset": "main"}),
            annotations={"kueue.x-k8s.io/workload": f"job-{name}-{suffix(name)}"},
        )
    group = "sft-group"
    members = [
        world.pod(
            f"{group}-{part}",
            Truth(group, "rui", root=f"Workload/{group}"),
            labels={
                "kueue.x-k8s.io/managed": "true",
                "kueue.x-k8s.io/pod-group-name": group,
                "kueue.x-k8s.io/queue-name": "team-a",
                "owner": "rui",
            },
            annotations={
                "kueue.x-k8s.io/pod-group-total-count": "2",
                "kueue.x-k8s.io/role-hash": suffix(f"{group}{part}", 8),
            },
        )
        for part in ("leader", "worker")
    ]
    workload = world.thing("kueue.x-k8s.io/v1beta2", "Workload", group)
    workload["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": pod["metadata"]["name"],
            "uid": pod["metadata"]["uid"],
        }
        for pod in members
    ]
    return world


def kai() -> World:
    """KAI: a Job in a queue with its PodGroup, and a pod on half a card."""
    world, name = World("kai"), "grpo-3b"
    job = world.job(name)
    group = f"pg-{name}-{job['metadata']['uid']}"
    world.thing("scheduling.run.ai/v2alpha2", "PodGroup", group, job)
    for index in range(2):
        world.pod(
            f"{name}-{index}-{suffix(f'{name}{index}')}",
            Truth(name, "lin", "subgroup:workers", root=f"Job/{name}"),
            job,
            labels=world.job_labels(
                job,
                owner="lin",
                **{"kai.scheduler/queue": "team-a", "kai.scheduler/subgroup-name": "workers"},
            ),
            annotations={"pod-group-name": group},
        )
    world.pod(
        "half-card",
        Truth("tune-lora", "lin"),
        labels={"kai.scheduler/queue": "team-a", "owner": "lin", "experiment": "tune-lora"},
        annotations={
            "gpu-fraction": "0.5",
            "pod-group-name": f"pg-half-card-{world.uid('Pod', 'half-card')}",
        },
        gpus=None,
    )
    return world


def run_ai() -> World:
    """Run:ai: a TrainingWorkload owns a RunaiJob, that owns the pod."""
    world, name = World("runai"), "distill-1b"
    root = world.thing("run.ai/v2alpha1", "TrainingWorkload", name, labels={"project": "team-b"})
    job = world.thing("run.ai/v1", "RunaiJob", name, root)
    for index in range(2):
        world.pod(
            f"{name}-{index}-{index}",
            Truth(name, "mei", root=f"TrainingWorkload/{name}", unseen=frozenset({"root"})),
            job,
            labels={
                "project": "team-b",
                "release": name,
                "runai/queue": "team-b",
                "runai/node-pool": "default",
                "owner": "mei",
            },
            annotations={"pod-group-name": f"pg-{name}-0"},
        )
    return world
