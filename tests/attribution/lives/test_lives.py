"""When a pod lived, by two sources."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attribution.facts import DayFacts
from attribution.lives.evidence import seen_spans
from attribution.lives.lives import node_spans, pod_lives, sampled_pod_spans
from attribution.spans import intersect
from tests.effort import examples

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder

HOUR = 3_600_000
MINUTE = 1 / 60


def at_hour(hours: float) -> datetime:
    return datetime(2026, 11, 30, tzinfo=UTC) + timedelta(milliseconds=round(hours * HOUR))


def seen_lives(facts: DayFacts) -> pl.DataFrame:
    seen = seen_spans(node_spans(facts), sampled_pod_spans(facts))
    return intersect(pod_lives(facts), seen, ["cluster"]).sort("cluster", "uid", "start")


def lives(day: DayBuilder) -> list[tuple[str, str, float, float, str]]:
    """uid, state, start and end in hours, confidence."""
    facts = day.facts()
    rows = seen_lives(facts)
    return [
        (
            uid,
            state,
            round((start - facts.start) / HOUR, 6),
            round((end - facts.start) / HOUR, 6),
            confidence,
        )
        for uid, state, start, end, confidence in rows.select(
            "uid", "state", "start", "end", "confidence"
        ).iter_rows()
    ]


@pytest.fixture
def day(new_day: type[DayBuilder]) -> DayBuilder:
    return new_day().node().node(interval=60)


def test_the_api_alone_is_the_life_but_doubted_beside_samples(day: DayBuilder) -> None:
    assert lives(day.pod("u", 1, 2).pod("s", 3, 4, interval=60)) == [
        ("s", "running", 3, 4, "high"),
        ("u", "running", 1, 2, "low"),
    ]


def test_the_api_alone_is_a_snapshot_and_doubted(new_day: type[DayBuilder]) -> None:
    assert lives(new_day().node().pod("u", 1, 1.001)) == [("u", "running", 1, 1.001, "low")]


def test_ends_move_to_the_api_by_at_most_one_interval(day: DayBuilder) -> None:
    start, end = 1 - 0.5 * MINUTE, 2 + MINUTE
    day.pod("near", 1, 2, interval=60).pod("near", start, end, bound_at=None)
    day.rows["workloads"][-1]["finished_at"] = day.rows["workloads"][-1]["end"]
    day.pod("far", 1, 2, interval=60).pod("far", 1 - 2 * MINUTE, 2 + 3 * MINUTE)
    assert lives(day) == [
        ("far", "running", 1, 2, "high"),
        ("near", "running", round(start, 6), round(end, 6), "high"),
    ]


def test_the_start_of_running_moves_and_a_short_wait_is_not_lost(day: DayBuilder) -> None:
    day.pod("held", 1, 1.5, interval=60, state="held").pod("held", 1.5, 3, interval=60)
    day.pod("held", 1, 1.51, state="held").pod("held", 1.51, 3)
    day.pod("quick", 1 + MINUTE, 3, interval=60)
    day.pod("quick", 1 + 0.5 * MINUTE, 1 + 0.75 * MINUTE, state="held")
    day.pod("quick", 1 + 0.75 * MINUTE, 3)
    assert lives(day) == [
        ("held", "held", 1, 1.51, "high"),
        ("held", "running", 1.51, 3, "high"),
        ("quick", "held", 1.008333, 1.0125, "high"),
        ("quick", "running", 1.0125, 3, "high"),
    ]


def test_a_chain_up_to_the_last_interval_reaches_the_end_of_the_day(day: DayBuilder) -> None:
    day.pod("on", 20, 24 - MINUTE, interval=60).pod("off", 20, 24 - MINUTE, interval=60)
    day.pod("off", 20, 24 - MINUTE)
    day.rows["workloads"][-1]["finished_at"] = day.rows["workloads"][-1]["end"]
    assert [(uid, end) for uid, _, _, end, _ in lives(day)] == [
        ("off", round(24 - MINUTE, 6)),
        ("on", 24),
    ]


def test_a_pod_that_the_cluster_outlived_ends_at_its_last_sample(day: DayBuilder) -> None:
    last = at_hour(24 - MINUTE)
    day.pod("gone", 20, 24 - MINUTE, interval=60, finished_at=last)
    # The API was asked while the pod still ran; or it knows a later end than the last sample.
    day.pod("told", 20, 24 - MINUTE, interval=60, finished_at=last).pod("told", 20, 22)
    day.pod("late", 20, 24 - MINUTE, interval=60, finished_at=last)
    day.pod("late", 20, 24, finished_at=at_hour(24.005))
    assert [(uid, end) for uid, _, _, end, _ in lives(day)] == [
        ("gone", round(24 - MINUTE, 6)),
        ("late", 24),
        ("told", round(24 - MINUTE, 6)),
    ]


def test_a_hole_of_the_cluster_is_nobodys_life(new_day: type[DayBuilder]) -> None:
    day = new_day().node().node(start=0, end=9, interval=60).node(start=12, end=24, interval=60)
    assert lives(day.pod("u", 8, 13)) == [
        ("u", "running", 8, 9, "low"),
        ("u", "running", 12, 13, "low"),
    ]


def test_a_hole_of_the_pod_is_not_bridged(day: DayBuilder) -> None:
    day.pod("u", 1, 2, interval=60).pod("u", 4, 5, interval=60).pod("u", 1, 5)
    assert [(start, end) for _, _, start, end, _ in lives(day)] == [(1, 2), (4, 5)]


def test_later_labels_win_where_intervals_overlap(day: DayBuilder) -> None:
    day.pod("u", 1, 6, labels={"experiment": "a"}).pod("u", 2, 4, labels={"experiment": "b"})
    facts = day.facts()
    rows = seen_lives(facts)
    spans = rows.select(
        (pl.col("start") - facts.start) // HOUR,
        pl.col("labels").str.json_path_match("$.experiment"),
    )
    assert list(spans.iter_rows()) == [(1, "a"), (2, "b"), (4, "a")]


def test_labels_of_the_api_cut_the_sampled_life(day: DayBuilder) -> None:
    day.pod("u", 1, 6, interval=60, labels={"label_experiment": "old"}, gpus=3)
    day.pod("u", 1, 3, labels={"experiment": "a"}, gpus=1)
    day.pod("u", 3, 6, labels={"experiment": "b"}, gpus=1)
    facts = day.facts()
    rows = seen_lives(facts)
    assert list(rows.select("labels", "gpus").iter_rows()) == [
        ('{"experiment": "a"}', 1),
        ('{"experiment": "b"}', 1),
    ]


def test_a_life_shorter_than_an_interval_has_low_confidence(day: DayBuilder) -> None:
    day.pod("u", 1, 1 + MINUTE, interval=60).pod("u", 1, 1 + 0.5 * MINUTE)
    day.rows["workloads"][-1]["finished_at"] = day.rows["workloads"][-1]["end"]
    assert lives(day) == [("u", "running", 1, round(1 + 0.5 * MINUTE, 6), "low")]


def test_unbound_pods_have_no_life(day: DayBuilder) -> None:
    assert lives(day.pod("u", 1, 2, node=None)) == []


def states(day: DayBuilder, *names: str) -> list[tuple[object, ...]]:
    """Start and end in hours, and the named attributes; labels as objects."""
    facts = day.facts()
    rows = seen_lives(facts)
    return [
        (
            round((start - facts.start) / HOUR, 6),
            round((end - facts.start) / HOUR, 6),
            *(
                json.loads(value) if name == "labels" else value
                for name, value in zip(names, what, strict=True)
            ),
        )
        for start, end, *what in rows.select("start", "end", *names).iter_rows()
    ]


def test_a_label_that_changed_is_what_samples_said_then(day: DayBuilder) -> None:
    day.pod("u", 1, 3, interval=60, labels={"label_experiment": "a", "label_team_x": "t"})
    day.pod("u", 3, 6, interval=60, labels={"label_experiment": "b"})
    day.pod("u", 1, 6, labels={"experiment": "b", "pipeline": "p"})
    assert states(day, "labels") == [
        (1, 3, {"experiment": "a", "pipeline": "p", "label_team_x": "t"}),
        (3, 6, {"experiment": "b", "pipeline": "p"}),
    ]


def test_a_label_that_came_later_was_absent_before(day: DayBuilder) -> None:
    day.pod("u", 1, 3, interval=60, labels={}).pod(
        "u", 3, 6, interval=60, labels={"label_model_version": "v1"}
    )
    day.pod("u", 1, 6, labels={"model-version": "v1", "experiment": "a"})
    assert states(day, "labels") == [
        (1, 3, {"experiment": "a"}),
        (3, 6, {"model-version": "v1", "experiment": "a"}),
    ]


def test_the_api_was_asked_after_the_day(day: DayBuilder) -> None:
    """It tells the label that stood when it was asked, samples the one of the day."""
    day.pod("u", 1, 6, interval=60, labels={"label_experiment": "old"})
    day.pod("u", 1, 6, labels={"experiment": "new", "owner": "lin"})
    assert states(day, "labels") == [(1, 6, {"experiment": "old", "owner": "lin"})]


def test_a_request_that_was_resized_moves_by_what_samples_show(day: DayBuilder) -> None:
    """The API's request also counts init containers and overhead: 500 millicores here."""
    day.pod("u", 1, 3, interval=60, cpu_millicores=4000, memory_bytes=7)
    day.pod("u", 3, 4, interval=60, cpu_millicores=8000, memory_bytes=7)
    day.pod("u", 4, 6, interval=60, cpu_millicores=2000, memory_bytes=7)
    day.pod("u", 1, 6, cpu_millicores=2500, memory_bytes=9)
    assert states(day, "cpu_millicores", "memory_bytes") == [
        (1, 3, 4500, 9),
        (3, 4, 8500, 9),
        (4, 6, 2500, 9),
    ]


