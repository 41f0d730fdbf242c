"""Declared costs: the form that people write by hand, and how it is spread over days."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.billing import DeclaredCosts
from collector.billing.declared.entry import Entry
from collector.billing.declared.lines import charges
from ledger.errors import BadInputError
from ledger.facts import Facts
from ledger.settings import Bill
from ledger.window import Window

NOVEMBER = Window.of_days(date(2026, 11, 1), date(2026, 11, 30))
Read = Callable[..., Facts]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Collect a list of the given text."""

    def collect(text: str, name: str = "costs.csv", window: Window = NOVEMBER) -> Facts:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        bill = Bill(name="people", kind="declared", path=str(path), currency="USD")
        return DeclaredCosts(bill, str(path)).collect(window)

    return collect


def total(facts: Facts, cost: str = "EffectiveCost") -> Decimal:
    return Decimal(facts.tables["charges"][cost].sum() or 0)


def test_an_amount_per_month_falls_on_the_days_of_its_calendar_month(read: Read) -> None:
    facts = read("name,amount,per,from\nlabour,100,month,2026-11\n")
    rows = facts.tables["charges"]
    assert rows["day"].to_list() == list(NOVEMBER.days())
    assert total(facts) == 100
    assert set(rows["EffectiveCost"].round(3)) == {Decimal("3.333")}
    assert set(rows["x_Basis"]) == {"declared"}


def test_a_part_of_a_month_pays_for_its_days(read: Read) -> None:
    whole = read("name,amount,per,from\nlabour,100,month,2026-11\n").tables["charges"]
    text = "name,amount,per,from,until\nlabour,100,month,2026-11-16,2026-11-30\n"
    part = read(text).tables["charges"]
    kept = whole.filter(pl.col("day") >= date(2026, 11, 16))
    assert part["EffectiveCost"].to_list() == kept["EffectiveCost"].to_list()
    assert part["day"].min() == date(2026, 11, 16)


def test_one_off_costs_are_spread_if_they_have_a_last_day(read: Read) -> None:
    text = (
        "name,amount,per,from,until\n"
        "licence,365,once,2026-01-01,2026-12-31\n"
        "annotation batch,1200,once,2026-11-03,\n"
    )
    facts = read(text)
    assert total(facts) == 30 + 1200
    batch = facts.tables["charges"].filter(ServiceName="annotation batch")
    assert batch["day"].to_list() == [date(2026, 11, 3)]


def test_a_day_costs_the_same_in_every_window(read: Read) -> None:
    text = "name,amount,per,from,until\na,100,month,2026-10-05,\nb,7,once,2026-11-01,2026-11-09\n"
    whole = read(text).tables["charges"]
    days = [read(text, window=Window.of_day(day)).tables["charges"] for day in NOVEMBER.days()]
    assert pl.concat(days).equals(whole)


def test_a_cost_stands_on_no_invoice_and_says_so(read: Read) -> None:
    facts = read("name,amount,per,from\nlabour,100,month,2026-11\n")
    assert total(facts, "BilledCost") == 0
    assert total(facts, "ListCost") == total(facts, "ContractedCost") == 100


GERMAN = "name;amount;per;from;tags\nx;1.234,50;day;2026-11-01;owner=lin\n"
EXCEL = (
    "\ufeffname,amount,per,from,tag:owner\n\n# rates\n"
    'x,"1,234.50",day,2026-11-01,lin\n'
)  # fmt: skip
FLOW = "- {name: x, amount: 1234.50, per: day, from: 2026-11-01, tags: {owner: lin}}\n"
BLOCK = (
    "costs:\n  - name: x\n    amount: $1,234.50\n    per: day\n    from: 2026-11-01\n"
    "    tags: owner=lin; team=data\n"
)


def test_a_comma_is_no_decimal_point(read: Read) -> None:
    facts = read(GERMAN)
    assert facts.tables["charges"].is_empty()
    assert [entry.reason for entry in facts.quarantine] == ["bad_number"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("costs.csv", GERMAN.replace("1.234,50", "1234.50")),
        ("costs.csv", EXCEL),
        ("costs.yaml", FLOW),
        ("costs.yml", BLOCK),
    ],
)
def test_forms(read: Read, name: str, text: str) -> None:
    facts = read(text, name, Window.of_day(date(2026, 11, 2)))
    (row,) = facts.tables["charges"].to_dicts()
    assert row["EffectiveCost"] == Decimal("1234.50")
    assert '"owner":"lin"' in row["Tags"]


