"""The parts of Kubernetes objects that runbill reads, as partial structs.

Keys that are not named here are skipped while decoding. Lists, maps and parts may be null or
missing, as Go's encoder writes both. Times and quantities stay text, so that one odd value costs
one object, never the list.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

V = TypeVar("V")


class _Part(msgspec.Struct, rename="camel", gc=False):
    """A part of an object; attribute ``first_name`` reads the key ``firstName``."""


class OwnerReference(_Part):
    """``metadata.ownerReferences[]``."""

    kind: str
    name: str
    uid: str = ""
    controller: bool | None = None


class Metadata(_Part):
    """``metadata``."""

    name: str = ""
    namespace: str | None = None
    uid: str = ""
    resource_version: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None


class Object(_Part):
    """Any object: what owner chains need."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)

    @property
    def labels(self) -> dict[str, str]:
        """The labels, empty where there are none."""
        return self.metadata.labels or {}

    @property
    def place(self) -> str:
        """``namespace/name``, for a reader."""
        where = self.metadata.namespace
        return f"{where}/{self.metadata.name}" if where else self.metadata.name


class Resources(_Part):
    """``resources`` of a container or of a pod."""

    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class Variable(_Part):
    """``env[]``; one that takes its value from elsewhere has no ``value``."""

    name: str = ""
    value: str | None = None


class Container(_Part):
    """``spec.containers[]`` and ``spec.initContainers[]``."""

    name: str = ""
    resources: Resources | None = None
    env: list[Variable] | None = None
    restart_policy: str | None = None


class PodSpec(_Part):
    """``spec`` of a pod."""

    node_name: str | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: dict[str, str | int | float] | None = None
    resources: Resources | None = None


class Waiting(_Part):
    """``state.waiting``."""

    reason: str | None = None


class Running(_Part):
    """``state.running``."""

    started_at: str | None = None


class Terminated(_Part):
    """``state.terminated``."""

    reason: str | None = None
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(_Part):
    """``state`` or ``lastState``: at most one of the three is set."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(_Part):
    """``status.containerStatuses[]`` and ``status.initContainerStatuses[]``."""

    name: str = ""
    restart_count: int = 0
    state: ContainerState | None = None
    last_state: ContainerState | None = None


class Condition(_Part):
    """``status.conditions[]``."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    last_transition_time: str | None = None


class PodStatus(_Part):
    """``status`` of a pod."""

    phase: str | None = None
    reason: str | None = None
    start_time: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class Pod(Object):
    """A pod."""

    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class NodeSpec(_Part):
    """``spec`` of a node."""

    provider_id: str | None = msgspec.field(default=None, name="providerID")


class NodeStatus(_Part):
    """``status`` of a node."""

    capacity: dict[str, str | int | float] | None = None


class Node(Object):
    """A node."""

    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class RayJobSpec(_Part, omit_defaults=True):
    """``spec`` of a RayJob: what decides how long its cluster stays."""

    shutdown_after_job_finishes: bool | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool | None = None


class RayJobStatus(_Part, omit_defaults=True):
    """``status`` of a RayJob."""

    job_id: str | None = None
    job_status: str | None = None
    job_deployment_status: str | None = None
    ray_cluster_name: str | None = None
    start_time: str | None = None
    end_time: str | None = None


class RayJob(Object):
    """A RayJob."""

    spec: RayJobSpec = msgspec.field(default_factory=RayJobSpec)
    status: RayJobStatus = msgspec.field(default_factory=RayJobStatus)


class Disruption(_Part, omit_defaults=True):
    """``spec.disruption`` of a Karpenter NodePool."""

    consolidation_policy: str | None = None
    consolidate_after: str | None = None


class NodePoolSpec(_Part, omit_defaults=True):
    """``spec`` of a Karpenter NodePool."""

    disruption: Disruption | None = None
    limits: dict[str, str | int | float] | None = None
    weight: int | None = None


class NodePool(Object):
    """A Karpenter NodePool."""

    spec: NodePoolSpec = msgspec.field(default_factory=NodePoolSpec)


class ListMetadata(_Part):
    """``metadata`` of a list."""

    continue_: str | None = msgspec.field(default=None, name="continue")


class Document(_Part):
    """A list, or a single object, not yet decoded further."""

    kind: str = ""
    api_version: str = ""
    metadata: ListMetadata | None = None
    items: list[msgspec.Raw] | None = None