def test_a_request_never_falls_below_nothing(day: DayBuilder) -> None:
    day.pod("u", 1, 3, interval=60, cpu_millicores=1000)
    day.pod("u", 3, 6, interval=60, cpu_millicores=9000).pod("u", 1, 6, cpu_millicores=5000)
    assert states(day, "cpu_millicores") == [(1, 3, 0), (3, 6, 5000)]


def test_a_resize_that_the_api_tells_itself_is_not_moved_again(day: DayBuilder) -> None:
    for start, end, cpu in ((1, 3, 4000), (3, 6, 8000)):
        day.pod("u", start, end, interval=60, cpu_millicores=cpu)
        day.pod("u", start, end, cpu_millicores=cpu + 500)
    assert states(day, "cpu_millicores") == [(1, 3, 4500), (3, 6, 8500)]


def test_without_the_api_a_resize_is_what_samples_say(day: DayBuilder) -> None:
    day.pod("u", 1, 3, interval=60, cpu_millicores=1000)
    day.pod("u", 3, 6, interval=60, cpu_millicores=2000)
    assert states(day, "cpu_millicores") == [(1, 3, 1000), (3, 6, 2000)]


def test_cards_that_changed_are_what_samples_say(day: DayBuilder) -> None:
    day.pod("u", 1, 3, interval=60, gpus=2, gpu_resource="nvidia.com/gpu", gpu_request="{}")
    day.pod("u", 3, 6, interval=60, gpus=4, gpu_resource="nvidia.com/gpu", gpu_request="{}")
    day.pod("u", 1, 6, gpus=8, gpu_resource="nvidia.com/gpu")
    day.pod("v", 1, 6, interval=60, gpus=2, gpu_resource="nvidia.com/gpu", gpu_request="{}")
    day.pod("v", 1, 6, gpus=8, gpu_resource="nvidia.com/gpu")
    assert states(day, "gpus", "gpu_resource", "gpu_request") == [
        (1, 3, 2, "nvidia.com/gpu", "{}"),
        (3, 6, 4, "nvidia.com/gpu", "{}"),
        (1, 6, 8, "nvidia.com/gpu", "{}"),
    ]


