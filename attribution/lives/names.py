"""Pods that samples know by name alone, met with the same pods as the API tells them.

Series of old exporters bear no uid; ``NAMESPACE/POD`` stands there. Without this such a pod would
hold its cards twice, once by each source.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from attribution.facts import DayFacts

_NAME = ("cluster", "namespace", "pod")


def meet_by_name(facts: DayFacts) -> DayFacts:
    """The facts with the API's uid on what samples say of a name.

    Where the API knows several pods of that name, it alone tells them.
    """
    sampled = (pl.col("interval_seconds") > 0).fill_null(value=False)  # 0: the API, watched
    bare = sampled & (pl.col("uid") == pl.concat_str("namespace", "pod", separator="/"))
    nameless = facts.workloads.filter(bare).select(*_NAME, bare="uid").unique()
    if nameless.is_empty():
        return facts
    known = facts.workloads.filter(~sampled).group_by(_NAME).agg(told=pl.col("uid").unique().sort())
    met = nameless.join(known, on=list(_NAME)).select("cluster", "bare", "told")
    one = met.filter(pl.col("told").list.len() == 1).with_columns(pl.col("told").list.first())
    several = met.filter(pl.col("told").list.len() > 1).select("cluster", uid="bare")
    keys = ["cluster", "uid"]

    def named(rows: pl.LazyFrame) -> pl.LazyFrame:
        found = rows.join(one.lazy(), left_on=keys, right_on=["cluster", "bare"], how="left")
        return (
            found.with_columns(pl.coalesce("told", "uid").alias("uid"))
            .drop("told")
            .join(several.lazy(), on=keys, how="anti")
        )

    usage = facts.usage
    return replace(
        facts,
        workloads=named(facts.workloads.lazy()).collect(),
        mounts=named(facts.mounts.lazy()).collect(),
        usage=named(usage) if isinstance(usage, pl.LazyFrame) else named(usage.lazy()).collect(),
    )
