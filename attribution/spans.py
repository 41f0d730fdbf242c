"""Half-open intervals in columns ``start`` and ``end`` (milliseconds): union, overlap, hours."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from attribution.ratio import HOUR


def union(spans: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Merge intervals of one key that overlap or touch.

    Returns:
        ``by``, ``start``, ``end``, sorted.
    """
    ordered = spans.select(*by, "start", "end").filter(pl.col("start") < pl.col("end"))
    ordered = ordered.sort(*by, "start", "end").with_columns(
        pl.col("end").cum_max().shift(1).over(by).alias("reach")
    )
    opens = (pl.col("start") > pl.col("reach")).fill_null(True)
    return (
        ordered.with_columns(opens.cast(pl.Int64).cum_sum().alias("block"))
        .group_by(*by, "block")
        .agg(pl.col("start").min(), pl.col("end").max())
        .drop("block")
        .sort(*by, "start")
    )


def flatten(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Cut intervals of one key so that none overlap; at any time the row that began last counts.

    Equal starts are decided by the rows' content, so that neither their order nor a copy matters.

    Returns:
        The columns of ``rows``, sorted by ``by`` and ``start``.
    """
    rest = [name for name in rows.columns if name not in (*by, "start", "end")]
    rows = rows.filter(pl.col("start") < pl.col("end")).unique()
    rows = rows.sort(*by, "start", "end", *rest, nulls_last=True)
    before = pl.col("end").cum_max().shift(1).over(by)
    if not rows.select((pl.col("start") < before).any()).item():
        return rows
    ranked = rows.with_row_index("rank")
    points = pl.concat([rows.select(*by, pl.col(edge).alias("from")) for edge in ("start", "end")])
    pieces = (
        points.unique()
        .sort(*by, "from")
        .with_columns(pl.col("from").shift(-1).over(by).alias("until"))
    )
    covered = (
        pieces.drop_nulls("until")
        .join(ranked, on=list(by), nulls_equal=True)
        .filter((pl.col("start") <= pl.col("from")) & (pl.col("until") <= pl.col("end")))
    )
    winners = covered.sort("rank").group_by(*by, "from", "until").last()
    return (
        winners.with_columns(pl.col("from").alias("start"), pl.col("until").alias("end"))
        .select(rows.columns)
        .sort(*by, "start")
    )


def intersect(left: pl.DataFrame, right: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Overlaps of the intervals of two frames with one key; columns of both."""
    both = left.join(right.rename({"start": "from", "end": "until"}), on=list(by))
    return clip(both, pl.col("from"), pl.col("until")).drop("from", "until")


def crowd(spans: pl.DataFrame, by: Sequence[str], member: Sequence[str]) -> pl.DataFrame:
    """Cut intervals wherever a member of their key comes or goes, and count who is there.

    Args:
        spans: ``by``, ``member``, ``start``, ``end``; the intervals of one member do not overlap.
        by: What is shared, e.g. a volume.
        member: Who shares it.

    Returns:
        The columns of ``spans``, cut, and ``members``: how many members are there in that piece;
        sorted by ``by``, ``start`` and ``member``.
    """
    points = pl.concat([spans.select(*by, pl.col(edge).alias("from")) for edge in ("start", "end")])
    pieces = (
        points.unique()
        .sort(*by, "from")
        .with_columns(pl.col("from").shift(-1).over(by).alias("until"))
        .drop_nulls("until")
    )
    cut = intersect(spans, pieces.rename({"from": "start", "until": "end"}), by)
    return cut.with_columns(pl.len().over(*by, "start").alias("members")).sort(
        *by, "start", *member
    )


def clip(spans: pl.DataFrame, start: pl.Expr | int, end: pl.Expr | int) -> pl.DataFrame:
    """The parts of the intervals inside ``[start, end)``; what lies outside is dropped."""
    return spans.with_columns(
        pl.max_horizontal("start", start if isinstance(start, pl.Expr) else pl.lit(start)),
        pl.min_horizontal("end", end if isinstance(end, pl.Expr) else pl.lit(end)),
    ).filter(pl.col("start") < pl.col("end"))


def subtract(spans: pl.DataFrame, others: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The parts of the intervals that no interval of ``others`` with the same key covers."""
    if others.is_empty():
        return spans
    gone, ever = union(others, by), 2**62
    free = complement(gone, by, -ever, ever)
    touched = spans.join(gone, on=list(by), how="semi")
    kept = intersect(touched, free, by).select(spans.columns)
    return pl.concat([kept, spans.join(gone, on=list(by), how="anti")])


def complement(spans: pl.DataFrame, by: str | Sequence[str], start: int, end: int) -> pl.DataFrame:
    """The parts of ``[start, end)`` that no interval of a key covers, for keys that have any.

    Args:
        spans: ``union`` by that key.
        by: The key, one column or several.
        start: First moment.
        end: End, exclusive.
    """
    by = [by] if isinstance(by, str) else list(by)
    before = spans.sort(*by, "start").select(
        *by, pl.col("end").shift(1).over(by).fill_null(start).alias("start"), end="start"
    )
    after = spans.group_by(by).agg(pl.col("end").max().alias("start")).with_columns(end=end)
    every = pl.concat([before, after.with_columns(pl.col("end").cast(pl.Int64))])
    return every.filter(pl.col("start") < pl.col("end")).sort(*by, "start")


def by_hour(spans: pl.DataFrame) -> pl.DataFrame:
    """Cut intervals at full hours.

    Returns:
        One row per interval and hour: ``hour`` (its start), ``start`` and ``end`` inside it, and
        ``ms``, their distance.
    """
    first = pl.col("start") // HOUR
    last = (pl.col("end") - 1) // HOUR
    hours = spans.with_columns((pl.int_ranges(first, last + 1)).alias("hour")).explode("hour")
    hours = hours.with_columns(pl.col("hour") * HOUR)
    return hours.with_columns(
        pl.max_horizontal("start", "hour"), pl.min_horizontal("end", pl.col("hour") + HOUR)
    ).with_columns((pl.col("end") - pl.col("start")).alias("ms"))
