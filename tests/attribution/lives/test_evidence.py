"""What nobody looked for is never free: pods, requests and clusters that a source does not show."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from attribution.day import DayCosts
from ledger.facts import Gap
from ledger.settings import Cluster, KubernetesSource, PrometheusSource, Settings

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

Sums = Callable[..., dict[Any, Decimal]]
API = KubernetesSource(dump="objects.json")
SAMPLED = Settings(
    clusters=(Cluster(name="c1", kubernetes=API, prometheus=PrometheusSource(export="series")),)
)
API_ALONE = Settings(clusters=(Cluster(name="c1", kubernetes=API),))
A = {"experiment": "a"}


def gap(books: DayCosts, reason: str) -> Gap:
    return next(gap for gap in books.gaps if gap.reason == reason)


def test_nodes_with_samples_and_no_sampled_pod_are_not_idle(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node(end=1).node(end=1, interval=60).line("l")
    day.pod("u", end=1, gpus=2, labels=A)
    books = day.attribute(SAMPLED)
    assert cost_by(books.costs, ("experiment", "reason")) == {
        ("a", None): Decimal(2),
        ("__unattributed__", "no_samples"): Decimal(6),
    }
    assert books.coverage == 0
    assert gap(books, "no_samples").amounts == {"node_hours": 1.0, "gpu_hours": 6.0}


def test_nodes_without_any_pod_row_are_not_idle(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(end=1).node("cpu", end=1, gpus=0).price("gpu", "1").price("vcpu", "1")
    books = day.price("gib", "0").line("l").attribute()
    assert set(cost_by(books.costs, ("target", "reason"))) == {("__unattributed__", "no_samples")}
    assert set(books.costs["x_Basis"]) == {"billed", "estimated"}
    assert "no_samples" in {found.reason for found in books.gaps}


def test_a_silent_prometheus_is_a_gap_and_free_cards_are_not_idle(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node(end=1).line("l").pod("u", end=1, gpus=2, labels=A)
    books = day.attribute(SAMPLED)
    assert cost_by(books.costs, ("experiment", "reason", "confidence")) == {
        ("a", None, "low"): Decimal(2),
        ("__unattributed__", "no_samples", "low"): Decimal(6),
    }
    assert "snapshot" in gap(books, "snapshot_only").detail


@pytest.mark.parametrize("settings", [API_ALONE, Settings()])
def test_a_cluster_of_the_api_alone_stays_usable(
    new_day: type[DayBuilder], cost_by: Sums, settings: Settings
) -> None:
    day = new_day().node(end=1).line("l").pod("u", end=1, gpus=2, labels=A)
    books = day.attribute(settings)
    assert cost_by(books.costs, ("experiment", "confidence")) == {
        ("a", "low"): Decimal(2),
        ("__idle__", "low"): Decimal(6),
    }
    assert books.gaps == ()
    assert any("snapshot_only" in note for note in books.notes)


def test_pods_with_samples_and_nodes_without_tell_when_the_cluster_was_seen(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node(end=1).line("l").pod("u", 0, 0.5, gpus=8, labels=A, interval=60)
    assert cost_by(day.attribute(SAMPLED).costs, ("experiment", "reason")) == {
        ("a", None): Decimal(4),
        ("__unattributed__", "no_samples"): Decimal(4),
    }


@pytest.mark.parametrize(
    ("node", "pod"),
    [
        ({}, {"gpus": None}),
        ({}, {"cpu_millicores": None}),
        ({"gpus": 0}, {"cpu_millicores": None}),
        ({"gpus": 0}, {"memory_bytes": None}),
    ],
)
def test_a_request_that_is_not_known_is_no_rider_and_not_nothing(
    new_day: type[DayBuilder], cost_by: Sums, node: dict[str, Any], pod: dict[str, Any]
) -> None:
    day = new_day().node(end=1, interval=60, **node).line("l")
    day.pod("other", end=1, cpu_millicores=500, memory_bytes=1024, labels=A, interval=60)
    day.pod("u", end=1, interval=60, **pod)
    books = day.attribute()
    assert cost_by(books.costs, ("target", "reason")) == {
        ("__unattributed__", "no_samples"): Decimal(8)
    }
    assert gap(books, "no_samples").amounts["node_hours"] == 1.0
    cards = books.costs["gpu_seconds"].sum() or 0
    assert cards == (0 if node else 8 * 3600)


def test_what_a_holder_of_cards_asks_of_cpu_need_not_be_known(
    new_day: type[DayBuilder], cost_by: Sums
) -> None:
    day = new_day().node(end=1, interval=60).line("l")
    day.pod("u", end=1, gpus=8, cpu_millicores=None, labels=A, interval=60)
    assert cost_by(day.attribute().costs) == {"a": Decimal(8)}


def test_a_request_is_taken_from_the_other_source(new_day: type[DayBuilder], cost_by: Sums) -> None:
    day = new_day().node(end=1, interval=60).line("l")
    day.pod("api", end=1, gpus=4, labels=A).pod("api", end=1, gpus=None, interval=60)
    day.pod("both", end=1, gpus=None, labels=A).pod("both", end=1, gpus=4, interval=60)
    assert cost_by(day.attribute().costs) == {"a": Decimal(8)}


def test_pods_of_a_cluster_without_any_node_row_are_named(new_day: type[DayBuilder]) -> None:
    day = new_day().node("n1", cluster="other")
    day.pod("u", end=2, gpus=3).pod("v", end=2, gpus=1, interval=60)
    assert gap(day.attribute(), "unknown_node").amounts == {"gpu_hours": 8.0}


def test_what_is_held_on_a_node_without_any_row_is_named_in_cards(
    new_day: type[DayBuilder],
) -> None:
    """Parts of a card count as parts, and a claim of devices counts as a pod does."""
    day = new_day().node("n1", cluster="c1")
    day.pod("u", end=2, node="n7", annotations='{"gpu-fraction":"0.5"}')
    day.claim("c", end=17, node="n7", cards="1")
    found = gap(day.attribute(), "unknown_node")
    assert found.amounts == {"gpu_hours": 18.0}
    assert "n7" in found.detail


def test_free_capacity_of_a_snapshot_is_doubted_and_of_samples_is_not(
    new_day: type[DayBuilder],
) -> None:
    day = new_day().node(end=1, interval=60).line("l").pod("u", end=1, gpus=2, interval=60)
    assert set(day.attribute(SAMPLED).costs["confidence"]) == {"high"}
    assert day.attribute(SAMPLED).costs.filter(pl.col("target") == "__idle__").height == 1
