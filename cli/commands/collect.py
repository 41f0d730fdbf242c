"""``runbill collect``: the first stage alone."""

from __future__ import annotations

from collections.abc import Sequence

import click

from cli.options import Globals, day_option, global_command, window_option
from cli.streams import emit, note, progress


@click.command()
@click.argument("source", nargs=-1)
@day_option()
@window_option(None, "Days to collect (default: yesterday and what is missing)")
@global_command
def command(options: Globals, source: Sequence[str], day: str | None, window: str | None) -> None:
    """Read the sources of a window into the ledger; SOURCE names or kinds choose some of them."""
    from cli.documents.stages import collect_document
    from cli.options import asked_days
    from cli.stages.collecting import complaints, exit_code
    from cli.stages.pipeline import collect, plan_tasks
    from cli.wiring import open_context

    days = asked_days(day, window)
    context = open_context(options, create=True)
    with progress(options) as shown:
        plan = plan_tasks(context, days, shown, source)
        outcomes = collect(context, plan, shown)
    for line in complaints(outcomes):
        note(options, line)
    emit(options, [collect_document(outcomes)])
    click.get_current_context().exit(exit_code(outcomes, context.loaded.settings.quarantine_limit))
