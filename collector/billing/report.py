"""Everything odd about a bill, counted while it is read and said once at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Context, Decimal

import polars as pl

from collector.billing.sheet import NULL_WORDS, ROW
from ledger.facts import Quarantine
from ledger.text import counted

NOTES = {
    "renamed": "columns read under another name: {column} ({where})",
    "kept": "columns kept in x_Other: {column} ({where})",
    "repeated": "columns that stand more than once: {column} ({where})",
    "lacking": "columns that are not there: {column} ({where})",
    "zoneless": "{stamps} without a zone: read as {zone} ({where})",
    "one_moment": "{lines} of no length: read as lasting to the day's end ({where})",
    "no_category": "ChargeCategory is not given on {lines}: read as Usage ({where})",
    "null_cost": "{column} is not given on {lines}: unknown, not 0 ({where})",
    "zero_unknown": "{column} is 0 on {lines} with an EffectiveCost: unknown, not free ({where})",
    "unread": "{column} cannot be read on {lines}: left empty ({where})",
    "unread_json": "{column} is no JSON object on {lines}: kept as text in x_Other ({where})",
    "not_utf8": "{lines} with bytes that are no UTF-8: each shown as U+FFFD ({where})",
}
"""Kinds of notes that are counted per file and column, in the order in which they are said."""

_NO_VALUE = f"holds no value (nothing, {', '.join(NULL_WORDS[:-1])} or {NULL_WORDS[-1]})"
_NAMES_SHOWN = 3
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
        lacking: Columns worth having that the file does not have.
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
    lacking: tuple[str, ...] = ()

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
        shown = _NO_VALUE if cell is None else repr(str(cell)[:60])
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


def counted_notes(tallies: Sequence[Tally]) -> Iterator[str]:
    """What a reader should know, each thing once with the files that it was met in."""
    met: dict[tuple[str, str], list[Tally]] = {}
    for tally in tallies:
        for key in tally.counts:
            met.setdefault(key, []).append(tally)
    order = list(NOTES)
    for kind, column in sorted(met, key=lambda key: (order.index(key[0]), key[1])):
        files = met[kind, column]
        number = sum(tally.counts[kind, column] for tally in files)
        yield NOTES[kind].format(
            lines=counted(number, "line"),
            stamps=counted(number, "time stamp"),
            column=column,
            zone=files[0].zone,
            where=named([tally.where for tally in files]),
        )


def named(names: Sequence[str]) -> str:
    """Some names in full, the others as a number."""
    more = len(names) - _NAMES_SHOWN
    shown = ", ".join(names[:_NAMES_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown


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
