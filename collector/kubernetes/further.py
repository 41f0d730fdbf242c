"""Owners of kinds that are not listed: whatever custom resource a reference names.

Their number is that of jobs, not of pods. A kind is looked up in the server's discovery, which
everybody may read; then a few of its objects are fetched one by one, many as one list. Only
metadata is asked for. Nothing is asked for that no pod's chain needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import msgspec

from collector.cards import choose
from collector.kubernetes.client import EXPIRED, METADATA, METADATA_LIST, Api, ApiError
from collector.kubernetes.decode import BROKEN, document
from collector.kubernetes.demand import effective_request
from collector.kubernetes.discovery import Resource, find, remedy
from collector.kubernetes.kinds import EVENTS, KINDS, PODS, UNREAD
from collector.kubernetes.objects import Metadata, Object, OwnerReference, Pod
from collector.kubernetes.references import askable, controller
from collector.kubernetes.snapshot import Snapshot
from ledger.facts import Gap

SINGLE = 20  # objects of a kind that are fetched one by one; more are listed
PAGES = 200  # pages of a list that is searched for owners
DEPTH = 10  # owners above each other; no system has more than five
_LISTED = {(kind.group, kind.name) for kind in KINDS}
_OBJECT = msgspec.json.Decoder(Object)
Type = tuple[str, str]
"""API version (``group/version``) and kind."""


@dataclass
class _Wanted:
    """Objects of one kind that chains go on at.

    Args:
        by_uid: Namespace of what refers to each, and the reference.
        cards: Whether any pod below them asks for cards.
    """

    by_uid: dict[str, tuple[str | None, OwnerReference]] = field(default_factory=dict)
    cards: bool = False


class _Refused(Exception):
    """A kind that cannot be read, and why."""

    def __init__(self, resource: str, error: ApiError) -> None:
        super().__init__(str(error))
        self.resource = resource
        self.error = error


def read_others(api: Api, found: Snapshot, missing: frozenset[Type], page: int) -> None:
    """Add to a snapshot the owners that its lists refer to and do not hold.

    A kind that may not be read is a gap if pods with cards are below it, else a note: the chain of
    a monitoring agent may end where it does.

    Args:
        api: The server.
        found: The snapshot; ``others``, ``gaps`` and ``notes`` are added to.
        missing: Group and kind of what is listed elsewhere, but that the server does not serve
            under the versions that are asked for.
        page: Objects per request.
    """
    reader = _Reader(api, found, missing, page)
    pods = [pod for pod in found.of(PODS, Pod) if pod.metadata.owner_references]
    for _ in range(DEPTH):
        wanted = reader.wanted(pods)
        if not wanted:
            return
        if not all(reader.read(what, wanted[what]) for what in sorted(wanted)):
            return
    if wanted := reader.wanted(pods):
        kinds = ", ".join(kind for _, kind in sorted(wanted))
        found.notes.append(
            f"more than {DEPTH} owners above each other; chains end at {kinds[:200]}"
        )


def _cards(pod: Pod) -> bool:
    try:
        request: dict[str, Fraction] = effective_request(pod.spec, pod.status)
    except ValueError:
        return False
    return bool(choose(request).units)


class _Reader:
    def __init__(self, api: Api, found: Snapshot, missing: frozenset[Type], page: int) -> None:
        self._api = api
        self._found = found
        self._missing = missing
        self._page = page
        self._known: dict[str, Object] = {
            item.metadata.uid: item
            for kind, items in found.lists.items()
            if kind is not EVENTS
            for item in items
        }
        self._asked: set[str] = set()
        self._resources: dict[Type, Resource | None] = {}
        self._refused: set[Type] = set()

    def wanted(self, pods: Sequence[Pod]) -> dict[Type, _Wanted]:
        """What chains of pods go on at and nobody has asked for yet, by type."""
        wanted: dict[Type, _Wanted] = {}
        for pod in pods:
            namespace, reference = self._end(pod.metadata)
            if reference is None or not self._unlisted(reference):
                continue
            what = (reference.api_version, reference.kind)
            some = wanted.setdefault(what, _Wanted())
            some.by_uid[reference.uid] = (namespace, reference)
            some.cards = some.cards or _cards(pod)
        return wanted

    def _end(self, metadata: Metadata) -> tuple[str | None, OwnerReference | None]:
        """The reference at which a chain ends, and the namespace of what refers; None = whole."""
        passed: set[str] = set()
        while (reference := controller(metadata)) and reference.uid not in passed:
            passed.add(reference.uid)
            owner = self._known.get(reference.uid)
            if owner is None:
                return metadata.namespace, reference
            metadata = owner.metadata
        return None, None

    def _unlisted(self, reference: OwnerReference) -> bool:
        """Whether an object that is not there was not looked for; else it is gone."""
        if not askable(reference) or reference.uid in self._asked:
            return False
        what = (reference.group, reference.kind)
        return what not in UNREAD and (what in self._missing or what not in _LISTED)

    def read(self, what: Type, some: _Wanted) -> bool:
        """Fetch objects of one type; why that cannot be is said once.

        Returns:
            Whether the server still answers.
        """
        self._asked |= some.by_uid.keys()
        if what in self._refused:
            return True
        kept = self._found.others.setdefault((what[1], what[0].rpartition("/")[0]), [])
        try:
            resource = self._resource(what)
            fetch = self._search if len(some.by_uid) > SINGLE else self._one_by_one
            for item in fetch(resource, some) if resource else ():
                kept.append(item)
                self._known[item.metadata.uid] = item
        except _Refused as refused:
            self._refused.add(what)
            self._say(what, some, refused)
            return refused.error.status != 0
        return True

    def _resource(self, what: Type) -> Resource | None:
        """Where a type's objects are; None if the server no longer has it."""
        if what not in self._resources:
            version, kind = what
            try:
                self._resources[what] = find(self._api.told, version, kind)
            except ApiError as error:
                raise _Refused(f"{kind} of {version}", error) from error
        return self._resources[what]

    def _one_by_one(self, resource: Resource, some: _Wanted) -> Iterator[Object]:
        for uid, (namespace, reference) in sorted(some.by_uid.items()):
            path = resource.one(namespace, reference.name)
            try:
                item = _OBJECT.decode(self._api.get(path, accept=METADATA))
            except ApiError as error:
                if error.status == 404:
                    continue  # it is gone; what it owned goes too
                raise _Refused(resource.name, error) from error
            except BROKEN:
                continue
            if item.metadata.uid == uid:
                yield item

    def _search(self, resource: Resource, some: _Wanted) -> Iterator[Object]:
        """The wanted objects of a list, page by page until all are there."""
        left = set(some.by_uid)
        query: dict[str, str | int] = {"limit": self._page}
        for _ in range(PAGES):
            try:
                raw = self._api.get(resource.every, query, METADATA_LIST)
                answer = document(raw)
            except ApiError as error:
                if error.status == EXPIRED and "continue" in query:
                    query = {}  # what was found stays; the rest is sought in one piece
                    continue
                raise _Refused(resource.name, error) from error
            except BROKEN as error:
                raise _Refused(resource.name, ApiError(502, str(error))) from error
            for raw_item in answer.items or ():
                try:
                    item = _OBJECT.decode(raw_item)
                except BROKEN:
                    continue
                if item.metadata.uid in left:
                    left.discard(item.metadata.uid)
                    yield item
            token = answer.metadata.continue_ if answer.metadata else None
            if not left or not token:
                return
            query = {"limit": self._page, "continue": token}

    def _say(self, what: Type, some: _Wanted, refused: _Refused) -> None:
        status = refused.error.status
        text = (
            f"{refused.resource}: {refused.error}; owner chains end at {what[1]} "
            f"({len(some.by_uid)} of them); {remedy(refused.resource, refused.error)}"
        )
        if some.cards:
            reason = "access_denied" if status == 403 else "query_failed"
            self._found.gaps.append(Gap(reason, text))
        else:
            self._found.notes.append(text)
