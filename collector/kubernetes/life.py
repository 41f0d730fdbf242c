"""The life of a pod by the API's own times.

A pod holds what it asked for from its binding (condition PodScheduled) until it has finished. It
is *running* while any of its containers runs, else *held* with the reason. Native sidecars and
init containers do not make it run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from collector.kubernetes.objects import Condition, ContainerState, ContainerStatus, Pod
from collector.kubernetes.reasons import (
    BACK_OFF,
    after_end,
    apps,
    before_start,
    is_waiting,
    not_started,
)
from collector.kubernetes.rejects import Rejected
from collector.kubernetes.times import OPEN, SKEW, moment

_MIRROR = "kubernetes.io/config.mirror"

Runs = Mapping[tuple[str, datetime], datetime]
"""Runs of containers: container and start to end, ``OPEN`` while it runs."""


@dataclass(frozen=True)
class Span:
    """A part of a life in one state; ``end`` is ``OPEN`` while it lasts."""

    start: datetime
    end: datetime
    running: bool
    reason: str | None = None


@dataclass(frozen=True)
class Life:
    """A pod's life.

    Args:
        bound_at: When it took its place on a node; None if it never did.
        finished_at: When it gave it back; None if it has not, or if the API does not know.
        spans: Its parts in order, without holes.
        end_unknown: It is over, but nothing says since when; then there are no spans.
    """

    bound_at: datetime | None
    finished_at: datetime | None
    spans: tuple[Span, ...]
    end_unknown: bool = False


class Told(NamedTuple):
    """What events tell of a life; it counts where nothing in the pod says so."""

    started: datetime | None = None
    ended: datetime | None = None


def life(
    pod: Pod,
    now: datetime | None = None,
    told: Told = Told(),  # noqa: B008 - fixed
    watched: Runs | None = None,
) -> Life:
    """Read the life of a pod.

    Args:
        pod: The pod.
        now: The present of the API server; None if unknown (a dump).
        told: When its events say that it first started and was ended.
        watched: All its runs, if somebody has watched them; the pod itself tells the last two of
            each container. None if nobody has.

    Raises:
        Rejected: ``bad_date`` or ``clock``: its times cannot be true. ``no_node``: it has run, but
            nothing says where.
    """
    if not pod.spec.node_name and _has_run(pod):
        raise Rejected("no_node", f"it is {pod.status.phase or 'in no phase'}, but on no node")
    times = _Times(pod, now)
    over = _is_over(pod)
    finished = (times.finished() or times.no_later_run(told.ended)) if over else None
    if not pod.spec.node_name:
        return Life(None, finished, _queue(pod, times, finished, over))
    bound = times.bound()
    if over and finished is None:
        return Life(bound, None, (), end_unknown=True)
    if finished is not None:
        finished = _not_before(bound, finished, "finished before it was bound")
    end = finished or OPEN
    known = times.runs(end) if watched is None else _before(end, watched)
    if over and not known and told.started:
        known = [(told.started, end)]  # its containers are no longer known
    runs = [
        (_not_before(bound, start, "started before it was bound"), stop) for start, stop in known
    ]
    return Life(bound, finished, tuple(_spans(pod, bound, end, runs)))


def runs_of(pod: Pod, now: datetime | None = None) -> dict[tuple[str, datetime], datetime]:
    """The runs of a pod's containers that the pod itself tells.

    Raises:
        Rejected: ``bad_date`` or ``clock``.
    """
    times = _Times(pod, now)
    return {
        (status.name, start): stop
        for status in apps(pod)
        for state in (status.last_state, status.state)
        if state
        for start, stop in times.run(state, OPEN)
    }


def _before(end: datetime, runs: Runs) -> list[tuple[datetime, datetime]]:
    spans = ((start, min(stop, end)) for (_, start), stop in runs.items())
    return sorted(span for span in spans if span[0] < span[1])


class _Times:
    """The times of a pod, each checked as it is read."""

    def __init__(self, pod: Pod, now: datetime | None) -> None:
        self._pod = pod
        self._now = now
        self.created = self._read(pod.metadata.creation_timestamp)

    def _read(self, text: str | None) -> datetime | None:
        return moment(text, self._now)

    def condition(self, kind: str) -> datetime | None:
        """When a condition became true; None if it is not, or not known since when."""
        found = _condition(self._pod, kind)
        return self._read(found.last_transition_time) if found and found.status == "True" else None

    def bound(self) -> datetime:
        """When the pod took its node.

        Raises:
            Rejected: No time says so, or it was bound before it was created.
        """
        bound = (
            self.condition("PodScheduled")
            or self._read(self._pod.status.start_time)
            or self.created
        )
        if bound is None:
            raise Rejected("bad_date", "no time says when it was bound")
        if _MIRROR in (self._pod.metadata.annotations or {}):
            # A static pod may run before the API server even knows it.
            return min((start for start, _ in self.runs(OPEN)), default=bound)
        return _not_before(self.created or bound, bound, "bound before it was created")

    def finished(self) -> datetime | None:
        """The last moment at which any container ended, or the last word on a pod without."""
        statuses = (*apps(self._pod), *(self._pod.status.init_container_statuses or ()))
        ends = [
            self._read(status.state.terminated.finished_at)
            for status in statuses
            if status.state and status.state.terminated
        ]
        known = [end for end in ends if end]
        if known and all(_ended(status) for status in apps(self._pod)):
            return max(known)
        # Evicted, or lost with its node: the kubelet's last change of a condition has to do.
        changes = [
            self._read(item.last_transition_time)
            for item in self._pod.status.conditions or ()
            if item.type in ("DisruptionTarget", "Ready", "ContainersReady")
        ]
        return max((*known, *(change for change in changes if change)), default=None)

    def no_later_run(self, ended: datetime | None) -> datetime | None:
        """A time that events tell, unless a container has started since: then it was a restart."""
        return ended if ended and all(start <= ended for start, _ in self.runs(OPEN)) else None

    def runs(self, end: datetime) -> list[tuple[datetime, datetime]]:
        """Intervals in which a container ran, as far as the API still knows them; sorted."""
        return sorted(run for status in apps(self._pod) for run in self._runs_of(status, end))

    def _runs_of(
        self, status: ContainerStatus, end: datetime
    ) -> Iterator[tuple[datetime, datetime]]:
        known = [
            run
            for state in (status.last_state, status.state)
            if state
            for run in self.run(state, end)
        ]
        if status.restart_count > 1 and known and not is_waiting(status):
            # The API keeps one earlier run. A container that has come through its restarts is
            # taken to have run since the pod was initialised.
            first = self.condition("Initialized")
            known[0] = (min(known[0][0], first or known[0][0]), known[0][1])
        yield from known

    def run(self, state: ContainerState, end: datetime) -> Iterator[tuple[datetime, datetime]]:
        """The run that a state tells of, if it does."""
        if state.terminated and (start := self._read(state.terminated.started_at)):
            stop = self._read(state.terminated.finished_at) or start
            if stop < start:
                raise Rejected("clock", f"a container finished at {stop:%FT%TZ}, before its start")
            yield start, min(stop, end)
        if state.running and (start := self._read(state.running.started_at)):
            yield start, end


def _queue(pod: Pod, times: _Times, finished: datetime | None, over: bool) -> tuple[Span, ...]:
    """The time of a pod without a node: it waits, and costs nothing."""
    if times.created is None or (over and finished is None):
        return ()
    scheduled = _condition(pod, "PodScheduled")
    reason = (scheduled.reason if scheduled else None) or "Pending"
    return (Span(times.created, finished or OPEN, False, reason),)


def _spans(
    pod: Pod, bound: datetime, end: datetime, runs: Iterable[tuple[datetime, datetime]]
) -> Iterator[Span]:
    """The runs, and what lies before, between and after them as held."""
    at, started = bound, False
    for start, stop in _merged(runs):
        if start > at:
            yield Span(at, start, False, BACK_OFF if started else before_start(pod))
        yield Span(start, stop, True)
        at, started = stop, True
    if at < end:
        yield Span(at, end, False, after_end(pod) if started else not_started(pod))


def _merged(runs: Iterable[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    merged: list[tuple[datetime, datetime]] = []
    for start, stop in sorted(runs):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
        elif stop > start:
            merged.append((start, stop))
    return merged


def _is_over(pod: Pod) -> bool:
    """Terminal, or being deleted with every container already gone."""
    if pod.status.phase in ("Succeeded", "Failed"):
        return True
    known = apps(pod)
    return bool(pod.metadata.deletion_timestamp and known and all(map(_ended, known)))


def _has_run(pod: Pod) -> bool:
    """Whether a pod was more than queued; one that failed may have failed in the queue."""
    if pod.status.phase == "Failed":
        scheduled = _condition(pod, "PodScheduled")
        return bool(apps(pod) or (scheduled and scheduled.status == "True"))
    return pod.status.phase != "Pending"


def _ended(status: ContainerStatus) -> bool:
    return bool(status.state and status.state.terminated)


def _condition(pod: Pod, kind: str) -> Condition | None:
    return next((item for item in pod.status.conditions or () if item.type == kind), None)


def _not_before(first: datetime, then: datetime, what: str) -> datetime:
    """The later time, if it is out of order by no more than two clocks may differ.

    Raises:
        Rejected: ``clock``.
    """
    if then < first - SKEW:
        raise Rejected("clock", f"{what} ({then:%FT%TZ} < {first:%FT%TZ})")
    return max(first, then)
