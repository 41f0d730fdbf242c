"""What a unit of a resource costs for an hour in a cluster: cost of the day ÷ capacity of nodes."""

from __future__ import annotations

import polars as pl

from attribution.spans import union
from ledger.money import from_units, to_units
from ledger.schema import IDLE, NODES
from ledger.store import Ledger
from ledger.window import Window

_NODE = ["day", "cluster", "node"]
_PLACE = ["day", "cluster", "resource"]
_HOUR_MS = 3_600_000
_PER = {"cpu": 1000 * _HOUR_MS, "memory": 2**20 * _HOUR_MS, "gpu": _HOUR_MS}
"""Of millicore·ms, KiB·ms and card·ms: what makes a core-hour, a GiB-hour and a card-hour."""


def prices(ledger: Ledger, days: pl.LazyFrame, window: Window) -> pl.DataFrame:
    """The price of a core-hour, GiB-hour and card-hour.

    Under ``gpu-first`` the CPU and memory of nodes with cards have no price of their own (who holds
    cards holds them too, and none of it is idle): such nodes count for their cards alone. Cards
    have a price where the cluster has one kind of device whose units are whole cards.

    Args:
        ledger: Where the nodes stand.
        days: Rows of ``costs_daily``.
        window: Their window.

    Returns:
        ``BillingCurrency, day, cluster, resource, name`` (as a quota calls it) and ``price``, money
        rounded down.
    """
    nodes = ledger.scan(NODES, window).collect()
    paid = _paid(days).join(_capacity(nodes), on=[*_NODE, "resource"])
    size = paid.unique([*_NODE, "resource"]).group_by(_PLACE).agg(pl.col("amount").sum())
    per = pl.col("resource").replace_strict(_PER, return_dtype=pl.Int128)
    return (
        paid.group_by("BillingCurrency", *_PLACE)
        .agg(pl.col("cost").sum())
        .filter(pl.col("cost") > 0)
        .join(size, on=_PLACE)
        .with_columns(from_units(pl.col("cost") * per // pl.col("amount")).alias("price"))
        .join(_names(nodes), on=_PLACE)
        .select("BillingCurrency", *_PLACE, "name", "price")
    )


def _paid(days: pl.LazyFrame) -> pl.DataFrame:
    """``BillingCurrency``, ``_NODE``, ``resource`` and ``cost``, where it is priced by capacity."""
    rows = (
        days.filter(pl.col("resource").is_in(list(_PER)) & pl.col("node").is_not_null())
        .group_by("BillingCurrency", *_NODE, "resource")
        .agg(pl.col("EffectiveCost").sum(), (pl.col("target") == IDLE).any().alias("idle"))
        .collect()
    )
    is_gpu = pl.col("resource") == "gpu"
    free = pl.col("idle").any().over(*_NODE, "resource")
    by_size = is_gpu | ~is_gpu.any().over(_NODE) | free
    return rows.filter(by_size).with_columns(to_units(pl.col("EffectiveCost")).alias("cost"))


def _capacity(nodes: pl.DataFrame) -> pl.DataFrame:
    """``_NODE``, ``resource`` and ``amount`` (millicore·ms, KiB·ms, card·ms) where known."""
    times = nodes.select(*_NODE, pl.col("start", "end").dt.timestamp("ms"))
    up = (
        union(times, _NODE).group_by(_NODE).agg((pl.col("end") - pl.col("start")).sum().alias("ms"))
    )
    told = pl.col("interval_seconds").is_null()

    def size(name: str) -> pl.Expr:
        return pl.coalesce(pl.col(name).filter(told).max(), pl.col(name).max())

    sizes = nodes.group_by(_NODE).agg(
        size("cpu_millicores").alias("cpu"),
        (size("memory_bytes") // 1024).alias("memory"),
        size("gpus").alias("gpu"),
    )
    return (
        sizes.unpivot(list(_PER), index=_NODE, variable_name="resource", value_name="each")
        .join(up, on=_NODE)
        .select(*_NODE, "resource", (pl.col("each").cast(pl.Int128) * pl.col("ms")).alias("amount"))
        .filter(pl.col("amount") > 0)
    )


def _names(nodes: pl.DataFrame) -> pl.DataFrame:
    """``_PLACE`` and the ``name`` of a resource in quotas."""
    place = nodes.select("day", "cluster").unique()
    plain = pl.concat(
        [
            place.with_columns(pl.lit(name).alias("resource"), pl.lit(name).alias("name"))
            for name in ("cpu", "memory")
        ]
    )
    card = pl.concat_str(pl.lit('{"'), "gpu_resource", pl.lit('":"1"}'))
    whole = pl.col("gpu_units").is_null() | (pl.col("gpu_units") == card)
    cards = (
        nodes.filter(pl.col("gpu_resource").is_not_null())
        .group_by("day", "cluster")
        .agg(
            pl.col("gpu_resource").first().alias("name"),
            (pl.col("gpu_resource").n_unique() == 1).alias("one"),
            whole.all().alias("whole"),
        )
        .filter(pl.col("one") & pl.col("whole"))
        .select("day", "cluster", pl.lit("gpu").alias("resource"), "name")
    )
    return pl.concat([plain, cards])
