"""The figures of the rows of an answer."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from attribution import efficiency
from ledger.money import UNITS, from_units


def figures() -> dict[str, pl.Expr]:
    """Aggregations of rows (``rows.FIGURES``) into what a row of an answer says."""
    bright = (pl.col("dark").sum() == 0) | _little(pl.col("dark_size"), "effective_size") & (
        pl.col("dark_unknown").sum() == 0
    )
    effective, dark = (
        pl.col(name).sum().cast(pl.Float64) for name in ("effective_size", "dark_size")
    )
    low = pl.col("trust") == "low"
    sure = ~low.any() | _little(pl.col("size").filter(low), "size", below=True)
    # What costs nothing and moves nothing has no evidence to show.
    evidence = pl.col("x_Basis")
    single = pl.when(evidence.n_unique() == 1).then(evidence.first())
    return {
        "cost": from_units(pl.when(pl.col("known").sum() > 0).then(pl.col("cost").sum())),
        "active_cost": from_units(pl.when(bright).then(pl.col("active").sum())),
        "active_cost_known_share": pl.when(effective != 0).then(1 - dark / effective),
        "gpu_hours": pl.col("card").sum().cast(pl.Float64) / (3600 * UNITS),
        "efficiency": efficiency.figures()["efficiency"],
        "basis": single.otherwise(pl.lit("mixed")),
        "unknown": pl.col("unknown").sum(),
        "confidence": pl.when(sure).then(pl.lit("high")).otherwise(pl.lit("low")),
    }


def grouped(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Rows of an answer, in order of cost, largest first.

    Args:
        rows: The grouping keys, ``x_Basis``, ``trust`` and ``rows.FIGURES``.
        by: The keys; ``basis`` and ``confidence`` may be among them.
    """
    wanted = {name: figure for name, figure in figures().items() if name not in by}
    found = rows.group_by(by).agg(figure.alias(name) for name, figure in wanted.items())
    return in_order(found, by).select(*by, *wanted)


def in_order(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Rows by cost, largest first, unknown ones last."""
    return rows.sort("cost", *by, descending=[True, *(False for _ in by)], nulls_last=True)


def _little(part: pl.Expr, whole: str, *, below: bool = False) -> pl.Expr:
    """Whether a part is at most (``below``: less than) 1 % of a whole that is not 0; exact."""
    parts, every = part.sum() * 100, pl.col(whole).sum()
    return (every > 0) & (parts < every if below else parts <= every)
