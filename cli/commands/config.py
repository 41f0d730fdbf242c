"""``runbill config``: the settings in force."""

from __future__ import annotations

import click

from cli.options import Globals, global_command
from cli.streams import emit


@click.group()
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
    from cli.documents.settings_view import validity_document
    from cli.wiring import load

    emit(options, [validity_document(load(options))])


@command.command()
def schema() -> None:
    """Print the JSON Schema of the settings."""
    from cli.documents.settings_view import settings_schema

    click.echo(settings_schema(), nl=False)
