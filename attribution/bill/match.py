"""Meeting the bill: ``ResourceId`` of a line and ``providerID`` of a node, in one normal form.

| cloud | providerID | ResourceId |
|---|---|---|
| AWS | ``aws:///us-east-1a/i-0abc`` | ``i-0abc`` or ``arn:aws:ec2:...:instance/i-0abc`` |
| Google | ``gce://project/zone/name`` | ``.../projects/P/zones/Z/instances/NAME`` |
| Azure | ``azure:///subscriptions/...`` | ``/subscriptions/...``, in any case |

Anything else must be equal as written. A cost that is declared for own machines names a node as
``node/NAME``, or ``node/CLUSTER/NAME`` where two clusters have one of that name.
"""

from __future__ import annotations

import polars as pl

from attribution.ratio import HOUR, milliseconds
from attribution.spans import by_hour, intersect
from ledger.money import to_units
from ledger.schema import COST_COLUMNS

_GCE_ID = r"projects/([^/]+)/zones/([^/]+)/instances/([^/]+)$"
_INSTANCE = r"(?:^|[/:])(i-[0-9a-z]+)$"


def canonical(name: str) -> pl.Expr:
    """Normal form of a column of provider ids or resource ids."""
    text = pl.col(name)
    lower = text.str.to_lowercase()
    return (
        pl.when(text.str.starts_with("gce://"))
        .then(text.str.replace("gce://", "gce/", literal=True))
        .when(text.str.contains(_GCE_ID))
        .then(text.str.replace(rf"^.*{_GCE_ID}", "gce/$1/$2/$3"))
        .when(lower.str.contains("/subscriptions/", literal=True))
        .then(lower.str.replace("azure://", "", literal=True))
        .when(lower.str.contains(_INSTANCE))
        .then(lower.str.extract(_INSTANCE))
        .otherwise(text)
    )


def bill_lines(charges: pl.DataFrame, start: int, end: int) -> pl.DataFrame:
    """Charges as numbered lines with money in units and times in milliseconds.

    Args:
        charges: Rows of ``charges``; rows that repeat another are dropped.
        start: Start of the day.
        end: Its end.

    Returns:
        All columns, and ``line`` (numbered by source, id and part), ``start``, ``end`` (inside the
        day), ``length`` (of the whole charge period, ms), ``units_<cost column>``.
    """
    begins, ends = milliseconds("ChargePeriodStart"), milliseconds("ChargePeriodEnd")
    first = begins.clip(start, end - 1)
    rest = [c for c in charges.columns if c not in ("x_Source", "x_LineId", "x_Part")]
    return (
        charges.unique()
        .sort("x_Source", "x_LineId", "x_Part", *rest, nulls_last=True)
        .with_row_index("line")
        .with_columns(
            first.alias("start"),
            pl.max_horizontal(ends.clip(start, end), first + 1).alias("end"),
            pl.max_horizontal(ends - begins, pl.lit(1)).alias("length"),
            *(to_units(pl.col(name)).alias(f"units_{name}") for name in COST_COLUMNS),
        )
    )


def node_ids(nodes: pl.DataFrame) -> pl.DataFrame:
    """``cluster, node, id``: each node's provider ids in normal form, and its own names, sorted."""
    known = pl.concat(
        nodes.select("cluster", "node", name.alias("id"))
        for name in (
            canonical("provider_id"),
            pl.format("node/{}", "node"),
            pl.format("node/{}/{}", "cluster", "node"),
        )
    )
    return known.drop_nulls("id").filter(pl.col("id") != "").unique().sort("cluster", "node", "id")


def match_lines(lines: pl.DataFrame, ids: pl.DataFrame, there: pl.DataFrame) -> pl.DataFrame:
    """The hours of the lines that pay for a node, with weights.

    A line falls to the hours of its period by the time that its node was there; evenly if its
    quantity covers the whole period, or if the node was never there. An hour falls to the nodes
    that name the resource (it was registered again) by the time that each was there, else to the
    first by name.

    Args:
        lines: ``bill_lines``.
        ids: ``node_ids``.
        there: ``cluster, node, start, end``: when each node was, or may have been, there.

    Returns:
        ``line, cluster, node, hour, ms``, ``ms`` the weight of the hour in its line, above 0.
    """
    met = lines.select(
        "line", "start", "end", _counts_whole().alias("even"), canonical("ResourceId").alias("id")
    ).join(ids, on="id")
    key = ["line", "cluster", "node", "hour"]
    inside = by_hour(intersect(met.drop("even", "id"), there, ["cluster", "node"]))
    inside = inside.group_by(key).agg(pl.col("ms").sum().alias("there"))
    hours = by_hour(met).group_by(key).agg(pl.col("ms").max(), pl.col("even").any())
    hours = hours.join(inside, on=key, how="left").sort("line", "hour", "cluster", "node")
    one = ["line", "hour"]
    first = pl.struct("cluster", "node") == pl.struct("cluster", "node").first().over(one)
    hours = hours.with_columns(pl.col("there").fill_null(0), first.alias("first")).with_columns(
        pl.col("there").sum().over(one).alias("all")
    )
    mine = pl.when("even").then("ms").otherwise(pl.min_horizontal("ms", "all"))
    never = pl.when("first").then(mine).otherwise(0).sum().over("line") == 0
    of_hour = pl.when(never).then("ms").otherwise(mine)
    of_node = pl.max_horizontal(of_hour * pl.col("there") // pl.max_horizontal("all", 1), 1)
    weight = (
        pl.when((pl.col("all") > 0) & (pl.col("there") > 0))
        .then(of_node)
        .when((pl.col("all") == 0) & pl.col("first"))
        .then(of_hour)
        .otherwise(0)
    )
    weighed = hours.with_columns(weight.alias("ms")).filter(pl.col("ms") > 0)
    return weighed.select("line", "cluster", "node", "hour", "ms")


def in_hours() -> pl.Expr:
    """Whether a line's consumed quantity counts hours of its resource, not of a part of it."""
    unit = pl.col("ConsumedUnit").str.strip_chars().str.to_lowercase()
    counts = unit.str.contains(r"^(instance[- ]?)?(hours?|hrs?|h)$")
    return (counts & (pl.col("ChargeCategory") == "Usage")).fill_null(value=False)


def _counts_whole() -> pl.Expr:
    """Whether a line's quantity says that its resource ran all of the period."""
    consumed = to_units(pl.col("ConsumedQuantity")) * HOUR
    period = (pl.col("end") - pl.col("start")).cast(pl.Int128) * 10**12
    return in_hours() & (consumed >= period).fill_null(value=False)
