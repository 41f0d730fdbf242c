"""Pods: their lives, states, requests, owners and labels, from kube-state-metrics."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from collector.prometheus.cluster.owners import owner_chains
from collector.prometheus.cluster.requests import REQUESTS, read_requests, with_devices
from collector.prometheus.samples import ended
from collector.prometheus.samples.chains import changes, clip, cut, find_runs, fuse, look_up, union
from collector.prometheus.samples.names import with_uid
from collector.prometheus.samples.reader import Reader
from collector.prometheus.series import catalogue as s
from collector.prometheus.series.metric import Series
from ledger.facts import Quarantine
from ledger.schema import WORKLOADS
from ledger.window import Window

MANY = 2_000_000  # samples of pods; above, series with several samples per pod are read in parts


@dataclass(frozen=True)
class Pods:
    """What was read of pods.

    Args:
        workloads: Rows of the table ``workloads``, without ``day``, ``source`` and ``cluster``.
        lives: ``uid``, ``namespace``, ``pod``, ``node``, ``start``, ``end``: when each pod was
            alive and where, not clipped to the day; sorted by namespace, pod, start.
        host_network: ``uid``: pods in the network of their node, whose meters are the node's.
    """

    workloads: pl.DataFrame
    lives: pl.DataFrame
    host_network: pl.DataFrame


def read_pods(
    reader: Reader,
    seen: pl.DataFrame | None = None,
    annotations: Series = s.POD_ANNOTATIONS,
) -> Pods | None:
    """Lives of pods in the reader's window; None if nothing says where pods lived.

    Args:
        reader: The day.
        seen: ``start``, ``end``: when any node of the cluster was seen, disjoint and sorted; None =
            when any pod was.
        annotations: The series of annotations, with those to keep.
    """
    info = reader.read_lives(s.POD_INFO)
    if info is None:
        return None
    parts = 1 + info.samples.height // MANY
    phases = reader.read_steps(s.POD_PHASE, parts, whole=True)
    odd = ended.unmatched(info.frame, phases, info.interval)
    if odd != []:
        info = reader.read_lives_again(s.POD_INFO, odd)
        if info is None:
            return None
    frame = _identified(info.frame, reader)
    names = frame.select("uid", "namespace", "pod").unique("uid", keep="last", maintain_order=True)
    steps = {
        "node": changes(frame, ["uid"], ["node"]),
        "phase": _steps(phases, names, "phase"),
        "reason": _steps(reader.read_steps(s.POD_WAITING), names, "reason"),
        "labels": _steps(reader.read_steps(s.POD_LABELS, parts), names, "labels"),
    }
    steps["annotations"] = _steps(reader.read_steps(annotations), names, "annotations")
    steps["requests"], told = read_requests(reader, names, parts)
    lived = ended.until_ended(frame, steps["phase"], _with_names(phases, names), odd)
    runs = find_runs(lived, "uid", info.interval)
    segments = cut(runs, "uid", list(steps.values()))
    for step in steps.values():
        segments = look_up(segments, "uid", step)
    segments = _placed(with_devices(segments, known=told), reader)
    held = pl.col("phase").eq_missing(pl.lit("Pending"))
    alive = segments.with_columns(
        state=pl.when(held).then(pl.lit("held")).otherwise(pl.lit("running")),
        reason=pl.when(held).then("reason"),
    ).drop("phase", "at")
    what = ["node", "state", "reason", "labels", "annotations", *REQUESTS]
    alive = fuse(alive, "uid", what)
    owners = owner_chains(reader, frame, names, steps["labels"], steps["annotations"])
    known = names.join(owners, on="uid", how="left")
    known = known.join(_times(reader, names), on="uid", how="left")
    known = _with_ends(known, runs, union(runs) if seen is None else seen, reader.window)
    lives = alive.select("uid", "node", "start", "end").join(names, on="uid", how="left")
    inside = clip(alive, reader.window).join(known, on="uid", how="left")
    shared = frame.filter(host_network="true").select("uid").unique()
    return Pods(_workloads(inside), lives.sort("namespace", "pod", "start"), shared.sort("uid"))


def _placed(segments: pl.DataFrame, reader: Reader) -> pl.DataFrame:
    """The segments without those of pods that run, but on no node: put aside by their samples."""
    lost = (pl.col("phase") == "Running").fill_null(value=False) & pl.col("node").is_null()
    aside = clip(segments.filter(lost), reader.window)
    samples = (pl.col("end") - pl.col("start")) / pl.col("interval")
    count = aside.select(samples.ceil().cast(pl.Int64).sum()).item()
    if count:
        example = f"uid {aside['uid'].sort()[0]}"
        reader.quarantine.append(Quarantine("no_node", s.POD_INFO.metric, count, example))
    return segments.filter(~lost)


def _identified(frame: pl.DataFrame, reader: Reader) -> pl.DataFrame:
    """Rows that name a pod; the others are put aside.

    Where no series gives a name a uid, pods of that name are one, which ``NAMESPACE/POD`` stands
    for; beside a row with a uid, one without is a copy that says less.
    """
    name = ["namespace", "pod"]
    named = frame.drop_nulls(["uid", *name])
    if named.height < frame.height:
        told = named.select(name).unique()
        bare = frame.filter(pl.col("uid").is_null()).drop_nulls(["node", *name])
        bare = bare.join(told, on=name, how="anti", maintain_order="left")
        bare = bare.with_columns(uid=pl.concat_str(name, separator="/")).select(named.columns)
        if nameless := _samples(frame) - _samples(named) - _samples(bare):
            reader.quarantine.append(Quarantine("no_uid", s.POD_INFO.metric, nameless))
        if pods := bare["uid"].n_unique():
            text = f"{s.POD_INFO.metric} gives {pods} pods no uid; their names stand for it"
            reader.notes.append(text)
        named = pl.concat([named, bare])
    return named.unique(["uid", "time"], keep="first", maintain_order=True)


def _samples(frame: pl.DataFrame) -> int:
    return int(frame["count"].sum()) if "count" in frame.columns else frame.height


def _with_names(read: pl.DataFrame | None, names: pl.DataFrame) -> pl.DataFrame | None:
    return None if read is None else with_uid(read, names)


def _steps(read: pl.DataFrame | None, names: pl.DataFrame, column: str) -> pl.DataFrame:
    """Changes of one column per pod; empty if the series is missing."""
    if read is None:
        return names.clear().select(
            "uid",
            pl.lit(None, pl.Datetime("us", "UTC")).alias("time"),
            pl.lit(None, pl.String).alias(column),
        )
    frame = with_uid(read, names).unique(["uid", "time"], keep="first", maintain_order=True)
    if column == "annotations":  # the labels of their series
        frame = frame.rename({"labels": column})
    return changes(frame, ["uid"], [column])


def _times(reader: Reader, names: pl.DataFrame) -> pl.DataFrame:
    """Bind and finish times of pods, from series whose value is a Unix time."""
    known = names.select("uid")
    for column, wanted in (("bound_at", s.POD_SCHEDULED), ("finished_at", s.POD_COMPLETED)):
        read = reader.read_steps(wanted)
        moment = (pl.col("value").last() * 1e6).round().cast(pl.Int64).cast(pl.Datetime("us"))
        if read is None:
            known = known.with_columns(pl.lit(None, WORKLOADS.schema[column]).alias(column))
            continue
        read = (
            with_uid(read, names)
            .sort("uid", "time")
            .group_by("uid")
            .agg(moment.dt.replace_time_zone("UTC").alias(column))
        )
        known = known.join(read, on="uid", how="left")
    return known


def _with_ends(
    known: pl.DataFrame, runs: pl.DataFrame, seen: pl.DataFrame, window: Window
) -> pl.DataFrame:
    """Fill ``finished_at`` of pods that were last seen before the window's end.

    A pod has ended there if its cluster was seen for at least one interval more without it.
    """
    last = runs.group_by("uid").agg(pl.col("end").max(), pl.col("interval").last())
    ended = (
        last.filter(pl.col("end") < window.end)
        .sort("end", "uid")
        .join_asof(
            seen.select("start", pl.col("end").alias("until")).sort("start"),
            left_on="end",
            right_on="start",
        )
        .filter(pl.col("until") >= pl.col("end") + pl.col("interval"))
        .select("uid", last_seen="end")
    )
    return known.join(ended, on="uid", how="left").with_columns(
        finished_at=pl.coalesce("finished_at", "last_seen")
    )


def _workloads(rows: pl.DataFrame) -> pl.DataFrame:
    seconds = pl.col("interval").dt.total_microseconds() / 1e6
    return rows.with_columns(interval_seconds=seconds).sort("uid", "start")
