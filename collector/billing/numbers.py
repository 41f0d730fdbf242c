"""Numbers as bills write them: from text to ``Decimal(38, 12)`` without a float between.

The cast of polars reads E notation and rounds half-even, exactly (property-tested).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal

import polars as pl

from collector.billing.sheet import NULL_WORDS
from ledger.schema import MONEY

BAD_NUMBER, TOO_LARGE = "bad_number", "too_large"

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_SYMBOL = r"[$€£¥₩]"
_THOUSANDS = r"^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$"
_FINE = pl.Decimal(38, 30)
_FINE_DIGITS = 30


@dataclass(frozen=True)
class Numbers:
    """A column of numbers, read.

    Args:
        plain: The cells as plain text; null words and empty cells are null.
        values: ``Decimal(38, 12)``, rounded half-even; null where there is none.
        faults: ``bad_number`` or ``too_large`` for a cell that is not null and has no value.
    """

    plain: pl.Series
    values: pl.Series
    faults: pl.Series


def read_numbers(text: pl.Series) -> Numbers:
    """Texts to numbers: ``1.81E-8``, ``"$10,000.00 "`` (10000) and ``(1.50)`` (-1.50) alike.

    A comma is a thousands mark where it stands between groups of three digits, else a fault.
    """
    values = text.cast(MONEY, strict=False)
    odd = text.is_not_null() & values.is_null()
    if not odd.any():
        return Numbers(text, values, pl.repeat(None, text.len(), dtype=pl.String, eager=True))
    plain = (
        text.to_frame("text")
        .select(pl.when(odd).then(_bare(pl.col("text"))).otherwise(pl.col("text")))
        .to_series()
    )
    values = plain.cast(MONEY, strict=False)
    fault = (
        pl.when(pl.col("text").str.contains(_NUMBER))
        .then(pl.lit(TOO_LARGE))
        .otherwise(pl.lit(BAD_NUMBER))
    )
    unread = plain.is_not_null() & values.is_null()
    faults = plain.to_frame("text").select(pl.when(unread).then(fault)).to_series()
    return Numbers(plain, values, faults)


def _bare(cell: pl.Expr) -> pl.Expr:
    bare = (
        cell.str.strip_chars()
        .str.replace(r"^\((.*)\)$", "-$1")
        .str.replace(rf"^([+-]?)\s*{_SYMBOL}\s*", "$1")
        .str.replace(rf"\s*{_SYMBOL}$", "")
    )
    grouped = pl.when(bare.str.contains(_THOUSANDS)).then(bare.str.replace_all(",", ""))
    return pl.when(~bare.is_in([*NULL_WORDS, ""])).then(grouped.otherwise(bare))


def rounding_residue(plain: pl.Series, values: pl.Series) -> Decimal:
    """What rounding to 1e-12 took away: Σ text - Σ value, exactly (up to 5,000 digits).

    Args:
        plain: ``Numbers.plain``.
        values: ``Numbers.values`` of the same cells; those without a value do not count.
    """
    text, value = pl.col("text"), pl.col("value")
    deep = pl.DataFrame({"text": plain, "value": values}).filter(
        value.is_not_null() & text.str.contains(r"[eE]|\.\d{13}")
    )
    if deep.is_empty():
        return Decimal(0)
    exponent = text.str.extract(r"[eE]\+?(-?\d+)").cast(pl.Int64)
    decimals = text.str.extract(r"\.(\d*)").str.len_bytes().cast(pl.Int64).fill_null(0)
    fine = text.cast(_FINE, strict=False) - value.cast(_FINE, strict=False)
    exact = (decimals - exponent.fill_null(0) <= _FINE_DIGITS) & fine.is_not_null()
    deep = deep.with_columns(fine=fine, exact=exact)
    rest = deep.filter(~pl.col("exact"))
    context = Context(prec=5000)
    total = deep.filter("exact").select(pl.col("fine").sum()).item() or Decimal(0)
    # Only amounts with more than 30 decimals, or above 10^8 with more than 12, come this way.
    for written, kept in rest.select("text", "value").iter_rows():
        total = context.add(total, context.subtract(Decimal(written), kept))
    return total.normalize(context) if total else Decimal(0)
