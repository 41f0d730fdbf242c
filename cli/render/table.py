"""Tables for people: plain and never cut in a pipe, as wide as the terminal on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cli.document import Document, Section
from cli.render.cards import MORE, card, folded
from cli.render.grid import grid, label_width
from cli.render.text import visible

PIPE_WIDTH = 100
"""Columns of running text in a pipe; no name is broken there, and no table folded."""


def to_table(
    documents: Sequence[Document],
    *,
    width: int | None = None,
    color: bool = False,
    verbose: bool = True,
) -> str:
    """Documents as text for people.

    Args:
        documents: What to show.
        width: Columns of the terminal; long cells fold. None: a pipe, every cell on one line.
        color: Whether to use ANSI colours.
        verbose: Whether to show the sections that are not brief, and findings in full.
    """
    shown = [_for_reader(document, verbose) for document in documents]
    if width is None and not color:
        return "\n".join(line for document in shown for line in _plain(document)) + "\n"
    from cli.render.terminal import to_terminal

    return to_terminal(shown, width or 10_000, color=color)


def _for_reader(document: Document, verbose: bool) -> Document:
    """The sections that a reader asked for, in the length asked for."""
    if verbose:
        return replace(
            document, sections=tuple(replace(section, short=False) for section in document.sections)
        )
    return replace(
        document, sections=tuple(section for section in document.sections if section.brief)
    )


def _plain(document: Document) -> Iterator[str]:
    yield visible(document.title)
    size = label_width(document)
    for tile in document.tiles:
        detail = f"  {visible(tile.detail)}" if tile.detail else ""
        yield f"  {visible(tile.label):<{size}}  {visible(tile.figure)}{detail}"
    for section in document.sections:
        yield ""
        if section.title != document.title:
            yield visible(section.title)
        yield from (f"  {line}".rstrip() for line in _plain_section(section, document.currency))
        if section.note:
            yield f"  {visible(section.note)}"
    if document.remarks:
        yield ""
        yield from map(visible, document.remarks)


def _plain_section(section: Section, currency: str | None) -> Iterator[str]:
    from rich.cells import cell_len

    if not section.rows:
        yield visible(section.empty)
        return
    if section.key == "findings":
        for row in section.rows:
            for line in card(row, section, currency):
                yield from folded(line, PIPE_WIDTH)
        if section.short:
            yield MORE + section.more
        return
    titles, rows = grid(section, currency)
    widths = [max(map(cell_len, cells)) for cells in zip(titles, *rows, strict=True)]
    for cells in (titles, *rows):
        yield "  ".join(
            _padded(text, size - cell_len(text), left=column.kind == "text")
            for text, size, column in zip(cells, widths, section.columns, strict=True)
        )


def _padded(text: str, blanks: int, *, left: bool) -> str:
    return f"{text}{' ' * blanks}" if left else f"{' ' * blanks}{text}"
