"""The access that reading a live cluster needs."""

from __future__ import annotations

from collector.kubernetes.kinds import KINDS, OWNERS
from collector.source import KubernetesAccess, Permissions


def permissions() -> Permissions:
    """The access that a live cluster needs: get and list, one rule per API group.

    A kind of which one object is read has a rule of its own, which names it.
    """
    groups: dict[str, list[str]] = {}
    for kind in KINDS:
        if not kind.only:
            groups.setdefault(kind.group, []).append(kind.plural)
    for group, plural in OWNERS:
        groups.setdefault(group, []).append(plural)
    single = (
        KubernetesAccess(kind.group, (kind.plural,), kind.only[1:], kind.only[0])
        for kind in KINDS
        if kind.only
    )
    return Permissions(
        kubernetes=(
            *(KubernetesAccess(group, tuple(sorted(names))) for group, names in groups.items()),
            *single,
        )
    )
