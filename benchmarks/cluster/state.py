"""The series of kube-state-metrics 2 of a pod and of a node (its ``docs/metrics``)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.cluster.clock import Clock
from benchmarks.cluster.line import Labels, Line
from benchmarks.cluster.options import DAY, MINUTE
from benchmarks.cluster.systems import owner_of, pod_labels
from benchmarks.cluster.world import Node, Pod

PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_GPU_NODE_LABELS = 22
"""Further labels of GPU feature discovery on every node; VictoriaMetrics keeps 30 unless told."""


def scraped(shard: int) -> dict[str, str]:
    """The labels of the scrape of a shard of kube-state-metrics."""
    return {
        "job": "kube-state-metrics",
        "instance": f"10.64.3.{20 + shard}:8080",
        "endpoint": "http",
        "service": "kube-prometheus-stack-kube-state-metrics",
    }


@dataclass(frozen=True)
class _Object:
    """What a target tells of one object: the labels of all its series."""

    labels: Labels
    clock: Clock

    def line(
        self, metric: str, span: tuple[int, int], value: float = 1.0, more: Labels | None = None
    ) -> Line:
        """A series in [start, end), in milliseconds, that shows one value."""
        return Line(metric, {**self.labels, **(more or {})}, self.clock, *span, value)


def pod_series(pod: Pod, clock: Clock, target: Labels) -> Iterator[Line]:
    """All series of a pod."""
    name = {"namespace": pod.experiment.namespace, "pod": pod.name, "uid": pod.uid}
    of = _Object({**name, **target}, clock)
    life, held = (pod.created, pod.deleted), (pod.bound, pod.deleted)
    kind, owner = owner_of(pod)
    told = {"owner_kind": kind, "owner_name": owner, "owner_is_controller": "true"}
    yield from _info(pod, of)
    yield from _phases(pod, of)
    yield of.line("kube_pod_labels", life, more=pod_labels(pod))
    yield of.line("kube_pod_owner", life, more=told)
    yield of.line("kube_pod_created", life, pod.created // 1000)
    yield of.line("kube_pod_status_scheduled_time", held, pod.bound // 1000)
    gone = (pod.finished, pod.deleted)
    yield of.line("kube_pod_completion_time", gone, pod.finished // 1000)
    for container, resource, unit, amount in requests(pod):
        told = {"container": container, "resource": resource, "unit": unit}
        told |= {"node": pod.node.name}
        yield of.line("kube_pod_container_resource_requests", held, amount, told)


def requests(pod: Pod) -> Iterator[tuple[str, str, str, float]]:
    """Container, resource, unit and amount of what a pod asks for."""
    cards = len(pod.cards)
    yield "main", "cpu", "core", float(cards * 20 or 4 + pod.number % 5)
    yield "main", "memory", "byte", float((cards * 180 or 16) * 2**30)
    if cards:
        yield "main", "nvidia_com_gpu", "integer", float(cards)
    if pod.number % 5 == 0:
        yield "log-shipper", "cpu", "core", 0.25
        yield "log-shipper", "memory", "byte", 256.0 * 2**20


def _info(pod: Pod, of: _Object) -> Iterator[Line]:
    """What a pod is, before and after it is bound."""
    kind, owner = owner_of(pod)
    told = {
        "created_by_kind": kind,
        "created_by_name": owner,
        "priority_class": "research-default",
        "host_network": "false",
    }
    place = {
        "node": pod.node.name,
        "host_ip": pod.node.address,
        "pod_ip": f"10.{96 + pod.number // 62_500}.{pod.number // 250 % 250}.{pod.number % 250}",
    }
    nowhere = dict.fromkeys(place, "")
    yield of.line("kube_pod_info", (pod.created, pod.bound), more=told | nowhere)
    yield of.line("kube_pod_info", (pod.bound, pod.deleted), more=told | place)


def _phases(pod: Pod, of: _Object) -> Iterator[Line]:
    """A series per phase: 1 while the pod is in it, and 0 before and after."""
    last = "Failed" if pod.failed else "Succeeded"
    spans = {
        "Pending": (pod.created, pod.started),
        "Running": (pod.started, pod.finished),
        last: (pod.finished, pod.deleted),
    }
    for phase in PHASES:
        start, end = spans.get(phase, (pod.created, pod.created))
        for span, value in (
            ((pod.created, start), 0.0),
            ((start, end), 1.0),
            ((end, pod.deleted), 0.0),
        ):
            yield of.line("kube_pod_status_phase", span, value, {"phase": phase})
    told = {"container": "main", "reason": "ContainerCreating"}
    metric = "kube_pod_container_status_waiting_reason"
    yield of.line(metric, (pod.bound, pod.started), more=told)


def node_series(node: Node, clock: Clock, target: Labels) -> Iterator[Line]:
    """All series of a node."""
    of, always = _Object({**target, "node": node.name}, clock), (0, clock.times[-1] + 1)
    told = {
        "kernel_version": "6.1.102-111.182.amzn2023.x86_64",
        "os_image": "Amazon Linux 2023.5.20240805",
        "container_runtime_version": "containerd://1.7.20",
        "kubelet_version": "v1.30.2-eks-1552ad0",
        "kubeproxy_version": "deprecated",
        "provider_id": f"aws:///us-east-2b/{node.machine}",
        "internal_ip": node.address,
        "system_uuid": hashlib.md5(node.name.encode(), usedforsecurity=False).hexdigest(),
    }
    yield of.line("kube_node_info", always, more=told)
    amounts = {
        "cpu": (192.0, "core"),
        "memory": (2_147_483_648_000.0, "byte"),
        "pods": (198.0, "integer"),
        "ephemeral_storage": (8e12, "byte"),
        "hugepages_2Mi": (0.0, "byte"),
        "nvidia_com_gpu": (float(len(node.cards)), "integer"),
    }
    for resource, (amount, unit) in amounts.items():
        for metric in ("kube_node_status_capacity", "kube_node_status_allocatable"):
            yield of.line(metric, always, amount, {"resource": resource, "unit": unit})
    yield of.line("kube_node_labels", always, more=_node_labels(node))
    born = clock.times[0] - (node.number % 40 + 1) * DAY - node.number * MINUTE
    yield of.line("kube_node_created", always, born // 1000)


def _node_labels(node: Node) -> dict[str, str]:
    told = {
        "label_node_kubernetes_io_instance_type": "p5.48xlarge",
        "label_topology_kubernetes_io_region": "us-east-2",
        "label_topology_kubernetes_io_zone": "us-east-2b",
        "label_karpenter_sh_capacity_type": "on-demand",
        "label_karpenter_sh_nodepool": "h100",
        "label_kubernetes_io_arch": "amd64",
        "label_kubernetes_io_os": "linux",
        "label_kubernetes_io_hostname": node.name,
        "label_nvidia_com_gpu_product": "NVIDIA-H100-80GB-HBM3",
        "label_nvidia_com_gpu_count": str(len(node.cards)),
        "label_nvidia_com_gpu_memory": "81559",
        "label_nvidia_com_mig_capable": "true",
    }
    more = {f"label_nvidia_com_feature_{number:02d}": "true" for number in range(_GPU_NODE_LABELS)}
    return told | more
