"""What each cluster's sources can say of its pods: samples, only a snapshot of the API, or nothing.

Node rows alone say that capacity was paid for, never that it was free: whoever held it must have
been looked for. Samples of pods do that all day long; a snapshot of the API knows the pods that
were left when it was taken; without any pod row nobody looked.
"""

from __future__ import annotations

import polars as pl

from attribution.facts import DayFacts
from attribution.lives.lives import HOLE, sampled_pod_spans
from attribution.spans import by_hour, complement, intersect, subtract, union
from ledger.settings import Settings

NO_PODS = "no_samples"
"""No pod was sampled where nodes were, or no source shows any pod."""
SNAPSHOT_ONLY = "snapshot_only"
"""The settings name a Prometheus for the cluster, and it wrote nothing of the day."""


def weigh_clusters(facts: DayFacts, settings: Settings) -> pl.DataFrame:
    """What is known of each cluster's pods on the day.

    Args:
        facts: The day.
        settings: Which clusters should have samples.

    Returns:
        ``cluster`` (sorted), ``snapshot`` (only the API speaks of it), and ``blind``: why its free
        capacity is not known to be free (``NO_PODS``, ``SNAPSHOT_ONLY``), null if it is.
    """
    rows = pl.concat(
        frame.select(
            "cluster",
            pl.col("interval_seconds").is_not_null().alias("sampled"),
            pl.lit(value=pods).alias("pod"),
        )
        for frame, pods in ((facts.nodes, False), (facts.workloads, True))
    )
    named = [cluster.name for cluster in settings.clusters if cluster.prometheus]
    sampled, pod = pl.col("sampled"), pl.col("pod")
    kinds = rows.group_by("cluster").agg(
        (~sampled).all().alias("snapshot"),
        (sampled & pod).any().alias("sampled_pods"),
        pod.any().alias("pods"),
    )
    blind = (
        pl.when(pl.col("snapshot") & pl.col("cluster").is_in(named))
        .then(pl.lit(SNAPSHOT_ONLY))
        .when(~pl.col("pods") | ~(pl.col("snapshot") | pl.col("sampled_pods")))
        .then(pl.lit(NO_PODS))
    )
    return kinds.select("cluster", "snapshot", blind.alias("blind")).sort("cluster")


def seen_spans(up: pl.DataFrame, sampled_pods: pl.DataFrame) -> pl.DataFrame:
    """When each cluster was seen: where samples of its nodes are, else of its pods, else the API.

    Args:
        up: ``lives.node_spans``.
        sampled_pods: ``lives.sampled_pod_spans``.

    Returns:
        ``cluster, start, end``.
    """
    nodes = up.filter("sampled").select("cluster", "start", "end")
    pods = sampled_pods.join(nodes, on="cluster", how="anti")
    samples = pl.concat([nodes, pods])
    told = up.select("cluster", "start", "end").join(samples, on="cluster", how="anti")
    return union(pl.concat([samples, told]), ["cluster"])


_PLACE = ("cluster", "node")
_SLOT = 900_000
"""Length of a slot of ``usage`` in milliseconds."""


def dark_spans(facts: DayFacts, seen: pl.DataFrame, holes: pl.DataFrame) -> pl.DataFrame:
    """When nobody saw a node, or who was on it, though its cluster was seen.

    That is a hole in the samples of the node, unless they show pods on it; and a time in which no
    pod of the whole cluster is sampled (as if it were empty), but its usage, or the API, shows pods
    on that node.

    Args:
        facts: The day.
        seen: ``seen_spans``.
        holes: ``lives.node_holes``.

    Returns:
        ``cluster, node, start, end``.
    """
    lost = intersect(holes, seen, ["cluster"])
    if not lost.is_empty():
        lost = subtract(lost, sampled_pod_spans(facts, _PLACE), _PLACE)
    pods = sampled_pod_spans(facts)
    gaps = complement(pods, "cluster", facts.start, facts.end)
    silences = intersect(gaps, seen, ["cluster"]).join(_steps(facts), on="cluster")
    silences = silences.filter(pl.col("end") - pl.col("start") > HOLE * pl.col("step"))
    if silences.is_empty():
        return union(lost, _PLACE)
    long = pl.col("end") - pl.col("start") >= _SLOT
    busy = [_used(facts, silences.filter(long).drop("step")), _lived(facts, silences)]
    return union(pl.concat([lost, *busy]), _PLACE)


