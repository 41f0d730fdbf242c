"""Commands that a document tells to run next: as they work when they are pasted."""

from __future__ import annotations

import shlex
from pathlib import Path

from ledger.errors import SettingsError
from ledger.load import LoadedSettings, find_file


def command(loaded: LoadedSettings, *words: str) -> str:
    """A command line of runbill that reads the same settings, from the same folder.

    Args:
        loaded: The settings in force; their file is named where it is not the one found by itself.
        words: The command and its flags.
    """
    named = () if loaded.path is None or loaded.path == _default() else ("--config", loaded.path)
    return shlex.join(["runbill", *map(str, named), *words])


def _default() -> Path | None:
    """The file that is found without ``--config``."""
    try:
        return find_file()
    except SettingsError:  # $RUNBILL_CONFIG names a file that is not there
        return None