def test_the_cost_of_a_pod_is_cut_where_its_label_changed(
    new_day: type[DayBuilder], cost_by: Callable[..., dict[Any, Decimal]]
) -> None:
    day = new_day().node(end=1).node(end=1, interval=60)
    day.pod("u", 0, 0.25, interval=60, gpus=8, labels={"label_experiment": "a"})
    day.pod("u", 0.25, 1, interval=60, gpus=8, labels={"label_experiment": "b"})
    day.pod("u", 0, 1, gpus=8, labels={"experiment": "b"}).line("l", effective="8")
    costs = day.attribute().costs
    assert cost_by(costs) == {"a": 2, "b": 6}
    assert cost_by(costs, "uid") == {"u": 8}


@settings(max_examples=examples(15), deadline=None)
@given(at=st.floats(0.1, 0.9), second=st.booleans())
def test_cutting_the_interval_of_a_label_moves_nothing_else(
    new_day: type[DayBuilder],
    cost_by: Callable[..., dict[Any, Decimal]],
    at: float,
    second: bool,
) -> None:
    """Grouped by anything that did not change, the rows are those of the uncut day."""

    def books(cut: bool) -> pl.DataFrame:
        day = new_day().node(end=1).node(end=1, interval=60).line("l", effective="7")
        for uid in ("u", "v") if second else ("u",):
            what: dict[str, Any] = {"gpus": 3, "namespace": f"ns-{uid}", "interval": 60}
            edge = round(at * 3600) / 3600
            day.pod(uid, 0, edge, labels={"label_experiment": "a" if cut else "b"}, **what)
            day.pod(uid, edge, 1, labels={"label_experiment": "b"}, **what)
            day.pod(uid, 0, 1, labels={"experiment": "b"}, gpus=3, namespace=f"ns-{uid}")
        return day.attribute().costs

    cut, whole = books(cut=True), books(cut=False)
    for key in ("uid", "namespace", "node", "target"):
        one, other = cost_by(cut, key), cost_by(whole, key)
        assert one.keys() == other.keys()
        # Two parts of a pod may each round by a unit of 1e-12.
        assert all(abs(one[name] - other[name]) <= Decimal("4e-12") for name in one)


@pytest.mark.parametrize(("other", "end"), [(24, 24 - MINUTE / 5), (24 - MINUTE / 5, 24)])
def test_a_node_that_ended_before_midnight_is_not_stretched(
    new_day: type[DayBuilder], other: float, end: float
) -> None:
    """Where another one was seen later it ended; where all end together, nobody looked."""
    day = new_day().node("n2", 0, other, interval=60)
    facts = day.node("n1", 0, 24 - MINUTE / 5, interval=60).facts()
    (span,) = node_spans(facts).filter(node="n1").select("start", "end").rows()
    assert span == (facts.start, facts.start + round(end * HOUR))


def test_a_node_that_began_after_midnight_is_not_stretched(new_day: type[DayBuilder]) -> None:
    day = new_day().node("n1", MINUTE, 24, interval=60, created=at_hour(MINUTE / 2))
    facts = day.node("n2", MINUTE, 24, interval=60, created=at_hour(-1)).facts()
    assert node_spans(facts)["start"].to_list() == [facts.start + 30_000, facts.start]
