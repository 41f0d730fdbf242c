"""``runbill ledger``: tables and history."""

from __future__ import annotations

import click

from cli.options import Globals, global_command, global_options, window_option
from cli.streams import emit


@click.group()
@global_options
def command() -> None:
    """Show the tables of the ledger and how days were closed."""


@command.command()
@click.argument("table", required=False)
@global_command
def schema(options: Globals, table: str | None) -> None:
    """Print every table, or the columns of TABLE: type, unit and meaning."""
    from cli.documents.ledger_view import columns_document, tables_document

    emit(options, [columns_document(table) if table else tables_document()])


@command.command()
@window_option(None, "Only these days")
@global_command
def history(options: Globals, window: str | None) -> None:
    """Show how each stage of each day ended: coverage, rows, gaps, quarantine."""
    from cli.documents.ledger_view import history_document
    from cli.options import asked_window
    from cli.wiring import open_context

    emit(options, [history_document(open_context(options).ledger, asked_window(None, window))])


@command.command()
@window_option("yesterday", "Of these days")
@click.option("--nodes", is_flag=True, help="One row per node and meter.")
@global_command
def coverage(options: Globals, window: str, nodes: bool) -> None:
    """Show which share of the expected samples was seen, per meter or per node."""
    from cli.documents.ledger_view import coverage_document
    from cli.options import asked_window
    from cli.wiring import open_context

    asked = asked_window(None, window)
    emit(options, [coverage_document(open_context(options).ledger, asked, by_node=nodes)])
