"""Reads the objects of a cluster from `kubectl get -o json` output.

A dump is a file, or a folder of ``*.json`` and ``*.json.gz`` at any depth. A file holds a ``List``
(also ``PodList`` and kin), single objects, or several such documents one after the other.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from collector.folders import walk
from collector.kubernetes.decode import BROKEN, decode, document, head, rest
from collector.kubernetes.kinds import KINDS, NODES, PODS, UNREAD, Kind
from collector.kubernetes.objects import Document, Object
from collector.kubernetes.rejects import Rejected, Rejects
from collector.kubernetes.snapshot import Snapshot, newest
from collector.source import Probe
from collector.unpack import GZIP, TooLargeError, unpack
from ledger.errors import BadInputError, RunbillError, SourceError
from ledger.facts import Gap

_BY_NAME = {(kind.group, kind.name): kind for kind in KINDS}
LARGEST = 2 << 30  # bytes of an unpacked file, held in memory
NOTE = (
    "a dump carries no time of its own: what runs or stands in it is taken to go on until the "
    "end of the window"
)
_WHOLE_FILE = ("bad_json", "not_kubernetes", "too_large", "truncated", "unreadable")
"""Reasons why a file, and not one object in it, was put aside."""


@dataclass
class _Content:
    """The objects of one file; kept only if the whole file could be read."""

    objects: dict[Kind, list[Object]] = field(default_factory=dict)
    others: dict[tuple[str, str], list[Object]] = field(default_factory=dict)
    rejected: list[tuple[str, Rejected]] = field(default_factory=list)
    documents: int = 0


@dataclass(frozen=True)
class DumpReader:
    """Dumps as a reader.

    Args:
        path: A file or a folder.
    """

    path: Path

    def read(self) -> Snapshot:
        """Read every file; one that is broken is put aside whole.

        Raises:
            SourceError: There is nothing at the path.
            BadInputError: No file holds a Kubernetes object.
        """
        found = Snapshot(notes=[NOTE])
        lists: dict[Kind, list[Object]] = {}
        readable = 0
        for file in self._files(found.rejects):
            content = self._content(file, found.rejects)
            if content is None:
                continue
            readable += 1
            for kind, objects in content.objects.items():
                lists.setdefault(kind, []).extend(objects)
            for other, objects in content.others.items():
                found.others.setdefault(other, []).extend(objects)
            for where, rejected in content.rejected:
                found.rejects.add(rejected.reason, where, rejected.detail)
        if not readable:
            raise BadInputError(
                f"{self.path} holds no Kubernetes objects{_why(found.rejects)}",
                "write it with `kubectl get pods,nodes,... -A -o json`",
            )
        found.lists = {kind: newest(objects) for kind, objects in lists.items()}
        found.gaps = [_gap(kind, self.path) for kind in (PODS, NODES) if kind not in lists]
        return found

    def probe(self) -> Sequence[Probe]:
        """Read the dumps and say what they hold."""
        try:
            found = self.read()
        except RunbillError as error:
            need = f"read {self.path}"
            return [Probe(need, False, str(error), PODS.blind, failure=type(error))]
        unread = [
            Probe(f"read {entry.where}", False, f"{entry.reason}: {entry.example}", "what it holds")
            for entry in found.rejects.entries()
            if entry.reason in _WHOLE_FILE
        ]
        return unread + [
            Probe(
                f"{kind.plural} in {self.path}",
                kind in found.lists,
                f"{len(found.lists.get(kind, ()))} found",
                "" if kind in found.lists else kind.blind,
            )
            for kind in KINDS
            if kind in found.lists or kind in (PODS, NODES)
        ]

    def _files(self, rejects: Rejects) -> list[Path]:
        if self.path.is_dir():
            every, barred = walk(self.path)
            for folder in barred:
                rejects.add(
                    "unreadable", self._short(folder), "not allowed, or a name that is no UTF-8"
                )
            files = [file for file in every if file.name.endswith((".json", ".json.gz"))]
            if not files and not barred:
                raise SourceError(
                    f"no .json or .json.gz file in {self.path}",
                    "point `dump` at the folder of the kubectl output",
                )
            return files
        if not self.path.is_file():
            raise SourceError(f"no dump at {self.path}", "check `dump` in the settings")
        return [self.path]

    def _short(self, path: Path) -> str:
        return path.name if path == self.path else path.relative_to(self.path).as_posix()

    def _content(self, file: Path, rejects: Rejects) -> _Content | None:
        where = self._short(file)
        try:
            content = _parse(_bytes(file))
        except TooLargeError as error:
            rejects.add("too_large", where, error.message)
        except BadInputError as error:
            rejects.add("truncated", where, error.message)
        except OSError as error:
            rejects.add("unreadable", where, error.strerror or str(error))
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            rejects.add("bad_json", where, str(error)[:200])
        else:
            if content.documents:
                return content
            rejects.add("not_kubernetes", where, "no document with a kind and an apiVersion")
        return None


def _bytes(file: Path) -> bytes:
    """The content of a file, unpacked; it is decoded in memory, so not without a limit.

    Raises:
        BadInputError: It is a gzip archive that is cut, damaged or too large.
    """
    with file.open("rb") as stream:
        if stream.read(len(GZIP)) != GZIP:
            stream.seek(0)
            return stream.read()
    content = io.BytesIO()
    unpack(file, content, LARGEST, file.name)
    return content.getvalue()


def _parse(data: bytes) -> _Content:
    content = _Content()
    for raw in _documents(data):
        envelope = document(raw)
        if envelope.kind and envelope.api_version:
            content.documents += 1
            _take(envelope, raw, content)
    return content


def _documents(data: bytes) -> Iterator[bytes]:
    """The JSON documents of a file: nearly always one, else found one after the other."""
    try:
        document(data)
    except BROKEN:
        pass
    else:
        yield data
        return
    text, position = data.decode("utf-8-sig"), 0
    scanner = json.JSONDecoder()
    while (position := _skip_blanks(text, position)) < len(text):
        _, end = scanner.raw_decode(text, position)
        yield text[position:end].encode()
        position = end


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _take(envelope: Document, raw: bytes, content: _Content) -> None:
    """Sort a document's objects by kind; of kinds that are not read, owners by their metadata."""
    if not envelope.kind.endswith("List"):
        _add(envelope.kind, envelope.api_version, raw, content)
        return
    # A typed list (PodList) names the kind of its items; a plain List leaves it to them.
    kind, version = envelope.kind.removesuffix("List"), envelope.api_version
    if known := _known(kind, version):
        content.objects.setdefault(known, [])
    for item in envelope.items or ():
        try:
            own, its = head(item)
        except Rejected as rejected:
            content.rejected.append((known.resource if known else "objects", rejected))
            continue
        _add(own or kind, its or version, bytes(item), content)


