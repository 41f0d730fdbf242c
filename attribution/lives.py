"""Lives: what two sources say of one pod, as one list of intervals (``docs/allocation.md``).

Samples say when a pod lived, the API moves the ends by at most one sampling interval and says what
the pod was. All times are milliseconds since the epoch.
"""

from __future__ import annotations

import polars as pl

from attribution.facts import DayFacts
from attribution.spans import clip, flatten, intersect, union

POD = ("cluster", "uid")
ATTRIBUTES = (
    "namespace",
    "pod",
    "root_kind",
    "root_name",
    "role",
    "labels",
    "owner_labels",
    "annotations",
    "environment",
    "cpu_millicores",
    "memory_bytes",
    "gpus",
)


def seen_spans(up: pl.DataFrame) -> pl.DataFrame:
    """When each cluster was seen: where any of its nodes was, by samples if it has any.

    Args:
        up: ``node_spans``.

    Returns:
        ``cluster, start, end``.
    """
    sampled = pl.col("sampled").any().over("cluster")
    return union(up.filter(pl.col("sampled") == sampled), ["cluster"])


def node_spans(facts: DayFacts) -> pl.DataFrame:
    """When each node was up, by each kind of source.

    A chain of samples reaches the day's end, and the node's creation, where it comes within one
    interval of it, as the chains of pods do.

    Returns:
        ``cluster, node, sampled, start, end``.
    """
    interval = (pl.col("interval_seconds") * 1000).round(0).cast(pl.Int64).fill_null(0)
    rows = facts.nodes.select(
        "cluster",
        "node",
        pl.col("interval_seconds").is_not_null().alias("sampled"),
        _ms("start"),
        _ms("end"),
        _ms("created"),
        interval.alias("interval"),
    )
    born = pl.col("created").clip(facts.start, facts.end)
    near = (pl.col("start") - born).is_between(0, pl.col("interval"))
    rows = rows.with_columns(
        pl.when(pl.col("sampled") & near).then(born).otherwise("start").alias("start"),
        pl.when(pl.col("sampled") & (pl.col("end") >= facts.end - pl.col("interval")))
        .then(facts.end)
        .otherwise("end")
        .alias("end"),
    )
    return union(clip(rows, facts.start, facts.end), ["cluster", "node", "sampled"])


def pod_lives(facts: DayFacts, seen: pl.DataFrame) -> pl.DataFrame:
    """All pods on nodes, in intervals of constant state, node, labels and requests.

    Args:
        facts: The day.
        seen: When each cluster was seen; life outside it is nobody's.

    Returns:
        ``cluster, uid, node, state, start, end, confidence`` and the attributes of the pod
        (``ATTRIBUTES``), sorted by pod and start. Intervals of one pod do not overlap.
    """
    rows = _rows(facts)
    sampled = flatten(rows.filter(pl.col("interval").is_not_null()), POD)
    told = flatten(rows.filter(pl.col("interval").is_null()), POD)
    spans = ["cluster", "uid", "node", "state", "start", "end", "confidence"]
    moved = _with_confidence(_moved_edges(sampled, told, facts), facts).select(spans)
    doubt = pl.col("cluster").is_in(_sampled_clusters(facts).implode())
    alone = told.join(sampled, on=list(POD), how="anti").with_columns(
        pl.when(doubt).then(pl.lit("low")).otherwise(pl.lit("high")).alias("confidence")
    )
    lives = pl.concat([moved, alone.select(spans)])
    lives = intersect(lives, _attributes(sampled, told), POD)
    return intersect(lives, seen, ["cluster"]).sort(*POD, "start")


def _sampled_clusters(facts: DayFacts) -> pl.Series:
    """Clusters that any samples speak of."""
    rows = pl.concat(
        frame.filter(pl.col("interval_seconds").is_not_null()).select("cluster")
        for frame in (facts.nodes, facts.workloads)
    )
    return rows["cluster"].unique()


def _ms(name: str) -> pl.Expr:
    return pl.col(name).dt.timestamp("ms")


def _rows(facts: DayFacts) -> pl.DataFrame:
    """Bound intervals of all sources inside the day, times in milliseconds."""
    interval = (pl.col("interval_seconds") * 1000).round(0).cast(pl.Int64)
    rows = facts.workloads.filter(pl.col("node").is_not_null()).select(
        *POD,
        "node",
        "state",
        _ms("start"),
        _ms("end"),
        _ms("bound_at"),
        _ms("finished_at"),
        interval.alias("interval"),
        *ATTRIBUTES,
    )
    return clip(rows, facts.start, facts.end)


