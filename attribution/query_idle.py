"""Sharing what was idle among those who held the rest of it."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from attribution.question import COST_OF
from ledger.money import split
from ledger.schema import IDLE

_POOL = ("BillingCurrency", "day", "cluster", "node", "resource")


def share_idle(rows: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Give the idle of each node, day and resource to its holders by effective cost.

    A pool that nobody holds keeps its idle. Its total and every other pool stay as they are. Costs
    weigh in steps of 1e-9, which leaves room for a day of a node in any currency.

    Args:
        rows: ``query_rows.read_rows`` of a question that shares idle.
        key: Columns that tell the rows apart, the same for every question: equal remainders go by
            their order.
    """
    money = [name for name in rows.columns if name in COST_OF.values()]
    free = rows.filter(pl.col("target") == IDLE).group_by(_POOL).agg(pl.col(money).sum())
    free = free.with_row_index("pool")
    rows = rows.with_row_index("row").join(
        free.select("pool", *_POOL),
        on=list(_POOL),
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    holds = (pl.col("target") == "workload") & (pl.col("EffectiveCost") > 0)
    holders = rows.filter(holds & pl.col("pool").is_not_null()).sort(key, nulls_last=True)
    given = split(
        holders.with_row_index("rank")
        .select("row", "rank", "pool", (pl.col("EffectiveCost") // 1000).alias("weight"))
        .join(free.select("pool", *money), on="pool")
        .lazy(),
        group=["pool"],
        amounts=money,
        weight="weight",
        order=["rank"],
    ).collect()
    spread = pl.col("pool").is_in(given["pool"].unique().implode()).fill_null(value=False)
    kept = rows.filter(~(spread & (pl.col("target") == IDLE)))
    more = given.select("row", *(pl.col(name).alias(f"more_{name}") for name in money))
    # What is given was idle: its activity is known.
    known = pl.col("effective_size") + pl.col("more_EffectiveCost").fill_null(0).abs()
    return kept.join(more, on="row", how="left", maintain_order="left").with_columns(
        *(pl.col(name) + pl.col(f"more_{name}").fill_null(0) for name in money),
        known.alias("effective_size"),
    )
