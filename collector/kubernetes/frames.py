"""From rows to frames: one row per day and part of a life, in the form of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from typing import Any

import polars as pl

from ledger.schema import Table
from ledger.window import Window

Row = dict[str, Any]


def days_of(
    start: datetime, end: datetime, window: Window
) -> Iterator[tuple[date, datetime, datetime]]:
    """The days of the window that an interval touches, each with the part inside it."""
    start, end = max(start, window.start), min(end, window.end)
    if start >= end:
        return
    for day in Window(start, end).days():
        whole = Window.of_day(day)
        yield day, max(start, whole.start), min(end, whole.end)


def frame(table: Table, rows: Iterable[Row]) -> pl.DataFrame:
    """Rows as a frame in the table's form, without its source column, in the order of its key.

    Args:
        table: The table.
        rows: Values by column; a column that a row lacks is null.
    """
    schema = {name: dtype for name, dtype in table.schema.items() if name != table.source_column}
    order: Sequence[str] = ("day", *table.key)
    return pl.DataFrame(list(rows), schema=schema, orient="row").sort(order)
