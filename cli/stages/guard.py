"""The call around a collector: whatever it raises becomes a value that names the type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from cli import exits
from ledger.errors import RunbillError

T = TypeVar("T")


@dataclass(frozen=True)
class Failure:
    """Why a source could not do what it was asked.

    Args:
        kind: Type of the exception.
        detail: What went wrong, in one line.
        code: Exit code that it stands for if nothing else works either.
    """

    kind: str
    detail: str
    code: int


def attempt(name: str, call: Callable[[], T]) -> T | Failure:
    """Call a source; one that fails, even by a fault in it, must not take the others down.

    Args:
        name: Name of the source, for the message.
        call: What to ask of it.
    """
    try:
        return call()
    except RunbillError as error:
        return Failure(type(error).__name__, str(error), error.exit_code)
    except Exception as error:  # noqa: BLE001  the one broad handler around collectors
        code = exits.UNREACHABLE if isinstance(error, OSError) else exits.FAULT
        return Failure(type(error).__name__, f"{name}: {error}", code)
