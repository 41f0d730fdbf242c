"""Node-hours: what each node could hold in an hour, what that hour paid for, and who held what."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from attribution.nodes.node_pools import WEIGHTS, chosen
from attribution.nodes.usage import METERS, POD, SLOT, PodUsage
from attribution.ratio import HOUR
from attribution.spans import by_hour, intersect
from ledger.settings import Settings

NODE_HOUR = ("cluster", "node", "hour")
_OWN = ("memory_kib", "method", *WEIGHTS, "up", "paid", "unseen", "snapshot", "blind")
_OF_METER = {"cpu": "cpu_usage", "memory": "memory_working_set", "cards": "gpu_activity"}
_HELD = (
    *NODE_HOUR,
    "who",
    "start",
    "end",
    *_OF_METER,
    "unsized",
    "asked_cpu",
    "asked_memory",
)
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
        One row per key, sorted, numbered ``nh``: ``_FACTS`` (``memory_kib`` for bytes),
        ``method`` and ``WEIGHTS`` (``node_pools.chosen``),
        ``up``, ``paid`` and ``unseen`` in milliseconds, and the cluster's ``snapshot`` and
        ``blind``.
    """
    hours = keys.sort(NODE_HOUR).with_row_index("nh")
    hours = told_at(hours.with_columns((pl.col("hour") + HOUR - 1).alias("at")), nodes, _FACTS)
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
            *chosen(settings),
        )
        .select("nh", *NODE_HOUR, *_FACTS, *_OWN)
        .sort("nh")
    )


