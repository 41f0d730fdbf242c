"""Prices beside the bill: where the two cannot be compared, and by how much they differ."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from attribution.node_sums import sum_nodes
from attribution.nodes.node_hours import NODE_HOUR
from attribution.prices.book import OK, REFERENCE
from attribution.prices.quote import money
from ledger.facts import Gap

_RATES = ("rate_node", "rate_card", "rate_vcpu", "rate_gib")
_SEEN = 10**5
"""A factor is told if it differs from 1 by more than 1 in so many."""


def foreign_prices(
    quotes: pl.DataFrame, hours: pl.DataFrame, billed: pl.DataFrame
) -> tuple[Gap, ...]:
    """Nodes that are billed in one currency and priced in another: never compared or added.

    Args:
        quotes: ``quote.quote``.
        hours: ``node_hours.node_hours``.
        billed: ``currencies``.
    """
    known = quotes.filter((pl.col("state") == OK) & (pl.col("source") != REFERENCE))
    priced = known.join(billed, on="nh", how="semi").select(
        "nh", "currency", (pl.col("end") - pl.col("start")).alias("ms")
    )
    apart = priced.join(billed, on=["nh", "currency"], how="anti")
    pairs = apart.join(billed.rename({"currency": "bill"}), on="nh")
    placed = pairs.join(hours.select("nh", "cluster", "node", "gpus"), on="nh")
    rows = sum_nodes(placed, ["cluster", "bill", "currency"], pl.col("ms"))
    return tuple(
        Gap(
            "currency",
            f"{cluster}: {nodes} nodes, e.g. {first}, are billed in {bill} and priced in "
            f"{currency}: the two are neither compared nor added",
            {"node_hours": node_hours, "gpu_hours": gpu_hours},
        )
        for cluster, bill, currency, nodes, first, node_hours, gpu_hours in rows.iter_rows()
    )


def currencies(
    lines: pl.DataFrame,
    line_hours: pl.DataFrame,
    hours: pl.DataFrame,
    unmet: pl.DataFrame,
    dark: pl.DataFrame,
) -> pl.DataFrame:
    """``nh, currency`` of the lines that pay for a node-hour, or may.

    Args:
        lines: ``match.bill_lines``.
        line_hours: ``match.match_lines``.
        hours: The node-hours that a line pays for.
        unmet: Lines for machines that meet no node.
        dark: The node-hours that these may pay for.
    """
    met = line_hours.join(hours.select("nh", *NODE_HOUR), on=list(NODE_HOUR))
    told = met.join(lines.select("line", "BillingCurrency"), on="line")
    maybe = dark.select("nh").join(unmet.select("BillingCurrency").unique(), how="cross")
    both = pl.concat([told.select("nh", "BillingCurrency"), maybe])
    return both.rename({"BillingCurrency": "currency"}).unique()


def rescaled(quotes: pl.DataFrame, hours: pl.DataFrame, parts: pl.DataFrame) -> Iterator[str]:
    """How far unit prices are from the bill of the node, which is the truth: one line per type.

    Only node-hours count that are paid for as long as the node was up, and that have a price per
    vCPU and GiB, beside the cards' own or alone.

    Args:
        quotes: ``quote.quote``.
        hours: ``node_hours.node_hours``.
        parts: ``split.hour_parts``: ``nh, currency, units_EffectiveCost``.
    """
    units = pl.col("rate_vcpu").is_not_null() & (pl.col("source") != REFERENCE)
    priced = quotes.filter((pl.col("state") == OK) & units)
    price = money([pl.col(name) for name in _RATES], pl.col("end") - pl.col("start"))
    book = priced.with_columns(price.alias("price")).group_by("nh", "currency")
    whole = hours.filter(pl.col("up") == pl.col("paid")).select("nh", "instance_type", "cluster")
    bill = parts.group_by("nh", "currency").agg(pl.col("units_EffectiveCost").sum().alias("bill"))
    both = book.agg(pl.col("price").sum()).join(bill, on=["nh", "currency"]).join(whole, on="nh")
    rows = (
        both.filter((pl.col("bill") > 0) & (pl.col("price") > 0))
        .group_by("cluster", "instance_type", "currency")
        .agg(pl.col("bill", "price").sum())
        .sort("cluster", "instance_type", "currency", nulls_last=True)
    )
    for cluster, kind, _, bill_units, book_units in rows.iter_rows():
        if abs(book_units - bill_units) * _SEEN > bill_units:
            above = book_units / bill_units - 1
            side = "above" if above > 0 else "below"
            yield (
                f"{cluster}: unit prices of {kind or 'nodes of unknown type'} add to "
                f"{abs(above) * 100:.2f} % {side} the bill of the node: scaled by "
                f"{bill_units / book_units:.5f}"
            )
