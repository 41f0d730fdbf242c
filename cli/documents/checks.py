"""The checklist as a document, as sections of a report, and as an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cli.document import Cell, Column, Document, Section, Tile
from cli.render.text import money

if TYPE_CHECKING:
    from ledger.window import Window
    from rules.checklist import Checklist
    from rules.records import Outcome
    from rules.rule import Evidence, Finding

_OUTCOMES = (
    Column("rule", "Rule"),
    Column("question", "Question"),
    Column("status", "Answer"),
    Column("reason", "Why"),
)
_PER_RESOURCE = (
    Column("rule", "Rule"),
    Column("resource", "Resource"),
    Column("status", "Answer"),
    Column("reason", "Why"),
)
_FINDINGS = (
    Column("rule", "Rule"),
    Column("severity", "Severity"),
    Column("title", "Finding"),
    Column("resource", "Resource"),
    Column("owner", "Owner"),
    Column("experiment", "Experiment"),
    Column("spent", "Spent", "money"),
    Column("spent_in", "Spent in"),
    Column("saving_per_month", "Saves per month", "money"),
    Column("basis", "Basis"),
    Column("confidence", "Confidence"),
    Column("status", "Status"),
    Column("first_seen", "First seen"),
    Column("evidence", "Evidence"),
    Column("method", "How the money was worked out"),
    Column("remedy", "Remedy"),
    Column("guardrail", "Guardrail"),
)
_CURRENCY = Column("currency", "Currency")
_REASONS = {
    "no_series": "the series that show it are not there",
    "low_coverage": "too few samples in the days that it looks at",
    "short_history": "not enough days are closed yet",
    "capacity_unknown": "the node does not say what it holds",
    "error": "the rule failed",
}


def checklist_document(found: Checklist, *, verbose: bool = False) -> Document:
    """The checklist of a day; ``verbose`` adds the answer per resource."""
    sections = [findings_section(found.findings, found.currency), outcomes_section(found.states)]
    if verbose:
        sections.append(_resources_section(found.outcomes))
    tiles = (
        Tile("Day", str(found.day)),
        Tile("Window", str(found.window)),
        *savings_tiles(found),
        _coverage_tile(found),
    )
    return Document(
        "checklist",
        f"Checklist of {found.day}",
        found.as_document(verbose=verbose),
        tiles,
        tuple(sections),
        found.currency,
        remarks=found.notes,
    )


def savings_tiles(found: Checklist) -> tuple[Tile, ...]:
    """What all open findings would save in 30 days, per currency; overlaps count once."""
    count = sum(finding.active for finding in found.findings)
    detail = f"{count} open finding{'' if count == 1 else 's'}"
    return tuple(
        Tile("Savings a month", money(total), detail, "warn" if total else "plain", code)
        for code, total in found.savings.items()
    ) or (Tile("Findings", str(count) if count else "none open"),)


def _coverage_tile(found: Checklist) -> Tile:
    unknown = [state.rule for state in found.states if state.status == "unknown"]
    answered = len(found.states) - len(unknown)
    detail = f"unknown: {', '.join(unknown)}" if unknown else "every rule could answer"
    return Tile(
        "Coverage",
        f"{answered} of {len(found.states)} rules answered",
        detail,
        "warn" if unknown else "good",
    )


def outcomes_section(states: Sequence[Outcome], *, half: bool = False) -> Section:
    """Each rule's own answer."""
    from rules.registry import RULES

    questions = {rule.code: rule.title for rule in RULES}
    rows = tuple(
        {
            "rule": state.rule,
            "question": questions.get(state.rule, state.name),
            "status": state.status,
            "reason": _why(state.reason),
        }
        for state in states
    )
    return Section(
        "outcomes",
        "Checklist",
        _OUTCOMES,
        rows,
        tone="status",
        half=half,
        empty="the checklist of the last day has not been run: runbill checklist",
    )


def findings_section(
    findings: Sequence[Finding], currency: str | None, *, short: bool = False
) -> Section:
    """The findings, open and dear ones first; ``short`` for the essentials of each."""
    columns = _FINDINGS if currency or not findings else (*_FINDINGS, _CURRENCY)
    return Section(
        "findings",
        "Findings",
        columns,
        tuple(map(_row, findings)),
        empty="no finding",
        tone="severity",
        short=short,
    )


def _resources_section(outcomes: Sequence[Outcome]) -> Section:
    rows = tuple(
        {
            "rule": each.rule,
            "resource": each.resource,
            "status": each.status,
            "reason": _why(each.reason),
        }
        for each in outcomes
        if each.resource is not None
    )
    return Section(
        "resources",
        "Per resource",
        _PER_RESOURCE,
        rows,
        tone="status",
        empty="no resource was in scope",
    )


def _why(reason: str | None) -> str | None:
    return f"{reason}: {_REASONS[reason]}" if reason in _REASONS else reason


def evidence_line(evidence: Evidence) -> str:
    """A figure that a finding rests on, in a line: its threshold, samples, window and source."""
    value = "unknown" if evidence.value is None else evidence.value
    threshold = f" (threshold {evidence.threshold})" if evidence.threshold is not None else ""
    parts = [f"{evidence.metric}: {value}{threshold}"]
    if evidence.samples is not None:
        whole = f" of {evidence.expected}" if evidence.expected is not None else ""
        parts.append(f"{evidence.samples}{whole} samples")
    return "; ".join([*parts, _span(evidence.window), evidence.source])


def _span(window: Window) -> str:
    """A half-open window, by its days where it holds whole ones."""
    return f"{window.start:%Y-%m-%d}..{window.end:%Y-%m-%d}" if window.whole_days else str(window)


def _row(finding: Finding) -> dict[str, Cell]:
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "title": finding.title,
        "resource": finding.resource,
        "owner": finding.owner,
        "experiment": finding.experiment,
        "spent": finding.money.spent,
        "spent_in": _span(finding.window),
        "evidence": tuple(map(evidence_line, finding.evidence)),
        "method": finding.money.method,
        "saving_per_month": finding.saving_per_month,
        "basis": finding.money.basis,
        "confidence": finding.confidence,
        "status": finding.status,
        "first_seen": finding.first_seen,
        "guardrail": finding.guardrail,
        "remedy": finding.remedy.summary,
        "commands": finding.remedy.commands,
        "currency": finding.money.currency,
    }
