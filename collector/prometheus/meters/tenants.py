"""Which pod a sample belongs to, where its labels name a pod but no uid."""

from __future__ import annotations

from datetime import timedelta

import polars as pl

from collector.prometheus.meters.slots import SLOT, expected


def numbered(lives: pl.DataFrame) -> pl.DataFrame:
    """Lives with the number ``life`` of their pod, which stands for the uid in samples."""
    first = pl.col("row").min().over("uid")
    return lives.with_row_index("row").with_columns(life=first).drop("row")


def uids(lives: pl.DataFrame) -> pl.DataFrame:
    """``life`` and the ``uid`` that it stands for."""
    return lives.select("life", "uid").unique()


def with_life(
    samples: pl.DataFrame, tenants: pl.DataFrame, lives: pl.DataFrame, slack: timedelta
) -> pl.DataFrame:
    """Add ``life``: the pod of that name that lived at the time; null = none.

    Args:
        samples: ``ident``, ``time`` and more, sorted by ident and time.
        tenants: ``ident``, ``namespace``, ``pod``.
        lives: Of ``numbered``.
        slack: How far outside its life a pod may be seen.

    Returns:
        The samples with ``life``, in the same order.
    """
    spans = (
        lives.join(tenants, on=["namespace", "pod"])
        .select("ident", "life", begin="start", until="end")
        .sort("begin", "ident", "life")
    )
    back = samples.sort("time", "ident").join_asof(
        spans, left_on="time", right_on="begin", by="ident", check_sortedness=False
    )
    alive = (pl.col("time") <= pl.col("until") + slack).fill_null(value=False)
    early = back.filter(~alive).drop("life", "begin", "until")
    early = early.join_asof(
        spans.drop("until"),
        left_on="time",
        right_on="begin",
        by="ident",
        strategy="forward",
        tolerance=slack,
        check_sortedness=False,
    )
    return pl.concat(
        [back.filter(alive).drop("begin", "until"), early.drop("begin", strict=False)],
    ).sort("ident", "time")


def expected_in_life(rows: pl.DataFrame, lives: pl.DataFrame, interval: timedelta) -> pl.DataFrame:
    """Add ``expected``: the samples of a slot, in which the pod may have lived only for a part."""
    slots = rows.select("uid", "slot").unique().drop_nulls()
    overlap = (
        slots.join(lives.select("uid", "start", "end"), on="uid")
        .with_columns(
            low=pl.max_horizontal("slot", "start"),
            high=pl.min_horizontal(pl.col("slot") + SLOT, "end"),
        )
        .filter(pl.col("low") < pl.col("high"))
        .group_by("uid", "slot")
        .agg(lived=(pl.col("high") - pl.col("low")).dt.total_microseconds().sum() / 1e6)
    )
    unknown = pl.when(pl.col("uid").is_null()).then(SLOT.total_seconds()).otherwise(0.0)
    lived = pl.coalesce("lived", unknown)
    return (
        rows.join(overlap, on=["uid", "slot"], how="left", maintain_order="left")
        .with_columns(expected=expected(lived, interval))
        .drop("lived")
    )
