"""The parts of Kubernetes objects that runbill reads, as partial structs.

Keys that are not named here are skipped while decoding. Lists, maps and parts may be null or
missing, as Go's encoder writes both. Times and quantities stay text, so that one odd value costs
one object, never the list.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

V = TypeVar("V")
Scalar = str | int | float | bool | None
"""A value that is kept as it is: versions of a custom resource differ in how they write it."""


class Part(msgspec.Struct, rename="camel", gc=False):
    """A part of an object; attribute ``first_name`` reads the key ``firstName``."""


class OwnerReference(Part):
    """``metadata.ownerReferences[]``."""

    kind: str
    name: str
    uid: str = ""
    controller: bool | None = None
    api_version: str = ""

    @property
    def group(self) -> str:
        """API group, empty for the core."""
        return self.api_version.rpartition("/")[0]


class Metadata(Part):
    """``metadata``."""

    name: str = ""
    namespace: str | None = None
    uid: str = ""
    resource_version: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None


class Object(Part):
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


class Resources(Part):
    """``resources`` of a container or of a pod."""

    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class FieldReference(Part):
    """``env[].valueFrom.fieldRef``: a field of the pod itself."""

    field_path: str = ""


class ValueSource(Part):
    """``env[].valueFrom``; which secret or config map a value comes from is not read."""

    field_ref: FieldReference | None = None


class Variable(Part):
    """``env[]``; one that takes its value from elsewhere has no ``value``."""

    name: str = ""
    value: str | None = None
    value_from: ValueSource | None = None


class Container(Part):
    """``spec.containers[]`` and ``spec.initContainers[]``."""

    name: str = ""
    resources: Resources | None = None
    env: list[Variable] | None = None
    restart_policy: str | None = None


class ClaimSource(Part):
    """``volumes[].persistentVolumeClaim``."""

    claim_name: str = ""


class Ephemeral(Part):
    """``volumes[].ephemeral``: a claim that lives with the pod."""


class PodVolume(Part):
    """``volumes[]``."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Ephemeral | None = None


class PodClaim(Part):
    """``resourceClaims[]``, and ``status.resourceClaimStatuses[]`` with the generated name."""

    name: str = ""
    resource_claim_name: str | None = None


class PodSpec(Part):
    """``spec`` of a pod."""

    node_name: str | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: dict[str, str | int | float] | None = None
    resources: Resources | None = None
    volumes: list[PodVolume] | None = None
    resource_claims: list[PodClaim] | None = None
    termination_grace_period_seconds: int | None = None
    priority_class_name: str | None = None


class Waiting(Part):
    """``state.waiting``."""

    reason: str | None = None


class Running(Part):
    """``state.running``."""

    started_at: str | None = None


class Terminated(Part):
    """``state.terminated``."""

    reason: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(Part):
    """``state`` or ``lastState``: at most one of the three is set."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Part):
    """``status.containerStatuses[]`` and ``status.initContainerStatuses[]``."""

    name: str = ""
    restart_count: int = 0
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    allocated_resources: dict[str, str | int | float] | None = None
    resources: Resources | None = None


class Condition(Part):
    """``status.conditions[]``."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    last_transition_time: str | None = None


class PodStatus(Part):
    """``status`` of a pod."""

    phase: str | None = None
    reason: str | None = None
    start_time: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    allocated_resources: dict[str, str | int | float] | None = None
    resources: Resources | None = None
    resource_claim_statuses: list[PodClaim] | None = None
    extended_resource_claim_status: PodClaim | None = None


class Pod(Object):
    """A pod."""

    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class Taint(Part):
    """``spec.taints[]``."""

    key: str = ""
    value: str | None = None
    effect: str = ""


class NodeSpec(Part):
    """``spec`` of a node."""

    provider_id: str | None = msgspec.field(default=None, name="providerID")
    taints: list[Taint] | None = None
    unschedulable: bool | None = None


class NodeStatus(Part):
    """``status`` of a node."""

    capacity: dict[str, str | int | float] | None = None


class Node(Object):
    """A node."""

    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class QuotaSpec(Part, omit_defaults=True):
    """``spec`` of a ResourceQuota."""

    hard: dict[str, str | int | float] | None = None
    scopes: list[str] | None = None


class QuotaStatus(Part, omit_defaults=True):
    """``status`` of a ResourceQuota."""

    used: dict[str, str | int | float] | None = None


class ResourceQuota(Object):
    """A ResourceQuota."""

    spec: QuotaSpec = msgspec.field(default_factory=QuotaSpec)
    status: QuotaStatus = msgspec.field(default_factory=QuotaStatus)


class ListMetadata(Part):
    """``metadata`` of a list."""

    continue_: str | None = msgspec.field(default=None, name="continue")


class Document(Part):
    """A list, or a single object, not yet decoded further."""

    kind: str = ""
    api_version: str = ""
    metadata: ListMetadata | None = None
    items: list[msgspec.Raw] | None = None
