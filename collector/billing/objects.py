"""JSON objects (tags) as bills write them, to canonical text; each distinct text is read once."""

from __future__ import annotations

import json

import polars as pl

from ledger.text import canonical_json


def read_json(text: pl.Series) -> pl.Series:
    """Texts to canonical JSON objects: sorted keys, no blanks, keys and texts untouched.

    Read are an object, the inside of one without braces, and a list of ``{"key", "value"}``. A
    number with a point stays the text that it was.

    Args:
        text: Cells.

    Returns:
        Canonical text; null where the cell holds no object. An empty object is ``{}``.
    """
    distinct = text.drop_nulls().unique().sort()
    read = pl.DataFrame(
        {"text": distinct, "json": [canonical_object(cell) for cell in distinct]},
        schema={"text": pl.String, "json": pl.String},
    )
    return (
        text.alias("text")
        .to_frame()
        .join(read, on="text", how="left", maintain_order="left")["json"]
    )


def canonical_object(cell: str) -> str | None:
    """One JSON object in canonical form; None if it is none."""
    for candidate in (cell, f"{{{cell}}}"):
        try:
            data = json.loads(candidate, strict=False, parse_float=str, parse_constant=str)
        except (ValueError, RecursionError):
            continue
        if isinstance(data, list):
            data = _pairs(data)
        if isinstance(data, dict):
            return canonical_json(data)
    return None


def _pairs(entries: list[object]) -> dict[str, object] | None:
    pairs: dict[str, object] = {}
    for entry in entries:
        if not (isinstance(entry, dict) and {"key", "value"} <= entry.keys()):
            return None
        pairs[str(entry["key"])] = entry["value"]
    return pairs
