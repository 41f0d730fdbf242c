"""A late or corrected bill: old, new and difference stand in the books, once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl
import pytest

from attribution.restated import difference
from attribution.run import attribute
from ledger.schema import CLOSES, RESTATEMENTS
from ledger.settings import Settings
from ledger.store import Ledger
from ledger.window import Window

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

DAY = date(2026, 11, 30)
WINDOW = Window.of_day(DAY)
Write = Callable[..., None]


def a_day(new_day: type[DayBuilder]) -> DayBuilder:
    day = new_day().node(end=1, gpus=8, gpu_model="H100").price("gpu", "2", gpu_model="H100")
    return day.pod("u", end=1, gpus=6, labels={"experiment": "a"})


def close(ledger: Ledger) -> list[str]:
    """The notes of the day's close that tell of changes."""
    attribute(ledger, Settings(), [DAY], version="test")
    row = ledger.scan(CLOSES, WINDOW).filter(pl.col("stage") == "attribute").collect()
    notes = row["notes"].str.json_decode(pl.List(pl.String))[0].to_list()
    return [note for note in notes if note.startswith("restated")]


def changes(ledger: Ledger) -> dict[tuple[str, str], tuple[Decimal | None, ...]]:
    rows = ledger.scan(RESTATEMENTS, WINDOW).with_columns(difference()).collect()
    keys = ("experiment", "BillingCurrency", "old", "new", "difference")
    return {tuple(row[:2]): row[2:] for row in rows.select(keys).iter_rows()}


def test_a_late_bill_takes_the_place_of_the_estimate(
    ledger: Ledger, new_day: type[DayBuilder], write_day: Write
) -> None:
    write_day(ledger, a_day(new_day))
    assert close(ledger) == []
    write_day(ledger, a_day(new_day).line("l", effective="20"), digest="d2")
    told = [
        "restated (bill, usage): __idle__ 4 -> 5 USD, difference 1",
        "restated (bill, usage): a 12 -> 15 USD, difference 3",
    ]
    assert close(ledger) == told
    assert changes(ledger)["a", "USD"] == (Decimal(12), Decimal(15), Decimal(3))
    # Once more: the same figures, and the same notes.
    assert close(ledger) == told


def test_a_bill_in_another_currency_is_no_difference(
    ledger: Ledger, new_day: type[DayBuilder], write_day: Write
) -> None:
    write_day(ledger, a_day(new_day))
    close(ledger)
    late = a_day(new_day).line("l", effective="20", BillingCurrency="CAD")
    write_day(ledger, late, digest="d2")
    close(ledger)
    assert changes(ledger)["a", "USD"] == (Decimal(12), None, Decimal(-12))
    assert changes(ledger)["a", "CAD"] == (None, Decimal(15), Decimal(15))


@pytest.mark.parametrize("first", ["20", "0.000000000007"])
def test_restating_a_bill_and_back_gives_the_first_rows(
    ledger: Ledger, new_day: type[DayBuilder], write_day: Write, first: str
) -> None:
    from ledger.schema import COSTS_DAILY

    write_day(ledger, a_day(new_day).line("l", effective=first))
    close(ledger)
    before = ledger.scan(COSTS_DAILY, WINDOW).collect()
    write_day(ledger, a_day(new_day).line("l", effective="31"), digest="d2")
    close(ledger)
    write_day(ledger, a_day(new_day).line("l", effective=first), digest="d1")
    close(ledger)
    assert ledger.scan(COSTS_DAILY, WINDOW).collect().equals(before)
