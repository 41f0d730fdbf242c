"""A month is final when the bill says so, and not when the next one begins."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from attribution.finality import billing_months, in_words
from ledger.schema import CHARGES, CLOSES
from ledger.store import Ledger
from ledger.window import Window

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

NOVEMBER, DECEMBER = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
LAST = Window.of_day(date(2026, 11, 30))
PERIOD: dict[str, Any] = {"BillingPeriodStart": NOVEMBER, "BillingPeriodEnd": DECEMBER}


def write(ledger: Ledger, day: DayBuilder, through: datetime | None = DECEMBER) -> None:
    """Write the lines of a day by their bills, each with a close."""
    for (source,), rows in day.frame(CHARGES).group_by("x_Source"):
        ledger.replace(CHARGES, rows.drop("x_Source"), LAST, str(source))
        row = {"day": LAST.start.date(), "status": "closed", "data_through": through}
        close = pl.DataFrame([row], schema={name: CLOSES.columns[name].dtype for name in row})
        ledger.replace(CLOSES, close, LAST, str(source), stage="collect")


def states(ledger: Ledger) -> dict[tuple[str, str, str], str]:
    months = billing_months(ledger, LAST)
    return {(each.source, each.month, each.currency): each.state for each in months}


def test_every_billed_line_names_an_invoice(ledger: Ledger, new_day: type[DayBuilder]) -> None:
    day = new_day().line("l", InvoiceId="1", **PERIOD)
    day.line("zero", effective="0", **PERIOD)
    write(ledger, day)
    assert states(ledger) == {("aws", "2026-11", "USD"): "final"}
    assert in_words(billing_months(ledger, LAST)) == ["November 2026: final"]
    write(ledger, day.line("late", effective="0.01", **PERIOD))
    [month] = billing_months(ledger, LAST)
    assert (month.state, month.uninvoiced) == ("open", 1)
    [words] = in_words([month])
    assert words == "November 2026: open, provisional (aws: 1 line names no invoice)"


def test_a_credit_without_an_invoice_keeps_the_month_open(
    ledger: Ledger, new_day: type[DayBuilder]
) -> None:
    day = new_day().line("l", InvoiceId="1", **PERIOD)
    write(ledger, day.line("c", effective="-1", ChargeCategory="Credit", **PERIOD))
    assert set(states(ledger).values()) == {"open"}


@pytest.mark.parametrize(
    ("through", "state"),
    [
        (datetime(2026, 11, 30, 12, tzinfo=UTC), "open"),
        (DECEMBER, "final"),
        (datetime(2026, 12, 2, tzinfo=UTC), "final"),
        (None, "open"),
    ],
)
def test_a_bill_that_ends_before_its_month_is_open(
    ledger: Ledger, new_day: type[DayBuilder], through: datetime | None, state: str
) -> None:
    write(ledger, new_day().line("l", InvoiceId="1", **PERIOD), through)
    assert set(states(ledger).values()) == {state}


def test_a_bill_that_never_names_an_invoice_is_never_final(
    ledger: Ledger, new_day: type[DayBuilder]
) -> None:
    write(ledger, new_day().line("l", effective="0", **PERIOD))
    assert set(states(ledger).values()) == {"open"}


def test_bills_and_currencies_stand_for_themselves(
    ledger: Ledger, new_day: type[DayBuilder]
) -> None:
    day = new_day().line("l", InvoiceId="1", **PERIOD)
    day.line("c", BillingCurrency="CNY", **PERIOD)
    day.line("g", x_Source="gcp", InvoiceId="7", BilledCost=Decimal(3))
    day.line("d", x_Source="labour", x_Basis="declared")
    write(ledger, day)
    assert states(ledger) == {
        ("aws", "2026-11", "CNY"): "open",
        ("aws", "2026-11", "USD"): "final",
        ("gcp", "2026-11", "USD"): "final",
    }
    named = billing_months(ledger, LAST, frozenset({"gcp"}))
    assert [each.source for each in named] == ["gcp"]
