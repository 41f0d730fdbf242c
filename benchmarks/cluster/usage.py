"""The series of cAdvisor (by the kubelet) and of dcgm-exporter."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmarks.cluster.clock import Clock, Courses
from benchmarks.cluster.line import Line
from benchmarks.cluster.world import Node, Pod

CARD_METERS = {
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "ratio",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "tensor",
    "DCGM_FI_PROF_DRAM_ACTIVE": "dram",
    "DCGM_FI_DEV_GPU_UTIL": "percent",
    "DCGM_FI_DEV_POWER_USAGE": "power",
    "DCGM_FI_DEV_FB_USED": "framebuffer",
}
_IDLE = {"DCGM_FI_DEV_POWER_USAGE": 68.5}
_IMAGE = "123456789012.dkr.ecr.us-east-2.amazonaws.com/research/post-training@sha256:"


def container_series(pod: Pod, clock: Clock, courses: Courses) -> Iterator[Line]:
    """CPU, memory and network of a pod: its container, its cgroup and its sandbox."""
    digest = hashlib.sha256(pod.uid.encode()).hexdigest()
    slice_name = f"/kubepods.slice/kubepods-burstable-pod{pod.uid.replace('-', '_')}.slice"
    scraped = {
        "job": "kubelet",
        "instance": f"{pod.node.address}:10250",
        "endpoint": "https-metrics",
        "service": "kube-prometheus-stack-kubelet",
        "metrics_path": "/metrics/cadvisor",
        "node": pod.node.name,
        "namespace": pod.experiment.namespace,
        "pod": pod.name,
    }
    inside = {
        "container": "main",
        "id": f"{slice_name}/cri-containerd-{digest}.scope",
        "image": f"{_IMAGE}{digest[::-1]}",
        "name": digest,
    }
    sandbox = {
        "id": f"{slice_name}/cri-containerd-{digest[::-1]}.scope",
        "image": "602401143452.dkr.ecr.us-east-2.amazonaws.com/eks/pause:3.5",
        "name": digest[::-1],
        "interface": "eth0",
    }
    for metric, meter, labels in (
        ("container_cpu_usage_seconds_total", "cpu", {**inside, "cpu": "total"}),
        ("container_cpu_usage_seconds_total", "cpu", {"id": slice_name, "cpu": "total"}),
        ("container_memory_working_set_bytes", "memory", inside),
        ("container_memory_working_set_bytes", "memory", {"id": slice_name}),
        ("container_network_receive_bytes_total", "received", sandbox),
        ("container_network_transmit_bytes_total", "sent", sandbox),
    ):
        course = courses.of(meter, pod.number)
        told = {**scraped, **labels}
        yield Line(metric, told, clock, pod.started, pod.finished, course)


def card_series(
    node: Node, pods: Sequence[Pod], clock: Clock, courses: Courses, *, sm_active: bool
) -> Iterator[Line]:
    """All meters of a node's cards: in the hands of each of its pods, and free in between."""
    meters = CARD_METERS | ({"DCGM_FI_PROF_SM_ACTIVE": "ratio"} if sm_active else {})
    for place, uuid in enumerate(node.cards):
        number = card_number(node, place)
        labels = {
            "job": "nvidia-dcgm-exporter",
            "instance": f"{node.address}:9400",
            "endpoint": "gpu-metrics",
            "service": "nvidia-dcgm-exporter",
            "namespace": "gpu-operator",
            "pod": f"nvidia-dcgm-exporter-{node.machine[-5:]}",
            "container": "nvidia-dcgm-exporter",
            "gpu": str(place),
            "UUID": uuid,
            "pci_bus_id": f"00000000:{place * 17 + 83:02X}:00.0",
            "device": f"nvidia{place}",
            "modelName": "NVIDIA H100 80GB HBM3",
            "Hostname": node.name,
            "DCGM_FI_DRIVER_VERSION": "550.90.07",
        }
        free = clock.times[0]
        for pod in sorted(pods, key=lambda one: one.bound):
            if place in pod.cards:
                held = Line("", labels, clock, free, pod.started)
                tenant = {
                    "exported_namespace": pod.experiment.namespace,
                    "exported_pod": pod.name,
                    "exported_container": "main",
                }
                used = Line("", labels | tenant, clock, pod.started, pod.finished)
                for metric, meter in meters.items():
                    yield replace(held, metric=metric, value=_IDLE.get(metric, 0.0))
                    yield replace(used, metric=metric, value=courses.of(meter, number))
                free = pod.finished
        last = Line("", labels, clock, free, clock.times[-1] + 1)
        for metric in meters:
            yield replace(last, metric=metric, value=_IDLE.get(metric, 0.0))


def card_number(node: Node, place: int) -> int:
    """The number of a card among all, which tells its courses."""
    return node.number * len(node.cards) + place