def told_at(points: pl.DataFrame, nodes: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """What is known of nodes at some moments: by a watch, else by the API, else by samples.

    Args:
        points: ``cluster, node, at`` (ms); before the first row of a node its first facts stand.
        nodes: Rows of ``nodes``.
        names: Columns of them.

    Returns:
        The points, sorted by ``at``, with the columns ``names``.
    """
    step = pl.col("interval_seconds")
    kinds = {"_watched": step == 0, "_told": step.is_null(), "_sampled": step > 0}
    for suffix, kind in kinds.items():
        points = _as_of(points, nodes.filter(kind), names, suffix)
    return points.with_columns(
        pl.coalesce(f"{name}{suffix}" for suffix in kinds).alias(name) for name in names
    ).drop(f"{name}{suffix}" for name in names for suffix in kinds)


def _as_of(
    points: pl.DataFrame, nodes: pl.DataFrame, names: Sequence[str], suffix: str
) -> pl.DataFrame:
    """The facts of one kind of source that stand at some moments, else its first ones."""
    rows = (
        nodes.select("cluster", "node", pl.col("start").dt.timestamp("ms").alias("since"), *names)
        .sort("cluster", "node", "since", *names, nulls_last=True)
        .unique(["cluster", "node", "since"], keep="last", maintain_order=True)
        .with_columns(
            pl.when(pl.col("since") == pl.col("since").min().over("cluster", "node"))
            .then(0)
            .otherwise("since")
            .alias("since")
        )
        .rename({name: name + suffix for name in names})
        .sort("since")
    )
    return (
        points.sort("at")
        .join_asof(
            rows,
            left_on="at",
            right_on="since",
            by=["cluster", "node"],
            strategy="backward",
            check_sortedness=False,
        )
        .drop("since")
    )


def cards_unknown() -> pl.Expr:
    """Whether the node has cards of a known model, but nobody knows how many (shared cards)."""
    return pl.col("gpus").is_null() & pl.col("gpu_model").is_not_null()


def held_amounts(lives: pl.DataFrame, usage: PodUsage) -> pl.DataFrame:
    """What each pod had of each resource in each hour: max(request, use), integrated.

    Args:
        lives: Pod intervals with ``who``, ``cluster, uid, node, start, end``, requests, and
            ``cards, devices, unsized`` (``devices.add_cards``).
        usage: What the pods used.

    Returns:
        ``cluster, node, hour, who, start, end``;
        ``cpu`` (millicore·ms), ``memory`` (KiB·ms), ``cards`` (parts of a card × ms; each of the
        three null where it is not known), ``unsized`` (what is not known of the node's cards);
        ``asked_cpu, asked_memory`` (the request alone) and ``used_cpu, used_memory`` (the use
        alone; null unless it was sampled);
        ``active`` and ``watched`` (activity·1e9·ms and ms, over the sampled time of the pod's
        cards), and ``sampled``: whether that is the ms of all cards that it touches.

    Sampled is what lacks at most a tenth of the time, or two intervals of each life and card.
    """
    rows = by_hour(
        lives.select(
            *POD,
            "node",
            "who",
            "start",
            "end",
            pl.col("cpu_millicores").clip(0).alias("cpu"),
            (pl.col("memory_bytes").clip(0) // 1024).alias("memory"),
            "cards",
            "devices",
            "unsized",
        )
    ).with_row_index("life")
    for slots in _slots(rows, usage):
        rows = rows.join(slots, on="life", how="left", maintain_order="left")
    asked = {name: pl.col(name) * pl.col("ms") for name in ("cpu", "memory")}
    rows = rows.with_columns(
        *((amount + pl.col(f"above_{n}").fill_null(0)).alias(n) for n, amount in asked.items()),
        *(amount.alias(f"asked_{name}") for name, amount in asked.items()),
        pl.col("cards").cast(pl.Int128) * pl.col("ms"),
        pl.col("devices") * pl.col("ms"),
        (2 * pl.col("devices") * pl.col("step_cards")).alias("step_cards"),
        *((2 * pl.col(f"step_{name}")).alias(f"step_{name}") for name in asked),
    )
    known = (*_OF_METER, *(f"asked_{name}" for name in asked))
    sums = [f"{part}_{name}" for name in _OF_METER for part in ("used", "watched", "step")]
    totals = rows.group_by(*NODE_HOUR, "who").agg(
        pl.col("start").min(),
        pl.col("end").max(),
        *(pl.when(pl.col(n).null_count() == 0).then(pl.col(n).sum()) for n in known),
        pl.col("unsized").min(),
        pl.col("ms", "devices", "covered_cpu", "covered_memory", *sums).sum(),
    )
    return totals.select(
        *_HELD,
        *(_use(name).alias(f"used_{name}") for name in asked),
        pl.col("used_cards").alias("active"),
        pl.col("watched_cards").alias("watched"),
        _sampled("cards", pl.col("devices")).alias("sampled"),
    )


def _sampled(name: str, whole: pl.Expr) -> pl.Expr:
    """Whether a meter was sampled for all of a time, but for a tenth or the edges of lives."""
    watched = pl.col(f"watched_{name}")
    near = whole - watched <= pl.max_horizontal(whole // 10, f"step_{name}")
    return (near & (watched > 0)).fill_null(value=False)


def _use(name: str) -> pl.Expr:
    """The mean of the slots with samples over the whole time; null if they lack too much of it."""
    used, covered, ms = pl.col(f"used_{name}"), pl.col(f"covered_{name}"), pl.col("ms")
    mean = used // covered * ms + used % covered * ms // covered
    return pl.when(_sampled(name, ms) & (covered > 0)).then(mean)


def _slots(hours: pl.DataFrame, usage: PodUsage) -> list[pl.DataFrame]:
    """The use of each resource in each pod-hour: overlap of life and slot.

    Returns:
        Per resource: ``life``, and with the resource as suffix ``used`` (use · ms, or activity ·
        1e9 · watched ms), ``watched`` (ms that were sampled) and ``step`` (ms between two samples);
        of CPU and memory also ``covered`` (ms of slots with samples) and ``above`` (use above the
        request · ms).
    """
    met = usage.slots().join(
        hours.join(usage.pods, on=list(POD)).select(
            "life", "id", "hour", "start", "end", "cpu", "memory"
        ),
        on=["id", "hour"],
    )
    overlap = pl.min_horizontal("end", pl.col("slot") + SLOT) - pl.max_horizontal("start", "slot")
    met = met.with_columns(overlap.alias("ms")).filter(pl.col("ms") > 0)
    watched, ms, value = pl.min_horizontal("ms", "watched"), pl.col("ms"), pl.col("value")
    found = []
    for name, meter in _OF_METER.items():
        figures = {"used": value * (watched if name == "cards" else ms), "watched": watched}
        rows = met.lazy().filter(pl.col("meter") == METERS.index(meter))
        if name != "cards":
            above = (value - pl.col(name)).clip(0)
            figures |= {"covered": ms, "above": pl.max_horizontal(above, "told") * ms}
            # Use that crosses the request inside a slot: its mean alone would hide that.
            crossing = met.lazy().filter(pl.col("meter") == METERS.index(f"{name}_above_request"))
            told = crossing.select("life", "slot", pl.col("value").alias("told"))
            rows = rows.join(told, on=["life", "slot"], how="left")
        own = rows.group_by("life")
        sums = (figure.sum().alias(f"{part}_{name}") for part, figure in figures.items())
        step = pl.col("step").max().cast(pl.Int64).alias(f"step_{name}")
        found.append(own.agg(*sums, step))
    return pl.collect_all(found)
