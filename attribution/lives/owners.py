"""Owners of a pod by two sources: the API as of when it was asked, samples all day long.

A job that finished may be gone from the API when a pod of it is still there: the chain of owners
then ends early, though samples saw the whole of it.
"""

from __future__ import annotations

import polars as pl

POD = ("cluster", "uid")
_OF_SAMPLES = ("owners", "root_kind", "root_name", "role", "owner_labels")


def with_sampled_owners(told: pl.DataFrame, sampled: pl.DataFrame) -> pl.DataFrame:
    """What the API tells, and where samples know more of owners and role, that.

    Where the two chains differ in what both tell, the API's stands as it is.

    Args:
        told: Rows of the API: ``cluster, uid, owners, root_kind, root_name, role, owner_labels``
            and more.
        sampled: The same of samples, with ``start``.

    Returns:
        ``told`` in its order and columns.
    """
    seen = (
        sampled.sort("start")
        .group_by(POD)
        .agg(pl.col(name).drop_nulls().last().alias(f"{name}_seen") for name in _OF_SAMPLES)
    )
    rows = told.join(seen, on=list(POD), how="left", maintain_order="left")
    start = pl.col("owners").str.strip_suffix("]")
    start = pl.when(start == "[").then(start).otherwise(start + ",")
    longer = pl.col("owners_seen").str.starts_with(start) & (pl.col("owners_seen") != "[]")
    labels = pl.when(pl.col("owner_labels") != "{}").then("owner_labels")
    return rows.with_columns(
        *(
            pl.when(longer.fill_null(value=False)).then(f"{name}_seen").otherwise(name).alias(name)
            for name in ("owners", "root_kind", "root_name")
        ),
        role=pl.coalesce("role", "role_seen"),
        owner_labels=pl.coalesce(labels, "owner_labels_seen", "owner_labels"),
    ).select(told.columns)
