"""Rows of the table ``resources``: status and policy that rules and identity look at.

``docs/resources.md`` has the keys of each kind's configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from collector.kubernetes import autoscaler, jobs, queues, scaling
from collector.kubernetes.frames import Row
from collector.kubernetes.kinds import (
    AUTOSCALER_STATUS,
    CLUSTER_QUEUES,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    JOB_KINDS,
    LOCAL_QUEUES,
    NAMESPACES,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PODS,
    PROVISIONING_REQUESTS,
    QUOTAS,
    RAY_CLUSTERS,
    RAY_JOBS,
    RESOURCE_FLAVORS,
    VOLCANO_JOBS,
    WORKFLOWS,
    WORKLOADS,
    Kind,
)
from collector.kubernetes.objects import Node, Object, ResourceQuota
from collector.kubernetes.rejects import Rejected
from collector.kubernetes.scaling_objects import AutoscalerStatus, Deployment
from collector.kubernetes.snapshot import Snapshot
from collector.kubernetes.states import Clock, Configuration, plain
from collector.kubernetes.times import moment
from ledger.text import canonical_json
from ledger.window import Window

_NODE_GROUP, _AUTOSCALER = "NodeGroup", "ClusterAutoscaler"

Said = Callable[[Any, Clock], Configuration | None]


def _namespace(item: Object, _: Clock) -> Configuration:
    return {"labels": item.labels}


def _quota(item: ResourceQuota, _: Clock) -> Configuration:
    return plain(item.spec) | plain(item.status)


def _node(item: Node, _: Clock) -> Configuration | None:
    return scaling.node(item)


READ: Mapping[Kind, Said] = {
    NAMESPACES: _namespace,
    QUOTAS: _quota,
    PODS: scaling.pod,
    NODES: _node,
    RAY_JOBS: jobs.ray_job,
    RAY_CLUSTERS: jobs.ray_cluster,
    **dict.fromkeys(JOB_KINDS, jobs.job),
    VOLCANO_JOBS: jobs.volcano_job,
    WORKFLOWS: jobs.workflow,
    WORKLOADS: queues.workload,
    CLUSTER_QUEUES: queues.cluster_queue,
    LOCAL_QUEUES: queues.local_queue,
    RESOURCE_FLAVORS: queues.resource_flavor,
    NODE_POOLS: scaling.node_pool,
    NODE_CLAIMS: scaling.node_claim,
    PROVISIONING_REQUESTS: scaling.provisioning_request,
    DISRUPTION_BUDGETS: scaling.disruption_budget,
}
"""Kind to what is told of an object of it; None: nothing that anybody asks about."""


@dataclass(frozen=True)
class _Found:
    """A resource, and since when it has been there."""

    kind: str
    namespace: str | None
    name: str
    uid: str | None
    configuration: Configuration
    created: datetime | None = None


def resource_rows(snapshot: Snapshot, cluster: str, window: Window) -> Iterator[Row]:
    """Jobs and clusters of jobs, queues and quotas, node pools, autoscalers and what stops them.

    A snapshot knows the present only: it stands on every day of the window on which the object
    was there already.
    """
    found = [*_listed(snapshot), *_autoscalers(snapshot)]
    for day in window.days():
        end = Window.of_day(day).end
        for each in found:
            if each.created and each.created >= end:
                continue
            yield {
                "day": day,
                "cluster": cluster,
                "kind": each.kind,
                "namespace": each.namespace,
                "name": each.name,
                "uid": each.uid,
                "seen_at": snapshot.taken_at,
                "configuration": canonical_json(each.configuration),
            }


def told(snapshot: Snapshot) -> bool:
    """Whether the snapshot speaks of resources at all, be it to say that there are none."""
    return any(kind in snapshot.lists for kind in READ if kind not in (PODS, NODES))


def _listed(snapshot: Snapshot) -> Iterator[_Found]:
    for kind, read in READ.items():
        name = name_of(kind)
        for item in snapshot.of(kind, kind.form):
            meta = item.metadata
            clock = Clock(snapshot.taken_at, snapshot.rejects, f"{name} {item.place}")
            configuration = read(item, clock)
            if configuration is not None:
                created = _created(item, snapshot.taken_at)
                yield _Found(
                    name, meta.namespace, meta.name, meta.uid or None, configuration, created
                )


def name_of(kind: Kind) -> str:
    """The kind as ``resources`` names it: jobs of Volcano bear their group, as kubectl has it."""
    return f"{kind.name}.{kind.group}" if kind is VOLCANO_JOBS else kind.name


def _created(item: Object, now: datetime | None) -> datetime | None:
    try:
        return moment(item.metadata.creation_timestamp, now)
    except Rejected:
        return None


def _autoscalers(snapshot: Snapshot) -> Iterator[_Found]:
    """Cluster Autoscaler, by its flags and by what it tells; and the groups of nodes."""
    groups = scaling.node_groups(snapshot.of(NODES, Node))
    found: dict[tuple[str | None, str], Configuration] = {}
    for item in snapshot.of(DEPLOYMENTS, Deployment):
        flags = autoscaler.flags(item)
        if flags is not None:
            found[item.metadata.namespace, item.metadata.name] = flags
    state, sizes = _status(snapshot)
    if state:
        place = min(found, default=(autoscaler.NAMESPACE, autoscaler.PROGRAM), key=str)
        found[place] = found.get(place, {}) | state
    for name, size in sizes.items():
        groups[name] = size | groups.get(name, {})
    for (namespace, name), configuration in found.items():
        yield _Found(_AUTOSCALER, namespace, name, None, configuration)
    for name, configuration in groups.items():
        yield _Found(_NODE_GROUP, None, name, None, configuration)


def _status(snapshot: Snapshot) -> tuple[Configuration, dict[str, Configuration]]:
    wanted = (autoscaler.NAMESPACE, autoscaler.NAME)
    for item in snapshot.of(AUTOSCALER_STATUS, AutoscalerStatus):
        if (item.metadata.namespace, item.metadata.name) == wanted:
            clock = Clock(snapshot.taken_at, snapshot.rejects, f"ConfigMap {item.place}")
            return autoscaler.status(item, clock)
    return {}, {}
