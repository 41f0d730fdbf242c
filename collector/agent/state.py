"""What an agent knows of a cluster: its books, and since when somebody has watched.

A place in time at which nobody watched is a hole. What is there before and after it, under the
same uid, was there in between; who came and went in it is not known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Any

import polars as pl

from collector.agent.books import NodeBook, PodBook
from collector.agent.happenings import EventBook
from collector.agent.stream import Alive, Item, Seen
from collector.agent.wire import EVENTS, NODES, PODS
from collector.gaps import about
from collector.kubernetes.frames import Row, frame
from collector.kubernetes.objects import Pod
from collector.kubernetes.rejects import Rejects
from ledger import schema
from ledger.facts import Facts, Gap
from ledger.schema import Table
from ledger.text import canonical_json
from ledger.window import Window, iso

TOLERATED = timedelta(minutes=3)
"""A hole that is no longer counts as watched if a list ends it: as much as three samples of a
minute, which attribution forgives a chain of samples too."""
STATE = "RunbillAgent"
"""Kind of the row of ``resources`` that tells where an agent stood."""
KINDS = (PODS, NODES, EVENTS)
FURTHEST = timedelta(days=14)
"""How far back days are written again after a long absence."""
_DAY = timedelta(days=1)

Interval = tuple[datetime, datetime]


class Watch:
    """A cluster as it is watched.

    Args:
        cluster: Its name in the settings.
        describe: What a pod says that does not depend on time.
        day: The first day that rows are written of.
    """

    def __init__(
        self,
        cluster: str,
        describe: Callable[[Pod], Row],
        day: date,
    ) -> None:
        self.cluster = cluster
        self.day = day
        self.pods = PodBook(describe, Window.of_day(day).start)
        self.nodes = NodeBook(cluster)
        self.events = EventBook(cluster)
        self._books: dict[str, PodBook | NodeBook | EventBook] = {
            "pods": self.pods,
            "nodes": self.nodes,
            "events": self.events,
        }
        self.watched: list[Interval] = []
        self.written: dict[date, str] = {}
        """Where the ledger says that this agent stood, by day; another's word differs."""
        self.unlisted: dict[str, tuple[str, datetime]] = {}
        self._versions: dict[str, str | None] = {}
        self._relists: list[tuple[datetime, float]] = []

    @property
    def source(self) -> str:
        """``agent/CLUSTER``."""
        return f"agent/{self.cluster}"

    @property
    def until(self) -> datetime | None:
        """Until when all that happened is known; None before the first list."""
        return self.watched[-1][1] if self.watched else None

    @property
    def ready(self) -> bool:
        """Whether pods and nodes have been listed, or taken up again."""
        return bool(self.watched) and self.nodes.synced is not None

    def take(self, item: Item) -> None:
        """Take what a stream hands over."""
        before = self.pods.synced
        if not self.watched and isinstance(item, Seen | Alive):
            self._begin(item.at.date())
        if item.kind.plural == PODS.plural:
            if isinstance(item, Seen) and isinstance(item.object, Pod):
                self.events.of_pod(item.object, item.at)
            self.pods.ends = self.events.ends
            self.pods.take(item)
            self._watch(item, before)
        elif item.kind.plural == NODES.plural:
            self.nodes.take(item)
        else:
            self.events.take(item)
        if isinstance(item, Alive) and item.listed:
            self._look_for_unlisted()

    def _begin(self, day: date) -> None:
        """The first day is the server's: our own clock may be on another."""
        if day != self.day:
            self.day, self.pods.since = day, Window.of_day(day).start

    def _look_for_unlisted(self) -> None:
        """Pods that only events know: they came and went while nobody watched."""
        found, since = self.events.listed, self.events.hole
        now = self.pods.synced
        if found is None or now is None or now < found[1]:
            return
        if since is not None and since < now:
            known = self.pods.known.keys() | self.pods.done
            for place in found[0].unlisted(known, Window(since, now)):
                self.unlisted[place] = (place, since)
        self.events.listed = None

    def _watch(self, item: Item, before: datetime | None) -> None:
        """Extend the time that was watched, or begin it anew behind a hole."""
        now = self.pods.synced
        if now is None or now == before:
            return
        hole = isinstance(item, Alive) and item.listed
        if hole and before:
            self._relists.append((now, (now - before).total_seconds()))
        if not self.watched or (hole and before and now - before > TOLERATED):
            self.watched.append((now, now))
        else:
            self.watched[-1] = (self.watched[-1][0], now)

    def facts(self, window: Window) -> Facts:
        """The rows of whole days, and what was not seen of them.

        ``workloads`` and ``nodes`` hold what is in memory: rows that were written before of what
        is not are to be kept. So are ``events`` that are not told again.
        """
        until = self.until or window.start
        tables = {
            schema.WORKLOADS.name: _watched(
                schema.WORKLOADS, self.pods.rows(window, min(until, window.end))
            ),
            schema.NODES.name: _watched(schema.NODES, self.nodes.rows(window, self.watched)),
            schema.EVENTS.name: frame(schema.EVENTS, self.events.rows(window)),
            schema.RESOURCES.name: frame(schema.RESOURCES, [self._state(window)]),
        }
        rejects = [book.rejects for book in self._books.values()]
        return Facts(
            window,
            tables,
            coverage=self._coverage(window),
            gaps=tuple(self._gaps(window)),
            quarantine=tuple(entry for each in rejects for entry in each.entries()),
            notes=tuple(self._notes(window)),
            data_through=min(until, window.end),
            read=None,
        )

    def _inside(self, window: Window) -> list[Interval]:
        clipped = [(max(a, window.start), min(b, window.end)) for a, b in self.watched]
        return [(start, end) for start, end in clipped if start < end]

    def holes(self, window: Window) -> list[Interval]:
        """When nobody watched, up to when the agent knows."""
        at, found = window.start, []
        for start, end in self._inside(window):
            if start > at:
                found.append((at, start))
            at = end
        if not self._inside(window) and self.until and self.until >= window.end:
            found.append((window.start, window.end))
        return found

    def _coverage(self, window: Window) -> float:
        end = min(self.until or window.start, window.end)
        whole = (end - window.start).total_seconds()
        seen = sum((b - a).total_seconds() for a, b in self._inside(window))
        return seen / whole if whole > 0 else 0.0

    def _gaps(self, window: Window) -> Iterator[Gap]:
        for start, end in self.holes(window):
            yield not_watched(self.cluster, start, end)
        lost = [place for place, at in self.pods.lost.values() if window.start <= at < window.end]
        names = [place for place, at in self.unlisted.values() if window.start <= at < window.end]
        yield from about(
            "pods_not_listed",
            "pods ran and were deleted while nobody watched; what they asked for is not known",
            names,
        )
        yield from about(
            "no_finish_time", "pods ended while nobody watched; they count as long as seen", lost
        )

    def _notes(self, window: Window) -> Iterator[str]:
        short = [
            seconds
            for at, seconds in self._relists
            if window.start <= at < window.end and seconds <= TOLERATED.total_seconds()
        ]
        if short:
            yield (
                f"the watch was lost {len(short)} times for at most {max(short):.0f} s and taken "
                "up by a list: pods that lived in between only are not seen"
            )

    def _state(self, window: Window) -> Row:
        books = self._books
        until = self.until
        if until is None or not self.pods.ahead(until):
            self._versions = {name: book.version for name, book in books.items()}
        configuration = {
            "versions": self._versions,
            "synced": {name: iso_exact(book.synced) for name, book in books.items() if book.synced},
            # One that has just begun has no length yet; it still ends a hole.
            "watched": [
                [iso_exact(max(a, window.start)), iso_exact(min(b, window.end))]
                for a, b in self.watched
                if a <= window.end and b >= window.start
            ],
            **{
                name: {
                    key: [place, iso_exact(at)]
                    for key, (place, at) in sorted(found.items())
                    if window.start <= at < window.end
                }
                for name, found in (("lost", self.pods.lost), ("unlisted", self.unlisted))
            },
        }
        return {
            "day": window.start.date(),
            "cluster": self.cluster,
            "kind": STATE,
            "namespace": None,
            "name": self.cluster,
            "seen_at": self.until,
            "configuration": canonical_json(configuration),
        }

    def settle(self, until: datetime) -> None:
        """Everything up to a moment has been written: drop what need not be kept."""
        day = until.date()
        start = Window.of_day(day).start
        self.pods.settle(until, start)
        self.nodes.settle(until, start)
        self.events.settle(Window.of_days(self.day, max(day, self.day)).days(), start)
        if day > self.day:
            self.day = day
            self.pods.lost = {k: v for k, v in self.pods.lost.items() if v[1] >= start}
            self.unlisted = {k: v for k, v in self.unlisted.items() if v[1] >= start}
            self.watched = [each for each in self.watched if each[1] >= start]
            self._relists = [each for each in self._relists if each[0] >= start]
            for book in self._books.values():
                book.rejects = Rejects()

    def days(self) -> list[date]:
        """The days that have to be written."""
        until = self.until
        if until is None:
            return []
        first = max(self.day, (until - FURTHEST).date())
        # The day that begins just now has no rows yet.
        last = until.date() if until > Window.of_day(until.date()).start else until.date() - _DAY
        return list(Window.of_days(first, last).days()) if first <= last else []

    def book(self, plural: str) -> PodBook | NodeBook | EventBook:
        """The book of a kind."""
        return self._books[plural]

    def restore(
        self,
        day: date,
        configuration: str,
        pods: Iterable[Mapping[str, Any]],
        nodes: Iterable[Mapping[str, Any]],
    ) -> None:
        """Go on where an agent stood.

        Args:
            day: The day of its last rows.
            configuration: Of its row of ``resources``.
            pods: Its rows of ``workloads`` of that day, sorted by pod and start.
            nodes: Its rows of ``nodes`` of that day, sorted by node and start.
        """
        state: dict[str, Any] = json.loads(configuration)
        self.day = day
        self.pods.since = Window.of_day(day).start
        synced, versions = state["synced"], state["versions"]
        for name, book in self._books.items():
            book.synced = datetime.fromisoformat(synced[name]) if name in synced else None
            book.version = versions.get(name)
        self._versions = versions
        self.watched = [
            (datetime.fromisoformat(a), datetime.fromisoformat(b)) for a, b in state["watched"]
        ]
        self.pods.lost, self.unlisted = (
            {
                key: (place, datetime.fromisoformat(at))
                for key, (place, at) in state.get(name, {}).items()
            }
            for name in ("lost", "unlisted")
        )
        until = self.until
        if until is not None:
            self.pods.restore(list(pods), until)
            self.nodes.restore(list(nodes), until)
        # A watch does not tell when a node went; a list tells what the rows lack.
        self.nodes.version = None


def not_watched(cluster: str, start: datetime, end: datetime) -> Gap:
    """The gap of a time in which nobody watched."""
    return Gap(
        "not_watched",
        f"nobody watched {cluster} from {iso(start)} to {iso(end)}: pods that came and went in "
        "between are not known",
        {"hours": round((end - start).total_seconds() / 3600, 4)},
    )


def iso_exact(moment: datetime) -> str:
    """A moment with its microseconds."""
    return moment.isoformat()


def _watched(table: Table, rows: Iterable[Row]) -> pl.DataFrame:
    return frame(table, rows).with_columns(pl.lit(0.0).alias("interval_seconds"))
