"""The documents cannot drift: the commands they show exist, and their links lead somewhere."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import dropwhile
from pathlib import Path

import click
import pytest

ROOT = Path(__file__).parents[1]
SKIPPED_FOLDERS = {".venv", ".git", "demo", "build", "dist"}
PAGES = sorted(
    page for page in ROOT.rglob("*.md") if not SKIPPED_FOLDERS & set(page.relative_to(ROOT).parts)
)
BLOCK = re.compile(r"^```(?:console|sh|bash|shell)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
OTHER_PROGRAMS = {"cd", "git", "uv", "mkdir", "export", "kubectl", "sacct", "scontrol", "sinfo"}
VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*=.*", re.DOTALL)


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command in the shell blocks of a page.

    In a block with prompts the lines without one are output. A line that ends in a backslash goes
    on; a redirection ends the words that belong to the command, a pipe begins another one.
    """
    for block in BLOCK.findall(text):
        lines = block.replace("\\\n", " ").splitlines()
        prompted = [line[2:] for line in lines if line.startswith("$ ")]
        for line in prompted or lines:
            for part in re.split(r"\s(?:\||&&|;)\s", line):
                if words := shlex.split(re.split(r"\s>>?\s", part)[0], comments=True):
                    yield words


def shown() -> list[tuple[str, list[str]]]:
    return [(page.name, words) for page in PAGES for words in commands(page.read_text())]


def targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def problem(words: list[str]) -> str | None:
    """What is wrong with a shown command, or None; variables before it are set for it alone."""
    words = list(dropwhile(VARIABLE.fullmatch, words))
    if not words:
        return None
    program = Path(words[0]).name
    if program == "runbill":
        return runbill_problem(words[1:])
    if program == "make":
        unknown = {word for word in words[1:] if "=" not in word} - targets()
        return f"no target {sorted(unknown)}" if unknown else None
    return None if program in OTHER_PROGRAMS else f"nobody checks {program}"


def runbill_problem(words: list[str]) -> str | None:
    """Walk the command tree along the words: each sub-command and each option has to exist."""
    from cli.main import HELP, main

    command: click.Command = main
    context = click.Context(main, info_name="runbill", help_option_names=HELP["help_option_names"])
    known = options(main, context)
    values: list[str] = []
    waiting = False
    for word in words:
        if waiting:
            waiting = False
        elif word.startswith("-") and word != "-":
            name, has_value, _ = word.partition("=")
            if name not in known:
                return f"{context.command_path} has no option {name}"
            waiting = not has_value and takes_value(known[name])
        elif isinstance(command, click.Group):
            found = command.get_command(context, word)
            if found is None:
                return f"{context.command_path} has no command {word}"
            command, context = found, click.Context(found, parent=context, info_name=word)
            known |= options(found, context)
        else:
            values.append(word)
    return too_many(command, values)


def options(command: click.Command, context: click.Context) -> dict[str, click.Parameter]:
    return {
        name: parameter
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option)
        for name in (*parameter.opts, *parameter.secondary_opts)
    }


def takes_value(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option) and not (parameter.is_flag or parameter.count)


def too_many(command: click.Command, values: list[str]) -> str | None:
    """Whether a command is given more arguments than it takes."""
    counts = [p.nargs for p in command.params if isinstance(p, click.Argument)]
    if -1 not in counts and len(values) > sum(counts):
        return f"{command.name} takes no {values[-1]!r}"
    return None


@pytest.mark.parametrize(
    ("page", "words"),
    [pytest.param(*item, id=f"{item[0]}: {' '.join(item[1])}") for item in shown()],
)
def test_shown_command_exists(page: str, words: list[str]) -> None:
    assert problem(words) is None


def test_readme_shows_the_two_commands() -> None:
    readme = [words for page, words in shown() if page == "README.md"]
    assert ["make", "demo"] in readme
    assert ["make", "test"] in readme


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (["runbill", "qwery"], "no command qwery"),
        (["runbill", "query", "--bye", "experiment"], "no option --bye"),
        (["runbill", "rules", "list", "--bye"], "no option --bye"),
        (["runbill", "query", "surplus"], "takes no 'surplus'"),
        (["make", "coffee"], "no target ['coffee']"),
        (["frobnicate"], "nobody checks frobnicate"),
        (["SOME_SETTING=1", "runbill", "qwery"], "no command qwery"),
    ],
)
def test_wrong_command_is_noticed(wrong: list[str], expected: str) -> None:
    assert expected in str(problem(wrong))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    links = LINK.findall(FENCED.sub("", page.read_text()))
    dead = [
        link
        for link in links
        if "://" not in link
        and not link.startswith(("#", "mailto:"))
        and not (page.parent / link.partition("#")[0]).exists()
    ]
    assert dead == []


def test_make_help_names_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    listed = set(re.findall(r'@echo "make ([a-z]+)', makefile))
    assert listed == targets() - {"help", "venv"}


def test_the_architecture_names_every_folder_of_code() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    floors = ("ledger", "collector", "attribution", "rules", "cli")
    folders = {path.parent.name for floor in floors for path in (ROOT / floor).rglob("__init__.py")}
    named = set(re.findall(r"(\w+)/", page))
    assert folders - named <= set(floors)


def test_decisions_have_a_number_of_their_own_and_say_it() -> None:
    pages = sorted((ROOT / "docs/decisions").glob("*.md"))
    numbers = [int(page.name[:4]) for page in pages]
    assert len(set(numbers)) == len(numbers)
    assert [int(page.read_text()[2:].partition(".")[0]) for page in pages] == numbers
