"""The entry point: a group that loads a command only when it runs, and the one error boundary.

``runbill --help`` and shell completion import click and this file, nothing heavier: the table
below holds each command's one-line help, and a test compares it with the commands themselves.
"""

from __future__ import annotations

import decimal
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Never

import click

from cli import exits
from cli.options import global_options
from ledger.errors import RunbillError

COMMANDS = {
    "init": "Look for the sources and write runbill.yaml.",
    "run": "Close a day: collect, attribute, check, report.",
    "collect": "Read the sources of a window into the ledger.",
    "attribute": "Give every charge of a window to who caused it.",
    "checklist": "Ask the waste questions of a closed day.",
    "query": "Sum attributed cost by any keys, tags and filters.",
    "report": "Report a closed window, without any network.",
    "demo": "Close and report a simulated cluster with a known truth.",
    "simulate": "Write the input files of a simulated cluster.",
    "agent": "Watch clusters, and record pods and when they lived.",
    "doctor": "Try every source and say what would be blind.",
    "config": "Show, check or describe the settings.",
    "rules": "List and explain the rules of the checklist.",
    "ledger": "Show the tables of the ledger and how days were closed.",
}
HELP = {"help_option_names": ["-h", "--help"]}


class ReaderGoneError(Exception):
    """Whoever read our stdout has closed it; click would end with the exit code of findings."""


class Lazy(click.Group):
    """A group whose commands are modules of ``cli.commands``, imported on use."""

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """``-h`` and ``--help`` in any context: click keeps what the first one named."""
        return list(HELP["help_option_names"])

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All command names, in the order of the work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command and return what it calls ``command``."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"cli.commands.{cmd_name}").command
        if not isinstance(command, click.Command):
            raise TypeError(f"cli.commands.{cmd_name}.command is no click command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the static table, importing none of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a closed stdout gets past click's own handling."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGoneError from error

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,  # noqa: ANN401  click's own signature
    ) -> Never:
        """Run the program and end with the exit code that its errors stand for."""
        # Money has up to 38 digits and Python rounds sums to 28; other threads start like this one.
        decimal.DefaultContext.prec = decimal.getcontext().prec = 76
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # no character may stop a report half-way
                stream.reconfigure(errors="backslashreplace")
        sys.exit(
            _guarded(
                lambda: super(Lazy, self).main(
                    args,
                    prog_name,
                    complete_var,
                    standalone_mode=False,
                    windows_expand_args=windows_expand_args,
                    **extra,
                )
            )
        )


def _guarded(call: Callable[[], object]) -> int:
    """Call the program; the only place where an exception becomes an exit code."""
    try:
        code = call()
        sys.stdout.flush()
        return code if isinstance(code, int) else exits.OK
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        _say("interrupted")
        return exits.INTERRUPTED
    except KeyboardInterrupt:
        _say("interrupted")
        return exits.INTERRUPTED
    except (ReaderGoneError, BrokenPipeError):
        _detach_stdout()
        return exits.BROKEN_PIPE
    except RunbillError as error:
        _traceback_if_asked()
        _say(f"error: {error.message}", error.hint)
        return error.exit_code
    except SystemExit:
        raise
    except OSError as error:  # a full disk, a folder that refuses: nothing that we could mend
        _traceback_if_asked()
        _say(f"error: {error.filename or 'a file'}: {error.strerror or error}")
        return exits.ACCESS if isinstance(error, PermissionError) else exits.USAGE
    except BaseException as error:  # noqa: BLE001  the process boundary: a fault of ours is 70,
        # a panic of a library included, which is no Exception
        _traceback_if_asked()
        _say(
            f"error: {type(error).__name__}: {error}",
            "this is a fault of runbill; RUNBILL_DEBUG=1 shows the traceback",
        )
        return exits.FAULT


def _say(message: str, hint: str | None = None) -> None:
    click.echo(" ".join(message.split()), err=True)
    if hint:
        click.echo(f"hint: {' '.join(hint.split())}", err=True)


def _traceback_if_asked() -> None:
    if os.environ.get("RUNBILL_DEBUG") == "1":
        import traceback

        click.echo(traceback.format_exc(), err=True)


def _detach_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush stays quiet."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # a replaced stdout has no descriptor to detach
        return


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from cli.wiring import version

        click.echo(f"runbill {version()}")
        ctx.exit()


@click.group(cls=Lazy, context_settings=HELP)
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
@global_options
def main() -> None:
    """Every post-training run gets its bill.

    runbill closes the books of an LLM post-training cluster once a day: each dollar of the bill
    goes to an experiment, an owner and a phase, or is named as idle, shared or unattributed.

    \b
    Try it:          runbill demo
    Set it up:       runbill init && runbill doctor
    Close a day:     runbill run
    Ask:             runbill query --by experiment,phase --window 7d

    Exit codes: 0 fine, 1 findings (with --fail-on), 2 usage or settings, 3 closed with gaps in a
    required source, 4 no permission, 5 nothing closed, 70 a fault of runbill, 130 interrupted,
    141 the reader of stdout has gone.
    """
