"""What ``kubectl get -o json`` would have printed at the end of the world, as one List.

A pod that was deleted, and any controller that lives beyond the world, shows as the API would show
it: gone, or without a finish time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from collector.simulate.draw import uid
from collector.simulate.model import GPU_RESOURCE, Container, Node, Owner, Pod, World
from collector.simulate.options import DAY, moment

Json = dict[str, Any]
"""A Kubernetes object: the API's schema is open, so its values are."""

_VERSIONS = {
    "Job": "batch/v1",
    "ReplicaSet": "apps/v1",
    "Deployment": "apps/v1",
    "DaemonSet": "apps/v1",
    "RayJob": "ray.io/v1",
    "RayCluster": "ray.io/v1",
    "PyTorchJob": "kubeflow.org/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
}


def kubernetes_list(world: World) -> Json:
    """All objects as a ``List``: nodes, namespaces, controllers, pods."""
    pods = [pod for pod in world.pods if pod.in_api]
    namespaces = sorted({pod.namespace for pod in world.pods})
    items = [
        *(_node(world, node) for node in world.nodes if node.created < world.options.end_ms),
        *(_namespace(world, name) for name in namespaces),
        *_controllers(world, pods),
        *(_pod(world, pod) for pod in pods),
    ]
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}


def write_objects(world: World, path: Path) -> None:
    """Write the List as JSON text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(kubernetes_list(world), indent=1, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")


def _time(at: int) -> str:
    return moment(at).strftime("%Y-%m-%dT%H:%M:%SZ")


def _node(world: World, node: Node) -> Json:
    capacity = {
        "cpu": str(node.cpu_millicores // 1000),
        "memory": f"{node.memory_bytes // 1024}Ki",
        "pods": "110",
    }
    if node.gpus:
        capacity[GPU_RESOURCE] = str(node.gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.name,
            "uid": uid(world.options.seed, "node", node.name),
            "creationTimestamp": _time(node.created),
            "labels": node.labels,
        },
        "spec": {"providerID": node.provider_id},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": _time(node.created)}
            ],
        },
    }


def _namespace(world: World, name: str) -> Json:
    created = _time(world.options.start_ms - 90 * DAY)
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "uid": uid(world.options.seed, "namespace", name),
            "creationTimestamp": created,
            "labels": {"kubernetes.io/metadata.name": name},
        },
    }


def _controllers(world: World, pods: Sequence[Pod]) -> Iterator[Json]:
    """Each controller once, with the owner above it, by kind and name."""
    found: dict[tuple[str, str, str], Json] = {}
    for pod in pods:
        for index, owner in enumerate(pod.owners):
            above = pod.owners[index + 1 : index + 2]
            key = (owner.kind, pod.namespace, owner.name)
            if key not in found:
                found[key] = _controller(world, pod, owner, above)
    for _, item in sorted(found.items()):
        yield item


def _controller(world: World, pod: Pod, owner: Owner, above: Sequence[Owner]) -> Json:
    done = pod.finished < world.options.end_ms
    metadata: Json = {
        "name": owner.name,
        "namespace": pod.namespace,
        "labels": dict(owner.labels),
        "uid": _owner_uid(world, pod, owner),
        "creationTimestamp": _time(pod.bound),
        "ownerReferences": [_reference(world, pod, parent) for parent in above],
    }
    item: Json = {
        "apiVersion": _VERSIONS[owner.kind],
        "kind": owner.kind,
        "metadata": metadata,
        "spec": {},
        "status": {},
    }
    if owner.kind == "RayJob":
        item["status"] = {
            "jobStatus": "SUCCEEDED" if done else "RUNNING",
            "jobDeploymentStatus": "Complete" if done else "Running",
            "startTime": _time(pod.started),
            "rayClusterName": pod.owners[0].name,
        }
        if done:
            item["status"]["endTime"] = _time(pod.finished)
    return item


def _owner_uid(world: World, pod: Pod, owner: Owner) -> str:
    return uid(world.options.seed, "controller", owner.kind, pod.namespace, owner.name)


def _reference(world: World, pod: Pod, owner: Owner) -> Json:
    return {
        "apiVersion": _VERSIONS[owner.kind],
        "kind": owner.kind,
        "name": owner.name,
        "uid": _owner_uid(world, pod, owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _pod(world: World, pod: Pod) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
            "creationTimestamp": _time(pod.bound),
            "labels": dict(pod.labels),
            "ownerReferences": [_reference(world, pod, owner) for owner in pod.owners[:1]],
        },
        "spec": {
            "nodeName": pod.node,
            "restartPolicy": "Never",
            "containers": [_container(pod, container) for container in pod.containers],
        },
        "status": _status(world, pod),
    }


def _container(pod: Pod, container: Container) -> Json:
    requests = {
        "cpu": f"{container.cpu_millicores}m",
        "memory": f"{container.memory_bytes // 1024}Ki",
    }
    resources: Json = {"requests": requests}
    if container.gpus:
        requests[GPU_RESOURCE] = str(container.gpus)
        resources["limits"] = {GPU_RESOURCE: str(container.gpus)}
    environment = [
        {"name": name, "value": value} for name, value in sorted(pod.environment.items())
    ]
    return {
        "name": container.name,
        "image": f"registry.example/{container.name}:1",
        "resources": resources,
        "env": environment,
    }


def _status(world: World, pod: Pod) -> Json:
    end = world.options.end_ms
    conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": _time(pod.bound)}
    ]
    if pod.started >= end:
        return {
            "phase": "Pending",
            "startTime": _time(pod.bound),
            "conditions": conditions,
            "containerStatuses": [
                {
                    "name": container.name,
                    "ready": False,
                    "restartCount": 0,
                    "state": {"waiting": {"reason": pod.reason}},
                }
                for container in pod.containers
            ],
        }
    done = pod.finished < end
    running: Json = {"running": {"startedAt": _time(pod.started)}}
    ended: Json = {
        "terminated": {
            "startedAt": _time(pod.started),
            "finishedAt": _time(pod.finished),
            "exitCode": 0,
            "reason": "Completed",
        }
    }
    return {
        "phase": "Succeeded" if done else "Running",
        "startTime": _time(pod.bound),
        "conditions": conditions,
        "containerStatuses": [
            {
                "name": container.name,
                "ready": not done,
                "restartCount": 0,
                "state": ended if done else running,
            }
            for container in pod.containers
        ],
    }
