"""SkyPilot, Determined, dstack, Slinky and Argo Workflows."""

from __future__ import annotations

from tests.worlds.model import Truth, World, suffix


def skypilot() -> World:
    """A cluster of bare pods; its label has the hash of the user behind the name."""
    world, name = World("skypilot"), "train-sft-8b"
    cluster = f"{name}-3fa2b1c9"
    for part in ("head", "worker1", "worker2"):
        kind = part.rstrip("12")
        world.pod(
            f"{cluster}-{part}",
            Truth(name, "lin", f"sky-node-type:{kind}", root=f"SkyPilotCluster/{name}"),
            labels={
                "parent": "skypilot",
                "component": f"{cluster}-{part}",
                "ray-cluster-name": cluster,
                "ray-node-type": kind,
                "skypilot-cluster": cluster,
                "skypilot-user": "lin",
            },
            annotations={"skypilot-cluster-name": name},
        )
    return world


def determined() -> World:
    """A trial of an experiment: one Job whose name says the numbers, an annotation the name."""
    world, name = World("determined"), "mnist-sweep"
    job = world.job(f"exp-42-trial-77-{suffix(name)}")
    labels = {
        "determined.ai/allocation_id": "42.77.1",
        "determined.ai/container_id": "7d0f",
        "determined.ai/experiment_id": "42",
        "determined.ai/resource_pool": "default",
        "determined.ai/task_id": "42.77",
        "determined.ai/task_type": "TRIAL",
        "determined.ai/trial_id": "77",
        "determined.ai/user": "mei",
        "determined.ai/workspace": "research",
    }
    for index in range(2):
        world.pod(
            f"{job['metadata']['name']}-{index}-{suffix(f'{name}{index}')}",
            Truth(name, "mei", "task-type:trial", "update", f"DeterminedTask/{name}"),
            job,
            labels=world.job_labels(job, **labels),
            annotations={"determined.ai/job-name": name},
        )
    return world


def dstack() -> World:
    """The pods of a run, that nothing owns."""
    world, name = World("dstack"), "dpo-qwen"
    for index in range(2):
        world.pod(
            f"{name}-{index}-0-{suffix(f'{name}{index}', 8)}",
            Truth(name, "rui", root=f"DstackRun/{name}"),
            labels={
                "app.kubernetes.io/name": "dstack-job",
                "app.kubernetes.io/instance": f"{name}-{index}-0-{suffix(f'{name}{index}', 8)}",
                "app.kubernetes.io/managed-by": "dstack",
                "k8s.dstack.ai/name": name,
                "k8s.dstack.ai/project": "main",
                "k8s.dstack.ai/user": "rui",
            },
        )
    return world


def slinky() -> World:
    """Workers of Slurm: each pod is a node; what no job of Slurm holds of it is the set's own."""
    world, name = World("slinky"), "slurm-worker-gpu"
    root = world.thing("slinky.slurm.net/v1beta1", "NodeSet", name)
    for index in range(2):
        pod = f"{name}-{index}"
        world.pod(
            pod,
            Truth(name, None, "slurm:node", root=f"NodeSet/{name}"),
            root,
            labels={
                "app.kubernetes.io/component": "worker",
                "app.kubernetes.io/instance": name,
                "app.kubernetes.io/managed-by": "slurm-operator",
                "app.kubernetes.io/name": "slurmd",
                "app.kubernetes.io/part-of": "slurm",
                "nodeset.slinky.slurm.net/pod-hostname": pod,
                "nodeset.slinky.slurm.net/pod-index": str(index),
                "nodeset.slinky.slurm.net/pod-name": pod,
                "nodeset.slinky.slurm.net/scaling-mode": "StatefulSet",
                "slinky.slurm.net/cluster": "slurm",
            },
        )
    return world


def argo() -> World:
    """A Workflow with a step for each part."""
    world, name = World("argo"), "distill-12b"
    root = world.thing("argoproj.io/v1alpha1", "Workflow", name)
    for number, (step, phase) in enumerate(
        (("generate", "rollout"), ("train", "update"), ("evaluate", "evaluation"))
    ):
        world.pod(
            f"{name}-{step}-{1234567890 + number}",
            Truth(name, "rui", f"step:{step}", phase, f"Workflow/{name}"),
            root,
            labels={
                "workflows.argoproj.io/completed": "true",
                "workflows.argoproj.io/workflow": name,
                "owner": "rui",
            },
            annotations={
                "workflows.argoproj.io/node-id": f"{name}-{1234567890 + number}",
                "workflows.argoproj.io/node-name": f"{name}.{step}",
            },
        )
    return world
