"""The peer of attribution: the same day joined by hand in DuckDB (``peer_attribution.sql``)."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
from polars.testing import assert_frame_equal

TABLES = ("nodes", "workloads", "usage", "charges")
"""The facts that the peer reads."""

SCRIPT = Path(__file__).with_name("peer_attribution.sql")
_FIGURES = (
    "BilledCost",
    "EffectiveCost",
    "ContractedCost",
    "ListCost",
    "ActiveCost",
    "gpu_seconds",
)
LEFT_OUT = {"path", "x_PriceSource", "confidence", "requested", "used"}
"""Columns of ours that the peer does not work out: they say how sure we are, or nothing here."""


def attribute(facts: Path, result: Path, threads: int = 2) -> None:
    """Attribute a day from Parquet to Parquet.

    Args:
        facts: A folder of ``TABLE-*.parquet``.
        result: A folder for ``costs.parquet`` and ``daily.parquet``.
        threads: Threads of DuckDB.
    """
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {threads}")
        connection.execute("SET TimeZone = 'UTC'")
        for table in TABLES:
            files = facts / f"{table}-*.parquet"
            connection.execute(f"CREATE VIEW {table} AS FROM read_parquet('{files}')")
        connection.execute(SCRIPT.read_text(encoding="utf-8"))
        for table, name in (("costs", "costs"), ("costs_daily", "daily")):
            connection.execute(f"COPY {table} TO '{result / name}.parquet' (COMPRESSION lz4_raw)")


def compare(ours: Path, theirs: Path, parts: int = 1) -> int:
    """Assert that two results are equal: all common columns of ``costs`` and ``costs_daily``.

    Args:
        ours: A folder of ``costs-*.parquet`` and ``daily.parquet``.
        theirs: A folder of ``costs.parquet`` and ``daily.parquet``.
        parts: In how many parts, by node, to compare, to save memory.

    Returns:
        The number of rows of ``costs``.

    Raises:
        AssertionError: They differ.
    """
    rows = 0
    for left, right in (("costs-*", "costs"), ("daily", "daily")):
        frames = [
            pl.scan_parquet(folder / f"{name}.parquet")
            for folder, name in ((ours, left), (theirs, right))
        ]
        schema, known = (frame.collect_schema() for frame in frames)
        lacking = {name for name in schema if name not in known and not name.endswith("_unknown")}
        if not lacking <= LEFT_OUT:
            raise AssertionError(f"the peer lacks {sorted(lacking - LEFT_OUT)}")
        names = [name for name in schema if name in known]
        keys = [name for name in names if name not in _FIGURES]
        for part in range(parts):
            mine = pl.col("node").fill_null("").hash() % parts == part
            first, second = (
                frame.filter(mine)
                .select(pl.col(name).cast(schema[name]) for name in names)
                .sort(keys, nulls_last=True)
                .collect()
                for frame in frames
            )
            assert_frame_equal(first, second)
            rows += first.height if right == "costs" else 0
    return rows
