"""Texts that must come out the same everywhere: canonical JSON, and short hashes."""

from __future__ import annotations

import hashlib
import json


def canonical_json(data: object) -> str:
    """Data as JSON text that equal data always gives: sorted keys, no blanks, plain UTF-8.

    Raises:
        TypeError: The data hold something that JSON does not know.
    """
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair has no UTF-8 form; its escape has
        return json.dumps(data, sort_keys=True, separators=(",", ":"))
    return text


def short_hash(text: str, length: int = 16) -> str:
    """The first hexadecimal digits of a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:length]
