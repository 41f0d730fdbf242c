"""A batch of text rows to clean bill lines: types, defaults, faults put aside."""

from __future__ import annotations

import polars as pl
import polars.selectors as cs

from collector.billing.columns import (
    JSON_COLUMNS,
    MONEY_COLUMNS,
    OTHER,
    TEXT_COLUMNS,
    TIME_COLUMNS,
)
from collector.billing.content import content_hash, content_text, other_columns
from collector.billing.days import END, START, occupied_end, stays_on_first_day
from collector.billing.numbers import BAD_NUMBER, TOO_LARGE, read_numbers, rounding_residue
from collector.billing.objects import read_json
from collector.billing.report import Tally
from collector.billing.sheet import ROW, SURPLUS
from collector.billing.times import read_times
from ledger.schema import COST_COLUMNS
from ledger.window import Window

PERIOD = ("ChargePeriodStart", "ChargePeriodEnd")
_CATEGORIES = {name.lower(): name for name in ("Usage", "Purchase", "Tax", "Credit", "Adjustment")}
_FREQUENCIES = {name.lower(): name for name in ("One-Time", "Recurring", "Usage-Based")}
_NOT_UTF8 = "\ufffd"
_LONGEST_DAYS = 3660
_VALUE, _FAULT = "value:", "fault:"


def clean(batch: pl.DataFrame, window: Window, tally: Tally) -> pl.DataFrame:
    """Read a batch of rows.

    Args:
        batch: Text columns by their working names, ``ROW`` and ``SURPLUS`` (``Sheet.batches``).
        window: Lines that have no day in it are left out, and counted.
        tally: Takes what is odd.

    Returns:
        Columns of ``charges`` that the file has, ``x_Other`` and ``content``. A row that cannot be
        read is put aside in ``tally``.
    """
    rows = with_periods(batch, tally)
    _observe(rows, tally)
    kept = rows.filter((START < window.end) & (occupied_end() > window.start))
    kept = _with_numbers(kept, window, tally)
    kept = _with_unknown_costs(kept, tally)
    kept = _with_json(kept, tally)
    kept = _with_currency(kept, tally)
    kept = kept.with_columns(_providers(kept))
    texts = content_text(kept)
    tally.count("not_utf8", int(texts.str.contains(_NOT_UTF8, literal=True).sum()))
    return kept.with_columns(content_hash(texts), other_columns(kept)).drop(
        ROW, cs.starts_with(OTHER)
    )


