"""Node-hours: what each node could hold in an hour, what that hour paid for, and who held what."""

from __future__ import annotations

import polars as pl

from attribution.identity import label
from attribution.phases import glob_regex
from attribution.ratio import HOUR
from attribution.spans import by_hour, intersect
from attribution.usage import METERS, POD, SLOT, PodUsage
from ledger.settings import Settings

NODE_HOUR = ("cluster", "node", "hour")
_OWN = ("memory_kib", "method", "up", "paid", "unseen", "snapshot", "blind")
_AMOUNTS = ("cpu", "memory", "cards")
_FACTS = (
    "provider_id",
    "instance_type",
    "capacity_type",
    "region",
    "zone",
    "cpu_millicores",
    "memory_bytes",
    "gpus",
    "gpu_model",
    "labels",
)


def up_hours(spans: pl.DataFrame, seen: pl.DataFrame) -> pl.DataFrame:
    """How long each node was up, and how much of that while its cluster was seen.

    Args:
        spans: ``cluster, node, start, end``, without overlaps: ``lives.there_spans``.
        seen: When each cluster was seen.

    Returns:
        ``cluster, node, hour, up, up_seen`` in milliseconds.
    """
    watched = (
        by_hour(intersect(spans, seen, ["cluster"]))
        .group_by(NODE_HOUR)
        .agg(pl.col("ms").sum().alias("up_seen"))
    )
    hours = by_hour(spans).group_by(NODE_HOUR).agg(pl.col("ms").sum().alias("up"))
    return hours.join(watched, on=list(NODE_HOUR), how="left")


