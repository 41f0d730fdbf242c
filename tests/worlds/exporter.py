"""What kube-state-metrics 2 and the KubeRay operator show of objects, as samples.

The names follow ``docs/metrics`` of kube-state-metrics: labels and annotations in snake case, with
``_conflictN`` where two keys meet; owners of pods, Jobs and ReplicaSets; nothing of custom kinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from tests.collector.prometheus.builders import Sample, at, line
from tests.worlds.model import END, START, Json, World

STEP = timedelta(minutes=5)


@dataclass(frozen=True)
class Exporter:
    """A kube-state-metrics of one cluster.

    Args:
        cluster: Value of the label ``cluster`` on each series.
        labels: Whether all labels and annotations are on the allow-lists.
        kuberay: Whether the operator of KubeRay is scraped.
    """

    cluster: str
    labels: bool = True
    kuberay: bool = True

    def samples(self, worlds: Sequence[World]) -> list[Sample]:
        """Everything that is shown of the worlds while their pods ran."""
        start, end = at(START), at(END)
        found = [
            sample
            for world in worlds
            for item in (*world.objects, *world.pods)
            for name, labels, value in self._series(item)
            for sample in line(name, self._whole(labels), start, end, value=value, step=STEP)
        ]
        names = sorted({pod["spec"]["nodeName"] for world in worlds for pod in world.pods})
        return found + [
            sample
            for node in names
            for name, labels, value in _node(node)
            for sample in line(
                name, self._whole(labels), start - STEP, end + STEP, value=value, step=STEP
            )
        ]

    def _whole(self, labels: Mapping[str, str]) -> dict[str, str]:
        scraped = {"job": "kube-state-metrics", "instance": "10.0.0.1:8080"}
        return {**scraped, "cluster": self.cluster, **labels}

    def _series(self, item: Json) -> Iterator[tuple[str, dict[str, str], float]]:
        kind, meta = item["kind"], item["metadata"]
        named = {"namespace": meta["namespace"]}
        if kind == "Pod":
            yield from self._pod(item)
        elif kind == "Job" and item["apiVersion"] == "batch/v1":
            yield "kube_job_owner", {**named, "job_name": meta["name"], **owner(item)}, 1
            yield from self._labels("job", {**named, "job_name": meta["name"]}, item)
        elif kind == "ReplicaSet":
            yield "kube_replicaset_owner", {**named, "replicaset": meta["name"], **owner(item)}, 1
        elif kind == "Deployment":
            yield from self._labels("deployment", {**named, "deployment": meta["name"]}, item)
        elif kind == "StatefulSet":
            yield from self._labels("statefulset", {**named, "statefulset": meta["name"]}, item)
        elif kind == "RayCluster" and self.kuberay:
            of = owner(item)["owner_kind"].replace("<none>", "None")
            yield "kuberay_cluster_info", {**named, "name": meta["name"], "owner_kind": of}, 1

    def _pod(self, pod: Json) -> Iterator[tuple[str, dict[str, str], float]]:
        meta, spec = pod["metadata"], pod["spec"]
        who = {"namespace": meta["namespace"], "pod": meta["name"], "uid": meta["uid"]}
        first = owner(pod)
        yield (
            "kube_pod_info",
            {
                **who,
                "node": spec["nodeName"],
                "created_by_kind": first["owner_kind"],
                "created_by_name": first["owner_name"],
                "host_network": "false",
            },
            1,
        )
        yield "kube_pod_owner", {**who, **first}, 1
        yield "kube_pod_status_phase", {**who, "phase": "Running"}, 1
        for container in spec["containers"]:
            for resource, text in container["resources"]["requests"].items():
                value = {"cpu": 1.0, "memory": float(2**30)}.get(resource) or float(text)
                labels = {**who, "container": container["name"], "resource": _plain(resource)}
                yield "kube_pod_container_resource_requests", labels, value
        yield from self._labels("pod", who, pod)

    def _labels(
        self, thing: str, who: dict[str, str], item: Json
    ) -> Iterator[tuple[str, dict[str, str], float]]:
        for kind in ("labels", "annotations"):
            own = item["metadata"].get(kind) or {}
            told = sanitised(kind[:-1], own) if self.labels else {}
            yield f"kube_{thing}_{kind}", {**who, **told}, 1


def owner(item: Json) -> dict[str, str]:
    """The labels that name the controller of an object."""
    references = item["metadata"].get("ownerReferences") or ()
    first = next((one for one in references if one.get("controller")), None)
    return {
        "owner_kind": first["kind"] if first else "<none>",
        "owner_name": first["name"] if first else "<none>",
        "owner_is_controller": "true" if first else "<none>",
    }


def sanitised(prefix: str, own: Mapping[str, str]) -> dict[str, str]:
    """Keys as labels of a series: ``label_x``, and ``label_x_conflict1`` where two become one."""
    forms: dict[str, list[str]] = {}
    for key in sorted(own):
        forms.setdefault(f"{prefix}_{_plain(key)}", []).append(key)
    return {
        form if len(keys) == 1 else f"{form}_conflict{number}": own[key]
        for form, keys in forms.items()
        for number, key in enumerate(keys, 1)
    }


def _plain(key: str) -> str:
    plain = re.sub(r"[^a-zA-Z0-9_]", "_", key)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", plain).lower()


def _node(name: str) -> Iterator[tuple[str, dict[str, str], float]]:
    who = {"node": name}
    yield "kube_node_info", {**who, "provider_id": f"aws:///us-east-1a/i-{name}"}, 1
    for resource, value in (("cpu", 192.0), ("memory", 2.0**41), ("nvidia_com_gpu", 8.0)):
        yield "kube_node_status_capacity", {**who, "resource": resource}, value
    model = {"label_nvidia_com_gpu_product": "NVIDIA-H100-80GB-HBM3"}
    yield "kube_node_labels", {**who, **model}, 1
