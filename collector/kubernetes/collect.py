"""The Kubernetes collector: from a snapshot of a cluster to the facts of a window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from collector.cards import choose
from collector.gaps import about, of_layouts
from collector.kubernetes.frames import Row, frame
from collector.kubernetes.kinds import NAMESPACES, NODE_POOLS, NODES, PODS, RAY_JOBS, permissions
from collector.kubernetes.life import life
from collector.kubernetes.nodes import node_layout, node_rows
from collector.kubernetes.objects import Node, Pod
from collector.kubernetes.owners import Owners
from collector.kubernetes.rejects import Rejected
from collector.kubernetes.resources import resource_rows
from collector.kubernetes.snapshot import Reader, Snapshot
from collector.kubernetes.workloads import pod_facts, pod_request, workload_rows
from collector.layouts import Layout
from collector.source import Permissions, Probe
from ledger.facts import Facts
from ledger.schema import NODES as NODES_TABLE
from ledger.schema import RESOURCES, WORKLOADS
from ledger.window import Window


@dataclass(frozen=True)
class KubernetesCollector:
    """Pods, nodes and owners of one cluster.

    Args:
        cluster: The cluster's name in the settings.
        reader: The API server or dumps.
        snapshot: Whether the reader only knows the present (the API does, dumps are fixed).
        annotations: Globs of further annotation keys to keep.
        required: Whether a gap here makes the run end with exit code 3.
    """

    cluster: str
    reader: Reader
    snapshot: bool
    annotations: tuple[str, ...] = ()
    required: bool = True

    @property
    def name(self) -> str:
        """``kubernetes/CLUSTER``."""
        return f"kubernetes/{self.cluster}"

    @property
    def permissions(self) -> Permissions:
        """What the live reader lists; dumps need nothing."""
        return permissions() if self.snapshot else Permissions()

    def probe(self) -> Sequence[Probe]:
        """Try to list each kind.

        Raises:
            SourceError: The kubeconfig or service account cannot be used.
        """
        return self.reader.probe()

    def reach(self) -> Window | None:
        """None: the API knows the present and what it has not deleted yet."""
        return None

    def collect(self, window: Window) -> Facts:
        """The tables ``workloads``, ``nodes`` and ``resources`` of the window's days.

        A table whose objects could not be listed is absent. Pods with impossible times or
        requests are quarantined one by one.

        Raises:
            SourceError, AccessError, BadInputError: Nothing useful can be read.
        """
        seen = self.reader.read()
        objects = sum(map(len, seen.lists.values())) + seen.rejects.total
        tables: dict[str, pl.DataFrame] = {}
        if PODS in seen.lists:
            tables[WORKLOADS.name] = frame(WORKLOADS, list(self._workloads(seen, window)))
        if NODES in seen.lists:
            tables[NODES_TABLE.name] = frame(NODES_TABLE, list(self._nodes(seen, window)))
        if any(kind in seen.lists for kind in (RAY_JOBS, NODE_POOLS, NAMESPACES)):
            rows = resource_rows(seen, self.cluster, window)
            tables[RESOURCES.name] = frame(RESOURCES, rows)
        return Facts(
            window,
            tables,
            gaps=tuple(seen.gaps),
            quarantine=seen.rejects.entries(),
            notes=tuple(seen.notes),
            data_through=_through(window, seen.taken_at),
            read=objects,
        )

    def _workloads(self, seen: Snapshot, window: Window) -> Iterator[Row]:
        owners = Owners(seen)
        unknown_end: list[str] = []
        more_cards: list[str] = []
        for pod in seen.of(PODS, Pod):
            try:
                lived = life(pod, seen.taken_at)
                request = pod_request(pod)
            except Rejected as rejected:
                seen.rejects.add(rejected.reason, "pods", f"{pod.place}: {rejected.detail}")
                continue
            # A pod is named on the days it touches, not for as long as the API remembers it.
            if lived.end_unknown and _inside(lived.bound_at, window):
                unknown_end.append(pod.place)
            facts = pod_facts(pod, self.cluster, request, owners.of(pod), self.annotations)
            rows = list(workload_rows(facts, lived, window, seen.taken_at))
            if rows and choose(request).others:
                more_cards.append(pod.place)
            yield from rows
        seen.gaps += about(
            "no_finish_time", "pods are over, but nothing says since when", unknown_end
        )
        seen.gaps += about(
            "several_card_resources",
            "pods ask for several kinds of cards; only the first is counted",
            more_cards,
        )

    def _nodes(self, seen: Snapshot, window: Window) -> Iterator[Row]:
        carded: list[tuple[str, Layout]] = []
        for node in seen.of(NODES, Node):
            try:
                cards = node_layout(node)
                rows = list(node_rows(node, cards, self.cluster, window, seen.taken_at))
            except Rejected as rejected:
                seen.rejects.add(rejected.reason, "nodes", f"{node.place}: {rejected.detail}")
                continue
            if rows:
                carded.append((node.metadata.name, cards))
            yield from rows
        seen.gaps += of_layouts(carded)


def _inside(moment: datetime | None, window: Window) -> bool:
    return moment is not None and window.start <= moment < window.end


def _through(window: Window, now: datetime | None) -> datetime | None:
    return min(window.end, now) if now else None
