"""Pools of nodes: who is in one, and how its weights split a node's price."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from pydantic import ValidationError

from ledger.node_pools import NodePool, PoolMatch, PoolWeights
from ledger.settings import Settings
from tests.effort import examples
from tests.field_cases import allocation_cases

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

Sums = Callable[..., dict[Any, Decimal]]
GIB = 2**30
ALL = PoolMatch(node="*")


def pool(split: str = "weights", match: PoolMatch = ALL, **weights: object) -> Settings:
    own = {name: Decimal(str(weight)) for name, weight in weights.items()}
    data = {"match": match, "split": split} | ({"weights": own} if own else {})
    return Settings(node_pools=(NodePool.model_validate(data),))


def one_hour(new_day: type[DayBuilder], price: str = "35", **node: Any) -> DayBuilder:  # noqa: ANN401
    """A node of one card, one vCPU and one GiB, and a pod for each of them."""
    size: dict[str, Any] = {"gpus": 1, "cpu_millicores": 1000, "memory_bytes": GIB, "end": 1}
    day = new_day().node(**(size | node)).line("l", effective=price)
    day.pod("gpu", end=1, gpus=1).pod("vcpu", end=1, cpu_millicores=1000)
    return day.pod("gib", end=1, memory_bytes=GIB)


def by_pod(day: DayBuilder, sums: Sums, chosen: Settings) -> dict[str, float]:
    rows = day.attribute(chosen).costs.with_columns(pl.coalesce("uid", "target").alias("who"))
    return {who: float(cost) for who, cost in sums(rows, "who").items()}


def test_own_weights_decide_who_pays(new_day: type[DayBuilder], cost_by: Sums) -> None:
    rows = by_pod(one_hour(new_day), cost_by, pool(gpu=30, vcpu=30, gib=10))
    assert rows == {"gpu": 15, "vcpu": 15, "gib": 5}


def test_unit_rates_are_weights(new_day: type[DayBuilder], cost_by: Sums, shared: Path) -> None:
    """S11: rates that add up to more than the node's price are rescaled to it."""
    case = allocation_cases(shared)["S11"]
    given, size = case["given"], case["given"]["capacity"]
    day = one_hour(
        new_day,
        str(given["node_price_hour"]),
        gpus=size["gpu"],
        cpu_millicores=size["vcpu"] * 1000,
        memory_bytes=size["gb"] * GIB,
    )
    rates = {name.replace("gb", "gib"): rate for name, rate in given["rates"].items()}
    rows = by_pod(day, cost_by, pool(**rates))
    idle = rows.pop("__idle__")
    right = {name.replace("gb", "gib"): rate for name, rate in case["expect"]["rates"].items()}
    assert rows == pytest.approx(right, abs=case["tolerance"])
    assert sum(rows.values()) + idle == pytest.approx(case["expect"]["sum"], abs=case["tolerance"])


def test_only_cards_pay_where_only_cards_weigh(new_day: type[DayBuilder], cost_by: Sums) -> None:
    for chosen in (pool("gpu-only"), pool(gpu="0.5")):
        assert by_pod(one_hour(new_day), cost_by, chosen) == {"gpu": 35}
        cpu = one_hour(new_day, "1", gpus=0, cpu_millicores=9000, memory_bytes=19 * GIB)
        cpu.rows["workloads"].pop(0)
        rows = by_pod(cpu, cost_by, chosen)
        assert rows == pytest.approx({"vcpu": 0.09, "gib": 0.01, "__idle__": 0.9})


