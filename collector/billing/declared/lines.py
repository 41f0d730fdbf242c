"""Entries to lines, and lines to days: a month's amount falls on the days of its calendar month."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

import polars as pl

from collector.billing.days import to_days
from collector.billing.declared.entry import Entry, month_of
from ledger.money import from_units, split, to_units
from ledger.schema import CHARGES, COST_COLUMNS
from ledger.text import canonical_json, short_hash
from ledger.window import Window

_COSTS = tuple(name for name in COST_COLUMNS if name != "BilledCost")
_SHARED = "x_Shared"


def charges(entries: Sequence[Entry], window: Window) -> pl.DataFrame:
    """The days' parts of declared costs.

    An amount per month is split over all days of its calendar month, by largest remainder, and the
    days outside the entry's period are left out: a day costs the same whatever else is asked for.
    An amount without period (once, no last day) stays on its day.

    Args:
        entries: The costs.
        window: Whole UTC days.

    Returns:
        Rows of ``charges`` without its source column. ``BilledCost`` is 0: the cost stands on no
        invoice of a cloud; the other costs are the amount. ``x_Basis`` is ``declared``.
    """
    rows = [row for entry, number in _numbered(entries) for row in _lines(entry, number, window)]
    schema = {
        name: column.dtype
        for name, column in CHARGES.columns.items()
        if name not in ("day", "x_Part", CHARGES.source_column)
    }
    extra = {_SHARED: pl.String, "first": pl.Date, "last": pl.Date, "order": pl.Int64}
    lines = _over_resources(pl.DataFrame(rows, schema={**schema, **extra}))
    days = to_days(lines, window).filter(pl.col("day").is_between("first", "last"))
    return days.select(name for name in CHARGES.columns if name != CHARGES.source_column).sort(
        "day", "x_LineId", "x_Part"
    )


def _numbered(entries: Sequence[Entry]) -> Iterator[tuple[Entry, str]]:
    """Entries with an id by their content, whatever their place; equal ones are counted."""
    met: Counter[str] = Counter()
    for entry in entries:
        digest = short_hash(canonical_json([str(value) for value in vars(entry).values()]))
        met[digest] += 1
        yield entry, digest if met[digest] == 1 else f"{digest}-{met[digest]}"


def _lines(entry: Entry, number: str, window: Window) -> Iterator[dict[str, object]]:
    """One row per period and resource; the amount is that of all resources together."""
    for start, end in _periods(entry, window):
        line = f"{number}/{start.isoformat()}"
        for order, resource in enumerate(entry.resources or (None,)):
            yield {
                _SHARED: line,
                "order": order,
                "x_LineId": line if order == 0 else f"{line}/{order + 1}",
                "first": entry.first,
                "last": entry.last or (entry.first if entry.per == "once" else date.max),
                **_about(entry, resource),
                **dict.fromkeys(_COSTS, entry.amount),
                "BilledCost": 0 * entry.amount,
                "ChargePeriodStart": Window.of_day(start).start,
                "ChargePeriodEnd": Window.of_day(end - timedelta(days=1)).end,
                "BillingPeriodStart": Window.of_day(month_of(start)[0]).start,
                "BillingPeriodEnd": Window.of_day(month_of(start)[1]).start,
            }


def _periods(entry: Entry, window: Window) -> Iterator[tuple[date, date]]:
    """The half-open periods of an entry that have a day in the window."""
    first, end = window.start.date(), window.end.date()
    if entry.per == "once":
        until = (entry.last or entry.first) + timedelta(days=1)
        if entry.first < end and until > first:
            yield entry.first, until
        return
    day = max(entry.first, first)
    while day < end and (entry.last is None or day <= entry.last):
        start, after = month_of(day) if entry.per == "month" else (day, day + timedelta(days=1))
        yield start, after
        day = after


def _about(entry: Entry, resource: str | None) -> dict[str, object]:
    one_off = entry.per == "once" and entry.last is None
    category = "Purchase" if one_off else "Usage"
    return {
        "x_Basis": "declared",
        "x_Dimension": entry.dimension,
        "x_Elasticity": entry.elasticity,
        "BillingCurrency": entry.currency,
        "ChargeCategory": "Credit" if entry.amount < 0 else category,
        "ChargeFrequency": "One-Time" if entry.per == "once" else "Recurring",
        "ChargeDescription": entry.description or entry.name,
        "ProviderName": entry.provider,
        "ServiceProviderName": entry.provider,
        "ServiceName": entry.service,
        "ServiceCategory": "Compute" if resource and entry.dimension == "compute" else "Other",
        "ResourceId": resource,
        "Tags": entry.tags,
    }


def _over_resources(lines: pl.DataFrame) -> pl.DataFrame:
    """Each line's amount over its resources, evenly and exactly."""
    units = lines.lazy().with_columns(
        *(to_units(pl.col(name)).alias(name) for name in _COSTS), pl.lit(1).alias("weight")
    )
    shares = split(units, group=[_SHARED], amounts=_COSTS, weight="weight", order=["order"])
    return (
        shares.with_columns(from_units(pl.col(name)).alias(name) for name in _COSTS)
        .drop("weight", "order", _SHARED)
        .collect()
    )
