"""Rows of the table ``resources``: status and policy that rules and identity look at."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from collector.kubernetes.frames import Row
from collector.kubernetes.kinds import NAMESPACES, NODE_POOLS, QUOTAS, RAY_JOBS
from collector.kubernetes.objects import NodePool, Object, RayJob, ResourceQuota
from collector.kubernetes.snapshot import Snapshot
from ledger.text import canonical_json
from ledger.window import Window


def resource_rows(snapshot: Snapshot, cluster: str, window: Window) -> Iterator[Row]:
    """RayJobs (when jobs end, whether clusters go with them), node pools, namespaces and quotas.

    A snapshot knows the present only: it stands on every day of the window.
    """
    found: list[tuple[str, Object, dict[str, object]]] = [
        *(
            ("RayJob", item, _plain(item.spec) | _plain(item.status))
            for item in snapshot.of(RAY_JOBS, RayJob)
        ),
        *(("NodePool", item, _plain(item.spec)) for item in snapshot.of(NODE_POOLS, NodePool)),
        *(
            ("Namespace", item, dict[str, object](labels=item.labels))
            for item in snapshot.of(NAMESPACES, Object)
        ),
        *(
            ("ResourceQuota", item, _plain(item.spec) | _plain(item.status))
            for item in snapshot.of(QUOTAS, ResourceQuota)
        ),
    ]
    for day in window.days():
        for kind, item, configuration in found:
            yield {
                "day": day,
                "cluster": cluster,
                "kind": kind,
                "namespace": item.metadata.namespace,
                "name": item.metadata.name,
                "configuration": canonical_json(configuration),
            }


def _plain(part: msgspec.Struct) -> dict[str, object]:
    data: dict[str, object] = msgspec.to_builtins(part)
    return data
