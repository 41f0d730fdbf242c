"""What events add: the end of pods, and pods that nobody has listed."""

from __future__ import annotations

import json
from pathlib import Path

from collector.kubernetes import from_settings
from ledger.facts import Facts
from ledger.settings import Cluster
from tests.collector.kubernetes.apiserver import ApiServer, Fault
from tests.collector.kubernetes.builders import (
    NOW,
    WINDOW,
    Json,
    at,
    collect,
    lives,
    node,
    pod,
    running,
    thing,
)

EVENTS = "/api/v1/events"


def event(uid: str, reason: str, clock: str, *, kind: str = "Pod", newer: bool = False) -> Json:
    about = {"kind": kind, "namespace": "train", "name": uid.removeprefix("uid-"), "uid": uid}
    time = {"eventTime": at(clock)} if newer else {"lastTimestamp": at(clock)}
    made = thing("v1", "Event", f"{uid}.{reason}.{clock.replace(':', '')}")
    return {**made, "involvedObject": about, "reason": reason, "firstTimestamp": None, **time}


def lost(name: str = "a") -> Json:
    """A pod that is over, and does not say since when."""
    return pod(name, phase="Failed")


def facts_of(folder: Path, *items: Json, prometheus: bool = False) -> Facts:
    path = folder / "objects.json"
    every = [node(), pod("main", running("08:30")), *items]
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": every}))
    block: Json = {"name": "train-a", "kubernetes": {"dump": str(path)}}
    if prometheus:
        block["prometheus"] = {"url": "http://prometheus.example"}
    return from_settings(Cluster.model_validate(block), Path("/")).collect(WINDOW)


def test_an_event_ends_a_pod_that_does_not_say_when_it_did(tmp_path: Path) -> None:
    told = [event("uid-a", "Killing", "10:00"), event("uid-a", "Evicted", "11:00", newer=True)]
    facts = facts_of(tmp_path, lost(), *told)
    assert lives(facts, "a") == [("08:00", "11:00", "held", "ContainerCreating")]
    assert not facts.gaps


def test_events_tell_when_a_pod_ran_whose_containers_are_no_longer_known(tmp_path: Path) -> None:
    told = [event("uid-a", "Started", "08:10"), event("uid-a", "Killing", "10:00")]
    facts = facts_of(tmp_path, lost(), *told)
    assert lives(facts, "a") == [
        ("08:00", "08:10", "held", "ContainerCreating"),
        ("08:10", "10:00", "running", None),
    ]


def test_without_an_event_the_end_is_unknown(tmp_path: Path) -> None:
    others = [
        event("uid-a", "Pulled", "10:00"),
        event("uid-b", "Killing", "10:00"),
        event("uid-a", "Killing", "10:00", kind="Node"),
        event("uid-a", "Killing", "25:00"),
    ]
    facts = facts_of(tmp_path, lost(), *others)
    assert not lives(facts, "a")
    assert [gap.reason for gap in facts.gaps] == ["no_finish_time"]


def test_a_restart_is_no_end(tmp_path: Path) -> None:
    odd = pod("a", running("10:30"), phase="Failed")
    facts = facts_of(tmp_path, odd, event("uid-a", "Killing", "10:00"))
    assert [gap.reason for gap in facts.gaps] == ["no_finish_time"]


def test_pods_that_only_events_know_are_named(tmp_path: Path) -> None:
    told = [
        event("uid-gone", reason, clock)
        for reason, clock in (("Scheduled", "09:00"), ("Started", "09:01"), ("Killing", "09:30"))
    ]
    unstarted = [event("uid-never", "Scheduled", "09:00"), event("uid-never", "Killing", "09:01")]
    facts = facts_of(tmp_path, *told, *unstarted)
    (gap,) = facts.gaps
    assert gap.reason == "pods_not_listed"
    assert gap.detail.startswith("1 pods")
    assert "train/gone" in gap.detail
    watched = facts_of(tmp_path, *told, prometheus=True)
    assert not watched.gaps
    assert any("train/gone" in note for note in watched.notes)


def test_events_of_every_start_are_not_asked_for_and_all_may_be_denied() -> None:
    lists = {"/api/v1/pods": [lost()], "/api/v1/nodes": [node()]}
    with ApiServer({**lists, EVENTS: [event("uid-a", "Killing", "10:00")]}, now=NOW) as server:
        assert lives(collect(server=server.url), "a")[-1][1] == "10:00"
        assert "reason!=Pulled" in (server.seen(EVENTS)[0].fields or "")
    with ApiServer(lists, {EVENTS: [Fault(403)]}, now=NOW) as server:
        facts = collect(server=server.url)
    assert [gap.reason for gap in facts.gaps] == ["no_finish_time"]
    assert any("events" in note for note in facts.notes)
