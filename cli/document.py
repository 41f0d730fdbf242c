"""The one result model: what a command says, before any format.

A command makes a ``Document``; a renderer is a pure function of it. ``data`` is the JSON document
that other programs read, the sections are the same content as tables for people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

SCHEMA_VERSION = "1"

Cell = object  # str, Decimal, int, float, bool, date, datetime, tuple of str (lines) or None
Kind = Literal["text", "money", "number", "ratio"]
Tone = Literal["good", "bad", "warn", "plain"]


@dataclass(frozen=True)
class Column:
    """A column of a section.

    Args:
        key: Key of the cells in the rows, and base of the CSV header.
        title: Heading for people.
        kind: ``money`` (Decimal in the section's currency), ``number``, ``ratio`` (0 to 1, shown
            as per cent) or ``text``.
        unit: Unit that the CSV header names; money names its currency by itself.
        known: Key of the share (0 to 1) of the row for which the figure is known: people see it
            where it is below 1, and the CSV has it beside the figure.
    """

    key: str
    title: str
    kind: Kind = "text"
    unit: str | None = None
    known: str | None = None


@dataclass(frozen=True)
class Bars:
    """Stacked bars beside the rows of a section: one bar per row, one value per series.

    Args:
        title: What the bars show.
        series: Names of the series, in order.
        values: Per row, the values by series in the same order; all ≥ 0.
        unit: Unit of the values, e.g. ``USD``.
    """

    title: str
    series: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    unit: str


@dataclass(frozen=True)
class Section:
    """One table of a document.

    Args:
        key: Stable name.
        title: Heading.
        columns: Columns, in order.
        rows: Cells by column key.
        empty: The sentence that stands for an empty table in the formats for people.
        note: A sentence below the table.
        bars: Bars beside the rows (HTML).
        tone: The column whose text colours a row: finding, failed → bad; unknown, gaps → warn.
        brief: Whether the terminal shows it without ``--verbose``.
        half: Whether a page may set it beside the next one.
        shown: Rows that a page shows at once, the rest folded.
        short: Whether the terminal leaves out all but the essentials of each finding.
        more: The command that shows what ``short`` leaves out.
    """

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Cell], ...]
    empty: str = "nothing"
    note: str | None = None
    bars: Bars | None = None
    tone: str | None = None
    brief: bool = True
    half: bool = False
    shown: int = 50
    short: bool = False
    more: str = "runbill checklist"

    @property
    def caption(self) -> str:
        """What the table holds, for readers who do not see the heading."""
        count = len(self.rows)
        return f"{self.title}: {count} {'row' if count == 1 else 'rows'}"


@dataclass(frozen=True)
class Tile:
    """A headline figure.

    Args:
        label: What it is.
        value: The figure, ready to read.
        detail: A smaller line below it.
        tone: Whether it is good news.
        unit: What follows the figure, e.g. its currency.
    """

    label: str
    value: str
    detail: str = ""
    tone: Tone = "plain"
    unit: str = ""

    @property
    def figure(self) -> str:
        """The value and its unit."""
        return f"{self.value} {self.unit}" if self.unit else self.value


@dataclass(frozen=True)
class Document:
    """What a command answers.

    Args:
        kind: Name of the document type; ``docs/schemas/<kind>.json`` describes ``data``.
        title: Heading for people.
        data: The JSON document: only str, int, float, bool, None, lists and dicts.
        tiles: Headline figures, among them window and coverage.
        sections: The tables; the first is the one that CSV holds.
        currency: Currency of the money columns.
        remarks: Closing lines for people, e.g. where a file was written.
    """

    kind: str
    title: str
    data: Mapping[str, object]
    tiles: tuple[Tile, ...] = ()
    sections: tuple[Section, ...] = ()
    currency: str | None = None
    remarks: tuple[str, ...] = field(default=())


def envelope(kind: str, **fields: object) -> dict[str, object]:
    """The head that every JSON document shares, and its fields."""
    return {"schema_version": SCHEMA_VERSION, "kind": kind, **fields}


def plain(section_rows: Sequence[Mapping[str, Cell]]) -> list[dict[str, Cell]]:
    """Rows as plain dictionaries, for JSON."""
    return [dict(row) for row in section_rows]