@pytest.mark.parametrize(
    ("row", "reason", "word"),
    [
        ("x,,day,2026-11-01,,", "missing_value", "amount"),
        ("x,ten,day,2026-11-01,,", "bad_number", "ten"),
        ("x,1e40,day,2026-11-01,,", "too_large", "1e40"),
        ("x,1,week,2026-11-01,,", "bad_word", "week"),
        ("x,1,day,2026-13-01,,", "bad_date", "2026-13-01"),
        ("x,1,day,2026-13,,", "bad_date", "2026-13"),
        ("x,1,day,2026-11-02,2026-11-01,", "bad_period", "before"),
        ("x,1,day,2026-11-01,,EURO", "missing_currency", "EURO"),
        ("x,1,day,2026-11-01,,USD,surplus", "bad_row", "more cells"),
    ],
)
def test_a_bad_row_costs_only_itself(read: Read, row: str, reason: str, word: str) -> None:
    facts = read(f"name,amount,per,from,until,currency\n{row}\ngood,5,once,2026-11-04,,\n")
    assert total(facts) == 5
    (entry,) = facts.quarantine
    assert (entry.reason, entry.count) == (reason, 1)
    assert "line 2" in (entry.example or "")
    assert word in (entry.example or "")
    assert facts.seen == 2


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("costs.csv", "", "empty"),
        ("costs.csv", "\n# nothing\n", "no header"),
        ("costs.csv", "name,amount,ammount\n", "ammount"),
        ("costs.csv", "name,amount,amount\n", "twice"),
        ("costs.yaml", "a: 1\n", "no list"),
        ("costs.yaml", "- [\n", "no YAML"),
        ("costs.yaml", "- !!python/object/apply:os.system ['x']\n", "no YAML"),
    ],
)
def test_a_file_of_another_form_is_refused(read: Read, name: str, text: str, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        read(text, name)


def test_several_resources_share_one_amount(read: Read) -> None:
    text = "name,amount,per,from,resource,dimension\n"
    text += "rack,100,day,2026-11-01,node/a;node/b;node/c,compute\n"
    rows = read(text, window=Window.of_day(date(2026, 11, 1))).tables["charges"]
    assert rows["ResourceId"].sort().to_list() == ["node/a", "node/b", "node/c"]
    assert rows["EffectiveCost"].sum() == 100
    assert rows.select("x_LineId", "x_Part").is_unique().all()
    assert set(rows["ServiceCategory"]) == {"Compute"}


def test_equal_rows_both_count_and_ids_do_not_depend_on_the_order(read: Read) -> None:
    a, b = "a,1,day,2026-11-01,2026-11-01", "b,2,day,2026-11-01,2026-11-01"
    head = "name,amount,per,from,until\n"
    one = read(f"{head}{a}\n{a}\n{b}\n").tables["charges"]
    other = read(f"{head}{b}\n{a}\n{a}\n").tables["charges"]
    assert one.equals(other)
    assert one["EffectiveCost"].sum() == 4


def test_a_credit_note_is_negative(read: Read) -> None:
    facts = read("name,amount,per,from\nrefund,-30,month,2026-11\n")
    assert total(facts) == -30
    assert set(facts.tables["charges"]["ChargeCategory"]) == {"Credit"}


@given(
    amount=st.decimals(-(10**9), 10**9, places=12),
    first=st.dates(date(2026, 1, 1), date(2026, 12, 31)),
    length=st.integers(0, 60),
    resources=st.integers(0, 4),
)
def test_what_is_spread_adds_up(amount: Decimal, first: date, length: int, resources: int) -> None:
    last = date.fromordinal(first.toordinal() + length)
    names = tuple(f"node/{number}" for number in range(resources))
    entry = Entry(
        "x", amount, "USD", "once", first, last, "human", "fixed", "x", None, names, None, "{}"
    )
    rows = charges([entry], Window.of_days(date(2026, 1, 1), date(2027, 3, 31)))
    assert rows["EffectiveCost"].sum() == amount
    assert rows.height == (length + 1) * max(resources, 1)


def test_the_example_of_the_documentation_is_read_whole() -> None:
    path = Path(__file__).parents[3] / "docs" / "examples" / "declared.csv"
    facts = DeclaredCosts(Bill(name="x", kind="declared", path=str(path)), str(path)).collect(
        Window.of_days(date(2026, 1, 1), date(2026, 12, 31))
    )
    assert not facts.quarantine
    sums = dict(
        facts.tables["charges"]
        .group_by("ServiceName")
        .agg(pl.col("EffectiveCost").sum())
        .iter_rows()
    )
    assert sums == {
        "Annotation": 12_400 - 800,
        "Human review": 3 * 18_000,
        "Licences": 365,
        "On-premises": 3 * 9_600,
    }
