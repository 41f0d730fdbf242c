"""Which folders are told apart: the shortest leading path that every ``path:`` rule resolves in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from ledger.schema import IDENTITY_KEYS
from ledger.settings import Settings

_PLACEHOLDER = re.compile(r"(\{\w+\}|\*)")


def patterns_of(settings: Settings) -> tuple[str, ...]:
    """The distinct patterns of the ``path:`` rules of all keys."""
    rules = (rule for key in IDENTITY_KEYS for rule in getattr(settings.identity, key))
    return tuple(dict.fromkeys(r.removeprefix("path:") for r in rules if r.startswith("path:")))


@dataclass(frozen=True)
class Prefixes:
    """Which leading path of a folder counts.

    Args:
        root: The store as paths begin, with a slash at the end: ``s3://rollouts/``, ``/fsx/``.
        patterns: ``patterns_of``.
        depth: Levels below the root that are told apart in any case.
    """

    root: str
    patterns: Sequence[str]
    depth: int

    @cached_property
    def _regexes(self) -> tuple[str, ...]:
        """Each captures a leading path of a folder, slash included, if it fits."""
        levels = f"^({re.escape(self.root)}(?:[^/]*/){{0,{self.depth}}})"
        return (levels, *(f"^({_regex(pattern)}/)" for pattern in self.patterns))

    @cached_property
    def _compiled(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(regex) for regex in self._regexes)

    @property
    def levels(self) -> int:
        """How many levels below the root a prefix may have at most."""
        below = self.root.rstrip("/").count("/")
        return max([self.depth, *(p.rstrip("/").count("/") - below for p in self.patterns)])

    def of(self, folder: str) -> str:
        """The prefix of a folder (with a slash at its end) below the root."""
        hits = (regex.match(folder) for regex in self._compiled)
        return max((hit[1] for hit in hits if hit), key=len, default=self.root)

    def column(self, folder: str) -> pl.Expr:
        """``of`` for a column. All that fit begin the same path, so the longest resolves all."""
        found = pl.concat_list(pl.col(folder).str.extract(regex) for regex in self._regexes)
        longest = found.list.eval(pl.element().sort_by(pl.element().str.len_bytes())).list.last()
        return longest.fill_null(self.root)


def _regex(pattern: str) -> str:
    """A pattern as a regular expression: a placeholder or ``*`` stands within one level."""
    return "".join(
        "[^/]+" if part.startswith("{") else "[^/]*" if part == "*" else re.escape(part)
        for part in _PLACEHOLDER.split(pattern.rstrip("/"))
    )
