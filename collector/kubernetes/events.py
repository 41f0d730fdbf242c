"""What events know of pods: the end of one that is over, and pods that nobody has listed."""

from __future__ import annotations

from collections.abc import Container, Iterable
from datetime import datetime

import msgspec

from collector.kubernetes.life import Told
from collector.kubernetes.objects import Object, Part
from collector.kubernetes.rejects import Rejected
from collector.kubernetes.times import moment
from ledger.window import Window

# Reasons under which the kubelet, the scheduler or a controller ends a pod.
_ENDS = frozenset(
    "Killing Completed Evicted Preempted TaintManagerEviction ExceededGracePeriod "
    "DeadlineExceeded".split()
)
_BOUND, _STARTED = "Scheduled", "Started"


class Reference(Part):
    """``involvedObject``."""

    kind: str = ""
    namespace: str | None = None
    name: str = ""
    uid: str = ""


class Series(Part):
    """``series``."""

    last_observed_time: str | None = None
    count: int | None = None


class Source(Part):
    """``source``: the component that tells it, and on which node."""

    component: str | None = None
    host: str | None = None


class Event(Object):
    """An event; the newer API tells its time as ``eventTime``."""

    involved_object: Reference = msgspec.field(default_factory=Reference)
    reason: str | None = None
    message: str | None = None
    type: str | None = None
    count: int | None = None
    source: Source | None = None
    reporting_component: str | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    series: Series | None = None

    @property
    def teller(self) -> str | None:
        """The component that tells it, e.g. ``kubelet``."""
        return (self.source.component if self.source else None) or self.reporting_component or None


class PodEvents:
    """The events of pods by uid.

    Args:
        events: All events; those of other kinds are skipped, and so are times that cannot be true.
        now: The present of the API server; None if unknown (a dump).
    """

    def __init__(self, events: Iterable[Event], now: datetime | None) -> None:
        self._last: dict[str, datetime] = {}
        self._seen: dict[str, dict[str, datetime]] = {}
        self._places: dict[str, str] = {}
        for event in events:
            about, reason = event.involved_object, event.reason or ""
            if about.kind != "Pod" or not about.uid or not (at := _time(event, now)):
                continue
            self._places[about.uid] = f"{about.namespace or 'default'}/{about.name}"
            if reason in _ENDS:
                self._last[about.uid] = max(at, self._last.get(about.uid, at))
            first = self._seen.setdefault(about.uid, {})
            first[reason] = min(at, first.get(reason, at))

    def told(self, uid: str) -> Told:
        """When a pod started first, and when it was ended by the last event that says so."""
        return Told(self._seen.get(uid, {}).get(_STARTED), self._last.get(uid))

    def unlisted(self, known: Container[str], window: Window) -> list[str]:
        """Pods that ran and ended in the window and that nobody has listed, by place.

        What they asked for is not known: an event does not tell it.
        """
        return sorted(
            self._places[uid]
            for uid, first in self._seen.items()
            if uid not in known
            and uid in self._last
            and {_BOUND, _STARTED} <= first.keys()
            and first[_STARTED] < window.end
            and self._last[uid] >= window.start
        )


def _time(event: Event, now: datetime | None) -> datetime | None:
    """The last time of an event; None if it tells none that can be true."""
    last = event.series.last_observed_time if event.series else None
    try:
        return moment(
            last or event.last_timestamp or event.event_time or event.first_timestamp, now
        )
    except Rejected:
        return None
