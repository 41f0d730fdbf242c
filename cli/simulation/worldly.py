"""Simulated worlds for ``demo`` and ``simulate``: flags, folder and document."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cli.document import Document, Tile, envelope
from ledger.errors import UsageError

if TYPE_CHECKING:
    from collector.simulate.options import WorldOptions

F = TypeVar("F", bound=Callable[..., Any])
MARK = "truth.json"
"""The file that says a folder holds a simulated world of ours."""


def world_options(command: F) -> F:
    """Add the flags for the size of a world; None leaves the simulator's default."""
    flags = (
        ("--days", int, "UTC days (default: 16)."),
        ("--seed", int, "Varies times, lengths and prices (default: 1)."),
        ("--end", str, "Last day, like 2026-11-30 (default: yesterday)."),
        ("--nodes", int, "GPU nodes (default: 7)."),
        ("--gpus", int, "Cards per GPU node (default: 8)."),
        ("--interval", int, "Seconds between two scrapes (default: 60)."),
        ("--timezone", str, "Zone of working hours (default: Asia/Shanghai)."),
        ("--outage-hours", int, "Length of a hole in the monitoring (default: 0)."),
        ("--scale", int, "That many pods a day in a uniform load, in place of the story."),
        ("--experiments", int, "Experiments of the uniform load (default: 200)."),
    )
    for flag, kind, text in reversed(flags):
        command = click.option(
            flag, type=kind, metavar="DATE" if flag == "--end" else None, help=text
        )(command)
    return command


def options_of(size: Mapping[str, object]) -> WorldOptions:
    """The simulator's options from the flags.

    Raises:
        UsageError: A flag has no meaning or is outside its range.
    """
    from collector.simulate.options import WorldOptions
    from ledger.window import parse_day

    names = {"gpus": "gpus_per_node", "scale": "containers"}
    given: dict[str, Any] = {
        names.get(name, name): value for name, value in size.items() if value is not None
    }
    if isinstance(end := given.get("end"), str):
        given["end"] = parse_day(end)
    return WorldOptions(**given)


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds anything but an earlier world.

    Raises:
        UsageError: The folder holds files that are not ours.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise UsageError(
            f"{folder} holds other files", "name a new or empty folder, or one of an earlier demo"
        )


def first_and_last(options: WorldOptions) -> tuple[date, date]:
    """The first and the last simulated day."""
    days = list(options.window.days())
    return days[0], days[-1]


def simulate_into(
    folder: Path, size: Mapping[str, object], *, openmetrics: bool = False, large: bool = False
) -> WorldOptions:
    """Write a world's input files (or, ``large``, a ledger of it) into a folder.

    Raises:
        UsageError: A flag is out of range, or the folder holds other files.
    """
    from collector.simulate.ledger import write_ledger
    from collector.simulate.world import simulate
    from collector.simulate.write import write_world

    options = options_of(size)
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if large:
        from ledger.store import Ledger

        write_ledger(options, Ledger.open(str(folder / "ledger"), create=True))
    else:
        write_world(simulate(options), folder, openmetrics=openmetrics)
    return options


def simulated_document(options: WorldOptions, folder: Path) -> Document:
    """What was written, and how to close it."""
    first, last = first_and_last(options)
    files = sorted(str(path.relative_to(folder)) for path in folder.iterdir())
    window = options.window
    data = envelope(
        "simulate", directory=str(folder), window=window.as_dict(), seed=options.seed, files=files
    )
    tiles = (Tile("Window", str(window)), Tile("Files", ", ".join(files)))
    settings = shlex.quote(str(folder / "runbill.yaml"))
    span = f"{first}..{last + timedelta(days=1)}"  # a window ends before its second day
    after = f"Close it: runbill --config {settings} run --window {span}"
    remarks = (after,) if (folder / "runbill.yaml").is_file() else ()
    return Document("simulate", f"A simulated cluster in {folder}", data, tiles, remarks=remarks)