def with_periods(batch: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """The rows that are no blank line and whose charge period can be read, with their times."""
    rows = _without_empty_text(batch)
    rows = _without_blank_lines(rows)
    tally.rows += rows.height
    rows = tally.put_aside(rows, rows[SURPLUS].is_not_null(), "too_many_cells", SURPLUS)
    rows = _with_words(rows.drop(SURPLUS), tally)
    rows = _with_times(rows, tally)
    rows = _with_order(rows, tally)
    tally.cover(*rows.select(START.min(), occupied_end().max().alias("end")).row(0))
    tally.deliver(rows.filter(pl.col("ChargeCategory") == "Usage").select(END.max()).item())
    return rows


def _without_empty_text(rows: pl.DataFrame) -> pl.DataFrame:
    """A quoted empty cell is null like an empty one."""
    empty = rows.select((pl.col(pl.String) == "").any()).row(0, named=True)
    return rows.with_columns(
        pl.when(pl.col(name) != "").then(pl.col(name)).alias(name)
        for name, found in empty.items()
        if found
    )


def _without_blank_lines(rows: pl.DataFrame) -> pl.DataFrame:
    if rows["ChargePeriodEnd"].null_count() == 0:
        return rows
    cell = pl.all().exclude(ROW)
    return rows.filter(~pl.all_horizontal(cell.is_null() | (cell.str.strip_chars() == "")))


def _with_words(rows: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """ChargeCategory and ChargeFrequency in the spelling of FOCUS; a missing category is Usage."""
    for column, words in (("ChargeCategory", _CATEGORIES), ("ChargeFrequency", _FREQUENCIES)):
        if column not in rows.columns:
            rows = rows.with_columns(pl.lit(None, pl.String).alias(column))
        cell = pl.col(column).str.strip_chars()
        rows = rows.with_columns(
            cell.str.to_lowercase()
            .replace_strict(words, default=cell, return_dtype=pl.String)
            .alias(column)
        )
    tally.count("no_category", rows["ChargeCategory"].null_count())
    return rows.with_columns(pl.col("ChargeCategory").fill_null("Usage"))


def _with_times(rows: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    columns = [name for name in TIME_COLUMNS if name in rows.columns]
    times = {name: read_times(rows[name], tally.zone) for name in columns}
    tally.count("zoneless", sum(int(read["zoneless"].sum()) for read in times.values()))
    rows = rows.with_columns(read["time"].alias(f"time:{name}") for name, read in times.items())
    for name in columns:
        unread = rows[name].is_not_null() & rows[f"time:{name}"].is_null()
        if name in PERIOD:
            rows = tally.put_aside(rows, unread, "bad_date", name)
            rows = tally.put_aside(rows, rows[name].is_null(), "missing_date", name)
        else:
            tally.count("unread", int(unread.sum()), name)
    return rows.drop(columns).rename({f"time:{name}": name for name in columns})


def _with_order(rows: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Put aside lines that end before they start; a line of one moment lasts to its day's end."""
    too_long = (END - START > pl.duration(days=_LONGEST_DAYS)) & ~stays_on_first_day()
    bad = rows.select((END < START) | too_long).to_series()
    rows = tally.put_aside(rows, bad, "bad_period", "ChargePeriodEnd")
    moment = START == END
    tally.count("one_moment", rows.filter(moment).height)
    day_end = START.dt.truncate("1d").dt.offset_by("1d")
    return rows.with_columns(pl.when(moment).then(day_end).otherwise(END).alias("ChargePeriodEnd"))


def _observe(rows: pl.DataFrame, tally: Tally) -> None:
    """Keep what concerns the whole bill, whatever the window: used commitments, filled cells."""
    needed = {"CommitmentDiscountId", "EffectiveCost"}
    if needed <= set(rows.columns):
        used = rows.filter(
            pl.col("ChargeCategory") == "Usage",
            pl.col("CommitmentDiscountId").is_not_null(),
            pl.col("EffectiveCost").str.contains(r"^[^eE]*[1-9]"),
        )
        tally.used_commitments.update(used["CommitmentDiscountId"].unique())
    columns = [name for name in (*TEXT_COLUMNS, *JSON_COLUMNS) if name in rows.columns]
    tally.filled.append(
        rows.group_by(START.dt.truncate("1mo").alias("month")).agg(
            pl.len().cast(pl.Int64).alias("lines"), pl.col(columns).count().cast(pl.Int64)
        )
    )


def _with_numbers(rows: pl.DataFrame, window: Window, tally: Tally) -> pl.DataFrame:
    """Texts to ``Decimal(38, 12)``; a line whose cost cannot be read, or is not billed, goes."""
    columns = [name for name in MONEY_COLUMNS if name in rows.columns]
    numbers = {name: read_numbers(rows[name]) for name in columns}
    rows = rows.with_columns(
        read.alias(prefix + name)
        for name, number in numbers.items()
        for prefix, read in (("", number.plain), (_VALUE, number.values), (_FAULT, number.faults))
    )
    missing = rows["BilledCost"].is_null()
    rows = tally.put_aside(rows, missing, "missing_cost", "BilledCost")
    for name in columns:
        if name not in COST_COLUMNS:
            tally.count("unread", rows[_FAULT + name].count(), name)
            continue
        for reason in (BAD_NUMBER, TOO_LARGE):
            bad = (rows[_FAULT + name] == reason).fill_null(False)
            rows = tally.put_aside(rows, bad, reason, name)
    _count_residue(rows, columns, window, tally)
    return rows.drop(columns, cs.starts_with(_FAULT)).rename(
        {_VALUE + name: name for name in columns}
    )


def _count_residue(rows: pl.DataFrame, columns: list[str], window: Window, tally: Tally) -> None:
    """A line's residue counts on its first day only, so that windows add up."""
    first = rows.filter(window.start <= START)
    for name in columns:
        tally.lose(name, rounding_residue(first[name], first[_VALUE + name]))


def _with_unknown_costs(rows: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """A contracted or list cost of 0 beside an effective cost is unknown, never free."""
    for name in ("EffectiveCost", "ContractedCost", "ListCost"):
        if name not in rows.columns:
            continue
        tally.count("null_cost", rows[name].null_count(), name)
        if name != "EffectiveCost" and "EffectiveCost" in rows.columns:
            unknown = (pl.col(name) == 0) & (pl.col("EffectiveCost") > 0)
            tally.count("zero_unknown", rows.filter(unknown).height, name)
            rows = rows.with_columns(
                pl.when(unknown.fill_null(False)).then(None).otherwise(pl.col(name)).alias(name)
            )
    return rows


def _with_json(rows: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Canonical JSON; a cell that is none moves to ``x_Other`` as it stands."""
    for name in JSON_COLUMNS:
        if name in rows.columns:
            read = read_json(rows[name])
            unread = rows[name].is_not_null() & read.is_null()
            tally.count("unread_json", int(unread.sum()), name)
            if unread.any():
                text = pl.when(unread).then(pl.col(name)).alias(OTHER + name)
                rows = rows.with_columns(text)
            rows = rows.with_columns(read.alias(name))
    return rows


def _with_currency(rows: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    code = pl.col("BillingCurrency").str.strip_chars().str.to_uppercase()
    rows = rows.with_columns(pl.when(code != "").then(code).alias("BillingCurrency"))
    missing = rows["BillingCurrency"].is_null()
    return tally.put_aside(rows, missing, "missing_currency", "BillingCurrency")


def _providers(rows: pl.DataFrame) -> list[pl.Expr]:
    """ServiceProviderName (1.3 and later) and ProviderName (up to 1.3) stand in for each other."""
    names = [name for name in ("ServiceProviderName", "ProviderName") if name in rows.columns]
    if not names:
        return []
    return [
        pl.coalesce(names).alias("ServiceProviderName"),
        pl.coalesce(reversed(names)).alias("ProviderName"),
    ]
