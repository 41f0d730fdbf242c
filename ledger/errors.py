"""What can go wrong, as one tree.

    RunbillError                 one clear line: what, where, and a hint what to do
    ├── UsageError               a bad window, flag or grouping key            exit 2
    ├── SettingsError            unknown key, bad value, missing file          exit 2
    ├── LedgerError              ledger missing, unreadable, schema refused    exit 2
    │   └── ConflictError        another writer replaced the partition first   exit 5
    ├── SourceError              a source could not be read                    exit 5
    │   └── AccessError          the source refused us                         exit 4
    └── BadInputError            a file is no bill, no dump, no export         exit 5

Only ``cli`` turns these into exit codes; below it they are raised and, around a collector or a
rule, turned into gaps.
"""

from __future__ import annotations


class RunbillError(Exception):
    """Base of all errors that a user can act on.

    Args:
        message: What went wrong and where, in one line.
        hint: What to do about it, in one line.
    """

    exit_code = 70

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Message and hint, as the terminal shows them."""
        return f"{self.message} ({self.hint})" if self.hint else self.message


class UsageError(RunbillError):
    """The command line asks for something that has no meaning."""

    exit_code = 2


class SettingsError(RunbillError):
    """The settings are missing or wrong."""

    exit_code = 2


class LedgerError(RunbillError):
    """The ledger is missing, or a frame does not fit its table."""

    exit_code = 2


class ConflictError(LedgerError):
    """Another writer replaced the same partition first; the whole run may be repeated."""

    exit_code = 5


class SourceError(RunbillError):
    """A source could not be reached or read."""

    exit_code = 5


class AccessError(SourceError):
    """A source refused the credentials or the permission."""

    exit_code = 4


class BadInputError(RunbillError):
    """A file is not what the settings say it is; nothing of it is kept."""

    exit_code = 5
