"""Walks a file system: what each folder holds, by age and size, in bounded memory."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import polars as pl

from collector.gaps import about
from collector.source import Permissions, Probe
from collector.storage.bands import AGES, KEYS, SIZES, band, object_rows
from collector.storage.prefixes import Prefixes
from ledger.errors import AccessError, SourceError
from ledger.facts import Facts, Gap
from ledger.schema import OBJECTS
from ledger.stores import FileSystemStore
from ledger.window import Window

_NO_ATIME = getattr(os, "ST_NOATIME", 1024)
_DAY_SECONDS = 86_400
_FIGURES = ("count", "bytes", "oldest", "newest", "last_read")


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class FileSystem:
    """A file system of the settings.

    Args:
        store: Its block of the settings.
        path: The folder, absolute.
        patterns: ``prefixes.patterns_of``.
        now: What time it is.
    """

    store: FileSystemStore
    path: str
    patterns: Sequence[str]
    now: Callable[[], datetime] = _now

    @property
    def name(self) -> str:
        """``storage/NAME``."""
        return self.store.source

    @property
    def required(self) -> bool:
        """Whether a gap here makes the run end with exit code 3."""
        return self.store.required

    @property
    def snapshot(self) -> bool:
        """No: a later walk of a day replaces the earlier one, whose files may have moved bands."""
        return False

    @property
    def permissions(self) -> Permissions:
        """Nothing but the file system itself."""
        return Permissions()

    def reach(self) -> Window:
        """Yesterday and today: a file system shows what it holds now."""
        today = self.now().date()
        return Window.of_days(today - timedelta(days=1), today)

    def probe(self) -> Sequence[Probe]:
        """Try to list the folder."""
        need = f"list {self.path}"
        try:
            with os.scandir(self.path) as entries:
                next(entries, None)
        except OSError as error:
            failure = AccessError if isinstance(error, PermissionError) else SourceError
            blind = "who owns the bytes of the file system"
            return [Probe(need, False, str(error.strerror), blind, failure=failure)]
        return [Probe(need, True, "can be listed", reach=self.reach())]

    def collect(self, window: Window) -> Facts:
        """What the file system holds, as rows of the window's last day.

        Sizes are apparent ones (``st_size``); a file with several names counts once; links and
        other file systems below the folder are not followed. Ages count to the end of the day.
        ``last_read`` is the newest ``st_atime``, null where the file system does not keep it.

        Raises:
            AccessError: The folder may not be read.
            SourceError: It is not there.
        """
        day = list(window.days())[-1]
        last = Window.of_day(day)
        if not last.start <= self.now() < last.end + timedelta(days=1):
            gap = Gap("not_kept", f"{self.path} shows what it holds now, not on {day}")
            return Facts(last, {}, gaps=(gap,))
        walk = _Walk(
            self.path, Prefixes(f"{self.path.rstrip('/')}/", self.patterns, self.store.depth)
        )
        walk.run(last.end.timestamp())
        rows = object_rows(walk.frame(), self.store.resource or self.store.label, day)
        return Facts(
            last,
            {OBJECTS.name: rows},
            gaps=walk.gaps(),
            notes=walk.notes(),
            data_through=self.now(),
        )


@dataclass
class _Walk:
    """One walk: sums per prefix and band, never a list of files."""

    root: str
    prefixes: Prefixes
    sums: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    barred: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    mounts: list[str] = field(default_factory=list)
    several_names: set[tuple[int, int]] = field(default_factory=set)

    def run(self, until: float) -> None:
        try:
            device = os.stat(self.root).st_dev
            keeps_atime = not os.statvfs(self.root).f_flag & _NO_ATIME
            os.scandir(self.root).close()
        except PermissionError as error:
            raise AccessError(f"may not read {self.root}", str(error.strerror)) from error
        except OSError as error:
            raise SourceError(f"cannot read {self.root}: {error.strerror}") from error
        # Depth first, so that no more folders wait than stand beside those above.
        waiting = [self.root]
        while waiting:
            folder = waiting.pop()
            prefix = _shown(self.prefixes.of(f"{folder.rstrip('/')}/"))
            for entry in self._entries(folder):
                found = self._stat(entry)
                if found is None:
                    continue
                if stat.S_ISDIR(found.st_mode):
                    if found.st_dev == device:
                        waiting.append(entry.path)
                    else:
                        self.mounts.append(_shown(entry.path))
                elif stat.S_ISREG(found.st_mode) and self._first(found):
                    self._add(prefix, found, until, keeps_atime)

    def _entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                yield from entries
        except FileNotFoundError:
            return  # it has gone meanwhile
        except PermissionError:
            _remember(self.barred, folder)
        except OSError:
            _remember(self.failed, folder)

    def _stat(self, entry: os.DirEntry[str]) -> os.stat_result | None:
        try:
            return entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return None
        except PermissionError:
            _remember(self.barred, entry.path)
        except OSError:
            _remember(self.failed, entry.path)
        return None

    def _first(self, found: os.stat_result) -> bool:
        """Whether a file is met for the first time: it may have several names."""
        if found.st_nlink < 2:
            return True
        key = (found.st_dev, found.st_ino)
        if key in self.several_names:
            return False
        self.several_names.add(key)
        return True

    def _add(self, prefix: str, found: os.stat_result, until: float, atime: bool) -> None:
        size, changed = found.st_size, found.st_mtime
        age = max(until - changed, 0) / _DAY_SECONDS
        key = (prefix, band(age, AGES), band(size, SIZES))
        read = found.st_atime if atime else float("-inf")
        sums = self.sums.get(key)
        if sums is None:
            self.sums[key] = [1, size, changed, changed, read]
            return
        sums[0] += 1
        sums[1] += size
        sums[2] = min(sums[2], changed)
        sums[3] = max(sums[3], changed)
        sums[4] = max(sums[4], read)

    def frame(self) -> pl.DataFrame:
        """The roll-up, in the form of ``bands.roll_up``."""
        rows = [
            (prefix, None, age, size, int(sums[0]), int(sums[1]), *map(_moment, sums[2:]))
            for (prefix, age, size), sums in sorted(self.sums.items())
        ]
        names = (*KEYS, *_FIGURES)
        schema = {name: OBJECTS.schema[name] for name in names}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def gaps(self) -> tuple[Gap, ...]:
        return (
            *about("access_denied", "folders may not be read", self.barred),
            *about("unreadable_file", "files or folders cannot be read", self.failed),
        )

    def notes(self) -> tuple[str, ...]:
        if not self.mounts:
            return ()
        return (f"{len(self.mounts)} file systems below are left out, e.g. {self.mounts[0]}",)


def _remember(places: list[str], place: str) -> None:
    places.append(_shown(place))


def _shown(path: str) -> str:
    """A path as text: bytes that are no UTF-8 become U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


def _moment(seconds: float) -> datetime | None:
    """A time of a file; null if it lies beyond the calendar."""
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, ValueError, OSError):
        return None
