"""From samples to lives: runs without holes, cut where something changed.

A run is a chain of samples with no hole longer than three usual intervals; it lasts from its first
to its last sample. A lone sample counts half an interval to each side. A state that a sample shows
holds from that sample on, until the next sample that shows another.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import polars as pl

from ledger.window import Window

HOLE = 3  # usual intervals that a chain may miss
OWN_DISTANCES = 3  # distances that a series must show before its own median is trusted
_SECOND = 1_000_000
_QUARTER = 15 * _SECOND
_JITTER = 0.025
_EVER = datetime(1, 1, 1, tzinfo=UTC)


def find_runs(times: pl.DataFrame, key: str, usual: timedelta) -> pl.DataFrame:
    """Chain the samples of each key.

    Args:
        times: ``key`` and ``time`` Datetime(us, UTC), any order; perhaps ``until`` and ``count``,
            where a row stands for several samples without a hole.
        key: Column that tells series apart.
        usual: Interval of series that are too short to show their own.

    Returns:
        ``key``, ``first``, ``last`` (samples), ``start``, ``end`` (the run), ``interval``
        (Duration, the series' own median distance, else ``usual``); sorted by key and start.
    """
    stretched = "until" in times.columns
    columns = [key, "time", *(("until", "count") if stretched else ())]
    ordered = times.select(columns).unique().sort(columns)
    if not stretched:
        ordered = ordered.with_columns(until="time", count=pl.lit(1, pl.Int64))
    ordered = ordered.with_columns(
        distance=pl.when(pl.col(key) == pl.col(key).shift()).then(
            pl.col("time") - pl.col("until").shift()
        )
    )
    own = _own_distances(ordered, key)
    interval = pl.when(pl.col("shown") >= OWN_DISTANCES).then(pl.col("own")).otherwise(usual)
    chained = ordered.join(
        own.select(key, interval=interval.cast(pl.Duration("us"))), on=key, maintain_order="left"
    ).with_columns(
        run=(
            pl.col("distance").is_null() | (pl.col("distance") > HOLE * pl.col("interval"))
        ).cum_sum()
    )
    half = pl.when(pl.col("samples") == 1).then(pl.col("interval") / 2).otherwise(timedelta())
    return (
        chained.group_by("run")
        .agg(
            pl.col(key).first(),
            pl.col("interval").first(),
            first=pl.col("time").min(),
            last=pl.col("until").max(),
            samples=pl.col("count").sum(),
        )
        .with_columns(start=pl.col("first") - half, end=pl.col("last") + half)
        .select(key, "first", "last", "start", "end", "interval")
        .sort(key, "start")
    )


def _own_distances(ordered: pl.DataFrame, key: str) -> pl.DataFrame:
    """``own``, the median distance of samples, and how many were ``shown``, by key."""
    between = ordered.drop_nulls("distance").select(
        key,
        us=pl.col("distance").dt.total_microseconds().cast(pl.Float64),
        weight=pl.lit(1, pl.Int64),
    )
    inner = ordered.filter(pl.col("count") > 1).select(
        key,
        us=(pl.col("until") - pl.col("time")).dt.total_microseconds() / (pl.col("count") - 1),
        weight=pl.col("count") - 1,
    )
    weighted = pl.concat([between, inner]).sort(key, "us")
    if inner.is_empty():
        median = pl.col("us").median()
    else:
        below, whole = pl.col("weight").cum_sum() * 2, pl.col("weight").sum()
        median = (
            pl.col("us").filter(below >= whole).first() + pl.col("us").filter(below > whole).first()
        ) / 2
    found = weighted.group_by(key).agg(own=_settled(median), shown=pl.col("weight").sum())
    return (
        ordered.select(key)
        .unique()
        .join(found, on=key, how="left")
        .select(
            key,
            pl.col("own").round().cast(pl.Int64).cast(pl.Duration("us")),
            pl.col("shown").fill_null(0),
        )
    )


def _settled(us: pl.Expr) -> pl.Expr:
    """As ``clean.settled``: what is beside quarters of a minute, or seconds, is jitter."""
    quarters = (us / _QUARTER).round() * _QUARTER
    near = (quarters - us).abs() <= _JITTER * quarters
    whole = pl.when(near).then(quarters).otherwise((us / _SECOND).round() * _SECOND)
    return pl.when(us < _SECOND).then(us).otherwise(whole)


def clip(frame: pl.DataFrame, window: Window) -> pl.DataFrame:
    """The parts of ``start``..``end`` inside the window; empty parts are left out."""
    return frame.with_columns(
        start=pl.max_horizontal("start", pl.lit(window.start, dtype=frame.schema["start"])),
        end=pl.min_horizontal("end", pl.lit(window.end, dtype=frame.schema["end"])),
    ).filter(pl.col("start") < pl.col("end"))


def changes(frame: pl.DataFrame, key: Sequence[str], what: Sequence[str]) -> pl.DataFrame:
    """The samples at which something changed; what was seen first counts as valid ever before.

    Args:
        frame: ``key``, ``time`` and the columns ``what``; unique by key and time.
        key: Columns that tell things apart.
        what: Columns whose change matters; null is a value.

    Returns:
        ``key``, ``time``, ``what``: few rows, sorted by time, then key.
    """
    ordered = frame.select(*key, "time", *what).sort(*key, "time")
    opening = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in key)
    opening = opening | (pl.int_range(pl.len()) == 0)
    other = [pl.col(name).ne_missing(pl.col(name).shift()) for name in what]
    return (
        ordered.with_columns(opening=opening)
        .filter(pl.any_horizontal("opening", *other))
        .with_columns(
            time=pl.when("opening")
            .then(pl.lit(_EVER, dtype=frame.schema["time"]))
            .otherwise("time")
        )
        .drop("opening")
        .sort("time", *key)
    )


def cut(runs: pl.DataFrame, key: str, steps: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Cut runs where a step lies strictly between their first and last sample.

    Args:
        runs: Of ``find_runs``.
        key: Column that tells series apart.
        steps: Frames of ``changes`` by that key alone.

    Returns:
        The columns of ``runs`` with ``start``, ``end`` per segment and ``at``: the time at which
        the attributes of the segment are looked up.
    """
    numbered = runs.with_row_index("run")
    cuts = [
        numbered.lazy()
        .select(key, "run", "first", "last")
        .join(step.lazy().select(key, "time"), on=key)
        .filter(pl.col("first") < pl.col("time"), pl.col("time") < pl.col("last"))
        .select("run", at="time")
        .collect()
        for step in steps
    ]
    points = pl.concat([numbered.select("run", at="first"), *cuts]).unique().sort("run", "at")
    within = pl.col("run") == pl.col("run").shift(-1)
    return (
        points.with_columns(until=pl.when(within).then(pl.col("at").shift(-1)))
        .join(numbered, on="run", maintain_order="left")
        .with_columns(
            start=pl.when(pl.col("at") == pl.col("first")).then("start").otherwise("at"),
            end=pl.coalesce("until", "end"),
        )
        .select(key, "first", "last", "start", "end", "interval", "at")
        .sort(key, "start")
    )


def look_up(segments: pl.DataFrame, key: str, steps: pl.DataFrame) -> pl.DataFrame:
    """Join to each segment what the steps of its key say at its time ``at``."""
    return (
        segments.sort("at", key)
        .join_asof(
            steps.sort("time").rename({"time": "since"}),
            left_on="at",
            right_on="since",
            by=key,
            check_sortedness=False,
        )
        .drop("since")
        .sort(key, "start")
    )


def fuse(segments: pl.DataFrame, key: str, what: Sequence[str]) -> pl.DataFrame:
    """Join neighbours that touch and say the same; sorted by key and start."""
    ordered = segments.sort(key, "start")
    apart = pl.any_horizontal(
        pl.col("start").ne_missing(pl.col("end").shift()),
        *[pl.col(name).ne_missing(pl.col(name).shift()) for name in (key, *what)],
    )
    return (
        ordered.with_columns(piece=apart.cum_sum())
        .group_by("piece", maintain_order=True)
        .agg(
            pl.all().exclude("start", "end", "piece").first(),
            pl.col("start").min(),
            pl.col("end").max(),
        )
        .drop("piece")
        .sort(key, "start")
    )


def union(intervals: pl.DataFrame) -> pl.DataFrame:
    """Disjoint ``start``, ``end`` that cover the same time, sorted."""
    ordered = intervals.select("start", "end").sort("start", "end")
    fresh = (pl.col("start") > pl.col("end").cum_max().shift()).fill_null(value=True)
    return (
        ordered.with_columns(piece=fresh.cum_sum())
        .group_by("piece", maintain_order=True)
        .agg(pl.col("start").min(), pl.col("end").max())
        .drop("piece")
        .sort("start")
    )
