"""A digest of a day's rows that does not depend on their order."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import date

import polars as pl

_SEEDS = (0x5275_6E62, 0x696C_6C21)


def digests(tables: Mapping[str, pl.DataFrame]) -> dict[date, str]:
    """Digest per day of the rows of all tables.

    Each row is hashed as a whole and the hashes are added up (modulo 2^64, with two seeds), so that
    equal sets of rows give equal digests in any order. Row hashes are those of the installed
    polars: an upgrade may change them, which costs one more attribution and changes no figure.

    Args:
        tables: Frames with a ``day`` column, by table name.

    Returns:
        32 hexadecimal digits per day that has rows.
    """
    parts: dict[date, list[str]] = {}
    for name, frame in sorted(tables.items()):
        columns = sorted(frame.columns)
        sums = (
            frame.select(
                "day",
                *(
                    frame.select(columns).hash_rows(seed=seed).alias(f"h{i}")
                    for i, seed in enumerate(_SEEDS)
                ),
            )
            .group_by("day")
            .agg(pl.len().cast(pl.Int64), pl.col("h0", "h1").reinterpret(signed=True).sum())
        )
        for day, *figures in sums.iter_rows():
            parts.setdefault(day, []).append(f"{name}:{figures}")
    return {
        day: hashlib.sha256("|".join(texts).encode()).hexdigest()[:32]
        for day, texts in parts.items()
    }
