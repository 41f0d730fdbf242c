"""One kind of a cluster as a stream: a list, then what changes, over cuts and expiries.

    no version ──list──▶ version ──watch──▶ cut, stalled, ended: watch again from the last version
        ▲                                   │
        └──────── 410 Gone ◀────────────────┘

What comes is handed to a sink, in order. The version goes forward only with what was handed over,
so that a connection may break anywhere (Kubernetes API concepts, "Efficient detection of changes").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import SystemRandom

import msgspec

from collector.agent.connection import BrokenError, Clock, Lines, WatchApi
from collector.agent.wire import LINE, PAGE, STATUS, VERSIONED, Line, Page
from collector.kubernetes.client import ApiError
from collector.kubernetes.decode import BROKEN, decode
from collector.kubernetes.kinds import Kind
from collector.kubernetes.objects import Object
from collector.kubernetes.rejects import Rejected

PAGE_SIZE = 500
BAD_REQUEST, EXPIRED, TIMEOUT = 400, 410, 504
RESTARTS = 2
"""A list that expires this often while it is paged is read in one piece."""
LIFETIME = (240.0, 480.0)
"""Seconds after which a watch is asked to end: drawn, so that not all of them end at once."""
SILENCE = 180.0
"""Seconds without a byte after which a watch is taken for dead; bookmarks come every minute."""
AT_ONCE = timedelta(seconds=10)
"""A watch resumed after no longer than this has nothing to catch up with."""
CAUGHT_UP = timedelta(seconds=90)
"""When a resumed watch without bookmarks has caught up."""
STUCK = 3
"""How often a watch may fail at one version, by the server's word, before the kind is listed."""


@dataclass(frozen=True)
class Started:
    """A list begins: what it does not name has ended."""

    kind: Kind
    at: datetime


@dataclass(frozen=True)
class Seen:
    """An object of a list or a change.

    Args:
        kind: Its kind.
        change: LISTED, ADDED, MODIFIED or DELETED.
        object: The object.
        at: When it came.
        version: Of the stream after it; None inside a list.
        live: Whether nothing older is still to come.
    """

    kind: Kind
    change: str
    object: Object
    at: datetime
    version: str | None = None
    live: bool = True


@dataclass(frozen=True)
class Alive:
    """All that happened until a moment has been handed over; ``listed`` at the end of a list."""

    kind: Kind
    at: datetime
    version: str
    listed: bool = False


@dataclass(frozen=True)
class Aside:
    """An object that cannot be used."""

    kind: Kind
    rejected: Rejected
    version: str | None = None


Item = Started | Seen | Alive | Aside


class ExpiredError(Exception):
    """The server no longer knows what came after our version."""


