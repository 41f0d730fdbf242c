"""Writing the series: the Parquet export and OpenMetrics text for ``promtool`` back-fill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from collector.simulate.model import World
from collector.simulate.options import moment
from collector.simulate.series import SAMPLES, day_bounds, samples, series_frame

_COUNTER = "_total"
_PART = 4_000_000
"""Samples in one file of the export."""


def write_export(world: World, folder: Path) -> Iterator[Path]:
    """Write ``<day>.parquet`` per day in the form of ``docs/architecture.md``.

    A day of more than some millions of samples stands in several files, ``<day>-1.parquet`` and
    so on, so that memory stays bounded.
    """
    folder.mkdir(parents=True, exist_ok=True)
    series, step = series_frame(world), world.options.step
    for start, end in day_bounds(world):
        for number, part in enumerate(_parts(series, start, end, step)):
            ending = f"-{number}" if number else ""
            path = folder / f"{moment(start):%Y-%m-%d}{ending}.parquet"
            samples(part.lazy(), start, end, step).select(*SAMPLES).collect().write_parquet(path)
            yield path


def _parts(series: pl.DataFrame, start: int, end: int, step: int) -> Iterator[pl.DataFrame]:
    """The series that have samples in ``[start, end)``, in parts of bounded size, in order."""
    first = pl.max_horizontal("first", pl.lit(start))
    last = pl.min_horizontal("last", pl.lit(end - step))
    found = series.filter(first <= last)
    part = ((last - first) // step + 1).cum_sum() // _PART
    yield from found.with_columns(part.alias("part")).partition_by(
        "part", maintain_order=True, include_key=False
    )


def write_openmetrics(world: World, folder: Path) -> Iterator[Path]:
    """Write ``<day>.om`` per day for ``promtool tsdb create-blocks-from openmetrics``.

    Source: OpenMetrics 1.0, text format; metric families apart, time stamps in seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    series = series_frame(world).lazy()
    for start, end in day_bounds(world):
        path = folder / f"{moment(start):%Y-%m-%d}.om"
        _lines(samples(series, start, end, world.options.step)).write_csv(
            path, include_header=False, quote_style="never"
        )
        yield path


def _lines(frame: pl.LazyFrame) -> pl.DataFrame:
    """Samples as lines of text, with a ``# TYPE`` line before each family and ``# EOF`` last."""
    name = pl.col("__name__")
    stamp = pl.col("timestamp").dt.epoch("s")
    sample = pl.format("{}{} {} {}", name, pl.col("om"), pl.col("value"), stamp)
    counter = name.str.ends_with(_COUNTER)
    kind = pl.when(counter).then(pl.lit("counter")).otherwise(pl.lit("gauge"))
    header = pl.format("# TYPE {} {}\n", name.str.strip_suffix(_COUNTER), kind)
    opens = (name != name.shift(1)).fill_null(True)
    line = pl.when(opens).then(header + sample).otherwise(sample).alias("line")
    return pl.concat([frame.select(line), pl.LazyFrame({"line": ["# EOF"]})]).collect()
