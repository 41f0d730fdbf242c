"""Renderers: one file per format, each a pure function of documents."""

from __future__ import annotations

from collections.abc import Sequence

from cli.document import Document
from ledger.errors import UsageError


def render(documents: Sequence[Document], output: str) -> str:
    """Documents in a format, as text that ends with a newline.

    Raises:
        UsageError: No renderer has that name.
    """
    if output == "table":
        from cli.render.table import to_table

        return to_table(documents)
    if output == "json":
        from cli.render.json import to_json

        return to_json(documents)
    if output == "csv":
        from cli.render.csv import to_csv

        return to_csv(documents)
    if output == "markdown":
        from cli.render.markdown import to_markdown

        return to_markdown(documents)
    if output == "html":
        from cli.render.html import to_html

        return to_html(documents)
    raise UsageError(f"{output!r} is no output format")
