"""Findings as a few lines each: a table of them would be wider than any screen."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cli.document import Cell, Section
from cli.render.series import SPECIAL
from cli.render.text import DASH, cell, lines, visible

MORE = "In full, with commands: "
"""What a terminal says below findings that are shown in short, before the command."""


class Line(NamedTuple):
    """A line, the columns that it stands in from the left, and whether it is to be copied whole."""

    indent: int
    text: str
    verbatim: bool = False


def card(row: Mapping[str, Cell], section: Section, currency: str | None) -> Iterator[Line]:
    """The lines of a finding: what, how much, whose, remedy; in full also evidence and commands.

    A section that is ``short`` leaves out all but the essentials.
    """
    by_key = {column.key: column for column in section.columns}

    def shown(key: str, label: str = "", unit: str = "") -> str | None:
        if key not in by_key or row.get(key) is None:
            return None
        return f"{label}{cell(row[key], by_key[key])}{unit}"

    def line(indent: int, *parts: str | None) -> Iterator[Line]:
        told = [part for part in parts if part]
        if told:
            yield Line(indent, ", ".join(told))

    unit = f" {row.get('currency') or currency or ''}".rstrip()
    head = f"{(shown('severity') or DASH).upper()}  {shown('title') or DASH}"
    yield Line(0, f"{head}  [{shown('status') or DASH}]")
    within = f"{unit} in {shown('spent_in')}" if shown("spent_in") else unit
    yield from line(
        2, shown("spent", "spent ", within), shown("saving_per_month", "saves ", f"{unit} a month")
    )
    if row.get("spent") is None:
        yield from line(2, shown("method", "no figure: "))
    yield from line(2, shown("resource"), *(shown(key, f"{key} ") for key in _named(row)))
    if not section.short:
        yield from line(
            2,
            shown("rule", "rule "),
            shown("basis"),
            shown("confidence", unit=" confidence"),
            shown("first_seen", "first seen "),
        )
        yield from (Line(4, f"· {text}") for text in lines(row.get("evidence")))
        if row.get("spent") is not None:
            yield from line(2, shown("method", "Money: "))
    yield from line(2, shown("remedy", "→ "))
    if not section.short:
        yield from line(2, shown("guardrail", "Guardrail: "))
        yield from _commands(row.get("commands"))


def _named(row: Mapping[str, Cell]) -> Iterator[str]:
    """Whose it is; a special target is nobody."""
    return (key for key in ("owner", "experiment") if row.get(key) not in SPECIAL)


def folded(line: Line, width: int) -> Iterator[str]:
    """A line as lines of at most that width with a hanging indent; no word is broken.

    A word that is longer than that stays whole, as does a command.
    """
    inner = " " * line.indent
    if line.verbatim:
        return iter([f"{inner}{line.text}"])
    found = textwrap.wrap(
        line.text,
        width,
        initial_indent=inner,
        subsequent_indent=f"{inner}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return iter(found or [inner])


def _commands(commands: Cell) -> Iterator[Line]:
    if isinstance(commands, list | tuple):
        found = (line for text in commands for line in str(text).splitlines())
        yield from (Line(4, visible(line), verbatim=True) for line in found)
