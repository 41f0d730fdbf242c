"""Tables: as wide as the terminal on a terminal, never cut in a pipe."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence

from cli.document import Cell, Document, Section, Tile
from cli.render.text import DASH, cell, heading, visible

_TONES = {
    "finding": "red",
    "failed": "red",
    "high": "red",
    "unknown": "yellow",
    "gaps": "yellow",
    "medium": "yellow",
    "clean": "green",
    "closed": "green",
    "yes": "green",
}


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
        verbose: Whether to show the sections that are not brief.
    """
    if width is None and not color:
        lines = [line for document in documents for line in _plain(document, verbose)]
        return "\n".join(lines) + "\n"
    return _rich(documents, width, color, verbose)


def _shown(document: Document, verbose: bool) -> list[Section]:
    return [section for section in document.sections if section.brief or verbose]


def _grid(section: Section, currency: str | None) -> tuple[list[str], list[list[str]]]:
    titles = [heading(column, currency) for column in section.columns]
    return titles, [
        [cell(row.get(column.key), column) for column in section.columns] for row in section.rows
    ]


def _plain(document: Document, verbose: bool) -> Iterator[str]:
    from rich.cells import cell_len

    yield visible(document.title)
    size = _label_width(document)
    for tile in document.tiles:
        detail = f"  {visible(tile.detail)}" if tile.detail else ""
        yield f"  {visible(tile.label):<{size}}  {visible(tile.figure)}{detail}"
    for section in _shown(document, verbose):
        yield ""
        yield visible(section.title)
        if not section.rows:
            yield f"  {visible(section.empty)}"
            continue
        if section.key == "findings":
            yield from (
                f"  {line}"
                for row in section.rows
                for line in card(row, section, document.currency)
            )
            continue
        titles, rows = _grid(section, document.currency)
        widths = [max(map(cell_len, cells)) for cells in zip(titles, *rows, strict=True)]
        for cells in (titles, *rows):
            padded = [
                text + " " * (size - cell_len(text))
                if column.kind == "text"
                else " " * (size - cell_len(text)) + text
                for text, size, column in zip(cells, widths, section.columns, strict=True)
            ]
            yield "  " + "  ".join(padded).rstrip()
        if section.note:
            yield f"  {visible(section.note)}"
    if document.remarks:
        yield ""
        yield from map(visible, document.remarks)


def _rich(documents: Sequence[Document], width: int | None, color: bool, verbose: bool) -> str:
    from rich.console import Console
    from rich.text import Text

    out = io.StringIO()
    console = Console(
        file=out,
        width=width or 10_000,
        force_terminal=color,
        no_color=not color,
        color_system="standard" if color else None,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    for document in documents:
        console.print(Text(visible(document.title), style="bold"))
        size = _label_width(document)
        for tile in document.tiles:
            console.print(_tile(tile, size))
        for section in _shown(document, verbose):
            console.print()
            console.print(Text(visible(section.title), style="bold cyan"))
            _print_section(console, section, document.currency)
        if document.remarks:
            console.print()
        for remark in document.remarks:
            console.print(Text(visible(remark)))
    return "".join(line.rstrip(" ") for line in out.getvalue().splitlines(keepends=True))


def _label_width(document: Document) -> int:
    return max((len(visible(tile.label)) for tile in document.tiles), default=0)


def card(row: Mapping[str, Cell], section: Section, currency: str | None) -> Iterator[str]:
    """The lines of a finding: what, where and whose, money, remedy and commands."""
    by_key = {column.key: column for column in section.columns}

    def shown(key: str) -> str:
        return cell(row.get(key), by_key[key]) if key in by_key else DASH

    yield f"{shown('severity').upper()}  {shown('title')}  [{shown('status')}]"
    skipped = ("severity", "title", "status", "remedy")
    facts = [
        f"{column.title.lower()} {cell(row[column.key], column)}"
        + (f" {currency}" if column.kind == "money" else "")
        for column in section.columns
        if column.key not in skipped and row.get(column.key) is not None
    ]
    yield f"  {', '.join(facts)}"
    yield f"  → {shown('remedy')}"
    commands = row.get("commands")
    if isinstance(commands, list | tuple):
        yield from (f"    {visible(line)}" for text in commands for line in str(text).splitlines())


def _tile(tile: Tile, size: int) -> object:
    from rich.text import Text

    styles = {"good": "green", "bad": "red", "warn": "yellow", "plain": ""}
    return Text.assemble(
        (f"  {visible(tile.label):<{size}}  ", "dim"),
        (visible(tile.figure), f"bold {styles[tile.tone]}".strip()),
        (f"  {visible(tile.detail)}" if tile.detail else "", "dim"),
    )


def _print_section(console: object, section: Section, currency: str | None) -> None:
    from rich import box
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    assert isinstance(console, Console)  # noqa: S101  narrows a lazily imported type
    if not section.rows:
        console.print(Text(f"  {visible(section.empty)}", style="dim"))
        return
    if section.key == "findings":
        for row in section.rows:
            first, *rest = card(row, section, currency)
            console.print(Text(f"  {first}", style=_TONES.get(str(row.get("severity")), "bold")))
            for line in rest:
                console.print(Padding(Text(line), (0, 0, 0, 2)))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=True, show_edge=False, header_style="dim")
    titles, rows = _grid(section, currency)
    for title, column in zip(titles, section.columns, strict=True):
        table.add_column(
            Text(title),
            overflow="fold",
            justify="left" if column.kind == "text" else "right",
            no_wrap=column.kind != "text",
        )
    for row, cells in zip(section.rows, rows, strict=True):
        tone = _TONES.get(str(row.get(section.tone))) if section.tone else None
        table.add_row(
            *(
                Text(text, style=tone if tone and column.key == section.tone else "")
                for text, column in zip(cells, section.columns, strict=True)
            )
        )
    console.print(table)
    if section.note:
        console.print(Text(f"  {visible(section.note)}", style="dim"))
