"""Asking the books: costs of a window by keys, with filters that hide rows and never change one."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import polars as pl

from attribution.query_filter import key_value, shown
from attribution.query_idle import share_idle
from attribution.query_rows import read_rows, whole_key
from attribution.question import COST_OF, KEYS, Cost, Query
from ledger.money import from_units
from ledger.store import Ledger

__all__ = ["COST_OF", "KEYS", "Cost", "Query", "QueryResult", "query"]

_NOTHING = Decimal("0.000000000000")


@dataclass(frozen=True)
class QueryResult:
    """An answer in one currency.

    Args:
        query: The question.
        currency: ISO 4217; None if the window holds nothing and no currency was asked for.
        rows: In order of cost, largest first: the keys, ``cost`` (None if no share of it is
            known), ``active_cost`` (of the shares whose activity is known; None if these are less
            than 99 % of the row's effective cost), ``active_cost_known_share`` (that part exactly),
            ``gpu_hours``, ``basis`` (billed, estimated, declared or mixed), ``unknown`` (shares
            whose cost is unknown), ``confidence`` (low if at least 1 % of the row's cost is: seen
            by one source, or a life shorter than the distance of two samples). Parts weigh by
            absolute cost, so that credits do not cancel.
        total: Sum of what is known of the rows shown; None if nothing of them is known.
        window_total: The same of all rows of the window.
        billed: Sum of the invoice lines of the window; None if there is none.
        unknown: Shares of the rows shown whose cost is not known.
    """

    query: Query
    currency: str | None
    rows: list[dict[str, Any]]
    total: Decimal | None
    window_total: Decimal | None
    billed: Decimal | None
    unknown: int = 0

    @property
    def hidden(self) -> Decimal | None:
        """What the filters hide; None if nothing of the window is known."""
        return None if self.window_total is None else self.window_total - (self.total or 0)


def query(ledger: Ledger, request: Query) -> list[QueryResult]:
    """Answer a question, with one result per currency (sorted); an empty window gives one.

    Raises:
        UsageError: A key is empty or unknown.
    """
    request.check()
    rows = read_rows(ledger, request)
    # A currency beside others that are there costs nothing; of an empty window nothing is known.
    none = None if rows.is_empty() else _NOTHING
    if request.currency:
        rows = rows.filter(pl.col("BillingCurrency") == request.currency)
    if request.idle == "share":
        rows = share_idle(rows, whole_key(fine=request.fine))
    currencies = rows["BillingCurrency"].unique().sort().to_list() or [request.currency]
    return [
        _result(
            request,
            currency,
            rows.filter(pl.col("BillingCurrency") == pl.lit(currency, pl.String)),
            none,
        )
        for currency in currencies
    ]


def _result(
    request: Query, currency: str | None, rows: pl.DataFrame, none: Decimal | None
) -> QueryResult:
    cost = COST_OF[request.cost]
    visible = rows.filter(shown(request))
    whole = _sum(rows, cost, none=none)
    return QueryResult(
        query=request,
        currency=currency,
        rows=_grouped(request, visible),
        total=_sum(visible, cost, none=None if whole is None else _NOTHING),
        window_total=whole,
        billed=_sum(rows, "BilledCost", "billed", none=none),
        unknown=int(visible["unknown"].sum()),
    )


def _sum(
    rows: pl.DataFrame, name: str, known: str = "known", *, none: Decimal | None
) -> Decimal | None:
    """The sum of a cost; None if ``known``, its number of known shares, is 0 in every row.

    Args:
        rows: ``read_rows``.
        name: The cost.
        known: The column that counts its known shares.
        none: The sum of no rows at all.
    """
    if rows.is_empty():
        return none
    if not rows[known].sum():
        return None
    total = rows.select(from_units(pl.col(name).sum().cast(pl.Int128))).item()
    return Decimal(total).quantize(_NOTHING)


def _little(part: pl.Expr, whole: str, *, below: bool = False) -> pl.Expr:
    """Whether a part is at most (``below``: less than) 1 % of a whole that is not 0; exact."""
    parts, every = part.sum() * 100, pl.col(whole).sum()
    return (every > 0) & (parts < every if below else parts <= every)


def _grouped(request: Query, rows: pl.DataFrame) -> list[dict[str, Any]]:
    cost, by = COST_OF[request.cost], list(request.by)
    if not by:
        return []
    bright = (pl.col("dark").sum() == 0) | _little(pl.col("dark_size"), "effective_size") & (
        pl.col("dark_unknown").sum() == 0
    )
    effective, dark = (
        pl.col(name).sum().cast(pl.Float64) for name in ("effective_size", "dark_size")
    )
    low = pl.col("confidence") == "low"
    sure = ~low.any() | _little(pl.col("size").filter(low), "size", below=True)
    single = pl.when(pl.col("x_Basis").n_unique() == 1).then(pl.col("x_Basis").first())
    figures = {
        "cost": from_units(pl.when(pl.col("known").sum() > 0).then(pl.col(cost).sum())),
        "active_cost": from_units(pl.when(bright).then(pl.col("ActiveCost").sum())),
        "active_cost_known_share": pl.when(effective != 0).then(1 - dark / effective),
        "gpu_hours": pl.col("gpu_seconds").sum().cast(pl.Float64) / 3600,
        "basis": single.otherwise(pl.lit("mixed")),
        "unknown": pl.col("unknown").sum(),
        "confidence": pl.when(sure).then(pl.lit("high")).otherwise(pl.lit("low")),
    }
    wanted = [figure.alias(name) for name, figure in figures.items() if name not in by]
    keyed = rows.with_columns(key_value(key) for key in by)
    groups = keyed.group_by(by).agg(wanted)
    ordered = groups.sort("cost", *by, descending=[True, *(False for _ in by)], nulls_last=True)
    return ordered.select(*by, *(name for name in figures if name not in by)).to_dicts()
