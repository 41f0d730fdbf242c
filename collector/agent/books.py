"""All pods and nodes of a cluster, kept up to date by what a watch hands over.

Pure: no clock, no network. What has ended, and has been written, is dropped: memory holds what is
open, and what has ended since the last writing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, TypeVar

from collector.agent.lives import EVER, Tracked, deleted, lose, restored, told
from collector.agent.stream import Alive, Aside, Item, Seen, Started
from collector.kubernetes.devices import Devices
from collector.kubernetes.frames import Row, days_of
from collector.kubernetes.nodes import node_facts, node_layout
from collector.kubernetes.objects import Node, Object, Pod
from collector.kubernetes.rejects import Rejected, Rejects
from collector.kubernetes.times import OPEN, moment
from ledger.window import Window

T = TypeVar("T")
_OF_TIME = frozenset("day start end interval_seconds source".split())


class Book(Generic[T]):
    """The objects of one kind by uid.

    Attributes:
        known: What is open, or has ended and is not yet written.
        synced: Until when all that happened is known; None before the first list.
        version: Of the stream at that moment: what comes after it is told again after a restart.
        rejects: Objects that could not be used.
        done: What has ended and is written, but is still there.
    """

    def __init__(self) -> None:
        self.known: dict[str, T] = {}
        self.synced: datetime | None = None
        self.version: str | None = None
        self.rejects = Rejects()
        self.done: set[str] = set()
        self._listed: set[str] | None = None

    def take(self, item: Item) -> None:
        """Take what a stream hands over."""
        if isinstance(item, Started):
            self._listed = set()
        elif isinstance(item, Aside):
            rejected = item.rejected
            self.rejects.add(rejected.reason, item.kind.resource, rejected.detail)
        elif isinstance(item, Seen):
            self._seen(item)
        elif item.listed:
            self._reconcile(item.at)
        if isinstance(item, Alive) or (isinstance(item, Seen) and item.version and item.live):
            self.synced = max(self.synced or item.at, item.at)
            self.version = item.version

    def _seen(self, item: Seen) -> None:
        try:
            uid = self.key(item.object)
        except Rejected as rejected:
            self.rejects.add(rejected.reason, item.kind.resource, rejected.detail)
            return
        if self._listed is not None:
            self._listed.add(uid)
        try:
            self.apply(uid, item)
        except Rejected as rejected:
            detail = f"{item.object.place}: {rejected.detail}"
            self.rejects.add(rejected.reason, item.kind.resource, detail)

    def key(self, item: Object) -> str:
        """What tells an object from all others, ever."""
        return item.metadata.uid

    def _reconcile(self, at: datetime) -> None:
        """What a list does not name ended after it was last seen."""
        listed = self._listed or set()
        for uid in sorted(self.known.keys() - listed):
            self.gone(uid, self.synced or at)
        self.done &= listed
        self._listed = None

    def apply(self, uid: str, item: Seen) -> None:
        """Take an object.

        Raises:
            Rejected: It cannot be used.
        """
        raise NotImplementedError

    def gone(self, uid: str, at: datetime) -> None:
        """An object has ended unseen after a moment."""
        raise NotImplementedError


class PodBook(Book[Tracked]):
    """The pods of a cluster.

    Args:
        describe: What a pod says that does not depend on time: columns of ``workloads``.
        since: Start of the first day that rows are written of: what ended before is of no interest.
    """

    def __init__(
        self,
        describe: Callable[[Pod], Row],
        since: datetime,
    ) -> None:
        super().__init__()
        self._describe = describe
        self.since = since
        self.lost: dict[str, tuple[str, datetime]] = {}
        self.ends: dict[str, datetime] = {}

    def apply(self, uid: str, item: Seen) -> None:
        """Take a pod."""
        pod = item.object
        if not isinstance(pod, Pod):
            return
        if uid in self.done:
            if item.change == "DELETED":
                self.done.discard(uid)
            return
        known = self.known.get(uid)
        if known is not None and known.over:
            if not known.lost:  # nothing more can happen to it
                known.gone = known.gone or item.change == "DELETED"
                return
            known = None  # it was not gone after all
            self.lost.pop(uid, None)
        at = max(known.seen if known else EVER, self.synced or EVER)
        at = min(at, item.at)
        try:
            facts = self._describe(pod)
            found = told(known, pod, facts, at, item.at, live=item.live)
        except Rejected:
            if known is None or item.change != "DELETED":
                raise
            found = known
        if item.change == "DELETED":
            found = deleted(found, pod, at, item.at, live=item.live)
        self._put(uid, found, at)

    def gone(self, uid: str, at: datetime) -> None:
        """A pod has ended unseen."""
        known = self.known[uid]
        self._put(uid, lose(known, max(known.seen, at), self.ends.get(uid)), at)

    def _put(self, uid: str, found: Tracked, at: datetime) -> None:
        if found.lost:
            self.lost[uid] = (found.place, at)
        if found.over and found.end < self.since:
            self.known.pop(uid, None)
            if not found.gone:
                self.done.add(uid)
        else:
            self.known[uid] = found

    def rows(self, window: Window, until: datetime) -> Iterator[Row]:
        """The rows of all pods that are known."""
        for uid in sorted(self.known):
            yield from self.known[uid].rows(window, until)

    def ahead(self, until: datetime) -> bool:
        """Whether a pod began after a moment, by a clock that is ahead: it has no row yet."""
        return any(
            not pod.over and (not pod.life.spans or pod.life.spans[0].start >= until)
            for pod in self.known.values()
        )

    def shed(self, limit: int) -> int:
        """Drop the pods that ended first, if there are more than a limit; how many were.

        They are counted as ``not_written``.
        """
        ended = sorted((pod.end, uid) for uid, pod in self.known.items() if pod.over)
        surplus = ended[: max(0, len(self.known) - limit)]
        for _, uid in surplus:
            pod = self.known.pop(uid)
            self.rejects.add("not_written", "pods", pod.place)
            if not pod.gone:
                self.done.add(uid)
        return len(surplus)

    def settle(self, until: datetime, day: datetime) -> None:
        """Drop what need not be kept once all rows up to a moment have been written.

        Args:
            until: That moment.
            day: Start of the first day that will be written again.
        """
        self.since = max(self.since, day)
        for uid, pod in list(self.known.items()):
            if pod.over and pod.end <= until:
                del self.known[uid]
                if not pod.gone:
                    self.done.add(uid)
            elif not pod.over:
                pod.forget(day)

    def restore(self, rows: Sequence[Mapping[str, Any]], until: datetime) -> None:
        """Take up the pods of rows that were written, sorted by pod and start."""
        by_uid: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            by_uid.setdefault(row["uid"], []).append(dict(row))
        for uid, own in by_uid.items():
            found = restored(own, until)
            if found.over:
                self.done.add(uid)
            else:
                self.known[uid] = found


def registration(node: str, created: datetime | None) -> str:
    """A node's name, and when it was registered: the name may be used again."""
    return f"{node} {created.isoformat() if created else ''}"


