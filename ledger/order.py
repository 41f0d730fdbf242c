"""Rows in order of many text columns, where sorting by all of them would take the longest time."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

_RANK = "rank of the texts"


def ordered(frame: pl.DataFrame, texts: Sequence[str], times: Sequence[str] = ()) -> pl.DataFrame:
    """The rows sorted by some columns of few distinct values, then by others; nulls first.

    Millions of rows share some thousands of combinations of names. These are sorted instead, and
    the rows by the number of theirs: a third of the time, and much less memory.

    Args:
        frame: The rows.
        texts: Columns to sort by first.
        times: Columns to sort by then.
    """
    known = frame.select(texts).unique().sort(texts).with_row_index(_RANK)
    ranks = frame.select(texts).join(
        known, on=list(texts), how="left", nulls_equal=True, maintain_order="left"
    )[_RANK]
    keys = frame.select(ranks, *times)
    return frame[keys.select(pl.arg_sort_by(_RANK, *times)).to_series()]
