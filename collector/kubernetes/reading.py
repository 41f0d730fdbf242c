"""One reading of a cluster: the rows of each table, and what cannot be told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from functools import cached_property

from collector.cards import choose
from collector.gaps import about, of_layouts
from collector.kubernetes.claims import ClaimReader, Holder, Holders, unread
from collector.kubernetes.device_objects import ResourceClaim, ResourceSlice
from collector.kubernetes.devices import Devices
from collector.kubernetes.events import Event, PodEvents
from collector.kubernetes.frames import Row
from collector.kubernetes.kinds import (
    CLAIMS,
    EVENTS,
    NODES,
    PODS,
    SLICES,
    VOLUME_CLAIMS,
    VOLUMES,
    Kind,
)
from collector.kubernetes.life import life
from collector.kubernetes.nodes import node_layout, node_rows
from collector.kubernetes.objects import Node, Object, Pod
from collector.kubernetes.owners import Owners
from collector.kubernetes.rejects import Rejected
from collector.kubernetes.snapshot import Snapshot
from collector.kubernetes.volume_objects import PersistentVolume, PersistentVolumeClaim
from collector.kubernetes.volumes import mount_rows, volume_rows, volumes_by_claim
from collector.kubernetes.workloads import pod_facts, pod_request, workload_rows
from collector.layouts import Layout
from ledger.facts import Gap
from ledger.window import Window


class Reading:
    """The rows of a snapshot; gaps and rejected objects go into the snapshot itself.

    ``workloads`` comes first: claims and mounts look at the pods that it has read.

    Args:
        seen: The snapshot.
        cluster: The cluster's name in the settings.
        window: The days asked for.
        annotations: Globs of further annotation keys to keep.
        variables: Names of variables to keep.
        alone: Whether no other source sees the cluster's pods.
    """

    def __init__(
        self,
        seen: Snapshot,
        cluster: str,
        window: Window,
        annotations: Sequence[str],
        *,
        variables: frozenset[str],
        alone: bool,
    ) -> None:
        self._seen = seen
        self._cluster = cluster
        self._window = window
        self._keep = annotations
        self._variables = variables
        self._alone = alone
        self._holders = Holders()
        self._mounting: list[tuple[Pod, list[date]]] = []

    @cached_property
    def _devices(self) -> Devices:
        return Devices(self._seen.of(SLICES, ResourceSlice))

    def workloads(self) -> Iterator[Row]:
        """Pods: one row per day and span of a life."""
        seen, window = self._seen, self._window
        owners = Owners(seen)
        events = PodEvents(seen.of(EVENTS, Event), seen.taken_at)
        unknown_end: list[str] = []
        listed: set[str] = set()
        for pod in seen.of(PODS, Pod):
            listed.add(pod.metadata.uid)
            try:
                lived = life(pod, seen.taken_at, events.told(pod.metadata.uid))
                request = pod_request(pod)
            except Rejected as rejected:
                self._reject(PODS, pod, rejected)
                continue
            # A pod is named on the days it touches, not for as long as the API remembers it.
            if lived.end_unknown and _inside(lived.bound_at, window):
                unknown_end.append(pod.place)
            facts = pod_facts(
                pod, self._cluster, request, owners.of(pod), self._keep, self._variables
            )
            rows = list(workload_rows(facts, lived, window, seen.taken_at))
            if rows:
                bound = lived.bound_at if pod.spec.node_name else None
                self._holders.add(Holder(pod, bound, bool(choose(request).units)))
                self._mounting.append((pod, [row["day"] for row in rows if row["node"]]))
            yield from rows
        seen.gaps += about(
            "no_finish_time", "pods are over, but nothing says since when", unknown_end
        )
        self._unlisted(events.unlisted(listed, window))

    def _unlisted(self, places: Sequence[str]) -> None:
        """Pods that only events know: another source may have seen them."""
        gaps = about(
            "pods_not_listed",
            "pods ran and were deleted before they were listed; what they asked for is not known",
            places,
        )
        if self._alone:
            self._seen.gaps += gaps
        else:
            self._seen.notes += [gap.detail for gap in gaps]

    def nodes(self) -> Iterator[Row]:
        """Nodes: one row per day."""
        carded: list[tuple[str, Layout]] = []
        for node in self._seen.of(NODES, Node):
            sliced = self._devices.of_node(node.metadata.name)
            try:
                cards = node_layout(node, sliced.count)
                rows = list(
                    node_rows(node, cards, sliced, self._cluster, self._window, self._seen.taken_at)
                )
            except Rejected as rejected:
                self._reject(NODES, node, rejected)
                continue
            if rows:
                carded.append((node.metadata.name, cards))
            yield from rows
        self._seen.gaps += of_layouts(carded)

    def claims(self) -> Iterator[Row]:
        """Resource claims that hold cards: one row per day."""
        claims = self._seen.of(CLAIMS, ResourceClaim)
        names = [(node, node.metadata.name) for node in self._seen.of(NODES, Node)]
        hosts = {node.labels.get("kubernetes.io/hostname", name): name for node, name in names}
        nodes = hosts | {name: name for _, name in names}
        reader = ClaimReader(self._cluster, self._devices, self._holders, nodes)
        unknown: list[str] = []
        for claim in claims:
            try:
                rows = list(reader.rows(claim, self._window, self._seen.taken_at))
            except Rejected as rejected:
                self._reject(CLAIMS, claim, rejected)
                continue
            unknown += {claim.place for row in rows if row["cards"] is None}
            yield from rows
        named = {
            (item.metadata.namespace or "default", item.metadata.name): item for item in claims
        }
        self._seen.gaps += about(
            "capacity_unknown", "claims hold devices that nothing says the size of", unknown
        )
        self._seen.gaps += about(
            "claims_gone",
            "pods had resource claims that are gone; what they held is not known",
            unread(self._holders, named),
        )

    def claims_unread(self) -> Iterator[Gap]:
        """Pods that hold claims, where claims could not be listed at all."""
        return about(
            "claims_unread",
            "pods hold resource claims that were not read; what they hold is not known",
            unread(self._holders, {}),
        )

    @cached_property
    def _volume_claims(self) -> list[PersistentVolumeClaim]:
        return self._seen.of(VOLUME_CLAIMS, PersistentVolumeClaim)

    def volumes(self) -> Iterator[Row]:
        """Persistent volumes: one row per day."""
        claims = {
            (item.metadata.namespace or "default", item.metadata.name): item
            for item in self._volume_claims
        }
        now: datetime | None = self._seen.taken_at
        for volume in self._seen.of(VOLUMES, PersistentVolume):
            try:
                rows = list(
                    volume_rows(volume, claims, self._cluster, self._window, now, self._keep)
                )
            except Rejected as rejected:
                self._reject(VOLUMES, volume, rejected)
                continue
            yield from rows

    def mounts(self) -> Iterator[Row]:
        """Pods that mount a volume: one row per day, volume and pod."""
        bound = volumes_by_claim(self._seen.of(VOLUMES, PersistentVolume), self._volume_claims)
        for pod, days in self._mounting:
            yield from mount_rows(pod, days, bound, self._cluster)

    def _reject(self, kind: Kind, item: Object, rejected: Rejected) -> None:
        self._seen.rejects.add(rejected.reason, kind.plural, f"{item.place}: {rejected.detail}")


def _inside(moment: datetime | None, window: Window) -> bool:
    return moment is not None and window.start <= moment < window.end
