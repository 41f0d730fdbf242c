"""Claims of devices: their cards go to the pods that hold them, else to their namespace."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

Sums = Callable[..., dict[Any, Decimal]]


def test_the_pods_of_a_claim_share_its_cards_while_they_live(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node(gpus=4, end=2).line("l", until=2, effective="8")
    day.pod("a", 0, 2).pod("b", 1, 2).pod("c", 0, 2, gpus=1)
    day.claim("k", 0, 2, pods="ab", cards="2")
    assert cost_by(day.attribute().costs, "uid") == {
        "a": Decimal(3),
        "b": Decimal(1),
        "c": Decimal(2),
        None: Decimal(2),
    }


def test_a_claim_without_pods_is_held_by_its_namespace(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node(gpus=1, end=1).line("l").pod("a", 0, 0.5).claim("k", 0, 1, pods=["a"])
    costs = day.attribute().costs
    keys = ("uid", "target", "namespace", "phase", "project", "pod")
    assert cost_by(costs, keys) == {
        ("a", "workload", "research", "unknown", "research", "pod-a"): Decimal(4),
        ("k", "workload", "research", "wait", "research", None): Decimal(4),
    }
    assert costs["gpu_seconds"].sum() == 3600


def test_a_pod_in_a_claim_is_no_rider(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(gpus=2, end=1).line("l").claim("k", 0, 1, pods=["a"])
    day.pod("a", end=1, cpu_millicores=4000).pod("r", end=1, cpu_millicores=1000)
    assert cost_by(day.attribute().costs, ("uid", "resource")) == {
        ("a", "gpu"): Decimal("3.9841945"),
        (None, "gpu"): Decimal("3.9841945"),
        ("r", "cpu"): Decimal("0.031611"),
    }


def test_claims_and_requests_of_a_pod_add_up(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(gpus=8, end=1).line("l").pod("a", end=1, gpus=2)
    day.claim("k", 0, 0.5, pods=["a"], cards="4").claim("m", 0, 1, pods=["a"], cards="1/2")
    assert cost_by(day.attribute().costs, "uid") == {"a": Decimal("4.5"), None: Decimal("3.5")}


def test_devices_that_nobody_knows_make_the_hour_unattributed(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node(gpus=1, end=2).line("l", until=2).pod("a", 0, 2)
    day.claim("k", 0, 1, pods=["a"], cards=None)
    books = day.attribute()
    assert cost_by(books.costs, ("target", "reason")) == {
        ("__unattributed__", "capacity_unknown"): Decimal(4),
        ("__idle__", None): Decimal(4),
    }
    (gap,) = [gap for gap in books.gaps if gap.reason == "capacity_unknown"]
    assert "research/claim-k" in gap.detail
    assert "n1" in gap.detail


@pytest.mark.parametrize("cards", ["0", "0/7"])
def test_a_claim_of_no_card_holds_nothing(
    new_day: type[DayBuilder], cost_by: Sums, cards: str
) -> None:
    """Network cards, or devices that an administrator only looks at."""
    day = new_day().node(gpus=1, end=1).line("l").pod("a", 0, 1).claim("k", 0, 1, cards=cards)
    assert cost_by(day.attribute().costs, "target") == {"__idle__": Decimal(8)}


def test_a_claim_is_where_its_pods_were(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(gpus=1, end=1).line("l").pod("a", 0, 0.25)
    day.claim("k", 0, 1, pods=["a"], node=None)
    assert cost_by(day.attribute().costs, "uid") == {"a": Decimal(2), "k": Decimal(6)}


def test_a_claim_that_is_nowhere_is_named(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(gpus=1, end=1).line("l").pod("a", 0, 1).claim("k", 0, 0.5, node=None)
    books = day.attribute()
    assert cost_by(books.costs, "target") == {"__idle__": Decimal(8)}
    (gap,) = books.gaps
    assert (gap.reason, gap.amounts) == ("capacity_unknown", {"gpu_hours": 0.5})


def test_what_the_api_tells_of_a_claim_wins(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(gpus=4, end=1).line("l").pod("a", 0, 1)
    day.claim("k", 0, 1, pods=["a"], cards="1").claim("k", 0, 1, pods=["a"], cards="1")
    day.claim("k", 0, 1, pods=["a"], cards="3", source="prometheus/c1", interval_seconds=60.0)
    assert cost_by(day.attribute().costs, "uid") == {"a": Decimal(2), None: Decimal(6)}


def test_unseen_time_is_nobodys_claim(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(end=0.5, gpus=1, interval=60).line("l")
    day.pod("x", 0, 0.5, interval=60).claim("k", 0, 1)
    assert cost_by(day.attribute().costs, ("target", "reason")) == {
        ("workload", "no_rule"): Decimal(4),
        ("__unattributed__", "no_samples"): Decimal(4),
    }


spans = st.tuples(st.integers(0, 7), st.integers(1, 8)).map(lambda s: (s[0] / 8, (s[0] + s[1]) / 8))


@settings(max_examples=examples(30), deadline=None)
@given(
    pods=st.lists(st.tuples(spans, st.integers(0, 1)), max_size=4),
    claims=st.lists(
        st.tuples(spans, st.sampled_from(["1", "2", "3/7", "0"]), st.sets(st.integers(0, 4))),
        max_size=3,
    ),
)
def test_a_claim_is_held_once_at_any_time(
    new_day: type[DayBuilder],
    pods: list[tuple[tuple[float, float], int]],
    claims: list[tuple[tuple[float, float], str, set[int]]],
) -> None:
    day = new_day().node(gpus=16, end=2).line("l", until=2, effective="16")
    for number, (span, gpus) in enumerate(pods):
        day.pod(f"p{number}", *span, gpus=gpus)
    day.pod("rider", 0, 2)
    sevenths = {"1": 7, "2": 14, "3/7": 3, "0": 0}
    for number, (span, cards, tenants) in enumerate(claims):
        day.claim(f"k{number}", *span, cards=cards, pods=[f"p{n}" for n in sorted(tenants)])
    costs = day.attribute().costs
    held = costs.filter(target="workload")["gpu_seconds"].sum() or Decimal(0)
    right = sum((span[1] - span[0]) * 3600 * gpus for span, gpus in pods)
    right += sum((span[1] - span[0]) * 3600 * sevenths[cards] / 7 for span, cards, _ in claims)
    assert float(held) == pytest.approx(right)
    total = costs.filter(pl.col("gpu_seconds").is_not_null())["gpu_seconds"].sum()
    assert float(total) == pytest.approx(16 * 7200)
    assert costs["EffectiveCost"].sum() == 16