class Stream:
    """One kind of a cluster.

    Args:
        kind: The kind.
        api: The connection.
        clock: The time at the server.
        sink: Takes what comes; may block.
        version: Where an earlier stream was left; None to begin with a list.
        since: Until when that earlier stream had handed over everything.
        page: Objects per page of a list.
    """

    def __init__(
        self,
        kind: Kind,
        api: WatchApi,
        clock: Clock,
        sink: Callable[[Item], None],
        version: str | None = None,
        since: datetime | None = None,
        page: int = PAGE_SIZE,
    ) -> None:
        self.kind = kind
        self.api = api
        self.version = version
        self._clock = clock
        self._sink = sink
        self._page = page
        self._since = since
        self._stuck = 0

    def cycle(self) -> None:
        """List if no version is known, then watch until the connection ends.

        Raises:
            ApiError: The server refuses, or cannot be reached.
            BrokenError: The connection was cut.
            ExpiredError: The next cycle lists.
        """
        if self.version is None:
            self.list()
        self.watch()

    def catch_up(self, seconds: int) -> None:
        """List if no version is known, else hand over what has happened since, and come back.

        Args:
            seconds: How long the server may take to tell it.

        Raises:
            ApiError, BrokenError, ExpiredError: As ``cycle``.
        """
        if self.version is None:
            self.list()
            return
        opened = self._clock()
        self.watch(seconds)
        # A watch that ends by its time has told all that had happened when it was opened.
        self._sink(Alive(self.kind, opened, self.version or ""))

    def list(self) -> None:
        """Hand over all objects, page by page.

        Raises:
            ApiError: The server refuses, or cannot be reached.
        """
        for _ in range(RESTARTS):
            try:
                return self._pages(self._page)
            except ApiError as error:
                if error.status != EXPIRED:
                    raise
        return self._pages(None)

    def _pages(self, limit: int | None) -> None:
        started = self._clock()
        self._sink(Started(self.kind, started))
        query: dict[str, str | int] = {} if limit is None else {"limit": limit}
        token: str | None = None
        while True:
            page = self._get(query | self._fields() | ({"continue": token} if token else {}))
            if token is None:
                # From now on the server's time counts: what the list lacks had ended by then.
                self._clock.note(self.api.clock.strftime(_DATE) if self.api.clock else None)
                started = self._clock()
            for raw in page.items or ():
                self._hand_over("LISTED", raw, started, None)
            token = page.metadata.continue_
            if not token:
                break
        self.version = page.metadata.resource_version
        self._since = started
        self._sink(Alive(self.kind, started, self.version, listed=True))

    def _get(self, query: dict[str, str | int]) -> Page:
        path = self.kind.paths[0]
        try:
            page = PAGE.decode(self.api.get(path, query))
        except BROKEN as error:
            raise ApiError(502, f"{path} answered no list: {error}") from error
        if not page.metadata.resource_version:
            # Nobody knows of what moment it is; taken for a list it would end every pod.
            raise ApiError(502, f"{path} answered no list: it has no resourceVersion")
        return page

    def watch(self, seconds: int | None = None) -> None:
        """Hand over changes until the connection ends, at the latest after some seconds.

        Raises:
            ApiError, BrokenError, ExpiredError: As ``cycle``.
        """
        query: dict[str, str | int] = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self.version or "",
            "timeoutSeconds": seconds or int(SystemRandom().uniform(*LIFETIME)),
        }
        try:
            with self.api.watch(self.kind.paths[0], query | self._fields(), SILENCE) as lines:
                self._clock.note(lines.date)
                self._follow(lines)
        except ApiError as error:
            if error.status in (BAD_REQUEST, TIMEOUT):
                self._give_up(str(error))
            if error.status != EXPIRED:
                raise
            self.version = None
            raise ExpiredError(str(error)) from error

    def _follow(self, lines: Lines) -> None:
        opened = self._clock()
        live = self._since is not None and opened - self._since <= AT_ONCE
        for text in lines:
            if not text.strip():
                continue
            line = self._line(text)
            at = self._clock()
            live = live or line.type == "BOOKMARK" or at - opened > CAUGHT_UP
            self._take(line, at, live=live)
            if live:
                self._since = at

    def _line(self, text: bytes) -> Line:
        try:
            line = LINE.decode(text)
        except BROKEN as error:
            self._give_up(f"a line is no change: {error}")
            raise BrokenError(f"a line is no change: {error}") from error
        if line.type != "ERROR":
            self._stuck = 0
        return line

    def _give_up(self, why: str) -> None:
        """List again if the same version has failed too often: the server may not know it.

        After etcd was restored from a copy versions may lie ahead of the server's; it says so by
        400 or 504, or by an ERROR, as often as it is asked.

        Raises:
            ExpiredError: It has.
        """
        self._stuck += 1
        if self._stuck >= STUCK:
            self._stuck, self.version = 0, None
            raise ExpiredError(f"the same version fails again and again: {why}")

    def _take(self, line: Line, at: datetime, *, live: bool) -> None:
        if line.type == "ERROR":
            self._fail(line.object)
        version = _version(line.object) or self.version
        if line.type == "BOOKMARK":
            self._sink(Alive(self.kind, at, version or ""))
        elif line.type in ("ADDED", "MODIFIED", "DELETED"):
            self._hand_over(line.type, line.object, at, version, live=live)
        self.version = version

    def _fail(self, raw: msgspec.Raw) -> None:
        try:
            status = STATUS.decode(raw)
        except BROKEN as error:
            self._give_up("an ERROR without a status")
            raise BrokenError("an ERROR without a status") from error
        text = f"{status.code} {status.reason or ''}: {status.message or ''}"[:300]
        if status.code == EXPIRED or status.reason in ("Expired", "Gone"):
            self.version = None
            raise ExpiredError(text)
        self._give_up(text)
        raise BrokenError(text)

    def _hand_over(
        self, change: str, raw: msgspec.Raw, at: datetime, version: str | None, *, live: bool = True
    ) -> None:
        try:
            found = decode(self.kind, raw)
        except Rejected as rejected:
            self._sink(Aside(self.kind, rejected, version))
            return
        self._sink(Seen(self.kind, change, found, at, version, live))

    def _fields(self) -> dict[str, str | int]:
        return {"fieldSelector": self.kind.fields} if self.kind.fields else {}


_DATE = "%a, %d %b %Y %H:%M:%S GMT"


def _version(raw: msgspec.Raw) -> str | None:
    try:
        return VERSIONED.decode(raw).metadata.resource_version
    except BROKEN:
        return None


def pauses(longest: float = 30.0) -> Iterator[float]:
    """Seconds to wait before each next try: doubling from 1, each drawn between half and whole."""
    base = 1.0
    while True:
        yield SystemRandom().uniform(base / 2, base)
        base = min(base * 2, longest)
