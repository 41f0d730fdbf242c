"""Rows of a question with what decides where they are shown and where they go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from attribution.identity import SPECIAL
from attribution.query.filter import policy_of, visibility
from attribution.query.keys import group_values
from attribution.query.question import CLOCK, PERIODS, Query
from attribution.query.rows import FIGURES, Books, group_columns

STATE = ("gid", "shown", "deferred", "policy", "receives", "x_Basis", "trust")
"""``gid``: number of the group; ``shown``, ``deferred``, ``policy``: see ``query_filter``;
``receives``: takes part in what is shared; evidence and trust of the row."""


@dataclass(frozen=True)
class Placed:
    """Rows by number of their group.

    Args:
        rows: ``STATE`` and ``FIGURES``.
        keys: ``gid`` and the grouping keys, in the order of their values: whatever is filtered,
            equal remainders go by the same order. ``part`` numbers the periods that nothing shared
            may leave, ``clock`` those of overhead.
        idle: Idle by pool: ``pool`` (a number) and as ``rows``; None where it is among the rows.
        books: What was read.
        groups, pools: See ``Books.held``.
    """

    rows: pl.DataFrame
    keys: pl.DataFrame
    idle: pl.DataFrame | None
    books: Books
    groups: pl.DataFrame
    pools: pl.DataFrame | None

    def held(self) -> pl.DataFrame:
        """What workloads hold of the pools: ``pool, gid, shown, policy, effective``."""
        if self.pools is None:
            raise ValueError("the question does not look at pools")
        return self.books.held(self.pools, self.groups)


def place(books: Books, request: Query) -> Placed:
    """Number the groups of rows of one currency and find out what happens to each row."""
    pools = None
    states = [_state(books.rows, request)]
    if books.idle is not None:
        on = request.pool
        pools = books.idle.select(on).unique().sort(on).with_row_index("pool")
        idle = books.idle.join(pools, on=on, how="left", nulls_equal=True)
        states.append(_state(idle, request))
    keys = _keys(states, request)
    rows, *pooled = (_numbered(state, keys, request) for state in states)
    groups = rows.filter(pl.col("target") == "workload").select(
        *group_columns(request), "gid", "shown", "policy"
    )
    return Placed(
        rows.group_by(STATE).agg(pl.col(FIGURES).sum()),
        number_periods(keys),
        pooled[0].select("pool", *STATE, *FIGURES) if pooled else None,
        books,
        groups.unique(),
        pools,
    )


def number_periods(keys: pl.DataFrame) -> pl.DataFrame:
    """Add ``part`` and ``clock``."""
    return keys.with_columns(
        _number(keys, PERIODS).alias("part"), _number(keys, CLOCK).alias("clock")
    )


def _state(rows: pl.DataFrame, request: Query) -> pl.DataFrame:
    values = zip(request.by, group_values(request), strict=True)
    return rows.with_columns(
        *visibility(request),
        policy_of(request.sharing.policies),
        pl.col("confidence").alias("trust"),
        (~pl.col("target").is_in(SPECIAL)).alias("receives"),
        *(value.alias(f"by {key}") for key, value in values),
    ).with_columns(pl.col("receives") & pl.col("policy").is_null())


def _keys(states: Sequence[pl.DataFrame], request: Query) -> pl.DataFrame:
    named = {f"by {key}": key for key in request.by}
    if not named:
        return pl.DataFrame({"gid": [0]}, schema={"gid": pl.UInt32})
    found = pl.concat([state.select(list(named)) for state in states]).unique().sort(list(named))
    return found.with_row_index("gid").rename(named)


def _numbered(state: pl.DataFrame, keys: pl.DataFrame, request: Query) -> pl.DataFrame:
    if not request.by:
        return state.with_columns(pl.lit(0, dtype=pl.UInt32).alias("gid"))
    named = {key: f"by {key}" for key in request.by}
    return state.join(keys.rename(named), on=list(named.values()), how="left")


def _number(keys: pl.DataFrame, periods: Sequence[str]) -> pl.Expr:
    names = [name for name in periods if name in keys.columns]
    if not names:
        return pl.lit(0, dtype=pl.UInt32)
    return pl.struct(names).rank("dense").cast(pl.UInt32)
