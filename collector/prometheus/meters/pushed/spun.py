"""Samples of cards that only spin, found by the server; see ``spinning`` for what that is.

Activity, tensor and memory activity that bear the same labels, the scraped target among them, are
of one scrape and of one time; at the end of each slot that is checked. The server looks at the end
of each cell for a sample of each in it and tells those that count 0. Of slots in which only some
do, the samples are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import polars as pl

from collector.prometheus.meters.cards import KEPT
from collector.prometheus.meters.pushed.asking import Asker
from collector.prometheus.meters.pushed.cells import Cells
from collector.prometheus.meters.slots import SLOT, slot_of, statistics
from collector.prometheus.meters.spinning import STILL
from ledger.window import Window

CARDS = 250
"""Cards that are named in one question."""

QUESTIONS = 24
"""So many questions for samples of slots in which only some count 0; beyond, nodes are read."""

_KEY = ["series", "slot"]


@dataclass(frozen=True)
class Gate:
    """What tells whether a busy card works.

    Args:
        active: Selector of how busy cards are.
        compute: Selector of tensor activity.
        memory: Selector of memory activity.
        cell: The range of a cell.
        cells: The cells.
    """

    active: str
    compute: str
    memory: str
    cell: str
    cells: Cells

    @classmethod
    def of(cls, asker: Asker, compute: str, memory: str, cells: Cells) -> Gate:
        """The gate of a series, by the names of the others."""
        rest = asker.push.matcher(asker.only)
        cell = asker.push.span(cells.interval)
        return cls(asker.selected, compute + rest, memory + rest, cell, cells)

    @property
    def spun(self) -> str:
        """Samples that count 0, if the card draws no power."""
        return (
            f"{self._now(self.active)} > 0 and {self._now(self.compute)} < {STILL}"
            f" and {self._now(self.memory)} < {STILL}"
        )

    @property
    def apart(self) -> str:
        """Samples of one cell that are not of one time."""
        active = self._stamp(self.active)
        each = (f"({self._stamp(other)} != {active})" for other in (self.compute, self.memory))
        return f"({' or '.join(each)})"

    def _now(self, selector: str) -> str:
        return f"last_over_time({selector}{self.cell})"

    def _stamp(self, selector: str) -> str:
        seconds = int(self.cells.interval.total_seconds())
        return f"(timestamp({selector}) > (time() - {seconds}))"


def counted(rows: pl.DataFrame, spun: pl.DataFrame) -> pl.DataFrame:
    """Add ``still``: how many samples of a slot count 0; statistics are 0 where all do.

    Args:
        rows: Slots: ``series``, ``slot``, ``samples`` and statistics.
        spun: ``series``, ``time``: the ends of cells whose sample counts 0.
    """
    still = spun.group_by("series", slot_of("time").alias("slot")).agg(
        still=pl.len().cast(pl.Int64)
    )
    rows = rows.join(still, on=_KEY, how="left", maintain_order="left").with_columns(
        pl.col("still").fill_null(0)
    )
    zero = pl.when((pl.col("still") > 0) & (pl.col("still") == pl.col("samples"))).then(0.0)
    return rows.with_columns(zero.otherwise(name).alias(name) for name in KEPT)


def mixed() -> pl.Expr:
    """Whether only some samples of a slot count 0."""
    return (pl.col("still") > 0) & (pl.col("still") != pl.col("samples"))


def spans(rows: pl.DataFrame) -> Iterator[tuple[Window, list[str]]]:
    """The samples to ask for: spans of whole slots, and at most ``CARDS`` cards in each.

    Args:
        rows: ``slot`` and ``card`` of the slots in which only some samples count 0.
    """
    names: dict[str, None] = {}
    start = end = None
    for (slot,), group in rows.sort("slot").group_by("slot", maintain_order=True):
        cards = group["card"].unique().sort().to_list()
        for low in range(0, len(cards), CARDS):
            some = cards[low : low + CARDS]
            if start is not None and end is not None and len({*names, *some}) > CARDS:
                yield Window(start, end), list(names)
                names, start = {}, None
            start = slot if start is None else start
            end = slot + SLOT
            names |= dict.fromkeys(some)
    if start is not None and end is not None:
        yield Window(start, end), list(names)


def without(
    rows: pl.DataFrame,
    spun: pl.DataFrame,
    samples: pl.DataFrame,
    window: Window,
    interval: timedelta,
) -> pl.DataFrame:
    """Statistics of slots in which some samples count 0; ``good`` false where not all are known.

    Args:
        rows: Of ``counted``, with ``good``.
        spun: ``series``, ``time``: the ends of cells whose sample counts 0.
        samples: ``series``, ``time``, ``value``: of these slots at least.
        window: All slots.
        interval: Length of a cell.
    """
    cell = (pl.col("time") - timedelta(microseconds=1)).dt.truncate(interval) + interval
    zeros = spun.select("series", cell="time", zero=pl.lit(value=True)).unique()
    cells = (
        samples.with_columns(slot=slot_of("time"), cell=cell)
        .unique(["series", "time"], keep="first", maintain_order=True)
        .join(rows.filter(mixed()).select(_KEY), on=_KEY, how="semi")
        .join(zeros, on=["series", "cell"], how="left")
        .with_columns(value=pl.when("zero").then(0.0).otherwise("value"))
    )
    hit = cells.group_by(_KEY).agg(hit=pl.col("zero").sum())
    made = statistics(cells.select("series", "time", "value"), ["series"], window).rename(
        {name: f"{name}_made" for name in (*KEPT, "samples")}
    )
    told = rows.join(made, on=_KEY, how="left", maintain_order="left").join(
        hit, on=_KEY, how="left", maintain_order="left"
    )
    whole = (pl.col("samples_made") == pl.col("samples")) & (pl.col("hit") == pl.col("still"))
    return told.with_columns(
        *[pl.when(mixed()).then(f"{name}_made").otherwise(name).alias(name) for name in KEPT],
        good=pl.col("good") & (~mixed() | whole.fill_null(value=False)),
    ).select(rows.columns)