def _attributes(sampled: pl.DataFrame, told: pl.DataFrame) -> pl.DataFrame:
    """What each pod was and from when on: by the API if it knows the pod, else by the samples."""
    others = sampled.join(told, on=list(POD), how="anti")
    rows = pl.concat([told, others]).select(*POD, "start", *ATTRIBUTES).sort(*POD, "start")
    same = pl.struct(*ATTRIBUTES)
    changes = rows.filter((same != same.shift(1)).over(POD).fill_null(True))
    first = pl.col("start") == pl.col("start").min().over(POD)
    forever = 2**62
    return changes.with_columns(
        pl.when(first).then(0).otherwise("start").alias("start"),
        pl.col("start").shift(-1).over(POD).fill_null(forever).alias("end"),
    )


def _moved_edges(sampled: pl.DataFrame, told: pl.DataFrame, facts: DayFacts) -> pl.DataFrame:
    """The sampled intervals with both ends, and the start of running, at the API's times."""
    running = pl.col("start").filter(pl.col("state") == "running").min()
    chains = sampled.group_by(POD).agg(
        pl.col("start").min().alias("first"),
        running.alias("run"),
        pl.col("end").max().alias("last"),
        pl.col("interval").max().alias("step"),
    )
    times = told.group_by(POD).agg(
        pl.coalesce(pl.col("bound_at").min(), pl.col("start").min()).alias("bound"),
        running.alias("started"),
        pl.col("finished_at").max().alias("finished"),
    )
    edges = _new_edges(chains.join(times, on=list(POD), how="left"), facts)
    rows = sampled.join(edges, on=list(POD))
    start, end = pl.col("start"), pl.col("end")
    moved = rows.with_columns(
        pl.when(start == pl.col("run"))
        .then("to_run")
        .when(start == pl.col("first"))
        .then("to_first")
        .otherwise(start)
        .alias("start"),
        pl.when(end == pl.col("last"))
        .then("to_last")
        .when(end == pl.col("run"))
        .then("to_run")
        .otherwise(end)
        .alias("end"),
    )
    # Held for less than an interval: no sample saw it, the API did.
    held = rows.filter((start == pl.col("first")) & (start == pl.col("run"))).with_columns(
        pl.lit("held").alias("state"),
        pl.col("to_first").alias("start"),
        pl.col("to_run").alias("end"),
    )
    both = pl.concat([moved, held])
    return clip(both, pl.col("to_first"), pl.col("to_last"))


def _new_edges(edges: pl.DataFrame, facts: DayFacts) -> pl.DataFrame:
    step = pl.col("step")
    bound = pl.col("bound").clip(facts.start, facts.end)
    finished = pl.col("finished").clip(facts.start, facts.end)
    ends_later = pl.col("finished").is_null() | (pl.col("finished") >= facts.end)
    edges = edges.with_columns(
        pl.when((pl.col("first") - bound).abs() <= step)
        .then(bound)
        .otherwise("first")
        .alias("to_first"),
        pl.when((pl.col("last") - finished).abs() <= step)
        .then(finished)
        .when(ends_later & (pl.col("last") >= facts.end - step))
        .then(facts.end)
        .otherwise("last")
        .alias("to_last"),
    )
    run = (
        pl.when((pl.col("run") - pl.col("started")).abs() <= step)
        .then("started")
        .when(pl.col("run") == pl.col("first"))
        .then("to_first")
        .otherwise("run")
    )
    return edges.with_columns(pl.max_horizontal(run, "to_first").alias("to_run"))


def _with_confidence(moved: pl.DataFrame, facts: DayFacts) -> pl.DataFrame:
    """Low where a pod's whole life is shorter than the distance of two samples."""
    start = pl.min_horizontal("to_first", "bound")
    end = pl.max_horizontal("to_last", "finished")
    cut = (start <= facts.start) | (end >= facts.end)
    short = ~cut & (end - start < pl.col("step"))
    low = pl.when(short).then(pl.lit("low")).otherwise(pl.lit("high"))
    return moved.with_columns(low.alias("confidence"))
