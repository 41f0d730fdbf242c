"""Use above the request, sample by sample: the mean of max(request, use) is not max of the means.

A pod pays for the larger of what it asked for and what it used, at each time. Where its use crosses
its request inside a slot, the mean of the slot does not tell that; a row of its own does.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import polars as pl

from collector.prometheus.meters.slots import STATISTICS, slot_of

METERS = {
    "cpu_usage": ("cpu_above_request", "cpu_millicores", 1000),
    "memory_working_set": ("memory_above_request", "memory_bytes", 1),
}
"""By meter: the meter of what is above, the request's column, and its units in one of the meter."""


@dataclass(frozen=True)
class Crossing:
    """What the samples of a meter are compared with.

    Args:
        meter: A key of ``METERS``.
        requests: ``uid``, ``start`` and the request from then on.
        lives: ``life`` and its ``uid``.
        step: Usual distance of the samples; containers of one pod are added up within it.
    """

    meter: str
    requests: pl.DataFrame
    lives: pl.DataFrame
    step: timedelta


def above(samples: pl.DataFrame, slots: pl.DataFrame, crossing: Crossing) -> pl.DataFrame:
    """The mean of what a pod used above its request, in the slots in which use crosses it.

    Args:
        samples: ``ident``, ``life``, ``time``, ``value`` and perhaps ``micros`` as weight.
        slots: The meter's rows of ``usage``: ``uid``, ``slot``, ``STATISTICS`` and more.
        crossing: The pods and their requests.

    Returns:
        Rows like ``slots``, of the meter above, with a mean alone; none for other slots.
    """
    name = METERS[crossing.meter][0]
    asked = _asked(crossing)
    crossed = crossed_slots(slots, crossing)
    weight = pl.col("micros") if "micros" in samples.columns else pl.lit(1.0)
    pairs = crossed.select("uid", "slot").join(crossing.lives, on="uid")
    inside = samples.with_columns(slot=slot_of("time")).join(pairs, on=["life", "slot"])
    beat = ["uid", "slot", pl.col("time").dt.truncate(crossing.step).alias("beat")]
    pods = (
        inside.with_columns(weight=weight)
        .group_by("ident", *beat)
        .agg(pl.col("time").max(), pl.col("value", "weight").mean())
        .group_by("uid", "slot", "beat")
        .agg(pl.col("time").max(), pl.col("value").sum(), pl.col("weight").mean())
        .sort("time")
        .join_asof(asked, left_on="time", right_on="start", by="uid", check_sortedness=False)
    )
    excess = (pl.col("value") - pl.col("asked")).clip(lower_bound=0)
    means = (
        pods.drop_nulls("asked")
        .group_by("uid", "slot")
        .agg(told=(excess * pl.col("weight")).sum() / pl.col("weight").sum())
    )
    rows = crossed.join(means, on=["uid", "slot"], maintain_order="left")
    kept = [part for part in STATISTICS if part != "mean" and part in slots.columns]
    nothing = [pl.lit(None, pl.Float64).alias(part) for part in kept]
    return rows.with_columns(*nothing, mean="told", meter=pl.lit(name)).select(slots.columns)


def crossed_slots(slots: pl.DataFrame, crossing: Crossing) -> pl.DataFrame:
    """The slots in which use crosses what the pod asked for at any time, as far as bounds tell."""
    ranges = (
        _asked(crossing)
        .group_by("uid")
        .agg(pl.col("asked").min().alias("least"), pl.col("asked").max().alias("most"))
    )
    return slots.join(ranges, on="uid", maintain_order="left").filter(
        (pl.col("min") < pl.col("most")) & (pl.col("max") > pl.col("least"))
    )


def _asked(crossing: Crossing) -> pl.DataFrame:
    """``uid``, ``start``, ``asked``: the requests of pods, in units of the meter."""
    _, column, unit = METERS[crossing.meter]
    return (
        crossing.requests.select("uid", "start", (pl.col(column) / unit).alias("asked"))
        .drop_nulls()
        .sort("start")
    )
