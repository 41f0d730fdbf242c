"""Cards and parts of cards: who holds what of a card, and what is left of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attribution.day import DayCosts
from attribution.efficiency import efficiencies
from attribution.nodes.devices import CARD, Asked, Offered, share
from attribution.query.answer import Query, query
from attribution.query.question import Sharing
from attribution.run import attribute
from collector.layouts import layout
from collector.prometheus.meters.slots import SLOT
from ledger.settings import NodePool, PoolMatch, Settings
from ledger.store import Ledger
from ledger.window import Window
from tests.effort import examples
from tests.field_cases import allocation_cases

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

Sums = Callable[..., dict[Any, Decimal]]
A100 = "NVIDIA-A100-SXM4-40GB"
MIG = {
    f"nvidia.com/mig-{name}": units
    for name, units in (
        ("1g.5gb", "1/7"),
        ("2g.10gb", "2/7"),
        ("3g.20gb", "3/7"),
        ("4g.20gb", "4/7"),
    )
}
AWS = Settings(node_pools=(NodePool(match=PoolMatch(label="pool=*"), split="aws-split"),))


def units(**resources: str | None) -> str:
    """The column ``gpu_units``; ``_`` in a name stands for what a name of Python cannot hold."""
    return json.dumps({f"nvidia.com/{name}": value for name, value in resources.items()})


def request(**resources: int) -> str:
    return json.dumps({f"nvidia.com/{name}": value for name, value in resources.items()})


def mig(day: DayBuilder, cards: int = 1, **fields: Any) -> DayBuilder:  # noqa: ANN401
    return day.node(gpus=cards, gpu_model=A100, gpu_units=json.dumps(MIG), **fields)


def sliced(day: DayBuilder, uid: str, profile: str, end: float, start: float = 0) -> DayBuilder:
    name = f"nvidia.com/mig-{profile}"
    return day.pod(
        uid, start, end, gpus=1, gpu_resource=name, gpu_request=json.dumps({name: 1}), pod=uid
    )


def by_pod(books: DayCosts) -> dict[str, float]:
    frame = books.costs.with_columns(pl.coalesce("uid", "target").alias("who"))
    sums = frame.group_by("who").agg(pl.col("EffectiveCost").sum().cast(pl.Float64))
    return {"__idle__": 0.0} | dict(sums.iter_rows())


def card_hours(books: DayCosts) -> dict[str, Decimal]:
    frame = books.costs.with_columns(pl.coalesce("uid", "target").alias("who"))
    return dict(frame.group_by("who").agg(pl.col("gpu_seconds").sum() / 3600).iter_rows())


def gap(books: DayCosts, reason: str) -> Any:  # noqa: ANN401
    return next(gap for gap in books.gaps if gap.reason == reason)


def approx(case: Mapping[str, Any], expected: object) -> Any:  # noqa: ANN401
    return pytest.approx(expected, abs=case["tolerance"])


@pytest.mark.parametrize("name", ["S13-a", "S13-c"])
def test_slices_of_a_card_over_a_day(shared: Path, new_day: type[DayBuilder], name: str) -> None:
    case = allocation_cases(shared)[name]
    told, expect = case["given"], case["expect"]
    labels = {"nvidia.com/gpu.product": A100, "nvidia.com/mig.strategy": "mixed"}
    offered = {f"nvidia.com/mig-{pod['profile']}": 1 for pod in told["pods"]}
    read = layout(offered, labels.get)
    day = new_day().node(gpus=1, gpu_model=A100, gpu_units=read.units_json)
    price = Decimal(told["day_price"]) if "day_price" in told else None
    days = told.get("days_in_month", 1)
    day.line("l", until=24, effective=str(price or Decimal(told["month_price"]) / days))
    for pod in told["pods"]:
        sliced(day, pod["pod"], pod["profile"], pod["hours"])
    books = day.attribute()
    assert by_pod(books) == approx(case, expect["rows"])
    assert float(books.costs["EffectiveCost"].sum()) == expect["total"] == expect["day_price"]
    hours = card_hours(books)
    slices = {who: float(cards) * told["max_slices"] for who, cards in hours.items()}
    idle = slices.pop("__idle__")
    assert sum(slices.values()) == pytest.approx(expect["slice_hours"]["used"])
    assert idle == pytest.approx(expect["slice_hours"]["idle"])


def test_idle_of_a_card_goes_to_its_slices_by_their_time(
    shared: Path, new_day: type[DayBuilder], ledger: Ledger, write_day: Callable[..., None]
) -> None:
    cases = allocation_cases(shared)
    case, pods = cases["S13-b"], cases["S13-a"]["given"]["pods"]
    day = mig(new_day()).line("l", until=24, effective=str(case["given"]["amount"]))
    for pod in pods:
        slices = int(pod["profile"][0])
        assert slices * pod["hours"] == case["given"]["weights"][pod["pod"]]
        sliced(day, pod["pod"], pod["profile"], pod["hours"])
    write_day(ledger, day)
    attribute(ledger, Settings(), [Window.of_day(day.facts().day).start.date()], version="test")
    (result,) = query(
        ledger, Query(Window.of_day(day.facts().day), by=("pod",), sharing=Sharing(idle=True))
    )
    assert {row["pod"]: float(row["cost"]) for row in result.rows} == approx(
        case, case["expect"]["rows"]
    )
    assert result.total == case["expect"]["total"]


@pytest.mark.parametrize("name", ["S21-a", "S21-b", "S21-c", "S21-d"])
def test_all_tenants_of_a_card_pay_one_card(
    shared: Path, new_day: type[DayBuilder], name: str
) -> None:
    case = allocation_cases(shared)[name]
    told, expect = case["given"], case["expect"]
    read = layout(told["capacity"], told["labels"].get)
    day = new_day().node(gpus=read.cards, gpu_units=read.units_json, end=told["hours"])
    day.line("l", effective=str(told["card_price_hour"]))
    ((resource, amount),) = told["request"].items()
    for pod in range(told["pods"]):
        day.pod(f"p{pod}", end=1, gpus=amount, gpu_resource=resource)
    rows = by_pod(day.attribute())
    assert rows.pop("__idle__") == expect["idle"]
    assert sum(rows.values()) == approx(case, expect["total"])
    assert list(rows.values()) == [approx(case, expect["each"])] * told["pods"]


def test_four_pods_on_a_shared_card_are_one_card_hour(
    shared: Path, new_day: type[DayBuilder]
) -> None:
    case = allocation_cases(shared)["B01"]
    told, expect = case["given"], case["expect"]
    size = told["node"]["capacity"]
    cards = {name: amount for name, amount in size.items() if name.startswith("nvidia.com/")}
    read = layout(cards, told["node"]["labels"].get)
    day = new_day().node(
        gpus=read.cards,
        gpu_units=read.units_json,
        cpu_millicores=size["cpu"] * 1000,
        memory_bytes=size["memory_gb"] * 2**30,
        labels='{"pool":"x"}',
        end=1,
    )
    day.line("l", effective=str(told["node"]["price_hour"]))
    for pod in range(told["pods"]):
        day.pod(f"p{pod}", end=1, gpu_request=json.dumps(told["request"]), gpus=1)
    costs = day.attribute(AWS).costs.filter(resource="gpu")
    assert float(costs["EffectiveCost"].sum()) == approx(case, expect["gpu_cost_total"])
    assert costs.height == told["pods"]
    for row in costs.iter_rows(named=True):
        assert float(row["EffectiveCost"]) == approx(case, expect["gpu_cost_each"])
        assert float(row["gpu_seconds"] / 3600) == approx(case, expect["gpu_hours_each"])
    assert float(costs["gpu_seconds"].sum() / 3600) == expect["gpu_hours_total"]


@pytest.mark.parametrize(
    ("asked", "offered", "cards"),
    [
        (Asked(gpus=3), Offered(), "3"),
        (Asked(request(gpu=2)), Offered(), "2"),
        (Asked(gpus=2, gpu_resource="nvidia.com/gpu"), Offered(units(gpu="1/4")), "1/2"),
        (Asked(gpus=1), Offered(units(gpu="1/4")), "1/4"),
        (Asked(json.dumps({"nvidia.com/mig-1g.5gb": 2})), Offered(json.dumps(MIG)), "2/7"),
        (Asked('{"amd.com/gpu":8}'), Offered('{"amd.com/gpu":"1"}'), "8"),
        # HAMi: the larger of the two parts, of each virtual card, one card at most.
        (Asked(request(gpu=2, gpucores=30, gpumem=20480)), Offered(units(gpu="1"), 40960), "1"),
        (Asked(request(gpu=1, gpucores=30, gpumem=10240)), Offered(units(gpu="1"), 40960), "3/10"),
        (Asked(request(gpu=1, gpucores=30)), Offered(units(gpu="1/10")), "3/10"),
        (Asked(request(gpu=1, gpumem=99999)), Offered(units(gpu="1"), 40960), "1"),
        (Asked(request(gpu=3)), Offered(units(gpu="1")), "3"),
        (Asked('{"nvidia.com/gpu":1,"nvidia.com/gpumem-percentage":25}'), Offered(), "1/4"),
        # KAI and Run:ai: no request at all.
        (Asked(gpus=0, fraction="0.5"), Offered(units(gpu="1")), "1/2"),
        (Asked(fraction="0.25", devices="2"), Offered(), "1/2"),
        (Asked(gpus=0, memory_mib="10240"), Offered(None, 40960), "1/4"),
        (Asked(gpus=0, memory_mib="10240", devices="3"), Offered(None, 40960), "3/4"),
        (Asked(gpus=2, fraction="0.5"), Offered(), "2"),
        (Asked(gpus=0), Offered(units(gpu="1/4")), "0"),
        (Asked("{}"), Offered(), "0"),
    ],
)
def test_what_a_pod_holds(asked: Asked, offered: Offered, cards: str) -> None:
    found = share(asked, offered)
    assert found.cards == Fraction(cards)
    assert found.unsized is None
    assert found.parts == Fraction(cards) * CARD


@pytest.mark.parametrize(
    ("asked", "offered", "what"),
    [
        (Asked(json.dumps({"nvidia.com/mig-9g.80gb": 1})), Offered(json.dumps(MIG)), "mig-9g.80gb"),
        (Asked(json.dumps({"nvidia.com/mig-1g.5gb": 1})), Offered(), "mig-1g.5gb"),
        (Asked(request(gpu=1)), Offered(units(gpu=None)), "nvidia.com/gpu"),
        (Asked(request(gpu=1, gpumem=1024)), Offered(units(gpu="1")), "gpumem"),
        (Asked(gpus=0, memory_mib="1024"), Offered(), "gpu-memory"),
        (Asked(gpus=0, fraction="half"), Offered(), "gpu-fraction half"),
    ],
)
def test_what_is_not_known_of_a_card_is_no_guess(asked: Asked, offered: Offered, what: str) -> None:
    found = share(asked, offered)
    assert found.cards is None
    assert what in (found.unsized or "")


def test_a_request_that_nobody_told_is_not_the_fault_of_the_node() -> None:
    assert share(Asked(), Offered()) == share(Asked("no JSON"), Offered())
    assert (share(Asked(), Offered()).cards, share(Asked(), Offered()).unsized) == (None, None)


@pytest.mark.parametrize(
    "key", ["gpu-fraction", "kai.scheduler/gpu-fraction", "annotation_runai_gpu_fraction"]
)
def test_a_fraction_needs_no_request(new_day: type[DayBuilder], cost_by: Sums, key: str) -> None:
    day = new_day().node(gpus=1, end=1).line("l")
    day.pod("a", end=1, annotations=json.dumps({key: "0.25"}), labels={"experiment": "a"})
    day.pod("b", end=1, annotations='{"gpu-fraction":"0.5"}', labels={"experiment": "b"})
    day.pod("r", end=1, gpus=1, namespace="kai-resource-reservation")
    day.pod("s", end=1, gpus=1, labels={"app": "runai-reservation"})
    books = day.attribute()
    assert cost_by(books.costs) == {"a": Decimal(2), "b": Decimal(4), "__idle__": Decimal(2)}
    assert books.gaps == ()


def test_what_a_reserved_card_did_is_told_of_its_tenants(new_day: type[DayBuilder]) -> None:
    group = {"runai-gpu-group": "g1"}
    day = new_day().node(gpus=1, end=1).line("l")
    day.pod("r", end=1, gpus=1, namespace="runai-reservation", labels=group)
    day.pod("a", end=1, annotations='{"gpu-fraction":"0.25"}', labels=group)
    for slot in range(4):
        day.use("r", "gpu_activity", slot / 4, 0.5, device="GPU-0")
    books = day.attribute()
    active = dict(books.costs.select("uid", "ActiveCost").iter_rows())
    assert active == {"a": Decimal(1), None: Decimal(0)}
    assert books.gaps == ()


def test_an_unknown_profile_names_profile_card_and_node(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = mig(new_day(), end=1).line("l")
    sliced(sliced(day, "known", "1g.5gb", 1), "odd", "9g.80gb", 1)
    books = day.attribute()
    assert cost_by(books.costs, ("target", "reason")) == {
        ("__unattributed__", "capacity_unknown"): Decimal(8)
    }
    found = gap(books, "capacity_unknown")
    assert all(word in found.detail for word in ("mig-9g.80gb", A100, "n1"))
    assert found.amounts == {"node_hours": 1.0, "gpu_hours": 1.0}


def test_a_layout_that_changes_counts_from_then_on(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day()
    for start, end, unit in ((0, 0.5, "1"), (0.5, 1, "1/4")):
        day.node("n1", start, end, gpus=1, gpu_units=units(gpu=unit), interval=60)
    day.node("n1", 0, 1, gpus=1, gpu_units=units(gpu="1/4"))
    day.pod("a", 0, 1, labels={"experiment": "a"}, gpus=1, interval=60).line("l", effective="8")
    assert cost_by(day.attribute().costs) == {"a": Decimal(5), "__idle__": Decimal(3)}


def test_more_than_a_card_is_scaled_and_named(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(gpus=1, gpu_units=units(gpu="1/2"), end=1).line("l", effective="9")
    for name in "abc":
        day.pod(name, end=1, gpus=1, gpu_resource="nvidia.com/gpu", labels={"experiment": name})
    books = day.attribute()
    assert cost_by(books.costs) == {name: Decimal(3) for name in "abc"}
    assert gap(books, "over_commit").amounts == {"gpu_hours": 0.5}


@pytest.mark.parametrize("name", ["S22-a", "S22-b"])
def test_efficiency_is_the_mean_over_the_devices(
    shared: Path, new_day: type[DayBuilder], name: str
) -> None:
    case = allocation_cases(shared)[name]
    told = case["given"]
    day = new_day().node(gpus=told["gpus"], end=1).line("l").pod("u", end=1, gpus=told["gpus"])
    for card, active in enumerate(told["active"]):
        for slot in range(4):
            day.use("u", "gpu_activity", slot / 4, active, device=str(card))
    costs = day.attribute().costs
    found = efficiencies(costs).row(0, named=True)
    expected = approx(case, case["expect"]["efficiency"])
    assert (found["gpu_efficiency"], found["efficiency"]) == (expected, expected)


def test_the_figure_of_a_shared_card_is_not_added_up(new_day: type[DayBuilder]) -> None:
    """Each tenant shows the card's figure; watched time is compared with cards, not with shares."""
    day = new_day().node(gpus=1, gpu_units=units(gpu="1/4"), end=1).line("l")
    for pod in "ab":
        day.pod(pod, end=1, gpus=1, gpu_resource="nvidia.com/gpu")
        for slot in range(4):
            day.use(pod, "gpu_activity", slot / 4, 0.8, device="GPU-0")
    day.pod("c", end=1, gpus=1, gpu_resource="nvidia.com/gpu")
    day.use("c", "gpu_activity", 0, 0.8, device="GPU-0")  # a quarter of its time
    costs = day.attribute().costs.filter(target="workload").sort("uid")
    assert costs["ActiveCost"].to_list() == [Decimal("1.6"), Decimal("1.6"), None]
    assert costs["requested"].to_list() == [Decimal("0.25")] * 3
    assert costs["used"].to_list() == [Decimal("0.2"), Decimal("0.2"), None]


