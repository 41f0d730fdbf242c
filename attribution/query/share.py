"""Shared cost and overhead: given to all other keys, evenly or by their own cost before idle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import polars as pl

from attribution.query.filter import visibility
from attribution.query.place import Placed, number_periods
from attribution.query.question import CLOCK, Query
from attribution.query.split import MOVED, as_rows, emptied, sources, spread, together, weights
from ledger.money import UNITS, from_units, split
from ledger.schema import COSTS, IDENTITY_KEYS, SHARED

WHOLE = 10**18
"""What `reach` counts in."""
_HOUR_MS = 3_600_000
_FORMATS = {"hour": "%Y-%m-%dT%H:%M:%SZ", "day": "%Y-%m-%d", "month": "%Y-%m"}
OVERHEAD = "overhead"


@dataclass(frozen=True)
class Receivers:
    """Who takes part in what is shared, and by which weight.

    Args:
        groups: ``gid, part, clock, effective, even, weighted``: own cost of the groups before idle,
            and their weights.
        rows: ``gid, shown, policy`` (null) and ``weight``: the same inside each group, by whether
            the rows are shown.
    """

    groups: pl.DataFrame
    rows: pl.DataFrame


def receivers(placed: Placed) -> Receivers:
    """The groups that hold anything of their own that is not shared, counted before filters."""
    own = (
        placed.rows.filter("receives")
        .group_by("gid", "shown")
        .agg(pl.col("effective").sum())
        .with_columns(pl.lit(None, dtype=pl.Int32).alias("policy"))
    )
    groups = (
        own.group_by("gid")
        .agg(pl.col("effective").sum())
        .join(placed.keys.select("gid", "part", "clock"), on="gid")
    )
    inside = weights(pl.col("effective"), "gid").alias("weight")
    return Receivers(groups, own.select("gid", "shown", "policy", inside))


def claims(found: Receivers, request: Query, rows: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The weight of each group for each policy.

    Returns:
        ``policy, part, place`` (a number for both), ``gid, weight``; none where nobody can take.
    """
    policies = request.sharing.policies
    splits = pl.DataFrame(
        {"policy": range(len(policies)), "split": [policy.split for policy in policies]},
        schema={"policy": pl.Int32, "split": pl.String},
    )
    used = pl.concat([each.select("policy", "part") for each in rows]).unique()
    used = used.join(splits, on="policy")
    return _weighed(found, used, "part")


def _weighed(found: Receivers, used: pl.DataFrame, period: str) -> pl.DataFrame:
    places = used.sort("policy", period).with_row_index("place")
    by_cost = weights(pl.col("effective"), "place")
    return (
        places.join(found.groups, on=period)
        .with_columns(pl.when(pl.col("split") == "even").then(1).otherwise(by_cost).alias("weight"))
        .filter(pl.col("weight") > 0)
        .select("policy", period, "place", "gid", "weight")
    )


def leave(rows: pl.DataFrame, takers: pl.DataFrame) -> pl.DataFrame:
    """Rows whose policy finds nobody to take them stay as they are."""
    found = takers.select("policy", "part").unique().with_columns(pl.col("policy").alias("found"))
    joined = rows.join(found, on=["policy", "part"], how="left")
    return joined.with_columns(pl.col("found").alias("policy")).drop("found")


def reach(takers: pl.DataFrame, found: Receivers) -> pl.DataFrame:
    """Which part of what a policy shares reaches rows that are shown, in 1e-18.

    Returns:
        ``policy, part, seen``.
    """
    if takers.is_empty():
        return pl.DataFrame(schema={"part": pl.UInt32, "policy": pl.Int32, "seen": pl.Int64})
    whole = takers.with_columns(pl.lit(WHOLE, dtype=pl.Int128).alias("units"))
    groups = split(whole.lazy(), group=["place"], amounts=["units"], weight="weight", order=["gid"])
    inside = found.rows.lazy()
    parts = split(
        groups.drop("weight").join(inside.drop("policy"), on="gid"),
        group=["place", "gid"],
        amounts=["units"],
        weight="weight",
        order=["shown"],
    )
    seen = pl.col("units").filter("shown").sum().cast(pl.Int64)
    return parts.group_by("policy", "part").agg(seen.alias("seen")).collect()


def share(rows: pl.DataFrame, takers: pl.DataFrame, found: Receivers) -> pl.DataFrame:
    """Give the rows of each policy, and the idle that came to them, to the other groups.

    Args:
        rows: Rows with ``gid`` and ``part``.
        takers: ``claims``.
        found: ``receivers``.
    """
    taken = rows.filter(pl.col("policy").is_not_null())
    if taken.is_empty():
        return rows
    places = takers.select("policy", "part", "place").unique()
    moved = sources(taken.join(places, on=["policy", "part"]), ["place"])
    finer = takers.select("place", "gid").join(found.rows, on="gid")
    return together(
        rows.filter(pl.col("policy").is_null()),
        spread(moved, takers.select("place", "gid", "weight"), "place", finer),
        emptied(taken),
    )


def moved_amounts(rows: pl.DataFrame, takers: pl.DataFrame) -> dict[int, tuple[Decimal, int]]:
    """Per policy the cost that it moves, and over how many keys."""
    counts = takers.group_by("policy").agg(pl.col("gid").n_unique().alias("keys"))
    sums = rows.filter(pl.col("policy").is_not_null()).group_by("policy").agg(pl.col("cost").sum())
    told = sums.with_columns(from_units(pl.col("cost"))).join(counts, on="policy")
    return {row["policy"]: (row["cost"], row["keys"]) for row in told.iter_rows(named=True)}


