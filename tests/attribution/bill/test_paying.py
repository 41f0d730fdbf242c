"""Which hours of a node a bill pays for, and which may be priced beside it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from attribution.day import DayCosts

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

Sums = Callable[..., dict[Any, Decimal]]
A = {"experiment": "a"}


@pytest.fixture
def day(new_day: type[DayBuilder]) -> DayBuilder:
    """A price per card-hour, and a pod somewhere else, so that free cards are known to be free."""
    return new_day().price("gpu", "1").pod("elsewhere", node=None)


def reasons(books: DayCosts) -> set[str]:
    return {gap.reason for gap in books.gaps}


def hours_of(books: DayCosts, **where: object) -> list[int]:
    """The hours that rows with money of the bill lie in."""
    rows = books.costs.filter(pl.col("EffectiveCost") != 0, x_Basis="billed", **where)
    return sorted(set(rows["ChargePeriodStart"].dt.hour()))


def test_held_time_beyond_the_rows_of_its_node_is_priced(day: DayBuilder, cost_by: Sums) -> None:
    day.node(end=1.25).pod("u", 1, 3, gpus=4, labels=A)
    day.node(end=4, name="n2")
    books = day.attribute()
    costs = books.costs.filter(node="n1")
    assert cost_by(costs) == {"a": Decimal(8), "__idle__": Decimal(8 + 8)}
    assert costs["gpu_seconds"].sum() == 3 * 8 * 3600
    assert "over_commit" not in reasons(books)


def test_held_time_without_a_price_is_a_gap_with_its_cards(new_day: type[DayBuilder]) -> None:
    day = new_day().node(end=1).node("n2", end=4).pod("u", 2, 3, gpus=8)
    gap = next(gap for gap in day.attribute().gaps if gap.reason == "unpriced")
    assert gap.amounts == {"node_hours": 6.0, "gpu_hours": 48.0}


def test_a_node_that_registered_again_shares_its_line_and_is_not_estimated_on_top(
    day: DayBuilder, cost_by: Sums
) -> None:
    same: dict[str, Any] = {"provider_id": "aws:///us-east-1a/i-n1"}
    day.node("old", 0, 0.25, **same).node("new", 0.25, 1, **same).line("l")
    day.pod("u", 0, 0.25, gpus=8, labels=A, node="old")
    day.pod("v", 0.25, 1, gpus=4, labels=A, node="new")
    books = day.attribute()
    assert cost_by(books.costs, ("node", "experiment", "x_Basis")) == {
        ("old", "a", "billed"): Decimal(2),
        ("new", "a", "billed"): Decimal(3),
        ("new", "__idle__", "billed"): Decimal(3),
    }
    assert "unmatched_node" not in reasons(books)


def test_a_line_of_the_hour_covers_every_name_of_its_resource(
    day: DayBuilder, cost_by: Sums
) -> None:
    same: dict[str, Any] = {"provider_id": "aws:///us-east-1a/i-n1"}
    day.node("old", 0, 1.25, **same).node("new", 1.25, 2, **same).line("l").line("m", hour=1)
    assert set(cost_by(day.attribute().costs, "x_Basis")) == {"billed"}


@pytest.mark.parametrize("resource", [None, "eks-node-group", "/subscriptions/s/vmss/pool"])
def test_machines_of_the_bill_that_meet_no_node_are_not_priced_twice(
    day: DayBuilder, cost_by: Sums, resource: str | None
) -> None:
    day.node(end=2).line("l", resource, until=2, ServiceCategory="Compute")
    books = day.attribute()
    assert cost_by(books.costs, "x_Basis") == {"billed": Decimal(8)}
    assert {"unmatched_node", "unpriced"} <= reasons(books)
    gap = next(gap for gap in books.gaps if gap.reason == "unpriced")
    assert gap.amounts == {"node_hours": 2.0, "gpu_hours": 16.0}


@pytest.mark.parametrize(
    "line",
    [
        {"resource": "i-0f00", "ServiceCategory": "Compute"},
        {"resource": "arn:aws:lambda:us-east-1:1:function:f", "ServiceCategory": "Compute"},
        {"resource": None, "ServiceCategory": "Compute", "ProviderName": "Microsoft"},
        {"resource": None, "ServiceCategory": "Compute", "ChargeCategory": "Tax"},
        {"resource": None, "ServiceCategory": "Compute", "CommitmentDiscountStatus": "Unused"},
        {"resource": None, "ServiceCategory": "Storage"},
    ],
)
def test_what_is_surely_no_node_of_ours_does_not_stop_the_estimate(
    day: DayBuilder, cost_by: Sums, line: dict[str, Any]
) -> None:
    books = day.node(end=1).line("l", **line).attribute()
    assert cost_by(books.costs, "x_Basis") == {"billed": Decimal(8), "estimated": Decimal(8)}
    no_usage = {"ChargeCategory", "CommitmentDiscountStatus"} & set(line)
    machine = line["ServiceCategory"] == "Compute" and not no_usage
    assert ("unmatched_node" in reasons(books)) == machine


def test_a_node_without_a_provider_id_may_be_any_machine_of_the_bill(
    day: DayBuilder, cost_by: Sums
) -> None:
    day.node(end=1, provider_id=None).line("l", "i-0f00", ServiceCategory="Compute")
    assert cost_by(day.attribute().costs, "x_Basis") == {"billed": Decimal(8)}


@pytest.mark.parametrize(
    "line",
    [
        {"ChargeCategory": "Credit", "effective": "-2"},
        {"ChargeCategory": "Tax", "effective": "2"},
        {"effective": "0"},
    ],
)
def test_a_credit_alone_does_not_pay_for_the_hour(
    day: DayBuilder, cost_by: Sums, line: dict[str, Any]
) -> None:
    day.node(end=0.5).pod("u", end=0.5, gpus=8, labels=A).line("c", **line)
    costs = day.attribute().costs
    expected = {"estimated": Decimal(4), "billed": Decimal(line["effective"])}
    assert cost_by(costs, "x_Basis") == expected
    assert set(cost_by(costs.filter(pl.col("EffectiveCost") != 0))) == {"a"}


def test_a_line_of_any_currency_pays_for_the_hour(day: DayBuilder, cost_by: Sums) -> None:
    day.node(end=1).line("l", BillingCurrency="CNY").line("c", effective="-1", ChargeCategory="Tax")
    assert set(cost_by(day.attribute().costs, "x_Basis")) == {"billed"}


def test_a_line_of_a_day_falls_to_the_hours_of_its_node(day: DayBuilder, cost_by: Sums) -> None:
    day.node("n2", gpus=0).node(start=6, end=10).pod("u", 6, 8, gpus=8, labels=A)
    day.line("d", until=24, effective="8", ConsumedQuantity=Decimal(4), ConsumedUnit="Hours")
    day.line("c", until=24, effective="-4", ChargeCategory="Credit")
    books = day.attribute()
    assert cost_by(books.costs) == {"a": Decimal(2), "__idle__": Decimal(2)}
    assert hours_of(books) == [6, 7, 8, 9]
    assert set(books.costs["x_Basis"]) == {"billed"}


def test_a_line_that_counts_its_whole_period_is_spread_evenly(
    day: DayBuilder, cost_by: Sums
) -> None:
    day.node("n2").node(start=12, end=24).pod("u", 12, 24, gpus=8, labels=A)
    day.line("d", until=24, effective="24", ConsumedQuantity=Decimal(24), ConsumedUnit="Hours")
    costs = day.attribute().costs.filter(node="n1")
    assert cost_by(costs) == {"a": Decimal(12), "__idle__": Decimal(12)}


def test_a_line_whose_node_was_never_there_is_spread_evenly(day: DayBuilder) -> None:
    books = day.node("n2").node(start=20, end=21).line("d", until=4, effective="4").attribute()
    assert hours_of(books, node="n1") == [0, 1, 2, 3]


def test_time_that_nobody_saw_keeps_its_part_of_a_days_line(day: DayBuilder, cost_by: Sums) -> None:
    for start, end in ((0, 6), (12, 18)):
        day.node(start=start, end=end, interval=60)
        day.pod(f"u{start}", start, end, gpus=8, labels=A, interval=60)
    books = day.line("d", until=24, effective="24").attribute()
    assert cost_by(books.costs, ("experiment", "reason")) == {
        ("a", None): Decimal(12),
        ("__unattributed__", "no_samples"): Decimal(12),
    }


@pytest.mark.parametrize("unit", ["vCPU-Hours", "GB-Hours", "core-hours", "Hours of storage", None])
def test_only_hours_of_the_instance_are_time(
    day: DayBuilder, cost_by: Sums, unit: str | None
) -> None:
    day.node(start=0.75, end=1).node("n2").pod("u", 0.75, 1, gpus=8, labels=A)
    day.line("l", ConsumedQuantity=Decimal("0.25"), ConsumedUnit=unit)
    costs = day.attribute().costs.filter(node="n1")
    assert cost_by(costs) == {"a": Decimal(2), "__idle__": Decimal(6)}


@pytest.mark.parametrize("unit", ["Hours", "hour", "Hrs", "h", "Instance-Hours", "instance hour"])
def test_hours_of_the_instance_by_any_name_are_time(
    day: DayBuilder, cost_by: Sums, unit: str
) -> None:
    day.node(start=0.75, end=1).node("n2").pod("u", 0.75, 1, gpus=8, labels=A)
    day.line("l", ConsumedQuantity=Decimal("0.5"), ConsumedUnit=unit)
    costs = day.attribute().costs.filter(node="n1")
    assert cost_by(costs) == {"a": Decimal(4), "__idle__": Decimal(4)}


def test_disjoint_periods_add_up_and_equal_ones_do_not(day: DayBuilder, cost_by: Sums) -> None:
    day.node(start=0.75, end=1).node("n2").pod("u", 0.75, 1, gpus=8, labels=A)
    quarter: dict[str, Any] = {
        "ConsumedQuantity": Decimal("0.25"),
        "ConsumedUnit": "Hours",
        "effective": "2",
    }
    day.line("a", hour=0.25, until=0.5, **quarter).line("b", hour=0.75, until=1, **quarter)
    day.line("again", hour=0.75, until=1, **quarter)
    costs = day.attribute().costs.filter(node="n1")
    assert cost_by(costs) == {"a": Decimal(3), "__idle__": Decimal(3)}


def test_lines_without_a_node_pay_for_the_nodes_and_the_rest_is_named(
    day: DayBuilder, cost_by: Sums
) -> None:
    day.node(end=2).pod("u", end=2, gpus=6, labels=A)
    day.line("l", None, until=2, effective="15", ServiceCategory="Compute")
    day.line("m", None, effective="3", hour=1, ServiceCategory="Compute")
    books = day.attribute()
    assert cost_by(books.costs, ("experiment", "x_Basis")) == {
        ("a", "billed"): Decimal(12),
        ("__idle__", "billed"): Decimal(4),
        ("__unattributed__", "billed"): Decimal(2),
    }
    assert set(books.costs.filter(node="n1")["confidence"]) == {"low"}
    assert set(books.costs["x_PriceSource"]) == {"unmatched"}
    assert any("meet no node" in note for note in books.notes)
    assert "unpriced" not in reasons(books)
    assert "unmatched_node" in reasons(books)


def test_a_line_that_its_tags_name_pays_for_no_other(day: DayBuilder, cost_by: Sums) -> None:
    day.node(end=1)
    day.line("l", None, effective="9", ServiceCategory="Compute", Tags='{"experiment":"b"}')
    books = day.attribute()
    assert cost_by(books.costs) == {"b": Decimal(9)}
    assert "unpriced" in reasons(books)


def test_lines_that_pay_for_less_than_the_nodes_pay_for_none_of_them(
    day: DayBuilder, cost_by: Sums
) -> None:
    day.node(end=1).line("l", None, effective="7.99", ServiceCategory="Compute")
    books = day.attribute()
    assert cost_by(books.costs, ("target", "reason")) == {
        ("__unattributed__", "no_rule"): Decimal("7.99")
    }
    assert "unpriced" in reasons(books)


def test_a_price_in_another_currency_stands_beside_no_bill(day: DayBuilder, cost_by: Sums) -> None:
    day.node(end=2, gpu_model="H100").line("l", until=2, effective="19", BillingCurrency="CAD")
    books = day.attribute()
    assert cost_by(books.costs, "BillingCurrency") == {"CAD": Decimal(19)}
    gap = next(gap for gap in books.gaps if gap.reason == "currency")
    assert gap.amounts == {"node_hours": 2.0, "gpu_hours": 16.0}
    day.rows["prices"][0]["currency"] = "CAD"
    assert "currency" not in reasons(day.attribute())


EC2: dict[str, Any] = {"ServiceName": "Amazon Elastic Compute Cloud", "RegionId": "us-east-1"}


@pytest.mark.parametrize(
    "fields",
    [
        {"ServiceName": "AWS Lambda", "SkuMeter": "USE1-Lambda-GB-Second"},
        {"ServiceName": "Amazon Elastic Kubernetes Service", "SkuMeter": "EKS-Hours:perCluster"},
        {"ServiceName": "Amazon SageMaker", "SkuMeter": "USE1-Host:ml.p5.48xlarge"},
        {"ServiceName": "Kubernetes Engine", "ChargeDescription": "Zonal cluster management fee"},
        {"ServiceName": "Cloud Functions"},
        {"ServiceSubcategory": "Serverless Compute"},
        EC2 | {"SkuMeter": "USE1-EBS:VolumeUsage.gp3"},
        EC2 | {"SkuMeter": "USE1-NatGateway-Hours"},
        EC2 | {"SkuMeter": "USE1-PublicIPv4:InUseAddress"},
        EC2 | {"SkuMeter": "BoxUsage:m5.4xlarge"},
        EC2 | {"SkuPriceDetails": '{"InstanceType":"c7i.large"}'},
        EC2 | {"RegionId": "eu-west-1", "SkuMeter": "EU-BoxUsage:p5.48xlarge"},
    ],
)
def test_what_is_no_machine_of_this_kind_pays_for_no_node(
    day: DayBuilder, cost_by: Sums, fields: dict[str, Any]
) -> None:
    day.node(end=1, provider_id=None, instance_type="p5.48xlarge", region="us-east-1")
    day.pod("u", end=1, gpus=8, labels=A)
    day.line("l", None, effective="100", ServiceCategory="Compute", **fields)
    books = day.attribute()
    assert cost_by(books.costs, ("experiment", "x_Basis")) == {
        ("a", "estimated"): Decimal(8),
        ("__unattributed__", "billed"): Decimal(100),
    }
    assert not any("meet no node" in note for note in books.notes)


@pytest.mark.parametrize(
    "fields",
    [
        EC2 | {"SkuMeter": "BoxUsage:p5.48xlarge"},
        EC2 | {"ChargeDescription": "$98.32 per On Demand Linux p5.48xlarge Instance Hour"},
        {"ServiceName": "Virtual Machines", "RegionId": "East US"},
        {"ServiceName": "Lambda Cloud"},
        {},
    ],
)
def test_a_machine_that_may_be_a_node_pays_for_it(
    day: DayBuilder, cost_by: Sums, fields: dict[str, Any]
) -> None:
    day.node(end=1, provider_id=None, instance_type="p5.48xlarge", region="us-east-1")
    day.pod("u", end=1, gpus=8, labels=A)
    day.line("l", None, effective="100", ServiceCategory="Compute", **fields)
    costs = day.attribute().costs
    assert cost_by(costs) == {"a": Decimal(8), "__unattributed__": Decimal(92)}
    assert set(costs["x_Basis"]) == {"billed"}


def test_a_line_pays_for_node_hours_of_its_own_time_only(day: DayBuilder, cost_by: Sums) -> None:
    day.node(end=2).pod("u", end=1, gpus=8, labels=A)
    machine: dict[str, Any] = {"ServiceCategory": "Compute"}
    day.line("late", None, hour=1, effective="100", **machine)
    day.line("day", None, until=24, effective="8", **machine)
    costs = day.attribute().costs.filter(pl.col("EffectiveCost") != 0)
    assert cost_by(costs, ("x_LineId", "experiment")) == {
        ("day", "a"): Decimal(8),
        ("late", "__idle__"): Decimal(8),
        ("late", "__unattributed__"): Decimal(92),
    }
    day.rows["charges"].pop()
    books = day.attribute()
    assert cost_by(books.costs) == {"__unattributed__": Decimal(100)}
    assert "unpriced" in reasons(books)


def test_withheld_hours_are_named_by_type(day: DayBuilder) -> None:
    day.node(end=1, instance_type="p5.48xlarge").node("n2", end=2, instance_type="p4d.24xlarge")
    day.line("l", None, effective="1", ServiceCategory="Compute")
    gaps = [gap for gap in day.attribute().gaps if gap.reason == "unpriced"]
    assert [(gap.as_dict()["type"], gap.amounts) for gap in gaps] == [
        ("p4d.24xlarge", {"node_hours": 2.0, "gpu_hours": 16.0}),
        ("p5.48xlarge", {"node_hours": 1.0, "gpu_hours": 8.0}),
    ]


@pytest.mark.parametrize("currency", ["USD", "EUR"])
def test_a_declared_cost_of_a_node_that_is_not_there_is_named_and_stops_no_estimate(
    day: DayBuilder, cost_by: Sums, currency: str
) -> None:
    own: dict[str, Any] = {"x_Basis": "declared", "BillingCurrency": currency}
    day.node(end=1).line("rack", "node/m1", effective="99", ServiceCategory="Compute", **own)
    books = day.attribute()
    assert cost_by(books.costs, "x_Basis") == {"declared": Decimal(99), "estimated": Decimal(8)}
    [gap] = [gap for gap in books.gaps if gap.reason == "unknown_node"]
    assert "node/m1" in gap.detail
    assert reasons(books) == {"unknown_node"}


def test_a_fee_in_advance_that_counts_twice_is_said(new_day: type[DayBuilder]) -> None:
    day = new_day().pod("elsewhere", node=None).node(end=24).price("node", "24", kind="upfront")
    bought: dict[str, Any] = {"ChargeCategory": "Purchase", "ServiceCategory": "Compute"}
    day.line("fee", "cr-1", until=24, effective="1152", **bought)
    assert any("counts it twice" in note for note in day.attribute().notes)
    day.rows["charges"][0]["EffectiveCost"] = Decimal(0)
    assert not any("counts it twice" in note for note in day.attribute().notes)
