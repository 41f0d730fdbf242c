"""What a ResourceQuota reserves and nobody asked for: a view on idle, never an addition.

A namespace that reserves capacity keeps others from it. What is left of a quota after
max(request, use) moves, at its price, out of idle to that namespace, and never more than the idle
there is (opencost/opencost#3971).
"""

from __future__ import annotations

import polars as pl

from ledger.money import UNITS, from_units, split, to_units
from ledger.window import Window

POOL = ("BillingCurrency", "day", "cluster", "resource")
"""What tells pools apart."""

_HOUR_MS = 3_600_000


def quota_overhead(quotas: pl.DataFrame, idle: pl.DataFrame, window: Window) -> pl.DataFrame:
    """Move the unused part of quotas out of idle.

    Args:
        quotas: ``POOL``, ``namespace`` and, as ``Decimal(38, 12)``, ``hard`` and ``used``
            (max of request and use, over the window) in units of the resource, and ``price`` of one
            of them for an hour. Null: not known, and nothing moves.
        idle: ``POOL`` and ``cost``, ``Decimal(38, 12)``, of the window.
        window: How long the quotas hold.

    Returns:
        ``POOL``, ``namespace``, ``overhead`` and, for idle that stays, rows whose namespace is
        null. Where quotas want more than there is, they share it by what they want; the sum of each
        pool is its idle, exactly.
    """
    ms = int((window.end - window.start).total_seconds() * 1000)
    unused = pl.max_horizontal(to_units(pl.col("hard")) - to_units(pl.col("used")), pl.lit(0))
    worth = unused * to_units(pl.col("price")) // UNITS * ms // _HOUR_MS
    wanted = (
        quotas.select(*POOL, "namespace", worth.fill_null(0).alias("wanted"))
        .group_by(*POOL, "namespace")
        .agg(pl.col("wanted").sum())
    )
    pools = idle.group_by(POOL).agg(to_units(pl.col("cost")).sum().alias("overhead"))
    asked = wanted.group_by(POOL).agg(pl.col("wanted").sum().alias("asked"))
    whole = pl.max_horizontal("overhead", pl.lit(0))
    claims = (
        wanted.join(pools.with_columns(whole), on=POOL)
        .join(asked, on=POOL)
        .with_columns(pl.min_horizontal("overhead", "asked").alias("overhead"))
    )
    step = pl.col("asked") // 2**62 + 1
    moved = split(
        claims.with_columns((pl.col("wanted") // step).cast(pl.Int64).alias("weight")).lazy(),
        group=POOL,
        amounts=["overhead"],
        weight="weight",
        order=["namespace"],
    ).collect()
    given = moved.group_by(POOL).agg(pl.col("overhead").sum().alias("given"))
    left = pools.join(given, on=POOL, how="left").select(
        *POOL,
        pl.lit(None, dtype=pl.String).alias("namespace"),
        pl.col("overhead") - pl.col("given").fill_null(0),
    )
    names = [*POOL, "namespace"]
    rows = pl.concat([moved.select(*names, "overhead"), left.select(*names, "overhead")])
    return rows.sort(names, nulls_last=True).with_columns(from_units(pl.col("overhead")))
