"""What an agent may do at the API server: the only role with ``watch``."""

from __future__ import annotations

from collector.agent.wire import EVENTS, NODES, PODS
from collector.kubernetes.kinds import KINDS, OWNERS, Kind
from collector.source import KubernetesAccess, Permissions

WATCHED = (PODS, NODES, EVENTS)
_OWNER = Kind.__dataclass_fields__["blind"].default


def permissions() -> Permissions:
    """Pods, nodes and events are listed and watched; what can own a pod is fetched one by one."""
    groups: dict[str, set[str]] = {}
    for kind in KINDS:
        if kind.blind == _OWNER and not kind.only:
            groups.setdefault(kind.group, set()).add(kind.plural)
    for group, plural in OWNERS:
        groups.setdefault(group, set()).add(plural)
    watched = KubernetesAccess(
        "",
        tuple(sorted(kind.plural for kind in WATCHED)),
        verbs=("get", "list", "watch"),
    )
    owners = (
        KubernetesAccess(group, tuple(sorted(names)), verbs=("get",))
        for group, names in sorted(groups.items())
    )
    return Permissions(kubernetes=(watched, *owners))
