"""Credits, refunds and discounts without a resource: to the usage that they make cheaper.

Such a line goes to the usage of its account and product in its period, in proportion to effective
cost (``billing.md`` 2.4): what that usage paid for nodes falls to the same node-hours, the rest to
the rows of the other lines. With no such usage it is ``__shared__``.
"""

from __future__ import annotations

import polars as pl

from attribution.identity import first_hit, line_rule
from attribution.lines.parts import PART, divide, parts_of, weights
from attribution.prices.laid_over import REST
from attribution.ratio import HOUR
from attribution.split import hour_parts
from ledger.schema import IDENTITY_KEYS
from ledger.settings import Settings

_PRODUCT = ("x_Source", "BillingCurrency", "BillingAccountId", "ServiceName")
_TOLD = tuple(name for name in PART if name not in ("line", "weight", "who", "from", "until"))
_COST = pl.coalesce("units_EffectiveCost", "units_BilledCost")


def free_credits(lines: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """Billed credits, refunds and discounts that name no resource, and that no tag names.

    Args:
        lines: ``match.bill_lines``.
        settings: The identity rules; one that names everything (``default:``) is no name.
    """
    category = pl.col("ChargeCategory")
    below = (pl.col("units_EffectiveCost") < 0) | (pl.col("units_BilledCost") < 0)
    gives = (category == "Credit") | (category.is_in(["Usage", "Adjustment"]) & below)
    bare = pl.col("ResourceId").fill_null("") == ""
    found = lines.filter(gives.fill_null(value=False), bare, x_Basis="billed")
    named = (
        first_hit(
            [rule for rule in getattr(settings.identity, key) if not rule.startswith("default:")],
            line_rule(key),
        )
        for key in IDENTITY_KEYS
    )
    return found.filter(pl.all_horizontal(name.is_null() for name in named))


def usage_of(credits: pl.DataFrame, lines: pl.DataFrame) -> pl.DataFrame:
    """The usage of a credit's account and product that lies in its period.

    A credit without a sub-account is for all sub-accounts of its billing account.

    Args:
        credits: ``free_credits``.
        lines: ``match.bill_lines``, or what is left of them.

    Returns:
        ``line, usage`` (numbers of both), ``since, until`` (period of the credit) and ``start,
        end`` (of the usage), in milliseconds.
    """
    mine = credits.drop_nulls("ServiceName").select(
        "line", *_PRODUCT, "SubAccountId", since="start", until="end"
    )
    used = lines.filter(_COST > 0, ChargeCategory="Usage", x_Basis="billed").select(
        "start", "end", *_PRODUCT, "SubAccountId", usage="line"
    )
    everywhere = pl.col("SubAccountId").is_null()
    pairs = pl.concat(
        some.join(used, on=keys, nulls_equal=True).select(
            "line", "usage", "since", "until", "start", "end"
        )
        for some, keys in (
            (mine.filter(everywhere), [*_PRODUCT]),
            (mine.filter(~everywhere), [*_PRODUCT, "SubAccountId"]),
        )
    )
    return pairs.filter(pl.col("since") < pl.col("end"), pl.col("start") < pl.col("until"))


def over_nodes(
    lines: pl.DataFrame, parts: pl.DataFrame, hours: pl.DataFrame, settings: Settings
) -> pl.DataFrame:
    """Parts of nodes, and of those credits whose usage pays for nodes.

    Args:
        lines: All lines.
        parts: ``split.hour_parts`` of the lines that pay for nodes.
        hours: ``nh`` and ``hour``.
        settings: The identity rules.

    Returns:
        Rows in the form of ``parts``. Of such a credit, what falls to usage that pays for no node
        is ``nh`` ``REST``.
    """
    credits = free_credits(lines, settings)
    credits = credits.join(parts.select("line").unique(), on="line", how="anti")
    if credits.is_empty():
        return parts
    pairs = usage_of(credits, lines)
    of_node = parts.select("nh", _COST.alias("amount"), usage="line").join(
        hours.select("nh", "hour"), on="nh", how="left", maintain_order="left"
    )
    whole = lines.join(parts.select("line").unique(), on="line", how="anti").select(
        pl.lit(REST, dtype=pl.UInt32).alias("nh"),
        _COST.alias("amount"),
        pl.lit(None, dtype=pl.Int64).alias("hour"),
        usage="line",
    )
    met = pairs.join(pl.concat([of_node.select(whole.columns), whole]), on="usage")
    met = met.with_columns(
        pl.max_horizontal("start", "hour").alias("start"),
        pl.min_horizontal("end", pl.col("hour") + HOUR).alias("end"),
    )
    sums = (
        met.with_columns(_inside().alias("amount"))
        .group_by("line", "nh")
        .agg(pl.col("amount").sum(), pl.col("hour").min())
        .filter(pl.col("amount") > 0)
        .filter((pl.col("nh") != REST).any().over("line"))
        .with_columns(weights("amount").alias("ms"))
        .filter(pl.col("ms") > 0)
        .select("line", "nh", "hour", "ms")
    )
    more = hour_parts(lines, sums).with_columns(main=pl.lit(value=False))
    return pl.concat([parts, more.select(parts.columns)])


def over_rows(credits: pl.DataFrame, lines: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Shares of the credits whose usage pays for no node: those of that usage.

    Args:
        credits: ``free_credits``.
        lines: ``match.bill_lines`` that pay for no node.
        rows: Shares of these lines without the credits.

    Returns:
        Shares, as ``parts.divide`` gives them; a credit without usage has none.
    """
    pairs = usage_of(credits, lines)
    told = [name for name in _TOLD if name in rows.columns]
    shares = rows.select(*told, _COST.alias("amount"), usage="line")
    sums = (
        pairs.join(shares, on="usage")
        .with_columns(_inside().alias("amount"))
        .group_by("line", *told)
        .agg(pl.col("amount").sum())
        .filter(pl.col("amount") > 0)
        .with_columns(weights("amount").alias("weight"))
        .sort("line", *told, nulls_last=True)
        .with_row_index("who")
    )
    return divide(credits, parts_of(sums))


def _inside() -> pl.Expr:
    """The part of an amount from ``start`` to ``end`` that lies in ``[since, until)``."""
    inside = pl.min_horizontal("end", "until") - pl.max_horizontal("start", "since")
    length = pl.max_horizontal(pl.col("end") - pl.col("start"), 1)
    return pl.col("amount") * inside.clip(0).cast(pl.Int128) // length.cast(pl.Int128)
