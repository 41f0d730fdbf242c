"""``query``: from flags to a question, and from answers to documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import polars as pl

from attribution.query import Cost, Query, QueryResult
from attribution.query import query as ask
from cli.clock import now
from cli.document import Column, Document, Section, Tile, envelope
from cli.documents.coverage import coverage_of, coverage_tile, gaps_section
from cli.documents.figures import amount, unknown_shares
from cli.stages.closes import attributed
from cli.wiring import Context
from ledger.errors import UsageError
from ledger.schema import COSTS_DAILY
from ledger.settings import source_names
from ledger.store import Ledger
from ledger.window import Window, parse_window

_TITLES = {
    "effective": "Cost",
    "billed": "Billed cost",
    "contracted": "Contracted cost",
    "list": "List cost",
    "active": "Active cost",
}


def query_documents(
    context: Context,
    *,
    by: Sequence[str],
    tags: Sequence[tuple[str, str]],
    filters: Sequence[tuple[str, str]],
    window: str | None,
    cost: str,
    currency: str | None,
    idle: str,
) -> list[Document]:
    """One document per currency of the answer.

    Raises:
        UsageError: A key or the currency is unknown, a key is named twice, or the window cannot
            be read.
        LedgerError: No day has been attributed yet.
    """
    asked = parse_window(window, now()) if window else closed_window(context.ledger)
    request = Query(
        asked,
        tuple(by) or ("experiment",),
        cast("Cost", cost),
        _mapping("--tag", tags),
        _mapping("--filter", filters),
        _currency(context.ledger, asked, currency),
        "share" if idle == "share" else "separate",
    )
    coverage = coverage_of(context.ledger, asked, source_names(context.loaded.settings))
    return [query_document(result, coverage) for result in ask(context.ledger, request)]


def _currency(ledger: Ledger, window: Window, asked: str | None) -> str | None:
    """The currency of the window that is meant, whatever its case.

    Raises:
        UsageError: The window holds others, and not that one.
    """
    rows = ledger.scan(COSTS_DAILY, window).select(pl.col("BillingCurrency").unique().sort())
    known: list[str] = rows.collect()["BillingCurrency"].drop_nulls().to_list()
    if asked is None or not known:
        return asked
    found = next((code for code in known if code.casefold() == asked.strip().casefold()), None)
    if found is None:
        raise UsageError(f"no cost in {asked!r} in this window", f"there is: {', '.join(known)}")
    return found


def closed_window(ledger: Ledger) -> Window:
    """From the first to the last attributed day.

    Raises:
        LedgerError: No day has been attributed yet.
    """
    days = attributed(ledger)
    return Window.of_days(days[0], days[-1])


def query_document(result: QueryResult, coverage: Sequence[dict[str, Any]]) -> Document:
    """An answer in one currency: rows by the keys, total, bill and coverage."""
    request = result.query
    by = request.by
    figures = (
        Column("cost", _TITLES[request.cost], "money"),
        Column("active_cost", "Of it active", "money", known="active_cost_known_share"),
        Column("gpu_hours", "GPU-hours", "number"),
        Column("basis", "Basis"),
        Column("confidence", "Confidence"),
    )
    columns = (
        *(Column(key, key.replace("_", " ").capitalize()) for key in by),
        *(column for column in figures if column.key not in by),
    )
    section = Section(
        "rows",
        f"{_TITLES[request.cost]} by {', '.join(by)}",
        columns,
        tuple(result.rows),
        empty="no cost in this window",
    )
    data = envelope(
        "query",
        window=request.window.as_dict(),
        currency=result.currency,
        by=list(by),
        cost=request.cost,
        filters=dict(request.filters),
        tags=dict(request.tags),
        idle=request.idle,
        total=result.total,
        unknown=result.unknown,
        window_total=result.window_total,
        hidden=result.hidden,
        billed=result.billed,
        rows=result.rows,
        coverage=list(coverage),
    )
    return Document(
        "query",
        section.title,
        data,
        tuple(_tiles(result, coverage)),
        (section, gaps_section(coverage, request.window)),
        result.currency,
    )


def _tiles(result: QueryResult, coverage: Sequence[dict[str, Any]]) -> list[Tile]:
    currency = result.currency or ""
    bill = f"{amount(result.billed)} {currency} on the invoice lines of the window".strip()
    bill = "; ".join(filter(None, (bill, unknown_shares(result.unknown))))
    tiles = [
        Tile("Window", str(result.query.window)),
        Tile("Total", amount(result.total), bill, unit=currency),
    ]
    if result.query.filters or result.query.tags:
        tiles.append(
            Tile("Not shown", amount(result.hidden), "hidden by the filters", unit=currency)
        )
    return [*tiles, coverage_tile(coverage)]


def _mapping(flag: str, pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, pattern in pairs:
        if key in found:
            raise UsageError(f"{flag} names {key!r} twice", "a glob can match several values")
        found[key] = pattern
    return found
