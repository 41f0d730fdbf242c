"""Prices as step functions of time: what must hold for any of them."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from attribution.day import DayCosts
from tests.attribution.conftest import at
from tests.effort import examples

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

MINUTES = 180
"""The day's first three hours, in minutes."""

minutes = st.integers(0, MINUTES)
spans = st.tuples(minutes, minutes).map(sorted).filter(lambda span: span[0] < span[1])
prices = st.integers(1, 10**14).map(lambda units: Decimal(units).scaleb(-12))
pods = st.lists(st.tuples(spans, st.integers(0, 8)), max_size=4)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, int, Decimal]]:
    """A price for each part of the three hours; some parts have none."""
    cuts = sorted({0, MINUTES, *draw(st.lists(minutes, max_size=5))})
    pieces = list(itertools.pairwise(cuts))
    every = [(start, end, draw(prices)) for start, end in pieces]
    return [piece for piece in every if draw(st.integers(0, 4))]


def books(
    new_day: type[DayBuilder],
    up: list[int],
    history: list[tuple[int, int, Decimal]],
    held: list[Any],
    resource: str,
) -> DayCosts:
    day = new_day().pod("elsewhere", node=None)
    day.node(start=up[0] / 60, end=up[1] / 60, instance_type="x", gpu_model="H100")
    for start, end, price in history:
        day.price(resource, str(price), start=at(start / 60), end=at(end / 60))
    for number, ((start, end), gpus) in enumerate(held):
        inside = max(start, up[0]), min(end, up[1])
        if inside[0] < inside[1]:
            labels = {"experiment": f"e{number}"}
            day.pod(f"u{number}", inside[0] / 60, inside[1] / 60, gpus=gpus, labels=labels)
    return day.attribute()


def by_who(found: DayCosts) -> pl.DataFrame:
    key = ["experiment", "uid", "target"]
    sums = found.costs.group_by(key).agg(pl.col("EffectiveCost", "gpu_seconds").sum())
    return sums.sort(key, nulls_last=True)


@settings(max_examples=examples(12))
@given(spans, histories(), pods, st.sampled_from(["node", "gpu"]))
def test_the_cost_of_a_node_is_the_integral_of_its_price(
    new_day: type[DayBuilder],
    up: list[int],
    history: list[tuple[int, int, Decimal]],
    held: list[Any],
    resource: str,
) -> None:
    found = books(new_day, up, history, held, resource)
    times = 8 if resource == "gpu" else 1
    overlaps = [(min(end, up[1]) - max(start, up[0]), price) for start, end, price in history]
    exact = sum((Decimal(ms) * price for ms, price in overlaps if ms > 0), Decimal(0)) * times / 60
    # Each stretch of one price in an hour is rounded once.
    bound = Decimal(len(history) + 3).scaleb(-12)
    assert abs(sum(found.costs["EffectiveCost"], Decimal(0)) - exact) <= bound
    unpriced = sum(gap.amounts["node_hours"] for gap in found.gaps if gap.reason == "unpriced")
    priced = sum(ms for ms, _ in overlaps if ms > 0)
    assert round(unpriced * 60) == up[1] - up[0] - priced
    assert found.costs.filter(pl.col("EffectiveCost") < 0).is_empty()


@settings(max_examples=examples(12))
@given(spans, histories(), pods, minutes)
def test_cutting_a_price_in_two_equal_ones_changes_nothing(
    new_day: type[DayBuilder],
    up: list[int],
    history: list[tuple[int, int, Decimal]],
    held: list[Any],
    cut: int,
) -> None:
    parts = [
        piece
        for start, end, price in history
        for piece in (
            [(start, cut, price), (cut, end, price)] if start < cut < end else [(start, end, price)]
        )
    ]
    whole = books(new_day, up, history, held, "node")
    again = books(new_day, up, [*reversed(parts), *parts], held, "node")
    assert_frame_equal(by_who(whole), by_who(again))
    assert whole.gaps == again.gaps


@settings(max_examples=examples(12))
@given(st.integers(1, MINUTES - 1), st.integers(1, 8), prices, prices)
def test_each_pod_pays_the_price_of_its_own_time(
    new_day: type[DayBuilder], change: int, gpus: int, first: Decimal, second: Decimal
) -> None:
    history = [(0, change, first), (change, MINUTES, second)]
    held = [((0, change), gpus), ((change, MINUTES), gpus)]
    found = books(new_day, [0, MINUTES], history, held, "gpu")
    costs = dict(found.costs.group_by("uid").agg(pl.col("EffectiveCost").sum()).iter_rows())
    for uid, ms, price in (("u0", change, first), ("u1", MINUTES - change, second)):
        assert abs(costs[uid] - gpus * price * ms / 60) <= Decimal("1e-11")
