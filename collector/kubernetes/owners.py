"""Who owns a pod: the chain of owners, their labels, and the pod's role in its job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from collector import systems
from collector.kubernetes.job_objects import RayJob
from collector.kubernetes.kinds import EVENTS
from collector.kubernetes.objects import Metadata, Object, Pod
from collector.kubernetes.references import controller
from collector.kubernetes.snapshot import Snapshot
from collector.systems import Link


@dataclass(frozen=True)
class Ownership:
    """The owners of a pod, nearest first.

    Args:
        chain: What is known of each: kind and name, even where the object is not.
        labels: Their labels; the nearest wins.
        role: The pod's role in its job as ``FORM:VALUE``, e.g. ``ray-group:rollout``.
        environment: Variables that they set for the processes of their job.
    """

    chain: tuple[Link, ...]
    labels: Mapping[str, str]
    role: str | None
    environment: Mapping[str, str]

    @property
    def root(self) -> Link | None:
        """The last known owner; None for a bare pod."""
        return self.chain[-1] if self.chain else None


class Owners:
    """All objects that can own one, by uid and by name."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._by_uid: dict[str, Object] = {}
        self._by_name: dict[tuple[str, str, str | None, str], Object] = {}
        for kind, objects in snapshot.lists.items():
            for item in objects if kind is not EVENTS else ():
                self._add(kind.name, kind.group, item)
        for (name, group), others in snapshot.others.items():
            for item in others:
                self._add(name, group, item)
        self._by_uid.pop("", None)

    def _add(self, kind: str, group: str, item: Object) -> None:
        self._by_uid.setdefault(item.metadata.uid, item)
        place = (kind, group, item.metadata.namespace, item.metadata.name)
        self._by_name.setdefault(place, item)

    def of(self, pod: Pod) -> Ownership:
        """The chain of a pod.

        It follows ``ownerReferences``; an owner that cannot be read still counts by kind and
        name. From there on, and where there is no reference, the labels and annotations that
        systems put on their pods continue it (``collector.systems``).
        """
        marks = systems.Pod(pod.labels, pod.metadata.annotations or {})
        found = list(self._references(pod.metadata))
        whole = not found or found[-1][1] is not None
        if not (found and whole):
            found += self._by_labels([link for link, _ in found], pod, marks)
            whole = bool(found)
        chain = [link for link, _ in found]
        chain += systems.continued(chain, marks, whole=whole)
        labels: dict[str, str] = {}
        environment: dict[str, str] = {}
        for _, owner in found:
            labels = {**(owner.labels if owner else {}), **labels}
            if isinstance(owner, RayJob):
                environment = {**owner.environment, **environment}
        return Ownership(tuple(chain), labels, systems.role(chain, marks), environment)

    def _by_labels(
        self, chain: list[Link], pod: Pod, marks: systems.Pod
    ) -> Iterator[tuple[Link, Object | None]]:
        """Owners that labels name, and those that the last of them refers to."""
        owner: Object | None = None
        for link in systems.continued(chain, marks, whole=False):
            if link.group is None:
                return
            owner = self._named(link, pod)
            yield link, owner
        for above in self._references(owner.metadata) if owner else ():
            if above[0].kind == "Pod":  # a Workload of Kueue refers to the pods of its group
                return
            yield above

    def _references(self, start: Metadata) -> Iterator[tuple[Link, Object | None]]:
        seen: set[str] = set()
        metadata: Metadata | None = start
        while metadata and (reference := controller(metadata)):
            if reference.uid in seen:
                return
            seen.add(reference.uid)
            owner = self._by_uid.get(reference.uid)
            yield Link(reference.kind, reference.name, reference.group), owner
            metadata = owner.metadata if owner else None

    def _named(self, link: Link, pod: Pod) -> Object | None:
        """The object that a label names, unless it is younger than the pod (a re-used name)."""
        place = (link.kind, link.group or "", pod.metadata.namespace, link.name)
        owner = self._by_name.get(place)
        born = owner.metadata.creation_timestamp if owner else None
        if born and pod.metadata.creation_timestamp and born > pod.metadata.creation_timestamp:
            return None
        return owner