@dataclass(slots=True)
class Registered:
    """A node: from when on it was what, and when it ended."""

    facts: list[tuple[datetime, Row]]
    start: datetime
    end: datetime = OPEN

    @property
    def created(self) -> datetime | None:
        """When it was registered, as it says itself."""
        found: datetime | None = self.facts[-1][1]["created"]
        return found


class NodeBook(Book[Registered]):
    """The nodes of a cluster.

    Args:
        cluster: Its name in the settings.
    """

    def __init__(self, cluster: str) -> None:
        super().__init__()
        self._cluster = cluster
        self._devices = Devices([])

    def key(self, item: Object) -> str:
        """Name and time of registration: what a node is told by in its rows, too."""
        created = moment(item.metadata.creation_timestamp)
        return registration(item.metadata.name, created)

    def apply(self, uid: str, item: Seen) -> None:
        """Take a node."""
        node = item.object
        if not isinstance(node, Node):
            return
        known = self.known.get(uid)
        if item.change == "DELETED":
            if known:
                self.known[uid] = replace(known, end=min(known.end, item.at))
            return
        sliced = self._devices.of_node(node.metadata.name)
        facts = node_facts(node, node_layout(node), sliced, self._cluster, item.at)
        if known is None:
            self.known[uid] = Registered([(EVER, facts)], facts["created"] or item.at)
        elif known.facts[-1][1] != facts:
            known.facts.append((item.at, facts))

    def gone(self, uid: str, at: datetime) -> None:
        """A node has gone unseen."""
        known = self.known[uid]
        self.known[uid] = replace(known, end=min(known.end, at))

    def rows(self, window: Window, watched: Sequence[tuple[datetime, datetime]]) -> Iterator[Row]:
        """The rows of all nodes for as long as somebody watched who was on them."""
        for uid in sorted(self.known):
            node = self.known[uid]
            ends = [since for since, _ in node.facts[1:]] + [OPEN]
            for (since, facts), end in zip(node.facts, ends, strict=True):
                for first, last in watched:
                    start, stop = max(since, node.start, first), min(end, node.end, last)
                    for day, begin, finish in days_of(start, stop, window):
                        yield {**facts, "day": day, "start": begin, "end": finish}

    def restore(self, rows: Sequence[Mapping[str, Any]], until: datetime) -> None:
        """Take up the nodes of rows that were written, sorted by node and start."""
        for row in rows:
            key = registration(row["node"], row["created"])
            same = {name: value for name, value in row.items() if name not in _OF_TIME}
            known = self.known.get(key)
            if known is None:
                known = Registered([(EVER, same)], row["created"] or row["start"])
                self.known[key] = known
            elif known.facts[-1][1] != same:
                known.facts.append((row["start"], same))
            known.end = OPEN if row["end"] >= until else row["end"]

    def settle(self, until: datetime, day: datetime) -> None:
        """Drop what need not be kept once all rows up to a moment have been written."""
        for uid, node in list(self.known.items()):
            if node.end <= until and node.end < day:
                del self.known[uid]
                continue
            ends = [since for since, _ in node.facts[1:]] + [OPEN]
            kept = zip(node.facts, ends, strict=True)
            node.facts = [entry for entry, end in kept if end > day]
