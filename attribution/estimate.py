"""Prices for node-hours that no bill line covers; what has no price is a gap."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from attribution.node_hours import cards_unknown
from attribution.ratio import HOUR, KIB_PER_GIB, worth
from ledger.facts import Gap
from ledger.money import from_units, to_units
from ledger.schema import CHARGES, COST_COLUMNS

SOURCE = "prices"
"""``x_Source`` of estimated lines."""

_PROVIDERS = {"aws": "AWS", "gce": "Google Cloud", "azure": "Microsoft"}
_KEYS = ("provider", "region", "instance_type", "capacity_type")


@dataclass(frozen=True)
class Estimates:
    """Lines made up from prices, and what could not be priced.

    Args:
        lines: Columns of ``charges`` and those of ``match.bill_lines`` but ``line``; one row per
            node-hour, with ``nh``.
        gaps: ``unpriced``, with card-hours.
        by_size: Node-hours that were priced by vCPU and GiB.
    """

    lines: pl.DataFrame
    gaps: tuple[Gap, ...]
    by_size: int


def estimate(hours: pl.DataFrame, there: pl.DataFrame, prices: pl.DataFrame) -> Estimates:
    """Price the given node-hours for the time that their node was up.

    A price of the whole node wins over cards × price per card-hour (the host included), or vCPU and
    GiB at their rates on a node without cards. Among prices of one resource the most specific key
    wins; two prices of one key are ambiguous and price nothing.

    Args:
        hours: ``node_hours.node_hours``, those without a bill line.
        there: ``lives.there_spans``: when each node was up.
        prices: Rows of ``prices``.
    """
    hours = hours.filter(pl.col("up") > 0).with_columns(
        pl.col("provider_id")
        .str.extract(r"^(\w+)://", 1)
        .replace_strict(_PROVIDERS, default=None, return_dtype=pl.String)
        .alias("provider")
    )
    book = _book(prices)
    rated = hours
    for resource in ("node", "gpu", "vcpu", "gib"):
        rated = rated.join(_best(hours, book, resource), on="nh", how="left")
    carded = pl.col("gpus").fill_null(0) > 0
    unsure = cards_unknown()
    by_size = worth(pl.col("cpu_millicores") * pl.col("up"), pl.col("rate_vcpu"), 1000) + worth(
        pl.col("memory_kib") * pl.col("up"), pl.col("rate_gib"), KIB_PER_GIB
    )
    by_card = worth(pl.col("gpus") * pl.col("up"), pl.col("rate_gpu"), 1)
    rated = rated.with_columns(
        pl.when(pl.col("rate_node").is_not_null())
        .then(worth(pl.col("up"), pl.col("rate_node"), 1))
        .when(carded)
        .then(by_card)
        .when(~unsure)
        .then(by_size)
        .alias("units"),
        pl.when(pl.col("rate_node").is_not_null())
        .then("currency_node")
        .when(carded)
        .then("currency_gpu")
        .otherwise("currency_vcpu")
        .alias("currency"),
    )
    priced = rated.filter(pl.col("units").is_not_null())
    sized = priced.filter(~carded & pl.col("rate_node").is_null()).height
    return Estimates(_lines(priced), _unpriced(rated.filter(pl.col("units").is_null())), sized)


def _words(name: str) -> pl.Expr:
    """A card model as lower-case words between blanks."""
    return pl.concat_str(
        pl.lit(" "),
        pl.col(name).str.to_lowercase().str.replace_all(r"[^a-z0-9]+", " "),
        pl.lit(" "),
    )


def _book(prices: pl.DataFrame) -> pl.DataFrame:
    model = pl.when(pl.col("gpu_model").str.to_lowercase() != "default").then(_words("gpu_model"))
    special = pl.sum_horizontal(pl.col(key).is_not_null().cast(pl.Int64) for key in _KEYS)
    return (
        prices.filter(pl.col("price_per_hour").is_not_null())
        .select(
            "resource",
            "currency",
            *(pl.col(key).alias(f"of_{key}") for key in _KEYS),
            model.alias("of_model"),
            pl.col("start").dt.timestamp("ms").alias("from"),
            pl.col("end").dt.timestamp("ms").alias("until"),
            to_units(pl.col("price_per_hour")).alias("rate"),
            (special * 1000 + model.str.len_chars().cast(pl.Int64).fill_null(0)).alias("score"),
        )
        .unique()
    )


def _best(hours: pl.DataFrame, book: pl.DataFrame, resource: str) -> pl.DataFrame:
    """``nh``, the rate of the resource and its currency, where exactly one is best."""
    kinds = hours.select(*_KEYS, "gpu_model").unique().with_row_index("kind")
    pairs = kinds.join(book.filter(pl.col("resource") == resource), how="cross")
    fits = [
        pl.col(f"of_{key}").is_null()
        | (pl.col(f"of_{key}").str.to_lowercase() == pl.col(key).str.to_lowercase())
        for key in _KEYS
    ]
    model = pl.col("of_model").is_null() | _words("gpu_model").str.contains(
        pl.col("of_model"), literal=True
    )
    fitting = pairs.filter(pl.all_horizontal(*fits, model).fill_null(False))
    kind_of = hours.select("nh", "hour", *_KEYS, "gpu_model").join(
        kinds, on=[*_KEYS, "gpu_model"], nulls_equal=True
    )
    valid = kind_of.join(
        fitting.select("kind", "from", "until", "rate", "currency", "score"), on="kind"
    ).filter(pl.col("hour").is_between(pl.col("from"), pl.col("until"), closed="left"))
    top = valid.filter(pl.col("score") == pl.col("score").max().over("nh"))
    single = top.select("nh", "rate", "currency").unique().filter(pl.len().over("nh") == 1)
    return single.rename({"rate": f"rate_{resource}", "currency": f"currency_{resource}"})


def _lines(priced: pl.DataFrame) -> pl.DataFrame:
    at = (
        pl.from_epoch("hour", time_unit="ms")
        .dt.replace_time_zone("UTC")
        .cast(pl.Datetime("us", "UTC"))
    )
    given = {
        "day": at.dt.date(),
        "x_Source": pl.lit(SOURCE),
        "x_Part": pl.lit(0, dtype=pl.Int64),
        "x_LineId": pl.format(
            "estimate/{}/{}/{}", "cluster", "node", at.dt.strftime("%Y-%m-%dT%HZ")
        ),
        "x_Basis": pl.lit("estimated"),
        "x_Dimension": pl.lit("compute"),
        "x_Elasticity": pl.lit("elastic"),
        "BillingCurrency": pl.col("currency"),
        "ChargeCategory": pl.lit("Usage"),
        "ServiceCategory": pl.lit("Compute"),
        "ProviderName": pl.col("provider"),
        "ServiceProviderName": pl.col("provider"),
        "RegionId": pl.col("region"),
        "ResourceId": pl.col("provider_id"),
        "ConsumedUnit": pl.lit("Hours"),
        "ChargePeriodStart": at,
        "ChargePeriodEnd": at.dt.offset_by("1h"),
        "EffectiveCost": from_units(pl.col("units")),
    }
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
    return priced.sort("nh").select(
        "nh",
        *charge,
        pl.col("hour").alias("start"),
        (pl.col("hour") + HOUR).alias("end"),
        pl.lit(HOUR, dtype=pl.Int64).alias("length"),
        *money,
    )


def _unpriced(rest: pl.DataFrame) -> tuple[Gap, ...]:
    sums = (
        rest.group_by("cluster")
        .agg(
            pl.col("node").n_unique().alias("nodes"),
            pl.col("node").min().alias("first"),
            (pl.col("up").sum() / HOUR).alias("node_hours"),
            ((pl.col("up") * pl.col("gpus").fill_null(0)).sum() / HOUR).alias("gpu_hours"),
        )
        .sort("cluster")
    )
    return tuple(
        Gap(
            "unpriced",
            f"{row['cluster']}: {row['nodes']} nodes without bill line and price, e.g. "
            f"{row['first']}; set `prices` or connect the bill",
            {"node_hours": row["node_hours"], "gpu_hours": row["gpu_hours"]},
        )
        for row in sums.iter_rows(named=True)
    )
