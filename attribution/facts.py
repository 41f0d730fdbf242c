"""The facts of one day, as ``attribute_day`` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta

import polars as pl

from attribution.ratio import DAY
from ledger.schema import (
    CHARGES,
    CLAIMS,
    LOG_VOLUME,
    MOUNTS,
    NODES,
    OBJECTS,
    POD_SPLITS,
    PRICES,
    REQUESTS,
    RESOURCES,
    USAGE,
    VOLUMES,
    WORKLOADS,
    Table,
)
from ledger.store import Ledger
from ledger.window import Window

TABLES = (
    CHARGES,
    PRICES,
    NODES,
    WORKLOADS,
    USAGE,
    CLAIMS,
    VOLUMES,
    MOUNTS,
    OBJECTS,
    REQUESTS,
    LOG_VOLUME,
    POD_SPLITS,
    RESOURCES,
)
"""The tables that attribution reads."""

INVENTORY_DAYS = 7
"""How old an inventory of stored objects may be and still apply."""


@dataclass(frozen=True)
class DayFacts:
    """What all sources said of a UTC day.

    Args:
        day: The day.
        charges: Rows of the table of that name, of all sources; so are the others.
        prices: Prices for what no bill line covers.
        nodes: Node intervals.
        workloads: Pod intervals.
        usage: Meters per 15-minute slot; from a ledger a lazy frame, as it may be large.
        claims: Claims of devices.
        volumes: Persistent volumes.
        mounts: Which pod mounts which volume.
        objects: Stored bytes per prefix, of each resource's newest inventory.
        requests: Storage operations.
        log_volume: Log bytes per stream.
        pod_splits: The provider's own split of machines.
        resources: Configurations; of which time accounting tells every job.
    """

    day: date
    charges: pl.DataFrame = field(default_factory=CHARGES.empty)
    prices: pl.DataFrame = field(default_factory=PRICES.empty)
    nodes: pl.DataFrame = field(default_factory=NODES.empty)
    workloads: pl.DataFrame = field(default_factory=WORKLOADS.empty)
    usage: pl.DataFrame | pl.LazyFrame = field(default_factory=USAGE.empty)
    claims: pl.DataFrame = field(default_factory=CLAIMS.empty)
    volumes: pl.DataFrame = field(default_factory=VOLUMES.empty)
    mounts: pl.DataFrame = field(default_factory=MOUNTS.empty)
    objects: pl.DataFrame = field(default_factory=OBJECTS.empty)
    requests: pl.DataFrame = field(default_factory=REQUESTS.empty)
    log_volume: pl.DataFrame = field(default_factory=LOG_VOLUME.empty)
    pod_splits: pl.DataFrame = field(default_factory=POD_SPLITS.empty)
    resources: pl.DataFrame = field(default_factory=RESOURCES.empty)

    @classmethod
    def of_tables(cls, day: date, tables: Mapping[str, pl.DataFrame | pl.LazyFrame]) -> DayFacts:
        """The rows of one day among frames by table name; a table that is absent is empty.

        Lazy frames are collected, except that of ``usage``.
        """
        usage = tables.get(USAGE.name)
        frames = {
            table.name: _of_day(table, tables[table.name].lazy(), day).collect()
            for table in TABLES
            if table.name in tables and not (table is USAGE and isinstance(usage, pl.LazyFrame))
        }
        if isinstance(usage, pl.LazyFrame):
            return cls(day, **frames, usage=_of_day(USAGE, usage, day))
        return cls(day, **frames)

    @property
    def start(self) -> int:
        """First millisecond of the day since the epoch."""
        return int(Window.of_day(self.day).start.timestamp()) * 1000

    @property
    def end(self) -> int:
        """End of the day, exclusive, in milliseconds since the epoch."""
        return self.start + DAY


def read(ledger: Ledger, day: date, sources: frozenset[str] | None = None) -> DayFacts:
    """Read a day's facts; its usage is read once it is asked for.

    Args:
        ledger: The ledger.
        day: The day.
        sources: Names of the sources whose rows count; None counts all.

    Raises:
        SourceError: The ledger cannot be read.
    """
    window = Window.of_day(day)
    older = Window.of_days(day - timedelta(days=INVENTORY_DAYS), day)
    rows = [
        _of_day(
            table,
            _counted(table, ledger.scan(table, older if table is OBJECTS else window), sources),
            day,
        )
        for table in TABLES
    ]
    frames = dict(zip((table.name for table in TABLES), rows, strict=True))
    usage = frames.pop(USAGE.name)
    return DayFacts(
        day, **dict(zip(frames, pl.collect_all(frames.values()), strict=True)), usage=usage
    )


def _of_day(table: Table, rows: pl.LazyFrame, day: date) -> pl.LazyFrame:
    """The rows that speak of the day: its own; of inventories the newest that is not too old."""
    if table is not OBJECTS:
        return rows.filter(pl.col("day") == day)
    recent = rows.filter(pl.col("day").is_between(day - timedelta(days=INVENTORY_DAYS), day))
    return recent.filter(pl.col("day") == pl.col("day").max().over("resource"))


def _counted(table: Table, rows: pl.LazyFrame, sources: frozenset[str] | None) -> pl.LazyFrame:
    """The rows of sources that still exist: a renamed bill must not be paid twice."""
    if sources is None or table.source_column is None:
        return rows
    return rows.filter(pl.col(table.source_column).is_in(sorted(sources)))
