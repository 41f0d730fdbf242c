"""Cards that are busy and do nothing: kernels that spin, and jobs that hang.

A sample of activity counts 0

- where tensor and memory activity are both known and both below ``STILL``: a communication kernel
  that spins keeps a card busy and does nothing. Decoding is bound by memory: little tensor activity
  with much memory activity is work. So is what draws at least ``AT_WORK`` of the power limit, such
  as plain floating point in cache;
- where these are not known of the card, and a series that tells no more than that anything runs at
  all says at least ``FULL``, while the card draws less than ``RESTING`` of its power limit: 100 %
  busy at 70 W of 700 is a hang (NVIDIA/nccl#968, horovod/horovod#3611).

Evidence that is missing moves nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import polars as pl

from collector.prometheus.meters.places import Placed
from collector.prometheus.samples.clean import Cleaned
from collector.prometheus.series.card_series import POWER, POWER_LIMIT, Measure
from collector.prometheus.series.metric import Series

STILL = 0.01
FULL = 0.9
RESTING = 0.2
AT_WORK = 0.5
_DEVICE = ["node", "device"]


class Sources(Protocol):
    """What the series beside activity are read from."""

    def ratio(self, series: Series) -> Placed | None:
        """A series as values 0 to 1."""
        ...

    def plain(self, series: Series) -> Placed | None:
        """A series in its own unit."""
        ...

    def spun(self, cards: int) -> None:
        """So many cards were busy and did nothing for some time."""
        ...


def without_spinning(measure: Measure, sources: Sources, read: Placed) -> Cleaned:
    """The activity with 0 for samples of cards that only spin.

    Args:
        measure: What kind of activity it is.
        sources: Where other series of the cards are read.
        read: Its samples, values 0 to 1.
    """
    compute = sources.ratio(measure.compute) if measure.compute else None
    memory = sources.ratio(measure.memory) if measure.memory else None
    power = _power(sources) if measure.compute else None
    gated = compute is not None and memory is not None
    if not gated and (power is None or not measure.coarse):
        return read.cleaned
    cards = read.placed.select(_DEVICE).unique().sort(_DEVICE).with_row_index("spot")
    busy = _at(read, cards, pl.col("value") > 0, "ident", "value").sort("time", "spot")
    none = busy.clear().select("spot", "time")
    still, known = none, none.select("spot")
    if compute is not None and memory is not None:
        idle = pl.col("value") < STILL
        still = _both(_at(compute, cards, idle), _at(memory, cards, idle), _reach(compute, memory))
        known = _spots(compute, cards).join(_spots(memory, cards), on="spot")
    working = none if power is None else _at(power, cards, pl.col("value") >= AT_WORK)
    resting = none if power is None else _at(power, cards, pl.col("value") < RESTING)
    reach = _reach(read, *(one for one in (compute, memory, power) if one is not None))
    for name, marks in (("still", still), ("working", working), ("resting", resting)):
        busy = _mark(busy, marks, name, reach)
    busy = busy.join(known.with_columns(known=pl.lit(value=True)), on="spot", how="left")
    hung = (
        pl.col("known").is_null() & pl.col("resting") & (pl.col("value") >= FULL)
        if measure.coarse
        else pl.lit(value=False)
    )
    spun = busy.filter((pl.col("still") & ~pl.col("working")) | hung)
    if spun.is_empty():
        return read.cleaned
    sources.spun(spun["spot"].n_unique())
    zero = spun.select("ident", "time", nothing=pl.lit(0.0))
    samples = (
        read.cleaned.samples.join(zero, on=["ident", "time"], how="left", maintain_order="left")
        .with_columns(value=pl.coalesce("nothing", "value"))
        .drop("nothing")
    )
    return replace(read.cleaned, samples=samples)


def _power(sources: Sources) -> Placed | None:
    """Power as a part of each card's limit, where both are known."""
    limit = sources.plain(POWER_LIMIT)
    power = sources.plain(POWER) if limit is not None else None
    if limit is None or power is None:
        return None
    most = (
        limit.cleaned.samples.join(limit.placed.select("meaning", *_DEVICE), on="meaning")
        .group_by(_DEVICE)
        .agg(most=pl.col("value").max())
        .filter(pl.col("most") > 0)
    )
    limits = power.placed.join(most, on=_DEVICE, nulls_equal=True).select("meaning", "most")
    samples = power.cleaned.samples.join(limits, on="meaning", maintain_order="left")
    parts = samples.with_columns(value=pl.col("value") / pl.col("most")).drop("most")
    return Placed(replace(power.cleaned, samples=parts), power.placed)


def _places(read: Placed, cards: pl.DataFrame) -> pl.DataFrame:
    """``meaning`` to ``spot``, the number of its card."""
    return read.placed.join(cards, on=_DEVICE, nulls_equal=True).select("meaning", "spot")


def _spots(read: Placed, cards: pl.DataFrame) -> pl.DataFrame:
    return _places(read, cards).select("spot").unique()


def _at(read: Placed, cards: pl.DataFrame, which: pl.Expr, *more: str) -> pl.DataFrame:
    """The times of the samples that fit, by card."""
    rows = read.cleaned.samples.filter(which).join(_places(read, cards), on="meaning")
    return rows.select("spot", "time", *more)


def _reach(*series: Placed) -> str:
    """Less than half of the shortest interval: how far apart two samples of one moment may be."""
    shortest = min(one.cleaned.interval for one in series)
    return f"{int(shortest.total_seconds() * 1e6) // 2}us"


def _both(left: pl.DataFrame, right: pl.DataFrame, reach: str) -> pl.DataFrame:
    marked = _mark(left.sort("time", "spot"), right, "both", reach)
    return marked.filter("both").select("spot", "time")


def _mark(rows: pl.DataFrame, marks: pl.DataFrame, name: str, reach: str) -> pl.DataFrame:
    """Add a flag: whether the card has a mark near the time; ``rows`` sorted by time."""
    if marks.is_empty():
        return rows.with_columns(pl.lit(value=False).alias(name))
    flags = marks.unique().sort("time", "spot").with_columns(pl.lit(value=True).alias(name))
    return rows.join_asof(
        flags, on="time", by="spot", strategy="nearest", tolerance=reach, check_sortedness=False
    ).with_columns(pl.col(name).fill_null(value=False))
