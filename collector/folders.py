"""The files below a folder, and what below it cannot be read."""

from __future__ import annotations

import os
from pathlib import Path


def walk(folder: Path) -> tuple[list[Path], list[Path]]:
    """List a folder at any depth; links to folders are not followed.

    Returns:
        Its files; and, as they can be shown, the folders that could not be listed and the files
        whose names are no UTF-8. Each sorted. What stands in those is not known: ``Path.rglob``
        would pass over a folder in silence.
    """
    barred: list[Path] = []

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            barred.append(readable(Path(error.filename)))

    found: list[Path] = []
    for at, folders, names in os.walk(folder, onerror=note):
        # A table of a ledger (Delta keeps its log beside the files) is no source: reading it would
        # add what was closed to what is to be closed.
        folders[:] = [name for name in folders if not os.path.isdir(f"{at}/{name}/_delta_log")]
        found += (Path(at, name) for name in names)
    files = [path for path in found if path.is_file()]
    barred += (readable(path) for path in files if path != readable(path))
    return sorted(path for path in files if path == readable(path)), sorted(barred)


def readable(path: Path) -> Path:
    """The path as it can be shown: bytes that are no UTF-8 become U+FFFD."""
    return Path(os.fsencode(path).decode("utf-8", "replace"))
