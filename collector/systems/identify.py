"""Reads a pod by the table of systems: owners beyond those that references name, and the role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from collector.systems.model import Key, Link, Owner, Role, System, label
from collector.systems.table import SYSTEMS

_TEMPLATES = (
    (label("pod-template-hash"), "Deployment", "apps"),
    (label("rollouts-pod-template-hash"), "Rollout", "argoproj.io"),
)


Signs = Mapping[str, Sequence[tuple[int, str | None]]]
"""Systems (by number) that a key in either spelling marks, and the value that it must have."""


def _signs(*, annotation: bool) -> Signs:
    found: dict[str, list[tuple[int, str | None]]] = {}
    for number, one in enumerate(SYSTEMS):
        for sign in one.signs:
            if sign.key.annotation is annotation:
                for name in sign.key.spellings:
                    found.setdefault(name, []).append((number, sign.value))
    return found


_LABELS, _ANNOTATIONS = _signs(annotation=False), _signs(annotation=True)
_BY_OWNERS = [(first, found) for one in SYSTEMS for first, found in one.by_owners.items()]


@dataclass(frozen=True)
class Pod:
    """What is known of a pod.

    Args:
        labels: In original or sanitised spelling (``label_…``), or some of each.
        annotations: The same (``annotation_…``).
    """

    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    @cached_property
    def marked(self) -> tuple[System, ...]:
        """The systems whose marks it bears, in the order of the table."""
        found = {
            number
            for values, signs in ((self.labels, _LABELS), (self.annotations, _ANNOTATIONS))
            for name in values
            for number, value in signs.get(name, ())
            if values[name] and value in (None, values[name].lower())
        }
        some = (SYSTEMS[number] for number in sorted(found))
        return tuple(one for one in some if all(self.get(key) for key in one.needs))

    def get(self, key: Key) -> str | None:
        """The value of a key; None if it is absent or empty.

        Keys that collide once they are sanitised bear ``_conflictN`` and say nothing.
        """
        values = self.annotations if key.annotation else self.labels
        return values.get(key.name) or values.get(key.sanitised) or None


def continued(chain: Sequence[Link], pod: Pod, *, whole: bool) -> list[Link]:
    """What labels and annotations know beyond the end of a chain of owner references.

    Of systems whose objects stand in the API, the first that names an owner counts, and only where
    references end before it. Of systems whose jobs are no objects (a SkyPilot cluster, a dstack
    run), the name stands above all objects.

    Args:
        chain: Owners by reference, nearest first.
        pod: The pod.
        whole: Whether the last of them is known to have no owner.
    """
    marked = pod.marked
    more: list[Link] = []
    if not (whole and chain):
        more = next((links for one in marked if (links := _above(chain, one, pod))), [])
        more = more or _of_replica_set(chain, pod)
    links = next((links for one in marked if one.virtual and (links := _named(one, pod))), [])
    if links and links[-1].name not in {link.name for link in (*chain, *more)}:
        more = [*more, *links]
    return more


def role(chain: Sequence[Link], pod: Pod) -> str | None:
    """The pod's role in its job as ``FORM:VALUE``, e.g. ``ray-group:rollout``; None if untold.

    Args:
        chain: Its owners, nearest first.
        pod: The pod.
    """
    for one in pod.marked:
        for told in one.roles:
            if found := _told(told, pod):
                return found
    kinds = tuple(link.kind for link in chain)
    return next((found for first, found in _BY_OWNERS if kinds[: len(first)] == first), None)


def system(chain: Sequence[Link], pod: Pod) -> System | None:
    """The system that a pod is of, by its marks, else by its owners; None if none is known."""
    if pod.marked:
        return pod.marked[0]
    groups = {(link.kind, link.group) for link in chain}
    kinds = {link.kind for link in chain if link.group is None}
    for one in SYSTEMS:
        for known in one.objects:
            if (known.kind, known.group) in groups or known.kind in kinds:
                return one
    return None


def _above(chain: Sequence[Link], one: System, pod: Pod) -> list[Link]:
    """The owners by label that stand above the end of a chain."""
    links = [] if one.virtual else _named(one, pod)
    if not links or not chain:
        return links
    if chain[-1] in links:
        return links[links.index(chain[-1]) + 1 :]
    return links if chain[-1].kind in one.under else []


def _of_replica_set(chain: Sequence[Link], pod: Pod) -> list[Link]:
    """The Deployment (or Rollout of Argo) whose template hash ends the name of a ReplicaSet."""
    if not chain or chain[-1].kind != "ReplicaSet":
        return []
    for key, kind, group in _TEMPLATES:
        name = chain[-1].name.removesuffix(f"-{pod.get(key)}")
        if pod.get(key) and name != chain[-1].name:
            return [Link(kind, name, group)]
    return []


def _named(one: System, pod: Pod) -> list[Link]:
    links = [link for owner in one.chain if (link := _link(owner, pod))]
    return list(dict.fromkeys(links))


def _link(owner: Owner, pod: Pod) -> Link | None:
    name = next((value for key in owner.names if (value := pod.get(key))), None)
    if name and owner.shape:
        found = owner.shape.fullmatch(name)
        name = found.group(1) if found else None
    if not name or not all(pod.get(key) for key in owner.given):
        return None
    kind = owner.kind
    if owner.told and (told := pod.get(owner.told)):
        kind = owner.kinds.get(told.lower(), owner.kind) if owner.kinds else told
    return Link(kind, name, owner.group)


def _told(told: Role, pod: Pod) -> str | None:
    value = next((value for key in told.keys if (value := pod.get(key))), None)
    if value and told.shape:
        found = told.shape.fullmatch(value)
        value = found.group(1) if found else None
    if not value or value in told.unless:
        return None
    if told.values or told.other:
        value = told.values.get(value.lower(), told.other)
    return f"{told.form}:{value.lower() if told.lower else value}" if value else None
