"""``runbill config``: the settings in force."""

from __future__ import annotations

import click

from cli.options import EXTENSIONS, Globals, global_command, global_options
from cli.streams import emit


@click.group()
@global_options
def command() -> None:
    """Show, check or describe the settings."""


@command.command()
@click.option("--origin", is_flag=True, help="Say where each value came from.")
@global_command
def show(options: Globals, origin: bool) -> None:
    """Show the settings in force, secrets masked."""
    from cli.documents.settings_view import settings_document
    from cli.wiring import load

    emit(options, [settings_document(load(options), origin=origin)])


@command.command()
@global_command
def validate(options: Globals) -> None:
    """Check the settings and say which file they came from."""
    from attribution.query.question import check_sharing
    from cli.documents.settings_view import validity_document
    from cli.wiring import load
    from rules.registry import check_rules

    loaded = load(options)
    check_rules(loaded.settings)
    check_sharing(loaded.settings)
    emit(options, [validity_document(loaded)])


@command.command()
@global_command
def schema(options: Globals) -> None:
    """Print the JSON Schema of the settings: always JSON."""
    from cli.documents.settings_view import settings_schema
    from cli.streams import write_file
    from ledger.errors import UsageError

    wanted = {EXTENSIONS[path.suffix.lower()] for path in options.out_files} | {options.output}
    if other := sorted(wanted - {"json", "table"}):
        raise UsageError(f"the JSON Schema is not to be had as {', '.join(other)}", "use -o json")
    text = settings_schema()
    for path in options.out_files:
        write_file(path, text)
    click.echo(text, nl=False)
