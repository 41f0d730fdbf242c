"""Numbers of Slurm's JSON, whose form differs from one data parser to the next."""

from __future__ import annotations

from typing import Any

Number = Any
"""``8``, ``"8"``, ``{"set": true, "infinite": false, "number": 8}`` or null."""


_MOST = 1 << 53


def whole(value: Number) -> int | None:
    """A number in any of its forms; None where it is not set, infinite, or no number.

    One that no column could hold becomes the largest of its sign: still wrong, never missing.
    """
    if type(value) is int and -_MOST < value < _MOST:  # nearly all of them
        return value
    if isinstance(value, dict):
        if not value.get("set", True) or value.get("infinite", False):
            return None
        value = value.get("number")
    if isinstance(value, bool) or value is None:
        return None
    try:
        return max(min(int(value), _MOST), -_MOST)
    except (TypeError, ValueError, OverflowError):
        return None


def words(value: Any) -> str:  # noqa: ANN401 - a text or a list of them
    """A text, or a list of texts joined by blanks; empty where there is none."""
    if isinstance(value, list | tuple):
        return " ".join(str(each) for each in value)
    return value if isinstance(value, str) else ""
