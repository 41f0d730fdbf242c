"""``runbill checklist``: the third stage alone."""

from __future__ import annotations

import click

from cli import exits
from cli.options import Globals, day_option, global_command, window_option
from cli.streams import emit, progress


@click.command()
@day_option("Ask about the days up to this closed one")
@window_option(
    None, "Closed days to ask about, each in turn (default: the last, and all out of date)"
)
@click.option(
    "--fail-on",
    type=click.Choice(exits.SEVERITIES),
    help="Exit with 1 if a finding is at least this severe.",
)
@global_command
def command(options: Globals, day: str | None, window: str | None, fail_on: str | None) -> None:
    """Ask the waste questions of a closed day."""
    from cli.documents.checks import checklist_document
    from cli.options import asked_days
    from cli.stages.codes import code_of
    from cli.stages.pipeline import attributed_days, checklist, due_checklists
    from cli.wiring import open_context

    days = asked_days(day, window)
    context = open_context(options)
    with progress(options) as shown:
        ask = checklist if days else due_checklists
        found = ask(context, attributed_days(context, days), shown)
    emit(options, [checklist_document(found[-1], verbose=options.verbose > 0)])
    click.get_current_context().exit(code_of(found[-1], fail_on))
