"""``runbill report``: the last stage alone."""

from __future__ import annotations

import click

from cli.options import Globals, day_option, global_command, window_option
from cli.streams import emit


@click.command()
@day_option()
@window_option(None, "Days to report (default: the last closed day)")
@global_command
def command(options: Globals, day: str | None, window: str | None) -> None:
    """Report closed days from the ledger, without any network: -o html for a page."""
    from cli.documents.reporting import report_documents
    from cli.options import asked_window
    from cli.wiring import open_context

    context = open_context(options)
    emit(options, report_documents(context, asked_window(day, window)))
