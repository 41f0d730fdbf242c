"""The life of one pod as a watch tells it: what it was, from when to when.

Pure: a telling of a pod and the moment it came go in, rows come out. Times are the API's own
wherever an object tells one; the moment at which a change came is but the last resort.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from sys import intern
from typing import Any

from collector.agent.wire import changed_texts
from collector.kubernetes.frames import Row
from collector.kubernetes.life import Life, Span, Told, life, runs_of
from collector.kubernetes.objects import Pod
from collector.kubernetes.rejects import Rejected
from collector.kubernetes.times import OPEN, moment
from collector.kubernetes.workloads import workload_rows
from ledger.window import Window

END_NOT_SEEN = "EndNotSeen"
"""Reason of the last row of a pod that ended while nobody watched."""
EVER = datetime.min.replace(tzinfo=UTC)
_LINEAGE = frozenset({"owners", "root_kind", "root_name", "role", "owner_labels"})
"""What is read from a pod's owners: learnt late it still was so from the beginning."""
_OF_TIME = frozenset(
    "day start end state reason bound_at finished_at interval_seconds source".split()
)
_SHARED = frozenset(
    "cluster namespace node owners root_kind root_name role labels owner_labels annotations "
    "environment gpu_resource gpu_request".split()
)
"""Texts that many pods have in common: kept once."""
_SOON = timedelta(minutes=1)
"""A pod that goes this soon after its deletion fell due ended when it did: word takes a moment."""
_LATE = timedelta(seconds=5)
"""How much older than the last word of a pod the time of its change may be: two clocks."""


@dataclass(slots=True)
class Tracked:
    """A pod.

    Args:
        facts: From when on it was what; the first holds from ever.
        life: Its life so far; open spans end at ``OPEN``.
        seen: When it was last known to be there.
        runs: All runs of its containers.
        over: Whether nothing more can happen to it.
        lost: Whether it ended unseen.
        gone: Whether the API no longer has it.
        changed: The latest time at which any writer had changed it, by its last telling.
    """

    facts: list[tuple[datetime, Row]]
    life: Life
    seen: datetime
    runs: dict[tuple[str, datetime], datetime] = field(default_factory=dict)
    over: bool = False
    lost: bool = False
    gone: bool = False
    changed: datetime | None = None

    @property
    def end(self) -> datetime:
        """When it ended; ``OPEN`` if it has not."""
        if self.life.finished_at:
            return self.life.finished_at
        return self.life.spans[-1].end if self.life.spans else OPEN

    @property
    def place(self) -> str:
        """``namespace/name``."""
        row = self.facts[-1][1]
        return f"{row['namespace']}/{row['pod']}"

    def rows(self, window: Window, until: datetime) -> Iterator[Row]:
        """Its rows in the days of a window, as far as it was watched.

        Args:
            window: Whole days.
            until: Until when an open life is known to go on.
        """
        ends = [since for since, _ in self.facts[1:]] + [OPEN]
        for (since, facts), end in zip(self.facts, ends, strict=True):
            spans = tuple(_clip(self.life.spans, since, end))
            if spans:
                yield from workload_rows(facts, replace(self.life, spans=spans), window, until)

    def forget(self, before: datetime) -> None:
        """Drop what it was, and did, before a day that needs no more rows."""
        ends = [since for since, _ in self.facts[1:]] + [OPEN]
        self.facts = [entry for entry, end in zip(self.facts, ends, strict=True) if end > before]
        self.runs = {key: stop for key, stop in self.runs.items() if stop > before}


def told(
    known: Tracked | None, pod: Pod, facts: Row, at: datetime, now: datetime, *, live: bool = True
) -> Tracked:
    """What a pod is after a telling of it.

    Args:
        known: What it was before.
        pod: The telling.
        facts: What it says that does not depend on time.
        at: Until when ``known`` is known to have stayed as it was.
        now: When the telling came.
        live: Whether it came at once; else it may be older than ``now``.

    Raises:
        Rejected: Its times cannot be true.
    """
    facts, changed = compact(facts), _changed(pod, now)
    if known is None:
        lived, runs = life(pod, now), runs_of(pod, now)
        runs |= _guessed(lived, runs)
        entries = [(EVER, facts)]
    else:
        runs = _runs(known, runs_of(pod, now), at)
        lived = life(pod, now, Told(), runs)
        since = _since(known, changed, at, now)
        entries = _entries(known, facts, since)
        if lived.end_unknown and known.life.spans:
            return replace(lose(known, at), gone=False)
    over = lived.finished_at is not None or lived.end_unknown
    return Tracked(entries, lived, now if live else at, runs, over=over, changed=changed)


def deleted(known: Tracked, pod: Pod, at: datetime, now: datetime, *, live: bool) -> Tracked:
    """What a pod is once it is deleted.

    If its containers have not ended before, it ended when its deletion fell due, unless it is known
    to have gone on; else when the word of it came.

    Args:
        known: What it was, its last telling included.
        pod: That telling.
        at: When it was last known to be there.
        now: When the word came.
        live: Whether the word came at once.
    """
    if known.over:
        return replace(known, gone=True)
    due = _moment(pod.metadata.deletion_timestamp, None)
    if due is None and not live:
        return lose(known, at)
    if due and (not live or timedelta(0) <= now - due <= _SOON):
        return _ended(known, min(due if live else max(due, at), now), sure=True)
    return _ended(known, now, sure=True)


