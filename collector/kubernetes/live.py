"""Reads the objects of a live cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from collector.kubernetes.client import EXPIRED, Api, ApiError
from collector.kubernetes.decode import BROKEN, decode, document, rest
from collector.kubernetes.discovery import probe_others, remedy, resources, versions
from collector.kubernetes.further import read_others
from collector.kubernetes.kinds import KINDS, PODS, Kind
from collector.kubernetes.objects import Object
from collector.kubernetes.rejects import Rejected, Rejects
from collector.kubernetes.snapshot import Snapshot, newest
from collector.source import Probe
from ledger.errors import AccessError, SourceError
from ledger.facts import Gap
from ledger.settings import KubernetesSource

PAGE = 500
# A list that expires this often while it is paged is read in one piece.
RESTARTS = 2


@dataclass
class _Listing:
    """What one list call brought: replaced whole when a list starts again."""

    objects: list[Object] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    served: bool = True


@dataclass(frozen=True)
class LiveReader:
    """The API server as a reader.

    Args:
        source: The settings' block.
        base: Folder that a relative kubeconfig path refers to.
        page: Objects per request.
    """

    source: KubernetesSource
    base: Path
    page: int = PAGE

    def read(self) -> Snapshot:
        """List every kind; pods first, as nothing is known without them.

        Raises:
            AccessError: The server refuses us, or refuses pods.
            SourceError: It cannot be reached, or pods cannot be listed.
        """
        with Api(self.source, self.base) as api:
            return self._read(api)

    def _read(self, api: Api) -> Snapshot:
        found = Snapshot()
        unserved: set[tuple[str, str]] = set()
        for kind in KINDS:
            try:
                listing = self._list(api, kind)
            except ApiError as error:
                _must_go_on(kind, error)
                if _spared(kind, error):
                    found.notes.append(
                        f"{kind.resource} cannot be listed; blind: {kind.blind}; "
                        f"{_remedy(kind, error)}"
                    )
                else:
                    found.gaps.append(_gap(kind, error))
                continue
            found.taken_at = found.taken_at or api.clock
            found.lists[kind] = newest(listing.objects)
            _tally(found.rejects, kind, listing)
            if not listing.served:
                unserved.add((kind.group, kind.name))
        read_others(api, found, frozenset(unserved), self.page)
        return found

    def probe(self) -> Sequence[Probe]:
        """Ask for one object of each kind.

        Raises:
            SourceError: The kubeconfig cannot be used.
        """
        with Api(self.source, self.base) as api:
            return self._probe(api)

    def _probe(self, api: Api) -> list[Probe]:
        probes: list[Probe] = []
        for kind in KINDS:
            try:
                _take(kind, *self._find(api, kind, 1), _Listing())
            except ApiError as error:
                blind = "" if _spared(kind, error) else kind.blind
                detail = "not installed" if _missing(kind, error) else _advice(kind, error)
                failure = _failure(kind, error)
                probes.append(
                    Probe(f"list {kind.resource}", not blind, detail, blind, failure=failure)
                )
                if error.status == 0:
                    return probes
            else:
                probes.append(Probe(f"list {kind.resource}", True, "can be listed"))
        return [*probes, *probe_others(api)]

    def _list(self, api: Api, kind: Kind) -> _Listing:
        try:
            return self._whole(api, kind)
        except ApiError as error:
            if _missing(kind, error):
                return _Listing(served=False)
            raise

    def _whole(self, api: Api, kind: Kind) -> _Listing:
        """A consistent list: one that expires half-way is thrown away and read again."""
        for _ in range(RESTARTS):
            try:
                return self._pages(api, kind, self.page)
            except ApiError as error:
                if error.status != EXPIRED:
                    raise
        return self._pages(api, kind, None)

    def _pages(self, api: Api, kind: Kind, limit: int | None) -> _Listing:
        listing = _Listing()
        path, raw = self._find(api, kind, limit)
        passed: set[str] = set()
        while True:
            token = _take(kind, path, raw, listing)
            if not token:
                return listing
            if token in passed:
                raise ApiError(502, f"{path} goes round in a circle")
            passed.add(token)
            query: dict[str, str | int] = {"limit": limit or self.page, "continue": token}
            query |= {"fieldSelector": kind.fields} if kind.fields else {}
            raw = api.get(path, query, kind.accept)

    def _find(self, api: Api, kind: Kind, limit: int | None) -> tuple[str, bytes]:
        """The first page, and the path (the version) that serves it."""
        query: dict[str, str | int] = {} if limit is None else {"limit": limit}
        if kind.fields:
            query["fieldSelector"] = kind.fields
        refused: ApiError | None = None
        for root, path in self._places(api, kind):
            try:
                return path, api.get(path, query, kind.accept)
            except ApiError as error:
                # A server answers 403 before it looks whether a kind exists at all.
                unknown = error.status == 403 and kind.custom and not _served(api, root, kind)
                refused = ApiError(404, str(error)) if unknown else error
                if refused.status != 404:
                    raise
        raise refused or ApiError(404, f"{kind.resource} is not served")

    @staticmethod
    def _places(api: Api, kind: Kind) -> Iterator[tuple[str, str]]:
        """Roots and paths under which a kind may be: known versions, then those of its group."""
        yield from zip(kind.roots, kind.paths, strict=True)
        if "." not in kind.group:
            return
        try:
            others = [f"/apis/{one}" for one in versions(api.told, kind.group)]
        except ApiError:
            return
        yield from ((root, f"{root}/{kind.plural}") for root in others if root not in kind.roots)


def _take(kind: Kind, path: str, raw: bytes, listing: _Listing) -> str | None:
    """Decode one page into the listing; the token of the next one."""
    try:
        page = document(raw)
    except BROKEN as error:
        raise ApiError(502, f"{path} answered no list: {error}") from error
    for item in page.items or ():
        try:
            listing.objects.append(decode(kind, item))
        except Rejected as rejected:
            listing.rejected.append(rejected)
            listing.objects += rest(kind, item)
    return page.metadata.continue_ if page.metadata else None


def _served(api: Api, root: str, kind: Kind) -> bool:
    """Whether the server has the kind, by its discovery, which everybody may read."""
    try:
        return any(one.get("name") == kind.plural for one in resources(api.told, root))
    except ApiError:
        return True


def _missing(kind: Kind, error: ApiError) -> bool:
    return kind.custom and error.status == 404


def _spared(kind: Kind, error: ApiError) -> bool:
    """Whether doing without the kind is no fault."""
    return _missing(kind, error) or (kind.optional and error.status == 403)


def _failure(kind: Kind, error: ApiError) -> type[SourceError] | None:
    """What makes reading the rest pointless: nobody is known without pods.

    Another kind may be refused to a stranger too, by a server behind this one (an aggregated API).
    """
    if kind is PODS:
        return AccessError if error.status in (401, 403) else SourceError
    return None


def _must_go_on(kind: Kind, error: ApiError) -> None:
    """Raise what makes reading the rest pointless."""
    wrong = _failure(kind, error)
    if wrong and error.status == 401:
        raise wrong(
            f"the API server does not know us: {error}",
            "log in again, or renew the token of the kubeconfig",
        ) from error
    if wrong:
        raise wrong(f"pods cannot be listed: {error}", _remedy(kind, error)) from error


def _remedy(kind: Kind, error: ApiError) -> str:
    if error.status == 403 and kind.only:
        namespace, name = kind.only
        return f"grant get and list on {kind.resource} named {name} in a Role of {namespace}"
    if error.status == 401:
        return "renew the login, or ask who serves it why it knows us not"
    if error.status == 0:
        return "is the server up and the address right?"
    return remedy(kind.resource, error)


def _advice(kind: Kind, error: ApiError) -> str:
    return f"{kind.resource}: {error}; {_remedy(kind, error)}"


def _gap(kind: Kind, error: ApiError) -> Gap:
    return Gap(
        "access_denied" if error.status in (401, 403) else "query_failed", _advice(kind, error)
    )


def _tally(rejects: Rejects, kind: Kind, listing: _Listing) -> None:
    for rejected in listing.rejected:
        rejects.add(rejected.reason, kind.resource, rejected.detail)
