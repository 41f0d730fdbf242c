"""The ledger as documents: its tables, their columns, and how days were closed."""

from __future__ import annotations

import json
from difflib import get_close_matches

from cli.document import Column, Document, Section, Tile, envelope, plain
from ledger.errors import UsageError
from ledger.schema import CLOSES, COVERAGE, TABLES
from ledger.store import Ledger
from ledger.window import Window

_CLOSE_COLUMNS = (
    Column("day", "Day"),
    Column("stage", "Stage"),
    Column("source", "Source"),
    Column("status", "Status"),
    Column("coverage", "Coverage", "ratio"),
    Column("rows", "Rows", "number"),
    Column("quarantined", "Put aside", "number"),
    Column("gaps", "Gaps"),
    Column("version", "Version"),
)

_COVERAGE_COLUMNS = (
    Column("source", "Source"),
    Column("node", "Node"),
    Column("meter", "Meter"),
    Column("seen", "Samples seen", "number"),
    Column("expected", "Expected", "number"),
    Column("ratio", "Coverage", "ratio"),
    Column("silent", "Silent", "number"),
    Column("things", "Of", "number"),
)


def tables_document() -> Document:
    """Every table of the ledger: what a row is, its key and partition."""
    rows = tuple(
        {
            "table": table.name,
            "row": table.doc,
            "columns": len(table.columns),
            "partition": ", ".join(table.partition),
            "key": ", ".join(table.key),
        }
        for table in TABLES.values()
    )
    columns = (
        Column("table", "Table"),
        Column("row", "A row is"),
        Column("columns", "Columns", "number"),
        Column("partition", "Partition"),
        Column("key", "Key"),
    )
    return Document(
        "ledger-schema",
        "Tables of the ledger",
        envelope("ledger-schema", tables=plain(rows)),
        sections=(Section("tables", "Tables", columns, rows),),
    )


def columns_document(name: str) -> Document:
    """The columns of a table.

    Raises:
        UsageError: There is no such table.
    """
    table = TABLES.get(name)
    if table is None:
        near = get_close_matches(name, TABLES, 1)
        raise UsageError(
            f"there is no table {name!r}",
            f"did you mean {near[0]}" if near else f"tables: {', '.join(TABLES)}",
        )
    rows = tuple(
        {
            "column": key,
            "type": str(column.dtype),
            "required": column.required,
            "meaning": column.doc,
        }
        for key, column in table.columns.items()
    )
    columns = (
        Column("column", "Column"),
        Column("type", "Type"),
        Column("required", "Required"),
        Column("meaning", "Meaning"),
    )
    return Document(
        "ledger-schema",
        f"{table.name}: {table.doc}",
        envelope("ledger-schema", table=table.name, columns=plain(rows)),
        sections=(Section("columns", "Columns", columns, rows),),
    )


def history_document(ledger: Ledger, window: Window | None) -> Document:
    """The ``closes`` rows of a window, or all."""
    found = ledger.scan(CLOSES, window).sort("day", "stage", "source").collect()
    rows = tuple(
        {
            **row,
            "gaps": "; ".join(
                f"{gap['reason']}: {gap['detail']}" for gap in json.loads(row["gaps"] or "[]")
            )
            or None,
        }
        for row in found.select([column.key for column in _CLOSE_COLUMNS]).iter_rows(named=True)
    )
    days = found["day"].unique()
    shown = window.as_dict() if window else None
    tiles = (Tile("Window", str(window) if window else "all days"), Tile("Days", str(len(days))))
    section = Section(
        "closes",
        "How days were closed",
        _CLOSE_COLUMNS,
        rows,
        empty="no day was closed in this window",
        tone="status",
    )
    return Document(
        "ledger-history",
        "History of the ledger",
        envelope("ledger-history", window=shown, closes=plain(rows)),
        tiles,
        (section,),
    )


def coverage_document(ledger: Ledger, window: Window | None, *, by_node: bool) -> Document:
    """Samples seen over samples expected, per source and meter, or per node as well.

    ``silent`` and ``things`` count a card, pod or node once on each day.
    """
    import polars as pl

    keys = ["source", "node", "meter"] if by_node else ["source", "meter"]
    counts = ("seen", "expected", "silent", "things")
    found = (
        ledger.scan(COVERAGE, window)
        .group_by(keys)
        .agg(pl.col(*counts).sum())
        .with_columns(
            ratio=pl.when(pl.col("expected") > 0).then(pl.col("seen") / pl.col("expected"))
        )
        .sort("ratio", *keys, nulls_last=True)
        .collect()
    )
    rows = tuple(found.iter_rows(named=True))
    shown = window.as_dict() if window else None
    columns = tuple(column for column in _COVERAGE_COLUMNS if by_node or column.key != "node")
    section = Section(
        "coverage",
        "Samples seen over samples expected, the least first",
        columns,
        rows,
        empty="no series were collected in this window",
        note="A silent card, pod or node is one that no sample was seen of; per day.",
    )
    return Document(
        "ledger-coverage",
        "What was seen",
        envelope("ledger-coverage", window=shown, coverage=plain(rows)),
        (Tile("Window", str(window) if window else "all days"),),
        (section,),
    )
