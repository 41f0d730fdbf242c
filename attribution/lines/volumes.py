"""Persistent volumes: a line falls to the pods that mount its volume, by time.

Between any two changes the live pods that mount it share evenly, and a stretch weighs its part of
the volume's life, not of the pod's (opencost/opencost#2129). So a pod's weight in a line is the
integral of 1 / pods over the time in which it mounts the volume, in whole units of
1 / ``_EVEN`` ms: exact for up to 24 pods, and to ten digits beyond.
"""

from __future__ import annotations

import polars as pl

from attribution.bill.resource_ids import resource_id, volume_ids
from attribution.facts import DayFacts
from attribution.lines.parts import Found, parts_of, unattributed
from attribution.lives.evidence import seen_spans, weigh_clusters
from attribution.lives.lives import node_spans, sampled_pod_spans
from attribution.ratio import HOUR
from attribution.spans import clip, complement, union
from ledger.facts import Gap
from ledger.settings import Settings
from ledger.text import counted

_EVEN = 8 * 5_354_228_880
"""Units of a millisecond: a multiple of 1 to 24; a day of them stays below 2^62."""

NO_LIFE = "no_samples"
"""Reason of a line in whose time no source shows its volume."""


def place_volumes(
    lines: pl.DataFrame, lives: pl.DataFrame, facts: DayFacts, settings: Settings
) -> Found:
    """Parts of the lines whose resource is a volume.

    Time in which nobody mounts it is ``__unattributed__``/``unmounted``, with the labels of its
    claim as tags; time in which its cluster was not seen, or nobody looked for pods, is
    ``no_samples``. So is a line in whose time the volume had no life.

    Args:
        lines: ``match.bill_lines`` that pay for no node.
        lives: Pod lives with ``who``.
        facts: The day.
        settings: Which clusters should have samples.
    """
    id_, own = pl.col("id"), pl.col("own")
    volumes = volume_ids(facts)
    # An estimated line names the volume itself where its handle is that of many.
    every = pl.concat([volumes, volumes.filter(id_ != own).with_columns(own.alias("id"))])
    mine = lines.select("line", "start", "end", resource_id("ResourceId").alias("id")).join(
        every.select("id"), on="id", how="semi"
    )
    if mine.is_empty():
        return Found()
    alive = clip(every, facts.start, facts.end).join(mine, on="id", how="semi")
    crew = _crew(every, facts.mounts.join(every, on=["cluster", "volume"], how="semi"), lives)
    crew = crew.join(mine, on="id", how="semi")
    stretches = _stretches(mine, alive, crew, _unseen(every, facts, settings))
    mounted = _mounted(mine, crew, stretches)
    free = _free(mine, stretches, _told(every))
    parts = pl.concat([mounted, free])
    lost = mine.join(parts, on="line", how="anti").join(_told(every), on="id")
    dead = parts_of(
        lost.select("line", "cluster", "namespace", "path", "tags", *unattributed(), weight=1),
        resource="storage",
        reason=NO_LIFE,
    )
    return Found(pl.concat([parts, dead]), gaps=(*_unmounted(stretches, alive), *_lifeless(lost)))


def _told(volumes: pl.DataFrame) -> pl.DataFrame:
    """What a volume is that nobody mounts: ``id, cluster, namespace, path, tags``."""
    first = volumes.sort("id", "cluster", "volume", "start", "source").unique(
        "id", keep="first", maintain_order=True
    )
    return first.select("id", "cluster", "namespace", path="volume", tags="labels")


def _crew(volumes: pl.DataFrame, mounts: pl.DataFrame, lives: pl.DataFrame) -> pl.DataFrame:
    """Lives of the pods that mount: ``id, path, cluster, uid, who, start, end``.

    A pod that mounts one disk by several volumes, or in several containers, counts once.
    """
    ids = volumes.select("cluster", "volume", "id").unique()
    pods = (
        mounts.select("cluster", "volume", "uid")
        .unique()
        .join(ids, on=["cluster", "volume"])
        .group_by("id", "cluster", "uid")
        .agg(pl.col("volume").min().alias("path"))
    )
    spans = lives.select("cluster", "uid", "who", "start", "end")
    return pods.join(spans, on=["cluster", "uid"])


def _unseen(volumes: pl.DataFrame, facts: DayFacts, settings: Settings) -> pl.DataFrame:
    """``id, start, end``: when a cluster of the volume was not seen, or nobody looked for pods."""
    clusters = volumes.select("cluster").unique()
    seen = seen_spans(node_spans(facts), sampled_pod_spans(facts))
    blind = weigh_clusters(facts, settings).filter(pl.col("blind").is_not_null())
    never = pl.concat(
        [clusters.join(seen, on="cluster", how="anti"), blind.select("cluster")]
    ).with_columns(start=pl.lit(facts.start, dtype=pl.Int64), end=pl.lit(facts.end, dtype=pl.Int64))
    holes = complement(seen, "cluster", facts.start, facts.end)
    dark = pl.concat([never, holes.select(never.columns)])
    return volumes.select("id", "cluster").unique().join(dark, on="cluster")


