"""Times as bills write them, to UTC; each distinct text is read once."""

from __future__ import annotations

import polars as pl

from ledger.schema import TIME

_ISO = (
    r"^(?P<Y>\d{4})-(?P<M>\d{2})-(?P<D>\d{2})"
    r"(?:[Tt ](?P<h>\d{2}):(?P<m>\d{2})(?::(?P<s>\d{2})(?:[.,](?P<f>\d{1,9}))?)?)?"
    r"\s*(?P<z>[Zz]|UTC|[+-]\d{2}(?::?\d{2})?(?:\s+UTC)?)?$"
)
_AMERICAN = (
    r"^(?P<M>\d{1,2})/(?P<D>\d{1,2})/(?P<Y>\d{4}|\d{2})"
    r"(?:\s+(?P<h>\d{1,2}):(?P<m>\d{2})(?::(?P<s>\d{2}))?)?(?P<f>)(?P<z>)$"
)


def read_times(text: pl.Series, zone: str) -> pl.DataFrame:
    """Texts to times.

    Read are ISO 8601 with ``T`` or a blank, with or without seconds, fractions and zone
    (``Z``, ``+00:00``, ``+0000 UTC``), dates alone, and the American ``M/D/YY`` and ``MM/DD/YYYY``.
    Digits beyond microseconds are cut. A time that the clocks of ``zone`` show twice is the first;
    one that they skip is no time.

    Args:
        text: Cells.
        zone: IANA zone of times that carry none.

    Returns:
        ``time`` (UTC, microseconds; null where the cell is no time) and ``zoneless`` (Boolean),
        one row per cell.
    """
    cells = text.alias("text").to_frame()
    distinct = (
        cells.drop_nulls()
        .unique()
        .with_columns(
            pl.col("text").str.strip_chars().str.extract_groups(_ISO).alias("iso"),
            pl.col("text").str.strip_chars().str.extract_groups(_AMERICAN).alias("american"),
        )
    )
    known = distinct.select(
        "text",
        **{
            part: pl.coalesce(pl.col(form).struct.field(part) for form in ("iso", "american"))
            for part in "YMDhmsfz"
        },
    )
    times = known.select("text", *_times(zone))
    return cells.join(times, on="text", how="left", maintain_order="left").select(
        "time", pl.col("zoneless").fill_null(False)
    )


def _times(zone: str) -> tuple[pl.Expr, pl.Expr]:
    part = {name: pl.col(name) for name in "YMDhmsfz"}
    year = pl.when(part["Y"].str.len_bytes() == 2).then("20" + part["Y"]).otherwise(part["Y"])
    hour, minute, second = (part[name].fill_null("").str.zfill(2) for name in "hms")
    written = pl.format(
        "{}-{}-{}T{}:{}:{}",
        year,
        part["M"].str.zfill(2),
        part["D"].str.zfill(2),
        hour,
        minute,
        second,
    )
    micros = part["f"].fill_null("").str.slice(0, 6).str.pad_end(6, "0").cast(pl.Int64)
    naive = written.str.to_datetime("%Y-%m-%dT%H:%M:%S", time_unit="us", strict=False)
    naive = naive + pl.duration(microseconds=micros)
    offset = part["z"].str.extract_groups(r"^([+-])(\d{2}):?(\d{2})?").struct
    minutes = (
        offset.field("2").cast(pl.Int64) * 60 + offset.field("3").cast(pl.Int64).fill_null(0)
    ).fill_null(0)
    minutes = pl.when(offset.field("1") == "-").then(-minutes).otherwise(minutes)
    zoneless = part["z"].fill_null("") == ""
    local = naive.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    given = (naive - pl.duration(minutes=minutes)).dt.replace_time_zone("UTC")
    time = pl.when(zoneless).then(local.dt.convert_time_zone("UTC")).otherwise(given)
    return time.cast(TIME).alias("time"), (zoneless & naive.is_not_null()).alias("zoneless")
