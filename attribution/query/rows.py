"""Reading the rows of a question, summed over what it does not look at."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from attribution import efficiency
from attribution.query.keys import opened_value
from attribution.query.question import COST_OF, Query
from attribution.query.reserved import QUOTA, with_reservations
from ledger.money import to_units
from ledger.schema import COSTS, COSTS_DAILY, IDLE
from ledger.store import Ledger

ALWAYS = frozenset({"target", "x_Basis", "BillingCurrency", "confidence"})
MONEY = ("cost", "effective", "active", "billed", "size", "effective_size", "dark_size", "card")
"""Amounts in units of 1e-12 (``card``: card-seconds): the cost that was asked for, three others,
absolute cost as asked and effective (what a part of a row weighs, credits too), and the absolute
effective cost of shares without a known activity."""

COUNTS = ("known", "unknown", "billed_known", "dark", "dark_unknown")
"""Shares: by whether their cost is known, of the invoice, without a known activity, and of those
without a known effective cost either."""

FIGURES = (*MONEY, *COUNTS, *efficiency.PARTS)
"""All that adds up."""


@dataclass(frozen=True)
class Books:
    """Rows of the window, summed over what the question does not look at.

    Args:
        rows: The columns of the keys that are looked at (``label:KEY`` and its like by their name),
            those of ``ALWAYS``, and ``FIGURES``; without idle where the question looks at pools.
        idle: The same of idle, by its pools; None where the question does not look at them.
        request: The question.
        source: What both are sums of.
    """

    rows: pl.DataFrame
    idle: pl.DataFrame | None
    request: Query
    source: pl.LazyFrame

    def currencies(self) -> list[str]:
        """What money the rows are in, sorted."""
        frames = [self.rows, *([] if self.idle is None else [self.idle])]
        return sorted({code for frame in frames for code in frame["BillingCurrency"].unique()})

    def of(self, currency: str | None) -> Books:
        """The rows in one currency."""
        own = pl.col("BillingCurrency") == pl.lit(currency, pl.String)
        idle = None if self.idle is None else self.idle.filter(own)
        return replace(self, rows=self.rows.filter(own), idle=idle)

    def held(self, pools: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
        """What workloads hold of pools of idle. This reads every row: there may be millions.

        Args:
            pools: ``pool`` and the columns that tell pools apart.
            groups: The values of ``keys`` of workloads, and ``gid, shown, policy``.

        Returns:
            ``pool, gid, shown, policy`` and ``effective``, in units.
        """
        names = group_columns(self.request)
        on = self.request.pool
        rows = self.source.filter(pl.col("target") == "workload").select(
            *dict.fromkeys((*on, *names)), pl.col("EffectiveCost").alias("effective")
        )
        return (
            rows.join(pools.lazy(), on=on, nulls_equal=True)
            .join(groups.lazy(), on=names, nulls_equal=True)
            .group_by("pool", "gid", "shown", "policy")
            .agg(pl.col("effective").sum())
            .collect()
            .with_columns(to_units(pl.col("effective")))
        )


def group_columns(request: Query) -> list[str]:
    """The columns that decide about the group of a row, and whether it is shown."""
    place = {"cluster", "node"} & set(request.pool) if request.idle_rows == "pool" else set()
    return [*sorted(request.columns | place | {"BillingCurrency"}), *request.opened]


def read_rows(ledger: Ledger, request: Query) -> Books:
    """Read what a question asks for."""
    keys = [*dict.fromkeys((*group_columns(request), *sorted(ALWAYS)))]
    source = _source(ledger, request)
    if not request.looks_at_pools:
        return Books(_summed(source, keys, request), None, request, source)
    idle = pl.col("target") == IDLE
    pooled = [*dict.fromkeys((*keys, *request.pool))]
    return Books(
        _summed(source.filter(~idle), keys, request),
        _summed(source.filter(idle), pooled, request),
        request,
        source,
    )


def _summed(rows: pl.LazyFrame, keys: list[str], request: Query) -> pl.DataFrame:
    sums = rows.group_by(keys).agg(*_sums(request), *efficiency.parts()).collect()
    return sums.with_columns(to_units(pl.col(name)) for name in MONEY)


def _sums(request: Query) -> list[pl.Expr]:
    cost = COST_OF[request.cost]
    counted = not request.fine and cost != "ActiveCost"
    own = pl.col("target") != QUOTA  # a part of an idle row, which is counted already
    unknown = pl.col(f"{cost}_unknown").sum() if counted else (pl.col(cost).is_null() & own).sum()
    effective, dark = pl.col("EffectiveCost"), pl.col("ActiveCost").is_null()
    figures = {
        "cost": pl.col(cost).sum(),
        "effective": effective.sum(),
        "active": pl.col("ActiveCost").sum(),
        "billed": pl.col("BilledCost").sum(),
        "size": pl.col(cost).abs().sum(),
        "effective_size": effective.abs().sum(),
        "dark_size": effective.filter(dark).abs().sum(),
        "card": pl.col("gpu_seconds").sum(),
        "known": pl.col(cost).count().cast(pl.Int64),
        "unknown": unknown.cast(pl.Int64),
        "billed_known": pl.col("BilledCost").count().cast(pl.Int64),
        "dark": dark.sum().cast(pl.Int64),
        "dark_unknown": effective.filter(dark).null_count().cast(pl.Int64),
    }
    return [figure.alias(name) for name, figure in figures.items()]


def _source(ledger: Ledger, request: Query) -> pl.LazyFrame:
    """The rows of the window with a column for each opened key."""
    if request.fine:
        inside = pl.col("ChargePeriodStart").is_between(
            request.window.start, request.window.end, closed="left"
        )
        hour = pl.col("ChargePeriodStart").dt.truncate("1h")
        rows = ledger.scan(COSTS, request.window).filter(inside).with_columns(hour)
    else:
        rows = ledger.scan(COSTS_DAILY, request.window)
    if request.quota:
        rows = with_reservations(rows, ledger, request.window)
    for column in ("tags", "annotations"):
        opened = [key for key in request.opened if _json_column(key) == column]
        if opened:
            rows = _opened(rows, column, opened)
    return rows


def _json_column(key: str) -> str:
    return "annotations" if key.startswith("annotation:") else "tags"


def _opened(rows: pl.LazyFrame, column: str, keys: list[str]) -> pl.LazyFrame:
    """Add what keys read of a JSON column. Many rows share their text: each is read once."""
    distinct = rows.select(column).unique().collect(engine="streaming")
    values = distinct.select(column, *(opened_value(key).alias(key) for key in keys))
    return rows.join(values.lazy(), on=column, how="left", nulls_equal=True)
