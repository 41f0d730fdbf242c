"""Reading the rows of a question, summed over what it does not look at."""

from __future__ import annotations

import polars as pl

from attribution import efficiency
from attribution.query_keys import opened_value
from attribution.question import COST_OF, Query
from ledger.money import to_units
from ledger.schema import COSTS, COSTS_DAILY
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


def read_rows(ledger: Ledger, request: Query) -> pl.DataFrame:
    """Rows of the window, summed over what the question does not look at.

    Returns:
        The columns of the keys that are looked at (``label:KEY`` and its like by their name), those
        of ``ALWAYS`` and of pools where they are needed, and ``FIGURES``.
    """
    keys = sorted(_read(request) | ALWAYS) + request.opened
    rows = _source(ledger, request)
    sums = rows.group_by(keys).agg(*_sums(request), *efficiency.parts()).collect()
    # Any fixed order will do; the rows may be millions, and hashes are compared fastest.
    return sums.with_columns(to_units(pl.col(name)) for name in MONEY)


def _sums(request: Query) -> list[pl.Expr]:
    cost = COST_OF[request.cost]
    counted = not request.fine and cost != "ActiveCost"
    unknown = pl.col(f"{cost}_unknown").sum() if counted else pl.col(cost).null_count()
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


def _read(request: Query) -> set[str]:
    """The columns that tell rows apart."""
    place = {"cluster", "node"} & set(request.pool) if request.idle_rows == "pool" else set()
    return request.columns | place | set(request.pool if request.looks_at_pools else ())


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
