"""What buckets and file systems hold: rows of the table ``objects``, a roll-up per prefix.

``filesystem`` walks folders, ``inventory`` reads the reports of S3 Inventory (``manifests`` finds
them); ``prefixes`` says which folders are told apart, ``bands`` what ages and sizes are.
"""

from __future__ import annotations

from pathlib import Path

from collector.storage.filesystem import FileSystem
from collector.storage.inventory import Inventory
from collector.storage.prefixes import patterns_of
from ledger.settings import Settings, resolve_path
from ledger.stores import FileSystemStore, Store

__all__ = ["FileSystem", "Inventory", "from_settings"]


def from_settings(store: Store, settings: Settings, base: Path) -> FileSystem | Inventory:
    """The collector of one store of the settings; relative paths are relative to ``base``."""
    path, patterns = resolve_path(store.path, base), patterns_of(settings)
    if isinstance(store, FileSystemStore):
        return FileSystem(store, path, patterns)
    return Inventory(store, path, patterns)
