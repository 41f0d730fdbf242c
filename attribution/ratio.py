"""Integer arithmetic of shares: half-even division and milliseconds of the day."""

from __future__ import annotations

import polars as pl

HOUR = 3_600_000
DAY = 24 * HOUR
"""Lengths in milliseconds, the unit of all times inside a day's attribution."""

KIB_PER_GIB = 2**20


def divide(number: pl.Expr, by: pl.Expr) -> pl.Expr:
    """``number / by`` rounded half-even, as ``Int128``; ``by`` is positive."""
    size = number.cast(pl.Int128).abs()
    divisor = by.cast(pl.Int128)
    quotient = size // divisor
    twice = (size % divisor) * 2
    up = (twice > divisor) | ((twice == divisor) & (quotient % 2 == 1))
    rounded = quotient + up.cast(pl.Int128)
    return pl.when(number < 0).then(0 - rounded).otherwise(rounded)


def worth(amount: pl.Expr, rate: pl.Expr, per: int) -> pl.Expr:
    """Money of an amount times milliseconds at an hourly rate, in units of 1e-12.

    Args:
        amount: Integer amount × milliseconds.
        rate: Money units per hour of ``per`` of the amount's unit.
        per: 1000 for millicores, 2^20 for KiB, 1 for cards.
    """
    return divide(
        amount.cast(pl.Int128) * rate.cast(pl.Int128), pl.lit(per * HOUR, dtype=pl.Int128)
    )


def milliseconds(time: str) -> pl.Expr:
    """A time column as milliseconds since the epoch."""
    return pl.col(time).dt.timestamp("ms")
