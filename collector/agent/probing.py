"""Whether the agent's role lets it list and watch; what ``runbill doctor`` asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from collector.agent.access import WATCHED
from collector.agent.connection import BrokenError, WatchApi
from collector.kubernetes.client import ApiError
from collector.kubernetes.kinds import Kind
from collector.source import Probe
from ledger.settings import Cluster

_BLIND = {
    "pods": "everything: no life is seen",
    "nodes": "when nodes came and went",
    "events": "evictions and failures; pods that came and went while nobody watched",
}


def probes(cluster: Cluster, base: Path) -> Iterator[Probe]:
    """Open a watch of each kind for a second; nothing where no API server is named."""
    if cluster.kubernetes is None or cluster.kubernetes.dump is not None:
        return
    with WatchApi(cluster.kubernetes, base) as api:
        for kind in WATCHED:
            need = f"watch {kind.plural}"
            try:
                _try(api, kind)
            except ApiError as error:
                yield Probe(need, False, f"{error}; grant list and watch", _BLIND[kind.plural])
                if error.status == 0:
                    return
            else:
                yield Probe(need, True, "can be watched")


def _try(api: WatchApi, kind: Kind) -> None:
    query: dict[str, str | int] = {"watch": "1", "timeoutSeconds": 1, "resourceVersion": "0"}
    if kind.fields:
        query["fieldSelector"] = kind.fields
    try:
        with api.watch(kind.paths[0], query, 5) as lines:
            next(iter(lines), None)
    except BrokenError:
        return
