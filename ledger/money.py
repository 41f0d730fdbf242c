"""Money: ``Decimal(38, 12)`` outside, whole units of 1e-12 (``Int128``) inside, and exact splits.

A float never holds a sum of money. A charge is split by integer weights and rounded by largest
remainder, so that the parts add up to the charge exactly
(``docs/decisions/0001-exact-shares.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import polars as pl

from ledger.schema import MONEY

SCALE = 12
UNITS = 10**SCALE
"""Units of 1e-12 in one whole of a currency."""


def to_units(money: pl.Expr) -> pl.Expr:
    """``Decimal(38, 12)`` to whole units of 1e-12 as ``Int128``, exactly: what it is made of."""
    return money.cast(MONEY).reinterpret(dtype=pl.Int128)


def from_units(units: pl.Expr) -> pl.Expr:
    """Whole units of 1e-12 (``Int128``) to ``Decimal(38, 12)``; exact up to 38 digits."""
    return units.cast(pl.Int128).reinterpret(dtype=MONEY)


def split(
    frame: pl.LazyFrame,
    *,
    group: Sequence[str],
    amounts: Sequence[str],
    weight: str,
    order: Sequence[str],
    ordered: bool = False,
) -> pl.LazyFrame:
    """Split each group's amounts over its rows by weight, exactly, by largest remainder.

    ``amount = q · W + r``; a row gets ``q · w + floor(r · w / W)``, and the units that are left go
    one each to the rows with the largest remainders of ``r · w / W``. The sign of a negative amount
    (a credit) is kept: its parts are those of the positive amount, negated.

    Args:
        frame: One row per (group, claim). ``weight`` is an integer ≥ 0; the weights of a group add
            up to less than 2^63. Each of ``amounts`` (``Int128`` units) holds the *whole* amount of
            the group, repeated on each of its rows; null means unknown.
        group: Columns that tell the groups apart; null is a value like any other.
        amounts: Columns to split, each on its own.
        weight: Column of weights. A group whose weights are all 0 is split evenly.
        order: Columns that decide between equal remainders; unique inside a group.
        ordered: Whether the rows lie in this order already, groups together: spares a sort.

    Returns:
        The same rows (sorted by ``group`` and ``order``) and columns; ``amounts`` hold the parts.
        Parts of an unknown amount are null.
    """
    schema = frame.collect_schema()
    parts = {name: pl.Int128() for name in amounts}
    rows = frame if ordered else frame.sort([*group, *order], nulls_last=True)
    return rows.map_batches(
        lambda rows: _split_sorted(rows, group, amounts, weight),
        schema={**schema, **parts},
        streamable=False,
    )


def _split_sorted(
    rows: pl.DataFrame, group: Sequence[str], amounts: Sequence[str], weight: str
) -> pl.DataFrame:
    """``split`` for rows that lie in groups already.

    Works with positions (a group is a run of rows) instead of window expressions: sums are
    differences of a running sum, which is several times faster when there are millions of groups.
    """
    if rows.is_empty():
        return rows.with_columns(pl.col(*amounts).cast(pl.Int128)) if amounts else rows
    one = rows[group[0]] if len(group) == 1 else rows.select(pl.struct(*group)).to_series()
    runs = _Runs.of(one.rle_id())
    share = rows[weight].cast(pl.Int128).fill_null(0)
    total = runs.sums(share)
    even = total == 0
    if even.any():
        share = share.zip_with(~runs.spread(even), pl.ones(rows.height, pl.Int128, eager=True))
        total = total.zip_with(~even, runs.lengths.cast(pl.Int128))
    claims = _Claims(runs, share, total, runs.spread(total))
    return rows.with_columns(_parts(rows[amount], claims).alias(amount) for amount in amounts)


_SMALL = 12
"""Rows up to which a group is small."""


@dataclass(frozen=True)
class _Runs:
    """Consecutive rows of one group: which group each row is in, and where each group lies."""

    ids: pl.Series
    lengths: pl.Series
    starts: pl.Series
    ends: pl.Series

    @classmethod
    def of(cls, ids: pl.Series) -> _Runs:
        lengths = ids.rle().struct.field("len").cast(pl.Int64)
        ends = lengths.cum_sum()
        return cls(ids, lengths, ends - lengths, ends)

    def spread(self, per_group: pl.Series) -> pl.Series:
        """A value per group, repeated on each of its rows."""
        return per_group.gather(self.ids)

    def sums(self, values: pl.Series) -> pl.Series:
        """Sum of each group; values without nulls."""
        last = values.cum_sum().gather(self.ends - 1)
        return last - last.shift(1, fill_value=0)


@dataclass(frozen=True)
class _Claims:
    """The weights of the rows, and of each group their sum, also repeated on its rows."""

    runs: _Runs
    share: pl.Series
    total: pl.Series
    of_group: pl.Series


def _parts(amount: pl.Series, claims: _Claims) -> pl.Series:
    """The parts of one amount column; null where the amount is null."""
    runs = claims.runs
    whole = pl.DataFrame(
        {"amount": amount.cast(pl.Int128).gather(runs.starts), "total": claims.total}
    ).with_columns(pl.col("amount").abs().fill_null(0).alias("size"))
    whole = whole.with_columns((pl.col("size") // pl.col("total")).alias("each"))
    rest = pl.col("size") - pl.col("each") * pl.col("total")
    whole = whole.select("amount", "each", rest.alias("rest"))
    work = pl.DataFrame(
        {"share": claims.share, "total": claims.of_group}
        | {name: runs.spread(whole[name]) for name in ("each", "rest")}
    )
    product = pl.col("rest") * pl.col("share")
    work = work.with_columns((product // pl.col("total")).alias("more"))
    work = work.select(
        (pl.col("each") * pl.col("share") + pl.col("more")).alias("part"),
        "more",
        (product - pl.col("more") * pl.col("total")).cast(pl.Int64).alias("rest"),
    )
    left = (whole["rest"] - runs.sums(work["more"])).cast(pl.Int64)
    part = work["part"] + _one_more(work["rest"], left, runs).cast(pl.Int128)
    if not whole.select(pl.col("amount").is_null().any() | (pl.col("amount") < 0).any()).item():
        return part
    signed = pl.DataFrame({"amount": runs.spread(whole["amount"]), "part": part})
    return signed.select(
        pl.when(pl.col("amount") < 0)
        .then(0 - pl.col("part"))
        .when(pl.col("amount").is_not_null())
        .then("part")
    ).to_series()


def _one_more(rest: pl.Series, left: pl.Series, runs: _Runs) -> pl.Series:
    """Whether a row gets one more unit: in each group the ``left`` largest rests do.

    Equal rests go in the order of the rows. In small groups, which nearly all are, each row is held
    against those beside it, which needs no sort.
    """
    small = runs.lengths <= _SMALL
    rows = pl.DataFrame({"rest": rest, "group": runs.ids, "left": runs.spread(left)})
    if small.all():
        return _by_neighbours(rows, cast("int", runs.lengths.max()))
    rows = rows.with_row_index("row").with_columns(runs.spread(small).alias("small"))
    few, many = rows.filter("small"), rows.filter(~pl.col("small") & (pl.col("left") > 0))
    one = pl.zeros(rows.height, pl.Boolean, eager=True)
    return one.scatter(few["row"].filter(_by_neighbours(few, _SMALL)), True).scatter(
        _by_order(many), True
    )


def _by_neighbours(rows: pl.DataFrame, longest: int) -> pl.Series:
    """Whether fewer than ``left`` rows of the group come before the row."""
    rest, group = pl.col("rest"), pl.col("group")
    none = 2**32 - 1
    before = [
        (group.shift(step, fill_value=none) == group) & (rest.shift(step, fill_value=0) >= rest)
        for step in range(1, longest)
    ]
    after = [
        (group.shift(-step, fill_value=none) == group) & (rest.shift(-step, fill_value=0) > rest)
        for step in range(1, longest)
    ]
    rank = pl.sum_horizontal(
        pl.lit(0, dtype=pl.Int64), *(ahead.cast(pl.UInt8) for ahead in before + after)
    )
    return rows.select((rank < pl.col("left")).alias("more")).to_series()


def _by_order(rows: pl.DataFrame) -> pl.Series:
    """Positions of the ``left`` largest rests of each group."""
    # Stable: equal remainders keep the order of the rows, which is the tie-break order.
    ranked = rows.sort("group", "rest", descending=[False, True], maintain_order=True)
    if ranked.is_empty():
        return ranked["row"]
    groups = _Runs.of(ranked["group"].rle_id())
    rank = pl.int_range(ranked.height, eager=True) - groups.spread(groups.starts)
    return ranked.filter(rank < ranked["left"])["row"]
