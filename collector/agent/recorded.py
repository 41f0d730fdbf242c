"""What an agent has recorded, as a source: its facts are in the ledger before anybody asks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from collector.agent.access import permissions
from collector.agent.probing import probes
from collector.agent.state import not_watched
from collector.source import Permissions, Probe
from ledger.errors import SourceError
from ledger.facts import Facts, Gap, Quarantine
from ledger.schema import CLOSES
from ledger.settings import Cluster
from ledger.store import Ledger
from ledger.window import Window


class Recorded:
    """The agent of a cluster, as a run sees it. It writes nothing: the agent itself does.

    Args:
        cluster: Its block of the settings.
        ledger: Where the agent writes.
        base: Folder that relative paths of the settings refer to.
        required: Whether a time that was not watched gives exit code 3.
    """

    snapshot = False

    def __init__(self, cluster: Cluster, ledger: Ledger, base: Path, *, required: bool) -> None:
        self._cluster = cluster
        self._ledger = ledger
        self._base = base
        self.required = required

    @property
    def name(self) -> str:
        """``agent/CLUSTER``."""
        return f"agent/{self._cluster.name}"

    @property
    def permissions(self) -> Permissions:
        """What the agent needs, where it runs."""
        return permissions()

    def collect(self, window: Window) -> Facts:
        """What the agent says of its own watching; its rows stay as they are.

        Raises:
            SourceError: It recorded nothing of the window.
        """
        rows = self._closes(window)
        if not rows:
            raise SourceError(
                f"{self.name}: nobody watched {self._cluster.name} on {_days(window)}",
                "is `runbill agent` running, with this ledger?",
            )
        return joined(self._cluster.name, window, rows)

    def _closes(self, window: Window) -> list[dict[str, Any]]:
        return (
            self._ledger.scan(CLOSES, window, self.name)
            .filter((pl.col("stage") == "collect") & pl.col("data_through").is_not_null())
            .sort("day")
            .collect()
            .to_dicts()
        )

    def probe(self) -> Sequence[Probe]:
        """Whether it has written lately, and whether its role would do."""
        through = self._through()
        behind = datetime.now(tz=through.tzinfo) - through if through else None
        fresh = behind is not None and behind < timedelta(hours=1)
        detail = f"watched until {through:%FT%TZ}" if through else "has never written"
        return [
            Probe("rows of the agent", fresh, detail, "" if fresh else "pods of that time"),
            *probes(self._cluster, self._base),
        ]

    def reach(self) -> Window | None:
        """From the first day that it recorded until it stopped; None if it never did."""
        days = self._ledger.scan(CLOSES, source=self.name).filter(pl.col("stage") == "collect")
        first = days.select(pl.col("day").min()).collect().item()
        through = self._through()
        start = Window.of_day(first).start if isinstance(first, date) else None
        return Window(start, through) if start and through and start < through else None

    def _through(self) -> datetime | None:
        rows = self._ledger.scan(CLOSES, source=self.name).filter(pl.col("stage") == "collect")
        found: datetime | None = rows.select(pl.col("data_through").max()).collect().item()
        return found


def joined(cluster: str, window: Window, rows: Sequence[dict[str, Any]]) -> Facts:
    """The closes of an agent's days as one reading; what it has not watched is a gap.

    Args:
        cluster: The cluster's name.
        window: The days asked for.
        rows: Closes of some of them, in order.
    """
    gaps: list[Gap] = []
    quarantine: list[Quarantine] = []
    notes: list[str] = []
    seen = 0.0
    by_day = {row["day"]: row for row in rows}
    for day in window.days():
        whole = Window.of_day(day)
        row = by_day.get(day)
        if row is None:
            gaps.append(not_watched(cluster, whole.start, whole.end))
            continue
        told = [_gap(each) for each in json.loads(row["gaps"] or "[]")]
        rest = None
        if row["data_through"] < whole.end:
            rest = not_watched(cluster, max(row["data_through"], whole.start), whole.end)
        gaps += [*told, *([rest] if rest and rest not in told else [])]
        watched = (min(row["data_through"], whole.end) - whole.start).total_seconds()
        part = row["coverage"] or 0.0
        # A row that tells of its own end is of the whole day.
        seen += part * (whole.seconds if rest in told else watched)
        quarantine += [Quarantine(**each) for each in json.loads(row["quarantine"] or "[]")]
        notes += json.loads(row["notes"] or "[]")
    return Facts(
        window,
        {},
        coverage=seen / window.seconds,
        gaps=tuple(gaps),
        quarantine=tuple(quarantine),
        notes=tuple(dict.fromkeys(notes)),
        data_through=rows[-1]["data_through"],
        read=sum(row["rows"] or 0 for row in rows),
    )


def _gap(entry: dict[str, Any]) -> Gap:
    rest = {key: value for key, value in entry.items() if key not in ("reason", "detail")}
    amounts = {key: value for key, value in rest.items() if isinstance(value, int | float)}
    names = {key: value for key, value in rest.items() if isinstance(value, str)}
    return Gap(entry["reason"], entry["detail"], amounts, names)


def _days(window: Window) -> str:
    days = list(window.days())
    return str(days[0]) if len(days) == 1 else f"{days[0]}..{days[-1]}"
