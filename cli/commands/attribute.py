"""``runbill attribute``: the second stage alone."""

from __future__ import annotations

import click

from cli.options import Globals, day_option, global_command, window_option
from cli.streams import emit, progress


@click.command()
@day_option()
@window_option(None, "Days to work out (default: those whose inputs changed)")
@global_command
def command(options: Globals, day: str | None, window: str | None) -> None:
    """Give every charge of a window to who caused it, from what was collected."""
    from cli.documents.stages import attribute_document
    from cli.options import asked_days
    from cli.stages.pipeline import attribute, due_days
    from cli.wiring import open_context

    days = asked_days(day, window)
    context = open_context(options)
    with progress(options) as shown:
        closes = attribute(context, due_days(context, days), shown)
    emit(options, [attribute_document(closes)])
