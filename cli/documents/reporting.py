"""Reports from the ledger: figures of a window by the query of attribution, and the checklist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from attribution.finality import BillingMonth, billing_months
from attribution.query.answer import Match, Query, QueryResult
from attribution.query.answer import query as ask
from attribution.restated import difference
from cli.document import Document
from cli.documents.blind import blind_spots
from cli.documents.checks import findings_section, outcomes_section, savings_tiles
from cli.documents.commands import command
from cli.documents.coverage import coverage_of
from cli.documents.report import Figures, report_document
from cli.documents.stages import collect_document
from cli.stages.closes import attributed
from cli.wiring import Context
from ledger.money import from_units, to_units
from ledger.schema import CLOSES, COSTS_DAILY, IDLE, RESTATEMENTS, SHARED, UNATTRIBUTED
from ledger.settings import source_names
from ledger.store import Ledger
from ledger.window import Window

if TYPE_CHECKING:
    from cli.stages.pipeline import Run
    from rules.checklist import Checklist

_SPECIAL = (IDLE, SHARED, UNATTRIBUTED)


def report_documents(
    context: Context, window: Window | None, restated: pl.DataFrame | None = None
) -> list[Document]:
    """The report of a window, one document per currency; by default of the last closed day.

    Args:
        context: Settings and ledger.
        window: What to report.
        restated: Rows of ``restatements`` to show; by default those of the window.

    Raises:
        LedgerError: No day has been attributed yet.
    """
    if window is None:
        window = Window.of_day(attributed(context.ledger)[-1])
    checklist = _checklist(context.ledger, window)
    coverage = coverage_of(context.ledger, window, source_names(context.loaded.settings))
    changed = _restated(context.ledger, window) if restated is None else restated
    results = _results(context.ledger, window, changed)
    return [_document(context, result, checklist, coverage, changed) for result in results]


def _results(ledger: Ledger, window: Window, restated: pl.DataFrame) -> list[QueryResult]:
    """An answer per currency of the costs and of what was restated: one may have vanished."""
    request = Query(window, by=("experiment", "phase"))
    found = ask(ledger, request)
    known = {result.currency for result in found}
    vanished = set(restated["BillingCurrency"]) - known
    found += [
        result for code in vanished for result in ask(ledger, replace(request, currency=code))
    ]
    named = [result for result in found if result.currency]
    return sorted(named, key=lambda result: result.currency or "") or found


def run_documents(context: Context, run: Run) -> list[Document]:
    """The report of a run's days, with what it read and worked out."""
    window = Window.of_days(min(run.asked), max(run.asked))
    restated = pl.concat([RESTATEMENTS.empty(), *(close.restated for close in run.attributed)])
    done = {
        "collected": collect_document(run.collected).data["sources"],
        "attributed": [close.day.isoformat() for close in run.attributed],
        "exit_code": run.code,
    }
    return [
        replace(
            document, data={**document.data, "run": done}, remarks=_remarks(context, run, window)
        )
        for document in report_documents(context, window, restated)
    ]


def _remarks(context: Context, run: Run, window: Window) -> tuple[str, ...]:
    """What else the run changed, and what to do next."""
    inside = set(window.days())
    others = sorted(close.day for close in run.attributed if close.day not in inside)
    found = []
    if others:
        span = (
            f"{others[0]}"
            if len(others) == 1
            else (f"{len(others)} days, {others[0]} to {others[-1]}")
        )
        found.append(f"Also worked out: {span}")
    if not run.attributed:
        found.append(_nothing(context, run, window))
    return tuple(found)


def _nothing(context: Context, run: Run, window: Window) -> str:
    """Why no day was worked out: what is closed stands, or nothing could be read."""
    closes = context.ledger.scan(CLOSES, window).filter(pl.col("stage") == "attribute")
    days = closes.select("day").unique().sort("day").collect()["day"].to_list()
    failed = any(each.failure for each in run.collected)
    if days and not failed:
        span = f"{days[0]}" if len(days) == 1 else f"{days[0]} to {days[-1]}"
        return f"Already closed, nothing changed: {span}"
    doctor = command(context.loaded, "doctor")
    return f"Nothing was closed: {doctor} says what each source lacks"


