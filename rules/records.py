"""Outcomes and findings as rows of the ledger, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import polars as pl

from ledger.schema import FINDINGS, OUTCOMES
from ledger.text import canonical_json
from ledger.window import Window
from rules.rule import Claim, Evidence, Finding, Granted, Money, Remedy, State


@dataclass(frozen=True)
class Outcome:
    """A rule's answer on a day; ``resource`` None is the rule's own state.

    Args:
        rule: Code.
        name: Dotted name.
        resource: ``kind/name``.
        status: finding, clean or unknown.
        reason: Why unknown.
        skipped: Resources out of scope; counted on the rule's own state.
        required: Unknown because a required source is missing: exit code 3.
        window: What was looked at.
    """

    rule: str
    name: str
    resource: str | None
    status: State
    reason: str | None
    skipped: int
    required: bool
    window: Window

    def as_dict(self) -> dict[str, object]:
        """The outcome as it stands in documents."""
        return {
            "rule": self.rule,
            "name": self.name,
            "status": self.status,
            "resource": self.resource,
            "reason": self.reason,
            "skipped": self.skipped,
            "required": self.required,
        }


def outcomes_frame(outcomes: Sequence[Outcome], day: date) -> pl.DataFrame:
    """Outcomes in the form of ``outcomes``."""
    rows = [
        {
            **outcome.as_dict(),
            "day": day,
            "window_start": outcome.window.start,
            "window_end": outcome.window.end,
        }
        for outcome in outcomes
    ]
    return pl.DataFrame(rows, schema=OUTCOMES.schema)


def outcome_of(row: Mapping[str, Any]) -> Outcome:
    """An outcome from its row."""
    return Outcome(
        row["rule"],
        row["name"],
        row["resource"],
        row["status"],
        row["reason"],
        row["skipped"] or 0,
        bool(row["required"]),
        _window(row["window_start"], row["window_end"]),
    )


def findings_frame(findings: Sequence[Finding], day: date) -> pl.DataFrame:
    """Findings in the form of ``findings``."""
    return pl.DataFrame([_finding_row(each, day) for each in findings], schema=FINDINGS.schema)


def _finding_row(finding: Finding, day: date) -> dict[str, object]:
    money, same = (
        finding.money,
        (
            "rule",
            "name",
            "fingerprint",
            "resource",
            "severity",
            "experiment",
            "model_version",
            "owner",
            "title",
            "saving_per_month",
            "confidence",
            "guardrail",
            "first_seen",
            "status",
        ),
    )
    return {
        **{name: getattr(finding, name) for name in same},
        "day": day,
        "BillingCurrency": money.currency,
        "spent": money.spent,
        "own_saving_per_month": money.saving_per_month,
        "method": money.method,
        "basis": money.basis,
        "money_reason": money.reason,
        "evidence": canonical_json([each.as_dict() for each in finding.evidence]),
        "claims": canonical_json([each.as_dict() for each in finding.claims]),
        "remedy": canonical_json(finding.remedy.as_dict()),
        "exception": canonical_json(finding.exception.as_dict()) if finding.exception else None,
        "window_start": finding.window.start,
        "window_end": finding.window.end,
    }


def finding_of(row: Mapping[str, Any]) -> Finding:
    """A finding from its row."""
    exception = json.loads(row["exception"]) if row["exception"] else None
    remedy = json.loads(row["remedy"])
    return Finding(
        rule=row["rule"],
        name=row["name"],
        severity=row["severity"],
        fingerprint=row["fingerprint"],
        resource=row["resource"],
        title=row["title"],
        window=_window(row["window_start"], row["window_end"]),
        money=Money(
            row["method"],
            row["spent"],
            row["own_saving_per_month"],
            row["BillingCurrency"],
            row["basis"],
            row["money_reason"],
        ),
        confidence=row["confidence"],
        evidence=tuple(_evidence_of(each) for each in json.loads(row["evidence"])),
        claims=tuple(_claim_of(each) for each in json.loads(row["claims"])),
        remedy=Remedy(remedy["summary"], tuple(remedy["commands"])),
        guardrail=row["guardrail"],
        experiment=row["experiment"],
        model_version=row["model_version"],
        owner=row["owner"],
        saving_per_month=row["saving_per_month"],
        first_seen=row["first_seen"],
        status=row["status"],
        exception=Granted(exception["reason"], date.fromisoformat(exception["until"]))
        if exception
        else None,
    )


def _evidence_of(data: Mapping[str, Any]) -> Evidence:
    window = data["window"]
    return Evidence(
        data["metric"],
        data["source"],
        _window(_moment(window["start"]), _moment(window["end"])),
        data["value"],
        data["threshold"],
        data["samples"],
        data["expected"],
    )


def _claim_of(data: Mapping[str, str]) -> Claim:
    return Claim(data["cluster"], data["node"], _moment(data["start"]), _moment(data["end"]))


def _window(start: datetime, end: datetime) -> Window:
    # polars hands out a zone object of its own; the standard library's is what the rest uses.
    return Window(start.astimezone(UTC), end.astimezone(UTC))


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
