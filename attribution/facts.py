"""The facts of one day, as ``attribute_day`` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

import polars as pl

from attribution.ratio import DAY
from ledger.schema import CHARGES, NODES, PRICES, USAGE, WORKLOADS, Table
from ledger.store import Ledger
from ledger.window import Window


@dataclass(frozen=True)
class DayFacts:
    """What all sources said of a UTC day.

    Args:
        day: The day.
        charges: Rows of the table of that name, of all sources; so are the others.
        prices: Prices for what no bill line covers.
        nodes: Node intervals.
        workloads: Pod intervals.
        usage: Meters per 15-minute slot.
    """

    day: date
    charges: pl.DataFrame = field(default_factory=CHARGES.empty)
    prices: pl.DataFrame = field(default_factory=PRICES.empty)
    nodes: pl.DataFrame = field(default_factory=NODES.empty)
    workloads: pl.DataFrame = field(default_factory=WORKLOADS.empty)
    usage: pl.DataFrame = field(default_factory=USAGE.empty)

    @classmethod
    def of_tables(cls, day: date, tables: Mapping[str, pl.DataFrame]) -> DayFacts:
        """The rows of one day among frames by table name; a table that is absent is empty."""
        names = ("charges", "prices", "nodes", "workloads", "usage")
        frames = {
            name: tables[name].filter(pl.col("day") == day) for name in names if name in tables
        }
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
    """Read a day's facts.

    Args:
        ledger: The ledger.
        day: The day.
        sources: Names of the sources whose rows count; None counts all.

    Raises:
        SourceError: The ledger cannot be read.
    """
    window = Window.of_day(day)
    tables = (CHARGES, PRICES, NODES, WORKLOADS, USAGE)
    rows = [_counted(table, ledger.scan(table, window), sources) for table in tables]
    return DayFacts(day, *pl.collect_all(rows))


def _counted(table: Table, rows: pl.LazyFrame, sources: frozenset[str] | None) -> pl.LazyFrame:
    """The rows of sources that still exist: a renamed bill must not be paid twice."""
    if sources is None or table.source_column is None:
        return rows
    return rows.filter(pl.col(table.source_column).is_in(sorted(sources)))