def _document(
    context: Context,
    result: QueryResult,
    checklist: Checklist | None,
    coverage: Sequence[Mapping[str, Any]],
    restated: pl.DataFrame,
) -> Document:
    currency = result.currency or context.loaded.settings.currency
    window = result.query.window
    figures = Figures(
        window,
        currency,
        result.total,
        result.billed,
        phases=result.rows,
        nodes=_nodes(context.ledger, window, currency),
        unattributed=_reasons(context.ledger, window, currency),
        basis=_basis(context.ledger, window, currency),
        restated=_changes(restated, currency),
        coverage=coverage,
        blind=tuple(blind_spots(context.loaded.settings)),
        unknown=result.unknown,
        months=_months(context, window, currency),
    )
    found = (
        []
        if checklist is None
        else [
            finding for finding in checklist.findings if finding.money.currency in (currency, None)
        ]
    )
    data: Mapping[str, Any] = {} if checklist is None else checklist.as_document()
    checks = {
        "outcomes": data.get("outcomes", []),
        "findings": [
            entry for entry in data.get("findings", []) if entry["currency"] in (currency, None)
        ],
    }
    outcomes = outcomes_section(checklist.states if checklist else (), half=True)
    more = command(context.loaded, "checklist")
    findings = replace(findings_section(found, currency, short=True), more=more)
    document = report_document(figures, outcomes, findings, checks)
    saved = (
        []
        if checklist is None
        else [tile for tile in savings_tiles(checklist) if tile.unit in (currency, "")]
    )
    return replace(document, tiles=(*document.tiles[:-1], *saved, document.tiles[-1]))


def _months(context: Context, window: Window, currency: str) -> list[BillingMonth]:
    """The billing months of a window in one currency, of the bills that the settings name."""
    months = billing_months(context.ledger, window, source_names(context.loaded.settings) or None)
    return [month for month in months if month.currency == currency]


def _checklist(ledger: Ledger, window: Window) -> Checklist | None:
    """The checklist of the last day of the window that has one."""
    from rules.engine import read_checklist

    closes = ledger.scan(CLOSES, window).filter(pl.col("stage") == "checklist")
    last = closes.select(pl.col("day").max()).collect().item()
    return read_checklist(ledger, last) if last else None


def _nodes(ledger: Ledger, window: Window, currency: str) -> list[dict[str, Any]]:
    request = Query(window, by=("cluster", "node", "target"), currency=currency)
    return [
        row for result in ask(ledger, request) for row in result.rows if row["node"] not in _SPECIAL
    ]


def _reasons(ledger: Ledger, window: Window, currency: str) -> list[dict[str, Any]]:
    nobody = (Match("experiment", UNATTRIBUTED), Match("target", IDLE, negated=True))
    request = Query(window, by=("reason",), currency=currency, filters=nobody)
    return [row for result in ask(ledger, request) for row in result.rows]


def _basis(ledger: Ledger, window: Window, currency: str) -> list[dict[str, Any]]:
    """Effective and billed cost by provider and basis."""
    sums = {"cost": "EffectiveCost", "billed": "BilledCost"}
    return (
        ledger.scan(COSTS_DAILY, window)
        .filter(pl.col("BillingCurrency") == currency)
        .group_by(pl.col("ProviderName").alias("provider"), pl.col("x_Basis").alias("basis"))
        .agg(_known(name).alias(key) for key, name in sums.items())
        .sort("provider", "basis", nulls_last=True)
        .collect()
        .to_dicts()
    )


def _known(name: str) -> pl.Expr:
    """The sum of what is known of a money column; null if nothing is."""
    units = to_units(pl.col(name))
    return from_units(pl.when(units.count() > 0).then(units.sum()))


def _restated(ledger: Ledger, window: Window) -> pl.DataFrame:
    return ledger.scan(RESTATEMENTS, window).sort("day", "experiment", "inputs").collect()


def _changes(restated: pl.DataFrame, currency: str) -> list[dict[str, Any]]:
    shown = restated.filter(pl.col("BillingCurrency") == currency)
    figures = ("day", "experiment", "old", "new", difference(), "why")
    return shown.select(*figures).to_dicts()
