"""Waste that is wanted: exceptions from the settings, with a reason and an end."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fnmatch import fnmatchcase

from ledger.settings import ExceptionEntry
from rules.rule import Finding, Granted


def grant(
    findings: Sequence[Finding], entries: Sequence[ExceptionEntry], day: date
) -> tuple[Finding, ...]:
    """The findings, with status ``excepted`` and out of the sums where an exception holds.

    An exception names a rule by code or name and a resource by a pattern (``*``, ``?``, ``[…]``);
    its last day counts. The first that fits is shown.
    """
    return tuple(_granted(each, entries, day) for each in findings)


def _granted(finding: Finding, entries: Sequence[ExceptionEntry], day: date) -> Finding:
    for entry in entries:
        if (
            day <= entry.until
            and entry.rule in (finding.rule, finding.name)
            and fnmatchcase(finding.resource, entry.resource)
        ):
            return replace(
                finding,
                status="excepted",
                saving_per_month=Decimal(0),
                exception=Granted(entry.reason, entry.until),
            )
    return finding


def remarks(entries: Sequence[ExceptionEntry], rules: Collection[str], day: date) -> list[str]:
    """What a reader should know of exceptions that do not hold: expired, or of no known rule."""
    notes = []
    for entry in entries:
        name = f"exception for {entry.rule} on {entry.resource}"
        if entry.rule not in rules:
            notes.append(f"{name}: this version has no such rule")
        elif day > entry.until:
            notes.append(f"{name}: expired on {entry.until}, it no longer holds")
    return notes
