"""What the plain table and the terminal's share: cells as text, and the width of labels."""

from __future__ import annotations

from cli.document import Document, Section
from cli.render.text import figure, heading, visible


def grid(section: Section, currency: str | None) -> tuple[list[str], list[list[str]]]:
    """Headings and cells of a table, ready to read."""
    titles = [heading(column, currency) for column in section.columns]
    rows = [[figure(row, column) for column in section.columns] for row in section.rows]
    return titles, rows


def label_width(document: Document) -> int:
    """Width of the longest label of the headline figures."""
    return max((len(visible(tile.label)) for tile in document.tiles), default=0)
