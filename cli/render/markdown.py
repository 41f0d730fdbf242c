"""Markdown: for a pull request or an issue, under the size that forges accept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cli.document import Document, Section
from cli.render.text import figure, heading, lines, visible

LIMIT = 65_000  # forges refuse comments of 65,536 characters
_SPECIAL = str.maketrans(
    {char: f"\\{char}" for char in "\\`*_[]|~#"}
    | {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "&#64;", "\n": " "}
)
_SHOWN_ROWS = 15


def to_markdown(documents: Sequence[Document]) -> str:
    """A hidden marker first, then headline figures and tables; tails are folded."""
    text = "\n".join(line for document in documents for line in _lines(document)) + "\n"
    if len(text) <= LIMIT:
        return text
    kept = text[:LIMIT].rsplit("\n", 1)[0]
    closing = "\n</details>" * (kept.count("<details>") - kept.count("</details>"))
    return f"{kept}\n{closing}\n\n_Cut: the whole has {len(text):,} characters._\n"


def escape(text: str) -> str:
    """Text that Markdown and HTML show as it is."""
    return visible(text).translate(_SPECIAL)


def _lines(document: Document) -> Iterator[str]:
    yield f"<!-- runbill:{document.kind} -->"
    yield f"## {escape(document.title)}\n"
    for tile in document.tiles:
        detail = f" ({escape(tile.detail)})" if tile.detail else ""
        yield f"- **{escape(tile.label)}**: {escape(tile.figure)}{detail}"
    for section in document.sections:
        yield "" if section.title == document.title else f"\n### {escape(section.title)}\n"
        yield from _section(section, document.currency)
    for remark in document.remarks:
        yield f"\n{escape(remark)}"


def _section(section: Section, currency: str | None) -> Iterator[str]:
    if not section.rows:
        yield escape(section.empty)
        return
    yield from _table(_tabular(section), currency)
    if any(lines(row.get("evidence")) for row in section.rows):
        yield from _evidence(section)
    if section.note:
        yield f"\n{escape(section.note)}"


def _tabular(section: Section) -> Section:
    """A section without what would make its table too wide to read."""
    columns = tuple(each for each in section.columns if each.key not in ("evidence", "method"))
    return replace(section, columns=columns)


def _evidence(section: Section) -> Iterator[str]:
    """What each finding rests on, folded."""
    yield "\n<details><summary>Evidence</summary>\n"
    for row in section.rows:
        yield f"- **{escape(str(row.get('title')))}**"
        yield from (f"  - {escape(line)}" for line in lines(row.get("evidence")))
        if row.get("method"):
            yield f"  - Money: {escape(str(row['method']))}"
    yield "\n</details>"


def _table(section: Section, currency: str | None) -> Iterator[str]:
    head = [
        "| " + " | ".join(escape(heading(column, currency)) for column in section.columns) + " |",
        "|"
        + "|".join(" --- " if column.kind == "text" else " ---: " for column in section.columns)
        + "|",
    ]
    rows = [
        "| " + " | ".join(escape(figure(row, column)) for column in section.columns) + " |"
        for row in section.rows
    ]
    yield from head
    yield from rows[:_SHOWN_ROWS]
    if rows[_SHOWN_ROWS:]:
        yield f"\n<details><summary>{len(rows) - _SHOWN_ROWS} more</summary>\n"
        yield from head
        yield from rows[_SHOWN_ROWS:]
        yield "\n</details>"
