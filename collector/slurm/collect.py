"""Slurm as a source: jobs of ``sacct`` exports, and the nodes of a list of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

import polars as pl

from collector.slurm import files, inventory, node_rows, rows
from collector.slurm.runs import Reading, Runs, gather
from collector.slurm.spans import Span, bounds, by_day, clip, iso
from collector.source import Permissions, Probe
from ledger.errors import RunbillError
from ledger.facts import Facts, Gap
from ledger.schema import EVENTS, NODES, RESOURCES, WORKLOADS
from ledger.settings import SlurmSource
from ledger.text import canonical_json
from ledger.window import Window

ACCOUNTING = "SlurmAccounting"
"""Kind of the row of ``resources`` that says of which time every job is told."""


@dataclass(frozen=True)
class Slurm:
    """The accounting of a Slurm cluster.

    Args:
        cluster: Name of the cluster in the settings.
        source: Its block.
        sacct: Path of the exports.
        nodes: Path of the list of nodes; None = there is none.
        pods: Whether Slurm's nodes are pods of a Kubernetes cluster (Slinky).
    """

    cluster: str
    source: SlurmSource
    sacct: str
    nodes: str | None
    pods: bool

    @property
    def name(self) -> str:
        """``slurm/CLUSTER``."""
        return f"slurm/{self.cluster}"

    @property
    def required(self) -> bool:
        """As the settings say."""
        return self.source.required

    @property
    def snapshot(self) -> bool:
        """Accounting remembers jobs that are gone."""
        return False

    @property
    def permissions(self) -> Permissions:
        """Files only."""
        return Permissions()

    @cached_property
    def _runs(self) -> Runs:
        source = self.source
        reading = Reading(
            source.timezone or "UTC", source.timezone is not None, source.delimiter, source.cluster
        )
        found = gather(files.find(self.sacct, "slurm.sacct"), reading)
        nameless = pl.col("cluster") == ""
        own = pl.when(nameless).then(pl.lit(self.cluster)).otherwise("cluster").alias("cluster")
        return Runs(
            found.rows.with_columns(own),
            found.covered,
            found.read,
            found.quarantine,
            found.gaps,
            found.notes,
        )

    @cached_property
    def _nodes(self) -> pl.DataFrame | None:
        if self.nodes is None:
            return None
        exports = (files.read(path) for path in files.find(self.nodes, "slurm.nodes"))
        return inventory.frame(node for export in exports for node in inventory.read(export))

    def _listed(self) -> tuple[pl.DataFrame | None, list[Gap]]:
        """The list of nodes, or why there is none though the settings name it."""
        try:
            return self._nodes, []
        except RunbillError as error:
            return None, [Gap("unreadable_file", str(error))]

    def collect(self, window: Window) -> Facts:
        """Read the jobs of a window, and the nodes that they could run on.

        Raises:
            SourceError, BadInputError: No export can be read.
        """
        runs = self._runs
        listed, unlisted = self._listed()
        pieces = _counted(rows.held(runs.rows, window), listed)
        covered = _inside(runs.covered, window)
        gaps = [*runs.gaps, *unlisted, *self._gaps(window, covered)]
        if not self.pods:
            gaps += node_rows.gaps(pieces, listed)
        tables = {
            WORKLOADS.name: rows.workloads(pieces, runs.rows, window, self.cluster),
            EVENTS.name: rows.events(runs.rows, window, self.cluster),
            RESOURCES.name: self._accounting(covered, window),
        }
        if not self.pods:
            tables[NODES.name] = node_rows.nodes(pieces, listed, covered, window, self.cluster)
        if pieces.is_empty() and not covered:
            tables = {}  # nothing of these days was delivered: what an earlier run read stays
        return Facts(
            window,
            tables,
            coverage=1 - node_rows.untold(covered, window) / _length(window),
            gaps=tuple(gaps),
            quarantine=runs.quarantine,
            notes=(*runs.notes, *self._notes(runs, listed, window)),
            data_through=_time(runs.through),
            read=runs.read,
        )

    def _gaps(self, window: Window, covered: Sequence[Span]) -> Iterator[Gap]:
        """The time of which it is not known that every job is told."""
        lacking = node_rows.untold(covered, window)
        if lacking:
            told = ", ".join(f"{iso(a)} to {iso(b)}" for a, b in covered) or "no time"
            yield Gap(
                "no_samples",
                f"{self.cluster}: sacct tells every job of {told}; what looks free at other times "
                "may not be",
                {"hours": lacking / 3600},
            )

    def _notes(self, runs: Runs, listed: pl.DataFrame | None, window: Window) -> Iterator[str]:
        odd = rows.uneven(clip(_ran(runs), window))
        if not odd.is_empty():
            yield (
                f"{odd.height} jobs hold amounts that do not divide by their nodes, e.g. job "
                f"{odd['job'].min()!s}: sacct tells the sum, the first nodes have one more"
            )
        if listed is not None and (away := listed.filter(~pl.col("up"))).height:
            yield (
                f"{away.height} nodes are down, drained or off, e.g. {away['node'].min()!s}: they "
                "count only while jobs ran on them"
            )

    def _accounting(self, covered: Sequence[Span], window: Window) -> pl.DataFrame:
        """One row of ``resources`` a day: of which time every job is told."""
        schema = {"start": pl.Int64(), "end": pl.Int64()}
        spans = by_day(clip(pl.DataFrame(list(covered), schema=schema, orient="row"), window))
        told: dict[object, list[list[str]]] = {day: [] for day in window.days()}
        for start, end, day in spans.select("start", "end", "day").iter_rows():
            told[day].append([start.isoformat(), end.isoformat()])
        data = [
            {
                "day": day,
                "cluster": self.cluster,
                "kind": ACCOUNTING,
                "name": self.cluster,
                "configuration": canonical_json({"covered": times}),
            }
            for day, times in told.items()
        ]
        names = {n: t for n, t in RESOURCES.schema.items() if n != RESOURCES.source_column}
        return pl.DataFrame(data, schema=names, orient="row")

    def probe(self) -> Sequence[Probe]:
        """Read all files and say what they hold."""
        blind = "which job, user and account used a node"
        try:
            runs = self._runs
        except RunbillError as error:
            need = f"read {self.sacct}"
            return [Probe(need, False, str(error), blind, failure=type(error))]
        found = [
            Probe(
                f"jobs in {self.sacct}",
                not runs.gaps,
                "; ".join(gap.detail for gap in runs.gaps) or f"{runs.rows.height} found",
                blind if runs.gaps else "",
                self.reach(),
            )
        ]
        if not self.pods:
            found.append(self._probe_nodes())
        return found

    def _probe_nodes(self) -> Probe:
        blind = "which nodes were free, and how large they are"
        if self.nodes is None:
            return Probe("slurm.nodes", False, "not configured: scontrol show node > FILE", blind)
        try:
            listed = self._nodes
        except RunbillError as error:
            return Probe(f"read {self.nodes}", False, str(error), blind)
        count = 0 if listed is None else listed.height
        return Probe(
            f"nodes in {self.nodes}", bool(count), f"{count} found", "" if count else blind
        )

    def reach(self) -> Window | None:
        """The days of which every job is told, at least in part."""
        covered = self._runs.covered
        if not covered:
            return None
        first, last = (datetime.fromtimestamp(at, tz=UTC) for at in (covered[0][0], covered[-1][1]))
        return Window.of_days(first.date(), last.date())


def _counted(pieces: pl.DataFrame, listed: pl.DataFrame | None) -> pl.DataFrame:
    """What a job holds of cards is not known where accounting does not count them."""
    if listed is None:
        return pieces
    uncounted = listed.filter(~pl.col("counted"))["node"].to_list()
    known = ~pl.col("node").is_in(uncounted) | (pl.col("cards") > 0)
    return pieces.with_columns(pl.when(known).then("cards").alias("cards"))


def _ran(runs: Runs) -> pl.DataFrame:
    ran = runs.rows.filter(pl.col("until").is_not_null())
    return ran.with_columns(pl.col("until").alias("end"))


def _inside(covered: Sequence[Span], window: Window) -> list[Span]:
    first, last = bounds(window)
    parts = ((max(start, first), min(end, last)) for start, end in covered)
    return [(start, end) for start, end in parts if start < end]


def _length(window: Window) -> int:
    first, last = bounds(window)
    return last - first


def _time(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, tz=UTC)
