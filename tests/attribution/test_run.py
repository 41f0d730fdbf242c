"""The stage against a real ledger: replaced whole, repeatable, restated."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from attribution.run import attribute, stale_days
from attribution.split import node_shares
from ledger.errors import RunbillError
from ledger.schema import CLOSES, COSTS, COSTS_DAILY, RESTATEMENTS
from ledger.settings import Prices, Settings
from ledger.store import Ledger

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

DAY = date(2026, 11, 30)
Write = Callable[..., None]
TABLES = (COSTS, COSTS_DAILY, RESTATEMENTS, CLOSES)


def a_day(new_day: type[DayBuilder], price: str = "8") -> DayBuilder:
    day = new_day().node(end=1).line("l", effective=price)
    return day.pod("u", end=1, gpus=6, labels={"experiment": "a"})


def everything(ledger: Ledger) -> list[pl.DataFrame]:
    return [ledger.scan(table).collect() for table in TABLES]


def test_running_twice_leaves_the_same_rows(
    ledger: Ledger, new_day: type[DayBuilder], write_day: Write
) -> None:
    write_day(ledger, a_day(new_day))
    assert stale_days(ledger, Settings()) == [DAY]
    (close,) = attribute(ledger, Settings(), [DAY], version="1")
    first = everything(ledger)
    assert (close.status, close.rows, first[0].height) == ("closed", 2, 2)
    assert stale_days(ledger, Settings()) == []
    attribute(ledger, Settings(), [DAY], version="1")
    for before, after in zip(first, everything(ledger), strict=True):
        assert_frame_equal(before, after)


def test_other_inputs_or_settings_make_a_day_stale(
    ledger: Ledger, new_day: type[DayBuilder], write_day: Write
) -> None:
    write_day(ledger, a_day(new_day))
    attribute(ledger, Settings(), [DAY], version="1")
    assert stale_days(ledger, Settings(prices=Prices(vcpu=Decimal("0.1")))) == [DAY]
    write_day(ledger, a_day(new_day), digest="d2")
    assert stale_days(ledger, Settings()) == [DAY]


def test_a_restated_bill_is_told_and_a_second_run_keeps_it(
    ledger: Ledger, new_day: type[DayBuilder], write_day: Write
) -> None:
    write_day(ledger, a_day(new_day))
    attribute(ledger, Settings(), [DAY], version="1")
    original = ledger.scan(COSTS).collect()
    write_day(ledger, a_day(new_day, "16"), digest="d2")
    (close,) = attribute(ledger, Settings(), [DAY], version="1")
    told = [("__idle__", Decimal(2), Decimal(4)), ("a", Decimal(6), Decimal(12))]
    columns = ["experiment", "old", "new"]
    assert list(close.restated.select(columns).iter_rows()) == told
    attribute(ledger, Settings(), [DAY], version="1")
    rows = ledger.scan(RESTATEMENTS).collect()
    assert list(rows.sort("experiment").select(columns).iter_rows()) == told
    assert rows["why"].unique().to_list() == ["bill, usage"]
    write_day(ledger, a_day(new_day))
    attribute(ledger, Settings(), [DAY], version="1")
    assert_frame_equal(ledger.scan(COSTS).collect(), original)
    assert ledger.scan(RESTATEMENTS).collect().height == 4


def test_a_first_attribution_is_no_restatement(
    ledger: Ledger, new_day: type[DayBuilder], write_day: Write
) -> None:
    write_day(ledger, a_day(new_day))
    (close,) = attribute(ledger, Settings(), [DAY], version="1")
    assert close.restated.is_empty()


def test_the_close_tells_gaps_and_notes(
    ledger: Ledger, new_day: type[DayBuilder], write_day: Write
) -> None:
    day = a_day(new_day).node("n2", gpu_model="B300").node(end=1, interval=60)
    write_day(ledger, day)
    (close,) = attribute(ledger, Settings(), [DAY], version="1")
    row = ledger.scan(CLOSES).filter(pl.col("stage") == "attribute").collect().row(0, named=True)
    assert close.status == row["status"] == "gaps"
    assert {gap["reason"] for gap in json.loads(row["gaps"])} == {
        "no_samples",
        "unmatched_node",
        "unpriced",
    }
    assert json.loads(row["notes"])[0].startswith("1 pod with low confidence")
    assert (row["version"], row["settings_hash"]) == ("1", Settings().digest())


def test_books_that_do_not_balance_are_not_written(
    ledger: Ledger, new_day: type[DayBuilder], write_day: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_day(ledger, a_day(new_day))
    monkeypatch.setattr("attribution.rows.node_shares", lambda *given: node_shares(*given).head(1))
    with pytest.raises(RunbillError, match="do not equal"):
        attribute(ledger, Settings(), [DAY], version="1")
    assert ledger.scan(COSTS).collect().is_empty()
    assert stale_days(ledger, Settings()) == [DAY]