def _stretches(
    lines: pl.DataFrame, alive: pl.DataFrame, crew: pl.DataFrame, dark: pl.DataFrame
) -> pl.DataFrame:
    """What has run up before each change: ``id, at, share, unmounted, no_samples``.

    ``share`` is what a pod that mounted all the time would have, the others what nobody has.
    """
    kinds = {
        "lives": union(alive, ["id"]),
        "pods": crew,
        "dark": union(dark.join(alive, on="id", how="semi"), ["id"]),
        "edges": lines,
    }
    steps = pl.concat(
        spans.select(
            "id",
            pl.col(edge).alias("at"),
            *(pl.lit(step if name == kind else 0, dtype=pl.Int64).alias(name) for name in kinds),
        )
        for kind, spans in kinds.items()
        for edge, step in (("start", 0 if kind == "edges" else 1), ("end", -(kind != "edges")))
    )
    points = (
        steps.group_by("id", "at")
        .agg(pl.col(*kinds).sum())
        .sort("id", "at")
        .with_columns(pl.col(*kinds).cum_sum().over("id"))
    )
    length = (pl.col("at").shift(-1).over("id") - pl.col("at")).fill_null(0) * _EVEN
    there, empty = pl.col("lives") > 0, pl.col("pods") == 0
    amounts = {
        "share": pl.when(there & ~empty).then(length // pl.max_horizontal("pods", 1)),
        "unmounted": pl.when(there & empty & (pl.col("dark") == 0)).then(length),
        NO_LIFE: pl.when(there & empty & (pl.col("dark") > 0)).then(length),
    }
    sums = points.with_columns(value.fill_null(0).alias(name) for name, value in amounts.items())
    return sums.select(
        "id", "at", *((pl.col(name).cum_sum().over("id") - pl.col(name)) for name in amounts)
    )


def _between(spans: pl.DataFrame, stretches: pl.DataFrame, what: str) -> pl.DataFrame:
    """Add ``weight``: what has run up between ``from`` and ``until``; those without are dropped."""
    sums = stretches.select("id", "at", what)
    first = spans.join(sums, left_on=["id", "from"], right_on=["id", "at"])
    both = first.join(sums, left_on=["id", "until"], right_on=["id", "at"], suffix="_after")
    weighed = both.with_columns((pl.col(f"{what}_after") - pl.col(what)).alias("weight"))
    return weighed.filter(pl.col("weight") > 0)


def _mounted(lines: pl.DataFrame, crew: pl.DataFrame, stretches: pl.DataFrame) -> pl.DataFrame:
    both = lines.join(crew.rename({"start": "born", "end": "died"}), on="id").with_columns(
        pl.max_horizontal("start", "born").alias("from"),
        pl.min_horizontal("end", "died").alias("until"),
    )
    spans = both.filter(pl.col("from") < pl.col("until"))
    rows = (
        _between(spans, stretches, "share")
        .group_by("line", "who")
        .agg(
            pl.col("weight").sum(),
            pl.col("from").min(),
            pl.col("until").max(),
            pl.col("path").min(),
        )
    )
    return parts_of(rows, resource="storage")


def _free(lines: pl.DataFrame, stretches: pl.DataFrame, told: pl.DataFrame) -> pl.DataFrame:
    spans = lines.rename({"start": "from", "end": "until"})
    rows = pl.concat(
        _between(spans, stretches, reason).select(
            "line", "id", "weight", pl.lit(reason).alias("reason")
        )
        for reason in ("unmounted", NO_LIFE)
    ).join(told, on="id")
    return parts_of(rows.with_columns(unattributed()), resource="storage")


def _unmounted(stretches: pl.DataFrame, alive: pl.DataFrame) -> tuple[Gap, ...]:
    """For how long of the day nobody mounted volumes that the bill pays for."""
    size = alive.group_by("id").agg(
        pl.col("cluster").min(), pl.col("volume").min(), pl.col("bytes").max() / 2**30
    )
    sums = (
        stretches.group_by("id")
        .agg((pl.col("unmounted").max() / (_EVEN * HOUR)).alias("hours"))
        .filter(pl.col("hours") > 0)
        .join(size, on="id")
        .group_by("cluster")
        .agg(
            pl.len().alias("volumes"),
            pl.col("volume").min().alias("first"),
            pl.col("hours").sum(),
            (pl.col("hours") * pl.col("bytes")).sum().alias("gib_hours"),
        )
        .sort("cluster")
    )
    return tuple(
        Gap(
            "unmounted",
            f"{cluster}: no pod mounts {counted(volumes, 'volume')} for part of the day, e.g. "
            f"{first}",
            {"volume_hours": hours, "gib_hours": gib_hours},
        )
        for cluster, volumes, first, hours, gib_hours in sums.iter_rows()
    )


def _lifeless(lost: pl.DataFrame) -> tuple[Gap, ...]:
    sums = lost.group_by("cluster").agg(
        pl.len().alias("lines"), pl.col("path").n_unique(), pl.col("path").min().alias("first")
    )
    return tuple(
        Gap(
            NO_LIFE,
            f"{cluster}: {counted(lines, 'line')} of the bill for {counted(volumes, 'volume')} in "
            f"time in which no source shows the volume, e.g. {first}",
            {"volumes": float(volumes)},
        )
        for cluster, lines, volumes, first in sums.sort("cluster").iter_rows()
    )
