"""Evidence that contradicts itself: cards that work while nobody asked for them."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from attribution.nodes.usage import METERS, POD, SLOT, PodUsage
from attribution.ratio import HOUR
from ledger.facts import Gap

REASON = "gpu-used-without-request"
"""Reason of the gap: cards worked for pods that hold none, or while nobody held any."""

PODS_BUSY, CLUSTER_BUSY = 0.01, 0.05
"""Mean activity of a slot above which a card worked for a pod, and above which it worked at all
where nobody holds any: that must be clearly more than what an idle card shows."""

_METER = "gpu_activity"


def find(
    lives: pl.DataFrame, used: PodUsage, usage: pl.DataFrame | pl.LazyFrame, hours: pl.DataFrame
) -> Iterator[Gap]:
    """The contradictions of a day.

    Args:
        lives: Pod lives with ``cards``.
        used: What these pods used.
        usage: Rows of ``usage``.
        hours: ``methods.classify``.
    """
    yield from _pods(lives, used)
    yield from _clusters(usage, hours)


def _pods(lives: pl.DataFrame, used: PodUsage) -> Iterator[Gap]:
    """Pods without a card on whose name cards worked while they lived."""
    holds = (pl.col("cards").is_null() | (pl.col("cards") > 0)).any().over(POD)
    riders = lives.filter(~holds).join(used.pods, on=list(POD))
    meter = METERS.index(_METER)
    busy = used.rows.filter(pl.col("meter") == meter, pl.col("value") > PODS_BUSY * 1e9)
    met = busy.join(riders.select("id", *POD, "pod", "start", "end"), on="id")
    alive = (pl.col("slot") < pl.col("end")) & (pl.col("slot") + SLOT > pl.col("start"))
    slots = met.filter(alive).unique(["series", "slot"], keep="first", maintain_order=True)
    rows = slots.group_by("cluster").agg(
        pl.col("id").n_unique().alias("pods"),
        pl.col("pod").min().alias("first"),
        ((pl.col("value") * pl.col("watched")).sum() / 1e9 / HOUR).alias("gpu_hours"),
    )
    for cluster, pods, first, gpu_hours in rows.sort("cluster").iter_rows():
        yield Gap(
            REASON,
            f"{cluster}: cards worked for {pods} pods that asked for none, e.g. {first}",
            {"pods": float(pods), "gpu_hours": gpu_hours},
        )


def _clusters(usage: pl.DataFrame | pl.LazyFrame, hours: pl.DataFrame) -> Iterator[Gap]:
    """Clusters whose cards worked though no pod held any."""
    silent = (
        hours.group_by("cluster")
        .agg(
            pl.col("carded").any(),
            (pl.col("held_cards").sum() == 0).alias("free"),
            pl.col("unsized").is_null().all().alias("sized"),
        )
        .filter("carded", "free", "sized")
    )
    if silent.is_empty():
        return
    part = pl.when(pl.col("expected") > 0).then(pl.col("samples") / pl.col("expected"))
    rows = (
        usage.lazy()
        .filter(pl.col("meter") == _METER, pl.col("mean").is_finite())
        .join(silent.select("cluster").lazy(), on="cluster", how="semi")
        .select(
            "cluster",
            "node",
            "device",
            "slot",
            pl.col("mean").clip(0, 1),
            part.fill_null(1).clip(0, 1).alias("part"),
        )
        # A shared card stands under each of its tenants.
        .group_by("cluster", "node", "device", "slot")
        .agg(pl.col("mean", "part").max())
        .filter(pl.col("mean") > CLUSTER_BUSY)
        .group_by("cluster")
        .agg(((pl.col("mean") * pl.col("part")).sum() * (SLOT / HOUR)).alias("gpu_hours"))
        .collect()
    )
    for cluster, gpu_hours in rows.sort("cluster").iter_rows():
        yield Gap(
            REASON,
            f"{cluster}: cards worked and no pod holds any: claims of devices are not read, or "
            "there is no device plugin",
            {"gpu_hours": gpu_hours},
        )
