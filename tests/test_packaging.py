"""The house itself: what is shipped is what stands here, and nobody else claims our names."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)


@cache
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def shipped() -> list[str]:
    names: list[str] = project()["tool"]["uv"]["build-backend"]["module-name"]
    return names


def pins(lock: str) -> dict[str, set[str]]:
    """Package name to the versions that the lock file names (one per marker)."""
    found: dict[str, set[str]] = {}
    for name, version in PINNED.findall((ROOT / lock).read_text()):
        found.setdefault(canonicalize_name(name), set()).add(version)
    return found


def requirements() -> Iterator[tuple[str, Requirement]]:
    """Each requirement of pyproject.toml, with each lock file that has to hold it."""
    for text in project()["project"]["dependencies"]:
        yield "requirements.lock", Requirement(text)
        yield "requirements-dev.lock", Requirement(text)
    for text in project()["dependency-groups"]["dev"]:
        yield "requirements-dev.lock", Requirement(text)


def test_every_root_package_is_shipped() -> None:
    """A package that is not named works in an editable installation and is lost in the wheel."""
    standing = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert standing == set(shipped())


def test_linters_know_every_package() -> None:
    tools = project()["tool"]
    assert set(tools["importlinter"]["root_packages"]) == set(shipped())
    assert set(tools["mypy"]["files"]) >= set(shipped())


@pytest.mark.parametrize("package", shipped())
def test_package_is_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


def test_no_other_distribution_provides_our_names() -> None:
    """Installing another distribution with one of these names overwrites our files silently."""
    owners = packages_distributions()
    foreign = {name: set(owners.get(name, [])) - {"runbill"} for name in shipped()}
    assert foreign == {name: set() for name in shipped()}


def test_tests_are_no_package() -> None:
    """``tests/cli/__init__.py`` would shadow ``cli``."""
    assert list((ROOT / "tests").rglob("__init__.py")) == []


@pytest.mark.parametrize(
    ("lock", "requirement"),
    [pytest.param(*pair, id=f"{pair[1].name}-{pair[0]}") for pair in requirements()],
)
def test_lock_satisfies_requirement(lock: str, requirement: Requirement) -> None:
    versions = pins(lock).get(canonicalize_name(requirement.name), set())
    assert versions, f"{lock} lacks {requirement.name}: make lock"
    assert all(version in requirement.specifier for version in versions)


def test_locks_agree() -> None:
    """What the tests run with is what a user gets."""
    tested, installed = pins("requirements-dev.lock"), pins("requirements.lock")
    assert {name: tested.get(name) for name in installed} == installed


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_every_pin_has_a_hash(lock: str) -> None:
    blocks = re.split(r"^(?=[A-Za-z0-9])", (ROOT / lock).read_text(), flags=re.MULTILINE)[1:]
    assert blocks
    assert [block.split()[0] for block in blocks if "--hash=sha256:" not in block] == []


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_lock_names_no_registry(lock: str) -> None:
    """Where packages come from is the installer's setting, e.g. a mirror; not the project's."""
    assert "://" not in (ROOT / lock).read_text()
