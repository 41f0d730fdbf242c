"""JSON texts of table columns, in the canonical form that ``ledger.text`` gives."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl


def quoted(text: pl.Expr) -> pl.Expr:
    """A text as a JSON string; names and reasons hold no control characters."""
    escaped = text.str.replace_all("\\", "\\\\", literal=True).str.replace_all(
        '"', '\\"', literal=True
    )
    return pl.format('"{}"', escaped)


def number(value: pl.Expr) -> pl.Expr:
    """A number as JSON, a whole one without a fraction."""
    whole = value.round().cast(pl.Int64, strict=False)
    return pl.when(value == whole).then(whole.cast(pl.String)).otherwise(value.cast(pl.String))


def truth(value: pl.Expr) -> pl.Expr:
    """A Boolean as JSON."""
    return pl.when(value).then(pl.lit("true")).when(~value).then(pl.lit("false"))


def moment(time: pl.Expr) -> pl.Expr:
    """A time as a JSON string, to the second: ``"2026-11-30T08:00:00Z"``."""
    return time.dt.strftime('"%Y-%m-%dT%H:%M:%SZ"')


def moment_of(seconds: pl.Expr) -> pl.Expr:
    """Seconds since 1970 as a JSON string; null where there are none."""
    return moment(pl.from_epoch(seconds.round().cast(pl.Int64), time_unit="s"))


def json_object(values: Mapping[str, pl.Expr]) -> pl.Expr:
    """An object of JSON values by key; keys without a value are left out.

    Args:
        values: Key to its JSON text.
    """
    pieces = [
        pl.when(text.is_not_null()).then(pl.concat_str(pl.lit(f'"{key}":'), text))
        for key, text in sorted(values.items())
    ]
    return _braced(pl.concat_str(pieces, separator=",", ignore_nulls=True))


def gathered(frame: pl.DataFrame, by: list[str], key: str, text: str, name: str) -> pl.DataFrame:
    """JSON objects made of rows.

    Args:
        frame: ``by``, ``key`` and ``text``.
        by: What one object is about.
        key: Column of its keys, unique in it.
        text: Column of their values as JSON.
        name: The column of the objects.

    Returns:
        ``by`` and ``name``.
    """
    piece = pl.concat_str(quoted(pl.col(key)), pl.lit(":"), pl.col(text))
    return (
        frame.drop_nulls([key, text])
        .sort(*by, key, nulls_last=True)
        .group_by(by, maintain_order=True)
        .agg(piece.str.join(",").alias(name))
        .with_columns(_braced(pl.col(name)).alias(name))
    )


def _braced(text: pl.Expr) -> pl.Expr:
    return pl.concat_str(pl.lit("{"), text, pl.lit("}"))
