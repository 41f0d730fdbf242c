"""Who owns a pod that has just appeared: its owners are fetched one by one, each once.

A job that is gone in a minute leaves its pods without a name; here it is asked while it is there.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from collector.agent.connection import WatchApi
from collector.kubernetes.client import JSON, METADATA, ApiError
from collector.kubernetes.decode import BROKEN
from collector.kubernetes.discovery import Resource, find
from collector.kubernetes.job_objects import RayJob
from collector.kubernetes.kinds import UNREAD
from collector.kubernetes.objects import Object, OwnerReference, Pod
from collector.kubernetes.owners import Owners, Ownership
from collector.kubernetes.references import askable, controller
from collector.kubernetes.snapshot import Snapshot

DEPTH = 10
LIMIT = 10_000
"""Owners that are kept; the ones that were asked for longest ago go first."""
FRESH = timedelta(minutes=10)
"""How long an owner's labels are taken for what they were."""
_RAY_JOB = ("ray.io", "RayJob")
_OBJECT = msgspec.json.Decoder(Object)
_JOB = msgspec.json.Decoder(RayJob)


class Lineage:
    """The owners of pods.

    Args:
        api: The server.
        now: What time it is.
    """

    def __init__(self, api: WatchApi, now: Callable[[], datetime]) -> None:
        self._api = api
        self._now = now
        self._known: dict[str, tuple[datetime, Object | None]] = {}
        self._places: dict[tuple[str, str], tuple[datetime, Resource | None]] = {}
        self._refused: dict[tuple[str, str], datetime] = {}

    def __call__(self, pod: Pod) -> Ownership:
        """The owners of a pod, as far as they can be read."""
        chain: dict[tuple[str, str], list[Object]] = {}
        metadata = pod.metadata
        for _ in range(DEPTH):
            reference = controller(metadata)
            owner = self._owner(metadata.namespace, reference) if reference else None
            if reference is None or owner is None:
                break
            chain.setdefault((reference.kind, reference.group), []).append(owner)
            metadata = owner.metadata
        return Owners(Snapshot(others=chain)).of(pod)

    def _owner(self, namespace: str | None, reference: OwnerReference) -> Object | None:
        uid, what = reference.uid, (reference.group, reference.kind)
        if not askable(reference) or what in UNREAD:
            return None
        now = self._now()
        known = self._known.pop(uid, None)
        if known is None or now - known[0] > FRESH:
            try:
                found = self._fetch(namespace, reference)
            except ApiError as error:
                if error.status in (401, 403):
                    self._refused[what] = now
                return self._keep(uid, known)
            # One that is gone stays what it was.
            known = (now, found or (known[1] if known else None))
        return self._keep(uid, known)

    def _keep(self, uid: str, known: tuple[datetime, Object | None] | None) -> Object | None:
        if known is None:
            return None
        self._known[uid] = known
        while len(self._known) > LIMIT:
            del self._known[next(iter(self._known))]
        return known[1]

    def _fetch(self, namespace: str | None, reference: OwnerReference) -> Object | None:
        """The owner; None if it is not there.

        Raises:
            ApiError: It cannot be read.
        """
        what = (reference.group, reference.kind)
        refused = self._refused.get(what)
        if refused and self._now() - refused < FRESH:
            raise ApiError(0, "refused a moment ago")
        place = self._place(reference.api_version, reference.kind)
        if place is None:
            return None
        try:
            path = place.one(namespace, reference.name)
            raw = self._api.once(path, JSON if what == _RAY_JOB else METADATA)
            found = (_JOB if what == _RAY_JOB else _OBJECT).decode(raw)
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        except BROKEN:
            return None
        return found if found.metadata.uid == reference.uid else None

    def _place(self, version: str, kind: str) -> Resource | None:
        """Where objects of a kind are; None if the server does not serve it."""
        known = self._places.get((version, kind))
        if known and (known[1] or self._now() - known[0] < FRESH):
            return known[1]
        found = find(self._api.once, version, kind)
        self._places[version, kind] = (self._now(), found)
        return found
