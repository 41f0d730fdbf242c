"""Idle: given to those who hold the rest of its pool, or apart.

A pool is the idle of a resource on a node (or in a cluster) on a day. A workload's part of it goes
by its cost of the same resource there; a pool that nobody holds keeps its idle.
"""

from __future__ import annotations

import polars as pl

from attribution.query.rows import MONEY
from attribution.query.share import WHOLE
from attribution.query.split import emptied, sources, spread, together, weights
from ledger.money import split

_PART = tuple(name for name in MONEY if name != "billed")


def share_idle(idle: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Give the idle of each pool to its holders; what cannot be given stays.

    A workload that is shared itself gets its part like any other: it travels with it.

    Args:
        idle: ``place.Placed.idle``.
        held: ``place.Placed.held``.
    """
    claims = (
        held.group_by("pool", "gid")
        .agg(pl.col("effective").sum())
        .with_columns(weights(pl.col("effective"), "pool").alias("weight"))
        .filter(pl.col("weight") > 0)
    )
    alike = held["shown"].all() and held["policy"].null_count() == held.height
    inside = weights(pl.col("effective"), ["pool", "gid"]).alias("weight")
    finer = None if alike else held.with_columns(inside).drop("effective")
    given = idle.join(claims.select("pool").unique(), on="pool", how="semi")
    return together(
        idle.join(given.select("pool").unique(), on="pool", how="anti"),
        spread(sources(given, ["pool"]), claims, "pool", finer),
        emptied(given),
    )


def keep_idle_apart(idle: pl.DataFrame, held: pl.DataFrame, reach: pl.DataFrame) -> pl.DataFrame:
    """Show of the idle that conditions do not decide about the part of its pool's shown holders.

    Args:
        idle: ``place.Placed.idle`` with ``part``.
        held: ``place.Placed.held``.
        reach: ``share.reach``: which part of what is shared reaches rows that are shown.

    Returns:
        The rows; such an idle row is cut in two, one shown and one hidden.
    """
    open_ = idle.filter("deferred")
    weight = weights(pl.col("effective"), "pool").alias("weight")
    sums = held.with_columns(weight)
    sums = sums.group_by("pool", "shown", "policy").agg(pl.col("weight").sum())
    pools = open_.select("pool", "part").unique(maintain_order=True)
    seen = pl.when("shown").then(WHOLE).otherwise(0)
    holders = (
        sums.join(pools, on="pool")
        .join(reach, on=["part", "policy"], how="left")
        .with_columns(pl.coalesce("seen", seen).cast(pl.Int128).alias("seen"))
        .with_columns((pl.col("weight").cast(pl.Int128) * pl.col("seen") // WHOLE).alias("in"))
        .group_by("pool", "part")
        .agg(pl.col("weight").sum().alias("all"), pl.col("in").sum().cast(pl.Int64))
        .filter(pl.col("all") > 0)
    )
    cut = open_.with_row_index("row").join(holders, on=["pool", "part"])
    rest = open_.join(holders, on=["pool", "part"], how="anti")
    sides = pl.concat(
        [
            cut.with_columns(
                pl.lit(side).alias("shown"),
                (pl.col("in") if side else pl.col("all") - pl.col("in")).alias("weight"),
            )
            for side in (True, False)
        ]
    ).filter(pl.col("weight") > 0)
    parts = split(
        sides.lazy(), group=["row"], amounts=list(_PART), weight="weight", order=["shown"]
    ).collect()
    return together(idle.filter(~pl.col("deferred")), rest, parts)
