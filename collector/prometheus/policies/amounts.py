"""Amounts of queues, node pools and node groups, in the words of ``docs/resources.md``."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from collector.prometheus.samples.lasting import Frames
from collector.prometheus.samples.texts import gathered, json_object, number, quoted, truth
from collector.prometheus.series import policy_series as p


def queues(states: Frames, counted: Frames) -> list[pl.DataFrame]:
    """Kueue's queues: ``quotas`` and ``usage`` by flavor and resource, as of the API."""
    limits = {
        "nominalQuota": states.get(p.QUOTA.metric),
        "borrowingLimit": states.get(p.BORROWING.metric),
    }
    parts = {
        "quotas": _amounts({name: frame for name, frame in limits.items() if frame is not None}),
        "usage": _amounts({"total": used})
        if (used := states.get(p.QUEUE_USAGE.metric)) is not None
        else None,
        "pendingWorkloads": _sum(states.get(p.PENDING.metric), "pendingWorkloads"),
        "waitSeconds": _sum(counted.get(p.WAIT_SUM.metric), "waitSeconds"),
        "admittedToday": _sum(counted.get(p.WAIT_COUNT.metric), "admittedToday"),
    }
    known = {name: frame for name, frame in parts.items() if frame is not None}
    if not known:
        return []
    rows = pl.concat([frame.select("cluster_queue") for frame in known.values()]).unique()
    cohorts = _cohorts(states)
    for name, frame in {**known, "cohort": cohorts}.items():
        rows = rows.join(frame.select("cluster_queue", name), on="cluster_queue", how="left")
    keys = {name: pl.col(name) for name in known}
    configuration = json_object({**keys, "cohort": quoted(pl.col("cohort"))})
    return [
        rows.drop_nulls("cluster_queue").select(
            name="cluster_queue", kind=pl.lit("ClusterQueue"), configuration=configuration
        )
    ]


def _amounts(frames: Frames) -> pl.DataFrame | None:
    """``cluster_queue`` and the object flavor → resource → amounts, in a column of each name."""
    if not frames:
        return None
    by = ["cluster_queue", "flavor", "resource"]
    rows = pl.concat([frame.select(by) for frame in frames.values()]).unique()
    for name, frame in frames.items():
        total = frame.group_by(by).agg(pl.col("value").sum().alias(name))
        rows = rows.join(total, on=by, how="left", nulls_equal=True)
    texts = rows.with_columns(text=json_object({name: number(pl.col(name)) for name in frames}))
    flavors = gathered(texts, by[:2], "resource", "text", "text")
    name = "usage" if "total" in frames else "quotas"
    return gathered(flavors, by[:1], "flavor", "text", name)


def _sum(frame: pl.DataFrame | None, name: str) -> pl.DataFrame | None:
    if frame is None:
        return None
    total = frame.group_by("cluster_queue").agg(pl.col("value").sum())
    return total.select("cluster_queue", number(pl.col("value")).alias(name))


def _cohorts(states: Frames) -> pl.DataFrame:
    empty = pl.DataFrame(schema=dict.fromkeys(("cluster_queue", "cohort"), pl.String))
    found = [
        frame.select("cluster_queue", "cohort")
        for one in (p.QUOTA, p.QUEUE_USAGE)
        if (frame := states.get(one.metric)) is not None
    ]
    rows = pl.concat([empty, *found]).drop_nulls().sort("cluster_queue", "cohort")
    return rows.unique("cluster_queue", keep="first", maintain_order=True)


def node_pools(states: Frames) -> list[pl.DataFrame]:
    """Karpenter's node pools: ``limits`` and ``resources`` as of the API."""
    parts = {
        "limits": (states.get(p.POOL_LIMIT.metric), "resource_type"),
        "resources": (states.get(p.POOL_USAGE.metric), "resource_type"),
        "allowedDisruptions": (states.get(p.POOL_DISRUPTIONS.metric), "reason"),
    }
    told = {
        name: gathered(
            frame.group_by("nodepool", key)
            .agg(pl.col("value").max())
            .with_columns(text=number(pl.col("value"))),
            ["nodepool"],
            key,
            "text",
            name,
        )
        for name, (frame, key) in parts.items()
        if frame is not None
    }
    return _joined(told, "nodepool", "NodePool", {})


def autoscaler(states: Frames) -> list[pl.DataFrame]:
    """Node groups of Cluster Autoscaler, and itself."""
    sizes = {
        "minSize": states.get(p.GROUP_MIN.metric),
        "maxSize": states.get(p.GROUP_MAX.metric),
        "targetSize": states.get(p.GROUP_TARGET.metric),
    }
    told = {
        name: frame.group_by("node_group").agg(number(pl.col("value").max()).alias(name))
        for name, frame in sizes.items()
        if frame is not None
    }
    manager = {"manager": quoted(pl.lit("cluster-autoscaler"))}
    groups = _joined(told, "node_group", "NodeGroup", manager)
    unneeded, cooldown = (_most(states, one) for one in (p.UNNEEDED.metric, p.COOLDOWN.metric))
    if unneeded is None and cooldown is None:
        return groups
    itself = pl.DataFrame({"unneeded": [unneeded], "cooldown": [cooldown]}).cast(pl.Float64)
    configuration = json_object(
        {
            "scaleDownCandidates": number(pl.col("unneeded")),
            "scaleDownInCooldown": truth(pl.col("cooldown") > 0),
        }
    )
    kind, name = pl.lit("ClusterAutoscaler"), pl.lit("cluster-autoscaler")
    return [*groups, itself.select(name=name, kind=kind, configuration=configuration)]


def _most(states: Frames, metric: str) -> object:
    frame = states.get(metric)
    return None if frame is None else frame["value"].max()


def _joined(told: Frames, by: str, kind: str, fixed: Mapping[str, pl.Expr]) -> list[pl.DataFrame]:
    """One row per name in any of the frames, whose other column is named as its key."""
    if not told:
        return []
    rows = pl.concat([frame.select(by) for frame in told.values()]).unique().drop_nulls()
    for frame in told.values():
        rows = rows.join(frame, on=by, how="left")
    configuration = json_object({**{name: pl.col(name) for name in told}, **fixed})
    return [rows.select(pl.col(by).alias("name"), kind=pl.lit(kind), configuration=configuration)]
