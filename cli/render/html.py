"""HTML: one file that needs no network and no JavaScript, safe against hostile names."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from cli.document import Bars, Cell, Document
from cli.render.series import SERIES
from cli.render.text import cell, figure, heading, lines, visible

if TYPE_CHECKING:
    from jinja2 import Template

_TONES = {
    "finding": "bad",
    "failed": "bad",
    "high": "bad",
    "unknown": "warn",
    "gaps": "warn",
    "medium": "warn",
    "clean": "good",
    "closed": "good",
    "low": "plain",
}
_ROWS = 500  # a page stays under 1 MB; the machine formats hold every row


def to_html(documents: Sequence[Document]) -> str:
    """One page for all documents; rows beyond 500 per table are counted, not shown."""
    return _template().render(documents=documents, limit=_ROWS) + "\n"


@functools.cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        cell=cell,
        figure=figure,
        heading=heading,
        lines=lines,
        visible=visible,
        tone=_tone,
        segments=_segments,
    )
    environment.globals["swatch"] = swatch
    return environment.from_string(
        (files("cli.render") / "page.html.j2").read_text(encoding="utf-8")
    )


def _tone(value: Cell) -> str:
    return _TONES.get(str(value), "plain")


def swatch(name: str, index: int) -> str:
    """The colour class of a series: phases keep theirs from page to page."""
    return f"c{SERIES.index(name) if name in SERIES else index % len(SERIES)}"


def _segments(bars: Bars, row: int) -> list[dict[str, str]]:
    """The rectangles of one bar: position and width in thousandths of the longest bar."""
    longest = max((sum(values) for values in bars.values), default=0) or 1.0
    found, left = [], 0.0
    for index, (name, value) in enumerate(zip(bars.series, bars.values[row], strict=True)):
        width = 1000 * value / longest
        if width > 0:
            found.append(
                {
                    "x": f"{left:.2f}",
                    "width": f"{width:.2f}",
                    "class": swatch(name, index),
                    "title": f"{name}: {value:,.2f} {bars.unit}",
                }
            )
        left += width
    return found
