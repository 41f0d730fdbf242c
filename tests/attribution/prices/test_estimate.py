"""Prices by key and time: which counts, for how long, and what has none."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from attribution.day import DayCosts
from ledger.facts import Gap
from ledger.settings import Settings
from tests.attribution.conftest import at

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

Sums = Callable[..., dict[Any, Decimal]]
A, B = {"experiment": "a"}, {"experiment": "b"}
P5: dict[str, Any] = {"instance_type": "p5.48xlarge", "region": "us-east-1", "gpu_model": "H100"}


@pytest.fixture
def day(new_day: type[DayBuilder]) -> DayBuilder:
    """A pod somewhere else, so that free cards are known to be free."""
    return new_day().pod("elsewhere", node=None)


def gaps(books: DayCosts, reason: str) -> list[Gap]:
    return [gap for gap in books.gaps if gap.reason == reason]


def total(books: DayCosts) -> Decimal:
    return sum(books.costs["EffectiveCost"], Decimal(0))


def test_the_most_specific_key_counts(day: DayBuilder) -> None:
    day.node(end=1, zone="us-east-1a", labels='{"kubernetes.io/os":"linux"}', **P5)
    day.price("node", "1").price("node", "2", provider="AWS").price("node", "3", provider="gcp")
    day.price("node", "4", provider="Amazon Web Services", region="US-EAST-1")
    day.price("node", "5", provider="aws", region="us-east-1", zone="us-east-1a")
    assert total(day.attribute()) == 5
    key = {"region": "us-east-1", "zone": "us-east-1a", "provider": "aws", "tenancy": "shared"}
    day.price("node", "6", operating_system="Linux", **key)
    day.price("node", "7", operating_system="windows", instance_type="p5.48xlarge", **key)
    day.price("node", "8", **(key | {"tenancy": "dedicated", "instance_type": "p5.48xlarge"}))
    assert total(day.attribute()) == 6


def test_a_spot_node_never_costs_the_on_demand_price(day: DayBuilder) -> None:
    day.node(end=1, capacity_type="spot", **P5).price("node", "98", capacity_type="on-demand")
    books = day.attribute()
    assert books.costs.is_empty()
    [gap] = gaps(books, "unpriced")
    assert gap.amounts == {"node_hours": 1.0, "gpu_hours": 8.0}
    assert gap.as_dict()["type"] == "p5.48xlarge"
    books = day.price("node", "30", capacity_type="spot", kind="spot").attribute()
    assert total(books) == 30
    assert set(books.costs["x_PriceSource"]) == {"spot"}


@pytest.mark.parametrize(
    ("first", "second", "counts"),
    [
        ("settings", "spot", "settings"),
        ("contract", "list", "contract"),
        ("spot", "list", "spot"),
        ("list", "metric", "list"),
        ("metric", "reference", "metric"),
        (None, "list", "settings"),
    ],
)
def test_the_order_of_truth(day: DayBuilder, first: str | None, second: str, counts: str) -> None:
    # The lower one has the more specific key.
    day.node(end=1, **P5).price("node", "2", kind=first)
    books = day.price("node", "3", kind=second, instance_type="p5.48xlarge").attribute()
    assert total(books) == 2
    assert set(books.costs["x_PriceSource"]) == {counts}


def test_a_unit_price_of_the_settings_is_above_a_published_price_of_the_node(
    day: DayBuilder,
) -> None:
    day.node(end=1, **P5).price("node", "98", kind="list").price("gpu", "2.5", gpu_model="H100")
    assert total(day.attribute()) == 20


def test_two_prices_of_one_key_are_named_and_price_nothing(day: DayBuilder) -> None:
    day.node(end=2, **P5).price("node", "98").price("node", "98").price("gpu", "1")
    assert total(day.attribute()) == 2 * 98
    books = day.price("node", "97").attribute()
    assert books.costs.is_empty()
    [gap] = gaps(books, "price_ambiguous")
    assert gap.as_dict()["type"] == "p5.48xlarge"
    assert gaps(books, "unpriced")[0].amounts["gpu_hours"] == 16


def test_prices_of_one_key_in_two_currencies_are_two_keys(day: DayBuilder) -> None:
    day.node(end=1, **P5).price("node", "98").price("node", "700", currency="CNY")
    for home, cost in (("USD", 98), ("CNY", 700)):
        books = day.attribute(Settings(currency=home))
        assert set(books.costs["BillingCurrency"]) == {home}
        assert total(books) == cost


def test_parts_in_two_currencies_are_never_added(day: DayBuilder) -> None:
    day.node(end=1, gpus=0).price("vcpu", "1").price("gib", "1", currency="EUR")
    books = day.attribute()
    assert books.costs.is_empty()
    assert gaps(books, "currency")
    assert gaps(books, "unpriced")


def test_zero_is_no_price_of_a_card_unless_it_is_meant(day: DayBuilder) -> None:
    day.node(end=1, **P5).price("gpu", "0", gpu_model="H100")
    books = day.attribute()
    assert books.costs.is_empty()
    assert gaps(books, "unpriced")[0].amounts["gpu_hours"] == 8
    day.rows["prices"].clear()
    books = day.price("gpu", "0", gpu_model="H100", kind="free").attribute()
    assert not gaps(books, "unpriced")
    assert set(books.costs["x_PriceSource"]) == {"free"}
    assert total(books) == 0


def test_a_price_that_is_known_to_exist_is_not_replaced_by_a_lower_one(day: DayBuilder) -> None:
    day.node(end=1, **P5).price("gpu", "2", gpu_model="H100")
    day.price("node", "0", instance_type="p5.48xlarge", capacity_type=None)
    books = day.attribute()
    assert books.costs.is_empty()
    assert "known to exist" in gaps(books, "unpriced")[0].detail


def test_a_price_that_changes_inside_an_hour_falls_to_who_was_there(
    day: DayBuilder, cost_by: Sums
) -> None:
    day.node(end=1, capacity_type="spot", **P5)
    for price, start, end in (("8", 0, 0.5), ("16", 0.5, 24)):
        day.price("node", price, capacity_type="spot", kind="spot", start=at(start), end=at(end))
    day.pod("u", 0, 0.5, gpus=8, labels=A).pod("v", 0.5, 1, gpus=4, labels=B)
    books = day.attribute()
    assert cost_by(books.costs) == {
        "a": Decimal(4),
        "b": Decimal(4),
        "__idle__": Decimal(4),
    }
    assert books.costs["gpu_seconds"].sum() == 8 * 3600
    assert books.costs["x_LineId"].n_unique() == 2
    assert books.coverage == 1


def test_amount_and_price_move_together(day: DayBuilder, cost_by: Sums) -> None:
    day.node(start=0.25, end=2.5, gpus=4, gpu_model="L4")
    for price, start, end in (("1", 0, 0.75), ("3", 0.75, 1.5), ("2", 1.5, 24)):
        day.price("gpu", price, start=at(start), end=at(end))
    day.pod("u", 0.5, 1.75, gpus=2, labels=A)
    books = day.attribute()
    # 2 cards: .25 h at 1, .75 h at 3, .25 h at 2; the node: .5 h at 1, .75 at 3, 1 at 2.
    assert cost_by(books.costs)["a"] == 2 * (Decimal("0.25") + Decimal("2.25") + Decimal("0.5"))
    assert total(books) == 4 * (Decimal("0.5") + Decimal("2.25") + 2)


def test_a_pod_pays_nothing_for_the_time_without_a_price(day: DayBuilder, cost_by: Sums) -> None:
    day.node(end=1, **P5).price("node", "8", start=at(0.5))
    day.pod("u", 0, 0.5, gpus=8, labels=A).pod("v", 0.5, 1, gpus=8, labels=B)
    books = day.attribute()
    assert cost_by(books.costs) == {"b": Decimal(4)}
    assert gaps(books, "unpriced")[0].amounts == {"node_hours": 0.5, "gpu_hours": 4.0}


def test_a_credit_of_a_cut_hour_is_split_once(day: DayBuilder, cost_by: Sums) -> None:
    day.node(end=2, **P5).price("node", "8", end=at(0.5)).price("node", "16", start=at(0.5))
    day.line("c", until=2, effective="-2", ChargeCategory="Credit")
    books = day.attribute()
    assert cost_by(books.costs, "x_Basis") == {"estimated": Decimal(28), "billed": Decimal(-2)}


def test_a_metric_prices_its_own_node_with_low_confidence(day: DayBuilder) -> None:
    day.node(end=1, **P5).node("n2", end=1, **P5)
    day.price("node", "40", kind="metric", node="n2", source="prometheus/c1")
    day.price("node", "41", kind="metric", node="n1", source="prometheus/other")
    books = day.attribute()
    assert total(books) == 40
    assert books.costs.select("node", "x_PriceSource", "confidence").unique().rows() == [
        ("n2", "metric", "low")
    ]
    assert gaps(books, "unpriced")[0].amounts["node_hours"] == 1


def test_a_metric_far_from_the_book_is_put_aside_and_named(day: DayBuilder) -> None:
    day.node(end=1, **P5).price("gpu", "2", gpu_model="H100")
    day.price("node", "161", kind="metric", node="n1")
    books = day.attribute()
    assert total(books) == 16
    [gap] = gaps(books, "price_outlier")
    assert gap.as_dict()["node"] == "n1"
    assert gap.amounts["factor"] == pytest.approx(161 / 16)
    day.rows["prices"][-1]["price_per_hour"] = Decimal(160)
    assert not gaps(day.attribute(), "price_outlier")


def test_a_card_priced_alone_adds_its_host(day: DayBuilder) -> None:
    size: dict[str, Any] = {"cpu_millicores": 16_000, "memory_bytes": 64 * 2**30}
    day.node(end=0.5, gpus=2, gpu_model="H100", **size)
    day.price("gpu_alone", "10").price("vcpu", "0.5").price("gib", "0.25")
    assert total(day.attribute()) == (20 + 8 + 16) / 2


def test_a_reserved_node_of_lines_of_nothing_is_priced_once(day: DayBuilder, cost_by: Sums) -> None:
    day.node(end=2, capacity_type="reserved", **P5)
    day.line("l0", effective="0", ServiceCategory="Compute")
    day.line("l1", hour=1, effective="0", ServiceCategory="Compute")
    day.line("fee", "cr-1", effective="1152", ChargeCategory="Purchase", x_Dimension="compute")
    day.price("node", "24", capacity_type="reserved", kind="upfront")
    books = day.attribute()
    assert cost_by(books.costs, ("x_Basis", "node")) == {
        ("estimated", "n1"): Decimal(48),
        ("billed", "n1"): Decimal(0),
        ("billed", None): Decimal(1152),
    }
    assert set(books.costs.filter(x_Basis="estimated")["x_PriceSource"]) == {"upfront"}
