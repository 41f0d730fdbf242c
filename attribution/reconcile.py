"""The books must balance: the shares of every line add up to it, or the day is not written."""

from __future__ import annotations

import polars as pl

from ledger.errors import RunbillError


class ReconcileError(RunbillError):
    """Shares do not add up to their charge: a fault of ours, never of the input."""


def totals(shares: pl.DataFrame, columns: tuple[str, ...]) -> pl.DataFrame:
    """Add up the shares of each line.

    Args:
        shares: ``line`` and parts in ``columns``.
        columns: The amounts.

    Returns:
        ``line``, per amount ``sum_…`` of the known shares and ``none_…``, how many are unknown, and
        ``shares``, how many there are.
    """
    return shares.group_by("line").agg(
        *(pl.col(name).sum().alias(f"sum_{name}") for name in columns),
        *(pl.col(name).null_count().cast(pl.Int64).alias(f"none_{name}") for name in columns),
        pl.len().cast(pl.Int64).alias("shares"),
    )


def check(lines: pl.DataFrame, shares: pl.DataFrame, columns: tuple[str, ...]) -> None:
    """Compare each line and cost column with the sum of its shares (``compare``)."""
    compare(lines, totals(shares, columns), columns)


def compare(lines: pl.DataFrame, sums: pl.DataFrame, columns: tuple[str, ...]) -> None:
    """Compare each line and cost column with the sums of its shares.

    Args:
        lines: ``line`` and whole amounts in ``columns`` (``Int128`` units, null = unknown).
        sums: ``totals`` of all parts of the day, one below the other.
        columns: The amounts to compare.

    Raises:
        ReconcileError: A line has no share, a share has no line, or a sum differs. An unknown
            amount must be unknown in every share, a known one in none.
    """
    sums = sums.group_by("line").agg(pl.exclude("line").sum())
    both = lines.select("line", *columns).join(sums, on="line", how="full", coalesce=True)
    wrong = both.filter(
        pl.col("shares").is_null()
        | pl.any_horizontal(
            pl.when(pl.col(name).is_null())
            .then(pl.col(f"none_{name}") != pl.col("shares"))
            .otherwise((pl.col(f"none_{name}") > 0) | (pl.col(f"sum_{name}") != pl.col(name)))
            for name in columns
        )
    )
    if not wrong.is_empty():
        raise ReconcileError(
            f"{wrong.height} bill lines do not equal the sum of their shares",
            "nothing of the day was written; please report this",
        )
