"""What libraries log reaches stderr as a line, and nobody with ``--quiet``."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
import stamina
from click.testing import Result

Invoke = Callable[..., Result]


@pytest.fixture
def retrying(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command in which a library tries something twice and warns of something else."""
    calls: list[int] = []

    @stamina.retry(on=ConnectionError, attempts=2, wait_initial=0, wait_max=0, wait_jitter=0)
    def flaky() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ConnectionError("no route")

    from cli.documents.rules_view import rules_document

    def document() -> object:
        flaky()
        logging.getLogger("some.library").warning("odd\nheader")
        logging.getLogger("some.library").info("never shown")
        return rules_document()

    monkeypatch.setattr("cli.documents.rules_view.rules_document", document)


@pytest.mark.usefixtures("retrying")
def test_a_retry_names_its_cause(invoke: Invoke) -> None:
    lines = invoke("rules", "list").stderr.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("trying again in 0")
    assert "no route" in lines[0]
    assert lines[1] == "some.library: odd header"


@pytest.mark.usefixtures("retrying")
def test_quiet_is_quiet(invoke: Invoke) -> None:
    assert invoke("-q", "rules", "list").stderr == ""
