"""Traffic by the bytes that pods sent and received."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from ledger.settings import Identity, Settings
from tests.field_cases import allocation_cases

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

Sums = Callable[..., dict[Any, Decimal]]
NAT = {"ServiceCategory": "Networking", "SkuMeter": "USE1-NatGateway-Bytes", "ConsumedUnit": "GB"}
SLOTS = 96


def sends(day: DayBuilder, uid: str, rate: float, meter: str = "transmit") -> DayBuilder:
    for slot in range(SLOTS):
        day.use(uid, f"network_{meter}", slot / 4, rate)
    return day


def cluster(new_day: type[DayBuilder], **rates: float) -> DayBuilder:
    day = new_day().node(gpus=0)
    for uid, rate in rates.items():
        sends(day.pod(uid, labels={"experiment": uid}), uid, rate)
    return day


def test_an_estimate_above_the_bill_is_scaled_to_it(
    shared: Path, new_day: type[DayBuilder]
) -> None:
    case = allocation_cases(shared)["B39-a"]
    day = cluster(new_day, **case["given"]["estimate"])
    day.line("egress", None, 0, 24, str(case["given"]["bill"]), ServiceCategory="Networking")
    costs = day.attribute().costs.filter(x_LineId="egress")
    rows = {name: float(cost) for name, cost in costs.select("uid", "EffectiveCost").iter_rows()}
    assert rows == pytest.approx(case["expect"]["rows"], abs=case["tolerance"])
    assert float(costs["EffectiveCost"].sum()) == case["expect"]["total"]


def test_classes_keep_their_prices(shared: Path, new_day: type[DayBuilder]) -> None:
    """Each class is a line of the bill, at its own price; a free one stays free."""
    case = allocation_cases(shared)["B39-b"]
    given = case["given"]
    words = {
        "s3_same_region_endpoint": "USE1-VpcEndpoint-Bytes data transfer",
        "cross_zone": "USE1-DataTransfer-Regional-Bytes",
        "internet": "USE1-DataTransfer-Out-Bytes",
        "nat_processed": "USE1-NatGateway-Bytes",
    }
    day = cluster(new_day, a=3, b=1)
    for name, gib in given["gib"].items():
        price = Decimal(str(given["price"][name]))
        day.line(
            name, None, 0, 24, str(price * gib), ServiceCategory="Networking", SkuMeter=words[name],
            ConsumedQuantity=Decimal(gib), ListUnitPrice=price,
        )  # fmt: skip
    costs = day.attribute().costs
    assert costs["uid"].drop_nulls().unique().len() == 2
    rows = dict(costs.group_by("x_LineId").agg(pl.col("EffectiveCost").sum()).iter_rows())
    found = {name: float(rows[name]) for name in words}
    assert found == pytest.approx(case["expect"]["rows"], abs=case["tolerance"])
    assert sum(found.values()) == pytest.approx(case["expect"]["total"], abs=case["tolerance"])
    free = costs.filter(x_LineId="s3_same_region_endpoint")
    assert free["EffectiveCost"].to_list() == [0] * free.height


def test_a_row_says_that_bytes_are_but_an_estimate(new_day: type[DayBuilder]) -> None:
    day = cluster(new_day, a=3, b=1).line("nat", "arn:aws:ec2:r:1:natgateway/nat-0a", 0, 24, **NAT)
    costs = day.attribute().costs.filter(x_LineId="nat")
    rows = costs.select("experiment", "resource", "confidence", "cluster", "EffectiveCost").rows()
    assert rows == [
        ("a", "network", "low", "c1", Decimal(6)),
        ("b", "network", "low", "c1", Decimal(2)),
    ]


def test_lines_of_what_came_in_split_by_what_came_in(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = cluster(new_day, a=3, b=1)
    sends(sends(day, "a", 1, "receive"), "b", 7, "receive")
    day.line("in", None, 0, 24, ServiceCategory="Networking", SkuMeter="USE1-DataTransfer-In-Bytes")
    assert cost_by(day.attribute().costs.filter(x_LineId="in")) == {"a": 1, "b": 7}


def test_an_hour_goes_to_who_sent_in_it(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(gpus=0)
    for uid, slot, rate in (("a", 1.0, 1), ("a", 1.5, 1), ("b", 1.75, 2), ("b", 2.0, 100)):
        day.use(uid, "network_transmit", slot, rate)
    day.pod("a", labels={"experiment": "a"}).pod("b", labels={"experiment": "b"})
    costs = day.line("nat", None, 1, 2, **NAT).attribute().costs.filter(x_LineId="nat")
    assert cost_by(costs) == {"a": 4, "b": 4}


def test_the_tags_of_a_line_come_first(new_day: type[DayBuilder], cost_by: Sums) -> None:
    named = Settings(identity=Identity(experiment=("label:experiment", "default:rest")))
    day = cluster(new_day, a=1).line("nat", None, 0, 24, Tags='{"experiment":"x"}', **NAT)
    day.line("other", None, 0, 24, **NAT)
    costs = day.attribute(named).costs
    assert cost_by(costs.filter(x_LineId="nat"), ("target", "experiment")) == {("charge", "x"): 8}
    assert cost_by(costs.filter(x_LineId="other"), ("target", "experiment")) == {
        ("workload", "a"): 8
    }


def test_two_clusters_need_a_tag(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = cluster(new_day, a=1).node("n2", cluster="c2", gpus=0)
    sends(day.pod("b", cluster="c2", node="n2", labels={"experiment": "b"}), "b", 1)
    for row in day.rows["usage"]:
        row["cluster"] = "c2" if row["uid"] == "b" else "c1"
    for name, tags in (
        ("eks", '{"aws:eks:cluster-name":"c2"}'),
        ("owned", '{"kubernetes.io/cluster/c1":"owned"}'),
        ("elsewhere", '{"goog-k8s-cluster-name":"c3"}'),
        ("nobody", "{}"),
    ):
        day.line(name, None, 0, 24, Tags=tags, **NAT)
    costs = day.attribute().costs
    rows = cost_by(costs, ("x_LineId", "experiment"))
    assert rows["eks", "b"] == rows["owned", "a"] == 8
    assert rows["elsewhere", "__unattributed__"] == rows["nobody", "__unattributed__"] == 8


def test_bytes_of_a_pod_without_a_life_are_nobodys(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = sends(cluster(new_day, a=1), "gone", 3).line("nat", None, 0, 24, **NAT)
    costs = day.attribute().costs.filter(x_LineId="nat")
    assert cost_by(costs, ("target", "reason", "experiment")) == {
        ("workload", None, "a"): Decimal(2),
        ("__unattributed__", "no_samples", "__unattributed__"): Decimal(6),
    }


def test_without_counters_a_line_goes_to_its_tags(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = cluster(new_day).line("nat", None, 0, 24, **NAT)
    assert cost_by(day.attribute().costs.filter(x_LineId="nat"), ("target", "confidence")) == {
        ("__unattributed__", "high"): Decimal(8)
    }
    day.pod("a").use("a", "network_transmit", 3, 1).line("early", None, 1, 2, **NAT)
    books = day.attribute()
    early = books.costs.filter(x_LineId="early")
    assert cost_by(early, ("target", "confidence")) == {("__unattributed__", "low"): Decimal(8)}
    assert any("counted bytes of pods" in note for note in books.notes)


@pytest.mark.parametrize(
    ("words", "splits"),
    [
        ({"ServiceCategory": "Networking"}, True),
        ({"ServiceName": "Elastic Load Balancing", "SkuMeter": "USE1-LCUUsage"}, True),
        ({"ServiceCategory": "Compute", "SkuMeter": "USE1-DataTransfer-Regional-Bytes"}, True),
        ({"SkuMeter": "Network Internet Egress from Iowa", "ConsumedUnit": "gibibyte"}, True),
        ({"ServiceCategory": "Networking", "ServiceName": "Amazon Route 53"}, False),
        ({"ServiceCategory": "Networking", "ServiceName": "AWS Direct Connect"}, False),
        ({"ServiceCategory": "Storage"}, False),
        ({}, False),
    ],
)
def test_which_lines_are_traffic(
    new_day: type[DayBuilder],
    words: dict[str, str],
    splits: bool,
) -> None:
    day = cluster(new_day, a=1).line("l", None, 0, 24, **words)
    assert (day.attribute().costs.filter(x_LineId="l")["uid"].to_list() == ["a"]) is splits


def test_a_line_of_a_node_stays_the_nodes(new_day: type[DayBuilder]) -> None:
    day = cluster(new_day, a=1).line("node", "i-n1", 0, 24, **NAT)
    assert day.attribute().costs.filter(x_LineId="node")["node"].unique().to_list() == ["n1"]
