"""Rows of the table ``events``: the API's events, and how containers and pods ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from collector.happenings import PODS_END, end_id, exit_id, kind_of, kind_of_exit, short
from collector.kubernetes.events import Event
from collector.kubernetes.frames import Row
from collector.kubernetes.objects import ContainerStatus, Pod, Terminated
from collector.kubernetes.rejects import Rejected
from collector.kubernetes.times import moment
from ledger.text import canonical_json
from ledger.window import Window


def event_rows(
    events: Iterable[Event],
    pods: Iterable[Pod],
    cluster: str,
    window: Window,
    now: datetime | None = None,
) -> list[Row]:
    """What happened on the days of the window, one row per day and ``id``.

    Args:
        events: The API's events; everyday ones are left out.
        pods: Pods, whose containers tell how they ended the last time.
        cluster: The cluster's name in the settings.
        window: The days asked for.
        now: The present of the API server; None if unknown (a dump).
    """
    found: dict[tuple[object, object], Row] = {}
    told = (row for event in events for row in rows_of_event(event, cluster, now))
    seen = (row for pod in pods for row in rows_of_pod(pod, cluster, now))
    for row in (*told, *seen):
        if not window.start <= row["time"] < window.end:
            continue
        key = (row["day"], row["id"])
        known = found.get(key)
        found[key] = row if known is None else _merged(known, row)
    return list(found.values())


def rows_of_event(event: Event, cluster: str, now: datetime | None = None) -> Iterator[Row]:
    """An event of the API: a row for the last time it happened, and one for the first day.

    Events without a time, and times that cannot be true, give none.
    """
    about, reason = event.involved_object, event.reason or ""
    kind = kind_of(reason, warning=event.type == "Warning")
    last, first = _times(event, now)
    if kind is None or last is None or not event.metadata.uid:
        return
    ends = about.kind == "Pod" and about.uid and kind in PODS_END
    node = about.name if about.kind == "Node" else (event.source.host if event.source else None)
    row = {
        "cluster": cluster,
        "id": end_id(about.uid, kind) if ends else event.metadata.uid,
        "kind": kind,
        "object_kind": about.kind or None,
        "namespace": about.namespace,
        "name": about.name or None,
        # A node's events name the node as uid.
        "uid": about.uid if about.uid and about.uid != about.name else None,
        "node": node or None,
        "reason": reason,
        "message": short(event.message),
        "attributes": canonical_json({"teller": event.teller} if event.teller else {}),
    }
    count = _count(event.series.count if event.series else None) or _count(event.count)
    if first and first.date() < last.date():
        yield {**row, "day": first.date(), "time": first, "first_time": first, "count": None}
    yield {**row, "day": last.date(), "time": last, "first_time": first, "count": count}


def _count(told: int | None) -> int | None:
    """How often, as far as it can be true: the API counts in 32 bits."""
    return told if told and 0 < told < 1 << 31 else None


def _times(event: Event, now: datetime | None) -> tuple[datetime | None, datetime | None]:
    """The last and the first time; both None if one of them cannot be true."""
    observed = event.series.last_observed_time if event.series else None
    try:
        first = moment(event.first_timestamp or event.event_time, now)
        last = moment(observed or event.last_timestamp, now) or first
    except Rejected:
        return None, None
    if first and last and first > last:
        first = last
    return last, first or last


def rows_of_pod(pod: Pod, cluster: str, now: datetime | None = None) -> Iterator[Row]:
    """How the containers of a pod ended the last time, and that the pod had to go."""
    statuses = (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ()))
    for status in statuses:
        for end in _ends(status):
            yield from _exit(pod, status, end, cluster, now)
    for condition in pod.status.conditions or ():
        kind = kind_of(condition.reason or "")
        if condition.type == "DisruptionTarget" and condition.status == "True" and kind in PODS_END:
            at = _believed(condition.last_transition_time, now)
            if at:
                yield _of_pod(pod, cluster, at, kind, condition.reason) | {
                    "id": end_id(pod.metadata.uid, kind),
                    "attributes": "{}",
                }


def _ends(status: ContainerStatus) -> Iterator[Terminated]:
    """Ends after which it was started again, and the last one if it was an error."""
    if status.last_state and status.last_state.terminated:
        yield status.last_state.terminated
    ended = status.state.terminated if status.state else None
    if ended and (ended.exit_code or ended.reason not in ("Completed", None)):
        yield ended


def _exit(
    pod: Pod, status: ContainerStatus, end: Terminated, cluster: str, now: datetime | None
) -> Iterator[Row]:
    at = _believed(end.finished_at, now)
    if at is None:
        return
    said = {
        "container": status.name,
        "exitCode": end.exit_code,
        "signal": end.signal or None,
        "restarts": status.restart_count,
    }
    known = {key: value for key, value in said.items() if value is not None}
    yield _of_pod(pod, cluster, at, kind_of_exit(end.reason), end.reason) | {
        "id": exit_id(pod.metadata.uid, status.name, at),
        "attributes": canonical_json(known),
    }


def _of_pod(pod: Pod, cluster: str, at: datetime, kind: str, reason: str | None) -> Row:
    return {
        "day": at.date(),
        "cluster": cluster,
        "time": at,
        "first_time": at,
        "kind": kind,
        "object_kind": "Pod",
        "namespace": pod.metadata.namespace or "default",
        "name": pod.metadata.name,
        "uid": pod.metadata.uid,
        "node": pod.spec.node_name or None,
        "reason": reason,
        "message": None,
        "count": 1,
    }


def _believed(text: str | None, now: datetime | None) -> datetime | None:
    try:
        return moment(text, now)
    except Rejected:
        return None


def _merged(one: Row, other: Row) -> Row:
    """Two tellings of one thing on a day: the first, with the earliest and the latest time.

    What only the other one knows is added.
    """
    known = {name: value if value is not None else other[name] for name, value in one.items()}
    times = [row["first_time"] for row in (one, other)]
    counts = [row["count"] for row in (one, other) if row["count"] is not None]
    return known | {
        "time": max(one["time"], other["time"]),
        "first_time": min(times),
        "count": max(counts, default=None),
    }