def lose(known: Tracked, at: datetime, end: datetime | None = None) -> Tracked:
    """What a pod is that is gone though nobody saw it end.

    Args:
        known: What it was.
        at: When it was last known to be there.
        end: When events say that it ended.
    """
    if known.over or known.life.finished_at:
        return replace(known, over=True, gone=True)
    return _ended(known, max(end, at) if end else at, sure=end is not None)


def restored(rows: list[dict[str, Any]], until: datetime) -> Tracked:
    """A pod from its rows of a day, in order, as far as it had been watched.

    Args:
        rows: Rows of ``workloads``.
        until: Until when open lives were known when they were written.
    """
    last = rows[-1]
    lost = last["reason"] == END_NOT_SEEN
    goes_on = last["finished_at"] is None and not lost and last["end"] >= until
    # An end may have been known that lies behind what had been watched by then.
    end = OPEN if goes_on else max(last["end"], last["finished_at"] or last["end"])
    ends = [row["end"] for row in rows[:-1]] + [end]
    spans: list[Span] = []
    facts: list[tuple[datetime, Row]] = []
    for row, end in zip(rows, ends, strict=True):
        span = Span(row["start"], end, row["state"] == "running", row["reason"])
        if spans and replace(span, start=spans[-1].start) == replace(spans[-1], end=end):
            spans[-1] = replace(spans[-1], end=end)
        else:
            spans.append(span)
        same = compact({key: value for key, value in row.items() if key not in _OF_TIME})
        if not facts or facts[-1][1] != same:
            facts.append((row["start"] if facts else EVER, same))
    lived = Life(last["bound_at"], last["finished_at"], tuple(spans))
    runs = {("", span.start): span.end for span in spans if span.running}
    # What lies behind what had been watched is going to be told again, in more detail.
    over = not goes_on and end <= until
    return Tracked(facts, lived, min(last["end"], until), runs, over=over, lost=lost)


def compact(facts: Row) -> Row:
    """The same, texts that many pods share kept once."""
    return {
        key: intern(value) if key in _SHARED and isinstance(value, str) else value
        for key, value in facts.items()
    }


def _guessed(lived: Life, runs: dict[tuple[str, datetime], datetime]) -> dict[Any, datetime]:
    """What a life takes for running before the first run that the pod still tells."""
    found = {}
    for span in lived.spans:
        starts = [start for _, start in runs if span.start < start < span.end]
        if span.running and starts and not any(start == span.start for _, start in runs):
            found["", span.start] = min(starts)
    return found


def _runs(
    known: Tracked, told: dict[tuple[str, datetime], datetime], at: datetime
) -> dict[tuple[str, datetime], datetime]:
    """The runs that were seen and those that the pod tells; the latter count.

    A run that had not ended, and that the pod no longer tells, went on for as long as it was seen.
    """
    starts = {start for _, start in told}
    found = dict(told)
    for (container, start), stop in known.runs.items():
        if (container, start) in told or (not container and start in starts):
            continue
        end = at if stop == OPEN else stop
        if start < end:
            found[container, start] = end
    return found


def _entries(known: Tracked, facts: Row, since: datetime) -> list[tuple[datetime, Row]]:
    """From when on a pod was what, with what it is now."""
    last = known.facts[-1][1]
    if facts == last:
        return known.facts
    if last["node"] is None:
        return [(EVER, facts)]  # before it had a node it cost nothing
    differ = {key for key in facts if facts[key] != last[key]}
    if differ <= _LINEAGE and "owners" in differ:
        lineage = {key: facts[key] for key in _LINEAGE}
        return [(start, {**entry, **lineage}) for start, entry in known.facts]
    return [*known.facts, (since, facts)]


def _since(known: Tracked, changed: datetime | None, at: datetime, now: datetime) -> datetime:
    """When a change came into force: by the writer's own time, if that is a new one."""
    new = known.changed is None or (changed is not None and changed > known.changed)
    late = changed is None or (known.changed is None and changed < at - _LATE)
    found = now if changed is None or late or not new else changed
    return max(found, known.facts[-1][0])


def _changed(pod: Pod, now: datetime) -> datetime | None:
    times = (_moment(text, now) for text in changed_texts(pod))
    return max((min(time, now) for time in times if time), default=None)


def _moment(text: str | None, now: datetime | None) -> datetime | None:
    try:
        return moment(text, now)
    except Rejected:
        return None


def _ended(known: Tracked, end: datetime, *, sure: bool) -> Tracked:
    spans = list(_clip(known.life.spans, EVER, end))
    if spans and not sure:
        spans[-1] = replace(spans[-1], reason=END_NOT_SEEN)
    lived = Life(known.life.bound_at, end if sure else None, tuple(spans))
    runs = {key: min(stop, end) for key, stop in known.runs.items()}
    return replace(known, life=lived, runs=runs, over=True, lost=not sure, gone=True)


def _clip(spans: tuple[Span, ...], start: datetime, end: datetime) -> Iterator[Span]:
    for span in spans:
        first, last = max(span.start, start), min(span.end, end)
        if first < last:
            yield replace(span, start=first, end=last)
