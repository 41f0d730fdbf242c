"""Line → hours → pools → claims, each time exactly."""

from __future__ import annotations

import polars as pl

from attribution.nodes.aws_splits import PodSplits
from attribution.nodes.methods import claims
from attribution.nodes.pools import Rates, pools
from ledger.money import split
from ledger.schema import COST_COLUMNS

UNITS = tuple(f"units_{name}" for name in COST_COLUMNS)


def hour_parts(lines: pl.DataFrame, line_hours: pl.DataFrame) -> pl.DataFrame:
    """Cut the lines over their hours by milliseconds of overlap.

    Args:
        lines: ``line``, ``BillingCurrency`` and whole amounts in ``units_…``.
        line_hours: ``line, nh, hour, ms``.

    Returns:
        ``line, nh, currency``, the hour's amounts, and ``main``: whether the line is the one of its
        node-hour with the largest effective cost.
    """
    rows = line_hours.join(
        lines.select("line", pl.col("BillingCurrency").alias("currency"), *UNITS), on="line"
    )
    parts = split(rows.lazy(), group=["line"], amounts=UNITS, weight="ms", order=["hour", "nh"])
    numbered = parts.collect().with_row_index("part").drop("hour", "ms")
    main = numbered.sort(
        "nh", "units_EffectiveCost", "line", descending=[False, True, False], nulls_last=True
    ).unique("nh", keep="first")
    first = pl.zeros(numbered.height, pl.Boolean, eager=True).scatter(main["part"], values=True)
    return numbered.drop("part").with_columns(main=first)


def weigh_pools(parts: pl.DataFrame, hours: pl.DataFrame, rates: Rates) -> pl.DataFrame:
    """The weights of the pools of each node-hour (``pools.pools``) at its price by all lines."""
    price = parts.group_by("nh", "currency").agg(
        pl.col("units_EffectiveCost").fill_null(0).sum().alias("price")
    )
    return pools(hours, price, rates)


def node_shares(
    parts: pl.DataFrame,
    hours: pl.DataFrame,
    held: pl.DataFrame,
    weights: pl.DataFrame,
    told: PodSplits,
) -> pl.DataFrame:
    """Split hours of lines over pools and claims.

    Args:
        parts: Rows of ``hour_parts``; no share depends on which others are there.
        hours: ``methods.classify``.
        held: Amounts per ``nh`` and ``who``.
        weights: ``weigh_pools`` of all parts of the day.
        told: The provider's own splits, which stand in the place of claims.

    Returns:
        ``line, nh, pool, kind, who, start, end, card_ms`` and the amounts, in the order of the
        parts, pools and claims; ``card_ms`` stands on one line of a node-hour only, its main one.
    """
    some = parts.select("nh").unique()
    hours, held, weights = (
        frame.join(some, on="nh", how="semi") for frame in (hours, held, weights)
    )
    pooled = split(
        parts.with_row_index("part")
        .join(
            weights.sort("nh", "currency", "pool"),
            on=["nh", "currency"],
            maintain_order="left_right",
        )
        .lazy(),
        group=["part"],
        amounts=UNITS,
        weight="weight",
        order=["pool"],
        ordered=True,
    )
    by_pool = pooled.drop("part", "weight", "currency").with_row_index("share").collect()
    claimed = told.claimed(claims(hours, held)).sort(
        "nh", "pool", "kind", "who", "start", nulls_last=True
    )
    rows = split(
        by_pool.join(claimed, on=["nh", "pool"], maintain_order="left_right").lazy(),
        group=["share"],
        amounts=UNITS,
        weight="amount",
        order=["kind", "who", "start"],
        ordered=True,
    ).collect()
    return rows.with_columns(pl.when("main").then("card_ms").alias("card_ms")).select(
        "line", "nh", "pool", "kind", "who", "start", "end", "main", "card_ms", *UNITS
    )
