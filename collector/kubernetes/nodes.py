"""Rows of the table ``nodes``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from collector.kubernetes.demand import amounts, cards
from collector.kubernetes.frames import Row, canonical, days_of
from collector.kubernetes.objects import Node
from collector.kubernetes.quantities import milli, whole
from collector.kubernetes.rejects import Rejected
from collector.kubernetes.times import moment
from ledger.window import Window

_TYPE = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_REGION = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
_ZONE = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_MODEL = (
    "nvidia.com/gpu.product",
    "gpu.nvidia.com/model",
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "amd.com/gpu.product-name",
    "beta.amd.com/gpu.product-name",
    "karpenter.k8s.aws/instance-accelerator-name",
    "cloud.google.com/gke-tpu-accelerator",
)
_CAPACITY = (
    "karpenter.sh/capacity-type",
    "eks.amazonaws.com/capacityType",
    "cloud.google.com/gke-provisioning",
    "kubernetes.azure.com/scalesetpriority",
    "node.kubernetes.io/lifecycle",
)
_SPOT_FLAGS = ("cloud.google.com/gke-spot", "cloud.google.com/gke-preemptible")
_CAPACITY_NAMES = {
    "preemptible": "spot",
    "normal": "on-demand",
    "regular": "on-demand",
    "standard": "on-demand",
    "capacity-block": "reserved",
}


def node_rows(node: Node, cluster: str, window: Window, now: datetime | None) -> Iterator[Row]:
    """A node's days: from its registration to ``now``, or to the end of the window.

    Capacity is what the node says in ``status.capacity``: cards in units of the resource.

    Raises:
        Rejected: ``bad_date`` or ``bad_number``.
    """
    created = moment(node.metadata.creation_timestamp, now)
    facts = {**_about(node, cluster), "created": created}
    end = window.end if now is None else min(now, window.end)
    for day, first, last in days_of(created or window.start, end, window):
        yield {**facts, "day": day, "start": first, "end": last}


def further_cards(node: Node) -> tuple[str, ...]:
    """Card resources of a node beyond the one that its row holds (mixed MIG)."""
    try:
        return cards(amounts(node.status.capacity))[2]
    except ValueError:
        return ()


def _about(node: Node, cluster: str) -> Row:
    labels = node.labels
    try:
        capacity = amounts(node.status.capacity)
        card, count, _ = cards(capacity)
        cpu = milli(capacity["cpu"]) if "cpu" in capacity else None
        memory = whole(capacity["memory"]) if "memory" in capacity else None
    except ValueError as error:
        raise Rejected("bad_number", f"{node.place}: {error}") from None
    return {
        "cluster": cluster,
        "node": node.metadata.name,
        "provider_id": node.spec.provider_id,
        "instance_type": _first(labels, _TYPE),
        "capacity_type": capacity_type(labels),
        "region": _first(labels, _REGION),
        "zone": _first(labels, _ZONE),
        "cpu_millicores": cpu,
        "memory_bytes": memory,
        "gpus": count,
        "gpu_resource": card,
        "gpu_model": _first(labels, _MODEL),
        "labels": canonical(labels),
    }


def capacity_type(labels: Mapping[str, str]) -> str | None:
    """on-demand, spot or reserved by the provider's label; None if no label says so."""
    if any(labels.get(flag) == "true" for flag in _SPOT_FLAGS):
        return "spot"
    value = (_first(labels, _CAPACITY) or "").lower().replace("_", "-")
    return _CAPACITY_NAMES.get(value, value) or None


def _first(labels: Mapping[str, str], keys: tuple[str, ...]) -> str | None:
    return next((labels[key] for key in keys if labels.get(key)), None)