def while_seen(spans: pl.DataFrame, seen: pl.DataFrame, dark: pl.DataFrame) -> pl.DataFrame:
    """The parts of intervals of ``cluster, node`` in which both were seen.

    Args:
        spans: With ``cluster, node, start, end``.
        seen: ``seen_spans``.
        dark: ``dark_spans``.
    """
    return subtract(intersect(spans, seen, ["cluster"]), dark, _PLACE)


def darken(hours: pl.DataFrame, dark: pl.DataFrame) -> pl.DataFrame:
    """Count dark time of nodes as unseen.

    Args:
        hours: ``node_hours.node_hours``.
        dark: ``dark_spans``.

    Returns:
        ``hours`` with ``dark``, the part of ``unseen`` in which the cluster was seen, in ms.
    """
    parts = by_hour(dark).group_by(*_PLACE, "hour").agg(pl.col("ms").sum().alias("dark"))
    rows = hours.join(parts, on=[*_PLACE, "hour"], how="left", maintain_order="left")
    ms = pl.min_horizontal(pl.col("dark").fill_null(0), pl.col("paid") - pl.col("unseen"))
    return rows.with_columns(ms.alias("dark")).with_columns(
        (pl.col("unseen") + pl.col("dark")).alias("unseen")
    )


def _steps(facts: DayFacts) -> pl.DataFrame:
    """The longest usual distance of pod samples in each cluster, in milliseconds."""
    step = (pl.col("interval_seconds").max() * 1000).round(0).cast(pl.Int64)
    return facts.workloads.group_by("cluster").agg(step.alias("step")).drop_nulls()


def _used(facts: DayFacts, silences: pl.DataFrame) -> pl.DataFrame:
    """The time of silences in which usage shows pods on a node.

    A slot that lies in a silence only in part may speak of pods before or after it: it counts only
    beside one that lies in it whole.
    """
    first, last = pl.col("start") // _SLOT, (pl.col("end") - 1) // _SLOT
    starts = silences.select("cluster", slot=pl.int_ranges(first, last + 1)).explode("slot")
    slot = pl.col("slot").dt.timestamp("ms")
    asked = pl.col("cluster").is_in(starts["cluster"].unique().to_list()) & (slot // _SLOT).is_in(
        starts["slot"].unique().to_list()
    )
    rows = (
        facts.usage.lazy()
        .filter(asked & (pl.col("uid").is_not_null() | pl.col("pod").is_not_null()))
        .select("cluster", "namespace", "pod", "node", slot.alias("start"))
        .unique()
        .collect()
    )
    placed = rows.join(_places(facts), on=["cluster", "namespace", "pod"], how="left").select(
        "cluster",
        pl.coalesce("node", "place").alias("node"),
        "start",
        (pl.col("start") + _SLOT).alias("end"),
    )
    inside = intersect(placed.drop_nulls("node"), silences, ["cluster"])
    blocks = union(inside, _PLACE)
    whole = inside.filter(pl.col("end") - pl.col("start") == _SLOT)
    proven = intersect(blocks.with_columns(first="start"), whole, _PLACE)
    return blocks.join(proven.select(*_PLACE, start="first"), on=[*_PLACE, "start"], how="semi")


def _places(facts: DayFacts) -> pl.DataFrame:
    """The node of each pod name that was on one node only: usage may know no more of a pod."""
    names = ["cluster", "namespace", "pod"]
    pods = facts.workloads.drop_nulls("node").group_by(names)
    places = pods.agg(pl.col("node").n_unique().alias("count"), pl.col("node").min().alias("place"))
    return places.filter(pl.col("count") == 1).drop("count")


def _lived(facts: DayFacts, silences: pl.DataFrame) -> pl.DataFrame:
    """The time of silences in which the API tells of pods that samples showed before or after."""
    pod, told = ["cluster", "uid"], pl.col("interval_seconds").is_null()
    bound = facts.workloads.drop_nulls("node")
    rows = bound.filter(told).join(bound.filter(~told), on=pod, how="semi")
    lives = rows.select(
        *_PLACE, pl.col("start").dt.timestamp("ms"), pl.col("end").dt.timestamp("ms")
    )
    both = intersect(union(lives, _PLACE), silences, ["cluster"])
    long = pl.col("end") - pl.col("start") > HOLE * pl.col("step")
    return both.filter(long).select(*_PLACE, "start", "end")
