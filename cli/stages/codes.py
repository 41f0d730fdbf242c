"""What the answers of the checklist mean for the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli import exits

if TYPE_CHECKING:
    from rules.checklist import Checklist

_FAILED = ("access_denied", "throttled", "query_failed", "labels_missing", "stale_data", "error")


def code_of(found: Checklist, fail_on: str | None) -> int:
    """3 if a fault or a failed source kept a rule from answering; 1 for findings if asked; else 0.

    Too little history or a node without a series leaves the code alone: days before the first close
    are no gap, and a hole in the day itself is a gap of its collect stage already.
    """
    if any(each.required and each.reason in _FAILED for each in found.outcomes):
        return exits.GAPS
    failing = any(
        finding.active and exits.reaches(finding.severity, fail_on) for finding in found.findings
    )
    return exits.FINDINGS if failing else exits.OK
