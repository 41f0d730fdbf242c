"""The Kubernetes collector: from a snapshot of a cluster to the facts of a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from collector.kubernetes.access import permissions
from collector.kubernetes.environment import ENVIRONMENT
from collector.kubernetes.event_rows import event_rows
from collector.kubernetes.events import Event
from collector.kubernetes.frames import frame
from collector.kubernetes.kinds import (
    CLAIMS,
    EVENTS,
    NODES,
    PODS,
    VOLUMES,
)
from collector.kubernetes.objects import Pod
from collector.kubernetes.reading import Reading
from collector.kubernetes.resources import resource_rows, told
from collector.kubernetes.snapshot import Reader
from collector.source import Permissions, Probe
from ledger import schema
from ledger.facts import Facts
from ledger.window import Window


@dataclass(frozen=True)
class KubernetesCollector:
    """Pods, nodes and owners of one cluster.

    Args:
        cluster: The cluster's name in the settings.
        reader: The API server or dumps.
        snapshot: Whether the reader only knows the present (the API does, dumps are fixed).
        annotations: Globs of further annotation keys to keep.
        variables: Names of variables to keep.
        required: Whether a gap here makes the run end with exit code 3.
        alone: Whether no other source sees the cluster's pods.
    """

    cluster: str
    reader: Reader
    snapshot: bool
    annotations: tuple[str, ...] = ()
    variables: frozenset[str] = ENVIRONMENT
    required: bool = True
    alone: bool = True

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
        """The tables that a cluster can tell of, for the window's days.

        They are ``workloads``, ``nodes``, ``claims``, ``volumes``, ``mounts``, ``resources`` and
        ``events``. A table whose objects could not be listed is absent. Objects with impossible
        times or amounts are quarantined one by one.

        Raises:
            SourceError, AccessError, BadInputError: Nothing useful can be read.
        """
        seen = self.reader.read()
        objects = sum(map(len, seen.lists.values())) + seen.rejects.total
        reading = Reading(
            seen,
            self.cluster,
            window,
            self.annotations,
            variables=self.variables,
            alone=self.alone,
        )
        tables: dict[str, pl.DataFrame] = {}
        for table, kind, read in (
            (schema.WORKLOADS, PODS, reading.workloads),
            (schema.NODES, NODES, reading.nodes),
            (schema.CLAIMS, CLAIMS, reading.claims),
            (schema.VOLUMES, VOLUMES, reading.volumes),
            (schema.MOUNTS, VOLUMES, reading.mounts),
        ):
            if kind in seen.lists:
                tables[table.name] = frame(table, list(read()))
        if CLAIMS not in seen.lists:
            seen.gaps += reading.claims_unread()
        events = event_rows(
            seen.of(EVENTS, Event), seen.of(PODS, Pod), self.cluster, window, seen.taken_at
        )
        if events or EVENTS in seen.lists:
            tables[schema.EVENTS.name] = frame(schema.EVENTS, events)
        resources = list(resource_rows(seen, self.cluster, window))
        if resources or told(seen):
            tables[schema.RESOURCES.name] = frame(schema.RESOURCES, resources)
        return Facts(
            window,
            tables,
            gaps=tuple(seen.gaps),
            quarantine=seen.rejects.entries(),
            notes=tuple(seen.notes),
            data_through=min(window.end, seen.taken_at) if seen.taken_at else None,
            read=objects,
        )
