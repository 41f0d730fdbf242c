"""Who owns what owns pods, as far as series tell: Jobs, ReplicaSets, and clusters of KubeRay."""

from __future__ import annotations

import polars as pl

from collector.prometheus.samples.reader import Reader
from collector.prometheus.series import catalogue as s

_NONE = ("<none>", "None", "")  # how exporters write the absence of an owner
LINK = ("namespace", "kind", "name")
_ABOVE = ("kind2", "name2")
_DRAWN = r"^(.+)-[a-z0-9]{5}$"
_WORD = "-raycluster"


def latest(frame: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """The last owner seen of each thing: ``key``, ``kind``, ``name``; null = it has none.

    The node of a pod that its kubelet runs from a file is no workload and does not count.

    Args:
        frame: ``key``, ``time``, ``kind``, ``name``.
        key: Columns that name the thing.
    """
    no_one = pl.any_horizontal(
        pl.col(column).is_null() | pl.col(column).is_in(_NONE) for column in ("kind", "name")
    )
    no_one = no_one | (pl.col("kind") == "Node").fill_null(value=False)
    return (
        frame.with_columns(pl.when(~no_one).then(pl.col("kind", "name")))
        .sort(*key, "time", "kind", "name")
        .group_by(key, maintain_order=True)
        .agg(pl.col("kind", "name").drop_nulls().last())
    )


def links(reader: Reader, first: pl.DataFrame) -> pl.DataFrame:
    """Owners of owners.

    Args:
        reader: Where their series are read.
        first: ``namespace``, ``kind``, ``name`` of the owners of pods.

    Returns:
        ``namespace``, ``kind``, ``name``, ``kind2``, ``name2``, one row for each thing whose owner
        is told; ``kind2`` and ``name2`` are null where it is told that it has none.
    """
    jobs = _owners(reader, s.JOB_OWNER, "Job", "job_name")
    sets = _owners(reader, s.REPLICASET_OWNER, "ReplicaSet", "replicaset")
    clusters = first.filter(kind="RayCluster").select("namespace", "name")
    if clusters.is_empty():
        return pl.concat([sets, jobs])
    return pl.concat([sets, jobs, _ray_clusters(reader, clusters, jobs)])


def _owners(reader: Reader, series: s.Series, kind: str, name: str) -> pl.DataFrame:
    read = reader.read_steps(series)
    if read is None:
        return pl.DataFrame(schema=dict.fromkeys((*LINK, *_ABOVE), pl.String))
    of = pl.col(name).alias("of")
    frame = read.select("namespace", of, "time", kind="owner_kind", name="owner_name")
    return latest(frame, ["namespace", "of"]).select(
        "namespace",
        pl.lit(kind).alias("kind"),
        pl.col("of").alias("name"),
        kind2="kind",
        name2="name",
    )


def _ray_clusters(reader: Reader, clusters: pl.DataFrame, jobs: pl.DataFrame) -> pl.DataFrame:
    """The RayJob or RayService of clusters.

    KubeRay tells the kind of a cluster's owner, not its name. It calls a cluster by the name of its
    owner, up to 1.3 with a word more, and five drawn letters. Where it is not scraped, the Job that
    submits tells that there is a RayJob of that name.
    """
    read = reader.read_steps(s.RAY_CLUSTER)
    told = clusters.clear().with_columns(told=pl.lit(None, pl.String))
    if read is not None:
        told = read.sort("time").group_by("namespace", "name").agg(told=pl.col("owner_kind").last())
    submitted = jobs.filter(kind2="RayJob").select("namespace", "name2").unique()
    named = clusters.unique().with_columns(long=pl.col("name").str.extract(_DRAWN))
    named = named.with_columns(short=pl.col("long").str.strip_suffix(_WORD))
    for form in ("long", "short"):
        seen = submitted.select("namespace", pl.col("name2").alias(form), pl.lit(form).alias("by"))
        named = named.join(seen, on=["namespace", form], how="left", suffix=f"_{form}")
    by = pl.coalesce("by", "by_short")
    owner = pl.when(by == "long").then("long").otherwise("short")
    rows = named.join(told, on=["namespace", "name"], how="left").with_columns(
        told=pl.coalesce("told", pl.when(by.is_not_null()).then(pl.lit("RayJob"))), owner=owner
    )
    alone = pl.col("told").is_in(_NONE)
    return rows.filter(
        alone | (pl.col("told").is_not_null() & pl.col("owner").is_not_null())
    ).select(
        "namespace",
        pl.lit("RayCluster").alias("kind"),
        "name",
        kind2=pl.when(~alone).then("told"),
        name2=pl.when(~alone).then("owner"),
    )
