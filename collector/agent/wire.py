"""What a list page, a line of a watch and a status look like on the wire."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from collector.kubernetes import kinds
from collector.kubernetes.objects import Metadata, Node, Object, Part, Pod


class ManagedField(Part):
    """``metadata.managedFields[]``: when a writer last changed what it owns of an object."""

    time: str | None = None
    subresource: str | None = None


class WatchedMetadata(Metadata):
    """``metadata`` with the times of its changes; a watch itself tells none."""

    managed_fields: list[ManagedField] | None = None


class WatchedPod(Pod):
    """A pod of a watch."""

    metadata: WatchedMetadata = msgspec.field(default_factory=WatchedMetadata)


class WatchedNode(Node):
    """A node of a watch."""

    metadata: WatchedMetadata = msgspec.field(default_factory=WatchedMetadata)


class ListMeta(Part):
    """``metadata`` of a list."""

    resource_version: str = ""
    continue_: str | None = msgspec.field(default=None, name="continue")


class Page(Part):
    """One page of a list; its items are not yet decoded."""

    metadata: ListMeta
    items: list[msgspec.Raw] | None = None


class Line(Part):
    """One line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, and the object."""

    type: str
    object: msgspec.Raw


class Version(Part):
    """``metadata`` of an object that cannot be read otherwise."""

    resource_version: str | None = None


class Versioned(Part):
    """As little of an object as places it in its stream."""

    metadata: Version = msgspec.field(default_factory=Version)


class Status(Part):
    """The object of an ERROR."""

    code: int = 0
    reason: str | None = None
    message: str | None = None


PAGE = msgspec.json.Decoder(Page)
LINE = msgspec.json.Decoder(Line)
VERSIONED = msgspec.json.Decoder(Versioned)
STATUS = msgspec.json.Decoder(Status)

PODS = replace(kinds.PODS, form=WatchedPod)
NODES = replace(kinds.NODES, form=WatchedNode)
EVENTS = kinds.EVENTS


def changed_texts(item: Object) -> list[str]:
    """The times at which writers changed an object, other than its status; as given."""
    if not isinstance(item.metadata, WatchedMetadata):
        return []
    fields = item.metadata.managed_fields or ()
    return [field.time for field in fields if field.time and not field.subresource]
