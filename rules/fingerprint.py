"""What makes two findings of different days the same one."""

from __future__ import annotations

import hashlib
import json


def fingerprint(rule: str, resource: str, evidence: str) -> str:
    """Stable id of a finding: rule, resource and *kind* of evidence, never its numbers.

    Returns:
        16 hexadecimal digits.
    """
    text = json.dumps([rule, resource, evidence], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
