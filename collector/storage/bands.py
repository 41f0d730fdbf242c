"""Ages and sizes in bands, and the roll-up of what a store holds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import date

import polars as pl

from ledger.schema import OBJECTS

AGES = (0, 1, 7, 14, 30, 60, 90, 180, 365)
"""Lower bounds in days since the last change."""

SIZES = (0, 1, 4 << 10, 64 << 10, 128 << 10, 1 << 20, 64 << 20, 1 << 30)
"""Lower bounds in bytes; below 128 KiB an object is small."""

KEYS = ("prefix", "storage_class", "age_band", "size_band")
ROLLED = {name: OBJECTS.schema[name] for name in OBJECTS.schema if name not in ("day", "source")}


def band(value: float, bounds: Sequence[int]) -> str:
    """The lower bound of a value, as text."""
    return str(bounds[max(bisect_right(bounds, value) - 1, 0)])


def band_column(value: pl.Expr, bounds: Sequence[int]) -> pl.Expr:
    """``band`` for a column; null stays null."""
    places = [pl.when(value >= bound).then(pl.lit(str(bound))) for bound in reversed(bounds)]
    lowest = pl.when(value.is_not_null()).then(pl.lit(str(bounds[0])))
    return pl.coalesce(*places, lowest)


def roll_up(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Add up roll-ups of parts of a store: ``KEYS``, counts, bytes (null = unknown), times."""
    known = pl.when(pl.col("bytes").count() > 0).then(pl.col("bytes").sum())
    return (
        pl.concat(parts)
        .group_by(KEYS)
        .agg(
            pl.col("count").sum(),
            known.alias("bytes"),
            pl.col("oldest").min(),
            pl.col("newest").max(),
            pl.col("last_read").max(),
        )
        .sort(KEYS, nulls_last=True)
    )


def object_rows(rolled: pl.DataFrame, resource: str, day: date) -> pl.DataFrame:
    """Rows of ``objects``, without the source."""
    told = rolled.with_columns(pl.lit(day).alias("day"), pl.lit(resource).alias("resource"))
    return told.select(
        pl.col(name).cast(dtype)
        for name, dtype in OBJECTS.schema.items()
        if name != OBJECTS.source_column
    )
