"""Whose samples a slot holds, where they lie between two times and no sample is at hand.

``tenants.with_life`` decides sample by sample; here a pod is proven only where that would say the
same of every sample that may be there.
"""

from __future__ import annotations

from datetime import timedelta

import polars as pl

_NAME = ["namespace", "pod"]


def reaches(lives: pl.DataFrame, slack: timedelta) -> pl.DataFrame:
    """When samples of a name are those of a pod.

    Args:
        lives: Of ``tenants.numbered``.
        slack: How far outside its life a pod may be seen.

    Returns:
        ``namespace``, ``pod``, ``life``, ``since``, ``until``; and ``tangled``: whether pods of
        that name lived at the same time, so that nothing is proven.
    """
    key = [*_NAME, "life"]
    ordered = (
        lives.select(*key, "start", "end", since=pl.col("start") - slack)
        .with_columns(until=pl.col("end") + slack)
        .sort(*key, "start")
    )
    apart = pl.col("since") > pl.col("until").cum_max().shift().over(key)
    pieces = (
        ordered.with_columns(piece=apart.fill_null(value=True).cum_sum())
        .group_by(*key, "piece", maintain_order=True)
        .agg(pl.col("start", "since").min(), pl.col("end", "until").max())
        .sort(*_NAME, "start")
    )
    both = pl.col("start") < pl.col("end").cum_max().shift().over(_NAME)
    return pieces.with_columns(tangled=both.fill_null(value=False).any().over(_NAME)).select(
        *key, "since", "until", "tangled"
    )


def held(spans: pl.DataFrame, reach: pl.DataFrame) -> pl.DataFrame:
    """Add ``life``, null for none, and ``held``: whether that is proven.

    Args:
        spans: ``namespace``, ``pod``, ``low``, ``high``: samples lie in (low, high]; and more.
        reach: Of ``reaches``.
    """
    rows = spans.with_row_index("row")
    touching = (pl.col("since") <= pl.col("high")) & (pl.col("until") >= pl.col("low"))
    within = (pl.col("since") <= pl.col("low")) & (pl.col("until") >= pl.col("high"))
    met = (
        rows.select("row", *_NAME, "low", "high")
        .join(reach, on=_NAME)
        .filter(touching)
        .group_by("row")
        .agg(
            pl.col("life").first(),
            alone=(pl.len() == 1) & within.all() & ~pl.col("tangled").any(),
        )
    )
    return (
        rows.join(met, on="row", how="left", maintain_order="left")
        .with_columns(held=pl.col("alone").fill_null(value=True))
        .drop("row", "alone")
    )
