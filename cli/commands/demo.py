"""``runbill demo``: a simulated cluster, closed and reported."""

from __future__ import annotations

from pathlib import Path

import click

from cli.options import Globals, global_command
from cli.simulation.worldly import world_options
from cli.streams import emit, progress


@click.command()
@click.argument(
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runbill-demo"),
    required=False,
)
@world_options
@global_command
def command(options: Globals, /, directory: Path, **size: object) -> None:
    """Simulate a cluster with a known truth into DIRECTORY, close its days and report them.

    Writes runbill.yaml, ledger/ and report.html there (default: ./runbill-demo), and compares the
    result with the truth, which was worked out apart from it.
    """
    from cli.simulation.demonstration import demonstrate

    with progress(options) as shown:
        documents, code = demonstrate(directory, size, shown)
    emit(options, documents)
    click.get_current_context().exit(code)
