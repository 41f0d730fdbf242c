"""Moving amounts from rows to groups, exactly: the parts add up to what was moved."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from attribution.query.place import STATE
from attribution.query.rows import FIGURES
from ledger.money import split

MOVED = ("cost", "effective", "active", "dark_size")
"""Amounts that travel. Card-hours and use stay: they are of who held the cards."""

_ROOM = 2**62
_CLASS = ("x_Basis", "trust")


def sources(rows: pl.DataFrame, place: Sequence[str]) -> pl.DataFrame:
    """What leaves rows, per place, evidence and trust.

    Returns:
        ``place``, ``source`` (a number), ``x_Basis, trust``, ``MOVED``, ``known``, ``dark``.
    """
    sums = rows.group_by(*place, *_CLASS).agg(
        pl.col(MOVED).sum(), pl.col("known").sum(), pl.col("dark").sum()
    )
    return sums.sort(*place, *_CLASS).with_row_index("source")


def weights(amount: pl.Expr, over: str | Sequence[str]) -> pl.Expr:
    """Costs of the claims of a place as weights: whole numbers ≥ 0 that leave room to multiply.

    What costs less than nothing (a credit above its usage) takes no part, unless nothing of the
    place costs more. They are scaled down, in the same way for all of a place, only where they are
    too large.
    """
    above = pl.max_horizontal(amount, pl.lit(0))
    below = pl.max_horizontal(0 - amount, pl.lit(0))
    size = pl.when((amount > 0).any().over(over)).then(above).otherwise(below)
    step = size.sum().over(over) // _ROOM + 1
    return (size // step).cast(pl.Int64)


def spread(
    moved: pl.DataFrame, claims: pl.DataFrame, on: str, finer: pl.DataFrame | None
) -> pl.DataFrame:
    """Split what is moved over claims by weight, then each part over the rows of its claim.

    In two steps, so that no filter changes what a group gets.

    Args:
        moved: ``sources`` by the place ``on``.
        claims: ``on, gid, weight``.
        on: The column of places.
        finer: ``on, gid, shown, policy, weight``; None if all rows of a group are alike.

    Returns:
        The parts as rows: ``STATE`` (policy of the row that receives) and ``FIGURES``.
    """
    amounts = [name for name in MOVED if (moved[name] != 0).any()]
    same = "effective" in amounts and moved["effective"].equals(moved["cost"], null_equal=True)
    if same:  # usually: the cost that is asked for is the effective one
        amounts.remove("effective")
    parts = split(
        moved.join(claims.select(on, "gid", "weight"), on=on).lazy(),
        group=["source"],
        amounts=amounts,
        weight="weight",
        order=["gid"],
    ).collect()
    if finer is None:
        parts = parts.with_columns(
            pl.lit(True).alias("shown"),
            pl.lit(None, dtype=pl.Int32).alias("policy"),
        )
    else:
        parts = split(
            parts.drop("weight").join(finer, on=[on, "gid"]).lazy(),
            group=["source", "gid"],
            amounts=amounts,
            weight="weight",
            order=["shown", "policy"],
        ).collect()
    if same:
        parts = parts.with_columns(pl.col("cost").alias("effective"))
    return as_rows(parts)


def as_rows(parts: pl.DataFrame) -> pl.DataFrame:
    """Parts with ``gid, shown, policy`` as rows; of each, what it is not said to have is none."""
    sums = parts.group_by("gid", "shown", "policy", "x_Basis", "trust").agg(
        *(pl.col(name).sum() for name in MOVED),
        pl.col("cost").abs().sum().alias("size"),
        pl.col("effective").abs().sum().alias("effective_size"),
        (pl.col("known") > 0).sum().cast(pl.Int64).alias("known"),
        (pl.col("dark") > 0).sum().cast(pl.Int64).alias("dark"),
    )
    rows = sums.with_columns(pl.lit(False).alias(name) for name in ("deferred", "receives"))
    return rows.select(
        *STATE,
        *(pl.col(name) if name in rows.columns else pl.lit(0).alias(name) for name in FIGURES),
    )


def emptied(rows: pl.DataFrame) -> pl.DataFrame:
    """What stays of rows whose amounts have moved: what of them is not known."""
    left = rows.filter((pl.col("unknown") > 0) | (pl.col("dark_unknown") > 0))
    kept = ("unknown", "dark", "dark_unknown")
    return left.with_columns(
        pl.lit(0, dtype=rows.schema[name]).alias(name) for name in FIGURES if name not in kept
    )


def together(*rows: pl.DataFrame) -> pl.DataFrame:
    """Rows below each other, with the types of the first."""
    first = rows[0].select(*STATE, *FIGURES)
    return pl.concat(
        [first, *(each.select(*STATE, *FIGURES).cast(first.schema) for each in rows[1:])]
    )
