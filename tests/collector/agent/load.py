"""A day of a large cluster through an agent, in a process of its own: prints peak memory and time.

    python load.py LEDGER PODS CHANGES

Objects come as JSON with all that the API server sends (managed fields, volumes, conditions), as
over the wire; the ledger is written as in earnest, every hour of that day.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from cli.stages.watching import write
from cli.wiring import context_of
from collector.agent.state import Watch
from collector.agent.stream import Alive, Seen, Started
from collector.agent.wire import EVENTS, NODES, PODS
from collector.kubernetes.decode import decode
from collector.kubernetes.kinds import Kind
from ledger.load import LoadedSettings
from ledger.settings import Settings
from tests.collector.agent.replay import describe

START = datetime(2026, 11, 30, tzinfo=UTC)
DAY = timedelta(days=1)


def pod(number: int, label: int, at: datetime, *, ended: bool = False) -> msgspec.Raw:
    """A pod as large as those of training jobs are, some 6 KB."""
    born = START + timedelta(seconds=number % 3000)
    times = [f"{t:%Y-%m-%dT%H:%M:%SZ}" for t in (born, at)]
    state = (
        {"terminated": {"startedAt": times[0], "finishedAt": times[1], "reason": "Completed"}}
        if ended
        else {"running": {"startedAt": times[0]}}
    )
    name = f"grpo-7b-{number:06d}-worker-rollout"
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": f"grpo-{number // 16}"}
    item = {
        "metadata": {
            "name": name,
            "namespace": f"team-{number % 20}",
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "resourceVersion": str(number),
            "creationTimestamp": times[0],
            "labels": {f"label-{n}": f"value-{number // 16}-{n}" for n in range(14)}
            | {"step": str(label)},
            "annotations": {f"team.example/{n}": "x" * 120 for n in range(6)},
            "ownerReferences": [owner | {"uid": f"owner-{number // 16}", "controller": True}],
            "managedFields": [
                {"manager": f"m{n}", "time": times[1], "fieldsV1": {"f:spec": {"x" * 300: {}}}}
                for n in range(3)
            ],
        },
        "spec": {
            "nodeName": f"gpu-node-{number % 1000:04d}",
            "containers": [
                {
                    "name": "main",
                    "resources": {"requests": {"cpu": "16", "nvidia.com/gpu": "1"}},
                    "env": [{"name": f"VARIABLE_{n}", "value": "y" * 40} for n in range(25)],
                }
            ],
        },
        "status": {
            "phase": "Succeeded" if ended else "Running",
            "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": times[0]}
            ],
            "containerStatuses": [{"name": "main", "restartCount": 0, "state": state}],
        },
    }
    return msgspec.Raw(json.dumps(item).encode())


def main(ledger: str, pods: int, changes: int) -> None:
    context = context_of(
        LoadedSettings(Settings(ledger=ledger), None, Path(ledger).parent, {}), create=True
    )
    watch = Watch("train-a", describe, START.date())
    for kind in (NODES, EVENTS):
        watch.take(Started(kind, START))
        watch.take(Alive(kind, START, "1", listed=True))

    def see(change: str, kind: Kind, raw: msgspec.Raw, at: datetime) -> None:
        watch.take(Seen(kind, change, decode(kind, raw), at, str(at), live=True))

    at = START + timedelta(hours=1)
    watch.take(Started(PODS, at))
    for number in range(pods):
        see("LISTED", PODS, pod(number, 0, at), at)
    watch.take(Alive(PODS, at, "1", listed=True))
    step, due = timedelta(hours=22) / changes, at
    writing, writes, began = 0.0, 0, time.perf_counter()
    for number in range(changes):
        at += step
        last = number >= changes - pods  # every pod ends in the end
        see("MODIFIED", PODS, pod(number % pods, number // pods // 5, at, ended=last), at)
        if at >= due:
            before = time.perf_counter()
            write(context, watch, required=True)
            writing, writes = writing + time.perf_counter() - before, writes + 1
            due += timedelta(hours=1)
    write(context, watch, required=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    taking = time.perf_counter() - began - writing
    print(json.dumps({"peak_mb": peak, "write_s": writing / writes, "taking_s": taking}))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
