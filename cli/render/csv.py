"""CSV: the first section of a document; units stand in the header, window in every row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence

from cli.document import Cell, Column, Document, Section
from cli.render.text import scalar

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_DIGITS = 6  # of hours and ratios: what follows is noise of binary fractions
_TRAILER = ("window_start", "window_end", "coverage")


def to_csv(documents: Sequence[Document]) -> str:
    """UTF-8 text with ``\\n`` line ends; documents of several currencies share one header."""
    rows = [row for document in documents for row in _rows(document)]
    names = list(dict.fromkeys(name for document in documents for name in _header(document)))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _header(document: Document) -> list[str]:
    columns = _columns(document.sections[0]) if document.sections else ()
    names = [column_name(column, document.currency) for column in columns]
    return names + [name for name in _trailer(document) if name not in names]


def column_name(column: Column, currency: str | None) -> str:
    """The CSV header of a column: its key and its unit."""
    unit = currency.lower() if column.kind == "money" and currency else column.unit
    return f"{column.key}_{unit}" if unit else column.key


def _columns(section: Section) -> Iterator[Column]:
    """The columns, each with the share of it that is known beside it."""
    for column in section.columns:
        yield column
        if column.known:
            yield Column(column.known, column.known, "ratio")


def _rows(document: Document) -> list[dict[str, str]]:
    if not document.sections:
        return []
    section = document.sections[0]
    trailer = _trailer(document)
    return [
        {
            column_name(column, document.currency): _cell(row.get(column.key), column)
            for column in _columns(section)
        }
        | trailer
        for row in section.rows
    ]


def _trailer(document: Document) -> dict[str, str]:
    """Window and lowest coverage, repeated per row: a CSV has no other place for them."""
    window, coverage = document.data.get("window"), document.data.get("coverage")
    if not isinstance(window, Mapping):
        return {}
    ratios = (
        [
            entry["ratio"]
            for entry in coverage
            if isinstance(entry, Mapping) and entry.get("ratio") is not None
        ]
        if isinstance(coverage, list)
        else []
    )
    values = (window.get("start"), window.get("end"), min(ratios, default=None))
    return {
        name: "" if value is None else scalar(value)
        for name, value in zip(_TRAILER, values, strict=True)
    }


def _cell(value: Cell, column: Column) -> str:
    if value is None:
        return ""
    text = scalar(round(value, _DIGITS) if isinstance(value, float) else value)
    if column.kind == "text" and text.startswith(_FORMULA):
        return f"'{text}"
    return text
