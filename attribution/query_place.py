"""Rows of a question with what decides where they are shown and where they go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from attribution.identity import SPECIAL
from attribution.query_filter import policy_of, visibility
from attribution.query_keys import group_values
from attribution.query_rows import FIGURES
from attribution.question import CLOCK, PERIODS, Query
from ledger.schema import IDLE

KINDS = ("idle", "holds", "receives")
STATE = ("gid", "shown", "deferred", "policy", *KINDS, "x_Basis", "trust")
"""``gid``: number of the group; ``shown``, ``deferred``, ``policy``: see ``query_filter``;
``idle``; ``holds``: a workload; ``receives``: a part of what is shared; its evidence and trust."""


@dataclass(frozen=True)
class Placed:
    """Rows by number of their group.

    Args:
        rows: ``STATE`` and ``FIGURES``, and ``pool`` (number of its pool of idle; null if it has
            none) where the question looks at pools.
        keys: ``gid`` and the grouping keys, in the order of their values: whatever is filtered,
            equal remainders go by the same order. ``part`` numbers the periods that nothing shared
            may leave, ``clock`` those of overhead.
    """

    rows: pl.DataFrame
    keys: pl.DataFrame


def place(rows: pl.DataFrame, request: Query) -> Placed:
    """Number the groups of rows of one currency and find out what happens to each row."""
    by = list(request.by)
    target = pl.col("target")
    state = rows.with_columns(
        *visibility(request),
        policy_of(request.sharing.policies),
        pl.col("confidence").alias("trust"),
        (target == IDLE).alias("idle"),
        (target == "workload").alias("holds"),
        (~target.is_in(SPECIAL)).alias("receives"),
        _pools(rows, request).alias("pool"),
        *(value.alias(f"by {key}") for key, value in zip(by, group_values(request), strict=True)),
    ).with_columns(pl.col("receives") & pl.col("policy").is_null())
    named = [f"by {key}" for key in by]
    if not by:
        keys = pl.DataFrame({"gid": [0]}, schema={"gid": pl.UInt32})
        state = state.with_columns(pl.lit(0, dtype=pl.UInt32).alias("gid"))
    else:
        keys = state.select(named).unique().sort(named).with_row_index("gid")
        state = state.join(keys, on=named, how="left")
        keys = keys.rename(dict(zip(named, by, strict=True)))
    pool = ["pool"] if request.looks_at_pools else []
    slim = state.select(*STATE, *pool, *FIGURES)
    if not pool:
        slim = slim.group_by(STATE).agg(pl.col(FIGURES).sum())
    return Placed(slim, number_periods(keys))


def number_periods(keys: pl.DataFrame) -> pl.DataFrame:
    """Add ``part`` and ``clock``."""
    return keys.with_columns(
        _number(keys, PERIODS).alias("part"), _number(keys, CLOCK).alias("clock")
    )


def _number(keys: pl.DataFrame, periods: Sequence[str]) -> pl.Expr:
    names = [name for name in periods if name in keys.columns]
    if not names:
        return pl.lit(0, dtype=pl.UInt32)
    return pl.struct(names).rank("dense").cast(pl.UInt32)


def _pools(rows: pl.DataFrame, request: Query) -> pl.Series:
    """Number of the pool of each row; null where nothing of it is idle."""
    if not request.looks_at_pools:
        return pl.Series("pool", [None] * rows.height, dtype=pl.UInt32)
    on = request.pool
    idle = rows.filter(pl.col("target") == IDLE).select(on).unique(maintain_order=True)
    return rows.join(
        idle.with_row_index("pool"), on=on, how="left", nulls_equal=True, maintain_order="left"
    )["pool"]
