"""``runbill simulate``: the input files of a simulated cluster."""

from __future__ import annotations

from pathlib import Path

import click

from cli.options import Globals, global_command
from cli.simulation.worldly import world_options
from cli.streams import emit, note


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@world_options
@click.option(
    "--openmetrics",
    is_flag=True,
    help="Also write the series as OpenMetrics, for promtool's back-fill.",
)
@click.option(
    "--ledger", "large", is_flag=True, help="Write a large ledger straight, for benchmarks."
)
@global_command
def command(
    options: Globals, /, directory: Path, openmetrics: bool, large: bool, **size: object
) -> None:
    """Write the input files of a simulated cluster, and its known truth, to DIRECTORY."""
    from cli.simulation.worldly import simulate_into, simulated_document

    note(options, f"simulating into {directory} …")
    emit(
        options,
        [
            simulated_document(
                simulate_into(directory, size, openmetrics=openmetrics, large=large), directory
            )
        ],
    )
