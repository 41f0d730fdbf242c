"""Host lists as Slurm writes them: ``gpu[001-003,007],cpu-a[1-2]b[3,4]``.

The grammar is that of Slurm's ``hostlist(3)``: names divided by commas, each with any number of
brackets of numbers and ranges. A range is as wide as its first number is written, so that leading
zeros stay. Several brackets of one name are expanded from left to right, the last one fastest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product

from ledger.errors import BadInputError

MOST = 100_000
"""Hosts of one list at most: Slurm's own limit of nodes is 64 Ki."""

_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_NAME = re.compile(r"[^\s,\[\]()+]+")
_NONE = frozenset({"", "none", "(null)", "none assigned", "n/a", "unknown"})


class HostListError(BadInputError):
    """A text is no host list."""


def is_none(text: str) -> bool:
    """Whether a text is one of those by which Slurm says that there are no nodes."""
    return text.strip().lower() in _NONE


@lru_cache(maxsize=65536)
def expand(text: str) -> tuple[str, ...]:
    """The hosts of a list, in its order, each once.

    Args:
        text: A host list; those of ``is_none`` hold no host.

    Raises:
        HostListError: It is none, was cut off, or has more than ``MOST`` hosts.
    """
    if is_none(text):
        return ()
    found: dict[str, None] = {}
    for term in _terms(text.strip()):
        for host in _hosts(term, text):
            found[host] = None
            if len(found) > MOST:
                raise HostListError(f"{_short(text)} has more than {MOST:,} hosts")
    return tuple(found)


def _terms(text: str) -> Iterator[str]:
    """The names between commas that stand in no bracket."""
    depth, start = 0, 0
    for place, sign in enumerate(text):
        if sign in "[]":
            depth += 1 if sign == "[" else -1
            if depth not in (0, 1):
                raise HostListError(f"{_short(text)} has brackets that do not match")
        elif sign == "," and not depth:
            yield text[start:place]
            start = place + 1
    if depth:
        raise HostListError(f"{_short(text)} is cut off inside a bracket")
    yield text[start:]


def _hosts(term: str, text: str) -> Iterator[str]:
    """The hosts of one name with its brackets."""
    parts = _BRACKET.split(term)
    if not _NAME.fullmatch(_BRACKET.sub("0", term)):
        raise HostListError(f"{_short(text)} is no list of hosts")
    choices: list[Sequence[str]] = [
        _numbers(part, text) if number % 2 else (part,) for number, part in enumerate(parts)
    ]
    size = 1
    for choice in choices:
        size *= len(choice)
    if size > MOST:
        raise HostListError(f"{_short(text)} has more than {MOST:,} hosts")
    return map("".join, product(*choices))


def _numbers(inside: str, text: str) -> list[str]:
    """The numbers of a bracket, as they are written."""
    found: list[str] = []
    for piece in inside.split(","):
        match = _RANGE.fullmatch(piece.strip())
        if match is None:
            raise HostListError(f"{_short(text)} holds {piece!r}, which is no range of numbers")
        first, last = match[1], match[2] or match[1]
        count = int(last) - int(first) + 1 if len(last) < 19 else MOST + 1
        if not 0 < count <= MOST:
            raise HostListError(f"{_short(text)} holds the range {piece!r}, from high to low")
        found += (str(n).zfill(len(first)) for n in range(int(first), int(last) + 1))
    return found


def _short(text: str) -> str:
    return f"the host list {text[:60]!r}"
