"""Exit codes, by name, and how the outcome of a run becomes one of them."""

from __future__ import annotations

OK = 0
FINDINGS = 1
USAGE = 2
GAPS = 3
ACCESS = 4
UNREACHABLE = 5
FAULT = 70
INTERRUPTED = 130
BROKEN_PIPE = 141

SEVERITIES = ("low", "medium", "high")


def reaches(severity: str | None, threshold: str | None) -> bool:
    """Whether a finding of that severity is at or above the ``--fail-on`` threshold."""
    if threshold is None or severity not in SEVERITIES:
        return False
    return SEVERITIES.index(severity) >= SEVERITIES.index(threshold)
