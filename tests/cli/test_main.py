from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

import cli
from cli.main import COMMANDS, main

ROOT = Path(cli.__path__[0]).parent
Invoke = Callable[..., Result]
Program = Callable[..., "subprocess.CompletedProcess[str]"]

HEAVY = (
    "polars",
    "deltalake",
    "boto3",
    "botocore",
    "kubernetes",
    "pydantic",
    "pydantic_settings",
    "rich",
    "jinja2",
    "yaml",
    "requests",
    "prometheus_api_client",
    "importlib.metadata",
)


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["run", "--help"],
        ["query", "-h"],
        ["demo", "-h"],
        ["config", "--help"],
        ["ledger", "schema", "--help"],
    ],
)
def test_help_loads_nothing_heavy(args: list[str]) -> None:
    code = (
        "import sys\nfrom cli.main import main\n"
        f"try:\n    main({args!r}, prog_name='runbill')\nexcept SystemExit as e:\n"
        f"    print(e.code, [m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stderr.strip() == "0 []"
    assert done.stdout.startswith("Usage: runbill")


def test_the_list_of_commands_says_what_the_commands_say() -> None:
    for name, text in COMMANDS.items():
        command = importlib.import_module(f"cli.commands.{name}").command
        assert isinstance(command, click.Command)
        assert command.help, name
        assert text.endswith("."), name
        assert len(text) <= 60, name


def test_every_module_of_commands_is_listed() -> None:
    folder = ROOT / "cli/commands"
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} == set(COMMANDS)


def test_version(invoke: Invoke) -> None:
    found = invoke("--version")
    assert found.exit_code == 0
    assert found.stdout == f"runbill {importlib.metadata.version('runbill')}\n"


@pytest.mark.parametrize(
    "args",
    [
        ["bogus"],
        ["--bogus"],
        ["run", "--bogus"],
        ["-o", "yaml", "config", "show"],
        ["--out-file", "report.pdf", "config", "show"],
        ["config"],
        [],
    ],
)
def test_a_wrong_command_line_is_exit_code_2(invoke: Invoke, args: list[str]) -> None:
    found = invoke(*args)
    assert found.exit_code == 2
    assert found.stdout == ""
    assert found.stderr


@pytest.mark.parametrize("place", ["before", "after"])
def test_global_options_stand_before_and_after_the_command(
    invoke: Invoke, tmp_path: Path, place: str
) -> None:
    options = ["-o", "json", "--out-file", "settings.csv", "-q"]
    command = ["config", "show"]
    found = invoke(*(options + command if place == "before" else command + options))
    assert found.exit_code == 0
    assert json.loads(found.stdout)["kind"] == "config"
    assert found.stderr == ""
    assert (tmp_path / "settings.csv").read_text().startswith("key,value\n")


def test_the_later_option_wins_and_files_add_up(invoke: Invoke, tmp_path: Path) -> None:
    found = invoke(
        "-o", "csv", "--out-file", "a.json", "rules", "list", "-o", "json", "--out-file", "b.md"
    )
    assert json.loads(found.stdout)["kind"] == "rules"
    assert json.loads((tmp_path / "a.json").read_text()) == json.loads(found.stdout)
    assert (tmp_path / "b.md").read_text().startswith("<!-- runbill:rules -->")
    assert found.stderr == "wrote a.json\nwrote b.md\n"


def test_unknown_settings_key_names_the_nearest(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "runbill.yaml").write_text("timezon: UTC\n")
    found = invoke("run")
    assert found.exit_code == 2
    assert found.stdout == ""
    assert "timezon" in found.stderr
    assert "timezone" in found.stderr
    assert len(found.stderr.splitlines()) <= 2


@pytest.mark.parametrize("window", ["7", "1M", "bogus", "2026-11-08..2026-11-01", "0d", ""])
def test_a_bad_window_is_one_line_with_a_hint(invoke: Invoke, window: str) -> None:
    found = invoke("run", "--window", window or "..")
    assert found.exit_code == 2
    assert found.stdout == ""
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["query"],
        ["report"],
        ["checklist"],
        ["attribute"],
        ["ledger", "history"],
        ["doctor", "--identity"],
    ],
)
def test_a_missing_ledger_says_how_to_make_one(invoke: Invoke, args: list[str]) -> None:
    found = invoke(*args)
    assert found.exit_code == 2
    assert found.stdout == ""
    assert "runbill run" in found.stderr


def test_no_source_is_no_silent_success(invoke: Invoke) -> None:
    found = invoke("run")
    assert found.exit_code == 2
    assert "runbill init" in found.stderr


def test_a_fault_of_ours_is_70_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, invoke: Invoke
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a\nb")

    monkeypatch.setattr("cli.documents.rules_view.rules_document", broken)
    found = invoke("rules", "list")
    assert (found.exit_code, found.stdout) == (70, "")
    assert found.stderr.splitlines()[0] == "error: ZeroDivisionError: a b"
    assert "RUNBILL_DEBUG=1" in found.stderr
    monkeypatch.setenv("RUNBILL_DEBUG", "1")
    assert "Traceback" in invoke("rules", "list").stderr


def test_an_interrupt_is_130(monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cli.documents.rules_view.rules_document", interrupted)
    found: Result = invoke("rules", "list")
    assert (found.exit_code, found.stdout) == (130, "")
    assert "Traceback" not in found.stderr


def test_ctrl_c_ends_the_process_with_130(tmp_path: Path) -> None:
    code = (
        "import signal, sys, cli.documents.rules_view\nfrom cli.main import main\n"
        "def wait():\n    print('ready', flush=True)\n    signal.pause()\n"
        "cli.documents.rules_view.rules_document = wait\nmain(['rules', 'list'])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_a_broken_pipe_is_quiet(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "cli", "config", "schema"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.parametrize(
    ("environment", "args", "expected"),
    [
        ({}, [], False),
        ({"FORCE_COLOR": "1"}, [], True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, [], False),
        ({}, ["--color", "always"], True),
        ({"NO_COLOR": "1"}, ["--color", "always"], True),
        ({"FORCE_COLOR": "1"}, ["--color", "never"], False),
    ],
)
def test_colour(
    program: Program, environment: dict[str, str], args: list[str], expected: bool
) -> None:
    found = program("rules", "list", *args, **environment)
    assert found.returncode == 0
    assert ("\x1b[" in found.stdout) is expected


def test_main_is_the_entry_point_of_both_names() -> None:
    scripts = importlib.metadata.entry_points(group="console_scripts")
    for name in ("runbill", "kubectl-runbill"):
        assert scripts[name].load() is main


@pytest.mark.parametrize("keys", ["", ",", "experiment,,phase"])
def test_an_empty_grouping_key_is_refused(invoke: Invoke, keys: str) -> None:
    found = invoke("query", "--by", keys)
    assert found.exit_code == 2
    assert "empty" in found.stderr


@pytest.mark.parametrize("command", [("config", "validate"), ("run",)])
def test_rules_are_checked_before_anything_is_read(
    invoke: Invoke, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "runbill.yaml").write_text(
        "billing: [{name: a, path: bill}]\nrules: {RB102: {night: '22:00-22:00'}}\n"
    )
    found = invoke(*command)
    assert found.exit_code == 2
    assert "22:00-22:00" in found.stderr
    assert not (tmp_path / "ledger").exists()
