"""Tables on a terminal: folded to its width, with bars and, if it may, colour."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cli.document import Bars, Document, Section, Tile
from cli.render.cards import MORE, card, folded
from cli.render.grid import grid, label_width
from cli.render.text import visible

_TONES = {
    "finding": "red",
    "failed": "red",
    "high": "red",
    "no": "red",
    "unknown": "yellow",
    "gaps": "yellow",
    "medium": "yellow",
    "not configured": "yellow",
    "clean": "green",
    "closed": "green",
    "yes": "green",
}
_TILES = {"good": "green", "bad": "red", "warn": "yellow", "plain": ""}
_SERIES = {
    "rollout": "blue",
    "reward": "magenta",
    "reference": "bright_magenta",
    "update": "green",
    "sync": "cyan",
    "checkpoint": "bright_blue",
    "evaluation": "yellow",
    "data": "bright_yellow",
    "serve": "bright_cyan",
    "idle": "red",
    "unattributed": "bright_red",
}
_BAR = 16
_WIDE = 115  # a narrower terminal needs its columns for figures
_PARTS = " ▏▎▍▌▋▊▉█"


def to_terminal(documents: Sequence[Document], width: int, *, color: bool) -> str:
    """Documents as text of at most that width; a cell that is too long folds, none is cut."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=color,
        no_color=not color,
        color_system="standard" if color else None,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    for document in documents:
        _print_document(console, document, color=color)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _print_document(console: Console, document: Document, *, color: bool) -> None:
    console.print(Text(visible(document.title), style="bold"))
    size = label_width(document)
    for tile in document.tiles:
        console.print(_tile(tile, size))
    for section in document.sections:
        console.print()
        console.print(Text(visible(section.title), style="bold cyan"))
        _print_section(console, section, document.currency, color=color)
        if section.note:
            console.print(Text(f"  {visible(section.note)}", style="dim"))
    if document.remarks:
        console.print()
    for remark in document.remarks:
        console.print(Text(visible(remark)))


def _tile(tile: Tile, size: int) -> Text:
    return Text.assemble(
        (f"  {visible(tile.label):<{size}}  ", "dim"),
        (visible(tile.figure), f"bold {_TILES[tile.tone]}".strip()),
        (f"  {visible(tile.detail)}" if tile.detail else "", "dim"),
    )


def _print_section(
    console: Console, section: Section, currency: str | None, *, color: bool
) -> None:
    if not section.rows:
        console.print(Text(f"  {visible(section.empty)}", style="dim"))
    elif section.key == "findings":
        _print_cards(console, section, currency)
    else:
        with_bars = section.bars is not None and _WIDE <= console.width < 1000
        console.print(_table(section, currency, with_bars=with_bars, color=color))
        if with_bars and color and section.bars and len(section.bars.series) > 1:
            console.print(_legend(section.bars))


def _print_cards(console: Console, section: Section, currency: str | None) -> None:
    for row in section.rows:
        for number, line in enumerate(card(row, section, currency)):
            style = _TONES.get(str(row.get("severity")), "bold") if number == 0 else ""
            if line.verbatim:  # too long a command folds below its own start
                console.print(Padding(Text(line.text), (0, 0, 0, 2 + line.indent)))
                continue
            for text in folded(line, console.width - 2):
                console.print(Padding(Text(text, style=style), (0, 0, 0, 2)))
    if section.short:
        console.print(Text(f"  {MORE}", style="dim"))


def _table(section: Section, currency: str | None, *, with_bars: bool, color: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=True, show_edge=False, header_style="dim")
    titles, rows = grid(section, currency)
    for number, (title, column) in enumerate(zip(titles, section.columns, strict=True)):
        words = column.kind == "text"
        table.add_column(
            Text(title), overflow="fold", justify="left" if words else "right", no_wrap=not words
        )
        if number == 0 and with_bars:
            table.add_column("", no_wrap=True)
    bars = list(_bars(section.bars, color=color)) if section.bars and with_bars else None
    for number, cells in enumerate(rows):
        shown = list(_cells(section, cells))
        if bars:
            shown.insert(1, bars[number])
        table.add_row(*shown)
    return table


def _cells(section: Section, cells: Sequence[str]) -> Iterator[Text]:
    for text, column in zip(cells, section.columns, strict=True):
        yield Text(text, style=_TONES.get(text, "") if column.key == section.tone else "")


def _bars(bars: Bars, *, color: bool) -> Iterator[Text]:
    """A bar per row: stacked in the colours of its series, or plain without colour."""
    longest = max((sum(values) for values in bars.values), default=0) or 1.0
    for values in bars.values:
        if not color:
            yield Text(_blocks(sum(values) / longest))
            continue
        text, left = Text(), 0
        for name, end in zip(bars.series, _ends(values, longest), strict=True):
            text.append("█" * (end - left), style=_SERIES.get(name, "white"))
            left = end
        yield text


def _legend(bars: Bars) -> Text:
    text = Text(" ")
    for name in bars.series:
        text.append(" ■ ", style=_SERIES.get(name, "white")).append(visible(name), style="dim")
    return text


def _ends(values: Sequence[float], longest: float) -> Iterator[int]:
    """Where each part of a stacked bar ends, in whole cells."""
    total = 0.0
    for value in values:
        total += value
        yield round(_BAR * total / longest)


def _blocks(share: float) -> str:
    eighths = max(round(share * _BAR * 8), int(share > 0))
    return _PARTS[8] * (eighths // 8) + _PARTS[eighths % 8].strip()
