"""States of jobs and Ray clusters from series, in the words of ``docs/resources.md``."""

from __future__ import annotations

from datetime import timedelta

import polars as pl

from collector.prometheus.samples.lasting import Frames
from collector.prometheus.samples.texts import json_object, moment, moment_of, number, quoted
from collector.prometheus.series import policy_series as p
from ledger.window import Window

_HOLE = timedelta(minutes=15)
"""What is there for the first time this long after the day began, began on it."""

_RAY = ["namespace", "name", "uid"]
_JOB = ["namespace", "job_name"]
_ENDED = ("Complete", "Failed")


def ray_jobs(moments: Frames, states: Frames, window: Window) -> list[pl.DataFrame]:
    """The status that was there last; its first sample tells when it began, if that was today."""
    seen = moments.get(p.RAY_JOB_STATUS.metric)
    if seen is None:
        return []
    status, first = pl.col("deployment_status"), pl.col("first")
    late = first > window.start + _HOLE
    runs = status == "Running"
    found = (
        seen.sort(*_RAY, "last", "first", nulls_last=True)
        .group_by(_RAY, maintain_order=True)
        .agg(
            status.last(),
            pl.col("last").last().alias("seen_at"),
            since=pl.when(late).then(first).last(),
            # A state that followed another one of today began today, however early.
            changed=pl.len() > 1,
            began=first.last(),
            started=pl.when(late & runs).then(first).min(),
        )
        .join(_ray_seconds(states), on=_RAY, how="left", nulls_equal=True)
    )
    ended = pl.col("deployment_status").is_in(_ENDED)
    since = pl.when(pl.col("changed")).then("began").otherwise("since")
    state = (
        pl.when(pl.col("deployment_status") == "Complete")
        .then(pl.lit("finished"))
        .when(pl.col("deployment_status") == "Failed")
        .then(pl.lit("failed"))
        .when(pl.col("deployment_status") == "Running")
        .then(pl.lit("running"))
        .when(pl.col("deployment_status").is_in(["Suspended", "Suspending"]))
        .then(pl.lit("suspended"))
        .otherwise(pl.lit("pending"))
    )
    configuration = json_object(
        {
            "jobDeploymentStatus": quoted(pl.col("deployment_status")),
            "state": quoted(state),
            "startedAt": moment(pl.col("started")),
            "finishedAt": moment(pl.when(ended).then(since)),
            "executionSeconds": number(pl.col("seconds")),
        }
    )
    return [found.select(*_RAY, "seen_at", kind=pl.lit("RayJob"), configuration=configuration)]


def _ray_seconds(states: Frames) -> pl.DataFrame:
    """How long the last attempt of a RayJob took."""
    read = states.get(p.RAY_JOB_SECONDS.metric)
    if read is None:
        return pl.DataFrame(schema={**dict.fromkeys(_RAY, pl.String), "seconds": pl.Float64})
    attempt = pl.col("retry_count").cast(pl.Int64, strict=False).fill_null(0)
    last = read.with_columns(attempt=attempt).sort(*_RAY, "attempt", nulls_last=True)
    return last.group_by(_RAY, maintain_order=True).agg(seconds=pl.col("value").last())


def ray_clusters(moments: Frames, states: Frames) -> list[pl.DataFrame]:
    """Ray clusters and the kind of their owner; one that ``None`` owns has no job and no end."""
    seen = moments.get(p.RAY_CLUSTER_INFO.metric)
    if seen is None:
        return []
    took = states.get(p.RAY_CLUSTER_SECONDS.metric)
    none = pl.DataFrame(schema={**dict.fromkeys(_RAY, pl.String), "value": pl.Float64})
    rows = (
        seen.sort(*_RAY, "last", nulls_last=True)
        .unique(_RAY, keep="last", maintain_order=True)
        .join(none if took is None else took, on=_RAY, how="left", nulls_equal=True)
    )
    kind = pl.col("owner_kind")
    owner = (
        pl.when(kind == "None").then(pl.lit("null")).otherwise(json_object({"kind": quoted(kind)}))
    )
    configuration = json_object(
        {
            "owner": pl.when(kind.is_not_null()).then(owner),
            "provisionedSeconds": number(pl.col("value")),
        }
    )
    return [
        rows.select(*_RAY, seen_at="last", kind=pl.lit("RayCluster"), configuration=configuration)
    ]


def jobs(moments: Frames, states: Frames, window: Window) -> list[pl.DataFrame]:
    """Jobs of Kubernetes: times of kube-state-metrics are those of the API."""
    parts = {
        "created": states.get(p.JOB_CREATED.metric),
        "started": states.get(p.JOB_STARTED.metric),
        "completed": states.get(p.JOB_COMPLETED.metric),
        "active": states.get(p.JOB_ACTIVE.metric),
        "suspended": states.get(p.JOB_SUSPENDED.metric),
        "deadline": states.get(p.JOB_DEADLINE.metric),
        "done": _true(states.get(p.JOB_COMPLETE.metric)),
        "failed": _true(states.get(p.JOB_FAILED.metric)),
    }
    known = {name: frame for name, frame in parts.items() if frame is not None}
    if not known:
        return []
    rows = pl.concat([frame.select(_JOB) for frame in known.values()]).unique().sort(_JOB)
    for name in parts:
        frame = known.get(name)
        if frame is None:
            rows = rows.with_columns(pl.lit(None, dtype=pl.Float64).alias(name))
        else:
            once = frame.select(*_JOB, pl.col("value").alias(name)).unique(_JOB, keep="last")
            rows = rows.join(once, on=_JOB, how="left")
    rows = rows.join(_failed_at(moments, window), on=_JOB, how="left")
    state = (
        pl.when((pl.col("done") > 0) | pl.col("completed").is_not_null())
        .then(pl.lit("finished"))
        .when(pl.col("failed") > 0)
        .then(pl.lit("failed"))
        .when(pl.col("suspended") > 0)
        .then(pl.lit("suspended"))
        .when(pl.col("active") > 0)
        .then(pl.lit("running"))
        .otherwise(pl.lit("pending"))
    )
    failed = pl.when(pl.col("failed") > 0).then("failed_at")
    configuration = json_object(
        {
            "state": quoted(state),
            "submittedAt": moment_of(pl.col("created")),
            "startedAt": moment_of(pl.col("started")),
            "finishedAt": pl.coalesce(moment_of(pl.col("completed")), moment(failed)),
            "activeDeadlineSeconds": number(pl.col("deadline")),
        }
    )
    return [
        rows.select("namespace", name="job_name", kind=pl.lit("Job"), configuration=configuration)
    ]


def _true(frame: pl.DataFrame | None) -> pl.DataFrame | None:
    return None if frame is None else frame.filter(pl.col("condition") == "true")


def _failed_at(moments: Frames, window: Window) -> pl.DataFrame:
    """When jobs failed that failed today."""
    seen = moments.get(p.JOB_FAILED.metric)
    if seen is None:
        time = pl.Datetime("us", "UTC")
        return pl.DataFrame(schema={**dict.fromkeys(_JOB, pl.String), "failed_at": time})
    today = seen.filter(pl.col("first") > window.start + _HOLE)
    return today.group_by(_JOB, maintain_order=True).agg(failed_at=pl.col("first").min())
