"""Times and conditions of custom resources, read so that an odd one costs only itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from collector.kubernetes.objects import Condition, Metadata, Object
from collector.kubernetes.references import controller
from collector.kubernetes.rejects import Rejected, Rejects
from collector.kubernetes.times import moment

Configuration = dict[str, Any]


@dataclass
class Clock:
    """Reads the times of one object.

    Args:
        now: The present of the API server; None if unknown (a dump).
        rejects: Where a time that cannot be true is counted.
        place: Kind and name of the object, for a reader.
    """

    now: datetime | None
    rejects: Rejects
    place: str

    def read(self, text: str | None) -> str | None:
        """A time as RFC 3339 text in UTC; None where there is none, or none to believe."""
        try:
            found = moment(text, self.now)
        except Rejected as rejected:
            self.rejects.add(rejected.reason, "resources", f"{self.place}: {rejected.detail}")
            return None
        return f"{found:%Y-%m-%dT%H:%M:%SZ}" if found else None


def plain(part: msgspec.Struct | None) -> Configuration:
    """A part as JSON data, without what it does not say."""
    data: Configuration = {} if part is None else msgspec.to_builtins(part)
    return known(data)


def true(conditions: Iterable[Condition] | None, *types: str) -> Condition | None:
    """The first of the types whose condition is true."""
    held = {item.type: item for item in conditions or () if item.status == "True"}
    return next((held[kind] for kind in types if kind in held), None)


def since(
    conditions: Iterable[Condition] | None, clock: Clock, kinds: Collection[str] = ()
) -> Configuration:
    """The conditions that are true, each with the time since when."""
    return {
        item.type: clock.read(item.last_transition_time)
        for item in conditions or ()
        if item.status == "True" and (not kinds or item.type in kinds)
    }


def owner(metadata: Metadata) -> Configuration | None:
    """Kind and name of the object that controls this one; None: nobody does."""
    found = controller(metadata)
    return {"kind": found.kind, "name": found.name, "uid": found.uid} if found else None


def known(data: Configuration) -> Configuration:
    """What is told, without what is not."""
    return {key: value for key, value in data.items() if value is not None}


def common(item: Object, clock: Clock) -> Configuration:
    """What is said of each job and cluster: since when it is wanted, and by whom."""
    meta = item.metadata
    said: Configuration = {
        "submittedAt": clock.read(meta.creation_timestamp),
        "deletingSince": clock.read(meta.deletion_timestamp),
        "owner": owner(meta),
        "queue": item.labels.get("kueue.x-k8s.io/queue-name"),
    }
    return {key: value for key, value in said.items() if value is not None or key == "owner"}
