"""EKS split-cost rows: weights in pools with aws-split, never charges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attribution.day import DayCosts, attribute_day
from ledger.node_pools import NodePool, PoolMatch
from ledger.schema import COST_COLUMNS, POD_SPLITS
from ledger.settings import Settings
from tests.attribution.conftest import DAY, at
from tests.effort import examples

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

Sums = Callable[..., dict[Any, Decimal]]
AWS = Settings(node_pools=(NodePool(match=PoolMatch(node="*"), split="aws-split"),))
ARN = "arn:aws:ec2:us-east-1:1:instance/i-n1"


def row(
    resource: str, split: str, unused: str | None = None, hour: float = 0, **fields: object
) -> dict[str, object]:
    base: dict[str, object] = {
        "day": DAY,
        "source": "aws",
        "parent": ARN,
        "BillingCurrency": "USD",
        "resource": resource,
        "start": at(hour),
        "end": at(hour + 1),
        "SplitCost": Decimal(split),
        "UnusedCost": None if unused is None else Decimal(unused),
    }
    return base | fields


def books(day: DayBuilder, rows: list[dict[str, object]], chosen: Settings = AWS) -> DayCosts:
    splits = pl.DataFrame(rows, schema=POD_SPLITS.schema)
    return attribute_day(replace(day.facts(), pod_splits=splits), chosen)


def shares(found: DayCosts, sums: Sums) -> dict[tuple[str, str | None], Decimal]:
    rows = found.costs.with_columns(pl.coalesce("uid", "target").alias("who"))
    return sums(rows, ("who", "resource"))


@pytest.fixture
def day(new_day: type[DayBuilder]) -> DayBuilder:
    """A node of $10 an hour with two pods."""
    day = new_day().node(end=1, gpus=0, cpu_millicores=9000, memory_bytes=2**30)
    day.pod("a", end=1, cpu_millicores=1000).pod("b", end=1, cpu_millicores=1000)
    return day.line("l", effective="10", BilledCost=Decimal(20))


ROWS = [
    row("cpu", "3", "1", uid="a"),
    row("memory", "1", uid="a"),
    row("cpu", "2", namespace="research", pod="pod-b"),
]


def test_rows_say_what_each_pod_costs(day: DayBuilder, cost_by: Sums) -> None:
    found = shares(books(day, ROWS), cost_by)
    assert found["a", "cpu"] == 4
    assert found["a", "memory"] == 1
    assert found["b", "cpu"] == 2
    free = {key: cost for key, cost in found.items() if key[0] == "__idle__"}
    assert sum(free.values()) == 3
    assert set(free) == {("__idle__", "cpu"), ("__idle__", "memory")}


def test_every_line_and_column_is_split_alike(day: DayBuilder, cost_by: Sums) -> None:
    day.line("credit", effective="-4")
    found = books(day, ROWS).costs
    assert cost_by(found, "uid")["a"] == 3
    by_line = cost_by(found.filter(uid="a"), "x_LineId", "BilledCost")
    assert by_line["l"] / Decimal(20) == by_line["credit"] / Decimal(-4)
    assert found["EffectiveCost"].sum() == 6


def test_gpu_first_leaves_them_alone(day: DayBuilder) -> None:
    without = day.attribute().costs
    assert books(day, ROWS, Settings()).costs.equals(without)


def test_an_hour_without_rows_keeps_its_own_shares(day: DayBuilder, cost_by: Sums) -> None:
    later = [one | {"start": at(1), "end": at(2)} for one in ROWS]
    assert shares(books(day, later), cost_by) == shares(books(day, []), cost_by)


def test_rows_above_the_price_are_scaled_and_nothing_is_idle(
    day: DayBuilder, cost_by: Sums
) -> None:
    found = shares(books(day, [row("cpu", "30", uid="a"), row("cpu", "10", uid="b")]), cost_by)
    assert found == {("a", "cpu"): Decimal("7.5"), ("b", "cpu"): Decimal("2.5")}


def test_a_row_that_meets_no_pod_is_nobodys(day: DayBuilder, cost_by: Sums) -> None:
    found = books(day, [*ROWS, row("cpu", "2.5", uid="gone", pod="pod-a", namespace="research")])
    lost = found.costs.filter(target="__unattributed__")
    assert cost_by(lost, "reason") == {"no_samples": Decimal("2.5")}


def test_a_row_meets_the_pod_of_its_name_that_lived_then(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node(end=2, gpus=0).line("l", until=2, effective="4")
    day.pod("u1", 0, 1, pod="db-0", cpu_millicores=1).pod("u2", 1, 2, pod="db-0", cpu_millicores=1)
    rows = [row("cpu", "2", hour=hour, namespace="research", pod="db-0") for hour in (0, 1)]
    assert cost_by(books(day, rows).costs, "uid") == {"u1": 2, "u2": 2}


def test_a_row_of_several_hours_falls_to_those_of_its_pod(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node(end=4, gpus=0).line("l", until=4, effective="16")
    day.pod("u", 1, 2.5, cpu_millicores=1, labels={"experiment": "x"})
    rows = [row("cpu", "3", uid="u", end=at(4))]
    hourly = cost_by(books(day, rows).costs.filter(uid="u"), "ChargePeriodStart")
    assert hourly == {at(1): 2, at(2): 1}


def test_a_pod_whose_label_changed_pays_by_time(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(end=1, gpus=0).line("l", effective="4")
    day.pod("u", 0, 0.25, cpu_millicores=1, labels={"experiment": "x"})
    day.pod("u", 0.25, 1, cpu_millicores=1, labels={"experiment": "y"})
    assert cost_by(books(day, [row("cpu", "4", uid="u")]).costs) == {"x": 1, "y": 3}


def test_cards_keep_their_time_and_unknown_sizes_do_not_matter(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node(end=1, cpu_millicores=None).line("l", effective="10")
    day.pod("u", end=1, gpus=6)
    found = books(day, [row("gpu", "7", uid="u")])
    assert cost_by(found.costs, ("target", "reason")) == {
        ("workload", "no_rule"): 7,
        ("__idle__", None): 3,
    }
    day = new_day().node(end=1).line("l", effective="10").pod("u", end=1, gpus=6)
    found = books(day, [row("cpu", "7", uid="u")])
    seconds = found.costs.group_by("target").agg(pl.col("gpu_seconds").sum())
    assert dict(seconds.iter_rows()) == {"workload": 21_600, "__idle__": 7_200}
    assert cost_by(found.costs, "target")["workload"] == 7


def test_the_same_rows_in_two_bills_count_once(day: DayBuilder) -> None:
    twice = [*ROWS, *(one | {"source": "copy"} for one in ROWS)]
    assert books(day, twice).costs.equals(books(day, ROWS).costs)


amounts = st.integers(0, 10**13).map(lambda units: str(Decimal(units).scaleb(-12)))


@settings(max_examples=examples(12), deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["gpu", "cpu", "memory"]),
            amounts,
            amounts,
            st.sampled_from(["a", "b", "gone"]),
            st.sampled_from(["USD", "CNY"]),
        ),
        max_size=5,
    ),
    price=st.integers(-(10**13), 10**13),
)
def test_rows_move_shares_and_never_the_total(
    new_day: type[DayBuilder], rows: list[tuple[str, str, str, str, str]], price: int
) -> None:
    cost = Decimal(price).scaleb(-12)
    day = new_day().node(end=1).line("l", effective=str(cost))
    day.pod("a", end=1, gpus=2).pod("b", end=1, cpu_millicores=500)
    told = [
        row(resource, split, unused, uid=uid, BillingCurrency=currency)
        for resource, split, unused, uid, currency in rows
    ]
    found = books(day, told).costs
    for name in COST_COLUMNS:
        assert found[name].sum() == cost
        assert found.filter(pl.col(name).sign() * pl.lit(price).sign() < 0).is_empty()
