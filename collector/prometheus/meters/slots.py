"""Quarter-hour slots of a meter: statistics of the samples in each.

A slot that starts at ``s`` holds the samples in (s, s + 15 min]. A sample of a gauge stands for
itself, a rate for the time since the sample before it.
"""

from __future__ import annotations

from datetime import timedelta

import polars as pl

from collector.prometheus.samples.chains import HOLE
from ledger.window import Window

SLOT = timedelta(minutes=15)
STATISTICS = ("mean", "min", "max", "p50", "p99", "last")
_US = 1_000_000


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
        The same columns with ``value`` per second; ``micros`` Int64: the microseconds that it
        stands for; ``low`` and ``high``: what the counter showed before and after them.
    """
    same = pl.col("ident") == pl.col("ident").shift()
    step = pl.when(same).then(pl.col("time").diff())
    low, high = pl.col("low"), pl.col("high")
    return (
        samples.rename({"value": "high"})
        .with_columns(step=step, low=high.shift())
        .filter(pl.col("step") <= HOLE * interval)
        .with_columns(micros=pl.col("step").dt.total_microseconds())
        .with_columns(
            value=pl.when(high < low).then(high).otherwise(high - low) / seconds(pl.col("micros"))
        )
        .drop("step")
    )


def seconds(micros: pl.Expr) -> pl.Expr:
    """Microseconds as seconds, rounded once, as servers do it.

    Polars multiplies by the reciprocal of a number, which is rounded twice, but not of a column.
    """
    return micros / (micros * 0 + _US)


def statistics(samples: pl.DataFrame, keys: list[str], window: Window) -> pl.DataFrame:
    """Statistics per key and slot of the window.

    Args:
        samples: ``keys``, ``time``, ``value``, unique by keys and time; and of rates also
            ``micros``, ``low`` and ``high``.
        keys: Columns that tell series apart.
        window: Whole slots.

    Returns:
        ``keys``, ``slot``, the ``STATISTICS`` (quantiles interpolated linearly), ``samples``
        Int64; sorted by keys and slot.
    """
    value = pl.col("value")
    inside = (pl.col("time") > window.start) & (pl.col("time") <= window.end)
    mean = _mean_rate() if "micros" in samples.columns else value.mean()
    return (
        samples.sort(*keys, "time")
        .with_columns(slot=slot_of("time"))
        .filter(inside)
        .group_by(*keys, "slot", maintain_order=True)
        .agg(
            mean=mean,
            min=value.min(),
            max=value.max(),
            p50=value.median(),
            p99=value.quantile(0.99, "linear"),
            last=value.last(),
            samples=pl.len().cast(pl.Int64),
        )
        .sort(*keys, "slot")
    )


def _mean_rate() -> pl.Expr:
    """The rise over the time; without reset and hole that of the whole, to the last digit.

    A server can tell what a counter showed at both ends, but not the sum of what lies between as
    floats add it up.
    """
    low, high, micros = pl.col("low"), pl.col("high"), pl.col("micros")
    joined = ((high.shift() == low) | (pl.int_range(pl.len()) == 0)).all()
    rise = pl.when(joined & (high >= low).all()).then(high.last() - low.first())
    weighted = (pl.col("value") * micros).sum() / _US
    return rise.otherwise(weighted) / seconds(micros.sum())


def expected(slot_seconds: pl.Expr, interval: timedelta) -> pl.Expr:
    """Samples to expect in a time, at least those seen."""
    count = (slot_seconds / interval.total_seconds()).round().cast(pl.Int64)
    return pl.max_horizontal(count, pl.col("samples"))
