"""What Kubernetes has of its own, bare pods, and custom resources that nobody else knows."""

from __future__ import annotations

from tests.worlds.model import Truth, World, suffix


def job() -> World:
    """A Job, and one that a CronJob made."""
    world, name = World("job"), "sft-1b"
    plain = world.job(name)
    cron = world.thing("batch/v1", "CronJob", "nightly-eval")
    made = world.job("nightly-eval-29412345", cron)
    for owner, root, lost in (
        (plain, f"Job/{name}", ()),
        (made, "CronJob/nightly-eval", ("experiment", "root")),
    ):
        own = owner["metadata"]["name"]
        world.pod(
            f"{own}-{suffix(own)}",
            Truth(root.partition("/")[2], "lin", root=root, lost=frozenset(lost)),
            owner,
            labels=world.job_labels(owner, owner="lin"),
        )
    return world


def deployment() -> World:
    """A Deployment; it alone bears its owner."""
    world, name = World("deployment"), "reward-server"
    root = world.thing("apps/v1", "Deployment", name, labels={"team": "reward"})
    replicas = world.thing("apps/v1", "ReplicaSet", f"{name}-{suffix(name, 10)}", root)
    for number in range(2):
        world.pod(
            f"{replicas['metadata']['name']}-{suffix(f'{name}{number}')}",
            Truth(
                name, "reward", None, "reward", f"Deployment/{name}", unseen=frozenset({"owner"})
            ),
            replicas,
            labels={"app": name, "pod-template-hash": suffix(name, 10)},
        )
    return world


def stateful_set() -> World:
    """A StatefulSet."""
    world, name = World("statefulset"), "vllm-server"
    root = world.thing("apps/v1", "StatefulSet", name)
    for number in range(2):
        world.pod(
            f"{name}-{number}",
            Truth(name, "mei", root=f"StatefulSet/{name}"),
            root,
            labels={
                "app": name,
                "apps.kubernetes.io/pod-index": str(number),
                "statefulset.kubernetes.io/pod-name": f"{name}-{number}",
                "owner": "mei",
            },
        )
    return world


def bare_pod() -> World:
    """Pods that nobody owns: one says who it is, one says it by its environment, one is silent."""
    world = World("pod")
    world.pod(
        "notebook-lin",
        Truth("explore-dpo", "lin"),
        labels={"experiment": "explore-dpo"},
        annotations={"acme.example/by": "lin"},
    )
    world.pod(
        "debug-run",
        Truth("ablate-kl", "mei", unseen=frozenset({"experiment", "owner"})),
        env={"WANDB_RUN_GROUP": "ablate-kl", "WANDB_USERNAME": "mei"},
    )
    world.pod("stray", Truth(None))
    return world


def custom() -> World:
    """A company's operator: one kind that owns pods, and one that owns the owner of pods."""
    world = World("custom")
    for name, between in (("polish-9", False), ("polish-10", True)):
        root = world.thing("train.acme.example/v1", "FineTune", name, labels={"owner": "acme"})
        owner = root
        if between:
            owner = world.thing("train.acme.example/v1", "Runner", f"{name}-runner", root)
        hidden = {"owner", "experiment", "root"} if between else {"owner"}
        world.pod(
            f"{owner['metadata']['name']}-0",
            Truth(name, "acme", root=f"FineTune/{name}", unseen=frozenset(hidden)),
            owner,
            labels={"acme.example/part": "main"},
        )
    return world


def colliding() -> World:
    """No system: a pod two of whose labels, and two of whose annotations, have one spelling."""
    world = World("colliding")
    world.pod(
        "two-teams",
        Truth("a-b", "rl", unseen=frozenset({"owner"})),
        labels={"team": "rl", "Team": "infra", "experiment": "a-b"},
        annotations={"team.example/owner": "lin", "team_example/owner": "mei"},
    )
    return world
