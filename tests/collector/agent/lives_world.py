"""Random lives of pods with a known truth, as the changes that an API server would tell of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any

Json = dict[str, Any]
Interval = tuple[datetime, datetime, str, str]
"""Start, end, state and experiment."""


def text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Change:
    """What an API server tells at a moment: an object put, or removed."""

    at: datetime
    item: Json
    removed: bool = False


@dataclass
class Pod:
    """A pod, its truth, and all changes of it in order."""

    uid: str
    created: datetime
    bound: datetime | None = None
    runs: list[tuple[datetime, datetime]] = field(default_factory=list)
    labels: list[tuple[datetime, str]] = field(default_factory=list)
    end: datetime | None = None
    gone: datetime | None = None
    changes: list[Change] = field(default_factory=list)

    def truth(self, until: datetime) -> list[Interval]:
        """Its intervals up to a moment."""
        if self.bound is None:
            return []
        end = min(self.end or until, until)
        if self.bound >= end:
            return []
        runs = [(a, min(b, end)) for a, b in self.runs if a < end]
        points = sorted({self.bound, end, *(p for r in runs for p in r), *self._cuts(end)})
        found: list[Interval] = []
        for a, b in pairwise(points):
            state = "running" if any(x <= a and b <= y for x, y in runs) else "held"
            name = next(n for t, n in reversed(self.labels) if t <= max(a, self.created))
            if a < b:
                found.append((a, b, state, name))
        return found

    def _cuts(self, end: datetime) -> list[datetime]:
        return [at for at, _ in self.labels if self.bound and self.bound < at < end]


def world(random: Random, count: int, start: datetime, length: timedelta) -> list[Pod]:
    """Pods whose lives begin somewhere in ``length`` from ``start`` on."""
    span = int(length.total_seconds())
    return [
        _pod(random, f"uid-{number:04d}", start + timedelta(seconds=random.randrange(span)), length)
        for number in range(count)
    ]


def _pod(random: Random, uid: str, created: datetime, length: timedelta) -> Pod:
    def later(moment: datetime, low: int, high: int) -> datetime:
        return moment + timedelta(seconds=random.randint(low, high))

    pod = Pod(uid, created, labels=[(created, "a")])
    whole = int(length.total_seconds())
    node = f"gpu-{random.randrange(20)}"
    say = _Teller(pod, node)
    say(created)
    if random.random() < 0.03:  # never bound
        if random.random() < 0.5:
            say(later(created, 10, 600), removed=True)
        return pod
    pod.bound = later(created, 0, 30)
    say(pod.bound)
    at = later(pod.bound, 1, 60)
    for _ in range(random.choice((1, 1, 1, 2, 3, 5))):
        end = later(at, 5, random.choice((60, 600, max(whole // 4, 700))))
        pod.runs.append((at, end))
        say(at, running=at)
        if random.random() < 0.4:
            pod.labels.append((later(at, 0, int((end - at).total_seconds()) - 1), _name(random)))
            say(pod.labels[-1][0], running=at)
        say(end, ended=(at, end))
        at = later(end, 2, 90)
    _finish(pod, say, random, later)
    return pod


def _name(random: Random) -> str:
    return random.choice("abcdef")


def _finish(pod: Pod, say: _Teller, random: Random, later: Any) -> None:  # noqa: ANN401
    start, end = pod.runs[-1]
    way = random.choice(("completes", "stays complete", "deleted", "forced", "stays"))
    last = pod.changes.pop()  # the end of the last run is told in another way
    assert last.at == end
    if way in ("completes", "stays complete"):
        pod.end = end
        say(end, ended=(start, end), phase="Succeeded")
        if way == "completes":
            pod.gone = later(end, 0, 900)
            say(pod.gone, ended=(start, end), phase="Succeeded", removed=True)
    elif way == "deleted":
        pod.end, due = end, later(end, 0, 30)
        say(max(start, end - timedelta(seconds=2)), running=start, due=due)
        say(end, ended=(start, end), due=due)
        pod.gone = end
        say(end, ended=(start, end), due=due, removed=True)
    elif way == "forced":
        pod.end = pod.gone = end
        say(end, running=start, due=end, removed=True)
    else:
        pod.runs[-1] = (start, datetime.max.replace(tzinfo=start.tzinfo))


class _Teller:
    """Builds what the API server tells of a pod at a moment."""

    def __init__(self, pod: Pod, node: str) -> None:
        self.pod, self.node = pod, node

    def __call__(
        self,
        at: datetime,
        *,
        running: datetime | None = None,
        ended: tuple[datetime, datetime] | None = None,
        phase: str = "Running",
        due: datetime | None = None,
        removed: bool = False,
    ) -> None:
        pod = self.pod
        bound = pod.bound is not None
        changes = [t for t, _ in pod.labels if t <= at]
        item: Json = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": pod.uid.replace("uid", "pod"),
                "namespace": "train",
                "uid": pod.uid,
                "creationTimestamp": text(pod.created),
                "deletionTimestamp": text(due),
                "labels": {"experiment": [n for t, n in pod.labels if t <= at][-1]},
                "managedFields": [
                    {"manager": "kubectl", "operation": "Update", "time": text(max(changes))},
                    {"manager": "kubelet", "subresource": "status", "time": text(at)},
                ],
            },
            "spec": {
                "nodeName": self.node if bound else None,
                "containers": [
                    {"name": "main", "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": 1}}}
                ],
            },
            "status": {
                "phase": phase if bound else "Pending",
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "True",
                        "lastTransitionTime": text(pod.bound),
                    }
                ]
                if bound
                else [],
                "containerStatuses": self._statuses(running, ended),
            },
        }
        pod.changes.append(Change(at, item, removed))

    def _statuses(
        self, running: datetime | None, ended: tuple[datetime, datetime] | None
    ) -> list[Json]:
        earlier = [
            run for run in self.pod.runs if run[0] < (running or (ended or (None,))[0] or run[0])
        ]
        status: Json = {"name": "main", "restartCount": len(earlier)}
        if earlier:
            status["lastState"] = _terminated(*earlier[-1])
        if running:
            return [status | {"state": {"running": {"startedAt": text(running)}}}]
        return [status | {"state": _terminated(*ended)}] if ended else []


def _terminated(start: datetime, end: datetime) -> Json:
    return {"terminated": {"startedAt": text(start), "finishedAt": text(end), "reason": "Error"}}
