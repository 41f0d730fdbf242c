"""What travels with every result: gaps, quarantined rows, residues and coverage.

A gap is a value with a reason, never an exception swallowed and never a zero. A collector yields
``Facts``: the frames of one window plus everything that a reader must know of how they came about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

import polars as pl

from ledger.window import Window


@dataclass(frozen=True)
class Gap:
    """Something that could not be seen.

    Args:
        reason: Short stable name: no_samples, unpriced, no_rule, access_denied, query_failed, ...
        detail: What and where, in one line for a reader.
        amounts: What the gap concerns, e.g. ``{"gpu_hours": 12.0}``.
        about: What it is about, e.g. ``{"type": "a3-highgpu-8g"}``.
    """

    reason: str
    detail: str
    amounts: Mapping[str, float] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The gap as JSON data."""
        return {"reason": self.reason, "detail": self.detail, **self.about, **self.amounts}


@dataclass(frozen=True)
class Quarantine:
    """Rows or files that were put aside, by reason.

    Args:
        reason: nan, inf, negative, out_of_window, missing_column, bad_date, bad_number, ...
        where: File, series or table.
        count: Rows put aside; a whole unreadable file counts 1.
        example: One of them in short, for a reader (never a secret).
    """

    reason: str
    where: str
    count: int
    example: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The quarantine entry as JSON data."""
        return {
            "reason": self.reason,
            "where": self.where,
            "count": self.count,
            "example": self.example,
        }


@dataclass(frozen=True)
class Facts:
    """What one source says of one window; replaces that window's partitions of that source.

    Args:
        window: Whole UTC days; every frame holds rows of these days only.
        tables: Table name to frame in that table's schema, without the partition column of the
            source (the store fills it in). A table that the source speaks of but that has no rows
            is present and empty; a table that the source could not read is absent, so that the
            rows of an earlier run stay.
        coverage: Seen over expected, 0 to 1; None where that has no meaning.
        gaps: What could not be seen.
        quarantine: What was put aside.
        notes: What a reader should know, e.g. "times without a zone read as UTC".
        residue: "Column" to the exact sum lost by rounding that column to 1e-12.
        data_through: End of the delivered data, None if unknown.
        read: Rows or samples that were read, good and bad, in the unit in which the quarantine
            counts; None where each row read is a row of the tables.
    """

    window: Window
    tables: Mapping[str, pl.DataFrame]
    coverage: float | None = None
    gaps: tuple[Gap, ...] = ()
    quarantine: tuple[Quarantine, ...] = ()
    notes: tuple[str, ...] = ()
    residue: Mapping[str, Decimal] = field(default_factory=dict)
    data_through: datetime | None = None
    read: int | None = None

    @property
    def quarantined(self) -> int:
        """Number of rows put aside."""
        return sum(entry.count for entry in self.quarantine)

    @property
    def rows(self) -> int:
        """Number of rows in all tables."""
        return sum(frame.height for frame in self.tables.values())

    @property
    def seen(self) -> int:
        """What the rows put aside are a share of: all that was read."""
        return self.rows + self.quarantined if self.read is None else self.read
