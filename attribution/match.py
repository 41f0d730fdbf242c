"""Meeting the bill: ``ResourceId`` of a line and ``providerID`` of a node, in one normal form.

| cloud | providerID | ResourceId |
|---|---|---|
| AWS | ``aws:///us-east-1a/i-0abc`` | ``i-0abc`` or ``arn:aws:ec2:...:instance/i-0abc`` |
| Google | ``gce://project/zone/name`` | ``.../projects/P/zones/Z/instances/NAME`` |
| Azure | ``azure:///subscriptions/...`` | ``/subscriptions/...``, in any case |

Anything else must be equal as written.
"""

from __future__ import annotations

import polars as pl

from attribution.ratio import HOUR, milliseconds
from attribution.spans import by_hour
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


def match_lines(lines: pl.DataFrame, nodes: pl.DataFrame, up: pl.DataFrame) -> pl.DataFrame:
    """The hours of the lines that pay for a node.

    A resource that two nodes name (it was registered again) pays for the one that was up longer in
    that hour, else for the first by name.

    Args:
        lines: ``bill_lines``.
        nodes: Rows of ``nodes``.
        up: ``cluster, node, hour, up`` with ``up`` in milliseconds.

    Returns:
        ``line, cluster, node, hour, ms``, ``ms`` the overlap of line and hour.
    """
    known = nodes.select("cluster", "node", canonical("provider_id").alias("id"))
    known = known.drop_nulls("id").filter(pl.col("id") != "").unique()
    hours = by_hour(
        lines.select("line", "start", "end", canonical("ResourceId").alias("id")).join(
            known.select("id").unique(), on="id", how="semi"
        )
    )
    found = hours.join(known, on="id").join(up, on=["cluster", "node", "hour"], how="left")
    best = found.sort(
        "line",
        "hour",
        pl.col("up").fill_null(0),
        "cluster",
        "node",
        descending=[False, False, True, False, False],
    )
    return best.unique(["line", "hour"], keep="first", maintain_order=True).select(
        "line", "cluster", "node", "hour", "ms"
    )


def paid_time(lines: pl.DataFrame, line_hours: pl.DataFrame) -> pl.DataFrame:
    """Time that the price of a node-hour covers by the quantities of its Usage lines.

    Returns:
        ``cluster, node, hour, paid`` (ms, at most the hour); only hours with such a line.
    """
    hourly = pl.col("ConsumedUnit").str.to_lowercase().str.contains(r"^(hours?|hrs?|h)$|hours?$")
    counted = lines.filter(hourly & (pl.col("ChargeCategory") == "Usage")).select(
        "line", "length", to_units(pl.col("ConsumedQuantity")).alias("quantity")
    )
    per_unit = pl.lit(10**12, dtype=pl.Int128)
    # A line of several hours counts evenly over its period.
    ms = pl.col("quantity") * HOUR * pl.col("ms").cast(pl.Int128)
    return (
        line_hours.join(counted.drop_nulls("quantity"), on="line")
        .with_columns(
            (ms // (per_unit * pl.col("length").cast(pl.Int128)))
            .clip(0, HOUR)
            .cast(pl.Int64)
            .alias("paid")
        )
        .group_by("cluster", "node", "hour")
        .agg(pl.col("paid").max())
    )
