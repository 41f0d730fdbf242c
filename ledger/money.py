"""Money: ``Decimal(38, 12)`` outside, whole units of 1e-12 (``Int128``) inside, and exact splits.

A float never holds a sum of money. A charge is split by integer weights and rounded by largest
remainder, so that the parts add up to the charge exactly
(``docs/decisions/0001-exact-shares.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from ledger.schema import MONEY

SCALE = 12
UNITS = 10**SCALE
"""Units of 1e-12 in one whole of a currency."""

_UNIT = pl.lit(Decimal("0.000000000001"), dtype=MONEY)


def to_units(money: pl.Expr) -> pl.Expr:
    """``Decimal(38, 12)`` to whole units of 1e-12 as ``Int128``, exactly."""
    # Decimal × 10^12 in one step would leave 38 digits for amounts above 1e14, so whole currency
    # and the fraction are scaled apart.
    whole = money.cast(pl.Decimal(38, 0))
    fraction: pl.Expr = (money - whole.cast(MONEY)) * UNITS
    return fraction.cast(pl.Int128).add(whole.cast(pl.Int128).mul(UNITS))


def from_units(units: pl.Expr) -> pl.Expr:
    """Whole units of 1e-12 (``Int128``) to ``Decimal(38, 12)``; exact up to 38 digits."""
    size = units.abs()
    money = (size // UNITS).cast(MONEY) + (size % UNITS).cast(MONEY) * _UNIT
    return pl.when(units < 0).then(0 - money).otherwise(money)


def split(
    frame: pl.LazyFrame,
    *,
    group: Sequence[str],
    amounts: Sequence[str],
    weight: str,
    order: Sequence[str],
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

    Returns:
        The same rows (sorted by ``group`` and ``order``) and columns; ``amounts`` hold the parts.
        Parts of an unknown amount are null.
    """
    schema = frame.collect_schema()
    parts = {name: pl.Int128() for name in amounts}
    return frame.sort([*group, *order], nulls_last=True).map_batches(
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
    runs = _Runs.of(rows.select(pl.struct(*group).rle_id()).to_series())
    share = rows[weight].cast(pl.Int128).fill_null(0)
    total = runs.spread(runs.sums(share))
    even = total == 0
    share = share.zip_with(~even, pl.ones(rows.height, pl.Int128, eager=True))
    total = total.zip_with(~even, runs.spread(runs.lengths.cast(pl.Int128)))
    return rows.with_columns(
        _parts(rows[amount].cast(pl.Int128), share, total, runs).alias(amount) for amount in amounts
    )


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


def _parts(amount: pl.Series, share: pl.Series, total: pl.Series, runs: _Runs) -> pl.Series:
    """The parts of one amount column; null where the amount is null."""
    work = pl.DataFrame({"amount": amount, "share": share, "total": total}).with_columns(
        pl.col("amount").abs().fill_null(0).alias("size")
    )
    product = (pl.col("size") % pl.col("total")) * pl.col("share")
    work = work.with_columns(
        ((pl.col("size") // pl.col("total")) * pl.col("share") + product // pl.col("total")).alias(
            "part"
        ),
        (product % pl.col("total")).cast(pl.Int64).alias("rest"),
    )
    size_of_group = work["size"].gather(runs.starts)
    left = (size_of_group - runs.sums(work["part"])).cast(pl.Int64)
    winners = _largest_remainders(work["rest"], left, runs)
    extra = pl.zeros(work.height, pl.Int64, eager=True).scatter(winners, 1)
    part = pl.col("part") + extra.cast(pl.Int128)
    return work.select(
        pl.when(pl.col("amount") < 0).then(0 - part).when(pl.col("amount").is_not_null()).then(part)
    ).to_series()


def _largest_remainders(rest: pl.Series, left: pl.Series, runs: _Runs) -> pl.Series:
    """Positions of the rows that get one more unit: in each group the ``left`` largest rests."""
    ranked = (
        pl.DataFrame({"rest": rest, "group": runs.ids, "left": runs.spread(left)})
        .with_row_index("row")
        .filter(pl.col("left") > 0)
        # Stable: equal remainders keep the order of the rows, which is the tie-break order.
        .sort("group", "rest", descending=[False, True], maintain_order=True)
    )
    if ranked.is_empty():
        return ranked["row"]
    groups = _Runs.of(ranked["group"].rle_id())
    rank = pl.int_range(ranked.height, eager=True) - groups.spread(groups.starts)
    return ranked.filter(rank < ranked["left"])["row"]