@pytest.mark.parametrize(
    ("capacity", "weights"),
    [("on-demand", (0.95, 0.031611, 0.004237)), ("spot", (0.95, 0.006655, 0.000892))],
)
def test_opencost_has_weights_of_its_own_for_spot(
    new_day: type[DayBuilder], cost_by: Sums, capacity: str, weights: tuple[float, ...]
) -> None:
    day = one_hour(new_day, "10", capacity_type=capacity)
    rows = by_pod(day, cost_by, pool("opencost"))
    right = (10 * weight / sum(weights) for weight in weights)
    assert rows == pytest.approx(dict(zip(("gpu", "vcpu", "gib"), right, strict=True)))


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        ({"node": "gpu-*"}, True),
        ({"node": "gpu"}, False),
        ({"instance_type": "p5.*"}, True),
        ({"instance_type": "p?.48xlarge"}, True),
        ({"instance_type": "g5.*"}, False),
        ({"cluster": "c1"}, True),
        ({"cluster": "c2"}, False),
        ({"label": "pool=a*"}, True),
        ({"label": "pool=b"}, False),
        ({"node": "gpu-*", "instance_type": "p5.*", "cluster": "c?", "label": "pool=*"}, True),
        ({"node": "gpu-*", "instance_type": "g5.*"}, False),
    ],
)
def test_a_pool_holds_nodes_that_meet_all_that_is_given(
    new_day: type[DayBuilder], cost_by: Sums, match: Mapping[str, str], *, fits: bool
) -> None:
    day = one_hour(
        new_day,
        name="gpu-1",
        provider_id="aws:///z/i-n1",
        instance_type="p5.48xlarge",
        labels='{"pool":"a100"}',
    )
    for row in day.rows["workloads"]:
        row["node"] = "gpu-1"
    rows = by_pod(day, cost_by, pool("gpu-only", PoolMatch(**match)))
    assert (rows == {"gpu": 35}) is fits


def test_what_a_node_does_not_say_fits_no_pool(new_day: type[DayBuilder], cost_by: Sums) -> None:
    chosen = pool("gpu-only", PoolMatch(instance_type="*"))
    assert set(by_pod(one_hour(new_day), cost_by, chosen)) > {"gpu"}


def test_the_first_pool_that_fits_counts(new_day: type[DayBuilder], cost_by: Sums) -> None:
    first, second = (
        pool("gpu-only"),
        pool(vcpu=1),
    )
    both = Settings(node_pools=first.node_pools + second.node_pools)
    assert by_pod(one_hour(new_day), cost_by, both) == {"gpu": 35}


@pytest.mark.parametrize(
    "wrong",
    [
        {"match": {}},
        {"match": {"node": ""}},
        {"match": {"label": "pool"}},
        {"match": {"node": "*"}, "split": "weights"},
        {"match": {"node": "*"}, "weights": {"gpu": 1}},
        {"match": {"node": "*"}, "split": "weights", "weights": {}},
        {"match": {"node": "*"}, "split": "weights", "weights": {"gpu": 0}},
        {"match": {"node": "*"}, "split": "weights", "weights": {"gpu": -1}},
        {"match": {"node": "*"}, "split": "weights", "weights": {"tpu": 1}},
    ],
)
def test_a_pool_that_means_nothing_is_refused(wrong: Mapping[str, object]) -> None:
    with pytest.raises(ValidationError):
        NodePool.model_validate(wrong)


decimals = st.integers(0, 5 * 10**6).map(lambda number: Decimal(number).scaleb(-4))
triples = st.tuples(decimals, decimals, decimals).filter(any)


@settings(max_examples=examples(12), deadline=None)
@given(weights=triples, other=triples, price=st.integers(-(10**13), 10**17))
def test_doubling_weights_moves_nothing_and_others_move_rows_alone(
    new_day: type[DayBuilder],
    weights: tuple[Decimal, ...],
    other: tuple[Decimal, ...],
    price: int,
) -> None:
    day = one_hour(new_day, str(Decimal(price).scaleb(-12)), gpus=8, cpu_millicores=64_000)

    def books(triple: tuple[Decimal, ...]) -> pl.DataFrame:
        gpu, vcpu, gib = triple
        return day.attribute(pool(gpu=gpu, vcpu=vcpu, gib=gib)).costs

    once = books(weights)
    assert_frame_equal(once, books(tuple(2 * weight for weight in weights)))
    assert_frame_equal(once, books(tuple(weight / 2 for weight in weights)))
    assert once["EffectiveCost"].sum() == books(other)["EffectiveCost"].sum()
    assert once["EffectiveCost"].sum() == Decimal(price).scaleb(-12)


def test_weights_are_whole_numbers_without_a_common_divisor() -> None:
    assert PoolWeights(gpu=Decimal("0.75"), vcpu=Decimal("1.5")).whole() == (1, 2, 0)
