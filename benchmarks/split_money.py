"""The exact largest-remainder split at scale: 5 million charges, 4 claims each."""

from __future__ import annotations

import time
from typing import Any

import polars as pl

from ledger.money import split

CHARGES = 5_000_000
CLAIMS = 4
TARGET_SECONDS = 30.0


def bench() -> dict[str, Any]:
    """Wall-clock seconds of the split, and whether every charge is the sum of its parts."""
    frame = claims()
    start = time.perf_counter()
    parts = split(
        frame.lazy(), group=["charge"], amounts=["cost"], weight="weight", order=["claim"]
    ).collect()
    seconds = time.perf_counter() - start
    return {
        "seconds": round(seconds, 2),
        "charges": CHARGES,
        "claims": CLAIMS,
        "rows_per_second": round(parts.height / seconds),
        "exact": exact(frame, parts),
        "target_seconds": TARGET_SECONDS,
        "met": seconds < TARGET_SECONDS,
    }


def claims() -> pl.DataFrame:
    """One row per charge and claim: amounts up to 1,000 in units of 1e-12, awkward weights."""
    row = pl.int_range(CHARGES * CLAIMS, dtype=pl.Int64)
    charge = row // CLAIMS
    return pl.select(
        charge=charge,
        claim=row % CLAIMS,
        cost=(charge * 7_919_123_457 % 1_000_000_000_000_007).cast(pl.Int128),
        weight=row * 104_729 % 900_007,
    )


def exact(frame: pl.DataFrame, parts: pl.DataFrame) -> bool:
    """Whether the parts of every charge add up to it."""
    whole = frame.lazy().group_by("charge").agg(pl.col("cost").first())
    added = parts.lazy().group_by("charge").agg(parts=pl.col("cost").sum(), rows=pl.len())
    wrong = (pl.col("parts") != pl.col("cost")) | (pl.col("rows") != CLAIMS)
    compared = whole.join(added, on="charge", how="full").select(
        off=wrong.fill_null(value=True).sum()
    )
    return int(compared.collect().item()) == 0
