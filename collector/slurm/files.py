"""The files of an export: one file, a folder at any depth, or a glob; gzip is unpacked."""

from __future__ import annotations

import glob
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from collector.folders import readable, walk
from collector.unpack import GZIP, unpack
from ledger.errors import AccessError, BadInputError, SourceError

LARGEST = 2 << 30  # bytes of an unpacked file, held in memory
_ENDINGS = (".json", ".txt", ".csv", ".psv", ".log", ".out", ".sacct")
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


@dataclass(frozen=True)
class Export:
    """A file.

    Args:
        where: Path by which the user knows it.
        data: Its bytes, unpacked.
        written: When it was written, by the file system, in seconds since the epoch.
    """

    where: str
    data: bytes
    written: int

    @property
    def is_json(self) -> bool:
        """Whether it looks like JSON."""
        head = self.data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
        return head.startswith(b"{")

    def text(self) -> tuple[str, bool]:
        """Its text, and whether bytes that are no UTF-8 had to be replaced."""
        coding = next((name for bom, name in _BOMS if self.data.startswith(bom)), "utf-8")
        try:
            return self.data.decode(coding), False
        except UnicodeDecodeError:
            return self.data.decode(coding, "replace"), True


def find(path: str, setting: str) -> list[Path]:
    """The files at a path, in the order of their names.

    Args:
        path: File, folder or glob.
        setting: Key of the settings that names it, for the message.

    Raises:
        SourceError: Nothing is there.
        AccessError: The folder may not be read.
        BadInputError: It is a URL.
    """
    if "://" in path:
        raise BadInputError(f"{setting}: {path} is no local path", "copy the files here first")
    place = Path(path)
    try:
        if place.is_file():
            return [place]
        if place.is_dir():
            next(place.iterdir(), None)
            files, _ = walk(place)
            found = [file for file in files if _is_export(file)]
        else:
            hits = map(Path, sorted(glob.glob(path, recursive=True)))
            found = [hit for hit in hits if hit.is_file() and hit == readable(hit)]
    except PermissionError as error:
        raise AccessError(f"may not read {path}", str(error.strerror)) from error
    if not found:
        raise SourceError(f"no file of Slurm at {path}", f"check `{setting}` in the settings")
    return found


def _is_export(file: Path) -> bool:
    name = file.name.lower().removesuffix(".gz")
    return name.endswith(_ENDINGS) and not name.startswith(".")


def read(file: Path) -> Export:
    """The content of a file.

    Raises:
        BadInputError: It is empty, or a gzip archive that is cut, damaged or too large.
        SourceError: It cannot be read.
    """
    try:
        data, written = file.read_bytes(), int(file.stat().st_mtime)
        if data.startswith(GZIP):
            content = io.BytesIO()
            unpack(file, content, LARGEST, str(file))
            data = content.getvalue()
    except PermissionError as error:
        raise AccessError(f"may not read {file}", str(error.strerror)) from error
    except OSError as error:
        raise SourceError(f"{file} cannot be read: {error.strerror or error}") from error
    if not data.strip():
        raise BadInputError(f"{file} is empty")
    return Export(str(file), data, written)


def each(files: Iterable[Path]) -> Iterator[tuple[Path, Export | BadInputError | SourceError]]:
    """Every file, or why it cannot be read."""
    for file in files:
        try:
            yield file, read(file)
        except (BadInputError, SourceError) as error:
            yield file, error
