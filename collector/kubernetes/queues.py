"""Queues and what waits in them: Kueue's quotas and workloads."""

from __future__ import annotations

from collections.abc import Iterable

from collector.kubernetes.objects import Condition
from collector.kubernetes.queue_objects import (
    ClusterQueue,
    Flavor,
    LocalQueue,
    QueueStatus,
    ResourceFlavor,
    Workload,
)
from collector.kubernetes.states import Clock, Configuration, common, plain
from collector.kubernetes.times import span_seconds

_TIMES = {
    "QuotaReserved": "quotaReservedAt",
    "Admitted": "admittedAt",
    "PodsReady": "podsReadyAt",
    "Evicted": "evictedAt",
    "Preempted": "preemptedAt",
    "Finished": "finishedAt",
}


def cluster_queue(item: ClusterQueue, _: Clock) -> Configuration:
    """A ClusterQueue: per flavor and resource its quota, and what is used and borrowed of it."""
    spec, status = item.spec, item.status
    flavors = [each for group in spec.resource_groups or () for each in group.flavors or ()]
    said = {
        **plain(spec),
        "cohort": spec.cohort or spec.cohort_name,
        "quotas": _amounts(flavors),
        **_state(status),
    }
    return _without_lists(said, "resourceGroups", "cohortName")


def local_queue(item: LocalQueue, _: Clock) -> Configuration:
    """A LocalQueue: the namespace's way into a ClusterQueue, and what it uses of it."""
    return {**plain(item.spec), **_state(item.status)}


def resource_flavor(item: ResourceFlavor, _: Clock) -> Configuration:
    """A ResourceFlavor: which nodes a quota is about."""
    return plain(item.spec)


def _state(status: QueueStatus) -> Configuration:
    used = status.flavors_usage or status.flavor_usage
    reserved = _amounts(status.flavors_reservation)
    said = {**plain(status), "usage": _amounts(used), "reservation": reserved}
    return _without_lists(said, "flavorsUsage", "flavorUsage", "flavorsReservation")


def _without_lists(data: Configuration, *keys: str) -> Configuration:
    return {key: value for key, value in data.items() if key not in keys and value is not None}


def _amounts(flavors: Iterable[Flavor] | None) -> Configuration | None:
    """Flavor to resource to amounts; None where nothing is told."""
    found: Configuration = {}
    for flavor in flavors or ():
        resources = found.setdefault(flavor.name, {})
        for each in flavor.resources or ():
            amounts = plain(each)
            resources[amounts.pop("name", "")] = amounts
    return found or None


def workload(item: Workload, clock: Clock) -> Configuration:
    """A Workload: when it came, got its quota, lost it and ended; ``waitSeconds`` in the queue.

    ``waitSeconds`` counts from its creation until it was admitted. It is absent while the workload
    waits, and where it was put off before: the API forgets when (``evictedBefore``).
    """
    status = item.status
    held = {each.type: each for each in status.conditions or ()}
    times = {
        name: at
        for kind, name in _TIMES.items()
        if (each := held.get(kind))
        and each.status == "True"
        and (at := clock.read(each.last_transition_time))
    }
    admission = status.admission
    assigned = (admission.pod_set_assignments if admission else None) or ()
    flavors = {flavor for each in assigned for flavor in (each.flavors or {}).values()}
    before = common(item, clock)
    said = {
        **plain(item.spec),
        **before,
        **times,
        "state": _state_of(held),
        "clusterQueue": admission.cluster_queue if admission else None,
        "flavors": sorted(flavors) or None,
        "evictionReason": _reason(held.get("Evicted")) if "evictedAt" in times else None,
        "evictedBefore": ("Evicted" in held and "evictedAt" not in times) or None,
        "requeues": status.requeue_state.count if status.requeue_state else None,
        "reason": _reason(held.get("Finished")) or _reason(held.get("QuotaReserved")),
        "waitSeconds": None
        if "Evicted" in held
        else span_seconds(before.get("submittedAt"), times.get("admittedAt")),
    }
    return {key: value for key, value in said.items() if value is not None or key == "owner"}


def _state_of(held: dict[str, Condition]) -> str:
    def true(kind: str) -> bool:
        return kind in held and held[kind].status == "True"

    if true("Finished"):
        return "failed" if (held["Finished"].reason or "").endswith("Failed") else "finished"
    if true("Admitted"):
        return "admitted"
    if true("QuotaReserved"):
        return "reserved"
    return "evicted" if true("Evicted") else "pending"


def _reason(condition: Condition | None) -> str | None:
    return condition.reason if condition else None
