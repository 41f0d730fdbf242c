"""The usage of pods: the largest table of a day, read in batches and kept as numbers.

Batches of rows come from the ledger as they are needed. Text (pod, device, meter) becomes numbers
batch by batch; what stays in memory is 37 bytes for each slot of a meter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from attribution.ratio import HOUR

POD = ("cluster", "uid")
SLOT = 900_000
"""Length of a slot of ``usage`` in milliseconds."""

METERS = (
    "cpu_usage",
    "memory_working_set",
    "gpu_activity",
    "cpu_above_request",
    "memory_above_request",
)
"""The meters that attribution reads; a meter's number is its place here."""

BATCH = 1_000_000
"""Rows that are read at once."""

_SERIES = (*POD, "device")
_COLUMNS = (*_SERIES, "meter", "slot", "mean", "samples", "expected")


@dataclass(frozen=True)
class PodUsage:
    """What the pods of a day used, by their numbers.

    Args:
        pods: ``cluster, uid, id``; ``id`` counts from 0 in the order of the rows.
        rows: ``id``, ``series`` (pod and device) and ``meter`` (numbers), ``slot`` (ms), ``value``
            (millicores, KiB, or activity · 1e9 clamped to 0..1), ``watched`` (ms of the slot that
            has samples; all of it where their number is not told), ``step`` (ms between two of
            them) and ``samples``. Of two sources that tell the same, both are here.
    """

    pods: pl.DataFrame
    rows: pl.DataFrame

    def part(self, first: int, last: int) -> PodUsage:
        """The usage of the pods ``first`` to ``last`` (exclusive)."""
        inside = pl.col("id").is_between(first, last, closed="left")
        return PodUsage(self.pods.slice(first, last - first), self.rows.filter(inside))

    def slots(self) -> pl.DataFrame:
        """The rows with ``hour``; of copies, the one with most samples counts."""
        key = ["series", "meter", "slot"]
        single = self.rows
        if not _all_unlike(single):
            copies = single.select(key).is_duplicated()
            best = single.filter(copies).sort("samples", "value", descending=True, nulls_last=True)
            best = best.unique(key, keep="first", maintain_order=True)
            single = pl.concat([single.filter(~copies), best])
        return single.drop("samples", "series").with_columns(
            pl.col("watched", "step").cast(pl.Int64),
            (pl.col("slot") // HOUR * HOUR).alias("hour"),
        )


def _all_unlike(rows: pl.DataFrame) -> bool:
    """Whether no series tells a meter of a slot twice; said by one number per row."""
    if rows.is_empty():
        return True
    first, last = rows.select(pl.col("slot").min(), last=pl.col("slot").max()).row(0)
    if last - first >= 2**27:  # one and a half days: not all in one day's rows, not in one number
        return False
    what = pl.col("series").cast(pl.Int64) * 2**3 + pl.col("meter")
    number = what * 2**27 + (pl.col("slot") - first)
    return int(rows.select(number.n_unique()).item()) == rows.height


def read_usage(usage: pl.DataFrame | pl.LazyFrame, pods: pl.DataFrame) -> PodUsage:
    """Read what pods used.

    Args:
        usage: Rows of ``usage``; a lazy frame is read in batches.
        pods: ``cluster, uid, id``; usage of others is left out.
    """
    runs, rows, known = [], [], 0
    for batch in _batches(usage):
        run, numbers = _numbers(batch, pods, known)
        known += run.height
        runs.append(run)
        rows.append(numbers)
    # Pods and devices that several runs speak of are one series.
    every = pl.concat(runs)
    series = every.unique().with_row_index("series")
    of_run = every.join(
        series, on=["id", "device"], how="left", nulls_equal=True, maintain_order="left"
    )["series"]
    return PodUsage(
        pods,
        pl.concat(rows).select(
            pl.col("id"),
            of_run.gather(pl.concat(frame.select("run") for frame in rows)["run"]),
            pl.exclude("id", "run"),
        ),
    )


def _batches(usage: pl.DataFrame | pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """The rows that say something of a meter; at least one frame, which may be empty."""
    mean = pl.col("mean")
    rows = (
        usage.lazy()
        .select(_COLUMNS)
        .filter(pl.col("meter").is_in(METERS) & mean.is_finite() & (mean >= 0))
    )
    if isinstance(usage, pl.DataFrame):
        yield from rows.collect().iter_slices(BATCH)
        yield usage.clear().select(_COLUMNS)
        return
    yield pl.DataFrame(schema=rows.collect_schema())
    yield from rows.collect_batches(chunk_size=BATCH, maintain_order=True)


def _numbers(
    batch: pl.DataFrame, pods: pl.DataFrame, known: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A batch as numbers.

    Consecutive rows of one pod and device are a run. Text is looked up once for each run: the
    ledger's files are sorted, so runs are long.

    Returns:
        ``id, device`` of the runs of known pods, and their rows with ``run``, counted from
        ``known`` on.
    """
    opens = pl.any_horizontal(
        pl.col(name).ne_missing(pl.col(name).shift(1)) for name in _SERIES
    ) | (pl.int_range(pl.len()) == 0)
    batch = batch.with_columns(opens.alias("opens"))
    runs = (
        batch.filter("opens")
        .select(_SERIES)
        .join(pods, on=list(POD), how="left", maintain_order="left")
    )
    met = runs["id"].is_not_null()
    number = runs.select(
        pl.when(met).then(met.cast(pl.Int64).cum_sum() + (known - 1)).cast(pl.UInt32)
    ).to_series()
    of_row = (batch["opens"].cum_sum() - 1).cast(pl.UInt32)
    rows = batch.select(
        runs["id"].gather(of_row),
        number.gather(of_row).alias("run"),
        *_figures(),
    )
    return runs.filter(met).select("id", "device"), rows.drop_nulls("run")


def _figures() -> list[pl.Expr]:
    """Meter, slot and the amounts of a row as integers."""
    mean, meter = pl.col("mean"), pl.col("meter")
    value = (
        pl.when(meter == "gpu_activity")
        .then(mean.clip(0, 1) * 1e9)
        .when(meter.is_in(["cpu_usage", "cpu_above_request"]))
        .then(mean * 1000)
        .otherwise(mean)
    )
    whole = value.round(0, mode="half_to_even").cast(pl.Int64)
    number = pl.coalesce(
        pl.when(meter == name).then(pl.lit(place, dtype=pl.Int8))
        for place, name in enumerate(METERS)
    )
    expected = pl.when(pl.col("expected") > 0).then("expected")
    share, step = pl.col("samples") / expected, SLOT // expected
    return [
        number.alias("meter"),
        pl.col("slot").dt.timestamp("ms"),
        pl.when(meter.is_in(["memory_working_set", "memory_above_request"]))
        .then(whole // 1024)
        .otherwise(whole)
        .alias("value"),
        (SLOT * share).fill_null(SLOT).clip(0, SLOT).cast(pl.Int32).alias("watched"),
        step.fill_null(0).cast(pl.Int32).alias("step"),
        pl.col("samples"),
    ]
