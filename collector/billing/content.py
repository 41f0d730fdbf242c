"""What a line says beyond the known columns, and the hash of all that it says."""

from __future__ import annotations

import json
from hashlib import blake2b

import polars as pl

from collector.billing.columns import OTHER, TIME_COLUMNS
from collector.billing.sheet import ROW, json_of

CONTENT = "content"
"""Column of the hash of what a line says."""


def other_columns(rows: pl.DataFrame) -> pl.Expr:
    """Columns that the table does not know, as one JSON object without the empty ones."""
    names = sorted(name for name in rows.columns if name.startswith(OTHER))
    if not names:
        return pl.lit(None, pl.String).alias("x_Other")
    pairs = [_pair(name.removeprefix(OTHER), pl.col(name)) for name in names]
    body = pl.concat_str(pairs, separator=",", ignore_nulls=True)
    known = pl.any_horizontal(pl.col(name).is_not_null() for name in names)
    return pl.when(known).then(pl.concat_str(pl.lit("{"), body, pl.lit("}"))).alias("x_Other")


def _pair(key: str, cell: pl.Expr) -> pl.Expr:
    label = json.dumps(key, ensure_ascii=False) + ":"
    return pl.when(cell.is_not_null()).then(pl.concat_str(pl.lit(label), json_of(cell)))


def content_text(rows: pl.DataFrame) -> pl.Series:
    """What each line says: ``Name=value`` of its cells, by name, without the empty ones.

    The same in any file, row order, column order and format; a column that the table does not know
    today counts as it would if the table knew it.
    """
    names = sorted((name.removeprefix(OTHER), name) for name in rows.columns if name != ROW)
    cells: list[pl.Expr] = []
    for label, name in names:
        value = pl.col(name).to_physical() if name in TIME_COLUMNS else pl.col(name)
        parts = [pl.lit(f"\x1f{label}="), value]
        nulls = rows[name].null_count()
        if nulls == 0:
            cells += parts
        elif nulls < rows.height:
            cells.append(pl.concat_str(parts))  # null where the value is
    return rows.with_columns(pl.concat_str(cells, ignore_nulls=True).alias(CONTENT))[CONTENT]


def content_hash(texts: pl.Series) -> pl.Series:
    """blake2b of each text: a hash of polars may differ from one version to the next."""
    hashes = [blake2b(text, digest_size=12).hexdigest() for text in texts.cast(pl.Binary).to_list()]
    return pl.Series(CONTENT, hashes, dtype=pl.String)
