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
from cli.render.fit import GAP, Fitted, fit, whole
from cli.render.grid import label_width
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
_ENDLESS = 1000  # no terminal is that wide
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
        console.print(Padding(_tile(tile, size), (0, 0, 0, 2)))
    for section in document.sections:
        console.print()
        if section.title != document.title:
            console.print(Text(visible(section.title), style="bold cyan"))
        _print_section(console, section, document.currency, color=color)
        if section.note:
            _print_note(console, visible(section.note))
    if document.remarks:
        console.print()
    for remark in document.remarks:
        console.print(Text(visible(remark)))


def _tile(tile: Tile, size: int) -> Text:
    return Text.assemble(
        (f"{visible(tile.label):<{size}}  ", "dim"),
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
        _print_table(console, section, currency, color=color)


def _print_table(console: Console, section: Section, currency: str | None, *, color: bool) -> None:
    if console.width >= _ENDLESS:  # a pipe that wants colour: nothing is left out
        fitted = whole(section, currency)
    else:
        fitted = fit(section, currency, console.width)
    bars = section.bars if _WIDE <= console.width < _ENDLESS else None
    if fitted.width + _BAR + GAP > console.width:
        bars = None
    console.print(_table(fitted, bars, color=color))
    if bars and color and len(bars.series) > 1:
        console.print(_legend(bars))
    for remark in fitted.remarks:
        _print_note(console, remark)


def _print_note(console: Console, text: str) -> None:
    console.print(Padding(Text(text, style="dim"), (0, 0, 0, 2)))


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
        console.print(Text(f"  {MORE}{section.more}", style="dim"))


def _table(fitted: Fitted, bars: Bars | None, *, color: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=True, show_edge=False, header_style="dim")
    columns = zip(fitted.titles, fitted.section.columns, fitted.widths, strict=True)
    for number, (title, column, width) in enumerate(columns):
        words = column.kind == "text"
        table.add_column(
            Text(title),
            overflow="fold",
            justify="left" if words else "right",
            no_wrap=not words,
            width=width,
        )
        if number == 0 and bars:
            table.add_column("", no_wrap=True, width=_BAR)
    drawn = list(_bars(bars, color=color)) if bars else None
    for number, cells in enumerate(fitted.rows):
        shown = list(_cells(fitted.section, cells))
        if drawn:
            shown.insert(1, drawn[number])
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
