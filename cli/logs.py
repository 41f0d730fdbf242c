"""What libraries log: one line each on stderr, nothing with ``--quiet``."""

from __future__ import annotations

import logging

import click

_CAUSE, _WAIT = "stamina.caused_by", "stamina.wait_for"


class _Notes(logging.Handler):
    """Warnings of libraries as lines beside our own notes."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record to the stderr of this moment."""
        click.echo(" ".join(_text(record).split()), err=True)


class _Nothing(logging.NullHandler):
    """Keeps logging from falling back on a handler of its own."""


def route(*, quiet: bool) -> None:
    """Send what libraries log from now on where a reader of stderr expects it."""
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, _Notes | _Nothing)]:
        root.removeHandler(handler)
    root.addHandler(_Nothing() if quiet else _Notes(logging.WARNING))


def _text(record: logging.LogRecord) -> str:
    """A record in one line; a retry keeps its cause in fields beside the message."""
    fields = vars(record)
    if _CAUSE in fields:
        return f"trying again in {fields.get(_WAIT)} s: {fields[_CAUSE]}"
    return f"{record.name}: {record.getMessage()}"
