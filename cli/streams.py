"""Which text may go where: payload on stdout, everything else on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO

import click

from cli.options import EXTENSIONS, Globals
from ledger.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cli.document import Document


class Progress(Protocol):
    """Something to tell how far a long work is."""

    def step(self, label: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` parts of ``label`` are finished."""
        ...


class Silent:
    """Progress for pipes, pods and ``--quiet``: says nothing."""

    def step(self, label: str, done: int, total: int) -> None:
        """Say nothing."""


class Lines:
    """Progress for ``--verbose`` without a terminal: a line per step on stderr."""

    def step(self, label: str, done: int, total: int) -> None:
        """Write a line."""
        click.echo(f"{label} ({done + 1} of {total})", err=True)


class _Bar:
    """Progress on a terminal, on stderr."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Rich

        self.rich = Rich(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True, markup=False),
            transient=True,
        )
        self.tasks: dict[str, object] = {}
        self.task = self.rich.add_task("", total=1, visible=False)

    def step(self, label: str, done: int, total: int) -> None:
        self.rich.update(self.task, description=label, completed=done, total=total, visible=True)


@contextmanager
def progress(options: Globals) -> Iterator[Progress]:
    """A bar if stderr is a terminal; else lines if asked for, or silence."""
    if options.quiet or not sys.stderr.isatty():
        yield Lines() if options.verbose and not options.quiet else Silent()
        return
    bar = _Bar()
    with bar.rich:
        yield bar


def note(options: Globals, message: str) -> None:
    """A line on stderr, unless ``--quiet``."""
    if not options.quiet:
        click.echo(message, err=True)


def colored(options: Globals, stream: TextIO) -> bool:
    """Whether a stream gets colour: the flag, else NO_COLOR, FORCE_COLOR, else a terminal."""
    if options.color != "auto":
        return options.color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def emit(options: Globals, documents: Sequence[Document]) -> None:
    """Write the documents to stdout and to every ``--out-file``."""
    from cli.render import render

    for path in options.out_files:
        write_file(path, render(documents, EXTENSIONS[path.suffix.lower()]))
        note(options, f"wrote {path}")
    if options.output == "table":
        from cli.render.table import to_table

        width = _width() if sys.stdout.isatty() else None
        text = to_table(
            documents, width=width, color=colored(options, sys.stdout), verbose=options.verbose > 0
        )
    else:
        text = render(documents, options.output)
    sys.stdout.write(text)
    sys.stdout.flush()


def _width() -> int:
    import shutil

    return max(40, shutil.get_terminal_size((100, 24)).columns)


def write_file(path: Path, text: str) -> None:
    """Write a file whole or not at all: a temporary name beside it, then a rename.

    Raises:
        UsageError: The file cannot be written there.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8", newline="")
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise UsageError(f"cannot write {path}: {error.strerror}", "name another place") from error
