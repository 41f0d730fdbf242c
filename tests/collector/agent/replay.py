"""An agent against the stand-in, on a clock of the test's: no thread, no sleep, all mishaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl

from collector.agent.connection import BrokenError, Clock, WatchApi
from collector.agent.merge import TABLES, merge
from collector.agent.state import KINDS, Watch
from collector.agent.stream import ExpiredError, Stream
from collector.kubernetes.client import ApiError
from collector.kubernetes.objects import Pod
from collector.kubernetes.owners import Owners
from collector.kubernetes.snapshot import Snapshot
from collector.kubernetes.workloads import pod_facts, pod_request
from ledger import schema
from ledger.settings import KubernetesSource
from ledger.window import Window

Books = dict[tuple[str, date], pl.DataFrame]


def describe(pod: Pod) -> dict[str, Any]:
    return pod_facts(pod, "train-a", pod_request(pod), Owners(Snapshot()).of(pod))


@dataclass
class Agent:
    """An agent, and what it wrote.

    Args:
        url: The API server.
        now: The test's clock.
        kinds: What is watched.
        page: Objects per page.
    """

    url: str
    now: Callable[[], datetime]
    kinds: tuple[Any, ...] = KINDS
    page: int = 500
    books: Books = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.api = WatchApi(KubernetesSource(server=self.url), Path("/"))
        self.start()

    def start(self) -> None:
        """Begin, or go on from what was written."""
        days = sorted(day for name, day in self.books if name == schema.RESOURCES.name)
        self.watch = Watch("train-a", describe, days[-1] if days else self.now().date())
        if days:
            day = days[-1]
            text = self.books[schema.RESOURCES.name, day]["configuration"][0]
            rows = {name: self.books[name, day] for name in ("workloads", "nodes")}
            self.watch.restore(
                day,
                text,
                rows["workloads"].sort("uid", "start").to_dicts(),
                rows["nodes"].sort("node", "start").to_dicts(),
            )
        self.streams = {
            kind.plural: Stream(
                kind,
                self.api,
                Clock(self.now),
                self.watch.take,
                self.watch.book(kind.plural).version,
                self.watch.book(kind.plural).synced,
                self.page,
            )
            for kind in self.kinds
        }

    def cycle(self) -> None:
        """One connection of each kind."""
        for stream in self.streams.values():
            try:
                stream.cycle()
            except (BrokenError, ExpiredError, ApiError):
                continue

    def flush(self) -> None:
        """Write every day that is not finished."""
        until = self.watch.until
        for day in self.watch.days():
            window = Window.of_day(day)
            facts = self.watch.facts(window)
            earlier = {
                table.name: self.books[table.name, day].lazy()
                for table in TABLES
                if (table.name, day) in self.books
            }
            for name, frame in merge(self.watch, facts, earlier).items():
                self.books[name, day] = frame
        if until:
            self.watch.settle(until)

    def rows(self, table: str) -> pl.DataFrame:
        """All rows that were written of a table."""
        return pl.concat(frame for (name, _), frame in sorted(self.books.items()) if name == table)
