"""What gaps of many nodes say of them: how many, one by name, and for how long."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from attribution.ratio import HOUR


def sum_nodes(rows: pl.DataFrame, by: Sequence[str], ms: pl.Expr, *more: pl.Expr) -> pl.DataFrame:
    """Count the nodes of each key, and add up their time.

    Args:
        rows: With ``by``, ``node`` and ``gpus`` (cards of the node; unknown counts as none).
        by: The key.
        ms: Time of each row in milliseconds.
        more: Further sums.

    Returns:
        ``by, nodes, first`` (the first of them by name), ``node_hours, gpu_hours`` and ``more``,
        sorted by key.
    """
    cards = ms * pl.col("gpus").fill_null(0)
    return (
        rows.group_by(by)
        .agg(
            pl.col("node").n_unique().alias("nodes"),
            pl.col("node").min().alias("first"),
            (ms.sum() / HOUR).alias("node_hours"),
            (cards.sum() / HOUR).alias("gpu_hours"),
            *more,
        )
        .sort(by, nulls_last=True)
    )
