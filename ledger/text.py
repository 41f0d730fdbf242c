"""Texts that must come out the same everywhere: canonical JSON, hashes, public URLs, counts."""

from __future__ import annotations

import hashlib
import json
import re

# User and password before the host. A secret key may hold a slash, so that what looks like a port
# with a path that holds an @ counts as one: better a URL that is cut short than a secret shown.
_USERINFO = re.compile(r"(?<=://)(?:[^\s/?#'\"]*@|[^\s/?#'\":]*:[^\s'\"]*?@)")


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


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 pod``, ``2 pods``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def short_hash(text: str, length: int = 16) -> str:
    """The first hexadecimal digits of a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def without_credentials(text: str) -> str:
    """A URL, or a text with URLs in it, without users and passwords."""
    return _USERINFO.sub("", text)


def holds_credentials(url: str) -> bool:
    """Whether a URL names a user or a password."""
    return _USERINFO.search(url) is not None
