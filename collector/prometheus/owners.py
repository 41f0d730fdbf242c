"""Owner chains as far as kube-state-metrics knows them: pod, replica set or job, and above."""

from __future__ import annotations

import polars as pl

from collector.prometheus import series as s
from collector.prometheus.reader import Reader

_NONE = "<none>"  # how kube-state-metrics writes the absence of an owner


def owner_chains(reader: Reader, info: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """The chain of each pod; a missing link ends it at the last known owner.

    Args:
        reader: Where the owner series are read.
        info: Frame of ``kube_pod_info``, which knows the first owner as ``created_by``.
        names: ``uid``, ``namespace``, ``pod``.

    Returns:
        ``uid``, ``owners`` (JSON list of {kind, name}, nearest first), ``root_kind``,
        ``root_name`` (null: no owner).
    """
    first = _latest(info.rename({"created_by_kind": "kind", "created_by_name": "name"}), ["uid"])
    named = reader.read_steps(s.POD_OWNER)
    if named is not None:
        frame = named.rename({"owner_kind": "kind", "owner_name": "name"})
        told = _latest(frame.filter(pl.col("uid").is_not_null()), ["uid"])
        first = (
            first.join(told, on="uid", how="left", suffix="_told")
            .with_columns(
                kind=pl.coalesce("kind_told", "kind"), name=pl.coalesce("name_told", "name")
            )
            .select("uid", "kind", "name")
        )
    chain = names.join(first, on="uid", how="left").join(
        _second(reader), on=["namespace", "kind", "name"], how="left"
    )
    return chain.select(
        "uid",
        owners=_json(),
        root_kind=pl.coalesce("kind2", "kind"),
        root_name=pl.coalesce("name2", "name"),
    )


def _json() -> pl.Expr:
    links = [
        pl.when(pl.col(name).is_not_null()).then(
            pl.struct(pl.col(kind).alias("kind"), pl.col(name).alias("name")).struct.json_encode()
        )
        for kind, name in (("kind", "name"), ("kind2", "name2"))
    ]
    return pl.format("[{}]", pl.concat_str(links, separator=",", ignore_nulls=True))


def _latest(frame: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """The last owner seen of each thing; a thing without one is left out."""
    known = frame.with_columns(
        pl.when(pl.col("kind", "name") != _NONE).then(pl.col("kind", "name"))
    )
    return (
        known.filter(pl.col("kind").is_not_null(), pl.col("name").is_not_null())
        .sort(*key, "time", "kind", "name")
        .group_by(key, maintain_order=True)
        .agg(pl.col("kind", "name").last())
    )


def _second(reader: Reader) -> pl.DataFrame:
    """``namespace``, ``kind``, ``name`` of a first owner to ``kind2``, ``name2`` of its owner."""
    parts = [
        pl.DataFrame(
            schema=dict.fromkeys(("namespace", "kind", "name", "kind2", "name2"), pl.String)
        )
    ]
    for series, kind, name in (
        (s.REPLICASET_OWNER, "ReplicaSet", "replicaset"),
        (s.JOB_OWNER, "Job", "job_name"),
    ):
        read = reader.read_steps(series)
        if read is not None:
            frame = read.rename({"owner_kind": "kind", "owner_name": "name"})
            parts.append(
                _latest(frame, ["namespace", name]).select(
                    "namespace",
                    pl.lit(kind).alias("kind"),
                    pl.col(name).alias("name"),
                    kind2="kind",
                    name2="name",
                )
            )
    return pl.concat(parts)
