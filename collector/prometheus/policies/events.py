"""Events from series: how containers ended, and what controllers counted on the day."""

from __future__ import annotations

from datetime import timedelta

import polars as pl

from collector.happenings import OOM_KILLED
from collector.prometheus.samples.lasting import Frames
from collector.prometheus.samples.texts import json_object, number, quoted
from collector.prometheus.series import policy_series as p
from ledger.window import Window

_CONTAINER = ["namespace", "pod", "uid", "container"]
_TICK = timedelta(microseconds=1)


def exits(states: Frames, window: Window) -> list[pl.DataFrame]:
    """The last end of each container that was started again, if it was on the day.

    Its ``id`` is that of the API's telling. Where kube-state-metrics is too old to tell the time,
    nothing is told.
    """
    times = states.get(p.EXIT_TIME.metric)
    if times is None:
        return []
    at = pl.from_epoch(pl.col("value").round().cast(pl.Int64), time_unit="s")
    ended = (
        times.with_columns(time=at.cast(pl.Datetime("us")).dt.replace_time_zone("UTC"))
        .filter(pl.col("time") >= window.start, pl.col("time") < window.end)
        .drop_nulls(["uid", "container"])
        .drop("value")
    )
    for name, frame in (
        ("reason", _reasons(states)),
        ("code", _values(states, p.EXIT_CODE.metric)),
        ("restarts", _values(states, p.RESTARTS.metric)),
    ):
        named = frame.rename({frame.columns[-1]: name})
        ended = ended.join(named, on=_CONTAINER, how="left", nulls_equal=True)
    kind = pl.when(pl.col("reason") == OOM_KILLED).then(pl.lit("out_of_memory"))
    said = {
        "container": quoted(pl.col("container")),
        "exitCode": number(pl.col("code")),
        "restarts": number(pl.col("restarts")),
    }
    stamp = pl.col("time").dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    return [
        ended.select(
            "time",
            "namespace",
            "uid",
            "reason",
            first_time="time",
            kind=kind.otherwise(pl.lit("restart")),
            object_kind=pl.lit("Pod"),
            name="pod",
            count=pl.lit(1, dtype=pl.Int64),
            id=pl.concat_str("uid", pl.lit("/"), "container", pl.lit("/"), stamp),
            attributes=json_object(said),
        )
    ]


def _values(states: Frames, metric: str) -> pl.DataFrame:
    frame = states.get(metric)
    if frame is None:
        return pl.DataFrame(schema={**dict.fromkeys(_CONTAINER, pl.String), "value": pl.Float64})
    return frame.unique(_CONTAINER, keep="last", maintain_order=True)


def _reasons(states: Frames) -> pl.DataFrame:
    """The reason of a container's last end; of several of the day, want of memory goes first.

    Their order is not known any more.
    """
    frame = states.get(p.EXIT_REASON.metric)
    if frame is None:
        return pl.DataFrame(schema=dict.fromkeys((*_CONTAINER, "reason"), pl.String))
    memory = pl.col("reason") == OOM_KILLED
    held = frame.filter(pl.col("value") > 0).sort(*_CONTAINER, ~memory, "reason", nulls_last=True)
    return held.group_by(_CONTAINER, maintain_order=True).agg(pl.col("reason").first())


def counts(counted: Frames, window: Window) -> list[pl.DataFrame]:
    """What controllers counted on the day: evictions by queue, nodes removed by pool.

    The day's count is one event that began and ended with the day.
    """
    return [
        *_count(counted, p.EVICTED.metric, "ClusterQueue", "cluster_queue", window),
        *_count(counted, p.POOL_DISRUPTED.metric, "NodePool", "nodepool", window),
        *_count(counted, p.SCALED_DOWN.metric, "ClusterAutoscaler", None, window),
    ]


def _count(
    counted: Frames, metric: str, kind: str, by: str | None, window: Window
) -> list[pl.DataFrame]:
    frame = counted.get(metric)
    if frame is None:
        return []
    name = pl.lit("cluster-autoscaler") if by is None else pl.col(by)
    reason = pl.col("reason")
    put_off = (
        pl.when(reason == "Preempted").then(pl.lit("preemption")).otherwise(pl.lit("eviction"))
    )
    happened = put_off if kind == "ClusterQueue" else pl.lit("scale_down")
    rows = (
        frame.with_columns(name=name)
        .group_by("name", "reason", maintain_order=True)
        .agg(pl.col("value").sum().round().cast(pl.Int64).alias("count"))
        .filter(pl.col("count") > 0)
    )
    day = f"/{window.start:%Y-%m-%d}"
    place = pl.concat_str(pl.lit(f"{kind}/"), "name", pl.lit("/"), reason.fill_null(""))
    return [
        rows.select(
            "name",
            "reason",
            "count",
            kind=happened,
            object_kind=pl.lit(kind),
            time=pl.lit(window.end - _TICK).dt.cast_time_unit("us"),
            first_time=pl.lit(window.start).dt.cast_time_unit("us"),
            id=pl.concat_str(place, pl.lit(day)),
            attributes=pl.lit("{}"),
        )
    ]
