"""What makes two findings of different days the same one."""

from __future__ import annotations

from ledger.text import canonical_json, short_hash


def fingerprint(rule: str, resource: str, evidence: str) -> str:
    """Stable id of a finding: rule, resource and *kind* of evidence, never its numbers.

    Returns:
        16 hexadecimal digits.
    """
    return short_hash(canonical_json([rule, resource, evidence]))
