"""The table events: one row for each thing that happened, however often it is told."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from collector.happenings import kind_of, short
from ledger.facts import Facts
from ledger.window import Window, parse_day
from tests.collector.kubernetes.builders import (
    WINDOW,
    Json,
    at,
    collect,
    ended,
    node,
    pod,
    running,
    terminated,
    thing,
    waiting,
)


def facts_of(folder: Path, *items: Json, window: Window = WINDOW) -> Facts:
    path = folder / "objects.json"
    every = [node(), pod("main", running("08:30")), *items]
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": every}))
    return collect(window, dump=str(path))


def event(
    reason: str,
    last: str,
    *,
    about: tuple[str, str] = ("Pod", "a"),
    name: str | None = None,
    **more: object,
) -> Json:
    kind, who = about
    uid = who if kind == "Node" else f"uid-{who}"
    made = thing("v1", "Event", name or f"{who}.{reason}")
    found: Json = {"kind": kind, "namespace": "train", "name": who, "uid": uid}
    return {
        **made,
        "involvedObject": found,
        "reason": reason,
        "type": "Warning",
        "lastTimestamp": last,
        "firstTimestamp": last,
        **more,
    }


def rows(facts: Facts) -> list[Json]:
    return facts.tables["events"].sort("time", "id").to_dicts()


def test_an_event_is_a_row(tmp_path: Path) -> None:
    made = event(
        "FailedScheduling",
        at("09:30"),
        firstTimestamp=at("08:00"),
        count=18,
        message="0/8 nodes are available:\n see https://lin:secret@example.com/a",
        reportingComponent="default-scheduler",
    )
    (row,) = rows(facts_of(tmp_path, made))
    assert (row["kind"], row["reason"], row["count"]) == ("not_scheduled", "FailedScheduling", 18)
    assert (row["object_kind"], row["namespace"], row["name"], row["uid"]) == (
        *("Pod", "train", "a"),
        "uid-a",
    )
    assert (f"{row['time']:%H:%M}", f"{row['first_time']:%H:%M}") == ("09:30", "08:00")
    assert row["message"] == "0/8 nodes are available: see https://example.com/a"
    assert json.loads(row["attributes"]) == {"teller": "default-scheduler"}
    assert row["id"] == "uid-Event-a.FailedScheduling"


def test_the_newer_form_of_an_event_is_the_same_row(tmp_path: Path) -> None:
    newer = event(
        "FailedScheduling",
        "",
        eventTime="2026-11-30T08:00:00.000001Z",
        series={"count": 4, "lastObservedTime": at("08:10")},
        firstTimestamp=None,
        lastTimestamp=None,
    )
    (row,) = rows(facts_of(tmp_path, newer))
    assert (f"{row['time']:%H:%M}", f"{row['first_time']:%H:%M}", row["count"]) == (
        *("08:10", "08:00"),
        4,
    )


def test_an_event_that_goes_on_past_midnight_stands_on_both_days(tmp_path: Path) -> None:
    made = event("BackOff", at("00:30"), firstTimestamp="2026-11-29T23:50:00Z", count=9)
    first = Window.of_day(parse_day("2026-11-29"))
    two = rows(facts_of(tmp_path, made, window=Window(first.start, WINDOW.end)))
    assert [(f"{row['time']:%d %H:%M}", row["count"]) for row in two] == [
        ("29 23:50", None),
        ("30 00:30", 9),
    ]
    assert {row["id"] for row in two} == {"uid-Event-a.BackOff"}
    assert rows(facts_of(tmp_path, made, window=first))[0]["time"] == two[0]["time"]


def test_a_node_has_a_name_and_no_uid(tmp_path: Path) -> None:
    lost = event("NodeNotReady", at("09:00"), about=("Node", "gpu-1"), type="Normal")
    (row,) = rows(facts_of(tmp_path, lost))
    assert (row["kind"], row["object_kind"], row["node"], row["uid"]) == (
        *("node_not_ready", "Node", "gpu-1"),
        None,
    )


def test_containers_tell_how_they_ended(tmp_path: Path) -> None:
    killed = terminated("08:10", "08:50", "OOMKilled")
    killed["terminated"] |= {"exitCode": 137}
    failed = ended("08:30", "09:00", "Error")
    failed["state"]["terminated"] |= {"exitCode": 1}
    facts = facts_of(
        tmp_path,
        pod("a", running("09:00", lastState=killed, restartCount=3)),
        pod("b", failed, phase="Failed"),
        pod("c", ended("08:30", "09:00"), phase="Succeeded"),
        pod("d", waiting("CrashLoopBackOff", lastState=terminated("08:30", "09:30", "Error"))),
    )
    found = {row["name"]: row for row in rows(facts)}
    assert {name: row["kind"] for name, row in found.items()} == {
        "a": "out_of_memory",
        "b": "restart",
        "d": "restart",
    }
    assert found["a"]["id"] == f"uid-a/main/{at('08:50')}"
    assert json.loads(found["a"]["attributes"]) == {
        "container": "main",
        "exitCode": 137,
        "restarts": 3,
    }
    assert found["a"]["node"] == "gpu-1"


def test_a_pod_is_put_off_once_however_it_is_told(tmp_path: Path) -> None:
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "lastTransitionTime": at("10:00"),
    }
    gone = pod("a", phase="Failed", conditions=[target])
    (row,) = rows(facts_of(tmp_path, gone, event("Preempted", at("10:01"), message="by other")))
    assert (row["kind"], row["id"], row["message"]) == (
        "preemption",
        "uid-a/preemption",
        "by other",
    )
    assert (f"{row['time']:%H:%M}", f"{row['first_time']:%H:%M}") == ("10:01", "10:00")


def test_everyday_events_and_impossible_times_give_no_rows(tmp_path: Path) -> None:
    facts = facts_of(
        tmp_path,
        event("Scheduled", at("09:00"), type="Normal"),
        event("Unhealthy", "2199-01-01T00:00:00Z"),
        event("Unhealthy", "yesterday", name="x"),
        event("Unhealthy", "", name="y", firstTimestamp=None),
        event("Unhealthy", "2026-11-29T09:00:00Z", name="z"),
    )
    assert facts.tables["events"].is_empty()


def test_the_order_of_objects_changes_no_row(tmp_path: Path) -> None:
    items = [event(reason, at("09:00")) for reason in ("Evicted", "TaintManagerEviction")]
    items += [pod("p", running("09:00", lastState=terminated("08:00", "08:10", "Error")))]
    one, two = facts_of(tmp_path, *items), facts_of(tmp_path, *reversed(items))
    assert one.tables["events"].height == 2
    key = ["id", "time", "kind", "count"]
    assert one.tables["events"].select(key).equals(two.tables["events"].select(key))
    frame: pl.DataFrame = one.tables["events"]
    assert not frame.select("day", "cluster", "id").is_duplicated().any()


@pytest.mark.parametrize(
    ("reason", "warning", "kind"),
    [
        ("OOMKilling", True, "out_of_memory"),
        ("EvictedDueToPreempted", False, "preemption"),
        ("EvictedDueToPodsReadyTimeout", False, "eviction"),
        ("ScaleDown", False, "scale_down"),
        ("Unconsolidatable", False, "scale_blocked"),
        ("XidError", True, "warning"),
        ("Pulled", False, None),
        ("", False, None),
    ],
)
def test_reasons_are_one_vocabulary(reason: str, *, warning: bool, kind: str | None) -> None:
    assert kind_of(reason, warning=warning) == kind


def test_messages_are_cut_short() -> None:
    assert len(short("a" * 1000) or "") == 200
    assert short(" \n ") is None
    assert short(None) is None


@pytest.mark.parametrize("count", [-5, 0, 1 << 31, 10**25])
def test_a_count_that_cannot_be_true_is_not_told(tmp_path: Path, count: int) -> None:
    """The event stands, and breaks no other."""
    more = [event("Evicted", at("09:00"), count=count)]
    more += [event("BackOff", at("09:10"), series={"count": count}, count=3)]
    found = rows(facts_of(tmp_path, *more))
    assert [(row["kind"], row["count"]) for row in found] == [("eviction", None), ("back_off", 3)]