def overhead_total(request: Query) -> int:
    """The overhead of the window, in units."""
    ms = (request.window.end - request.window.start) // timedelta(milliseconds=1)
    per_hour = int(request.sharing.overhead * UNITS)
    return (2 * per_hour * ms + _HOUR_MS) // (2 * _HOUR_MS)


def add_overhead(placed: Placed, found: Receivers, request: Query) -> Placed:
    """Add the overhead of the window to the groups, or as a shared row where there are none."""
    total = overhead_total(request)
    if not total:
        return placed
    clocks = _clocks(request, total)
    times = [name for name in CLOCK if name in request.by]
    keys = placed.keys
    if times:
        known = keys.select(*times, "clock").unique()
        clocks = clocks.join(known, on=times, how="left")
    else:
        clocks = clocks.with_columns(pl.lit(0, dtype=pl.UInt32).alias("clock"))
    used = (
        clocks.select("clock")
        .drop_nulls()
        .with_columns(
            pl.lit(0, dtype=pl.Int32).alias("policy"),
            pl.lit(request.sharing.overhead_split).alias("split"),
        )
    )
    takers = _weighed(found, used, "clock")
    amounts = clocks.with_columns(
        *(pl.col("units").alias(name) for name in ("cost", "effective", "active")),
        pl.lit(0, dtype=pl.Int128).alias("dark_size"),
        pl.lit(1, dtype=pl.Int64).alias("known"),
        pl.lit(0, dtype=pl.Int64).alias("dark"),
        pl.lit("declared").alias("x_Basis"),
        pl.lit("high").alias("trust"),
    ).with_row_index("source")
    given = spread(
        amounts.join(takers.select("clock", "place").unique(), on="clock").select(
            "source", "place", "x_Basis", "trust", *MOVED, "known", "dark"
        ),
        takers.select("place", "gid", "weight"),
        "place",
        takers.select("place", "gid").join(found.rows, on="gid"),
    )
    left = amounts.join(takers.select("clock").unique(), on="clock", how="anti")
    return _with_left(placed, given, left, request)


def _with_left(placed: Placed, given: pl.DataFrame, left: pl.DataFrame, request: Query) -> Placed:
    """Add what was given, and what nobody could take as rows of ``__shared__``."""
    if left.is_empty():
        return replace(placed, rows=together(placed.rows, given))
    own = left.with_columns(
        pl.lit(SHARED).alias(key) for key in request.by if key not in left.columns
    ).with_row_index("gid", offset=placed.keys.height)
    rows = own.with_columns(
        _of_nobody(own, request).with_columns(visibility(request))["shown"],
        pl.lit(None, dtype=pl.Int32).alias("policy"),
    )
    more = number_periods(own.select("gid", *request.by)).cast(placed.keys.schema)
    keys = pl.concat([placed.keys, more])
    return replace(placed, rows=together(placed.rows, given, as_rows(rows)), keys=keys)


def _of_nobody(own: pl.DataFrame, request: Query) -> pl.DataFrame:
    """Shared rows without any value but their time, for conditions to look at."""
    schema = {name: COSTS.columns[name].dtype for name in request.columns}
    blank = {**schema, **dict.fromkeys(request.opened, pl.String()), "target": pl.String()}
    rows = pl.DataFrame({name: [None] * own.height for name in blank}, schema=blank)
    named = dict.fromkeys(("target", *IDENTITY_KEYS), pl.lit(SHARED))
    rows = rows.with_columns(**named)
    finest = next((key for key in CLOCK if key in request.by), None)
    if finest is None:
        return rows
    # The text of a month or a day is the start of that of its first hour.
    start = own[finest] + "2000-01-01T00:00:00Z"[len(own[finest][0]) :]
    moment = start.str.to_datetime(_FORMATS["hour"], time_zone="UTC")
    return rows.with_columns(moment.dt.date().alias("day"), moment.alias("ChargePeriodStart"))


def _clocks(request: Query, total: int) -> pl.DataFrame:
    """The overhead per value of the clock keys: by the hours, or parts of one, that each holds."""
    times = [name for name in CLOCK if name in request.by]
    whole: dict[str, Any] = {"units": pl.Series([total], dtype=pl.Int128)}
    if not times:
        return pl.DataFrame(whole)
    start, end = request.window.start, request.window.end
    first = start.replace(minute=0, second=0, microsecond=0)
    hours = pl.DataFrame(
        {"hour": pl.datetime_range(first, end, "1h", closed="left", eager=True, time_unit="us")}
    )
    begins = pl.max_horizontal("hour", pl.lit(start))
    ends = pl.min_horizontal(pl.col("hour") + pl.duration(hours=1), pl.lit(end))
    cut = hours.with_columns(
        (ends - begins).dt.total_milliseconds().alias("weight"),
        pl.lit(0).alias("all"),
        pl.lit(total, dtype=pl.Int128).alias("units"),
    )
    parts = split(cut.lazy(), group=["all"], amounts=["units"], weight="weight", order=["hour"])
    named = [pl.col("hour").dt.strftime(_FORMATS[name]).alias(name) for name in times]
    return parts.collect().group_by(named).agg(pl.col("units").sum()).sort(times)
