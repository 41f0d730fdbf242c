"""The collector: one day after the other, the same for every source of samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime

import polars as pl

from collector.prometheus.cluster.allow_list import probe_labels, unlabelled
from collector.prometheus.cluster.claims import unread_claims
from collector.prometheus.cluster.nodes import Nodes, read_nodes, with_models
from collector.prometheus.cluster.pods import Pods, read_pods
from collector.prometheus.cluster.volumes import Volumes, read_volumes
from collector.prometheus.meters import sight
from collector.prometheus.meters.usage import Usage, read_usage
from collector.prometheus.policies.read import Policies, read_policies
from collector.prometheus.samples import coverage
from collector.prometheus.samples.label_sets import Identity
from collector.prometheus.samples.reader import Reader
from collector.prometheus.series.annotation_series import pod_annotations
from collector.prometheus.series.catalogue import ALL, FALLBACKS, POD_LABELS
from collector.prometheus.sources.source import SampleSource
from collector.prometheus.sources.steady import Steady
from collector.source import Permissions, Probe
from ledger.errors import SourceError
from ledger.facts import Facts, Quarantine
from ledger.schema import (
    COVERAGE,
    EVENTS,
    MOUNTS,
    NODES,
    RESOURCES,
    USAGE,
    VOLUMES,
    WORKLOADS,
    Table,
)
from ledger.window import Window


@dataclass(frozen=True)
class PrometheusCollector:
    """Nodes, pods and usage of one cluster, from samples.

    Args:
        cluster: Name of the cluster in the settings.
        source: Where samples come from.
        cluster_label: Label that names the cluster where one store holds several; series without
            it are put aside, never counted to this cluster.
        required: Whether gaps here matter to the exit code.
        annotations: Globs of annotation keys to keep beside the usual ones.
        api: Whether the cluster's API is read as well, which knows what claims hold.
        value: What the label says of the cluster, if not its name.
    """

    cluster: str
    source: SampleSource
    cluster_label: str | None = None
    required: bool = True
    annotations: tuple[str, ...] = ()
    api: bool = False
    value: str | None = None
    snapshot: bool = field(default=False, init=False)

    @property
    def name(self) -> str:
        """``prometheus/<cluster>``."""
        return f"prometheus/{self.cluster}"

    @property
    def permissions(self) -> Permissions:
        """The series that are read."""
        return Permissions(series=tuple(name for series in ALL for name in series.names))

    def collect(self, window: Window) -> Facts:
        """Read nodes, workloads and usage of each UTC day of the window.

        Days do not depend on each other: a window gives the rows that its days give. A table that
        one of the days could not read is left out, so that no earlier rows are lost: windows of
        one day lose least.

        Raises:
            AccessError: The server refuses us.
            SourceError: The server cannot be reached, or refuses every query.
        """
        days = [self._day(day) for day in window.days()]
        names = [name for name in days[0].tables if all(name in day.tables for day in days)]
        return Facts(
            window=window,
            tables={name: pl.concat([day.tables[name] for day in days]) for name in names},
            coverage=sum(day.coverage or 0.0 for day in days) / len(days),
            gaps=tuple(gap for day in days for gap in day.gaps),
            quarantine=_add_up([entry for day in days for entry in day.quarantine]),
            notes=tuple(dict.fromkeys(note for day in days for note in day.notes)),
            data_through=max((day.data_through for day in days if day.data_through), default=None),
            read=sum(day.read or 0 for day in days),
        )

    def _day(self, day: date) -> Facts:
        window = Window.of_day(day)
        reader = Reader(
            Steady(self.source), Identity(self.value or self.cluster, self.cluster_label), window
        )
        nodes = read_nodes(reader)
        pods = read_pods(
            reader, None if nodes is None else nodes.seen, pod_annotations(self.annotations)
        )
        lives = _no_lives() if pods is None else pods.lives
        shared = lives.clear().select("uid") if pods is None else pods.host_network
        asked = WORKLOADS.empty() if pods is None else pods.workloads
        usage = read_usage(reader, nodes, lives, shared, asked)
        if reader.failures and len(reader.failures) == reader.asked:
            raise SourceError(
                f"{self.name}: every query failed: {reader.failures[0].message}",
                reader.failures[0].hint,
            )
        missing = _holes(nodes, window)
        reach = self._reach(reader) if missing else None
        newest = min(reader.newest, window.end) if reader.newest else None
        sights = _sights(usage, nodes, asked, shared)
        reader.notes.extend(sight.notes(sights))
        volumes = read_volumes(reader, lives.select("uid", "namespace", "pod").unique())
        policies = read_policies(reader)
        if pods is not None and not self.api:
            reader.gaps.extend(unread_claims(reader, lives))
        gaps, notes = unlabelled(asked, api=self.api)
        reader.gaps += gaps
        reader.notes += notes
        return Facts(
            window=window,
            tables=self._tables(day, nodes, pods, usage, volumes, sights, policies),
            coverage=coverage.ratio(missing, window),
            gaps=(*reader.gaps, *coverage.gaps(missing, reach)),
            quarantine=_add_up(reader.quarantine),
            notes=tuple(dict.fromkeys(reader.notes)),
            data_through=_later(newest, window),
            read=reader.samples,
        )

    def _tables(
        self,
        day: date,
        nodes: Nodes | None,
        pods: Pods | None,
        usage: Usage | None,
        volumes: Volumes | None,
        sights: pl.DataFrame,
        policies: Policies | None,
    ) -> dict[str, pl.DataFrame]:
        found: dict[str, pl.DataFrame] = {}
        if nodes is not None:
            models = None if usage is None else usage.models
            rows = nodes.rows if models is None else with_models(nodes.rows, models)
            found[NODES.name] = self._fit(rows, NODES, day)
        if pods is not None:
            found[WORKLOADS.name] = self._fit(pods.workloads, WORKLOADS, day)
        if usage is not None:
            found[USAGE.name] = self._fit(usage.rows, USAGE, day)
            found[COVERAGE.name] = self._fit(sights, COVERAGE, day)
        if volumes is not None:
            found[VOLUMES.name] = self._fit(volumes.rows, VOLUMES, day)
            if volumes.mounts is not None:
                found[MOUNTS.name] = self._fit(volumes.mounts, MOUNTS, day)
        if policies is not None:
            found[RESOURCES.name] = self._fit(policies.resources, RESOURCES, day)
            found[EVENTS.name] = self._fit(policies.events, EVENTS, day)
        return found

    def _fit(self, rows: pl.DataFrame, table: Table, day: date) -> pl.DataFrame:
        """Rows in the table's columns; what Prometheus does not know is null."""
        rows = rows.with_columns(day=pl.lit(day), cluster=pl.lit(self.cluster))
        columns = {
            name: dtype for name, dtype in table.schema.items() if name != table.source_column
        }
        return rows.select(
            [
                (pl.col(name) if name in rows.columns else pl.lit(None)).cast(dtype).alias(name)
                for name, dtype in columns.items()
            ]
        )

    def _reach(self, reader: Reader) -> Window | None:
        """The source's reach, to tell retention from absence; unknown is no error here."""
        try:
            return reader.source.reach()
        except SourceError as error:
            reader.notes.append(f"how far back the source reaches is unknown: {error.message}")
            return None

    def probe(self) -> Sequence[Probe]:
        """Whether each series has samples near the end of what the source holds."""
        reach = self.source.reach()
        wanted = [name for series in ALL for name in series.names]
        present = self.source.present(wanted)
        found = [
            Probe(f"read {file.where}", False, f"{file.reason}: {file.example}", "what it holds")
            for file in self.source.refused()
        ]
        for series in ALL:
            others = [
                other.metric
                for other in FALLBACKS.get(series.metric, ())
                if other.metric in present
            ]
            ok = not present.isdisjoint(series.names)
            if ok and series is POD_LABELS:
                empty = probe_labels(self.source, reach, api=self.api)
                if empty:
                    found.append(empty)
                    continue
            instead = f"absent; {others[0]} is read instead" if others else "no samples"
            if series.optional and not others:
                instead, others = f"absent, as on many clusters: {series.blind}", [series.metric]
            found.append(
                Probe(
                    need=series.metric,
                    ok=ok or bool(others),
                    detail="present" if ok else instead,
                    blind="" if ok or others else series.blind,
                    reach=reach,
                )
            )
        return found

    def reach(self) -> Window | None:
        """From the oldest to the newest sample of nodes that the source holds."""
        return self.source.reach()


