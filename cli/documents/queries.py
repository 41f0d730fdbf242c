"""``query``: from flags to a question, and from answers to documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from attribution.query.answer import Match, QueryResult, Shared
from attribution.query.answer import query as ask
from attribution.query.compare import Compared, compare
from cli.clock import now
from cli.document import Column, Document, Section, Tile, Tone, envelope
from cli.documents.asked import Asked
from cli.documents.coverage import coverage_of, coverage_tile, gaps_section
from cli.documents.figures import amount, unknown_shares
from cli.render.text import percent
from cli.stages.closes import attributed
from cli.wiring import Context
from ledger.errors import UsageError
from ledger.schema import COSTS_DAILY, IDLE
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
_CODE = re.compile(r"[A-Za-z]{3}")
_SPLITS = {"even": "evenly", "weighted": "by own cost", "none": "not"}
Coverage = Sequence[dict[str, Any]]


def query_documents(context: Context, asked: Asked) -> list[Document]:
    """One document per currency of the answer.

    Raises:
        UsageError: A key, the currency or an amount is unknown, or the window cannot be read.
        LedgerError: No day has been attributed yet.
    """
    ledger, settings = context.ledger, context.loaded.settings
    window = parse_window(asked.window, now()) if asked.window else closed_window(ledger)
    request = asked.question(window, _currency(ledger, window, asked.currency), settings)
    request.check()
    coverage = coverage_of(ledger, window, source_names(settings))
    if asked.compare:
        found = compare(ledger, request, attributed(ledger))
        return [query_document(each.result, coverage, each) for each in found]
    return [query_document(result, coverage) for result in ask(ledger, request)]


def _currency(ledger: Ledger, window: Window, asked: str | None) -> str | None:
    """The currency of the window that is meant, whatever its case.

    Raises:
        UsageError: It is no code of a currency, or the window holds others and not that one.
    """
    if asked is None:
        return None
    if not _CODE.fullmatch(asked.strip()):
        raise UsageError(f"{asked!r} is no code of a currency", "write --currency USD")
    rows = ledger.scan(COSTS_DAILY, window).select(pl.col("BillingCurrency").unique().sort())
    known: list[str] = rows.collect()["BillingCurrency"].drop_nulls().to_list()
    if not known:
        return asked.strip().upper()
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


def query_document(
    result: QueryResult, coverage: Coverage, compared: Compared | None = None
) -> Document:
    """An answer in one currency: rows by the keys, total, bill, sharing and coverage."""
    request = result.query
    title = f"{_TITLES[request.cost]} by {', '.join(request.by)}"
    section = Section(
        "rows",
        title,
        tuple(_columns(result, compared)),
        tuple(result.rows),
        empty="no cost in this window",
        note="; ".join(_notes(result)) or None,
    )
    return Document(
        "query",
        title,
        _data(result, coverage, compared),
        tuple(_tiles(result, coverage, compared)),
        (section, gaps_section(coverage, request.window)),
        result.currency,
    )


def _columns(result: QueryResult, compared: Compared | None) -> Iterable[Column]:
    by = result.query.by
    figures = [
        Column("cost", _TITLES[result.query.cost], "money"),
        Column("active_cost", "Of it active", "money", known="active_cost_known_share"),
        Column("gpu_hours", "GPU-hours", "number"),
        Column("efficiency", "Efficiency", "ratio"),
        Column("basis", "Basis"),
        Column("confidence", "Confidence"),
    ]
    if compared:
        figures[1:1] = [
            Column("previous", "Before", "money"),
            Column("difference", "Difference", "money"),
            Column("change", "Change", "ratio"),
            Column("presence", "Presence"),
        ]
    for key in by:
        yield Column(key, key.replace("_", " ").capitalize())
    yield from (column for column in figures if column.key not in by)


def _data(result: QueryResult, coverage: Coverage, compared: Compared | None) -> dict[str, object]:
    request, sharing = result.query, result.query.sharing
    return envelope(
        "query",
        window=request.window.as_dict(),
        currency=result.currency,
        by=list(request.by),
        cost=request.cost,
        filters=_conditions(request.filters),
        tags=_conditions(request.tags),
        idle="share" if sharing.idle else "separate",
        idle_pool=sharing.pool,
        sharing=[_policy(each) for each in result.shared],
        overhead={
            "per_hour": sharing.overhead,
            "split": sharing.overhead_split,
            "amount": result.overhead,
        }
        if sharing.overhead
        else None,
        quota=request.quota,
        top=request.top,
        folded=result.folded,
        total=result.total,
        unknown=result.unknown,
        window_total=result.window_total,
        hidden=result.hidden,
        billed=result.billed,
        compare=_comparison(compared) if compared else None,
        rows=result.rows,
        coverage=list(coverage),
    )


def _conditions(conditions: Iterable[Match]) -> dict[str, object]:
    """Values by key, as a list where there are several; a key that is negated ends in ``!``."""
    found: dict[str, list[str]] = {}
    for each in conditions:
        found.setdefault(f"{each.key}{'!' if each.negated else ''}", []).append(each.glob)
    return {key: globs[0] if len(globs) == 1 else globs for key, globs in found.items()}


def _policy(shared: Shared) -> dict[str, object]:
    return {
        "match": _conditions(shared.policy.match),
        "split": shared.policy.split,
        "amount": shared.amount,
        "keys": shared.keys,
    }


def _comparison(compared: Compared) -> dict[str, object]:
    return {
        "window": compared.window.as_dict(),
        "days": len(list(compared.window.days())),
        "closed_days": compared.closed,
        "total": compared.total,
        "difference": compared.difference,
        "change": compared.change,
    }


def _tiles(result: QueryResult, coverage: Coverage, compared: Compared | None) -> Iterable[Tile]:
    request, currency = result.query, result.currency or ""
    bill = f"{amount(result.billed)} {currency} on the invoice lines of the window"
    said = (bill if result.billed is not None else "", unknown_shares(result.unknown))
    detail = "; ".join(filter(None, said))
    yield Tile("Window", str(request.window))
    yield Tile("Total", amount(result.total), detail, unit=currency)
    if compared:
        yield _before(compared, currency)
    if request.filters or request.tags:
        shown = ", ".join(map(str, (*request.tags, *request.filters)))
        yield Tile("Not shown", amount(result.hidden), f"hidden by {shown}", unit=currency)
    for each in result.shared:
        if each.policy.split != "none":
            yield _shared(each, currency)
    if result.overhead:
        how = _SPLITS[request.sharing.overhead_split]
        detail = f"{request.sharing.overhead:f} per hour of the window, added {how}"
        yield Tile("Overhead", amount(result.overhead), detail, unit=currency)
    yield coverage_tile(coverage)


def _before(compared: Compared, currency: str) -> Tile:
    days = len(list(compared.window.days()))
    said = [str(compared.window)]
    if compared.change is not None:
        said.append(f"now {'+' if compared.change > 0 else ''}{percent(compared.change)}")
    if compared.closed < days:
        said.append(f"{compared.closed} of its {days} days closed")
    tone: Tone = "warn" if compared.closed < days else "plain"
    return Tile("Before", amount(compared.total), "; ".join(said), tone, unit=currency)


def _shared(shared: Shared, currency: str) -> Tile:
    what = ", ".join(map(str, shared.policy.match))
    if shared.amount is None:
        return Tile("Shared", amount(None), f"{what}: nothing fits, or nobody is left to take it")
    keys = f"{shared.keys:,} key{'' if shared.keys == 1 else 's'}"
    return Tile(
        "Shared",
        amount(shared.amount),
        f"{what}, {_SPLITS[shared.policy.split]} over {keys}",
        unit=currency,
    )


def _notes(result: QueryResult) -> Iterable[str]:
    """Sentences below the table."""
    request = result.query
    if result.folded:
        yield f"other: {result.folded:,} keys"
    if request.quota:
        yield "with --quota: what quotas reserve and nobody asked for is at its namespace, not idle"
    parts = request.hides_holders and not request.sharing.idle
    idle = any(IDLE in str(row[key]) for row in result.rows for key in request.by)
    if parts and idle:
        yield f"{IDLE}: the part that goes with the rows shown"
    if request.sharing.idle and idle:
        wider = "; --share-idle cluster looks further" if request.sharing.pool == "node" else ""
        yield f"{IDLE}: where nobody held the rest of a {request.sharing.pool} that day{wider}"
