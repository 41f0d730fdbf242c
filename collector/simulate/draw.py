"""Numbers and names that look random and are not: each is a hash of the seed and a key.

A keyed draw does not depend on the order of other draws, on the clock or on the Python version, so
that the same options give the same bytes and a new kind of pod does not move the old ones.
"""

from __future__ import annotations

import hashlib
from uuid import UUID

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def _digest(seed: int, key: tuple[object, ...]) -> bytes:
    text = "\x1f".join(str(part) for part in (seed, *key))
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def number(seed: int, *key: object, low: int, high: int) -> int:
    """An integer from ``low`` to ``high``, both included, fixed by the seed and the key."""
    return low + int.from_bytes(_digest(seed, key), "big") % (high - low + 1)


def uid(seed: int, *key: object) -> str:
    """A UUID in text form, as Kubernetes gives to objects and NVIDIA to cards."""
    return str(UUID(bytes=_digest(seed, ("uid", *key)), version=4))


def suffix(seed: int, *key: object, length: int = 5) -> str:
    """A short random-looking name end, as controllers give to pods."""
    rest = int.from_bytes(_digest(seed, ("suffix", *key)), "big")
    letters = []
    for _ in range(length):
        rest, letter = divmod(rest, len(_ALPHABET))
        letters.append(_ALPHABET[letter])
    return "".join(letters)


def hexadecimal(seed: int, *key: object, length: int = 17) -> str:
    """Lower-case hexadecimal digits, as in instance ids."""
    return _digest(seed, ("hex", *key)).hex()[:length]
