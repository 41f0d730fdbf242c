"""Keep out of messages what a server repeats of the secrets that it was sent.

vmauth answers a login that it does not know with the whole of it, and a status of 400.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

_HARMLESS = frozenset(
    {"accept", "accept-encoding", "connection", "content-length", "content-type", "user-agent"}
)
_SHORTEST = 4  # of a secret whose removal leaves a text readable
_HIDDEN = "***"


def without_echoes(text: str, headers: Mapping[str, str | bytes]) -> str:
    """A text without the values of the headers that a request was sent with, packed or not.

    Args:
        text: What a server answered.
        headers: Of the request.
    """
    for secret in sorted(_secrets(headers), key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text


def _secrets(headers: Mapping[str, str | bytes]) -> set[str]:
    found = set()
    for name, sent in headers.items():
        if name.lower() in _HARMLESS:
            continue
        value = sent.decode("latin-1") if isinstance(sent, bytes) else sent
        scheme, _, rest = value.partition(" ")
        found |= {value, rest}
        if scheme.lower() == "basic":
            try:
                login = base64.b64decode(rest, validate=True).decode()
            except (binascii.Error, UnicodeError):
                continue
            found |= {login, login.partition(":")[2]}
    return {secret for secret in found if len(secret) >= _SHORTEST}
