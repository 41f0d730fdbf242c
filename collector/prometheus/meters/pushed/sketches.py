"""What a server tells of each series and slot, put side by side, and what that proves.

A sketch has a row per series and slot with samples: their number and pattern, between which times
they lie, and the statistics asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import polars as pl

from collector.prometheus.meters.pushed.cells import Cells
from collector.prometheus.meters.slots import SLOT, seconds
from collector.prometheus.samples.chains import HOLE

KEY = ["series", "slot"]


def sketch(grids: Mapping[str, pl.DataFrame], cells: Cells) -> pl.DataFrame:
    """Answers as columns.

    Args:
        grids: By name: ``series``, ``slot``, ``value``. ``pattern`` has only slots that are not
            regular; ``at`` is the Unix time of the last sample, at least of these.
        cells: How patterns are read.

    Returns:
        ``series``, ``slot``, a column per answer but ``pattern``; those of ``Cells.decode``;
        ``low``, ``high``: samples lie in (low, high]; sorted by series and slot.
    """
    keys = pl.concat([grid.select(KEY) for grid in grids.values()]).unique().sort(KEY)
    rows = keys
    for name, grid in grids.items():
        rows = rows.join(grid.rename({"value": name}), on=KEY, how="left", maintain_order="left")
    pattern = pl.col("pattern").fill_null(cells.regular)
    known = pattern.is_finite() & (pattern >= 0) & (pattern < 2**53)
    rows = rows.with_columns(known=known, pattern=pl.when(known).then(pattern).otherwise(0.0))
    told = rows.with_columns(*cells.decode(pl.col("pattern")))
    exact = (pl.col("at") * 1000).round().cast(pl.Int64)
    at = exact.cast(pl.Datetime("ms")).dt.replace_time_zone("UTC").cast(rows.schema["slot"])
    inside = (pl.col("at") > pl.col("slot")) & (pl.col("at") <= pl.col("slot") + SLOT)
    end = pl.col("slot") + pl.col("last_cell") * cells.interval
    return (
        told.with_columns(at=at, sound=pl.col("sound") & pl.col("known"))
        .with_columns(at=pl.when(inside).then("at"))
        .with_columns(
            low=pl.col("slot") + (pl.col("first_cell") - 1) * cells.interval,
            high=pl.coalesce("at", end),
        )
        .drop("pattern", "known")
    )


def gauges(rows: pl.DataFrame, ceiling: float | None) -> pl.DataFrame:
    """Add ``mean`` and ``good``: whether the samples of the slot are all plausible.

    Args:
        rows: A sketch with ``total``, ``min``, ``max``.
        ceiling: Values above are no measurement.
    """
    plausible = pl.col("total").is_finite() & (pl.col("min") >= 0) & pl.col("max").is_finite()
    if ceiling is not None:
        plausible = plausible & (pl.col("max") <= ceiling)
    good = plausible & pl.col("sound") & (pl.col("samples") > 0)
    return rows.with_columns(
        mean=pl.col("total") / pl.col("samples"), good=good.fill_null(value=False)
    )


def counters(rows: pl.DataFrame, interval: timedelta, *, each: bool) -> pl.DataFrame:
    """Rates instead of levels: ``mean``, ``samples`` (rates), ``good``; slots without any go.

    The mean is the rise from the last sample before the slot to its last, over the time between
    them; in the first slot of a series from its first sample on. That holds without resets and
    holes, in the slot and before it.

    Args:
        rows: A sketch with ``level`` (the last value), ``at`` of all slots, ``odd`` (not null where
            a counter starts again or is no number), ``begin`` and ``base``: Unix time and value of
            the first sample where the slot before has none.
        interval: Usual distance of samples.
        each: Whether the rate at each sample is asked of the server, which looks once a cell.
    """
    hole = HOLE * interval
    one = pl.col("series") == pl.col("series").shift()
    follows = (one & (pl.col("slot") == pl.col("slot").shift() + SLOT)).fill_null(value=False)
    before = pl.when(follows).then(pl.col("at").shift())
    opening = (pl.col("begin") * 1000).round().cast(pl.Int64).cast(pl.Datetime("ms"))
    opening = opening.dt.replace_time_zone("UTC").cast(rows.schema["slot"])
    rows = rows.with_columns(
        follows=follows,
        since=pl.when(follows).then(before).otherwise(opening),
        base=pl.when(follows).then(pl.col("level").shift()).otherwise("base"),
    )
    first = pl.col("low") + interval  # the end of the first cell with samples
    near = ~pl.col("follows") | (first - pl.col("since") < hole)
    alone = pl.col("follows") | ~pl.col("crowded")
    good = (
        pl.col("sound")
        & pl.col("odd").is_null()
        & near
        & alone
        & (pl.col("widest") < HOLE)
        & (pl.col("level") >= pl.col("base"))
        & pl.col("base").is_finite()
        & (pl.col("base") >= 0)
        & pl.col("level").is_finite()
        & pl.col("at").is_not_null()
        & pl.col("since").is_not_null()
    )
    if each:  # no cell with two, and none before the first that would show the rate before it
        good = good & ~pl.col("crowded") & (~pl.col("follows") | (pl.col("first_cell") == 1))
    passed = seconds((pl.col("at") - pl.col("since")).dt.total_microseconds())
    return rows.with_columns(
        good=good.fill_null(value=False),
        mean=(pl.col("level") - pl.col("base")) / passed,
        samples=pl.when("follows").then("samples").otherwise(pl.col("samples") - 1),
        low=pl.when(pl.col("follows")).then("low").otherwise(pl.coalesce("since", "low")),
    ).filter((pl.col("samples") > 0) | ~pl.col("good"))
