"""Findings as a few lines each: a table of them would be wider than any screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cli.document import Cell, Section
from cli.render.text import DASH, cell, visible

_ESSENTIAL = ("resource", "owner", "experiment", "spent", "saving_per_month")
_ELSEWHERE = ("severity", "title", "status", "remedy", "guardrail")


MORE = "In full, with commands: runbill checklist"
"""What a terminal says below findings that are shown in short."""


class Line(NamedTuple):
    """A line and the columns that it stands in from the left."""

    indent: int
    text: str


def card(row: Mapping[str, Cell], section: Section, currency: str | None) -> Iterator[Line]:
    """The lines of a finding: what, whose and how much, remedy, guardrail and commands.

    A section that is ``short`` leaves out all but the essentials.
    """
    by_key = {column.key: column for column in section.columns}

    def shown(key: str) -> str:
        return cell(row.get(key), by_key[key]) if key in by_key else DASH

    yield Line(0, f"{shown('severity').upper()}  {shown('title')}  [{shown('status')}]")
    yield Line(2, ", ".join(_facts(row, section, currency)))
    yield Line(2, f"→ {shown('remedy')}")
    if section.short:
        return
    if row.get("guardrail"):
        yield Line(2, f"Guardrail: {shown('guardrail')}")
    commands = row.get("commands")
    if isinstance(commands, list | tuple):
        lines = (line for text in commands for line in str(text).splitlines())
        yield from (Line(4, visible(line)) for line in lines)


def _facts(row: Mapping[str, Cell], section: Section, currency: str | None) -> Iterator[str]:
    for column in section.columns:
        wanted = column.key in _ESSENTIAL if section.short else column.key not in _ELSEWHERE
        if not wanted or row.get(column.key) is None:
            continue
        unit = f" {currency}" if column.kind == "money" and currency else ""
        yield f"{column.title.lower()} {cell(row[column.key], column)}{unit}"
