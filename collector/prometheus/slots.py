"""Quarter-hour slots of a meter: statistics of the samples in each.

A slot that starts at ``s`` holds the samples in (s, s + 15 min]. A sample of a gauge stands for
itself, a rate for the time since the sample before it.
"""

from __future__ import annotations

from datetime import timedelta

import polars as pl

from collector.prometheus.chains import HOLE
from ledger.window import Window

SLOT = timedelta(minutes=15)
STATISTICS = ("mean", "min", "max", "p50", "p99", "last")


def slot_of(column: str) -> pl.Expr:
    """The start of the slot that holds a time."""
    return (pl.col(column) - timedelta(microseconds=1)).dt.truncate("15m")


def rates(samples: pl.DataFrame, interval: timedelta) -> pl.DataFrame:
    """Rates of counters per second, from neighbouring samples.

    A counter that falls has started again from 0. Across a hole longer than three usual intervals
    nothing is said.

    Args:
        samples: ``ident``, ``time``, ``value``, sorted by ident and time.
        interval: Usual distance.

    Returns:
        The same columns with ``value`` per second, and ``seconds``: the time it stands for.
    """
    same = pl.col("ident") == pl.col("ident").shift()
    step = pl.when(same).then(pl.col("time").diff())
    rise = pl.col("value").diff()
    rise = pl.when(rise < 0).then(pl.col("value")).otherwise(rise)
    return (
        samples.with_columns(step=step, rise=rise)
        .filter(pl.col("step") <= HOLE * interval)
        .with_columns(seconds=pl.col("step").dt.total_microseconds() / 1e6)
        .with_columns(value=(pl.col("rise") / pl.col("seconds")).round(6))
        .drop("step", "rise")
    )


def statistics(samples: pl.DataFrame, keys: list[str], window: Window) -> pl.DataFrame:
    """Statistics per key and slot of the window.

    Args:
        samples: ``keys``, ``time``, ``value`` and perhaps ``seconds`` as weight of the mean;
            unique by keys and time.
        keys: Columns that tell series apart.
        window: Whole slots.

    Returns:
        ``keys``, ``slot``, the ``STATISTICS`` (quantiles interpolated linearly),
        ``last_change``, ``samples`` Int64; sorted by keys and slot.
    """
    value = pl.col("value")
    before = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift()) for name in keys)
    inside = (pl.col("time") > window.start) & (pl.col("time") <= window.end)
    mean = value.mean()
    if "seconds" in samples.columns:
        mean = (value * pl.col("seconds")).sum() / pl.col("seconds").sum()
    return (
        samples.sort(*keys, "time")
        .with_columns(
            change=pl.when(before & (value != value.shift())).then("time"), slot=slot_of("time")
        )
        .filter(inside)
        .group_by(*keys, "slot", maintain_order=True)
        .agg(
            mean=mean,
            min=value.min(),
            max=value.max(),
            p50=value.median(),
            p99=value.quantile(0.99, "linear"),
            last=value.last(),
            last_change=pl.col("change").max(),
            samples=pl.len().cast(pl.Int64),
        )
        .sort(*keys, "slot")
    )


def expected(slot_seconds: pl.Expr, interval: timedelta) -> pl.Expr:
    """Samples to expect in a time, at least those seen."""
    count = (slot_seconds / interval.total_seconds()).round().cast(pl.Int64)
    return pl.max_horizontal(count, pl.col("samples"))
