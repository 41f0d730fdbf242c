"""``runbill init``: look for the sources and write the settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from cli.options import Globals, global_command
from cli.streams import emit


@click.command()
@click.option("--context", metavar="NAME", help="Context of the kubeconfig.")
@click.option("--dump", metavar="PATH", help="File or folder of `kubectl get -o json` output.")
@click.option(
    "--cluster-name",
    "--cluster",
    "cluster",
    metavar="NAME",
    help="Name of the cluster in the reports (default: from the context).",
)
@click.option(
    "--prometheus",
    metavar="URL|PATH",
    multiple=True,
    help="Prometheus to try, or an export of its series; the first that can be read is taken. "
    "Repeatable.",
)
@click.option("--bill", metavar="PATH", help="FOCUS bill: a file, a folder, a glob or s3://.")
@click.option(
    "--gpu-price",
    "prices",
    metavar="MODEL=PRICE",
    multiple=True,
    help="Price per GPU-hour where no bill says so, like H100=2.50. Repeatable.",
)
@click.option("--currency", default="USD", show_default=True, help="Currency of the prices.")
@click.option("--timezone", default="UTC", show_default=True, help="Zone of nights and weekends.")
@click.option("--ledger", default="./ledger", show_default=True, help="Folder or s3:// prefix.")
@click.option("--force", is_flag=True, help="Overwrite existing settings.")
@global_command
def command(
    options: Globals,
    context: str | None,
    dump: str | None,
    cluster: str | None,
    prometheus: Sequence[str],
    bill: str | None,
    prices: Sequence[str],
    currency: str,
    timezone: str,
    ledger: str,
    force: bool,
) -> None:
    """Look for a cluster, a Prometheus and a bill, and write runbill.yaml.

    On a terminal it asks for what it cannot find; elsewhere the options say it. The file is the one
    of --config, else ./runbill.yaml; an existing one is kept unless --force is given.
    """
    from cli.setup.answers import settings_text
    from cli.setup.asking import Wishes, answers_for, init_document
    from cli.streams import write_file
    from ledger.errors import UsageError

    path = options.config or Path("runbill.yaml")
    if path.exists() and not force:
        raise UsageError(f"{path} exists", "--force overwrites it")
    wishes = Wishes(
        context, dump, cluster, tuple(prometheus), bill, tuple(prices), currency, timezone, ledger
    )
    answers = answers_for(options, wishes, path.absolute().parent)
    write_file(path, settings_text(answers))
    emit(options, [init_document(answers, path)])