def node_hours(
    nodes: pl.DataFrame,
    keys: pl.DataFrame,
    seen: pl.DataFrame,
    clusters: pl.DataFrame,
    settings: Settings,
) -> pl.DataFrame:
    """The node-hours of a day with capacity and method.

    Where a capacity changes inside an hour the later one counts for it; an hour before the node was
    seen (boot) has its first capacity.

    Args:
        nodes: Rows of ``nodes``.
        keys: ``cluster, node, hour, up, up_seen, paid`` (all but the key may be null).
        seen: When each cluster was seen.
        clusters: ``evidence.weigh_clusters``.
        settings: ``node_pools``.

    Returns:
        One row per key, sorted, numbered ``nh``: ``_FACTS`` (``memory_kib`` for bytes), ``method``,
        ``up``, ``paid`` and ``unseen`` in milliseconds, and the cluster's ``snapshot`` and
        ``blind``.
    """
    hours = keys.sort(NODE_HOUR).with_row_index("nh")
    for sampled in (False, True):
        hours = _as_of(
            hours,
            nodes.filter(pl.col("interval_seconds").is_not_null() == sampled),
            "_sampled" if sampled else "_told",
        )
    hours = hours.with_columns(
        pl.coalesce(f"{name}_told", f"{name}_sampled").alias(name) for name in _FACTS
    )
    watched = by_hour(seen).group_by("cluster", "hour").agg(pl.col("ms").sum().alias("watched"))
    hours = hours.join(watched, on=["cluster", "hour"], how="left")
    hours = hours.join(clusters, on="cluster", how="left")
    up = pl.col("up").fill_null(0)
    paid = pl.max_horizontal(pl.col("paid").fill_null(HOUR), up).clip(0, HOUR)
    return (
        hours.with_columns(
            up.alias("up"),
            paid.alias("paid"),
            pl.min_horizontal(
                paid - pl.col("up_seen").fill_null(0), HOUR - pl.col("watched").fill_null(0)
            ).alias("unseen"),
            (pl.col("memory_bytes") // 1024).alias("memory_kib"),
            _method(settings).alias("method"),
        )
        .select("nh", *NODE_HOUR, *_FACTS, *_OWN)
        .sort("nh")
    )


def _as_of(hours: pl.DataFrame, nodes: pl.DataFrame, suffix: str) -> pl.DataFrame:
    """The facts of one kind of source that stand at the end of each hour, else its first ones."""
    rows = (
        nodes.select("cluster", "node", pl.col("start").dt.timestamp("ms").alias("since"), *_FACTS)
        .sort("cluster", "node", "since", *_FACTS, nulls_last=True)
        .unique(["cluster", "node", "since"], keep="last", maintain_order=True)
        .with_columns(
            pl.when(pl.col("since") == pl.col("since").min().over("cluster", "node"))
            .then(0)
            .otherwise("since")
            .alias("since")
        )
        .rename({name: name + suffix for name in _FACTS})
        .sort("since")
    )
    ends = hours.with_columns((pl.col("hour") + HOUR - 1).alias("at")).sort("at")
    return ends.join_asof(
        rows,
        left_on="at",
        right_on="since",
        by=["cluster", "node"],
        strategy="backward",
        check_sortedness=False,
    ).drop("at", "since")


def cards_unknown() -> pl.Expr:
    """Whether the node has cards of a known model, but nobody knows how many (shared cards)."""
    return pl.col("gpus").is_null() & pl.col("gpu_model").is_not_null()


def _method(settings: Settings) -> pl.Expr:
    chosen = []
    for pool in settings.node_pools:
        key, _, pattern = pool.match.label.partition("=")
        hit = label("labels", key).str.contains(glob_regex(pattern))
        chosen.append(pl.when(hit).then(pl.lit(pool.split)))
    return pl.coalesce(*chosen, pl.lit("gpu-first"))


def held_amounts(lives: pl.DataFrame, usage: PodUsage) -> pl.DataFrame:
    """What each pod had of each resource in each hour: max(request, use), integrated.

    Args:
        lives: Pod intervals with ``who``, ``cluster, uid, node, start, end`` and requests.
        usage: What the pods used.

    Returns:
        ``cluster, node, hour, who, start, end, cpu`` (millicore·ms), ``memory`` (KiB·ms), ``cards``
        (card·ms; each of the three null where a request is not known), ``active`` and ``watched``
        (activity·1e9·ms and ms, over the sampled time of the pod's cards), and ``sampled``: whether
        that is its card·ms but for a tenth, or but for two intervals of each life and card.
    """
    hours = by_hour(
        lives.select(
            "cluster",
            "uid",
            "node",
            "who",
            "start",
            "end",
            pl.col("cpu_millicores").clip(0).alias("cpu"),
            (pl.col("memory_bytes").clip(0) // 1024).alias("memory"),
            pl.col("gpus").clip(0).alias("cards"),
        )
    ).with_row_index("life")
    slots = _slots(hours, usage)
    sums = hours.join(slots, on="life", how="left").with_columns(
        *(
            pl.col(name) * pl.col("ms") + pl.col(f"more_{name}").fill_null(0)
            for name in ("cpu", "memory")
        ),
        pl.col("cards") * pl.col("ms"),
        (2 * pl.col("cards") * pl.col("step")).alias("edges"),
    )
    totals = sums.group_by(*NODE_HOUR, "who").agg(
        pl.col("start").min(),
        pl.col("end").max(),
        *(pl.when(pl.col(n).null_count() == 0).then(pl.col(n).sum()) for n in _AMOUNTS),
        pl.col("active", "watched", "edges").sum(),
    )
    missing = pl.col("cards") - pl.col("watched")
    near = missing <= pl.max_horizontal(pl.col("cards") // 10, "edges")
    sampled = (near & (pl.col("watched") > 0)).fill_null(value=False)
    return totals.with_columns(sampled.alias("sampled")).drop("edges")


def _slots(hours: pl.DataFrame, usage: PodUsage) -> pl.DataFrame:
    """Use above the request, and activity, of each pod-hour: overlap of life and slot."""
    met = usage.slots().join(
        hours.join(usage.pods, on=list(POD)).select(
            "life", "id", "hour", "start", "end", "cpu", "memory"
        ),
        on=["id", "hour"],
    )
    overlap = pl.min_horizontal("end", pl.col("slot") + SLOT) - pl.max_horizontal("start", "slot")
    met = met.with_columns(overlap.alias("ms")).filter(pl.col("ms") > 0)
    watched = pl.min_horizontal("ms", "watched")

    def more(meter: str, name: str) -> pl.Expr:
        above = (pl.col("value") - pl.col(name)).clip(0) * pl.col("ms")
        return above.filter(pl.col("meter") == METERS.index(meter)).sum().alias(f"more_{name}")

    busy = pl.col("meter") == METERS.index("gpu_activity")
    return met.group_by("life").agg(
        more("cpu_usage", "cpu"),
        more("memory_working_set", "memory"),
        (pl.col("value") * watched).filter(busy).sum().alias("active"),
        watched.filter(busy).sum().alias("watched"),
        pl.col("step").filter(busy).max(),
    )
