"""From bytes to objects, one at a time, so that a broken one costs only itself."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from collector.kubernetes.kinds import Kind
from collector.kubernetes.objects import Document, Object, Part
from collector.kubernetes.rejects import Rejected


class _Head(Part):
    """What says of which kind an item of a list is."""

    kind: str = ""
    api_version: str = ""


class _Name(msgspec.Struct):
    name: str = ""
    namespace: str | None = None


class _Named(msgspec.Struct):
    """As little of an object as names it, for a message about one that is broken elsewhere."""

    metadata: _Name


BROKEN = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding raises: no JSON, JSON of another form, or lists in lists without end."""
_DOCUMENT = msgspec.json.Decoder(Document)
_HEADS = msgspec.json.Decoder(_Head)
_NAMES = msgspec.json.Decoder(_Named)


@lru_cache
def _decoder(form: type[Object]) -> msgspec.json.Decoder[Object]:
    return msgspec.json.Decoder(form)


def document(raw: bytes | msgspec.Raw) -> Document:
    """The envelope of a list or object.

    Raises:
        BROKEN: It is no JSON, or no Kubernetes object.
    """
    return _DOCUMENT.decode(raw)


def head(raw: bytes | msgspec.Raw) -> tuple[str, str]:
    """Kind and API version of an item of a list, empty where it leaves them to the list.

    Raises:
        Rejected: ``bad_object``: it is no Kubernetes object.
    """
    try:
        found = _HEADS.decode(raw)
    except BROKEN as error:
        raise Rejected("bad_object", f"an item of a list: {error}") from None
    return found.kind, found.api_version


def decode(kind: Kind, raw: bytes | msgspec.Raw) -> Object:
    """One object of a kind.

    Raises:
        Rejected: ``bad_object`` if its form is not that of the kind, ``no_uid`` for a pod without.
    """
    try:
        found = _decoder(kind.form).decode(raw)
    except BROKEN as error:
        raise Rejected("bad_object", f"{kind.name} {_name(raw)}: {error}") from None
    if kind.name == "Pod" and not found.metadata.uid:
        raise Rejected("no_uid", found.place)
    return found


def rest(kind: Kind, raw: bytes | msgspec.Raw) -> list[Object]:
    """What is left of an object that ``decode`` rejects: an owner, by its metadata alone.

    A version that writes its status in another way costs its state, not the names of its pods.
    """
    if kind.name == "Pod" or kind.form is Object:
        return []
    try:
        return [_decoder(Object).decode(raw)]
    except BROKEN:
        return []


def _name(raw: bytes | msgspec.Raw) -> str:
    try:
        found = _NAMES.decode(raw).metadata
        return f"{found.namespace}/{found.name}" if found.namespace else found.name
    except BROKEN:
        return "without readable metadata"
