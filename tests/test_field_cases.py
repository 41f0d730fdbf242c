"""Every case of the field has a test that names its number."""

from __future__ import annotations

import re
from pathlib import Path

from tests.field_cases import allocation_cases

TESTS = Path(__file__).parent


def test_every_allocation_case_has_a_test(shared: Path) -> None:
    """In a module that reads these cases: those of bills have numbers of the same form."""
    texts = [path.read_text() for path in TESTS.rglob("test_*.py")]
    sources = "\n".join(text for text in texts if "allocation_cases" in text)
    named = set(re.findall(r'"([SB]\d+(?:-?[a-z0-9]+)?)"', sources))
    assert sorted(allocation_cases(shared).keys() - named) == []
