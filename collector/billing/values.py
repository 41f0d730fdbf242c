"""Cells read tolerantly: numbers, times and JSON, each a pure function of a text column.

Numbers go from text to ``Decimal(38, 12)`` without a float between (the cast rounds half-even, E
notation included). Times and JSON are read once per distinct text and joined back.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Context, Decimal

import polars as pl

from collector.billing.sheet import NULL_WORDS
from ledger.schema import MONEY, TIME

BAD_NUMBER, TOO_LARGE = "bad_number", "too_large"

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_SYMBOL = r"[$€£¥₩]"
_THOUSANDS = r"^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$"
_FINE = pl.Decimal(38, 30)
_FINE_DIGITS = 30


@dataclass(frozen=True)
class Numbers:
    """A column of numbers, read.

    Args:
        plain: The cells as plain text; null words and empty cells are null.
        values: ``Decimal(38, 12)``, rounded half-even; null where there is none.
        faults: ``bad_number`` or ``too_large`` for a cell that is not null and has no value.
    """

    plain: pl.Series
    values: pl.Series
    faults: pl.Series


def read_numbers(text: pl.Series) -> Numbers:
    """Texts to numbers: ``1.81E-8``, ``"$10,000.00 "`` (10000) and ``(1.50)`` (-1.50) alike.

    A comma is a thousands mark where it stands between groups of three digits, else a fault.
    """
    values = text.cast(MONEY, strict=False)
    odd = text.is_not_null() & values.is_null()
    if not odd.any():
        return Numbers(text, values, pl.repeat(None, text.len(), dtype=pl.String, eager=True))
    plain = (
        text.to_frame("text")
        .select(pl.when(odd).then(_bare(pl.col("text"))).otherwise(pl.col("text")))
        .to_series()
    )
    values = plain.cast(MONEY, strict=False)
    fault = (
        pl.when(pl.col("text").str.contains(_NUMBER))
        .then(pl.lit(TOO_LARGE))
        .otherwise(pl.lit(BAD_NUMBER))
    )
    unread = plain.is_not_null() & values.is_null()
    faults = plain.to_frame("text").select(pl.when(unread).then(fault)).to_series()
    return Numbers(plain, values, faults)


def _bare(cell: pl.Expr) -> pl.Expr:
    bare = (
        cell.str.strip_chars()
        .str.replace(r"^\((.*)\)$", "-$1")
        .str.replace(rf"^([+-]?)\s*{_SYMBOL}\s*", "$1")
        .str.replace(rf"\s*{_SYMBOL}$", "")
    )
    grouped = pl.when(bare.str.contains(_THOUSANDS)).then(bare.str.replace_all(",", ""))
    return pl.when(~bare.is_in([*NULL_WORDS, ""])).then(grouped.otherwise(bare))


def rounding_residue(plain: pl.Series, values: pl.Series) -> Decimal:
    """What rounding to 1e-12 took away: Σ text - Σ value, exactly (up to 5,000 digits).

    Args:
        plain: ``Numbers.plain``.
        values: ``Numbers.values`` of the same cells; those without a value do not count.
    """
    text, value = pl.col("text"), pl.col("value")
    deep = pl.DataFrame({"text": plain, "value": values}).filter(
        value.is_not_null() & text.str.contains(r"[eE]|\.\d{13}")
    )
    if deep.is_empty():
        return Decimal(0)
    exponent = text.str.extract(r"[eE]\+?(-?\d+)").cast(pl.Int64)
    decimals = text.str.extract(r"\.(\d*)").str.len_bytes().cast(pl.Int64).fill_null(0)
    fine = text.cast(_FINE, strict=False) - value.cast(_FINE, strict=False)
    exact = (decimals - exponent.fill_null(0) <= _FINE_DIGITS) & fine.is_not_null()
    deep = deep.with_columns(fine=fine, exact=exact)
    rest = deep.filter(~pl.col("exact"))
    context = Context(prec=5000)
    total = deep.filter("exact").select(pl.col("fine").sum()).item() or Decimal(0)
    # Only amounts with more than 30 decimals, or above 10^8 with more than 12, come this way.
    for written, kept in rest.select("text", "value").iter_rows():
        total = context.add(total, context.subtract(Decimal(written), kept))
    return total.normalize(context) if total else Decimal(0)


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


def read_json(text: pl.Series) -> pl.Series:
    """Texts to canonical JSON objects: sorted keys, no blanks, keys and texts untouched.

    Read are an object, the inside of one without braces, and a list of ``{"key", "value"}``. A
    number with a point stays the text that it was.

    Args:
        text: Cells.

    Returns:
        Canonical text; null where the cell holds no object. An empty object is ``{}``.
    """
    distinct = text.drop_nulls().unique().sort()
    read = pl.DataFrame(
        {"text": distinct, "json": [canonical_object(cell) for cell in distinct]},
        schema={"text": pl.String, "json": pl.String},
    )
    return (
        text.alias("text")
        .to_frame()
        .join(read, on="text", how="left", maintain_order="left")["json"]
    )


def canonical_object(cell: str) -> str | None:
    """One JSON object in canonical form; None if it is none."""
    for candidate in (cell, f"{{{cell}}}"):
        try:
            data = json.loads(candidate, strict=False, parse_float=str, parse_constant=str)
        except (ValueError, RecursionError):
            continue
        if isinstance(data, list):
            data = _pairs(data)
        if isinstance(data, dict):
            return _dump(data)
    return None


def _pairs(entries: list[object]) -> dict[str, object] | None:
    pairs: dict[str, object] = {}
    for entry in entries:
        if not (isinstance(entry, dict) and {"key", "value"} <= entry.keys()):
            return None
        pairs[str(entry["key"])] = entry["value"]
    return pairs


def _dump(data: dict[str, object]) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair has no UTF-8 form; its escape has
        return json.dumps(data, sort_keys=True, separators=(",", ":"))
    return text
