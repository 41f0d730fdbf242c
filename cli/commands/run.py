"""``runbill run``: close a day."""

from __future__ import annotations

import click

from cli import exits
from cli.options import Globals, day_option, global_command, window_option
from cli.streams import emit, note, progress


@click.command()
@day_option("Close this UTC day, like 2026-11-30")
@window_option(None, "Close these days")
@click.option(
    "--fail-on",
    type=click.Choice(exits.SEVERITIES),
    help="Exit with 1 if a finding is at least this severe.",
)
@global_command
def command(options: Globals, day: str | None, window: str | None, fail_on: str | None) -> None:
    """Close a day: collect, attribute, check, report.

    Without --day or --window it closes yesterday, fills in what is missing and can still be had
    (on the first run: all that the sources still hold), and works out again every day whose inputs
    changed.
    """
    from cli.documents.reporting import run_documents
    from cli.options import asked_days
    from cli.stages.collecting import complaints
    from cli.stages.pipeline import run
    from cli.wiring import open_context

    days = asked_days(day, window)
    context = open_context(options, create=True)
    with progress(options) as shown:
        result = run(context, days, shown)
    for line in complaints(result.collected):
        note(options, line)
    emit(options, run_documents(context, result))
    click.get_current_context().exit(result.exit_code(fail_on))
