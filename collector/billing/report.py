"""Everything odd about a bill, counted while it is read and said once at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Context, Decimal

import polars as pl

from collector.billing.sheet import ROW
from ledger.facts import Quarantine

NOTES = {
    "zoneless": "{n} times in {where} carry no zone: read as {zone}",
    "one_moment": "{n} lines in {where} end where they start: read as lasting to the day's end",
    "no_category": "{n} lines in {where} have no ChargeCategory: read as Usage",
    "null_cost": "{column} is not given on {n} lines in {where}: unknown, not 0",
    "zero_unknown": "{column} is 0 on {n} lines in {where} that have an EffectiveCost: unknown, "
    "not free",
    "unread": "{column} cannot be read on {n} lines in {where}: left empty",
    "unread_json": "{column} is no JSON object on {n} lines in {where}: kept as text in x_Other",
    "outside": "{n} lines in {where} lie outside the window",
}
"""Kinds of notes that are counted per file and column, and how they are said."""

_EXACT = Context(prec=5000)


@dataclass
class Fault:
    """Rows put aside for one reason, and the first of them in short."""

    count: int
    example: str


@dataclass
class Tally:
    """What was met in one file.

    Args:
        where: Its path or URL.
        zone: Zone in which times without one are read.
    """

    where: str
    zone: str = "UTC"
    rows: int = 0
    faults: dict[str, Fault] = field(default_factory=dict)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    residue: dict[str, Decimal] = field(default_factory=dict)
    start: datetime | None = None
    end: datetime | None = None
    delivered: datetime | None = None
    used_commitments: set[str] = field(default_factory=set)
    filled: list[pl.DataFrame] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)

    def count(self, kind: str, rows: int, column: str = "") -> None:
        """Add to a kind of ``NOTES``."""
        if rows:
            self.counts[kind, column] += rows

    def put_aside(
        self, rows: pl.DataFrame, bad: pl.Series, reason: str, column: str
    ) -> pl.DataFrame:
        """Take rows out, counted under a reason with the first of them as the example."""
        if not bad.any():
            return rows
        number, cell = rows.filter(bad).select(ROW, column).row(0)
        shown = "is empty" if cell is None else repr(str(cell)[:60])
        fault = self.faults.setdefault(reason, Fault(0, f"row {number}: {column} {shown}"))
        fault.count += int(bad.sum())
        return rows.filter(~bad)

    def lose(self, column: str, amount: Decimal) -> None:
        """Add to what rounding took from a column."""
        if amount:
            self.residue[column] = _EXACT.add(self.residue.get(column, Decimal(0)), amount)

    def cover(self, start: datetime | None, end: datetime | None) -> None:
        """Widen the span of charge periods."""
        self.start = min(filter(None, (self.start, start)), default=None)
        self.end = max(filter(None, (self.end, end)), default=None)

    def deliver(self, until: datetime | None) -> None:
        """Move the end of the delivered usage."""
        self.delivered = max(filter(None, (self.delivered, until)), default=None)

    def quarantine(self) -> tuple[Quarantine, ...]:
        """The rows put aside, by reason."""
        return tuple(
            Quarantine(reason, self.where, fault.count, fault.example)
            for reason, fault in sorted(self.faults.items())
        )

    def notes(self) -> tuple[str, ...]:
        """What a reader should know of this file."""
        said = (
            NOTES[kind].format(n=count, column=column, where=self.where, zone=self.zone)
            for (kind, column), count in sorted(self.counts.items())
        )
        return (*self.headers, *said)


def total_residue(tallies: Iterable[Tally]) -> dict[str, Decimal]:
    """Residue per column over all files; columns without one are left out."""
    total = Tally("")
    for tally in tallies:
        for column, amount in tally.residue.items():
            total.lose(column, amount)
    return {column: amount for column, amount in sorted(total.residue.items()) if amount}


def emptied_columns(tallies: Iterable[Tally]) -> tuple[str, ...]:
    """Alerts about columns that most lines of a month fill and no line of the next month does."""
    parts = [part for tally in tallies for part in tally.filled]
    if not parts:
        return ()
    months = pl.concat(parts, how="diagonal").group_by("month").sum().sort("month").fill_null(0)
    columns = sorted(name for name in months.columns if name not in ("month", "lines"))
    jumps = months.select(
        "month",
        *(
            ((pl.col(name) == 0) & (_before(name) * 2 >= _before("lines"))).alias(name)
            for name in columns
        ),
    )
    return tuple(
        f"alert null_rate_jump: {column} is empty in all lines of {month:%Y-%m}, "
        "and was filled in the month before"
        for column in columns
        for month in jumps.filter(pl.col(column).fill_null(False))["month"]
    )


def _before(name: str) -> pl.Expr:
    """A column's value one month earlier."""
    return pl.col(name).shift(1)
