"""Samples of cards that only spin, found by the server; see ``spinning`` for what that is.

Activity, tensor and memory activity are of one exporter: they bear the same labels and the same
times. The server looks at the end of each cell for a sample of each in it; where the times differ,
nothing is proven.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from collector.prometheus.pushed.asking import Asker
from collector.prometheus.pushed.cells import Cells
from collector.prometheus.slots import SLOT, slot_of, statistics
from collector.prometheus.spinning import STILL
from ledger.window import Window

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
            f"({self._now(self.active)} > 0 and {self._now(self.compute)} < {STILL}"
            f" and {self._now(self.memory)} < {STILL})"
        )

    @property
    def apart(self) -> str:
        """Samples of one cell that are not of one time."""
        active = self._stamp(self.active)
        return " or ".join(
            f"({self._stamp(other)} != {active})" for other in (self.compute, self.memory)
        )

    @property
    def partly(self) -> dict[str, str]:
        """Per cell: samples that count 0, and all, where not all for two slots around do."""
        step, slot = int(self.cells.interval.total_seconds()), SLOT.seconds
        near = 2 * slot - 2 * step  # a slot before and after the cell, and itself
        around = (
            f"count_over_time(({self.spun})[{near + step - 1}s:{step}s] offset -{slot - step}s)"
        )
        mixed = f"({around} < {near // step + 1})"
        return {
            "spun": f"({self.spun} and {mixed})",
            "all": f"({self._now(self.active)} and {mixed})",
        }

    def _now(self, selector: str) -> str:
        return f"last_over_time({selector}{self.cell})"

    def _stamp(self, selector: str) -> str:
        seconds = int(self.cells.interval.total_seconds())
        return f"(timestamp({selector}) > (time() - {seconds}))"


def without(
    rows: pl.DataFrame, spun: pl.DataFrame, every: pl.DataFrame, window: Window
) -> pl.DataFrame:
    """Statistics with 0 for samples that only spin; ``good`` false where they are not all known.

    Args:
        rows: Slots, with ``still``: how many samples only spin (null = none), ``samples``, the
            statistics and ``good``.
        spun: ``series``, ``time``, ``value`` of cells that only spin, where not all around do.
        every: The same of all cells there.
        window: All slots.
    """
    parts = ("mean", "min", "max", "p50", "p99", "last")
    nothing = (pl.col("still") > 0) & (pl.col("still") == pl.col("samples"))
    rows = rows.with_columns(
        pl.when(nothing).then(0.0).otherwise(name).alias(name) for name in parts
    )
    mixed = (pl.col("still") > 0) & ~nothing
    if not rows.select(mixed.any()).item():
        return rows
    slots = rows.filter(mixed).select(*_KEY, wanted="samples", zeros="still")
    cells = every.join(
        spun.select("series", "time", zero=pl.lit(value=True)), on=["series", "time"], how="left"
    ).with_columns(slot=slot_of("time"), zero=pl.col("zero").fill_null(value=False))
    cells = cells.join(slots, on=_KEY, how="semi").with_columns(
        value=pl.when("zero").then(0.0).otherwise("value")
    )
    zeros = cells.group_by(_KEY).agg(pl.col("zero").sum())
    made = statistics(cells.select("series", "time", "value"), ["series"], window).rename(
        {name: f"{name}_made" for name in (*parts, "samples")}
    )
    told = rows.join(made, on=_KEY, how="left", maintain_order="left").join(
        zeros, on=_KEY, how="left", maintain_order="left"
    )
    whole = (pl.col("samples_made") == pl.col("samples")) & (pl.col("zero") == pl.col("still"))
    return told.with_columns(
        *[pl.when(mixed).then(f"{name}_made").otherwise(name).alias(name) for name in parts],
        good=pl.col("good") & (~mixed | whole.fill_null(value=False)),
    ).select(rows.columns)
