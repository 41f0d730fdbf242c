"""What a reader of a cluster hands over: decoded objects by kind, and what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar

from collector.kubernetes.kinds import Kind
from collector.kubernetes.objects import Object
from collector.kubernetes.rejects import Rejects
from collector.source import Probe
from ledger.facts import Gap

T = TypeVar("T", bound=Object)


@dataclass
class Snapshot:
    """The objects of a cluster at one moment.

    Args:
        lists: Objects per kind, unique by uid. A kind that could not be listed is absent; one
            that is not installed is present and empty.
        others: Owners of kinds that are not listed, by kind and API group.
        taken_at: The moment by the API server's clock; None for dumps, which carry none.
        gaps: Kinds that could not be read.
        rejects: Objects and files put aside so far; the collector adds to it.
        notes: What a reader should know.
    """

    lists: dict[Kind, list[Object]] = field(default_factory=dict)
    others: dict[tuple[str, str], list[Object]] = field(default_factory=dict)
    taken_at: datetime | None = None
    gaps: list[Gap] = field(default_factory=list)
    rejects: Rejects = field(default_factory=Rejects)
    notes: list[str] = field(default_factory=list)

    def of(self, kind: Kind, form: type[T]) -> list[T]:
        """The objects of a kind; empty if it could not be listed."""
        return [item for item in self.lists.get(kind, ()) if isinstance(item, form)]


class Reader(Protocol):
    """One way to the objects of a cluster: the API, or dumps of it."""

    def read(self) -> Snapshot:
        """Read everything.

        Raises:
            SourceError, AccessError, BadInputError: Nothing useful can be read.
        """
        ...

    def probe(self) -> Sequence[Probe]:
        """Try each need once, cheaply."""
        ...


def newest(objects: Sequence[Object]) -> list[Object]:
    """One object per uid: the highest resourceVersion, the first among equals; sorted by uid.

    An object without a uid is told apart by namespace and name.
    """
    best: dict[str, Object] = {}
    for item in objects:
        key = item.metadata.uid or f"{item.metadata.namespace}/{item.metadata.name}"
        if key not in best or _version(item) > _version(best[key]):
            best[key] = item
    return [best[key] for key in sorted(best)]


def _version(item: Object) -> int:
    # Opaque by contract, but every server counts upwards; anything else is the oldest.
    text = item.metadata.resource_version or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 40 else -1
