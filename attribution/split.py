"""Line → hours → pools → claims, each time exactly."""

from __future__ import annotations

import polars as pl

from attribution.methods import claims
from attribution.pools import Rates, pools
from ledger.money import split
from ledger.schema import COST_COLUMNS

UNITS = tuple(f"units_{name}" for name in COST_COLUMNS)


def hour_parts(lines: pl.DataFrame, line_hours: pl.DataFrame) -> pl.DataFrame:
    """Cut the lines over their hours by milliseconds of overlap.

    Args:
        lines: ``line``, ``BillingCurrency`` and whole amounts in ``units_…``.
        line_hours: ``line, nh, hour, ms``.

    Returns:
        ``line, nh, currency, part`` and the hour's amounts.
    """
    rows = line_hours.join(
        lines.select("line", pl.col("BillingCurrency").alias("currency"), *UNITS), on="line"
    )
    parts = split(rows.lazy(), group=["line"], amounts=UNITS, weight="ms", order=["hour", "nh"])
    return parts.collect().with_row_index("part").drop("hour", "ms")


def node_shares(
    parts: pl.DataFrame, hours: pl.DataFrame, held: pl.DataFrame, rates: Rates
) -> pl.DataFrame:
    """Split the hours of lines over pools and claims.

    Args:
        parts: ``hour_parts``.
        hours: ``methods.classify``.
        held: Amounts per ``nh`` and ``who``.
        rates: Reference rates.

    Returns:
        ``line, nh, pool, kind, who, start, end, card_ms`` and the amounts; ``card_ms`` stands on
        one line of a node-hour only, the one with the largest effective cost.
    """
    price = parts.group_by("nh", "currency").agg(
        pl.col("units_EffectiveCost").fill_null(0).sum().alias("price")
    )
    weights = pools(hours, price, rates)
    main = (
        parts.sort(
            "nh", "units_EffectiveCost", "line", descending=[False, True, False], nulls_last=True
        )
        .unique("nh", keep="first")
        .select("part", main=True)
    )
    by_pool = (
        split(
            parts.join(main, on="part", how="left").join(weights, on=["nh", "currency"]).lazy(),
            group=["part"],
            amounts=UNITS,
            weight="weight",
            order=["pool"],
        )
        .collect()
        .with_row_index("share")
    )
    by_claim = by_pool.drop("weight", "currency").join(claims(hours, held), on=["nh", "pool"])
    rows = split(
        by_claim.lazy(),
        group=["share"],
        amounts=UNITS,
        weight="amount",
        order=["kind", "who", "start"],
    ).collect()
    return rows.with_columns(pl.when("main").then("card_ms").alias("card_ms")).select(
        "line", "nh", "pool", "kind", "who", "start", "end", "card_ms", *UNITS
    )
