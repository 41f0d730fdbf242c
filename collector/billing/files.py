"""Where the files of a bill lie: a file, a folder (at any depth) or a glob; local or ``s3://``.

Every file is handed on as a local one: objects are downloaded and gzip is unpacked into a working
folder, in pieces, so that memory does not grow with the file and a cut archive is found before a
single row of it counts.
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import os
import shutil
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from collector.billing.s3 import Bucket, is_s3
from ledger.errors import AccessError, BadInputError, SourceError
from ledger.text import holds_credentials, without_credentials

DATA_ENDINGS = (".csv", ".csv.gz", ".csv.gzip", ".parquet", ".parq")
_GLOB = frozenset("*?[")
_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"


@dataclass(frozen=True)
class Listing:
    """What stands at a path: files to read, and files that are no bill (manifests, notes, ...)."""

    files: tuple[str, ...]
    ignored: tuple[str, ...]


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


def find(path: str) -> Listing:
    """List the files of a bill, in the order of their names.

    Args:
        path: File, folder or glob; local or ``s3://bucket/key``.

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
    if is_s3(path):
        names, single = Bucket(path).find(path)
    elif "://" in path:
        raise BadInputError(f"the bill path {path!r} is neither local nor s3://")
    else:
        names, single = _find_local(path)
    if not names:
        raise SourceError(f"no file of the bill at {path}", "check `path` of the billing block")
    return Listing(tuple(names), ()) if single else _sorted_out(names)


def is_glob(path: str) -> bool:
    """Whether a path holds a wildcard."""
    return not _GLOB.isdisjoint(path)


def _find_local(path: str) -> tuple[list[str], bool]:
    place = Path(path)
    try:
        if place.is_file():
            return [path], True
        if place.is_dir():
            os.listdir(place)  # `rglob` is silent about a folder that refuses
            return sorted(str(p) for p in place.rglob("*") if p.is_file()), False
    except PermissionError as error:
        raise AccessError(f"may not read {path}", str(error.strerror)) from error
    if is_glob(path):
        return sorted(p for p in glob.glob(path, recursive=True) if Path(p).is_file()), False
    return [], False


def _sorted_out(names: Iterable[str]) -> Listing:
    def is_data(name: str) -> bool:
        base = name.rsplit("/", 1)[-1].lower()
        return base.endswith(DATA_ENDINGS) and not base.startswith(".")

    names = sorted(names)
    return Listing(
        tuple(name for name in names if is_data(name)),
        tuple(name for name in names if not is_data(name)),
    )


def fetch(where: str, folder: Path) -> LocalFile:
    """Bring a file to this machine and unpack it.

    Args:
        where: A name from ``find``.
        folder: Empty working folder; may be deleted once the file is read.

    Raises:
        BadInputError: The file is empty, or a gzip archive that is cut or damaged.
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
        if magic.startswith(_GZIP):
            path = _unpack(where, path, folder / "unpacked")
            with path.open("rb") as stream:
                magic = stream.read(4)
    except PermissionError as error:
        raise AccessError(f"may not read {where}", str(error.strerror)) from error
    except OSError as error:
        raise SourceError(f"{where} cannot be read: {error}") from error
    return LocalFile(where, path, magic == _PARQUET)


def _unpack(where: str, packed: Path, target: Path) -> Path:
    try:
        with gzip.open(packed) as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadInputError(f"{where} is a gzip file that is cut or damaged: {error}") from error
    return target
