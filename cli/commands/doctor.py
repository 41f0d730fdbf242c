"""``runbill doctor``: can every source be read, and what would be blind."""

from __future__ import annotations

import click

from cli.options import Globals, global_command, window_option
from cli.streams import emit


@click.command()
@click.option(
    "--identity",
    is_flag=True,
    help="From the ledger: which identity rule named which pods, and their cost.",
)
@window_option("7d", "Days that --identity looks at")
@global_command
def command(options: Globals, identity: bool, window: str) -> None:
    """Try every source and say what would be blind without it.

    With --identity it looks into the ledger instead: pods, share of cost and the rule that hit, per
    identity key.
    """
    from cli.documents import doctor
    from cli.options import asked_window
    from cli.wiring import load, open_context

    if identity:
        found = asked_window(None, window)
        assert found is not None  # noqa: S101  the option has a default
        emit(options, [doctor.identity_document(open_context(options), found)])
        return
    document, code = doctor.sources_document(load(options))
    emit(options, [document])
    click.get_current_context().exit(code)
