"""The reference of the command line, made from its help.

``python -m cli.reference > docs/cli.md`` writes it.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from cli.main import HELP, main

_HEAD = """# Command line

Made from the help texts by `python -m cli.reference`; a test compares the two.

- **Formats**: `-o table|json|csv|markdown|html` on stdout; `--out-file PATH` as well, format by
  extension, repeatable. Payload on stdout, everything else on stderr. Global options stand before
  or after the command.
- **JSON**: one text. A document is an object; where a window holds several currencies stdout is an
  array of one document per currency (`--currency` picks one). `docs/schemas/` describes each kind;
  money is a decimal text. A field may be added at any time; one that is renamed or removed raises
  `schema_version`.
- **CSV**: the first table; the header names units, the window and its lowest coverage end each row.
- **Tables**: on a terminal as wide as it is: the least important figures are left out where names
  would break, and a line says which. In a pipe every column, every cell on one line.
- **Windows**: half-open, UTC. `yesterday`, `today`, `7d` (the last 7 complete days), `24h` (to the
  last complete hour), `2w`, `lastweek`, `month`, `lastmonth`, `2026-11-01..2026-11-08`,
  `2026-11-30`. Days close whole: `run`, `collect`, `attribute` and `checklist` want whole days,
  `query` and `report` whole hours.
- **Colour**: on a terminal; `NO_COLOR`, `FORCE_COLOR`, `--color`.
- **Faults**: never a traceback; `RUNBILL_DEBUG=1` shows one.

| exit code | meaning |
|---|---|
| 0 | fine |
| 1 | findings at or above `--fail-on`, and nothing else is wrong |
| 2 | usage or settings |
| 3 | closed, but a required source failed, has gaps, or lost more rows than `quarantine_limit` |
| 4 | nothing could be read: no permission |
| 5 | nothing could be read: not reachable, or no bill, dump or export |
| 70 | a fault of runbill |
| 130 | interrupted |
| 141 | whoever read stdout closed it |
"""


def reference() -> str:
    """All commands with their help, as Markdown."""
    pages = [f"## {path}\n\n```text\n{text}\n```\n" for path, text in _helps(main, "runbill")]
    return "\n".join([_HEAD, *pages])


def _helps(
    command: click.Command, path: str, parent: click.Context | None = None
) -> Iterator[tuple[str, str]]:
    context = click.Context(
        command,
        parent,
        path.rsplit(" ", 1)[-1],
        terminal_width=90,
        max_content_width=90,
        help_option_names=HELP["help_option_names"],
    )
    yield path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None:
                yield from _helps(child, f"{path} {name}", context)


if __name__ == "__main__":
    click.echo(reference(), nl=False)
