"""``runbill query``: attributed cost by any keys."""

from __future__ import annotations

from typing import Any

import click

from cli.documents.asked import Asked
from cli.options import Globals, global_command, split_keys, split_pairs, window_option
from cli.streams import emit

_SPLITS = click.Choice(("even", "weighted"))
_POOLS = click.Choice(("node", "cluster"))


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
    help="Only what carries this tag; globs and != allowed. Repeatable: several values of one key "
    "with = mean any of them, with != none of them.",
)
@click.option(
    "--filter",
    "filters",
    multiple=True,
    callback=split_pairs,
    metavar="KEY=VALUE",
    help="Only where this key has this value; as --tag. Repeatable.",
)
@window_option(None, "What to look at (default: from the first to the last closed day)")
@click.option(
    "--compare",
    type=click.Choice(("previous",)),
    help="Beside each row, its cost in the window of the same length before.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    metavar="N",
    help="Only the N largest rows, and the rest as one row called other.",
)
@click.option(
    "--cost",
    type=click.Choice(("effective", "billed", "contracted", "list", "active")),
    default="effective",
    show_default=True,
    help="The figure that cost means.",
)
@click.option("--currency", metavar="CODE", help="Only this currency, in any case.")
@click.option(
    "--share-idle",
    type=_POOLS,
    is_flag=False,
    flag_value="node",
    metavar="[POOL]",
    help="Give idle to who held the rest of its node (or, with cluster, of its cluster), by their "
    "cost of the same resource.",
)
@click.option("--idle", type=click.Choice(("separate", "share")), default="separate", hidden=True)
@click.option(
    "--idle-pool",
    type=_POOLS,
    default="node",
    show_default=True,
    help="What idle is pooled by where it stays apart: says how much of it goes with rows shown.",
)
@click.option(
    "--idle-rows",
    type=click.Choice(("keys", "pool")),
    default="keys",
    show_default=True,
    help="Idle by the keys alone, or a row for each pool.",
)
@click.option(
    "--quota",
    is_flag=True,
    help="Show what quotas reserve and nobody asked for at their namespaces, out of idle.",
)
@click.option(
    "--share",
    multiple=True,
    callback=split_pairs,
    metavar="KEY=VALUE[:SPLIT]",
    help="Share what fits among all other keys, instead of `sharing` in the settings. Repeatable.",
)
@click.option(
    "--share-split",
    type=_SPLITS,
    default="weighted",
    show_default=True,
    help="The split of --share without one: even, or by own cost.",
)
@click.option(
    "--overhead", metavar="AMOUNT", help="Add this amount per hour of the window, and share it."
)
@click.option("--overhead-split", type=_SPLITS, default="weighted", show_default=True, help="How.")
@click.option("--no-sharing", is_flag=True, help="Leave `sharing` of the settings out.")
@global_command
def command(options: Globals, /, **flags: Any) -> None:  # noqa: ANN401  the options above, by name
    """Sum attributed cost by any keys, tags and filters; the total stays that of the bill.

    \b
    runbill query --by experiment,phase --window 7d --compare previous
    runbill query --by provider --cost billed --window lastmonth -o json
    runbill query --by owner --tag team=post-training --filter experiment!='eval-*'
    runbill query --by project --share-idle --share namespace=monitoring:even

    Keys: experiment, model_version, pipeline, owner, project, phase; cluster, node, instance_type,
    namespace, kind, workload, pod, path; hour, day, month, billing_month, invoice_month; provider,
    service, account, region, source, category, charge, line_type, price_source, currency;
    resource, dimension, elasticity, basis, confidence, target, reason; label:KEY, tag:KEY,
    annotation:KEY.
    """
    from cli.documents.queries import query_documents
    from cli.wiring import open_context

    emit(options, query_documents(open_context(options), Asked(**flags)))
