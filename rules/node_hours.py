"""What is known of every GPU node in every local hour: paid, working, idle, or not seen.

The frames here are keyed by (cluster, node, hour). ``hour`` numbers the local hours of the window
(``rules.calendar.local_hours``); all times are UTC, all lengths milliseconds.

States of a node in an hour:

| state | meaning |
|---|---|
| ``early`` | before the node was first seen: nothing is known of it |
| ``off`` | the cluster was seen and the node not, nor any trace; or its bill lacks the hour |
| ``busy`` | up, and a device worked |
| ``idle`` | up, and no pod held a GPU or all devices stayed quiet, with enough coverage |
| ``unknown`` | anything else |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from ledger.schema import COSTS, NODES, USAGE, WORKLOADS
from ledger.settings import IdleNodes
from rules.calendar import SLOT, LocalHour
from rules.rule import RuleTables

KEY = ("cluster", "node")
METER = "gpu_activity"
_QUARTER = int(SLOT.total_seconds() * 1000)
_TIME = pl.Datetime("us", "UTC")
_HOUR = [*KEY, "hour"]


def _ms(span: pl.Expr) -> pl.Expr:
    return span.dt.total_milliseconds()


@dataclass(frozen=True)
class Hours:
    """The local hours of a window as frames.

    Args:
        frame: ``hour, hour_start, hour_end, length`` (ms) and whatever columns the rule adds.
        slots: ``slot, hour``: the quarter hours of each.
    """

    frame: pl.DataFrame
    slots: pl.DataFrame

    @classmethod
    def of(cls, hours: Sequence[LocalHour], **columns: Sequence[object]) -> Hours:
        """Frames of local hours; ``columns`` hold one value per hour."""
        frame = pl.DataFrame(
            {
                "hour": list(range(len(hours))),
                "hour_start": [h.span.start for h in hours],
                "hour_end": [h.span.end for h in hours],
                **columns,
            },
            schema_overrides={"hour": pl.Int64(), "hour_start": _TIME, "hour_end": _TIME},
        ).with_columns(_ms(pl.col("hour_end") - pl.col("hour_start")).alias("length"))
        slots = frame.select(
            "hour",
            pl.datetime_ranges("hour_start", "hour_end", SLOT, closed="left").alias("slot"),
        ).explode("slot")
        return cls(frame, slots)


def merge_intervals(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """``start, end`` per key as intervals that do not overlap: what any of the rows covers."""
    reach = pl.col("end").cum_max().over(keys).shift(1).over(keys)
    return (
        rows.filter(pl.col("start") < pl.col("end"))
        .select(*keys, "start", "end")
        .sort(*keys, "start", "end")
        .with_columns((pl.col("start") > reach).fill_null(True).cum_sum().over(keys).alias("run"))
        .group_by(*keys, "run")
        .agg(pl.col("start").min(), pl.col("end").max())
        .drop("run")
    )


def time_per_hour(rows: pl.LazyFrame, keys: Sequence[str], hours: Hours, name: str) -> pl.LazyFrame:
    """Milliseconds of every hour that any of the intervals covers: ``*keys, hour, <name>``."""
    overlap = pl.min_horizontal("end", "hour_end") - pl.max_horizontal("start", "hour_start")
    return (
        merge_intervals(rows, keys)
        .join_where(
            hours.frame.lazy(),
            pl.col("start") < pl.col("hour_end"),
            pl.col("end") > pl.col("hour_start"),
        )
        .group_by(*keys, "hour")
        .agg(_ms(overlap).sum().alias(name))
    )


def node_list(tables: RuleTables) -> pl.DataFrame:
    """Every node that any table speaks of, and whether it has cards.

    Returns:
        ``cluster, node, first_seen, last_seen`` (null = no row in ``nodes``), ``gpus`` (null =
        unknown or not said), ``traces`` (pods with cards, devices or card costs on it).
    """
    traces = (
        pl.concat(
            [
                tables[WORKLOADS].filter(pl.col("gpus") > 0).select(KEY),
                tables[USAGE].filter(pl.col("meter") == METER).select(KEY),
                tables[COSTS].filter(pl.col("resource") == "gpu").select(KEY),
            ]
        )
        .drop_nulls()
        .unique()
        .with_columns(pl.lit(True).alias("traces"))
    )
    known = (
        tables[NODES]
        .group_by(KEY)
        .agg(
            pl.min_horizontal("start", "created").min().alias("first_seen"),
            pl.col("end").max().alias("last_seen"),
            pl.col("gpus").max(),
        )
    )
    return (
        known.join(traces, on=KEY, how="full", coalesce=True)
        .with_columns(pl.col("traces").fill_null(False))
        .sort(KEY)
        .collect()
    )


def device_hours(usage: pl.LazyFrame, hours: Hours) -> pl.DataFrame:
    """How long each device was sampled in each hour, and its peak; rolled up day by day.

    Returns:
        ``cluster, node, card, device, hour, samples, expected, seen`` (quarters of an hour, by
        samples over expected samples), ``peak``; and ``instances``: how many devices the card had
        that day (a partitioned card has several, ``card/instance``).
    """
    days = hours.slots.select(pl.col("slot").dt.date().alias("day")).unique().sort("day")
    parts = [
        _device_day(usage.filter(pl.col("day") == day), hours).collect()
        for day in days["day"].to_list()
    ]
    # An hour that lies over UTC midnight has a part in each day.
    return (
        pl.concat(parts)
        .group_by(*KEY, "card", "device", "hour")
        .agg(
            pl.col("samples", "expected", "seen").sum(),
            pl.col("peak").max(),
            pl.col("instances").max(),
        )
    )


def _device_day(usage: pl.LazyFrame, hours: Hours) -> pl.LazyFrame:
    """``device_hours`` of one UTC day.

    A slot without any sample has no row. Where a slot expects five samples or more, every slot of
    an hour should have some; where samples are rarer, as many slots as in the day's best hour.
    """
    device = [*KEY, "device"]
    full = pl.col("full").max().over(device)
    ratio = pl.col("samples") / pl.max_horizontal("expected", full, 1)
    whole = pl.col("quarters") == pl.col("hour_quarters")
    best = (pl.col("with_samples") / pl.col("quarters")).filter(whole).max().over(device)
    density = pl.when(pl.col("full") >= 5).then(1.0).otherwise(best.fill_null(1.0))
    card = pl.col("device").fill_null("").str.split("/").list.first()
    return (
        _device_slots(usage)
        .join(_day_slots(hours).lazy(), on="slot")
        .with_columns(full.alias("full"), ratio.clip(upper_bound=1.0).alias("ratio"))
        .group_by(*device, "hour")
        .agg(
            pl.col("samples", "ratio").sum(),
            pl.col("full", "peak", "quarters", "hour_quarters").max(),
            (pl.col("samples") > 0).cast(pl.Int64).sum().alias("with_samples"),
        )
        .with_columns(density.alias("density"), card.alias("card"))
        .select(
            *KEY,
            "card",
            "device",
            "hour",
            "samples",
            (pl.col("full") * pl.col("density") * pl.col("quarters")).alias("expected"),
            (pl.col("ratio") / pl.col("density")).alias("seen"),
            "peak",
            pl.col("device").n_unique().over(*KEY, "card").alias("instances"),
        )
    )


def _day_slots(hours: Hours) -> pl.DataFrame:
    """``slot, hour, quarters`` (of the hour in the slot's day), ``hour_quarters`` (in all)."""
    count = pl.len().cast(pl.Int64)
    return hours.slots.with_columns(
        count.over("hour", pl.col("slot").dt.date()).alias("quarters"),
        count.over("hour").alias("hour_quarters"),
    )


def _device_slots(usage: pl.LazyFrame) -> pl.LazyFrame:
    """Slots of devices, whoever held them: a slot has a row for each holder and for no holder."""
    return (
        usage.filter(pl.col("meter") == METER, pl.col("node").is_not_null())
        .group_by(*KEY, "device", "slot")
        .agg(
            pl.col("samples", "expected").fill_null(0).sum(),
            pl.col("expected").max().fill_null(0).alias("full"),
            pl.col("max").fill_nan(None).max().alias("peak"),
        )
    )


def _watched(tables: RuleTables, hours: Hours) -> pl.LazyFrame:
    """Time in which samples showed the node, so that it is known which pods held its cards.

    An API snapshot does not count: it is blind to pods that were deleted before it. And a day
    without a single sampled pod in the cluster says nothing of its pods.
    """
    sampled = pl.col("interval_seconds").is_not_null()
    days = tables[WORKLOADS].filter(sampled).select("cluster", "day").unique()
    seen = tables[NODES].filter(sampled).join(days, on=["cluster", "day"], how="semi")
    return time_per_hour(seen, KEY, hours, "watched")


def states(
    tables: RuleTables,
    nodes: pl.DataFrame,
    hours: Hours,
    billing: pl.LazyFrame,
    thresholds: IdleNodes,
) -> pl.DataFrame:
    """The state of each of the nodes in each hour.

    Args:
        tables: The window's tables.
        nodes: ``cluster, node, first_seen, gpus``.
        hours: The local hours.
        billing: ``cluster, node, hour, billed``: whether the bill has the node in that hour; no
            row where the bill is not in.
        thresholds: Settings of the rule.

    Returns:
        ``cluster, node, hour, up`` (ms), ``state, samples, expected, peak, held`` and the columns
        of the hours, sorted.
    """
    held = tables[WORKLOADS].filter(pl.col("gpus") > 0, pl.col("node").is_not_null())
    return (
        nodes.lazy()
        .select(*KEY, "first_seen", "gpus")
        .join(hours.frame.lazy(), how="cross")
        .join(time_per_hour(tables[NODES], KEY, hours, "up"), on=_HOUR, how="left")
        .join(
            time_per_hour(tables[NODES], ["cluster"], hours, "cluster_seen"),
            on=["cluster", "hour"],
            how="left",
        )
        .join(time_per_hour(held, KEY, hours, "held"), on=_HOUR, how="left")
        .join(_watched(tables, hours), on=_HOUR, how="left")
        .with_columns(pl.col("up", "cluster_seen", "held", "watched").fill_null(0))
        .with_columns(_may_be_up().alias("share"))
        .pipe(_with_devices, device_hours(tables[USAGE], hours), thresholds.min_coverage)
        .join(billing, on=_HOUR, how="left")
        .with_columns(_state(thresholds).alias("state"))
        .sort(_HOUR)
        .collect()
    )


def _may_be_up() -> pl.Expr:
    """Share of the hour that needs evidence: all but the time known to be without the node."""
    known_off = (pl.col("cluster_seen") - pl.col("up")).clip(lower_bound=0)
    return 1 - known_off / pl.col("length")


def _with_devices(rows: pl.LazyFrame, devices: pl.DataFrame, min_coverage: float) -> pl.LazyFrame:
    """Adds ``samples, expected, peak, covered``: cards with enough samples for the paid time."""
    span = rows.select(*_HOUR, "share", (pl.col("length") / _QUARTER).alias("quarters"))
    # The margin is for divisions of floats: 0.9 of 4 is not always 3.6 quarters.
    needed = pl.col("quarters") * pl.col("share") * min_coverage - 1e-9
    cards = (
        devices.lazy()
        .join(span, on=_HOUR)
        .with_columns(((pl.col("samples") > 0) & (pl.col("seen") >= needed)).alias("covered"))
        .group_by(*_HOUR, "card")
        .agg(
            pl.col("samples", "expected").sum(),
            pl.col("peak").max(),
            (pl.col("covered").cast(pl.Int64).sum() >= pl.col("instances").max()).alias("covered"),
        )
    )
    summary = cards.group_by(_HOUR).agg(
        pl.col("samples").sum(),
        pl.col("expected").sum().round().cast(pl.Int64),
        pl.col("peak").max(),
        pl.col("covered").cast(pl.Int64).sum(),
    )
    return rows.join(summary, on=_HOUR, how="left").with_columns(
        pl.col("samples", "expected", "covered").fill_null(0)
    )


def _state(thresholds: IdleNodes) -> pl.Expr:
    """The table at the top of this module, as an expression."""
    down = pl.col("up") == 0
    seen = pl.col("cluster_seen") >= pl.col("length") * thresholds.min_coverage
    quiet = (pl.col("covered") >= pl.col("gpus")) & (pl.col("peak") <= thresholds.idle_activity)
    watched = pl.col("watched") >= pl.col("length") * pl.col("share") * thresholds.min_coverage
    free = watched & (pl.col("held") == 0)
    traced = pl.col("billed").fill_null(False) | (pl.col("samples") > 0) | (pl.col("held") > 0)
    early = (pl.col("first_seen") >= pl.col("hour_end")).fill_null(True)
    return (
        pl.when(down & early)
        .then(pl.lit("early"))
        .when(down & seen & ~traced)
        .then(pl.lit("off"))
        .when(down)
        .then(pl.lit("unknown"))
        .when(~pl.col("billed").fill_null(True))
        .then(pl.lit("off"))
        .when(pl.col("peak") > thresholds.idle_activity)
        .then(pl.lit("busy"))
        .when(free | quiet)
        .then(pl.lit("idle"))
        .otherwise(pl.lit("unknown"))
    )
