"""Lines to days: what spans several UTC days is split by time, exactly; the rest stays whole."""

from __future__ import annotations

import polars as pl

from ledger.money import from_units, split, to_units
from ledger.window import Window

SUMMABLE = (
    "BilledCost",
    "EffectiveCost",
    "ContractedCost",
    "ListCost",
    "PricingQuantity",
    "ConsumedQuantity",
    "CommitmentDiscountQuantity",
    "PricingCurrencyEffectiveCost",
)
"""Columns that are split; unit prices are repeated on every part."""

START, END = pl.col("ChargePeriodStart"), pl.col("ChargePeriodEnd")


def stays_on_first_day() -> pl.Expr:
    """Whether a line is a one-time purchase: paid on its first day, whatever it covers."""
    one_time = (pl.col("ChargeFrequency") == "One-Time") & (pl.col("ChargeCategory") == "Purchase")
    return one_time.fill_null(False)


def occupied_end() -> pl.Expr:
    """End of the time in which a line has a day: its period, or its first day."""
    first_day = START.dt.truncate("1d").dt.offset_by("1d")
    return pl.when(stays_on_first_day()).then(first_day).otherwise(END)


def to_days(lines: pl.DataFrame, window: Window) -> pl.DataFrame:
    """One row per line and UTC day of the window.

    Args:
        lines: Columns of ``charges`` with ``x_LineId`` unique; ChargePeriodStart < ChargePeriodEnd.
        window: Whole UTC days.

    Returns:
        The same columns with ``day`` and ``x_Part`` (from 0 on a line's first day, whatever the
        window). Each part holds its share of the summable columns, by time and largest remainder
        over *all* days of the line, and a period clipped to its day.
    """
    first, last = START.dt.date(), (END - pl.duration(microseconds=1)).dt.date()
    spans = (first != last) & ~stays_on_first_day()
    whole = lines.filter(~spans, _inside(first, window)).with_columns(
        first.alias("day"), pl.lit(0, pl.Int64).alias("x_Part")
    )
    parts = _parts(lines.filter(spans), window)
    return pl.concat([whole, parts.select(whole.columns)])


def _inside(day: pl.Expr, window: Window) -> pl.Expr:
    return day.is_between(window.start.date(), window.end.date(), closed="left")


def _parts(lines: pl.DataFrame, window: Window) -> pl.DataFrame:
    start = pl.max_horizontal(START, _midnight(pl.col("day")))
    end = pl.min_horizontal(END, _midnight(pl.col("day")).dt.offset_by("1d"))
    last = (END - pl.duration(microseconds=1)).dt.date()
    claims = (
        lines.lazy()
        .select(
            "x_LineId",
            "ChargePeriodStart",
            "ChargePeriodEnd",
            *(to_units(pl.col(name)).alias(name) for name in SUMMABLE),
        )
        .with_columns(day=pl.date_ranges(START.dt.date(), last))
        .explode("day")
        .select(
            "x_LineId",
            "day",
            *SUMMABLE,
            start.alias("start"),
            end.alias("end"),
            (pl.col("day") - START.dt.date()).dt.total_days().alias("x_Part"),
        )
        .with_columns(weight=(pl.col("end") - pl.col("start")).dt.total_microseconds())
    )
    shares = split(claims, group=["x_LineId"], amounts=SUMMABLE, weight="weight", order=["day"])
    rest = lines.lazy().drop("ChargePeriodStart", "ChargePeriodEnd", *SUMMABLE)
    return (
        shares.filter(_inside(pl.col("day"), window))
        .select(
            "x_LineId",
            "day",
            "x_Part",
            pl.col("start").alias("ChargePeriodStart"),
            pl.col("end").alias("ChargePeriodEnd"),
            *(from_units(pl.col(name)).alias(name) for name in SUMMABLE),
        )
        .join(rest, on="x_LineId", how="left")
        .collect()
    )


def _midnight(day: pl.Expr) -> pl.Expr:
    return day.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
