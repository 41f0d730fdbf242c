"""What a watch makes of one pod, whatever happens to it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.agent import state
from collector.agent.lives import END_NOT_SEEN
from collector.agent.state import Watch
from collector.agent.stream import Alive, Seen, Started
from collector.agent.wire import PODS
from collector.kubernetes.decode import decode
from ledger.window import Window
from tests.collector.agent.lives_world import Change, Pod, world
from tests.collector.agent.replay import describe
from tests.collector.agent.test_replay import clipped, told
from tests.effort import examples

START = datetime(2026, 11, 30, 2, tzinfo=UTC)
DAY = Window.of_day(START.date())


def see(watch: Watch, change: str, told: Change, at: datetime, *, live: bool = True) -> None:
    found = decode(PODS, json.dumps(told.item).encode())
    version = None if change == "LISTED" else "2"
    watch.take(Seen(PODS, change, found, at, version, live=live))


def relist(watch: Watch, pods: list[Pod], at: datetime) -> None:
    watch.take(Started(PODS, at))
    for pod in pods:
        past = [change for change in pod.changes if change.at <= at]
        if past and not past[-1].removed:
            see(watch, "LISTED", past[-1], at)
    watch.take(Alive(PODS, at, "1", listed=True))


@settings(max_examples=examples(100))
@given(st.integers(0, 10**6), st.integers(0, 300), st.lists(st.integers(0, 14), max_size=3))
def test_watched_time_is_true_and_the_rest_made_of_it(
    seed: int, late: int, holes: list[int]
) -> None:
    """Word comes late; in some hours nobody watches at all."""
    [pod] = world(Random(seed), 1, START, timedelta(hours=6))
    watch = Watch("train-a", describe, START.date())
    relist(watch, [], START)
    away = False
    end = START + timedelta(hours=15)
    moments: list[tuple[datetime, Change | None]] = [
        *((change.at, change) for change in pod.changes),
        *((START + timedelta(hours=hour), None) for hour in range(1, 16)),
    ]
    for at, change in sorted(moments, key=lambda each: each[0]):
        if change is None:
            hour = int((at - START).total_seconds()) // 3600
            if away and hour not in holes:
                relist(watch, [pod], at)
            away = hour in holes
        elif not away and at < end:
            what = "DELETED" if change.removed else "MODIFIED"
            came = min(at + timedelta(seconds=late), end)
            see(watch, what, change, came, live=late == 0)
    if not away:
        watch.take(Alive(PODS, end, "3"))
    until = watch.until
    assert until is not None
    mine = told(watch.facts(DAY).tables["workloads"]).get(pod.uid, [])
    assert all(a[1] <= b[0] for a, b in pairwise(mine))
    assert all(a[0] < a[1] <= until for a in mine)
    truth = pod.truth(until)
    if mine:
        assert mine[0][0] >= truth[0][0]
        assert mine[-1][1] <= truth[-1][1]
    if not late:
        assert clipped(mine, watch.watched) == clipped(truth, watch.watched)


def test_a_pod_that_ended_in_a_hole_counts_until_it_was_seen() -> None:
    [pod] = world(Random(4), 1, START, timedelta(hours=1))
    pod.changes = pod.changes[:3]  # it runs
    watch = Watch("train-a", describe, START.date())
    relist(watch, [], START)
    for change in pod.changes:
        see(watch, "MODIFIED", change, change.at)
    last = pod.changes[-1].at + timedelta(hours=1)
    watch.take(Alive(PODS, last, "2"))
    relist(watch, [], last + timedelta(hours=2))
    facts = watch.facts(DAY)
    rows = facts.tables["workloads"].sort("start")
    assert (rows["end"][-1], rows["reason"][-1]) == (last, END_NOT_SEEN)
    assert rows["finished_at"][-1] is None
    assert {gap.reason for gap in facts.gaps} == {"not_watched", "no_finish_time"}


def test_a_short_hole_that_a_list_ends_is_noted_not_a_gap() -> None:
    watch = Watch("train-a", describe, START.date())
    relist(watch, [], START)
    relist(watch, [], START + state.TOLERATED)
    assert watch.holes(Window(START, START + timedelta(hours=1))) == []
    assert any("taken up by a list" in note for note in watch.facts(DAY).notes)


@pytest.mark.parametrize("grace", [0, 30])
def test_a_pod_that_is_deleted_while_it_runs_ends_when_that_fell_due(grace: int) -> None:
    [pod] = world(Random(4), 1, START, timedelta(hours=1))
    watch = Watch("train-a", describe, START.date())
    relist(watch, [], START)
    for change in pod.changes[:3]:
        see(watch, "MODIFIED", change, change.at)
    due = pod.changes[2].at + timedelta(minutes=5)
    last = Change(due, {**pod.changes[2].item})
    last.item["metadata"] = {
        **last.item["metadata"],
        "deletionTimestamp": f"{due + timedelta(seconds=grace):%Y-%m-%dT%H:%M:%SZ}",
    }
    see(watch, "DELETED", last, due + timedelta(seconds=1))
    watch.take(Alive(PODS, due + timedelta(hours=1), "9"))
    rows = watch.facts(DAY).tables["workloads"].sort("start")
    # Before its grace was over it went when the word came.
    assert rows["end"][-1] == due + timedelta(seconds=1 if grace else 0)


@pytest.mark.parametrize("days", [-1, 1])
def test_the_first_day_is_the_servers(days: int) -> None:
    watch = Watch("train-a", describe, START.date() + timedelta(days=days))
    relist(watch, [], START)
    assert watch.days() == [START.date()]
