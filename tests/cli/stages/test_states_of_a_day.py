"""Several readings of a day: what an earlier one saw of states and events is not lost."""

from __future__ import annotations

import json
from pathlib import Path

from cli.stages.backfill import Task
from cli.stages.collecting import collect
from cli.wiring import Context, Source
from collector.kubernetes.collect import KubernetesCollector
from collector.kubernetes.live import LiveReader
from ledger.load import LoadedSettings
from ledger.schema import EVENTS, RESOURCES
from ledger.settings import KubernetesSource, Settings
from ledger.store import Ledger
from tests.collector.kubernetes.apiserver import ApiServer, by_list
from tests.collector.kubernetes.builders import (
    NOW,
    WINDOW,
    Json,
    at,
    node,
    pod,
    running,
    terminated,
    thing,
)


def job(uid: str, **status: object) -> Json:
    return thing("batch/v1", "Job", "sft", uid=uid, status=status)


def event(last: str, count: int) -> Json:
    made = thing("v1", "Event", "e", uid="event-1")
    about = {"kind": "Pod", "namespace": "train", "name": "a", "uid": "uid-a"}
    return {
        **made,
        "involvedObject": about,
        "reason": "BackOff",
        "type": "Warning",
        "firstTimestamp": at("08:00"),
        "lastTimestamp": at(last),
        "count": count,
    }


def test_ended_jobs_and_events_of_an_earlier_reading_stay(tmp_path: Path) -> None:
    ledger = Ledger.open(str(tmp_path / "ledger"), create=True)
    context = Context(LoadedSettings(Settings(), None, tmp_path, {}), ledger, "1.2.3")

    def see(hours: int, *items: Json) -> None:
        """Collect what the API shows so many hours before the day ends."""
        lists = by_list([node(), *items])
        with ApiServer(lists, now=NOW - hours * 3600) as server:
            reader = LiveReader(KubernetesSource(server=server.url), tmp_path)
            one = KubernetesCollector("a", reader, snapshot=True)
            collect(context, Task(Source("kubernetes", one.name, True, False, lambda: one), WINDOW))

    ended = {"startTime": at("08:00"), "completionTime": at("09:00")}
    once = pod("a", running("08:30", lastState=terminated("08:00", "08:10", "Error")))
    again = pod("a", running("11:00", lastState=terminated("08:30", "10:30", "Error")))
    see(14, once, job("one", **ended), event("09:30", 3))
    see(12, again, job("two", active=1), event("11:30", 5))
    see(1, again, job("two", active=1))

    jobs = ledger.scan(RESOURCES, WINDOW).collect().sort("seen_at")
    told = [
        (row["uid"], json.loads(row["configuration"])["state"], f"{row['seen_at']:%H:%M}")
        for row in jobs.iter_rows(named=True)
        if row["kind"] == "Job"
    ]
    assert told == [("one", "finished", "10:00"), ("two", "running", "23:00")]
    events = ledger.scan(EVENTS, WINDOW).collect().sort("time")
    assert events.select("id", "kind", "count").rows() == [
        (f"uid-a/main/{at('08:10')}", "restart", 1),
        (f"uid-a/main/{at('10:30')}", "restart", 1),
        ("event-1", "back_off", 5),
    ]
