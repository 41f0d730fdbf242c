"""A day that is attributed again: nothing twice, and only what changed is a restatement."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from attribution.query.answer import Query, query
from attribution.run import attribute, stale_days
from ledger.schema import CHARGES, CLOSES, NODES, RESTATEMENTS, WORKLOADS
from ledger.settings import Settings
from ledger.store import Ledger
from ledger.window import Window
from tests.field_cases import allocation_cases

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

NAMED = Settings()


def write(ledger: Ledger, rows: DayBuilder, day: date, digest: str) -> None:
    """The rows of the builder's day, moved to another one, with a close of the bill."""
    window = Window.of_day(day)
    for table, source in ((CHARGES, "aws"), (NODES, "kubernetes/c1"), (WORKLOADS, "kubernetes/c1")):
        frame = rows.frame(table)
        moved = timedelta(days=(day - frame["day"][0]).days)
        times = [name for name, kind in table.schema.items() if kind == pl.Datetime("us", "UTC")]
        frame = frame.with_columns(pl.lit(day).alias("day"), pl.col(times) + moved)
        ledger.replace(table, frame.drop(table.source_column or ""), window, source)
    row = {"day": day, "status": "closed", "coverage": 1.0, "digest": digest, "gaps": "[]"}
    close = pl.DataFrame([row], schema={name: CLOSES.columns[name].dtype for name in row})
    ledger.replace(CLOSES, close, window, "aws", stage="collect")


def rows_per_day(ledger: Ledger, window: Window, pod: str) -> dict[str, int]:
    """Rows of a pod by day, as a query by pod exports them."""
    rows = query(ledger, Query(window, by=("day", "pod")))[0].rows
    days = [row["day"] for row in rows if row["pod"] == pod]
    return {day: days.count(day) for day in days}


def test_a_second_export_adds_nothing_twice(
    shared: Path, ledger: Ledger, new_day: type[DayBuilder]
) -> None:
    case = allocation_cases(shared)["S10-b"]
    given, expect = case["given"], case["expect"]
    first, end = (date.fromisoformat(text) for text in given["window"])
    days = [first, end - timedelta(days=1)]
    (pod,) = given["pods"]
    facts = new_day().node(end=1).line("l").pod("u", end=1, gpus=8, pod=pod)
    for day in days:
        write(ledger, facts, day, "d1")
    present = [date.fromisoformat(text) for text in given["present"]]
    attribute(ledger, NAMED, present, version="test")
    stale = stale_days(ledger, NAMED)
    assert [day.isoformat() for day in stale] == expect["changed"]
    window = Window.of_days(*days)
    for _ in range(given["exports"]):
        attribute(ledger, NAMED, stale_days(ledger, NAMED), version="test")
        assert rows_per_day(ledger, window, pod) == expect["rows"]
    assert ledger.scan(RESTATEMENTS).collect().is_empty()


def test_a_bill_that_is_corrected_and_corrected_back_gives_the_first_rows(
    ledger: Ledger, new_day: type[DayBuilder]
) -> None:
    day = date(2026, 11, 30)
    right = new_day().node(end=1).line("l").pod("u", end=1, gpus=6, labels={"experiment": "a"})
    wrong = new_day().node(end=1).line("l", effective="9")
    wrong.pod("u", end=1, gpus=6, labels={"experiment": "a"})
    read = []
    for facts, digest in ((right, "d1"), (wrong, "d2"), (right, "d1")):
        write(ledger, facts, day, digest)
        attribute(ledger, NAMED, stale_days(ledger, NAMED), version="test")
        read.append(query(ledger, Query(Window.of_day(day)))[0])
    assert read[0].rows == read[2].rows != read[1].rows
    told = ledger.scan(RESTATEMENTS).filter(pl.col("experiment") == "a").collect()
    changes = [(str(old), str(new)) for old, new in told.select("old", "new").iter_rows()]
    assert ("6.000000000000", "6.750000000000") in changes
    assert ("6.750000000000", "6.000000000000") in changes
