"""Lives: what two sources say of one pod, as one list of intervals (``docs/allocation.md``).

Samples say when a pod lived, the API moves the ends by at most one sampling interval and says what
the pod was. All times are milliseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from attribution.facts import DayFacts
from attribution.lives.owners import with_sampled_owners, with_told_owners
from attribution.lives.states import ATTRIBUTES, POD, pod_states
from attribution.spans import clip, complement, flatten, intersect, subtract, union

HOLE = 3
"""How many usual intervals a chain of samples may miss."""


def node_spans(facts: DayFacts) -> pl.DataFrame:
    """When each node was up, by each kind of source.

    A chain of samples reaches the day's end, and the node's creation, where it comes within one
    interval of it, as the chains of pods do; not the day's end where the cluster was seen later.

    Returns:
        ``cluster, node, sampled, start, end``.
    """
    rows = facts.nodes.select(
        "cluster",
        "node",
        pl.col("interval_seconds").is_not_null().alias("sampled"),
        _ms("start"),
        _ms("end"),
        _ms("created"),
        _interval().fill_null(0).alias("interval"),
    )
    born = pl.col("created").clip(facts.start, facts.end)
    near = (pl.col("start") - born).is_between(0, pl.col("interval"))
    # A chain that ends before others of its cluster do ended there: they were seen without it.
    ended = pl.col("end") < pl.col("end").filter("sampled").max().over("cluster")
    rows = rows.with_columns(
        pl.when(pl.col("sampled") & near).then(born).otherwise("start").alias("start"),
        pl.when(pl.col("sampled") & ended).then("end").otherwise(_to_midnight(facts)).alias("end"),
    )
    return union(clip(rows, facts.start, facts.end), ["cluster", "node", "sampled"])


def node_holes(facts: DayFacts) -> pl.DataFrame:
    """When samples of a node are missing, though it was the same registration before and after.

    A hole is longer than ``HOLE`` intervals. A node that was registered again was away.

    Returns:
        ``cluster, node, start, end``.
    """
    place = ["cluster", "node"]
    told = facts.nodes.filter(pl.col("interval_seconds").is_null())
    api = told.group_by(place).agg(_ms("created").max().alias("told"))
    rows = facts.nodes.filter(pl.col("interval_seconds").is_not_null()).select(
        *place, _ms("start"), _ms("end"), _interval().alias("step"), _ms("created")
    )
    rows = clip(rows, facts.start, facts.end).sort(*place, "start", "end", "created")
    before = pl.col("end").cum_max().shift(1).over(place)
    rows = rows.join(api, on=place, how="left", maintain_order="left").with_columns(
        before.alias("from"), pl.col("created").shift(1).over(place).alias("was")
    )
    again = (pl.coalesce("created", "told") > pl.col("from")) | (pl.col("created") != pl.col("was"))
    long = pl.col("start") - pl.col("from") > HOLE * pl.col("step")
    return rows.filter(long & ~again.fill_null(value=False)).select(
        *place, pl.col("from").alias("start"), pl.col("start").alias("end")
    )


def there_spans(
    facts: DayFacts,
    up: pl.DataFrame,
    lives: pl.DataFrame,
    seen: pl.DataFrame,
    holes: pl.DataFrame,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """When each known node was there: where a row of it is, or a pod on it, or a hole between.

    Args:
        facts: The day.
        up: ``node_spans``.
        lives: Pod lives while their cluster was seen.
        seen: When each cluster was seen.
        holes: ``node_holes``.

    Returns:
        Two frames of ``cluster, node, start, end``: when it was there, and when it was or may have
        been: in time in which its cluster was not seen, from its creation on.
    """
    place = ["cluster", "node"]
    born = facts.nodes.group_by(place).agg(pl.col("created").min().dt.timestamp("ms"))
    span = [*place, "start", "end"]
    pods = lives.join(born, on=place, how="semi")
    known = union(pl.concat([up.select(span), pods.select(span), holes.select(span)]), place)
    dark = born.join(complement(seen, "cluster", facts.start, facts.end), on="cluster")
    maybe = clip(dark, pl.col("created").fill_null(facts.start), facts.end).select(span)
    return known, union(pl.concat([known, maybe]), place)


def sampled_pod_spans(facts: DayFacts, by: Sequence[str] = ("cluster",)) -> pl.DataFrame:
    """When samples showed any pod of a cluster (or of a node): ``by``, ``start, end``."""
    rows = facts.workloads.filter(pl.col("interval_seconds").is_not_null()).select(
        *by, _ms("start"), _ms("end"), _interval().alias("interval"), sampled=True
    )
    rows = rows.with_columns(_to_midnight(facts).alias("end")).drop_nulls(list(by))
    return union(clip(rows, facts.start, facts.end), list(by))


def _interval() -> pl.Expr:
    return (pl.col("interval_seconds") * 1000).round(0).cast(pl.Int64)


def _to_midnight(facts: DayFacts) -> pl.Expr:
    """The end of a chain of samples; the day's end where it comes within one interval of it."""
    last = pl.col("sampled") & (pl.col("end") >= facts.end - pl.col("interval"))
    return pl.when(last).then(facts.end).otherwise("end")


