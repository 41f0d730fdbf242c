"""Global options stand anywhere: before a group, between it and its command, or at the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import click
import pytest
from click.testing import Result

from cli.main import COMMANDS, main

Invoke = Callable[..., Result]
PLACES = (0, 1, 2)


def groups() -> list[str]:
    context = click.Context(main)
    return [name for name in COMMANDS if isinstance(main.get_command(context, name), click.Group)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "words", [("rules", "list"), ("config", "show"), ("ledger", "schema"), ("config", "schema")]
)
def test_options_of_a_group_stand_anywhere(
    words: tuple[str, str], place: int, tmp_path: Path, invoke: Invoke
) -> None:
    (tmp_path / "other.yaml").write_text("timezone: Asia/Shanghai\n")
    flags = ["--config", "other.yaml", "-o", "json", "--out-file", "copy.json"]
    done = invoke(*words[:place], *flags, *words[place:])
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == json.loads((tmp_path / "copy.json").read_text())
    if words == ("config", "show"):
        assert "Asia/Shanghai" in done.stdout


def test_every_group_knows_the_global_options() -> None:
    context = click.Context(main)
    known = [
        {option for each in command.params for option in each.opts}
        for command in (main, *(main.get_command(context, name) for name in groups()))
        if command is not None
    ]
    assert len(known) == 1 + len({"config", "rules", "ledger"})
    for one, other in combinations(known, 2):
        assert {"--config", "-o", "--out-file", "-q", "-v", "--color"} <= one & other


def test_the_schema_of_the_settings_is_json_only(tmp_path: Path, invoke: Invoke) -> None:
    done = invoke("config", "schema", "-o", "csv")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "csv" in done.stderr
