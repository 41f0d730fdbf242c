"""What a server has: resources by their kind, from discovery, which everybody may read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from collector.kubernetes.client import METADATA_LIST, Api, ApiError
from collector.kubernetes.kinds import OWNERS
from collector.kubernetes.references import is_part
from collector.source import Probe

BLIND = "owner chains end before it"


@dataclass(frozen=True)
class Resource:
    """Where the objects of a kind are.

    Args:
        root: Path of the group's version.
        plural: Name of the resource.
        group: API group, empty for the core.
        namespaced: Whether its objects are in namespaces.
    """

    root: str
    plural: str
    group: str
    namespaced: bool

    @property
    def name(self) -> str:
        """``plural.group``, as kubectl and roles name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def every(self) -> str:
        """Path of the list over all namespaces."""
        return f"{self.root}/{self.plural}"

    def one(self, namespace: str | None, name: str) -> str:
        """Path of an object, whose name ``is_part`` of one."""
        inner = f"namespaces/{namespace}/" if self.namespaced and namespace else ""
        return f"{self.root}/{inner}{self.plural}/{quote(name, safe='')}"


def find(get: Callable[[str], bytes], version: str, kind: str) -> Resource | None:
    """The resource of a kind; None if the server does not have it.

    A reference keeps the version under which it was written. Where that is no longer served, the
    group's other versions are looked at: the object and its uid are the same.

    Args:
        get: Reads a path of the server.
        version: API version, e.g. ``batch/v1``.
        kind: E.g. ``Job``.

    Raises:
        ApiError: The server does not say.
    """
    if found := _in_version(get, version, kind):
        return found
    group = version.rpartition("/")[0]
    others = (one for one in versions(get, group) if one != version) if group else ()
    return next((found for one in others if (found := _in_version(get, one, kind))), None)


def _in_version(get: Callable[[str], bytes], version: str, kind: str) -> Resource | None:
    group = version.rpartition("/")[0]
    root = f"/apis/{version}" if group else f"/api/{version}"
    for one in resources(get, root):
        name = one.get("name")
        if one.get("kind") == kind and isinstance(name, str) and is_part(name):
            return Resource(root, name, group, bool(one.get("namespaced", True)))
    return None


def versions(get: Callable[[str], bytes], group: str) -> list[str]:
    """The versions of a group as ``group/version``, the preferred first; empty if there are none.

    Args:
        get: Reads a path of the server.
        group: API group, not the core.

    Raises:
        ApiError: The server does not say.
    """
    told = (one for one in _items(get("/apis"), "groups") if one.get("name") == group)
    names = [each.get("groupVersion") for one in told for each in _objects(one.get("versions"))]
    return [name for name in names if isinstance(name, str) and name.startswith(f"{group}/")]


def remedy(resource: str, error: ApiError) -> str:
    """What to do about a resource that cannot be read."""
    if error.status == 403:
        return f"grant get and list on {resource} in a ClusterRole"
    return "try again"


def probe_others(api: Api) -> Iterator[Probe]:
    """Ask for one object of each kind of owner that the server has, though no object names one.

    Kinds that are not installed are passed over.
    """
    for group, plural in OWNERS:
        try:
            served = versions(api.told, group)
        except ApiError:
            return
        for version in served:
            try:
                if plural not in {
                    one.get("name") for one in resources(api.told, f"/apis/{version}")
                }:
                    continue
                api.get(f"/apis/{version}/{plural}", {"limit": 1}, METADATA_LIST)
            except ApiError as error:
                text = f"{plural}.{group}: {error}; {remedy(f'{plural}.{group}', error)}"
                yield Probe(f"list {plural}.{group}", False, text, BLIND)
            else:
                yield Probe(f"list {plural}.{group}", True, "can be listed")
            break


def resources(get: Callable[[str], bytes], root: str) -> list[dict[str, Any]]:
    """What a group's version has; empty if the server does not serve it.

    Args:
        get: Reads a path of the server.
        root: Path of the group's version.

    Raises:
        ApiError: The server does not say, or talks nonsense.
    """
    try:
        return _items(get(root), "resources")
    except ApiError as error:
        if error.status == 404:
            return []
        raise


def _items(raw: bytes, key: str) -> list[dict[str, Any]]:
    """A list of objects in an answer.

    Raises:
        ApiError: It holds no list.
    """
    try:
        found = json.loads(raw)[key]
    except (ValueError, LookupError, TypeError, RecursionError):
        found = ()
    if found is not None and not isinstance(found, list):
        raise ApiError(502, f"the server's discovery tells no {key}")
    return _objects(found)


def _objects(found: object) -> list[dict[str, Any]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
