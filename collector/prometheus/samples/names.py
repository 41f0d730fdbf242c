"""Which pod a series without a uid speaks of."""

from __future__ import annotations

import polars as pl


def with_uid(frame: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Fill a missing ``uid`` by name where the name belongs to one pod; other rows are left out.

    What also stands there with a uid wins: a second exporter without uids is a copy that says less.

    Args:
        frame: ``namespace``, ``pod``, perhaps null ``uid``, and more.
        names: ``uid``, ``namespace``, ``pod``.
    """
    if not frame["uid"].null_count():
        return frame
    said = frame.select(only="uid").unique()
    alone = names.filter(pl.len().over("namespace", "pod") == 1).rename({"uid": "only"})
    spoken = alone.join(said, on="only", how="anti")
    filled = frame.join(spoken, on=["namespace", "pod"], how="left", maintain_order="left")
    return (
        filled.with_columns(uid=pl.coalesce("uid", "only"))
        .drop("only")
        .filter(pl.col("uid").is_not_null())
    )