def _known(name: str, api_version: str) -> Kind | None:
    group = api_version.rpartition("/")[0]
    return _BY_NAME.get((group, name))


def _add(name: str, api_version: str, raw: bytes, content: _Content) -> None:
    kind = _known(name, api_version)
    if kind is None:
        _keep_other(name, api_version.rpartition("/")[0], raw, content)
        return
    try:
        content.objects.setdefault(kind, []).append(decode(kind, raw))
    except Rejected as rejected:
        content.rejected.append((kind.resource, rejected))
        content.objects.setdefault(kind, []).extend(rest(kind, raw))


def _keep_other(name: str, group: str, raw: bytes, content: _Content) -> None:
    """An object of a kind that is not read may own others: its metadata is enough."""
    if (group, name) in UNREAD:
        return
    with contextlib.suppress(*BROKEN):
        item = msgspec.json.decode(raw, type=Object)
        item.metadata.annotations = None
        content.others.setdefault((name, group), []).append(item)


def _gap(kind: Kind, path: Path) -> Gap:
    return Gap("not_in_dump", f"{kind.plural} are not in {path.name}; blind: {kind.blind}")


def _why(rejects: Rejects) -> str:
    first = next(iter(rejects.entries()), None)
    return f": {first.where}: {first.example}" if first else ""