def pod_lives(facts: DayFacts) -> pl.DataFrame:
    """All pods on nodes, in intervals of constant state, node, labels and requests.

    A pod that was watched (``interval_seconds`` 0) lived as the watch tells, and as samples tell at
    other times. A life that the API alone tells is marked ``low``: beside samples, because they do
    not show it; without samples, because the pods that were deleted before the API was asked are
    missing.

    Args:
        facts: The day.

    Returns:
        ``cluster, uid, node, state, start, end, confidence`` and the attributes of the pod
        (``ATTRIBUTES``), sorted by pod and start. Intervals of one pod do not overlap.
    """
    rows = _rows(facts)
    watched = flatten(rows.filter(pl.col("interval") == 0), POD)
    sampled = flatten(rows.filter(pl.col("interval") > 0), POD)
    snapshot = subtract(flatten(rows.filter(pl.col("interval").is_null()), POD), watched, POD)
    told = pl.concat([watched, snapshot])
    told = with_sampled_owners(told, sampled)
    sampled = with_told_owners(sampled, told)
    spans = ["cluster", "uid", "node", "state", "start", "end", "confidence"]
    moved = _with_confidence(_moved_edges(sampled, told, facts), facts).select(spans)
    alone = snapshot.join(sampled, on=list(POD), how="anti").with_columns(confidence=pl.lit("low"))
    seen = watched.with_columns(confidence=pl.lit("high"))
    parts = [subtract(moved, watched, POD), seen.select(spans), alone.select(spans)]
    lives = pl.concat(parts)
    return intersect(lives, pod_states(sampled, told), POD).sort(*POD, "start")


def merged_pods(facts: DayFacts) -> pl.DataFrame:
    """``pod_lives``, and the pods of the day that were never bound (``node`` is empty)."""
    unbound = pl.col("node").is_null().all().over(POD)
    node = pl.when(unbound).then(pl.lit("")).otherwise("node").alias("node")
    return pod_lives(replace(facts, workloads=facts.workloads.with_columns(node)))


def _ms(name: str) -> pl.Expr:
    return pl.col(name).dt.timestamp("ms")


def _rows(facts: DayFacts) -> pl.DataFrame:
    """Bound intervals of all sources inside the day, times in milliseconds."""
    rows = facts.workloads.filter(pl.col("node").is_not_null()).select(
        *POD,
        "node",
        "state",
        _ms("start"),
        _ms("end"),
        _ms("bound_at"),
        _ms("finished_at"),
        _interval().alias("interval"),
        *ATTRIBUTES,
        "owners",
    )
    return clip(rows, facts.start, facts.end)


def _moved_edges(sampled: pl.DataFrame, told: pl.DataFrame, facts: DayFacts) -> pl.DataFrame:
    """The sampled intervals with both ends, and the start of running, at the API's times."""
    running = pl.col("start").filter(pl.col("state") == "running").min()
    chains = sampled.group_by(POD).agg(
        pl.col("start").min().alias("first"),
        running.alias("run"),
        pl.col("end").max().alias("last"),
        pl.col("interval").max().alias("step"),
        pl.col("finished_at").max().alias("last_seen"),
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
    ended = pl.coalesce("finished", "last_seen")
    ends_later = ended.is_null() | (ended >= facts.end)
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
