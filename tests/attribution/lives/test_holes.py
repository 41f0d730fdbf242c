"""Holes: a node that is not seen while its cluster is, a cluster whose pods fall silent."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

MINUTE = 1 / 60
HOLED = datetime(2026, 11, 1, tzinfo=UTC)


def of_node(day: DayBuilder, name: str = "n1") -> dict[tuple[str, str | None], Decimal]:
    costs = day.attribute().costs.filter(node=name)
    sums = costs.group_by("target", "reason").agg(pl.col("EffectiveCost").sum())
    return {(target, reason): cost for target, reason, cost in sums.iter_rows()}


def holed(new_day: type[DayBuilder], **after: object) -> DayBuilder:
    """A day of two nodes; the series of the first have a hole from 8 to 12."""
    day = new_day().node("n2", interval=60).pod("v", node="n2", interval=60, gpus=8)
    day.node("n1", 0, 8, interval=60, created=HOLED)
    day.node("n1", 12, 24, interval=60, **({"created": HOLED} | after))
    day.pod("u", 0, 8, interval=60, gpus=8).pod("u", 12, 24, interval=60, gpus=8)
    return day.line("l", hour=0, until=24, effective="24").line("m", "i-n2", 0, 24, effective="24")


def test_a_hole_in_a_nodes_own_series_is_not_idle(new_day: type[DayBuilder]) -> None:
    day = holed(new_day)
    assert of_node(day) == {("workload", "no_rule"): 20, ("__unattributed__", "no_samples"): 4}
    assert of_node(day, "n2") == {("workload", "no_rule"): 24}
    (gap,) = [gap for gap in day.attribute().gaps if gap.reason == "no_samples"]
    assert gap.amounts == {"node_hours": 4, "gpu_hours": 32}
    assert "n1" in gap.detail


def test_the_api_does_not_tell_who_was_there_in_the_hole(new_day: type[DayBuilder]) -> None:
    day = holed(new_day).node(created=HOLED).pod("u", 0, 24, gpus=8).pod("w", 9, 10, gpus=1)
    assert of_node(day) == {("workload", "no_rule"): 20, ("__unattributed__", "no_samples"): 4}


def test_a_node_that_was_registered_again_was_away(new_day: type[DayBuilder]) -> None:
    day = holed(new_day, created=datetime(2026, 11, 30, 12, tzinfo=UTC))
    assert ("__unattributed__", "no_samples") not in of_node(day)


def test_pods_that_were_sampled_in_the_hole_show_the_node(new_day: type[DayBuilder]) -> None:
    day = holed(new_day).pod("w", 8, 11, interval=60, gpus=8)
    assert of_node(day) == {("workload", "no_rule"): 23, ("__unattributed__", "no_samples"): 1}


def test_a_hole_of_few_intervals_is_none(new_day: type[DayBuilder]) -> None:
    day = new_day().node("n2", interval=60).pod("v", node="n2", interval=60, gpus=8)
    day.node(end=8, interval=60).node(start=8.04, interval=60).line("l", hour=0, until=24)
    assert of_node(day) == {("__idle__", None): 8}


def test_a_hole_is_estimated_like_the_time_around_it(new_day: type[DayBuilder]) -> None:
    day = holed(new_day).price("gpu", "1")
    day.rows["charges"].clear()
    assert of_node(day) == {("workload", "no_rule"): 160, ("__unattributed__", "no_samples"): 32}


def silent(new_day: type[DayBuilder]) -> DayBuilder:
    """A day of two nodes; no pod of the cluster is sampled from 8:05 to 12:05."""
    day = new_day().node(interval=60).node("n2", interval=60)
    for name, uid in (("n1", "u"), ("n2", "v")):
        day.pod(uid, 0, 8 + 5 * MINUTE, node=name, interval=60, gpus=8)
        day.pod(uid, 12 + 5 * MINUTE, 24, node=name, interval=60, gpus=8)
        day.line(name, f"i-{name}", 0, 24, effective="24")
    return day


def test_silence_of_all_pods_is_an_empty_cluster(new_day: type[DayBuilder]) -> None:
    assert of_node(silent(new_day)) == {("workload", "no_rule"): 20, ("__idle__", None): 4}


def test_use_in_the_silence_shows_that_a_node_was_not_empty(new_day: type[DayBuilder]) -> None:
    day = silent(new_day)
    for quarter in range(32, 49):
        day.use("u", "cpu_usage", quarter / 4, 0.5)
    day.use("v", "cpu_usage", 8, 0.5, node="n2")  # before the silence, as far as is known
    assert of_node(day) == {("workload", "no_rule"): 20, ("__unattributed__", "no_samples"): 4}
    assert of_node(day, "n2") == {("workload", "no_rule"): 20, ("__idle__", None): 4}


def test_use_of_a_name_is_placed_where_that_pod_was(new_day: type[DayBuilder]) -> None:
    day = silent(new_day)
    day.use(None, "cpu_usage", 9, 0.5, node=None, namespace="research", pod="pod-u")
    assert of_node(day)["__unattributed__", "no_samples"] == Decimal("0.25")


def test_the_api_shows_that_a_node_was_not_empty(new_day: type[DayBuilder]) -> None:
    day = silent(new_day).node().node("n2").pod("u", 0, 24, gpus=8)
    assert of_node(day) == {("workload", "no_rule"): 20, ("__unattributed__", "no_samples"): 4}
    assert of_node(day, "n2") == {("workload", "no_rule"): 20, ("__idle__", None): 4}
