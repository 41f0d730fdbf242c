"""Times and durations as the text of ``sacct`` shows them, to seconds since the epoch.

Slurm prints times in the zone of the machine that ran ``sacct``, without saying which, unless
``SLURM_TIME_FORMAT`` says otherwise: ``%s`` gives seconds since the epoch, ``%FT%T%z`` a zone.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

_NONE = ["", "unknown", "none", "n/a", "invalid", "partition_limit", "unlimited"]
_ISO = (
    r"^(?P<t>\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2})(?:\.\d+)?\s*(?P<z>Z|[+-]\d{2}(?::?\d{2})?)?$"
)
_EPOCH = r"^\d{6,11}$"
_DURATION = r"^(?:(?P<d>\d+)-)?(?:(?P<h>\d+):)?(?P<m>\d{1,2}):(?P<s>\d{1,2})(?:\.\d+)?$"
_SECONDS = r"^-?\d+$"


def is_none(text: pl.Expr) -> pl.Expr:
    """Whether a cell says that there is no time."""
    return text.str.strip_chars().str.to_lowercase().is_in(_NONE) | text.is_null()


def read_times(rows: pl.DataFrame, names: Sequence[str], zone: str) -> pl.DataFrame:
    """Replace texts by seconds since the epoch (Int64); null where there is no time, or none.

    A time that the clocks of ``zone`` show twice is the first one; ``NAME_again`` holds the second,
    equal to it at any other time. One that the clocks skip is no time. ``zoneless`` tells whether
    any of the row's times carries no zone.

    Args:
        rows: With the texts.
        names: Columns of times.
        zone: IANA zone of times that carry none.
    """
    texts = pl.concat([rows[name] for name in names]).drop_nulls().unique()
    found = _moments(texts, zone)
    zoneless = pl.lit(value=False)
    for name in names:
        own = found.rename({"first": "_time", "again": f"{name}_again", "zoneless": f"_{name}"})
        rows = rows.join(own, left_on=name, right_on="text", how="left", maintain_order="left")
        rows = rows.with_columns(pl.col("_time").alias(name)).drop("_time")
        zoneless |= pl.col(f"_{name}").fill_null(value=False)
    return rows.with_columns(zoneless.alias("zoneless")).drop(f"_{name}" for name in names)


def _moments(texts: pl.Series, zone: str) -> pl.DataFrame:
    """``text, first, again, zoneless`` of distinct texts."""
    plain = pl.col("text").str.strip_chars()
    parts = texts.alias("text").to_frame().with_columns(plain.str.extract_groups(_ISO).alias("iso"))
    parts = parts.with_columns(
        pl.col("iso")
        .struct.field("t")
        .str.replace(" ", "T")
        .str.to_datetime("%Y-%m-%dT%H:%M:%S", time_unit="us", strict=False)
        .alias("naive"),
        _offset(pl.col("iso").struct.field("z")).alias("offset"),
        pl.when(plain.str.contains(_EPOCH)).then(plain).cast(pl.Int64).alias("epoch"),
    )
    naive = pl.col("naive")
    given = naive.dt.epoch("s") - pl.col("offset")
    local = [
        naive.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null"),
        naive.dt.replace_time_zone(zone, ambiguous="latest", non_existent="null"),
    ]
    read = [pl.coalesce("epoch", given, each.dt.epoch("s")) for each in local]
    bare = naive.is_not_null() & pl.col("offset").is_null()
    return parts.select("text", first=read[0], again=read[1], zoneless=bare)


def _offset(text: pl.Expr) -> pl.Expr:
    """Seconds east of Greenwich; null where no zone is told."""
    sign, hours, minutes = (
        text.str.extract(r"^([+-])(\d{2}):?(\d{2})?$", number) for number in (1, 2, 3)
    )
    east = (hours.cast(pl.Int64) * 60 + minutes.cast(pl.Int64).fill_null(0)) * 60
    signed = pl.when(sign == "-").then(-east).otherwise(east)
    return pl.when(text == "Z").then(pl.lit(0, dtype=pl.Int64)).otherwise(signed)


def with_seconds(rows: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Replace durations, ``[DD-]HH:MM:SS`` or a number of seconds; null where it is neither."""
    for name in names:
        texts = rows[name].drop_nulls().unique().alias("text").to_frame()
        found = texts.with_columns(seconds(pl.col("text")).alias("_seconds"))
        rows = rows.join(found, left_on=name, right_on="text", how="left", maintain_order="left")
        rows = rows.with_columns(pl.col("_seconds").alias(name)).drop("_seconds")
    return rows


def seconds(text: pl.Expr) -> pl.Expr:
    """``[DD-]HH:MM:SS`` or a number of seconds; null where it is neither."""
    plain = text.str.strip_chars()
    parts = plain.str.extract_groups(_DURATION).struct
    days, hours, minutes, rest = (parts.field(name).cast(pl.Int64, strict=False) for name in "dhms")
    clock = ((days.fill_null(0) * 24 + hours.fill_null(0)) * 60 + minutes) * 60 + rest
    number = pl.when(plain.str.contains(_SECONDS)).then(plain).cast(pl.Int64, strict=False)
    return pl.coalesce(clock, number)


def settle(rows: pl.DataFrame) -> pl.DataFrame:
    """Choose between the two readings of times that the clocks show twice.

    Of the ways to read start and end, the first counts that agrees with the elapsed time to a
    second; without one, the first reading.

    Args:
        rows: With ``start, start_again, end, end_again, elapsed, suspended``.
    """
    twice = (pl.col("start") != pl.col("start_again")) | (pl.col("end") != pl.col("end_again"))
    if not rows.select(twice.any()).item():
        return rows
    told = pl.col("elapsed") + pl.col("suspended").fill_null(0)
    start, end = pl.col("start"), pl.col("end")
    for first, last in (
        ("start_again", "end_again"),
        ("start_again", "end"),
        ("start", "end_again"),
        ("start", "end"),
    ):
        fits = (pl.col(last) - pl.col(first) - told).abs() <= 1
        start = pl.when(fits).then(pl.col(first)).otherwise(start)
        end = pl.when(fits).then(pl.col(last)).otherwise(end)
    return rows.with_columns(start.alias("start"), end.alias("end"))
