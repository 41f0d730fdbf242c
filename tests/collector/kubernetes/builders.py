"""Kubernetes objects as the API gives them, for tests: a test says what matters to it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from collector.kubernetes import from_settings
from ledger.facts import Facts
from ledger.settings import Cluster
from ledger.window import Window, parse_day

Json = dict[str, Any]
DAY = "2026-11-30"
WINDOW = Window.of_day(parse_day(DAY))
NOW = WINDOW.end.timestamp()


def at(clock: str) -> str:
    """A time of the day, ``HH:MM`` or ``HH:MM:SS``."""
    return f"{DAY}T{clock}{':00' if clock.count(':') == 1 else ''}Z"


def metadata(
    name: str,
    *,
    namespace: str | None = "train",
    uid: str | None = None,
    created: str = "07:59",
    owners: Sequence[Json] = (),
    **more: Any,  # noqa: ANN401
) -> Json:
    found: Json = {
        "name": name,
        "uid": uid or f"uid-{name}",
        "resourceVersion": "10",
        "creationTimestamp": at(created),
        **more,
    }
    if namespace:
        found["namespace"] = namespace
    if owners:
        found["ownerReferences"] = [
            {
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "controller": True,
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
            }
            for owner in owners
        ]
    return found


def thing(api_version: str, kind: str, name: str, **more: Any) -> Json:  # noqa: ANN401
    """Any object: what owner chains are made of."""
    more.setdefault("uid", f"uid-{kind}-{name}")
    rest: Json = {key: more.pop(key) for key in ("spec", "status") if key in more}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata(name, **more), **rest}


def container(
    name: str = "main",
    *,
    cpu: str | None = "1",
    memory: str | None = "1Gi",
    gpus: int | None = None,
    **more: Any,  # noqa: ANN401
) -> Json:
    requests = {"cpu": cpu, "memory": memory, "nvidia.com/gpu": None if gpus is None else str(gpus)}
    return {
        "name": name,
        "resources": {"requests": {key: value for key, value in requests.items() if value}},
        **more,
    }


def running(since: str, **more: Any) -> Json:  # noqa: ANN401
    return {
        "name": "main",
        "restartCount": 0,
        "state": {"running": {"startedAt": at(since)}},
        **more,
    }


def ended(start: str, end: str, reason: str = "Completed", **more: Any) -> Json:  # noqa: ANN401
    return {"name": "main", "restartCount": 0, "state": terminated(start, end, reason), **more}


def terminated(start: str, end: str, reason: str = "Completed") -> Json:
    return {"terminated": {"startedAt": at(start), "finishedAt": at(end), "reason": reason}}


def waiting(reason: str, **more: Any) -> Json:  # noqa: ANN401
    return {"name": "main", "restartCount": 0, "state": {"waiting": {"reason": reason}}, **more}


def pod(
    name: str,
    *statuses: Json,
    node: str | None = "gpu-1",
    bound: str | None = "08:00",
    phase: str = "Running",
    containers: Sequence[Json] | None = None,
    init: Sequence[Json] = (),
    init_statuses: Sequence[Json] = (),
    conditions: Sequence[Json] = (),
    spec: Json | None = None,
    status: Json | None = None,
    **meta: Any,  # noqa: ANN401
) -> Json:
    """A pod; ``statuses`` are its container statuses."""
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastTransitionTime": bound and at(bound),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, **meta),
        "spec": {
            "nodeName": node,
            "containers": list(containers or [container()]),
            "initContainers": list(init),
            **(spec or {}),
        },
        "status": {
            "phase": phase,
            "conditions": [*([scheduled] if bound else []), *conditions],
            "containerStatuses": list(statuses),
            "initContainerStatuses": list(init_statuses),
            **(status or {}),
        },
    }


def node(
    name: str = "gpu-1",
    *,
    capacity: Json | None = None,
    provider: str = "aws:///eu-1a/i-1",
    **meta: Any,  # noqa: ANN401
) -> Json:
    default = {"cpu": "192", "memory": "2097152Mi", "nvidia.com/gpu": "8"}
    meta.setdefault("created", "06:00")
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata(name, namespace=None, **meta),
        "spec": {"providerID": provider},
        "status": {"capacity": default if capacity is None else capacity},
    }


def collect(window: Window = WINDOW, **source: Any) -> Facts:  # noqa: ANN401
    """Facts of a source given by its settings, e.g. ``server=url`` or ``dump=path``."""
    cluster = Cluster.model_validate({"name": "train-a", "kubernetes": source})
    return from_settings(cluster, Path("/")).collect(window)


def lives(facts: Facts, name: str) -> list[tuple[str, str, str, str | None]]:
    """(start, end, state, reason) of a pod's rows, times as ``HH:MM``, or with the day before."""
    rows = facts.tables["workloads"].filter(pl.col("pod") == name).sort("start")
    return [
        (f"{row['start']:%H:%M}", f"{row['end']:%H:%M}", row["state"], row["reason"])
        for row in rows.iter_rows(named=True)
    ]


def row(facts: Facts, name: str, table: str = "workloads", column: str = "pod") -> Json:
    """The first row of a pod or node."""
    return facts.tables[table].filter(pl.col(column) == name).sort("start").row(0, named=True)
