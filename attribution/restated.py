"""What a day's restatement says to a reader: old, new and difference per experiment."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ledger.money import from_units, to_units
from ledger.schema import RESTATEMENTS
from ledger.store import Ledger
from ledger.window import Window


def difference() -> pl.Expr:
    """``new - old`` of rows of ``restatements``; a figure that was not there counts as 0."""
    old, new = (to_units(pl.col(name)).fill_null(0) for name in ("old", "new"))
    return from_units(new - old).alias("difference")


def restatement_notes(restated: pl.DataFrame) -> Iterator[str]:
    """A line per experiment and currency that changed.

    Args:
        restated: Rows of ``restatements`` of one day and one version of its inputs.
    """
    rows = restated.with_columns(difference()).sort("BillingCurrency", "experiment")
    for row in rows.iter_rows(named=True):
        old, new = (_plain(row[name]) for name in ("old", "new"))
        yield (
            f"restated ({row['why']}): {row['experiment']} {old} -> {new} "
            f"{row['BillingCurrency']}, difference {_plain(row['difference'])}"
        )


def _plain(value: object) -> str:
    """A decimal without trailing zeros; none where there was no figure."""
    if value is None:
        return "none"
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def standing(ledger: Ledger, window: Window, restated: pl.DataFrame, inputs: str) -> pl.DataFrame:
    """The restatement that led to a day's present figures: this run's, or an earlier one's.

    Args:
        ledger: The ledger.
        window: The day.
        restated: What this run changed.
        inputs: Digest of the inputs of the present figures.
    """
    if not restated.is_empty():
        return restated
    return ledger.scan(RESTATEMENTS, window).filter(pl.col("inputs") == inputs).collect()
