"""What happens to pods and nodes while somebody watches: rows of the table ``events``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, datetime

from collector.agent.stream import Alive, Aside, Item, Seen, Started
from collector.kubernetes.event_rows import rows_of_event, rows_of_pod
from collector.kubernetes.events import Event, PodEvents
from collector.kubernetes.frames import Row
from collector.kubernetes.objects import Pod
from collector.kubernetes.rejects import Rejects
from ledger.window import Window

LIMIT = 50_000
"""Rows kept until they are written; more than this in one go is a storm, and is counted."""


class EventBook:
    """Events that are not yet written, by day and id.

    Attributes:
        ends: When pods ended by what their events say; of the last list and what came since.
        synced: Until when all that happened is known.
        version: Of the stream, as far as it has been taken.
        rejects: Objects that could not be used, and rows beyond ``LIMIT``.
        listed: What the last list told of pods, and when; None once it has been looked at.
        hole: Until when all that happened was known before that list.

    Args:
        cluster: The cluster's name in the settings.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._rows: dict[tuple[date, str], Row] = {}
        self.ends: dict[str, datetime] = {}
        self.synced: datetime | None = None
        self.version: str | None = None
        self.rejects = Rejects()
        self.listed: tuple[PodEvents, datetime] | None = None
        self.hole: datetime | None = None
        self._listing: list[Event] = []

    def take(self, item: Item) -> None:
        """Take what the stream of events hands over."""
        self._list(item)
        if isinstance(item, Aside):
            self.rejects.add(item.rejected.reason, item.kind.resource, item.rejected.detail)
        elif isinstance(item, Seen) and isinstance(item.object, Event):
            if item.change != "DELETED":  # their time is up: an hour, as a rule
                self._add(rows_of_event(item.object, self._cluster, item.at))
                self._end(item.object, item.at)
        if isinstance(item, Alive) or (isinstance(item, Seen) and item.version and item.live):
            self.synced, self.version = item.at, item.version

    def _list(self, item: Item) -> None:
        """Keep what a list tells of pods until it is whole."""
        if isinstance(item, Started):
            self._listing = []
        elif isinstance(item, Seen) and item.change == "LISTED":
            if isinstance(item.object, Event) and item.object.involved_object.kind == "Pod":
                self._listing.append(item.object)
        elif isinstance(item, Alive) and item.listed:
            self.listed = (PodEvents(self._listing, item.at), item.at)
            self.hole, self._listing = self.synced, []

    def of_pod(self, pod: Pod, at: datetime) -> None:
        """Take what a pod says of how its containers ended."""
        self._add(rows_of_pod(pod, self._cluster, at))

    def _end(self, event: Event, at: datetime) -> None:
        uid = event.involved_object.uid
        if ended := PodEvents([event], at).told(uid).ended:
            self.ends[uid] = max(ended, self.ends.get(uid, ended))

    def _add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            key = (row["day"], row["id"])
            known = self._rows.get(key)
            if known is None and len(self._rows) >= LIMIT:
                self.rejects.add("too_many", "events", str(row["reason"]))
            else:
                self._rows[key] = row if known is None else merged(known, row)

    def rows(self, window: Window) -> Iterator[Row]:
        """What happened on the days of a window and is not yet written."""
        for (day, _), row in sorted(self._rows.items()):
            if window.start.date() <= day < window.end.date():
                yield row

    def settle(self, written: Iterable[date], since: datetime) -> None:
        """Drop what has been written.

        Args:
            written: Days whose rows have been.
            since: Ends of pods before it are of no more interest.
        """
        days = set(written)
        self._rows = {key: row for key, row in self._rows.items() if key[0] not in days}
        self.ends = {uid: end for uid, end in self.ends.items() if end >= since}


def merged(one: Row, other: Row) -> Row:
    """Two tellings of one thing on a day: the later one, with the earliest and the latest time."""
    first, last = sorted((one, other), key=lambda row: row["time"])
    known = {name: first.get(name) if value is None else value for name, value in last.items()}
    counts = [row["count"] for row in (one, other) if row["count"] is not None]
    starts = [row["first_time"] for row in (one, other) if row["first_time"]]
    return known | {"first_time": min(starts, default=None), "count": max(counts, default=None)}
