"""Half-open intervals in columns ``start`` and ``end`` (seconds), and in pairs of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import polars as pl

from ledger.schema import TIME
from ledger.window import Window

DAY = 86_400
Span = tuple[int, int]


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The union of some intervals, in order."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if start >= end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)


def union(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Merge the intervals of one key that overlap or touch: ``by, start, end``, sorted."""
    ordered = rows.select(*by, "start", "end").filter(pl.col("start") < pl.col("end"))
    ordered = ordered.sort(*by, "start", "end").with_columns(
        pl.col("end").cum_max().shift(1).over(by).alias("reach")
    )
    opens = (pl.col("start") > pl.col("reach")).fill_null(value=True)
    return (
        ordered.with_columns(opens.cast(pl.Int64).cum_sum().alias("block"))
        .group_by(*by, "block")
        .agg(pl.col("start").min(), pl.col("end").max())
        .drop("block")
        .sort(*by, "start")
    )


def clip(rows: pl.DataFrame, window: Window) -> pl.DataFrame:
    """The parts of the intervals inside a window; what lies outside is dropped."""
    first, last = bounds(window)
    return rows.with_columns(
        pl.max_horizontal("start", pl.lit(first)), pl.min_horizontal("end", pl.lit(last))
    ).filter(pl.col("start") < pl.col("end"))


def by_day(rows: pl.DataFrame) -> pl.DataFrame:
    """Cut intervals at UTC midnights, with ``day``; times become those of the ledger."""
    days = pl.int_ranges(pl.col("start") // DAY, (pl.col("end") - 1) // DAY + 1)
    cut = rows.with_columns(days.alias("_day")).explode("_day")
    midnight = pl.col("_day") * DAY
    return cut.with_columns(
        moment(pl.max_horizontal("start", midnight)).alias("start"),
        moment(pl.min_horizontal("end", midnight + DAY)).alias("end"),
        pl.col("_day").cast(pl.Int32).cast(pl.Date).alias("day"),
    ).drop("_day")


def moment(seconds: pl.Expr) -> pl.Expr:
    """Seconds since the epoch as a time of the ledger."""
    return (seconds.cast(pl.Int64) * 1_000_000).cast(TIME)


def bounds(window: Window) -> Span:
    """A window in seconds."""
    return int(window.start.timestamp()), int(window.end.timestamp())


def iso(seconds: int) -> str:
    """Seconds since the epoch for a reader."""
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
