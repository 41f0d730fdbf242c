"""``runbill query``: attributed cost by any keys."""

from __future__ import annotations

from collections.abc import Sequence

import click

from cli.options import Globals, global_command, split_keys, split_pairs, window_option
from cli.streams import emit


@click.command()
@click.option(
    "--by",
    multiple=True,
    callback=split_keys,
    metavar="KEYS",
    help="Keys to group by, like experiment,phase. Repeatable.",
)
@click.option(
    "--tag",
    "tags",
    multiple=True,
    callback=split_pairs,
    metavar="KEY=VALUE",
    help="Only what carries this tag; globs allowed. Repeatable.",
)
@click.option(
    "--filter",
    "filters",
    multiple=True,
    callback=split_pairs,
    metavar="KEY=VALUE",
    help="Only where this key has this value; globs allowed. Repeatable.",
)
@window_option(None, "What to look at (default: from the first to the last closed day)")
@click.option(
    "--cost",
    type=click.Choice(("effective", "billed", "contracted", "list", "active")),
    default="effective",
    show_default=True,
    help="The figure that cost means.",
)
@click.option("--currency", metavar="CODE", help="Only this currency, in any case.")
@click.option(
    "--idle",
    type=click.Choice(("separate", "share")),
    default="separate",
    show_default=True,
    help="Show idle as its own row, or give it to who held the node.",
)
@global_command
def command(
    options: Globals,
    by: Sequence[str],
    tags: Sequence[tuple[str, str]],
    filters: Sequence[tuple[str, str]],
    window: str | None,
    cost: str,
    currency: str | None,
    idle: str,
) -> None:
    """Sum attributed cost by any keys, tags and filters; the total stays that of the bill.

    \b
    runbill query --by experiment,phase --window 7d
    runbill query --by provider --cost billed --window lastmonth -o json
    runbill query --by owner --tag team=post-training --filter experiment='grpo-*'
    """
    from cli.documents.queries import query_documents
    from cli.wiring import open_context

    context = open_context(options)
    emit(
        options,
        query_documents(
            context,
            by=by,
            tags=tags,
            filters=filters,
            window=window,
            cost=cost,
            currency=currency,
            idle=idle,
        ),
    )
