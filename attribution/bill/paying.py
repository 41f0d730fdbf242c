"""Which hours of a node the bill pays for, for how long, and which may not be priced again."""

from __future__ import annotations

import polars as pl

from attribution.bill.line_words import instance_type, is_fargate, may_be_machine, with_words
from attribution.bill.match import canonical, in_hours
from attribution.ratio import HOUR
from attribution.spans import by_hour
from ledger.money import to_units
from ledger.schema import COST_COLUMNS

NODE_HOUR = ("cluster", "node", "hour")
CLOUDS = {
    "aws": r"\b(aws|amazon)\b",
    "gce": r"\b(google|gcp|gce)\b",
    "azure": r"\b(microsoft|azure)\b",
}
"""Scheme of a provider id, and the provider's names in bills and price books."""

_NAMED = r"^(i-[0-9a-z]+$|gce/|arn:)|/virtualmachines/[^/]+$"
"""Normal forms that tell one resource from all others of its cloud."""


def paid_time(lines: pl.DataFrame, line_hours: pl.DataFrame) -> pl.DataFrame:
    """Time that the price of a node-hour covers by the quantities of its Usage lines.

    Lines whose periods overlap speak of the same time, so the largest counts; times of disjoint
    periods add up.

    Args:
        lines: ``match.bill_lines``.
        line_hours: ``match.match_lines``.

    Returns:
        ``cluster, node, hour, paid`` (ms, at most the hour); only hours with such a line.
    """
    counted = lines.filter(in_hours()).select(
        "line", "start", "end", to_units(pl.col("ConsumedQuantity")).alias("quantity")
    )
    whole = line_hours.with_columns(pl.col("ms").sum().over("line").alias("whole"))
    ms = pl.col("quantity") * HOUR * pl.col("ms").cast(pl.Int128)
    per = pl.lit(10**12, dtype=pl.Int128) * pl.col("whole").cast(pl.Int128)
    parts = (
        whole.join(counted.drop_nulls("quantity"), on="line")
        .with_columns(
            pl.max_horizontal("start", "hour"),
            pl.min_horizontal("end", pl.col("hour") + HOUR),
            (ms // per).clip(0, HOUR).cast(pl.Int64).alias("paid"),
        )
        .sort(*NODE_HOUR, "start", "end")
    )
    reach = pl.col("end").cum_max().shift(1).over(NODE_HOUR)
    apart = (pl.col("start") >= reach).fill_null(value=False)
    return (
        parts.with_columns(apart.cast(pl.Int64).cum_sum().over(NODE_HOUR).alias("block"))
        .group_by(*NODE_HOUR, "block")
        .agg(pl.col("paid").max())
        .group_by(NODE_HOUR)
        .agg(pl.col("paid").sum().clip(0, HOUR))
    )


def named_part(line_hours: pl.DataFrame) -> pl.DataFrame:
    """Time of an hour that the price covers if no line counts it: the hour, or a name's part of it.

    Args:
        line_hours: ``match.match_lines``.

    Returns:
        ``cluster, node, hour, part`` in milliseconds.
    """
    mine = pl.col("ms").cast(pl.Int64)
    part = HOUR * mine // mine.sum().over("line", "hour")
    parts = line_hours.with_columns(part.alias("part"))
    return parts.group_by(NODE_HOUR).agg(pl.col("part").max())


def _pays() -> pl.Expr:
    """Whether a line is evidence of a price: a credit, a tax or nothing at all is none."""
    above = pl.any_horizontal((pl.col(name) > 0).fill_null(value=False) for name in COST_COLUMNS)
    return pl.col("ChargeCategory").is_in(["Usage", "Purchase"]) & above


def covered_hours(lines: pl.DataFrame, ids: pl.DataFrame) -> pl.DataFrame:
    """Node-hours whose resource a paying line names, whatever its currency.

    Args:
        lines: ``match.bill_lines``.
        ids: ``match.node_ids``; every name of the resource is covered.

    Returns:
        ``cluster, node, hour``.
    """
    paying = lines.filter(_pays()).select("start", "end", canonical("ResourceId").alias("id"))
    return by_hour(paying.unique().join(ids, on="id")).select(NODE_HOUR).unique()


def compute_lines(lines: pl.DataFrame) -> pl.DataFrame:
    """The lines that pay for machines of some kind."""
    usage = pl.col("ChargeCategory") == "Usage"
    return lines.filter(_pays() & usage & (pl.col("ServiceCategory") == "Compute"))


def machine_lines(lines: pl.DataFrame) -> pl.DataFrame:
    """The compute lines that may pay for a node, with ``words``: no functions, fees or disks.

    A declared cost says which node it pays for, or pays for none.
    """
    billed = compute_lines(lines).filter(x_Basis="billed")
    return with_words(billed).filter(may_be_machine())


def may_double(hours: pl.DataFrame, loose: pl.DataFrame) -> pl.DataFrame:
    """Node-hours that a line for a machine which met no node may pay for.

    Such a line is another resource's for sure only if it is of another cloud, region or instance
    type, or if both it and the node bear an id in a form that tells resources apart.

    Args:
        hours: ``nh``, ``provider_id``, ``instance_type`` and ``region``.
        loose: ``machine_lines`` of the day that met no node.

    Returns:
        ``nh``.
    """
    nodes = hours.select("nh", *_our_marks())
    marks = nodes.drop("nh").unique()
    both = marks.join(loose.select(_their_marks()).unique(), how="cross").filter(_may_be())
    met = both.select(marks.columns).unique()
    return nodes.join(met, on=marks.columns, how="semi", nulls_equal=True).select("nh").unique()


def may_pay_all(loose: pl.DataFrame, hours: pl.DataFrame) -> pl.DataFrame:
    """The lines that may pay for any of the node-hours, as far as ``may_double`` can tell.

    Args:
        loose: ``machine_lines`` that meet no node.
        hours: As of ``may_double``.
    """
    nodes = hours.select(_our_marks()).unique()
    pairs = loose.select("line", *_their_marks()).join(nodes, how="cross")
    other = pairs.filter(~_may_be())
    return loose.join(other, on="line", how="anti", maintain_order="left")


def _their_marks() -> tuple[pl.Expr, ...]:
    """Of a line: cloud, region and instance type, null if not known, and what kind of thing.

    ``named``: its id tells resources apart; ``fargate``: it pays for what is no instance.
    """
    provider = pl.coalesce("ServiceProviderName", "ProviderName").str.to_lowercase()
    cloud = pl.coalesce(
        *(pl.when(provider.str.contains(p)).then(pl.lit(c)) for c, p in CLOUDS.items()),
        pl.lit(None, dtype=pl.String),
    )
    return (
        cloud.alias("theirs"),
        _named("ResourceId").alias("named"),
        _region("RegionId").alias("their_region"),
        instance_type().alias("their_type"),
        is_fargate().alias("fargate"),
    )


def _our_marks() -> tuple[pl.Expr, ...]:
    """The same of a node."""
    scheme = pl.col("provider_id").str.extract(r"^(\w+)://", 1)
    ours = pl.when(scheme.is_in(list(CLOUDS))).then(scheme)
    return (
        ours.alias("ours"),
        _named("provider_id").alias("known"),
        _region("region").alias("our_region"),
        pl.col("instance_type").str.to_lowercase().alias("our_type"),
    )


def _may_be() -> pl.Expr:
    same = [
        (pl.col(left) == pl.col(right)).fill_null(value=True)
        for left, right in (
            ("ours", "theirs"),
            ("our_region", "their_region"),
            ("our_type", "their_type"),
        )
    ]
    return pl.all_horizontal(same) & ~((pl.col("named") | pl.col("fargate")) & pl.col("known"))


def _region(column: str) -> pl.Expr:
    """A region in the form of AWS or Google, which bills and nodes share; null of any other."""
    return pl.col(column).str.to_lowercase().str.extract(r"^([a-z]+(?:-[a-z]+)+-?\d+)$", 1)


def _named(column: str) -> pl.Expr:
    return canonical(column).str.contains(_NAMED).fill_null(value=False)
