"""Rows of the table ``workloads``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from fractions import Fraction

from collector import systems
from collector.cards import choose, request_json
from collector.kubernetes.demand import effective_request
from collector.kubernetes.environment import ENVIRONMENT, of_pod
from collector.kubernetes.frames import Row, days_of
from collector.kubernetes.life import Life
from collector.kubernetes.objects import Object, Pod
from collector.kubernetes.owners import Ownership
from collector.kubernetes.quantities import milli, whole
from collector.kubernetes.rejects import Rejected
from collector.labels import ANNOTATIONS
from ledger.text import canonical_json
from ledger.window import Window

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def workload_rows(facts: Row, life: Life, window: Window, now: datetime | None) -> Iterator[Row]:
    """A pod's days: one row per day and span of its life.

    Args:
        facts: What does not change over the life, from ``pod_facts``.
        life: The life.
        window: The days asked for; rows are clipped to them.
        now: Until when an open life is known to go on; None = to the end of the window.
    """
    known = now or window.end
    for span in life.spans:
        state = "running" if span.running else "held"
        for day, start, end in days_of(span.start, min(span.end, known), window):
            yield {
                **facts,
                "day": day,
                "start": start,
                "end": end,
                "state": state,
                "reason": span.reason,
                "bound_at": life.bound_at,
                "finished_at": life.finished_at,
            }


def pod_facts(
    pod: Pod,
    cluster: str,
    request: Mapping[str, Fraction],
    ownership: Ownership,
    keep: Sequence[str] = (),
    names: frozenset[str] = ENVIRONMENT,
) -> Row:
    """The columns of a pod that do not depend on time.

    Args:
        pod: The pod.
        cluster: The cluster's name in the settings.
        request: Its effective request, from ``pod_request``.
        ownership: Its owners.
        keep: Globs of further annotation keys to keep.
        names: Variables to keep, from ``environment.allowed``.
    """
    card = choose(request)
    root = ownership.root
    return {
        "cluster": cluster,
        "uid": pod.metadata.uid,
        "pod": pod.metadata.name,
        "namespace": pod.metadata.namespace or "default",
        "node": pod.spec.node_name or None,
        "owners": canonical_json(
            [{"kind": link.kind, "name": link.name} for link in ownership.chain]
        ),
        "root_kind": root.kind if root else None,
        "root_name": root.name if root else None,
        "role": ownership.role,
        "labels": canonical_json(pod.labels),
        "owner_labels": canonical_json(ownership.labels),
        "annotations": canonical_json(kept_annotations(pod, keep)),
        "environment": canonical_json(of_pod(pod, ownership.environment, names)),
        "cpu_millicores": milli(request.get("cpu", Fraction(0))),
        "memory_bytes": whole(request.get("memory", Fraction(0))),
        "gpus": whole(Fraction(card.units or 0)),
        "gpu_resource": card.resource,
        "gpu_request": request_json({name: whole(amount) for name, amount in request.items()}),
    }


def pod_request(pod: Pod) -> dict[str, Fraction]:
    """The effective request, checked.

    Raises:
        Rejected: ``bad_number``.
    """
    try:
        request = effective_request(pod.spec, pod.status)
        milli(request.get("cpu", Fraction(0)))
        for amount in request.values():
            whole(amount)
    except ValueError as error:
        raise Rejected("bad_number", f"{pod.place}: {error}") from None
    return request


def kept_annotations(item: Object, keep: Sequence[str]) -> dict[str, str]:
    """The annotations of an object that are kept: identity and cards, by systems, and by globs.

    No glob is meant to keep the whole specification, with whatever its variables hold.
    """
    return {
        key: value
        for key, value in (item.metadata.annotations or {}).items()
        if key.rpartition("/")[2] in ANNOTATIONS
        or key in systems.ANNOTATIONS
        or (key != _LAST_APPLIED and any(fnmatchcase(key, pattern) for pattern in keep))
    }
