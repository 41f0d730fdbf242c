"""Lives of pods, through dumps: what the API's times become."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.kubernetes.decode import decode
from collector.kubernetes.kinds import PODS
from collector.kubernetes.life import life
from collector.kubernetes.objects import Pod
from collector.kubernetes.rejects import Rejected
from collector.kubernetes.times import OPEN
from ledger.facts import Facts
from ledger.window import Window, parse_day
from tests.collector.kubernetes.builders import (
    DAY,
    Json,
    at,
    collect,
    container,
    ended,
    lives,
    node,
    pod,
    row,
    running,
    terminated,
    waiting,
)


def facts_of(folder: Path, *items: Json, window: Window | None = None) -> Facts:
    path = folder / "objects.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [node(), *items]}))
    return collect(window or Window.of_day(parse_day(DAY)), dump=str(path))


def test_held_from_binding_then_running_until_the_finish(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, pod("a", ended("08:30", "11:00"), phase="Succeeded"))
    assert lives(facts, "a") == [
        ("08:00", "08:30", "held", "ContainerCreating"),
        ("08:30", "11:00", "running", None),
    ]
    assert row(facts, "a")["bound_at"] == datetime(2026, 11, 30, 8, tzinfo=UTC)
    assert row(facts, "a")["finished_at"] == datetime(2026, 11, 30, 11, tzinfo=UTC)


def test_what_still_runs_in_a_dump_runs_to_the_end_of_each_day(tmp_path: Path) -> None:
    days = Window.of_days(parse_day(DAY), parse_day("2026-12-02"))
    facts = facts_of(tmp_path, pod("a", running("09:00")), window=days)
    assert lives(facts, "a")[1:] == [
        ("09:00", "00:00", "running", None),
        ("00:00", "00:00", "running", None),
        ("00:00", "00:00", "running", None),
    ]
    assert row(facts, "a")["finished_at"] is None
    assert any("no time of its own" in note for note in facts.notes)


def test_two_halves_of_a_window_are_the_whole(tmp_path: Path) -> None:
    first, last = parse_day(DAY), parse_day("2026-12-01")
    one = pod("a", ended("23:30", "23:40"))
    whole = facts_of(tmp_path, one, window=Window.of_days(first, last)).tables["workloads"]
    halves = [
        facts_of(tmp_path, one, window=Window.of_day(day)).tables["workloads"]
        for day in (first, last)
    ]
    assert halves[0].vstack(halves[1]).equals(whole)
    assert not whole.is_empty()


def test_init_containers_and_a_sidecar_do_not_make_it_run(tmp_path: Path) -> None:
    made = pod(
        "a",
        ended("09:00", "10:00"),
        phase="Succeeded",
        init=[container("fetch"), container("proxy", restartPolicy="Always")],
        init_statuses=[ended("08:10", "08:50"), ended("08:50", "10:05")],
    )
    assert lives(facts_of(tmp_path, made), "a") == [
        ("08:00", "09:00", "held", "PodInitializing"),
        ("09:00", "10:00", "running", None),
        ("10:00", "10:05", "held", "Completed"),
    ]


def test_crash_loop_is_held_between_and_after_its_runs(tmp_path: Path) -> None:
    made = pod(
        "a",
        waiting(
            "CrashLoopBackOff", restartCount=1, lastState=terminated("08:05", "08:15", "Error")
        ),
    )
    assert lives(facts_of(tmp_path, made), "a") == [
        ("08:00", "08:05", "held", "ContainerCreating"),
        ("08:05", "08:15", "running", None),
        ("08:15", "00:00", "held", "CrashLoopBackOff"),
    ]


def test_back_off_between_two_runs_is_held(tmp_path: Path) -> None:
    made = pod("a", running("09:00", restartCount=1, lastState=terminated("08:05", "08:55")))
    assert lives(facts_of(tmp_path, made), "a")[1:] == [
        ("08:05", "08:55", "running", None),
        ("08:55", "09:00", "held", "CrashLoopBackOff"),
        ("09:00", "00:00", "running", None),
    ]


def test_runs_that_the_api_forgot_are_taken_from_initialisation(tmp_path: Path) -> None:
    initialised = {"type": "Initialized", "status": "True", "lastTransitionTime": at("08:10")}
    last = terminated("14:00", "15:00", "OOMKilled")
    survivor = pod("a", running("15:01", restartCount=3, lastState=last), conditions=[initialised])
    looper = pod(
        "b", waiting("CrashLoopBackOff", restartCount=3, lastState=last), conditions=[initialised]
    )
    facts = facts_of(tmp_path, survivor, looper)
    assert lives(facts, "a")[:2] == [
        ("08:00", "08:10", "held", "ContainerCreating"),
        ("08:10", "15:00", "running", None),
    ]
    assert lives(facts, "b")[:2] == [
        ("08:00", "14:00", "held", "CrashLoopBackOff"),
        ("14:00", "15:00", "running", None),
    ]


@pytest.mark.parametrize("reason", ["ImagePullBackOff", "ErrImagePull", "CreateContainerError"])
def test_a_pod_that_never_starts_is_held_with_its_reason(tmp_path: Path, reason: str) -> None:
    facts = facts_of(tmp_path, pod("a", waiting(reason), phase="Pending"))
    assert lives(facts, "a") == [("08:00", "00:00", "held", reason)]


def test_the_reason_of_an_init_container_says_more(tmp_path: Path) -> None:
    made = pod(
        "a",
        waiting("PodInitializing"),
        phase="Pending",
        init=[container("fetch")],
        init_statuses=[waiting("ImagePullBackOff")],
    )
    assert lives(facts_of(tmp_path, made), "a") == [("08:00", "00:00", "held", "ImagePullBackOff")]


def test_a_deleted_pod_ends_with_its_containers(tmp_path: Path) -> None:
    gone = pod("gone", ended("08:30", "11:00"), deletionTimestamp=at("10:59"))
    going = pod("going", running("08:30"), deletionTimestamp=at("10:59"))
    facts = facts_of(tmp_path, gone, going)
    assert lives(facts, "gone")[-1] == ("08:30", "11:00", "running", None)
    assert lives(facts, "going")[-1] == ("08:30", "00:00", "running", None)


def test_one_container_still_running_keeps_the_pod_running(tmp_path: Path) -> None:
    made = pod(
        "a",
        ended("08:30", "09:00"),
        running("08:40"),
        containers=[container("one"), container("two")],
    )
    assert lives(facts_of(tmp_path, made), "a")[1:] == [("08:30", "00:00", "running", None)]


def test_all_containers_done_but_the_pod_is_not(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, pod("a", ended("08:30", "09:00", "Error")))
    assert lives(facts, "a")[1:] == [
        ("08:30", "09:00", "running", None),
        ("09:00", "00:00", "held", "Error"),
    ]


def test_an_unbound_pod_has_no_node_and_says_why_it_waits(tmp_path: Path) -> None:
    unschedulable = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "lastTransitionTime": at("08:00"),
    }
    facts = facts_of(
        tmp_path, pod("a", node=None, bound=None, phase="Pending", conditions=[unschedulable])
    )
    assert lives(facts, "a") == [("07:59", "00:00", "held", "Unschedulable")]
    assert row(facts, "a")["node"] is None
    assert row(facts, "a")["bound_at"] is None


@pytest.mark.parametrize(
    "made",
    [
        pod("lost", running("08:30"), node=None),
        pod("lost", ended("08:30", "09:00"), node=None, phase="Succeeded"),
        pod("lost", ended("08:30", "09:00"), node=None, bound=None, phase="Failed"),
        pod("lost", node=None, phase="Unknown"),
    ],
    ids=["running", "succeeded", "failed", "unknown"],
)
def test_a_pod_that_has_run_nowhere_is_put_aside(tmp_path: Path, made: Json) -> None:
    facts = facts_of(tmp_path, made, pod("a", running("08:30")))
    assert facts.tables["workloads"]["pod"].unique().to_list() == ["a"]
    assert [(entry.reason, entry.count) for entry in facts.quarantine] == [("no_node", 1)]
    assert "train/lost" in str(facts.quarantine[0].example)
    assert facts.read == 3  # with the node


def test_a_pod_that_failed_in_the_queue_has_waited(tmp_path: Path) -> None:
    target = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": at("09:30")}
    facts = facts_of(tmp_path, pod("a", node=None, bound=None, phase="Failed", conditions=[target]))
    assert lives(facts, "a") == [("07:59", "09:30", "held", "Pending")]
    assert facts.quarantine == ()


def test_an_evicted_pod_ends_with_its_disruption(tmp_path: Path) -> None:
    target = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": at("09:30")}
    facts = facts_of(
        tmp_path, pod("a", phase="Failed", conditions=[target], status={"reason": "Evicted"})
    )
    assert lives(facts, "a") == [("08:00", "09:30", "held", "Evicted")]


def test_an_end_that_nobody_knows_is_a_gap(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, pod("a", phase="Failed"))
    assert lives(facts, "a") == []
    assert [gap.reason for gap in facts.gaps] == ["no_finish_time"]
    assert "train/a" in facts.gaps[0].detail
    later = facts_of(tmp_path, pod("a", phase="Failed"), window=Window.of_day(date(2026, 12, 1)))
    assert not later.gaps


def test_a_static_pod_may_run_before_the_server_knows_it(tmp_path: Path) -> None:
    made = pod("etcd", running("02:00"), annotations={"kubernetes.io/config.mirror": "x"})
    assert lives(facts_of(tmp_path, made), "etcd") == [("02:00", "00:00", "running", None)]


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (pod("bad", running("08:30"), bound="08:00", created="09:00"), "clock"),
        (pod("bad", running("07:00")), "clock"),
        (pod("bad", ended("09:00", "08:30"), phase="Succeeded"), "clock"),
        (pod("bad", {"state": {"running": {"startedAt": "1987-01-01T00:00:00Z"}}}), "bad_date"),
        (pod("bad", {"state": {"running": {"startedAt": "3026-01-01T00:00:00Z"}}}), "bad_date"),
        (pod("bad", {"state": {"running": {"startedAt": "yesterday"}}}), "bad_date"),
        (pod("bad", {"state": {"running": {"startedAt": "2026-11-30T08:30:00"}}}), "bad_date"),
        (pod("bad", running("08:30"), containers=[container(cpu="lots")]), "bad_number"),
        (pod("bad", running("08:30"), containers=[container(memory="-1Gi")]), "bad_number"),
    ],
)
def test_a_pod_that_cannot_be_true_is_put_aside(tmp_path: Path, made: Json, reason: str) -> None:
    facts = facts_of(tmp_path, made, pod("good", running("08:30")))
    assert facts.tables["workloads"]["pod"].unique().to_list() == ["good"]
    (entry,) = facts.quarantine
    assert (entry.reason, entry.where, entry.count) == (reason, "pods", 1)
    assert "train/bad" in (entry.example or "")


def test_clocks_that_differ_by_seconds_are_no_reason(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, pod("a", ended("07:59:30", "09:00"), phase="Succeeded"))
    assert lives(facts, "a") == [("08:00", "09:00", "running", None)]
    assert not facts.quarantine


def test_a_time_that_a_runtime_did_not_know_is_not_1970(tmp_path: Path) -> None:
    lost = {
        "state": {
            "terminated": {
                "startedAt": "1970-01-01T00:00:00Z",
                "finishedAt": "1970-01-01T00:00:00Z",
                "reason": "ContainerStatusUnknown",
            }
        }
    }
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": at("10:00")}
    facts = facts_of(tmp_path, pod("a", lost, phase="Failed", conditions=[ready]))
    assert lives(facts, "a") == [("08:00", "10:00", "held", "ContainerStatusUnknown")]


MINUTES = st.integers(0, 24 * 60 - 1)


@given(
    bound=MINUTES,
    last=st.tuples(MINUTES, MINUTES),
    now=st.tuples(MINUTES, MINUTES),
    restarts=st.integers(0, 3),
    phase=st.sampled_from(["Running", "Succeeded"]),
)
def test_a_life_has_no_holes_and_no_overlaps(
    bound: int,
    last: tuple[int, int],
    now: tuple[int, int],
    restarts: int,
    phase: str,
) -> None:
    def clock(minute: int) -> str:
        return f"{minute // 60:02}:{minute % 60:02}"

    state = (ended if phase == "Succeeded" else lambda start, _: running(start))(
        clock(now[0]), clock(now[1])
    )
    state |= {"restartCount": restarts, "lastState": terminated(clock(last[0]), clock(last[1]))}
    made = decode(
        PODS, json.dumps(pod("a", state, bound=clock(bound), created="00:00", phase=phase)).encode()
    )
    assert isinstance(made, Pod)
    try:
        lived = life(made)
    except Rejected:
        return
    assert lived.bound_at is not None
    spans = lived.spans
    assert all(span.start < span.end for span in spans)
    assert all(one.end == two.start and one.running != two.running for one, two in pairwise(spans))
    if spans:
        assert spans[0].start == lived.bound_at
        assert spans[-1].end == (lived.finished_at or OPEN)
    assert sum((span.end - span.start for span in spans), timedelta()) == (
        (lived.finished_at or OPEN) - lived.bound_at
    )
