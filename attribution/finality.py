"""Whether a month of a bill is final: only when the bill says so, by the ids of its invoices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import polars as pl

from ledger.schema import CHARGES, CLOSES
from ledger.store import Ledger
from ledger.window import Window

OPEN, FINAL = "open", "final"


@dataclass(frozen=True)
class BillingMonth:
    """A billing month of a bill in one currency.

    Args:
        source: The bill, by its name in the settings.
        month: ``YYYY-MM``.
        currency: ISO 4217.
        state: ``open``, or ``final``.
        why: Why it is open, in words; empty if it is final.
        uninvoiced: Billed lines without an invoice id.
        data_through: End of the delivered data; None if there is no data.
    """

    source: str
    month: str
    currency: str
    state: str
    why: str
    uninvoiced: int
    data_through: datetime | None

    def as_dict(self) -> dict[str, object]:
        """The month as JSON data."""
        return {
            "source": self.source,
            "month": self.month,
            "currency": self.currency,
            "state": self.state,
            "why": self.why,
            "uninvoiced": self.uninvoiced,
            "data_through": self.data_through,
        }


def billing_months(
    ledger: Ledger, window: Window, sources: frozenset[str] | None = None
) -> list[BillingMonth]:
    """The months of all bills that the window touches, by source, month and currency.

    A month is final if each of its lines that bill money names an invoice, and data was delivered
    through its end. A line without a billing period is of the month of its charge period.

    Args:
        ledger: The ledger.
        window: What was asked for.
        sources: Names of the bills that count; None counts all.

    Raises:
        SourceError: The ledger cannot be read.
    """
    around = _whole_months(window)
    lines = ledger.scan(CHARGES, around).filter(pl.col("x_Basis") == "billed")
    if sources is not None:
        lines = lines.filter(pl.col("x_Source").is_in(sorted(sources)))
    start = pl.coalesce("BillingPeriodStart", "ChargePeriodStart").dt.truncate("1mo")
    end = pl.coalesce("BillingPeriodEnd", start.dt.offset_by("1mo"))
    lacks = (pl.col("BilledCost") != 0) & pl.col("InvoiceId").is_null()
    key = ["x_Source", "month", "BillingCurrency"]
    months = (
        lines.with_columns(start.alias("month"), end.alias("period_end"))
        .group_by(key)
        .agg(
            pl.col("period_end").max(),
            lacks.fill_null(value=False).sum().cast(pl.Int64).alias("uninvoiced"),
            pl.col("InvoiceId").is_not_null().any().alias("invoiced"),
            pl.col("ChargePeriodEnd").max().alias("last"),
        )
        .collect()
    )
    asked = pl.col("month").is_between(*_first_and_last(window))
    rows = months.filter(asked).join(_delivered(ledger, around), on="x_Source", how="left")
    return [_month(row) for row in rows.sort(key).iter_rows(named=True)]


def _delivered(ledger: Ledger, window: Window) -> pl.DataFrame:
    """``x_Source, through``: how far each source says that it delivered."""
    closes = ledger.scan(CLOSES, window).filter(pl.col("stage") == "collect")
    sums = closes.group_by("source").agg(pl.col("data_through").max().alias("through"))
    return sums.rename({"source": "x_Source"}).collect()


def _month(row: Mapping[str, Any]) -> BillingMonth:
    month, period_end = row["month"], row["period_end"]
    through = row["through"] or row["last"]
    uninvoiced = row["uninvoiced"]
    why = []
    if uninvoiced or not row["invoiced"]:
        why.append("the bill names no invoice" if not row["invoiced"] else _lacking(uninvoiced))
    if through is None or through < period_end:
        why.append("not all of it is delivered")
    return BillingMonth(
        row["x_Source"],
        month.strftime("%Y-%m"),
        row["BillingCurrency"],
        OPEN if why else FINAL,
        " and ".join(why),
        uninvoiced,
        through,
    )


def _lacking(lines: int) -> str:
    return f"{lines:,} line{' names' if lines == 1 else 's name'} no invoice"


def _first_and_last(window: Window) -> tuple[datetime, datetime]:
    """The first moments of the first and of the last month of a window."""
    last = window.end - timedelta(microseconds=1)
    first, other = (
        at.replace(day=1, hour=0, minute=0, second=0, microsecond=0) for at in (window.start, last)
    )
    return first, other


def _whole_months(window: Window) -> Window:
    """The whole months that a window touches."""
    first, last = _first_and_last(window)
    after = (last + timedelta(days=32)).replace(day=1)
    return Window.of_days(first.date(), date.fromordinal(after.date().toordinal() - 1))


def in_words(months: Sequence[BillingMonth]) -> list[str]:
    """A line per month of a currency: final, or open and why; months of one answer together."""
    found: dict[str, list[BillingMonth]] = {}
    for each in months:
        found.setdefault(each.month, []).append(each)
    lines = []
    for month, bills in found.items():
        name = datetime.strptime(month, "%Y-%m").strftime("%B %Y")  # noqa: DTZ007
        still = [each for each in bills if each.state == OPEN]
        if still:
            why = "; ".join(f"{each.source}: {each.why}" for each in still)
            lines.append(f"{name}: open, provisional ({why})")
        else:
            lines.append(f"{name}: final")
    return lines
