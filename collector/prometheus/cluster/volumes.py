"""Persistent volumes: when they were there, whose claim holds them, which pods mount them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import polars as pl

from collector.prometheus.samples.chains import changes, clip, cut, find_runs, fuse, look_up
from collector.prometheus.samples.clean import Cleaned
from collector.prometheus.samples.names import with_uid
from collector.prometheus.samples.reader import Reader
from collector.prometheus.series import volume_series as v

_CLAIM = ["namespace", "persistentvolumeclaim"]
_TREE = {"ebs": "kubernetes.io/aws-ebs", "gce": "kubernetes.io/gce-pd"}
_TREE |= {"azure": "kubernetes.io/azure-disk", "nfs": "kubernetes.io/nfs"}
_SAID = {
    "info": ("handle", "driver", "storage_class"),
    "claim": ("namespace", "claim", "class"),
    "bytes": ("value",),
    "wanted": ("wanted",),
    "labels": ("labels",),
    "annotations": ("annotations",),
}


@dataclass(frozen=True)
class Volumes:
    """What was read of volumes.

    Args:
        rows: Rows of the table ``volumes``, without ``day``, ``source`` and ``cluster``.
        mounts: The same of ``mounts``; None if no series tells them.
    """

    rows: pl.DataFrame
    mounts: pl.DataFrame | None


def read_volumes(reader: Reader, names: pl.DataFrame) -> Volumes | None:
    """Volumes in the reader's window; None if no series speaks of them.

    Args:
        reader: Where the series are read.
        names: ``uid``, ``namespace``, ``pod`` of pods.
    """
    info = reader.read_one(v.VOLUME_INFO)
    claims = reader.read_one(v.CLAIM_INFO)
    bound = None if claims is None else claims.frame.filter(pl.col("volume").is_not_null())
    shown = [frame for frame in (None if info is None else info.frame, bound) if frame is not None]
    if not shown:
        return None
    seen = pl.concat([frame.select("volume", "time") for frame in shown]).drop_nulls().unique()
    held = _claims(bound)
    steps = {
        "info": _info(info),
        "claim": held,
        "bytes": _changes(reader.read_steps(v.VOLUME_BYTES), "value"),
        "wanted": _of_claims(reader.read_steps(v.CLAIM_BYTES), held, "value", "wanted"),
        "labels": _of_claims(reader.read_steps(v.CLAIM_LABELS), held, "labels", "labels"),
        "annotations": _of_claims(
            reader.read_steps(v.CLAIM_ANNOTATIONS), held, "labels", "annotations"
        ),
    }
    usual = min(one.interval for one in (info, claims) if one is not None)
    runs = find_runs(seen, "volume", usual)
    told = [step for step in steps.values() if step is not None]
    segments = cut(runs, "volume", told)
    for name, step in steps.items():
        empty = [pl.lit(None).alias(column) for column in _SAID[name]]
        segments = (
            segments.with_columns(empty) if step is None else look_up(segments, "volume", step)
        )
    said = [column for columns in _SAID.values() for column in columns]
    rows = clip(fuse(segments.drop("at"), "volume", said), reader.window)
    return Volumes(_rows(rows), _mounts(reader, names, bound))


def _rows(rows: pl.DataFrame) -> pl.DataFrame:
    size = pl.coalesce(pl.col("value", "wanted").cast(pl.Float64, strict=False))
    return rows.with_columns(
        bytes=size.round().cast(pl.Int64),
        storage_class=pl.coalesce(pl.col("storage_class", "class").cast(pl.String)),
        interval_seconds=pl.col("interval").dt.total_microseconds() / 1e6,
    ).sort("volume", "start")


def _info(info: Cleaned | None) -> pl.DataFrame | None:
    if info is None:
        return None
    kinds = [
        pl.when(pl.col(column).is_not_null()).then(pl.lit(name)) for column, name in _TREE.items()
    ]
    frame = info.frame.filter(pl.col("volume").is_not_null()).with_columns(
        # The old form of a disk's id names its zone: aws://us-east-1a/vol-0abc.
        handle=pl.col("handle").str.replace("^aws://.*/", ""),
        driver=pl.coalesce("csi_driver", *kinds),
        storage_class="storageclass",
    )
    return changes(frame, ["volume"], _SAID["info"])


def _claims(bound: pl.DataFrame | None) -> pl.DataFrame | None:
    """``volume``, ``time`` and whose claim holds it from then on."""
    if bound is None:
        return None
    once = bound.sort("time", *_CLAIM).unique(["volume", "time"], keep="last", maintain_order=True)
    named = once.rename({"persistentvolumeclaim": "claim", "storageclass": "class"})
    return changes(named, ["volume"], _SAID["claim"])


def _changes(read: pl.DataFrame | None, column: str) -> pl.DataFrame | None:
    if read is None:
        return None
    frame = read.drop_nulls("volume").unique(["volume", "time"], keep="first", maintain_order=True)
    return changes(frame, ["volume"], [column])


def _of_claims(
    read: pl.DataFrame | None, held: pl.DataFrame | None, column: str, name: str
) -> pl.DataFrame | None:
    """What is said of a claim, for the volumes that it held."""
    if read is None or held is None:
        return None
    holds = held.select("volume", "namespace", persistentvolumeclaim="claim").unique()
    frame = read.rename({column: name}).join(holds, on=_CLAIM).sort("time", "volume")
    return _changes(frame, name)


def _mounts(reader: Reader, names: pl.DataFrame, bound: pl.DataFrame | None) -> pl.DataFrame | None:
    """``volume`` and ``uid`` of the pods that mount it, by the claim that they name."""
    read = reader.read_states(v.POD_VOLUMES)
    if read is None or bound is None:
        return None
    frame = read.frame.drop("volume")
    if "until" not in frame.columns:
        frame = frame.with_columns(until="time")
    window = reader.window
    inside = (pl.col("until") > window.start) & (pl.col("time") <= window.end)
    # What goes on from before the day counts from its start.
    first = pl.lit(window.start, frame.schema["time"]) + timedelta(microseconds=1)
    frame = frame.filter(inside).with_columns(time=pl.max_horizontal("time", first))
    used = (
        with_uid(frame, names)
        .rename({"persistentvolumeclaim": "claim"})
        .filter(pl.col("claim").is_not_null())
        .group_by("uid", "namespace", "claim")
        .agg(pl.col("time").min())
        .sort("time", "uid")
    )
    by = ["namespace", "claim"]
    named = bound.rename({"persistentvolumeclaim": "claim"}).select("volume", "time", *by)
    once = named.unique([*by, "time"], keep="first", maintain_order=True)
    holds = changes(once, by, ["volume"])
    return (
        used.join_asof(holds, on="time", by=by, check_sortedness=False)
        .select("volume", "uid")
        .drop_nulls()
        .unique()
        .sort("volume", "uid")
    )
