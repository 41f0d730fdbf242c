"""Prices for node-hours that no bill line covers; what has no price is a gap."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from attribution.prices.book import METRIC, OK
from attribution.prices.gaps import price_gaps
from attribution.prices.quote import SIZE, UNCOUNTED, settle, weights
from attribution.ratio import HOUR
from ledger.facts import Gap
from ledger.money import from_units
from ledger.schema import CHARGES, COST_COLUMNS, TIME

SOURCE = "prices"
"""``x_Source`` of estimated lines."""

UNMATCHED = "unmatched"
"""``x_PriceSource`` of lines of the bill that are laid over nodes by the nodes' prices."""

_NAMES = {"aws": "AWS", "gce": "Google Cloud", "azure": "Microsoft"}
_RATES = ("rate_node", "rate_card", "rate_vcpu", "rate_gib")
_SAME = ("state", "way", "source", "currency", *_RATES)


@dataclass(frozen=True)
class Estimates:
    """Lines made up from prices, and what could not be priced.

    Args:
        lines: Columns of ``charges`` and those of ``match.bill_lines`` but ``line``; one row per
            node-hour and stretch of one price in it, with ``nh`` and ``step``.
        steps: ``nh, step, start, end`` (ms) of the node-hours in which the price changes: they cut
            the hour.
        gaps: ``unpriced``, ``price_ambiguous``, ``currency`` and ``price_outlier``.
        by_size: Node-hours that were priced by vCPU and GiB.
    """

    lines: pl.DataFrame
    steps: pl.DataFrame
    gaps: tuple[Gap, ...]
    by_size: int


def estimate(hours: pl.DataFrame, quotes: pl.DataFrame) -> Estimates:
    """Lines for the given node-hours at their quotes.

    Args:
        hours: ``node_hours.node_hours``, those that no bill line pays for.
        quotes: ``quote.quote``.
    """
    facts = hours.select("nh", "provider_id", "region", "zone", "instance_type")
    mine = _numbered(quotes.join(facts, on="nh"))
    priced = mine.filter(pl.col("state") == OK)
    sized = priced.filter(way=SIZE)["nh"].n_unique()
    left = mine.filter(~pl.col("state").is_in([OK, UNCOUNTED]))
    return Estimates(_lines(priced), _steps(mine), price_gaps(left, mine), sized)


def _numbered(mine: pl.DataFrame) -> pl.DataFrame:
    """Number the stretches of one price in each hour: ``step``, from 0."""
    ordered = mine.sort("nh", "start")
    changes = pl.any_horizontal(
        pl.col(name).ne_missing(pl.col(name).shift(1)) for name in (*_SAME, "nh")
    )
    # Sums without windows, which are slow: of all changes so far, less those at the hour's first.
    ordered = ordered.with_columns(changes.cast(pl.Int64).cum_sum().alias("step"))
    firsts = ordered.group_by("nh").agg(pl.col("step").min().alias("first"))
    return (
        ordered.join(firsts, on="nh", maintain_order="left")
        .with_columns(pl.col("step") - pl.col("first"))
        .drop("first")
    )


def _steps(mine: pl.DataFrame) -> pl.DataFrame:
    """The parts that tile the hours in which the price changes."""
    several = mine.filter(pl.col("step").max().over("nh") > 0)
    tiles = several.group_by("nh", "step").agg(pl.col("start").min(), pl.col("hour").first())
    tiles = tiles.sort("nh", "step")
    nexts = pl.col("start").shift(-1).over("nh")
    return tiles.select(
        "nh",
        "step",
        pl.when(pl.col("step") == 0).then("hour").otherwise("start").alias("start"),
        nexts.fill_null(pl.col("hour") + HOUR).alias("end"),
    )


def _lines(priced: pl.DataFrame) -> pl.DataFrame:
    parts = weights([pl.col(name) for name in _RATES], pl.col("end") - pl.col("start"))
    names = ("of_cards", "of_cpu", "of_memory")
    told = ("provider_id", "region", "zone", "currency", "source")
    sums = (
        priced.with_columns(part.alias(name) for part, name in zip(parts, names, strict=True))
        .group_by("nh", "step", "cluster", "node", "hour")
        .agg(
            pl.col("start").min(),
            pl.col("end").max(),
            pl.col(*names).sum(),
            *(pl.col(name).first() for name in told),
        )
        .with_columns(settle(*(pl.col(name) for name in names)).alias("units"))
        .sort("nh", "step")
    )
    whole = pl.len().over("nh") == 1
    sums = sums.with_columns(
        pl.when(whole).then("hour").otherwise("start").alias("start"),
        pl.when(whole).then(pl.col("hour") + HOUR).otherwise("end").alias("end"),
    )
    given = _columns()
    charge = [
        given.get(name, pl.lit(None)).cast(column.dtype).alias(name)
        for name, column in CHARGES.columns.items()
    ]
    money = [
        (pl.col("units") if name == "EffectiveCost" else pl.lit(None, dtype=pl.Int128)).alias(
            f"units_{name}"
        )
        for name in COST_COLUMNS
    ]
    length = (pl.col("end") - pl.col("start")).alias("length")
    return sums.select("nh", "step", *charge, "start", "end", length, *money)


def _columns() -> dict[str, pl.Expr]:
    """The columns of ``charges`` that an estimated line has."""
    hour, start, end = (_time(name) for name in ("hour", "start", "end"))
    scheme = pl.col("provider_id").str.extract(r"^(\w+)://", 1)
    provider = scheme.replace_strict(_NAMES, default=None, return_dtype=pl.String)
    name = hour.dt.strftime("%Y-%m-%dT%HZ")
    at = (
        pl.when(pl.col("step") == 0)
        .then(name)
        .otherwise(start.dt.strftime("%Y-%m-%dT%H:%M:%S%.fZ"))
    )
    return {
        "day": hour.dt.date(),
        "x_Source": pl.lit(SOURCE),
        "x_Part": pl.lit(0, dtype=pl.Int64),
        "x_LineId": pl.format("estimate/{}/{}/{}", "cluster", "node", at),
        "x_Basis": pl.lit("estimated"),
        "x_PriceSource": pl.col("source"),
        "x_Dimension": pl.lit("compute"),
        "x_Elasticity": pl.lit("elastic"),
        "BillingCurrency": pl.col("currency"),
        "ChargeCategory": pl.lit("Usage"),
        "ServiceCategory": pl.lit("Compute"),
        "ProviderName": provider,
        "ServiceProviderName": provider,
        "RegionId": pl.col("region"),
        "AvailabilityZone": pl.col("zone"),
        "ResourceId": pl.col("provider_id"),
        "ConsumedUnit": pl.lit("Hours"),
        "ChargePeriodStart": start,
        "ChargePeriodEnd": end,
        "EffectiveCost": from_units(pl.col("units")),
    }


def _time(name: str) -> pl.Expr:
    return pl.from_epoch(name, time_unit="ms").dt.replace_time_zone("UTC").cast(TIME)


def doubtful() -> pl.Expr:
    """Whether a price is what an exporter shows, or a line meets its nodes by their prices only."""
    return pl.col("x_PriceSource").is_in([METRIC, UNMATCHED]).fill_null(value=False)
