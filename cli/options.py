"""Options that every command knows, before and after its name, and the types of the others."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

from ledger.errors import UsageError

if TYPE_CHECKING:
    from datetime import date

    from ledger.window import Window

P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])

FORMATS = ("table", "json", "csv", "markdown", "html")
EXTENSIONS = {
    ".txt": "table",
    ".json": "json",
    ".csv": "csv",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
}
_META = "cli.options"


@dataclass
class Globals:
    """What the global options say, wherever they stood on the command line."""

    config: Path | None = None
    quiet: bool = False
    verbose: int = 0
    color: str = "auto"
    output: str = "table"
    out_files: list[Path] = field(default_factory=list)


def current() -> Globals:
    """The global options of the running command."""
    state: Globals = click.get_current_context().meta.setdefault(_META, Globals())
    return state


def _keep(name: str) -> Callable[[click.Context, click.Parameter, object], None]:
    def callback(ctx: click.Context, param: click.Parameter, value: object) -> None:
        if not value:  # not given here; it may have been given before the command
            return
        state: Globals = ctx.meta.setdefault(_META, Globals())
        if isinstance(value, tuple):
            state.out_files.extend(_with_format(path) for path in value)
        else:
            setattr(state, name, value)

    return callback


def _with_format(path: Path) -> Path:
    if path.suffix.lower() not in EXTENSIONS:
        raise click.BadParameter(
            f"{path.name!r} has no known extension; use {', '.join(EXTENSIONS)}",
            param_hint="--out-file",
        )
    return path


def global_options(command: F) -> F:
    """Add the global options to a command or group; their values land in ``current()``."""
    options = (
        click.option(
            "--config",
            type=click.Path(path_type=Path),
            expose_value=False,
            callback=_keep("config"),
            metavar="FILE",
            help="The settings file.",
        ),
        click.option(
            "-o",
            "--output",
            type=click.Choice(FORMATS),
            expose_value=False,
            callback=_keep("output"),
            help="Format on stdout (default: table).",
        ),
        click.option(
            "--out-file",
            type=click.Path(path_type=Path, dir_okay=False),
            multiple=True,
            expose_value=False,
            callback=_keep("out_files"),
            metavar="FILE",
            help="Also write a file; the extension says the format. Repeatable.",
        ),
        click.option(
            "--color",
            type=click.Choice(("auto", "always", "never")),
            expose_value=False,
            callback=_keep("color"),
            help="Colour on a terminal (default: auto).",
        ),
        click.option(
            "-q",
            "--quiet",
            is_flag=True,
            expose_value=False,
            callback=_keep("quiet"),
            help="No progress, no notes.",
        ),
        click.option(
            "-v",
            "--verbose",
            count=True,
            expose_value=False,
            callback=_keep("verbose"),
            help="Say more; repeatable.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def window_option(default: str | None, text: str) -> Callable[[F], F]:
    """``--window``: an expression of the window grammar."""
    shown = f" (default: {default})" if default else ""
    return click.option(
        "--window", "window", default=default, metavar="WINDOW", help=f"{text}{shown}."
    )


def day_option(text: str = "One UTC day, like 2026-11-30") -> Callable[[F], F]:
    """``--day``: one UTC day."""
    return click.option("--day", "day", metavar="DATE", help=f"{text}.")


def split_keys(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> tuple[str, ...]:
    """Callback of ``--by a,b --by c``: all keys in order, each once."""
    keys = [key.strip() for text in value for key in text.split(",")]
    if not all(keys):  # a total would answer another question
        raise click.BadParameter("a key is empty; name keys like experiment,phase")
    return tuple(dict.fromkeys(keys))


def split_pairs(
    ctx: click.Context, param: click.Parameter, value: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Callback of ``--tag key=value``: pairs in order."""
    pairs = []
    for text in value:
        key, equals, pattern = text.partition("=")
        if not (key and equals):
            raise click.BadParameter(f"{text!r} is not key=value")
        pairs.append((key, pattern))
    return tuple(pairs)


def asked_window(day: str | None, window: str | None) -> Window | None:
    """The window that ``--day`` or ``--window`` name; None if neither is given.

    Raises:
        UsageError: Both are given, or one of them cannot be read.
    """
    from cli.clock import now
    from ledger.window import Window, parse_day, parse_window

    if day and window:
        raise UsageError("--day and --window are both given", "use one of them")
    if day:
        return Window.of_day(parse_day(day))
    return parse_window(window, now()) if window else None


def asked_days(day: str | None, window: str | None) -> list[date] | None:
    """The UTC days that ``--day`` or ``--window`` touch; None if neither is given.

    Books close on whole days, so a part of a day stands for that day.

    Raises:
        UsageError: One of the days is not over yet.
    """
    from cli.clock import now
    from ledger.window import Window

    found = asked_window(day, window)
    if found is None:
        return None
    days = list(found.days())
    if Window.of_day(days[-1]).end > now():
        raise UsageError(
            f"the day {days[-1]} is not over yet in UTC",
            "the books close on whole days: use yesterday, 7d or 2026-11-01..2026-11-08",
        )
    return days


def global_command(function: Callable[Concatenate[Globals, P], None]) -> Callable[P, None]:
    """Hand the global options to a command as its first argument."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> None:
        from cli.logs import route

        options = current()
        route(quiet=options.quiet)
        function(options, *args, **kwargs)

    return global_options(wrapper)
