"""The rules as documents: the list, and one rule's page."""

from __future__ import annotations

from cli.document import Column, Document, Section, Tile, envelope, plain
from rules.registry import RULES, find_rule
from rules.rule import Rule

_COLUMNS = (
    Column("code", "Code"),
    Column("name", "Name"),
    Column("severity", "Severity"),
    Column("question", "Question"),
    Column("window_days", "Looks back (days)", "number"),
)


def rules_document() -> Document:
    """Every rule in one line each."""
    rows = tuple(
        {
            "code": rule.code,
            "name": rule.name,
            "severity": rule.severity,
            "question": rule.title,
            "window_days": rule.window_days,
        }
        for rule in RULES
    )
    return Document(
        "rules",
        "Rules of the checklist",
        envelope("rules", rules=plain(rows)),
        sections=(Section("rules", "Rules", _COLUMNS, rows),),
        remarks=("One rule in full: runbill rules explain CODE",),
    )


def rule_document(text: str) -> Document:
    """One rule: what it asks, its evidence, thresholds, money, guardrail and remedy.

    Raises:
        UsageError: There is no such rule.
    """
    rule = find_rule(text)
    parts = page(rule)
    rows = tuple({"part": title, "text": body} for title, body in parts.items())
    tables = [table.name for table in rule.needs]
    data = envelope(
        "rule",
        code=rule.code,
        name=rule.name,
        severity=rule.severity,
        question=rule.title,
        window_days=rule.window_days,
        tables=tables,
        page=parts,
    )
    tiles = (
        Tile("Question", rule.title),
        Tile("Severity", rule.severity),
        Tile("Looks back", f"{rule.window_days} days"),
        Tile("Reads", ", ".join(tables)),
    )
    columns = (Column("part", "Part"), Column("text", "Text"))
    return Document(
        "rule",
        f"{rule.code} {rule.name}",
        data,
        tiles,
        (Section("page", "In full", columns, rows),),
    )


def page(rule: Rule) -> dict[str, str]:
    """The sections of a rule's documentation, each as one paragraph."""
    return {title: " ".join(body.split()) for title, body in rule.sections().items()}
