"""Which columns a table has on a terminal of a width, and how wide each of them is.

A word is broken only where it is longer than all the room that figures leave. Before that, columns
that repeat one word are said below the table, headings wrap, and the least important columns go.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len

from cli.document import Column, Section
from cli.render.grid import grid

GAP = 3
"""Cells between two columns; a table has one more at each end."""
_SPARE = (
    *("share", "presence", "efficiency", "gpu_hours", "active_cost", "change"),
    *("days", "ratio", "basis", "confidence"),
)
"""Figures that a narrow table can do without, the least important first."""
_UNIFORM = ("basis", "confidence", "presence")
_PROSE = 20  # running text narrower than that is hard to read
_LEAST = 4


@dataclass(frozen=True)
class Fitted:
    """A section as it fits.

    Args:
        section: The section with the columns that are shown.
        titles: Their headings, wrapped.
        rows: Their cells.
        widths: Width of each column, in cells of the terminal.
        remarks: What is said below the table in place of columns.
    """

    section: Section
    titles: tuple[str, ...]
    rows: tuple[Sequence[str], ...]
    widths: tuple[int, ...]
    remarks: tuple[str, ...]

    @property
    def width(self) -> int:
        """Cells that the whole table takes."""
        return table_width(self.widths)


def fit(section: Section, currency: str | None, width: int) -> Fitted:
    """Lay a table out in at most ``width`` cells: figures stay whole, names where they can."""
    remarks = []
    if said := [column for column in _figures(section) if _repeats(section, column)]:
        section = _without(section, said)
        remarks.append("; ".join(f"{each.title}: {section.rows[0][each.key]}" for each in said))
    spare = sorted(
        (column for column in _figures(section) if column.key in _SPARE),
        key=lambda column: _SPARE.index(column.key),
    )
    gone: list[Column] = []
    while spare and table_width(_least(section, currency)) > width:
        gone.append(spare.pop(0))
        section = _without(section, gone)
    if gone:
        names = ", ".join(column.title for column in gone)
        remarks.append(f"Left out for want of width: {names}; a wider terminal or -o csv has them")
    return _laid_out(section, currency, width, tuple(remarks))


def whole(section: Section, currency: str | None) -> Fitted:
    """A table that leaves nothing out, as wide as it is."""
    titles, rows = grid(section, currency)
    widths = (max(map(cell_len, cells)) for cells in zip(titles, *rows, strict=True))
    return Fitted(section, tuple(titles), tuple(rows), tuple(widths), ())


def table_width(widths: Sequence[int]) -> int:
    """Cells that columns of these widths take side by side."""
    return sum(widths) + GAP * len(widths) - 1


def _laid_out(
    section: Section, currency: str | None, width: int, remarks: tuple[str, ...]
) -> Fitted:
    titles, rows = grid(section, currency)
    cells = list(zip(titles, *rows, strict=True))
    most = [max(map(cell_len, column)) for column in cells]
    least = _squeezed(section, _least(section, currency), width)
    widths = _shared_out(least, most, width - table_width(least))
    wrapped = tuple(
        "\n".join(textwrap.wrap(title, size, break_long_words=False)) or title
        for title, size in zip(titles, widths, strict=True)
    )
    return Fitted(section, wrapped, tuple(rows), tuple(widths), remarks)


def _figures(section: Section) -> Iterator[Column]:
    """The columns from the first figure on: those before it say what a row is about."""
    kinds = [column.kind != "text" for column in section.columns]
    first = kinds.index(True) if True in kinds else len(kinds)
    return iter(section.columns[first:])


def _repeats(section: Section, column: Column) -> bool:
    values = {row.get(column.key) for row in section.rows}
    return column.key in _UNIFORM and len(values) == 1 and None not in values


def _without(section: Section, gone: Sequence[Column]) -> Section:
    return replace(section, columns=tuple(each for each in section.columns if each not in gone))


def _least(section: Section, currency: str | None) -> list[int]:
    """Per column the width below which a word or a figure would break."""
    titles, rows = grid(section, currency)
    found = []
    for column, title, *cells in zip(section.columns, titles, *rows, strict=True):
        longest = max(map(cell_len, cells), default=0)
        if column.kind == "text":
            words = max((cell_len(word) for cell in cells for word in cell.split()), default=0)
            longest = max(words, min(longest, _PROSE))
        found.append(max(longest, *(cell_len(word) for word in title.split() or [""])))
    return found


def _squeezed(section: Section, widths: Sequence[int], width: int) -> list[int]:
    """Widths that fit even where words must break: the widest column of text gives first."""
    found = list(widths)
    texts = [index for index, column in enumerate(section.columns) if column.kind == "text"]
    while table_width(found) > width and texts:
        widest = max(texts, key=lambda index: found[index])
        if found[widest] <= _LEAST:
            break
        found[widest] -= 1
    return found


def _shared_out(least: Sequence[int], most: Sequence[int], room: int) -> list[int]:
    """Give the room that is left to the columns that want more, by how much they want."""
    wants = [max(0, high - low) for low, high in zip(least, most, strict=True)]
    total = sum(wants)
    part = min(1.0, max(0, room) / total) if total else 0.0
    return [low + int(part * want) for low, want in zip(least, wants, strict=True)]
