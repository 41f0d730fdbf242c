"""The checklist of a day, as reports and other programs read it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from ledger.window import Window
from rules.records import Outcome
from rules.rule import Finding

_SEVERITIES = ("high", "medium", "low")
_STATUSES = ("new", "ongoing", "excepted", "resolved")


@dataclass(frozen=True)
class Checklist:
    """What the rules say of a day.

    Args:
        day: The closed day.
        window: From the first to the last moment that a rule looked at.
        outcomes: Per rule its own state first, then one per resource.
        findings: Open ones first, the dearest first.
        notes: What a reader should know.
        gaps: ``{reason, detail}`` of what could not be judged.
    """

    day: date
    window: Window
    outcomes: tuple[Outcome, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    gaps: tuple[Mapping[str, object], ...] = ()

    @property
    def states(self) -> tuple[Outcome, ...]:
        """Each rule's own state."""
        return tuple(each for each in self.outcomes if each.resource is None)

    @property
    def lacks_required(self) -> bool:
        """Whether something is unknown for want of a required source: exit code 3."""
        return any(each.required for each in self.outcomes)

    @property
    def currencies(self) -> tuple[str, ...]:
        """Currencies of the findings, in order."""
        return tuple(sorted({f.money.currency for f in self.findings if f.money.currency}))

    @property
    def currency(self) -> str | None:
        """The currency of all findings; None if there are several or none."""
        return self.currencies[0] if len(self.currencies) == 1 else None

    @property
    def savings(self) -> dict[str, Decimal]:
        """Currency to the saving per month of all open findings, overlaps counted once."""
        sums: dict[str, Decimal] = defaultdict(Decimal)
        for finding in self.findings:
            if finding.active and finding.saving_per_month is not None and finding.money.currency:
                sums[finding.money.currency] += finding.saving_per_month
        return dict(sorted(sums.items()))

    def as_document(self, *, verbose: bool = False) -> dict[str, object]:
        """The JSON document of kind ``checklist``.

        Args:
            verbose: Add the outcome of every resource to the rules' own states.

        Returns:
            Only JSON data; money as decimal texts, each finding with its currency.
        """
        return {
            "schema_version": "1",
            "kind": "checklist",
            "window": self.window.as_dict(),
            "day": self.day.isoformat(),
            "currency": self.currency,
            "savings_per_month": {code: _money(total) for code, total in self.savings.items()},
            "outcomes": [o.as_dict() for o in (self.outcomes if verbose else self.states)],
            "findings": [_document_of(finding) for finding in self.findings],
            "notes": list(self.notes),
            "gaps": [dict(gap) for gap in self.gaps],
        }


def in_order(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Findings as a reader wants them: open, severe and dear ones first."""
    return tuple(
        sorted(
            findings,
            key=lambda each: (
                _STATUSES.index(each.status) // 2,
                _STATUSES.index(each.status) if not each.active else 0,
                _SEVERITIES.index(each.severity),
                -(each.saving_per_month or Decimal(-1)),
                each.resource,
                each.fingerprint,
            ),
        )
    )


def _document_of(finding: Finding) -> dict[str, object]:
    money = finding.money
    return {
        "rule": finding.rule,
        "name": finding.name,
        "fingerprint": finding.fingerprint,
        "resource": finding.resource,
        "title": finding.title,
        "experiment": finding.experiment,
        "model_version": finding.model_version,
        "owner": finding.owner,
        "severity": finding.severity,
        "currency": money.currency,
        "spent": _money(money.spent),
        "saving_per_month": _money(finding.saving_per_month),
        "own_saving_per_month": _money(money.saving_per_month),
        "method": money.method,
        "basis": money.basis,
        "money_reason": money.reason,
        "confidence": finding.confidence,
        "evidence": [each.as_dict() for each in finding.evidence],
        "claims": [each.as_dict() for each in finding.claims],
        "remedy": finding.remedy.as_dict(),
        "guardrail": finding.guardrail,
        "first_seen": finding.first_seen.isoformat() if finding.first_seen else None,
        "status": finding.status,
        "window": finding.window.as_dict(),
        "exception": finding.exception.as_dict() if finding.exception else None,
    }


def _money(amount: Decimal | None) -> str | None:
    """A decimal text with all twelve places, never in scientific notation."""
    return None if amount is None else f"{amount:.12f}"
