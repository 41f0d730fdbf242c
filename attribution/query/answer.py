"""Asking the books: costs of a window by keys, with filters that hide rows and never change one.

In this order (``docs/allocation.md``, Sharing): idle per pool, weights of what is shared, filters,
idle to its holders, shared cost and overhead to the other keys. Each moves money between rows, to
the last digit, and none changes the total.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import polars as pl

from attribution.identity import SPECIAL
from attribution.query import share as query_share
from attribution.query.figures import grouped
from attribution.query.idle import keep_idle_apart, share_idle
from attribution.query.place import Placed, place
from attribution.query.question import COST_OF, KEYS, Cost, Match, Query, Share, Sharing, matches
from attribution.query.rows import Books, read_rows
from attribution.query.split import together
from ledger.errors import UsageError
from ledger.money import from_units
from ledger.store import Ledger

__all__ = [
    "COST_OF",
    "KEYS",
    "Cost",
    "Match",
    "Query",
    "QueryResult",
    "Share",
    "Shared",
    "Sharing",
    "matches",
    "query",
]

OTHER = "other"
_NOTHING = Decimal("0.000000000000")


@dataclass(frozen=True)
class Shared:
    """What a policy has moved: its cost (None if it found nothing), and over how many keys."""

    policy: Share
    amount: Decimal | None
    keys: int


@dataclass(frozen=True)
class QueryResult:
    """An answer in one currency.

    Args:
        query: The question.
        currency: ISO 4217; None if the window holds nothing and no currency was asked for.
        rows: In order of cost, largest first: the keys, ``cost`` (None if no share of it is
            known), ``active_cost`` (of the shares whose activity is known; None if these are less
            than 99 % of the row's effective cost), ``active_cost_known_share`` (that part exactly),
            ``gpu_hours`` (what the row itself held), ``efficiency`` (of what it asked for),
            ``basis`` (billed, estimated, declared or mixed), ``unknown`` (shares whose cost is
            unknown), ``confidence`` (low if at least 1 % of the row's cost is: seen by one source,
            or a life shorter than the distance of two samples). Parts weigh by absolute cost, so
            that credits do not cancel.
        total: Sum of what is known of the rows shown; None if nothing of them is known.
        window_total: The same of all rows of the window, overhead included.
        billed: Sum of the invoice lines of the window; None if there is none.
        unknown: Shares of the rows shown whose cost is not known.
        shared: What each policy has moved.
        overhead: What was added to the window.
        folded: How many keys stand in the row ``other``.
    """

    query: Query
    currency: str | None
    rows: list[dict[str, Any]]
    total: Decimal | None
    window_total: Decimal | None
    billed: Decimal | None
    unknown: int = 0
    shared: tuple[Shared, ...] = ()
    overhead: Decimal = _NOTHING
    folded: int = 0

    @property
    def hidden(self) -> Decimal | None:
        """What the filters hide; None if nothing of the window is known."""
        return None if self.window_total is None else self.window_total - (self.total or 0)


@dataclass(frozen=True)
class Answer:
    """An answer before its rows are grouped.

    Args:
        result: Everything but the rows.
        shown: The rows that are shown, by the grouping keys.
    """

    result: QueryResult
    shown: pl.DataFrame

    def finished(self, rows: pl.DataFrame, folded: int = 0) -> QueryResult:
        """The answer with its rows."""
        return replace(self.result, rows=rows.to_dicts(), folded=folded)


def query(ledger: Ledger, request: Query) -> list[QueryResult]:
    """Answer a question, with one result per currency (sorted); an empty window gives one.

    Raises:
        UsageError: A key is empty or unknown, or an overhead has several currencies to choose from.
    """
    found = []
    for answer in answers(ledger, request):
        by = request.by
        rows, folded = fold(answer.shown, grouped(answer.shown, by), request) if by else (None, 0)
        found.append(answer.finished(pl.DataFrame() if rows is None else rows, folded))
    return found


def answers(ledger: Ledger, request: Query) -> list[Answer]:
    """``query`` before rows are grouped and folded."""
    request.check()
    books = read_rows(ledger, request)
    # A currency beside others that are there costs nothing; of an empty window nothing is known.
    none = _NOTHING if books.currencies() else None
    currencies: list[str | None] = [*books.currencies()] or [None]
    if request.currency:
        currencies = [request.currency]
    if request.sharing.overhead and len(currencies) > 1:
        raise UsageError(
            "an overhead is in one currency, and the window holds several",
            f"name one: --currency {currencies[0]}",
        )
    return [_answer(request, currency, books.of(currency), none) for currency in currencies]


def _answer(request: Query, currency: str | None, books: Books, none: Decimal | None) -> Answer:
    placed, shared = _shared(place(books, request), request)
    overhead = Decimal(query_share.overhead_total(request)).scaleb(-12)
    if overhead and none is None:
        none = _NOTHING
    named = placed.rows.filter("shown").join(placed.keys, on="gid")
    whole = _sum(placed.rows, "cost", "known", none)
    frames = [books.rows, *([] if books.idle is None else [books.idle])]
    lines = pl.concat([frame.select("billed", "billed_known") for frame in frames])
    result = QueryResult(
        query=request,
        currency=currency,
        rows=[],
        total=_sum(named, "cost", "known", None if whole is None else _NOTHING),
        window_total=whole,
        billed=_sum(lines, "billed", "billed_known", none),
        unknown=int(named["unknown"].sum()),
        shared=shared,
        overhead=overhead,
    )
    return Answer(result, named)


def _shared(placed: Placed, request: Query) -> tuple[Placed, tuple[Shared, ...]]:
    """Move what is shared."""
    found = query_share.receivers(placed)
    parts = placed.keys.select("gid", "part")
    rows = placed.rows.join(parts, on="gid", how="left")
    idle = None if placed.idle is None else placed.idle.join(parts, on="gid", how="left")
    every = [rows] if idle is None else [rows, idle]
    takers = query_share.claims(found, request, every)
    rows = query_share.leave(rows, takers)
    if idle is not None:
        idle = _of_idle(placed, query_share.leave(idle, takers), found, takers)
        rows = together(rows, idle).join(parts, on="gid", how="left")
    amounts = query_share.moved_amounts(rows, takers)
    moved = replace(placed, rows=query_share.share(rows, takers, found))
    told = tuple(
        Shared(policy, *amounts.get(number, (None, 0)))
        for number, policy in enumerate(request.sharing.policies)
    )
    return query_share.add_overhead(moved, found, request), told


def _of_idle(
    placed: Placed, idle: pl.DataFrame, found: query_share.Receivers, takers: pl.DataFrame
) -> pl.DataFrame:
    """Idle at its holders, or apart as far as they are shown."""
    shares = placed.books.request.sharing.idle
    if not shares and not idle["deferred"].any():
        return idle
    if not shares and takers.is_empty() and not placed.groups["shown"].any():
        if not idle.filter("deferred")["shown"].any():
            return idle  # none of the holders is shown, and what nobody holds is not either
    parts = placed.keys.select("gid", "part")
    held = query_share.leave(placed.held().join(parts, on="gid", how="left"), takers)
    if shares:
        return share_idle(idle, held.drop("part"))
    return keep_idle_apart(idle, held.drop("part"), query_share.reach(takers, found))


def fold(shown: pl.DataFrame, rows: pl.DataFrame, request: Query) -> tuple[pl.DataFrame, int]:
    """The first rows of an answer and the others as one; special rows always stand.

    Args:
        shown: ``Answer.shown``.
        rows: The same, grouped, in order.
        request: The question.
    """
    kept = first(rows, request)
    folded = rows.height - kept.height
    if not folded:
        return rows, 0
    return grouped(relabelled(shown, kept, request.by), request.by), folded


def first(rows: pl.DataFrame, request: Query) -> pl.DataFrame:
    """The rows of an answer that are shown by themselves."""
    if request.top is None:
        return rows
    special = pl.all_horizontal(_special(key) for key in request.by)
    rank = (~special).cum_sum()
    return rows.filter(special | (rank <= request.top))


def _special(key: str) -> pl.Expr:
    value = pl.col(key)
    return value.is_in(SPECIAL) | value.str.contains("/__idle__$")


def relabelled(shown: pl.DataFrame, kept: pl.DataFrame, by: tuple[str, ...]) -> pl.DataFrame:
    """Rows with all keys but the kept ones called ``other``."""
    marked = shown.join(
        kept.select(*by, pl.lit(1).alias("kept")), on=by, how="left", nulls_equal=True
    )
    return marked.with_columns(
        pl.when(pl.col("kept").is_null()).then(pl.lit(OTHER)).otherwise(pl.col(key)).alias(key)
        for key in by
    )


def _sum(rows: pl.DataFrame, name: str, known: str, none: Decimal | None) -> Decimal | None:
    """The sum of an amount; None if its number of known shares is 0 in every row."""
    if rows.is_empty():
        return none
    if not rows[known].sum():
        return None
    total = rows.select(from_units(pl.col(name).sum().cast(pl.Int128))).item()
    return Decimal(total).quantize(_NOTHING)