def _no_lives() -> pl.DataFrame:
    time = WORKLOADS.schema["start"]
    return pl.DataFrame(
        schema={
            "uid": pl.String,
            "namespace": pl.String,
            "pod": pl.String,
            "node": pl.String,
            "start": time,
            "end": time,
        }
    )


def _sights(
    usage: Usage | None, nodes: Nodes | None, pods: pl.DataFrame, host_network: pl.DataFrame
) -> pl.DataFrame:
    """Coverage per node and meter."""
    rows = USAGE.empty() if usage is None else usage.rows
    known = NODES.empty() if nodes is None else nodes.rows
    return sight.coverage(rows, sight.Present(known, pods, host_network))


def _holes(nodes: Nodes | None, window: Window) -> list[Window]:
    if nodes is None:
        return [window]
    return coverage.holes(nodes.seen, window, nodes.up.interval)


def _later(newest: datetime | None, window: Window) -> datetime | None:
    """The end of the data in the window; None if all of it lies before."""
    return newest if newest is not None and newest > window.start else None


def _add_up(entries: Sequence[Quarantine]) -> tuple[Quarantine, ...]:
    """One entry per reason and place, counts summed, in order of name."""
    total: dict[tuple[str, str], Quarantine] = {}
    for entry in entries:
        key = (entry.where, entry.reason)
        known = total.get(key)
        total[key] = entry if known is None else replace(known, count=known.count + entry.count)
    return tuple(total[key] for key in sorted(total))
