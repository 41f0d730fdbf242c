"""When a slot was sampled, as one number: the samples of each scrape interval in it.

A slot of 15 minutes has ``count`` cells, as long as the usual interval each. A sample in the cell
that ends ``place`` intervals after the slot's start adds ``base ** (place % count)``, and all of
them ``base ** count``, so that a server tells both their number and their pattern in one float. The
digits add up to the number unless a cell holds ``base`` samples or more: then nothing is proven.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import polars as pl

from collector.prometheus.meters.slots import SLOT

_MOST = 2**53  # whole numbers that a float holds


@dataclass(frozen=True)
class Cells:
    """The cells of a slot.

    Args:
        interval: Length of a cell.
        base: Of the digits.
    """

    interval: timedelta
    base: int

    @property
    def count(self) -> int:
        """How many a slot has."""
        return SLOT // self.interval

    @property
    def regular(self) -> int:
        """What a slot shows that has one sample in each."""
        return (self._all - 1) // (self.base - 1) + self.count * self._all

    @property
    def _all(self) -> int:
        return int(self.base**self.count)

    def promql(self, selected: str, cell: str) -> str:
        """The pattern of the slot that ends at the time of the query.

        Args:
            selected: A selector without its range.
            cell: The range of an interval, ``[60s]``.
        """
        seconds = int(self.interval.total_seconds())
        place = f"{self.base} ^ ((time() % {SLOT.seconds}) / {seconds})"
        each = f"count_over_time({selected}{cell}) * ({place} + {self._all})"
        return f"sum_over_time(({each})[{SLOT.seconds - 1}s:{seconds}s])"

    def decode(self, pattern: pl.Expr) -> Sequence[pl.Expr]:
        """Columns of a pattern.

        Returns:
            ``samples`` Int64; ``first_cell``, ``last_cell`` Int64: cells, from 1 on, that hold any;
            ``widest`` Int64: the longest step from one of these to the next; ``crowded``: whether
            a cell holds several; ``sound``: whether the digits add up.
        """
        whole = pattern.cast(pl.Int64)
        digits = [
            whole % self._all // self.base ** (place % self.count) % self.base
            for place in range(1, self.count + 1)
        ]
        held = [
            pl.when(digit > 0).then(place + 1).cast(pl.Int64) for place, digit in enumerate(digits)
        ]
        widest: list[pl.Expr] = []
        before = held[0]
        for place in held[1:]:
            widest.append(place - before)
            before = pl.coalesce(place, before)
        samples = whole // self._all
        return (
            samples.alias("samples"),
            pl.coalesce(held).alias("first_cell"),
            pl.coalesce(held[::-1]).alias("last_cell"),
            pl.max_horizontal(pl.lit(0, pl.Int64), *widest).alias("widest"),
            pl.any_horizontal(digit > 1 for digit in digits).alias("crowded"),
            (pl.sum_horizontal(digits) == samples).alias("sound"),
        )


def cells_of(interval: timedelta) -> Cells | None:
    """The cells of a usual interval; None if a slot has no whole number of them, or too many."""
    if interval % timedelta(seconds=1) or SLOT % interval or interval > SLOT / 3:
        return None
    count = SLOT // interval
    for base in (4, 2):
        if 4 * count * base**count < _MOST:
            return Cells(interval, base)
    return None
