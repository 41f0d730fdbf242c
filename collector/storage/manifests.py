"""Reports of S3 Inventory: their manifests, below a folder or an ``s3://`` prefix.

A report is complete when its ``manifest.json`` is there (AWS writes it last); the data files that
it names lie elsewhere below the same destination.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from collector.billing.s3 import Bucket, is_s3
from collector.folders import walk
from ledger.errors import AccessError, BadInputError, SourceError

_FILE = "manifest.json"
_STAMP = re.compile(r"(\d{4}-\d{2}-\d{2})T(\d{2})-?(\d{2})?Z?/manifest\.json$")


@dataclass(frozen=True)
class Manifest:
    """A report.

    Args:
        where: Path or URL of its manifest.
        bucket: The bucket that is inventoried.
        created: When the report was made.
        form: CSV, Parquet or ORC, in capitals.
        columns: Columns of a CSV file, in order; names of a Parquet file, in lower case.
        files: Keys of its data files.
    """

    where: str
    bucket: str
    created: datetime
    form: str
    columns: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def day(self) -> date:
        """The UTC day on which it was made."""
        return self.created.date()

    def locate(self, key: str) -> str:
        """Where a data file lies: in the bucket of the manifest, or in a copy of its folders.

        Raises:
            SourceError: A local copy does not hold it.
        """
        if is_s3(self.where):
            return f"s3://{Bucket(self.where).name}/{key}"
        place = Path(self.where)
        name = key.rsplit("/", 1)[-1]
        # A copy may begin anywhere in the destination's path; next to the manifest is the last try.
        tries = [
            *(parent / key for parent in place.parents),
            place.parents[1] / "data" / name,
            place.parent / name,
        ]
        for candidate in tries:
            if candidate.is_file():
                return str(candidate)
        raise SourceError(f"{key} of the inventory {self.where} is not there")


def stamp(where: str) -> datetime | None:
    """The time in the folder name of a manifest: ``…/2026-11-30T01-00Z/manifest.json``."""
    hit = _STAMP.search(where.replace("\\", "/"))
    if not hit:
        return None
    text = f"{hit[1]}T{hit[2]}:{hit[3] or '00'}+00:00"
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def find(path: str) -> list[str]:
    """All manifests below a path, in the order of their names.

    Raises:
        AccessError: It may not be read.
        SourceError: Nothing is there.
    """
    if is_s3(path):
        names, _ = Bucket(path).find(path)
    else:
        place = Path(path)
        if not place.is_dir():
            raise SourceError(f"there is no folder {path}", "check `path` of the storage block")
        files, barred = walk(place)
        if not files and barred:
            raise AccessError(f"may not read {path}")
        names = [str(file) for file in files]
    return sorted(name for name in names if name.rsplit("/", 1)[-1] == _FILE)


def read(where: str) -> Manifest:
    """A manifest.

    Raises:
        BadInputError: It is none.
        SourceError: It cannot be read.
    """
    try:
        data = json.loads(_text(where))
        schema = str(data["fileSchema"])
        form = str(data["fileFormat"]).upper()
        return Manifest(
            where,
            str(data["sourceBucket"]),
            _created(data, where),
            form,
            tuple(_columns(schema, form)),
            tuple(str(file["key"]) for file in data["files"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise BadInputError(f"{where} is no manifest of S3 Inventory: {error}") from error


def newest(manifests: Sequence[Manifest], day: date, most: int) -> list[Manifest]:
    """Of each bucket the newest report made by the end of a day and at most so many days before."""
    fresh = (m for m in manifests if 0 <= (day - m.day).days <= most)
    best: dict[str, Manifest] = {}
    for manifest in sorted(fresh, key=lambda m: (m.created, m.where)):
        best[manifest.bucket] = manifest
    return [best[bucket] for bucket in sorted(best)]


def _text(where: str) -> str:
    try:
        if not is_s3(where):
            return Path(where).read_text(encoding="utf-8")
        with TemporaryDirectory() as folder:
            copy = Path(folder) / _FILE
            Bucket(where).download(where, copy)
            return copy.read_text(encoding="utf-8")
    except PermissionError as error:
        raise AccessError(f"may not read {where}", str(error.strerror)) from error
    except UnicodeDecodeError as error:
        raise BadInputError(f"{where} is no manifest of S3 Inventory: not UTF-8") from error
    except OSError as error:
        raise SourceError(f"cannot read {where}: {error}") from error


def _created(data: dict[str, Any], where: str) -> datetime:
    told = data.get("creationTimestamp")
    if told is not None:
        return datetime.fromtimestamp(int(told) / 1000, tz=UTC)
    found = stamp(where)
    if found is None:
        raise ValueError("it does not say when it was made")
    return found


def _columns(schema: str, form: str) -> Iterator[str]:
    if form == "CSV":
        yield from (name.strip() for name in schema.split(","))
    else:
        yield from re.findall(r"(?:optional|required)\s+\w+\s+(\w+)", schema)
