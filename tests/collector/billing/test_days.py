"""Lines to days: the parts add up exactly, whatever the window."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.billing.days import SUMMABLE, to_days
from ledger.facts import Facts
from ledger.schema import CHARGES
from ledger.window import Window

Collect = Callable[..., Facts]
START = datetime(2026, 1, 1, tzinfo=UTC)
YEARS = Window.of_days(date(2025, 12, 1), date(2028, 12, 31))
UNITS = 10**12

moments = st.integers(0, 40 * 86_400).map(lambda seconds: START + timedelta(seconds=seconds))
lengths = st.integers(1, 40 * 86_400).map(lambda seconds: timedelta(seconds=seconds))
amounts = st.none() | st.decimals(-(10**9), 10**9, places=12)


def lines(periods: list[tuple[datetime, timedelta]], costs: list[Decimal | None]) -> pl.DataFrame:
    columns = {
        "x_LineId": [str(n) for n in range(len(periods))],
        "ChargePeriodStart": [start for start, _ in periods],
        "ChargePeriodEnd": [start + length for start, length in periods],
        "ChargeCategory": ["Usage"] * len(periods),
        "ChargeFrequency": ["Usage-Based"] * len(periods),
        "BilledCost": costs,
        "ConsumedQuantity": costs,
    }
    schema = {name: CHARGES.schema[name] for name in columns}
    rest = [
        pl.lit(None, CHARGES.schema[name]).alias(name) for name in SUMMABLE if name not in columns
    ]
    return pl.DataFrame(columns, schema=schema).with_columns(rest)


@settings(deadline=None)
@given(st.lists(st.tuples(moments, lengths, amounts), min_size=1, max_size=12))
def test_parts_add_up_and_each_is_its_time_within_one_unit(
    drawn: list[tuple[datetime, timedelta, Decimal | None]],
) -> None:
    frame = lines([(start, length) for start, length, _ in drawn], [cost for *_, cost in drawn])
    parts = to_days(frame, YEARS)
    for number, (start, length, cost) in enumerate(drawn):
        mine = parts.filter(pl.col("x_LineId") == str(number)).sort("day")
        assert mine["x_Part"].to_list() == list(range(mine.height))
        seconds = (mine["ChargePeriodEnd"] - mine["ChargePeriodStart"]).dt.total_seconds()
        assert seconds.sum() == length.total_seconds()
        assert (mine["ChargePeriodStart"][0], mine["ChargePeriodEnd"][-1]) == (
            start,
            start + length,
        )
        assert mine["ChargePeriodStart"].dt.date().to_list() == mine["day"].to_list()
        if cost is None:
            assert mine["BilledCost"].null_count() == mine.height
            continue
        assert mine["BilledCost"].sum() == mine["ConsumedQuantity"].sum() == cost
        for part, share in zip(mine["BilledCost"], seconds, strict=True):
            fair = Fraction(cost) * share / int(length.total_seconds())
            assert abs(Fraction(part) - fair) < Fraction(1, UNITS)


@settings(deadline=None)
@given(
    st.lists(st.tuples(moments, lengths, amounts), min_size=1, max_size=8),
    st.integers(1, 60),
)
def test_two_windows_hold_what_one_holds(
    drawn: list[tuple[datetime, timedelta, Decimal | None]], days: int
) -> None:
    frame = lines([(start, length) for start, length, _ in drawn], [cost for *_, cost in drawn])
    cut = YEARS.start + timedelta(days=days)
    halves = [to_days(frame, Window(YEARS.start, cut)), to_days(frame, Window(cut, YEARS.end))]
    key = ["x_LineId", "x_Part"]
    assert pl.concat(halves).sort(key).equals(to_days(frame, YEARS).sort(key))


def test_hundred_over_three_days(collect: Collect) -> None:
    facts = collect([{
        "ChargePeriodStart": "2026-05-01T00:00:00Z", "ChargePeriodEnd": "2026-05-04T00:00:00Z",
        "BilledCost": "100", "EffectiveCost": "-100", "ListCost": "NULL",
        "PricingQuantity": "72", "ListUnitPrice": "1.5",
    }])  # fmt: skip
    charges = facts.tables["charges"]
    third = Decimal("33.333333333333")
    assert charges["BilledCost"].to_list() == [third + Decimal("1e-12"), third, third]
    assert charges["EffectiveCost"].to_list() == [-third - Decimal("1e-12"), -third, -third]
    assert charges["ListCost"].to_list() == [None] * 3
    assert charges["PricingQuantity"].to_list() == [24] * 3
    assert charges["ListUnitPrice"].to_list() == [Decimal("1.5")] * 3
    assert charges["x_Part"].to_list() == [0, 1, 2]
    assert charges["x_LineId"].n_unique() == 1


def test_a_short_line_over_midnight_is_split(collect: Collect) -> None:
    facts = collect([{
        "ChargePeriodStart": "2026-05-01T22:00:00Z", "ChargePeriodEnd": "2026-05-02T06:00:00Z",
        "BilledCost": "8",
    }])  # fmt: skip
    parts = facts.tables["charges"].select("day", "BilledCost").rows()
    assert parts == [(date(2026, 5, 1), 2), (date(2026, 5, 2), 6)]


@pytest.mark.parametrize(
    ("category", "frequency", "days"),
    [
        ("Usage", "Usage-Based", 31),
        ("Usage", "One-Time", 31),
        ("Purchase", "Recurring", 31),
        ("Tax", "", 31),
        ("Credit", "One-Time", 31),
        ("Purchase", "One-Time", 1),
        ("purchase", "ONE-TIME", 1),
    ],
)
def test_what_is_split_and_what_is_paid_on_its_first_day(
    collect: Collect, category: str, frequency: str, days: int
) -> None:
    row = {
        "ChargePeriodStart": "2026-05-01T00:00:00Z", "ChargePeriodEnd": "2026-06-01T00:00:00Z",
        "ChargeCategory": category, "ChargeFrequency": frequency, "BilledCost": "31",
    }  # fmt: skip
    whole = collect([row]).tables["charges"]
    assert (whole.height, whole["BilledCost"].sum()) == (days, 31)
    second = collect([row], Window.of_day(date(2026, 5, 2))).tables["charges"]
    assert second["BilledCost"].to_list() == ([1] if days == 31 else [])
    first = collect([row], Window.of_day(date(2026, 5, 1))).tables["charges"]
    assert first["x_Part"].to_list() == [0]


def test_a_day_of_a_bill_is_the_same_alone_and_in_its_month(collect: Collect) -> None:
    rows = [
        {"ChargePeriodStart": f"2026-05-{day:02}T20:00:00Z",
         "ChargePeriodEnd": f"2026-05-{day + 2:02}T03:00:00Z",
         "BilledCost": f"{day}.0000000000007"}
        for day in range(1, 28)
    ]  # fmt: skip
    month = collect(rows, Window.of_days(date(2026, 5, 1), date(2026, 5, 31)))
    days = [collect(rows, Window.of_day(date(2026, 5, day))) for day in range(1, 32)]
    frames = pl.concat([facts.tables["charges"] for facts in days])
    assert frames.equals(month.tables["charges"])
    residues = (facts.residue.get("BilledCost", Decimal(0)) for facts in days)
    assert sum(residues, Decimal(0)) == month.residue["BilledCost"] == 27 * Decimal("-3e-13")
