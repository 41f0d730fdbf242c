"""What adds and removes nodes: pools, machines, groups, budgets, and what stands in the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from collector.cards import rank
from collector.kubernetes.objects import Node, Pod
from collector.kubernetes.scaling_objects import (
    DisruptionBudget,
    NodeClaim,
    NodePool,
    ProvisioningRequest,
)
from collector.kubernetes.states import Clock, Configuration, known, plain, since
from collector.labels import NodeLabels

MANAGERS: Mapping[str, str] = {
    "karpenter.sh/nodepool": "karpenter",
    "karpenter.sh/provisioner-name": "karpenter",
    "eks.amazonaws.com/nodegroup": "eks",
    "alpha.eksctl.io/nodegroup-name": "eksctl",
    "cloud.google.com/gke-nodepool": "gke",
    "kubernetes.azure.com/agentpool": "aks",
    "agentpool": "aks",
    "kops.k8s.io/instancegroup": "kops",
    "doks.digitalocean.com/node-pool": "doks",
    "k8s.scaleway.com/pool-name": "kapsule",
    "compute.coreweave.com/node-pool": "coreweave",
}
"""Label that names the group of a node, to who manages it; the first that is present wins."""

KEPT = (
    "cluster-autoscaler.kubernetes.io/scale-down-disabled",
    "karpenter.sh/do-not-disrupt",
    "karpenter.sh/do-not-consolidate",
)
"""Annotations of a node that keep an autoscaler from removing it."""

LEAVING = (
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
)
"""Taints of a node that an autoscaler is about to remove."""

_POD_KEPT = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "safeToEvict",
    "karpenter.sh/do-not-disrupt": "doNotDisrupt",
    "karpenter.sh/do-not-evict": "doNotDisrupt",
}
_GROUP_LABELS = {
    "cloud.google.com/gke-queued": "queued",
    "cloud.google.com/gke-flex-start": "flexStart",
    "eks.amazonaws.com/capacity-reservation-id": "capacityReservation",
    "karpenter.k8s.aws/capacity-reservation-id": "capacityReservation",
}
_PARAMETERS = ("maxRunDurationSeconds", "ValidUntilSeconds")


def node_pool(item: NodePool, _: Clock) -> Configuration:
    """A Karpenter NodePool: when it removes nodes, how many at once, and how far it may grow."""
    spec = item.spec
    said = plain(spec) | plain(item.status)
    claim = plain(spec.template.spec) if spec.template else {}
    said.pop("template", None)
    before = (said.get("disruption") or {}).pop("expireAfter", None)  # where it stood until v1
    return {**said, **({"expireAfter": before} if before else {}), **claim}


def node_claim(item: NodeClaim, clock: Clock) -> Configuration:
    """A machine of Karpenter: its pool and node, and since when it can be consolidated or left."""
    return known(
        {
            **plain(item.spec),
            "nodePool": item.labels.get("karpenter.sh/nodepool"),
            "nodeName": item.status.node_name,
            "providerID": item.status.provider_id,
            "createdAt": clock.read(item.metadata.creation_timestamp),
            "deletingSince": clock.read(item.metadata.deletion_timestamp),
            "conditions": since(item.status.conditions, clock),
        }
    )


def provisioning_request(item: ProvisioningRequest, clock: Clock) -> Configuration:
    """Nodes asked for all at once; ``conditions``: Accepted, Provisioned, Failed, ..."""
    given = item.spec.parameters or {}
    return known(
        {
            "provisioningClassName": item.spec.provisioning_class_name,
            "parameters": {name: given[name] for name in _PARAMETERS if name in given} or None,
            "submittedAt": clock.read(item.metadata.creation_timestamp),
            "conditions": since(item.status.conditions, clock),
        }
    )


def disruption_budget(item: DisruptionBudget, _: Clock) -> Configuration:
    """A PodDisruptionBudget; one that allows nothing keeps its nodes."""
    return plain(item.spec) | plain(item.status)


def pod(item: Pod, clock: Clock) -> Configuration | None:
    """How a pod ends that holds a device, or that keeps its node; None for any other."""
    if not item.spec.node_name:
        return None
    annotations = item.metadata.annotations or {}
    kept = {
        key: annotations[name].lower() == "true"
        for name, key in _POD_KEPT.items()
        if name in annotations
    }
    if not kept and not _holds_device(item):
        return None
    meta = item.metadata
    return known(
        {
            **kept,
            "node": item.spec.node_name,
            "terminationGracePeriodSeconds": item.spec.termination_grace_period_seconds,
            "priorityClassName": item.spec.priority_class_name,
            "deletingSince": clock.read(meta.deletion_timestamp),
            "deletionGracePeriodSeconds": meta.deletion_grace_period_seconds,
        }
    )


def _holds_device(item: Pod) -> bool:
    if item.spec.resource_claims:
        return True
    parts = (each.resources for each in item.spec.containers or ())
    asked = (name for part in parts if part for name in (part.limits or part.requests or ()))
    return any(rank(name) is not None for name in asked)


def node(item: Node) -> Configuration | None:
    """What keeps or takes a node; None where nothing does."""
    annotations = item.metadata.annotations or {}
    kept = [name for name in KEPT if annotations.get(name, "").lower() == "true"]
    leaving = [taint.key for taint in item.spec.taints or () if taint.key in LEAVING]
    if not kept and not leaving and not item.spec.unschedulable:
        return None
    group = group_of(item)
    return known(
        {
            "kept": kept or None,
            "leaving": sorted(leaving) or None,
            "unschedulable": item.spec.unschedulable,
            "nodeGroup": group[1] if group else None,
        }
    )


def group_of(item: Node) -> tuple[str, str] | None:
    """Who manages a node, and the name of its group there."""
    found = ((who, item.labels[label]) for label, who in MANAGERS.items() if item.labels.get(label))
    return next(found, None)


@dataclass
class _Group:
    manager: str
    nodes: int = 0
    kept: int = 0
    leaving: int = 0
    capacity: Counter[str] = field(default_factory=Counter)
    told: Configuration = field(default_factory=dict)


def node_groups(nodes: Iterable[Node]) -> dict[str, Configuration]:
    """The groups that labels of nodes name, by name, with what is known of their nodes."""
    groups: dict[str, _Group] = {}
    for item in nodes:
        named = group_of(item)
        if named is None:
            continue
        group = groups.setdefault(named[1], _Group(named[0]))
        state = node(item) or {}
        group.nodes += 1
        group.kept += "kept" in state
        group.leaving += "leaving" in state
        if kind := NodeLabels(item.labels).capacity_type:
            group.capacity[kind] += 1
        for label, key in _GROUP_LABELS.items():
            if value := item.labels.get(label):
                group.told[key] = value
    return {name: _group(group) for name, group in sorted(groups.items())}


def _group(group: _Group) -> Configuration:
    counted = {
        "nodes": group.nodes,
        "nodesKept": group.kept,
        "nodesLeaving": group.leaving,
        "capacityTypes": dict(sorted(group.capacity.items())),
    }
    return {"manager": group.manager, **counted, **group.told}
