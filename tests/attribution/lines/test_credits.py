"""Credits, refunds and discounts without a resource: to the usage of their account and product."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from ledger.schema import COST_COLUMNS
from ledger.settings import Settings

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

Sums = Callable[..., dict[Any, Decimal]]
A, B = {"experiment": "a"}, '{"experiment":"b"}'
EC2: dict[str, Any] = {"ServiceName": "EC2", "BillingAccountId": "1", "SubAccountId": "2"}


@pytest.fixture
def day(new_day: type[DayBuilder]) -> DayBuilder:
    """A node for two hours at 16, half held, and a disk at 4, of one account and product."""
    day = new_day().node(end=2).pod("u", end=2, gpus=4, labels=A)
    day.line("node", until=2, effective="16", ServiceCategory="Compute", **EC2)
    return day.line("disk", "vol-1", until=2, effective="4", Tags=B, **EC2)


def of_credit(day: DayBuilder, cost_by: Sums, by: str = "experiment") -> dict[Any, Decimal]:
    books = day.attribute()
    for name in COST_COLUMNS:
        charged = sum((row[name] for row in day.rows["charges"]), Decimal(0))
        assert sum(books.costs[name], Decimal(0)) == charged
    return cost_by(books.costs.filter(x_LineId="c"), by)


@pytest.mark.parametrize("category", ["Credit", "Adjustment", "Usage"])
def test_a_credit_goes_to_its_usage_by_cost(day: DayBuilder, cost_by: Sums, category: str) -> None:
    day.line("c", None, until=24, effective="-10", ChargeCategory=category, **EC2)
    assert of_credit(day, cost_by) == {
        "a": Decimal(-4),
        "__idle__": Decimal(-4),
        "b": Decimal(-2),
    }


def test_a_credit_without_a_sub_account_is_for_all_of_them(day: DayBuilder, cost_by: Sums) -> None:
    day.line("other", "vol-2", until=2, effective="20", **(EC2 | {"SubAccountId": "3"}))
    account: dict[str, Any] = EC2 | {"SubAccountId": None}
    day.line("c", None, until=24, effective="-10", ChargeCategory="Credit", **account)
    assert of_credit(day, cost_by) == {
        "a": Decimal(-2),
        "__idle__": Decimal(-2),
        "b": Decimal(-1),
        "__unattributed__": Decimal(-5),
    }


@pytest.mark.parametrize(
    "fields",
    [
        {"ServiceName": "S3"},
        {"ServiceName": None},
        {"SubAccountId": "3"},
        {"BillingAccountId": "9"},
        {"BillingCurrency": "EUR"},
        {"hour": 3},
    ],
)
def test_a_credit_without_usage_is_shared(
    day: DayBuilder, cost_by: Sums, fields: dict[str, Any]
) -> None:
    told: dict[str, Any] = (
        EC2 | {"ChargeCategory": "Credit", "effective": "-10", "until": 24} | fields
    )
    day.line("c", None, **told)
    assert of_credit(day, cost_by) == {"__shared__": Decimal(-10)}


def test_a_credit_that_is_named_or_has_a_resource_stays_with_it(
    day: DayBuilder, cost_by: Sums
) -> None:
    credit: dict[str, Any] = {"until": 2, "effective": "-1", "ChargeCategory": "Credit"} | EC2
    day.line("c", None, Tags='{"owner":"lin"}', **credit)
    day.line("c", "i-n1", **credit)
    assert of_credit(day, cost_by, "owner")["lin"] == -1
    assert of_credit(day, cost_by)["a"] == Decimal("-0.5")


def test_a_rule_that_names_everything_is_no_name(day: DayBuilder, cost_by: Sums) -> None:
    day.line("c", None, until=24, effective="-10", ChargeCategory="Credit", **EC2)
    settings = Settings.model_validate(
        {"identity": {"experiment": ["label:experiment", "default:rest"]}}
    )
    books = day.attribute(settings)
    assert cost_by(books.costs.filter(x_LineId="c"))["a"] == -4


def test_taxes_and_support_stay_rows_of_their_own(day: DayBuilder, cost_by: Sums) -> None:
    day.line("c", None, until=24, effective="3", ChargeCategory="Tax", **EC2)
    assert of_credit(day, cost_by) == {"__unattributed__": Decimal(3)}


def test_a_credit_follows_usage_only_in_its_period(day: DayBuilder, cost_by: Sums) -> None:
    day.line("c", None, hour=1, until=2, effective="-10", ChargeCategory="Credit", **EC2)
    costs = day.attribute().costs.filter(x_LineId="c")
    assert cost_by(costs)["b"] == -2
    nodes = costs.filter(pl.col("node").is_not_null())
    assert set(nodes["ChargePeriodStart"].dt.hour()) == {1}


def test_a_declared_credit_note_is_nobodys_usage(day: DayBuilder, cost_by: Sums) -> None:
    note: dict[str, Any] = {"ChargeCategory": "Credit", "x_Basis": "declared", "effective": "-1"}
    day.line("c", None, until=24, **(EC2 | note))
    assert of_credit(day, cost_by) == {"__unattributed__": Decimal(-1)}
