"""The parts of dynamic resource allocation that runbill reads: claims and slices, as structs.

Versions ``v1`` and ``v1beta2`` have the same form; ``v1beta1`` puts what describes a device into
``basic``.
"""

from __future__ import annotations

import msgspec

from collector.kubernetes.objects import Object, Part


class Attribute(Part):
    """``attributes.*``, where it is a text."""

    string: str | None = None


class Capacity(Part):
    """``capacity.*`` and counters."""

    value: str | float | None = None


class Consumption(Part):
    """``consumesCounters[]``, and ``sharedCounters[]`` under ``name``."""

    name: str = ""
    counter_set: str = ""
    counters: dict[str, Capacity] | None = None


class Description(Part):
    """What a device says of itself."""

    attributes: dict[str, Attribute] | None = None
    capacity: dict[str, Capacity] | None = None
    consumes_counters: list[Consumption] | None = None
    node_name: str | None = None


class Device(Description):
    """``spec.devices[]``."""

    name: str = ""
    basic: Description | None = None

    @property
    def description(self) -> Description:
        """What it says of itself, in whichever version."""
        return self.basic or self


class Pool(Part):
    """``spec.pool``."""

    name: str = ""
    generation: int = 0


class SliceSpec(Part):
    """``spec`` of a ResourceSlice."""

    driver: str = ""
    pool: Pool = msgspec.field(default_factory=Pool)
    node_name: str | None = None
    devices: list[Device] | None = None
    shared_counters: list[Consumption] | None = None


class ResourceSlice(Object):
    """A ResourceSlice: devices that a driver offers on a node."""

    spec: SliceSpec = msgspec.field(default_factory=SliceSpec)


class Requirement(Part):
    """``matchFields[]`` and ``matchExpressions[]``."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class Term(Part):
    """``nodeSelectorTerms[]``."""

    match_fields: list[Requirement] | None = None
    match_expressions: list[Requirement] | None = None


class NodeSelector(Part):
    """``allocation.nodeSelector``."""

    node_selector_terms: list[Term] | None = None


class Result(Part):
    """``allocation.devices.results[]``."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, str | int | float] | None = None


class Results(Part):
    """``allocation.devices``."""

    results: list[Result] | None = None


class Allocation(Part):
    """``status.allocation``."""

    devices: Results = msgspec.field(default_factory=Results)
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class Consumer(Part):
    """``status.reservedFor[]``."""

    resource: str = ""
    name: str = ""
    uid: str = ""


class ClaimStatus(Part):
    """``status`` of a ResourceClaim."""

    allocation: Allocation | None = None
    reserved_for: list[Consumer] | None = None


class ResourceClaim(Object):
    """A ResourceClaim: devices that pods hold."""

    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)
