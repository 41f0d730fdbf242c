"""KubeRay 1.4: RayJob, RayService and a RayCluster that nobody owns."""

from __future__ import annotations

from dataclasses import replace

from tests.worlds.model import Json, Truth, World, suffix

API = "ray.io/v1"


def ray_job() -> World:
    """Two RayJobs; pods of one bear where they come from, those of the other do not."""
    world = World("kuberay-rayjob")
    _job(world, "grpo-7b", "lin", told=True)
    _job(world, "dapo-32b", "mei", told=False)
    return world


def _job(world: World, name: str, owner: str, *, told: bool) -> None:
    origin = {"ray.io/originated-from-cr-name": name, "ray.io/originated-from-crd": "RayJob"}
    root = world.thing(API, "RayJob", name, labels={"stage": "rl"})
    cluster = _cluster(world, f"{name}-{suffix(name)}", root, {"stage": "rl", **origin})
    more = {"owner": owner, **(origin if told else {})}
    lost = frozenset() if told else frozenset({"experiment", "root"})
    truth = Truth(name, owner, root=f"RayJob/{name}", lost=lost)
    _nodes(world, cluster, truth, ("rollout", "trainer", "reward-model"), more)
    submitter = world.job(name, root, labels=origin)
    world.pod(
        f"{name}-{suffix(name + 'submit')}",
        Truth(
            name,
            role="ray-node-type:submitter",
            root=f"RayJob/{name}",
            lost=frozenset({"role", "root"}),
        ),
        submitter,
        labels=world.job_labels(submitter),
        env={
            "RAY_DASHBOARD_ADDRESS": f"{name}-head-svc:8265",
            "RAY_JOB_SUBMISSION_ID": f"{name}-{suffix(name + 'id')}",
        },
        gpus=None,
    )


def ray_service() -> World:
    """A RayService that serves a judge; its owner stands on the RayService alone."""
    world, name = World("kuberay-rayservice"), "judge-72b"
    root = world.thing(API, "RayService", name, labels={"owner": "eval-team"})
    origin = {"ray.io/originated-from-cr-name": name, "ray.io/originated-from-crd": "RayService"}
    cluster = _cluster(world, f"{name}-{suffix(name)}", root, {"owner": "eval-team", **origin})
    truth = Truth(
        name,
        "eval-team",
        root=f"RayService/{name}",
        unseen=frozenset({"owner"}),
        lost=frozenset({"experiment", "root"}),
    )
    _nodes(world, cluster, truth, ("judge",), {"ray.io/serve": "true"})
    return world


def ray_cluster() -> World:
    """A RayCluster of its own, as people keep them to try things."""
    world, name = World("kuberay-raycluster"), "dev-lin-a1b2c"
    cluster = _cluster(world, name, None, {})
    truth = Truth(name, "lin", root=f"RayCluster/{name}")
    _nodes(world, cluster, truth, ("small-group",), {"owner": "lin"})
    return world


def _cluster(world: World, name: str, owner: Json | None, labels: dict[str, str]) -> Json:
    return world.thing(API, "RayCluster", name, owner, labels=labels)


_PHASES = {"rollout": "rollout", "trainer": "update", "reward-model": "reward", "judge": "reward"}


def _nodes(
    world: World, cluster: Json, truth: Truth, groups: tuple[str, ...], more: dict[str, str]
) -> None:
    """The head, and two workers of each group."""
    name = cluster["metadata"]["name"]
    head = replace(truth, role="ray-node-type:head")
    labels = _labels(name, "head", "headgroup", more)
    world.pod(f"{name}-head", head, cluster, labels=labels, gpus=None)
    for group in groups:
        is_of = replace(truth, role=f"ray-group:{group}", phase=_PHASES.get(group, "unknown"))
        labels = _labels(name, "worker", group, more)
        for number in range(2):
            pod = f"{name}-{group}-worker-{suffix(f'{name}{group}{number}')}"
            world.pod(pod, is_of, cluster, labels=labels, env={"RAY_NODE_TYPE_NAME": group})


def _labels(cluster: str, kind: str, group: str, more: dict[str, str]) -> dict[str, str]:
    return {
        "app.kubernetes.io/created-by": "kuberay-operator",
        "app.kubernetes.io/name": "kuberay",
        "ray.io/cluster": cluster,
        "ray.io/group": group,
        "ray.io/identifier": f"{cluster}-{kind}",
        "ray.io/is-ray-node": "yes",
        "ray.io/node-type": kind,
        **more,
    }
