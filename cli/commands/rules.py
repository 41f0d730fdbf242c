"""``runbill rules``: the checklist explained."""

from __future__ import annotations

import click

from cli.options import Globals, global_command, global_options
from cli.streams import emit


@click.group()
@global_options
def command() -> None:
    """List and explain the rules of the checklist."""


@command.command("list")
@global_command
def list_rules(options: Globals) -> None:
    """List every rule: code, name and question."""
    from cli.documents.rules_view import rules_document

    emit(options, [rules_document()])


@command.command()
@click.argument("code")
@global_command
def explain(options: Globals, code: str) -> None:
    """Explain a rule by its CODE or name: evidence, threshold, price and remedy."""
    from cli.documents.rules_view import rule_document

    emit(options, [rule_document(code)])
