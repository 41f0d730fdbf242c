"""How cells read: figures for people, and text that cannot act on a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from datetime import date, datetime
from decimal import ROUND_HALF_EVEN, Decimal

from cli.document import Cell, Column
from ledger.window import iso

CENT = Decimal("0.01")
DASH = "–"


def visible(text: str) -> str:
    """Text on one line: control and bidi characters become escapes, so none can act."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in unicodedata.normalize("NFC", text)
    )


def money(value: Decimal) -> str:
    """Money for people: thousands, two decimals; below a cent two figures, so none reads as 0."""
    if value and abs(value) < CENT:
        return f"{Decimal(f'{value:.2g}').normalize():f}"
    return f"{value.quantize(CENT, ROUND_HALF_EVEN):,}"


def cell(value: Cell, column: Column) -> str:
    """A cell for people; an unknown value is a dash, never a zero."""
    if value is None:
        return DASH
    if column.kind == "money" and isinstance(value, Decimal):
        return money(value)
    if column.kind == "ratio" and isinstance(value, int | float | Decimal):
        return percent(float(value))
    if column.kind == "number" and isinstance(value, float):
        return f"{value:,.1f}"
    if column.kind == "number" and isinstance(value, int):
        return f"{value:,}"
    return visible(scalar(value))


def figure(row: Mapping[str, Cell], column: Column) -> str:
    """The cell of a row for people, marked where the figure is known for a part of it only."""
    text = cell(row.get(column.key), column)
    known = row.get(column.known) if column.known else None
    if isinstance(known, int | float | Decimal) and 0 < known < 1:
        return f"{text} ({percent(float(known))} known)"
    return text


def percent(ratio: float) -> str:
    """A share as per cent; never rounded up to 100 or to 0."""
    text = f"{ratio * 100:.1f}"
    if text == "100.0" and ratio < 1:
        return "<100 %"
    if text in ("0.0", "-0.0") and ratio:
        return ">0 %" if ratio > 0 else "<0 %"
    return f"{text} %"


def scalar(value: Cell) -> str:
    """A value as exact text: decimals plain, times in ISO 8601, lines with a bar between them."""
    if isinstance(value, datetime):
        return iso(value) if value.tzinfo else value.isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        return " | ".join(map(scalar, value))
    return str(value)


def lines(value: Cell) -> list[str]:
    """The lines of a cell that holds several, safe to show."""
    return [visible(str(line)) for line in value] if isinstance(value, tuple | list) else []


def heading(column: Column, currency: str | None) -> str:
    """The heading of a column for people, with the currency of money."""
    return f"{column.title} ({currency})" if column.kind == "money" and currency else column.title
