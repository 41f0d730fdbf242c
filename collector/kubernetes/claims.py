"""Rows of the table ``claims``: the cards that pods hold by dynamic resource allocation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction

from collector.kubernetes.device_objects import (
    Allocation,
    Requirement,
    ResourceClaim,
    Result,
)
from collector.kubernetes.devices import Devices
from collector.kubernetes.frames import Row, days_of
from collector.kubernetes.objects import Pod
from collector.kubernetes.rejects import Rejected
from collector.kubernetes.times import moment
from ledger.text import canonical_json
from ledger.window import Window

_NODE_KEYS = ("metadata.name", "kubernetes.io/hostname")
Name = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True)
class Holder:
    """A pod that may hold claims.

    Args:
        pod: The pod.
        bound_at: When it took its node; None if it never did.
        cards: Whether it asks for cards as a resource as well.
    """

    pod: Pod
    bound_at: datetime | None
    cards: bool

    @property
    def claims(self) -> Iterator[str]:
        """Names of its claims, generated ones included."""
        for reference in self.pod.spec.resource_claims or ():
            if reference.resource_claim_name:
                yield reference.resource_claim_name
        for generated in self.pod.status.resource_claim_statuses or ():
            if generated.resource_claim_name:
                yield generated.resource_claim_name

    @property
    def of_request(self) -> str | None:
        """Name of the claim that the scheduler made for a request of cards as a resource.

        Its devices are what the request already counts (Kubernetes: KEP-5004).
        """
        found = self.pod.status.extended_resource_claim_status
        return found.resource_claim_name if found and self.cards else None


@dataclass
class Holders:
    """The pods of a snapshot by the claims that they name."""

    by_claim: dict[Name, list[Holder]] = field(default_factory=dict)
    by_uid: dict[str, Holder] = field(default_factory=dict)
    counted: set[Name] = field(default_factory=set)

    def add(self, holder: Holder) -> None:
        """Note one pod."""
        namespace = holder.pod.metadata.namespace or "default"
        self.by_uid[holder.pod.metadata.uid] = holder
        for name in holder.claims:
            self.by_claim.setdefault((namespace, name), []).append(holder)
        if holder.of_request:
            self.counted.add((namespace, holder.of_request))


@dataclass(frozen=True)
class ClaimReader:
    """Reads claims into rows.

    Args:
        cluster: The cluster's name in the settings.
        devices: The devices of its slices.
        holders: Its pods.
        nodes: Names of its nodes by name and by host name.
    """

    cluster: str
    devices: Devices
    holders: Holders
    nodes: Mapping[str, str]

    def rows(self, claim: ResourceClaim, window: Window, now: datetime | None) -> Iterator[Row]:
        """A claim's days: from its allocation to ``now``, or to the end of the window.

        None for one that is not allocated, holds no card, or stands for a request of its pod.

        Raises:
            Rejected: ``bad_date`` or ``bad_number``.
        """
        allocation = claim.status.allocation
        name = (claim.metadata.namespace or "default", claim.metadata.name)
        if allocation is None or name in self.holders.counted:
            return
        cards = [item for item in allocation.devices.results or () if self.devices.is_card(item)]
        if not cards:
            return
        facts = {
            "cluster": self.cluster,
            "uid": claim.metadata.uid,
            "namespace": name[0],
            "claim": name[1],
            "node": self._node(allocation, cards),
            "cards": self._cards(claim, cards),
            "pods": canonical_json(self._pods(claim, name)),
        }
        start = self._start(claim, allocation, now)
        deleted = moment(claim.metadata.deletion_timestamp, now)
        # One that is being deleted is held until its pods are gone.
        end = deleted if deleted and not claim.status.reserved_for else now or window.end
        for day, first, last in days_of(start or window.start, min(end, window.end), window):
            yield {**facts, "day": day, "start": first, "end": last}

    def _cards(self, claim: ResourceClaim, results: Iterable[Result]) -> str | None:
        try:
            parts = [self.devices.part(item) for item in results]
        except ValueError as error:
            raise Rejected("bad_number", f"{claim.place}: {error}") from None
        known = [part for part in parts if part is not None]
        return str(sum(known, Fraction(0))) if len(known) == len(parts) else None

    def _start(
        self, claim: ResourceClaim, allocation: Allocation, now: datetime | None
    ) -> datetime | None:
        """When it was allocated; else when its only pod was bound; else when it was created."""
        told = moment(allocation.allocation_timestamp, now)
        created = moment(claim.metadata.creation_timestamp, now)
        owners = [item.uid for item in claim.metadata.owner_references or () if item.kind == "Pod"]
        pod = self.holders.by_uid.get(owners[0]) if owners else None
        return told or (pod.bound_at if pod else None) or created

    def _pods(self, claim: ResourceClaim, name: Name) -> list[str]:
        reserved = [item.uid for item in claim.status.reserved_for or () if item.resource == "pods"]
        named = [
            holder.pod.metadata.uid
            for holder in self.holders.by_claim.get(name, ())
            if holder.bound_at
        ]
        return sorted({uid for uid in (*reserved, *named) if uid})

    def _node(self, allocation: Allocation, results: Sequence[Result]) -> str | None:
        """The node that the allocation selects; else the one whose pool the devices are of."""
        selector = allocation.node_selector
        for term in (selector.node_selector_terms if selector else None) or ():
            rules: list[Requirement] = [
                *(term.match_fields or ()),
                *(term.match_expressions or ()),
            ]
            for rule in rules:
                values = rule.values or []
                if rule.key in _NODE_KEYS and rule.operator == "In" and len(values) == 1:
                    return self.nodes.get(values[0], values[0])
        named = {
            self.devices.node_of(item.driver, item.pool) or self.nodes.get(item.pool)
            for item in results
        }
        return min(named, key=str) if len(named) == 1 else None


def unread(holders: Holders, claims: Mapping[Name, ResourceClaim]) -> list[str]:
    """Bound pods whose claims are not there, or no longer allocated: what they held is unknown."""
    missing = {
        holder.pod.place
        for name, every in holders.by_claim.items()
        if name not in claims or claims[name].status.allocation is None
        for holder in every
        if holder.bound_at
    }
    return sorted(missing)
