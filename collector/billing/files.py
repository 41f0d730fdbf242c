"""Where the files of a bill lie: a file, a folder (at any depth) or a glob; local or ``s3://``.

Every file is handed on as a local one: objects are downloaded and gzip is unpacked into a working
folder, in pieces, so that memory does not grow with the file and a cut archive is found before a
single row of it counts.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from collector.billing.s3 import Bucket, is_s3
from collector.folders import readable, walk
from collector.unpack import GZIP, unpack
from ledger.errors import AccessError, BadInputError, SourceError
from ledger.text import holds_credentials, without_credentials

DATA_ENDINGS = (".csv", ".csv.gz", ".csv.gzip", ".parquet", ".parq")
_GLOB = frozenset("*?[")
_PARQUET = b"PAR1"
LARGEST = 8 << 30  # bytes of an unpacked file: what a temporary disk can be asked to hold


@dataclass(frozen=True)
class Listing:
    """What stands at a path.

    Args:
        files: Files to read.
        ignored: Files that are no bill (manifests, notes, ...).
        barred: Folders that may not be looked into, and files whose names are no UTF-8.
    """

    files: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    barred: tuple[str, ...] = ()


@dataclass(frozen=True)
class LocalFile:
    """A file on this machine, unpacked.

    Args:
        where: Path or URL by which the user knows it.
        path: Where its unpacked bytes lie.
        parquet: Whether it is Parquet; else it is CSV.
    """

    where: str
    path: Path
    parquet: bool

    def digest(self) -> str:
        """Hash of the unpacked content: equal for one export delivered twice."""
        with self.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()


def find(path: str, endings: tuple[str, ...] = DATA_ENDINGS) -> Listing:
    """List the files of a bill, in the order of their names.

    Args:
        path: File, folder or glob; local or ``s3://bucket/key``.
        endings: What names of its files end with.

    Raises:
        SourceError: Nothing is there, or the store cannot be reached.
        AccessError: The store or the file system refuses.
        BadInputError: The path is none that a bill may have.
    """
    if holds_credentials(path):
        raise BadInputError(
            f"the bill path {without_credentials(path)} holds credentials",
            "name them in the environment, e.g. AWS_ACCESS_KEY_ID, or use a role",
        )
    barred: list[str] = []
    if is_s3(path):
        names, single = Bucket(path).find(path, endings)
    elif "://" in path:
        raise BadInputError(f"the bill path {path!r} is neither local nor s3://")
    else:
        names, single = _find_local(path, barred, endings)
    if not names and not barred:
        raise SourceError(f"no file of the bill at {path}", "check `path` of the billing block")
    return Listing(tuple(names)) if single else _sorted_out(names, barred, endings)


def is_glob(path: str) -> bool:
    """Whether a path holds a wildcard."""
    return not _GLOB.isdisjoint(path)


def _find_local(path: str, barred: list[str], endings: tuple[str, ...]) -> tuple[list[str], bool]:
    """The files at a path, and whether it is one file; unreadable folders go to ``barred``."""
    place = Path(path)
    try:
        if place.is_file():
            return [path], True
        if place.is_dir():
            os.listdir(place)  # the folder itself: nothing at all could be read
            return _below(place, barred), False
    except PermissionError as error:
        raise AccessError(f"may not read {path}", str(error.strerror)) from error
    if not is_glob(path):
        return [], False
    hits = [Path(hit) for hit in glob.glob(path, recursive=True)]
    files = {str(hit) for hit in hits if hit.is_file() and hit == readable(hit)}
    barred += (str(readable(hit)) for hit in hits if hit != readable(hit))
    for hit in hits:  # Spark and its like write a folder named as a file
        if hit.name.lower().endswith(endings) and hit.is_dir():
            files.update(_below(hit, barred))
    return sorted(files), False


def _below(folder: Path, barred: list[str]) -> list[str]:
    files, unreadable = walk(folder)
    barred.extend(map(str, unreadable))
    return list(map(str, files))


def _sorted_out(names: Iterable[str], barred: Iterable[str], endings: tuple[str, ...]) -> Listing:
    def is_data(name: str) -> bool:
        base = name.rsplit("/", 1)[-1].lower()
        return base.endswith(endings) and not base.startswith(".")

    names = sorted(names)
    return Listing(
        tuple(name for name in names if is_data(name)),
        tuple(name for name in names if not is_data(name)),
        tuple(sorted(set(barred))),
    )


def fetch(where: str, folder: Path) -> LocalFile:
    """Bring a file to this machine and unpack it.

    Args:
        where: A name from ``find``.
        folder: Empty working folder; may be deleted once the file is read.

    Raises:
        BadInputError: The file is empty, or a gzip archive that is cut, damaged or too large.
        SourceError: It cannot be read.
    """
    path = Path(where)
    try:
        if is_s3(where):
            path = folder / "download"
            Bucket(where).download(where, path)
        with path.open("rb") as stream:
            magic = stream.read(4)
        if not magic:
            raise BadInputError(f"{where} is empty (0 bytes)")
        if magic.startswith(GZIP):
            path = _unpack(where, path, folder / "unpacked")
            with path.open("rb") as stream:
                magic = stream.read(4)
    except PermissionError as error:
        raise AccessError(f"may not read {where}", str(error.strerror)) from error
    except FileNotFoundError as error:
        hint = "is its name UTF-8? then it has gone meanwhile" if "\ufffd" in where else None
        raise SourceError(f"{where} cannot be found", hint) from error
    except OSError as error:
        raise SourceError(f"{where} cannot be read: {error}") from error
    return LocalFile(where, path, magic == _PARQUET)


def _unpack(where: str, packed: Path, target: Path) -> Path:
    with target.open("wb") as sink:
        unpack(packed, sink, LARGEST, where)
    return target