def test_cards_that_work_for_a_pod_without_one_are_a_contradiction(
    new_day: type[DayBuilder],
) -> None:
    day = new_day().node(end=1).line("l").pod("a", end=1, gpus=8).pod("b", end=1)
    for slot in range(4):
        day.use("a", "gpu_activity", slot / 4, 0.5).use("b", "gpu_activity", slot / 4, 0.5)
    day.use("b", "gpu_activity", 2, 0.5)  # a stale name, after its end
    found = gap(day.attribute(), "gpu-used-without-request")
    assert found.amounts == {"pods": 1.0, "gpu_hours": 0.5}
    assert "pod-b" in found.detail


def test_cards_that_work_while_nobody_holds_any_are_a_contradiction(
    new_day: type[DayBuilder],
) -> None:
    day = new_day().node(end=1).line("l").pod("a", end=1)
    for slot in range(4):
        day.use(None, "gpu_activity", slot / 4, 0.5, device="0")
        day.use(None, "gpu_activity", slot / 4, 0.01, device="1")
    found = gap(day.attribute(), "gpu-used-without-request")
    assert found.amounts == {"gpu_hours": 0.5}
    assert "claims" in found.detail
    held = day.pod("b", end=1, gpus=1).attribute()
    assert "gpu-used-without-request" not in {gap.reason for gap in held.gaps}


