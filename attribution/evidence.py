"""What each cluster's sources can say of its pods: samples, only a snapshot of the API, or nothing.

Node rows alone say that capacity was paid for, never that it was free: whoever held it must have
been looked for. Samples of pods do that all day long; a snapshot of the API knows the pods that
were left when it was taken; without any pod row nobody looked.
"""

from __future__ import annotations

import polars as pl

from attribution.facts import DayFacts
from attribution.spans import union
from ledger.settings import Settings

NO_PODS = "no_samples"
"""No pod was sampled where nodes were, or no source shows any pod."""
SNAPSHOT_ONLY = "snapshot_only"
"""The settings name a Prometheus for the cluster, and it wrote nothing of the day."""


def weigh_clusters(facts: DayFacts, settings: Settings) -> pl.DataFrame:
    """What is known of each cluster's pods on the day.

    Args:
        facts: The day.
        settings: Which clusters should have samples.

    Returns:
        ``cluster`` (sorted), ``snapshot`` (only the API speaks of it), and ``blind``: why its free
        capacity is not known to be free (``NO_PODS``, ``SNAPSHOT_ONLY``), null if it is.
    """
    rows = pl.concat(
        frame.select(
            "cluster",
            pl.col("interval_seconds").is_not_null().alias("sampled"),
            pl.lit(value=pods).alias("pod"),
        )
        for frame, pods in ((facts.nodes, False), (facts.workloads, True))
    )
    named = [cluster.name for cluster in settings.clusters if cluster.prometheus]
    sampled, pod = pl.col("sampled"), pl.col("pod")
    kinds = rows.group_by("cluster").agg(
        (~sampled).all().alias("snapshot"),
        (sampled & pod).any().alias("sampled_pods"),
        pod.any().alias("pods"),
    )
    blind = (
        pl.when(pl.col("snapshot") & pl.col("cluster").is_in(named))
        .then(pl.lit(SNAPSHOT_ONLY))
        .when(~pl.col("pods") | ~(pl.col("snapshot") | pl.col("sampled_pods")))
        .then(pl.lit(NO_PODS))
    )
    return kinds.select("cluster", "snapshot", blind.alias("blind")).sort("cluster")


def seen_spans(up: pl.DataFrame, sampled_pods: pl.DataFrame) -> pl.DataFrame:
    """When each cluster was seen: where samples of its nodes are, else of its pods, else the API.

    Args:
        up: ``lives.node_spans``.
        sampled_pods: ``lives.sampled_pod_spans``.

    Returns:
        ``cluster, start, end``.
    """
    nodes = up.filter("sampled").select("cluster", "start", "end")
    pods = sampled_pods.join(nodes, on="cluster", how="anti")
    samples = pl.concat([nodes, pods])
    told = up.select("cluster", "start", "end").join(samples, on="cluster", how="anti")
    return union(pl.concat([samples, told]), ["cluster"])
