"""References to owners: which one counts, and which ones may be followed."""

from __future__ import annotations

import re

from collector.kubernetes.objects import Metadata, OwnerReference

_VERSION = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z]([-a-z0-9]*[a-z0-9])?")


def controller(metadata: Metadata) -> OwnerReference | None:
    """The reference to what controls an object, else its first one; None if it has none.

    A node "owns" the pods that its kubelet runs from files. It is no workload.
    """
    references = [item for item in metadata.owner_references or () if not _node(item)]
    return next((item for item in references if item.controller), next(iter(references), None))


def askable(reference: OwnerReference) -> bool:
    """Whether an owner can be asked for: whoever makes a pod writes here what he likes.

    A name that is no part of a path, such as ``../../secrets/s``, would lead elsewhere.
    """
    return bool(reference.uid and _VERSION.fullmatch(reference.api_version)) and is_part(
        reference.name
    )


def is_part(name: str) -> bool:
    """Whether a name may be a part of a path: what the API itself demands of names."""
    return name not in ("", ".", "..") and "/" not in name and "%" not in name


def _node(reference: OwnerReference) -> bool:
    return reference.kind == "Node" and not reference.group