pods_of_all_kinds = st.lists(
    st.fixed_dictionaries(
        {
            "start": st.integers(0, 6).map(lambda ten: ten / 6),
            "length": st.integers(1, 6).map(lambda ten: ten / 6),
            "kind": st.sampled_from(
                [
                    {"gpus": 0},
                    {"gpus": 1, "gpu_request": request(gpu=1)},
                    {"gpus": 3, "gpu_request": request(gpu=3)},
                    {"gpus": 1, "gpu_request": json.dumps({"nvidia.com/mig-3g.20gb": 1})},
                    {"gpus": 2, "gpu_request": json.dumps({"nvidia.com/gpu.shared": 2})},
                    {"gpus": 1, "gpu_request": request(gpu=1, gpucores=37, gpumem=1000)},
                    {"gpus": 0, "annotations": '{"gpu-fraction":"0.3"}'},
                    {"gpus": 0, "annotations": '{"gpu-memory":"3333"}'},
                ]
            ),
        }
    ),
    max_size=8,
)


@settings(max_examples=examples(40), deadline=None)
@given(
    pods=pods_of_all_kinds,
    cards=st.integers(0, 3),
    price=st.integers(0, 10**15),
    replicas=st.integers(1, 16),
)
def test_pods_and_idle_are_the_node(
    new_day: type[DayBuilder],
    pods: list[dict[str, Any]],
    cards: int,
    price: int,
    replicas: int,
) -> None:
    offered = MIG | {"nvidia.com/gpu": "1", "nvidia.com/gpu.shared": f"1/{replicas}"}
    day = new_day().node(gpus=cards, gpu_units=json.dumps(offered), gpu_memory_mib=40960, end=2)
    cost = Decimal(price).scaleb(-12)
    day.line("l", until=2, effective=str(cost))
    for number, pod in enumerate(pods):
        end = pod["start"] + pod["length"]
        day.pod(f"u{number}", pod["start"], end, **pod["kind"])
    books = day.attribute()
    costs = books.costs
    assert (costs["EffectiveCost"].sum() or 0) == cost
    assert costs.filter(pl.col("EffectiveCost") < 0).is_empty()
    seconds = costs.filter(pl.col("gpu_seconds").is_not_null())
    if costs.filter(target="__unattributed__").is_empty() and "over_commit" not in {
        gap.reason for gap in books.gaps
    }:
        total = float(seconds["gpu_seconds"].sum() or 0)
        assert total == pytest.approx(cards * 7200, abs=1e-9)
    if cards == 0:
        assert costs.filter(resource="gpu").is_empty()


def test_slots_are_quarters_of_an_hour() -> None:
    """The tests above say four of them make the hour."""
    assert SLOT.total_seconds() == 900
