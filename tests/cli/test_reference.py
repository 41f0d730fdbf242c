from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from jsonschema import Draft202012Validator

import cli
from cli.documents.settings_view import settings_schema
from cli.main import COMMANDS, main
from cli.reference import reference

DOCS = Path(cli.__path__[0]).parent / "docs"


def test_the_reference_is_the_help() -> None:
    assert (DOCS / "cli.md").read_text() == reference(), "python -m cli.reference > docs/cli.md"


def test_the_reference_does_not_depend_on_who_asked_before() -> None:
    main.__dict__["_help_option"] = None  # as in a fresh process
    try:
        main.get_params(click.Context(main))
        assert "-h, --help" in reference().partition("## runbill init")[0]
    finally:
        main.__dict__["_help_option"] = None


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_reference(name: str) -> None:
    assert f"\n## runbill {name}\n" in reference()


def test_the_published_settings_schema_is_the_one_in_force() -> None:
    assert (DOCS / "schemas/settings.json").read_text() == settings_schema(), (
        "runbill config schema > docs/schemas/settings.json"
    )


@pytest.mark.parametrize("path", sorted((DOCS / "schemas").glob("*.json")), ids=lambda p: p.stem)
def test_every_schema_is_one(path: Path) -> None:
    schema = json.loads(path.read_text())
    Draft202012Validator.check_schema(schema)
    if path.stem != "settings":
        assert schema["properties"]["kind"] == {"const": path.stem}
        assert schema["properties"]["schema_version"] == {"const": "1"}
